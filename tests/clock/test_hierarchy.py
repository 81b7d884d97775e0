"""Edges between clients and the cloud: against plain rounds, against a loop of one's own, and worked by hand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import fedactors
from fedactors import Scenario
from fedactors.errors import RunFolderError, ScenarioError
from fedactors.models.network import initial
from fedactors.plan import SECOND
from fedactors.run_files.tables import plans_of
from fedactors.run_files.tier_table import with_tiers
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.inspect.difference import diff
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay
from fedactors.simulation.runner import resume

LINK = {"down": "2440 B/s", "up": "1220 B/s", "latency": 0}
FAST = {"down": "1 GB/s", "up": "1 GB/s", "latency": 0}
LR = 0.1
BY_PROCESS = {"name": "process", "behaviour": "diurnal"}


def scenario(edges=None, groups=None, edge_rounds=1, rounds=6, folder=None, **server):
    """Clients whose steps take all of their data, so that nothing depends on an order of samples."""
    timing = {"name": "hierarchical", "edge_rounds": edge_rounds, "edges": edges or [{"name": "one", "network": FAST}]}
    data = {
        "name": "edges",
        "seed": 3,
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": groups or [{"name": "all", "count": 5, "edge": "one"}],
        "server": {
            "rounds": rounds,
            "timing": timing,
            "local": {"steps": 2, "batch": 100_000},
            "schedule": {"name": "constant", "lr": LR},
            **server,
        },
    }
    return Scenario.from_data(data, "edges.yaml", folder=folder)


def finished(made, path):
    return fedactors.run(made, path, fleet="local", report=False)


def test_one_edge_without_rounds_of_its_own_is_plain_fedavg(tmp_path):
    """The cloud's model is the edge's, bit for bit. (Later, versions differ, and orders of samples with them.)"""
    plain = {"timing": "synchronous"}
    groups = [{"name": "all", "count": 5}]
    flat = finished(scenario(groups=groups, rounds=1, **plain), tmp_path / "flat")
    tiers = finished(scenario(rounds=3), tmp_path / "tiers")
    assert tiers.summary["plans"] == 2, "a second cloud round would exceed three"
    assert tiers.summary["digests"]["model"] == flat.summary["digests"]["model"]
    assert tiers.summary["final"] == flat.summary["final"]


EDGES = [{"name": "north", "network": FAST}, {"name": "south", "network": FAST}]
GROUPS = [{"name": "a", "count": 2, "edge": "north"}, {"name": "b", "count": 3, "edge": "south"}]


def by_loops(made, x, cloud_rounds, edge_rounds):
    """Return the model of HierFAVG, written down as the paper has it: full gradients, means by samples."""
    prepared = prepare(made)
    data = made.task.load(made.seed, made.devices)
    bounds = data.clients
    edges = [(0, 1), (2, 3, 4)]
    inputs = torch.from_numpy(np.asarray(data.x))
    labels = torch.from_numpy(np.asarray(data.y)).long()
    assert (prepared.held == np.diff(bounds)).all()

    def local(flat, client):
        samples = slice(int(bounds[client]), int(bounds[client + 1]))
        y = flat.clone()
        for _ in range(2):
            y = y.detach().requires_grad_()
            scores = inputs[samples] @ y[:600].reshape(10, 60).T + y[600:]
            torch.nn.functional.cross_entropy(scores, labels[samples]).backward()
            y = y - LR * y.grad
        return y.detach()

    def mean(models, sizes):
        return sum(size * model for size, model in zip(sizes, models, strict=True)) / sum(sizes)

    for _ in range(cloud_rounds):
        models = []
        for clients in edges:
            w = x
            for _ in range(edge_rounds):
                w = mean([local(w, client) for client in clients], [int(prepared.held[c]) for c in clients])
            models.append(w)
        x = mean(models, [int(prepared.held[list(clients)].sum()) for clients in edges])
    return x


def test_two_edges_with_rounds_of_their_own_against_loops(tmp_path):
    """Two cloud rounds of two edges, three rounds each: 2 (2 * 3 + 1) = 14 Plans."""
    made = scenario(EDGES, GROUPS, edge_rounds=3, rounds=15)
    run = finished(made, tmp_path / "run")
    assert run.summary["plans"] == 14
    assert run.summary["ended_because"] == "all rounds done"
    start = torch.from_numpy(np.array(initial(prepare(made).model, made.seed)))
    expected = by_loops(made, start, 2, 3).numpy()
    assert np.abs(expected - start.numpy()).max() > 0.01
    assert run.state["x"] == pytest.approx(expected, abs=2e-6)
    found = audit(tmp_path / "run")
    assert found["sound"], found


def test_the_edges_link_by_hand(tmp_path):
    """The model of 2,440 bytes takes 1 s down to the edge and 2 s up; its link is down from 20 to 50 s.

    Clients compute 10 s. 1 s down, clients until 11, up until 13; 14, 24, of the upload nothing passes before 50: 52.
    """
    (tmp_path / "link.csv").write_text("device,on_s,off_s\nnorth,0,20\nnorth,50,1000\n", encoding="utf-8")
    link = {"name": "trace", "path": "link.csv", "at_end": "depart"}
    edges = [{"name": "one", "network": LINK, "availability": link}]
    groups = [{"name": "all", "count": 1, "edge": "one", "compute": {"per_sample": "1s"}, "network": FAST}]
    local = {"steps": 1, "batch": 10}
    plans = list(prepare(scenario(edges, groups, rounds=4, folder=tmp_path, local=local)).clock())
    assert [plan.tier.edge for plan in plans] == [0, -1, 0, -1]
    assert [round(plan.closed / SECOND, 3) for plan in plans] == [11, 13, 24, 52]
    assert [plan.tier.moved for plan in plans] == [0, 4880, 0, 4880]
    assert [plan.orders.base.tolist() for plan in plans] == [[0], [], [2], []]
    assert [plan.tier.mixed for plan in plans] == [((0, 1.0),), ((1, 1.0),), ((2, 1.0),), ((3, 1.0),)]


def test_edges_that_the_cloud_does_not_wait_for():
    """North's client computes 10 s and south's 25: north's rounds close at 10 and 20, then south's at 25.

    w_1 is mixed from w_0 and north's; south began from w_0, and comes in when north has been there twice. North's third
    cloud round begins at 20, from what its second has made: version 4.
    """
    groups = [
        {"name": name, "count": 1, "edge": edge, "compute": {"per_sample": speed}, "network": FAST}
        for name, edge, speed in (("a", "north", "1s"), ("b", "south", "2500ms"))
    ]
    made = scenario(EDGES, groups, rounds=8, local={"steps": 1, "batch": 10})
    timing = made.server.timing.model_copy(update={"mixing": 0.25})
    made = made.model_copy(update={"server": made.server.model_copy(update={"timing": timing})})
    plans = list(prepare(made).clock())
    found = [(plan.tier.edge, round(plan.closed / SECOND), plan.tier.mixed, plan.oldest) for plan in plans]
    assert found == [
        (0, 10, ((0, 1.0),), 0),
        (-1, 10, ((0, 0.75), (1, 0.25)), 0),
        (0, 20, ((2, 1.0),), 0),
        (-1, 20, ((2, 0.75), (3, 0.25)), 0),
        (1, 25, ((0, 1.0),), 4),
        (-1, 25, ((4, 0.75), (5, 0.25)), 4),
        (0, 30, ((4, 1.0),), 6),
        (-1, 30, ((6, 0.75), (7, 0.25)), 8),
    ]
    assert [plan.orders.base.tolist() for plan in plans] == [[0], [], [2], [], [0], [], [4], []]


def test_a_cloud_that_waits_for_no_edge_says_that_none_can_reach_it(tmp_path):
    """The only link is off for ever after the first round; of 100 aggregations there are the two of the edge."""
    (tmp_path / "link.csv").write_text("device,on_s,off_s\nnorth,0,2\n", encoding="utf-8")
    link = {"name": "trace", "path": "link.csv", "at_end": "depart"}
    edges = [{"name": "one", "network": LINK, "availability": link}]
    made = scenario(edges, edge_rounds=2, rounds=100, folder=tmp_path)
    timing = made.server.timing.model_copy(update={"mixing": 0.5})
    clock = prepare(made.model_copy(update={"server": made.server.model_copy(update={"timing": timing})})).clock()
    plans = list(clock)
    assert [plan.tier.edge for plan in plans] == [0, 0]
    assert clock.ended_because == "no edge can reach the cloud any more"


def test_what_a_lost_edge_leaves_undone_is_left_to_the_others(tmp_path):
    """North's link is off for ever before its client is done: of 9 aggregations it makes 1, and south 8."""
    (tmp_path / "link.csv").write_text("device,on_s,off_s\nnorth,0,5\n", encoding="utf-8")
    link = {"name": "trace", "path": "link.csv", "at_end": "depart"}
    edges = [{"name": "north", "network": FAST, "availability": link}, {"name": "south", "network": FAST}]
    groups = [
        {"name": name, "count": 1, "edge": name, "compute": {"per_sample": "1s"}, "network": FAST}
        for name in ("north", "south")
    ]
    made = scenario(edges, groups, rounds=9, folder=tmp_path, local={"steps": 1, "batch": 10})
    timing = made.server.timing.model_copy(update={"mixing": 0.5})
    clock = prepare(made.model_copy(update={"server": made.server.model_copy(update={"timing": timing})})).clock()
    assert sorted(plan.tier.edge for plan in clock) == [-1, -1, -1, -1, 0, 1, 1, 1, 1]
    assert clock.ended_because == "all rounds done"


