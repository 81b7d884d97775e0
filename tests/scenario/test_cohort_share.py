"""A cohort may be a share of all devices, and over-selection and quorum shares of it; what is neither is told once."""

from pathlib import Path

import pytest

from fedactors import Scenario
from fedactors.errors import ScenarioError

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"  # 100 devices


@pytest.mark.parametrize(("share", "number"), [("0.1", 10), ("1e-1", 10), ("0.025", 3), ("0.001", 1), ("0.999", 100)])
def test_a_share_is_of_all_devices_rounded_to_the_nearest(share, number):
    scenario = Scenario.load(QUICKSTART, [f"server.cohort={share}"])
    assert scenario.devices == 100
    assert scenario.server.cohort == number
    assert scenario.dump()["server"]["cohort"] == number
    assert scenario.dump() == Scenario.load(QUICKSTART, [f"server.cohort={number}"]).dump()


@pytest.mark.parametrize("found", ["1.0", "0.0", "-0.2", "1.5", "True", "everyone", ".nan"])
def test_anything_else_is_told_once(found):
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(QUICKSTART, [f"server.cohort={found}"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 1
    assert "a share of all devices between 0 and 1 such as 0.1, or all" in lines[0]


def test_a_quorum_of_more_than_the_share_is_told():
    with pytest.raises(ScenarioError, match="quorum 11 is more than the 10 clients asked"):
        Scenario.load(QUICKSTART, ["server.cohort=0.1", "server.quorum=11", "server.over_selection=0"])


@pytest.mark.parametrize(("cohort", "more", "quorum"), [("10", 3, 8), ("0.1", 3, 8), ("0.025", 1, 2)])
def test_over_selection_and_quorum_are_shares_of_the_cohort(cohort, more, quorum):
    """.3 of 3 is .9, and .8 of 3 is 2.4."""
    shares = [f"server.cohort={cohort}", "server.over_selection=0.3", "server.quorum=0.8"]
    numbers = [f"server.cohort={cohort}", f"server.over_selection={more}", f"server.quorum={quorum}"]
    assert Scenario.load(QUICKSTART, shares).dump() == Scenario.load(QUICKSTART, numbers).dump()


def test_a_quorum_is_a_share_of_all_devices_where_all_are_asked():
    sets = ["server.cohort=all", "server.over_selection=0", "server.quorum=0.25"]
    assert Scenario.load(QUICKSTART, sets).server.quorum == 25


@pytest.mark.parametrize("key", ["over_selection", "quorum"])
@pytest.mark.parametrize("found", ["1.0", "-1", "-0.2", "True", "all"])
def test_neither_a_number_nor_a_share_of_the_cohort_is_told_once(key, found):
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(QUICKSTART, [f"server.{key}={found}"])
    assert len(str(caught.value).splitlines()) == 1
    assert "or a share of the cohort between 0 and 1 such as 0." in str(caught.value)
