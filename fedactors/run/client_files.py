"""What clients keep, on disk: shards of safetensors that appear whole or not at all.

A folder holds `clients-N.safetensors`, N the first client of a shard; the tensor "17/c" is what client 17 keeps under
the name c. Shards are written one after the other, so that memory holds one of them, however many clients there are.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import RunFolderError

Kept = Mapping[str, NDArray[np.float32]]

_SHARD = 64  # clients in a file


def save(folder: Path, kept: Iterable[tuple[int, Kept]]) -> None:
    """Replace what `folder` holds by `kept`, (client, named vectors) ascending by client."""
    from safetensors.numpy import save_file

    pending = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(pending, ignore_errors=True)
    pending.mkdir(parents=True)
    clients = iter(kept)
    while shard := list(islice(clients, _SHARD)):
        tensors = {f"{client}/{name}": np.ascontiguousarray(v) for client, one in shard for name, v in one.items()}
        save_file(tensors, pending / f"clients-{shard[0][0]:08}.safetensors")
    shutil.rmtree(folder, ignore_errors=True)
    pending.replace(folder)


def load(folder: Path) -> Iterator[tuple[int, dict[str, NDArray[np.float32]]]]:
    """Yield (client, named vectors), ascending by client. Raises RunFolderError if a shard cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    for path in sorted(folder.glob("clients-*.safetensors")):
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError) as error:
            raise RunFolderError(f"{path}: cannot be read: {error}") from None
        clients: dict[int, dict[str, NDArray[np.float32]]] = {}
        for key, value in tensors.items():
            client, _, name = key.partition("/")
            clients.setdefault(int(client), {})[name] = value
        yield from sorted(clients.items())
