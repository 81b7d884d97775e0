"""What an algorithm adds to the loss of samples: engines against each other and torch, combinations, and refusals."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from fedactors.algorithms.ditto import Ditto
from fedactors.algorithms.example_transfer import ExampleTransfer
from fedactors.algorithms.fedavg import FedAvg
from fedactors.clip import Clip
from fedactors.data.base import LabelledSamples
from fedactors.data.batches import bounds, sequence
from fedactors.data.partitions.assignment import contiguous
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.engine_choice import choose
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.errors import ScenarioError, UserCodeError
from fedactors.learning.algorithm import TaskSetting
from fedactors.learning.personal_parts import PERSONAL
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import ServerExamples, TrainingData
from fedactors.models.layers import Dense, Model
from fedactors.models.loss_description import LossDescription
from fedactors.models.module_description import described
from fedactors.models.module_layer import InputSpec, ModuleMaker
from fedactors.models.network import forward, initial, views
from fedactors.models.paper_models import FslCifar, LambCnn
from fedactors.models.sequence_layers import PlaceDense
from fedactors.models.task_losses import CrossEntropyLoss
from fedactors.optim.client_optimizers import ClientAdam
from fedactors.own_code.user_code import parse
from fedactors.registry import BUILTIN
from tests.engines.test_engines import MODELS, SIZES, chunk, samples, task, with_engine

STEPS = (10, 0, 7, 2, 1)


class Held(FedAvg):
    """Half the squared distance of the client's outputs from the global model's, by sample."""

    def added_loss(self, outputs, labels, global_outputs):
        return (outputs - global_outputs).square().flatten(1).sum(1) * self.strength / 2

    strength: ClassVar[float] = 3.0


class Loose(Held):
    strength: ClassVar[float] = 0.0


class HeldDitto(Held, Ditto):
    pass


class HeldTransfer(Held, ExampleTransfer):
    pass


class Pulled(Held):
    prox: ClassVar[float] = 0.3
    loss_weight: ClassVar[float] = 0.5

    def correction(self, sent, kept):
        return 0.05 * sent["x"].roll(1, -1)


def learned(engine, algorithm, model=MODELS["mlp"], *, data=None, kept=(), steps=STEPS, sent=None, bases=None, **facts):
    training_task = replace(task(model), algorithm=algorithm, **facts)
    trainer = with_engine(engine, training_task, samples(model) if data is None else data)
    return trainer.learn(chunk(steps, model_indices=bases), sent or [{"x": initial(model, 1)}], kept)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("algorithm", [Held(), Pulled()], ids=["held", "pulled"])
def test_engines_agree_on_unequal_steps_and_unequal_starts(name, algorithm):
    model = MODELS[name]
    uneven = {"sent": [{"x": initial(model, seed)} for seed in (1, 2)], "bases": (0, 1, 1, 0, 1)}
    one, many = (learned(engine, algorithm, model, **uneven) for engine in (SequentialEngine, VmapEngine))
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-4, atol=1e-5)
    assert one.loss == pytest.approx(many.loss, rel=1e-5)
    free = learned(SequentialEngine, FedAvg(), model, **uneven)
    assert np.abs(one.sums["delta"] - free.sums["delta"]).max() > 1e-2


def torch_steps(net, teacher, data, training_task, client, steps, loss_of):
    """Return y - x of a client that plain torch has trained, at the rate 0.1."""
    teacher.eval()
    start = nn.utils.parameters_to_vector(net.parameters()).detach().clone()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    work = training_task.workloads[client]
    order = sequence(3, client, 2, data.split.of(client), work, steps)
    for first, last in bounds(work, steps):
        batch = order[first:last]
        with torch.no_grad():
            theirs = teacher(torch.from_numpy(data.x[batch]))
        optimiser.zero_grad()
        loss_of(net(torch.from_numpy(data.x[batch])), theirs, batch).backward()
        optimiser.step()
    return (nn.utils.parameters_to_vector(net.parameters()) - start).detach().numpy()


def distance(outputs, theirs):
    return 1.5 * (outputs - theirs).square().sum(1)


def mlp(seed=1):
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    nn.utils.vector_to_parameters(torch.from_numpy(initial(MODELS["mlp"], seed)), net.parameters())
    return net


LOSSES = {
    "plain": CrossEntropyLoss(),
    "class weights": CrossEntropyLoss(class_weights=(1.0, 5.0, 0.5)),
    "ignored": CrossEntropyLoss(ignore_index=1),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("engine", [SequentialEngine, VmapEngine])
def test_it_is_added_to_each_sample_before_the_mean_with_the_weights_of_samples(engine, name, weighted):
    """By torch: sum_i w_i c_i (l_i + r_i) / sum_i w_i c_i, c_i being the weight of the class, 0 if it is ignored."""
    described = LOSSES[name].describe()
    loss = described if name != "plain" or not weighted else LossDescription("cross_entropy", "class")
    model = replace(MODELS["mlp"], loss=loss)
    data = samples(model)
    w = np.random.default_rng(4).uniform(0.2, 2.0, len(data.y)).astype(np.float32) if weighted else None
    data = replace(data, weights=w)
    training_task = replace(task(model), algorithm=Held())
    found = with_engine(engine, training_task, data).learn(chunk((6,), clients=(2,)), [{"x": initial(model, 1)}])
    by_class = torch.tensor({"class weights": (1.0, 5.0, 0.5), "ignored": (1.0, 0.0, 1.0)}.get(name, (1.0, 1.0, 1.0)))

    def loss_of(outputs, theirs, batch):
        labels = torch.from_numpy(data.y[batch])
        each = nn.functional.cross_entropy(outputs, labels, reduction="none") + distance(outputs, theirs)
        counts = by_class[labels] * (1.0 if w is None else torch.from_numpy(w[batch]))
        return (each * counts).sum() / counts.sum()

    expected = torch_steps(mlp(), mlp(), data, training_task, 2, 6, loss_of)
    np.testing.assert_allclose(found.sums["delta"], expected, rtol=1e-4, atol=1e-6)


def test_a_clients_loss_is_that_of_the_model_alone():
    """The first step is that of any strength, as both models say the same then; later ones are not."""
    strong, weak, none = (
        learned(SequentialEngine, algorithm, steps=(1, 0, 1, 1, 1)) for algorithm in (Held(), Loose(), FedAvg())
    )
    assert strong.loss == pytest.approx(none.loss, rel=1e-6)
    np.testing.assert_allclose(strong.sums["delta"], none.sums["delta"], rtol=1e-5, atol=1e-7)
    weak, none = (learned(SequentialEngine, algorithm) for algorithm in (Loose(), FedAvg()))
    assert weak.loss == pytest.approx(none.loss, rel=1e-6)
    np.testing.assert_allclose(weak.sums["delta"], none.sums["delta"], rtol=1e-5, atol=1e-7)


NETS = """
import torch
from torch import nn

