"""What the columns of a run folder's tables hold; a run has written no table in which one holds something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedactors.plan import NEVER
from fedactors.run_files.files import damaged

_TEXTS = ("outcome", "group", "track", "what")
_LISTS = ("arrived", "departed", "on", "off")
_OTHERS = dict.fromkeys(("weight", "share", "joules", "co2_grams"), "numbers") | {"sampled": "true or false"}
_MOST = {"client": 2**40}  # of others, the clock's last instant


def kind_of_column(name: str) -> str:
    """Return what a column holds, in words."""
    if name in _TEXTS:
        return "texts"
    return "lists of integers" if name in _LISTS else _OTHERS.get(name, "integers")


def refuse_other_types(path: Path, table: Any, names: list[str]) -> None:
    """Raise RunFolderError if a column of an Arrow table, or of a part of it, does not hold what a run writes there."""
    for name in names:
        column = table.column(name)
        kind = kind_of_column(name)
        if not _fits(column.type, kind):
            raise damaged(path, f"column {name} holds {column.type}", kind)
        if column.null_count:
            raise damaged(path, f"{column.null_count} values lack in column {name}", kind)
        if kind == "integers":
            _refuse_range(path, name, column)


def _fits(found: Any, kind: str) -> bool:
    """Whether an Arrow type is of a kind."""
    import pyarrow as pa

    if kind == "texts":
        found = found.value_type if pa.types.is_dictionary(found) else found
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    if kind == "lists of integers":
        return bool(pa.types.is_list(found) and pa.types.is_integer(found.value_type))
    looks = {"integers": pa.types.is_integer, "numbers": pa.types.is_floating, "true or false": pa.types.is_boolean}
    return bool(looks[kind](found))


def _refuse_range(path: Path, name: str, column: Any) -> None:
    """Raise RunFolderError if integers of a column are not what they can be."""
    import pyarrow.compute as pc

    found = pc.min_max(column).as_py()
    most = _MOST.get(name, NEVER)
    if found["min"] is not None and not -NEVER <= found["min"] <= found["max"] <= most:
        raise damaged(path, f"column {name} holds {found['min']} to {found['max']}", f"at most {most}")
    if name in _MOST and found["min"] is not None and found["min"] < 0:
        raise damaged(path, f"column {name} holds {found['min']}", "0 or more")
