"""fedactors: federated learning simulated on actors, with participation that emerges from timing.

import fedactors

result = fedactors.run(fedactors.Scenario.load("scenarios/quickstart.yaml"))
print(result.summary["final"])
"""

from fedactors import run
from fedactors.report.notebook import load_run
from fedactors.scenario import Scenario

__all__ = ["Scenario", "load_run", "run"]
__version__ = "0.1.0"
