"""Language and movies of the mixed federated learning paper: Augenstein et al., 2022, figures 1b to 3, 5, 6, 10 to 12.

The reduced twins speak two made-up languages and rate made-up movies. At the paper's size they want text files and
MovieLens 1M; the language model is out of a CPU's reach there.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from fedactors.papers.claims import less, more, narrow
from fedactors.papers.experiment import Axes, Claim, Experiment, ResultTable
from fedactors.papers.mixed_axes import PLAIN, Axis, measured, method, methods, oracle, rated, trades
from fedactors.papers.mixed_costs import costs

_SEEDS = (1, 2, 3)
_MIXED = ("PT", "1-W", "2-W", "2-W 1/2")
LANGUAGE = ("accuracy", "federated_accuracy", "central_accuracy", "loss")
MOVIES = ("recall10", "loss", "spreadout", "accuracy")


def fig5(table: ResultTable) -> list[Claim]:
    """RM5: only FL learns the clients' language alone; every mixed method learns both."""
    alone = {name: table.mean(name, method="FL") for name in LANGUAGE[:3]}
    claims = [
        less("only FL is poor on the central language", alone["central_accuracy"], alone["federated_accuracy"], 0.5),
    ]
    for name in _MIXED:
        parts = [table.mean(part, method=name) for part in ("federated_accuracy", "central_accuracy")]
        claims.append(more(f"{name} learns both languages", min(parts), 0.8 * alone["federated_accuracy"]))
        claims.append(
            more(f"{name} beats only FL on both", table.mean("accuracy", method=name), alone["accuracy"], 0.1)
        )
    fair = [table.mean("accuracy", method=name) for name in ("PT", "1-W", "2-W 1/2")]
    best, oracles = max(table.mean("accuracy", method=name) for name in _MIXED), table.mean("accuracy", method="oracle")
    return [
        *claims,
        narrow("PT, 1-W and 2-W (1/2) are equal (accuracy)", fair, 0.03),
        more("the best mixed method reaches the oracle within .02 (accuracy)", best, oracles - 0.02),
    ]


def fig10(table: ResultTable) -> list[Claim]:
    """More steps at a smaller rate never hurt (within .01)."""
    return [
        more(
            f"{name}: K = {2 * k} is as good as {k} within .01 (accuracy)",
            table.mean("accuracy", method=name, K=2 * k),
            table.mean("accuracy", method=name, K=k) - 0.01,
        )
        for name in table.labels("method")
        for k in (2, 4)
    ]


def fig11(table: ResultTable) -> list[Claim]:
    """Larger rates for PT and 1-W help early, and all end alike."""
    names = table.labels("method")
    early = {name: fmean(run.after(20) or 0.0 for run in table.runs(method=name)) for name in names}
    return [
        narrow("all end at the same accuracy", [table.mean("last5", method=name) for name in names], 0.03),
        *(
            more(
                f"{name}: the larger rate is ahead after 20 rounds",
                early[f"{name}, 1.5"],
                early[f"{name}, 1"],
                asserted=False,
            )
            for name in ("PT", "1-W")
        ),
    ]


def objective(table: ResultTable, **labels: Any) -> float:
    """Return w_f hinge + w_c spreadout, on the test users, as means of the last 20 rounds."""
    return 0.5 * table.mean("loss", **labels) + 0.5 * table.mean("spreadout", **labels)


def fig3(table: ResultTable) -> list[Claim]:
    """RM4: mixed methods recommend as well as the baseline, in which clients compute everything."""
    baseline = table.mean("recall10", method="baseline")
    return [
        *(
            narrow(f"{name} recalls as the baseline does", [table.mean("recall10", method=name), baseline], 0.02)
            for name in _MIXED
        ),
        less(
            "PT ends at the loss of 1-W (within .02)",
            objective(table, method="PT"),
            objective(table, method="1-W") + 0.02,
            asserted=False,
        ),
    ]


def fig12(table: ResultTable) -> list[Claim]:
    """RM4: FedAdam is ahead of SGD after as many rounds; 1-W is about the baseline."""
    losses = {
        (name, optimizer): objective(table, method=name, optimizer=optimizer)
        for name in ("1-W", "baseline")
        for optimizer in ("sgd", "adam")
    }
    return [
        *(
            less(f"{n}: FedAdam is ahead of SGD (loss)", losses[n, "adam"], losses[n, "sgd"])
            for n in ("1-W", "baseline")
        ),
        narrow(
            "1-W with FedAdam is about the baseline (loss)", [losses["1-W", "adam"], losses["baseline", "adam"]], 0.05
        ),
    ]


