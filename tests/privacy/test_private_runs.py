"""Runs whose privacy is accounted for: noise of trees, clips that adapt, epsilon in rows, resumed, what is refused."""

import dataclasses
import json
import sys
from math import sqrt

import dp_accounting
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from pydantic import ValidationError

import fedactors
from fedactors import Scenario
from fedactors.errors import ScenarioError
from fedactors.fleet.local import LocalFleet
from fedactors.models.network import initial
from fedactors.report.html import write as write_report
from fedactors.simulation import runner
from fedactors.simulation.checks.check import check
from fedactors.simulation.checks.meanings import meanings
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify
from fedactors.streams import Purpose, stream
from fedactors.transforms.adaptive_clip import AdaptiveClip
from fedactors.transforms.chain import Chain
from fedactors.transforms.draws import SenderDraws
from fedactors.transforms.tree_noise import TreeNoise, nodes
from fedactors.transforms.update_clipping import ClipUpdates
from tests.algorithms.test_runs import BASE
from tests.simulation.test_checkpoints import BUFFERED, assert_same, scenario_of
from tests.transforms.vectors import draws, layout, normal

CLIP = {"name": "clip", "norm": 0.5}
SHARED = {"name": "gaussian", "multiplier": 1.0, "added": "clients", "over": 4}
ADAPTIVE = {"name": "adaptive-clip", "initial": 0.1, "count_deviation": 2.0}
PRIVATE = "server.privacy={delta: 1e-5}"
CASES = {
    "server": "server.uplink=[{name: clip, norm: 0.5}, {name: gaussian, multiplier: 1.1}]",
    "clients": "server.uplink=[{name: clip, norm: 0.5}, {name: gaussian, multiplier: 2, added: clients, over: 10}]",
    "laplace": "server.uplink=[{name: clip, norm: 5.0, order: 1}, {name: laplace, multiplier: 1.5}]",
    "tree": "server.uplink=[{name: clip, norm: 0.5}, {name: tree, multiplier: 2, weight: 0.1}]",
    "adaptive": (
        "server.uplink=[{name: adaptive-clip, initial: 0.1, count_deviation: 1}, {name: gaussian, multiplier: 1}]"
    ),
}


def small(**server):
    base = {**BASE["server"], "participation": "uniform", "data": None}
    return Scenario.model_validate({**BASE, "server": {**base, **server}})


def run(scenario, folder, **more):
    return fedactors.run(scenario, folder, fleet="local", report=False, **more)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("uplink", CASES.values(), ids=CASES)
def test_a_private_run_that_was_stopped_comes_out_as_one_that_was_not(uplink, tmp_path):
    scenario = scenario_of(uplink, PRIVATE)
    run(scenario, tmp_path / "whole")
    run(scenario, tmp_path / "broken", stop_after=4)
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")
    spent = [row["epsilon"] for row in rows_of(tmp_path / "broken")]
    assert spent == sorted(spent)
    assert 0 < spent[0] < spent[-1]


