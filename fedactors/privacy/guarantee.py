"""Which guarantee a scenario gives, in sentences, and why it can give none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedactors.privacy.spending import Spending, spending_on
from fedactors.transforms.adaptive_clip import AdaptiveClip
from fedactors.transforms.base import UpdateTransform
from fedactors.transforms.noise import Noise
from fedactors.transforms.tree_noise import TreeNoise

if TYPE_CHECKING:
    from fedactors.scenario.server_options import ServerOptions

_HOLDS = "for all data of a device, if who takes part when, with which weight and after how many steps is known to all"
_NOT = (
    "no amplification by sampling is claimed, because who takes part emerges from timing; what counts is the device"
    " that was heard most; losses and other measures of this run have no noise and are not covered"
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
    plain = tuple(name in algorithm.plain for name in algorithm.changes)
    clip = server.uplink[-2] if len(server.uplink) > 1 else None
    return spending_on(noise_of(server), clip, server.privacy.delta, plain)


def sentences(server: ServerOptions) -> list[str]:
    """Return what is guaranteed and what is not; nothing where there is no noise."""
    noise = noise_of(server)
    if noise is None:
        return []
    if isinstance(noise, Noise) and noise.multiplier is None:
        return [f"privacy: noise with a {_own(noise)} of its own guarantees nothing (a multiplier behind a clip does)"]
    if server.privacy is None:
        return ["privacy: noise is added, and epsilon is not counted (server.privacy: {delta: 1e-5} counts it)"]
    return [f"privacy: epsilon at delta {server.privacy.delta:g} holds {_trust(noise)} {_HOLDS}; {_NOT}"]


def _own(noise: Noise) -> str:
    return "scale" if noise.name == "laplace" else "deviation"


def _trust(noise: UpdateTransform) -> str:
    """Return against whom the guarantee holds."""
    if not isinstance(noise, Noise) or noise.at_server:
        return "against all who see models, not against the server, which adds the noise,"
    if noise.over == 1:
        return "against the server too, each client's own noise counted alone,"
    return "against all who see nothing but the sum of a round, with the noise of those who were heard,"


def problem(server: ServerOptions, uploads: float, buffers: int) -> str:
    """Return why no epsilon can be given, or nothing if it can.

    `uploads` is what a client sends, in model sizes; `buffers` are values of the model that travel as they are.
    """
    noise, algorithm = noise_of(server), server.algorithm
    if spending_of(server) is None:
        return (
            "nothing in server.uplink guarantees anything (accepted: {name: clip, norm: 1.0} and then {name: gaussian,"
            " multiplier: 1.1} as the last two; adaptive-clip needs a count_deviation, and gaussian behind it)"
        )
    departures = getattr(server.membership, "departures", "")
    reasons = {
        f'"{algorithm.name}" uploads more than what noise is added to': (_uploads_more(server, uploads)),
        f"departures: {departures} decides by losses of devices, which have no noise": departures
        in ("auto", "lookahead"),
        "the model has buffers, such as BatchNorm's statistics, which travel without noise": buffers > 0,
        f'selection "{server.selection.name}" is told the losses of devices, which have no noise': (
            server.selection.steers
        ),
        f'noise that clients share is that of a sum, and aggregation "{server.aggregation.name}" makes none': (
            isinstance(noise, Noise) and noise.over > 1 and server.aggregation.single
        ),
        "secure.group is below the cohort, and in the sum of a group is only some of the noise that clients share": (
            isinstance(noise, Noise) and noise.over > 1 and _several_groups(server)
        ),
        "bad_updates: quarantine sets updates aside by what is in them, before there is any noise": (
            server.bad_updates == "quarantine"
        ),
        f'tree noise has one weight, and "{algorithm.name}" sums some uploads without weights': (
            isinstance(noise, TreeNoise) and bool(set(algorithm.plain) & set(algorithm.changes))
        ),
    }
    bits = _bits_without_noise(server.uplink)
    reasons[bits] = bool(bits)
    return next((f"{text} (accepted: without it)" for text, holds in reasons.items() if holds), "")


def _bits_without_noise(uplink: Sequence[UpdateTransform]) -> str:
    """Return why the numbers that clients send besides their updates have no epsilon; nothing if they have, or none."""
    noise = uplink[-1]
    if isinstance(noise, Noise) and not noise.at_server and (name := _telling(uplink)):
        return (
            f"{name} sends the server a bit of each update without noise, and noise that clients add is for a server"
            " that is not trusted"
        )
    name = _telling([*uplink[:-2], *(one for one in uplink[-2:] if not isinstance(one, AdaptiveClip))])
    return f"what {name} counts is in no epsilon, as it is not the clip just before the noise" if name else ""


def _telling(transforms: Sequence[UpdateTransform]) -> str:
    """Return the first transform that has clients send a number besides their updates; nothing if none does."""
    return next((one.name for one in transforms if one.first_told is not None), "")


def _uploads_more(server: ServerOptions, uploads: float) -> bool:
    """Whether clients send, or the server sums, more than what is said to be changes."""
    algorithm = server.algorithm
    further = set(algorithm.plain) - set(algorithm.changes)
    return uploads > len(algorithm.changes) or bool(further) or not names_changes(type(algorithm))


def names_changes(algorithm: type[object]) -> bool:
    """Whether an algorithm that says what a client uploads also says which of that are changes."""
    upload, changes = (next(one for one in algorithm.__mro__ if name in vars(one)) for name in ("upload", "changes"))
    return issubclass(changes, upload)


def _several_groups(server: ServerOptions) -> bool:
    """Whether a cohort of secure aggregation is summed in more than one group; a cohort of all can be of any size."""
    if server.secure is None:
        return False
    return server.cohort == "all" or server.secure.group < server.cohort + server.over_selection
