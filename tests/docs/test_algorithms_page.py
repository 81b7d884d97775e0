"""The page of algorithms has each of them, with the first line that its class says of itself."""

from pathlib import Path

from fedactors import registry

PAGE = (Path(__file__).parents[2] / "docs/algorithms.md").read_text()


def test_each_algorithm_has_its_line():
    names = sorted(registry.BUILTIN["algorithms"])
    said = [registry.lookup("algorithms", name).__doc__.strip().splitlines()[0] for name in names]
    wanted = [f"| `{name}` | {line} |" for name, line in zip(names, said, strict=True)]
    assert [line for line in PAGE.splitlines() if line.startswith("| `")] == wanted
