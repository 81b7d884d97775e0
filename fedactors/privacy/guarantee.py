"""Which guarantee a scenario gives, in sentences, and why it can give none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedactors.privacy.spending import Spending, spending_on
from fedactors.privacy.unnoised import RunFacts, reason
from fedactors.transforms.base import UpdateTransform
from fedactors.transforms.noise import Noise
from fedactors.transforms.tree_noise import TreeNoise

if TYPE_CHECKING:
    from fedactors.scenario.server_options import ServerOptions

_HOLDS = (
    "for all data of a device, compared with a run in which what it sends adds nothing to any sum, if who takes part"
    " when, with which weight and after how many steps is known to all"
)
_NOT = (
    "no amplification by sampling is claimed, because who takes part emerges from timing; what counts is the device"
    " that was heard most; losses and other measures of this run, and what is known of the data before it (categories,"
    " means of columns), have no noise and are not covered"
)


def noise_of(server: ServerOptions) -> UpdateTransform | None:
    """Return the noise of a scenario's uplink: what comes last there, if it is noise."""
    last = server.uplink[-1] if server.uplink else None
    return last if isinstance(last, (Noise, TreeNoise)) else None


def spending_of(server: ServerOptions) -> Spending | None:
    """Return what accounts for the privacy of a scenario; None if that is not asked for, or nothing guarantees any."""
    if server.privacy is None:
        return None
    algorithm = server.algorithm
    unweighted = tuple(name in algorithm.unweighted for name in algorithm.changes)
    clip = server.uplink[-2] if len(server.uplink) > 1 else None
    return spending_on(noise_of(server), clip, server.privacy.delta, unweighted)


def sentences(server: ServerOptions, devices: int) -> list[str]:
    """Return what is guaranteed to so many devices, and what is not; nothing where there is no noise."""
    noise = noise_of(server)
    if noise is None:
        return []
    if isinstance(noise, Noise) and noise.multiplier is None:
        return [f"privacy: noise with a {_own(noise)} of its own guarantees nothing (a multiplier behind a clip does)"]
    if server.privacy is None:
        return ["privacy: noise is added, and epsilon is not counted (server.privacy: {delta: 1e-5} counts it)"]
    delta = server.privacy.delta
    found = [f"privacy: epsilon at delta {delta:g} holds {_trust(noise)} {_HOLDS}; {_NOT}"]
    if delta * devices >= 1 and noise.name != "laplace":  # whose epsilon is pure
        found.append(
            f"privacy: delta {delta:g} is not below one over the {devices:,} devices, so that all of one of them may"
            f" become known (well below it is usual, such as {0.1 / devices:.0e})"
        )
    return found


def _own(noise: Noise) -> str:
    return "scale" if noise.name == "laplace" else "deviation"


def _trust(noise: UpdateTransform) -> str:
    """Return against whom the guarantee holds."""
    if not isinstance(noise, Noise) or noise.at_server:
        return "against all who see models, not against the server, which adds the noise,"
    if noise.over == 1:
        return "against the server too, each client's own noise counted alone,"
    return "against all who see nothing but the sum of a round, with the noise of those who were heard,"


def problem(server: ServerOptions, facts: RunFacts) -> str:
    """Return why no epsilon can be given, or nothing if it can."""
    noise = noise_of(server)
    if noise is None or spending_of(server) is None:
        return (
            "nothing in server.uplink guarantees anything (accepted: {name: clip, norm: 1.0} and then {name: gaussian,"
            " multiplier: 1.1} as the last two; adaptive-clip needs a count_deviation, and gaussian behind it)"
        )
    return reason(server, noise, facts)
