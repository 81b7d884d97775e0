"""Calls a loss or a measure of the user's several times: it may keep and draw nothing, and has to match labels.

All clients that a process trains share one loss, so what it kept or drew would depend on who was trained before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fedactors.errors import DataError
from fedactors.own_code.global_draws import generator_states
from fedactors.own_code.held_values import content, first_difference, globals_of, held_by_module

_ACCEPTED = "accepted: a function of outputs and labels alone"


def _nothing() -> dict[str, object]:
    return {}


class Tried(NamedTuple):
    """A function of the user's, of outputs and labels."""

    said: str  # what messages begin with
    value: Callable[[Tensor, Tensor], Tensor]  # raises DataError if there is none
    forget: Callable[[], None]  # has the next call make it anew
    held: Callable[[], dict[str, object]] = _nothing  # what it holds, by name


def refuse_memory(tried: Tried, outputs: Tensor, labels: Tensor) -> None:
    """Raise DataError if another call with the same outputs and labels changes something, or returns something else."""
    first = tried.value(outputs.clone(), labels.clone())
    before = tried.held() | _generators()
    second = tried.value(outputs.clone(), labels.clone())
    changed = first_difference(before, tried.held() | _generators())
    if changed is not None:
        raise DataError(f"{tried.said} changes {changed} in each call ({_ACCEPTED})")
    if not _equal(first, second):
        raise DataError(
            f"{tried.said} returns something else when it is called again with the same batch ({_ACCEPTED})"
        )
    tried.forget()
    if not _equal(first, tried.value(outputs.clone(), labels.clone())):
        raise DataError(f"{tried.said} returns something else when it is made anew ({_ACCEPTED}, without draws)")


def held_by(function: object, file: str) -> dict[str, object]:
    """Return what a function or an object of the user's holds, with the globals of `file`, the module that it is of."""
    if isinstance(function, nn.Module):
        return held_by_module(function, (), file)
    function = getattr(function, "func", function)  # of a partial one
    own = {name: content(value) for name, value in getattr(function, "__dict__", {}).items()}
    return own | {type(function).__name__: content(vars(type(function)))} | globals_of([file])


def refuse_pairs(tried: Tried, outputs: Tensor, labels: Tensor) -> None:
    """Raise DataError if outputs `(batch, 1)` less labels `(batch,)` are a table of each output with each label.

    The mean over it is a number, too. But it does not matter there which label goes with which output, and where labels
    are `(batch, 1)` it does. `labels` should not be all alike.
    """
    if outputs.shape[1:] != (1,) or labels.dim() != 1 or len(labels) < 2:
        return
    steps = torch.linspace(0, 1, len(labels)) * labels.double().std().float()  # outputs may all be alike
    for some in (outputs, outputs + steps[:, None]):
        if _ignores_order(tried, some, labels, 1e-5) and not _ignores_order(tried, some, labels[:, None], 1e-4):
            count = len(labels)
            raise DataError(
                f"{tried.said} compares each output with each label: outputs have the shape ({count}, 1), labels"
                f" ({count},) (accepted: outputs[:, 0], or labels[:, None])"
            )


def _ignores_order(tried: Tried, outputs: Tensor, labels: Tensor, tolerance: float) -> bool:
    """Whether the mean of what is returned stays if labels are dealt to other outputs; also if nothing is returned."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of unlike shapes, and half of these are not the user's
            one = tried.value(outputs.clone(), labels.clone()).double().mean()
            other = tried.value(outputs.clone(), labels.roll(1, 0)).double().mean()
    except Exception:  # other samples than the data's may be refused
        return True
    return bool(torch.isclose(one, other, rtol=tolerance, equal_nan=True))


def _equal(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _generators() -> dict[str, object]:
    """Return the states of the generators that all code in a process shares, as messages call them."""
    return {f"{name}'s random numbers": state for name, state in generator_states().items()}
