"""A scenario with its numbers worked out: what the clock needs, and training too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.attacks.base import Attackers, LabelAttack, UpdateAttack
from fedactors.attacks.relabelled_source import RelabelledSource
from fedactors.clock.clock import Clock
from fedactors.clock.device_columns import Population
from fedactors.clock.energy.tariff import Tariff, tariff_of
from fedactors.clock.trip import NOTHING_MISSED, Missed
from fedactors.data.base import Info
from fedactors.data.on_demand import ClientSource, MadeByClient, row_bytes
from fedactors.data.partitions.natural import NaturalPartition
from fedactors.data.partitions.partition import Reassignable
from fedactors.learning.algorithm import TaskSetting
from fedactors.learning.traffic.arrived import kept_lengths
from fedactors.models.layers import Model
from fedactors.models.personal import personal_positions
from fedactors.models.table_rows import floats, table_of
from fedactors.plan import SECOND, Payload
from fedactors.scenario.costs.secure_options import SecureTraffic
from fedactors.scenario.model import Scenario
from fedactors.simulation.assigned_scenario import MemberCount
from fedactors.transforms.chain import Chain, Way
from fedactors.transforms.wire import FLOAT, layout_of
from fedactors.workload import IDLE, Workload, WorkloadTable, workload

BYTES_PER_PARAMETER = 4  # float32
_LARGE = 2**33  # bytes of training samples that are not all kept where they can be made by client


@dataclass(frozen=True)
class Prepared:
    """A scenario with its numbers worked out."""

    scenario: Scenario
    info: Info
    sizes: NDArray[np.int64]  # (clients,): training samples assigned to each
    held: NDArray[np.int64]  # (clients,): samples each trains on: its own, and the server's if it shares them
    model: Model
    population: Population
    workloads: list[Workload]
    setting: TaskSetting

    @property
    def sampled(self) -> int:
        """Devices whose participation is drawn from a law, instead of emerging from timing."""
        return sum(law is not None for law in self.population.laws)

    @cached_property
    def reallocates(self) -> bool:
        """Whether the data are reassigned to the clients asked in each round."""
        partition = self.scenario.task.partition
        return isinstance(partition, Reassignable) and partition.reallocate

    @property
    def ever_asked(self) -> int:
        """Devices that can have been asked when the run ends, at most."""
        return min(self.scenario.devices, self._asked)

    @property
    def _asked(self) -> int:
        """How often clients are asked in all rounds, at most."""
        server = self.scenario.server
        return (self.setting.cohort + server.over_selection) * server.rounds

    @cached_property
    def client_source(self) -> ClientSource | None:
        """What makes the samples of single clients, with the labels that they learn from; None if all are made."""
        made = self._made_by_client
        return (
            RelabelledSource(made, self.label_attackers, self.info.classes) if made and self.label_attackers else made
        )

    @cached_property
    def _made_by_client(self) -> ClientSource | None:
        """What makes the samples of single clients, where that is better than to make those of all before the run.

        It is where most clients are asked once at the most, or where all samples would take much memory; and nothing
        else than local steps on a CPU needs training samples.
        """
        task, server = self.scenario.task, self.scenario.server
        dataset: object = task.dataset
        if not isinstance(dataset, MadeByClient) or not isinstance(task.partition, NaturalPartition):
            return None
        further = server.data is not None or server.dissimilarity_every is not None
        changed = task.split is not None or task.transform is not None
        if further or changed or self.scenario.cluster.gpus_per_actor:
            return None
        large = self.info.train_size * row_bytes(self.info.input_shape) > _LARGE
        rare = self._asked <= self.scenario.devices
        return dataset.on_demand(self.scenario.seed, self.scenario.devices) if large or rare else None

    @property
    def train_bytes(self) -> int:
        """Bytes of the training samples that a run keeps, about."""
        all_of_them = self.info.train_size * self.info.variants * row_bytes(self.info.input_shape)
        return all_of_them if self.client_source is None else all_of_them * self.ever_asked // self.scenario.devices

    @property
    def model_bytes(self) -> int:
        """Size of one model on the wire."""
        return self.model.parameters * BYTES_PER_PARAMETER

    @cached_property
    def workload_table(self) -> WorkloadTable:
        """The workloads in columns."""
        return WorkloadTable(self.workloads)

    @cached_property
    def members(self) -> MemberCount:
        """How many devices with work belong to the population, at any time."""
        return MemberCount(self.population, self.workload_table)

    @cached_property
    def client_bytes(self) -> int | NDArray[np.int64]:
        """Size of a model as it travels: whole, or `(clients,)` where clients have some rows of its table only."""
        rows = self.info.client_rows
        server = self.scenario.server
        if server.secure is not None:  # what is summed has the same length for all
            return self.model_bytes
        whole = not server.algorithm.travels_by_rows or server.uplink or server.downlink
        if rows is None or table_of(self.model) is None or whole:
            return self.model_bytes
        return floats(self.model, rows) * BYTES_PER_PARAMETER

    @cached_property
    def personal(self) -> NDArray[np.int64]:
        """Positions in the flat vector of what stays at the clients."""
        return personal_positions(self.model, self.scenario.server.personal)

    @cached_property
    def update_attackers(self) -> tuple[Attackers, ...]:
        """The groups that send other updates than theirs."""
        return tuple(group for group in self._attackers if isinstance(group.attack, UpdateAttack))

    @cached_property
    def label_attackers(self) -> tuple[Attackers, ...]:
        """The groups that learn from other labels than theirs."""
        return tuple(group for group in self._attackers if isinstance(group.attack, LabelAttack))

    @property
    def _attackers(self) -> Iterator[Attackers]:
        first = 0
        for group in self.scenario.population:
            if group.attack is not None:
                yield Attackers(first, first + group.count, group.name, group.attack)
            first += group.count

    @cached_property
    def uplink(self) -> Chain | None:
        """The transforms of updates, if there are any."""
        return self._chain("uplink")

    @cached_property
    def downlink(self) -> Chain | None:
        """The transforms of models on their way to the clients, if there are any."""
        return self._chain("downlink")

    @property
    def broadcast_values(self) -> dict[str, float]:
        """The first values of the numbers that are broadcast with the model, by name."""
        return self.uplink.broadcast_values(self.scenario.server.algorithm.changes) if self.uplink else {}

    @property
    def feedback(self) -> dict[str, int]:
        """The lengths of what clients keep because of transforms of their updates, or of attackers, by name."""
        return kept_lengths(self.uplink, self.update_attackers, self.scenario.server.algorithm, self.model.parameters)

    def _chain(self, way: Way) -> Chain | None:
        transforms = getattr(self.scenario.server, way)
        return Chain(way, transforms, layout_of(self.model, self.personal)) if transforms else None

    @property
    def personal_steps(self) -> tuple[int, ...]:
        """Steps of each client that train its personal part alone; empty if all steps train all."""
        alternate = self.scenario.server.alternate
        return () if alternate is None else tuple(map(alternate.steps_of, self.workloads))

    @property
    def pretraining(self) -> Workload:
        """What the server does before the first round."""
        server = self.scenario.server
        before = server.pretraining
        if before is None:
            return IDLE
        replaced = server.local.with_replacement
        batch = before.batch or server.local.batch
        return workload(self.setting.central, batch, epochs=before.epochs, steps=None, with_replacement=replaced)

    @property
    def payload(self) -> Payload:
        """What a trip moves and what the server computes."""
        payload: Payload = self.scenario.server.algorithm.payload(self.setting)
        shared = 1 - len(self.personal) / max(1, self.model.parameters)
        algorithm = self.scenario.server.algorithm
        secure = self.secure_traffic
        difference = self._differences(len(algorithm.sends))
        return payload._replace(
            down=payload.down * shared
            + self._saved(self.downlink, len(algorithm.sends), shared)
            + len(self.broadcast_values) * BYTES_PER_PARAMETER / self.model_bytes
            + secure.down / self.model_bytes,
            up=payload.up * shared * secure.bits / FLOAT
            + self._saved(self.uplink, len(algorithm.changes), shared, secure.bits)
            + secure.up / self.model_bytes,
            once=payload.once
            + (1 - shared) * bool(self.pretraining.wanted)  # a client's first values, trained
            + difference.most / self.model_bytes,
            missed=difference.each / self.model_bytes,
            missed_at_most=difference.most / self.model_bytes,
            backhaul=self.model_bytes - len(self.personal) * BYTES_PER_PARAMETER,
            first=payload.first + self.pretraining.samples(self.pretraining.wanted),
        )

    @property
    def secure_traffic(self) -> SecureTraffic:
        """What secure aggregation adds to a trip; without it nothing, and values of 32 bits."""
        server = self.scenario.server
        if server.secure is None:
            return SecureTraffic(0, 0, FLOAT)
        return server.secure.traffic(min(server.secure.group, self.setting.cohort + server.over_selection))

    @property
    def travelling_buffers(self) -> int:
        """Values of the model that are buffers and do not stay at the clients; no transform alters them."""
        buffers = self.model.buffer_values
        return buffers - int(np.count_nonzero(self.personal >= self.model.parameters - buffers))

    def _differences(self, vectors: int) -> Missed:
        """Return the bytes of the differences that the downlink sends of so many vectors, and what is more in them."""
        chain = self.downlink
        if chain is None or not chain.differs:
            return NOTHING_MISSED
        whole = chain.layout.size * BYTES_PER_PARAMETER
        return Missed(vectors * chain.bytes, max(0, vectors * (whole - chain.bytes)))

    def _saved(self, chain: Chain | None, vectors: int, shared: float, bits: int = FLOAT) -> float:
        """Return by how much transforms change what is sent, in model sizes; a value left out saves its `bits`."""
        if chain is None:
            return 0.0
        message = chain.bytes + self.travelling_buffers * BYTES_PER_PARAMETER
        unsent = self.model.parameters - len(self.personal) - self.travelling_buffers - chain.layout.size
        return vectors * ((message + unsent * (FLOAT - bits) / 8) / self.model_bytes - shared)

    @property
    def ahead(self) -> int:
        """Bytes sent to all devices before the first round."""
        return round(self.payload.ahead * self.model_bytes) * len(self.population)

    @property
    def wire(self) -> dict[str, Any]:
        """Bytes of a model, of a trip `down` (and `once` more in a client's first) and `up`, and sent `ahead`.

        With differences also what a client is sent for each version that it has missed, and in all.

        `down` and `up` are one for each client where those have models of different sizes.
        """
        payload = self.payload
        size = self.model_bytes
        each = np.asarray(self.client_bytes)
        parts = {name: np.rint(getattr(payload, name) * each).astype(int).tolist() for name in ("down", "up")}
        found = {"model": size, **parts, "once": round(payload.once * size), "ahead": self.ahead}
        missed = {name: round(getattr(payload, name) * size) for name in ("missed", "missed_at_most")}
        return found | missed if missed["missed"] else found

    @property
    def tariff(self) -> Tariff | None:
        """What devices pay in joules; None if the scenario does not say."""
        return tariff_of(self.scenario)

    def clock(self) -> Clock:
        """Return a new clock, at time 0."""
        return Clock(self.scenario, self.population, self.workloads, self.payload, self.client_bytes)


def least_times(prepared: Prepared) -> NDArray[np.int64]:
    """Return the ns that each device needs, undisturbed, to download, do the least that counts, and upload.

    `(clients,)`; a naive device counts only with all its steps.
    """
    people = prepared.population
    payload = prepared.payload
    work = prepared.workload_table.all()
    least = work.samples(np.where(people.deadline_aware, work.unit, work.wanted))
    compute = least.astype(float) * people.per_sample
    down = payload.down + payload.once
    size = prepared.client_bytes
    transfer = down * size / people.down + payload.up * size / people.up
    times: NDArray[np.int64] = np.minimum(compute + transfer * SECOND + 2 * people.latency, 2.0**62).astype(np.int64)
    return times
