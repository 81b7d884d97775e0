"""What it took to get to an accuracy, by hand."""

import json

import pytest

from fedactors.report.progress_axes import progress
from fedactors.run_files.records import read
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.record.milestones import milestones
from fedactors.study.run_figures import _spent
from tests.simulation.test_branch_past import run


def test_small_amounts_of_many_rounds_add_up():
    """1,000 rounds of 0.4 microjoules and 0.1 g are 0.4 mJ and 100 g; three bytes each are 3,000, a whole number."""
    rows = [{"round": n + 1, "joules": 4e-7, "co2_grams": 0.1, "bytes_up": 3, "accuracy": 0.1} for n in range(1000)]
    rows[499]["accuracy"] = 0.31
    rows[999]["accuracy"] = 0.4
    first, second = milestones(rows)
    assert first == {"accuracy": 0.3, "round": 500, "joules": 2e-4, "co2_grams": 50.0, "bytes_up": 1500}
    assert second == {"accuracy": 0.4, "round": 1000, "joules": 4e-4, "co2_grams": 100.0, "bytes_up": 3000}
    assert isinstance(second["bytes_up"], int)


def test_what_was_sent_before_the_first_round_counts(tmp_path):
    """DS shares samples up front: 20 phones get 100 samples each, which each pays for; rows of metrics lack that."""
    energy = {"per_step": "1.5 J", "per_byte": "20 uJ"}
    changes = [
        "server.algorithm={name: ds, share: upfront}", "server.data={name: iid, samples: 100}",
        f"population.0.energy={json.dumps(energy)}", "server.schedule.lr=0.5", "server.local.steps=20",
    ]  # fmt: skip
    found = run(tmp_path / "run", *changes)
    ahead = found.summary["wire"]["ahead"]
    assert ahead > 0
    phones = ahead / 20 * 10  # those of three groups that have a price
    assert found.summary["ahead"] == {"bytes_down": ahead, "joules": pytest.approx(phones * 20e-6)}
    line = found.summary["to_accuracy"][-1]
    rows = found.metrics[: line["round"]]
    assert line["bytes_down"] == ahead + sum(row["bytes_down"] for row in rows)
    assert line["joules"] == pytest.approx(phones * 20e-6 + sum(row["joules"] for row in rows))
    assert audit(found.folder)["sound"]
    records = read(found.folder)
    reached = line["round"] - 1
    for spent in (progress(records), _spent(records)):
        assert spent["bytes"][reached] == line["bytes_down"] + line["bytes_up"]
        assert spent["joules"][reached] == pytest.approx(line["joules"])


def test_bytes_between_edges_and_cloud_are_summed():
    rows = [{"round": n + 1, "bytes_backhaul": 7, "accuracy": n / 10} for n in range(5)]
    assert milestones(rows) == [
        {"accuracy": 0.3, "round": 4, "bytes_backhaul": 28},
        {"accuracy": 0.4, "round": 5, "bytes_backhaul": 35},
    ]
