"""What edges do whose link is lost, or whose run reaches a limit in the middle of a cloud round."""

import pytest

from fedactors import Scenario
from fedactors.plan import SECOND
from fedactors.simulation.prepare import prepare

LINK = {"down": "2440 B/s", "up": "1220 B/s", "latency": 0}  # of a model of 2,440 bytes
FAST = {"down": "1 GB/s", "up": "1 GB/s", "latency": 0}
CLOUD = -1


def clock(edges, folder=None, mixing=None, edge_rounds=2, rounds=9, group=None, **server):
    """Edges of one client each, whose trips of one step take ten times as long as a sample."""
    names = [edge["name"] for edge in edges]
    client = {"count": 1, "network": FAST, "compute": {"per_sample": "1s"}, **(group or {})}
    timing = {"name": "hierarchical", "edge_rounds": edge_rounds, "edges": edges, "mixing": mixing}
    data = {
        "name": "limits",
        "seed": 3,
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": [{"name": name, "edge": name, **client} for name in names],
        "server": {"rounds": rounds, "timing": timing, "local": {"steps": 1, "batch": 10}, **server},
    }
    return prepare(Scenario.from_data(data, "limits.yaml", folder=folder)).clock()


@pytest.fixture
def lost(tmp_path):
    """Return an edge whose link is off for ever after the download, which takes 1 s."""
    (tmp_path / "link.csv").write_text("device,on_s,off_s\nnorth,0,2\n", encoding="utf-8")
    link = {"name": "trace", "path": "link.csv", "at_end": "depart"}
    return {"name": "north", "network": LINK, "availability": link}


def test_the_cloud_keeps_its_own_model_where_no_edge_can_upload(lost, tmp_path):
    """Two rounds of the edge, of which the cloud hears nothing; of the next one there is not even the download."""
    made = clock([lost], tmp_path)
    first, second, cloud = list(made)
    assert [first.tier.mixed, second.tier.mixed, cloud.tier.mixed] == [((0, 1.0),), ((1, 1.0),), ((0, 1.0),)]
    assert first.oldest == 0, "the cloud's model is still wanted"
    assert cloud.oldest == 3
    assert cloud.tier.moved == 2440
    assert made.ended_because == "no edge can reach the cloud any more"


def test_an_edge_that_can_upload_but_heard_nobody_brings_nothing(lost, tmp_path):
    """South's rounds close after 5 s, before its client has done a step; both edges have made models of their own."""
    made = clock([lost, {"name": "south", "network": FAST, "deadline": "5s"}], tmp_path, edge_rounds=1, rounds=6)
    south, north, cloud, *later = list(made)
    assert [plan.tier.edge for plan in (south, north, cloud)] == [1, 0, CLOUD]
    assert (south.oldest, north.oldest, cloud.tier.mixed) == (0, 0, ((0, 1.0),))
    assert cloud.tier.moved == 3 * 2440
    assert [(plan.tier.edge, plan.tier.mixed) for plan in later] == [(1, ((3, 1.0),)), (CLOUD, ((3, 1.0),))]


@pytest.mark.parametrize("mixing", [None, 0.5])
@pytest.mark.parametrize("limit", [{"until": "35s"}, {"budget": {"traffic": "19520 B"}}])
def test_no_round_of_an_edge_begins_beyond_a_limit(mixing, limit):
    """Of forty rounds of 10 s four begin before 35 s; and the fourth trip, of 2,440 bytes each way, spends the budget.

    What they have made is uploaded.
    """
    made = clock([{"name": "north", "network": FAST}], None, mixing, edge_rounds=40, rounds=500, **limit)
    plans = list(made)
    assert [plan.opened // SECOND for plan in plans if plan.orders] == [0, 10, 20, 30]
    assert (plans[-1].tier.edge, plans[-1].tier.mixed[-1][0]) == (CLOUD, 4)
    assert made.ended_because in ("virtual time limit", "the budget of 19520 B is spent")


def test_an_edge_waits_for_its_clients_no_longer_than_the_run_lasts(tmp_path):
    """Its client is off from the end of its first trip until 100 s; the limit is 50 s."""
    (tmp_path / "on.csv").write_text("device,on_s,off_s\na,0,10.00000732\na,100,900\n", encoding="utf-8")
    on = {"name": "trace", "path": "on.csv", "at_end": "depart"}
    made = clock([{"name": "north", "network": FAST}], tmp_path, None, 40, 500, {"availability": on}, until="50s")
    assert [(plan.tier.edge, round(plan.closed / SECOND)) for plan in made] == [(0, 10), (CLOUD, 50)]
    assert made.ended_because == "virtual time limit"


@pytest.mark.parametrize("mixing", [None, 0.5])
def test_an_edge_whose_trips_fail_at_once_waits_until_a_device_comes(mixing, tmp_path):
    """Its client, asked while it is off, loses the work at once; it is on until 1 s, and from 100 to 900 s."""
    (tmp_path / "on.csv").write_text("device,on_s,off_s\na,0,1\na,100,900\n", encoding="utf-8")
    on = {"name": "trace", "path": "on.csv", "at_end": "depart"}
    edge = {"name": "north", "network": FAST}
    made = clock([edge], tmp_path, mixing, 40, 500, {"availability": on, "on_interruption": "abort"}, among="members")
    closed = [round(plan.closed / SECOND) for plan in made if plan.orders]
    assert closed == [1, 1, *range(110, 901, 10)]
    assert made.ended_because == "nobody can be asked any more"


@pytest.mark.parametrize("mixing", [None, 0.5])
def test_edges_whose_clients_can_never_report_end_the_run(mixing, tmp_path):
    """Both directions of the only client's link carry nothing; of 500 aggregations one round of the edge is made."""
    (tmp_path / "link.csv").write_text("row,from_s,to_s,bytes/s\na/down,0,9,0\na/up,0,9,0\n", encoding="utf-8")
    link = {way: {"path": "link.csv", "rows": f"*/{way}", "at_end": "hold"} for way in ("down", "up")}
    made = clock([{"name": "north", "network": FAST}], tmp_path, mixing, 40, 500, {"network": {"trace": link}})
    assert [plan.tier.edge for plan in made] == [0, CLOUD]
    assert made.ended_because == "nobody who can be asked can ever report"


@pytest.mark.parametrize("mixing", [None, 0.5])
def test_virtual_time_has_an_end_for_edges_too(mixing, tmp_path):
    """The only client's link carries nothing, and rounds of its edge end after 70 years: at 70, 140 and 146."""
    (tmp_path / "link.csv").write_text("row,from_s,to_s,bytes/s\na/down,0,9,0\na/up,0,9,0\n", encoding="utf-8")
    link = {way: {"path": "link.csv", "rows": f"*/{way}", "at_end": "hold"} for way in ("down", "up")}
    edge = {"name": "north", "network": FAST, "deadline": "25550d"}
    made = clock([edge], tmp_path, mixing, 40, 500, {"network": {"trace": link}})
    closed = [plan.closed // (25_550 * 86_400 * SECOND) for plan in made if plan.tier.edge != CLOUD]
    assert closed == [1, 2, 2]
    assert made.ended_because == "virtual time reached its end, 146 years"
