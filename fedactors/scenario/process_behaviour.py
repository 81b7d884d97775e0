"""Options of availability that is a process: code that says when a device is on, while the run goes on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from fedactors import registry
from fedactors.arguments import Arguments
from fedactors.options import Options
from fedactors.own_code.user_code import Reference
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour
from fedactors.scenario.trace_options import Always, Trace


def _built_in(value: Any, info: ValidationInfo) -> Any:
    """Return the reference of a behaviour that is built in; anything else as it is."""
    known = registry.BUILTIN["behaviours"]
    if not isinstance(value, str) or value not in known:
        return value
    module, _, attribute = known[value].partition(":")
    return Reference(value, module, attribute, None)


def named(value: Any) -> Any:
    """Return the options that a name alone stands for."""
    return {"name": value} if isinstance(value, str) else value


Windows = Annotated[
    Always | Trace | SyntheticBehaviour,
    Field(discriminator="name"),
    BeforeValidator(named, json_schema_input_type=Literal["always", "synthetic"] | Always | Trace | SyntheticBehaviour),
]


class ProcessBehaviour(Options):
    """A SimPy process for each device says when it is on; it may depend on the work that the device is given."""

    name: Literal["process"] = "process"
    behaviour: Annotated[Reference, BeforeValidator(_built_in)]
    """A subclass of `fedactors.clock.behaviours.base.Behaviour`: `people.py:Commuter` (relative to the scenario), or
    battery, access_point or diurnal."""
    arguments: Arguments = Field(default_factory=dict)
    """Keyword arguments of the class."""
    within: Windows = Always()
    """Windows outside of which the device is off whatever the process says: a recording, for example."""
