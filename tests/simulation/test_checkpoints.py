"""A run that was stopped goes on with the same bits, and a checkpoint that is damaged or not its own is refused."""

import json
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

import fedactors
from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.errors import RunFolderError
from fedactors.simulation.progress import Silent
from fedactors.simulation.record.digests import WALL
from fedactors.simulation.record.run_folder import RunFolder
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART
from tests.noting import Noting

ROUNDS = 7


def scenario_of(*more):
    small = ["server.cohort=12", "server.local.epochs=1"]
    return Scenario.load(QUICKSTART, [f"server.rounds={ROUNDS}", "cluster.checkpoint_every=2", *small, *more])


def run(scenario, folder, **more):
    return fedactors.run(scenario, folder, fleet="local", report=False, **more)


def rows(folder):
    return timeless(list(map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())))


def timeless(value):
    """Return plain data without what the wall clock said."""
    if isinstance(value, list):
        return [timeless(one) for one in value]
    return {k: timeless(v) for k, v in value.items() if k not in WALL} if isinstance(value, dict) else value


def assert_same(one, other):
    """Assert that two run folders agree in every bit that is not the wall clock's."""
    assert rows(one) == rows(other)
    for table in ("plans.parquet", "orders.parquet"):
        assert pq.read_table(one / table).equals(pq.read_table(other / table)), table
    first, second = (json.loads((folder / "summary.json").read_text()) for folder in (one, other))
    assert timeless(first) == timeless(second)
    states = (checkpoint.load(folder).saved() for folder in (one, other))
    for first, second in zip(*map(tensors, states), strict=True):
        assert first[0] == second[0]
        assert np.array_equal(first[1], second[1])


def tensors(saved):
    for version, state in [(saved.version, saved.state), *saved.older.items(), *saved.kept]:
        yield from (((version, name), state[name]) for name in sorted(state))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Return a folder of a run that was stopped after 4 rounds, to be copied."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    run(scenario_of(), folder, stop_after=4)
    return folder


@pytest.fixture
def broken(stopped, tmp_path):
    return shutil.copytree(stopped, tmp_path / "broken")


BUFFERED = (
    "server.timing={name: fedbuff, concurrency: 10, buffer: 4}",
    "server.deadline=none",
    "server.cohort=all",
    "server.participation=samples",
)
CASES = {
    "fedavg": (4, ["server.evaluate_every=3"]),
    "one": (1, ["server.algorithm=scaffold"]),
    "all but one": (ROUNDS - 1, ["server.algorithm=scaffold"]),
    "all": (ROUNDS, ["server.algorithm=scaffold"]),
    "feddyn": (4, ["server.algorithm=feddyn"]),
    "buffered": (4, BUFFERED),
    "buffered scaffold": (5, [*BUFFERED, "server.algorithm=scaffold"]),
}


@pytest.mark.parametrize(("stop", "changes"), CASES.values(), ids=CASES)
def test_a_run_that_was_stopped_comes_out_as_one_that_was_not(stop, changes, tmp_path):
    scenario = scenario_of(*changes)
    run(scenario, tmp_path / "whole")
    summary = run(scenario, tmp_path / "broken", stop_after=stop).summary
    assert summary["plans"] == stop
    cut = f"stopped after {stop} rounds, as asked"
    assert summary["ended_because"] == ("all rounds done" if stop == ROUNDS else cut)
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")


def test_versions_that_later_updates_start_from_are_saved_too(tmp_path):
    run(scenario_of(*BUFFERED), tmp_path / "run", stop_after=4)
    saved = checkpoint.load(tmp_path / "run").saved()
    assert saved.version == 4
    assert saved.older
    assert all(set(state) == {"x"} for state in saved.older.values())


