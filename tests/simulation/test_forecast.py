"""The forecast of `check`: how speeds and rounds become seconds, and that every kind of scenario can be timed."""

from itertools import islice
from pathlib import Path

import pytest
import torch

from fedactors.cli.main import main
from fedactors.scenario import Scenario
from fedactors.simulation.checks.calibration import Speeds, measure
from fedactors.simulation.checks.forecast import forecast, round_seconds, start_seconds
from fedactors.simulation.prepare import prepare
from fedactors.simulation.tasks import task_of

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"


def prepared_with(*changes):
    return prepare(Scenario.load(QUICKSTART, changes))


def first_task(prepared):
    return task_of(next(prepared.clock()), prepared, "cpu", last=False)


def test_a_round_is_its_longest_path_or_all_its_work():
    prepared = prepared_with("server.evaluate_every=1")
    task = first_task(prepared)
    steps = sum(chunk.cost for chunk in task.chunks)
    free = Speeds(step=1.0, central=0.0, evaluated=0.0, sample=0.0)
    alone = round_seconds(task, prepared, free, 1, 1, "local")
    assert alone == pytest.approx(steps, rel=1e-3)
    assert steps / 2 <= round_seconds(task, prepared, free, 2, 2, "ray") < 0.75 * steps
    evaluated = Speeds(step=1.0, central=10.0, evaluated=1.0, sample=0.0)
    assert round_seconds(task, prepared, evaluated, 1, 1, "local") == pytest.approx(
        steps + 10 + prepared.info.test_size, rel=1e-3
    )
    # with a core to spare, the test set is examined while the next round is trained
    assert round_seconds(task, prepared, evaluated._replace(evaluated=0.1), 1, 4, "ray") == pytest.approx(
        steps + 10, rel=1e-3
    )


@pytest.mark.parametrize(
    "change",
    [
        (),
        ("server.algorithm=scaffold", "server.participation=uniform"),
        ("server.algorithm=fsl", "server.data={name: iid, samples: 20}", "server.participation=uniform"),
        ("task.model={name: mlp, hidden: [16], dropout: 0.5}",),
        ('server.personal=["1.*"]', "server.alternate={steps: 2}", "server.downlink=[{name: topk, share: 0.1}]"),
        ("server.aggregation=median", "server.participation=uniform", "population.0.attack=sign-flip"),
    ],
    ids=["fedavg", "scaffold", "fsl", "dropout", "personal", "attacked"],
)
def test_every_engine_can_be_timed(change):
    prepared = prepared_with(*change)
    tasks = [task_of(plan, prepared, "cpu", last=False) for plan in islice(prepared.clock(), 2)]
    speeds = measure(prepared, tasks, "cpu", 1)
    assert speeds.step > 0
    assert speeds.evaluated > 0
    assert (speeds.central > 0) == any("fsl" in word for word in change)


def test_rounds_that_do_not_come_are_not_counted():
    forecast_of = forecast(prepared_with("server.rounds=1000000", "server.until=60s"), "local")
    assert forecast_of["wall_seconds"] < 60


def test_a_forecast_leaves_the_threads_of_torch_as_they_were():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        forecast(prepared_with("server.rounds=1"), "local", rounds=1)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_check_says_what_it_will_take(capsys):
    assert main(["check", str(QUICKSTART), "--forecast", "--fleet", "local"]) == 0
    assert "in this process" in capsys.readouterr().out
    assert main(["check", str(QUICKSTART)]) == 0
    assert "forecast   not made; --forecast tells" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("--fleet", "local"), ("--actors", "2")])
def test_where_a_run_is_to_be_is_asked_of_forecasts_alone(words, capsys):
    assert main(["check", str(QUICKSTART), *words]) == 2
    assert "accepted: with --forecast" in capsys.readouterr().err


def test_the_start_takes_as_long_as_torch_and_no_less_for_more_processes_than_cores():
    assert start_seconds("local", 1, 2, 3.0) == 4.5
    assert start_seconds("ray", 2, 2, 3.0) == 18.0  # services and driver 6, four processes on two cores 12
    assert start_seconds("ray", 2, 16, 3.0) == 12.0
    assert start_seconds("ray", 14, 16, 1.0) == 4.0
