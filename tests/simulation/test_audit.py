"""An audit finds the records of runs sound, and every number in them that somebody has changed."""

import json
import shutil
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fedactors
from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.run_files.tables import ORDER_COLUMNS, PLAN_COLUMNS
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.inspect.difference import diff
from fedactors.simulation.record.digests import WALL
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART
from tests.simulation.test_bad_numbers import poisoned  # noqa: F401 - a fixture
from tests.simulation.test_checkpoints import run, scenario_of
from tests.simulation.test_moving import scenario as moving_scenario


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest") / "run"
    run(scenario_of("server.evaluate_every=3"), folder)
    return folder


@pytest.fixture
def copy(honest, tmp_path):
    return shutil.copytree(honest, tmp_path / "copy")


@pytest.mark.parametrize("algorithm", ["fsl", "ds", "scaffold", "feddyn"])
def test_the_records_of_every_kind_of_run_are_sound(algorithm, tmp_path):
    run(scenario_of(f"server.algorithm={algorithm}", "server.data={name: iid, samples: 50}"), tmp_path / "run")
    found = audit(tmp_path / "run")
    assert found["sound"], found
    assert len(found["checks"]) == 6


@pytest.mark.parametrize("weighting", ["A", "C", "uniform", "examples"])
def test_weights_are_those_of_the_policy_with_updates_set_aside_too(weighting, tmp_path, poisoned):  # noqa: F811
    changes = (f"server.participation={weighting}", "server.bad_updates=quarantine", "server.cohort=30")
    assert run(scenario_of(*changes), tmp_path / "run").summary["outcomes"]["quarantined"] > 0
    assert audit(tmp_path / "run")["sound"]


ASYNCHRONOUS = "server.timing={name: fedbuff, concurrency: 10, buffer: 4}"


def test_weights_by_age_are_worked_out_again_too(tmp_path):
    run(
        scenario_of(ASYNCHRONOUS, "server.deadline=none", "server.cohort=all", "server.participation=samples"),
        tmp_path / "run",
    )
    found = audit(tmp_path / "run")
    assert found["sound"], found
    assert any(base < version for version, base in zip(*bases(tmp_path / "run"), strict=True))


def bases(folder):
    table = pq.read_table(folder / "weights.parquet")
    return table.column("version").to_pylist(), table.column("base").to_pylist()


def test_weights_of_an_objective_that_moves_are_worked_out_again_too(tmp_path):
    moving = [{}, {}, {"arrive": "20s", "depart": "40s"}, {"arrive": "15s"}]
    fedactors.run(moving_scenario(*moving), tmp_path / "run", fleet="local", report=False)
    found = audit(tmp_path / "run")
    assert found["sound"], found


def test_a_replay_is_audited_too(tmp_path):
    replay(Scenario.load(QUICKSTART, ["server.rounds=20"]), tmp_path / "replay")
    found = audit(tmp_path / "replay")
    assert found["sound"], found


INTERRUPTED = {
    "name": "again",
    "seed": 1,
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
    "population": [
        {
            "name": "interrupted",
            "count": 2,
            "on_interruption": "abort",
            "availability": {"name": "synthetic", "mean_on": "10min", "mean_off": "5min"},
            "compute": {"per_sample": "1min"},
        },
        {"name": "fast", "count": 4, "compute": {"per_sample": "4s"}},
    ],
    "server": {
        "rounds": 3,
        "timing": {"name": "fedbuff", "concurrency": 6, "buffer": 2},
        "local": {"epochs": 1, "batch": 5},
        "schedule": {"name": "constant", "lr": 0.1},
    },
}


@pytest.fixture(scope="module")
def asked_again(tmp_path_factory):
    """Return a folder in which a client was asked again, before the next version, since its trip came to nothing."""
    folder = tmp_path_factory.mktemp("again") / "run"
    run(Scenario.from_data(INTERRUPTED, "again.yaml"), folder)
    trips = [
        (one["version"], one["client"], one["base"]) for one in pq.read_table(folder / "orders.parquet").to_pylist()
    ]
    assert len(set(trips)) < len(trips)
    return folder


def change_orders(folder, change):
    """Have `change` work on the rows of orders.parquet."""
    path = folder / "orders.parquet"
    whole = pq.read_table(path)
    rows = whole.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, whole.schema), path)


def test_a_client_may_be_asked_again_from_the_same_version(asked_again):
    found = audit(asked_again)
    assert found["sound"], found


