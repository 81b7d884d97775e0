"""Two studies that have runs in common, at one time: a run that one of them writes is left alone by the other."""

from pathlib import Path

import pytest

from fedactors.errors import ClusterError, RunFolderError
from fedactors.packaged import file_of
from fedactors.scenario.model import Scenario
from fedactors.simulation.record.run_folder import RunFolder
from fedactors.simulation.runner import run
from fedactors.study.run_folders import folder_of, fresh, replay_folder
from fedactors.study.runs import StudyRun, finished, on_cluster


def held_by_another(work, folder):
    """Return what a study says of a run in a folder that is written to; the folder stays, and nothing is beside it."""
    metrics = folder / "metrics.jsonl"
    past = metrics.stat().st_size if metrics.exists() else None
    with RunFolder(folder, Scenario.load(work.scenario, work.overrides), past):
        with pytest.raises(RunFolderError, match="is writing to this folder") as told:
            finished(work)
        assert list(folder.parent.iterdir()) == [folder]
        assert (folder / "writer.json").exists()
    return str(told.value)


@pytest.mark.parametrize("rounds", [0, 2], ids=["before its first checkpoint", "after a checkpoint"])
def test_a_run_of_another_study_is_not_set_aside(rounds, scenario, tmp_path):
    work = StudyRun(scenario, ("server.rounds=3",), tmp_path)
    loaded = Scenario.load(scenario, work.overrides)
    folder = folder_of(loaded, tmp_path)
    if rounds:
        run(loaded, folder, fleet="local", report=False, stop_after=rounds)
    assert str(folder) in held_by_another(work, folder)


def test_a_replay_of_another_study_is_not_set_aside(scenario, tmp_path):
    work = StudyRun(scenario, ("server.rounds=3",), tmp_path, clock_only=True)
    folder = replay_folder(folder_of(Scenario.load(scenario, work.overrides), tmp_path))
    assert str(folder) in held_by_another(work, folder)


def test_a_run_of_another_study_is_not_computed_on_a_cluster(scenario, tmp_path):
    """Port 1 is nobody's: it is refused before the cluster is looked for."""
    work = StudyRun(scenario, ("server.rounds=3",), tmp_path)
    loaded = Scenario.load(scenario, work.overrides)
    with (
        RunFolder(folder_of(loaded, tmp_path), loaded),
        pytest.raises(RunFolderError, match="is writing to this folder"),
    ):
        list(on_cluster([work], "127.0.0.1:1"))


def test_a_folder_without_a_writer_is_set_aside(tmp_path, capsys):
    folder = tmp_path / "run-1"
    folder.mkdir()
    (folder / "metrics.jsonl").touch()
    assert fresh(folder, "run-1: damaged") == folder
    assert capsys.readouterr().err == "run-1: damaged; set aside as run-1.unfinished-1, and run from the beginning\n"
    assert [path.name for path in tmp_path.iterdir()] == ["run-1.unfinished-1"]


def test_a_cluster_gets_the_file_of_a_scenario_that_is_named(tmp_path, monkeypatch):
    asked = []

    def scatter(function, calls, address):
        asked.extend(calls)
        yield 0, {"summary.json": b"{}"}

    monkeypatch.setattr("fedactors.fleet.ray.scatter.scatter", scatter)
    list(on_cluster([StudyRun(Path("quickstart"), ("server.rounds=1",), tmp_path)], "auto"))
    assert [call.arguments for call in asked] == [(file_of("quickstart").resolve(), ("server.rounds=1",))]
    assert asked[0].arguments[0].is_file()


def test_runs_that_ended_on_a_cluster_stay_where_another_one_failed(scenario, tmp_path, monkeypatch):
    """Of three runs the third ends first, then the first; the second fails."""
    work = [StudyRun(scenario, ("server.rounds=1", f"seed={seed}"), tmp_path) for seed in (1, 2, 3)]
    folders = [folder_of(Scenario.load(one.scenario, one.overrides), tmp_path) for one in work]

    def scatter(function, calls, address):
        yield 2, {"summary.json": b"{}"}
        yield 0, {"summary.json": b"{}"}
        raise ClusterError("run 2")

    monkeypatch.setattr("fedactors.fleet.ray.scatter.scatter", scatter)
    given = on_cluster(work, "auto")
    assert next(given) == folders[0]
    with pytest.raises(ClusterError):
        next(given)
    assert [(folder / "summary.json").exists() for folder in folders] == [True, False, True]