class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.out = nn.Linear(12, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)
    def forward(self, x):
        return self.out(self.norm(self.first(x)).relu())

class Rude(Normed):
    def forward(self, x):
        if not self.training:
            x.mul_(0.0)
        return super().forward(x)
"""


def module(folder, name):
    (folder / "nets.py").write_text(NETS)
    return described(ModuleMaker(parse(f"nets.py:{name}", folder), "{}"), (InputSpec("", (12,)),))


@pytest.mark.parametrize("engine", [SequentialEngine, VmapEngine])
def test_the_global_model_answers_as_it_is_evaluated(engine, tmp_path):
    """A module with BatchNorm, by torch: the client in training mode, the other in evaluation mode; full batches."""
    model = module(tmp_path, "Normed")
    data = samples(MODELS["mlp"])
    training_task = replace(task(model), algorithm=Held())
    start = initial(model, 1)
    start[-12:-6], start[-6:] = 0.3, 2.0  # running averages that are not those of any batch
    found = with_engine(engine, training_task, data).learn(chunk((6,), clients=(2,)), [{"x": start}])
    space = {}
    exec(NETS, space)
    net, teacher = space["Normed"](), space["Normed"]()
    for one in (net, teacher):
        nn.utils.vector_to_parameters(torch.from_numpy(start[:-12].copy()), one.parameters())
        one.norm.running_mean.fill_(0.3)
        one.norm.running_var.fill_(2.0)

    def loss_of(outputs, theirs, batch):
        labels = torch.from_numpy(data.y[batch])
        return nn.functional.cross_entropy(outputs, labels) + distance(outputs, theirs).mean()

    expected = torch_steps(net, teacher, data, training_task, 2, 6, loss_of)
    np.testing.assert_allclose(found.sums["delta"][:-12], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.sums["delta"][-12:-6], net.norm.running_mean - 0.3, rtol=1e-4, atol=1e-5)


def test_a_module_that_changes_samples_in_evaluation_does_not_spoil_them(tmp_path):
    model = module(tmp_path, "Rude")
    free, plain = (
        learned(SequentialEngine, algorithm, model, steps=(4, 1, 4, 0, 2)) for algorithm in (Loose(), FedAvg())
    )
    np.testing.assert_allclose(free.sums["delta"], plain.sums["delta"], rtol=1e-4, atol=1e-6)


def test_dropout_is_off_in_the_global_model():
    """What it answers is what the model at the start answers in evaluation, in every step."""
    seen = []

    class Looks(Held):
        def added_loss(self, outputs, labels, global_outputs):
            seen.append(global_outputs)
            return super().added_loss(outputs, labels, global_outputs)

    model = MODELS["dropout"]
    data = samples(model)
    trainer = with_engine(SequentialEngine, replace(task(model), algorithm=Looks()), data)
    trainer.learn(chunk((4,), clients=(2,)), [{"x": initial(model, 1)}])
    work = task(model).workloads[2]
    order = sequence(3, 2, 2, data.split.of(2), work, 4)
    tensors = views(model, torch.from_numpy(initial(model, 1)))
    expected = [forward(model, tensors, torch.from_numpy(data.x[order[first:last]])) for first, last in bounds(work, 4)]
    torch.testing.assert_close(torch.stack(seen[-4:]), torch.stack(expected))
    assert not any(one.requires_grad for one in seen[-4:])


OPTIONS = {
    "clipped": {"clip": Clip(norm=0.1)},
    "in phases": {"personal": np.arange(104, 131), "personal_steps": (2,) * 5},
    "personal": {"personal": np.arange(104, 131)},
}


def kept_heads():
    draws = np.random.default_rng(8)
    return [{PERSONAL: draws.normal(scale=0.1, size=27).astype(np.float32)} for _ in range(5)]


@pytest.mark.parametrize("name", OPTIONS)
def test_engines_agree_with_what_else_a_step_may_have(name):
    kept = kept_heads() if "personal" in OPTIONS[name] else ()
    one, many, free = (
        learned(engine, algorithm, kept=kept, **OPTIONS[name])
        for engine, algorithm in ((SequentialEngine, Held()), (VmapEngine, Held()), (SequentialEngine, FedAvg()))
    )
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-4, atol=1e-6)
    assert np.abs(one.sums["delta"] - free.sums["delta"]).max() > 1e-3


def test_engines_agree_with_adam():
    class HeldAdam(Held):
        def optimizer(self, setting):
            return ClientAdam()

    one, many = (learned(engine, HeldAdam()) for engine in (SequentialEngine, VmapEngine))
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-3, atol=1e-4)


def test_the_global_model_has_the_clients_own_head():
    """So both say the same in the first step, whatever the client has kept, and nothing is added to its gradient."""
    first = {"kept": kept_heads(), "steps": (1,) * 5, **OPTIONS["personal"]}
    held, free = (learned(SequentialEngine, algorithm, **first) for algorithm in (Held(), FedAvg()))
    np.testing.assert_allclose(held.sums["delta"], free.sums["delta"], rtol=1e-5, atol=1e-7)


def test_a_model_of_the_clients_own_is_held_to_what_the_global_model_says():
    """Ditto's first step at v, by torch: its gradient, 3 (o(v) - o(x)) from there, and the pull lambda (v - x)."""
    model = MODELS["mlp"]
    data = samples(model)
    kept = [{"own": initial(model, 9)}]
    training_task = replace(task(model), algorithm=HeldDitto(pull=0.7))
    trainer = with_engine(SequentialEngine, training_task, data)
    found = trainer.learn(chunk((1,), clients=(2,)), [{"x": initial(model, 1)}], kept)
    pull = 0.7 * (kept[0]["own"] - initial(model, 1))

    def loss_of(outputs, theirs, batch):
        labels = torch.from_numpy(data.y[batch])
        return nn.functional.cross_entropy(outputs, labels) + distance(outputs, theirs).mean()

    expected = torch_steps(mlp(9), mlp(1), data, training_task, 2, 1, loss_of) - 0.1 * pull
    np.testing.assert_allclose(found.kept[0]["own"], kept[0]["own"] + expected, rtol=1e-4, atol=1e-6)


