"""Figures of the Fed-LAMB paper: Layerwise and Dimensionwise Locally Adaptive Optimization Method.

The paper prints curves and no numbers. It tunes a constant learning rate for each method on a logarithmic grid, and
lambda in {0, 0.01, 0.1} for Fed-LAMB; so do these: the best of the first seed is run with all seeds. It deals the
training data anew to the active devices in each round; both that and data that stay are run. All data are dealt to IID
clients. With one class per client they are not, and titles say so: sizes are equal and known to the clock before the
round, and as many as three clients may share a class. Margins of the asserted reduced claims were set beforehand with
an independent implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fedactors.papers.claims import more
from fedactors.papers.experiment import Axes, Experiment, Label, ResultTable
from fedactors.papers.figures import Figure
from fedactors.papers.verdicts import Claim, Floor

Axis = Mapping[Label, Sequence[str]]

_SEEDS = (1, 2, 3)
_GRID = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_TUNED = ("alpha", "lambda")


def rates(*values: float) -> Axis:
    """Return the axis of the learning rate, alpha: the same for all methods."""
    return {value: (f"server.schedule.lr={value}",) for value in values}


METHODS: Axis = {"Fed-SGD": ("server.algorithm=fed-sgd",), "Fed-AMS": ("server.algorithm=fed-ams",)}
MODELS: Axis = {"MLP": ("task.model=lamb_mlp",), "CNN": ("task.model=lamb_cnn",)}
_HALF = ("task.model=lamb_cnn", "task.partition.samples=64", "task.dataset.test_limit=1000")
REASSIGNED: Axis = {
    "static": ("task.partition.reallocate=false",),
    "reallocate": ("task.partition.reallocate=true",),
}


_REASSIGNED_WHOLE: Axis = {  # the rarest digit has 5,421 samples, for three active devices at most
    **REASSIGNED,
    "reallocate": (*REASSIGNED["reallocate"], "task.partition.samples=1807"),
}


def lamb(*decays: float) -> dict[str, Axis]:
    """Return the axes of Fed-LAMB and its weight decay, lambda."""
    axis: Axis = {decay: (f"server.algorithm={{name: fed-lamb, weight_decay: {decay}}}",) for decay in decays}
    return {"method": {"Fed-LAMB": ()}, "lambda": axis}


def epochs(*counts: int) -> Axis:
    """Return the axis of local epochs."""
    return {count: (f"server.local.epochs={count}",) for count in counts}


def grid(*, decays: Sequence[float] = (0.0, 0.01, 0.1), **places: Axis) -> Sequence[Axes]:
    """Return the grids of all three methods, at each of the `places`."""
    alpha = rates(*_GRID)
    return [{**places, "method": METHODS, "alpha": alpha}, {**places, **lamb(*decays), "alpha": alpha}]


def at_best(table: ResultTable, measure: str, **place: Label) -> dict[str, Figure]:
    """Return a measure of each method at its best rate; the table holds no other."""
    return {name: table.mean(measure, method=f"Fed-{name}", **place) for name in ("SGD", "AMS", "LAMB")}


def iid(table: ResultTable) -> list[Claim]:
    """Fed-LAMB is the best and the fastest on IID clients."""
    last, early = at_best(table, "last5"), at_best(table, "at3")
    return [
        more("Fed-LAMB ends higher than Fed-AMS", last["LAMB"], last["AMS"]),
        more("Fed-LAMB ends higher than Fed-SGD", last["LAMB"], last["SGD"], 0.01),
        more("Fed-LAMB is ahead of Fed-SGD at round 3", early["LAMB"], early["SGD"], 0.03),
    ]


def iid_cnn(table: ResultTable) -> list[Claim]:
    """Fed-LAMB ends higher than Fed-AMS, which ends much higher than Fed-SGD, on IID clients with a CNN."""
    last = at_best(table, "last5")
    return [
        more("Fed-LAMB ends higher than Fed-AMS", last["LAMB"], last["AMS"]),
        more("Fed-LAMB ends much higher than Fed-SGD", last["LAMB"], last["SGD"], 0.05),
        more("Fed-AMS ends higher than Fed-SGD", last["AMS"], last["SGD"]),
    ]


def one_class(table: ResultTable) -> list[Claim]:
    """Fed-LAMB is the best and the fastest with one digit per client; the MLP has Fed-SGD next, the CNN Fed-AMS."""
    claims = []
    for model in table.labels("model"):
        for data in table.labels("data"):
            last, early = (at_best(table, measure, model=model, data=data) for measure in ("last5", "at5"))
            where = f"{model}, {data}"
            claims += [
                more(f"{where}: Fed-LAMB ends higher than Fed-SGD", last["LAMB"], last["SGD"], asserted=False),
                more(f"{where}: Fed-LAMB ends higher than Fed-AMS", last["LAMB"], last["AMS"], asserted=False),
                more(
                    f"{where}: Fed-LAMB is ahead of Fed-SGD at round 5",
                    early["LAMB"],
                    early["SGD"],
                    asserted=(model, data) == ("MLP", "static"),
                ),
                more(f"{where}: Fed-LAMB is ahead of Fed-AMS at round 5", early["LAMB"], early["AMS"], asserted=False),
            ]
            second, third = ("SGD", "AMS") if model == "MLP" else ("AMS", "SGD")
            claims.append(
                more(f"{where}: Fed-{second} ends higher than Fed-{third}", last[second], last[third], asserted=False)
            )
    return claims


def best_everywhere(table: ResultTable) -> list[Claim]:
    """Fed-LAMB is the best in every panel; with one class per client it is ahead of Fed-AMS early, and ends alike.

    "Converges the fastest, with similar generalization error as Fed-AMS" (section 4.2).
    """
    varied = ("method", *_TUNED, "seed")
    panels = dict.fromkeys(tuple((axis, at[axis]) for axis in at if axis not in varied) for at, _ in table.rows)
    claims = []
    for panel in map(dict, panels):
        last = at_best(table, "last5", **panel)
        where = ", ".join(f"{axis} {label}" for axis, label in panel.items())
        even = panel.get("clients") == "one class"
        claims += [
            more(f"{where}: Fed-LAMB ends higher than Fed-AMS", last["LAMB"], last["AMS"], asserted=not even),
            more(f"{where}: Fed-LAMB ends higher than Fed-SGD", last["LAMB"], last["SGD"]),
        ]
        if even:
            early = at_best(table, "at5", **panel)
            claims.append(more(f"{where}: Fed-LAMB is ahead of Fed-AMS at round 5", early["LAMB"], early["AMS"]))
    return claims


_COLUMNS = ("last5", "at3", "at5", "at10")
_LEARNT = (Floor(0.3, "last5", rounds=5),)  # chance is a tenth
_CLIENTS: Axis = {
    count: (
        f"population.clients.count={count}",
        f"server.cohort={count // 2}",
        f"task.partition.samples={50_000 // (count // 2)}",  # all, to the active half
    )
    for count in (50, 10)
}
_ONE_CLASS: Axis = {
    "one class": ("task.partition={name: classes, classes: 1, samples: 1666, reallocate: true}",)
}  # 5,000 of a class, for three at most


def _figure(
    title: str, file: str, grids: Sequence[Axes], claims: Callable[[ResultTable], list[Claim]], curves: str
) -> Experiment:
    return Experiment(
        f"Fed-LAMB, {title}",
        f"papers/fedlamb/{file}.yaml",
        grids,
        _SEEDS,
        claims,
        f"curves only: {curves}",
        _COLUMNS,
        tuned=_TUNED,
        floors=_LEARNT,
    )


_AT_BEST_OF_SEED_1: Axis = {
    "Fed-SGD": ("server.algorithm=fed-sgd", "server.schedule.lr=0.3"),
    "Fed-AMS": ("server.algorithm=fed-ams", "server.schedule.lr=0.0003"),
    "Fed-LAMB": ("server.algorithm=fed-lamb", "server.schedule.lr=0.03"),
}

_MNIST = "MLP: LAMB > SGD >= AMS; CNN: LAMB > AMS > SGD, LAMB fastest in the first rounds"
_IID = "LAMB > AMS >= SGD, LAMB fastest"

REDUCED = {
    "fedlamb-fig2": _figure(
        "figure 2, reduced: one digit per client, MNIST",
        "fig2-reduced",
        grid(model={**MODELS, "CNN": _HALF}, data=REASSIGNED, decays=(0.0,)),
        one_class,
        _MNIST,
    ),
    "fedlamb-fig3": _figure(
        "figures 3 and 4, reduced to MNIST: IID clients", "fig3-reduced", grid(), iid, f"on CIFAR-10: {_IID}"
    ),
}
REDUCED["fedlamb-fig3-cnn"] = Experiment(
    "Fed-LAMB, figure 3, reduced: CIFAR-10, CNN, IID, at the rates found best with seed 1",
    "papers/fedlamb/fig3-cnn-reduced.yaml",
    [{"method": _AT_BEST_OF_SEED_1}],
    (2, 3, 4),
    iid_cnn,
    "curves only: LAMB > AMS >> SGD",
    _COLUMNS,
    floors=(Floor(0.2, "last5", rounds=5),),
)
REDUCED["fedlamb-fig4"] = REDUCED["fedlamb-fig3"]

FULL = {
    "fedlamb-fig2": _figure(
        "figure 2: one digit per client, MNIST; data dealt anew are 25 x 1,807 of 60,000 images a round",
        "fig2",
        grid(model=MODELS, epochs=epochs(1, 5), data=_REASSIGNED_WHOLE),
        best_everywhere,
        _MNIST,
    ),
    "fedlamb-fig3-resnet": _figure(
        "figure 3: CIFAR-10, ResNet-9, IID",
        "fig3-resnet",
        grid(clients=_CLIENTS, epochs=epochs(1, 3)),
        best_everywhere,
        _IID,
    ),
    "fedlamb-fig3-cnn": _figure(
        "figure 3: CIFAR-10, CNN, IID and one class per client, there 25 x 1,666 of 50,000 images a round",
        "fig3-cnn",
        [
            *grid(clients={"IID": ()}, epochs=epochs(1, 3)),
            *grid(clients=_ONE_CLASS, epochs=epochs(3)),
        ],
        best_everywhere,
        "IID: LAMB > AMS >> SGD; one class per client: LAMB fastest, ends about with AMS",
    ),
    "fedlamb-fig4": _figure(
        "figure 4: CIFAR-10, ResNet-9, IID, 10 clients",
        "fig3-resnet",
        grid(clients={10: _CLIENTS[10]}, epochs=epochs(1, 3)),
        best_everywhere,
        _IID,
    ),
}
