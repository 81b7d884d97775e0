"""`fedactors run`, `resume` and `branch`: commands that train."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedactors.cli import follow_commands, shared_options, stopping

if TYPE_CHECKING:
    from fedactors.scenario import Scenario

_LAST_ROUND = 10_000_000


def extend_run(command: argparse.ArgumentParser) -> None:
    """Declare the options of `run`."""
    shared_options.out(command)
    shared_options.machines(command)
    follow_commands.extend_trackers(command)


def run(options: argparse.Namespace) -> int:
    """Run a scenario and print its summary."""
    from fedactors.scenario import Scenario

    scenario = Scenario.load(options.scenario, options.set)
    from fedactors.simulation.record.folder_claims import new_path
    from fedactors.simulation.runner import run

    logs = options.tensorboard or options.mlflow or options.wandb
    made = new_path(scenario.name) if logs and not options.out else None
    out = options.out or made
    with _removed_if_empty(made):
        return _play(options, Path(out or scenario.name), scenario, lambda where: run(scenario, out, **where))


def extend_resume(command: argparse.ArgumentParser) -> None:
    """Declare the options of `resume`."""
    command.add_argument("run", metavar="RUN", help="run folder")
    shared_options.overrides(command, "override: cluster.actors=2, and nothing else")
    command.add_argument("--previous", action="store_true", help="go on from the checkpoint before the last one")
    command.add_argument("--changed-code", action="store_true", help="go on though files of yours are not as they were")
    _extend_folder(command)
    shared_options.as_json(command)
    shared_options.machines(command)
    follow_commands.extend_trackers(command)


def resume(options: argparse.Namespace) -> int:
    """Go on with a run and print its summary. Raises RunFolderError if it cannot be resumed."""
    from fedactors.simulation.resume.resume import where_to_go_on
    from fedactors.simulation.runner import resume

    path = Path(options.run)
    logs = options.mlflow or options.wandb
    previous, moved = options.previous, options.scenario_folder
    scenario = where_to_go_on(path, options.set, previous=previous, folder=moved)[1] if logs else None
    past = {"previous": previous, "changed_code": options.changed_code, "scenario_folder": moved}
    return _play(options, path, scenario, lambda where: resume(path, options.set, **past, **where))


def extend_branch(command: argparse.ArgumentParser) -> None:
    """Declare the options of `branch`."""
    command.add_argument("run", metavar="RUN", help="run folder")
    command.add_argument("--at", required=True, type=_round, metavar="round=N", help="the last round that is shared")
    shared_options.overrides(command, "what is changed after it")
    command.add_argument("--out", metavar="DIR", help="run folder of the branch")
    _extend_folder(command)
    shared_options.as_json(command)
    shared_options.machines(command)
    follow_commands.extend_trackers(command)


def branch(options: argparse.Namespace) -> int:
    """Go on from a round of a run with something changed. Raises RunFolderError if that is not possible."""
    from fedactors.simulation.record.folder_claims import new_path
    from fedactors.simulation.resume.branch import branch, name_of, scenario_of_branch

    run = Path(options.run)
    logs = options.tensorboard or options.mlflow or options.wandb
    moved = options.scenario_folder
    scenario = scenario_of_branch(run, options.set, moved) if logs else None
    made = new_path(name_of(scenario)) if scenario and not options.out else None
    out = options.out or made

    def start(where: dict[str, Any]) -> Any:
        return branch(run, options.at, options.set, out, scenario_folder=moved, **where)

    with _removed_if_empty(made):
        return _play(options, Path(out or run), scenario, start)


def _extend_folder(command: argparse.ArgumentParser) -> None:
    said = "folder that relative paths of the scenario start in now, where the files that it names were moved"
    command.add_argument("--scenario-folder", metavar="DIR", help=said)


def _round(text: str) -> int:
    number = text.removeprefix("round=")
    if not number.isdecimal() or not 1 <= int(number) <= _LAST_ROUND:
        raise argparse.ArgumentTypeError(f'found "{text}" (accepted: round=N, N from 1)')
    return int(number)


@contextmanager
def _removed_if_empty(made: Path | None) -> Iterator[None]:
    """Remove the folder that was `made` for a run, if the command fails before anything is in it."""
    try:
        yield
    except BaseException:
        if made is not None:
            with suppress(OSError):  # it holds something
                made.rmdir()
        raise


def _play(
    options: argparse.Namespace, folder: Path, scenario: Scenario | None, start: Callable[[dict[str, Any]], Any]
) -> int:
    """Run what `start` begins in `folder`, given fleet and progress, and print its summary."""
    from fedactors.simulation.progress import chosen

    where = {"fleet": options.fleet, "actors": options.actors, "address": options.address}
    progress = follow_commands.tracked(chosen(stopping.asked.is_set), options, folder, scenario)
    with redirect_stdout(sys.stderr):  # Ray prints to stdout, which is for the figures of the run
        result = start({**where, "progress": progress})
    shared_options.show(options, {**result.summary, "folder": str(result.folder)}, "summary", "run")
    return 0
