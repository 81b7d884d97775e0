"""Client optimisers against torch.optim, alone and in a cohort, and engine against engine."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedactors import registry
from fedactors.algorithms.fed_ams import FedAMS
from fedactors.algorithms.fed_lamb import FedLAMB
from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.fedprox import FedProx
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.descent import Descent
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.learning.algorithm import TaskSetting
from fedactors.models.layers import Layers
from fedactors.models.network import initial
from fedactors.models.paper_models import LambCnn, LambMlp
from fedactors.optim.client_optimizers import SGD, AMSGrad, ClientAdam, ClientAdamW, ClientMomentum, Lamb, layerwise
from tests.engines.test_engines import MODELS, Pulled, chunk, samples, task, with_engine

OPTIMISERS = [registry.lookup("optimizers", name)() for name in registry.names("optimizers")]
LAYERS = Layers((4, 2, 1), (6, 1))


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def walked(optimizer, start, gradients, lr, layers=LAYERS):
    state = {name: torch.zeros_like(start) for name in optimizer.holds}
    walk = Descent(optimizer, start, state, lr=lr, layers=layers)
    for number, gradient in enumerate(gradients, 1):
        walk.step(gradient, number)
    return walk.y


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_sgd_with_momentum_by_another_name(nesterov):
    start, gradients = numbers(3, 20).float(), numbers(5, 3, 20, seed=1).float()
    one, other = ClientMomentum(beta=0.8, nesterov=nesterov), SGD(momentum=0.8, nesterov=nesterov)
    assert torch.equal(walked(one, start, gradients, 0.05), walked(other, start, gradients, 0.05))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SGD(), lambda p: torch.optim.SGD(p, lr=0.05)),
        (ClientMomentum(beta=0.8), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8)),
        (ClientMomentum(nesterov=True), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True)),
        (SGD(momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
        (SGD(momentum=0.9, dampening=0.4), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.4)),
        (SGD(weight_decay=0.01), lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.01)),
        (
            SGD(momentum=0.9, weight_decay=1e-4, nesterov=True),
            lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True),
        ),
        (ClientAdam(weight_decay=0.01), lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.01)),
        (ClientAdamW(), lambda p: torch.optim.AdamW(p, lr=0.05)),
        (ClientAdamW(weight_decay=0.3), lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.3)),
        (ClientAdam(), lambda p: torch.optim.Adam(p, lr=0.05)),
        (
            ClientAdam(beta1=0.5, beta2=0.9, eps=1e-3),
            lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.5, 0.9), eps=1e-3),
        ),
        (AMSGrad(), lambda p: torch.optim.Adam(p, lr=0.05, amsgrad=True)),
        (AMSGrad(beta2=0.6), lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.9, 0.6), amsgrad=True)),
    ],
    ids=lambda o: getattr(o, "name", ""),
)
def test_one_client_agrees_with_torch_optim(ours, theirs):
    """Twelve steps; gradients shrink after the sixth, so that AMSGrad's maximum binds."""
    start = numbers(7)
    gradients = [numbers(7, seed=k) * (1 if k < 7 else 0.01) for k in range(1, 13)]
    parameter = torch.nn.Parameter(start.clone())
    optimizer = theirs([parameter])
    for gradient in gradients:
        parameter.grad = gradient
        optimizer.step()
    torch.testing.assert_close(walked(ours, start, gradients, 0.05), parameter.detach(), rtol=1e-12, atol=1e-14)


def test_amsgrad_is_not_adam_once_gradients_shrink():
    gradients = [numbers(7, seed=k) * (1 if k < 7 else 0.01) for k in range(1, 13)]
    one, other = (walked(kind(beta2=0.6), numbers(7), gradients, 0.05) for kind in (ClientAdam, AMSGrad))
    assert (one - other).abs().max() > 1e-3


def test_lamb_by_hand():
    """Layers (3, 4) of norm 5 and (0) ; b1 = b2 = 0, eps = 0: r = sign(g), |u| = sqrt 2 and 1.

    The first layer moves by 0.1 * 5 along (1, -1) / sqrt 2; the second has no norm and takes u = 1 as it is.
    """
    theta, g = torch.tensor([3.0, 4.0, 0.0], dtype=torch.float64), torch.tensor([2.0, -7.0, 0.5], dtype=torch.float64)
    lamb = Lamb(beta1=0.0, beta2=0.0, eps=0.0)
    moved = walked(lamb, theta, [g], 0.1, Layers((2, 1), (3,)))
    torch.testing.assert_close(moved, theta - torch.tensor([0.5 / 2**0.5, -0.5 / 2**0.5, 0.1], dtype=torch.float64))
    whole = walked(lamb.model_copy(update={"layer": "module"}), theta, [g], 0.1, Layers((2, 1), (3,)))
    torch.testing.assert_close(whole, theta - 0.5 / 3**0.5 * g.sign())


