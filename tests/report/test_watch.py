"""A run is followed to its end, whether it goes on, is resumed, is done, or was killed."""

import fcntl
import json
import shutil

import pytest

from fedactors.cli.main import main
from fedactors.errors import RunFolderError
from fedactors.report import watched_run
from fedactors.report.watch import follow, lines
from fedactors.run_files import files


@pytest.fixture
def going_on(finished, tmp_path):
    """Return a folder with the first rounds of a run, and the lines that are yet to come."""
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "summary.json").unlink()
    rows = (folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_bytes(b"".join(rows[:2]) + rows[2][:10])
    return folder, rows


def test_new_rows_are_shown_as_they_come_and_the_end_is_seen(going_on, finished):
    folder, rows = going_on
    acts = iter([
        lambda: (folder / "metrics.jsonl").write_bytes(b"".join(rows[:4])),
        lambda: (folder / "metrics.jsonl").write_bytes(b"".join(rows[:1])),  # resumed from an earlier checkpoint
        lambda: (folder / "metrics.jsonl").write_bytes(b"".join(rows)),
        lambda: shutil.copy(finished / "summary.json", folder),
    ])  # fmt: skip
    seen = [found.rounds for found in follow(folder, lambda seconds: next(acts)())]
    assert seen == [2, 4, 1, 6]


def test_a_run_that_was_killed_is_not_waited_for(going_on):
    folder, _ = going_on
    looks = []
    assert [run.rounds for run in follow(folder, looks.append)] == [2]
    assert len(looks) < 20


def test_a_run_that_is_silent_and_alive_is_waited_for(going_on, finished):
    folder, _ = going_on
    looks = []

    def pause(seconds):
        looks.append(seconds)
        if len(looks) == 50:
            shutil.copy(finished / "summary.json", folder)

    with (folder / "metrics.jsonl").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert [run.rounds for run in follow(folder, pause)] == [2]
    assert len(looks) == 50


def test_the_command_says_how_a_finished_run_went(finished, capsys):
    assert main(["watch", str(finished)]) == 0
    said, summary = capsys.readouterr().out, json.loads((finished / "summary.json").read_text())
    assert "tiny: round 6 of 6" in said
    assert f"accuracy   {summary['final']['accuracy']:.4f}" in said
    for outcome, count in summary["outcomes"].items():
        assert (f"{outcome} {count} (" in said) == (count > 0)
    assert "ended      all rounds done" in said
    assert "faults     1 met and mended" in said


def test_a_replay_has_no_accuracy_to_show(replayed):
    run = next(follow(replayed))
    assert not any("accuracy" in line for line in lines(replayed, run))


def test_what_is_no_run_is_refused(tmp_path, capsys):
    with pytest.raises(RunFolderError, match="not a run folder"):
        next(follow(tmp_path))
    assert main(["watch", str(tmp_path)]) == 2


def test_damage_is_named(going_on):
    folder, rows = going_on
    (folder / "metrics.jsonl").write_bytes(rows[0] + b"{oops\n" + rows[1])
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl, line 2: damaged"):
        next(follow(folder))


WRONG = {
    "outcomes": ([], "outcomes: found []"),
    "bytes_up": ("x", "bytes_up: found 'x'"),
    "bytes_down": (-1, "bytes_down: found -1"),
    "joules": (float("inf"), "joules: found inf"),
    "wall_seconds": (None, "wall_seconds: found None"),
    "virtual_seconds": (float("nan"), "virtual_seconds: found nan"),
    "accuracy": ({}, "accuracy: found {}"),
}


@pytest.mark.parametrize("figure", WRONG)
def test_a_figure_that_is_no_number_is_named_with_its_line(figure, finished, tmp_path, capsys):
    folder = shutil.copytree(finished, tmp_path / "run")
    value, words = WRONG[figure]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rows[1][figure] = value
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["watch", str(folder)]) == 2
    said = capsys.readouterr().err
    assert f"metrics.jsonl, line 2: {words} (accepted: " in said
    assert said.count("\n") == 1


def test_measures_that_cannot_be_drawn_and_words_that_steer_a_terminal_are_left_out(finished, tmp_path, capsys):
    folder = shutil.copytree(finished, tmp_path / "run")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rows[-1]["accuracy"] = float("nan")
    rows[0]["train_loss"] = 1e308
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "scenario.yaml").write_text('name: "a\\e]0;title\\a"\nserver: [3]\n')
    assert main(["watch", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("a\\x1b]0;title\\x07: round 6\n")
    assert f"accuracy   {rows[-2]['accuracy']:.4f}" in said


@pytest.fixture
def parsed(monkeypatch):
    """Return a list to which every line that is parsed is added."""
    found = []

    def noted(path, text, line=None):
        found.append(line)
        return files.json_of(path, text, line)

    monkeypatch.setattr(watched_run, "json_of", noted)
    return found


def test_each_line_is_read_once(going_on, parsed):
    """A line that is half there is left for the next look; a row that was read is not read again."""
    folder, rows = going_on
    metrics = folder / "metrics.jsonl"
    run = watched_run.WatchedRun(metrics)
    assert run.look()
    assert not run.look()
    assert parsed == [1, 2]
    metrics.write_bytes(b"".join(rows[:5]))
    assert run.look()
    assert parsed == [1, 2, 3, 4, 5]
    once = watched_run.WatchedRun(metrics)
    once.look()
    assert lines(folder, run) == lines(folder, once)


def test_a_file_that_does_not_go_on_is_read_from_the_start(going_on, finished, parsed):
    """Resumed from a checkpoint and as long as before, but with other times in it; or another file of that name."""
    folder, rows = going_on
    metrics = folder / "metrics.jsonl"
    run = watched_run.WatchedRun(metrics)
    metrics.write_bytes(b"".join(rows[:4]))
    run.look()
    longer = json.dumps({**json.loads(rows[3]), "wall_seconds": 12345.678901}).encode() + b"\n"
    metrics.write_bytes(b"".join(rows[:3]) + longer + rows[4])
    assert run.look()
    assert parsed == [1, 2, 3, 4, 1, 2, 3, 4, 5]
    assert run.rounds == 5
    (folder / "other").write_bytes(b"".join(rows[:5]))
    (folder / "other").replace(metrics)
    assert run.look()
    assert parsed[9:] == [1, 2, 3, 4, 5]
