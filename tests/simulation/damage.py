"""Ways to damage a run folder, drawn from a stream of random numbers: bytes, JSON values, columns, tensors, kinds."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from safetensors.numpy import load_file, save_file

from fedactors.simulation.resume import checkpoint

ODD = (
    None, True, False, 0, -1, 1, 3.5, -0.0, 1e308, float("nan"), float("inf"), 2**63, -(2**70), "", "x", "1", "\ud800",
    [], [1], {}, {"a": 1}, [[]], "../x", "/etc/passwd", "cpu",
)  # fmt: skip


def _json(draw: random.Random, value: object) -> object:
    """Return `value` with one part of it replaced, removed or repeated."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(sorted(value))
        changed = dict(value)
        if draw.random() < 0.2:
            del changed[key]
        elif draw.random() < 0.1:
            changed[draw.choice(["x", "", "round", "1"])] = changed.pop(key)
        else:
            changed[key] = _json(draw, value[key])
        return changed
    if isinstance(value, list) and value and draw.random() < 0.9:
        changed, place = list(value), draw.randrange(len(value))
        if draw.random() < 0.2:
            del changed[place]
        elif draw.random() < 0.1:
            changed.insert(place, changed[place])
        else:
            changed[place] = _json(draw, value[place])
        return changed
    return draw.choice(ODD)


def _bytes(draw: random.Random, path: Path) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(content) + 1)
        kind = draw.randrange(4)
        if kind == 0:
            del content[place:]
        elif kind == 1:
            content[place:place] = draw.randbytes(draw.randint(1, 9))
        elif kind == 2:
            del content[place : place + draw.randint(1, 30)]
        elif place < len(content):
            content[place] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(content))


def _kind(draw: random.Random, path: Path) -> None:
    """Put something else in the place of a file."""
    path.unlink()
    kind = draw.randrange(5)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(path.parent / "nowhere")
    elif kind == 3:
        path.write_bytes(b"")


def _column(draw: random.Random, name: str, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a column of another type, or with other values."""
    rows = len(column)
    kinds: list[Callable[[], object]] = [
        lambda: pa.array([b"x"] * rows),
        lambda: pa.nulls(rows),
        lambda: pa.array(["x"] * rows),
        lambda: pa.array([1.5] * rows),
        lambda: pa.array([True] * rows),
        lambda: pa.array([[1]] * rows),
        lambda: pa.array([None if k == 0 else 1 for k in range(rows)], pa.int64()),
        lambda: pa.array([draw.choice([-(2**63), 2**63 - 1, -1, 0, 1]) for _ in range(rows)], pa.int64()),
        lambda: pa.array([{"a": 1}] * rows),
        lambda: pa.array([float("nan")] * rows),
        lambda: column.take(pa.array([draw.randrange(rows) for _ in range(rows)])) if rows else column,
    ]
    return draw.choice(kinds)()


def _parquet(draw: random.Random, path: Path) -> None:
    table = pq.read_table(path)
    kind = draw.randrange(6)
    if kind == 0:
        table = table.drop_columns([draw.choice(table.column_names)])
    elif kind == 1:
        table = table.slice(0, draw.randrange(len(table) + 1))
    elif kind == 2:
        table = pa.concat_tables([table, table])
    else:
        name = draw.choice(table.column_names)
        table = table.set_column(table.column_names.index(name), name, _column(draw, name, table.column(name)))
    pq.write_table(table, path)


def _tensors(draw: random.Random, path: Path) -> None:
    tensors = load_file(path)
    name = draw.choice(sorted(tensors))
    kinds: list[Callable[[np.ndarray], np.ndarray | None]] = [
        lambda one: one.astype(np.float64),
        lambda one: one.astype(np.int32),
        lambda one: one.reshape(1, -1),
        lambda one: one[:-1].copy(),
        lambda one: np.zeros(0, np.float32),
        lambda one: np.full_like(one, np.nan),
        lambda one: None,
    ]
    changed = draw.choice(kinds)(tensors.pop(name))
    if changed is not None:
        tensors[draw.choice([name, name, name, "x", "0/x", "99/x", "1/", name + "y"])] = changed
    if draw.random() < 0.2:
        tensors["0/more"] = np.zeros(3, np.float32)
    save_file(tensors, path)


def sign(folder: Path) -> None:
    """Sign a checkpoint again, so that only what it holds can tell that it was changed."""
    path = folder / "checkpoint.json"
    header = json.loads(path.read_text()) if path.is_file() else None
    if not isinstance(header, dict):
        return
    header.pop("sha256", None)
    if isinstance(header.get("files"), dict):
        there = [name for name in header["files"] if (folder / name).exists()]
        header["files"] = {name: checkpoint._facts(folder / name) for name in there}
    path.write_text(json.dumps(header | {"sha256": checkpoint._digest_of(header)}))


def _lines(draw: random.Random, path: Path) -> None:
    rows = path.read_text().splitlines()
    place = draw.randrange(len(rows))
    rows[place] = json.dumps(_json(draw, json.loads(rows[place])))
    path.write_text("\n".join(rows) + "\n" * (draw.random() < 0.9))


def damage(draw: random.Random, run: Path) -> str:
    """Damage one file or folder of `run`; return what was done."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.suffix not in (".html", ".gz"))
    path = draw.choice(files)
    where = str(path.relative_to(run))
    if draw.random() < 0.1:
        _kind(draw, path)
        return f"kind of {where}"
    if draw.random() < 0.03:
        folder = run / "checkpoint"
        shutil.rmtree(folder)
        if draw.random() < 0.5:
            folder.write_text("x")
        return "checkpoint"
    if draw.random() < 0.2:
        _bytes(draw, path)
        return f"bytes of {where}"
    if path.suffix == ".parquet":
        _parquet(draw, path)
    elif path.suffix == ".safetensors":
        _tensors(draw, path)
    elif path.suffix == ".jsonl":
        _lines(draw, path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(_json(draw, json.loads(path.read_text()))))
    else:
        path.write_text(yaml.safe_dump(_json(draw, yaml.safe_load(path.read_text()))))
    if path.parent.name.startswith("round-") and draw.random() < 0.8:
        sign(path.parent)
    return f"content of {where}"