def test_lamb_is_adam_with_lengths_set_layer_by_layer():
    """Against an independent loop over a list of tensors, with weight decay, over five steps."""
    theta, lr, decay = numbers(7), 0.03, 0.1
    gradients = [numbers(7, seed=k) for k in range(1, 6)]
    tensors = [part.clone() for part in theta.split(LAYERS.tensor)]
    moments = [(torch.zeros_like(t), torch.zeros_like(t)) for t in tensors]
    for number, gradient in enumerate(gradients, 1):
        for at, g in enumerate(gradient.split(LAYERS.tensor)):
            m, v = (0.9 * moments[at][0] + 0.1 * g, 0.999 * moments[at][1] + 0.001 * g**2)
            moments[at] = m, v
            u = (m / (1 - 0.9**number)) / ((v / (1 - 0.999**number)).sqrt() + 1e-8) + decay * tensors[at]
            tensors[at] = tensors[at] - lr * tensors[at].norm() / u.norm() * u
    found = walked(Lamb(weight_decay=decay), theta, gradients, lr)
    torch.testing.assert_close(found, torch.cat(tensors), rtol=1e-10, atol=1e-12)


@given(st.integers(0, 10**6), st.sampled_from(["identity", "one", "clip"]))
def test_a_layerwise_step_has_the_length_that_phi_says(seed, phi):
    lamb = Lamb(phi=phi, **({"phi_min": 0.5, "phi_max": 1.0} if phi == "clip" else {}))
    params, along = numbers(7, seed=seed), numbers(7, seed=seed + 1)
    moved = lamb.scaled(params, along, LAYERS).split(LAYERS.tensor)
    for layer, step, u in zip(params.split(LAYERS.tensor), moved, along.split(LAYERS.tensor), strict=True):
        wanted = {"identity": layer.norm(), "one": torch.ones(()).double(), "clip": layer.norm().clamp(0.5, 1.0)}[phi]
        torch.testing.assert_close(step.norm(), wanted, rtol=1e-10, atol=0)
        torch.testing.assert_close(step / wanted, u / u.norm(), rtol=1e-10, atol=1e-12)


def test_no_direction_is_no_step_and_no_norm_is_trust_one():
    zero = torch.zeros(3, dtype=torch.float64)
    assert not layerwise(numbers(3), zero, (3,), lambda norm: norm).any()
    assert torch.equal(layerwise(zero, numbers(3), (3,), lambda norm: norm), numbers(3))
    assert layerwise(numbers(3), torch.tensor([1.0, float("nan"), 0.0]).double(), (3,), lambda n: n).isnan().any()


@pytest.mark.parametrize("optimizer", OPTIMISERS, ids=lambda o: o.name)
def test_rows_of_a_cohort_step_as_each_would_alone_and_under_vmap(optimizer):
    """The same function for (parameters,), for (clients, parameters), and mapped over clients; nothing is written."""
    params, grads = numbers(5, 7), numbers(5, 7, seed=1)
    state = {name: numbers(5, 7, seed=2 + k).abs() for k, name in enumerate(optimizer.holds)}
    before = [params.clone(), grads.clone(), *(value.clone() for value in state.values())]
    together, renewed = optimizer.step(params, grads, state, 0.1, 3, LAYERS)
    assert all(torch.equal(a, b) for a, b in zip(before, [params, grads, *state.values()], strict=True))
    mapped, mapped_state = torch.func.vmap(lambda p, g, s: optimizer.step(p, g, s, 0.1, 3, LAYERS))(
        params, grads, state
    )
    torch.testing.assert_close(mapped, together)
    for row in range(5):
        mine = {name: value[row] for name, value in state.items()}
        alone, kept = optimizer.step(params[row], grads[row], mine, 0.1, 3, LAYERS)
        torch.testing.assert_close(alone, together[row], rtol=1e-12, atol=1e-14)
        for name in optimizer.holds:
            torch.testing.assert_close(kept[name], renewed[name][row], rtol=1e-12, atol=1e-14)
            torch.testing.assert_close(mapped_state[name], renewed[name])


