"""A cohort may be a share of all devices; what could be a share and a number is refused in one message."""

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
