"""Recognises modules that are chains of layers which fedactors has itself: they get the fast engines.

A module is traced by torch.fx; if every operation takes the result of the one before it and nothing else, and each is
a layer of `layers`, the module is that chain. Its first values are still those that the module draws.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from fedactors.models.dropout import StreamDropout
from fedactors.models.layers import Conv, Dense, Dropout, Flatten, Layer, Pool, Relu

Chain = list[tuple[Layer, str]]  # each layer with the name of the submodule that holds its tensors, if it has any


def chain_of(module: nn.Module) -> Chain | None:
    """Return the layers of a module that is a chain of known ones; None if it is anything else."""
    nodes = _traced(module)
    if not _in_line(nodes):
        return None
    chain: Chain = []
    for node in nodes[1:-1]:
        layer = _layer(module, node)
        if layer is None:
            return None
        if not isinstance(layer, _Unchanged):
            chain.append((layer, str(node.target) if node.op == "call_module" else ""))
    return chain or None


def _traced(module: nn.Module) -> Sequence[fx.Node]:
    """Return the operations of a module; none where they depend on data, or on random numbers drawn now."""
    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        try:
            nodes = list(_Tracer().trace(module).nodes)
        except Exception:
            return ()
        return nodes if torch.equal(before, torch.get_rng_state()) else ()


def _in_line(nodes: Sequence[fx.Node]) -> bool:
    """Whether there is one input, and every operation takes the result of the one before it and nothing else."""
    if [node.op for node in nodes].count("placeholder") != 1 or nodes[0].op != "placeholder":
        return False
    return all(
        node.args and node.args[0] is before and node.all_input_nodes == [before] for before, node in pairwise(nodes)
    )


class _Unchanged(Layer):
    """Stands for a module that returns what it is given."""


class _Tracer(fx.Tracer):
    """Takes our own dropout for one operation, as it does those of torch.nn."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is not looked into."""
        return isinstance(m, StreamDropout) or super().is_leaf_module(m, module_qualified_name)


def _layer(module: nn.Module, node: fx.Node) -> Layer | None:
    if node.op == "call_module":
        return _of_module(module.get_submodule(str(node.target)))
    rules = _FUNCTIONS if node.op == "call_function" else _METHODS if node.op == "call_method" else {}
    rule = rules.get(node.target)
    return rule(node.args[1:], dict(node.kwargs)) if rule else None


def _of_module(part: nn.Module) -> Layer | None:
    match part:
        case nn.Identity():
            return _Unchanged()
        case nn.ReLU():
            return Relu()
        case nn.Flatten(start_dim=1, end_dim=-1):
            return Flatten()
        case StreamDropout():
            return Dropout(part.p)
        case nn.Linear() if part.bias is not None:
            return Dense(part.in_features, part.out_features)
        case nn.Conv2d():
            return _convolution(part)
        case nn.MaxPool2d():
            return _pool(part)
    return None


def _convolution(part: nn.Conv2d) -> Layer | None:
    kernel = part.kernel_size[0]
    plain = part.bias is not None and part.groups == 1 and part.padding_mode == "zeros"
    if not plain or part.kernel_size != (kernel, kernel) or {*part.stride, *part.dilation} != {1}:
        return None
    if part.padding in ("valid", (0, 0)):
        return Conv(part.in_channels, part.out_channels, kernel, "valid")
    if kernel % 2 and part.padding in ("same", (kernel // 2, kernel // 2)):
        return Conv(part.in_channels, part.out_channels, kernel, "same")
    return None


def _pool(part: nn.MaxPool2d) -> Layer | None:
    sizes = {*_pair(part.kernel_size), *_pair(part.stride)}
    plain = _pair(part.padding) == (0, 0) and _pair(part.dilation) == (1, 1) and not part.ceil_mode
    return Pool(sizes.pop()) if plain and len(sizes) == 1 and not part.return_indices else None


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


Rule = Callable[[tuple[Any, ...], dict[str, Any]], Layer | None]


def _relu(args: tuple[Any, ...], options: dict[str, Any]) -> Layer | None:
    return Relu()


def _flatten(args: tuple[Any, ...], options: dict[str, Any]) -> Layer | None:
    return Flatten() if args in ((1,), (1, -1)) or options == {"start_dim": 1} else None


def _max_pool(args: tuple[Any, ...], options: dict[str, Any]) -> Layer | None:
    plain = {"padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False, "stride": None}
    given = dict(zip(("kernel_size", "stride"), args, strict=False)) | options
    size = given.pop("kernel_size", None)
    stride = given.pop("stride", None)
    same = isinstance(size, int) and stride in (None, size)
    return Pool(size) if same and all(plain.get(name, self) == self for name, self in given.items()) else None


_FUNCTIONS: dict[Any, Rule] = {
    torch.relu: _relu,
    functional.relu: _relu,
    torch.flatten: _flatten,
    functional.max_pool2d: _max_pool,
    torch.max_pool2d: _max_pool,
    operator.pos: lambda args, options: _Unchanged(),
}
_METHODS: dict[Any, Rule] = {"relu": _relu, "flatten": _flatten}
