"""What counts of the rounds of an edge: each client heard once at the cloud, and one rate for all edges."""

import json
from collections import defaultdict

import numpy as np
import pytest

from fedactors.run_files.tables import rows_of
from fedactors.simulation.prepare import prepare
from fedactors.simulation.record.run_recorder import _rate
from fedactors.simulation.tasks import task_of
from tests.clock.test_hierarchy import FAST, finished, scenario

FALLING = {"name": "exponential", "lr": 0.1, "gamma": 0.5}


def two_edges(cohorts=("all", "all"), counts=(10, 10), speeds=("1s", "1s"), mixing=None, **server):
    """Return a scenario of the edges north and south, with five rounds of an edge in each of the cloud."""
    edges = [{"name": name, "cohort": cohort, "network": FAST} for name, cohort in zip("ns", cohorts, strict=True)]
    groups = [
        {"name": name, "count": count, "edge": name, "compute": {"per_sample": speed}, "network": FAST}
        for name, count, speed in zip("ns", counts, speeds, strict=True)
    ]
    timing = {"name": "hierarchical", "edge_rounds": 5, "edges": edges, "mixing": mixing}
    return scenario(groups=groups, timing=timing, **{"rounds": 22, "local": {"steps": 2, "batch": 10}} | server)


@pytest.mark.parametrize("participation", ["samples", "uniform", "examples"])
def test_the_cloud_counts_each_client_once_as_the_participation_does(participation):
    """North hears each of ten clients five times, south two of ten each time: some of them twice."""
    made = two_edges(("all", 2), participation=participation, local={"steps": 1, "batch": 40})
    prepared = prepare(made)
    held = prepared.held
    counts = {"samples": held, "uniform": np.ones(20), "examples": np.minimum(held, 40)}[participation]
    assert len(set(held.tolist())) > 10
    heard = defaultdict(set)
    for plan in prepared.clock():
        if plan.tier.edge >= 0:
            heard[plan.tier.edge] |= set(plan.heard().client.tolist())
            continue
        north, south = (float(counts[list(heard[edge])].sum()) for edge in (0, 1))
        assert len(heard[0]) == 10 > len(heard[1])
        assert [share for _, share in plan.tier.mixed] == pytest.approx(
            [north / (north + south), south / (north + south)]
        )
        heard.clear()


def test_one_round_of_the_same_edge_has_one_rate_however_fast_others_are():
    """Two cloud rounds of five rounds of an edge: ten rates, of which each edge has each once."""
    prepared = prepare(two_edges(speeds=("1s", "7s"), schedule=FALLING, server_schedule=FALLING))
    found = defaultdict(list)
    for plan in prepared.clock():
        task = task_of(plan, prepared, "cpu", last=False)
        assert {chunk.lr for chunk in task.chunks} <= {task.facts.lr}
        assert task.facts.server_lr == task.facts.lr == _rate(task)
        found[plan.tier.edge].append(task.facts.lr)
    rates = [0.1 * 0.5**t for t in range(10)]
    assert found == {0: rates, 1: rates, -1: rates[4::5]}


def test_an_edge_that_nobody_waits_for_goes_by_the_clouds_rounds():
    """North's rounds take 20 s and south's 70: when south is back for the first time, north has been there three times.

    So the cloud's model, from which south goes on, is that of four rounds, each of which is five of an edge.
    """
    prepared = prepare(two_edges(speeds=("1s", "3500ms"), mixing=0.5, rounds=60))
    rounds = defaultdict(list)
    for plan in prepared.clock():
        rounds[plan.tier.edge].append(plan.tier.edge_round)
    assert rounds[1][:10] == [1, 2, 3, 4, 5, 21, 22, 23, 24, 25]
    assert rounds[-1] == [5 * number for number in range(1, 11)]


def test_a_schedule_lasts_as_long_as_an_edge_has_rounds():
    """Of 22 aggregations five are rounds of each edge, twice; of 18 with `mixing` fifteen may follow one another."""
    assert two_edges(schedule={"name": "cosine", "lr": 0.1}).server.schedule.t_max == 10
    assert two_edges(schedule={"name": "cosine", "lr": 0.1}, mixing=0.5, rounds=18).server.schedule.t_max == 15


def test_the_recorded_rate_is_that_of_the_trips(tmp_path):
    """Under FedBuff, of trips that began from several models: the mean of their rates."""
    timing = {"name": "fedbuff", "concurrency": 4, "buffer": 2}
    groups = [{"name": "a", "count": 4}, {"name": "b", "count": 4, "compute": {"per_sample": "1s"}}]
    made = scenario(groups=groups, timing=timing, schedule=FALLING, rounds=6, local={"steps": 1, "batch": 10})
    folder = finished(made, tmp_path / "run").folder
    rates = defaultdict(list)
    for version, base in rows_of(folder / "weights.parquet", ("version", "base")):
        rates[version].append(made.server.schedule.at(base + 1))
    rows = [json.loads(line)["lr"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert rows == pytest.approx([np.mean(rates[version]) for version in range(6)])
    assert any(len(set(one)) > 1 for one in rates.values())
