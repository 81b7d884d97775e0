"""Secure aggregation as cost and rule: the paper's own figures, a trip by hand, and groups that are lost by timing."""

from math import ceil

import numpy as np
import pytest

import fedactors
from fedactors import Scenario
from fedactors.clock.secure_groups import SecureGroups
from fedactors.errors import ScenarioError
from fedactors.plan import SECOND, Order, Orders, Outcome
from fedactors.scenario.costs.secure_options import SecureAggregation
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay
from fedactors.streams import Purpose, stream
from tests.fleet.conftest import QUICKSTART


@pytest.mark.parametrize(
    ("members", "values", "bits", "field", "expansion"),
    [(2**10, 2**20, 16, 26, 1.73), (2**14, 2**24, 16, 30, 1.98)],
)
def test_the_papers_expansion_of_traffic(members, values, bits, field, expansion):
    """What the abstract says of 16-bit values, with keys and shares of 256 bits, over sending them in the clear.

    A client's traffic, without the model's download, is 2 n a_K + (5 n - 4) a_S bytes, n bits and the values.
    """
    found = SecureAggregation(group=members, bits=bits).traffic(members)
    assert found.bits == field
    total = 8 * (found.down + found.up) + values * found.bits
    assert total == 2 * members * 256 + (5 * members - 4) * 256 + members + values * field
    assert round(total / (values * bits), 2) == expansion


def scenario(**server):
    """Four phones of a model of 2,440 bytes, 610 values: 1 s down and 2 s up in the clear, 100 ms of latency each."""
    data = {
        "name": "secure",
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": [
            {
                "name": "phones",
                "count": 4,
                "compute": {"per_sample": "1s"},
                "network": {"down": "2440 B/s", "up": "1220 B/s", "latency": "100ms"},
            }
        ],
        "server": {"rounds": 1, "local": {"steps": 2, "batch": 10}, "secure": {"group": 4}, **server},
    }
    return Scenario.from_data(data, "secure.yaml")


def test_a_trip_by_hand():
    """n = 4, values of 18 bits: 610 of them are 1,372.5 bytes.

    Down: 3 keys and 2 3 shares more, 192 + ... = 2 3 (32 + 32) + 1 = 385 bytes beside the model. Up: 2 keys, 2 3 + 4
    shares, 64 + 320 = 384. Four messages each way. The trip takes 0.4 + 2,825 / 2,440 + 20 + 0.4 + 1,756 / 1,220 s.
    """
    made = prepare(scenario())
    (plan,) = made.clock()
    order = plan.orders[0]
    assert order.down == 2440 + 385
    assert order.up == round(610 * 18 / 8 + 384)
    assert order.downloaded == pytest.approx(0.4 * SECOND + order.down / 2440 * SECOND, abs=1)
    assert order.finished - order.computed == pytest.approx(0.4 * SECOND + order.up / 1220 * SECOND, abs=1)
    plain = next(iter(prepare(scenario(secure=None)).clock())).orders[0]
    assert (plain.down, plain.up) == (2440, 2440)
    assert plain.downloaded == 1_100_000_000


def test_what_a_mask_leaves_out_costs_the_bits_of_the_group():
    """Of 610 values 10 are of the bias: 600 values of 18 bits are 1,350 bytes. In the clear it is 2,400 of 2,440."""
    uplink = [{"name": "mask", "frozen": ["*.bias"]}]
    assert prepare(scenario(uplink=uplink)).wire["up"] == 1350 + 384
    assert prepare(scenario(uplink=uplink, secure=None)).wire["up"] == 2400


def orders(heard):
    outcomes = (Outcome.COMPLETE if one else Outcome.OFFLINE for one in heard)
    return Orders.of(Order(k, 0, 2, 2, outcome, 0, 1, 2, 3, 1, 1) for k, outcome in enumerate(outcomes))


@pytest.mark.parametrize(("heard", "survives"), [(10, True), (7, True), (6, False), (0, False)])
def test_a_group_needs_as_many_as_the_threshold_says(heard, survives):
    """Of ten, 0.7 are seven; 0.55 of twenty are eleven, whatever floats make of that."""
    assert SecureAggregation(group=20, threshold=0.55).survivors(20) == 11
    asked = orders([k < heard for k in range(10)])
    found = SecureGroups(SecureAggregation(group=10), 1).recovered(asked, 0)
    assert int(found.is_heard.sum()) == (heard if survives else 0)
    assert [order.outcome for order in found].count(Outcome.LOST) == (0 if survives else heard)
    assert [order[:4] + order[5:] for order in found] == [order[:4] + order[5:] for order in asked]


def test_groups_are_drawn_anew_and_lost_alone():
    """Twelve in groups of five at most: three of four each. Those of a group are lost together, or not at all."""
    groups = SecureGroups(SecureAggregation(group=5, threshold=0.75), 1)
    lost = set()
    for version in range(60):
        asked = orders(np.random.default_rng(version).random(12) < 0.75)
        found = groups.recovered(asked, version)
        gone = np.flatnonzero(asked.is_heard & ~found.is_heard)
        lost.add(tuple(gone.tolist()))
        assert len(gone) <= 6, "two of four at most are heard in each group that is lost"
    assert len(lost) > 5


CHANGES = ["server.rounds=8", "server.secure={group: 8, threshold: 0.9}"]


@pytest.mark.parametrize("clock", ["columns", "events"])
def test_whoever_plays_the_clock_every_group_is_whole_or_lost(clock):
    """Groups are drawn again here; of each, nobody is heard or at least 0.9."""
    made = Scenario.load(QUICKSTART, [*CHANGES, f"clock={clock}"])
    lost = 0
    for plan in prepare(made).clock():
        order = stream(made.seed, Purpose.SECURE_GROUPS, 0, plan.version).permutation(len(plan.orders))
        for members in np.array_split(order, 5):
            outcomes = [plan.orders[int(k)].outcome for k in members]
            heard = int(plan.orders.is_heard[members].sum())
            assert heard == 0 or heard >= ceil(0.9 * len(members))
            if Outcome.LOST in outcomes:
                assert heard == 0
                lost += outcomes.count(Outcome.LOST)
    assert lost == replay(made).summary["outcomes"]["lost"] > 0


def test_a_run_says_what_was_lost_and_its_records_agree(tmp_path):
    made = Scenario.load(QUICKSTART, [*CHANGES, "server.rounds=2"])
    summary = fedactors.run(made, tmp_path / "run", fleet="local", report=False).summary
    assert sum(summary["outcomes"].values()) == summary["asked"]
    assert summary["outcomes"]["lost"] > 0
    found = audit(tmp_path / "run")
    assert found["sound"], found


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (
            {"timing": {"name": "fedbuff", "concurrency": 2, "buffer": 2}, "rounds": 3},
            "has no rounds in which a group could be formed",
        ),
        ({"aggregation": "median"}, "looks at single updates, which nobody sees"),
        ({"bad_updates": "quarantine"}, "sets single updates aside, which nobody sees"),
        ({"secure": {"group": 1}}, "greater than or equal to 2|at least 2"),
    ],
)
def test_what_needs_single_updates_is_refused(server, said):
    with pytest.raises(ScenarioError, match=said):
        scenario(**server)