def test_an_edge_has_a_deadline_of_its_own():
    """Of a device that needs 10 s a step, an edge that waits 15 s hears one of two steps, one that waits 25 s both."""
    edges = [{"name": name, "deadline": deadline, "network": FAST} for name, deadline in (("n", "15s"), ("s", "25s"))]
    groups = [
        {"name": name, "count": 1, "edge": name, "compute": {"per_sample": "1s"}, "network": FAST} for name in "ns"
    ]
    plans = list(prepare(scenario(edges, groups, rounds=3, local={"steps": 2, "batch": 10})).clock())
    assert [(plan.tier.edge, plan.orders.steps.tolist()) for plan in plans] == [(0, [1]), (1, [2]), (-1, [])]


def test_events_and_columns_agree():
    groups = [
        {"name": "a", "count": 8, "edge": "north", "availability": {"name": "synthetic", "mean_on": "1min",
         "mean_off": "2min"}, "compute": {"per_sample": "1s", "spread": 0.6}},
        {"name": "b", "count": 6, "edge": "south", "compute": {"per_sample": "2s", "spread": 0.6}},
    ]  # fmt: skip
    changes = {"deadline": "2min", "local": {"steps": 3, "batch": 10}}
    made = scenario(EDGES, groups, edge_rounds=2, rounds=40, **changes)
    columns = list(prepare(made).clock())
    events = list(prepare(made.model_copy(update={"clock": "events"})).clock())
    assert len(columns) == 40
    for one, other in zip(columns, events, strict=True):
        assert (one.version, one.closed, one.tier, one.orders) == (
            other.version,
            other.closed,
            other.tier,
            other.orders,
        )


