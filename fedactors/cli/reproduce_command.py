"""`fedactors reproduce`: run an experiment of a paper and list the verdict on each of its claims."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedactors import packaged
from fedactors.cli import shared_options
from fedactors.errors import ScenarioError


def extend(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument("name", metavar="EXPERIMENT", help="such as fsl-table1 or fsl-fig1; a wrong name lists all")
    command.add_argument("--reduced", action="store_true", help="the small twin: about two minutes on two cores")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default: 1)")
    command.add_argument(
        "--out", default="runs/reproduce", metavar="DIR", help="folder of the runs; kept runs are used"
    )
    command.add_argument(
        "--scenarios", default=packaged.scenario_folder(), type=Path, metavar="DIR", help="folder with papers/"
    )
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override in every run")
    command.add_argument("--json", action="store_true", help="print figures as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the experiment; 0 if it shows what it asserts, else 1. Raises UsageError for what the user can correct."""
    from fedactors.papers import grid, results_text
    from fedactors.papers.catalogue import find
    from fedactors.papers.experiment import Measures
    from fedactors.papers.verdicts import succeeded
    from fedactors.study.study_cells import StudyCell

    experiment = find(options.name, reduced=options.reduced)
    if not (options.scenarios / experiment.scenario).is_file():
        raise ScenarioError(f"{options.scenarios}: no {experiment.scenario} (accepted: --scenarios with such a folder)")

    def tell(cell: StudyCell, found: Measures) -> None:
        where = ", ".join(f"{axis} {label}" for axis, label in cell.labels)
        print(f"{where}: accuracy {found.accuracy:.3f}, {found.wall:.1f} s", file=sys.stderr, flush=True)

    table = grid.play(experiment, options.scenarios, Path(options.out), max(1, options.jobs), tell, options.set)
    claims = experiment.claims(table)
    said = (
        results_text.data(experiment, table, claims) if options.json else results_text.lines(experiment, table, claims)
    )
    print(shared_options.as_text("reproduce", said) if isinstance(said, dict) else "\n".join(said))
    return 0 if succeeded(claims) else 1
