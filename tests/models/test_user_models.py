"""Modules of the user as models: what is seen of them, how they are run, and what is said of those that cannot be."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.func import vmap

from fedactors.errors import DataError
from fedactors.models import torch_modules
from fedactors.models.layers import Conv, Dense, Flatten, Pool, Relu, conv, dense, stack
from fedactors.models.module_description import describe, described
from fedactors.models.module_layer import InputSpec, ModuleLayer, ModuleMaker
from fedactors.models.network import forward, initial, views
from fedactors.models.paper_models import ResNet9
from fedactors.models.residual import residual
from fedactors.models.torch_modules import written_buffers
from fedactors.models.user_models import TorchModel, TorchvisionModel
from fedactors.own_code.user_code import parse

NETS = '''
import torch
from torch import nn
from torch.nn import functional

class Plain(nn.Module):
    """A chain whose layers are defined in another order than they act."""
    def __init__(self, width=4):
        super().__init__()
        self.last = nn.Linear(width * 16, 3)
        self.first = nn.Conv2d(1, width, 3, padding=1)
    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        return self.last(x.flatten(1))

class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 36, 3)
    def forward(self, x):
        return self.out(self.norm(self.conv(x)).relu().flatten(1))

class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(64, 3)
    def forward(self, x):
        x = x.flatten(1)
        return self.out(self.drop(x) + self.drop(x))

class Functional(Dropping):
    def forward(self, x):
        return self.out(functional.dropout(x.flatten(1), 0.5, self.training))

class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 3), nn.Linear(64, 3)
    def forward(self, x):
        x = x.flatten(1)
        return self.a(x) + self.b(x)

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(9, 5), nn.Linear(5, 9, bias=False)
        self.out.weight = self.table.weight
    def forward(self, x):
        return self.out(self.table(x))

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(8, 4, batch_first=True), nn.Linear(4, 3)
    def forward(self, x):
        return self.out(self.lstm(x.squeeze(1))[0][:, -1])

class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.numbers, self.words, self.out = nn.Linear(3, 4), nn.Embedding(7, 4), nn.Linear(4, 2)
    def forward(self, ids, values):
        return self.out(self.numbers(values) + self.words(ids).mean(1))

class HeadOnly(Plain):
    def __init__(self):
        super().__init__()
        self.first.requires_grad_(False)

class Frozen(Plain):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)

class Double(Plain):
    def __init__(self):
        super().__init__()
        self.double()

class Cumulative(nn.Sequential):
    def __init__(self):
        super().__init__(nn.BatchNorm2d(1, momentum=None), nn.Flatten(), nn.Linear(64, 3))

class Pair(Plain):
    def forward(self, x):
        return super().forward(x), x

class Mapped(Plain):
    def forward(self, x):
        return {"logits": super().forward(x)}

class Scalar(Plain):
    def forward(self, x):
        return super().forward(x).sum()

class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, 3)
    def forward(self, x):
        return self.out(x)

def stack():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 3))

def strided():
    return nn.Sequential(nn.Conv2d(1, 2, 3, stride=2), nn.Flatten(), nn.Linear(18, 3))

def nothing():
    return None

def raises():
    return 1 / 0

width = 3
'''
IMAGE = (1, 8, 8)
ONE_IMAGE = (InputSpec("", IMAGE),)


@pytest.fixture
def net(tmp_path):
    (tmp_path / "nets.py").write_text(NETS)

    def found(name, inputs=ONE_IMAGE, arguments=None, **options):
        maker = ModuleMaker(parse(f"nets.py:{name}", tmp_path), json.dumps(arguments or {}))
        return described(maker, inputs, **options)

    return found


def tensors(model, seed=3):
    return views(model, torch.from_numpy(initial(model, seed)))


def module(model):
    """Return the user's module with the initial values of the model."""
    layer = model.origin or model.layers[0]
    made = layer.maker.factory.load()(**json.loads(layer.maker.arguments))
    names = [spec.name for spec in layer.specs()]
    made.load_state_dict(dict(zip(names, tensors(model), strict=True)), strict=False)
    return made


@pytest.mark.parametrize("name", ["Plain", "stack"])
def test_a_chain_of_known_layers_is_recognised(net, name):
    model, x = net(name), torch.randn(5, *IMAGE)
    assert not any(isinstance(layer, ModuleLayer) for layer in model.layers)
    assert torch.equal(forward(model, tensors(model), x), module(model).eval()(x))
    assert model.output_shape == (3,)


def test_first_values_are_those_that_the_module_draws(net):
    model = net("Plain")
    first, second = initial(model, 3), initial(model, 4)
    assert first.shape == (model.parameters,)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, initial(model, 3))
    bound = 1 / 3  # of a convolution with nine inputs
    weights = tensors(model)[0]
    assert isinstance(model.layers[0], Conv)
    assert isinstance(model.layers[-1], Dense)
    assert bound * 0.8 < weights.abs().max() <= bound


def test_making_modules_leaves_the_global_generator_alone(net):
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    initial(net("Normed"), 1)
    assert torch.equal(torch.randn(3), expected)


