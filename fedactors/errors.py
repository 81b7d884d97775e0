"""Every exception fedactors raises on purpose.

    FedactorsError
      UsageError            the user can correct it: one message, exit code 2, nothing was started
        ScenarioError       the scenario file: key path, what was found, what is accepted
        TraceError          a recording: file, record, line
        DataError           a data set: file, what is missing
        ClusterError        the cluster cannot give what the scenario asks for
        RunFolderError      a run folder that cannot be written or read
          FolderAccessError it may be whole: the disk, its permissions or another process are in the way
      UserCodeError         code of the user raised while a run was going on; its lines come first; exit code 1
      FleetError            a real fault on the fleet that came back after a second try; exit code 1
      DivergedError         an update with NaN or Inf; exit code 1
      ConservationError     our own counts do not agree; a bug of ours; exit code 1

All of them are rebuilt by `type(e)(*e.args)`: SimPy and pickle both re-create exceptions that way.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_CONTROL = {chr(number) for number in (*range(32), *range(127, 160))} - {"\n", "\t"}


class FedactorsError(Exception):
    """Base of all exceptions that fedactors raises on purpose."""


class UsageError(FedactorsError):
    """Something the user gave cannot be used; the message says where, what was found, what is accepted."""


class ScenarioError(UsageError):
    """A scenario that cannot be used."""


class TraceError(UsageError):
    """A recording that cannot be read."""


class DataError(UsageError):
    """A data set that cannot be read."""


class ClusterError(UsageError):
    """The cluster cannot give what the scenario asks for."""


class RunFolderError(UsageError):
    """A run folder that cannot be written or read."""


class FolderAccessError(RunFolderError):
    """A run folder that cannot be written or read now, though it may be whole: a full disk, permissions, its writer."""


class UserCodeError(FedactorsError):
    """Code of the user raised, or did what it may not, while a run was going on; the message has the user's lines."""


class FleetError(FedactorsError):
    """A real fault of the fleet (exception, dead actor, out of memory) that a second try did not cure."""


class DivergedError(FedactorsError):
    """A client sent an update that holds NaN or Inf."""


class ConservationError(FedactorsError):
    """Clients asked and outcomes recorded do not add up: a bug in fedactors, never a property of a scenario."""


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Put `where`, such as a scenario's file, before the message of a UsageError that is raised in the context."""
    try:
        yield
    except UsageError as error:
        raise type(error)(f"{where}: {error}") from error


def suggestion(found: object, accepted: Iterable[str]) -> str:
    """Return '; did you mean "x"? accepted: a, b, x' for a word that is not in `accepted`."""
    choices = sorted(accepted)
    close = difflib.get_close_matches(str(found), choices, n=1, cutoff=0.5)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    return f"{hint} accepted: {', '.join(choices)}" if hint else f"; accepted: {', '.join(choices)}"


def visible(text: str) -> str:
    """Return `text` with the control characters that steer a terminal, line ends apart, as their numbers.

    Names in files of others stand in messages as they were found.
    """
    return "".join(f"\\x{ord(one):02x}" if one in _CONTROL else one for one in text)


def shortened(text: str, limit: int = 200) -> str:
    """Return what somebody wrote, cut after about `limit` characters, for a message."""
    return text if len(text) <= limit else f"{text[:limit]}…"
