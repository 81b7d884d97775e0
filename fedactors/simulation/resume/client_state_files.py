"""What clients keep, on disk: shards of safetensors, each read and written by itself.

`clients-N.safetensors` begins with client N; its tensor "17/c" is what client 17 keeps under the name c. Shards are
handled one after the other, so that memory holds one of them, however many clients there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedactors.run_files.files import damaged
from fedactors.run_files.tensors import tensors_of

Kept = Mapping[str, NDArray[np.float32]]

_SHARD = 64  # clients in a file


def save(folder: Path, kept: Iterable[tuple[int, Kept]]) -> Iterator[Path]:
    """Write `kept`, (client, named vectors) ascending by client, into `folder`; yield each file as it is there."""
    clients = iter(kept)
    while shard := list(islice(clients, _SHARD)):
        tensors = {f"{client}/{name}": np.asarray(v, order="C") for client, one in shard for name, v in one.items()}
        path = folder / f"clients-{shard[0][0]:08}.safetensors"
        write(path, tensors)
        yield path


def load(paths: Iterable[Path]) -> Iterator[tuple[int, dict[str, NDArray[np.float32]]]]:
    """Yield (client, named vectors), ascending by client. Raises RunFolderError if a shard cannot be read."""
    for path in sorted(paths):
        clients: dict[int, dict[str, NDArray[np.float32]]] = {}
        for (client, name), value in numbered(path).items():
            clients.setdefault(client, {})[name] = value
        yield from sorted(clients.items())


def write(path: Path, tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Write named tensors. Raises OSError if the disk does not take them."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(dict(tensors), path)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from None


def numbered(path: Path) -> dict[tuple[int, str], NDArray[np.float32]]:
    """Return the tensors of a file by (number, name). Raises RunFolderError if it cannot be read."""
    tensors = tensors_of(path)
    try:
        return {(int(key.partition("/")[0]), key.partition("/")[2]): value for key, value in tensors.items()}
    except ValueError as error:
        raise damaged(path, str(error), 'tensors named "NUMBER/NAME"') from None