def test_engines_agree_with_samples_that_clients_were_sent():
    further = samples(MODELS["mlp"], seed=9)
    central = ServerExamples(LabelledSamples(further.x[:6], further.y[:6]), 3)
    data = replace(samples(MODELS["mlp"]), central=central)
    one, many = (learned(engine, HeldTransfer(), data=data) for engine in (SequentialEngine, VmapEngine))
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-4, atol=1e-5)


def test_the_gradient_that_an_algorithm_asks_for_is_that_of_the_models_loss():
    class Asking(Held):
        wants_gradient: ClassVar[bool] = True

        def upload(self, trip):
            return {"delta": trip.gradient}

    class Plain(Asking):
        strength: ClassVar[float] = 0.0

    one, other = (learned(SequentialEngine, algorithm) for algorithm in (Asking(), Plain()))
    assert np.array_equal(one.sums["delta"], other.sums["delta"])


def test_rows_in_parts_have_the_bits_that_they_have_together():
    held = replace(task(MODELS["dropout"]), algorithm=Held())
    whole, parts = (with_engine(SequentialEngine, held, samples(MODELS["dropout"])) for _ in range(2))
    parts.limit(2)
    sent = [{"x": initial(MODELS["dropout"], 1)}]
    one, other = (trainer.learn(chunk(STEPS), sent) for trainer in (whole, parts))
    assert other.memory_limit == (2, True)
    assert np.array_equal(one.sums["delta"], other.sums["delta"])
    many = with_engine(VmapEngine, replace(task(MODELS["mlp"]), algorithm=Held()), samples(MODELS["mlp"]))
    many.limit(2)
    assert many.learn(chunk(STEPS), [{"x": initial(MODELS["mlp"], 1)}]).memory_limit == (2, False), "that is not tried"


