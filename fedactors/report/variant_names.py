"""What variants of a scenario are called: by the settings in which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

Label = str | float

_MOST_SETTINGS = 3  # in a name, before those that tell nothing new are left out
_LONGEST = 40  # characters of a value in a name
_SEED = "seed"
_NAME = ".name"  # of an algorithm, a partition, …: settings beside it belong to it


def labelled(value: Any) -> Label:
    """Return how a value is called in tables: 0.1, "fsl", "fsl server_weight=0.5"."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        rest = [f"{key}={labelled(inner)}" for key, inner in value.items() if key != "name"]
        return " ".join([*([str(value["name"])] if "name" in value else []), *rest])
    if isinstance(value, list):
        return "[" + ", ".join(str(labelled(inner)) for inner in value) + "]"
    return str(value)


def variant_of(labels: Mapping[str, Label]) -> str:
    """Return what a variant is called: its value if one key is varied, else each key's last word with its value."""
    return str(*labels.values()) if len(labels) == 1 else in_words(labels)


def in_words(labels: Mapping[str, Label]) -> str:
    """Return each key's last word with its value, or the whole key where two end in one word: "lr=0.1, seed=7"."""
    shorts = [name.rpartition(".")[2] for name in labels]
    names = [short if shorts.count(short) == 1 else name for short, name in zip(shorts, labels, strict=True)]
    return ", ".join(f"{name}={value}" for name, value in zip(names, labels.values(), strict=True))


def told_apart(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Label]]:
    """Return of each resolved scenario the settings by which one can tell it from the others, the seed last.

    Settings that come with another one, such as those of the algorithm that is named, are left out; where many differ,
    so are those that tell no two scenarios apart that others do not tell apart. Scenarios that are equal have none.
    """
    flats = [flat(one) for one in scenarios]
    keys = _without_parts(differing(flats), flats)
    shown = keys if len(keys) <= _MOST_SETTINGS else list(_telling(keys, flats))
    shown.sort(key=lambda key: key == _SEED)
    return [{key.removesuffix(_NAME): _short(key, one[key]) for key in shown if key in one} for one in flats]


def differing(flats: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys whose values are not the same in all, of scenarios that are flat; without that of their names."""
    keys = dict.fromkeys(key for one in flats for key in one if key != "name")
    return [key for key in keys if any(one.get(key) != flats[0].get(key) for one in flats)]


def _without_parts(keys: Sequence[str], flats: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys without those of what is named, if each name has one value of them."""
    named = [key for key in keys if key.endswith(_NAME)]

    def part(key: str) -> bool:
        above = [name for name in named if key != name and key.startswith(name.removesuffix("name"))]
        return any(_follows(key, name, flats) for name in above)

    return [key for key in keys if not part(key)]


def _follows(key: str, other: str, flats: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether scenarios with one value under `other` have one value under `key`."""
    pairs = [(str(one.get(other)), str(one.get(key))) for one in flats]
    return len(set(pairs)) == len({first for first, _ in pairs})


def _telling(keys: Sequence[str], flats: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the keys that tell scenarios apart which those before do not tell apart."""
    seen = [""] * len(flats)
    for key in keys:
        finer = [f"{before} {one.get(key)}" for before, one in zip(seen, flats, strict=True)]
        if len(set(finer)) > len(set(seen)):
            seen = finer
            yield key


def _short(key: str, value: Any) -> Label:
    """Return a value as it stands in a name; of a path, the name of the file."""
    if isinstance(value, str) and key.endswith((".path", ".table")):
        return PurePath(value).name
    found = labelled(value)
    return f"{found[:_LONGEST]}…" if isinstance(found, str) and len(found) > _LONGEST else found


def flat(data: Any, path: str = "") -> dict[str, Any]:
    """Return the values of nested data by their paths; entries of lists by their names, if they have such."""
    inner = _parts(data)
    if not inner:
        return {path: data} if path else {}
    found: dict[str, Any] = {}
    for name, part in inner.items():
        found |= flat(part, f"{path}.{name}".lstrip("."))
    return found


def _parts(data: Any) -> dict[str, Any]:
    """Return the parts of a mapping, or of a list of mappings, by their names if these differ; else nothing."""
    if isinstance(data, dict):
        return data
    if isinstance(data, list) and all(isinstance(one, dict) for one in data):
        named = {str(one.get("name", k)): one for k, one in enumerate(data)}
        return named if len(named) == len(data) else {str(k): one for k, one in enumerate(data)}
    return {}
