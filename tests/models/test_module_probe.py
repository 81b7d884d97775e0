"""What is seen of a user's module by running it: where it draws, what it keeps, mixes, and does besides its layers."""

import random
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from fedactors.errors import DataError
from fedactors.models.module_description import described
from fedactors.models.module_layer import InputSpec, ModuleLayer, ModuleMaker
from fedactors.models.network import forward, initial, views
from fedactors.models.torch_modules import held, made
from fedactors.models.user_models import TorchvisionModel
from fedactors.own_code.user_code import Reference

NUMBERS = InputSpec("", (6,))
WORDS = InputSpec("", (5,), True)


class Head(nn.Module):
    """What the modules below begin from."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(x.flatten(1))


class PaddedDropout(nn.Module):
    """Dropout right behind a table whose first row, of zeros, is the padding."""

    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(10, 8, padding_idx=0), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(functional.dropout(self.table(x), 0.5, self.training).mean(1))


class LayerDrop(Head):
    """Draws in each pass, but seldom does anything else for it."""

    def forward(self, x):
        return self.out(x * 2 if self.training and torch.rand(()) < 0.1 else x)


class DataDraws(Head):
    """Draws only where the data say so."""

    def forward(self, x):
        return self.out(x * torch.rand(6) if self.training and x.max() > 100 else x)


class BatchDraws(Head):
    """Draws only in large batches, so that vmap can run it on small ones."""

    def forward(self, x):
        return self.out(functional.dropout(x, 0.5, self.training) if len(x) > 3 else x)


class Counting(Head):
    """Counts its batches in a buffer of integers."""

    persistent = True

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64), persistent=self.persistent)

    def forward(self, x):
        self.steps += int(self.training)
        return self.out(x) * self.steps.clamp(max=10)


class FloatCounting(Counting):
    """Counts them in a buffer that is not saved."""

    persistent = False

    def __init__(self):
        super().__init__()
        self.steps = self.steps.float()


class PlainCounting(Head):
    """Counts them in an attribute."""

    step = 0

    def forward(self, x):
        self.step += 1
        return self.out(x)


class Hidden(Head):
    """Keeps what it is given in a list."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x)
        return self.out(x) * len(self.seen)


class OtherDraws(Head):
    """Draws from a generator that no run seeds."""

    def forward(self, x):
        return self.out(x * random.random())


class Noting(nn.Module):
    """Has counters of batches that count for nothing, notes its last activations, and moves saved floats."""

    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.BatchNorm1d(6), nn.Linear(6, 3)
        self.register_buffer("moving", torch.zeros(3))
        self.last, self.size = None, 0

    def forward(self, x):
        self.last, self.size = self.norm(x), len(x)
        out = self.out(self.last)
        self.moving += out.detach().mean(0)
        return out


class EvalBranch(Head):
    """A chain of layers in training, with a correction in evaluation."""

    def forward(self, x):
        x = self.out(x.flatten(1))
        return x if self.training else x - torch.tensor([0.0, 5.0, 0.0])


class Hooked(Head):
    """A chain of layers with a hook on one of them."""

    def __init__(self):
        super().__init__()
        self.out.register_forward_hook(lambda module, args, out: out * 100)


class GradientHooked(Head):
    """A chain of layers with a hook that changes gradients only."""

    def __init__(self):
        super().__init__()
        self.out.register_forward_hook(lambda module, args, out: Doubled.apply(out))


class Doubled(torch.autograd.Function):
    """Returns what it is given, with twice its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class TokenNorm(nn.Module):
    """Normalises over the batch what identifiers stand for."""

    rows = 10

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.out = nn.Embedding(self.rows, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.table(x).mean(1))))


class OneToken(TokenNorm):
    """The same with a table of one row, so that all samples are alike."""

    rows = 1


class OwnNorm(TokenNorm):
    """Normalises by its own code."""

    def forward(self, x):
        x = self.table(x).mean(1)
        return self.out(x - x.mean(0))


class Auxiliary(Head):
    """Has further outputs in training."""

    def forward(self, x):
        return (self.out(x), x) if self.training else self.out(x)


class Wider(Head):
    """Has wider outputs in training."""

    def forward(self, x):
        return self.out(x).repeat(1, 1 + self.training)


def model_of(found, inputs=NUMBERS):
    reference = Reference(f"tests:{found.__name__}", __name__, found.__name__, None)
    return described(ModuleMaker(reference), (inputs,))


def outputs(model, x, key, step, seeds=40):
    """Return the outputs of one batch, key and step, torch's generator seeded otherwise before each."""
    tensors, found = views(model, torch.from_numpy(initial(model, 0))), []

    def run():
        for seed in range(seeds):
            torch.manual_seed(seed)
            found.append(forward(model, tensors, x, torch.tensor(key), step).detach())

    held(model, tensors, run)
    return found


