"""By which measure a study ranks its variants, and which measures its runs can have."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from fedactors.errors import ScenarioError, suggestion
from fedactors.metric_names import TEST, VALIDATION, chooser
from fedactors.plain_text import listed
from fedactors.report.measures import BEST_ROUND
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import prepare
from fedactors.study.run_figures import AT_CLIENTS, MEASURES, StudyRow, chooses, learned, validated
from fedactors.study.study_cells import StudyAxis

AT_OWN_MODELS = AT_CLIENTS[0]
_VALIDATION_KEYS = ("task.validation", "task.dataset")  # changes of them may bring samples for validation
_WITH_VALIDATION = "with task.validation: 0.2, or data with such a part"


def has_own_models(scenario: Scenario) -> bool:
    """Return whether clients use models of their own: whole ones, or the server's with parts that stay with them."""
    server = scenario.server
    local_statistics = getattr(scenario.task.model, "buffers", None) == "local"
    return bool(server.personal) or server.algorithm.own_pull is not None or local_statistics


def evaluates_own_models(scenario: Scenario) -> bool:
    """Return whether there is an accuracy at clients of the models that these use."""
    evaluation = scenario.server.evaluation
    return evaluation is not None and evaluation.model == "own" and scenario.task.has_accuracy is not False


def with_own_models(settings: Mapping[str, Scenario]) -> list[str]:
    """Return the variants whose clients use, and are evaluated with, models of their own."""
    return [name for name, one in settings.items() if has_own_models(one) and evaluates_own_models(one)]


def unused_model(settings: Mapping[str, Scenario]) -> list[str]:
    """Return a sentence about variants whose clients have models of their own, without an accuracy of these."""
    unseen = {name: one for name, one in settings.items() if has_own_models(one) and not evaluates_own_models(one)}
    if not unseen:
        return []
    instead = (
        "client_loss in metrics.jsonl is that of the clients' own models"
        if any(one.task.has_accuracy is False for one in unseen.values())
        else "server.evaluation measures the clients' own models, and variants are then compared by accuracy at clients"
    )
    names = listed(list(unseen))
    return [f"accuracy and loss are those of the server's model, which no client of {names} uses: {instead}"]


def asked_measure(
    base: Scenario, axes: Sequence[StudyAxis], measure: str | None, *, clock_only: bool
) -> tuple[str | None, list[str]]:
    """Return the measure that ranks variants, if one is asked for, and further ones that tables show.

    They are `measure`, or that of the scenario's `sweep`, and its `beside`. Raises ScenarioError if no run can have
    them.
    """
    known = (*MEASURES, *base.task.own_metrics)
    where, further = "--measure", list[str]()
    if base.sweep is not None and not clock_only:
        further = base.sweep.beside
        if measure is None and "measure" in base.sweep.model_fields_set:
            where, measure = "sweep.measure", base.sweep.measure
    for name in further:
        refuse_unknown(base, "sweep.beside", name, known)
    if measure is not None:
        refuse_unknown(base, where, measure, known)
        refuse_unmeasured(base, axes, where, measure, clock_only=clock_only)
    own = base.task.own_metrics
    return measure, [chooser(name, own, validated=False) for name in further]


def ranking_column(shown: str, rows: Sequence[StudyRow]) -> str:
    """Return the figure by which variants are ranked: of samples for validation, where all runs have some."""
    finished = [one.records for one in rows if not one.failure]
    if not finished or not chooses(shown):
        return shown
    return chooser(shown, finished[0].measures, validated=validated(rows))


def refuse_unknown(base: Scenario, where: str, name: str, known: Sequence[str]) -> None:
    """Raise ScenarioError if there is no measure of that name; `where` says where it was asked for.

    The name may also say of which samples a measure is.
    """
    bare = _bare(name, known)
    if bare not in known or (bare != name and not chooses(bare)):
        raise ScenarioError(f'{base.source}: {where}: no measure "{name}"{suggestion(name, known)}')


def _bare(name: str, known: Container[str]) -> str:
    """Return the name of a measure without what says of which samples it is."""
    return name if name in known else name.removeprefix(TEST).removeprefix(VALIDATION)


def refuse_unmeasured(base: Scenario, axes: Sequence[StudyAxis], where: str, shown: str, *, clock_only: bool) -> None:
    """Raise ScenarioError if no run can have a figure of the measure `shown`; `where` says where it was asked for."""
    if clock_only and (learned(shown) or shown.endswith("_to")):
        raise ScenarioError(f"{base.source}: --clock-only trains nothing: no {shown} (accepted: heard, seconds, bytes)")
    changed = _changed(axes)
    bare = _bare(shown, base.task.own_metrics)
    if bare != shown and shown.startswith(VALIDATION) and not _may_validate(base, changed):
        raise ScenarioError(
            f"{base.source}: {where}: no run has a figure of {shown}: there are no samples for validation"
            f" (accepted: {_WITH_VALIDATION})"
        )
    key, why = _lacking(base, bare)
    if why and not any(change.startswith(key) for change in changed):
        raise ScenarioError(f"{base.source}: {where}: no run has a figure of {shown}: the scenario {why}")


def refuse_best_round(base: Scenario, axes: Sequence[StudyAxis], window: int | None, shown: str | None) -> None:
    """Raise ScenarioError if figures are to be those of a best round, and that round is not known, or of no use.

    Not known without samples for validation; of no use if variants are ranked by accuracy at clients (`shown` is the
    measure that ranks, if it is known): clients are not evaluated in each round, and no sample for validation is
    theirs.
    """
    if window != BEST_ROUND:
        return
    if not _may_validate(base, _changed(axes)):
        raise ScenarioError(
            f"{base.source}: --metric best-round: no samples for validation say which round is the best"
            f" (accepted: {_WITH_VALIDATION}; or last-round)"
        )
    if shown in AT_CLIENTS:
        raise ScenarioError(
            f"{base.source}: --metric best-round: variants are ranked by {shown}, and samples for validation choose"
            " the best round of the server's model (accepted: last-round, or --measure accuracy)"
        )


def _changed(axes: Sequence[StudyAxis]) -> list[str]:
    """Return the changes that axes make, as KEY=VALUE."""
    return [change for one in axes for changes in one.values.values() for change in changes]


def _may_validate(base: Scenario, changed: Sequence[str]) -> bool:
    """Return whether a scenario has samples for validation, or changes may give it some."""
    keys = [change.partition("=")[0] for change in changed]
    return any(key == "task" or key.startswith(_VALIDATION_KEYS) for key in keys) or bool(
        prepare(base).info.validation_size
    )


def _lacking(base: Scenario, shown: str) -> tuple[str, str]:
    """Return by which key a scenario would get figures of a measure, and why it has none; nothing if it has."""
    if shown in AT_CLIENTS and base.server.evaluation is None:
        return "server.evaluation", "has no server.evaluation"
    if shown == "epsilon" and base.server.privacy is None:
        return "server.privacy", "has no server.privacy"
    if shown in ("joules", "joules_to") and not any(group.energy for group in base.population):
        return "population", "has no group with energy"
    if shown in ("accuracy", "rounds_to", "seconds_to", "bytes_to") and base.task.has_accuracy is False:
        return "task", "learns values, which have no accuracy"
    return "", ""
