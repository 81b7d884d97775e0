"""Which engine a run uses: the first that suits, or the one that the scenario names."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from fedactors import Scenario, run
from fedactors.engines.base import Engine
from fedactors.engines.engine_choice import choose
from fedactors.engines.local_work import LocalWork
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.errors import ScenarioError
from fedactors.learning.chunks import chunk_sizes
from fedactors.learning.trainer import check_engine
from fedactors.models.layers import Model, TensorSpec
from fedactors.models.module_layer import InputSpec, ModuleConstants, ModuleLayer, ModuleMaker
from fedactors.models.paper_models import LambCnn, Logistic, Mlp
from fedactors.optim.client_optimizers import PLAIN, ClientAdam
from fedactors.own_code.user_code import Reference
from fedactors.registry import BUILTIN, lookup
from fedactors.simulation.checks.check import check
from fedactors.simulation.fleet_choice import refuse_engine
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from fedactors.workload import workload
from tests.engines.toy_engine import ToyEngine

ROOT = Path(__file__).parents[2]
SHORT = (workload(100, 10, epochs=1, steps=None),)
MODELS = {
    "logistic": Logistic().build((12,), 3),
    "wide": Mlp(hidden=[200]).build((1, 28, 28), 10),
    "images": LambCnn().build((1, 28, 28), 10),
}


def scenario(*changes):
    return Scenario.load(ROOT / "scenarios/quickstart.yaml", ["server.rounds=2", *changes])


@pytest.fixture
def toy(monkeypatch):
    """Register an engine with one line; return its class."""
    monkeypatch.setitem(BUILTIN["engines"], "toy", "tests.engines.toy_engine:ToyEngine")
    monkeypatch.setattr(ToyEngine, "calls", 0)
    return ToyEngine


def test_a_new_engine_is_one_file_and_one_line(toy, tmp_path):
    named = run(scenario("task.engine=toy"), tmp_path / "toy", fleet="local", report=False)
    assert toy.calls > 0
    usual = run(scenario(), tmp_path / "usual", fleet="local", report=False)
    np.testing.assert_allclose(named.state["x"], usual.state["x"], rtol=1e-3, atol=1e-5)
    assert Scenario.load(tmp_path / "toy/scenario.yaml").task.engine == "toy"


def test_no_engine_is_used_unasked_where_an_earlier_one_suits(toy):
    assert all(type(choose(LocalWork(model, SHORT), "cpu")) is not toy for model in MODELS.values())


@pytest.mark.parametrize("name", BUILTIN["engines"])
def test_every_engine_is_named_in_the_registry_and_says_what_it_accepts(name):
    engine = lookup("engines", name)()
    assert isinstance(engine, Engine)
    assert engine.accepts


@pytest.mark.parametrize(
    ("model", "optimizer", "device", "expected"),
    [
        ("logistic", PLAIN, "cpu", "dense_batched"),
        ("wide", PLAIN, "cpu", "dense_gram"),
        ("images", PLAIN, "cpu", "conv_sequential"),
        ("images", ClientAdam(), "cpu", "sequential"),
        ("wide", ClientAdam(), "cpu", "dense_batched"),
        ("images", PLAIN, "cuda", "cuda_graph"),
        ("wide", ClientAdam(), "cuda", "dense_batched"),
        ("images", ClientAdam(), "cuda", "vmap"),
    ],
)
def test_the_first_engine_that_suits_is_used(model, optimizer, device, expected):
    work = LocalWork(MODELS[model], SHORT, optimizer)
    assert type(choose(work, device)) is lookup("engines", expected)
    if device == "cpu":
        second = LocalWork(MODELS[model], SHORT, optimizer, loss_weight=0.5, second_loss=0.5)
        assert type(choose(second, device)) is lookup("engines", "sequential")


def test_on_a_cpu_vmap_is_used_by_name_only():
    """Also for small modules without convolutions, for which it may pay; their chunks are as large as it likes them."""
    layer = ModuleLayer(ModuleMaker(Reference("n.py:N", "n", "N", None)), (InputSpec("", (5,)),),
                        (TensorSpec("w", (3, 5), 5),), (), (3,), 30, ModuleConstants({}))  # fmt: skip
    model = Model("module", (5,), (layer,))
    assert type(choose(LocalWork(model, SHORT), "cpu")) is SequentialEngine
    assert type(choose(LocalWork(model, SHORT), "cpu", "vmap")) is VmapEngine
    assert type(choose(LocalWork(model, SHORT), "cuda")) is VmapEngine
    assert chunk_sizes(200, model, "cpu") == [25] * 8


def test_an_engine_is_used_where_it_is_named(tmp_path):
    by_name = {
        name: run(scenario(f"task.engine={name}"), tmp_path / name, fleet="local", report=False).state["x"]
        for name in ("sequential", "vmap")
    }
    np.testing.assert_allclose(by_name["sequential"], by_name["vmap"], rtol=1e-3, atol=1e-5)
    assert not np.array_equal(by_name["sequential"], by_name["vmap"])


@pytest.mark.parametrize("name", ["cuda_graph", "conv_sequential"])
def test_an_engine_that_does_not_support_the_work_is_refused_before_anything_starts(name, tmp_path):
    wrong = scenario(f"task.engine={name}")
    message = (
        rf'task\.engine: "{name}" does not support model ".*" .* on device "cpu" \(accepted: .*; or leave it out\)'
    )
    with pytest.raises(ScenarioError, match=message):
        run(wrong, tmp_path / "run", fleet="local", report=False)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ScenarioError, match=message):
        check(wrong)


@pytest.mark.parametrize(
    "changes", [(), ('server.personal=["1.*"]', "server.alternate={steps: 2}")], ids=["", "phases"]
)
def test_the_check_of_an_engine_and_a_run_accept_the_same(changes):
    """Not every engine can train the personal part of a model before the shared one."""
    found = {}
    for name in BUILTIN["engines"]:
        prepared = prepare(scenario(f"task.engine={name}", *changes))
        task = load(prepared).task
        found[name] = _accepts(lambda prepared=prepared: refuse_engine(prepared))
        assert found[name] == _accepts(lambda task=task: check_engine(task, "cpu"))
    assert found["dense_gram"] is not bool(changes)


def _accepts(call):
    with suppress(ScenarioError):
        call()
        return True
    return False


def test_an_unknown_engine_is_named_with_those_there_are():
    message = r'task\.engine: .*no engines named "vmop"; did you mean "vmap"\? accepted: conv_sequential, cuda_graph'
    with pytest.raises(ScenarioError, match=message):
        scenario("task.engine=vmop")
