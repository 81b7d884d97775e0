"""`check` looks for the files that a scenario names before it imports the user's model."""

import pytest

from fedactors.cli.main import main

NET = "raise RuntimeError('imported')\n"
SCENARIO = """
name: named
seed: 1
task: {{dataset: {data}, model: {{name: torch, factory: "net.py:Net"}}, partition: iid}}
population:
  - {{name: phones, count: 4, {recording}}}
server: {{rounds: 2, cohort: 2}}
"""
RECORDINGS = [
    "availability: {name: trace, path: flash/missing.json}",
    "availability: {name: process, behaviour: diurnal, within: {name: trace, path: flash/missing.json}}",
    "network: {down: 1 MB/s, up: 1 MB/s, latency: 1ms, trace: {up: {path: flash/missing.json}}}",
    "compute: {table: {path: flash/missing.json}}",
]


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDACTORS_TRACES", raising=False)
    monkeypatch.setenv("FEDACTORS_DATA", str(tmp_path / "nothing"))
    (tmp_path / "net.py").write_text(NET)

    def written(**parts):
        path = tmp_path / "named.yaml"
        path.write_text(SCENARIO.format(**{"data": "digits", "recording": "arrive: 1s", **parts}))
        return str(path)

    return written


@pytest.mark.parametrize("recording", RECORDINGS, ids=["trace", "within", "links", "table"])
def test_a_recording_is_looked_for_first(scenario, capsys, recording):
    assert main(["check", scenario(recording=recording)]) == 2
    said = capsys.readouterr().err
    assert "named.yaml: no trace at " in said
    assert "set FEDACTORS_TRACES to the folder that holds flash/)" in said
    assert "imported" not in said


def test_data_are_looked_for_first(scenario, capsys):
    assert main(["check", scenario(data="mnist")]) == 2
    said = capsys.readouterr().err
    assert "named.yaml: " in said
    assert "fedactors data fetch mnist" in said
    assert "imported" not in said


def test_with_all_files_there_the_model_is_imported(scenario, capsys):
    assert main(["check", scenario()]) == 2
    assert "imported" in capsys.readouterr().err
