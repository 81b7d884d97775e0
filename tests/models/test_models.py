import pickle
import subprocess
import sys

import pytest
from pydantic import ValidationError

from fedactors.errors import DataError
from fedactors.models.layers import Conv, Dense, Dropout, Flatten, Model, Pool, stack
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
from fedactors.models.residual import GroupNorm, Residual

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)

# option, input, classes, parameters, then MFLOP of a forward and of a forward and backward pass as printed
PUBLISHED = [
    (FslEmnist(), MNIST, 45, 1_409_197, "28.2", "84.0"),
    (FslEmnist(), MNIST, 47, 1_409_455, "28.2", "84.0"),
    (FslCifar(), CIFAR, 10, 545_098, "12.3", "35.0"),
    (TwoNN(), MNIST, 10, 199_210, "0.40", "0.88"),
    (Mlp(hidden=(200, 200)), MNIST, 10, 199_210, "0.40", "0.88"),
    (McmahanCnn(), MNIST, 10, 1_663_370, "24.5", "72.4"),
    (McmahanCnn(), MNIST, 47, 1_682_351, "24.6", "72.5"),
    (McmahanCnn(), MNIST, 62, 1_690_046, "24.6", "72.5"),
    (Logistic(), (60,), 10, 610, "0.001", "0.002"),
    (Mlp(hidden=(64,)), (3, 28, 28), 1, 150_657, "0.30", "0.60"),
    (Mlp(hidden=(64,)), (3, 84, 84), 1, 1_354_881, "2.7", "5.4"),
    (LambMlp(), MNIST, 10, 159_010, "0.32", "0.64"),
    (LambCnn(), MNIST, 10, 21_840, "0.96", "2.6"),
    (LambCifarCnn(), CIFAR, 10, 122_570, "9.1", "25.7"),
    (ResNet9(), CIFAR, 10, 6_575_370, "759", "2272"),
]


def identify(row):
    return f"{row[0].name}-{row[2]}"


@pytest.mark.parametrize("row", PUBLISHED, ids=identify)
def test_sizes_and_costs_are_the_published_ones(row):
    option, shape, classes, parameters, forward, both = row
    model = option.build(shape, classes)
    assert model.parameters == parameters
    assert model.output_shape == (classes,)
    for flops, printed in ((model.forward_flops, forward), (model.flops, both)):
        half = 0.5 * 10.0 ** -len(printed.partition(".")[2])
        assert flops / 1e6 == pytest.approx(float(printed), abs=half, rel=0)


def test_flops_by_hand():
    """Dense 3-4-2 on one sample: forward 2(12 + 8) = 40.

    Backward: both weight gradients 40, the gradient of the hidden layer 2 * 8 = 16, none for the input.
    96 in all.
    """
    model = Mlp(hidden=(4,)).build((3,), 2)
    assert (model.forward_flops, model.flops) == (40, 96)


def test_tables_of_fsl_layer_by_layer():
    emnist = FslEmnist().build(MNIST, 45)
    sizes = [a + b for a, b in zip(*[iter(count(emnist))] * 2, strict=True)]
    assert sizes == [320, 18_496, 1_384_576, 5_805]
    cifar = FslCifar().build(CIFAR, 10)
    sizes = [a + b for a, b in zip(*[iter(count(cifar))] * 2, strict=True)]
    assert sizes == [896, 18_496, 524_416, 1_290]


def count(model):
    result = []
    for tensor in model.tensors:
        size = 1
        for length in tensor.shape:
            size *= length
        result.append(size)
    return result


def test_tensors_are_named_and_shaped_as_in_a_sequential():
    model = LambCnn().build(MNIST, 10)
    assert [(t.name, t.shape, t.fan_in) for t in model.tensors] == [
        ("0.weight", (10, 1, 5, 5), 25),
        ("0.bias", (10,), 25),
        ("3.weight", (20, 10, 5, 5), 250),
        ("3.bias", (20,), 250),
        ("8.weight", (50, 320), 320),
        ("8.bias", (50,), 320),
        ("10.weight", (10, 50), 50),
        ("10.bias", (10,), 50),
    ]


