"""Tables 3, 4 and 5 and figure 5 of Ruan et al. (AISTATS 2021) from emerging participation.

A device has a share of its processor, or a link, over time; how many of its five steps it hands in follows from that
and from the deadline. The recordings have the moments of the paper's traces (`traces/ruan/make_ruan.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from fedactors.papers.claims import at_least
from fedactors.papers.experiment import Axes, Experiment, Label, ResultTable
from fedactors.papers.figures import Figure
from fedactors.papers.flexible.flexible_axes import (
    FOLDER,
    LEARNT,
    OPTIONS,
    REBOOT,
    SCHEMES,
    TRACES,
    arrivals,
    departures,
    images,
    spreads,
    synthetic,
)
from fedactors.papers.flexible.flexible_claims import (
    all_equal,
    fig5_claims,
    table4_claims,
    table4_of,
    table5_beside,
    table5_claims,
)
from fedactors.papers.flexible.flexible_measures import accuracy
from fedactors.papers.flexible.flexible_reported import TABLE_3
from fedactors.papers.fsl_axes import Axis
from fedactors.papers.verdicts import Claim, Floor

EMERGING = "emerging"
_WORTH = 2.0  # points: smaller rises of the paper, of one run each, are within its noise
_HALF = 0.5
EQUAL = "NIID equal"
_DEVICES = 50
_RECORDINGS = "../../../traces/ruan/"  # beside the folder of scenarios
_PROCESSORS = {1: "T0", 2: "T[03]*", 3: "T[035]*", 4: "T[0357]*", 5: "*"}  # rows of share.csv: the first so many
_LINKS = {1: "Thi", 2: "T[hm]i", 3: "*"}
_PER_SAMPLE = "compute: {{per_sample: 862ms{0}}}"


def emerging(links: str, *counts: int) -> Axis:
    """Return the axis of |T|: of the first so many traces, five are processors and the others are `links`."""
    return {count: (_population(links, count),) for count in counts}


def _population(links: str, traces: int) -> str:
    far = round(_DEVICES * max(0, traces - len(_PROCESSORS)) / traces)
    share = _recording("share.csv", _PROCESSORS[min(traces, len(_PROCESSORS))])
    busy = _PER_SAMPLE.format(f", share: {share}")
    groups = [f"{{name: busy, count: {_DEVICES - far}, {busy}, network: {{down: 10 MB/s, up: 10 MB/s}}}}"]
    if far:
        link = _recording(links, _LINKS[traces - len(_PROCESSORS)])
        network = f"network: {{trace: {{down: {link}, up: {link}}}}}"
        groups.append(f"{{name: far, count: {far}, {_PER_SAMPLE.format('')}, {network}}}")
    return f"population=[{', '.join(groups)}]"


def _recording(file: str, rows: str) -> str:
    return f"{{path: {_RECORDINGS}{file}, rows: '{rows}', assign: shuffle, offset: random}}"


def sampled(*counts: int) -> Axis:
    """Return the axis of |T| where each round draws what share of its steps a device does."""
    return {
        count: (
            f"population=[{{name: devices, count: {_DEVICES},"
            f" sampled: {{traces: [{', '.join(TRACES[:count])}], assign: shuffle}}}}]",
        )
        for count in counts
    }


def _emerging(data: Axis, links: str, *counts: int) -> Axes:
    return {"data": data, "source": {"emerging": ()}, "T": emerging(links, *counts), "scheme": SCHEMES}


def _sampled(data: Axis) -> Axes:
    """Return the same grid with sampled participation; with one trace it is the other one."""
    return {"data": data, "source": {"sampled": ()}, "T": sampled(5, 8), "scheme": SCHEMES}


def _synthetic() -> Axis:
    """Return the axis of data; each device has at least one whole batch for training."""
    return synthetic("NIID", "(0,0)", floor=23)


def _equal() -> Axis:
    """Return the axis of data of equal sizes, at a rate at which 200 rounds do not end learning."""
    return {EQUAL: (*spreads(1.0)[1.0], "server.schedule.lr=0.1")}


def _mnist() -> Axis:
    """Return the axis of data; devices of one digit have equal sizes, for by a Pareto law one digit weighs most."""
    equal = "task.partition={name: classes, classes: 1, balanced: false, samples: 200, replace: true}"
    return {"NIID": (equal,), "IID": (*images(10000, 20)["IID"], "server.local.drop_last=true")}


def halves_of(data: str, *kinds: str) -> Callable[[ResultTable], list[Claim]]:
    """Return the maker of the claims: C gains at least half of what the paper prints, where that is 2 points or more.

    They are asserted of the `kinds` of data. The same of B over A is reported, and that of sampled participation.
    """

    def claims(table: ResultTable) -> list[Claim]:
        alone = dict.fromkeys(at["data"] for at, _ in table.rows if at["T"] == 1)
        found = [
            all_equal(table, f"{kind}: one trace, all schemes are equal", data=kind, source=EMERGING, T=1)
            for kind in alone
        ]
        for kind, source, count, paper in _places(table, data):
            rises = _rises(table, kind, source, count)
            for name, ours, theirs in zip(("B - A", "C - B"), rises, paper, strict=True):
                if theirs < _WORTH:
                    continue
                text = f"{kind}, |T| = {count}, {source}: {name} is at least half of the paper's {theirs:g} points"
                held = kind in kinds and source == EMERGING and name == "C - B"
                found.append(at_least(text, ours, _HALF * theirs, asserted=held))
        return found

    return claims


def sources_of(data: str) -> Callable[[ResultTable], list[str]]:
    """Return the maker of table 3: the paper's rises, those from sampled and those from emerging participation."""

    def beside(table: ResultTable) -> list[str]:
        lines = [f"{data}, points of accuracy: B - A, C - B", f"{'':27}{'paper':>14}  {'ours':>14}    A / B / C"]
        for kind, source, count, paper in _places(table, data):
            rises = "".join(f"{rise:7.1f}" for rise in _rises(table, kind, source, count))
            levels = " / ".join(f"{level:.1f}" for level in _levels(table, kind, source, count))
            lines.append(f"{kind:<12}|T| = {count}  {source:<8}{paper[0]:7.1f}{paper[1]:7.1f}  {rises}    {levels}")
        return lines

    return beside


