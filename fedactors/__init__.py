"""fedactors: federated learning simulated on actors, with participation that emerges from timing.

import fedactors

result = fedactors.run(fedactors.Scenario.load("scenarios/quickstart.yaml"))
print(result.summary["final"])

What scenarios and reports need is imported when it is asked for: every actor imports this package, and needs neither.
"""

from typing import TYPE_CHECKING, Any

from fedactors import run

if TYPE_CHECKING:
    from fedactors.report.notebook import load_run
    from fedactors.scenario import Scenario

__all__ = ["Scenario", "load_run", "run"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Scenario":
        from fedactors.scenario import Scenario

        return Scenario
    if name == "load_run":
        from fedactors.report.notebook import load_run

        return load_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
