"""How a trip is divided between the personal part of a model and the shared one."""

from __future__ import annotations

from pydantic import Field, model_validator

from fedactors.options import Options
from fedactors.workload import Workload


class AlternateOptions(Options):
    """The first steps of a trip train the personal part alone, all further ones the shared part alone.

    FedRep: Collins et al., Exploiting Shared Representations for Personalized Federated Learning, 2021, Algorithm 1.
    """

    epochs: int | None = Field(default=None, ge=1, le=100_000)
    """Passes over the client's data that train the personal part."""
    steps: int | None = Field(default=None, ge=1, le=10_000_000)
    """Steps that train the personal part."""

    @model_validator(mode="after")
    def _check_epochs_or_steps(self) -> AlternateOptions:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        return self

    def steps_of(self, work: Workload) -> int:
        """Return how many steps of a client's trip train the personal part."""
        return self.steps if self.steps is not None else (self.epochs or 0) * work.pass_steps