def test_a_run_goes_on_with_the_same_bits(tmp_path):
    made = scenario(EDGES, GROUPS, edge_rounds=2, rounds=10)
    whole = finished(made, tmp_path / "whole").summary["digests"]
    fedactors.run(made, tmp_path / "part", fleet="local", report=False, stop_after=4)
    assert resume(tmp_path / "part", fleet="local", report=False).summary["digests"] == whole
    read = [pq.read_table(tmp_path / name / "tiers.parquet") for name in ("part", "whole")]
    assert read[0].equals(read[1])


def mixing(share):
    made = scenario(EDGES, GROUPS, rounds=8)
    timing = made.server.timing.model_copy(update={"mixing": share})
    return made.model_copy(update={"server": made.server.model_copy(update={"timing": timing})})


def test_plans_that_mix_models_otherwise_have_other_digests(tmp_path):
    """All times are the same: without the shares of the mixture the digests were, too."""
    one, other = (replay(mixing(share), tmp_path / str(share)) for share in (0.1, 0.9))
    assert [plan.closed for plan in plans_of(one.folder)] == [plan.closed for plan in plans_of(other.folder)]
    assert one.summary["digests"]["plans"] != other.summary["digests"]["plans"]
    found = diff(one.folder, other.folder)["plans"]
    assert list(found["first"]["apart"]) == ["mixed"]
    shares = [[share for _, share in mixed] for mixed in found["first"]["apart"]["mixed"]]
    assert shares == [[0.9, 0.1], [1 - 0.9, 0.9]]


