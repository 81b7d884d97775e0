"""What `--json` prints of runs, of the clock, and of run folders; see `outputs`."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

from fedactors.plan import EndKind

Digests = dict[str, str]


class TrafficFigures(TypedDict):
    """Bytes."""

    down: int
    up: int


class Output(TypedDict):
    """What all have: "fedactors/COMMAND/VERSION" of what is printed."""

    schema: str


class Participation(Output):
    """Who took part in a run or replay. Times in seconds, sizes in bytes."""

    name: str
    seed: int
    sampled_devices: int  # whose taking part is drawn by a law
    # bytes of a model, of a trip down and up, once for each client, and ahead of the run; where clients have models of
    # unlike sizes, down and up are lists with one number for each
    wire: dict[str, int | list[int]]
    notes: list[str]  # what settings mean together that is easily missed
    remarks: list[str]  # what the run turned out to be that is easily missed
    plans: int
    virtual_seconds: float
    asked: int
    heard: int
    clients_heard: int
    empty_rounds: int
    outcomes: dict[str, int]
    steps: int
    steps_wasted: int
    bytes: TrafficFigures
    bytes_backhaul: NotRequired[int]  # between edges and cloud
    joules: NotRequired[float]
    joules_wasted: NotRequired[float]
    co2_grams: NotRequired[float]
    joules_of_stages: NotRequired[dict[str, float]]
    joules_of_groups: NotRequired[dict[str, float]]
    joules_of_device: NotRequired[dict[str, float]]  # mean, max and Gini's coefficient over all devices
    epsilon: NotRequired[float]  # of the device that was heard most, at `delta`
    delta: NotRequired[float]
    staleness: dict[str, float]
    fairness: dict[str, float]
    wall_seconds: float
    ended: EndKind
    ended_because: str  # the same as a sentence
    folder: str


class RunOutput(Participation):
    """`run`, `resume` and `branch`."""

    best: NotRequired[dict[str, Any]]
    branched_after: NotRequired[list[int]]  # of a branch: the rounds after which it, and the runs before it, began
    ahead: NotRequired[dict[str, float]]  # spent before the first round, in the columns of metrics
    loss_function: str  # its name, or file:name of one of the user's
    tests_by_seed: bool  # whether another seed may have other test samples
    made_with: dict[str, str]
    made_with_before: NotRequired[dict[str, str]]
    cost: NotRequired[float]
    final: dict[str, Any] | None  # None if the model was never evaluated
    curve: dict[str, Any] | None
    to_accuracy: list[dict[str, Any]]
    digests: Digests


class ReplayOutput(Participation):
    """`replay`."""

    devices: int
    steps_done_of_wanted: dict[str, int]
    digests: Digests


class RecordingFigures(TypedDict):
    """What became of the clients asked over one recording: means per replay; shares of those asked, by outcome.

    `heard` is the share of all devices that were heard at least once, `gini` how unevenly updates come from them.
    """

    at: dict[str, str]  # the name of the recording
    rounds: float
    asked: float
    shares: dict[str, float]
    heard: float
    gini: float


class RecordingsOutput(Output):
    """`replay --traces`; `table` is the file with the same figures as CSV."""

    name: str
    places: list[RecordingFigures]
    table: str


class ForecastFigures(TypedDict):
    """What a run is expected to take on this machine."""

    fleet: str
    actors: int
    wall_seconds: float
    seconds_per_round: float
    steps_per_second: float
    host_bytes: int
    gpu_bytes: int
    calibration_seconds: float


class CheckOutput(Output):
    """`check`."""

    name: str
    devices: dict[str, int]
    samples: dict[str, int]
    inputs: list[dict[str, Any]]  # of a sample: name, empty by position, and shape of each
    model: dict[str, Any]
    rounds: dict[str, float]  # means of the rounds that were replayed; how many are wanted
    notes: list[str]
    too_slow_devices: int
    memory_bytes: dict[str, int]
    ended_because: str
    forecast: ForecastFigures | None
    costly: list[str]


class FleetDigestsFigures(TypedDict):
    """A run of `verify`."""

    fleet: str
    actors: int
    digests: Digests


class VerifyOutput(Output):
    """`verify`."""

    name: str
    equal: bool
    runs: list[FleetDigestsFigures]


class AuditCheckFigures(TypedDict):
    """A check of `audit`."""

    name: str
    looked_at: str
    wrong: list[str]


class AuditOutput(Output):
    """`audit`."""

    folder: str
    sound: bool
    checks: list[AuditCheckFigures]


class FirstDifferenceFigures(TypedDict):
    """The first round that differs, and the values of both runs under each key that differs."""

    round: int
    apart: dict[str, list[Any]]


class PartingFigures(TypedDict):
    """For how many rounds two runs are equal, and what comes then."""

    equal_rounds: int
    first: FirstDifferenceFigures | None


class DiffOutput(Output):
    """`diff`. Lists of two are of the first run and of the second."""

    runs: list[str]
    scenario: list[str]
    rounds: list[int]
    plans: PartingFigures
    metrics: PartingFigures
    final: list[dict[str, Any] | None]
    replays: list[bool]
    model_equal: bool | None
    made_with: list[str]
