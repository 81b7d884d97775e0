"""Losses that a scenario names: against torch's, batch by batch, in both engines that compute any model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.engine_choice import choose
from fedactors.engines.local_work import LocalWork
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.errors import DataError
from fedactors.learning.training_task import TrainingData
from fedactors.models.layers import Flatten, dense, stack
from fedactors.models.loss_terms import made
from fedactors.models.losses import losses, mean_loss, weighted_loss
from fedactors.models.network import initial, views
from fedactors.models.task_losses import (
    BceLoss,
    CrossEntropyLoss,
    CtcLoss,
    HuberLoss,
    L1Loss,
    MseLoss,
    MultiLabelLoss,
    MultiMarginLoss,
    NllLoss,
    PoissonLoss,
    SmoothL1Loss,
    TorchLoss,
)
from fedactors.own_code.user_code import parse
from tests.engines.test_engines import chunk, samples, task, with_engine

WEIGHTS = (1.0, 2.0, 0.5, 0.0)
CLASSES = "classes"
PAIRS = [
    (CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss(label_smoothing=0.1), CLASSES),
    (CrossEntropyLoss(class_weights=WEIGHTS), nn.CrossEntropyLoss(torch.tensor(WEIGHTS)), CLASSES),
    (
        CrossEntropyLoss(class_weights=WEIGHTS, ignore_index=1),
        nn.CrossEntropyLoss(torch.tensor(WEIGHTS), ignore_index=1),
        CLASSES,
    ),
    (MultiMarginLoss(margin=0.5), nn.MultiMarginLoss(margin=0.5), CLASSES),
    (NllLoss(), nn.NLLLoss(), CLASSES),
    (MseLoss(), nn.MSELoss(), "values"),
    (L1Loss(), nn.L1Loss(), "values"),
    (HuberLoss(delta=0.3), nn.HuberLoss(delta=0.3), "values"),
    (SmoothL1Loss(beta=0.3), nn.SmoothL1Loss(beta=0.3), "values"),
    (PoissonLoss(), nn.PoissonNLLLoss(), "counts"),
    (BceLoss(), nn.BCEWithLogitsLoss(), "binary"),
    (BceLoss(pos_weight=3.0), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0)), "binary"),
    (MultiLabelLoss(), nn.MultiLabelSoftMarginLoss(), "labels"),
    (MultiLabelLoss(pos_weight=WEIGHTS), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(WEIGHTS)), "labels"),
]
NAMES = [loss.model_dump_json(exclude_none=True) for loss, _, _ in PAIRS]


def labels_of(kind, count=12, seed=1):
    draws = torch.Generator().manual_seed(seed)
    if kind == CLASSES:
        return torch.randint(0, 3, (count,), generator=draws)
    if kind == "binary":
        return torch.randint(0, 2, (count,), generator=draws)
    if kind == "labels":
        return torch.randint(0, 2, (count, 4), generator=draws).float()
    if kind == "counts":
        return torch.randint(0, 5, (count, 4), generator=draws).float()
    return torch.randn(count, 4, generator=draws)


def model_of(loss, kind):
    model = stack("net", (5,), Flatten(), dense(1 if kind == "binary" else 4))
    return replace(model, loss=loss.describe())


def batch(kind):
    return torch.randn(12, 5, generator=torch.Generator().manual_seed(0)), labels_of(kind)


@pytest.mark.parametrize(("loss", "theirs", "kind"), PAIRS, ids=NAMES)
def test_the_loss_of_a_batch_and_its_gradient_are_torchs(loss, theirs, kind):
    model = model_of(loss, kind)
    flat = torch.from_numpy(initial(model, 0)).requires_grad_()
    x, y = batch(kind)
    weight, bias = views(model, flat)
    outputs = x @ weight.T + bias
    wanted = theirs(outputs[:, 0], y.float()) if kind == "binary" else theirs(outputs, y)
    found = mean_loss(model, views(model, flat), x, y)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    gradients = [torch.autograd.grad(loss, flat, retain_graph=True)[0] for loss in (found, wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("loss", "theirs", "kind"), PAIRS, ids=NAMES)
def test_what_fills_up_a_batch_does_not_count(loss, theirs, kind):
    """Twelve samples, of which the last four have weight 0: the loss of the first eight."""
    model = model_of(loss, kind)
    tensors = views(model, torch.from_numpy(initial(model, 0)))
    x, y = batch(kind)
    weights = torch.tensor([1 / 8] * 8 + [0.0] * 4)
    torch.testing.assert_close(weighted_loss(model, tensors, x, y, weights), mean_loss(model, tensors, x[:8], y[:8]))


@pytest.mark.parametrize(("loss", "theirs", "kind"), PAIRS, ids=NAMES)
def test_engines_agree_under_every_loss(loss, theirs, kind):
    model = model_of(loss, kind)
    draws = torch.Generator().manual_seed(3)
    given = samples(model)
    x = torch.randn(len(given.x), 5, generator=draws).numpy()
    data = TrainingData(x, labels_of(kind, len(x)).numpy(), given.split)
    work = {
        "steps": (5, 0, 7, 2, 1), "model_indices": (0, 1, 1, 0, 1), "weights": (0.5, 1.0, 0.25, 2.0, 1.0), "lr": 0.05,
    }  # fmt: skip
    sent = [{"x": initial(model, seed)} for seed in (1, 2)]
    one, many = (
        with_engine(engine, task(model), data).learn(chunk(**work), sent) for engine in (SequentialEngine, VmapEngine)
    )
    delta = one.sums["delta"]
    assert np.abs(delta).max() > 1e-4
    np.testing.assert_allclose(delta, many.sums["delta"], rtol=2e-3, atol=2e-5 * np.abs(delta).max())
    assert one.loss == pytest.approx(many.loss, rel=1e-4)


@pytest.mark.parametrize("engine", [SequentialEngine, VmapEngine])
def test_samples_with_weights_count_by_them_in_their_batch(engine):
    """A client of three samples in batches of two, one step: the gradient of (3 l_1 + 1 l_2) / 4 at the start."""
    model = replace(stack("net", (5,), Flatten(), dense(1)), loss=MseLoss().describe())
    given = samples(model)
    y = labels_of("values", len(given.x))[:, 0]
    weights = torch.rand(len(y), generator=torch.Generator().manual_seed(4)) + 0.1
    data = TrainingData(given.x, y.numpy(), given.split, weights=weights.numpy())
    start = initial(model, 1)
    trainer = with_engine(engine, task(model), data)
    one = chunk((1,), clients=(2,), lr=0.1)
    delta = trainer.learn(one, [{"x": start}]).sums["delta"]
    chosen = torch.from_numpy(trainer._planner.first_batch(2, 2))
    flat = torch.from_numpy(start).requires_grad_()
    weight, bias = views(model, flat)
    apart = (torch.from_numpy(given.x)[chosen] @ weight.T + bias)[:, 0] - y[chosen]
    loss = (weights[chosen] * apart**2).sum() / weights[chosen].sum()
    wanted = -0.1 * torch.autograd.grad(loss, flat)[0]
    np.testing.assert_allclose(delta, wanted, rtol=1e-4, atol=1e-6)


def test_cross_entropy_without_options_is_what_fast_engines_know():
    assert CrossEntropyLoss().describe() == "cross_entropy"
    model = stack("net", (5,), Flatten(), dense(4))
    assert isinstance(choose(LocalWork(replace(model, loss=CrossEntropyLoss().describe())), "cpu"), DenseBatchedEngine)
    smooth = LocalWork(replace(model, loss=CrossEntropyLoss(label_smoothing=0.1).describe()))
    assert isinstance(choose(smooth, "cpu"), SequentialEngine)


def test_labels_of_sequences_that_are_ignored_do_not_count():
    """Places count one by one, however many of them a sample has: torch's mean over all that count."""
    loss = CrossEntropyLoss(ignore_index=-100).describe()
    model = replace(stack("net", (5,), Flatten(), dense(4)), loss=loss)
    outputs = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0))
    y = torch.randint(0, 4, (3, 6), generator=torch.Generator().manual_seed(1))
    y[0, 2:] = -100
    from fedactors.models.loss_terms import terms

    found = terms(model.loss, outputs, y).mean(torch.full((3,), 1 / 3))
    torch.testing.assert_close(found, nn.CrossEntropyLoss()(outputs.flatten(0, 1), y.flatten()))


