"""What a module of the user keeps from one pass for the next, and what it holds besides what it trains."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import vmap
from torch.nn import functional

from fedactors.errors import DataError
from fedactors.models import torch_modules
from fedactors.models.module_description import described
from fedactors.models.module_layer import InputSpec, ModuleMaker, scenario_seed
from fedactors.models.network import forward, initial, views
from fedactors.models.torch_modules import ready, written_buffers
from fedactors.own_code.held_values import content
from fedactors.own_code.user_code import Reference

STEP = 0
CPU = torch.device("cpu")


class Head(nn.Module):
    """What the modules below begin from."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(x.flatten(1))


class Listing(Head):
    """Notes a number of each batch in a list."""

    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(float(x.mean()))
        return self.out(x)


class Tallying(Head):
    """Counts batches in a dictionary of its class."""

    tally = {"batches": 0}  # noqa: RUF012 - as users write it

    def forward(self, x):
        self.tally["batches"] += 1
        return self.out(x)


class GlobalCounting(Head):
    """Counts batches in a global of its file."""

    def forward(self, x):
        global STEP  # noqa: PLW0603 - as users write it
        STEP += 1
        return self.out(x)


class EvaluationCounting(Head):
    """Counts batches in evaluation only."""

    count = 0

    def forward(self, x):
        self.count += not self.training
        return self.out(x)


class AlwaysDropping(Head):
    """Drops in evaluation too."""

    def forward(self, x):
        return self.out(functional.dropout(x, 0.5))


class Replacing(Head):
    """Puts a new tensor in the place of a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return self.out(x)


class Caching(Head):
    """Keeps what it has worked out once, and its last input."""

    def __init__(self):
        super().__init__()
        self.tables, self.last = {}, None

    def forward(self, x):
        self.last = x
        self.tables.setdefault(x.shape[1], torch.arange(x.shape[1]))
        return self.out(x * self.tables[x.shape[1]])


class Masked(nn.Module):
    """Attends to earlier places only, and normalises by statistics of batches."""

    def __init__(self):
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)
        self.norm, self.out = nn.BatchNorm1d(4), nn.Linear(4, 3)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(6))

    def forward(self, x):
        x = self.inner(x[..., None].expand(-1, -1, 4), src_mask=self.mask)
        return self.out(self.norm(x.mean(1)))


class Annealed(Head):
    """Halves a buffer in every third pass."""

    hot = 1.0

    def __init__(self):
        super().__init__()
        self.register_buffer("passes", torch.zeros(()))
        self.register_buffer("heat", torch.tensor(self.hot))

    def forward(self, x):
        if self.training:
            self.passes += 1
            self.heat *= torch.where(self.passes % 3 == 0, 0.5, 1.0)
        return self.out(x) / self.heat


class Endless(Annealed):
    """The same with a number that cannot be averaged."""

    hot = torch.inf


class Surprised(Head):
    """Changes a buffer for some samples only."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if x.max() > 100:
            self.seen += 1
        return self.out(x)


class Target(Head):
    """Has a frozen copy of what it trains, and frozen features drawn before."""

    def __init__(self):
        super().__init__()
        self.features = nn.Linear(6, 6).requires_grad_(False)
        self.target = copy.deepcopy(self.out).requires_grad_(False)
        self.register_buffer("places", torch.arange(6))

    def forward(self, x):
        return self.out(self.features(x)) - self.target(self.features(x))


