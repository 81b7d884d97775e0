"""Which instructions the numerical libraries may use, so that a scenario gives the same bits on unlike processors.

torch computes with kernels of its own (ATen), of oneDNN and of MKL; numpy with its own and with those of OpenBLAS. Each
chooses its code by the processor, and sums in vectors of 8 and of 16 numbers differ in the last bits. Under `portable`
all five are held to AVX2. MKL promises equal AVX2 results for Intel's processors only, and AMD's gave others, so bits
are portable among processors of one vendor. Libraries read the level from the environment: numpy and
OpenBLAS when they are imported, the others when they are first used, so it is set before that, and processes that are
started later inherit it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Bits = Literal["portable", "native"]

LEVEL = "AVX2"
_TORCH = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"}
_NEEDED = {"avx2", "fma"}  # flags of a processor that has the level
# what numpy may not use beyond the level: its name for a group of instructions, and the processor's flag for it
_GROUPS = {"X86_V4": "avx512dq", "AVX512_ICL": "avx512_vbmi2", "AVX512_SPR": "avx512_fp16"}
_OLD_GROUPS = {
    "AVX512F": "avx512f",
    "AVX512CD": "avx512cd",
    "AVX512_SKX": "avx512dq",
    "AVX512_CLX": "avx512_vnni",
    "AVX512_CNL": "avx512ifma",
    "AVX512_ICL": "avx512_vbmi2",
    "AVX512_SPR": "avx512_fp16",
}  # of numpy before 2.4
_GROUPED_SINCE = (2, 4)

_before: dict[str, str | None] = {}  # what the user had set, of each variable that was changed


def available() -> bool:
    """Whether this processor can compute portable bits."""
    return flags() >= _NEEDED


@cache
def flags() -> frozenset[str]:
    """Return the instructions that this processor has, as Linux names them; none on other systems."""
    lines = _processor_lines()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def processor() -> str:
    """Return the name of this machine's processor; nothing if it is not known."""
    lines = _processor_lines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def vendor() -> str:
    """Return who made this machine's processor, as Linux names it, such as GenuineIntel; nothing if it is not known."""
    lines = _processor_lines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), "")


def processor_kind(bits: Bits) -> str:
    """Return what such bits depend on of this machine's processor: of portable ones the vendor, else its name."""
    return vendor() if bits == "portable" else processor()


@cache
def _processor_lines() -> tuple[str, ...]:
    try:
        return tuple(Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines())
    except OSError:
        return ()


def variables(bits: Bits = "portable") -> dict[str, str]:
    """Return the environment of processes that are to compute such bits; empty if the processor cannot."""
    if bits == "native" or not available():
        return {}
    found = {**_TORCH, "OPENBLAS_CORETYPE": "Haswell"}
    if groups := [name for name, flag in _numpy_groups().items() if flag in flags()]:
        found["NPY_DISABLE_CPU_FEATURES"] = " ".join(groups)
    return found


@cache
def _numpy_groups() -> dict[str, str]:
    try:
        release = tuple(int(part) for part in metadata.version("numpy").split(".")[:2])
    except (metadata.PackageNotFoundError, ValueError):
        return {}
    return _GROUPS if release >= _GROUPED_SINCE else _OLD_GROUPS


def choose(bits: Bits = "portable") -> None:
    """Set the environment for such bits, as far as libraries still read it.

    With `native` torch may use what it finds again. numpy stays as it was set when it was imported: the clock computes
    with it, and its plans are to be the same everywhere.
    """
    if bits == "native":
        for name in _TORCH:
            _restore(name)
        return
    for name, value in variables().items():
        _before.setdefault(name, os.environ.get(name))
        os.environ[name] = value


def _restore(name: str) -> None:
    value = _before.pop(name, None)
    if value is not None:
        os.environ[name] = value
    elif name in os.environ and os.environ[name] == _TORCH[name]:
        del os.environ[name]


def made_with(bits: Bits) -> dict[str, str]:
    """Return what the bits of this process, and of those it starts, depend on: of native ones, the processor."""
    if bits == "portable" and not late():
        return {"bits": "portable", "instructions": LEVEL, "vendor": vendor()}
    return {"bits": "native", "instructions": _torch_level(), "processor": processor()}


def _torch_level() -> str:
    """Return the level that torch uses, or would use: it is not imported for that."""
    if torch := sys.modules.get("torch"):
        return str(torch.backends.cpu.get_cpu_capability())
    if wanted := os.environ.get("ATEN_CPU_CAPABILITY"):
        return wanted.upper()
    wide = flags() >= {"avx512f", "avx512vl", "avx512bw", "avx512dq", "fma"}
    return "AVX512" if wide else LEVEL if available() else "DEFAULT"


def late() -> list[str]:
    """Return the libraries of this process that are not held to the level, as they were used before it was set.

    All of them, if the processor does not have it.
    """
    if not available():
        return ["torch", "numpy"]
    held = {"torch": _torch_level() == LEVEL, "numpy": _numpy_is_held()}
    return [name for name in held if not held[name]]


def _numpy_is_held() -> bool:
    """Whether numpy uses nothing beyond the level; looked up where numpy keeps it, which depends on its release."""
    numpy: Any = sys.modules.get("numpy")
    core: Any = getattr(numpy, "_core", None) or getattr(numpy, "core", None)
    features = getattr(getattr(core, "_multiarray_umath", None), "__cpu_features__", {})
    return not any(features.get(name, False) for name in _numpy_groups())


@contextmanager
def one_thread() -> Iterator[None]:
    """Have BLAS libraries compute in one thread while the context lasts: the parts of a sum depend on their number."""
    with _thread_pools(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


def stay_in_one_thread() -> None:
    """Have BLAS libraries compute in one thread for as long as this process lives."""
    _thread_pools(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> ThreadpoolController:
    """Return what controls the libraries that are loaded; looked up anew once more `modules` are imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