def test_a_client_has_the_same_bits_whoever_shares_its_chunk():
    model = MODELS["dropout"]
    trainer = with_engine(SequentialEngine, replace(task(model), algorithm=Held()), samples(model))
    sent = [{"x": initial(model, 1)}]
    together = trainer.learn(chunk((6, 3, 9, 1, 4), weights=(0.0, 0.0, 1.0, 0.0, 0.0)), sent)
    alone = trainer.learn(chunk((9,), clients=(2,)), sent)
    assert np.array_equal(together.sums["delta"], alone.sums["delta"])


def test_sums_have_the_bits_of_updates_that_are_written_out():
    model = MODELS["dropout"]
    trainer = Trainer(replace(task(model), algorithm=Held()), samples(model))
    assert trainer._adds_up
    work = chunk((6, 0, 9, 1, 4), weights=(0.3, 0.7, 0.2, 0.1, 2.0))
    sent = [{"x": initial(model, 1)}]
    (found,) = trainer.learn_together([work], sent)
    (written,) = trainer.learn_together([work], sent, add_up=False)
    assert found.sums["delta"].tobytes() == written.sums["delta"].tobytes()


def chosen(algorithm, model=MODELS["mlp"], device="cpu", name=None):
    return type(choose(replace(task(model), algorithm=algorithm).local_work, device, name))


def test_the_right_engine_is_taken_by_itself():
    images = LambCnn().build((1, 28, 28), 10)
    for model in (MODELS["mlp"], images, FslCifar().build((3, 32, 32), 10)):
        assert chosen(Held(), model) is SequentialEngine
        assert chosen(Held(), model, "cuda") is VmapEngine
        assert chosen(Held(), model, name="vmap") is VmapEngine
    assert chosen(FedAvg(), MODELS["mlp"]) is DenseBatchedEngine


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", MODELS)
def test_a_gpu_does_what_a_cpu_does(name):
    training_task = replace(task(MODELS[name]), algorithm=Held())
    sent = [{"x": initial(MODELS[name], 1)}]
    one, other = (Trainer(training_task, samples(MODELS[name]), device) for device in ("cpu", "cuda"))
    found, expected = (trainer.learn(chunk(STEPS), sent).sums["delta"] for trainer in (other, one))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


