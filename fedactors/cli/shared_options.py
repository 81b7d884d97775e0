"""Options that several commands share, declared once."""

from __future__ import annotations

import argparse

from fedactors.cli import follow_commands


def overrides(command: argparse.ArgumentParser, text: str) -> None:
    """Declare `--set`, which `text` explains."""
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=text)


def as_json(command: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    command.add_argument("--json", action="store_true", help="print figures as JSON")


def address(command: argparse.ArgumentParser) -> None:
    """Declare a Ray cluster to join."""
    command.add_argument("--address", metavar="ADDRESS", help="join this Ray cluster instead of starting one")


def scenario(command: argparse.ArgumentParser) -> None:
    """Declare a scenario, overrides, and figures as JSON."""
    command.add_argument("scenario", metavar="SCENARIO", help="scenario file (YAML)")
    overrides(command, "override: server.deadline=2min")
    as_json(command)


def out(command: argparse.ArgumentParser) -> None:
    """Declare a scenario and a run folder."""
    scenario(command)
    command.add_argument("--out", metavar="DIR", help="run folder")


def fleet(command: argparse.ArgumentParser) -> None:
    """Declare all that `run` takes."""
    out(command)
    machines(command)
    follow_commands.extend_trackers(command)


def resumption(command: argparse.ArgumentParser) -> None:
    """Declare all that `resume` takes."""
    command.add_argument("run", metavar="RUN", help="run folder")
    overrides(command, "override: cluster.actors=2, and nothing else")
    command.add_argument("--previous", action="store_true", help="go on from the checkpoint before the last one")
    as_json(command)
    machines(command)
    follow_commands.extend_trackers(command)


def machines(command: argparse.ArgumentParser) -> None:
    """Declare where to compute, a cluster among it."""
    where(command)
    address(command)


def where(command: argparse.ArgumentParser) -> None:
    """Declare where to compute on this machine."""
    command.add_argument("--fleet", choices=["ray", "local"], default="ray", help="where to compute")
    command.add_argument("--actors", type=_positive, metavar="N", help="client hosts (default: one per core)")


def verify(command: argparse.ArgumentParser) -> None:
    """Declare all that `verify` takes."""
    scenario(command)
    address(command)


def _positive(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f'found "{text}" (accepted: a whole number from 1 to 4096)')
    return int(text)
