"""How speed grows with actors and clients: a grid of short timed runs, of which only the figures are written.

A point is `rounds` rounds of one scenario with a number of clients in each round and a number of actors. Where the
time of a round goes is measured where it is spent: plans and tasks by the runner (clock), local steps by the hosts
(compute, per actor), sums and the server's step by hosts and server (reduce), evaluations by the evaluator (evaluate).
What is left is broadcast: sending models and calls, and waiting for one another.

With `step` local steps are slept instead of computed, so that the orchestration shows alone, with more actors than
cores. `ideal` is then what the slowest host of each round sleeps, and nothing else.
"""

from __future__ import annotations

import csv
import io
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import accumulate, islice
from pathlib import Path

from fedactors.fleet.actor_tracks import collect
from fedactors.fleet.base import Fleet
from fedactors.fleet.messages import RoundTask
from fedactors.fleet.pipeline import Pipeline
from fedactors.fleet.profiling import Track
from fedactors.fleet.sleeping_host import SleepingHost
from fedactors.run_files.writing import write as write_file
from fedactors.scenario.loading import validate
from fedactors.scenario.model import Scenario
from fedactors.simulation.feedback import heeding
from fedactors.simulation.fleet_choice import has_centre, has_few_vectors, open_fleet
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.runner import load, ready
from fedactors.simulation.tasks import task_of

_CORES = 0.01  # of an actor that sleeps


@dataclass(frozen=True)
class ScalePoint:
    """One point of the grid; times in seconds, those of a round on average."""

    clients: int
    actors: int
    rounds: int
    steps: int
    seconds: float
    steps_per_second: float
    strong_efficiency: float | None  # speed per actor, against the fewest actors with as many clients
    weak_efficiency: float | None  # speed per actor, against the fewest actors with as many clients per actor
    ideal: float | None  # of simulated steps
    overhead: float | None  # above the ideal: 0.05 is 5 %
    round: float
    clock: float
    broadcast: float
    compute: float
    reduce: float
    evaluate: float
    bytes_reduced: int  # in a round


