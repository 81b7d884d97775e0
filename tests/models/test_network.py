from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from fedactors.models.layers import Conv, Dense, Dropout, Flatten, Model, Pool, Relu, conv, dense, stack
from fedactors.models.network import forward, initial, views
from fedactors.models.paper_models import (
    FslCifar,
    FslEmnist,
    LambCifarCnn,
    LambCnn,
    LambMlp,
    Logistic,
    McmahanCnn,
    Mlp,
    ResNet9,
    TwoNN,
)
from fedactors.models.residual import GroupNorm, Residual, group_norm, residual

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
MODELS = [
    Logistic(init="uniform").build((60,), 10),
    Mlp(hidden=(7, 5), dropout=0.3).build((1, 4, 4), 3),
    TwoNN().build(MNIST, 10),
    LambMlp().build(MNIST, 10),
    LambCnn().build(MNIST, 10),
    LambCifarCnn().build(CIFAR, 10),
    McmahanCnn().build(MNIST, 10),
    FslEmnist().build(MNIST, 47),
    FslCifar().build(CIFAR, 10),
    ResNet9().build(CIFAR, 10),
]
RESIDUAL = stack(
    "small residual",
    (2, 6, 6),
    conv(4, 3, "same"),
    group_norm(2),
    residual(conv(4, 3, "same"), group_norm(4), Relu()),
    Flatten(),
    Dropout(0.3),
    dense(3),
)
SMALL = [MODELS[1], LambCnn().build(MNIST, 10), RESIDUAL]


def identify(model):
    return model.name


class Block(nn.Sequential):
    """A residual block as PyTorch's users would write it."""

    def forward(self, x):
        return x + super().forward(x)


def sequential(model, kind=nn.Sequential):
    """Return the module that PyTorch's users would write."""
    modules = {
        Dense: lambda layer: nn.Linear(layer.inputs, layer.outputs),
        Conv: lambda layer: nn.Conv2d(layer.inputs, layer.outputs, layer.kernel, padding=layer.padding),
        Pool: lambda layer: nn.MaxPool2d(layer.size),
        Relu: lambda layer: nn.ReLU(),
        Flatten: lambda layer: nn.Flatten(),
        Dropout: lambda layer: nn.Dropout(layer.rate),
        GroupNorm: lambda layer: nn.GroupNorm(layer.groups, layer.channels),
        Residual: lambda layer: sequential(layer, Block),
    }
    return kind(*(modules[type(layer)](layer) for layer in model.layers))


def parameters(model, seed=0):
    return torch.from_numpy(initial(model, seed))


