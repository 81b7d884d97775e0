"""Executes Plans on actors: client hosts, a server, an evaluator. It computes models and has no simulated time.

Workers are plain classes (`workers`), each with a typed stub (`stubs`). A `Fleet` starts them as actors, calls their
methods and passes handles of results that need not exist yet; `LocalFleet` does so in this process, `RayFleet` on a
cluster, over a transport that it is given. Everything above (`pipeline`) is the same for both, and so are the bits.
Actors keep no state that a restart would lose: models travel as immutable objects.
"""

import os

# Ray reads these when it is imported, by modules of this package
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the pipeline handles and reports them
