"""A chunk that does not fit into memory is trained in parts, to the bit as if it had fitted."""

import json

import numpy as np
import pytest
import torch

import fedactors
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import ClientBatch, DeviceDataset
from fedactors.engines.micro_batching import MicroBatching
from fedactors.engines.shared_layer import batch_invariant
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.pipeline import Pipeline
from fedactors.learning import trainer
from fedactors.models.layers import Dense
from fedactors.models.paper_models import Logistic
from fedactors.simulation import runner
from fedactors.simulation.prepare import prepare
from fedactors.simulation.tasks import task_of
from tests.simulation.test_checkpoints import rows, run, scenario_of

MODELS = {
    "logistic": ["task.model=logistic"],
    "dense": ["server.algorithm=scaffold"],
    "dropout": ["task.model={name: mlp, hidden: [32], dropout: 0.3}"],
    "wide": ["task.model={name: mlp, hidden: [900]}"],
}


@pytest.fixture
def small_memory(monkeypatch):
    """Let engines run out of memory with more than some rows; return the numbers of rows they were asked for."""
    asked, original = [], trainer.choose

    def choose(*given):
        engine = original(*given)

        class Limited(type(engine)):
            def batch_invariant(self, *given):
                return engine.batch_invariant(*given)

            def train(self, dataset, rows):
                asked.append(len(rows.clients))
                if len(rows.clients) > 3:
                    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes")
                return super().train(dataset, rows)

        return Limited()

    monkeypatch.setattr(trainer, "choose", choose)
    return asked


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_parts_give_the_bits_of_the_whole_and_are_told(changes, tmp_path, request):
    scenario = scenario_of("server.rounds=3", "server.cohort=30", *changes)
    whole = run(scenario, tmp_path / "whole")
    asked = request.getfixturevalue("small_memory")
    parts = run(scenario, tmp_path / "parts")
    assert max(asked) > 3
    (told,) = [json.loads(line) for line in (tmp_path / "parts/faults.jsonl").read_text().splitlines()]
    assert told["cause"] == "OutOfMemory"
    if "clients at once from now on; the same bits" in told["text"]:
        assert all(np.array_equal(whole.state[name], parts.state[name]) for name in whole.state)
        assert rows(tmp_path / "whole") == rows(tmp_path / "parts")
    else:
        assert not batch_invariant(Dense(64, 900)), "other bits must be expected of a shared layer only"
        assert changes == MODELS["wide"]


def test_where_bits_may_differ_it_is_said(tmp_path, request):
    changes = ["server.algorithm=fedavg", "server.local.optimizer=amsgrad", "server.schedule.lr=0.01"]
    scenario = scenario_of("server.rounds=2", "server.cohort=30", *changes)
    whole = run(scenario, tmp_path / "whole").state["x"]
    request.getfixturevalue("small_memory")
    parts = run(scenario, tmp_path / "parts").state["x"]
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-5)
    assert "bits may differ from those of whole chunks" in (tmp_path / "parts/faults.jsonl").read_text()


def test_the_size_that_fits_is_kept(small_memory, tmp_path):
    run(scenario_of("server.rounds=4", "server.cohort=30"), tmp_path / "run")
    last_failure = max(at for at, size in enumerate(small_memory) if size > 3)
    assert last_failure < 5  # all in the first chunk
    assert set(small_memory[last_failure + 1 :]) <= {2, 3}


def test_what_does_not_fit_by_twos_is_an_error():
    class Never(Engine):
        def supports(self, work, device):
            return True

        def train(self, dataset, rows):
            raise MemoryError

    model = Logistic().build((4,), 2)
    keys, starts = torch.zeros(2, dtype=torch.int64), torch.zeros(2, model.parameters)
    rows = ClientBatch((0, 1), (1, 1), (), (), keys, starts, None, 0.0, 0.1)
    with pytest.raises(MemoryError, match="2 clients at once do not fit the memory of this cpu"):
        MicroBatching(Never()).train(DeviceDataset(model, torch.zeros(1, 4), torch.zeros(1)), rows)


def test_hosts_ended_for_want_of_memory_train_fewer_clients_at_once(monkeypatch):
    """Ray ends a process before the machine runs out of memory: the fault that is then met, by its name."""
    from fedactors.fleet.base import Fault

    prepared = prepare(scenario_of("server.cohort=30"))
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *runner.load(prepared))
        task = task_of(next(iter(prepared.clock())), prepared, "cpu", last=False)
        pipeline.submit(task)
        original = fleet.get

        def get(handle):
            monkeypatch.setattr(fleet, "get", original)
            raise Fault("OutOfMemoryError", "Task was killed due to the node running low on memory", died=True)

        monkeypatch.setattr(fleet, "get", get)
        largest = max(len(chunk.clients) for chunk in task.chunks)
        assert pipeline.finish().memory_limit.at_once == largest // 2


def test_the_client_and_the_step_that_raise_are_named(tmp_path, monkeypatch):
    """A label that there is not: found on the device, in the one step that sees it."""
    original, poisoned = runner.load, 19

    def load(prepared):
        data = original(prepared)
        data.samples.y[data.samples.split.of(poisoned)] = 99
        return data

    monkeypatch.setattr(runner, "load", load)
    scenario = scenario_of("server.cohort=100", "server.among=members")
    wanted = rf"(?s)round 1 failed 2 times.*version 0, client {poisoned} in local step 1 of \d+, host .*, process \d+:"
    with pytest.raises(fedactors.errors.FleetError, match=wanted + r".*Traceback.*at virtual time"):
        run(scenario, tmp_path / "run")
