"""fedactors: federated learning simulated on actors, with participation that emerges from timing.

import fedactors

result = fedactors.run(fedactors.Scenario.load("scenarios/quickstart.yaml"))
print(result.summary["final"])

`fedactors.check` says what a scenario will do, `fedactors.replay` runs the clock alone, `fedactors.resume` goes on with
a run that was stopped, and `fedactors.load_run` opens a run folder that was written before. `fedactors.compare` and
`fedactors.sweep` run studies.

Scenarios, runs and reports are imported at their first use, because every actor imports this package.
"""

from typing import TYPE_CHECKING, Any

from fedactors.version import VERSION

if TYPE_CHECKING:
    from fedactors.scenario import Scenario
    from fedactors.simulation.checks.check import check
    from fedactors.simulation.record.trained_run import load_run
    from fedactors.simulation.replay import replay
    from fedactors.simulation.runner import resume, run
    from fedactors.study.comparison import compare
    from fedactors.study.sweep import sweep

__all__ = ["Scenario", "check", "compare", "load_run", "replay", "resume", "run", "sweep"]
__version__ = VERSION

_HOMES = {
    "Scenario": "fedactors.scenario",
    "check": "fedactors.simulation.checks.check",
    "compare": "fedactors.study.comparison",
    "load_run": "fedactors.simulation.record.trained_run",
    "replay": "fedactors.simulation.replay",
    "resume": "fedactors.simulation.runner",
    "run": "fedactors.simulation.runner",
    "sweep": "fedactors.study.sweep",
}


def __dir__() -> list[str]:
    """Return the names in the package, with those that are imported at their first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from fedactors.bits import choose

    choose()  # numpy looks at the environment when it is imported

    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found
