"""What Ray says of its own troubles: one line of ours for the reader, the whole text in the run folder."""

import contextlib
import json
import os
import subprocess
import sys

import psutil
import pytest
import ray
import yaml

from fedactors.cli.main import main
from fedactors.errors import FleetError
from fedactors.fleet.ray import ray_messages
from fedactors.scenario import Scenario
from fedactors.simulation.runner import run
from tests.fleet.conftest import QUICKSTART
from tests.fleet.test_ray import wait_until
from tests.simulation.test_checkpoints import assert_same
from tests.test_own_plugins import BASE, HEAD

ROUNDS = ("server.rounds=150", "cluster.checkpoint_every=1", "server.local.epochs=1")


def test_what_ray_prints_is_kept_and_bounded(capsys):
    ray_messages.show_messages()  # a fleet of another test may still keep them
    before = ray._private.worker.print_to_stdstream
    ray_messages.keep_messages()
    try:
        for number in range(200):
            data = {"lines": [f"{number}", "x" * 100_000], "pid": "raylet", "is_err": False}
            ray._private.worker.print_to_stdstream(data, ignore_prefix=False)
        found = ray_messages.take_messages()
    finally:
        ray_messages.show_messages()
    assert ray._private.worker.print_to_stdstream is before
    assert not capsys.readouterr().out
    assert (len(found), found[-1][:4], max(map(len, found))) == (100, "199\n", 50_000)
    assert not ray_messages.take_messages()


@contextlib.contextmanager
def started(folder, said):
    """Start a run as users do, and yield its process when some rounds are done; its messages go to the file `said`."""
    options = [part for change in ROUNDS for part in ("--set", change)]
    command = [sys.executable, "-m", "fedactors", "run", str(QUICKSTART), *options, "--actors", "1"]
    with said.open("w") as file:  # no pipe: services of Ray that outlive the run would hold it open
        process = psutil.Popen([*command, "--out", str(folder)], stderr=file, stdout=subprocess.DEVNULL)
    metrics = folder / "metrics.jsonl"
    try:
        wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 2, seconds=240)
        yield process
        process.wait(timeout=240)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def assert_as_if_nothing_had_been(folder, tmp_path):
    run(Scenario.load(QUICKSTART, ROUNDS), tmp_path / "whole", fleet="local", report=False)
    assert_same(tmp_path / "whole", folder)


@pytest.mark.slow
@pytest.mark.parametrize("service", ["raylet/raylet", "gcs_server"])
def test_the_end_of_a_service_of_ray_is_one_message_and_resume_one_command(service, tmp_path, capfd):
    folder, said = tmp_path / "run", tmp_path / "said"
    with started(folder, said) as process:
        (victim,) = [child for child in process.children() if service in " ".join(child.cmdline())[:300]]
        victim.kill()
    assert process.returncode == 1
    lines = said.read_text().splitlines()
    assert len(lines) < 12, said.read_text()
    name = service.partition("/")[0]
    (message,) = [line for line in lines if "on this machine ended" in line]
    assert message.startswith(
        f"fedactors: FleetError: Ray's {name} on this machine ended: killed, or out of memory; its logs are in /"
    )
    assert os.listdir(message.rpartition(" ")[2])
    assert any(line.startswith(f"`fedactors resume {folder}` goes on after round") for line in lines)
    assert main(["resume", str(folder), "--actors", "1"]) == 0
    assert_as_if_nothing_had_been(folder, tmp_path)


@pytest.mark.slow
def test_the_death_of_a_worker_is_one_line_and_all_that_ray_says_is_in_the_folder(tmp_path):
    folder, said = tmp_path / "run", tmp_path / "said"
    with started(folder, said) as process:
        hosts = [child for child in process.children(recursive=True) if child.name().startswith("ray::Actor")]
        hosts[0].kill()
    assert process.returncode == 0
    told = [line for line in said.read_text().splitlines() if not line.startswith(("round ", "  vm", "placement"))]
    (fault,) = [line for line in said.read_text().splitlines() if "Error" in line]
    assert fault.startswith("round ")
    assert fault.endswith(f" (what Ray said is in {folder}/ray.log)")
    assert "raylet" not in " ".join(told)
    whole = (folder / "ray.log").read_text()
    assert "actor" in whole
    assert "\n" in whole.strip()
    assert_as_if_nothing_had_been(folder, tmp_path)


DEADLY = """
import os, signal

class Scaled(Averaging):
    name: Literal["scaled"] = "scaled"

    def upload(self, trip):
        if os.environ.get("UNHARMED") != "1" and trip.steps.max() > 3:
            END
        return {"delta": trip.delta}
"""
ENDS = {
    "os._exit(7)": "with exit code 7",
    "os._exit(0)": "with exit code 0",
    "os.kill(os.getpid(), signal.SIGKILL)": "by signal 9 (SIGKILL)",
}


def crashing(tmp_path, end):
    """Return a scenario in which the upload of one client, the only one of four steps, ends its process."""
    (tmp_path / "mine.py").write_text(HEAD + DEADLY.replace("END", end))
    changes = {
        "population": [
            {"name": "calm", "count": 5, "local": {"steps": 2}},
            {"name": "crashing", "count": 1, "local": {"steps": 4}},
        ],
        "server": {**BASE["server"], "cohort": "all", "local": {"steps": 2, "batch": 10}},
    }
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump({**BASE, **changes}))
    return Scenario.load(file)


@pytest.mark.slow
@pytest.mark.parametrize(("end", "words"), ENDS.items())
def test_a_process_that_dies_in_an_upload_is_told_with_client_round_and_code(end, words, tmp_path):
    scenario = crashing(tmp_path, end)
    expected = rf"round 1, client 5: the process that trains it ends {words} \(5 times\)"
    with pytest.raises(FleetError, match=expected.replace("(SIGKILL)", r"\(SIGKILL\)")):
        run(scenario, tmp_path / "run", actors=2, report=False)
    faults = [json.loads(line) for line in (tmp_path / "run/faults.jsonl").read_text().splitlines()]
    assert all(fault["died"] for fault in faults)
