"""Participation that emerges in the experiments of Ruan et al.: the moments of Table 2, and nothing drawn."""

import fnmatch
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from fedactors.clock.laws import TABLE_2
from fedactors.papers.catalogue import REDUCED
from fedactors.papers.flexible.flexible_emerging import emerging
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import prepare
from fedactors.traces.format_registry import read_series

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FLEXIBLE = SCENARIOS / "papers/flexible"
SHARE = "../../../traces/ruan/share.csv"
FIRST_FIVE = tuple(TABLE_2)[:5]
WITHIN = 0.05  # five steps: shares are rounded down to fifths, a step has a fifth of slack


def shares(scenario):
    """Return the share of its steps that each device of each round hands in, by group."""
    groups = [group.name for group in scenario.population for _ in range(group.count)]
    found = defaultdict(list)
    for plan in prepare(scenario).clock():
        for order in plan.orders:
            found[groups[order.client]].append(order.steps / order.wanted if order.heard else 0.0)
    return found


def population(links):
    """Return a group of four devices for each trace of Table 2."""
    compute = "{per_sample: 862ms"
    groups = [
        f"{{name: {name}, count: 4, compute: {compute}, share: {{path: {SHARE}, rows: {name}, offset: random}}}},"
        " network: {down: 10 MB/s, up: 10 MB/s}}"
        for name in FIRST_FIVE
    ]
    for name in tuple(TABLE_2)[5:]:
        link = f"{{path: ../../../traces/ruan/{links}, rows: {name}, offset: random}}"
        network = f"{{trace: {{down: {link}, up: {link}}}}}"
        groups.append(f"{{name: {name}, count: 4, compute: {compute}}}, network: {network}}}")
    return f"population=[{', '.join(groups)}]"


@pytest.mark.slow
@pytest.mark.parametrize(("data", "links"), [("synthetic", "links-610.csv"), ("mnist", "links-1970.csv")])
def test_moments_of_table_2_emerge(data, links):
    if data == "mnist" and "FEDACTORS_DATA" not in os.environ:
        pytest.skip("FEDACTORS_DATA names no folder with the data sets")
    path = FLEXIBLE / f"table3-{data}-emerging.yaml"
    found = shares(Scenario.load(path, [population(links), "server.rounds=400"]))
    for trace, wanted in TABLE_2.items():
        assert np.mean(found[trace]) == pytest.approx(wanted.mean, abs=WITHIN), trace
        assert np.std(found[trace]) == pytest.approx(wanted.sd, abs=WITHIN), trace
        assert np.mean(np.array(found[trace]) == 0) == pytest.approx(wanted.inactive, abs=0.03), trace


EVERY = [name for name in REDUCED if name.startswith("flexible-") and name.endswith("-emerging")]


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_drawn_but_where_it_says_so(name):
    experiment = REDUCED[name]
    assert experiment.scenario.endswith("-emerging.yaml")
    for cell in experiment.cells([1]):
        scenario = Scenario.load(SCENARIOS / experiment.scenario, cell.overrides)
        drawn = any(group.sampled for group in scenario.population)
        assert drawn == (cell.at("source") == "sampled")


def test_traces_are_taken_from_the_first_on():
    """Of fifty devices with eight traces, 31 have one of five processors and 19 one of three links."""
    (change,) = emerging("links-610.csv", 8)[8]
    groups = Scenario.load(FLEXIBLE / "table3-synthetic-emerging.yaml", [change]).population
    assert [(group.name, group.count) for group in groups] == [("busy", 31), ("far", 19)]
    names = read_series(FLEXIBLE / SHARE).names
    for count in (1, 2, 3, 4, 5):
        (change,) = emerging("links-610.csv", count)[count]
        (group,) = Scenario.load(FLEXIBLE / "table3-synthetic-emerging.yaml", [change]).population
        assert tuple(fnmatch.filter(names, group.compute.share.rows)) == FIRST_FIVE[:count]
