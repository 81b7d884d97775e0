"""FedCS's greedy choice, worked by hand."""

import numpy as np
import pytest

from fedactors.clock.selections.base import Clients, Stages
from fedactors.clock.selections.fedcs import FedCS
from fedactors.streams import Purpose, stream

STAGES = Stages(np.array([10, 10, 30, 10]), np.array([20, 50, 10, 200]), np.array([10, 10, 20, 10]))
CLIENTS = Clients(np.ones(4, int), sum(STAGES), STAGES)


def chosen(within, count=4, polled=4):
    selector = FedCS(polled=polled).start(CLIENTS._replace(deadline=within))
    return selector.choose(np.arange(4), count, 0, stream(1, Purpose.COHORT)).tolist()


@pytest.mark.parametrize(("within", "expected"), [(41, [0]), (71, [0, 1]), (110, [0, 1]), (111, [0, 1, 2])])
def test_by_hand(within, expected):
    """Each would lengthen the round by 40, 70, 60 and 220: 0 is first, Theta = 30, the round 10 + 30 = 40.

    Then 1 by 10 + (50 - 30) = 30, 2 by 20 + 20 = 40, 3 by 10 + 170 = 180: 1, Theta = 60, the round 70.
    Then 2 by 20 + 20, 3 by 10 + 140: 2, Theta = 80, its download 30, the round 110, which has to be below T_round.
    3 would end at 30 + 80 + 10 + 120 = 240.
    """
    assert chosen(within) == expected


def test_no_more_than_the_cohort():
    assert chosen(10**9, count=2) == [0, 1]
    assert chosen(10**9) == [0, 1, 2, 3]


def test_if_nobody_fits_the_first_is_asked_alone():
    assert chosen(5) == [0]


def test_only_those_polled():
    found = {
        tuple(FedCS(polled=1).start(CLIENTS).choose(np.arange(4), 1, 0, stream(1, Purpose.COHORT, 0, round)).tolist())
        for round in range(40)
    }
    assert found == {(0,), (1,), (2,), (3,)}
