"""Where a scenario is computed: actors, cores, GPUs, memory, and how often a run is saved."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedactors.options import Options
from fedactors.scenario.units import NONE_IS_NULL, Size


class ClusterOptions(Options):
    """Where it is computed. Only `bits`, and whether work is done on GPUs or on processors, change bits of a result."""

    actors: int | None = Field(default=None, ge=1, le=4096)
    """Client hosts; all that fit when absent."""
    cpus_per_actor: float = Field(default=1.0, gt=0.0)
    gpus_per_actor: float = Field(default=0.0, ge=0.0)
    server_gpus: float = Field(default=0.0, ge=0.0)
    """GPUs of the server; more than 0 puts what it learns from its own data there."""
    central_cpus: float = Field(default=0.0, ge=0.0)
    """Cores kept for the central learner of mixed federated learning; with 0 it shares those that hosts leave."""
    central_gpus: float = Field(default=0.0, ge=0.0)
    """GPUs of the central learner; more than 0 puts its work there."""
    object_store: Size | None = Field(default=None, ge=100_000_000)
    """Memory for models and for what clients keep, when Ray is started here; what does not fit is spilled to disk."""
    price_per_node_hour: float | None = Field(default=None, ge=0.0)
    """What one machine costs for an hour of wall time, in any currency; the summary then says what the run cost."""
    checkpoint_every: Annotated[Annotated[int, Field(ge=1)] | None, NONE_IS_NULL] = 25
    """Rounds between checkpoints, and one when the run ends; `none` writes that one alone."""
    checkpoints_kept: int = Field(default=2, ge=1)
    """How many of them stay, the last ones; with more, `fedactors branch` has less to compute again."""
    resources: dict[str, dict[str, Annotated[float, Field(gt=0.0)]]] = Field(default_factory=dict)
    """Further Ray resources of a client host, by the population group it computes: `{phones: {arm: 1}}`."""
    bits: Literal["portable", "native"] = "portable"
    """Which instructions of the processor may be used: AVX2 and no later ones, for the same bits on all x86-64
    processors of one vendor that have them; or all there are, for bits of one family of processors."""
    address: str | None = None
    """An existing Ray cluster (`auto` or `ray://…`); one is started on this machine when absent."""
