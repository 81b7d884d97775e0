"""What weights depend on, as types: a run that is prepared has it, and so has a run folder that is read back."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedactors.scenario.model import Scenario
from fedactors.workload import WorkloadTable


class MembershipTimes(Protocol):
    """When each client arrives and departs, in columns of ns."""

    @property
    def arrive(self) -> NDArray[np.int64]:
        """First instant at which it belongs to the population."""
        ...

    @property
    def depart(self) -> NDArray[np.int64]:
        """First instant at which it no longer does."""
        ...

    def __len__(self) -> int: ...


class Dealt(Protocol):
    """What weights depend on: of a `Prepared`, or of a run folder."""

    @property
    def scenario(self) -> Scenario:
        """What the server does."""
        ...

    @property
    def held(self) -> NDArray[np.int64]:
        """Samples each client trains on."""
        ...

    @property
    def population(self) -> MembershipTimes:
        """When each client arrives and departs."""
        ...

    @property
    def workload_table(self) -> WorkloadTable:
        """What each client is asked to do."""
        ...
