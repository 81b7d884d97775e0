"""What a transform of updates is: options, the bits that it sends, and a function of rows.

    class Halved(UpdateTransform):
        name: Literal["halved"] = "halved"

        def wire(self, wire, layout):
            return wire._replace(bits=16)

        def apply(self, rows, kept, given):
            return rows.half().float(), {}

Rows are `(clients, values)`, one client each; on the downlink there is one row. What a row becomes depends on that row
alone, on what its sender kept, and on the random numbers of its sender.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from fedactors.errors import ScenarioError
from fedactors.options import Options
from fedactors.transforms.wire import FLOAT, Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.draws import SenderDraws

    Vectors = Mapping[str, Tensor]


class Given(NamedTuple):
    """What a transform may know besides the rows."""

    layout: Layout
    wire: Wire  # of what arrives at the transform
    draws: SenderDraws  # random numbers of each row's sender
    norm: float = 0.0  # of the longest update, by the `clip` just before; 0 without one
    largest: float = 1.0  # of the weights in a sum; 1 at clients
    broadcast_value: float = 0.0  # the number that the server broadcasts with the model, see `first_broadcast_value`


class UpdateTransform(Options):
    """Base of all transforms; by itself it changes nothing."""

    down: ClassVar[bool] = False
    """Whether it may go on the downlink, where it is given models, not updates."""
    differs: ClassVar[bool] = False
    """Whether messages of the downlink are differences from the last ones; see `difference`."""
    skips_empty_rounds: ClassVar[bool] = False
    """Whether the server, where it applies it, gives rounds without updates no number."""

    name: str

    @property
    def at_server(self) -> bool:
        """Whether the server applies it, once in a round, to the weighted sum of the updates."""
        return False

    @property
    def bound(self) -> tuple[float, int] | None:
        """The norm of the longest vector that leaves it, and the order of that norm; None if it knows none."""
        return None

    @property
    def wants_bound(self) -> int | None:
        """The order of the norm by which vectors must be bounded just before it; None if that does not matter."""
        return None

    @property
    def first_broadcast_value(self) -> float | None:
        """The number that the server broadcasts with the model in the first round; None if it broadcasts none.

        With a number, `apply` also returns a `count` of each row, `(clients, 1)`, and `next_broadcast_value` computes
        the next number from the sum of these counts.
        """
        return None

    def next_broadcast_value(self, value: float, count: float, heard: int, draws: SenderDraws) -> float:
        """Return the number to broadcast after a round, from the previous one and the sum of `heard` counts."""
        return value

    def travelling(self, layout: Layout) -> Layout:
        """Return the layout of what travels where `layout` does: the same, unless some tensors stay behind."""
        return layout

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return what the vector is on the wire after this. Raises ScenarioError if it cannot follow what is there."""
        return wire

    def overshoots(self, layout: Layout) -> str:
        """Return why differences that are sent through it do not bring clients closer to the model; nothing if so."""
        return ""

    def state(self, layout: Layout) -> dict[str, int]:
        """Return the lengths of the vectors that a sender keeps from message to message, by name; first zeros."""
        return {}

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Return rows `(clients, values)` as they arrive, and what each sender keeps, under the names of `state`."""
        raise TypeError(f"{type(self).__name__} does not say what it does")


class Compressor(UpdateTransform):
    """Base of lossy compression, with the error feedback of Seide et al. 2014, as Karimireddy et al. 2019 analyse it.

        p <- update + e ;  send C(p) ;  e <- p - C(p)

    e is what the sender keeps. What was sent and what is left add up: sum of C(p) + e = sum of updates. Where values
    were left out before, p is 0 at their places: what is left of them in e waits until they are sent again.
    """

    down: ClassVar[bool] = True

    name: str
    error_feedback: bool = False
    """Whether a sender adds what it could not send last time to what it sends."""

    def at_full_size(self, wire: Wire) -> Wire:
        """Return `wire` with the bits that values have once e is added: sums of levels are no levels."""
        return wire._replace(bits=FLOAT) if self.error_feedback else wire

    def overshoots(self, layout: Layout) -> str:
        """Refuse to feed back twice: what was left out is in the next difference."""
        what = "what is left out is in the next difference anyway, and would be fed back twice"
        return f"{what} (accepted: error_feedback: false)" if self.error_feedback else ""

    def state(self, layout: Layout) -> dict[str, int]:
        """Return the length of e, if there is feedback."""
        return {"error": layout.size} if self.error_feedback else {}

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Compress rows, with feedback if so chosen."""
        if not self.error_feedback:
            return self.compress(rows, kept, given)
        whole = rows + kept["error"]
        left_out = given.wire.values < rows.shape[1]
        sent, further = self.compress(whole.where(rows != 0, 0.0) if left_out else whole, kept, given)
        return sent, {**further, "error": whole - sent}

    def compress(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Return rows as they arrive, and what the sender keeps besides e."""
        raise TypeError(f"{type(self).__name__} does not say how it compresses")


def entries(wire: Wire, who: str) -> Wire:
    """Return `wire`, which must be of entries of the vector. Raises ScenarioError if it has factors of matrices."""
    if wire.factors:
        raise ScenarioError(f"{who} works on entries, and lowrank before it sends factors (accepted: one of the two)")
    return wire