class Asks(Held):
    """What torch.func.vmap cannot run."""

    def added_loss(self, outputs, labels, global_outputs):
        return super().added_loss(outputs, labels, global_outputs) if outputs.sum().item() < 1e9 else outputs[:, 0]


class Draws(Held):
    def added_loss(self, outputs, labels, global_outputs):
        return torch.rand(len(labels)) * outputs[:, 0]


@pytest.mark.parametrize("algorithm", [Asks(), Draws()], ids=["asks", "draws"])
def test_what_vmap_cannot_run_is_run_one_client_after_the_other(algorithm):
    assert chosen(algorithm, device="cuda") is SequentialEngine
    with pytest.raises(ScenarioError, match=r'task.engine: "vmap" does not support'):
        chosen(algorithm, name="vmap")
    assert learned(SequentialEngine, algorithm).sums["delta"].any()


class OfValues(FedAvg):
    def added_loss(self, outputs, labels, global_outputs):
        return (labels - global_outputs[:, 0]).square() * outputs[:, 0]


class OfPlaces(FedAvg):
    def added_loss(self, outputs, labels, global_outputs):
        return outputs.gather(2, labels[:, :, None])[..., 0].mean(1)


def test_a_rule_for_values_or_places_is_tried_on_such():
    values = Model("values", (5,), (Dense(5, 1),), loss=LossDescription("mse", "value"))
    places = Model("places", (4, 5), (PlaceDense(5, 7),))
    assert chosen(OfValues(), values, "cuda") is VmapEngine
    assert chosen(OfPlaces(), places, "cuda") is VmapEngine


@pytest.mark.parametrize("model", ["values", "places"])
def test_engines_agree_on_values_and_on_sequences(model):
    draws = np.random.default_rng(3)
    if model == "values":
        algorithm, shape = OfValues(), ()
        net = Model("values", (5,), (Dense(5, 1),), loss=LossDescription("mse", "value"))
        labels = draws.normal(size=SIZES.sum()).astype(np.float32)
    else:
        algorithm, shape = OfPlaces(), (4,)
        net = Model("places", (4, 5), (PlaceDense(5, 7),))
        labels = draws.integers(0, 7, (SIZES.sum(), 4))
    x = draws.normal(size=(SIZES.sum(), *shape, 5)).astype(np.float32)
    data = TrainingData(x, labels, contiguous(SIZES))
    one, many = (learned(engine, algorithm, net, data=data) for engine in (SequentialEngine, VmapEngine))
    assert one.sums["delta"].any()
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["dense_batched", "dense_gram", "conv_sequential", "cuda_graph", "toy"])
def test_other_engines_are_refused_by_name(name, monkeypatch):
    monkeypatch.setitem(BUILTIN["engines"], "toy", "tests.engines.toy_engine:ToyEngine")
    message = rf'task.engine: "{name}" cannot follow the added_loss of algorithm "fedavg" \(accepted: sequential, vmap;'
    with pytest.raises(ScenarioError, match=message):
        chosen(Held(), name=name)


class Scalar(Held):
    def added_loss(self, outputs, labels, global_outputs):
        return outputs.sum()


class Number(Held):
    def added_loss(self, outputs, labels, global_outputs):
        return 3.0


class Changes(Held):
    def added_loss(self, outputs, labels, global_outputs):
        return super().added_loss(outputs, labels, global_outputs.mul_(0.5))


@pytest.mark.parametrize("engine", [SequentialEngine, VmapEngine])
@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        (
            Scalar(),
            r"returned shape \(\) for 5 samples \(accepted: a tensor of shape \(5,\), a number for each",
        ),
        (Number(), r"returned float for 5 samples"),
        (Changes(), r"changes global_outputs in place \(accepted: return new tensors\)"),
    ],
    ids=["scalar", "number", "changes"],
)
def test_what_a_rule_may_not_do_is_said(engine, algorithm, said):
    with pytest.raises(UserCodeError, match=f"^added_loss of algorithm fedavg {said}"):
        learned(engine, algorithm)


def test_an_algorithm_has_one_if_it_overrides_it():
    assert not FedAvg().has_added_loss
    assert Held().has_added_loss
    assert FedAvg().effort(TaskSetting()) == 1.0
    assert Held().effort(TaskSetting()) == pytest.approx(4 / 3)
    assert HeldDitto().effort(TaskSetting()) == 2.0, "its own"
