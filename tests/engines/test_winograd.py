"""Winograd's convolutions against direct ones: exact in exact arithmetic, close in float32, and adjoint to one another.

Errors are relative to the largest entry. What is asserted of float32, 1e-5, is five times the largest error seen.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from fedactors.engines import winograd
from fedactors.models.layers import Conv

_CLOSE = 1e-5
SHAPES = st.tuples(*(st.integers(1, most) for most in (4, 40, 40)), st.integers(5, 19), st.integers(5, 19))


def _drawn(shape, padding, pooled, seed):
    """Return a layer, images, a kernel and errors of what comes of them, channels last."""
    samples, inputs, outputs, *sides = shape
    layer, draws = Conv(inputs, outputs, 3, padding), torch.Generator().manual_seed(seed)
    results = [side // (1 + pooled) for side in layer.output((inputs, *sides))[1:]]
    x = torch.randn(samples, inputs, *sides, generator=draws).contiguous(memory_format=torch.channels_last)
    errors = torch.randn(samples, outputs, *results, generator=draws).contiguous(memory_format=torch.channels_last)
    return layer, x, winograd.laid(torch.randn(outputs, inputs, 3, 3, generator=draws)), errors


def _direct(layer, x, weight, errors, *, pooled):
    """Return the results, the gradient of the kernel and the errors below, by autograd in float64."""
    x, weight = x.double().contiguous().requires_grad_(), weight.double().contiguous().requires_grad_()
    y = functional.conv2d(x, weight, padding=layer.border)
    y = functional.max_pool2d(y, 2) if pooled else y
    y.backward(errors.double())
    return y.detach(), weight.grad, x.grad


def _apart(found, wanted):
    assert found.shape == wanted.shape
    return float((found - wanted).abs().max() / wanted.abs().max())


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.sampled_from(["same", "valid"]), st.integers(0, 2**31))
def test_results_and_both_gradients_are_those_of_a_direct_convolution(shape, padding, seed):
    layer, x, weight, errors = _drawn(shape, padding, pooled=False, seed=seed)
    y, kept = winograd.forward(layer, x, weight, pooled=False)
    found = y, *winograd.backward(errors, kept, wanted=True)
    for mine, wanted in zip(found, _direct(layer, x, weight, errors, pooled=False), strict=True):
        assert _apart(mine, wanted) < _CLOSE


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.sampled_from(["same", "valid"]), st.integers(0, 2**31))
def test_maxima_are_those_of_the_results_and_their_errors_go_where_they_were_found(shape, padding, seed):
    layer, x, weight, errors = _drawn(shape, padding, pooled=True, seed=seed)
    results, kept = winograd.forward(layer, x, weight, pooled=False)
    most, kept_of_maxima = winograd.forward(layer, x, weight, pooled=True)
    wanted, places = functional.max_pool2d(results, 2, return_indices=True)
    assert torch.equal(most, wanted)
    spread = functional.max_unpool2d(errors, places, 2, output_size=results.shape[2:])
    for mine, same in zip(
        winograd.backward(errors, kept_of_maxima, wanted=True),
        winograd.backward(spread, kept, wanted=True),
        strict=True,
    ):
        assert torch.equal(mine, same)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_gradients_are_the_adjoints_of_the_forward_pass(padding):
    """<x * w, e> = <x, e below> = <w, slope>, as a convolution is linear in images and in its kernel."""
    layer, x, weight, errors = _drawn((3, 32, 64, 10, 13), padding, pooled=False, seed=1)
    y, kept = winograd.forward(layer, x, weight, pooled=False)
    slope, below = winograd.backward(errors, kept, wanted=True)
    found = [float((a.double() * b.double()).sum()) for a, b in ((y, errors), (x, below), (weight, slope))]
    scale = float((y.double() ** 2).sum().sqrt() * (errors.double() ** 2).sum().sqrt())
    assert found == pytest.approx([found[0]] * 3, abs=1e-6 * scale)


def test_transforms_are_exact_in_exact_arithmetic():
    """A^T [(G g) * (B^T d)] is the convolution of 6 values with 3 (Lavin & Gray 2016, equation 4)."""
    a, g, b = winograd.transforms()
    for value in torch.eye(6).double():
        for weight in torch.eye(3).double():
            wanted = (value.unfold(0, 3, 1) * weight).sum(1)
            torch.testing.assert_close(a @ ((g @ weight) * (b @ value)), wanted, rtol=0, atol=1e-14)


def test_a_batch_has_the_same_bits_every_time():
    layer, x, weight, errors = _drawn((5, 32, 64, 16, 16), "same", pooled=True, seed=2)
    passes = []
    for _ in range(3):
        y, kept = winograd.forward(layer, x, weight, pooled=True)
        passes.append((y, *winograd.backward(errors, kept, wanted=True)))
    assert all(torch.equal(one, first) for later in passes[1:] for one, first in zip(later, passes[0], strict=True))


@pytest.mark.parametrize(
    ("layer", "side", "pays"),
    [
        (Conv(32, 64, 3, "same"), 16, True),
        (Conv(32, 64, 3, "valid"), 28, True),
        (Conv(64, 64, 3, "same"), 8, True),
        (Conv(32, 64, 3, "valid"), 15, False),  # 13 x 13 results in tiles of 16 x 16
        (Conv(64, 64, 3, "valid"), 6, False),  # 4 x 4 results
        (Conv(32, 32, 3, "same"), 16, False),
        (Conv(3, 1000, 3, "same"), 32, False),
        (Conv(32, 64, 5, "same"), 16, False),
    ],
)
def test_it_is_used_where_there_are_channels_enough_and_tiles_fit(layer, side, pays):
    assert winograd.pays(layer, (layer.inputs, side, side)) is pays