@pytest.mark.parametrize("drawing", [PaddedDropout, LayerDrop, DataDraws, BatchDraws])
def test_what_a_module_draws_depends_on_key_and_step_only(drawing):
    """However seldom it draws, and whatever the samples are by which it is looked at."""
    words = drawing is PaddedDropout
    model = model_of(drawing, WORDS if words else NUMBERS)
    assert model.layers[0].vmappable is (drawing is BatchDraws)
    x = torch.randint(1, 10, (4, 5)).float() if words else torch.full((4, 6), 101.0)
    same = outputs(model, x, key=7, step=3)
    assert all(torch.equal(one, same[0]) for one in same)
    others = [outputs(model, x, key=7, step=step, seeds=1)[0] for step in range(60)]
    assert not all(torch.equal(one, same[0]) for one in others)


def test_torchs_generator_goes_on_as_if_no_module_had_drawn():
    model = model_of(PaddedDropout, WORDS)
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    forward(model, views(model, torch.from_numpy(initial(model, 0))), torch.ones(2, 5), torch.tensor(1), 0)
    assert torch.equal(torch.randn(3), expected)


@pytest.mark.parametrize(
    ("keeping", "said"),
    [
        (Counting, "forward changes steps, which is neither a parameter nor a saved buffer of floats"),
        (FloatCounting, "forward changes steps"),
        (PlainCounting, "forward changes step, which"),
        (Hidden, "forward changes seen, which"),
        (OtherDraws, "accepted: random numbers of torch's own generator"),
    ],
)
def test_a_module_that_keeps_what_no_model_holds_is_refused(keeping, said):
    """Twice: it is made anew each time it is looked at."""
    for _ in range(2):
        with pytest.raises(DataError, match=said):
            model_of(keeping)


def test_what_says_nothing_of_earlier_batches_may_be_noted():
    model = model_of(Noting)
    assert [tensor.name.rpartition(".")[2] for tensor in model.tensors][-1] == "running_var"
    assert any(tensor.name.endswith("moving") for tensor in model.tensors)


@pytest.mark.parametrize("more", [EvalBranch, Hooked, GradientHooked])
def test_what_does_more_than_its_layers_is_run_as_it_is(more):
    model, x = model_of(more), torch.randn(4, 6)
    (layer,) = model.layers
    assert isinstance(layer, ModuleLayer)
    tensors = views(model, torch.from_numpy(initial(model, 0)))
    named = dict(zip([spec.name for spec in layer.specs()], tensors, strict=True))
    assert torch.equal(forward(model, tensors, x), functional_call(made(layer).eval(), named, (x,)))
    assert not isinstance(model_of(Head).layers[0], ModuleLayer)


@pytest.mark.parametrize("normed", [TokenNorm, OneToken, OwnNorm])
def test_samples_of_identifiers_depend_on_their_batch_where_it_is_normalised(normed):
    (layer,) = model_of(normed, WORDS).layers
    assert layer.mixes


@pytest.mark.parametrize(("wrong", "found"), [(Auxiliary, "tuple"), (Wider, r"shape \(4, 6\)|shape \(2, 6\)")])
def test_other_outputs_in_training_are_one_message(wrong, found):
    with pytest.raises(DataError, match=f"forward in training mode returned ({found}) .accepted: a tensor of shape"):
        model_of(wrong)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torchvision") is None, reason="no torchvision")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_classifier_of_torchvision_with_further_heads_is_told_how_to_go_without():
    with pytest.raises(DataError, match=r"returned GoogLeNetOutputs .*arguments: {aux_logits: false}"):
        TorchvisionModel(arch="googlenet", arguments={"init_weights": False}).build((3, 32, 32), 10)
    model = TorchvisionModel(arch="googlenet", arguments={"init_weights": False, "aux_logits": False})
    assert np.prod(model.build((3, 32, 32), 10).output_shape) == 10
