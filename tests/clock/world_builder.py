"""Small populations for tests of the clock, written in plain numbers (one nanosecond is one tick)."""

import numpy as np

from fedactors.clock.availability import Availability, RecordingColumns
from fedactors.clock.device_columns import Population
from fedactors.plan import NEVER

# windows=None|[(on, off)], period=0, shift=0, per_sample, down, up, latency, deadline_aware, abort, arrive, depart
Device = dict


def availability(devices):
    rows, starts, on, off = [], [0], [], []
    for device in devices:
        windows = device.get("windows")
        rows.append(-1 if windows is None else len(starts) - 1)
        if windows is not None:
            on += [w[0] for w in windows]
            off += [w[1] for w in windows]
            starts.append(len(on))
    table = RecordingColumns(*(np.array(column, np.int64) for column in (starts, on, off)))
    return Availability(
        table,
        np.array(rows, np.int64),
        np.array([d.get("shift", 0) for d in devices], np.int64),
        np.array([d.get("period", 0) for d in devices], np.int64),
    )


def population(devices):
    def column(name, default, kind=np.int64):
        return np.array([d.get(name, default) for d in devices], kind)

    return Population(
        availability(devices),
        per_sample=column("per_sample", 1),
        down=column("down", 10**9),
        up=column("up", 10**9),
        latency=column("latency", 0),
        deadline_aware=column("deadline_aware", True, bool),
        abort=column("abort", False, bool),
        arrive=column("arrive", 0),
        depart=column("depart", NEVER),
        hands_in=column("hands_in", False, bool),
    )
