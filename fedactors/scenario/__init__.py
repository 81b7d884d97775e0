"""Scenarios as users write them: strict, with units, and with a message for every mistake before anything runs.

This package holds names and types, not behaviour: what an algorithm or a data set does is in its class, which the
registry finds by name. It imports neither torch nor ray nor simpy.
"""

from fedactors.scenario.model import Scenario

__all__ = ["Scenario"]
