"""A comparison as text: its answer, its table, and what a reader has to know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from html import escape

from fedactors.metric_names import VALIDATION, chooser
from fedactors.plain_text import aligned
from fedactors.report.measures import BEST_ROUND
from fedactors.study.answer import Beside, best_variant
from fedactors.study.compared import Compared, Estimate
from fedactors.study.equal_time import unequal_times
from fedactors.study.ranking import AT_OWN_MODELS
from fedactors.study.run_figures import (
    AT_CLIENTS,
    MEASURES,
    Measure,
    learned,
    measure_of,
    rises_of,
    tests_mixed,
    titled,
    unlike_programs,
)
from fedactors.study.statistics import Interval

_OF_MODEL = ("accuracy", "loss")
_AT_CLIENTS = ("client_accuracy",)
_SPENT = ("seconds", "bytes", "epsilon")
_REACHED = (
    "rounds_to",
    "seconds_to",
    "bytes_to",
    "joules_to",
)  # an accuracy of the server's model
_OF_THE_CLOCK = ("heard", "partial", "gini", "staleness", "rounds", "seconds", "bytes")  # where nothing was trained
_NONE = "-"
_MIXED = "; but test samples differ by seed, and those of one seed may be validation samples of another"
_BY_TESTS = (
    "Ranked by the test samples, so the figure of the best one is too good: to report it, choose by others"
    " (task.validation)."
)
_BY_TESTS_OF_CLIENTS = (
    "Ranked by the test samples of clients, so the figure of the best one is too good: there are none for validation at"
    " clients."
)


def columns(comparison: Compared) -> list[str]:
    """Return the measures that a table shows, of those that there are; variants are ranked by the first one.

    That is the one asked for, accuracy at clients where these use models of their own, or the first measure of the
    model. With samples for validation it is of these, and the test samples' stands beside it.
    """
    there = dict.fromkeys(estimate.measure for estimate in comparison.estimates())
    own = [name for name in there if name not in MEASURES and not _of_validation(name, comparison)]
    of_model = [*_those(_OF_MODEL, there), *own]
    first = _first(comparison, of_model, there)
    reached = () if first in AT_CLIENTS else _REACHED
    spent = _those((*_AT_CLIENTS, *_SPENT, *reached), there)
    shown = [*of_model, *spent] if of_model else _those(_OF_THE_CLOCK, there) or ["accuracy"]
    test = _those([first.removeprefix(VALIDATION)], there)
    return list(dict.fromkeys([first, *test, *shown, *_those(comparison.beside, there)]))


def _first(comparison: Compared, of_model: Sequence[str], there: Mapping[str, None]) -> str:
    """Return the measure by which variants are ranked."""
    if comparison.measure is not None:
        return comparison.measure
    if comparison.own_models and AT_OWN_MODELS in there:
        return AT_OWN_MODELS
    if not of_model:
        return (_those(_OF_THE_CLOCK, there) or ["accuracy"])[0]
    best = VALIDATION + of_model[0]
    return best if comparison.validated and best in there else of_model[0]


def drawn(comparison: Compared) -> tuple[str, str]:
    """Return the column of accuracies that pictures show, and what it is: at clients where these rank variants."""
    first = columns(comparison)[0]
    return (first, measure_of(first).name) if first in AT_CLIENTS else ("accuracy", "accuracy on the test set")


def _of_validation(name: str, comparison: Compared) -> bool:
    return comparison.validated and name.startswith(VALIDATION)


def _those(names: Sequence[str], there: Mapping[str, None]) -> list[str]:
    """Return the names that are there, in their order."""
    return [name for name in names if name in there]


def text(comparison: Compared) -> str:
    """Return the answer and the table as text, with what a reader has to know below."""
    table = aligned([heads(comparison), *lines(comparison)])
    said = [title(comparison), answer(comparison), *cautions(comparison)]
    return "\n".join([*said, "", *table, "", *notes(comparison)])


def as_html(comparison: Compared) -> str:
    """Return the answer, the table and what a reader has to know, for a notebook."""
    head = "".join(f'<th style="{_side(k)}">{escape(cell)}</th>' for k, cell in enumerate(heads(comparison)))
    body = "".join(
        "<tr>" + "".join(f'<td style="{_side(k)}">{escape(cell)}</td>' for k, cell in enumerate(line)) + "</tr>"
        for line in lines(comparison)
    )
    said = "<br>".join(escape(line) for line in [answer(comparison), *cautions(comparison)])
    below = "<br>".join(map(escape, notes(comparison)))
    return (
        f"<b>{escape(title(comparison))}</b><p>{said}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><small>{below}</small>"
    )


def _side(column: int) -> str:
    return f"text-align: {'right' if column else 'left'}"


def cautions(comparison: Compared) -> list[str]:
    """Return what stands below the answer: what is compared as well, such as rates of the server or virtual times."""
    return [f"Note: {said}." for said in cautioned(comparison)]


def cautioned(comparison: Compared) -> list[str]:
    """Return what is compared as well, as sentences."""
    trained = any(map(learned, columns(comparison)))
    times = unequal_times(comparison) if trained else []
    return [*comparison.settings_notes, *times, *unlike_programs(comparison.rows)]


def heads(comparison: Compared) -> list[str]:
    """Return the heads of the table: the first measure is followed by its difference."""
    first, *rest = (_titled(name, comparison).name for name in columns(comparison))
    return ["", first, "difference", *rest]


def _titled(name: str, comparison: Compared) -> Measure:
    return titled(name, validated=comparison.validated)


def lines(comparison: Compared) -> list[list[str]]:
    """Return the cells of the table, a line for each variant."""
    shown = columns(comparison)
    found: dict[str, dict[str, Estimate]] = {variant: {} for variant in comparison.variants}
    for one in comparison.estimates():
        found[one.variant][one.measure] = one
    return [_line(comparison, variant, found[variant], shown) for variant in comparison.variants]


def title(comparison: Compared) -> str:
    """Return what is compared, in a line."""
    variants, seeds = counted(comparison.variants, "variant"), counted(comparison.seeds, "seed")
    return f"{comparison.name}: {variants}, {seeds} each"


def counted(them: Sized, name: str) -> str:
    """Return how many there are of what has a name: "1 seed", "2 seeds"."""
    return f"{len(them)} {name}{'s' * (len(them) != 1)}"


def answer(comparison: Compared) -> str:
    """Return what the comparison answers: which variant is best, and how sure that is."""
    first = columns(comparison)[0]
    rises = rises_of(first, comparison.rows[0].records)
    test = None
    if _of_validation(first, comparison):
        on_test = first.removeprefix(VALIDATION)
        test = Beside(_titled(on_test, comparison), _by_seed(comparison, on_test))
    values = _by_seed(comparison, first)
    return best_variant(values, comparison.baseline, measure_of(first), rises, comparison.confidence, test)


def _by_seed(comparison: Compared, measure: str) -> dict[str, dict[int, float | None]]:
    """Return a measure of each variant by seed."""
    return {
        name: {one.seed: found.get(measure) for one, found in zip(rows, comparison.figures(name), strict=True)}
        for name, rows in comparison.variants.items()
    }


def notes(comparison: Compared) -> list[str]:
    """Return what the figures mean, and whether all variants faced the same events."""
    percent = f"{comparison.confidence:.0%}"
    found = [
        f"±, [] and differences from {comparison.baseline}: {percent} confidence, Student's t (of shares in [] on the"
        " scale of logits); * leaves out 0."
    ]
    if len(comparison.seeds) < 2:
        found = ["One seed tells no confidence: give --seeds 2 or more."]
    found += _target(comparison)
    if any(map(learned, columns(comparison))):
        found.append(averaged(comparison.window))
    first, mixed = columns(comparison)[0], tests_mixed(comparison.rows)
    found += ranked_by(first, len(comparison.variants), validated=comparison.validated, mixed=mixed)
    found += _directions(comparison)
    failed = [f"{one.failure.splitlines()[0]} ({one.folder})" for one in comparison.rows if one.failure]
    return [*found, *_plans(comparison), *(f"Not finished: {why}" for why in failed)]


def _target(comparison: Compared) -> list[str]:
    """Return which accuracy "to target" speaks of, or why there is none; nothing where tables do not speak of it."""
    accuracy = any(estimate.measure == "accuracy" for estimate in comparison.estimates())
    if not accuracy or columns(comparison)[0] in AT_CLIENTS:
        return []
    of = "validation accuracy" if comparison.validated else "accuracy"
    if comparison.target is not None:
        return [f'Target: {of} {comparison.target:g}; "(k of n)" reached it in k of n seeds.']
    column = chooser("accuracy", validated=comparison.validated)
    if all(found.get(column) is None for found in comparison.figures(comparison.baseline)):
        return [f"No target: {comparison.baseline} has no {of}; --target names one."]
    return [
        f"No target: {comparison.baseline} has 90 % of its {of} at the end when it is first evaluated; --target names"
        " one."
    ]


def _plans(comparison: Compared) -> list[str]:
    """Return whether variants faced the same events, as far as runs that were finished tell."""
    alike = comparison.alike()
    unlike = [variant for variant, same in alike.items() if not same]
    if unlike:
        return [
            f"Plans other than those of {comparison.baseline}: {', '.join(unlike)} (other traffic, server work or"
            " devices); what happens to each device is drawn alike."
        ]
    if len(alike) < len(comparison.variants):
        return []
    return ["All variants faced the same devices, seconds and cut-offs: their plans have one digest per seed."]


def ranked_by(measure: str, variants: int, *, validated: bool, mixed: bool = False) -> list[str]:
    """Return by which samples the best of several variants is chosen, as a sentence; none if that is no question.

    `mixed`: test samples of one seed may be samples for validation of another.
    """
    if not learned(measure) or variants < 2:
        return []
    if measure in AT_CLIENTS:
        return [_BY_TESTS_OF_CLIENTS]
    if validated and measure.startswith(VALIDATION):
        return [f"Ranked by {measure_of(measure).name}: no test sample was used for the choice{_MIXED * mixed}."]
    aside = "the test samples, although there are others for validation"
    return [f"Ranked by {aside}." if validated else _BY_TESTS]


def averaged(window: int | None) -> str:
    """Return over which rounds the measures of the model are means, as a sentence."""
    if window == BEST_ROUND:
        return "Accuracy, loss and other measures of the model are those of each run's best round in validation."
    if window == 1:
        return "Accuracy, loss and other measures of the model are those of the last round."
    which = "the last tenth of the rounds" if window is None else f"the last {window:,} rounds"
    return f"Accuracy, loss and other measures of the model are means over {which}."


def _directions(comparison: Compared) -> list[str]:
    """Return which of the measures that scenarios name are better when they are lower."""
    own = [name for name in columns(comparison) if name not in MEASURES]
    known = comparison.rows[0].records
    lower = [measure_of(name).name for name in own if known.rises(name) is False]
    return [f"Lower is better: {', '.join(['loss', *lower])}."] if lower else []


def _line(comparison: Compared, variant: str, found: Mapping[str, Estimate], shown: Sequence[str]) -> list[str]:
    runs = len(comparison.variants[variant])
    values = {name: found[name].value if name in found else None for name in shown}
    first, *rest = (written(values[name], measure_of(name), runs) for name in shown)
    apart = _difference(found[shown[0]], comparison) if shown[0] in found else _NONE
    return [variant, first, apart, *rest]


def _difference(estimate: Estimate, comparison: Compared) -> str:
    apart = estimate.difference
    if apart is None:
        return "" if estimate.variant == comparison.baseline else _NONE
    measure = measure_of(estimate.measure)
    sign = "+" if apart.mean >= 0 else ""
    half = "" if apart.half is None else f" ± {measure.show(apart.half)}"
    return f"{sign}{measure.show(apart.mean)}{half}{' *' if apart.apart else ''}"


def written(value: Interval | None, measure: Measure, runs: int) -> str:
    """Return a mean with its interval, and in how many of the runs there was one if not in all."""
    if value is None:
        return _NONE
    few = "" if value.n == runs else f" ({value.n} of {runs})"
    return f"{measure.show(value.mean)}{_width(value, measure)}{few}"


def _width(value: Interval, measure: Measure) -> str:
    """Return how sure a mean is: its interval if it is a share, else half its width."""
    if value.half is None or value.low is None or value.high is None:
        return ""
    if measure.kind == "share":
        return f" [{measure.show(value.low)}, {measure.show(value.high)}]"
    return f" ± {measure.show(value.half)}"
