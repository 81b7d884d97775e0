"""Runs that tasks of a cluster compute: their folders come back whole, but for checkpoints that nobody needs."""

from pathlib import Path

from fedactors.cli.main import main
from fedactors.study import runs
from fedactors.study.run_folders import complete
from fedactors.study.runs import StudyRun, on_cluster, packed, unpack


def test_a_run_comes_back_without_checkpoints(scenario, tmp_path, capsys):
    files = packed(Path(scenario), ("server.rounds=2",))
    assert not [name for name in files if "round-" in name]
    assert {"checkpoint/model.safetensors", "summary.json", "plans.parquet", "metrics.jsonl"} <= {*files}
    unpack(files, tmp_path / "run")
    assert complete(tmp_path / "run")
    assert main(["audit", str(tmp_path / "run")]) == 0
    assert "the records are sound" in capsys.readouterr().out


def test_results_are_kept_as_they_come_and_told_in_order(scenario, tmp_path, monkeypatch):
    """The second run is done first: its folder is there before the first one is told."""

    def backwards(function, calls, address):
        for place in reversed(range(len(calls))):
            yield place, function(*calls[place].arguments)

    monkeypatch.setattr("fedactors.fleet.ray.scatter.scatter", backwards)
    work = [StudyRun(Path(scenario), (f"server.rounds={rounds}",), tmp_path) for rounds in (1, 2, 3)]
    there = []
    for folder in on_cluster(work, "auto"):
        there.append(sum(complete(one) for one in tmp_path.glob("run-*")))
        assert complete(folder)
    assert there == [3, 3, 3]
    monkeypatch.setattr(runs, "packed", None)  # all are there now
    assert len(list(on_cluster(work, "auto"))) == 3