@pytest.mark.slow
@pytest.mark.parametrize("uplink", CASES.values(), ids=CASES)
def test_noise_has_the_same_bits_everywhere(uplink):
    assert verify(scenario_of(uplink, PRIVATE, "server.rounds=3"), [("local", 1), ("ray", 2)])["equal"]


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), BUFFERED], ids=["rounds", "buffered"])
def test_epsilon_is_that_of_the_device_heard_most_as_recorded(more, tmp_path):
    """Equal weights: as many Gaussian mechanisms as the orders table says that it was heard."""
    scenario = scenario_of(CASES["server"], PRIVATE, *more, "server.participation=uniform", "server.rounds=10")
    summary = run(scenario, tmp_path / "run").summary
    orders = pq.read_table(tmp_path / "run/orders.parquet").to_pandas()
    heard = orders[orders.outcome.isin(["complete", "partial"])]
    most = int(heard.groupby("client").size().max())
    assert most > 1
    assert summary["epsilon"] == pytest.approx(dp_accounting.get_epsilon_gaussian(1.1 / sqrt(most), 1e-5), rel=1e-8)
    assert rows_of(tmp_path / "run")[-1]["epsilon"] == summary["epsilon"]
    write_report(tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert f"epsilon {summary['epsilon']:.3g}" in page
    assert "no amplification by sampling is claimed" in page


def test_check_says_what_holds_and_what_does_not():
    found = check(small(uplink=[CLIP, {"name": "gaussian", "multiplier": 1.0}], privacy={"delta": 1e-5}))["notes"]
    assert any(
        "epsilon at delta 1e-05 holds against all who see models, not against the server" in one for one in found
    )
    assert any("compared with a run in which what it sends adds nothing to any sum" in one for one in found)
    found = check(small(uplink=[CLIP, {"name": "gaussian", "multiplier": 1.0}]))["notes"]
    assert any("epsilon is not counted" in one for one in found)
    found = check(small(uplink=[{"name": "gaussian", "deviation": 1.0}]))["notes"]
    assert any("guarantees nothing" in one for one in found)


@pytest.mark.parametrize(("delta", "name", "said"), [(0.1, "gaussian", 1), (0.09, "gaussian", 0), (0.5, "laplace", 0)])
def test_a_delta_of_one_over_the_devices_is_too_large(delta, name, said):
    """Of ten devices; the epsilon of Laplace noise is pure."""
    clip = {"name": "clip", "norm": 1.0, "order": 1 if name == "laplace" else 2}
    found = meanings(small(uplink=[clip, {"name": name, "multiplier": 1.0}], privacy={"delta": delta}))
    notes = [one for one in found if f"delta {delta} is not below one over the 10 devices" in one]
    assert len(notes) == said
    assert all("such as 1e-02" in one for one in notes)


def test_the_noise_of_a_tree_adds_up_to_that_of_its_nodes():
    """After each number of rounds t, all that was added is N(t): one node for each bit of t, none for t = 0."""
    of = layout((40_000,))
    chain = Chain("uplink", [ClipUpdates(norm=2.0), TreeNoise(multiplier=1.5, weight=0.1)], of)
    total = torch.zeros(40_000)
    for version in range(13):
        place = SenderDraws(3, Purpose.NOISE, [0], [version])
        total = chain.received("delta", total, place, largest=0.7)
        bits = len(list(nodes(version + 1)))
        assert bits == (version + 1).bit_count()
        assert float(total.std()) == pytest.approx(0.3 * sqrt(bits), rel=0.02)
    assert list(nodes(13)) == [(3, 0), (2, 2), (0, 12)]


def test_rounds_without_updates_are_no_rounds_of_a_tree(tmp_path):
    """Updates of a rate of 1e-12 change nothing: the model moves by N(4), which is one node, after 16 rounds.

    One device is asked in each. In 12 of them it is not complete in time, and its update has no weight under A.
    """
    server = {
        "rounds": 16,
        "cohort": 1,
        "deadline": "0.7s",
        "participation": "A",
        "schedule": {"name": "constant", "lr": 1e-12},
        "uplink": [CLIP, {"name": "tree", "multiplier": 2.0, "weight": 1.0}],
        "privacy": {"delta": 1e-5},
    }
    scenario = small(**server)
    found = run(scenario, tmp_path / "whole")
    rounds = pq.read_table(tmp_path / "whole/weights.parquet")["version"].to_pylist()
    assert rounds == [0, 3, 12, 14]
    node = stream(scenario.seed, Purpose.TREE, 2 * 2**20).standard_normal(len(found.state["x"]), dtype=np.float32)
    np.testing.assert_allclose(found.state["x"], initial(prepare(scenario).model, scenario.seed) + node, atol=1e-5)
    run(scenario, tmp_path / "broken", stop_after=9)
    assert resume(tmp_path / "broken", fleet="local", report=False).summary["digests"] == found.summary["digests"]


@pytest.mark.parametrize("in_flight", [1, 4])
def test_rounds_whose_updates_were_all_set_aside_are_no_rounds_of_a_tree(tmp_path, monkeypatch, in_flight):
    """One device is asked in each of 12 rounds, and half of the devices send NaN: all noise that is there is N(t).

    t is the number of rounds whose update counted. Rounds after a bad one have been submitted where several are in
    flight, and a run that was stopped goes on with the same count.
    """
    original = runner.load

    def load(prepared):
        data = original(prepared)
        x = data.samples.x.copy()
        for client in range(0, prepared.scenario.devices, 2):
            x[data.samples.split.of(client)] = np.nan
        return data._replace(samples=dataclasses.replace(data.samples, x=x))

    monkeypatch.setattr(runner, "load", load)
    monkeypatch.setattr(LocalFleet, "max_in_flight", in_flight)
    scenario = small(
        rounds=12,
        cohort=1,
        schedule={"name": "constant", "lr": 1e-12},
        uplink=[CLIP, {"name": "tree", "multiplier": 2.0, "weight": 1.0}],
        bad_updates="quarantine",
        data=None,
    )
    found = run(scenario, tmp_path / "whole")
    outcomes = found.summary["outcomes"]
    assert outcomes["quarantined"] > 2
    done = outcomes["complete"]
    assert done > 2
    noise = np.zeros(len(found.state["x"]), np.float32)
    for level, place in nodes(done):
        noise += stream(scenario.seed, Purpose.TREE, level * 2**20, place).standard_normal(len(noise), dtype=np.float32)
    np.testing.assert_allclose(found.state["x"], initial(prepare(scenario).model, scenario.seed) + noise, atol=1e-5)
    run(scenario, tmp_path / "broken", stop_after=7)
    again = resume(tmp_path / "broken", fleet="local", report=False)
    assert again.summary["digests"] == found.summary["digests"]


def test_a_clip_that_adapts_worked_by_hand():
    """Norms 3, 1, 0.5, 0 and C = 1: three are within. b = 3/4, C <- exp(-0.2 (0.75 - 0.5))."""
    clip, of = AdaptiveClip(initial=1.0), layout((4,))
    chain = Chain("uplink", [clip], of)
    rows = torch.eye(4) * torch.tensor([3.0, 1.0, 0.5, 0.0])[:, None]
    values = chain.broadcast_values(["delta"])
    assert values == {"uplink.delta.0.told": 1.0}
    sent, counts = chain.sent("delta", rows, {}, draws(4), values)
    assert counts["uplink.delta.0.count"].tolist() == [[0.0], [1.0], [1.0], [1.0]]
    assert sent.norm(dim=1).tolist() == [1.0, 1.0, 0.5, 0.0]
    after = chain.next_broadcast_values("delta", values, {"uplink.delta.0.count": 3.0}, 4, draws(1))
    assert after["uplink.delta.0.told"] == pytest.approx(np.exp(-0.05))


@pytest.mark.parametrize("deviation", [1e9, 1e300])
def test_a_norm_stays_a_norm_whatever_the_noise_in_counts(deviation):
    """Noise makes steps of the logarithm of C that no number can hold; an update of zeros stays one at any C."""
    clip = AdaptiveClip(count_deviation=deviation, rate=1.0)
    for number in range(20):
        norm = clip.next_broadcast_value(1.0, 1.0, 2, draws(1, round=number))
        assert 1e-30 <= norm <= 1e30
        chain = Chain("uplink", [clip], layout((4,)))
        sent, _ = chain.sent("delta", torch.zeros(1, 4), {}, draws(1), {"uplink.delta.0.told": norm})
        assert not sent.any()


def test_the_norm_finds_the_median_of_norms():
    """Norms 1 to 9: with 200 rounds of all, C is within a step of the median 5, from far below."""
    clip, of = AdaptiveClip(initial=0.01), layout((50,))
    chain = Chain("uplink", [clip], of)
    rows = normal(9, 50)
    rows = rows / rows.norm(dim=1, keepdim=True) * torch.arange(1.0, 10.0)[:, None]
    values = chain.broadcast_values(["delta"])
    for _ in range(200):
        _, counts = chain.sent("delta", rows, {}, draws(9), values)
        counted = {name: float(one.sum()) for name, one in counts.items()}
        values = chain.next_broadcast_values("delta", values, counted, 9, draws(1))
    assert values["uplink.delta.0.told"] == pytest.approx(5, rel=0.03)


def test_a_run_follows_its_norms(tmp_path):
    """The server's state has the norm; bytes: 4 more down, and a bit more up."""
    plain, adaptive = small(uplink=[CLIP]), small(uplink=[{"name": "adaptive-clip", "initial": 0.01}], rounds=8)
    one, other = (next(iter(prepare(scenario).clock())).orders[0] for scenario in (plain, adaptive))
    assert (other.down - one.down, other.up - one.up) == (4, 1)
    state = run(adaptive, tmp_path / "run").state
    assert 0.01 * np.exp(0.05 * 8) < state["uplink.delta.0.told"][0] <= 0.01 * np.exp(0.1 * 8) * 1.0001


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ({"uplink": [CLIP]}, "server.privacy: nothing in server.uplink guarantees"),
        ({"uplink": [{"name": "gaussian", "deviation": 1.0}]}, "server.privacy: nothing in server.uplink guarantees"),
        (
            {"uplink": [{"name": "adaptive-clip"}, {"name": "gaussian", "multiplier": 1.0}]},
            "adaptive-clip needs a count_deviation",
        ),
        (
            {"uplink": [CLIP, {"name": "gaussian", "multiplier": 1.0}], "algorithm": "fed-ams"},
            '"fed-ams" uploads more than what noise is added to',
        ),
        (  # the sum behind its regulariser would get no noise
            {"uplink": [CLIP, {"name": "gaussian", "multiplier": 1.0}], "algorithm": "feddyn"},
            '"feddyn" uploads more than what noise is added to',
        ),
        (
            {
                "uplink": [CLIP, {"name": "gaussian", "multiplier": 1.0}],
                "membership": {"name": "fast-reboot", "departures": "auto"},
                "cohort": "all",
                "participation": "C",
            },
            "departures: auto decides by losses",
        ),
        (
            {"uplink": [CLIP, {"name": "gaussian", "multiplier": 1.0}], "selection": "oort"},
            "told the losses of devices",
        ),
        (
            {"uplink": [CLIP, {"name": "tree", "multiplier": 1.0, "weight": 0.1}], "algorithm": "scaffold"},
            "sums some uploads without weights",
        ),
        ({"uplink": [CLIP, SHARED], "aggregation": "median"}, 'aggregation "median" makes none'),
        ({"uplink": [CLIP, SHARED], "secure": {"group": 2}}, "secure.group is below the cohort"),
        (
            {"uplink": [CLIP, {"name": "gaussian", "multiplier": 1.0}], "bad_updates": "quarantine"},
            "quarantine sets updates aside",
        ),
        (
            {"uplink": [ADAPTIVE, {"name": "gaussian", "multiplier": 1.0, "added": "clients"}]},
            "adaptive-clip sends the server a bit of each update without noise",
        ),
        ({"uplink": [ADAPTIVE, SHARED]}, "adaptive-clip sends the server a bit of each update without noise"),
        (  # the first norm follows a count that nothing accounts for
            {"uplink": [{"name": "adaptive-clip"}, CLIP, {"name": "gaussian", "multiplier": 1.0}]},
            "what adaptive-clip counts is in no epsilon",
        ),
        (
            {"uplink": [ADAPTIVE, ADAPTIVE, {"name": "gaussian", "multiplier": 1.0}]},
            "what adaptive-clip counts is in no epsilon",
        ),
    ],
)
def test_where_nothing_can_be_guaranteed_that_is_said(server, text):
    with pytest.raises(ScenarioError, match=text):
        prepare(small(**server, privacy={"delta": 1e-5}))


