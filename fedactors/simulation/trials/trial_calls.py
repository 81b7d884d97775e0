"""Calls of the user's methods before anything runs: what they return must follow from what they are given alone.

Each call is made a second time, by a copy of the object that has never been called: state that is kept in the object or
in its file, and random numbers, give other values then. A run would lose such state when it is resumed, or have other
bits on other hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from fedactors.errors import FedactorsError, ScenarioError, UserCodeError
from fedactors.in_place import unchanged
from fedactors.options import Options
from fedactors.own_code.global_draws import undrawn
from fedactors.own_code.user_errors import class_called, in_a_line, told
from fedactors.transforms.base import Given
from fedactors.transforms.draws import SenderDraws

_CLOSE = 1e-4  # by how much a row may differ where sums are taken in another order, relative to it
_NEAR = 1e-5  # the same, relative to the largest value


T = TypeVar("T", bound=Options)


class OwnCalls(Generic[T]):
    """Calls of the methods of one object of a class of the user's."""

    def __init__(self, own: T) -> None:
        self.own = own
        self._one = deepcopy(own)

    def who(self, method: str) -> str:
        """Return what to call a method in a message."""
        return f"{class_called(type(self.own))}.{method}"

    def bound(self, method: str) -> Callable[..., Any]:
        """Return a method of an object that has never been called."""
        found: Callable[..., Any] = getattr(deepcopy(self.own), method)
        return found

    def call(self, method: str, given: Mapping[str, Any], accepted: str) -> Any:
        """Return what a method returns for what it is `given`, by the names of its arguments, in their order.

        Raises ScenarioError, with what is `accepted`, if it returns something else when it is called again, or draws
        random numbers of torch, numpy or random; UserCodeError if it changes in place what it is given.
        """
        again = [_unused(one) for one in given.values()]
        with undrawn(self.who(method), accepted), unchanged(method, **_tensors(given)):
            found = getattr(self._one, method)(*given.values())
        if not _same(found, self.bound(method)(*again)):
            raise ScenarioError(
                f"{self.who(method)}: returned something else when it was called again with the same arguments, by an"
                f" object that was not called before (accepted: {accepted})"
            )
        return found


@contextmanager
def telling_trial(own: Options, tried: str) -> Iterator[None]:
    """Turn what the user's code raises, and what is raised by what it returned, into one ScenarioError.

    It says that an object of the user's was `tried`, such as "with two clients".
    """
    try:
        yield
    except UserCodeError as error:
        raise ScenarioError(f"{class_called(type(own))}: {error}") from error
    except FedactorsError:
        raise
    except (Exception, SystemExit) as error:
        said = in_a_line(told(error)) or f"{type(error).__name__}: {error}"
        raise ScenarioError(f"{class_called(type(own))}: tried {tried}: {said}") from error


def refuse_shape(
    who: str, found: Any, shape: tuple[int | None, ...], called: str = "", *, finite: bool = False
) -> None:
    """Raise ScenarioError unless what was returned is a float32 tensor of a shape, without gradients, and `finite`.

    None in the shape stands for any length; `called` names what is one of several.
    """
    if not _fits(found, shape):
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        raise ScenarioError(
            f"{who}: returned {called}{described(found)} (accepted: a tensor of shape ({lengths}"
            f"{',' * (len(shape) == 1)}), torch.float32, without gradients)"
        )
    if finite and not found.isfinite().all():
        raise ScenarioError(f"{who}: returned NaN or Inf (accepted: finite numbers)")


def _fits(found: Any, shape: tuple[int | None, ...]) -> bool:
    """Whether a value is a float32 tensor of a shape, without gradients."""
    if not isinstance(found, Tensor) or found.dtype != torch.float32 or found.requires_grad:
        return False
    return len(shape) == found.dim() and all(map(lambda one, size: one in (None, size), shape, found.shape))


def described(one: Any) -> str:
    """Return what a value is, for a message: its type, and shape and dtype of a tensor."""
    if not isinstance(one, Tensor):
        return "nothing" if one is None else f"a {type(one).__name__}"
    gradients = " with gradients" if one.requires_grad else ""
    return f"a {type(one).__name__} of shape {tuple(one.shape)}, {one.dtype}{gradients}"


def refuse_other_rows(
    who: str, found: Mapping[str, Tensor], alone: Callable[[int], Mapping[str, Tensor]], accepted: str
) -> None:
    """Raise ScenarioError, with what is `accepted`, unless each row of `found` is what the row is `alone`."""
    for row in range(len(next(iter(found.values()), ()))):
        own = alone(row)
        if not all(name in own and _close(rows[row : row + 1], own[name]) for name, rows in found.items()):
            raise ScenarioError(f"{who}: a row depends on the rows beside it (accepted: {accepted})")


def _close(one: Tensor, other: Any) -> bool:
    """Whether two rows are the same but for rounding."""
    if not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    near = _NEAR * float(one.nan_to_num(0.0, 0.0, 0.0).abs().max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=_CLOSE, atol=near, equal_nan=True)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same: tensors in all bits, tuples and mappings in all they hold."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and _same_bits(one, other)
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and _same(tuple(one.items()), tuple(other.items()))
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (not isinstance(one, (int, float, str)) or one == other)


def _same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same values; NaN is NaN."""
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


def _unused(given: Any) -> Any:
    """Return an argument for a second call: random numbers begin where they did, and a mapping has all its names."""
    if isinstance(given, Given):
        return given._replace(draws=deepcopy(given.draws))
    if isinstance(given, SenderDraws):
        return deepcopy(given)
    return dict(given) if isinstance(given, Mapping) else given


def _tensors(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors that a method is given, and mappings of tensors, by the names to call them by."""
    found: dict[str, Any] = {}
    for name, one in given.items():
        found |= one._asdict() if hasattr(one, "_asdict") else {name: one}
    return {name: one for name, one in found.items() if isinstance(one, (Tensor, Mapping))}
