"""Who may import whom, read from the source: the arrows of the architecture."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fedactors"
LEAVES = {
    "plan", "errors", "extras", "streams", "options", "registry", "builtin_names", "paths", "workload", "version",
    "bits", "clip", "metric_names", "packaged", "home", "durations", "option_texts", "in_place", "arguments",
    "plain_text", "own_code", "job_limits",
}  # fmt: skip
ROOMS = {
    "run_files": set(),
    "scenario": set(),
    "traces": {"scenario"},
    "clock": {"scenario", "traces"},
    "data": set(),
    "models": set(),
    "optim": {"models"},
    "transforms": {"models"},
    "attacks": {"transforms", "data"},
    "privacy": {"transforms", "scenario"},
    "engines": {"data", "models", "optim"},
    "learning": {"data", "models", "optim", "engines", "transforms", "attacks"},
    "algorithms": {"models", "optim", "learning"},
    "fleet": {"data", "models", "learning"},
    "report": {"run_files"},
    "starters": {"clock", "data", "learning"},
    "simulation": {
        "scenario", "traces", "clock", "data", "models", "learning", "algorithms", "fleet", "run_files", "report",
        "transforms", "privacy", "attacks",
    },
    "fetching": set(),
    "study": {"scenario", "traces", "clock", "simulation", "run_files", "report", "fleet"},
    "papers": {"scenario", "simulation", "run_files", "study"},
    "cli": {"scenario", "traces", "simulation", "run_files", "report", "study", "papers", "fleet", "fetching"},
}  # fmt: skip
# Imports that only a type checker sees: the base classes of what a scenario names (see `scenario.kinds`).
TYPES_OF = {"scenario": {"clock", "data", "models", "optim", "learning", "algorithms", "transforms", "attacks"}}
FORBIDDEN = {
    "run_files": {"torch", "ray", "simpy"},
    "scenario": {"torch", "ray", "simpy"},
    "traces": {"torch", "ray", "simpy"},
    "clock": {"torch", "ray"},
    "data": {"ray", "simpy"},
    "models": {"ray", "simpy"},
    "optim": {"ray", "simpy"},
    "transforms": {"ray", "simpy"},
    "privacy": {"torch", "ray", "simpy"},
    "attacks": {"ray", "simpy"},
    "engines": {"ray", "simpy"},
    "learning": {"ray", "simpy"},
    "algorithms": {"ray", "simpy"},
    "fleet": {"simpy"},
    "simulation": {"simpy", "ray"},
    "study": {"torch", "ray", "simpy"},
    "papers": {"torch", "ray", "simpy"},
    "fetching": {"ray", "simpy"},
    "report": {"torch", "ray", "simpy"},
    "starters": {"ray", "simpy"},
    "cli": {"torch", "ray", "simpy"},
}


@cache
def imports(path):
    """Return (module, only for type checking) of every import in a file, wherever it stands."""
    tree = ast.parse(path.read_text())
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(name.name, node in guarded) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [(f"{node.module}.{name.name}", node in guarded) for name in node.names]
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_what_its_room_may(path):
    parts = path.relative_to(PACKAGE).parts
    room = parts[0].removesuffix(".py")
    for module, for_types in imports(path):
        top = module.split(".")[0]
        if room in LEAVES and not for_types:
            assert top not in {"torch", "ray", "simpy"}, f"{room} is a leaf and imports {module}"
        if top == "fedactors":
            target = module.split(".")[1]
            if room in LEAVES:
                assert target in LEAVES, f"{room} is a leaf and imports {module}"
            elif room in ROOMS:
                allowed = ROOMS[room] | (TYPES_OF.get(room, set()) if for_types else set())
                assert target in LEAVES | allowed | {room}, f"{room} imports {module}"
        elif room in ROOMS and not for_types:
            assert top not in FORBIDDEN[room], f"{room} imports {module}"


def test_no_module_imports_both_simpy_and_ray():
    for path in FILES:
        tops = {module.split(".")[0] for module, _ in imports(path)}
        assert not {"simpy", "ray"} <= tops, path


def modules():
    """Return the dotted name of every file of the package, `__init__` under the name of its folder."""
    names = {}
    for path in FILES:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def arrows():
    """Return which files each file imports, by dotted names; imports for type checking and inside functions too."""
    names = modules()
    graph = {}
    for name, path in names.items():
        found = set()
        for module, _ in imports(path):
            found |= {module} & names.keys() or {module.rpartition(".")[0]} & names.keys()
        graph[name] = found - {name}
    return graph


def circles(graph):
    """Return the groups of two or more nodes that reach each other."""
    reached = {}
    for start in graph:
        seen, stack = set(), list(graph[start])
        while stack:
            if (node := stack.pop()) not in seen:
                seen.add(node)
                stack += graph[node]
        reached[start] = seen
    groups = {frozenset(b for b in reached[a] if a in reached[b]) for a in graph if a in reached[a]}
    return sorted(sorted(group) for group in groups)


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [["b", "c"]]


def test_no_files_import_each_other_in_a_circle():
    """Imports for type checking count as well: who reads one file of a circle has to read all of them."""
    assert circles(arrows()) == []


def test_every_package_says_what_it_is_for():
    for room in ROOMS:
        assert ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())), room
