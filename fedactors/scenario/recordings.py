"""What a group of devices takes from recordings besides windows: rates over time, figures of tables, latencies."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from fedactors.options import Options
from fedactors.paths import PathText
from fedactors.scenario.units import Speed, Work

Assign = Literal["in_order", "shuffle"]


class RateRecording(Options):
    """A link or a processor over time, from a recording."""

    path: PathText
    """File, or several by a pattern such as `bus/*.log`; relative to the scenario's folder or FEDACTORS_TRACES."""
    format: str | None = None
    """Name of the format; found out by looking at the file when absent."""
    rows: str = "*"
    """Which rows of the recording, by a pattern of their names: `*/down`."""
    assign: Assign = "in_order"
    """Which row drives which device: the k-th (again from the first when they run out), or one by lot."""
    offset: Literal["none", "random"] = "none"
    """Where in its row a device begins."""
    at_end: Literal["loop", "hold"] = "loop"
    """What follows the end of a row: again from its beginning, or its last value for ever."""
    strict: bool = False
    """Refuse recordings that need repair."""


class DeviceRecording(Options):
    """Figures of real devices, from a table."""

    path: PathText
    """File, relative to the scenario's folder or else to the folder that FEDACTORS_TRACES names."""
    format: str | None = None
    """Name of the format; found out by looking at the file when absent."""
    assign: Assign = "in_order"
    """Which row a device takes: the k-th, or one by lot; the same one wherever a group names tables of this length."""
    reference: Work | None = None
    """Operations of one inference of the model that `inference_ns` was measured with (MobileNetV2: 0.6 GFLOP).

    Training a sample of the scenario's model then takes as much longer as it has more operations; without it, three
    times the inference of the reference model, whatever the scenario's (as in FedScale).
    """
    per_point: Speed | None = None
    """Speed for each point of an AI-Benchmark score."""
    strict: bool = False
    """Refuse tables that need repair."""


class Places(Options):
    """Latency from a matrix of round-trip times: half of that between a device's place and the server's."""

    path: PathText
    """File, relative to the scenario's folder or else to the folder that FEDACTORS_TRACES names."""
    server: str = "0"
    """Name of the server's place."""
    format: str | None = None
    """Name of the format; found out by looking at the file when absent."""
    assign: Assign = "shuffle"
    """Where a device is: at the k-th place, or at one by lot."""
    strict: bool = False
    """Refuse matrices that need repair."""


class Links(Options):
    """Bandwidth over time, in bytes per second; a direction that is absent keeps its constant rate."""

    down: RateRecording | None = None
    up: RateRecording | None = None

    @model_validator(mode="after")
    def _check_down_or_up(self) -> Links:
        if self.down is None and self.up is None:
            raise ValueError("give down, up or both")
        return self

    @model_validator(mode="after")
    def _check_directions_agree(self) -> Links:
        """Refuse directions that would part: the k-th rows of both are one link, at one place of its recording."""
        if self.down is None or self.up is None:
            return self
        for key in ("assign", "offset", "at_end"):
            down, up = getattr(self.down, key), getattr(self.up, key)
            if down != up:
                raise ValueError(f"{key} is {down} for down and {up} for up (accepted: one, as of one link)")
        return self
