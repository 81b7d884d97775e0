"""What docs/traces.md shows can be written."""

import re
from pathlib import Path

import yaml

from fedactors.scenario.population import GroupOptions
from fedactors.traces.format_registry import read_series, read_table

TEXT = (Path(__file__).parents[2] / "docs" / "traces.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_yaml_is_of_groups_and_availability():
    shown = [yaml.safe_load(block) for block in blocks("yaml")]
    groups = [group for block in shown for group in block.get("population", [])]
    made_up = [{"name": "x", "count": 1, **block} for block in shown if "availability" in block]
    assert groups
    assert made_up
    for group in groups + made_up:
        GroupOptions.model_validate(group)


def test_csv_can_be_read(written):
    rates, devices = (next(b for b in blocks("csv") if b.startswith(start)) for start in ("row,", "device,flops"))
    assert len(read_series(written(rates, "rates"))) == 1
    assert len(read_table(written(devices, "devices"))) == 1
