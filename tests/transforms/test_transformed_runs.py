"""Whole runs with transforms: bytes are conserved, and bits are the same on every fleet, resumed, late or departed."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

import fedactors
from fedactors import Scenario
from fedactors.errors import ScenarioError
from fedactors.models.network import initial
from fedactors.simulation.prepare import prepare
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify
from tests.algorithms.test_runs import BASE, OPTIONS
from tests.simulation.test_checkpoints import BUFFERED, assert_same, scenario_of
from tests.simulation.test_killed import changes_of, lives
from tests.simulation.test_own_models import BASE as NORMED
from tests.simulation.test_own_models import NETS

UPLINK = (
    "server.uplink=[{name: topk, share: 0.05, error_feedback: true}, {name: quantize, bits: 8},"
    " {name: clip, norm: 1.0}, {name: gaussian, multiplier: 0.01}]"
)
DOWNLINK = "server.downlink=[{name: quantize, bits: 8, scale: max, error_feedback: true}]"
BOTH = (UPLINK, DOWNLINK)
CASES = {
    "fedavg": BOTH,
    "scaffold": (*BOTH, "server.algorithm=scaffold"),
    "feddyn": (UPLINK.replace("0.01}", "0.01, added: clients}"), DOWNLINK, "server.algorithm=feddyn"),
    "fednova": (*BOTH, "server.algorithm=fednova"),
    "buffered": (*BOTH, *BUFFERED),
    "mixing": (*BOTH, *BUFFERED, "server.timing={name: fedasync, concurrency: 10}"),
    "buffered scaffold": (*BOTH, *BUFFERED, "server.algorithm=scaffold"),
    "personal": (UPLINK, "server.personal=[3.*]"),
    "lowrank": ("server.uplink=[{name: lowrank, rank: 2}]",),
}
OFTEN = ("fedavg", "buffered scaffold", "mixing", "personal")  # the others are slow tests, for their number
FEW = [pytest.param(one, id=key, marks=[pytest.mark.slow] * (key not in OFTEN)) for key, one in CASES.items()]


def small(**server):
    return Scenario.model_validate({**BASE, "server": {**BASE["server"], **server}})


@pytest.mark.parametrize("changes", FEW)
def test_a_run_that_was_stopped_comes_out_as_one_that_was_not(changes, tmp_path):
    scenario = scenario_of(*changes)
    fedactors.run(scenario, tmp_path / "whole", fleet="local", report=False)
    fedactors.run(scenario, tmp_path / "broken", fleet="local", report=False, stop_after=4)
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.slow
def test_a_driver_killed_at_random_moments(tmp_path):
    changes = changes_of(12, *BOTH)
    assert len(lives(tmp_path / "killed", 1, 3, changes)) == 1
    fedactors.run(scenario_of(*changes), tmp_path / "whole", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
def test_digests_are_equal_for_the_local_fleet_and_ray():
    scenario = scenario_of(*BOTH, "server.algorithm=scaffold", "server.rounds=3", "server.cohort=30")
    assert verify(scenario, [("local", 1), ("ray", 2)])["equal"]


@pytest.mark.slow
@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_digests_do_not_depend_on_the_number_of_actors(changes):
    assert verify(scenario_of(*changes, "server.rounds=4"))["equal"]


@pytest.mark.parametrize("changes", [BOTH, (*BOTH, "server.algorithm=scaffold"), CASES["personal"]])
def test_traffic_is_what_transforms_say(changes, tmp_path):
    """What is charged: as many messages as the algorithm has vectors; a trip that is heard sends all of them."""
    scenario = scenario_of(*changes)
    prepared = prepare(scenario)
    fedactors.run(scenario, tmp_path / "run", fleet="local", report=False)
    orders = pq.read_table(tmp_path / "run/orders.parquet").to_pandas()
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    vectors = 2 if scenario.server.algorithm.name == "scaffold" else 1
    up = vectors * prepared.uplink.bytes
    heard = orders[orders.outcome.isin(["complete", "partial"])]
    assert set(heard.up) == {up}
    assert orders.up.max() == up
    if prepared.downlink:
        assert set(heard.down) == {vectors * prepared.downlink.bytes}
    assert sum(row["bytes_up"] for row in rows) == orders.up.sum()
    assert sum(row["bytes_down"] for row in rows) == orders.down.sum()
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["wire"]["up"] == up
    assert up < 0.1 * vectors * prepared.model_bytes


def test_smaller_messages_take_less_virtual_time(tmp_path):
    """A 10 kB/s link and a model of 5 kB: signs in place of floats make uploads 32 times shorter, but for a scale."""
    slow = {**BASE, "population": [{"name": "p", "count": 4, "network": {"down": "10 MB/s", "up": "10 kB/s"}}]}
    ends = {}
    for name, uplink in {"whole": [], "signs": ["signs"]}.items():
        scenario = Scenario.model_validate({**slow, "server": {**BASE["server"], "cohort": "all", "uplink": uplink}})
        prepared = prepare(scenario)
        order = next(iter(prepared.clock())).orders[0]
        ends[name] = (order.finished - order.computed) * 10 / 1e6  # bytes
        assert ends[name] == pytest.approx(order.up, rel=1e-3)
    assert ends["signs"] == pytest.approx(prepared.model.parameters / 8 + 4, abs=2)
    assert ends["whole"] == pytest.approx(prepared.model_bytes, abs=2)


class Seen:
    """Collects what clients made and what the server was given."""

    def __init__(self, monkeypatch):
        from fedactors.learning.traffic import uploads

        self.made, self.kept = [], {}
        sent = uploads.sent

        def remember(task, chunk, uploads, kept, public):
            found, fresh = sent(task, chunk, uploads, kept, public)
            self.made.append((chunk, uploads["delta"].clone(), found["delta"].clone()))
            for row, client in enumerate(chunk.clients):
                self.kept[client] = {name: value[row].clone() for name, value in fresh.items()}
            return found, fresh

        monkeypatch.setattr(uploads, "sent", remember)


@pytest.mark.parametrize("more", [("server.local.epochs=5",), BUFFERED], ids=["rounds", "buffered"])
def test_feedback_telescopes_through_a_run_with_partial_work_and_old_models(more, monkeypatch, tmp_path):
    """For every client: all that it sent, and what it still keeps, is all that it learned."""
    seen = Seen(monkeypatch)
    scenario = scenario_of("server.uplink=[{name: topk, share: 0.02, error_feedback: true}]", "server.rounds=8", *more)
    result = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False)
    assert result.summary["outcomes"]["partial"] > 5 or result.summary["staleness"]["max"] > 1
    made, sent, trips = {}, {}, {}
    for chunk, deltas, arrived in seen.made:
        for row, client in enumerate(chunk.clients):
            made[client] = made.get(client, 0) + deltas[row].double()
            sent[client] = sent.get(client, 0) + arrived[row].double()
            trips[client] = trips.get(client, 0) + 1
    assert max(trips.values()) > 2
    for client, kept in seen.kept.items():
        left = kept["uplink.delta.0.error"].double()
        torch.testing.assert_close(sent[client] + left, made[client], rtol=1e-4, atol=1e-5)


def test_the_server_takes_a_step_by_what_was_sent(monkeypatch, tmp_path):
    """X after a round is x before it and the weighted sum of what arrived, not of what clients made."""
    seen = Seen(monkeypatch)
    result = fedactors.run(small(rounds=1, uplink=["signs"]), tmp_path / "run", fleet="local", report=False)
    x = torch.from_numpy(initial(prepare(small(rounds=1)).model, BASE["seed"])).double()
    total = sum(
        (torch.tensor(chunk.weights).double()[:, None] * arrived.double()).sum(0) for chunk, _, arrived in seen.made
    )
    torch.testing.assert_close(torch.from_numpy(result.state["x"]).double(), x + total, rtol=1e-5, atol=1e-6)


def test_clients_start_from_the_message_and_the_server_keeps_its_model(monkeypatch, tmp_path):
    """Each base is a message of 2^7 - 1 levels a side; with feedback, messages and models differ by what is kept."""
    from fedactors.learning import trainer

    bases = []
    as_sent = trainer.as_sent

    def remember(vectors):
        found = as_sent(vectors)
        bases.append((vectors["x"], found["x"]))
        return found

    monkeypatch.setattr(trainer, "as_sent", remember)
    downlink = [{"name": "quantize", "bits": 8, "scale": "max", "error_feedback": True}]
    result = fedactors.run(small(rounds=4, downlink=downlink), tmp_path / "run", fleet="local", report=False)
    unique = {x.tobytes(): (x.astype(np.float64), sent.astype(np.float64)) for x, sent in bases}
    assert len(unique) == 4
    left = np.zeros_like(bases[0][0])
    for x, sent in unique.values():
        unit = np.abs(x + left).max() / 127
        np.testing.assert_allclose(sent / unit, np.rint(sent / unit), atol=1e-3)
        left = left + x - sent
        assert np.abs(left).max() <= unit * 1.001
    last = result.state["x"], result.state["sent.x"]
    np.testing.assert_allclose(left + last[0] - last[1], result.state["downlink.x.0.error"], atol=1e-5)


def test_departures_take_what_was_kept_along(tmp_path):
    """A device that has departed keeps nothing; those that stay keep what they could not send."""
    stay, leave = ({"name": name, "count": 5, "compute": {"per_sample": "10ms"}} for name in ("stay", "leave"))
    base = {**BASE, "population": [stay, {**leave, "depart": "1s"}], "cluster": {"checkpoint_every": 1}}
    server = {**BASE["server"], "cohort": "all", "rounds": 6, "algorithm": "scaffold", "uplink": ["signs"]}
    scenario = Scenario.model_validate({**base, "server": server})
    result = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False)
    assert result.summary["outcomes"]["departed"] == 5
    kept = dict(checkpoint.load(tmp_path / "run").saved().kept)
    assert set(kept) == {0, 1, 2, 3, 4}
    assert set(kept[0]) == {"c", "uplink.control.arrived", "uplink.delta.0.error", "uplink.control.0.error"}


@pytest.mark.parametrize("uplink", [[{"name": "clip", "norm": 0.05}], ["signs"], []], ids=["clip", "signs", "none"])
@pytest.mark.parametrize("attack", [{}, {"attack": "sign-flip"}], ids=["honest", "attacked"])
@pytest.mark.parametrize(("name", "upload", "mean"), [("scaffold", "control", "c"), ("feddyn", "moved", "r")])
def test_means_over_the_population_are_those_of_what_arrived_of_its_members(
    name, upload, mean, attack, uplink, monkeypatch, tmp_path
):
    """Also when some have left: the sum over those that stay of all that arrived of them, over their number."""
    from fedactors.learning.traffic import uploads

    arrived, sent = {}, uploads.sent

    def remember(task, chunk, uploads, kept, public):
        found, fresh = sent(task, chunk, uploads, kept, public)
        for row, client in enumerate(chunk.clients):
            arrived[client] = arrived.get(client, 0) + found[upload][row].double()
        return found, fresh

    monkeypatch.setattr(uploads, "sent", remember)
    stay, leave = ({"name": name, "count": 4, "compute": {"per_sample": "10ms"}} for name in ("stay", "leave"))
    base = {**BASE, "population": [stay, {**leave, "depart": "3s", **attack}]}
    server = {**BASE["server"], "cohort": "all", "rounds": 6, "algorithm": name, "uplink": uplink}
    scenario = Scenario.model_validate({**base, "server": server})
    result = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False)
    assert result.summary["outcomes"]["departed"] > 0
    assert len(arrived) == 8
    total = sum(arrived[client] for client in range(4))
    torch.testing.assert_close(torch.from_numpy(result.state[mean]).double(), total / 4, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", ["scaffold", "feddyn"])
def test_a_clip_that_cuts_nothing_changes_nothing_where_attackers_depart(algorithm, tmp_path):
    """The server takes back what arrived of attackers, not what they keep, with transforms and without."""
    groups = [{"name": name, "count": 4, "compute": {"per_sample": "10ms"}} for name in ("honest", "attackers")]
    groups[1] |= {"depart": "3s", "attack": "sign-flip"}
    states = []
    for uplink in ([], [{"name": "clip", "norm": 1e6}]):
        server = {**BASE["server"], "cohort": "all", "rounds": 6, "algorithm": algorithm, "uplink": uplink}
        scenario = Scenario.model_validate({**BASE, "population": groups, "server": server})
        result = fedactors.run(scenario, tmp_path / f"run{len(uplink)}", fleet="local", report=False)
        assert result.summary["outcomes"]["departed"] > 0
        states.append(result.state)
    plain, clipped = states
    assert set(plain) == set(clipped)
    assert all(np.array_equal(plain[name], clipped[name]) for name in plain)


def test_models_with_statistics_send_them_as_they_are(tmp_path):
    """BatchNorm's mean and variance travel whole beside the message, and are averaged as ever."""
    (tmp_path / "nets.py").write_text(NETS)
    text = yaml.safe_dump({**NORMED, "server": {**NORMED["server"], "uplink": ["signs"]}})
    (tmp_path / "own.yaml").write_text(text)
    prepared = prepare(Scenario.load(tmp_path / "own.yaml"))
    buffers = prepared.model.buffer_values
    assert buffers == 8
    signs = -(-(prepared.model.parameters - buffers) // 8) + 4
    assert next(iter(prepared.clock())).orders[0].up == signs + 4 * buffers
    state = fedactors.run(Scenario.load(tmp_path / "own.yaml"), tmp_path / "run", fleet="local", report=False).state
    variance = state["x"][-4:]
    assert (variance > 0).all()
    assert (variance != 1).all()  # where it starts


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ({"uplink": ["topkk"]}, "no update_transforms named"),
        ({"uplink": [{"name": "topk", "share": 2.0}]}, "less than or equal to 1"),
        ({"uplink": ["topk"]}, "share"),
        ({"uplink": "topk"}, "must be a list, such as"),
        ({"uplink": [{"name": "gaussian", "multiplier": 1.0}]}, "server.uplink.0: gaussian with a multiplier"),
        ({"downlink": [{"name": "clip", "norm": 1.0}]}, "server.downlink.0: clip is for updates"),
        ({"algorithm": {"name": "mixed-2w", "central_weight": 0.5}, "uplink": ["signs"]}, "mixed-2w"),
        ({"uplink": [{"name": "mask", "frozen": ["1.bias"]}], "personal": ["*"]}, "everything stays at the clients"),
        ({"uplink": [{"name": "clip", "norm": 0}]}, "greater than 0"),
        ({"uplink": [{"name": "clip", "norm": 1e-320}]}, "must lie between 1e-30 and 1e\\+30"),
        ({"uplink": [{"name": "adaptive-clip", "initial": 1e300}]}, "must lie between 1e-30 and 1e\\+30"),
        (
            {"aggregation": "median", "uplink": [{"name": "clip", "norm": 1.0}, {"name": "gaussian", "multiplier": 1}]},
            "is added to a sum",
        ),
        (
            {"algorithm": "feddyn", "uplink": [{"name": "clip", "norm": 1.0}, {"name": "gaussian", "multiplier": 1.0}]},
            'server.uplink: gaussian is added to one sum, and "feddyn" sums each update twice',
        ),
        ({"secure": {"group": 4, "threshold": 0.5}, "uplink": ["signs"]}, "secure aggregation sums whole vectors"),
    ],
)
def test_mistakes_are_told(server, text):
    from pydantic import ValidationError

    with pytest.raises((ScenarioError, ValidationError), match=text):
        prepare(small(**server))


