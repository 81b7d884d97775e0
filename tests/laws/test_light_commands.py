"""Light commands import neither torch nor ray, and most answer at once; what drives a run on Ray imports no torch."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROBE = """
import sys
from fedactors.cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as left:
    code = left.code
heavy = sorted({"torch", "torchvision", "ray", "sklearn"} & set(sys.modules))
print("HEAVY", heavy, file=sys.stderr)
raise SystemExit(code)
"""


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["--help"],
        ["--version"],
        ["traces"],
        ["schema"],
        ["check", "quickstart"],
        ["replay", "quickstart"],
    ],
)
def test_light_commands_import_neither_torch_nor_ray(command, tmp_path):
    words = [str(ROOT / "scenarios/quickstart.yaml") if word == "quickstart" else word for word in command]
    words += ["--out", str(tmp_path / "out")] if "replay" in command else []
    done = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "HEAVY []" in done.stderr
    assert done.stdout


DRIVING = """
import sys
import fedactors.simulation.execution, fedactors.simulation.runner, fedactors.fleet.ray.ray_fleet, fedactors.report.html
assert "torch" not in sys.modules
"""


@pytest.mark.slow
def test_what_drives_a_run_on_ray_does_not_import_torch():
    done = subprocess.run([sys.executable, "-c", DRIVING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


RECORDING = """
import sys
from pathlib import Path
from fedactors.models.paper_models import Logistic
from fedactors.simulation.record.model_layout import write_layout
write_layout(Path(sys.argv[1]), Logistic().build((4,), 2))
assert "torch" not in sys.modules
"""


def test_the_layout_of_a_model_is_written_without_torch(tmp_path):
    done = subprocess.run([sys.executable, "-c", RECORDING, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "checkpoint/model.json").exists()


ACTING = """
import sys
import fedactors.fleet.workers
found = sorted(name for name in sys.modules if name.startswith(("fedactors.scenario", "fedactors.report")))
assert not found, found
"""


@pytest.mark.slow
def test_actors_import_neither_scenarios_nor_reports():
    done = subprocess.run([sys.executable, "-c", ACTING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_whole_run_on_ray_is_driven_without_torch(tmp_path):
    command = ["run", str(ROOT / "scenarios/quickstart.yaml"), "--set", "server.rounds=2", "--actors", "1"]
    command += ["--out", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", PROBE, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "HEAVY ['ray']" in done.stderr
    assert (tmp_path / "run/report.html").exists()
