"""What code of the user is given is needed by others after it: none of it may be changed in place.

torch counts the in-place changes of a tensor and of its views, so that nothing has to be copied to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fedactors.errors import UserCodeError

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def unchanged(who: str, **given: Tensor | Mapping[str, Tensor]) -> Iterator[None]:
    """Raise UserCodeError, which says `who` did it, if a tensor of those `given` is changed in place in the context."""
    tensors = dict(_named(given))
    before = {where: one._version for where, one in tensors.items() if not one.is_inference()}
    yield
    if changed := [where for where, version in before.items() if tensors[where]._version != version]:
        raise UserCodeError(f"{who} changes {' and '.join(changed)} in place (accepted: return new tensors)")


def _named(given: Mapping[str, Tensor | Mapping[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Yield each tensor with what to call it in a message."""
    for kind, one in given.items():
        if isinstance(one, Mapping):
            yield from ((f"{kind}['{name}']", tensor) for name, tensor in one.items())
        else:
            yield kind, one