def test_ctc_is_torchs():
    from fedactors.models.loss_terms import terms

    outputs = torch.randn(3, 9, 5, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([[1, 2, 3, -1], [4, -1, -1, -1], [2, 2, 1, 4]])
    logs, lengths = outputs.log_softmax(-1).transpose(0, 1), torch.tensor([3, 1, 4])
    wanted = nn.CTCLoss()(logs, y.clamp(min=0), torch.tensor([9, 9, 9]), lengths)
    found = terms(CtcLoss().describe(), outputs, y).mean(torch.full((3,), 1 / 3))
    torch.testing.assert_close(found, wanted)
    gradients = torch.autograd.grad(
        terms(CtcLoss().describe(), outputs.requires_grad_(), y).mean(torch.full((3,), 1 / 3)), outputs
    )
    assert gradients[0].isfinite().all()


OWN = """
import torch
from torch import nn

def per_sample(outputs, labels, power=2.0):
    return (outputs[:, 0] - labels).abs() ** power

def whole(outputs, labels):
    return ((outputs[:, 0] - labels) ** 2).mean()

class Huber(nn.Module):
    def __init__(self, delta):
        super().__init__()
        self.inner = nn.HuberLoss(delta=delta)

    def forward(self, outputs, labels):
        return self.inner(outputs[:, 0], labels)

def wrong(outputs, labels):
    return outputs

def broken(outputs, labels):
    return outputs @ labels
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "losses.py").write_text(OWN)
    return lambda name, **arguments: TorchLoss(factory=parse(f"losses.py:{name}", tmp_path), arguments=arguments)


def test_a_loss_of_the_user_may_be_a_function_or_a_class_and_give_one_number_or_many(own):
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    y = torch.randn(8, generator=torch.Generator().manual_seed(1))
    model = replace(stack("net", (5,), Flatten(), dense(1)))
    tensors = views(model, torch.from_numpy(initial(model, 0)))
    outputs = x @ tensors[0].T + tensors[1]
    square = nn.MSELoss()(outputs[:, 0], y)
    cases = [
        (own("per_sample"), square),
        (own("whole"), square),
        (own("per_sample", power=1.0), nn.L1Loss()(outputs[:, 0], y)),
        (own("Huber", delta=0.2), nn.HuberLoss(delta=0.2)(outputs[:, 0], y)),
    ]
    for loss, wanted in cases:
        described = replace(model, loss=loss.describe())
        torch.testing.assert_close(mean_loss(described, tensors, x, y), wanted)
        assert losses(described, tensors, x, y).shape == (8,)
    assert not VmapEngine().supports(LocalWork(described), "cpu")
    assert isinstance(choose(LocalWork(described), "cuda"), SequentialEngine)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("wrong", {}, "returned (8, 1) for 8 samples"),
        ("Huber", {}, "missing 1 required positional argument: 'delta'"),
        ("nothing", {}, "has no nothing"),
    ],
)
def test_a_loss_of_the_user_that_cannot_be_is_one_message(own, name, arguments, says):
    loss = own(name, **arguments).describe()
    model = replace(stack("net", (5,), Flatten(), dense(1)), loss=loss)
    tensors = views(model, torch.from_numpy(initial(model, 0)))
    with pytest.raises(DataError) as refused:
        mean_loss(model, tensors, torch.zeros(8, 5), torch.zeros(8))
    assert says in str(refused.value)
    assert "losses.py" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_descriptions_of_equal_losses_are_equal(own):
    assert own("whole").describe() == own("whole").describe()
    assert HuberLoss(delta=2.0).describe() != HuberLoss().describe()
    assert Path(str(own("whole").describe()).split(":")[0]).name == "losses.py"
    made.cache_clear()
