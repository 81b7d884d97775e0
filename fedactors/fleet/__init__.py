"""Executes Plans on actors: client hosts, a server, an evaluator. It knows gradients and not time.

Actors are plain classes (`roles`). A `Fleet` starts them, calls them and passes handles of results that need not exist
yet; `LocalFleet` does so in this process, `RayFleet` on a cluster. Everything above (`pipeline`) is the same for both,
and so are the bits. Actors keep no state that a restart would lose: models travel as immutable objects.
"""
