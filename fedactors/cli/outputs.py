"""What `--json` prints, command by command: a type for each, from which `fedactors schema COMMAND` makes a JSON schema.

Within a version, keys may be added; none is taken away, renamed or given another meaning.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

from fedactors.cli.run_outputs import (
    AuditOutput,
    CheckOutput,
    DiffOutput,
    Output,
    RecordingsOutput,
    ReplayOutput,
    RunOutput,
    VerifyOutput,
)
from fedactors.cli.shared_options import version_of


class IntervalFigures(TypedDict):
    """A mean of `n` values, and its confidence interval from `low` to `high`, unknown of one value.

    `half` is half its width on the scale of the measure; intervals of shares lie within 0 and 1, not around the mean.
    """

    n: int
    mean: float
    half: float | None
    low: float | None
    high: float | None


class ScaleOutput(Output):
    """`scale`. A point is a row of scale.csv."""

    points: list[dict[str, Any]]


class ScenariosOutput(Output):
    """`scenarios`: what each is about, by name."""

    scenarios: dict[str, str]


class EstimateFigures(TypedDict):
    """A measure of a variant, and its difference from the baseline seed by seed."""

    variant: str
    measure: str
    value: IntervalFigures | None
    difference: IntervalFigures | None


class CompareOutput(Output):
    """`compare`; `answer` says which variant is best, and how sure that is; `notes` what is compared besides."""

    answer: str
    notes: list[str]
    ranked_by: str  # the measure by which the best variant is chosen
    target: float | None
    baseline: str
    estimates: list[EstimateFigures]
    page: str


class PlaceFigures(TypedDict):
    """A place of a sweep's grid."""

    at: dict[str, Any]
    value: IntervalFigures | None
    test: NotRequired[
        IntervalFigures | None
    ]  # the test samples' value, where places are ranked by those for validation


class SweepOutput(Output):
    """`sweep`; `answer` says which place is best, and how sure that is."""

    answer: str
    measure: str
    target: float | None
    places: list[PlaceFigures]
    page: str


class SeedsFigures(TypedDict):
    """A mean over seeds, and half the width of its interval; none of one seed."""

    mean: float
    half: float | None
    seeds: int


class ClaimFigures(TypedDict):
    """A claim of a paper, and what the runs say of it.

    `margin` is how far the figures are on the claim's side; `paper` is a number that the paper prints, `found` ours.
    """

    text: str
    ours: str
    verdict: str
    asserted: bool
    margin: SeedsFigures | None
    paper: float | None
    found: SeedsFigures | None


class ReproduceOutput(Output):
    """`reproduce`."""

    title: str
    reported: Any  # what the paper printed
    runs: list[dict[str, Any]]
    beside: list[str]
    claims: list[ClaimFigures]
    wall_seconds: float


class ExperimentFigures(TypedDict):
    """An experiment in the matrix; `found` is the file of its results, empty if there is none."""

    name: str
    others: list[str]
    size: str
    finished: bool
    found: dict[str, Any]


class MatrixOutput(Output):
    """`reproduce --matrix`, and `reproduce --campaign`."""

    experiments: list[ExperimentFigures]


class DataOutput(Output):
    """`data describe`. Counts of samples: by label, by client, and by both for the clients that are shown."""

    name: str
    dataset: str
    partition: str
    kind: str
    train: int
    test: int
    validation: NotRequired[int]  # samples by which settings are chosen, where there are some
    held: int
    input_shape: list[int]
    inputs: list[Any]
    clients: int
    client_names: list[str]
    sizes: list[int]
    smallest: int
    median: float
    largest: int
    without: int
    labels: list[str]
    of_label: list[int]
    labels_per_client: float | None
    label_distance: float | None
    counts: list[list[int]]
    attackers: list[str]


class RepairFigures(TypedDict):
    """What was mended in a recording, how often, and where first."""

    kind: str
    count: int
    first: str


class TraceOutput(Output):
    """`traces describe`. Further keys depend on what the recording holds; times in ns."""

    path: str
    repairs: list[Any]
    doubts: list[str]


class TraceFileOutput(Output):
    """`traces convert` and `traces sample`."""

    path: str
    out: str
    devices: int
    repairs: list[RepairFigures]


class TraceFormatFigures(TypedDict):
    """A format that can be read."""

    name: str
    gives: str
    description: str
    rule: bool


class FormatsOutput(Output):
    """`traces formats`."""

    formats: list[TraceFormatFigures]


OUTPUTS: dict[str, Any] = {
    "run": RunOutput,
    "resume": RunOutput,
    "branch": RunOutput,
    "replay": ReplayOutput | RecordingsOutput,
    "check": CheckOutput,
    "verify": VerifyOutput,
    "audit": AuditOutput,
    "diff": DiffOutput,
    "scale": ScaleOutput,
    "scenarios": ScenariosOutput,
    "compare": CompareOutput,
    "sweep": SweepOutput,
    "reproduce": ReproduceOutput | MatrixOutput,
    "data describe": DataOutput,
    "traces describe": TraceOutput,
    "traces convert": TraceFileOutput,
    "traces sample": TraceFileOutput,
    "traces formats": FormatsOutput,
}


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON schema of what a command prints with `--json`, in this version and in no other."""
    from pydantic import TypeAdapter

    found = TypeAdapter(OUTPUTS[command]).json_schema()
    for form in (found, *found.get("$defs", {}).values()):
        if "schema" in form.get("properties", {}):
            form["properties"]["schema"]["const"] = version_of(command)
    return found
