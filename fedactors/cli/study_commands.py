"""`fedactors compare` and `fedactors sweep`: run variants, print a table, leave tables and a page beside the runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedactors.cli import planned_files, shared_options, stopping
from fedactors.errors import ScenarioError
from fedactors.run_files.writing import write

if TYPE_CHECKING:
    from fedactors.study.study_cells import StudyAxis

AGAINST = ("round", "virtual", "bytes", "joules")
_MOST_JOBS = 4096


def extend_compare(command: argparse.ArgumentParser) -> None:
    """Declare the options of `compare`."""
    _common(command)
    command.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="KEY=V,V",
        help="server.algorithm=fedavg,fsl; several: all pairs",
    )
    command.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds for each variant (default: 5)")
    command.add_argument(
        "--measure",
        metavar="NAME",
        help="what ranks variants (default: sweep.measure if the file names one, accuracy at clients where these have"
        " models of their own, or accuracy)",
    )
    command.add_argument("--baseline", metavar="NAME", help="the variant others are compared with (default: the first)")
    command.add_argument("--against", choices=AGAINST, help="what --plot draws accuracies against (default: round)")
    command.add_argument("--confidence", type=float, default=0.95, metavar="P", help="of intervals (default: 0.95)")


def extend_sweep(command: argparse.ArgumentParser) -> None:
    """Declare the options of `sweep`."""
    _common(command)
    command.add_argument("--measure", metavar="NAME", help="what heat maps show (default: sweep.measure, or accuracy)")
    command.add_argument(
        "--best-per",
        metavar="AXIS",
        help="also say which place is best for each value of this axis, such as server.algorithm",
    )


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("scenario", metavar="SCENARIO", help=shared_options.SCENARIO)
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override in every run")
    command.add_argument("--target", type=float, metavar="A", help="accuracy (for compare: 90 %% of the baseline's)")
    shared_options.averaging(command)
    command.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: one per core)")
    shared_options.where(command, default=None)
    command.add_argument("--address", metavar="ADDRESS", help="run on this Ray cluster instead")
    command.add_argument("--clock-only", action="store_true", help="replay the clock of each run, without training")
    shared_options.traces(command)
    command.add_argument("--out", metavar="DIR", help="folder; runs in it are used (default: runs/studies/NAME)")
    command.add_argument("--runs-only", action="store_true", help="write no tables: a later call makes them")
    command.add_argument("--plot", metavar="FILE", help="also draw a PNG, PDF or SVG; needs fedactors[notebook]")
    command.add_argument("--json", action="store_true", help="print figures as JSON")


def run_compare(options: argparse.Namespace) -> int:
    """Compare, print and write; 0 when done, 130 when stopped. Raises UsageError for what the user can correct."""
    from fedactors.scenario.model import Scenario
    from fedactors.study import comparison_tables, page
    from fedactors.study.comparison import compare, seeds_of
    from fedactors.study.exports import comparison_files

    _check(options)
    base = Scenario.load(options.scenario, options.set)
    out = Path(options.out or f"runs/studies/{base.name}")
    if options.plot:
        planned_files.refuse_undrawable("--plot", options.plot, out)
    axes = _axes(options, base)
    _refuse_other(options, axes, seeds_of(base, options.seeds), out)
    further = {"baseline": options.baseline, "confidence": options.confidence, "measure": options.measure}
    found, code = _found(lambda: compare(options.scenario, axes, options.seeds, **_options(options, out), **further))
    if options.runs_only:
        return _say_runs(found, out, code)
    text = comparison_tables.text(found)
    files = {
        "comparison.txt": lambda: text + "\n",
        "comparison.csv": lambda: comparison_files.as_csv(found),
        "comparison.tex": lambda: comparison_files.latex(found),
        "runs.csv": lambda: comparison_files.runs_csv(found.rows, found.target, found.window),
    }
    _write(out, files | _outcomes(options, found.rows))
    page.write(found, out / "comparison.html")
    estimates = [
        {"variant": e.variant, "measure": e.measure, "value": e.value and e.value._asdict(),
         "difference": e.difference and e.difference._asdict()} for e in found.estimates()]  # fmt: skip
    said = {
        "answer": comparison_tables.answer(found),
        "notes": comparison_tables.cautioned(found),
        "ranked_by": comparison_tables.columns(found)[0],
        "target": found.target,
        "baseline": found.baseline,
        "estimates": estimates,
    }
    _print(options, "compare", text, out / "comparison.html", said)
    if options.plot:
        found.plot(against=options.against or "round").figure.savefig(options.plot, dpi=160)
    return code


def run_sweep(options: argparse.Namespace) -> int:
    """Sweep, print and write; 0 when done, 130 when stopped. Raises UsageError for what the user can correct."""
    from fedactors.scenario.model import Scenario
    from fedactors.study import sweep_page
    from fedactors.study.comparison import seeds_of
    from fedactors.study.exports import comparison_files
    from fedactors.study.sweep import axes_of, sweep

    _check(options)
    base = Scenario.load(options.scenario, options.set)
    out = Path(options.out or f"runs/studies/{base.name}")
    if options.plot:
        planned_files.refuse_undrawable("--plot", options.plot, out)
    further = _recordings(options, base)
    seeds = seeds_of(base, base.sweep.seeds if base.sweep else 1)
    _refuse_other(options, [*(axes_of(base.sweep) if base.sweep else ()), *further], seeds, out)
    asked = {"measure": options.measure, "best_per": options.best_per, "further": further}
    found, code = _found(lambda: sweep(options.scenario, **_options(options, out), **asked))
    if options.runs_only:
        return _say_runs(found, out, code)
    text = sweep_page.text(found)
    _write(out, {
        "sweep.txt": lambda: text + "\n",
        "runs.csv": lambda: comparison_files.runs_csv(found.rows, found.target, found.window),
        **_outcomes(options, found.rows),
    })  # fmt: skip
    sweep_page.write(found, out / "sweep.html")
    places = [_place(found, at, value) for at, value in found.places()]
    said = {"answer": sweep_page.answer(found), "measure": found.measure, "target": found.target, "places": places}
    _print(options, "sweep", text, out / "sweep.html", said)
    if options.plot:
        found.plot().savefig(options.plot, dpi=160)
    return code


def _say_runs(found: Any, out: Path, code: int) -> int:
    """Print how many runs of a study are complete, and return `code`: another call makes its tables."""
    print(f"{len(found.rows)} runs are complete in {out}")
    return code


def _place(found: Any, at: Any, value: Any) -> dict[str, Any]:
    """Return a place of a sweep, also with the test samples' value where it is ranked by others."""
    said = {"at": at, "value": value and value._asdict()}
    if found.on_test is None:
        return said
    test = found.mean(found.on_test, at)
    return said | {"test": test and test._asdict()}