@pytest.mark.parametrize("name", ["fedadam", "scaffold", "fednova", "fsl"])
def test_algorithms_whose_every_upload_gets_noise_have_a_guarantee(name, tmp_path):
    """What reaches the server is only what a client sent through the list, and numbers of steps."""
    uplink = [CLIP, {"name": "gaussian", "multiplier": 1.0}]
    data = {"name": "iid", "samples": 50, "copies": False} if name == "fsl" else None
    scenario = small(uplink=uplink, algorithm=name, privacy={"delta": 1e-5}, rounds=1, data=data)
    assert run(scenario, tmp_path / "run").summary["epsilon"] > 0


def test_without_the_library_a_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setattr("fedactors.simulation.checks.transform_checks.find_spec", lambda name: None)
    with pytest.raises(ScenarioError, match=r"needs the package dp-accounting \(accepted: pip install 'fedactors\[pri"):
        prepare(small(uplink=[CLIP, {"name": "gaussian", "multiplier": 1.0}], privacy={"delta": 1e-5}))


def test_a_clip_that_adapts_needs_rounds():
    timing = {"timing": {"name": "fedbuff", "concurrency": 4, "buffer": 2}, "cohort": "all"}
    with pytest.raises(ScenarioError, match="needs rounds"):
        prepare(small(uplink=[ADAPTIVE], **timing))


@pytest.mark.parametrize("delta", [0, 1, -1])
def test_delta_lies_between_0_and_1(delta):
    with pytest.raises(ValidationError):
        small(privacy={"delta": delta})


def test_a_forecast_is_made_with_transforms():
    """The engine is timed on what it will do: norms that are told, residuals that are kept."""
    uplink = [{"name": "topk", "share": 0.1, "error_feedback": True}, ADAPTIVE, {"name": "gaussian", "multiplier": 1.0}]
    found = check(small(uplink=uplink, privacy={"delta": 1e-5}), "local")["forecast"]
    assert found["wall_seconds"] > 0