def _places(table: ResultTable, data: str) -> list[tuple[Label, Label, int, tuple[float, float]]]:
    """Return each (data, source, |T|) of the table with the rises that the paper prints there."""
    found = dict.fromkeys((at["data"], int(at["T"]), at["source"]) for at, _ in table.rows)
    return [
        (kind, source, count, TABLE_3[data, "NIID" if str(kind).startswith("NIID") else "IID"][count - 1])
        for kind, count, source in sorted(found, key=lambda place: (str(place[0]), place[1], str(place[2])))
    ]


def _levels(table: ResultTable, kind: Label, source: Label, count: int) -> list[Figure]:
    return [accuracy(table, data=kind, source=source, T=count, scheme=scheme) * 100 for scheme in "ABC"]


def _rises(table: ResultTable, kind: Label, source: Label, count: int) -> tuple[Figure, Figure]:
    a, b, c = _levels(table, kind, source, count)
    return b - a, c - b


_SEEDS = (1, 2, 3)

REDUCED: dict[str, Experiment] = {
    "flexible-table3-emerging": Experiment(
        "Ruan et al., table 3, from emerging participation: SYNTHETIC, 50 devices, one, five and all traces",
        f"{FOLDER}table3-synthetic-emerging.yaml",
        [_emerging(_synthetic(), "links-610.csv", 1, 5, 8), _emerging(_equal(), "links-610.csv", 5, 8)], _SEEDS,
        halves_of("SYNTHETIC", EQUAL), beside=sources_of("SYNTHETIC"),
        floors=LEARNT,
    ),
    "flexible-table3-mnist-emerging": Experiment(
        "Ruan et al., table 3, from emerging participation: MNIST, 14 x 14, 50 devices, one, five and all traces",
        f"{FOLDER}table3-mnist-emerging.yaml",
        [_emerging(_mnist(), "links-1970.csv", 1, 5, 8), _sampled(_mnist())], _SEEDS,
        halves_of("MNIST", "NIID"), beside=sources_of("MNIST"),
        floors=(Floor(0.25),),  # chance is a tenth; Scheme A ends at a third with some seeds
    ),
    "flexible-table4-emerging": Experiment(
        "Ruan et al., table 4, from emerging participation: one of ten devices arrives",
        f"{FOLDER}table4-emerging.yaml", [{"tau": arrivals(60, 10, 30, 50, 70), "reboot": REBOOT}], _SEEDS,
        table4_claims, beside=table4_of("MNIST"),
        floors=LEARNT,
    ),
    "flexible-fig5-emerging": Experiment(
        "Ruan et al., figure 5, from emerging participation: three devices arrive one after the other",
        f"{FOLDER}fig5-emerging.yaml", [{"reboot": REBOOT}], _SEEDS, fig5_claims,
        floors=LEARNT,
    ),
    "flexible-table5-emerging": Experiment(
        "Ruan et al., table 5, from emerging participation: one of thirty devices departs",
        f"{FOLDER}table5-emerging.yaml",
        [{"a": spreads(0.1, 1.0), "tau": departures(120, 10, 30, 50), "option": OPTIONS}], _SEEDS,
        table5_claims, beside=table5_beside,
        floors=LEARNT,
    ),
}  # fmt: skip