def _found(study: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a study found and the exit code; of one that the user stops, what its complete seeds say."""
    from fedactors.study.running import StudyInterruptedError

    try:
        return study(), 0
    except StudyInterruptedError as stop:
        said = f"interrupted after {stop.done} of {stop.total} runs; what follows is of the seeds that are complete"
        print(f"fedactors: {said}, and the same command goes on", file=sys.stderr, flush=True)
        return stop.found, stopping.INTERRUPTED


def _axes(options: argparse.Namespace, base: Any) -> list[StudyAxis]:
    from fedactors.study.study_cells import axis_of
    from fedactors.study.sweep import axes_of

    recordings = _recordings(options, base)
    if options.vary:
        return [*(axis_of(text) for text in options.vary), *recordings]
    if base.sweep is None and recordings:
        return recordings
    if base.sweep is None:
        raise ScenarioError(f"{options.scenario}: nothing is varied (accepted: --vary KEY=V,V, or a sweep in the file)")
    return [*axes_of(base.sweep), *recordings]


def _recordings(options: argparse.Namespace, base: Any) -> list[StudyAxis]:
    """Return the axis of the recordings that `--traces` names, if it does."""
    from fedactors.study.recordings_axis import recordings_axis

    return [recordings_axis(base, options.traces)] if options.traces else []


def _refuse_other(options: argparse.Namespace, axes: Sequence[StudyAxis], seeds: Sequence[int], out: Path) -> None:
    """Raise RunFolderError if tables of a study of other runs would be replaced; before anything runs."""
    from fedactors.study.earlier import StudyVariants, refuse_other

    if options.runs_only:
        return
    refuse_other(StudyVariants(options.scenario, options.set, axes, seeds, options.clock_only), out)


def _outcomes(options: argparse.Namespace, rows: Sequence[Any]) -> dict[str, Callable[[], str]]:
    """Return the files with what became of the clients asked, where only the clock ran."""
    from fedactors.study import incompleteness

    if not options.clock_only:
        return {}
    return {
        "incompleteness.txt": lambda: incompleteness.text(rows) + "\n",
        "incompleteness.csv": lambda: incompleteness.as_csv(rows),
    }


def _check(options: argparse.Namespace) -> None:
    if options.jobs is not None and not 1 <= options.jobs <= _MOST_JOBS:
        raise ScenarioError(f"--jobs {options.jobs} (accepted: a whole number from 1 to {_MOST_JOBS:,})")
    if not 0 < getattr(options, "confidence", 0.95) < 1:
        raise ScenarioError(f"--confidence {options.confidence} (accepted: a share between 0 and 1, such as 0.95)")
    if options.target is not None and not 0 < options.target <= 1:
        raise ScenarioError(f"--target {options.target:g} (accepted: an accuracy above 0 and up to 1, such as 0.8)")
    _check_choices(options)


def _check_choices(options: argparse.Namespace) -> None:
    if options.clock_only and options.plot and options.command is run_compare:
        raise ScenarioError("--plot draws accuracies, and --clock-only trains nothing (accepted: one of the two)")
    if getattr(options, "against", None) and not options.plot:
        raise ScenarioError(f"--against {options.against} says what a picture shows (accepted: with --plot FILE)")
    if options.runs_only:
        tables = {"--plot": options.plot, "--json": options.json}
        _refuse_given(tables, "--runs-only makes no tables and no pictures")
    if options.clock_only:
        elsewhere = {"--address": options.address, "--fleet": options.fleet, "--actors": options.actors}
        _refuse_given(elsewhere, "--clock-only trains nothing, and replays on this machine")


def _refuse_given(values: Mapping[str, Any], why: str) -> None:
    """Raise ScenarioError if one of some options, by name, is given."""
    for name, value in values.items():
        if value:
            raise ScenarioError(f"{why} (accepted: without {name})")


def _options(options: argparse.Namespace, out: Path) -> dict[str, Any]:
    def tell(row: Any, pace: Any) -> None:
        said = ", ".join(f"{axis} {label}" for axis, label in row.labels.items())
        print(f"{said}, seed {row.seed}: {row.failure or 'done'} ({pace})", file=sys.stderr, flush=True)

    return {
        "out": out, "overrides": options.set, "target": options.target,
        "window": shared_options.window_of(options),
        "jobs": options.jobs, "address": options.address, "actors": options.actors,
        "fleet": options.fleet or ("ray" if options.actors else "local"),
        "clock_only": options.clock_only, "tell": tell,
    }  # fmt: skip


def _write(out: Path, files: dict[str, Callable[[], str]]) -> None:
    for name, content in files.items():
        write(out / name, content())


def _print(options: argparse.Namespace, command: str, text: str, page: Path, figures: dict[str, Any]) -> None:
    said = shared_options.as_text(command, {**figures, "page": str(page)})
    print(said if options.json else f"{text}\n\n{page}")