def test_tiers_are_read_as_they_were_written(tmp_path):
    made = scenario(EDGES, GROUPS, edge_rounds=3, rounds=15)
    folder = replay(made, tmp_path / "run").folder
    tiers = [plan.tier for plan in prepare(made).clock()]
    assert [plan.tier for plan in with_tiers(folder, plans_of(folder))] == tiers
    assert audit(folder)["sound"]
    table = pq.read_table(folder / "tiers.parquet").to_pydict()
    table["share"][-1] /= 2
    pq.write_table(pa.table(table), folder / "tiers.parquet")
    assert [check["name"] for check in audit(folder)["checks"] if check["wrong"]] == ["digests"]
    table["version"][-1] += 1
    pq.write_table(pa.table(table), folder / "tiers.parquet")
    with pytest.raises(RunFolderError, match="damaged: tiers of a round that"):
        list(with_tiers(folder, plans_of(folder)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"groups": [{"name": "all", "count": 5}]}, r"population\.0\.edge: no edge given"),
        ({"groups": [{"name": "all", "count": 5, "edge": "on"}]}, r'no edge .on.*did you mean "one"'),
        ({"edges": EDGES, "groups": GROUPS[:1]}, '"south" has no population group'),
        ({"edge_rounds": 6, "rounds": 6}, r"6 aggregations are less than one round .* at least 7"),
        ({"edge_rounds": 3, "edges": EDGES, "groups": GROUPS, "rounds": 6}, "at least 7"),
        ({"edges": [{"name": "one", "availability": BY_PROCESS}]}, "availability.*process.*always.*trace.*synthetic"),
        ({"algorithm": "fedavgm"}, "keeps an optimiser on one server"),
        ({"algorithm": "scaffold"}, "undefined under timing"),
        ({"selection": "oort"}, "draws from the losses of one round"),
        ({"timing": "synchronous"}, 'timing "synchronous" has none'),
        ({"cohort": 2}, r"cohort belongs to synchronous rounds \(accepted: timing.edges.\*.cohort"),
    ],
)
def test_what_does_not_fit_is_refused(changes, said):
    with pytest.raises(ScenarioError, match=said):
        scenario(**changes)


HALVES = {"downlink": [{"name": "quantize", "bits": 4, "scale": "max"}], "uplink": [{"name": "quantize", "bits": 4}]}


def test_between_edges_and_cloud_models_travel_whole(tmp_path):
    """One edge, one round of it: what clients learned from a compressed model is added to the exact one, as without."""
    flat = scenario(groups=[{"name": "all", "count": 5}], rounds=1, timing="synchronous", **HALVES)
    tiers = scenario(rounds=3, **HALVES)
    prepared = prepare(tiers)
    assert prepared.wire["down"] < 0.2 * prepared.model_bytes
    result = finished(tiers, tmp_path / "tiers")
    assert result.state["x"].tobytes() == finished(flat, tmp_path / "flat").state["x"].tobytes()
    assert result.summary["bytes_backhaul"] == 2 * prepared.model_bytes


def test_what_stays_at_clients_is_not_sent_to_the_cloud(tmp_path):
    """Of 610 parameters the 10 of the bias stay."""
    result = finished(scenario(rounds=3, personal=["*bias"]), tmp_path / "run")
    assert result.summary["bytes_backhaul"] == 2 * 600 * 4


@pytest.mark.parametrize("one", [{"name": "quantize", "error_feedback": True}, "signs", {"name": "lowrank"}])
def test_feedback_of_one_server_is_refused_where_there_are_several(one):
    with pytest.raises(ScenarioError, match="each edge sends models"):
        prepare(scenario(downlink=[one]))
