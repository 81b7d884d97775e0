"""`fedactors scale`: a grid of actors and clients, timed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedactors.cli import planned_files, shared_options
from fedactors.plain_text import aligned


def extend(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    command.add_argument("scenario", metavar="SCENARIO", help=shared_options.SCENARIO)
    command.add_argument("--actors", type=_numbers, default=[1, 2], metavar="N,N", help="client hosts: 1,2,4")
    command.add_argument("--clients", type=_numbers, required=True, metavar="N,N", help="clients in a round: 100,1000")
    command.add_argument(
        "--rounds", type=shared_options.positive, default=5, metavar="N", help="rounds of each point (default: 5)"
    )
    command.add_argument(
        "--simulated", type=shared_options.seconds, metavar="TIME", help="sleep this long for each local step: 50ms"
    )
    shared_options.address(command)
    shared_options.overrides(command, "override: server.rounds=9")
    command.add_argument("--out", default="scale", metavar="DIR", help="folder of scale.csv and scale.html")
    shared_options.as_json(command)


def run(options: argparse.Namespace) -> int:
    """Run the grid, write CSV and page, print the table."""
    from fedactors.report import scaling
    from fedactors.scenario import Scenario
    from fedactors.simulation.scale import scale, write

    made = Scenario.load(options.scenario, options.set)
    out = planned_files.folder_made(Path(options.out))
    with redirect_stdout(sys.stderr):  # Ray prints to stdout, which is for the figures of the grid
        points = scale(
            made, options.actors, options.clients, rounds=options.rounds, step=options.simulated,
            address=options.address, tell=lambda text: print(text, file=sys.stderr, flush=True),
        )  # fmt: skip
    rows = [asdict(point) for point in points]
    write(points, out / "scale.csv")
    scaling.write(rows, out / "scale.html")
    said = shared_options.as_text("scale", {"points": rows}) if options.json else _table(rows)
    print(said if options.json else f"{said}\n{out}/scale.csv, {out}/scale.html")
    return 0


def _table(rows: Sequence[dict[str, Any]]) -> str:
    heads = ("clients", "actors", "steps/s", "strong", "weak", "overhead", "round s", *_PARTS, "moved")
    lines: list[tuple[str, ...]] = [heads]
    for row in rows:
        parts = [f"{row[part]:.3f}" for part in _PARTS]
        shares = [_percent(row[key]) for key in ("strong_efficiency", "weak_efficiency", "overhead")]
        figures = (f"{row['clients']:,}", str(row["actors"]), f"{row['steps_per_second']:,.0f}", *shares)
        lines.append((*figures, f"{row['round']:.3f}", *parts, f"{row['bytes_reduced']:,}"))
    return "\n".join(aligned(lines, left=0))


_PARTS = ("clock", "broadcast", "compute", "reduce", "evaluate")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and 1 <= int(part) <= 10_000_000 for part in parts):
        raise argparse.ArgumentTypeError(f'found "{text}" (accepted: whole numbers with commas, as 1,2,4)')
    return sorted({int(part) for part in parts})
