"""Habits of the code that a machine can check; the linter checks the others (see `pyproject.toml`)."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from radon.complexity import cc_visit
from radon.visitors import Function

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fedactors"
FILES = sorted(PACKAGE.rglob("*.py"))

MOST_FILES = 25  # in a folder
MOST_LINES = 300  # in a file; one with more has two subjects
MOST_PATHS = 10  # through a function; one with more has a part that deserves a name
MOST_PACKED = 2  # tuple assignments of three or more names, in the whole package


@cache
def trees():
    """Return the source of every file, parsed."""
    return {path: ast.parse(path.read_text()) for path in FILES}


def repeated(names):
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_no_class_name_is_defined_twice():
    assert not repeated(n.name for tree in trees().values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef))


def test_no_file_name_is_used_twice():
    assert not repeated(path.name for path in FILES if path.stem not in ("__init__", "base"))


def test_no_folder_holds_too_many_files():
    counts = Counter(path.parent for path in FILES)
    assert {str(folder): count for folder, count in counts.items() if count > MOST_FILES} == {}


def packed(tree):
    """Yield the lines of assignments such as `a, b, c = x, y, z`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and len(target.elts) >= 3:
                    yield node.lineno


def test_packed_assignments_are_found():
    assert list(packed(ast.parse("a, b, c = 1, 2, 3\na, b = 1, 2\na, b, c = f()"))) == [1]


def test_one_assignment_sets_one_thing():
    found = [f"{path.relative_to(ROOT)}:{line}" for path, tree in trees().items() for line in packed(tree)]
    assert len(found) <= MOST_PACKED, found


def test_no_file_is_too_long():
    counts = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: count for name, count in counts.items() if count > MOST_LINES} == {}


def intricate(text):
    """Yield (name, count) of functions with too many paths; unlike ruff's, `and`, `or` and comprehensions count."""
    for block in cc_visit(text):
        if isinstance(block, Function) and block.complexity > MOST_PATHS:
            yield block.fullname, block.complexity


def test_intricate_functions_are_found():
    text = "class A:\n  def f(x):\n    return {}\n  def g(x):\n    return {}"
    at_most, too_many = (" or ".join(["x"] * count) for count in (MOST_PATHS, MOST_PATHS + 1))
    assert list(intricate(text.format(at_most, too_many))) == [("A.g", MOST_PATHS + 1)]


def test_functions_stay_simple():
    found = {str(path.relative_to(ROOT)): list(intricate(path.read_text())) for path in FILES}
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_no_function_is_exempt_from_the_linter():
    """At most 10 paths as ruff counts them (McCabe), functions within functions by themselves, without exceptions."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--ignore-noqa", "--select", "C901"]
    command += ["--config", f"lint.mccabe.max-complexity = {MOST_PATHS}", "--output-format", "concise", str(PACKAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
