"""How often `departures: auto` decides as `lookahead` does, on departures that its estimates were not chosen on.

    FEDACTORS_DATA=~/data python -m benchmarks.departures [--out runs/departures]

Fifty-six departures: SYNTHETIC(a, a) with a of .1 and 1, and MNIST with one label at each device (large Gamma_l) and
five (small); after round 10 and after round 50; seven seeds. Each is decided for two deadlines, 10 and 60 rounds later.
What `lookahead` would decide is read off two runs, one for each decision: until the deadline they are its futures.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.algorithms.members.departure import Constants, excludes
from fedactors.study.runs import StudyRun, finished

FOLDER = Path(__file__).parents[1] / "scenarios/papers/flexible"
SEEDS, AFTER, HORIZONS = range(11, 18), (10, 50), (10, 60)


class Departure(NamedTuple):
    """Which scenario, and what is changed in it."""

    kind: str
    done: int
    seed: int
    scenario: Path
    changes: tuple[str, ...]

    def run(self, out: Path, departures: str, rounds: int) -> list[dict[str, Any]]:
        """Return the rows of metrics of a run of this departure."""
        membership = f"server.membership={{name: vanilla, departures: {departures}}}"
        more = (f"seed={self.seed}", f"server.rounds={rounds}", membership)
        folder = finished(StudyRun(self.scenario, (*self.changes, *more), out))
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def departures() -> Iterator[Departure]:
    """Yield all departures."""
    for done, seed in product(AFTER, SEEDS):
        for a in (0.1, 1.0):
            data = f"task.dataset={{name: synthetic, alpha: {a}, beta: {a}, samples: 200}}"
            change = (data, f"population.leaver.depart={100 * done}s")
            yield Departure(f"SYNTHETIC({a:g}, {a:g})", done, seed, FOLDER / "table5-reduced.yaml", change)
        for labels in (1, 5):
            change = (f"task.partition.classes={labels}", "population.newcomer.arrive=0s")
            change = (*change, f"population.newcomer.depart={100 * done}s")
            yield Departure(f"MNIST, {labels} labels", done, seed, FOLDER / "table4-reduced.yaml", change)


def main() -> int:
    """Print how often the two agree, and where not; 0 if they do in 80 % of all decisions."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("--out", default="runs/departures", type=Path, help="folder of the runs; kept runs are used")
    out = command.parse_args().out
    right, asked = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    for case in departures():
        futures = {name: case.run(out, name, case.done + max(HORIZONS)) for name in ("include", "exclude")}
        (move,) = case.run(out, "auto", case.done + 1)[-1]["moves"]
        known = {name: move["numbers"][name] for name in Constants._fields}
        for horizon in HORIZONS:
            end = case.done + horizon - 1
            best = futures["exclude"][end]["loss"] <= futures["include"][end]["loss"]
            chosen = excludes(Constants(**{**known, "rounds": case.done + horizon}))
            for group in ((case.kind,), (case.done, horizon), ()):
                asked[group] += 1
                right[group] += best == chosen
            print(
                f"{case.kind}, after {case.done}, {horizon} left, seed {case.seed}: lookahead {name(best)},"
                f" auto {name(chosen)}, Gamma_l {move['numbers']['gamma_l']:.3f}{'' if best == chosen else '   <--'}",
                flush=True,
            )
    for group in asked:
        print(f"{', '.join(map(str, group)) or 'all':<24}{right[group]:>4} of {asked[group]}")
    return 0 if right[()] >= 0.8 * asked[()] else 1


def name(exclude: bool) -> str:
    """Return what a decision is called."""
    return "exclude" if exclude else "include"


if __name__ == "__main__":
    raise SystemExit(main())