class Scaled(Head):
    """Has a parameter that is one number."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return self.out(x) * self.scale


def model_of(found):
    reference = Reference(f"tests:{found.__name__}", __name__, found.__name__, None)
    return described(ModuleMaker(reference), (InputSpec("", (6,)),))


def tensors(model, seed=0):
    return views(model, torch.from_numpy(initial(model, seed)))


@pytest.mark.parametrize(
    ("keeping", "said"),
    [
        (Listing, "forward changes history, which is neither a parameter nor a saved buffer of floats"),
        (Tallying, "forward changes Tallying.tally, which"),
        (GlobalCounting, "forward changes the global STEP, which"),
        (EvaluationCounting, "forward changes count, which"),
        (AlwaysDropping, r"forward in evaluation returns something else .*F.dropout\(x, p, training=self.training\)"),
        (Replacing, r"forward replaces the buffer mean by another tensor .*self.mean.copy_\(...\)"),
        (Endless, r"the buffer heat holds inf \(accepted: finite numbers, .*persistent=False"),
    ],
)
def test_what_would_differ_from_one_pass_to_the_next_is_refused(keeping, said):
    with pytest.raises(DataError, match=said):
        model_of(keeping)


def test_what_is_worked_out_once_may_be_kept():
    assert model_of(Caching).parameters == 6 * 3 + 3


def test_a_causal_mask_is_no_part_of_the_model_and_statistics_are():
    """A mask holds -inf, which no average of clients can: it stays where it is."""
    model, x = model_of(Masked), torch.randn(5, 6)
    names = [tensor.name for tensor in model.tensors]
    assert "0.norm.running_var" in names
    assert "0.mask" not in names
    plain = Masked()
    assert model.parameters == sum(p.numel() for p in plain.parameters()) + 2 * 4
    mine = dict(zip([name.removeprefix("0.") for name in names], tensors(model), strict=True))
    plain.load_state_dict(mine, strict=False)
    assert torch.allclose(forward(model, tensors(model), x), plain.eval()(x), atol=1e-6)
    weights = [tensor.requires_grad_() for tensor in tensors(model)]
    loss = forward(model, weights, x, torch.tensor(0)).square().sum()
    assert all(part.isfinite().all() for part in torch.autograd.grad(loss, weights, materialize_grads=True))


def test_a_buffer_that_changes_later_moves_with_the_model():
    model, state = model_of(Annealed), tensors(model_of(Annealed))
    for _ in range(3):
        with written_buffers() as written:
            forward(model, state, torch.ones(2, 6), torch.tensor(0))
        state = [*state[:2], *written]
    assert [float(value) for value in written] == [3.0, 0.5]


def test_a_buffer_that_was_taken_for_a_constant_may_not_change():
    model = model_of(Surprised)
    assert [tensor.name for tensor in model.tensors] == ["0.out.weight", "0.out.bias"]
    with pytest.raises(DataError, match="forward changes the buffer seen, which it did not change when it was looked"):
        forward(model, tensors(model), torch.full((2, 6), 101.0), torch.tensor(0))
    torch_modules._made.cache_clear()


def test_frozen_parts_are_of_the_draw_that_first_values_are_from():
    """So a frozen copy equals what it is a copy of, and another seed has other frozen features."""
    found = {}
    for seed in (1, 2):
        token = scenario_seed.set(seed)
        (found[seed],) = model_of(Target).layers
        scenario_seed.reset(token)
    first, second = (layer.constants.arrays for layer in found.values())
    weights = torch_modules.initial(found[1], 1)[: 3 * 6].reshape(3, 6)
    assert np.array_equal(weights, first["target.weight"])
    assert not np.array_equal(first["features.weight"], second["features.weight"])
    assert np.array_equal(first["places"], np.arange(6))


def test_frozen_parts_are_where_the_samples_are():
    """The device "meta" has no values, but as "cuda" does, it takes no part of a module that is on another one."""
    model = model_of(Target)
    there = [tensor.to("meta") for tensor in tensors(model)]
    assert forward(model, there, torch.empty(2, 6, device="meta")).device.type == "meta"
    torch_modules._made.cache_clear()


def test_a_process_makes_a_module_before_vmap_runs_it():
    model = model_of(Target)
    torch_modules._made.cache_clear()
    ready(model, CPU)
    x, keys, mine = torch.ones(2, 4, 6), torch.tensor([1, 2]), tensors(model)
    assert vmap(lambda x, key: forward(model, mine, x, key))(x, keys).shape == (2, 4, 3)


def test_content_is_the_same_for_values_that_are_alike():
    held = {"a": [1, (2.0, {3})], "b": torch.tensor([torch.nan, -torch.inf]).bfloat16(), "c": np.array(["x"], object)}
    assert content(held) == content(copy.deepcopy(held))
    assert content(held) != content(held | {"a": [1, (2.0, {4})]})
    assert content(torch.zeros(2)) != content(torch.zeros(2, dtype=torch.float64))
    endless = []
    endless.append(endless)
    assert "list" in repr(content(endless))


def test_a_parameter_may_be_one_number():
    model, x = model_of(Scaled), torch.ones(2, 6)
    scale, *linear = tensors(model)
    assert scale.shape == ()
    assert torch.equal(forward(model, [scale, *linear], x), 2 * functional.linear(x, *linear))
