"""The package is found, its scenario runs, and each part does what it says."""

from pathlib import Path

import numpy as np
import pytest
import torch
from fedactors_example.clipped import Clipped

from fedactors import Scenario, run
from fedactors.errors import TraceError
from fedactors.learning.algorithm import ClientResult
from fedactors.traces.format_registry import read

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


def test_hours_are_windows():
    timeline = read(HERE / "shops.txt")
    assert timeline.names == ("shop", "bar", "kiosk", "bakery")
    assert (np.array(list(timeline.windows(1))) // (3600 * 10**9)).tolist() == [[0, 2], [18, 24]]


def test_a_wrong_line_is_named(tmp_path):
    path = tmp_path / "hours.txt"
    path.write_text("# daily\nshop: 9-17\nbar: 18-2\n")
    with pytest.raises(TraceError, match="line 3: found 'bar: 18-2'"):
        read(path)
