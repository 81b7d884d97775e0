"""The past of a branch is what was recorded; its own scenario holds afterwards. What cannot be so is refused."""

import json

import pyarrow.parquet as pq
import pytest

import fedactors
from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.run_files.best_model import BestModel
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.resume.branch import branch
from fedactors.simulation.runner import resume

TABLES = ("plans.parquet", "orders.parquet", "weights.parquet", "stages.parquet")
AT = 6
NOISE = (
    "server.uplink=[{name: clip, norm: 1.0}, {name: gaussian, multiplier: %s}]",
    "server.privacy={delta: 1e-5}",
)
WATTS = "population.0.energy={down: 0.8 W, compute: 3 W, up: 1.2 W, idle: 0.1 W}"
UNBIASED = "server.participation={name: B, weights: unbiased}"


def scenario(*changes):
    """Ten phones, four devices that leave during the first round, six that come late."""
    network = {"down": "200 kB/s", "up": "40 kB/s"}
    groups = [
        {"name": "phones", "count": 10},
        {"name": "leavers", "count": 4, "depart": "1s"},
        {"name": "late", "count": 6, "arrive": "100s"},
    ]
    said = {
        "name": "past", "seed": 3,
        "task": {"dataset": "digits", "model": {"name": "mlp", "hidden": [8]}, "partition": "iid"},
        "population": [{**group, "compute": {"per_sample": "20ms"}, "network": network} for group in groups],
        "server": {
            "rounds": 8, "cohort": 6, "deadline": "20s", "evaluate_every": 1, "local": {"steps": 3, "batch": 5},
            "schedule": {"name": "constant", "lr": 0.1},
        },
        "cluster": {"checkpoint_every": 3},
    }  # fmt: skip
    resolved = Scenario.model_validate(said).model_dump(mode="json")
    from fedactors.scenario.loading import apply_overrides

    apply_overrides(resolved, changes)
    return Scenario.model_validate(resolved)


def run(folder, *changes, **options):
    return fedactors.run(scenario(*changes), folder, fleet="local", report=False, **options)


def split(folder, at, *changes, **options):
    return branch(folder, at, changes, folder.parent / "branch", fleet="local", report=False, **options)


def shared(folder, at=AT):
    """Return all that is kept of the first rounds of a run: rows of metrics, and of all tables."""
    lines = (folder / "metrics.jsonl").read_bytes().splitlines()[:at]
    tables = [pq.read_table(folder / name) for name in TABLES if (folder / name).exists()]
    return lines, [[row for row in table.to_pylist() if row["version"] < at] for table in tables]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return run(tmp_path_factory.mktemp("plain") / "run").folder


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [UNBIASED]),
        (["population.0.energy={per_step: 1.5 J, per_byte: 20 uJ}"], ["population.0.energy.per_step=15 J"]),
        ([WATTS], ["server.schedule.lr=0.05"]),
        ([WATTS], ["population.0.energy.compute=30 W"]),
        (
            ["server.membership={name: vanilla, departures: include}"],
            ["server.membership={name: fast-reboot, departures: exclude}", UNBIASED],
        ),
    ],
    ids=["weights", "price", "watts and another rate", "watts", "membership"],
)
def test_the_past_stays_as_it_was_recorded(before, after, tmp_path):
    source = run(tmp_path / "run", *before)
    found = split(source.folder, AT, *after)
    assert shared(found.folder) == shared(source.folder)
    assert audit(found.folder)["sound"], audit(found.folder)
    assert found.summary["branched_after"] == [AT]
    assert found.summary.get("joules", 0) == pytest.approx(sum(row.get("joules", 0) for row in found.metrics))


@pytest.mark.slow
def test_a_branch_goes_on_and_is_branched_again_with_its_past(tmp_path):
    """Weights of rounds 1 to 6 by the first scenario, of round 7 by the second, of round 8 by the third."""
    source = run(tmp_path / "run")
    first = split(source.folder, AT, UNBIASED)
    (tmp_path / "branch").rename(tmp_path / "first")
    second = split(tmp_path / "first", 7, "server.participation=samples")
    assert shared(second.folder, 7) == shared(tmp_path / "first", 7)
    assert shared(second.folder, AT) == shared(source.folder)
    assert second.summary["branched_after"] == [AT, 7]
    assert audit(second.folder)["sound"]
    again = resume(tmp_path / "first", previous=True, fleet="local", report=False)
    assert again.summary["digests"] == first.summary["digests"]
    assert shared(tmp_path / "first", 8)[1] == shared(again.folder, 8)[1]
    (tmp_path / "branch").rename(tmp_path / "second")
    third = split(tmp_path / "second", 3, "server.schedule.lr=0.05")
    assert third.summary["branched_after"] == [3]
    assert shared(third.folder, 3) == shared(source.folder, 3)


