"""Finds what clients upload besides the changes that noise is added to."""

from __future__ import annotations

from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import ClientResult
from fedactors.own_code.user_errors import is_own
from fedactors.privacy.unnoised import says_of_uploads
from fedactors.simulation.prepared import Prepared


def refuse_noiseless_uploads(prepared: Prepared) -> None:
    """Raise ScenarioError if an algorithm has uploads without noise.

    Those built in have none, but for those that use losses of clients.
    """
    algorithm = prepared.scenario.server.algorithm
    if not (is_own(algorithm) or algorithm.wants_start_loss) or not (names := noiseless_uploads(prepared)):
        return
    own = (
        "; or, where no sample of a device can change it, as a number of steps,"
        f' data_independent = ("{names[0]}",) in its class'
    )
    raise ScenarioError(
        f'server.privacy: "{algorithm.name}" uploads {", ".join(names)} besides its changes'
        f" ({', '.join(algorithm.changes)}), without noise (accepted: without{own if is_own(algorithm) else ''})"
    )


def noiseless_uploads(prepared: Prepared) -> list[str]:
    """Return the uploads that get no noise and may depend on a device's data, by name, in the order of `upload`.

    Names are those that `upload` gives for a trip in which nothing changed; torch is imported.
    """
    algorithm = prepared.scenario.server.algorithm
    known = set(algorithm.changes) | set(algorithm.unweighted)  # the unweighted ones are refused by their names alone
    if says_of_uploads(type(algorithm), "data_independent"):
        known |= set(algorithm.data_independent)
    return [name for name in algorithm.upload(_idle_trip(prepared)) if name not in known]


def _idle_trip(prepared: Prepared) -> ClientResult:
    """Return the trip of one client, as a row, that ends where it started."""
    import torch

    algorithm = prepared.scenario.server.algorithm
    row = torch.zeros(1, prepared.model.parameters)
    state = algorithm.start(row[0].clone())
    sent = {name: state.get(name, row[0]) for name in (*algorithm.sends, *algorithm.central_results)}
    if algorithm.scales_by_share:
        sent["share"] = torch.ones(1, 1)
    return ClientResult(
        start=row,
        delta=row.clone(),
        sent=sent,
        steps=torch.ones(1, 1),
        lr=prepared.scenario.server.schedule.rate(0),
        kept={name: row.clone() for name in algorithm.keeps},
        gradient=row.clone() if algorithm.wants_gradient else None,
        state={name: row.clone() for name in algorithm.optimizer(prepared.setting).vectors},
        gradients=row.clone() if algorithm.wants_gradient_sum else None,
        own=None if algorithm.own_pull is None else row.clone(),
        loss=torch.ones(1, 1),
        start_loss=torch.ones(1, 1) if algorithm.wants_start_loss else None,
        samples=torch.ones(1, 1),
        buffers=prepared.model.buffer_values,
    )
