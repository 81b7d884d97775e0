"""What cannot fit into this machine is refused with one message, before any memory is taken for it."""

import resource

import pytest

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.simulation.checks.memory_forecast import wanted
from fedactors.simulation.prepare import prepare
from tests.fleet.conftest import QUICKSTART

ABSURD = {
    "a model": (["task.model.hidden=[100000, 10000000]", "server.deadline=none"], "the model 16,"),
    "a data set": (
        ["task={dataset: {name: synthetic, samples: 900000000}, model: {name: logistic}, partition: {name: natural}}"],
        "the data set 2",
    ),
    "what clients keep": (
        ["server.algorithm=scaffold", "task.model.hidden=[10000000]", "server.deadline=none"],
        "what clients keep 3",
    ),
    "devices": (["population=[" + ", ".join(f"{{name: g{k}, count: 100000000}}" for k in range(30)) + "]"], "devices"),
}


@pytest.mark.parametrize(("changes", "said"), ABSURD.values(), ids=ABSURD)
@pytest.mark.parametrize("command", ["run", "check"])
def test_absurd_sizes_are_refused(command, changes, said, tmp_path, capsys):
    options = [part for change in changes for part in ("--set", change)]
    options += ["--out", str(tmp_path / "run"), "--fleet", "local"] if command == "run" else []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main([command, str(QUICKSTART), *options]) == 2
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 500e6
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fedactors: ")
    assert said in line
    assert "accepted: at most" in line
    assert not (tmp_path / "run").exists()


def test_what_is_kept_is_counted():
    """SCAFFOLD on 8 x 8 images: 64 * 4 + 8 bytes a sample, 4,810 parameters, one vector for each of 40 x 2 devices.

    360 test samples with 10 outputs are evaluated at once, three times 4 bytes for each output.
    """
    prepared = prepare(Scenario.load(QUICKSTART, ["server.algorithm=scaffold", "server.rounds=2"]))
    assert prepared.model.parameters == 4810
    size = {"the data set": 1797 * (64 * 4 + 8), "the model": 4 * 4810 * 4}
    size |= {"single updates": 0, "what clients keep": 80 * 4810 * 4, "evaluation": 360 * 10 * 12}
    assert wanted(prepared) == size
    assert wanted(prepared, joined=True) == size | {"what clients keep": 0}


@pytest.mark.parametrize(
    ("metrics", "more"),
    [
        ("[]", 0),
        ("[perplexity, top5]", 0),  # one number for each answer
        ("[f1_macro]", 10 * 10 * 16),  # a confusion matrix
        ("[calibration_error]", 360 * 10 * 24),
        ("[auroc, perplexity]", 360 * 10 * 40),
        ("[auroc, matthews]", 360 * 10 * 40 + 10 * 10 * 16),
    ],
)
def test_what_metrics_need_is_counted(metrics, more):
    prepared = prepare(Scenario.load(QUICKSTART, [f"task.metrics={metrics}"]))
    assert wanted(prepared)["evaluation"] == 360 * 10 * 12 + more