def samples(model, *lead, seed=0):
    return torch.rand(*lead, *model.input_shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("model", [*MODELS, RESIDUAL], ids=identify)
def test_forward_is_what_the_equivalent_module_computes(model):
    tensors, module = views(model, parameters(model)), sequential(model).eval()
    names = [tensor.name for tensor in model.tensors]
    assert names == list(module.state_dict())
    module.load_state_dict(dict(zip(names, tensors, strict=True)))
    x = samples(model, 4)
    with torch.no_grad():
        torch.testing.assert_close(forward(model, tensors, x), module(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("model", [*MODELS, RESIDUAL], ids=identify)
def test_gradients_are_those_of_the_equivalent_module(model):
    tensors, module = views(model, parameters(model)), sequential(model).eval()
    names = [tensor.name for tensor in model.tensors]
    x, y = samples(model, 3), torch.tensor([0, 1, 2])
    ours = grad(lambda t: cross_entropy(forward(model, t, x), y))(tensors)
    call = grad(lambda t: cross_entropy(functional_call(module, t, x), y))
    theirs = call(dict(zip(names, tensors, strict=True)))
    for mine, name in zip(ours, names, strict=True):
        torch.testing.assert_close(mine, theirs[name], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("model", SMALL, ids=identify)
def test_a_cohort_is_its_clients_one_by_one(model):
    clients = 3
    flat = torch.stack([parameters(model, seed) for seed in range(clients)])
    x, y = samples(model, clients, 5), torch.tensor([[0, 1, 2, 0, 1]] * clients)
    keys, step = torch.tensor([5, -7, 2**62]), torch.tensor([0, 1, 2])

    def gradient(vector, x, y, key, step):
        return grad(lambda v: cross_entropy(forward(model, views(model, v), x, key, step), y))(vector)

    together = vmap(gradient)(flat, x, y, keys, step)
    for i in range(clients):
        alone = gradient(flat[i], x[i], y[i], keys[i], int(step[i]))
        assert alone.abs().max() > 0
        torch.testing.assert_close(together[i], alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model", SMALL, ids=identify)
def test_dropout_acts_only_with_a_key_and_changes_with_the_step(model):
    tensors, x = views(model, parameters(model)), samples(model, 5)
    key = torch.tensor(3)
    off, first, again = (
        forward(model, tensors, x),
        forward(model, tensors, x, key),
        forward(model, tensors, x, key, 0),
    )
    assert torch.equal(first, again)
    assert not torch.equal(off, first)
    assert not torch.equal(first, forward(model, tensors, x, key, 1))


def test_views_share_memory_with_the_flat_vector():
    model = SMALL[0]
    flat = torch.zeros(4, model.parameters)
    cohort, row = views(model, flat), views(model, flat[2])
    assert [tuple(v.shape) for v in cohort] == [(4, *t.shape) for t in model.tensors]
    assert [tuple(v.shape) for v in row] == [t.shape for t in model.tensors]
    flat[2] = torch.arange(model.parameters)
    assert torch.equal(torch.cat([v.flatten() for v in row]), flat[2])
    assert all(torch.equal(a[2], b) for a, b in zip(cohort, row, strict=True))
    cohort[0][2, 0, 0] = -5
    assert flat[2, 0] == row[0][0, 0] == -5


def test_initial_weights_fill_the_interval_of_each_layer():
    model = TwoNN().build(MNIST, 10)
    tensors = views(model, parameters(model, seed=4))
    for tensor, spec in zip(tensors, model.tensors, strict=True):
        bound = spec.fan_in**-0.5
        assert tensor.abs().max() <= bound
        assert tensor.abs().max() > 0.8 * bound
        assert abs(tensor.mean()) < 4 * bound / (3 * tensor.numel()) ** 0.5


def test_normalisations_start_from_one_and_zero():
    tensors = dict(zip((spec.name for spec in RESIDUAL.tensors), views(RESIDUAL, parameters(RESIDUAL)), strict=True))
    assert list(tensors) == ["0.weight", "0.bias", "1.weight", "1.bias"] + [
        f"2.{n}.{w}" for n in (0, 1) for w in ("weight", "bias")
    ] + ["5.weight", "5.bias"]
    assert all((tensors[f"{at}.weight"] == 1).all() for at in ("1", "2.1"))
    assert not any(tensors[f"{at}.bias"].any() for at in ("1", "2.1"))
    assert tensors["2.0.weight"].std() > 0


def test_initial_weights_are_float32_and_depend_on_the_seed_only():
    model = TwoNN().build(MNIST, 10)
    drawn = [initial(model, seed) for seed in (0, 0, 1)]
    assert drawn[0].dtype == np.float32
    assert drawn[0].shape == (model.parameters,)
    assert np.array_equal(drawn[0], drawn[1])
    assert all(not np.array_equal(a, b) for a, b in pairwise(drawn[1:]))


def test_softmax_regression_starts_from_zero_unless_asked():
    assert not initial(Logistic().build((60,), 10), 0).any()
    assert initial(Logistic(init="uniform").build((60,), 10), 0).all()


@pytest.mark.parametrize("model", MODELS, ids=identify)
def test_torch_counts_the_floating_point_operations_that_the_description_states(model):
    module, x = sequential(model), samples(model, 3)
    with FlopCounterMode(display=False) as counter:
        answer = module(x)
    assert counter.get_total_flops() == 3 * model.forward_flops
    with FlopCounterMode(display=False) as counter:
        answer.sum().backward()
    assert counter.get_total_flops() == 3 * (model.flops - model.forward_flops)


def test_maxima_before_a_relu_give_the_bits_of_the_order_in_the_model():
    """Windows without a positive value, and those with equal ones, have the same gradients either way."""
    model = Model("small", (1, 6, 6), (Conv(1, 3, 3, "same"), Relu(), Pool(2), Flatten(), Dense(27, 2)))
    draws = torch.Generator().manual_seed(0)
    tensors = [torch.randn(spec.shape, generator=draws).requires_grad_() for spec in model.tensors]
    x = torch.randn(50, 1, 6, 6, generator=draws).round()
    weight, bias, dense, last = tensors
    plain = functional.conv2d(x, weight, bias, padding=1).relu()
    expected = functional.linear(functional.max_pool2d(plain, 2).flatten(1), dense, last)
    found = forward(model, tensors, x)
    assert torch.equal(found, expected)
    for one, other in zip(
        *(torch.autograd.grad(out.square().sum(), tensors) for out in (found, expected)), strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("build", [FslCifar, FslEmnist, McmahanCnn, LambCnn, TwoNN, LambMlp])
def test_glorot_draws_weights_as_keras_does_and_no_biases(build):
    model = build(init="glorot").build(CIFAR if build is FslCifar else MNIST, 10)
    for spec, value in zip(model.tensors, views(model, torch.from_numpy(initial(model, 3))), strict=True):
        if value.ndim == 1:
            assert not value.any(), spec.name
            continue
        kernel = value[0, 0].numel()
        deviation = nn.init.xavier_uniform_(torch.empty_like(value), generator=torch.Generator().manual_seed(1)).std()
        bound = (6 / (kernel * (value.shape[0] + value.shape[1]))) ** 0.5
        assert value.abs().max() <= bound
        assert value.std() == pytest.approx(float(deviation), rel=0.1), spec.name


def test_glorot_is_another_draw_and_uniform_the_default():
    first, glorot = (initial(Mlp(hidden=(7,), init=init).build((3,), 2), 1) for init in ("uniform", "glorot"))
    assert np.array_equal(first, initial(Mlp(hidden=(7,)).build((3,), 2), 1))
    assert not np.array_equal(first, glorot)
    assert not np.array_equal(glorot, initial(Mlp(hidden=(7,), init="glorot").build((3,), 2), 2))
