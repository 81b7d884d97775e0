"""The server's rate in a round, where a schedule gives it."""

from __future__ import annotations

from fedactors.learning.algorithm import Algorithm, Round


def in_round(algorithm: Algorithm, round: Round) -> Algorithm:
    """Return the same algorithm with the server's rate of a round, where a schedule gives it."""
    if round.server_lr is None:
        return algorithm
    if algorithm.server_rate_key == "global_lr":
        return algorithm.model_copy(update={"global_lr": round.server_lr})
    optimizer = getattr(algorithm, "server_optimizer", None)
    assert optimizer is not None  # a scenario without a rate of the server is refused
    return algorithm.model_copy(update={"server_optimizer": optimizer.model_copy(update={"lr": round.server_lr})})
