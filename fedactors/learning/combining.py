"""How the server combines what clients upload: by default a weighted mean, which is summed where clients are trained.

Any other rule needs the updates one by one: hosts return them as rows, `(clients, parameters)`, in place of a sum, in
the order of the Plan. The rules themselves are in `fedactors.algorithms.aggregation`.

A row is the change of a client's model and, where the model has buffers such as BatchNorm's statistics, their values
behind it. Buffers come last in a model, so the last values of the change are those of buffers, too. A rule that
compares updates by distances compares the `compared` first values of a row, the changes of trained parameters, and
combines the whole row by what it found: statistics are in the units of the data, and large ones would outweigh all
else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fedactors.options import Options

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import Round


class Aggregation(Options):
    """Base of all rules."""

    single: ClassVar[bool] = True
    """Whether the rule needs the updates one by one."""

    name: str

    def combine(self, rows: Tensor) -> Tensor:
        """Return one update, `(parameters,)`, from those of one client or more, `(clients, parameters)`."""
        raise TypeError(f"{type(self).__name__} does not say how it combines")

    def combine_in_round(self, rows: Tensor, facts: Round, compared: int) -> Tensor:
        """Return the same, for rules that have to know more: of the round, or how many values are `compared`."""
        return self.combine(rows)

    def problem(self, updates: int) -> str:
        """Say why it cannot combine so many updates, which a round wants, or nothing."""
        return ""


def combined(rule: Aggregation, rows: dict[str, Tensor], facts: Round, compared: int) -> dict[str, Tensor]:
    """Return what all clients upload as one, by name: a rule sees all that a client uploads as one row.

    The change of the model comes first in it; `compared` are its trained parameters.
    """
    import torch

    if not rows:
        return {}
    one = rule.combine_in_round(torch.cat(list(rows.values()), 1), facts, compared)
    parts = torch.split(one, [vectors.shape[1] for vectors in rows.values()])
    return dict(zip(rows, parts, strict=True))
