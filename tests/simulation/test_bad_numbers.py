"""Updates with NaN: an error, an end, or set aside as if the device had done nothing, as the scenario says."""

import json
from dataclasses import replace

import numpy as np
import pytest

import fedactors
from fedactors.errors import DivergedError
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.pipeline import Pipeline
from fedactors.plan import Orders, Outcome
from fedactors.simulation import runner
from fedactors.simulation.divergence import spike
from fedactors.simulation.prepare import prepare
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.runner import resume
from fedactors.simulation.tasks import task_of
from tests.noting import Noting
from tests.simulation.test_checkpoints import ROUNDS, assert_same, run, scenario_of

BAD = (19, 70)  # clients whose samples hold NaN


@pytest.fixture
def poisoned(monkeypatch):
    """Give some clients NaN among their samples."""
    original = runner.load

    def load(prepared):
        data = original(prepared)
        x = data.samples.x.copy()
        for client in BAD:
            x[data.samples.split.of(client)] = np.nan
        return data._replace(samples=replace(data.samples, x=x))

    monkeypatch.setattr(runner, "load", load)


@pytest.fixture
def noting():
    return Noting()


def by_hand(scenario):
    """Return state and clients' states of the run in which the bad clients were asked and did nothing."""
    prepared = prepare(scenario)
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *runner.load(prepared))
        for plan in prepared.clock():
            orders = [o._replace(outcome=Outcome.OFFLINE, steps=0) if o.client in BAD else o for o in plan.orders]
            pipeline.submit(task_of(replace(plan, orders=Orders.of(orders)), prepared, "cpu", last=False))
            pipeline.finish()
        return pipeline.state(ROUNDS), dict(pipeline.kept())


CASES = [(name, "samples") for name in ("fedavg", "fsl", "scaffold", "feddyn")] + [("fedavg", s) for s in "ABC"]


@pytest.mark.parametrize(("algorithm", "weighting"), CASES)
def test_an_update_set_aside_leaves_what_an_inactive_device_leaves(algorithm, weighting, tmp_path, poisoned):
    """I-S4, to the bit: the model, the server's other state and what clients keep."""
    changes = [f"server.algorithm={algorithm}", f"server.participation={weighting}", "server.bad_updates=quarantine"]
    scenario = scenario_of(*changes, "server.data={name: iid, samples: 50}", "server.cohort=30")
    result = run(scenario, tmp_path / "run")
    state, kept = by_hand(scenario)
    assert result.summary["outcomes"]["quarantined"] > 0
    assert sum(result.summary["outcomes"].values()) == result.summary["asked"]
    assert state.keys() == result.state.keys()
    assert all(np.array_equal(state[name], result.state[name]) for name in state)
    found = dict(checkpoint.load(tmp_path / "run").saved().kept)
    assert kept.keys() == found.keys()
    assert not set(BAD) & set(found)
    assert all(np.array_equal(kept[c][name], found[c][name]) for c in kept for name in kept[c])


SCAFFOLD = ("server.algorithm=scaffold", "server.bad_updates=quarantine", "server.cohort=30")


def test_set_aside_after_a_resume_to_the_same_bits(tmp_path, poisoned, noting):
    scenario = scenario_of(*SCAFFOLD)
    run(scenario, tmp_path / "whole", progress=noting)
    assert any("NaN or Inf in the update of client" in said and said.endswith("set aside") for said in noting.notes)
    run(scenario, tmp_path / "broken", stop_after=4)
    assert checkpoint.load(tmp_path / "broken").quarantined
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.slow
def test_set_aside_on_ray_to_the_same_bits(tmp_path, poisoned):
    whole = run(scenario_of(*SCAFFOLD), tmp_path / "whole").summary
    ray = fedactors.run(scenario_of(*SCAFFOLD), tmp_path / "ray", actors=2, report=False).summary
    assert ray["digests"] == whole["digests"]


def test_the_default_is_an_error_with_client_step_and_time(tmp_path, poisoned):
    wanted = r"round \d+ \(virtual time [\d.]+ s\): NaN or Inf in the update of client (19|70) from local step 1"
    with pytest.raises(DivergedError, match=wanted):
        run(scenario_of("server.cohort=30"), tmp_path / "run")


PULLED = ("server.algorithm={name: ditto, pull: 1e6}", "server.rounds=3")  # own models overflow, updates do not


def test_what_clients_keep_may_not_hold_nan(tmp_path):
    with pytest.raises(DivergedError, match=r"round \d.*NaN or Inf in the update of client \d+ from local step \d+"):
        run(scenario_of(*PULLED), tmp_path / "run")


def test_a_client_set_aside_for_what_it_would_keep_keeps_what_it_had(tmp_path):
    result = run(scenario_of(*PULLED, "server.bad_updates=quarantine"), tmp_path / "run")
    assert result.summary["outcomes"]["quarantined"] > 0
    kept = dict(checkpoint.load(tmp_path / "run").saved().kept)
    assert kept
    assert all(np.isfinite(value).all() for vectors in kept.values() for value in vectors.values())