@pytest.mark.parametrize("added", ["server", "clients"])
def test_secure_aggregation_adds_up_the_counts_of_a_clip_that_adapts(added):
    """Beside the masked vector a bit travels, in a byte of its own."""
    uplink = [{"name": "adaptive-clip"}, {"name": "gaussian", "multiplier": 1.0, "added": added}]
    secure = {"group": 4, "threshold": 0.5}
    plain, counted = (prepare(small(secure=secure, uplink=one)).wire for one in ([], uplink))
    assert 0 < counted["up"] - plain["up"] <= 2  # a whole byte, of masked values that end between two


CHANGES = {
    "fedadam": 1,
    "fedprox": 1,
    "ditto": 1,
    "fednova": 1,
    "feddyn": 1,
    "fsl": 1,
    "dsl": 1,
    "scaffold": 2,
    "fed-ams": 1,  # its second moments are values, and travel whole
    "mixed-1w": 1,
    "mixed-pt": 1,
    "mixed-et": 1,
}
# Vectors that the server sends as messages; what else it sends travels whole.
SENT_DOWN = {"fedavg": 1, "scaffold": 2, "fed-ams": 2, "mixed-1w": 1, "mixed-2w": 2, "mixed-et": 1, "ds": 1}


def some(cases, often):
    """Return (key, value) of each case; those that are not done often are slow tests, for their number."""
    return [
        pytest.param(*case, id=case[0], marks=[pytest.mark.slow] * (case[0] not in often)) for case in cases.items()
    ]


