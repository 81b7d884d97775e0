"""Transforms in a row: what is sent, what senders keep, and the bytes of one vector.

Every vector of the model's size is a message of its own and goes through the whole list by itself; what a sender keeps
has names such as "uplink.delta.0.error": the way, the vector, the place in the list. A vector that holds NaN or Inf
does so after the list too, whatever that would have made of it: bad updates must be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar

from fedactors.errors import ScenarioError
from fedactors.transforms.base import Given, UpdateTransform
from fedactors.transforms.wire import FLOAT, Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.draws import SenderDraws

    Vectors = Mapping[str, Tensor]

Way = Literal["uplink", "downlink"]
T = TypeVar("T")
NOTHING: Mapping[str, float] = MappingProxyType({})


class Chain:
    """A list of transforms on one way, for models with a layout.

    Raises ScenarioError, with the place in the list, if they do not go together.
    """

    def __init__(self, way: Way, transforms: Sequence[UpdateTransform], layout: Layout) -> None:
        self.way = way
        self.transforms = tuple(transforms)
        for number, one in enumerate(self.transforms):
            self._refuse(number)
            if self.differs and (reason := one.overshoots(layout)):
                raise ScenarioError(f"server.{way}.{number}: {one.name} behind difference: {reason}")
            layout = self._placed(number, partial(one.travelling, layout))
        self.layout = layout
        self.wires = [Wire(layout.size)]  # before the first transform, and after each
        for number, one in enumerate(self.transforms):
            self.wires.append(self._placed(number, partial(one.wire, self.wires[-1], layout)))

    @property
    def bytes(self) -> int:
        """Bytes of one vector on the wire."""
        return self.wires[-1].bytes

    @property
    def sums_whole(self) -> bool:
        """Whether what travels is all values at full size, whatever numbers come beside them."""
        last = self.wires[-1]
        return (last.values, last.bits, last.factors) == (self.layout.size, FLOAT, False)

    @property
    def differs(self) -> bool:
        """Whether messages are differences from the last ones: the downlink alone."""
        return any(one.differs for one in self.transforms)

    @property
    def noise(self) -> UpdateTransform | None:
        """The transform that the server applies to the sum of a round, if there is one: the last."""
        last = self.transforms[-1] if self.transforms else None
        return last if last is not None and last.at_server else None

    @property
    def noise_skips_empty_rounds(self) -> bool:
        """Whether the server numbers the rounds of its noise by those in which an update counted."""
        return self.noise is not None and self.noise.skips_empty_rounds

    def keeps(self, vectors: Iterable[str]) -> dict[str, int]:
        """Return the length of each vector that a sender of some `vectors` keeps, by name."""
        return {
            f"{self.way}.{vector}.{number}.{name}": length
            for vector in vectors
            for number, one in enumerate(self.transforms)
            for name, length in one.state(self.layout).items()
        }

    def broadcast_values(self, vectors: Iterable[str]) -> dict[str, float]:
        """Return the first value of each number that the server broadcasts with the model, by name."""
        return {
            f"{self.way}.{vector}.{number}.told": one.first_broadcast_value
            for vector in vectors
            for number, one in enumerate(self.transforms)
            if one.first_broadcast_value is not None
        }

    def next_broadcast_values(
        self, vector: str, broadcast: Mapping[str, float], counts: Mapping[str, float], heard: int, draws: SenderDraws
    ) -> dict[str, float]:
        """Return the numbers to broadcast after a round, from those `broadcast` before and the sums of the counts."""
        found = {}
        for number, one in enumerate(self.transforms):
            prefix = f"{self.way}.{vector}.{number}."
            if one.first_broadcast_value is not None:
                before, count = broadcast[prefix + "told"], counts[prefix + "count"]
                found[prefix + "told"] = one.next_broadcast_value(before, count, heard, draws)
        return found

    def sent(
        self, vector: str, rows: Tensor, kept: Vectors, draws: SenderDraws, broadcast: Mapping[str, float] = NOTHING
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return rows of a vector, `(senders, parameters)`, as they arrive, and what their senders keep now.

        `kept` has rows under the names of `keeps`, `broadcast` numbers under those of `broadcast_values`; counts are
        among what is returned. Values outside the layout do not travel: they are 0.
        """
        import torch

        positions = None if self.layout.whole else torch.from_numpy(self.layout.positions).to(rows.device)
        good = rows.isfinite().all(1, keepdim=True)
        travelling = rows if positions is None else rows[:, positions]
        fresh: dict[str, Tensor] = {}
        for number, one in enumerate(self.transforms):
            if one.at_server:
                continue
            prefix = f"{self.way}.{vector}.{number}."
            mine = {name: kept[prefix + name] for name in one.state(self.layout)}
            travelling, renewed = one.apply(travelling, mine, self._given(vector, number, draws, broadcast))
            fresh |= {prefix + name: value for name, value in renewed.items()}
        if positions is not None:
            travelling = rows.new_zeros(rows.shape).index_copy(1, positions, travelling)
        if not good.all():
            travelling = travelling.where(good, travelling.new_full((1,), torch.nan))
        return travelling, fresh

    def received(
        self, vector: str, total: Tensor, draws: SenderDraws, largest: float, broadcast: Mapping[str, float] = NOTHING
    ) -> Tensor:
        """Return the weighted sum of a round, `(parameters,)`, after what the server applies to it.

        `largest` is the largest weight of one update in the sum.
        """
        import torch

        if (noise := self.noise) is None:
            return total
        given = self._given(vector, len(self.transforms) - 1, draws, broadcast)
        positions = torch.from_numpy(self.layout.positions).to(total.device)
        rows, _ = noise.apply(total[positions][None], {}, given._replace(largest=largest))
        return total.index_copy(0, positions, rows[0])

    def _given(self, vector: str, number: int, draws: SenderDraws, broadcast: Mapping[str, float]) -> Given:
        """Return what the transform at a place may know."""
        bound = self.transforms[number - 1].bound if number else None
        norm = broadcast.get(f"{self.way}.{vector}.{number - 1}.told", bound[0] if bound else 0.0)
        own = broadcast.get(f"{self.way}.{vector}.{number}.told", 0.0)
        return Given(self.layout, self.wires[number], draws, norm, broadcast_value=own)

    def _placed(self, number: int, work: Callable[[], T]) -> T:
        """Return what `work` does. Raises its ScenarioError with the place in the list."""
        try:
            return work()
        except ScenarioError as error:
            raise ScenarioError(f"server.{self.way}.{number}: {error}") from None

    def _refuse(self, number: int) -> None:
        """Refuse a transform where it stands. Raises ScenarioError."""
        one = self.transforms[number]
        before = self.transforms[number - 1] if number else None
        if problem := self._problem(one, before):
            raise ScenarioError(f"server.{self.way}.{number}: {problem}")

    def _wrong_way(self, one: UpdateTransform, before: UpdateTransform | None) -> str:
        """Return why a transform cannot be on this way, or nothing if it can."""
        if self.way == "downlink" and not one.down:
            return f"{one.name} is for updates, and the downlink carries models (accepted: on the uplink)"
        if one.differs and (self.way == "uplink" or before is not None):
            return f"{one.name} is of models, before all else (accepted: as the first of server.downlink)"
        return ""

    def _problem(self, one: UpdateTransform, before: UpdateTransform | None) -> str:
        """Return why a transform cannot stand behind another one, or nothing if it can."""
        if problem := self._wrong_way(one, before):
            return problem
        if before is not None and before.at_server:
            return f"{before.name} before it is applied last, by the server (accepted: {before.name} last)"
        order = one.wants_bound
        if order is None or (before is not None and before.bound is not None and before.bound[1] == order):
            return ""
        norm = "norm: 1.0" if order == 2 else "norm: 1.0, order: 1"
        return (
            f"{one.name} with a multiplier needs updates that are clipped just before it (accepted: {{name: clip,"
            f" {norm}}} before it, or deviation in place of multiplier)"
        )