def test_models_are_values():
    one, two = (FslCifar().build(CIFAR, 10) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert FslCifar().build(CIFAR, 11) != one


@pytest.mark.parametrize(
    ("option", "shape", "message"),
    [
        (LambCnn(), (1, 8, 8), r'"lamb_cnn", layer 3 .*takes images of at least 5 x 5, found \(10, 2, 2\)'),
        (
            FslCifar(),
            (1, 1, 1),
            r"layer 2 \(Pool\(size=2\)\): takes images of at least 2 x 2, found \(32, 1, 1\)",
        ),
        (McmahanCnn(), (60,), r"layer 0 .*\(60, height, width\), found \(60,\)"),
    ],
)
def test_data_that_do_not_fit_are_told_with_the_layer(option, shape, message):
    with pytest.raises(DataError, match=message):
        option.build(shape, 10)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ((Dense(4, 2),), r"takes samples of shape \(4,\), found \(1, 3, 3\)"),
        ((Flatten(), Dense(4, 2)), r"takes samples of shape \(4,\), found \(9,\)"),
        ((Flatten(), Pool(2)), r"takes images of at least 2 x 2, found \(9,\)"),
        ((Conv(3, 2, 3),), r"\(3, height, width\), found \(1, 3, 3\)"),
        ((Conv(1, 2, 2, "same"),), "even kernel 2"),
        ((Dropout(1.0),), "accepted: 0 <= rate < 1"),
        ((Conv(1, 6, 3, "same"), GroupNorm(6, 4)), r"4 groups of 6 channels \(accepted: a divisor\)"),
        ((GroupNorm(4, 2),), r"takes samples of shape \(4, height, width\), found \(1, 3, 3\)"),
        ((Residual((Conv(1, 2, 3, "same"),)),), r"turns \(1, 3, 3\) into \(2, 3, 3\)"),
        ((Residual((Conv(2, 1, 3, "same"),)),), r"inside, layer 0: takes samples of shape \(2, "),
        ((Residual((Dropout(0.5),)),), "dropout inside a residual block"),
    ],
)
def test_layers_that_do_not_fit_each_other_are_refused(layers, message):
    with pytest.raises(DataError, match=message):
        Model("made up", (1, 3, 3), layers)


def test_options_read_lists_and_refuse_what_they_do_not_know():
    assert Mlp.model_validate({"name": "mlp", "hidden": [20, 30]}).hidden == (20, 30)
    assert Mlp.model_validate_json('{"hidden": [20]}').hidden == (20,)
    assert Mlp(hidden=()).build((4,), 2).parameters == 10
    assert TwoNN.model_validate({"name": "mcmahan_2nn"}).build((4,), 2).name == "mcmahan_2nn"
    for wrong in (
        {"hidden": [0]},
        {"hidden": ["a"]},
        {"hidden": [2], "dropout": 1.0},
        {"hidden": [2], "width": 3},
    ):
        with pytest.raises(ValidationError):
            Mlp.model_validate(wrong)


@pytest.mark.slow
def test_resnet9_has_as_many_parameters_with_either_norm():
    grouped, batch = (ResNet9(norm=norm).build((3, 32, 32), 10) for norm in ("group", "batch"))
    statistics = 2 * (64 + 128 * 3 + 256 + 512 * 3)
    assert batch.parameters - batch.buffer_values == grouped.parameters == 6_575_370
    assert batch.buffer_values == statistics
    assert batch.output_shape == (10,)
    with pytest.raises(ValidationError, match="'group' or 'batch'"):
        ResNet9(norm="layer")


def test_dropout_of_rate_zero_leaves_no_layer():
    assert Mlp(hidden=(5,), dropout=0.0).build((4,), 2).layers == Mlp(hidden=(5,)).build((4,), 2).layers
    assert Dropout(0.5) in Mlp(hidden=(5,), dropout=0.5).build((4,), 2).layers


def test_a_stack_without_weights_costs_nothing():
    assert stack("empty", (1, 4, 4), Pool(2), Flatten()).flops == 0


def test_descriptions_import_neither_torch_nor_ray():
    modules = ("data.base", "data.sets.mnist", "data.partitions.partition", "models.paper_models", "data.sets.digits")
    imported = "; ".join(f"import fedactors.{name}" for name in modules)
    loaded = "print({'torch', 'ray', 'sklearn'} & set(sys.modules))"
    code = f"import sys; {imported}; {loaded}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
