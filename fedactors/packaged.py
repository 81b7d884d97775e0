"""The scenarios and recordings that come with fedactors, found by name wherever it is installed.

In a checkout they are the folders `scenarios/`, `traces/` and `examples/own/` at its top; the wheel has the same ones
under `fedactors/bundled/` (see `pyproject.toml`), so that paths from one to the other are the same in both.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from pathlib import Path

from fedactors.errors import ScenarioError

_PACKAGE = Path(__file__).parent
_SUFFIX = ".yaml"
_OWN = Path("examples/own")  # scenarios with a model or data of one's own: a folder each, with a Python file
_EXAMPLES = "examples"
_EXAMPLE = "scenario.yaml"
_LINE = 110  # characters
_END = re.compile(r"(?<=\.)(?<!al\.)\s")  # of a sentence; that of "et al." is none
_TRACE = re.compile(r"\.\./(traces/[\w./-]+)")  # how a packaged scenario names a packaged recording


def scenario_folder() -> Path:
    """Return the folder of the scenarios that come with fedactors."""
    return _root() / "scenarios"


def names() -> list[str]:
    """Return the names of the packaged scenarios, such as quickstart or examples/lstm-text, in alphabetical order."""
    folder = scenario_folder()
    plain = [path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob(f"*{_SUFFIX}")]
    own = [f"{_EXAMPLES}/{path.parent.name}" for path in (_root() / _OWN).glob(f"*/{_EXAMPLE}")]
    return sorted([*plain, *own])


def located(scenario: str | Path) -> Path:
    """Return the file that a user means: an existing file as it is, else the packaged scenario of that name.

    Raises ScenarioError, with the nearest names, if there is neither.
    """
    path = Path(scenario)
    if str(path) == "-" or _is_file_or_pipe(path):
        return path
    if str(path) in names():
        return file_of(str(path))
    if path.is_dir():
        return path  # reading it says what is wrong
    raise ScenarioError(f"{path}: no such scenario file{nearest(str(path))}")


def file_of(name: str) -> Path:
    """Return the file of a packaged scenario. Raises ScenarioError, with the nearest names, if there is none."""
    if name not in names():
        raise ScenarioError(f'no scenario "{name}" comes with fedactors{nearest(name)}')
    folder, _, example = name.partition("/")
    return _root() / _OWN / example / _EXAMPLE if folder == _EXAMPLES else scenario_folder() / f"{name}{_SUFFIX}"


def code_of(name: str) -> list[Path]:
    """Return the Python files that lie beside a packaged scenario and belong to it, in order."""
    return sorted(file_of(name).parent.glob("*.py"))


def nearest(name: str) -> str:
    """Return '; did you mean "x"?' for packaged names near a wrong name or path, and where all of them are listed."""
    wanted = name.removesuffix(_SUFFIX).removeprefix("scenarios/")
    known = {known.rpartition("/")[2]: known for known in reversed(names())}  # the shorter one of two equal ends
    found = difflib.get_close_matches(wanted, names(), n=3, cutoff=0.6)
    found += [known[end] for end in difflib.get_close_matches(wanted.rpartition("/")[2], known, n=3, cutoff=0.6)]
    shown = " or ".join(f'"{one}"' for one in list(dict.fromkeys(found))[:3])
    hint = f"; did you mean {shown}?" if shown else ""
    return f"{hint} (accepted: a file, or a name that `fedactors scenarios` lists)"


def summary(name: str) -> str:
    """Return what a packaged scenario is about: the first sentence of the comment at its top, in one short line."""
    lines = []
    for line in file_of(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    sentence = _END.split(" ".join(lines), maxsplit=1)[0]
    return textwrap.shorten(sentence.rstrip("."), _LINE, placeholder=" …")


def to_edit(name: str) -> tuple[str, list[str]]:
    """Return the text of a packaged scenario as it is beside a folder `traces`, and the recordings it names there.

    The recordings are paths such as traces/campus.csv, which start from the folder of the new file and, as well, from
    `packaged_file`. Raises ScenarioError if there is no such scenario.
    """
    text = file_of(name).read_text(encoding="utf-8")
    return _TRACE.sub(r"\1", text), sorted(set(_TRACE.findall(text)))


def packaged_file(path: str) -> Path:
    """Return the file at a path that starts from the folder which holds `scenarios` and `traces`."""
    return _root() / path


def _root() -> Path:
    inside = _PACKAGE / "bundled"
    return inside if inside.is_dir() else _PACKAGE.parent


def _is_file_or_pipe(path: Path) -> bool:
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return True  # reading it says what is wrong
