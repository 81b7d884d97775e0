"""The page of asynchronous servers says of each built-in algorithm with which timing it goes, as the code does."""

import re
from pathlib import Path

import pytest

from fedactors.errors import ScenarioError
from fedactors.registry import BUILTIN
from fedactors.scenario.model import Scenario

PAGE = (Path(__file__).parents[2] / "docs/asynchronous.md").read_text(encoding="utf-8")
NEEDED = {"fedprox": {"mu": 0.1}, "dsl": {"server_lr": 0.1}}


def goes(algorithm, timing):
    """Return whether an algorithm is defined under a timing: "yes" or "no"."""
    server = {
        "rounds": 2,
        "timing": timing,
        "algorithm": {"name": algorithm, **NEEDED.get(algorithm, {})},
        "data": {"name": "iid", "samples": 10},
    }
    task = {"dataset": "digits", "model": "logistic", "partition": "iid"}
    whole = {"name": "any", "task": task, "population": [{"name": "devices", "count": 4}], "server": server}
    try:
        Scenario.load(whole)
    except ScenarioError as error:
        return "no" if "is undefined under timing" in str(error) else str(error)
    return "yes"


def said():
    """Return what the table says of each algorithm: the first words of its cells."""
    table = PAGE[PAGE.index("\n| | fedasync | fedbuff, semi-synchronous |") :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("| `")]
    return {
        name: tuple(cell.partition(":")[0] for cell in cells)
        for names, *cells in rows
        for name in re.findall("`([^`]+)`", names)
    }


def test_each_algorithm_has_a_row():
    assert sorted(said()) == sorted(BUILTIN["algorithms"])


@pytest.mark.parametrize("algorithm", sorted(BUILTIN["algorithms"]))
def test_the_table_says_what_goes_with_what(algorithm):
    fedasync = {"name": "fedasync", "concurrency": 2}
    fedbuff = {"name": "fedbuff", "concurrency": 2, "buffer": 2}
    periods = {"name": "semi-synchronous", "concurrency": 2, "period": "10s"}
    first, second = said()[algorithm]
    assert [goes(algorithm, timing) for timing in (fedasync, fedbuff, periods)] == [first, second, second]