def test_it_can_be_stopped_again_and_again(tmp_path):
    scenario = scenario_of("server.algorithm=scaffold")
    run(scenario, tmp_path / "whole")
    run(scenario, tmp_path / "broken", stop_after=0)
    for stop in (1, 2, 5, None):
        resume(tmp_path / "broken", fleet="local", report=False, stop_after=stop)
    assert_same(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("asked", [0, 2])
def test_a_run_that_has_done_more_rounds_than_it_is_to_do_goes_no_further(broken, asked):
    summary = resume(broken, fleet="local", report=False, stop_after=asked).summary
    assert (summary["plans"], summary["ended_because"]) == (4, "stopped after 4 rounds, as asked")


class Interrupting(Silent):
    def __init__(self, at):
        self.at, self.notes = at, []

    def round(self, row):
        if row["round"] == self.at:
            raise KeyboardInterrupt

    def note(self, text):
        self.notes.append(text)


def test_an_interrupted_run_has_saved_its_last_round_and_says_how_to_go_on(tmp_path):
    scenario = scenario_of("cluster.checkpoint_every=none")
    shown = Interrupting(3)
    with pytest.raises(KeyboardInterrupt):
        run(scenario, tmp_path / "broken", progress=shown)
    assert shown.notes == [f"`fedactors resume {tmp_path / 'broken'}` goes on after round 3"]
    assert json.loads((tmp_path / "broken/summary.json").read_text())["ended_because"] == "interrupted"
    assert checkpoint.load(tmp_path / "broken").plans == 3
    run(scenario, tmp_path / "whole")
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")


def test_the_last_two_checkpoints_stay(broken):
    assert [path.name for path in checkpoint.checkpoints(broken)] == ["round-00000004", "round-00000002"]
    assert checkpoint.load(broken, previous=True).plans == 2


@pytest.mark.parametrize("name", ["checkpoint.json", "server.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_a_damaged_part_is_named_and_the_one_before_is_used_when_asked(broken, tmp_path, name, damage, capsys):
    part = checkpoint.checkpoints(broken)[0] / name
    whole = part.read_bytes()
    middle = len(whole) // 2
    part.write_bytes(
        whole[:middle] if damage == "cut" else whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    )
    if damage == "missing":
        part.unlink()
    assert main(["resume", str(broken), "--fleet", "local"]) == 2
    said = capsys.readouterr().err
    assert re.match(rf"fedactors: {part}(, line \d+)?: ", said)
    assert "--previous" in said
    resume(broken, fleet="local", report=False, previous=True)
    run(scenario_of(), tmp_path / "whole")
    assert_same(tmp_path / "whole", broken)


def test_versions_are_in_one_order_whether_they_are_numbers_or_texts(tmp_path):
    """In JSON 2 and 10 are "2" and "10", which sort the other way round."""
    aside = {2: [3], 10: [4, 5]}
    checkpoint.save(tmp_path, checkpoint.Checkpoint(11, {}, ".", {}, "", {}, quarantined=aside), None)
    assert checkpoint.load(tmp_path).quarantined == aside


def test_a_damaged_file_of_client_states_is_named(tmp_path):
    run(scenario_of("server.algorithm=scaffold"), tmp_path / "run", stop_after=2)
    shard = max((tmp_path / "run/checkpoint/round-00000002").glob("clients-*"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    with pytest.raises(RunFolderError, match=rf"{shard.name}: damaged: its checksum"):
        resume(tmp_path / "run", fleet="local")


def test_a_foreign_or_newer_checkpoint_is_refused(broken):
    header = checkpoint.checkpoints(broken)[0] / "checkpoint.json"
    known = json.loads(header.read_text())
    header.write_text(json.dumps(known | {"format": "orbax"}))
    with pytest.raises(RunFolderError, match="not a checkpoint of fedactors"):
        resume(broken, fleet="local")
    header.write_text(json.dumps(known | {"version": 2}))
    with pytest.raises(RunFolderError, match=r"version 2 of the format \(accepted: 1\)"):
        resume(broken, fleet="local")
    escaping = {**known, "files": {"../../evil": {"bytes": 1, "sha256": ""}}}
    del escaping["sha256"]
    header.write_text(json.dumps(escaping | {"sha256": checkpoint._digest_of(escaping)}))
    with pytest.raises(RunFolderError, match="outside its folder"):
        resume(broken, fleet="local")


def test_a_changed_scenario_is_refused_and_the_differences_are_listed(broken, capsys):
    kept = yaml.safe_load((broken / "scenario.yaml").read_text())
    kept["server"]["schedule"]["lr"], kept["seed"] = 0.2, 8
    (broken / "scenario.yaml").write_text(yaml.safe_dump(kept))
    before = (broken / "metrics.jsonl").read_bytes()
    assert main(["resume", str(broken), "--fleet", "local", "--set", "server.rounds=9"]) == 2
    said = capsys.readouterr().err
    for line in ("seed: 7, now 8", "server.schedule.lr: 0.1, now 0.2", f"server.rounds: {ROUNDS}, now 9"):
        assert f"  {line}\n" in said
    assert f"with something else changed: fedactors branch {broken} --at round=N --set …)" in said
    assert (broken / "metrics.jsonl").read_bytes() == before


def test_the_cluster_may_change(broken, tmp_path):
    resume(broken, ["cluster.checkpoint_every=none", "cluster.cpus_per_actor=0.5"], fleet="local", report=False)
    run(scenario_of(), tmp_path / "whole")
    assert_same(tmp_path / "whole", broken)


def test_another_device_type_other_data_and_other_recordings_are_refused(broken, tmp_path):
    with pytest.raises(RunFolderError, match=r"computed on cpu so far, not on cuda \(clients\)"):
        resume(broken, ["cluster.gpus_per_actor=1"], fleet="local")
    data = checkpoint.load(broken).data
    for other in (f"{data[:-1]}-", data[-64:]):  # of all samples; of some, as in older checkpoints
        change_header(broken, data=other)
        with pytest.raises(RunFolderError, match="the data set is not the one"):
            resume(broken, fleet="local")
    change_header(broken, data=data)
    (tmp_path / "scenarios").mkdir()
    moved = shutil.copytree(QUICKSTART.parents[1] / "traces", tmp_path / "traces") / "campus.csv"
    moved.write_text("\n".join(moved.read_text().splitlines()[:-40]) + "\n")
    change_header(broken, folder=str(tmp_path / "scenarios"))
    with pytest.raises(RunFolderError, match="the clock gives other plans"):
        resume(broken, fleet="local")


def change_header(run_folder, **changes):
    """Change parts of the header of the last checkpoint, and sign it again."""
    header = checkpoint.checkpoints(run_folder)[0] / "checkpoint.json"
    known = json.loads(header.read_text()) | changes
    del known["sha256"]
    header.write_text(json.dumps(known | {"sha256": checkpoint._digest_of(known)}))


def test_other_programs_and_another_processor_are_told_and_the_run_goes_on(broken):
    now = checkpoint.load(broken).made_with
    processor = "vendor" if now["bits"] == "portable" else "processor"
    others = {"torch": "1.0", processor: "Nobody"}
    change_header(broken, made_with={**now, **others})
    shown = Noting()
    assert resume(broken, fleet="local", report=False, progress=shown).summary["plans"] == ROUNDS
    assert shown.notes == [
        f'{broken}: not as before, bits may differ: {name}: "{was}", now "{now[name]}"' for name, was in others.items()
    ]


def test_a_folder_whose_lines_are_not_those_counted_is_refused(broken):
    lines = (broken / "metrics.jsonl").read_text()
    (broken / "metrics.jsonl").write_text(lines.replace('"asked": 12', '"asked": 11', 1))
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl: damaged: not the 4 lines"):
        resume(broken, fleet="local")


def test_folders_without_a_checkpoint_are_refused(tmp_path, capsys):
    for folder, said in ((tmp_path, "holds no checkpoint"), (tmp_path / "absent", "nothing there")):
        assert main(["resume", str(folder)]) == 2
        assert said in capsys.readouterr().err


def test_of_two_runs_in_one_folder_the_second_is_refused(broken):
    with (
        RunFolder(broken, scenario_of(), (broken / "metrics.jsonl").stat().st_size),
        pytest.raises(RunFolderError, match="is writing to this folder"),
    ):
        resume(broken, fleet="local")


def test_a_torn_line_and_rounds_after_the_checkpoint_are_cut_off(broken, tmp_path):
    with (broken / "metrics.jsonl").open("a") as file:
        file.write('{"round": 5, "virtual_seconds": 25.0}\n{"rou')
    (broken / "faults.jsonl").write_text('{"round": 2, "cause": "ActorDiedError"}\n{"ro')
    resume(broken, fleet="local", report=False)
    assert (broken / "faults.jsonl").read_text() == '{"round": 2, "cause": "ActorDiedError"}\n'
    run(scenario_of(), tmp_path / "whole")
    assert_same(tmp_path / "whole", broken)