@pytest.mark.parametrize("name", ["Branch", "strided", "Normed", "Dropping", "TwoInputs"])
def test_what_is_no_such_chain_is_run_as_it_is(net, name):
    inputs = (InputSpec("ids", (4,), True), InputSpec("values", (3,))) if name == "TwoInputs" else None
    model = net(name, inputs) if inputs else net(name)
    (layer,) = model.layers
    assert isinstance(layer, ModuleLayer)
    assert model.parameters == sum(tensor.numel() for tensor in tensors(model))


def test_inputs_of_several_parts_lie_in_one_flat_sample(net):
    model = net("TwoInputs", (InputSpec("ids", (4,), True), InputSpec("values", (3,))))
    ids, values = torch.randint(0, 7, (5, 4)), torch.randn(5, 3)
    found = forward(model, tensors(model), torch.cat([ids.float(), values], 1))
    assert torch.allclose(found, module(model)(ids, values))


def test_batch_norm_moves_its_statistics_in_training_only(net):
    model, x = net("Normed"), torch.randn(6, *IMAGE)
    mine, theirs = tensors(model), module(model)
    assert torch.allclose(forward(model, mine, x), theirs.eval()(x))
    with written_buffers() as written:
        found = forward(model, mine, x, torch.tensor(1))
    assert torch.allclose(found, theirs.train()(x), atol=1e-6)
    assert torch.allclose(written[0], theirs.norm.running_mean)
    assert torch.allclose(written[1], theirs.norm.running_var)
    assert [tensor.name for tensor in model.tensors][-2:] == ["0.norm.running_mean", "0.norm.running_var"]