def test_a_difference_in_any_trip_of_a_client_is_told(asked_again, tmp_path):
    changed = shutil.copytree(asked_again, tmp_path / "changed")
    rows = pq.read_table(changed / "orders.parquet").to_pylist()
    first = next(k for k, (one, other) in enumerate(pairwise(rows)) if asked(one) == asked(other))
    change_orders(changed, lambda rows: rows[first].update(down=rows[first]["down"] + 1))
    apart = diff(asked_again, changed)["plans"]["first"]["apart"]
    assert list(apart) == [f"client {rows[first]['client']}"]


def asked(row):
    return row["version"], row["client"]


def test_a_client_that_was_heard_twice_from_one_version_is_found(copy):
    def repeat(rows):
        heard = next(k for k, row in enumerate(rows) if row["outcome"] == "complete")
        rows[heard + 1] = dict(rows[heard])

    change_orders(copy, repeat)
    assert any("clients out of order" in text for check in audit(copy)["checks"] for text in check["wrong"])


def test_the_records_of_a_regression_are_sound(tmp_path):
    changes = ["server.rounds=3", "server.local.epochs=1", "server.cohort=3", "population.phones.count=6"]
    run(Scenario.load(QUICKSTART.with_name("regression.yaml"), changes), tmp_path / "run")
    found = audit(tmp_path / "run")
    assert found["sound"], found


def unsound(folder):
    return [check["name"] for check in audit(folder)["checks"] if check["wrong"]]


OTHERS = {int: lambda value: value + 1, str: lambda value: "late", list: lambda value: [*value, 3]}


@pytest.mark.parametrize("table", ["plans", "orders"])
def test_a_changed_number_in_any_column_of_a_table_is_found(copy, table):
    path = copy / f"{table}.parquet"
    whole = pq.read_table(path)
    for name in PLAN_COLUMNS if table == "plans" else ORDER_COLUMNS:
        values = whole.column(name).to_pylist()
        values[-1] = {int: lambda v: v + 1, str: lambda v: "late", list: lambda v: [*v, 3]}[type(values[-1])](
            values[-1]
        )
        column = pa.array(values, whole.schema.field(name).type)
        pq.write_table(whole.set_column(whole.schema.get_field_index(name), whole.schema.field(name), column), path)
        if name == "version":
            assert main(["audit", str(copy)]) == 2  # orders of a round that there is not
        else:
            assert unsound(copy), name


def test_a_changed_weight_or_client_is_found(copy):
    for name, column in (("weights", "weight"), ("clients", "samples")):
        whole = pq.read_table(copy / f"{name}.parquet")
        heard = pq.read_table(copy / "weights.parquet").column("client").to_pylist()[0]
        values = whole.column(column).to_pylist()
        values[0 if name == "weights" else heard] *= 2
        changed = pa.array(values, whole.schema.field(column).type)
        at = whole.schema.get_field_index(column)
        pq.write_table(whole.set_column(at, whole.schema.field(column), changed), copy / f"{name}.parquet")
        assert unsound(copy) == ["weights"]
        pq.write_table(whole, copy / f"{name}.parquet")
    assert not unsound(copy)


@pytest.mark.slow
def test_a_changed_figure_in_any_line_or_in_the_summary_is_found(copy):
    path = copy / "metrics.jsonl"
    *lines, last = path.read_text().splitlines()
    for key, value in json.loads(last).items():
        if key not in WALL:
            changed = json.dumps(json.loads(last) | {key: {} if isinstance(value, dict) else value + 1})
            path.write_text("\n".join([*lines, changed]) + "\n")
            assert unsound(copy), key
    path.write_text("\n".join([*lines, last]) + "\n")
    path = copy / "summary.json"
    whole = json.loads(path.read_text())
    for key in ("plans", "virtual_seconds", "asked", "heard", "clients_heard", "empty_rounds", "steps", "steps_wasted"):
        path.write_text(json.dumps(whole | {key: whole[key] + 1}))
        assert unsound(copy) == ["conservation"], key
    for key in ("outcomes", "bytes", "final", "digests", "wire"):
        part = next(iter(whole[key] if key != "wire" else {"up": 0}))
        path.write_text(json.dumps(whole | {key: whole[key] | {part: 7}}))
        assert unsound(copy), key


def test_a_changed_model_or_checkpoint_is_found(copy, capsys):
    for path in (copy / "checkpoint/model.safetensors", *copy.glob("checkpoint/round-*/server.safetensors")):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert main(["audit", str(copy)]) == 1
        assert "digests      WRONG" in capsys.readouterr().out
        path.write_bytes(whole)
    assert main(["audit", str(copy)]) == 0


def test_a_run_that_has_not_ended_cannot_be_audited(copy, capsys):
    (copy / "plans.parquet").unlink()
    assert main(["audit", str(copy)]) == 2
    assert "plans.parquet: not there" in capsys.readouterr().err