def test_a_run_may_end_there_with_that_reason(tmp_path, poisoned):
    scenario = scenario_of("server.cohort=30", "server.bad_updates=stop")
    summary = run(scenario, tmp_path / "run").summary
    assert summary["ended_because"].startswith("diverged: round ")
    assert summary["ended"] == "diverged"
    assert summary["plans"] < ROUNDS
    again = resume(tmp_path / "run", fleet="local", report=False).summary
    assert again["digests"] == summary["digests"]


def test_a_model_that_the_server_itself_spoils_is_an_error(tmp_path, monkeypatch):
    original = runner.load

    def load(prepared):
        data = original(prepared)
        return data._replace(own=data.own._replace(x=np.full_like(data.own.x, np.nan)))

    monkeypatch.setattr(runner, "load", load)
    scenario = scenario_of("server.algorithm=fsl", "server.data={name: iid, samples: 50}")
    with pytest.raises(DivergedError, match="the server's model, though every update that counted was finite"):
        run(scenario, tmp_path / "run")


def test_no_file_of_a_run_holds_a_bare_nan(tmp_path, monkeypatch):
    """JSON has no NaN: a loss that is none, here because test samples became NaN after they were read, is null."""
    original = runner.load

    def load(prepared):
        data = original(prepared)
        tests = replace(data.evaluation_set, x=np.full_like(data.evaluation_set.x, np.nan))
        return data._replace(evaluation_set=tests)

    monkeypatch.setattr(runner, "load", load)
    run(scenario_of("server.cohort=2", "task.model=logistic"), tmp_path / "run")
    files = [path for path in (tmp_path / "run").rglob("*") if path.suffix in (".json", ".jsonl")]
    assert {"summary.json", "metrics.jsonl", "checkpoint.json"} <= {path.name for path in files}
    for path in files:
        for text in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
            json.loads(text, parse_constant=lambda found, path=path: pytest.fail(f"{path}: {found}"))
    assert json.loads((tmp_path / "run/summary.json").read_text())["final"]["loss"] is None


def losses(folder):
    return [json.loads(line)["train_loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_ends_once_its_loss_is_beyond_the_threshold_also_when_resumed(tmp_path):
    run(scenario_of("server.schedule.lr=1.0"), tmp_path / "whole")
    whole = losses(tmp_path / "whole")
    highest = max(range(1, ROUNDS - 1), key=lambda at: whole[at] - max(whole[:at]))
    before = max(whole[:highest])
    assert whole[highest] > before
    threshold = (whole[highest] + before) / 2
    scenario = scenario_of("server.schedule.lr=1.0", f"server.divergence_threshold={threshold}")
    said = run(scenario, tmp_path / "run").summary["ended_because"]
    assert losses(tmp_path / "run") == whole[: highest + 1]
    assert said == f"diverged: train loss {whole[highest]:.4g} in round {highest + 1} is above {threshold:g}"
    assert resume(tmp_path / "run", fleet="local", report=False).summary["ended_because"] == said


@pytest.fixture
def endless(monkeypatch):
    """Let the train loss of the third round be Inf, while its updates are finite."""
    original = Pipeline.outcomes

    def outcomes(self):
        found = original(self)
        return found._replace(loss=np.inf) if found.version == 2 else found

    monkeypatch.setattr(Pipeline, "outcomes", outcomes)


def test_a_run_ends_at_a_loss_beyond_all_numbers_if_it_has_a_threshold(tmp_path, endless):
    said = "diverged: train loss in round 3 is no finite number"
    scenario = scenario_of("server.divergence_threshold=99")
    assert run(scenario, tmp_path / "run").summary["ended_because"] == said
    assert losses(tmp_path / "run")[2:] == [None]
    assert resume(tmp_path / "run", fleet="local", report=False).summary["ended_because"] == said
    assert run(scenario_of(), tmp_path / "without").summary["plans"] == ROUNDS


def test_a_round_in_which_nobody_trains_is_beyond_no_threshold(tmp_path):
    """Under scheme A partial work counts for nothing: steps that have no weight, and no loss."""
    changes = ("server.participation=A", "server.divergence_threshold=99", "server.rounds=2", "server.deadline=2500ms")
    result = run(scenario_of(*changes, "server.local.epochs=500"), tmp_path / "run")
    assert result.summary["plans"] == 2
    assert [bool(row["steps"]) for row in result.metrics] == [True, True]
    assert losses(tmp_path / "run") == [None, None]


def test_a_loss_that_jumps_is_told(tmp_path, noting, monkeypatch):
    monkeypatch.setattr("fedactors.simulation.divergence._BEFORE", 2)
    monkeypatch.setattr("fedactors.simulation.divergence._SPIKE", 1.05)
    run(scenario_of("server.schedule.lr=1.0"), tmp_path / "run", progress=noting)
    assert any("times that of the rounds before" in said for said in noting.notes)


def test_a_jump_is_three_times_the_median_of_ten_rounds():
    steady = [{"train_loss": loss} for loss in [1.0, 2.0] * 5]
    assert spike([*steady, {"train_loss": 4.5}]) == 3.0
    assert spike([*steady, {"train_loss": 4.4}]) is None
    assert spike([*steady, {"train_loss": None}]) is None
    assert spike([*steady[1:], {"train_loss": 99.0}]) is None  # nine are not enough
