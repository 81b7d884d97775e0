"""The campaign file: which experiments, with which seeds, and where results and runs are kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator

from fedactors.errors import ScenarioError, suggestion
from fedactors.options import Options
from fedactors.papers import catalogue
from fedactors.papers.experiment import Axes, Experiment, Label
from fedactors.scenario.mistakes import explain
from fedactors.scenario.sweep_options import SeedList
from fedactors.scenario.yaml_text import Lines, parse, read


class ListedExperiment(Options):
    """An experiment of a campaign: its name alone, or with what is changed."""

    name: str
    seeds: SeedList | None = None
    """In place of the experiment's own."""
    set: list[str] = Field(default=[])
    """Overrides `key.path=value` of all runs; `note` says why."""
    without: dict[str, list[str | int | float]] = Field(default={})
    """Labels of axes that are left out, such as rows whose data are not at hand."""
    note: str = ""
    """How it differs from the paper's; shown beside its verdicts."""

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data


class CampaignOptions(Options):
    """A campaign file. Paths start from its folder."""

    results: str = "results"
    """Folder of the results, to be committed."""
    runs: str = "runs/campaign"
    """Folder of the runs; it can be deleted when results are there."""
    page: str | None = None
    """Markdown page whose part between the lines of `matrix_page` is kept up to date."""
    full: list[ListedExperiment] = Field(default=[])
    """Experiments at the papers' size."""
    reduced: list[ListedExperiment] | Literal["all"] = Field(default=[])
    """Reduced experiments, played with `--reduced`."""


class CampaignEntry(NamedTuple):
    """An experiment as a campaign plays it."""

    name: str
    reduced: bool
    experiment: Experiment
    overrides: tuple[str, ...] = ()
    note: str = ""

    @property
    def size(self) -> str:
        """The name of the folder of its results."""
        return "reduced" if self.reduced else "full"


@dataclass(frozen=True)
class Campaign:
    """Experiments to play, and where results, runs and the page are."""

    results: Path
    runs: Path
    page: Path | None
    entries: Sequence[CampaignEntry]
    scenarios: Path


def load(path: Path, scenarios: Path, *, reduced: bool) -> Campaign:
    """Read a campaign file, and choose its experiments of one size.

    Raises ScenarioError that names the file, the line or key path, what was found and what is accepted.
    """
    data, lines = parse(read(path), str(path))
    try:
        options = CampaignOptions.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(explain(error, str(path), lines)) from None
    folder = path.parent
    listed = _listed(options, reduced=reduced)
    entries = [_entry(one, reduced, _place(path, lines, key, number)) for number, (key, one) in enumerate(listed)]
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(f"{path}: {name} is named twice (accepted: each experiment once)")
    page = folder / options.page if options.page else None
    return Campaign(folder / options.results, folder / options.runs, page, entries, scenarios)


def _listed(options: CampaignOptions, *, reduced: bool) -> list[tuple[str, ListedExperiment]]:
    if not reduced:
        return [("full", one) for one in options.full]
    if options.reduced == "all":
        return [("reduced", ListedExperiment(name=name)) for name in distinct(catalogue.REDUCED)]
    return [("reduced", one) for one in options.reduced]


def distinct(experiments: Mapping[str, Experiment]) -> dict[str, list[str]]:
    """Return the name of each experiment, once, with the other names it has: some figures share an experiment."""
    first: dict[int, str] = {}
    found: dict[str, list[str]] = {}
    for name, experiment in experiments.items():
        if id(experiment) in first:
            found[first[id(experiment)]].append(name)
        else:
            first[id(experiment)] = name
            found[name] = []
    return found


def _place(path: Path, lines: Lines, key: str, number: int) -> str:
    line = lines.get((key, str(number)))
    return f"{path}, line {line}: {key}.{number}" if line else f"{path}: {key}.{number}"


def _entry(listed: ListedExperiment, reduced: bool, where: str) -> CampaignEntry:
    known = catalogue.REDUCED if reduced else catalogue.FULL
    if listed.name not in known:
        raise ScenarioError(f'{where}: no such experiment "{listed.name}"{suggestion(listed.name, known)}')
    experiment = known[listed.name]
    if listed.seeds is not None:
        experiment = replace(experiment, seeds=tuple(listed.seeds))
    if listed.without:
        left_out = _left_out(experiment.grids, listed.without, where)
        experiment = replace(experiment, grids=_without(experiment.grids, left_out), left_out=left_out)
    return CampaignEntry(listed.name, reduced, experiment, tuple(listed.set), listed.note)


def _left_out(
    grids: Sequence[Axes], named: Mapping[str, Sequence[str | int | float]], where: str
) -> frozenset[tuple[str, Label]]:
    """Return the axes and labels that are named. Raises ScenarioError if one does not exist."""
    gone = {axis: {str(label) for label in labels} for axis, labels in named.items()}
    for axis, labels in gone.items():
        _refuse_unknown(grids, axis, labels, where)
    pairs = ((axis, label) for axes in grids for axis, values in axes.items() for label in values)
    return frozenset((axis, label) for axis, label in pairs if str(label) in gone.get(axis, ()))


def _without(grids: Sequence[Axes], left_out: Collection[tuple[str, Label]]) -> list[Axes]:
    """Return the grids without some labels, and without those that have no others."""
    kept = [
        {
            axis: {label: changes for label, changes in values.items() if (axis, label) not in left_out}
            for axis, values in axes.items()
        }
        for axes in grids
    ]
    return [axes for axes in kept if all(axes.values())]


def _refuse_unknown(grids: Sequence[Axes], axis: str, labels: set[str], where: str) -> None:
    known = {str(label) for axes in grids for label in axes.get(axis, ())}
    if not known:
        named = {name for axes in grids for name in axes}
        raise ScenarioError(f'{where}.without: no axis "{axis}"{suggestion(axis, named)}')
    for label in sorted(labels - known):
        raise ScenarioError(f'{where}.without.{axis}: no label "{label}"{suggestion(label, known)}')
