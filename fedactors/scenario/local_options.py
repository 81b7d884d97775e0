"""What a client does with a model in one trip."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from fedactors.clip import Clip
from fedactors.options import Options
from fedactors.scenario.kinds import Optimizer


class LocalOptions(Options):
    """What a client does with a model: passes over its data, or a number of steps."""

    epochs: int | None = Field(default=None, ge=1, le=100_000)
    steps: int | None = Field(default=None, ge=1, le=10_000_000)
    batch: int = Field(default=10, ge=1, le=1_000_000)
    drop_last: bool = False
    """Leave out the short batch at the end of a pass."""
    with_replacement: bool = False
    """Draw each sample of a batch by itself among all of the client's; an epoch is then as many steps as a pass has."""
    update_unit: Literal["step", "epoch"] = "step"
    """What counts as work done when time runs out: single steps, or whole passes."""
    optimizer: Optimizer = Field(default="sgd", validate_default=True)
    """What takes the steps, at the rate of `schedule`; its state restarts with every trip."""
    clip: Clip | None = None
    """Bound of each gradient of the loss: `{norm: 1.0}` or `{value: 0.5}`."""

    @model_validator(mode="after")
    def _check_epochs_or_steps(self) -> LocalOptions:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.steps is not None and self.update_unit == "epoch":
            raise ValueError("update_unit: epoch counts whole passes (accepted: epochs in place of steps)")
        if self.drop_last and self.with_replacement:
            raise ValueError("with_replacement: all batches are full then (accepted: without drop_last)")
        return self


class GroupLocal(Options):
    """What the devices of a group do in place of what `server.local` says."""

    epochs: int | None = Field(default=None, ge=1, le=100_000)
    steps: int | None = Field(default=None, ge=1, le=10_000_000)
    batch: int | None = Field(default=None, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _check_epochs_or_steps(self) -> GroupLocal:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("give either epochs or steps")
        if self.epochs is None and self.steps is None and self.batch is None:
            raise ValueError("says nothing (accepted: epochs or steps, batch)")
        return self

    def over(self, local: LocalOptions) -> LocalOptions:
        """Return `local` with what this group does instead. Raises ValueError if the two do not go together."""
        changes = self.model_dump(exclude_none=True)
        if "steps" in changes or "epochs" in changes:
            changes = {"steps": None, "epochs": None, **changes}
        if changes.get("steps") is not None and local.update_unit == "epoch":
            raise ValueError("steps: server.local.update_unit counts whole passes (accepted: epochs in place of steps)")
        return local.model_copy(update=changes)
