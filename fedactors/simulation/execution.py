"""One run in progress: takes Plans from the clock, has the fleet execute them, and records the outcomes.

The clock and the submission run ahead of training by a bounded window. The records depend on the Plans and the
gradients alone; wall-clock times have columns of their own, which enter no digest.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import DivergedError, FleetError
from fedactors.fleet.actor_tracks import collect
from fedactors.fleet.base import Fault, Fleet, UserCallError
from fedactors.fleet.messages import Outcomes
from fedactors.fleet.pipeline import Pipeline
from fedactors.plan import SECOND, Ending, MaybeEnding, Plan
from fedactors.run_files.best_model import BestModel
from fedactors.simulation.checks.meanings import meanings
from fedactors.simulation.departure_decisions import departure_decision
from fedactors.simulation.divergence import complaint
from fedactors.simulation.endings import cut_short, diverging, further_error, reason
from fedactors.simulation.feedback import losses_in, noted
from fedactors.simulation.interrupts import put_off
from fedactors.simulation.loaded_data import LoadedRun
from fedactors.simulation.machine_notes import MachineNotes
from fedactors.simulation.objective_state import Decide, Objective
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.progress import Progress
from fedactors.simulation.record.client_measures import client_figures
from fedactors.simulation.record.eras import Era, Eras
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.record.model_layout import write_layout
from fedactors.simulation.record.run_folder import RunFolder, finite
from fedactors.simulation.record.run_recorder import RunRecorder
from fedactors.simulation.record.stop_rule import StopRule
from fedactors.simulation.result import Result
from fedactors.simulation.resume.checkpoint import Checkpoint, checkpoints, discard_after
from fedactors.simulation.resume.resume import programs
from fedactors.simulation.resume.run_saver import RunSaver
from fedactors.simulation.run_tasks import PlannedRound, PlannedRounds
from fedactors.simulation.stopwatch import Stopwatch, spent
from fedactors.simulation.tasks import plans_of_clock


class Execution:
    """One run in progress."""

    def __init__(
        self,
        prepared: Prepared,
        fleet: Fleet,
        data: LoadedRun,
        folder: RunFolder,
        progress: Progress,
        start: Checkpoint,
        began: float,
        past: tuple[Era, ...] = (),
    ) -> None:
        self._prepared = prepared
        self._progress = progress
        self._start = start
        scenario = prepared.scenario
        self._eras = Eras(past, scenario)
        self._planned = PlannedRounds(prepared, self._eras, fleet.device)
        self._recorder = RunRecorder(folder, prepared, self._eras)
        self._stop = StopRule(self._eras, BestModel(folder.path))
        self._aside = dict(start.quarantined)
        self._watch = Stopwatch(time.perf_counter() - began)
        self._notes = MachineNotes(folder, progress, fleet, scenario.cluster.bits)
        self._began = began
        self._before = dict[str, float]()
        self._pending: deque[PlannedRound] = deque()  # submitted, and not recorded yet
        self.clock = prepared.clock()
        self._fleet = fleet
        self._nodes = fleet.nodes
        self._pipeline = Pipeline(fleet, *data, on_fault=self._fault, saved=start.saved())
        self._saver = RunSaver(start, self._recorder, self._pipeline, self._aside, scenario.cluster, progress.note)

    def play(self, recorded_rows: MetricRows, stop: int | None) -> Result:
        """Execute every plan after the rounds of `recorded_rows`, the rows of metrics so far, or those before `stop`.

        Returns when the last task is done. The summary is written before progress ends, which may wait for trackers.
        """
        scenario = self._prepared.scenario
        try:
            with self._progress.over(scenario.name, scenario.server.rounds):
                stop = None if stop is None else max(stop, len(recorded_rows))
                plans = self._watch.each("clock", plans_of_clock(self.clock, scenario.server.rounds))
                self._recall(recorded_rows, plans)
                return self._conclude(self._played(plans, stop))
        finally:
            self._pipeline.close()

    def _recall(self, recorded_rows: MetricRows, plans: Iterator[tuple[Plan, bool]]) -> None:
        """Take in the rounds that were recorded before: their rows of metrics, and plans that the clock makes again.

        Nothing in the folder has changed until then. Raises RunFolderError if the plans are others than before.
        """
        for row, (made, last) in zip(recorded_rows, plans, strict=False):
            planned = self._planned.recalled(made, row, self._aside.get(made.version, ()), last=last)
            self._recorder.recall(planned.plan, planned.task, row)
            self._before = row
            self._stop.recall(row)
            self._feed_back(row)
        self._recorder.check_recorded(self._start)

    def _go_on(self) -> None:
        """Begin to write to the folder; rounds after those that were recalled are gone."""
        folder = self._recorder.folder
        folder.begin()
        folder.clients(self._prepared)
        write_layout(folder.path, self._prepared.model)
        discard_after(folder.path, self._start)
        self._stop.settled(self._recorder.plans, self._state_now)

    def _played(self, plans: Iterator[tuple[Plan, bool]], stop: int | None) -> Ending:
        """Play all rounds, save their state also after an exception, and return why the run ended."""
        self._notes.begin()
        try:
            self._go_on()
            ended = self._rounds(plans, stop)
            self._saver.save()
            tracks = collect(self._fleet, self._pipeline, partial(self._fault, self._recorder.plans - 1))
            self._watch.write(self._recorder.folder.path, tracks)
        except BaseException as error:
            self._close_after(error)
            raise
        finally:
            self._saver.close()
            self._notes.write_messages()
        return ended

    def _rounds(self, plans: Iterator[tuple[Plan, bool]], stop: int | None) -> Ending:
        """Play all rounds that are left of `plans`; return why the run ended."""
        if ended := self._recorder.diverged() or self._stop.reason:
            return ended
        if ended := self._new_rounds(plans, stop) or self._drain():
            return ended
        if self._recorder.plans:
            self._evaluate_last()
        return cast(Ending, self.clock.ended_because)  # there are no plans left

    def _new_rounds(self, plans: Iterator[tuple[Plan, bool]], stop: int | None) -> MaybeEnding:
        """Submit the rounds before `stop`, and record those that are done; return why the run has to end, if it has."""
        most = 1 if self.clock.steered else self._fleet.max_in_flight
        for plan, last in plans:
            if plan.version == stop:
                return self._drain() or cut_short(stop)
            if self._planned.asks(plan) and (ended := self._drain()):
                return ended
            with self._watch.during("submit"):
                self._submit(plan, last)
            if len(self._pending) >= most and (ended := self._settle()):
                return ended
        return ""

    def _feed_back(self, row: Mapping[str, Any]) -> None:
        """Give the clock the losses of a round, if it selects clients by them."""
        if self.clock.steered:
            self.clock.feedback(row["round"] - 1, losses_in(row))

    def _evaluate_last(self) -> None:
        """Evaluate the last model, if it was not known in time that its round would be the last."""
        if not self._planned.has_objective and "loss" not in self._recorder.rows.last[-1]:
            self._recorder.final = finite(self._pipeline.evaluate(self._recorder.plans))

    def _submit(self, plan: Plan, last: bool) -> None:
        """Submit a round; if its objective needs a decision, no other round is in flight."""
        planned = self._planned.next(plan, self._departure_decision, last=last)
        self._pipeline.submit(planned.task)
        self._pending.append(planned)

    def _departure_decision(self, before: Objective) -> Decide:
        """Return the function that decides about devices that left. No task may be in flight if the policy is open."""
        return departure_decision(self._planned.tasks, self._pipeline, before, self._recorder.rows)

    def _drain(self) -> MaybeEnding:
        """Record all rounds in flight; return why the run has to end, nothing if it goes on."""
        while self._pending:
            if ended := self._settle():
                return ended
        return ""

    def _settle(self) -> MaybeEnding:
        """Wait for the oldest task and record it; return why the run has to end here, nothing if it goes on."""
        server = self._prepared.scenario.server
        outcomes = self._outcomes()
        if server.bad_updates == "stop" and (wrong := self._complaint(outcomes)):
            return diverging(wrong)
        while outcomes.bad and server.bad_updates == "quarantine":
            outcomes = self._without(outcomes)
        if wrong := self._complaint(outcomes):
            raise DivergedError(wrong)
        with put_off():  # a checkpoint can be taken before or after this, and not in between
            self._record(self._pending.popleft(), outcomes)
            self._pipeline.adopt()  # after the record: if that fails, the models are still those of before the round
            row = self._recorder.rows.last[-1]
            ended = self._stop.after(row, self._state_now)
        self._saver.save_if_due()
        self._notes.after(outcomes, self._recorder.rows.last)
        self._feed_back(row)
        self._progress.round(row)
        return self._recorder.diverged() or ended

    def _record(self, due: PlannedRound, outcomes: Outcomes) -> None:
        """Enter a round that is done: its plan, its task, and what was learned."""
        further: dict[str, Any] = {}
        if due.objective_state and due.objective_state.moves:
            further["moves"] = [move._asdict() for move in due.objective_state.moves]
        if self.clock.steered:
            further |= noted(outcomes.losses)
        if outcomes.client_measures is not None:
            further |= client_figures(outcomes.client_measures, self._prepared.scenario.population)
        wall = self._wall() | {"bytes_reduced": outcomes.moved}
        with self._watch.during("write"):
            self._recorder.enter(due.plan, due.task, outcomes, further, wall)

    def _outcomes(self) -> Outcomes:
        """Wait for the oldest task."""
        try:
            with self._watch.during("wait"):
                return self._pipeline.outcomes()
        except FleetError as error:
            closed = self._pending[0].plan.closed / SECOND
            raise FleetError(f"{error}\nat virtual time {closed:.3f} s") from None

    def _complaint(self, outcomes: Outcomes) -> str:
        return complaint(outcomes, self._pending[0].plan, self._prepared.update_attackers)

    def _without(self, outcomes: Outcomes) -> Outcomes:
        """Set bad updates of the oldest task aside, and return its outcomes without them."""
        plan = self._pending[0].plan
        clients = sorted({client for client, _ in outcomes.bad})
        self._progress.note(f"{self._complaint(outcomes).partition(';')[0]}: set aside")
        self._aside[plan.version] = sorted({*self._aside.get(plan.version, ()), *clients})
        self._pending = deque(self._planned.without(self._pending, clients))
        self._pipeline.amend([planned.task for planned in self._pending])
        return self._outcomes()

    def _close_after(self, error: BaseException) -> None:
        """Save the state of a run that was stopped and write its summary, as far as disk and fleet allow."""
        path = self._recorder.folder.path
        whole = self._recorder.whole  # else a disk that is full has taken half a round: the last checkpoint stands
        try:
            for step in (self._saver.save, partial(self._conclude, reason(error))) if whole else (self._saver.finish,):
                try:
                    step()
                except Exception as further:  # whatever it is, the first error is the one to raise
                    self._progress.note(f"{path}: not all could be saved{further_error(error, further)}")
        finally:  # also after a second interrupt
            if saved := checkpoints(path):
                self._progress.note(f"`fedactors resume {path}` goes on after round {int(saved[0].name[6:])}")

    def _conclude(self, ended: Ending) -> Result:
        scenario = self._prepared.scenario
        state = self._last_state()
        said = {"name": scenario.name, "seed": scenario.seed, "sampled_devices": self._prepared.sampled}
        said |= {"wire": self._prepared.wire, "notes": meanings(scenario), "made_with": programs(scenario)}
        if best := self._stop.kept:
            said["best"] = best
        if self._eras.past:
            said["branched_after"] = [era.rounds for era in self._eras.past]
        if self._start.made_with != said["made_with"]:
            said["made_with_before"] = self._start.made_with
        summary = self._recorder.summary(said, ended, self._wall(), state)
        if state:
            self._recorder.folder.model(state)
        self._recorder.conclude_clients(self._planned.tasks.prepared)
        self._recorder.folder.summary(summary)
        return Result(self._recorder.folder.path, summary, self._recorder.rows, state, scenario)

    def _state_now(self) -> dict[str, NDArray[np.float32]]:
        """Return the server's state after the rounds that are recorded. Raises FleetError if it is lost."""
        return self._pipeline.state(self._recorder.plans)

    def _last_state(self) -> dict[str, NDArray[np.float32]]:
        """Return the last state; empty if the fleet has failed."""
        try:
            return self._state_now()
        except (Fault, FleetError):
            return {}

    def _wall(self) -> dict[str, float]:
        price = self._prepared.scenario.cluster.price_per_node_hour
        return spent(self._began, self._before, None if price is None else price * self._nodes)

    def _fault(self, version: int, fault: Fault) -> None:
        repeated = version >= self._recorder.plans and fault.cause != UserCallError.__name__
        self._notes.fault(version, fault, repeated=repeated)
