"""`fedactors traces`: look at recordings, convert them, draw some devices from them, and record new ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from fedactors.cli import fetch_command, record_command, shared_options
from fedactors.errors import visible

if TYPE_CHECKING:
    from fedactors.traces.format_registry import Recording


def extend(command: argparse.ArgumentParser) -> None:
    """Add the actions to the command's parser."""
    command.set_defaults(action=partial(shared_options.help_of, command))
    actions = command.add_subparsers(metavar="COMMAND")
    for name, (function, text, add) in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=text)
        action.set_defaults(action=function)
        add(action)
    text = "fetch public recordings"
    fetch_command.extend(actions.add_parser("fetch", help=text, description=text), "traces")


def run(options: argparse.Namespace) -> int:
    """Run the action and return the exit code. Raises TraceError for what the user can correct."""
    result: int = options.action(options)
    return result


def _reading(action: argparse.ArgumentParser) -> None:
    action.add_argument("path", metavar="PATH", help="recording, gzipped or not")
    action.add_argument("--format", metavar="NAME", help="its format, if it is not recognised: see traces formats")
    action.add_argument("--when", metavar="RULE", help='what counts as available: "charging & wifi & locked"')
    action.add_argument("--strict", action="store_true", help="refuse a recording that needs repair")
    action.add_argument("--json", action="store_true", help="print figures as JSON")


def _describing(action: argparse.ArgumentParser) -> None:
    _reading(action)
    action.add_argument("--png", metavar="FILE", help="draw the picture into this file")


def _writing(action: argparse.ArgumentParser) -> None:
    _reading(action)
    action.add_argument("out", metavar="OUT", help="file to write: .parquet, else CSV, gzipped if it ends in .gz")


def _sampling(action: argparse.ArgumentParser) -> None:
    _writing(action)
    action.add_argument("--devices", type=_count, required=True, metavar="N", help="how many devices")
    action.add_argument("--seed", type=_count, default=0, metavar="S", help="which ones (default: 0)")


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f'found "{text}" (accepted: a whole number)')
    return int(text)


def _read(options: argparse.Namespace) -> Recording:
    from fedactors.traces.format_registry import read_any

    return read_any(options.path, options.format, options.when, options.strict)


def _describe(options: argparse.Namespace) -> int:
    from fedactors.traces.doubts import doubts
    from fedactors.traces.summaries import bars, summarize

    recording = _read(options)
    if options.png:
        from fedactors.traces.drawing import draw

        draw(bars(recording), options.png)
    summary = summarize(recording)
    found = doubts(recording)
    text = "\n".join([summary.text(), *(f"doubtful: {doubt}" for doubt in found)])
    _print(options, "describe", {"path": options.path, **summary.data(), "doubts": found}, text)
    return 0


def _convert(options: argparse.Namespace) -> int:
    return _write(options, "convert", _read(options))


def _sample(options: argparse.Namespace) -> int:
    import numpy as np

    from fedactors.errors import TraceError
    from fedactors.streams import Purpose, stream
    from fedactors.traces.device_selection import select

    recording = _read(options)
    if not 1 <= options.devices <= len(recording):
        raise TraceError(f"--devices {options.devices}: {options.path} holds {len(recording):,} (accepted: 1 to that)")
    rows = stream(options.seed, Purpose.TRACE).choice(len(recording), options.devices, replace=False)
    return _write(options, "sample", select(recording, np.sort(rows)))


def _write(options: argparse.Namespace, action: str, recording: Recording) -> int:
    from fedactors.traces.formats import native

    native.write(recording, options.out)
    repairs = [{"kind": r.kind, "count": r.count, "first": r.first} for r in recording.repairs]
    figures = {"path": options.path, "out": options.out, "devices": len(recording), "repairs": repairs}
    repaired = "".join(f"\n  repaired: {r['count']:,} x {r['kind']}, first at {r['first']}" for r in repairs)
    _print(options, action, figures, f"{options.out}: {len(recording):,} devices{repaired}")
    return 0


def _formats(options: argparse.Namespace) -> int:
    from fedactors.traces.format_registry import formats

    kinds = [{"name": f.name, "gives": f.gives, "description": f.description, "rule": f.ruled} for f in formats()]
    lines = [f"{kind['name']:<18}{kind['gives']:<17}{kind['description']}" for kind in kinds]
    _print(options, "formats", {"formats": kinds}, "\n".join(lines))
    return 0


def _print(options: argparse.Namespace, action: str, figures: dict[str, Any], text: str) -> None:
    print(shared_options.as_text(f"traces {action}", figures) if options.json else visible(text))


def _json(action: argparse.ArgumentParser) -> None:
    action.add_argument("--json", action="store_true", help="print figures as JSON")


_Action = tuple[Callable[[argparse.Namespace], int], str, Callable[[argparse.ArgumentParser], None]]
_ACTIONS: dict[str, _Action] = {
    "describe": (_describe, "say what a recording holds", _describing),
    "convert": (_convert, "write a recording in fedactors' own format", _writing),
    "sample": (_sample, "write some of a recording's devices, drawn by seed", _sampling),
    "record": (
        record_command.record,
        "measure this machine beside a competitor, or its use over time",
        record_command.extend,
    ),
    "formats": (_formats, "list the formats that can be read", _json),
}