def scale(
    scenario: Scenario,
    actors: Sequence[int],
    clients: Sequence[int],
    *,
    rounds: int = 5,
    step: float | None = None,
    address: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[ScalePoint]:
    """Return a point for each number of clients and of actors. Raises what a run raises."""
    points: list[ScalePoint] = []
    for count in sorted(clients):
        prepared = ready(resized(scenario, count, rounds + 1), address)
        for hosts in sorted(actors):
            tell(f"{count:,} clients, {hosts} actors")
            points.append(_point(prepared, count, hosts, rounds, step, address))
    return [_compared(point, points) for point in points]


def resized(scenario: Scenario, clients: int, rounds: int) -> Scenario:
    """Return `scenario` with `clients` devices, all of them asked in each of `rounds` rounds; groups keep their shares.

    Raises ScenarioError if the scenario cannot have that many.
    """
    found, total = scenario.dump(), scenario.devices
    ends = [round(upto * clients / total) for upto in accumulate(group.count for group in scenario.population)]
    for group, begin, end in zip(found["population"], [0, *ends], ends, strict=False):
        group["count"] = end - begin
    found["population"] = [group for group in found["population"] if group["count"]]
    found["server"] |= {"rounds": rounds, "among": "members"}
    if not scenario.server.timing.asynchronous:
        found["server"] |= {"cohort": "all", "over_selection": 0, "quorum": None}
    return validate(found, scenario.source, folder=scenario.folder)


def _point(
    prepared: Prepared, clients: int, hosts: int, rounds: int, step: float | None, address: str | None
) -> ScalePoint:
    data = load(prepared)
    with _opened(prepared, hosts, step, address) as fleet:
        vectors = dict.fromkeys(_uploads(prepared), prepared.model.parameters)
        worker = None if step is None else (SleepingHost, (fleet.put(vectors), fleet.put(step)))
        pipeline = Pipeline(fleet, *data, host_worker=worker)
        tasks = _tasks(prepared, fleet.device)
        pipeline.submit(next(tasks)[0])  # processes start, imports happen, the engine warms up
        pipeline.finish()
        return _timed(fleet, pipeline, islice(tasks, rounds), clients, step)


def _opened(prepared: Prepared, hosts: int, step: float | None, address: str | None) -> Fleet:
    """Return the fleet that a run would have on so many hosts; those that sleep for a `step` need no GPU."""
    scenario, cluster = prepared.scenario, prepared.scenario.cluster
    if step is not None:
        cluster = cluster.model_copy(update={"cpus_per_actor": _CORES, "gpus_per_actor": 0.0})
    central, few = has_centre(prepared), has_few_vectors(prepared)
    return open_fleet(
        cluster, "ray", hosts, address, scenario.population, central=central, few_vectors=few, torch=step is None
    )


def _uploads(prepared: Prepared) -> tuple[str, ...]:
    return ("delta", *prepared.scenario.server.algorithm.unweighted)


def _tasks(prepared: Prepared, device: str) -> Iterator[tuple[RoundTask, float]]:
    """Yield tasks, each with the seconds that it took to make."""
    plans = heeding(prepared.clock())
    while True:
        began = time.perf_counter()
        if (plan := next(plans, None)) is None:
            return
        task = task_of(plan, prepared, device, last=False)
        yield task, time.perf_counter() - began


def _timed(
    fleet: Fleet, pipeline: Pipeline, tasks: Iterable[tuple[RoundTask, float]], clients: int, step: float | None
) -> ScalePoint:
    """Play the tasks and add up where the time went."""
    collect(fleet, pipeline)  # removes the spans so far, which are no part of the measurement
    began = time.perf_counter()
    clock = 0.0
    ideal = 0.0
    moved = 0
    steps = 0
    rounds = 0
    pending: deque[RoundTask] = deque()
    for task, seconds in tasks:
        clock += seconds
        rounds += 1
        steps += sum(chunk.cost for chunk in task.chunks)
        ideal += max(pipeline.loads(task), default=0) * (step or 0.0)
        pipeline.submit(task)
        pending.append(task)
        if len(pending) >= fleet.max_in_flight:
            moved += pipeline.finish().moved
            pending.popleft()
    moved += sum(pipeline.finish().moved for _ in pending)
    wall = time.perf_counter() - began
    each = max(rounds, 1)
    hosts = len(pipeline.hosts)
    spent = _spent(collect(fleet, pipeline), hosts)
    shares = {name: value / each for name, value in {"clock": clock, **spent}.items()}
    return ScalePoint(
        clients, hosts, rounds, steps, wall, steps / wall, None, None,
        ideal if step else None, wall / ideal - 1 if ideal else None,
        wall / each, broadcast=max(0.0, wall / each - sum(shares.values())), **shares, bytes_reduced=moved // each,
    )  # fmt: skip


def _spent(tracks: Sequence[Track], hosts: int) -> dict[str, float]:
    """Return the seconds of each part: those of local steps on average over the hosts."""
    total = {"learn": 0.0, "fold": 0.0, "aggregate": 0.0, "evaluate": 0.0}
    for span in (span for track in tracks for span in track.spans if span.what in total):
        total[span.what] += span.ended - span.began
    reduce = total["fold"] + total["aggregate"]
    return {"compute": total["learn"] / hosts, "reduce": reduce, "evaluate": total["evaluate"]}


def _compared(point: ScalePoint, points: Sequence[ScalePoint]) -> ScalePoint:
    """Return `point` with its efficiencies, against the points with the fewest actors that it can be held against."""

    def against(others: list[ScalePoint]) -> float | None:
        base = min(others, key=lambda other: other.actors)
        if base.actors == point.actors and len(others) == 1:
            return None
        return point.steps_per_second / point.actors / (base.steps_per_second / base.actors)

    strong = against([other for other in points if other.clients == point.clients])
    weak = against([other for other in points if other.clients * point.actors == point.clients * other.actors])
    return ScalePoint(**{**asdict(point), "strong_efficiency": strong, "weak_efficiency": weak})


def write(points: Sequence[ScalePoint], path: Path) -> None:
    """Write the points as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow([one.name for one in fields(ScalePoint)])
    for point in points:
        rows.writerow([round(value, 6) if isinstance(value, float) else value for value in asdict(point).values()])
    write_file(path, text.getvalue())
