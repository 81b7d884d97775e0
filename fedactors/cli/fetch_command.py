"""`fedactors data fetch` and `fedactors traces fetch`: public data and recordings into the folder scenarios look in."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from fedactors import home
from fedactors.errors import UsageError


def extend(action: argparse.ArgumentParser, kind: str) -> None:
    """Declare the options; `kind` is data or traces."""
    variable = home.DATA if kind == "data" else home.TRACES
    action.add_argument("names", nargs="*", metavar="NAME", help="what to fetch; without a name, all are listed")
    action.add_argument(
        "--into", type=Path, metavar="DIR", help=f"folder (default: {variable}, else {home.HOME}/{kind})"
    )
    action.add_argument("--mirror", metavar="URL", help="fetch from this address instead of the authors'")
    action.set_defaults(action=partial(fetch, kind=kind))


def fetch(options: argparse.Namespace, kind: str) -> int:
    """Fetch what is named, or list what there is. Raises UsageError for what cannot be had."""
    from fedactors.fetching import data_sets, sources, trace_sets

    known = sources.DATA if kind == "data" else sources.TRACES
    sources.check_names(kind, options.names, known)
    if not options.names:
        width = max(map(len, known))
        print(
            "\n".join(f"{name:<{width}}  {source.about}; licence: {source.licence}" for name, source in known.items())
        )
        return 0
    folder = (options.into or (home.data_target() if kind == "data" else home.trace_target())).expanduser()
    for name in options.names:
        source = known[name]
        print(f"{name}: {source.about}\n  licence   {source.licence}\n  please cite  {source.citation}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
        (data_sets.fetch_data if kind == "data" else trace_sets.fetch_recording)(name, folder, options.mirror, _tell)
    print(f"in {folder}")
    return 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
