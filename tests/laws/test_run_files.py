"""Files of run folders are opened in one room, `run_files`, for reading as for writing."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fedactors"
OPENING = {
    "open", "read_text", "read_bytes", "write_text", "write_bytes", "read_table", "ParquetFile", "ParquetWriter",
    "write_table", "load_file", "save_file", "rmtree", "unlink", "copy", "copytree", "copyfile",
}  # fmt: skip
REASONS = {
    ("simulation/resume/client_state_files.py", "save_file"): "into a folder that nobody else can write to",
    ("simulation/resume/checkpoint.py", "open"): "to have what was written there reach the disk",
    ("simulation/record/run_folder.py", "unlink"): "removes a name, follows no link",
    ("simulation/objective_state.py", "copy"): "of an object",
    ("report/page/script.py", "read_text"): "of a file of the package",
    ("report/page/style.py", "read_text"): "of a file of the package",
}
FILES = sorted(path for room in ("simulation", "report", "study") for path in (PACKAGE / room).rglob("*.py"))


def called(tree):
    """Yield the names of all functions that are called without our own modules."""
    ours = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fedactors.")
        for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in ours:
                yield name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_other_room_opens_files(path):
    name = path.relative_to(PACKAGE).as_posix()
    found = {one for one in called(ast.parse(path.read_text())) if one in OPENING and (name, one) not in REASONS}
    assert not found