def test_a_shrinking_cohort_leaves_the_state_of_those_who_are_done():
    zero = torch.zeros(4, dtype=torch.float64)
    walk = Descent(AMSGrad(), numbers(3, 4), dict.fromkeys(AMSGrad.holds, zero.expand(3, 4)), lr=0.1)
    walk.step(numbers(2, 4, seed=1), 1, 2)
    walk.step(numbers(1, 4, seed=2), 2, 1)
    alone = Descent(AMSGrad(), numbers(3, 4)[1], dict.fromkeys(AMSGrad.holds, zero), lr=0.1)
    alone.step(numbers(2, 4, seed=1)[1], 1)
    torch.testing.assert_close(walk.y[1], alone.y)
    torch.testing.assert_close(walk.state["m"][1], alone.state["m"])
    assert torch.equal(walk.y[2], numbers(3, 4)[2])
    assert not walk.state["v"][2].any()


def chosen(model, optimizer, algorithm=None):
    base = replace(task(model), setting=TaskSetting(optimizer=optimizer))
    return base if algorithm is None else replace(base, algorithm=algorithm)


WORK = {"steps": (10, 0, 7, 2, 1), "model_indices": (0, 1, 1, 0, 1), "weights": (0.5, 1.0, 0.25, 2.0, 1.0), "lr": 0.02}


@pytest.mark.parametrize("engine", [VmapEngine, DenseBatchedEngine])
@pytest.mark.parametrize("name", ["mlp", "deep"])
@pytest.mark.parametrize(
    ("optimizer", "algorithm"),
    [
        *((optimizer, FedAvg()) for optimizer in OPTIMISERS),
        (ClientAdam(), Pulled()),
        (SGD(), FedAMS()),
        (SGD(), FedLAMB(weight_decay=0.1)),
        (ClientMomentum(), FedProx(mu=0.5)),
        (SGD(momentum=0.9, weight_decay=0.01, nesterov=True), FedAvg()),
        (SGD(weight_decay=0.05), FedProx(mu=0.5)),
    ],
    ids=lambda o: getattr(o, "name", ""),
)
def test_engines_agree_with_the_reference_for_every_optimizer(optimizer, algorithm, name, engine):
    """Unequal steps, unequal starts, dropout in the deep model; uploads other than the model's update too."""
    model = MODELS[name]
    sent = [{"x": initial(model, seed), "vhat": np.full(model.parameters, 1e-4, np.float32)} for seed in (1, 2)]
    training_task = chosen(model, optimizer, algorithm)
    one, many = (
        with_engine(e, training_task, samples(model)).learn(chunk(**WORK), sent) for e in (SequentialEngine, engine)
    )
    assert one.sums.keys() == many.sums.keys()
    for key, total in one.sums.items():
        assert np.abs(total).max() > 1e-4
        np.testing.assert_allclose(total, many.sums[key], rtol=2e-3, atol=2e-5 * np.abs(total).max())
    assert one.loss == pytest.approx(many.loss, rel=1e-4)


@pytest.mark.parametrize("algorithm", [FedAMS(), FedLAMB()], ids=lambda a: a.name)
def test_sequential_and_vmap_agree_on_the_papers_cnn_with_dropout(algorithm):
    model = LambCnn().build((1, 28, 28), 10)
    sent = [{"x": initial(model, 1), "vhat": np.full(model.parameters, 1e-4, np.float32)}]
    work = chunk((2, 0, 2, 1, 1), lr=0.01)
    one, many = (
        with_engine(e, chosen(model, SGD(), algorithm), samples(model)).learn(work, sent)
        for e in (SequentialEngine, VmapEngine)
    )
    for key, total in one.sums.items():
        np.testing.assert_allclose(total, many.sums[key], rtol=2e-3, atol=2e-4 * np.abs(total).max())


@pytest.mark.parametrize("optimizer", OPTIMISERS, ids=lambda o: o.name)
def test_a_client_has_the_same_bits_whoever_shares_its_chunk(optimizer):
    model = LambMlp().build((12,), 3)
    sent = [{"x": initial(model, 1)}]
    learn = with_engine(DenseBatchedEngine, chosen(model, optimizer), samples(model)).learn
    together = learn(chunk((6, 3, 9, 2, 5), weights=(1.0, 0.0, 0.0, 0.0, 0.0)), sent)
    pair = learn(chunk((6, 9), clients=(0, 2), weights=(1.0, 0.0)), sent)
    assert np.array_equal(together.sums["delta"], pair.sums["delta"])


@pytest.mark.parametrize(
    "wrong",
    [{"phi": "clip"}, {"phi_max": 2.0}, {"phi": "clip", "phi_min": 3.0, "phi_max": 2.0}, {"weight_decay": -1.0}],
)
def test_options_that_contradict_each_other_are_refused(wrong):
    with pytest.raises(ValidationError):
        Lamb(**wrong)
