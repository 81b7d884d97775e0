"""Executes Plans on actors: client hosts, a server, an evaluator. It knows gradients and not time.

Actors are plain classes (`roles`). A `Fleet` starts them, calls them and passes handles of results that need not exist
yet; `LocalFleet` does so in this process, `RayFleet` on a cluster. Everything above (`pipeline`) is the same for both,
and so are the bits. Actors keep no state that a restart would lose: models travel as immutable objects.
"""

import os

# read by ray when it is imported, which modules of this package do
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the pipeline handles them, and says so
