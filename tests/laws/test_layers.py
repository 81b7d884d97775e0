"""Who may import whom, read from the source: the arrows of the architecture."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fedactors"
LEAVES = {"plan", "errors", "extras", "streams", "options", "paths", "registry", "user_code", "workload"}
ROOMS = {
    "run_files": set(),
    "scenario": set(),
    "traces": {"scenario"},
    "clock": {"scenario", "traces"},
    "data": set(),
    "models": set(),
    "optim": {"models"},
    "engines": {"data", "models", "optim"},
    "learning": {"data", "models", "optim", "engines"},
    "algorithms": {"models", "optim", "learning"},
    "fleet": {"data", "models", "learning"},
    "report": {"run_files"},
    "simulation": {
        "scenario", "traces", "clock", "data", "models", "learning", "algorithms", "fleet", "run_files", "report",
    },
    "study": {"scenario", "simulation", "run_files", "report", "fleet"},
    "papers": {"scenario", "simulation", "study"},
    "cli": {"scenario", "traces", "simulation", "run_files", "report", "study", "papers", "fleet"},
}  # fmt: skip
FORBIDDEN = {
    "run_files": {"torch", "ray", "simpy"},
    "scenario": {"torch", "ray", "simpy"},
    "traces": {"torch", "ray", "simpy"},
    "clock": {"torch", "ray"},
    "data": {"ray", "simpy"},
    "models": {"ray", "simpy"},
    "optim": {"ray", "simpy"},
    "engines": {"ray", "simpy"},
    "learning": {"ray", "simpy"},
    "algorithms": {"ray", "simpy"},
    "fleet": {"simpy"},
    "simulation": {"simpy", "ray"},
    "study": {"torch", "ray", "simpy"},
    "papers": {"torch", "ray", "simpy"},
    "report": {"torch", "ray", "simpy"},
    "cli": {"torch", "ray", "simpy"},
}


def imports(path):
    """Yield (module, only for type checking) of every import in a file, wherever it stands."""
    tree = ast.parse(path.read_text())
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, node in guarded
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for name in node.names:
                yield f"{node.module}.{name.name}", node in guarded


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_what_its_room_may(path):
    parts = path.relative_to(PACKAGE).parts
    room = parts[0].removesuffix(".py")
    for module, for_types in imports(path):
        top = module.split(".")[0]
        if room in LEAVES and not for_types:
            assert top not in {"torch", "ray", "simpy"}, f"{room} is a leaf and imports {module}"
        if top == "fedactors" and module not in ("fedactors", "fedactors.__version__"):
            target = module.split(".")[1]
            if room in LEAVES:
                assert target in LEAVES, f"{room} is a leaf and imports {module}"
            elif room in ROOMS:
                assert target in LEAVES | ROOMS[room] | {room}, f"{room} imports {module}"
        elif room in ROOMS and not for_types:
            assert top not in FORBIDDEN[room], f"{room} imports {module}"


def test_no_module_imports_both_simpy_and_ray():
    for path in FILES:
        tops = {module.split(".")[0] for module, _ in imports(path)}
        assert not {"simpy", "ray"} <= tops, path


def test_every_package_says_what_it_is_for():
    for room in ROOMS:
        assert ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())), room
