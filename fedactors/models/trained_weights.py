"""Weights under the names of the module that has them: out of a run's flat vector, and into a module to start from.

A run folder has its model as one vector, `x` in checkpoint/model.safetensors: the tensors that are trained, and buffers
that training writes, one after the other. Their order is not always that of `named_parameters()`: a module that is
recognised as a chain of layers has them in the order in which `forward` uses them. So checkpoint/model.json beside it
says which tensors these are, and what else the module holds, see `fedactors.simulation.record.model_layout`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from fedactors.errors import DataError
from fedactors.models import network
from fedactors.models.layers import Model
from fedactors.models.module_layer import ModuleLayer, ModuleMaker, module_of
from fedactors.models.personal import tensor_names
from fedactors.models.torch_modules import as_written, made

_LAYOUT = "model.json"  # beside the files that have the vector; `fedactors.simulation.record.model_layout` writes it
_OF_A_RUN = "checkpoint/model.safetensors"
_VECTOR = "x"
_COUNTER = "num_batches_tracked"  # of BatchNorm: no run has it
_ACCEPTED = "safetensors, torch.save of a state_dict, or the folder of a run"


def fixed_values(layer: ModuleLayer) -> dict[str, str]:
    """Return the SHA-256 of the parameters and saved buffers of a module that no run has in its vector, by name."""
    trained = {spec.name for spec in layer.specs()}
    return {name: _digest(value) for name, value in _values(made(layer)) if name not in trained}


def trained_module(model: Model, vector: NDArray[Any]) -> nn.Module:
    """Return a new module in evaluation mode that has the values of a flat `vector`, `(parameters,)`.

    It is the module that the user's code makes; of a model of fedactors, one whose `forward` is that of the run and
    whose tensors are called as in the equivalent `torch.nn.Sequential`. Raises DataError if it cannot be made.
    """
    layer = module_of(model)
    module = _BuiltIn(model) if layer is None else as_written(layer)
    values = dict(zip(tensor_names(model), network.views(model, torch.tensor(vector)), strict=True))
    with torch.no_grad():
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if name in values:
                tensor.copy_(values[name])
    return module.eval()


class _BuiltIn(nn.Module):
    """A model of fedactors. In training mode, too, it draws no masks of dropout."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model
        for spec in model.tensors:
            *path, name = spec.name.split(".")
            place: nn.Module = self
            for part in path:
                if not hasattr(place, part):
                    place.add_module(part, nn.Module())
                place = place.get_submodule(part)
            place.register_parameter(name, nn.Parameter(torch.zeros(spec.shape)))

    @override
    def forward(self, x: Tensor) -> Tensor:
        """Return what the model answers to samples, `(batch, *input_shape)`."""
        tensors = [self.get_parameter(spec.name) for spec in self._model.tensors]
        return network.forward(self._model, tensors, x)


def load_weights(module: nn.Module, maker: ModuleMaker, weights: Path) -> None:
    """Load saved weights: a file with a state_dict, or what a run has trained, its folder or a file in it.

    Raises DataError if the file cannot be read, or has other names or shapes.
    """
    path = weights / _OF_A_RUN if weights.is_dir() else weights
    state = _state(path, maker)
    vector = state.get(_VECTOR)
    of_run = weights.is_dir() or _VECTOR not in dict(_values(module))
    if of_run and vector is not None and vector.dim() == 1:
        _load_vector(module, maker, path, vector)
        return
    try:
        module.load_state_dict(state)
    except (RuntimeError, AttributeError, TypeError) as error:
        text = " ".join(str(error).split())[:400]
        raise DataError(f"{path}: does not fit {maker}: {text}") from None


def _state(path: Path, maker: ModuleMaker) -> Mapping[str, Any]:
    """Return what a file holds. Raises DataError if it cannot be read."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            found: Any = load_file(path)
        else:
            found = torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise DataError(f"{maker}: no file of weights {path}") from None
    except Exception as error:
        raise DataError(f"{path}: no weights: {type(error).__name__} (accepted: {_ACCEPTED})") from None
    if not isinstance(found, Mapping):
        raise DataError(f"{path}: no weights: {type(found).__name__} (accepted: {_ACCEPTED})")
    return found


def _load_vector(module: nn.Module, maker: ModuleMaker, path: Path, vector: Tensor) -> None:
    """Load the vector of a run. Raises DataError if the module has other tensors than the run's, or fixed values."""
    shapes, fixed = _recorded(path.with_name(_LAYOUT), vector)
    mine = dict(_values(module))
    if misfit := next(_misfits(mine, shapes, fixed), ""):
        raise DataError(f"{path}: does not fit {maker}: {misfit}")
    parts = torch.split(vector, [prod(shape) for shape in shapes.values()])
    with torch.no_grad():
        for (name, shape), part in zip(shapes.items(), parts, strict=True):
            mine[name].copy_(part.view(shape))


def _misfits(
    mine: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], fixed: Mapping[str, str]
) -> Iterator[str]:
    """Yield why a module with the tensors `mine` cannot have the weights of a run's model."""
    if lacking := sorted({*shapes, *fixed} - mine.keys()):
        yield f"it has no {_listed(lacking)}, which the run's model has"
    if further := sorted(mine.keys() - {*shapes, *fixed}):
        yield f"it has {_listed(further)}, which the run's model has not"
    for name, shape in shapes.items():
        if tuple(mine[name].shape) != shape:
            yield f"{name} has the shape {list(mine[name].shape)}, in the run's model {list(shape)}"
    if others := [name for name, digest in fixed.items() if _digest(mine[name]) != digest]:
        yield (
            f"{_listed(others)}, which the run does not train, had other values there"
            " (accepted: what `fedactors export RUN --out FILE` writes)"
        )


def _recorded(path: Path, vector: Tensor) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Return the shapes of the tensors in a vector, and the digests of what is fixed. Raises DataError if none fit."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        shapes = {str(one["name"]): tuple(map(int, one["shape"])) for one in found["tensors"]}
        fixed = dict(found["fixed"])
    except FileNotFoundError:
        raise DataError(
            f"{path}: not there, so that nothing says of which tensors {_VECTOR} is made (accepted: a run's folder, or"
            " what `fedactors export RUN --out FILE` writes)"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged: {type(error).__name__}") from None
    if sum(map(prod, shapes.values())) != len(vector):
        raise DataError(f"{path}: damaged: its tensors are not the {len(vector):,} values of {_VECTOR}")
    return shapes, fixed


def _values(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters, each once, and the buffers that are saved with a module."""
    saved = module.state_dict().keys()
    yield from module.named_parameters()
    for name, value in module.named_buffers():
        if name in saved and name.rpartition(".")[2] != _COUNTER:
            yield name, value


def _digest(value: Tensor) -> str:
    digest = hashlib.sha256(f"{value.dtype} {list(value.shape)}\n".encode())
    digest.update(value.detach().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
