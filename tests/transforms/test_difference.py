"""Differences on the downlink: all clients have the server's w to the bit, and are charged what they have missed."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import fedactors
from fedactors import Scenario
from fedactors.clock.cohort import CohortPlanner
from fedactors.clock.trip import Missed, TripPlanner
from fedactors.errors import ScenarioError
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify
from fedactors.streams import Purpose
from fedactors.transforms.chain import Chain
from fedactors.transforms.draws import SenderDraws
from fedactors.workload import workload
from tests.algorithms.test_runs import BASE
from tests.clock.world_builder import population
from tests.simulation.test_checkpoints import BUFFERED, assert_same, scenario_of

TOPK = "server.downlink=[difference, {name: topk, share: 0.05}]"
EIGHT_BITS = "server.downlink=[difference, {name: quantize, bits: 8, scale: max}]"
CASES = {
    "rounds": (TOPK, "server.cohort=12"),
    "buffered": (TOPK, *BUFFERED),
    "mixing scaffold": (EIGHT_BITS, *BUFFERED, "server.algorithm=scaffold"),
    "uplink too": (EIGHT_BITS, "server.uplink=[signs]", "server.cohort=12"),
}
OFTEN = ("rounds", "buffered")  # the others are slow tests, for their number
FEW = [pytest.param(one, id=key, marks=[pytest.mark.slow] * (key not in OFTEN)) for key, one in CASES.items()]
EACH = pytest.mark.parametrize("changes", FEW)


def finished(scenario, path):
    return fedactors.run(scenario, path, fleet="local", report=False)


def small(**server):
    return Scenario.model_validate({**BASE, "server": {**BASE["server"], **server}})


def orders_of(folder):
    """Return the orders of each client, in the order of its trips."""
    table = pq.read_table(folder / "orders.parquet").to_pandas()
    return [mine.sort_values("started") for _, mine in table.groupby("client")]


class Sent:
    """Collects the messages of the server, in their order, and what clients start from."""

    def __init__(self, monkeypatch):
        from fedactors.learning import trainer

        self.messages, self.bases = [], {}
        sent, as_sent = Chain.sent, trainer.as_sent

        def remember(chain, vector, rows, *given):
            found = sent(chain, vector, rows, *given)
            if chain.way == "downlink":
                self.messages.append(found[0][0].numpy().copy())
            return found

        def started_from(vectors):
            found = as_sent(vectors)
            self.bases[found["x"].tobytes()] = vectors["x"].copy()
            return found

        monkeypatch.setattr(Chain, "sent", remember)
        monkeypatch.setattr(trainer, "as_sent", started_from)


@pytest.mark.parametrize("more", [("server.cohort=12",), BUFFERED], ids=["rounds", "buffered"])
def test_a_device_that_adds_what_it_was_sent_has_the_model_that_it_starts_from(more, monkeypatch, tmp_path):
    """Each device by itself: x_0 whole, then the messages since its last download, one after the other, to the bit."""
    seen = Sent(monkeypatch)
    finished(scenario_of(TOPK, "server.rounds=12", *more), tmp_path / "run")
    first = next(np.frombuffer(sent, np.float32) for sent, x in seen.bases.items() if sent == x.tobytes())
    devices = 0
    for trips in orders_of(tmp_path / "run"):
        model, version = first.copy(), 0
        for base, heard in zip(trips.base, trips.outcome.isin(["complete", "partial"]), strict=True):
            for message in seen.messages[version + 1 : base + 1]:
                model = model + message
            version = base
            assert not heard or model.tobytes() in seen.bases
            devices += heard
    assert devices > 30
    assert len(seen.bases) > 5


def test_messages_are_the_largest_entries_of_what_is_new(monkeypatch, tmp_path):
    """W_{t+1} = w_t + C(x_{t+1} - w_t), with C in numpy; what is left out is in the next difference, and only there."""
    seen = Sent(monkeypatch)
    finished(scenario_of(TOPK, "server.rounds=6", "server.cohort=12"), tmp_path / "run")
    pairs = [(x, np.frombuffer(sent, np.float32)) for sent, x in seen.bases.items()]
    assert len(pairs) == 6
    w = pairs[0][0]
    assert pairs[0][1].tobytes() == w.tobytes()
    for number, (x, sent) in enumerate(pairs[1:], 1):
        new = x - w
        message = np.zeros_like(new)
        largest = np.argsort(-np.abs(new), kind="stable")[: round(0.05 * len(new))]
        message[largest] = new[largest]
        np.testing.assert_array_equal(message, seen.messages[number])
        w = w + message
        assert w.tobytes() == sent.tobytes()
    assert 0 < np.abs(pairs[-1][0] - w).max() < np.abs(pairs[-1][0] - pairs[0][0]).max()


WORK = workload(2, 1, epochs=1, steps=None)


def test_bytes_and_times_by_hand():
    """A model of 8 bytes, differences of 2, 1 ns per byte and per sample, 2 samples, 1 byte up.

    Version 0 is new to all: 8 bytes. From 0 to 1 one difference, 2; from 1 to 4 three of them, 6; from 4 to 9 five
    would be 10, so it is the model, 8. A trip from the same version again needs nothing.
    """
    people = population([{}])
    cohorts = CohortPlanner(people, TripPlanner(people, 2, 1, once=6, missed=Missed(2, 6)), [WORK])
    found = []
    for version in (0, 1, 4, 9, 9):
        cohort = cohorts.plan(cohorts.everybody, version, 0, 100)
        found.append((cohorts.settle(cohort, 100).down[0], int(cohort.ends[0])))
    assert found == [(8, 11), (2, 5), (6, 9), (8, 11), (0, 3)]


def test_a_download_that_was_cut_short_leaves_a_device_as_it_was():
    """On for 3 ns only in the second trip: 3 of its 4 bytes cross; in the third trip it is sent all it has missed."""
    people = population([{"windows": [(0, 50), (100, 103), (200, 10**6)]}])
    cohorts = CohortPlanner(people, TripPlanner(people, 2, 1, once=6, missed=Missed(2, 6)), [WORK])
    down = []
    for version, start in ((0, 0), (2, 100), (3, 200)):
        cohort = cohorts.plan(cohorts.everybody, version, start, start + 20)
        down.append(cohorts.settle(cohort, start + 20).down[0])
    assert down == [8, 3, 6]


@EACH
def test_clients_are_charged_what_they_have_missed(changes, tmp_path):
    """In pandas, of each client: whole at first, then a message for each version since the last complete download."""
    scenario = scenario_of(*changes, "server.rounds=14")
    prepared = prepare(scenario)
    vectors = len(scenario.server.algorithm.sends)
    each, whole = vectors * prepared.downlink.bytes, vectors * prepared.model_bytes
    result = finished(scenario, tmp_path / "run")
    sizes, total = set(), 0
    for trips in orders_of(tmp_path / "run"):
        last = None
        for trip in trips.itertuples():
            expected = whole if last is None else min(whole, (trip.base - last) * each)
            assert trip.down == expected if trip.outcome in ("complete", "partial") else trip.down <= expected
            if trip.down == expected:
                last = trip.base
                sizes.add(expected)
            total += trip.down
    assert {whole, each, 2 * each} <= sizes
    assert result.summary["bytes"]["down"] == total
    assert audit(tmp_path / "run")["sound"]


@EACH
def test_a_run_that_was_stopped_goes_on_with_the_same_bits(changes, tmp_path):
    scenario = scenario_of(*changes)
    finished(scenario, tmp_path / "whole")
    fedactors.run(scenario, tmp_path / "broken", fleet="local", report=False, stop_after=4)
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.slow
@EACH
def test_digests_do_not_depend_on_the_number_of_actors(changes):
    assert verify(scenario_of(*changes, "server.rounds=5"))["equal"]


@pytest.mark.parametrize("changes", [(TOPK, "server.cohort=12"), (TOPK, *BUFFERED)], ids=["rounds", "buffered"])
def test_events_and_columns_agree(changes):
    plans = [list(prepare(scenario_of(*changes, f"clock={clock}")).clock()) for clock in ("columns", "events")]
    assert plans[0] == plans[1]
    assert len({order.down for plan in plans[0] for order in plan.heard()}) > 2


@pytest.mark.parametrize(
    "one",
    [
        {"name": "topk", "share": 0.1},
        {"name": "quantize", "bits": 8},
        {"name": "quantize", "bits": 3, "scale": "max"},
        {"name": "signs", "error_feedback": False},
        {"name": "lowrank", "error_feedback": False},
    ],
    ids=lambda one: one["name"],
)
def test_what_is_accepted_brings_clients_ever_closer(one):
    """A model that does not change: after forty messages less than a tenth of the distance is left."""
    chain = prepare(small(downlink=["difference", one])).downlink
    x = torch.randn(1, chain.layout.parameters, generator=torch.Generator().manual_seed(1))
    w = torch.zeros_like(x)
    kept = {name: torch.zeros(1, length) for name, length in chain.keeps(["x"]).items()}
    for version in range(40):
        message, kept = chain.sent("x", x - w, kept, SenderDraws(1, Purpose.DOWNLINK, [0], [version]))
        w = w + message
    assert (x - w).norm() < 0.1 * x.norm()


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ({"downlink": [{"name": "topk", "share": 0.1}, "difference"]}, "server.downlink.1: difference is of models"),
        ({"uplink": ["difference"]}, "server.uplink.0: difference is of models"),
        ({"downlink": ["difference", "signs"]}, "server.downlink.1: signs behind difference: .*error_feedback: false"),
        ({"downlink": ["difference", {"name": "randomk", "share": 0.1}]}, "server.downlink.1: randomk .*overshoot"),
        ({"downlink": ["difference", {"name": "quantize", "bits": 2}]}, "server.downlink.1: quantize .*too coarse"),
        ({"downlink": ["difference", "difference"]}, "server.downlink.1: difference is of models"),
    ],
)
def test_what_does_not_go_together_is_refused(server, text):
    with pytest.raises(ScenarioError, match=text):
        prepare(small(**server))
