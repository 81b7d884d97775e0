"""Runs of a study that are half done: they are gone on with, or set aside for a reason that is said, and never lost."""

import json
import resource
import shutil
import signal
from dataclasses import replace
from importlib.metadata import version

import pytest
import yaml

from fedactors import Scenario, run
from fedactors.errors import FolderAccessError
from fedactors.run_files.records import read
from fedactors.simulation.resume import checkpoint
from fedactors.study.comparison import compare
from fedactors.study.comparison_tables import cautions
from fedactors.study.run_folders import complete, folder_of, set_aside_if_damaged
from fedactors.study.runs import StudyRun, finished
from fedactors.version import ENGINE


@pytest.fixture
def full_disk():
    """Let the system take no byte of any file, as a full disk does, until it is called again."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda full: resource.setrlimit(resource.RLIMIT_FSIZE, (0 if full else before[0], before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture
def half_done(scenario, tmp_path):
    """Return the work of a run of three rounds, and its folder, in which two are done."""
    work = StudyRun(scenario, ("server.rounds=3",), tmp_path)
    loaded = Scenario.load(scenario, work.overrides)
    folder = folder_of(loaded, tmp_path)
    run(loaded, folder, fleet="local", report=False, stop_after=2)
    return work, folder


def names(folder):
    return sorted(path.name for path in folder.parent.iterdir())


@pytest.mark.slow
def test_a_full_disk_takes_nothing_of_what_is_done(half_done, full_disk):
    work, folder = half_done
    full_disk(True)
    with pytest.raises(FolderAccessError, match="cannot be written: File too large"):
        finished(work)
    full_disk(False)
    assert names(folder) == [folder.name]
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2
    assert finished(work) == folder
    assert names(folder) == [folder.name]
    assert complete(folder)


def test_a_damaged_run_is_set_aside_and_the_reason_is_said(half_done, capsys):
    work, folder = half_done
    for path in (folder / "checkpoint").glob("round-*/server.safetensors"):
        path.write_bytes(b"\0" * path.stat().st_size)
    assert complete(finished(work))
    assert names(folder) == [folder.name, f"{folder.name}.unfinished-1"]
    said = capsys.readouterr().err
    assert "server.safetensors: damaged: its checksum does not fit" in said
    assert f"set aside as {folder.name}.unfinished-1" in said


def test_a_run_whose_last_checkpoint_is_damaged_is_gone_on_with_from_the_one_before(half_done, capsys):
    work, folder = half_done
    every = work._replace(overrides=(*work.overrides, "cluster.checkpoint_every=1"))
    whole = digests(finished(every))
    last, before = checkpoint.checkpoints(folder)
    (last / "server.safetensors").write_bytes(b"")
    (folder / "summary.json").unlink()
    assert complete(finished(every))
    assert names(folder) == [folder.name]
    assert "gone on with from the checkpoint before that" in capsys.readouterr().err
    assert (before.name, digests(folder)) == ("round-00000002", whole)


def digests(folder):
    return json.loads((folder / "summary.json").read_text())["digests"]


def test_a_run_that_was_computed_on_another_device_type_is_set_aside_and_the_reason_is_said(half_done, capsys):
    work, folder = half_done
    known = checkpoint.load(folder)
    said = json.loads(json.dumps(known.scenario)) | {"cluster": {**known.scenario["cluster"], "gpus_per_actor": 1.0}}
    cuda = replace(known, scenario=said, devices={**known.devices, "clients": "cuda"})
    checkpoint.save(folder, cuda, known.saved())
    (folder / "scenario.yaml").write_text(yaml.safe_dump(said))
    assert complete(finished(work))
    assert names(folder) == [folder.name, f"{folder.name}.unfinished-1"]
    assert "computed on cuda so far, not on cpu (clients)" in capsys.readouterr().err


def test_a_run_is_gone_on_with_on_the_cluster_that_is_asked_for_now(half_done):
    """Rounds 2 and 3 have checkpoints, and both stay, though the first two rounds were to have one in 25."""
    work, folder = half_done
    finished(work._replace(overrides=(*work.overrides, "cluster.checkpoint_every=1", "cluster.checkpoints_kept=5")))
    assert names(folder) == [folder.name]
    cluster = Scenario.load(folder / "scenario.yaml").cluster
    assert (cluster.checkpoint_every, cluster.checkpoints_kept) == (1, 5)
    assert [path.name for path in checkpoint.checkpoints(folder)][:2] == ["round-00000003", "round-00000002"]


@pytest.fixture
def compared(scenario, tmp_path):
    """Return a comparison of one run, and the folder of that."""
    words = {"vary": {"server.schedule.lr": [0.1]}, "seeds": 1, "overrides": ["server.rounds=2"], "jobs": 1}

    def again():
        return compare(scenario, **words, out=tmp_path)

    return again, again().rows[0].folder


def change(folder, **changes):
    summary = json.loads((folder / "summary.json").read_text())
    summary["made_with"] |= changes
    (folder / "summary.json").write_text(json.dumps(summary))


def test_a_run_of_another_engine_is_played_again_and_other_programs_are_said(compared, capsys):
    again, folder = compared
    change(folder, engine="1")
    assert again().rows[0].records.summary["made_with"]["engine"] == ENGINE
    assert names(folder) == [folder.name, f"{folder.name}.unfinished-1"]
    assert f"made with engine 1, now {ENGINE}; set aside as" in capsys.readouterr().err
    other = folder.rename(folder.with_name("other"))
    found = again()
    change(other, torch="1.0")
    both = replace(found, variants={found.baseline: found.rows, "b": [replace(found.rows[0], records=read(other))]})
    said = next(line for line in cautions(both) if "unlike programs" in line)
    assert said.endswith(f"bits may differ: torch 1.0 and {version('torch')}.")
    assert not any("unlike programs" in line for line in cautions(found))


def test_a_complete_run_whose_files_are_gone_or_cut_is_set_aside(compared, capsys):
    again, folder = compared
    figures = measured(again())
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    harm = {
        "metrics.jsonl": [None, "", lines[0], lines[0] + lines[1][:40]],
        "scenario.yaml": [None, ""],
        "plans.parquet": [None],
        "orders.parquet": [None],
    }
    kept = shutil.copytree(folder, folder.parent.with_name("kept"))
    for name, contents in harm.items():
        for content in contents:
            (folder / name).unlink()
            if content is not None:
                (folder / name).write_text(content)
            set_aside_if_damaged(folder)
            assert f"{folder / name}: " in capsys.readouterr().err
            assert not folder.exists()
            shutil.copytree(kept, folder)
    (folder / "metrics.jsonl").write_text(lines[0])
    assert measured(again()) == figures


def measured(found):
    """Return the figures of a comparison's runs without what the wall clock said."""
    return [{name: value for name, value in one.items() if name != "wall"} for one in found.figures(found.baseline)]


@pytest.mark.parametrize("content", ["", "[]"])
def test_a_summary_that_is_damaged_is_made_again_from_the_checkpoint(half_done, content):
    work, folder = half_done
    finished(work)
    (folder / "summary.json").write_text(content)
    assert not complete(folder)
    assert complete(finished(work))
    assert names(folder) == [folder.name]
