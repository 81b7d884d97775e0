"""Run folders whose content was changed, with checksums that fit: types, names and shapes are compared all the same."""

import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from fedactors.cli.main import main
from tests.simulation.damage import sign
from tests.simulation.test_checkpoints import run, scenario_of

COMMANDS = {
    "resume": ("--fleet", "local"),
    "branch": ("--at", "round=3", "--fleet", "local", "--out", "{out}"),
}
CHANGES = {
    "type": lambda name, value: (name, value.astype(np.float64)),
    "integers": lambda name, value: (name, value.astype(np.int32)),
    "name": lambda name, value: (f"{name}y", value),
    "shape": lambda name, value: (name, value[:-1].copy()),
    "dimensions": lambda name, value: (name, value.reshape(1, -1)),
}
COLUMNS = {"bytes": lambda rows: pa.array([b"x"] * rows), "null": pa.nulls, "text": lambda rows: pa.array(["x"] * rows)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    run(scenario_of("server.rounds=4", "server.cohort=2", "task.model=logistic"), path, stop_after=3)
    return path


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_tensors_of_a_checkpoint_that_are_not_the_scenarios_are_refused(command, change, whole, tmp_path, capsys):
    broken = shutil.copytree(whole, tmp_path / "broken")
    for folder in sorted((broken / "checkpoint").glob("round-*")):
        tensors = load_file(folder / "server.safetensors")
        save_file(dict(CHANGES[change](*one) for one in tensors.items()), folder / "server.safetensors")
        sign(folder)
    before = (broken / "metrics.jsonl").read_bytes()
    words = [word.format(out=tmp_path / "out") for word in COMMANDS[command]]
    assert main([command, str(broken), *words]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert message.startswith(f"fedactors: {broken}/checkpoint/round-")
    assert "server.safetensors" in message
    assert (broken / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("command", ["diff", "timeline"])
def test_a_column_of_another_type_is_told(command, column, whole, tmp_path, capsys):
    for number, name in enumerate(pq.read_table(whole / "orders.parquet").column_names):
        broken = shutil.copytree(whole, tmp_path / f"broken{number}")
        table = pq.read_table(broken / "orders.parquet")
        if table.column(name).type == (changed := COLUMNS[column](len(table))).type:
            continue
        pq.write_table(table.set_column(number, name, changed), broken / "orders.parquet")
        code = main([command, str(broken), *([str(whole)] if command == "diff" else [])])
        told = capsys.readouterr()
        assert code == (2 if told.err else 0), name
        assert told.err.count("\n") <= 1
        assert "orders.parquet" in told.err or name in told.out or command == "timeline", (name, told)


@pytest.mark.parametrize("value", ["[3]", '"x"', "null", "true", "-1", "NaN"])
@pytest.mark.parametrize("command", COMMANDS)
def test_real_time_that_is_no_number_is_refused_though_no_digest_covers_it(command, value, whole, tmp_path, capsys):
    broken = shutil.copytree(whole, tmp_path / "broken")
    lines = (broken / "metrics.jsonl").read_text()
    changed = re.sub(
        r'"wall_seconds": ?[0-9.]+', lambda found: '"wall_seconds":' + value.ljust(len(found[0]) - 15), lines
    )
    assert len(changed) == len(lines)
    (broken / "metrics.jsonl").write_text(changed)
    words = [word.replace("round=3", "round=1").format(out=tmp_path / "out") for word in COMMANDS[command]]
    assert main([command, str(broken), *words]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert message.startswith(f"fedactors: {broken}/metrics.jsonl, line 1: ")
