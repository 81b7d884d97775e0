"""Axes that experiments of Ruan et al. (AISTATS 2021) have in common: schemes, traces, data, arrivals, departures."""

from __future__ import annotations

from fedactors.papers.fsl_axes import Axis
from fedactors.papers.verdicts import Floor

FOLDER = "papers/flexible/"
LEARNT = (Floor(0.3),)  # chance is a tenth, of letters one of 47 or of 62
TRACES = ("T0", "T30", "T50", "T70", "T90", "Thi", "Tmi", "Tlo")
SCHEMES: Axis = {scheme: (f"server.participation={scheme}",) for scheme in "ABC"}
REBOOT: Axis = {"fast": ("server.membership=fast-reboot",), "vanilla": ("server.membership=vanilla",)}
OPTIONS: Axis = {name: (f"server.membership={{name: vanilla, departures: {name}}}",) for name in ("include", "exclude")}
_PARETO = "samples: {{name: pareto, index: 0.5, total: {0}, floor: {1}}}"


def traces(*counts: int) -> Axis:
    """Return the axis of |T|, the first so many traces."""
    return {
        count: (f"population.devices.sampled={{traces: [{', '.join(TRACES[:count])}], assign: shuffle}}",)
        for count in counts
    }


def synthetic(*names: str, floor: int = 20) -> Axis:
    """Return the axis of how alike the devices of SYNTHETIC are; the paper calls (0, 0) IID, which it is not."""
    options = {"NIID": "alpha: 1.0, beta: 1.0", "(0,0)": "alpha: 0.0, beta: 0.0", "IID": "iid: true"}
    sizes = _PARETO.format(10000, floor)
    return {name: (f"task.dataset={{name: synthetic, {options[name]}, {sizes}}}",) for name in names}


def images(total: int, floor: int) -> Axis:
    """Return the axis of how alike the devices of an image data set are."""
    sizes = _PARETO.format(total, floor)
    return {
        "NIID": (f"task.partition={{name: classes, classes: 1, balanced: false, {sizes}, replace: true}}",),
        "IID": (f"task.partition={{name: iid, {sizes}, replace: true}}",),
    }


def arrivals(after: int, *taus: int) -> Axis:
    """Return the axis of tau_0, with `after` rounds to follow."""
    return {tau: (f"population.newcomer.arrive={100 * tau}s", f"server.rounds={tau + after}") for tau in taus}


def departures(after: int, *taus: int) -> Axis:
    """Return the axis of tau_0, with `after` rounds to follow."""
    return {tau: (f"population.leaver.depart={100 * tau}s", f"server.rounds={tau + after}") for tau in taus}


def spreads(*values: float) -> Axis:
    """Return the axis of a in SYNTHETIC(a, a)."""
    return {a: (f"task.dataset={{name: synthetic, alpha: {a}, beta: {a}, samples: 200}}",) for a in values}
