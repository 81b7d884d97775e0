"""On always-on equal devices without a deadline, a whole run is FedAvg as the textbook has it."""

import numpy as np
import torch
from torch import nn

import fedactors
from fedactors import Scenario
from fedactors.data.batches import bounds, sequence
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load

SCENARIO = {
    "name": "textbook",
    "seed": 5,
    "task": {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [16]},
        "partition": {"name": "dirichlet", "alpha": 0.5, "samples": 40},
    },
    "population": [{"name": "equal", "count": 12}],
    "server": {
        "rounds": 4,
        "cohort": 5,
        "local": {"epochs": 2, "batch": 8},
        "schedule": {"name": "constant", "lr": 0.2},
    },
}


def textbook(prepared, cohorts):
    """FedAvg in twenty lines: McMahan et al. 2017, Algorithm 1."""
    task, samples, *_ = load(prepared)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    from fedactors.models.network import initial

    x = torch.from_numpy(initial(task.model, task.seed))
    for t, cohort in enumerate(cohorts):
        models, sizes = [], []
        for client in cohort:
            nn.utils.vector_to_parameters(x.clone(), net.parameters())
            optimiser, work = torch.optim.SGD(net.parameters(), lr=0.2), task.workloads[client]
            order = sequence(task.seed, client, t, samples.split.of(client), work, work.wanted)
            for first, last in bounds(work, work.wanted):
                batch = torch.from_numpy(order[first:last])
                optimiser.zero_grad()
                logits = net(torch.from_numpy(samples.x)[batch])
                nn.functional.cross_entropy(logits, torch.from_numpy(samples.y)[batch]).backward()
                optimiser.step()
            models.append(nn.utils.parameters_to_vector(net.parameters()).detach())
            sizes.append(len(samples.split.of(client)))
        x = sum(n / sum(sizes) * y for n, y in zip(sizes, models, strict=True))
    return x.numpy()


def test_a_run_is_the_textbooks_fedavg(tmp_path):
    scenario = Scenario.model_validate(SCENARIO)
    prepared = prepare(scenario)
    plans = list(prepared.clock())
    assert all(order.outcome.value == "complete" for plan in plans for order in plan.orders)
    expected = textbook(prepared, [[order.client for order in plan.orders] for plan in plans])
    result = fedactors.run(scenario, tmp_path / "run", fleet="local")
    np.testing.assert_allclose(result.state["x"], expected, rtol=1e-4, atol=1e-5)


def test_schemes_a_b_and_c_agree_to_the_bit_when_everybody_finishes(tmp_path):
    digests = set()
    for scheme in "ABC":
        server = {**SCENARIO["server"], "participation": scheme}
        scenario = Scenario.model_validate({**SCENARIO, "server": server})
        result = fedactors.run(scenario, tmp_path / scheme, fleet="local")
        digests.add(result.summary["digests"]["model"])
    assert len(digests) == 1
