"""Which engine takes local steps: engines differ in the last bits, so a run uses one of them throughout.

The first engine of the registry that supports the work and suits it, in the order of the registry:

    dense_gram        stacks of dense layers in short trips, by hand; the first layer is never written
    cuda_graph        many clients at once on a GPU, steps recorded as CUDA graphs
    dense_batched     many clients at once, stacks of dense layers, by hand
    conv_sequential   one client after the other, convolutions and dense layers, by hand; a large dense layer is shared
    sequential        one client after the other, anything: the reference
    vmap              many clients at once, anything, under vmap: for a GPU; on a CPU by name only

The choice follows from the work of the whole run and the device type, never from a chunk. Engines of installed packages
are used where a scenario names them.
"""

from __future__ import annotations

from fedactors.engines.base import Engine
from fedactors.engines.local_work import LocalWork
from fedactors.errors import ScenarioError
from fedactors.registry import BUILTIN, at_path, lookup


def choose(work: LocalWork, device: str, name: str | None = None) -> Engine:
    """Return a new engine for `work` on a device type: the one called `name`, or the first that suits.

    Raises ScenarioError if the engine called `name` does not support the work.
    """
    if name is None:
        engines = [_new(known) for known in BUILTIN["engines"]]
        able = [engine for engine in engines if _takes(engine, work, device)]
        return next((engine for engine in able if engine.suits(work, device)), able[0])
    engine = _new(name)
    if work.added_loss is not None and not engine.takes_added_loss:
        raise ScenarioError(
            f'task.engine: "{name.rpartition(":")[2]}" cannot follow the added_loss of algorithm'
            f' "{work.added_loss.algorithm}" (accepted: {", ".join(_with_added_loss())}; or leave it out)'
        )
    if not engine.supports(work, device):
        model, called = work.model, name.rpartition(":")[2]
        raise ScenarioError(
            f'task.engine: "{called}" does not support model "{model.name}" in {model.precision} with optimiser'
            f' "{work.optimizer.name}" on device "{device}" (accepted: {engine.accepts}; or leave it out)'
        )
    return engine


def _takes(engine: Engine, work: LocalWork, device: str) -> bool:
    """Whether an engine can take the steps of `work` on a device type."""
    return (work.added_loss is None or engine.takes_added_loss) and engine.supports(work, device)


def _with_added_loss() -> list[str]:
    """Return the names of the engines that follow what an algorithm adds to the loss."""
    return [known for known in BUILTIN["engines"] if _new(known).takes_added_loss]


def _new(name: str) -> Engine:
    found = at_path(name) if ":" in name else lookup("engines", name)  # a path is that of the user's own
    engine: Engine = found()
    return engine
