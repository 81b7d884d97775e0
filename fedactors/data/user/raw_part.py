"""The samples of one part of data of the user, as they were read."""

from __future__ import annotations

from dataclasses import dataclass

from fedactors.data.user.arrays import AnyArray


@dataclass(frozen=True, eq=False)
class RawPart:
    """Training or test samples as they were read, nothing converted yet."""

    inputs: tuple[tuple[str, AnyArray], ...]  # name, (n, ...); the name is empty for an input by position
    labels: AnyArray  # (n,) or (n, numbers)
    weights: AnyArray | None = None  # (n,)
    owners: AnyArray | None = None  # (n,): whose sample it is, as numbers or texts
    classes: int | None = None  # how many labels there are, where the format says so

    def __len__(self) -> int:
        return len(self.labels)
