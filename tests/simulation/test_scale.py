"""The grid of `fedactors scale`: what is held against what, what is written, and one grid in earnest."""

import csv
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.errors import ClusterError
from fedactors.report import scaling
from fedactors.simulation.scale import ScalePoint, _compared, resized, scale, write

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"


def point(clients, actors, speed, **more):
    made = ScalePoint(
        clients, actors, 2, 100, 1.0, speed, None, None, None, None, 0.5, 0.01, 0.02, 0.4, 0.03, 0.04, 1000
    )
    return replace(made, **more)


def test_efficiency_is_speed_per_actor_against_the_fewest_actors():
    """100 steps/s with one actor: 180 with two are 90 % (strong); 160 with two and twice the clients 80 % (weak)."""
    points = [point(10, 1, 100.0), point(10, 2, 180.0), point(20, 2, 160.0)]
    one, strong, weak = (_compared(p, points) for p in points)
    assert (one.strong_efficiency, one.weak_efficiency) == (1.0, 1.0)
    assert (strong.strong_efficiency, strong.weak_efficiency) == (0.9, None)
    assert (weak.strong_efficiency, weak.weak_efficiency) == (None, 0.8)


def test_a_scenario_of_another_size_keeps_the_shares_of_its_groups():
    """60 phones, 15 kiosks, 25 tablets; all of them are asked."""
    made = resized(Scenario.load(QUICKSTART), 1000, 3)
    assert [group.count for group in made.population] == [600, 150, 250]
    assert (made.server.cohort, made.server.among, made.server.rounds) == ("all", "members", 3)
    assert [group.count for group in resized(Scenario.load(QUICKSTART), 2, 3).population] == [1, 1]


def test_points_are_written_as_csv_and_drawn(tmp_path):
    points = [point(10, 1, 100.0, strong_efficiency=1.0), point(10, 2, 180.0)]
    write(points, tmp_path / "new/scale.csv")
    rows = list(csv.DictReader((tmp_path / "new/scale.csv").open()))
    assert [float(row["steps_per_second"]) for row in rows] == [100.0, 180.0]
    assert rows[1]["strong_efficiency"] == ""
    page = scaling.write([asdict(one) for one in points], tmp_path / "scale.html").read_text()
    assert "local steps per second" in page
    assert not re.search(r"<(script|link)[^>]*(src|href)=.(?!data:)", page), "it opens without a network"


def test_what_cannot_be_a_grid_is_refused(capsys):
    with pytest.raises(SystemExit) as left:
        main(["scale", str(QUICKSTART), "--actors", "1,x", "--clients", "10"])
    assert left.value.code == 2
    assert "1,2,4" in capsys.readouterr().err


def test_a_grid_is_refused_what_a_run_is_refused():
    idle = Scenario.load(QUICKSTART, ["cluster.server_gpus=1"])
    with pytest.raises(ClusterError, match=r"cluster.server_gpus: .* would leave the GPU idle"):
        scale(idle, [1], [10], rounds=1)


@pytest.mark.slow
def test_a_central_learner_and_resources_are_had_as_in_a_run():
    """A resource that no machine has is asked for in vain, as a run does, also where steps are slept."""
    mixed = ["server.algorithm={name: mixed-2w, merge_lr: 0.5}", "server.data={name: iid, samples: 20}"]
    (found,) = scale(
        Scenario.load(QUICKSTART, [*mixed, "server.participation=uniform"]), [1], [10], rounds=1, step=0.001
    )
    assert found.steps > 0
    lacking = Scenario.load(QUICKSTART, ["cluster.resources={phones: {quantum: 1}}"])
    with pytest.raises(ClusterError, match="2 client hosts do not fit"):
        scale(lacking, [1], [10], rounds=1, step=0.001)


@pytest.mark.slow
def test_slept_steps_show_the_orchestration_alone():
    """Two points on Ray: the same steps, ideally in half the time; hosts have slept for all of them."""
    one, two = scale(Scenario.load(QUICKSTART), [1, 2], [40], rounds=2, step=0.002)
    assert one.steps == two.steps > 0
    assert two.ideal < one.ideal
    for found in (one, two):
        assert found.seconds >= found.ideal * 0.99
        assert found.round == pytest.approx(found.seconds / found.rounds)
        assert found.compute * found.actors * found.rounds >= 0.99 * found.steps * 0.002
        assert min(found.clock, found.reduce, found.evaluate) > 0
