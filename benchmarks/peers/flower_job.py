"""The job in Flower's simulation on Ray, written as its PyTorch quickstart is: Message API, FedAvg, a core per client.

The client's loop is the user's own code in Flower. `--loop docs` is that of the quickstart (DataLoader, optim.SGD);
`--loop lean` is the bare loop of `lean_job.py`, so that what remains is Flower itself.
"""

from __future__ import annotations

import os

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"

import warnings
from collections.abc import Iterable
from typing import Any

from common import WORKERS, Rounds, arguments, module, one_thread
from flower_client import LOOPS, app
from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation


class Timed(FedAvg):
    """FedAvg that counts what came back and notes the end of every round."""

    def __init__(self, clock: Rounds, **options: Any) -> None:
        super().__init__(**options)
        self.clock = clock
        self.losses: list[float] = []
        self.steps: list[int] = []

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        replies = list(replies)
        failed = [reply.error.reason for reply in replies if reply.has_error()]
        if failed:
            raise RuntimeError(f"{len(failed)} clients failed, the first with {failed[0]}")
        self.steps.append(sum(int(reply.content["metrics"]["steps"]) for reply in replies))
        arrays, metrics = super().aggregate_train(server_round, replies)
        self.losses.append(float(metrics["train_loss"]))
        self.clock.end()
        return arrays, metrics


def main() -> None:
    one_thread()
    job, options = arguments(("--loop", {"choices": list(LOOPS), "default": "docs"}))
    warnings.filterwarnings("ignore")
    share = job.cohort / job.clients
    strategy = Timed(Rounds(), fraction_train=share, fraction_evaluate=0.0, min_train_nodes=job.cohort)
    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord(module(job).state_dict()),
            num_rounds=options.rounds,
            train_config=ConfigRecord({"job": job.name, "loop": options.loop}),
        )

    run_simulation(
        server_app=server,
        client_app=app,
        num_supernodes=job.clients,
        backend_config={
            "init_args": {"num_cpus": WORKERS, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    peer = "flower" if options.loop == "docs" else "flower-lean"
    strategy.clock.report(peer, job, sum(strategy.steps[1:]), strategy.losses)


if __name__ == "__main__":
    main()
