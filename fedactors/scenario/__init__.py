"""What a user writes. Strict, with units, and every mistake told before anything runs.

This package knows names and shapes, not behaviour: what an algorithm or a data set does lives with that class,
which the registry finds by name. It imports neither torch nor ray nor simpy.
"""

from fedactors.scenario.model import Scenario

__all__ = ["Scenario"]
