"""`fedactors traces record`: measure this machine, and write down how."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timezone
from pathlib import Path

from fedactors.cli import planned_files
from fedactors.errors import TraceError


def extend(action: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    action.add_argument("out", metavar="OUT", help="CSV file to write")
    action.add_argument("--mode", choices=["participation", "usage"], default="participation", help="what to record")
    action.add_argument("--competitors", default="0,30,50,70,90", metavar="LIST", help="percent of a processor each")
    action.add_argument("--rounds", type=int, default=30, metavar="N", help="rounds beside each competitor")
    action.add_argument("--deadline", type=float, default=2.0, metavar="S", help="seconds of a round")
    action.add_argument("--epochs", type=int, default=5, metavar="E", help="epochs required in a round")
    action.add_argument("--seconds", type=float, default=60.0, metavar="S", help="usage: how long")
    action.add_argument("--every", type=float, default=1.0, metavar="S", help="usage: seconds between samples")
    action.add_argument("--load-below", type=float, default=0.5, metavar="L", help="usage: available below this load")
    action.add_argument("--note", default="", metavar="TEXT", help="a word on the circumstances, kept in the file")


def record(options: argparse.Namespace) -> int:
    """Record as asked and return the exit code. Raises UsageError for what the user can correct."""
    for name in ("rounds", "epochs"):
        if getattr(options, name) < 1:
            raise TraceError(f"--{name} {getattr(options, name)} (accepted: 1 or more)")
    for name in ("deadline", "seconds", "every"):
        if not getattr(options, name) > 0:
            raise TraceError(f"--{name} {getattr(options, name)} (accepted: seconds above 0)")
    planned_files.refuse_unwritable("OUT", options.out)
    return _usage(options) if options.mode == "usage" else _participation(options)


def _participation(options: argparse.Namespace) -> int:
    from fedactors.traces.recorder import Protocol, participation

    protocol = Protocol(_percentages(options.competitors), options.rounds, options.deadline, options.epochs)
    how = (
        f"participation (Ruan et al. 2021, section 5.1): share of {protocol.epochs} epochs done in each round of"
        f" {protocol.deadline:g} s, ppm, beside a competitor for 0 to 90 % of the same core"
    )
    head = _head(options, how)
    _write(Path(options.out), head, participation(protocol, _tell))
    return 0


def _usage(options: argparse.Namespace) -> int:
    from fedactors.traces.recorder import usage

    out = Path(options.out)
    how = f"usage: free share of all processors every {options.every:g} s, ppm"
    head = _head(options, how)
    series, timeline = usage(options.seconds, options.every, options.load_below, out.stem, _tell)
    _write(out, head, series)
    windows = out.with_name(f"{out.stem}.windows.csv")
    _write(
        windows, _head(options, f"usage: load for each core below {options.load_below:g}; from midnight UTC"), timeline
    )
    return 0


def _percentages(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) <= 100 for word in words) or len(set(words)) != len(words):
        raise TraceError(f"--competitors {text} (accepted: percentages from 0 to 100, such as 0,30,50)")
    return tuple(int(word) for word in words)


def _head(options: argparse.Namespace, how: str) -> str:
    from fedactors.traces.recorder import machine

    lines = ["recorded by fedactors traces record", how, f"on {machine()}"]
    lines.append(f"at {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC")
    lines += [" ".join(options.note.split())] if options.note else []
    return "".join(f"# {line}\n" for line in lines)


def _write(path: Path, head: str, recording: object) -> None:
    """Write our CSV below a head of comments."""
    from fedactors.traces.formats import native
    from fedactors.traces.series import Series
    from fedactors.traces.timeline import Timeline

    if not isinstance(recording, Series | Timeline):
        raise TypeError(type(recording).__name__)
    native.write(recording, path, head)
    print(f"{path}: {len(recording)} rows")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
