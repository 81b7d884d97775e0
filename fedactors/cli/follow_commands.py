"""`fedactors watch` and `timeline`, and the options of `run` and `resume` that log elsewhere what is followed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fedactors.errors import UsageError

if TYPE_CHECKING:
    from fedactors.scenario import Scenario
    from fedactors.simulation.progress import Progress
    from fedactors.simulation.tracking.base import Tracker


def extend(command: argparse.ArgumentParser) -> None:
    """Declare the options of `watch`."""
    command.add_argument("run", metavar="RUN", help="run folder, of a run that goes on or has ended")


def run(options: argparse.Namespace) -> int:
    """Follow a run until it ends. Raises RunFolderError if there is none."""
    from fedactors.report.watch import watch

    watch(options.run)
    return 0


def extend_timeline(command: argparse.ArgumentParser) -> None:
    """Declare the options of `timeline`."""
    command.add_argument("run", metavar="RUN", help="run folder")
    command.add_argument("--out", metavar="FILE", help="gzipped if it ends in .gz (default: RUN/timeline.json)")
    command.add_argument("--devices", type=int, default=500, metavar="N", help="devices shown at most (default: 500)")


def timeline(options: argparse.Namespace) -> int:
    """Write the timelines of a run for Perfetto. Raises RunFolderError if there is none."""
    from fedactors.report.trace_events import write

    if options.devices < 1:
        raise UsageError(f"--devices {options.devices} (accepted: 1 or more)")
    print(write(options.run, options.out or Path(options.run) / "timeline.json", options.devices))
    return 0


def extend_trackers(command: argparse.ArgumentParser) -> None:
    """Declare where else to log metrics."""
    command.add_argument("--tensorboard", action="store_true", help="log into RUN/tensorboard, too")
    server = _given("the address of a server, or a folder")
    command.add_argument("--mlflow", type=server, metavar="URI", help="log to this MLflow server or store, too")
    project = _given("the name of a project")
    text = "log to this project of Weights & Biases, too"
    command.add_argument("--wandb", type=project, metavar="PROJECT", help=text)


def _given(accepted: str) -> Callable[[str], str]:
    """Return what takes the value of an option, unless it is empty, as from a variable of the shell that is not set."""

    def given(text: str) -> str:
        if not text.strip():
            raise argparse.ArgumentTypeError(f'found "{text}" (accepted: {accepted})')
        return text

    return given


def tracked(shown: Progress, options: argparse.Namespace, folder: Path, scenario: Scenario | None) -> Progress:
    """Return progress that is shown, and logged where `options` say. Raises UsageError if that is not possible."""
    if not (options.tensorboard or options.mlflow or options.wandb):
        return shown
    from fedactors.simulation.tracking.mlflow_tracker import MLflow
    from fedactors.simulation.tracking.tensorboard_tracker import TensorBoard
    from fedactors.simulation.tracking.tracked_progress import Tracked, flat
    from fedactors.simulation.tracking.wandb_tracker import WeightsAndBiases

    parameters = scenario.dump() if scenario else {}
    trackers: list[Tracker] = []
    if options.tensorboard:
        trackers.append(TensorBoard(folder / "tensorboard"))
    if options.mlflow:
        trackers.append(MLflow(options.mlflow, folder, dict(flat(parameters))))
    if options.wandb:
        trackers.append(WeightsAndBiases(options.wandb, folder, parameters))
    return Tracked(shown, trackers)