def table3(table: ResultTable) -> list[Claim]:
    """Costs of a client by the formulas, V = 3952, d = 16, n = 160, B = 16, beside the paper's."""
    found = costs(3952, 16, 160, 16)
    traffic = {"baseline": 494, "PT": 20, "1-W": 30, "2-W": 30}
    claims = [_printed(f"{name}: KiB of a round", found[name].traffic / 1024, kib) for name, kib in traffic.items()]
    saved = 100 * (1 - found["PT"].step / found["baseline"].step)
    return [
        *claims,
        _printed("PT: MFLOP of a step", found["PT"].step / 1e6, 0.025, 3),
        _printed("baseline: MFLOP of a step; the paper prints 125.16", found["baseline"].step / 1e6, 125.03, 2),
        _printed("operations saved, %", saved, 99.98, 2),
        _printed(
            "traffic saved by 1-W and 2-W, %", 100 * (1 - found["1-W"].traffic / found["baseline"].traffic), 93.9, 1
        ),
    ]


def _printed(text: str, ours: float, theirs: float, digits: int = 0) -> Claim:
    return Claim(text, f"{ours:.{digits}f} = {theirs:.{digits}f}", round(ours, digits) == theirs)


def regularised(**options: Any) -> Axis:
    """Return the methods with the regulariser at the clients (baseline) or at the centre."""
    return {
        "baseline": (method("mixed-et", central_objective="spreadout", **options),),
        "PT": (method("mixed-pt", central_objective="spreadout", **options),),
        "1-W": (method("mixed-1w", central_objective="spreadout", **options),),
        "2-W": (method("mixed-2w", central_objective="spreadout", **options),),
        "2-W 1/2": (method("mixed-2w", central_objective="spreadout", merge_lr=0.5, **options),),
    }


def optimizers() -> list[Axes]:
    """Return the grid of figure 12: SGD and FedAdam, for 1-W and the baseline."""
    adam = regularised(server_optimizer="{name: adam, lr: 0.01}")
    return [
        {"optimizer": {kind: ()}, "method": {name: axis[name] for name in ("1-W", "baseline")}}
        for kind, axis in (("sgd", regularised()), ("adam", adam))
    ]


_TONGUES: Axis = methods(40, 160, central_weight=0.27)
_ORACLE = (*oracle(4, 80), "task.dataset.samples=800")  # as many as 40 clients have
_RATES: Axis = {f"{name}, {eta:g}": rated(_TONGUES[name], eta) for name in ("PT", "1-W") for eta in (1, 1.5)}


def _reduced(
    title: str, file: str, grids: Sequence[Axes], claims: Any, columns: Sequence[str], said: str
) -> Experiment:
    return Experiment(
        f"Mixed federated learning, {title}, reduced",
        f"papers/mixed/{file}-reduced.yaml",
        grids,
        _SEEDS,
        claims,
        said,
        columns,
    )


REDUCED = {
    "mixed-fig5": _reduced(
        "figure 5: two languages",
        "fig5",
        [{"method": {"FL": PLAIN, **measured(_TONGUES, "PT"), "oracle": _ORACLE}}],
        fig5,
        (*LANGUAGE, "max_gt2", "max_bt2"),
        "only FL < .45 on both sources, all mixed about .60; max G~^2 .03, max B~^2 1.34",
    ),
    "mixed-fig10": _reduced(
        "figure 10: steps and rate, K eta = 4, two languages",
        "fig5",
        [{"method": {name: _TONGUES[name] for name in ("PT", "1-W", "2-W 1/2")}, "K": trades(4, (2, 4, 8))}],
        fig10,
        LANGUAGE,
        "more steps with a smaller rate never hurt and often help",
    ),
    "mixed-fig11": _reduced(
        "figure 11: larger rates for PT and 1-W, two languages",
        "fig5",
        [{"method": {**_RATES, "2-W, 0.5": rated(_TONGUES["2-W"], 0.5)}}],
        fig11,
        LANGUAGE,
        "an early gain only, the same loss in the end",
    ),
    "mixed-fig3": _reduced(
        "figure 3: movies",
        "fig3",
        [{"method": measured(regularised(), "PT")}],
        fig3,
        (*MOVIES, "max_gt2", "max_bt2"),
        "recall@10 about .1 for all; max G~^2 .03, max B~^2 1.50",
    ),
    "mixed-fig12": _reduced(
        "figure 12: movies with FedAdam",
        "fig3",
        optimizers(),
        fig12,
        MOVIES,
        "Adam beats SGD; 1-W about the baseline",
    ),
    "mixed-table3": Experiment(
        "Mixed federated learning, tables 3 and 12: what the recommender costs a client",
        "papers/mixed/fig3-reduced.yaml",
        [{"method": {"PT": (*regularised()["PT"], "server.rounds=1")}}],
        (1,),
        table3,
        "MFLOP 125.16, .025, .025, .025; KB 494, 20, 30, 30; savings 99.98 % and 93.9 %",
        MOVIES,
    ),
}
REDUCED["mixed-fig1b"] = REDUCED["mixed-fig2b"] = REDUCED["mixed-fig5"]
REDUCED["mixed-fig6"] = REDUCED["mixed-fig3"]