@pytest.mark.parametrize(("name", "messages"), some(CHANGES, ("fednova", "feddyn", "fed-ams", "mixed-1w")))
def test_each_algorithm_sends_its_changes_as_messages_and_the_rest_whole(name, messages, tmp_path):
    scenario = small(rounds=2, algorithm={"name": name, **OPTIONS.get(name, {})}, uplink=["signs"])
    prepared = prepare(scenario)
    whole = prepare(small(algorithm={"name": name, **OPTIONS.get(name, {})})).payload.up
    result = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False)
    expected = messages * prepared.uplink.bytes + (whole - messages) * prepared.model_bytes
    assert result.summary["bytes"]["up"] == result.summary["heard"] * expected
    kept = checkpoint.load(tmp_path / "run").saved().kept
    assert all(sum(key.endswith(".error") for key in state) == messages for _, state in kept)


@pytest.mark.parametrize(("name", "messages"), some(SENT_DOWN, ("scaffold", "mixed-1w", "mixed-2w")))
def test_each_vector_that_is_sent_is_a_message_and_the_rest_whole(name, messages, tmp_path):
    """The central gradient of mixed-1w and the samples of mixed-et are no vectors of the server's state."""
    scenario = small(rounds=2, algorithm=name, downlink=[{"name": "quantize", "bits": 8, "scale": "max"}])
    prepared = prepare(scenario)
    whole = prepare(small(algorithm=name)).payload.down
    expected = messages * prepared.downlink.bytes + round((whole - messages) * prepared.model_bytes)
    result = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False)
    assert result.summary["wire"]["down"] == expected
    assert sum(name.startswith("sent.") for name in result.state) == messages
