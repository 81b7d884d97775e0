"""Recordings as an axis of a study: the same scenario over one file after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fedactors.clock.recording_paths import locate_all
from fedactors.errors import ScenarioError
from fedactors.scenario.model import Scenario
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.trace_options import Trace
from fedactors.study.run_figures import StudyRow
from fedactors.study.running import StudyWork, run_all
from fedactors.study.runs import StudyMachines
from fedactors.study.study_cells import RECORDING, StudyAxis, change, crossed
from fedactors.traces.format_registry import format_of


def recordings_axis(base: Scenario, patterns: Sequence[str]) -> StudyAxis:
    """Return the axis of the recordings of availability that `patterns` name, in their order.

    Groups of `base` that follow a recording follow each of these in turn, with all else that they say; if no group
    does, all of them do. A rule (`when`) is left out for formats that have none. Raises ScenarioError if a file is
    named twice, TraceError if one is not there or of no known format.
    """
    paths = _files(patterns)
    following = [group for group in base.population if isinstance(group.availability, Trace)]
    names = Counter(path.name for path in paths)
    labels = [path.name if names[path.name] == 1 else str(path) for path in paths]
    groups = following or base.population
    changes = [tuple(_change(group, path) for group in groups) for path in paths]
    return StudyAxis(RECORDING, dict(zip(labels, changes, strict=True)))


def _files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that `patterns` name. Raises ScenarioError if one is named twice."""
    paths = [path for pattern in patterns for path in locate_all(pattern, Path())]
    for path, count in Counter(path.resolve() for path in paths).items():
        if count > 1:
            raise ScenarioError(f"--traces: {path} is named {count} times")
    return paths


def replay_each(
    scenario: str | Path,
    recordings: Sequence[str],
    *,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
) -> list[StudyRow]:
    """Replay a scenario over one recording after the other, as far as that is not done; return a row for each.

    `recordings` are files or patterns; replays lie in `out`, by default runs/studies/NAME. `incompleteness` makes a
    table of the rows. Raises UsageError for what the user can mend.
    """
    base = Scenario.load(scenario, overrides)
    cells = list(crossed([recordings_axis(base, recordings)], [base.seed]))
    folder = Path(out or f"runs/studies/{base.name}")
    machines = StudyMachines(jobs)
    return run_all(StudyWork(Path(scenario), cells, folder, tuple(overrides), machines, clock_only=True))


def _change(group: GroupOptions, path: Path) -> str:
    """Return the override with which a group follows the recording at `path`."""
    wanted = group.availability
    said = wanted.model_dump(mode="json", exclude_unset=True) if isinstance(wanted, Trace) else {}
    kept = {key: value for key, value in said.items() if key != "format"}
    if not format_of(path).ruled:
        kept.pop("when", None)
    followed = kept | {"name": "trace", "path": str(path.resolve())}
    return change(f"population.{group.name}.availability", followed)
