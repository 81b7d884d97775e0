"""The package is found, its scenario runs, and each part does what it says."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fedactors_example.clipped import Clipped
from fedactors_example.fastest import Fastest
from fedactors_example.half_precision import HalfPrecision
from fedactors_example.moons import Moons
from fedactors_example.plain_loop import PlainLoop
from fedactors_example.two_layers import TwoLayers

from fedactors import Scenario, run
from fedactors.errors import ScenarioError, TraceError
from fedactors.learning.algorithm import ClientResult
from fedactors.traces.format_registry import read
from fedactors.transforms.wire import Layout, TensorPart, Wire

HERE = Path(__file__).parents[1]


def test_everything_together(tmp_path):
    result = run(Scenario.load(HERE / "moons.yaml"), tmp_path / "run", fleet="local", report=False)
    assert result.summary["final"]["accuracy"] > 0.75
    assert result.summary["outcomes"]["partial"] == 0  # the fastest have time enough


def test_an_update_is_cut_to_its_bound_alone_and_in_rows():
    delta = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    sent = Clipped(bound=2.5).upload(ClientResult(torch.zeros(3, 2), delta, {}, torch.ones(3, 1), 0.1))["delta"]
    assert torch.allclose(sent, torch.tensor([[1.5, 2.0], [0.3, 0.4], [0.0, 0.0]]))
    alone = Clipped(bound=2.5).upload(ClientResult(torch.zeros(2), delta[0], {}, 1.0, 0.1))["delta"]
    assert torch.equal(alone, sent[0])


def test_half_of_the_bits_travel():
    layout = Layout((TensorPart("weight", (3,), 0),), 3)
    assert HalfPrecision().wire(Wire(3), layout).bytes == 6
    sent, _ = HalfPrecision().compress(torch.tensor([[0.1, -2.0, 1e6]]), {}, None)
    assert torch.equal(sent, torch.tensor([[0.0999755859375, -2.0, torch.inf]]))


def test_moons_are_drawn_from_the_seed_and_are_what_is_announced():
    moons = Moons(samples=50)
    assert np.array_equal(moons.load(1, 3).x, moons.load(1, 9).x)
    assert not np.array_equal(moons.load(1, 3).x, moons.load(2, 3).x)
    assert moons.info(1, 3).class_counts == (25, 25)


def test_the_model_has_two_layers():
    assert TwoLayers(width=16).build((2,), 2).parameters == 2 * 16 + 16 + 16 * 2 + 2


def test_the_fastest_candidates_are_selected():
    selector = Fastest().start(SimpleNamespace(times=np.array([5, 1, 9, 1, 3])))
    assert selector.choose(np.array([0, 2, 3, 4]), 2, 0, np.random.default_rng(0)).tolist() == [3, 4]


def test_the_engine_takes_the_steps_of_the_reference(tmp_path):
    states = {}
    for engine in ("plain-loop", "sequential"):
        scenario = Scenario.load(HERE / "moons.yaml", [f"task.engine={engine}", "server.rounds=3"])
        states[engine] = run(scenario, tmp_path / engine, fleet="local", report=False).state["x"]
    np.testing.assert_allclose(states["plain-loop"], states["sequential"], rtol=1e-4, atol=1e-6)


def test_an_optimiser_that_the_engine_does_not_support_is_refused(tmp_path):
    scenario = Scenario.load(HERE / "moons.yaml", ["server.local.optimizer=adam"])
    with pytest.raises(ScenarioError, match=f'"plain-loop" does not support .* optimiser "adam" .*{PlainLoop.accepts}'):
        run(scenario, tmp_path / "run", fleet="local", report=False)


def test_hours_are_windows():
    timeline = read(HERE / "shops.txt")
    assert timeline.names == ("shop", "bar", "kiosk", "bakery")
    assert (np.array(list(timeline.windows(1))) // (3600 * 10**9)).tolist() == [[0, 2], [18, 24]]


def test_a_wrong_line_is_named(tmp_path):
    path = tmp_path / "hours.txt"
    path.write_text("# daily\nshop: 9-17\nbar: 18-2\n")
    with pytest.raises(TraceError, match="line 3: found 'bar: 18-2'"):
        read(path)
