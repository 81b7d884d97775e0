"""Scenarios and the Plans they must give, number by number.

When a change is meant to move them: FEDACTORS_GOLDEN=write pytest tests/golden, then read the difference.
"""

import os
from pathlib import Path

import pytest
import yaml

from fedactors.scenario.loading import validate
from fedactors.simulation.prepare import prepare

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*.yaml"))


def listing(scenario):
    """Return the plans of a scenario as lines a person can check with pencil and paper (times in ms)."""
    clock = prepare(scenario).clock()
    for plan in clock:
        opened, closed, ready = (f"{time / 1e6:g}" for time in (plan.opened, plan.closed, plan.ready))
        yield f"plan {plan.version}  opened {opened}  closed {closed}  ready {ready}"
        for order in plan.orders:
            times = "  ".join(f"{t / 1e6:g}" for t in (order.started, order.downloaded, order.computed, order.finished))
            work = f"{order.steps}/{order.wanted}"
            yield f"  {order.client}  {order.outcome:<10} {work}  {times}  down {order.down}  up {order.up}"
    yield f"ended: {clock.ended_because}"


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_plans_are_as_recorded(path):
    scenario = validate(yaml.safe_load(path.read_text()), str(path), folder=HERE)
    text = "\n".join(listing(scenario)) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("FEDACTORS_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()


def test_there_are_cases():
    assert len(CASES) >= 3
