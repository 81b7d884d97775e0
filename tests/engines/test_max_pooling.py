"""Maxima of windows and their gradient against torch's, to the bit, ties included."""

import pytest
import torch
from torch.nn import functional

from fedactors.engines import max_pooling


@pytest.mark.parametrize("values", [2, 1000])
def test_maxima_and_their_errors_are_those_of_torch_and_the_first_of_equals_wins(values):
    draws = torch.Generator().manual_seed(values)
    x = torch.randint(values, (3, 5, 6, 8), generator=draws).float().requires_grad_()
    wanted = functional.max_pool2d(x, 2)
    errors = torch.randn(wanted.shape, generator=draws)
    wanted.backward(errors)

    found = x.detach().permute(0, 2, 3, 1).contiguous()  # (3, 6, 8, 5)
    mine = found.view(3, 3, 2, 4, 2, 5)
    most, pairs = max_pooling.maxima(mine)
    assert torch.equal(most.permute(0, 3, 1, 2), wanted)
    max_pooling.spread(errors.permute(0, 2, 3, 1), mine, pairs)
    assert torch.equal(found.permute(0, 3, 1, 2), x.grad)
