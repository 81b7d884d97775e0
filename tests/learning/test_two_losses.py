"""Weighted and second losses in every engine, other losses than cross entropy, and what is measured on two sources."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch import nn
from torchmetrics.functional.classification import binary_auroc, multiclass_accuracy

from fedactors.algorithms.example_transfer import ExampleTransfer
from fedactors.algorithms.fedavg import FedAvg
from fedactors.data.base import LabelledSamples
from fedactors.data.partitions.label_split import LabelSplit
from fedactors.data.sets.digits import Digits
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.dissimilarity import gradient_sum, mixed_dissimilarity
from fedactors.learning.evaluation import EvaluationSet, ModelEvaluator, auc
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import ServerExamples
from fedactors.models.losses import scores, spreadout
from fedactors.models.mixed_models import DualEncoder, SmileFc
from fedactors.models.network import forward, initial, views
from fedactors.models.paper_models import LeastSquares, Mlp
from fedactors.models.task_losses import CrossEntropyLoss
from fedactors.optim.server_optimizers import ServerMomentum
from fedactors.workload import workload
from tests.engines.test_engines import MODELS, chunk, samples, task, with_engine


class Half(FedAvg):
    """Clients whose loss weighs a half."""

    loss_weight: ClassVar[float] = 0.5


@pytest.mark.parametrize("engine", [SequentialEngine, VmapEngine, DenseBatchedEngine])
def test_half_the_loss_at_twice_the_rate_is_the_same_path(engine):
    model = MODELS["dropout"]
    sent, work = [{"x": initial(model, 1)}], (10, 0, 7, 2, 1)
    whole = with_engine(engine, task(model), samples(model)).learn(chunk(work, lr=0.1), sent)
    half = replace(task(model), algorithm=Half())
    slow = with_engine(engine, half, samples(model)).learn(chunk(work, lr=0.2), sent)
    np.testing.assert_allclose(slow.sums["delta"], whole.sums["delta"], rtol=1e-5, atol=1e-7)
    assert slow.loss == pytest.approx(whole.loss, rel=1e-6), "the loss is told as it is, unweighted"


def both_losses(engine, weight, loss="cross_entropy", name="mlp"):
    """A chunk trained on its own and on central samples: all of those in every step."""
    model = replace(MODELS[name], loss=loss)
    data, further = samples(model), samples(model, seed=9)
    data = replace(data, central=ServerExamples(LabelledSamples(further.x[:6], further.y[:6]), 6))
    algorithm = ExampleTransfer(central_weight=weight)
    training_task = replace(task(model), algorithm=algorithm)
    trained = with_engine(engine, training_task, data).learn(chunk((10, 1, 7, 2, 1)), [{"x": initial(model, 1)}])
    return trained.sums["delta"], data, training_task


@pytest.mark.parametrize(
    "loss",
    [
        CrossEntropyLoss(),
        CrossEntropyLoss(label_smoothing=0.2),
        CrossEntropyLoss(class_weights=(1.0, 5.0, 0.5)),
        CrossEntropyLoss(ignore_index=1),
    ],
    ids=lambda loss: loss.model_dump_json(exclude_none=True),
)
def test_engines_agree_on_two_losses(loss):
    engines = SequentialEngine, VmapEngine
    one, many = (both_losses(engine, 0.3, loss.describe(), "dropout")[0] for engine in engines)
    np.testing.assert_allclose(one, many, rtol=1e-4, atol=1e-5)


def test_two_losses_are_the_weighted_sum_in_torch():
    """A step of client 3, who holds one sample: w_f times its gradient and w_c times that of the central samples."""
    model = MODELS["mlp"]
    _, data, training_task = both_losses(SequentialEngine, 0.3)
    found = with_engine(SequentialEngine, training_task, data).learn(
        chunk((1,), clients=(3,)), [{"x": initial(model, 1)}]
    )
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    nn.utils.vector_to_parameters(torch.from_numpy(initial(model, 1)), net.parameters())
    own = torch.from_numpy(data.split.of(3))
    loss = 0.7 * nn.functional.cross_entropy(net(torch.from_numpy(data.x)[own]), torch.from_numpy(data.y)[own])
    (x, y, _), _ = data.central
    (loss + 0.3 * nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y))).backward()
    expected = -0.1 * torch.cat([p.grad.flatten() for p in net.parameters()])
    np.testing.assert_allclose(found.sums["delta"], expected, rtol=1e-4, atol=1e-6)


def test_the_central_learner_takes_weighted_and_corrected_steps_with_any_optimiser():
    """Plain SGD through the engine against Momentum with beta = 0, which goes through gradients."""
    model, data = MODELS["mlp"], samples(MODELS["mlp"])
    central = CentralLearner(model, 3, LabelledSamples(data.x, data.y))
    x, work = torch.from_numpy(initial(model, 1)), workload(len(data.y), 9, epochs=None, steps=12)
    along = torch.linspace(-0.1, 0.1, len(x))
    plain = central.learn(x, 0.2, work, 4, weight=0.4, correction=along)
    other = central.learn(x, 9.0, work, 4, weight=0.4, correction=along, optimizer=ServerMomentum(lr=0.2, beta=0.0))
    torch.testing.assert_close(plain, other, rtol=1e-4, atol=1e-6)
    once = workload(len(data.y), 9, epochs=None, steps=1)
    stepped = central.learn(x, 0.2, once, 4)
    torch.testing.assert_close(x - 0.2 * central.sample(x, once, 4), stepped, rtol=1e-5, atol=1e-6)


def test_the_squared_loss_is_that_of_torch_in_every_engine_that_takes_it():
    """Half the sum of squares: nn.MSELoss divides by the outputs, too."""
    model = LeastSquares().build((12,), 3)
    data, start = samples(model), [{"x": initial(model, 1)}]
    assert not start[0]["x"].any()
    work = chunk((10, 0, 7, 2, 1))
    one, many = (with_engine(engine, task(model), data).learn(work, start) for engine in (SequentialEngine, VmapEngine))
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-5, atol=1e-6)
    assert one.loss == pytest.approx(many.loss, rel=1e-5)
    first, net, mine = Trainer(task(model), data).learn(chunk((1,), (3,)), start), nn.Linear(12, 3), data.split.of(3)
    nn.utils.vector_to_parameters(torch.zeros(39), net.parameters())
    wanted = nn.functional.one_hot(torch.from_numpy(data.y[mine]), 3).float()
    loss = nn.functional.mse_loss(net(torch.from_numpy(data.x[mine])), wanted) * 3 / 2
    loss.backward()
    assert first.loss == pytest.approx(loss.item())
    gradient = torch.cat([p.grad.flatten() for p in net.parameters()])
    np.testing.assert_allclose(first.sums["delta"], -0.1 * gradient, rtol=1e-5, atol=1e-7)


def test_spreadout_is_the_mean_squared_cosine_over_pairs():
    table = torch.randn(7, 3, generator=torch.Generator().manual_seed(1))
    cosine = nn.functional.cosine_similarity
    pairs = [float(cosine(table[a], table[b], dim=0)) ** 2 for a in range(7) for b in range(7) if a != b]
    assert float(spreadout(table)) == pytest.approx(sum(pairs) / len(pairs), rel=1e-5)
    assert float(spreadout(torch.eye(4))) == pytest.approx(0.0, abs=1e-7)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40))
def test_auc_is_that_of_scikit_learn(drawn):
    margins, positive = (np.array(column) for column in zip(*drawn, strict=True))
    if 0 < positive.sum() < len(positive):
        assert auc(margins.astype(float), positive) == pytest.approx(roc_auc_score(positive, margins))


@pytest.mark.parametrize("kind", ["smiles", "movies"])
def test_measures_are_those_of_torchmetrics(kind):
    """Accuracy, AUC of two labels, and recall@10 with one movie to be found; 200 samples."""
    draws = np.random.default_rng(2)
    if kind == "smiles":
        model, x, y = SmileFc(hidden=6).build((1, 3, 3), 2), draws.random((200, 1, 3, 3)), draws.integers(0, 2, 200)
    else:
        model, x, y = DualEncoder(width=4).build((5,), 40), draws.integers(-1, 40, (200, 5)), draws.integers(0, 40, 200)
    start = initial(model, 1)
    found = ModelEvaluator(model, EvaluationSet(x.astype(np.float32), y)).evaluate(start)
    tensors = views(model, torch.from_numpy(start))
    answers = scores(model, tensors, forward(model, tensors, torch.from_numpy(x).float()))
    labels, classes = torch.from_numpy(y), answers.shape[1]

    def share(top):
        return float(multiclass_accuracy(answers, labels, classes, average="micro", top_k=top))

    assert found["accuracy"] == pytest.approx(share(1))
    if kind == "smiles":
        margin = answers[:, 1] - answers[:, 0]
        assert found["auc"] == pytest.approx(float(binary_auroc(margin.sigmoid(), labels)))
    else:
        assert found["recall10"] == pytest.approx(share(10))
        assert found["recall10"] > found["accuracy"]


@given(st.floats(0.01, 0.99), st.integers(1, 4), st.integers(0, 10**6))
def test_mixed_dissimilarities_keep_their_identities(w_f, clients, seed):
    """I-M7: (7) of the paper, the two identities, and the values where both sides agree."""
    w_c, draws = 1 - w_f, np.random.default_rng(seed)
    gradients = draws.normal(size=(clients, 5)).astype(np.float32)
    central = draws.normal(size=5).astype(np.float32)
    found = mixed_dissimilarity([gradient_sum(gradients[:1]), gradient_sum(gradients)], central, (w_f, w_c))
    mean = np.concatenate([gradients[:1], gradients]).astype(float).mean(0)
    a, b = w_f * mean, w_c * central.astype(float)
    c = a + b
    upper = a @ a / w_f + b @ b / w_c
    assert found["gt2"] == pytest.approx(upper - c @ c, rel=1e-6, abs=1e-9)
    assert found["gt2"] == pytest.approx(w_f * w_c * ((mean - central) ** 2).sum(), rel=1e-6)
    assert found["bt2"] == pytest.approx(upper / (c @ c), rel=1e-6)
    assert found["gt2"] >= 0
    assert found["bt2"] >= 1
    same = mixed_dissimilarity([gradient_sum([central] * 3)], central, (w_f, w_c))
    assert same["gt2"] == pytest.approx(0, abs=1e-12)
    assert same["bt2"] == pytest.approx(1)
    nothing = mixed_dissimilarity([gradient_sum([0 * central])], 0 * central, (w_f, w_c))
    assert (nothing["gt2"], nothing["bt2"]) == (0, 1)
    opposed = mixed_dissimilarity([gradient_sum([central * np.float32(-1)])], central, (0.5, 0.5))
    assert opposed["bt2"] == float("inf")


def test_labels_part_the_data_into_two_sources():
    split, digits = LabelSplit(central=(5, 6, 7, 8, 9), positive=(1, 5, 7)), Digits()
    whole, data, info = digits.load(0, 1), split.apply(digits.load(0, 1)), split.info(digits.info(0, 1))
    assert len(data.y) == info.train_size == int((whole.y < 5).sum())
    assert len(data.central_y) == info.central_size == int((whole.y >= 5).sum())
    assert np.array_equal(data.x, whole.x[whole.y < 5])
    assert np.array_equal(data.central_y, np.isin(whole.y[whole.y >= 5], (5, 7)))
    assert tuple(np.bincount(data.y)) == info.class_counts
    assert np.array_equal(data.test_central, whole.test_y >= 5)
    assert np.array_equal(data.test_y, np.isin(whole.test_y, (1, 5, 7)))
    assert LabelSplit(central=(3,)).info(digits.info(0, 1)).classes == 10


def test_a_model_is_examined_on_each_source_and_on_both():
    """Parts weigh in the whole by their size; the AUC of the whole is not a mean."""
    data = LabelSplit(central=(5, 6, 7, 8, 9), positive=(1, 2, 7)).apply(Digits().load(0, 1))
    model = Mlp(hidden=[8]).build((1, 8, 8), 2)
    found = ModelEvaluator(model, EvaluationSet(data.test_x, data.test_y, data.test_central)).evaluate(
        initial(model, 1)
    )
    share = data.test_central.mean()
    for name in ("accuracy", "loss"):
        parts = (1 - share) * found[f"federated_{name}"] + share * found[f"central_{name}"]
        assert found[name] == pytest.approx(parts)
    assert {"auc", "federated_auc", "central_auc"} <= found.keys()
    whole = ModelEvaluator(model, EvaluationSet(data.test_x, data.test_y)).evaluate(initial(model, 1))
    assert whole == {name: found[name] for name in ("accuracy", "loss", "auc")}
