"""Compares the tensors of a checkpoint with those that its scenario has, before anything is started.

A checksum says that a file is the one that was written, not that it was written by such a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fedactors.learning.training_task import SENT
from fedactors.models.personal import PERSONAL
from fedactors.run_files.files import damaged
from fedactors.run_files.tensors import shapes_of
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.resume.checkpoint import SERVER, Checkpoint

Shape = tuple[int, ...]
_FLOAT = "F32"


class _Tensor(NamedTuple):
    """A tensor in a file of a checkpoint: "NUMBER/NAME"."""

    number: int  # the version of a model, or a client
    name: str
    shape: Shape


def refuse_other_tensors(start: Checkpoint, prepared: Prepared) -> None:
    """Raise RunFolderError if names, types or shapes of tensors are not those of the scenario's model and algorithm."""
    if not start.files:
        return
    path = start.path / SERVER
    if SERVER not in start.files:
        raise damaged(start.path / "checkpoint.json", f"no file {SERVER}")
    state = _state(prepared)
    public = _public(prepared, state)
    found: dict[int, set[str]] = {start.plans: set()}
    for tensor in _tensors(path):
        wanted = state if tensor.number == start.plans else public
        if not 0 <= tensor.number <= start.plans:
            raise damaged(path, f"a tensor of version {tensor.number}", f"0 to {start.plans}")
        _refuse_other(path, tensor, wanted)
        found.setdefault(tensor.number, set()).add(tensor.name)
    _refuse_missing(path, "version", found, {start.plans: state})
    _check_clients(start, prepared.scenario.devices, _kept(prepared))


def _kept(prepared: Prepared) -> dict[str, Shape]:
    """Return the shapes of what each client keeps by name."""
    kept: dict[str, Shape] = dict.fromkeys(prepared.scenario.server.algorithm.keeps, (prepared.model.parameters,))
    kept |= {name: (length,) for name, length in prepared.feedback.items()}
    if personal := len(prepared.personal):
        kept[PERSONAL] = (personal,)
    return kept


def _public(prepared: Prepared, state: Mapping[str, Shape]) -> dict[str, Shape]:
    """Return the shapes of what an older version has in a checkpoint, by name."""
    sends = prepared.scenario.server.algorithm.sends
    messages = [name for name in state if name.startswith(SENT) or name in prepared.broadcast_values]
    return {name: state.get(name, (prepared.model.parameters,)) for name in (*sends, *messages)}


def _state(prepared: Prepared) -> dict[str, Shape]:
    """Return the shapes of the server's state by name."""
    import torch

    from fedactors.learning.traffic.downlink import lengths

    algorithm = prepared.scenario.server.algorithm
    started = algorithm.start(torch.zeros(prepared.model.parameters))
    broadcast = dict.fromkeys(prepared.broadcast_values, 1)
    further = broadcast | lengths(prepared.downlink, algorithm.sends, prepared.model.parameters)
    return {name: tuple(value.shape) for name, value in started.items()} | {
        name: (length,) for name, length in further.items()
    }


def _check_clients(start: Checkpoint, devices: int, kept: Mapping[str, Shape]) -> None:
    """Raise RunFolderError if what clients keep is not what the algorithm has them keep."""
    for file in start.files:
        if file == SERVER:
            continue
        path, found = start.path / file, dict[int, set[str]]()
        for tensor in _tensors(path):
            if not 0 <= tensor.number < devices:
                raise damaged(path, f"a tensor of client {tensor.number}", f"0 to {devices - 1}")
            _refuse_other(path, tensor, kept)
            found.setdefault(tensor.number, set()).add(tensor.name)
        _refuse_missing(path, "client", found, dict.fromkeys(found, kept))


def _tensors(path: Path) -> Iterator[_Tensor]:
    """Yield what is in a file. Raises RunFolderError if names or types are not those of a checkpoint."""
    for key, (kind, shape) in shapes_of(path).items():
        number, _, name = key.partition("/")
        if not number.isdecimal():
            raise damaged(path, f'a tensor "{key}"', 'names such as "60/x"')
        if kind != _FLOAT:
            raise damaged(path, f'tensor "{key}" is of type {kind}', _FLOAT)
        yield _Tensor(int(number), name, shape)


def _refuse_other(path: Path, tensor: _Tensor, wanted: Mapping[str, Shape]) -> None:
    key = f'"{tensor.number}/{tensor.name}"'
    if tensor.name not in wanted:
        raise damaged(path, f"a tensor {key}", f"the names {', '.join(sorted(wanted)) or 'of none'}")
    if tensor.shape != wanted[tensor.name]:
        raise damaged(path, f"tensor {key} has the shape {list(tensor.shape)}", str(list(wanted[tensor.name])))


def _refuse_missing(
    path: Path, what: str, found: Mapping[int, set[str]], wanted: Mapping[int, Collection[str]]
) -> None:
    for number, names in wanted.items():
        if absent := sorted(set(names) - found.get(number, set())):
            raise damaged(path, f"no tensor {', '.join(absent)} of {what} {number}")
