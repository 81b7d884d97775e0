"""`fedactors reproduce`: run an experiment of a paper, or a campaign of many, and list the verdict on each claim."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedactors import packaged
from fedactors.cli import shared_options
from fedactors.errors import ScenarioError

if TYPE_CHECKING:
    from fedactors.papers.campaign.matrix import MatrixRow

_CAMPAIGN = "papers.yaml"


def extend(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "name", metavar="EXPERIMENT", nargs="?", help="such as fsl-table1 or fsl-fig1; a wrong name lists all"
    )
    command.add_argument(
        "--reduced", action="store_true", help="the small twin: minutes, of some a quarter of an hour of a core or more"
    )
    command.add_argument(
        "--jobs", type=shared_options.positive, default=1, metavar="N", help="runs at a time (default: 1)"
    )
    command.add_argument("--out", metavar="DIR", help="folder of the runs; kept runs are used")
    command.add_argument(
        "--scenarios", default=packaged.scenario_folder(), type=Path, metavar="DIR", help="folder with papers/"
    )
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override in every run")
    command.add_argument("--json", action="store_true", help="print figures as JSON")
    command.add_argument(
        "--campaign", metavar="FILE", type=Path, help="play the experiments of this file instead, such as papers.yaml"
    )
    command.add_argument(
        "--budget",
        type=shared_options.seconds,
        metavar="TIME",
        help="of a campaign: when to stop, such as 2h; it goes on next time",
    )
    command.add_argument("--again", action="store_true", help="of a campaign: also what another engine computed")
    command.add_argument(
        "--matrix", action="store_true", help=f"show what campaigns found, from --campaign (default: {_CAMPAIGN})"
    )


def run(options: argparse.Namespace) -> int:
    """Run the experiment, 0 if it shows what it asserts, else 1; or play a campaign, or show the matrix.

    Raises UsageError for what the user can correct.
    """
    _refuse_mixtures(options)
    if options.matrix:
        return _matrix(options)
    if options.campaign:
        return _campaign(options)
    return _experiment(options)


def _refuse_mixtures(options: argparse.Namespace) -> None:
    """Raise ScenarioError if options exclude each other."""
    of_one = {"EXPERIMENT": options.name, "--set": options.set, "--out": options.out}
    of_campaign = {"--budget": options.budget is not None, "--again": options.again}
    if options.campaign or options.matrix:
        _refuse(of_one, "is for a single experiment (accepted: in the campaign's file)")
    elif options.name is None:
        raise ScenarioError("reproduce: nothing to run (accepted: an EXPERIMENT, --campaign FILE or --matrix)")
    else:
        _refuse(of_campaign, "is for campaigns (accepted: with --campaign FILE)")
    if options.matrix:
        _refuse(of_campaign, "runs nothing with --matrix (accepted: with --campaign FILE alone)")


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Raise ScenarioError if an option is given."""
    for name, value in given.items():
        if value:
            raise ScenarioError(f"reproduce: {name} {why}")


def _experiment(options: argparse.Namespace) -> int:
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
        took = "diverged" if found.wall is None else f"{found.wall:.1f} s"
        print(f"{where}: accuracy {found.accuracy:.3f}, {took}", file=sys.stderr, flush=True)

    out = Path(options.out or "runs/reproduce")
    table = grid.play(experiment, options.scenarios, out, options.jobs, tell, options.set)
    claims = experiment.judged(table)
    said = (
        results_text.data(experiment, table, claims) if options.json else results_text.lines(experiment, table, claims)
    )
    print(shared_options.as_text("reproduce", said) if isinstance(said, dict) else "\n".join(said))
    return 0 if succeeded(claims) else 1


def _campaign(options: argparse.Namespace) -> int:
    """Play a campaign, keep its page up to date, and print what it found; 0 whatever the verdicts are."""
    from fedactors.papers.campaign import campaign_file, campaign_runs, matrix, matrix_page

    campaign = campaign_file.load(options.campaign, options.scenarios, reduced=options.reduced)

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if campaign.page:
        matrix_page.refuse_unmarked(campaign.page)
    try:
        campaign_runs.play(campaign, options.budget, options.jobs, tell, again=options.again)
    finally:
        rows = matrix.rows(campaign.results)
        if campaign.page:
            matrix_page.update(campaign.page, rows)
    names = {entry.name for entry in campaign.entries}
    mine = [row for row in rows if row.name in names and row.size == ("reduced" if options.reduced else "full")]
    _show(options, mine)
    return 0


def _matrix(options: argparse.Namespace) -> int:
    from fedactors.papers.campaign import campaign_file, matrix

    path = options.campaign or Path(_CAMPAIGN)
    campaign = campaign_file.load(path, options.scenarios, reduced=options.reduced)
    _show(options, matrix.rows(campaign.results))
    return 0


def _show(options: argparse.Namespace, rows: Sequence[MatrixRow]) -> None:
    from fedactors.papers.campaign import matrix

    if options.json:
        print(shared_options.as_text("reproduce", {"experiments": matrix.data(rows)}))
    else:
        print("\n".join(matrix.text(rows)))