def test_rounds_of_a_branch_are_computed_again_by_the_scenarios_they_had(tmp_path):
    """There is no checkpoint of round 7 of the branch any more, nor of round 6, where it began."""
    source = run(tmp_path / "run", "cluster.checkpoint_every=none")
    first = split(
        source.folder, 3, "server.schedule.lr=0.05", "cluster.checkpoint_every=none", "cluster.checkpoints_kept=1"
    )
    (tmp_path / "branch").rename(tmp_path / "first")
    second = split(tmp_path / "first", 7)
    assert second.summary["digests"] == first.summary["digests"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([n % 0.3 if "%" in n else n for n in NOISE], [NOISE[0] % 3.0], "server.uplink: epsilon covers all rounds"),
        ([], [NOISE[0] % 3.0, NOISE[1]], "server.privacy: epsilon covers all rounds"),
    ],
    ids=["less noise before", "no noise before"],
)
def test_epsilon_is_never_that_of_noise_that_was_not_there(before, after, said, tmp_path, capsys):
    pytest.importorskip("dp_accounting")
    refused(run(tmp_path / "run", *before).folder, after, said, tmp_path, capsys)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["population.late.count=12"], "population: 10 phones, 4 leavers, 12 late (accepted: the groups of the run"),
        (["server.membership={name: vanilla, departures: exclude}"], "server.membership: added in the middle"),
        (["server.rounds=4"], "server.rounds: 4, and the branch begins after round 6 (accepted: 6 or more)"),
        (["server.selection=oort"], 'server.selection: "oort" looks at losses, of which the run has none'),
        (["population.0.energy={per_step: 1 J}"], "population.*.energy: counted in another way"),
        (["server.data={name: iid, samples: 100}"], "server.data: other samples at the server"),
        (["server.until=1s"], "would have ended the run after round"),
        (["population.late.arrive=500ms"], "would have changed round"),
        (["server.local.steps=4"], "server.local: clients do other local work"),
        (["server.algorithm={name: ds, share: upfront}", "server.data={name: iid, samples: 9}"], "server.data: other"),
    ],
)
def test_what_cannot_follow_is_refused_before_a_folder_is_made(plain, changes, said, tmp_path, capsys):
    refused(plain, changes, said, tmp_path, capsys)


def refused(source, changes, said, tmp_path, capsys):
    words = [word for change in changes for word in ("--set", change)]
    out = tmp_path / "refused"
    assert main(["branch", str(source), "--at", f"round={AT}", *words, "--fleet", "local", "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "resume" not in told
    assert not out.exists()


def test_what_a_budget_has_been_spent_on_cannot_change_its_price(tmp_path, capsys):
    source = run(tmp_path / "run", "population.0.energy={per_step: 1 J}", "server.budget={energy: 5 kJ}").folder
    refused(
        source, ["population.0.energy.per_step=2 J"], "population.*.energy: a budget or a battery", tmp_path, capsys
    )


def test_a_selection_that_looks_at_losses_is_walked_with_those_recorded(tmp_path, capsys):
    source = run(tmp_path / "run", "server.selection=oort")
    refused(source.folder, ["server.selection=uniform"], "would have changed round", tmp_path, capsys)
    found = split(source.folder, AT, "server.schedule.lr=0.05")
    assert shared(found.folder) == shared(source.folder)


def best_is_there(folder):
    best = json.loads((folder / "summary.json").read_text()).get("best")
    return best is not None and BestModel(folder).is_of(best["round"])


@pytest.mark.parametrize("at", [3, 5, 8])
def test_the_best_model_is_there_if_it_is_named(at, tmp_path):
    """Also if it is of a shared round, whose model the run has replaced since by a better one, or has no more."""
    source = run(tmp_path / "run", "server.stop={patience: 100, metric: accuracy}")
    assert best_is_there(source.folder)
    found = split(source.folder, at, "server.schedule.lr=0.0000001", "server.rounds=9")
    assert best_is_there(found.folder)
    best = max(source.metrics[:at], key=lambda row: row["accuracy"])
    assert found.summary["best"]["value"] >= best["accuracy"]


def test_a_rule_that_is_added_looks_at_later_rounds_only(plain, tmp_path):
    found = branch(plain, AT, ["server.stop={accuracy: 0.05}"], tmp_path / "one", fleet="local", report=False)
    assert found.summary["plans"] == AT + 1
    assert found.summary["best"]["round"] == AT + 1
    assert best_is_there(found.folder)
    found = branch(plain, AT, ["server.divergence_threshold=0.001"], tmp_path / "two", fleet="local", report=False)
    assert found.summary["plans"] == AT + 1
