"""Where data of devices reach the models of a run without noise, so that no epsilon can be given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fedactors.transforms.adaptive_clip import AdaptiveClip
from fedactors.transforms.base import UpdateTransform
from fedactors.transforms.noise import Noise
from fedactors.transforms.tree_noise import TreeNoise

if TYPE_CHECKING:
    from fedactors.scenario.server_options import ServerOptions
    from fedactors.scenario.stop_options import StopOptions

_WITHOUT = "without it"
_AT_DEVICES = "train_loss"  # the measure that comes from devices; the others are of the test set


class RunFacts(NamedTuple):
    """What the options of a server do not say."""

    uploads: float  # what a client sends, in model sizes
    buffers: int  # values of the model that travel as they are
    copies: bool  # whether the server's samples may be those of devices too
    takes_back: bool  # whether the server's state may change by what one device has sent or kept, when that departs
    reassigns: bool  # whether training data are given to other devices in each round
    has_accuracy: bool | None  # None where that depends on the data


def reason(server: ServerOptions, noise: UpdateTransform, facts: RunFacts) -> str:
    """Return why the noise of a scenario does not cover all that its models learn from devices; nothing if it does."""
    reasons = (
        *_data(server, facts),
        *_decisions(server, facts),
        *_uploads(server, facts),
        *_sums(server, noise),
    )
    return next((f"{text} (accepted: {accepted})" for text, accepted in reasons), "")


def _data(server: ServerOptions, facts: RunFacts) -> Iterator[tuple[str, str]]:
    """Yield why samples do not stay at one device."""
    if server.data is not None and facts.copies:
        yield (
            f'server.data "{server.data.name}" copies samples of devices to the server, where nothing makes them noisy',
            "{name: central}, glyphs, stl10, or {name: iid, copies: false}",
        )
    if facts.reassigns:
        yield (
            "task.partition gives the samples of a device to others in each round, and epsilon is for one device's",
            "reallocate: false",
        )


def _decisions(server: ServerOptions, facts: RunFacts) -> Iterator[tuple[str, str]]:
    """Yield what is decided by losses or updates of devices."""
    departures = getattr(server.membership, "departures", "")
    if departures in ("auto", "lookahead"):
        yield f"departures: {departures} decides by losses of devices, which have no noise", "include or exclude"
    if server.selection.steers:
        yield f'selection "{server.selection.name}" is told the losses of devices, which have no noise', _WITHOUT
    if server.bad_updates != "fail":
        does = "sets updates aside" if server.bad_updates == "quarantine" else "ends the run"
        yield f"bad_updates: {server.bad_updates} {does} by what is in them, before there is any noise", "fail"
    if server.divergence_threshold is not None:
        yield "divergence_threshold ends the run by the losses of devices, which have no noise", _WITHOUT
    if server.stop is not None and (key := _of_devices(server.stop, facts.has_accuracy)):
        yield (
            f"{key} chooses the last model or the best one by the losses of devices, which have no noise",
            "a measure of the test set, such as loss",
        )


def _of_devices(stop: StopOptions, has_accuracy: bool | None) -> str:
    """Return the key of `stop` that looks at a measure of devices; nothing if none does."""
    if any(name.endswith(_AT_DEVICES) for name in stop.reach):
        return f"stop.{_AT_DEVICES}"
    return "stop.metric" if stop.watched(has_accuracy).endswith(_AT_DEVICES) else ""


def _uploads(server: ServerOptions, facts: RunFacts) -> Iterator[tuple[str, str]]:
    """Yield what the server gets of a device, or works out of it, besides its noisy updates."""
    algorithm = server.algorithm
    further = set(algorithm.unweighted) - set(algorithm.changes)
    if facts.uploads > len(algorithm.changes) or further or not names_changes(type(algorithm)):
        yield f'"{algorithm.name}" uploads more than what noise is added to', _WITHOUT
    if facts.buffers:
        yield "the model has buffers, such as BatchNorm's statistics, which travel without noise", _WITHOUT
    if facts.takes_back:
        yield (
            f'"{algorithm.name}" takes out of its state what a departed device has sent, and nothing makes that noisy',
            "devices that stay, or membership.departures: include",
        )
    yield from _counts(server.uplink)


def names_changes(algorithm: type[object]) -> bool:
    """Whether an algorithm that says what a client uploads also says which of that are changes."""
    return says_of_uploads(algorithm, "changes")


def says_of_uploads(algorithm: type[object], attribute: str) -> bool:
    """Whether an attribute, which is about uploads, is of the class that says what is uploaded, or of one below it."""
    upload, said = (next(one for one in algorithm.__mro__ if name in vars(one)) for name in ("upload", attribute))
    return issubclass(said, upload)


def _counts(uplink: Sequence[UpdateTransform]) -> Iterator[tuple[str, str]]:
    """Yield which numbers that clients send besides their updates have no epsilon."""
    noise = uplink[-1]
    if isinstance(noise, Noise) and not noise.at_server and (name := _telling(uplink)):
        yield (
            f"{name} sends the server a bit of each update without noise, and noise that clients add is for a server"
            " that is not trusted",
            _WITHOUT,
        )
    if name := _telling([*uplink[:-2], *(one for one in uplink[-2:] if not isinstance(one, AdaptiveClip))]):
        yield f"what {name} counts is in no epsilon, as it is not the clip just before the noise", _WITHOUT


def _telling(transforms: Sequence[UpdateTransform]) -> str:
    """Return the first transform that has clients send a number besides their updates; nothing if none does."""
    return next((one.name for one in transforms if one.first_broadcast_value is not None), "")


def _sums(server: ServerOptions, noise: UpdateTransform) -> Iterator[tuple[str, str]]:
    """Yield why there is no sum that the noise is made for."""
    algorithm, rule = server.algorithm, server.aggregation
    if isinstance(noise, Noise) and noise.over > 1:
        if rule.single:
            yield f'noise that clients share is that of a sum, and aggregation "{rule.name}" makes none', _WITHOUT
        if _several_groups(server):
            yield (
                "secure.group is below the cohort, and in the sum of a group is only some of the noise that clients"
                " share",
                _WITHOUT,
            )
    if isinstance(noise, TreeNoise) and set(algorithm.unweighted) & set(algorithm.changes):
        yield f'tree noise has one weight, and "{algorithm.name}" sums some uploads without weights', _WITHOUT


def _several_groups(server: ServerOptions) -> bool:
    """Whether a cohort of secure aggregation is summed in more than one group; a cohort of all can be of any size."""
    if server.secure is None:
        return False
    return server.cohort == "all" or server.secure.group < server.cohort + server.over_selection
