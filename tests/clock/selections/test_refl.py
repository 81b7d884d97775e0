"""REFL's selection: those first that are least likely to be there in the slot after this round."""

import numpy as np

from fedactors.clock.selections.base import Clients
from fedactors.clock.selections.history import History
from fedactors.clock.selections.refl import Refl
from fedactors.durations import DURATIONS
from fedactors.streams import Purpose, stream
from tests.clock.selections.pasts import Past

H = DURATIONS["h"]
DAYS = [
    [(d * 24 * H + on * H, d * 24 * H + off * H) for d in range(3)] for on, off in ((0, 2), (0, 4), (0, 24), (0, 3))
]


def lot(round):
    return stream(1, Purpose.COHORT, 0, round)


def started(past, **options):
    clients = Clients(np.ones(4, int), np.full(4, H), history=History(past))
    return Refl(**options).start(clients)


def test_least_available_first():
    """At midnight of day 2, all four are on. Trips take an hour, so that mu is one hour and the slot 1 to 2 o'clock.

    All are on then, on both days before; the third is on all day, the others 2, 4 and 3 hours. The first is the least
    likely, then the last, the second, the third. An hour later the round took one hour, and mu stays; the slot is 2 to
    3: the first was off then, and so it is again the first.
    """
    past = Past(DAYS, now=48 * H)
    selector = started(past)
    everybody = np.arange(4)
    assert selector.choose(everybody, 4, 0, lot(0)).tolist() == [0, 3, 1, 2]
    past.now = 49 * H
    assert selector.choose(everybody, 2, 1, lot(1)).tolist() == [0, 3]


def test_the_slot_follows_the_rounds():
    """mu <- 0.75 D + 0.25 mu: after a round of three hours, mu is 2.5 h. At 3 o'clock the slot is 5:30 to 8."""
    past = Past(DAYS, now=48 * H)
    selector = started(past)
    selector.choose(np.arange(4), 1, 0, lot(0))
    past.now = 51 * H
    selector.choose(np.arange(4), 1, 1, lot(1))
    assert selector._mu == 2.5 * H
    selector.choose(np.arange(4), 1, 1, lot(2))
    assert selector._mu == 2.5 * H, "a second selection for one version is no round"


def test_equal_ones_take_turns_by_lot():
    found = {started(Past([None] * 4)).choose(np.arange(4), 1, 0, lot(round)).tolist()[0] for round in range(40)}
    assert found == {0, 1, 2, 3}


def test_those_asked_rest():
    selector = started(Past([None] * 4), rest=1)
    first = selector.choose(np.arange(4), 2, 0, lot(0))
    second = selector.choose(np.arange(4), 2, 1, lot(1))
    assert not set(first.tolist()) & set(second.tolist())
    assert len(selector.choose(second, 2, 2, lot(2))) == 2, "if there are no others they are asked"