def test_a_dropout_used_twice_draws_twice_and_repeats_by_key(net):
    model, x = net("Dropping"), torch.ones(4, *IMAGE)
    one, again, other = (forward(model, tensors(model), x, torch.tensor(key)) for key in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    (layer,) = model.layers
    assert layer.vmappable


def test_rows_under_vmap_have_the_masks_of_each_alone(net):
    model, x, keys = net("Dropping"), torch.ones(2, 4, *IMAGE), torch.tensor([1, 2])
    flat = torch.from_numpy(initial(model, 0))
    both = vmap(lambda x, key: forward(model, views(model, flat), x, key))(x, keys)
    alone = [forward(model, views(model, flat), x[row], keys[row]) for row in range(2)]
    assert torch.allclose(both, torch.stack(alone), atol=1e-6)


def test_a_module_that_draws_by_torch_is_seeded_by_client_and_step(net):
    model, x = net("Functional"), torch.ones(4, *IMAGE)
    (layer,) = model.layers
    assert not layer.vmappable
    named = ((1, 0), (1, 0), (1, 1), (2, 0))  # client and round, step
    draw = [forward(model, tensors(model), x, torch.tensor(key), step) for key, step in named]
    assert torch.equal(draw[0], draw[1])
    assert not torch.equal(draw[0], draw[2])
    assert not torch.equal(draw[0], draw[3])


def test_what_vmap_computes_client_by_client_is_left_to_the_engine_that_does_so(net):
    """And torch's warnings of that are not shown: they are errors in the tests."""
    (layer,) = net("Recurrent").layers
    assert not layer.vmappable


def test_tied_weights_are_one_tensor(net):
    model = net("Tied", (InputSpec("", (6,), True),))
    assert [(tensor.name, tensor.shape) for tensor in model.tensors] == [("0.table.weight", (9, 5))]
    x = torch.randint(0, 9, (2, 6))
    assert torch.equal(forward(model, tensors(model), x.float()), module(model)(x))


def test_frozen_parameters_neither_travel_nor_count(net):
    model = net("HeadOnly")
    assert [tensor.name for tensor in model.tensors] == ["0.last.weight", "0.last.bias"]
    assert model.parameters == 3 * 64 + 3
    same = net("Plain", trainable=["last.*"])
    assert [tensor.name for tensor in same.tensors] == ["0.last.weight", "0.last.bias"]


@pytest.mark.parametrize("suffix", ["safetensors", "pt"])
def test_saved_weights_are_where_a_run_starts(net, tmp_path, suffix):
    trained = module(net("Normed"))
    trained.norm.running_mean += 1.5
    file = tmp_path / f"trained.{suffix}"
    save_file(trained.state_dict(), file) if suffix == "safetensors" else torch.save(trained.state_dict(), file)
    model, x = net("Normed", weights=file), torch.randn(3, *IMAGE)
    assert torch.allclose(forward(model, tensors(model, 9), x), trained.eval()(x))
    file.unlink()
    assert torch.allclose(forward(model, tensors(model, 9), x), trained.eval()(x)), "they are in the description"


WRONG = [
    ("nothing", {}, "nets.py:nothing: returned NoneType"),
    ("width", {}, "nets.py:width: raised TypeError: 'int' object is not callable"),
    ("raises", {}, r"nets.py:raises, line \d+ \(return 1 / 0\): raised ZeroDivisionError"),
    ("Gone", {}, "has no Gone"),
    ("Plain", {"arguments": {"depth": 2}}, "unexpected keyword argument 'depth'"),
    ("Wrong", {}, r"line \d+ \(return self.out\(x\)\): forward on a batch of shape \(2, 1, 8, 8\) raised RuntimeError"),
    ("Frozen", {}, "no parameters to train"),
    ("Double", {}, "torch.float64 .accepted: torch.float32"),
    ("Cumulative", {}, "momentum=None"),
    ("Pair", {}, "forward returned tuple .accepted: a tensor.$"),
    ("Mapped", {}, "forward returned dict .accepted: a tensor; a module around it may return its logits"),
    (
        "Branch",
        {"inputs": (InputSpec("", (64,), True),)},
        "which are identifiers .accepted: integers: values in the data set, for floats. raised .* got Long and Float",
    ),
    ("Scalar", {}, r"forward returned shape \(\) for 2 samples"),
    ("Plain", {"trainable": ["lost.*"]}, 'no parameter is called "lost.*"'),
]


@pytest.mark.parametrize(("name", "options", "said"), WRONG)
def test_a_module_that_cannot_be_used_is_one_message(net, name, options, said):
    with pytest.raises(DataError, match=said):
        net(name, **options)


def test_weights_that_do_not_fit_are_one_message(net, tmp_path):
    save_file({"first.weight": torch.zeros(2)}, tmp_path / "a.safetensors")
    (tmp_path / "b.pt").write_bytes(b"no weights")
    torch.save(nn.Linear(2, 2), tmp_path / "c.pt")  # a pickled module is code
    for name, said in (
        ("a.safetensors", "does not fit"),
        ("b.pt", "no weights"),
        ("c.pt", "no weights"),
        ("d", "no file"),
    ):
        with pytest.raises(DataError, match=said):
            net("Plain", weights=tmp_path / name)


@pytest.mark.slow
def test_torchvision_models_have_as_many_outputs_as_there_are_labels():
    model = TorchvisionModel(arch="resnet18").build((3, 32, 32), 10)
    assert model.output_shape == (10,)
    assert model.parameters == 11_181_642 + 2 * 4_800  # with running means and variances
    with pytest.raises(DataError, match='no model "resnet81"; did you mean'):
        TorchvisionModel(arch="resnet81").build((3, 32, 32), 10)


def test_a_scenario_names_a_module(tmp_path):
    (tmp_path / "nets.py").write_text(NETS)
    options = {"factory": "nets.py:Plain", "arguments": {"width": 2}}
    model = TorchModel.model_validate(options, context={"folder": tmp_path}).build(IMAGE, 3)
    assert model.parameters == 2 * 9 + 2 + 3 * 32 + 3
    assert describe(model.origin.maker, model.origin.inputs).maker == model.origin.maker


@pytest.mark.slow
def test_resnet9_with_batch_norm_is_the_chain_of_the_paper():
    """In evaluation its first statistics, means 0 and variances 1, leave activations as they are up to 1e-5."""
    batch = ResNet9(norm="batch").build((3, 32, 32), 10)

    def block(outputs):
        return conv(outputs, 3, "same"), Relu()

    first = *block(64), *block(128), Pool(2), residual(*block(128), *block(128))
    second = *block(256), Pool(2), *block(512), Pool(2), residual(*block(512), *block(512))
    plain = stack("plain", (3, 32, 32), *first, *second, Pool(4), Flatten(), dense(10))
    mine, x = tensors(batch), torch.randn(2, 3, 32, 32)
    norms = {
        part
        for part in range(len(mine))
        if "1.weight" in batch.tensors[part].name or "1.bias" in batch.tensors[part].name
    }
    rest = [tensor for part, tensor in enumerate(mine) if part not in norms and not batch.tensors[part].buffer]
    assert torch.allclose(forward(batch, mine, x), forward(plain, rest, x), rtol=1e-2, atol=1e-4)


PARTLY = '''
from torch import nn

class Partly(nn.Module):
    """In training mode, normalises by what is stored where the first layer is frozen."""
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
    def train(self, mode=True):
        super().train(mode)
        if not self.first.weight.requires_grad:
            self.norm.eval()
        return self
    def forward(self, x):
        return self.last(self.norm(self.first(x.flatten(1))))
'''


@pytest.mark.parametrize("trainable", [(), ("last.*",)])
def test_a_module_may_ask_in_train_what_is_frozen(tmp_path, trainable):
    """Also in a process that makes it anew for its first step."""
    (tmp_path / "nets.py").write_text(PARTLY)
    maker = ModuleMaker(parse("nets.py:Partly", tmp_path), "{}")
    model, x = described(maker, ONE_IMAGE, trainable=trainable), torch.randn(6, *IMAGE)
    (layer,) = model.layers
    found = forward(model, tensors(model), x, torch.tensor(1))
    torch_modules._made.cache_clear()
    assert torch.equal(forward(model, tensors(model), x, torch.tensor(1)), found)
    assert layer.mixes is not bool(trainable)
    evaluated = forward(model, tensors(model), x)
    assert torch.equal(found, evaluated) is bool(trainable)
