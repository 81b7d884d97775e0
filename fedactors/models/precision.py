"""How exactly models are trained: in which format products and convolutions take their factors.

    fp32   float32; on a GPU too, where PyTorch by default lets convolutions round to TF32
    tf32   on a GPU factors are rounded to TF32, of 10 bits, and sums are float32; a CPU has no TF32
    bf16   the forward pass under autocast: factors and results are bfloat16, of 7 bits, and so are gradients on their
           way back through them

Losses, parameters, updates and sums are float32 always, and models are evaluated in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def autocast(device: str) -> torch.autocast:
    """Return the context in which products round to bfloat16.

    It keeps no rounded parameters: they move in place between steps, and a CUDA graph would go on reading old ones.
    """
    return torch.autocast(device, torch.bfloat16, cache_enabled=False)


@contextmanager
def rounding(precision: str, device: str) -> Iterator[None]:
    """Let products and convolutions on a GPU round as `precision` says; no effect on a `device` other than "cuda".

    PyTorch's switches are those of the whole process, so they are put back: another run in it may have another
    precision.
    """
    if device != "cuda":
        yield
        return
    switches = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [switch.allow_tf32 for switch in switches]
    wanted = precision == "tf32"
    _switch(wanted, wanted)
    try:
        yield
    finally:
        _switch(*before)


def _switch(products: bool, convolutions: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = products
    torch.backends.cudnn.allow_tf32 = convolutions
