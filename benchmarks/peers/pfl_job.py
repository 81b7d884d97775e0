"""The job in pfl-research: FederatedAveraging on a SimulatedBackend, as its tutorials write it.

With `--processes` above 1 the cohort is sharded over processes by torch.distributed (gloo), as its guide to fast
simulations says; they meet through a file instead of a TCP store, which would listen on every network interface.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Job, Rounds, arguments, module, one_thread
from torch import Tensor, nn
from torch.nn import functional

_RANK, _MEET, _COUNT = "BENCH_RANK", "BENCH_MEET", "BENCH_COUNT"


class Network(nn.Module):
    """The model with the two functions that pfl asks for; notes losses and counts steps on the way."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.layers = module(job)
        self.steps, self.total = 0, torch.zeros(())

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        self.train()
        found = functional.cross_entropy(self.layers(x), y)
        self.total += found.detach()
        self.steps += 1
        return found

    @torch.no_grad()
    def metrics(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        from pfl.metrics import Weighted

        self.eval()
        return {"loss": Weighted(float(functional.cross_entropy(self.layers(x), y, reduction="sum")), len(y))}


def joined() -> None:
    """Make pfl meet its other processes, on the loopback interface."""
    os.environ |= {"TORCHELASTIC_RUN_ID": "bench", "GLOO_SOCKET_IFNAME": "lo"}
    os.environ |= {"RANK": os.environ[_RANK], "WORLD_SIZE": os.environ[_COUNT]}
    torch.distributed.init_process_group = partial(
        torch.distributed.init_process_group,
        init_method=f"file://{os.environ[_MEET]}",
        rank=int(os.environ[_RANK]),
        world_size=int(os.environ[_COUNT]),
    )


def simulate(job: Job, rounds: int, peer: str) -> None:
    """Run the job; the process of rank 0 reports."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    np.random.seed(0)  # noqa: NPY002  pfl draws cohorts from the global state; all processes must draw the same
    torch.manual_seed(0)  # and start from the same model
    x, y = (torch.from_numpy(part) for part in job.everything())

    @cache  # a data set slices its batches once
    def dataset(client: int) -> Dataset:
        return Dataset([x[client], y[client]], user_id=client)

    network, clock = Network(job), Rounds()
    losses: list[float] = []
    steps: list[int] = []

    class Timed(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
            clock.end()
            steps.append(network.steps)
            losses.append(float(network.total) / network.steps)
            network.steps, network.total = 0, torch.zeros(())
            return False, Metrics()

    users = FederatedDataset(dataset, get_user_sampler("minimize_reuse", list(range(job.clients))))
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=10**9,  # only in the first round, which is start-up
            train_cohort_size=job.cohort,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=users, val_data=users, postprocessors=[WeightByDatapoints()]),
        model=PyTorchModel(
            network,
            local_optimizer_create=torch.optim.SGD,
            central_optimizer=torch.optim.SGD(network.parameters(), lr=1.0),
        ),
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=job.lr, local_batch_size=job.batch
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[Timed()],
        send_metrics_to_platform=False,
    )
    share = int(os.environ.get(_COUNT, "1"))  # every process counts its own shard of the cohort
    if int(os.environ.get(_RANK, "0")) == 0:
        clock.report(peer, job, share * sum(steps[1:]), losses)


def main() -> None:
    one_thread()
    job, options = arguments(("--processes", {"type": int, "default": 1}))
    count, peer = options.processes, "pfl" if options.processes == 1 else f"pfl-{options.processes}"
    if count == 1:
        simulate(job, options.rounds, peer)
        return
    if _RANK in os.environ:
        joined()
        simulate(job, options.rounds, peer)
        torch.distributed.destroy_process_group()
        return
    with tempfile.TemporaryDirectory() as folder:
        common = os.environ | {_MEET: str(Path(folder) / "meet"), _COUNT: str(count)}
        ranks = [
            subprocess.Popen([sys.executable, *sys.argv], env=common | {_RANK: str(rank)}) for rank in range(count)
        ]
        codes = [process.wait() for process in ranks]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
