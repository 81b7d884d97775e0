"""The page of the run folder names exactly the columns that there are."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

import fedactors
from fedactors.run_files.tables import ORDER_COLUMNS, PLAN_COLUMNS, TIER_COLUMNS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/run-folder.md").read_text(encoding="utf-8")
OF_PARTS = ("federated_", "central_", "validation_")

SCENARIO = {
    "name": "columns",
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid", "metrics": ["f1_macro"], "validation": 0.2},
    "population": [{"name": "phones", "count": 6, "energy": {"compute": "1 W", "carbon": "400 g/kWh"}}],
    "server": {
        "rounds": 2, "cohort": 4, "evaluation": {"every": 1}, "selection": "oort", "deadline": "1h",
        "local": {"epochs": 1},
    },
    "cluster": {"price_per_node_hour": 1.0},
}  # fmt: skip


def table(title):
    """Return the cells of the rows of the table that stands below a line that begins with `title`."""
    lines = PAGE[PAGE.index(f"\n`{title}`, a ") :].split("\n\n")[1].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names(title):
    return [name for first, *_ in table(title) for name in re.findall("`([^`]+)`", first)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    file = folder / "columns.yaml"
    file.write_text(yaml.safe_dump(SCENARIO))
    return fedactors.run(fedactors.Scenario.load(file), folder / "run", fleet="local", report=False)


@pytest.mark.parametrize(("title", "columns"), [("orders.parquet", ORDER_COLUMNS), ("plans.parquet", PLAN_COLUMNS)])
def test_the_columns_of_a_table_are_named(run, title, columns):
    pytest.importorskip("pandas")
    assert [name for name, parquet, *_ in table(title) if parquet] == [f"`{column}`" for column in columns]
    assert names(title) == list(getattr(run.frames, title.removesuffix(".parquet")).columns)


@pytest.mark.parametrize("name", ["clients", "weights", "stages", "client_metrics", "windows", "wall"])
def test_the_columns_of_smaller_tables_are_named(run, name):
    named = [column for column in names(f"{name}.parquet") if column != "round" or name == "client_metrics"]
    there = pq.read_schema(run.folder / f"{name}.parquet").names
    assert [column for column in there if column not in ("f1_macro",)] == named


def test_the_columns_of_tiers_are_named():
    assert names("tiers.parquet") == list(TIER_COLUMNS)


def test_the_keys_of_metrics_are_named(run):
    """Every key of a run that has most of them is named, and every name is one that the package writes."""
    named = names("metrics.jsonl")
    lines = (run.folder / "metrics.jsonl").read_text().splitlines()
    assert {key for line in lines for key in json.loads(line)} - {*named} == {"f1_macro", "validation_f1_macro"}
    source = "".join(path.read_text() for path in (ROOT / "fedactors").rglob("*.py"))
    assert [name for name in named if f'"{name}"' not in source and name.rstrip("*") not in OF_PARTS] == []
    assert all(f'"{part}"' in source for part in OF_PARTS)
