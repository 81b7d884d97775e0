"""Proof that results do not depend on machines: the same scenario on different fleets, digests compared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedactors.scenario.model import ScenarioLike, as_scenario
from fedactors.simulation.fleet_choice import FleetKind
from fedactors.simulation.progress import Silent
from fedactors.simulation.runner import run

FLEETS: tuple[tuple[FleetKind, int], ...] = (("local", 1), ("ray", 1), ("ray", 2), ("ray", 3))


def verify(
    scenario: ScenarioLike,
    fleets: Sequence[tuple[FleetKind, int]] = FLEETS,
    *,
    address: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Run `scenario` once on each fleet (kind, actors) and return {"equal", "runs": [{"fleet", "actors", "digests"}]}.

    What is not a `Scenario` is loaded as by `Scenario.load`. `tell` is called with the name of each fleet before it
    starts. Raises what `run` raises.
    """
    scenario = as_scenario(scenario)
    runs = []
    for kind, actors in fleets:
        tell(f"{kind} fleet, {actors} actor{'s' * (actors != 1)}")
        with tempfile.TemporaryDirectory(prefix="fedactors-verify-") as folder:
            result = run(scenario, Path(folder) / "run", fleet=kind, actors=actors, address=address, progress=Silent())
        runs.append({"fleet": kind, "actors": actors, "digests": result.summary["digests"]})
    return {
        "name": scenario.name,
        "equal": all(r["digests"] == runs[0]["digests"] for r in runs),
        "runs": runs,
    }
