"""The server's own data D_0, taken from the clients' data.

Source: federated and server learning, where the server learns from a few samples of its own. A way to get
them is an `Options` class with `size`, which the clock calls and which needs no data, and `draw`. See `glyphs`
and `stl` for data from elsewhere: such a class says `elsewhere = True`, and `task.transform` acts on its samples too.
A class whose samples are from the clients' data set, and no client's, says `copies = False`; see `holds_copies`.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import numpy as np
from pydantic import PositiveInt

from fedactors.data.base import Data, Float32, Info, Int64, LabelledSamples
from fedactors.data.partitions.assignment import Split
from fedactors.data.partitions.sizes import even
from fedactors.errors import ScenarioError
from fedactors.options import Options
from fedactors.streams import Purpose, stream

WHERE = "server_data"


class ServerData(Protocol):
    """A way to give the server data of its own that a scenario may name."""

    name: str

    def size(self, info: Info) -> int:
        """Return the number of samples, n_0. Raises ScenarioError if these data do not go with `info`'s."""
        ...

    def check(self) -> None:
        """Look for what is needed besides the clients' data. Raises DataError if it is missing."""
        ...

    def draw(self, data: Data, split: Split, seed: int) -> LabelledSamples | tuple[Float32, Int64]:
        """Return samples `(n_0, *input_shape)` and labels `(n_0,)`, perhaps weights, a pure function of the arguments.

        `split` says which of `data` lies at which client. Raises ScenarioError if there are too few samples,
        DataError if a file cannot be read.
        """
        ...


def holds_copies(data: ServerData) -> bool:
    """Whether the server's samples may be those of clients too: so it is unless their class says otherwise."""
    return bool(getattr(data, "copies", not getattr(data, "elsewhere", False)))


class IidServerData(Options):
    """As many samples of each label, drawn from all clients' data without replacement (FSL journal, IV-B).

    Where labels do not divide `samples`, the first labels get one more. A larger set contains every smaller
    one of the same seed.
    """

    name: Literal["iid"] = "iid"
    samples: PositiveInt
    """Samples of the server, of all labels together."""
    copies: bool = True
    """Copy samples of clients, which keep theirs; if not, take only samples that no client holds."""

    def size(self, info: Info) -> int:
        """Return n_0. Raises ScenarioError if a label has too few samples."""
        if info.class_counts is not None:
            self._shares(np.array(info.class_counts, dtype=np.int64))
        return self.samples

    def check(self) -> None:
        """Look for nothing: the samples come from the clients' data."""

    def draw(self, data: Data, split: Split, seed: int) -> LabelledSamples:
        """Return the samples, label after label; see `ServerData.draw`."""
        held = np.zeros(len(data.y), dtype=bool)
        held[split.indices] = True
        pool = np.flatnonzero(held == self.copies)
        labels = data.strata[pool]
        shares = self._shares(np.bincount(labels, minlength=data.strata_count))
        rows = np.concatenate(
            [
                stream(seed, Purpose.SERVER_DATA, 1 + label).permutation(pool[labels == label])[:share]
                for label, share in enumerate(shares.tolist())
            ]
        )
        return data.samples(rows)

    def _shares(self, available: Int64) -> Int64:
        """Return the samples of each label, `(classes,)`. Raises ScenarioError if fewer are available."""
        shares = even(self.samples, len(available))
        short = shares > available
        if short.any():
            label = int(short.argmax())
            whose = "held by clients" if self.copies else "held by no client"
            raise ScenarioError(
                f"{WHERE}.samples: label {label}: {shares[label]:,} wanted, {available[label]:,} {whose}"
                f"; accepted: fewer samples{'' if self.copies else ', or copies: true'}"
            )
        return shares


class CentralServerData(Options):
    """Samples that the data set, or `task.split`, sets apart for a central learner."""

    copies: ClassVar[bool] = False

    name: Literal["central"] = "central"
    samples: PositiveInt | None = None
    """How many of them, drawn without replacement; all if not given."""

    def size(self, info: Info) -> int:
        """Return n_0. Raises ScenarioError if nothing is set apart, or too little."""
        if not info.central_size:
            raise ScenarioError(
                f'{WHERE}: "{info.name}" has no central part; accepted: task.split, or other server data'
            )
        if self.samples is not None and self.samples > info.central_size:
            raise ScenarioError(f"{WHERE}.samples: found {self.samples:,}, accepted: at most {info.central_size:,}")
        return self.samples or info.central_size

    def check(self) -> None:
        """Look for nothing: the samples come with the clients' data."""

    def draw(self, data: Data, split: Split, seed: int) -> LabelledSamples:
        """Return the samples; see `ServerData.draw`."""
        assert data.central_x is not None
        assert data.central_y is not None
        if self.samples is None:
            return LabelledSamples(data.central_x, data.central_y, data.central_weights)
        rows = np.sort(stream(seed, Purpose.SERVER_DATA).permutation(len(data.central_y))[: self.samples])
        weights = None if data.central_weights is None else data.central_weights[rows]
        return LabelledSamples(data.central_x[rows], data.central_y[rows], weights)


class ClientServerData(Options):
    """As many samples from each of a few clients, which were chosen once and keep theirs (FSL journal, IV-C).

    Clients are drawn among those that have enough. What they lack, the server lacks as well.
    """

    copies: ClassVar[bool] = True

    name: Literal["clients"] = "clients"
    clients: PositiveInt
    """How many clients give samples."""
    samples: PositiveInt
    """Samples that each of them gives, drawn without replacement."""

    def size(self, info: Info) -> int:
        """Return n_0. Raises ScenarioError if all data are fewer."""
        wanted = self.clients * self.samples
        if wanted > info.train_size:
            raise ScenarioError(
                f'{WHERE}: {wanted:,} samples wanted, "{info.name}" has {info.train_size:,}; accepted: fewer'
            )
        return wanted

    def check(self) -> None:
        """Look for nothing: the samples come from the clients' data."""

    def chosen(self, split: Split, seed: int) -> Int64:
        """Return the clients that give samples, ascending. Raises ScenarioError if too few have enough."""
        able = np.flatnonzero(np.diff(split.offsets) >= self.samples)
        if len(able) < self.clients:
            raise ScenarioError(
                f"{WHERE}.clients: found {self.clients:,}, accepted: at most {len(able):,}"
                f", the clients with {self.samples:,} samples or more"
            )
        return np.sort(stream(seed, Purpose.SERVER_DATA).permutation(able)[: self.clients])

    def draw(self, data: Data, split: Split, seed: int) -> LabelledSamples:
        """Return the samples, client after client; see `ServerData.draw`."""
        rows = np.concatenate(
            [
                stream(seed, Purpose.SERVER_DATA, 1 + client).permutation(split.of(client))[: self.samples]
                for client in self.chosen(split, seed).tolist()
            ]
        )
        return data.samples(rows)
