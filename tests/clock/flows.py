"""Flows of small populations; a device's share, fast_down and fast_up are ([(at, value), …], end, shift, loops)."""

import numpy as np

from fedactors.clock.device_columns import Flows
from fedactors.clock.flow import Flow, FlowColumns
from fedactors.traces.series import PPM, SeriesRow, build


def flow(devices, key, constant):
    groups = []
    for device in devices:
        zero = np.zeros(1, np.int64)
        if recorded := device.get(key):
            pieces, end, shift, loops = recorded
            series = build([SeriesRow("r", [at for at, _ in pieces], [value for _, value in pieces], end)], PPM)
            groups.append(FlowColumns(series, zero, zero + shift, loops, zero))
        else:
            groups.append(FlowColumns(None, zero - 1, zero, True, zero + constant(device)))
    return Flow(groups)


def flows(devices):
    return Flows(
        on=flow(devices, "", lambda d: 1),
        share=flow(devices, "share", lambda d: 10**6),
        down=flow(devices, "fast_down", lambda d: d.get("down", 10**9)),
        up=flow(devices, "fast_up", lambda d: d.get("up", 10**9)),
        varying=np.array([any(d.get(k) for k in ("share", "fast_down", "fast_up")) for d in devices]),
    )
