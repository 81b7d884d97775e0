"""Ruan et al.'s Table 2: as drawn from laws, and as it emerges from processor share, links and the deadline."""

import pytest

from benchmarks.ruan_table2 import MOST, measured, worst
from fedactors.clock.device_columns import build
from fedactors.errors import ScenarioError
from fedactors.scenario.loading import validate


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sampled", "emerging"])
def test_means_and_deviations_are_the_papers(name):
    found = measured(name, rounds=200)
    assert len(found) == 8
    assert worst(found) <= MOST
    assert all(found[trace][2] == 0 for trace in ("T0", "T30", "T50", "T70", "T90"))  # never inactive


def test_a_sampled_group_needs_a_deadline():
    scenario = {
        "name": "sampled",
        "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
        "population": [{"name": "a", "count": 2, "sampled": ["T30", "Tlo"]}],
        "server": {"rounds": 1},
    }
    with pytest.raises(ScenarioError, match=r"population.0.sampled: sampled participation needs server.deadline"):
        build(validate(scenario, "s.yaml"), 1)
    scenario["server"] = {"rounds": 1, "deadline": "100s", "local": {"epochs": 2}}
    with pytest.raises(ScenarioError, match="2 levels cannot give"):
        build(validate(scenario, "s.yaml"), 1)
    scenario["server"]["local"] = {"epochs": 7}
    assert build(validate(scenario, "s.yaml"), 1).laws == [("T30", 7), ("Tlo", 7)]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"availability": "synthetic"}, "availability"),
        ({"compute": {"per_sample": "1ms", "share": {"path": "share.csv"}}}, "compute.share"),
        ({"network": {"trace": {"down": {"path": "link.csv"}}}}, "network.trace"),
    ],
)
def test_a_sampled_group_has_nothing_else_that_decides_its_share(changes, name):
    group = {"name": "a", "count": 2, "sampled": "T30", **changes}
    data = {"name": "sampled", "task": {"dataset": "synthetic"}, "population": [group], "server": {"deadline": "9s"}}
    with pytest.raises(
        ScenarioError, match=rf"population\.0 .group a.: sampled draws .* {name} would .* sampled without {name}"
    ):
        validate(data, "sampled.yaml")
