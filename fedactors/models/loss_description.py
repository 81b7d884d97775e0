"""What a scenario says of the loss, as data that travels with a model: `loss_terms` computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedactors.own_code.user_code import Reference

LabelKind = Literal["class", "value", "multi-label", "sequence", "any"]
Option = float | int | tuple[float, ...] | None


@dataclass(frozen=True)
class LossDescription:
    """A loss with options, or one of the user's; equal descriptions are the same loss."""

    name: str
    label_kind: LabelKind  # what labels it compares outputs with
    options: tuple[tuple[str, Option], ...] = ()
    reference: Reference | None = None  # of the user's function or class
    arguments: str = "{}"  # of it, as JSON

    def __str__(self) -> str:
        return str(self.reference) if self.reference else self.name

    def option(self, name: str) -> Option:
        """Return the value of an option; None if it is not given."""
        return dict(self.options).get(name)

    @property
    def ignored(self) -> int | None:
        """The label that does not count, such as what fills up sequences; None if all do."""
        found = -1 if self.name == "ctc" else self.option("ignore_index")
        return found if isinstance(found, int) else None

    @property
    def vmappable(self) -> bool:
        """Whether torch.func.vmap can compute it for many clients at once."""
        return self.reference is None and self.name != "ctc"
