"""`fedactors check`, `replay`, `verify` and `schema`: what a scenario will do, without or before a run."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from fedactors.cli import shared_options
from fedactors.errors import UsageError, suggestion

if TYPE_CHECKING:
    from fedactors.scenario import Scenario


def extend_check(command: argparse.ArgumentParser) -> None:
    """Declare the options of `check`."""
    shared_options.scenario(command)
    command.add_argument("--forecast", action="store_true", help="also time and memory of a run, which takes seconds")
    command.add_argument(
        "--budget",
        type=shared_options.seconds,
        metavar="TIME",
        help="processor time to take, such as 1min30s (default: 5s); what takes longer is estimated, and said under"
        ' "costly"',
    )
    shared_options.where(command, default=None)


def check(options: argparse.Namespace) -> int:
    """Print what a scenario will do. Raises UsageError for what is wrong with it."""
    if not options.forecast and (options.fleet or options.actors):
        raise UsageError("--fleet and --actors say what a forecast is made for (accepted: with --forecast)")
    from fedactors.scenario import Scenario
    from fedactors.simulation.checks.budget import SECONDS
    from fedactors.simulation.checks.check import check

    scenario = Scenario.load(options.scenario, options.set)
    fleet = (options.fleet or "ray") if options.forecast else None
    seconds = SECONDS if options.budget is None else options.budget
    shared_options.show(options, check(scenario, fleet, options.actors, seconds), "check")
    return 0


def extend_replay(command: argparse.ArgumentParser) -> None:
    """Declare the options of `replay`."""
    shared_options.out(command)
    shared_options.traces(command)
    command.add_argument("--feedback", metavar="RUN", help="run folder with the losses that clients are selected by")


def replay(options: argparse.Namespace) -> int:
    """Run the clock alone and print its summary."""
    from fedactors.scenario import Scenario
    from fedactors.simulation.record.folder_claims import new_path
    from fedactors.simulation.replay import replay

    scenario = Scenario.load(options.scenario, options.set)
    if options.traces:
        return _replay_each(options, scenario)
    out = options.out or new_path(f"{scenario.name}-replay")
    result = replay(scenario, out, feedback=options.feedback)
    shared_options.show(options, {**result.summary, "folder": str(result.folder)}, "replay")
    return 0


def _replay_each(options: argparse.Namespace, scenario: Scenario) -> int:
    """Replay a scenario over several recordings, and print what became of the clients asked in each."""
    from fedactors.errors import ScenarioError
    from fedactors.run_files.writing import write
    from fedactors.study import incompleteness
    from fedactors.study.recordings_axis import replay_each

    if options.feedback:
        raise ScenarioError("--feedback belongs to one recording (accepted: without --traces)")
    out = Path(options.out or f"runs/studies/{scenario.name}")
    rows = replay_each(options.scenario, options.traces, out=out, overrides=options.set)
    text = incompleteness.text(rows)
    write(out / "incompleteness.txt", text + "\n")
    table = out / "incompleteness.csv"
    write(table, incompleteness.as_csv(rows))
    if options.json:
        places = [
            {**place._asdict(), "at": dict(zip(rows[0].labels, place.at, strict=True))}
            for place in incompleteness.places(rows)
        ]
        print(shared_options.as_text("replay", {"name": scenario.name, "places": places, "table": str(table)}))
        return 0
    print(f"{text}\n\n{table}")
    return 0


def extend_verify(command: argparse.ArgumentParser) -> None:
    """Declare the options of `verify`."""
    shared_options.scenario(command)
    shared_options.address(command)


def verify(options: argparse.Namespace) -> int:
    """Run on different fleets and compare; 0 if all digests are equal, else 1."""
    from fedactors.scenario import Scenario

    scenario = Scenario.load(options.scenario, options.set)
    from fedactors.simulation.verify import verify

    with redirect_stdout(sys.stderr):
        found = verify(
            scenario,
            address=options.address,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )
    shared_options.show(options, found, "verify")
    return 0 if found["equal"] else 1


def extend_schema(command: argparse.ArgumentParser) -> None:
    """Declare the options of `schema`."""
    command.add_argument("of", nargs="*", metavar="COMMAND", help="of what this command prints with --json")


def schema(options: argparse.Namespace) -> int:
    """Print the JSON schema of scenario files, or of what a command prints. Raises UsageError if it prints no JSON."""
    if options.of:
        from fedactors.cli.outputs import OUTPUTS, json_schema

        command = " ".join(options.of)
        if command not in OUTPUTS:
            raise UsageError(f'no command "{command}" with --json{suggestion(command, list(OUTPUTS))}')
        print(json.dumps(json_schema(command), indent=2))
        return 0
    from fedactors.scenario import Scenario

    print(json.dumps(Scenario.model_json_schema(), indent=2))
    return 0
