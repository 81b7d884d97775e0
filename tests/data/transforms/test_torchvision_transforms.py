"""Transforms of images: certain ones once, random ones in variants that do not depend on where a client is computed."""

import re
import tracemalloc

import numpy as np
import pytest
import torch
from torchvision.transforms import v2

from fedactors.data.base import Data
from fedactors.data.batches import varied
from fedactors.data.transforms.torchvision_transforms import TorchvisionTransforms
from fedactors.errors import DataError, ScenarioError, UsageError
from fedactors.simulation.checks import check as check_module
from fedactors.simulation.checks.check import check
from fedactors.simulation.loaded_data import clients_data, own_of
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import run
from fedactors.streams import Purpose, stream
from tests.data.user.scenes import scene

TASK = {"dataset": "digits", "model": "logistic", "partition": "iid"}
NORMAL = {"name": "Normalize", "mean": [0.5], "std": [0.25]}
FLIP = {"train": ["RandomHorizontalFlip", NORMAL], "test": [NORMAL], "variants": 3}


def given(folder, transform, count=4, **server):
    return scene(folder, TASK | {"transform": transform}, count, **server)


def test_certain_transforms_are_applied_once(tmp_path):
    plain = scene(tmp_path, TASK).task.load(0, 4)
    data = given(tmp_path, {"train": [{"name": "Resize", "size": [4, 4]}], "test": [{"name": "CenterCrop", "size": 4}]})
    assert data.task.info(0, 4).input_shape == (1, 4, 4)
    data = data.task.load(0, 4)
    assert np.array_equal(data.x, v2.Resize([4, 4])(torch.from_numpy(plain.x)).numpy())
    assert np.array_equal(data.test_x, plain.test_x[:, :, 2:6, 2:6])


def test_random_transforms_make_variants_from_streams(tmp_path):
    plain = scene(tmp_path, TASK).task.load(0, 4)
    before = torch.random.get_rng_state()
    data = given(tmp_path, FLIP).task.load(5, 4)
    assert torch.equal(before, torch.random.get_rng_state())
    assert data.variants.shape == (3 * 1437, 1, 8, 8)
    assert np.array_equal(data.variants[:1437], data.x)
    assert given(tmp_path, FLIP).task.info(5, 4).variants == 3, "all of them count in memory"
    wanted = (plain.x - 0.5) / 0.25
    straight = (data.variants.reshape(3, 1437, 1, 8, 8) == wanted).all((2, 3, 4))
    flipped = (data.variants.reshape(3, 1437, 1, 8, 8) == wanted[..., ::-1]).all((2, 3, 4))
    assert (straight | flipped).all()
    assert 0.45 < flipped.mean() < 0.55
    torch.manual_seed(int(stream(5, Purpose.AUGMENTATION, 7, 2).integers(2**63)))
    flipped_or_not = v2.RandomHorizontalFlip()(torch.from_numpy(plain.x[7]))
    assert np.array_equal(data.variants[2 * 1437 + 7], (flipped_or_not - 0.5) / 0.25)


def test_variants_are_filled_into_one_array():
    """48 images of 3 x 64 x 64 in 40 variants are 94 MB; kept as a list too, they were twice as many."""
    transforms = TorchvisionTransforms(train=({"name": "RandomHorizontalFlip"},), variants=40)
    x = np.random.default_rng(0).random((48, 3, 64, 64), np.float32)
    data = Data(x, np.zeros(48, np.int64), x[:1], np.zeros(1, np.int64), 2)
    tracemalloc.start()
    found = transforms.apply(data, 3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.variants.nbytes == 40 * x.nbytes
    assert most < 1.3 * found.variants.nbytes


def test_images_of_several_shapes_are_refused(tmp_path):
    scenario = given(tmp_path, {"train": [{"name": "RandomResize", "min_size": 8, "max_size": 12}], "variants": 2})
    with pytest.raises(DataError, match=r"task\.transform\.train: images became .* and .* \(accepted: one shape"):
        scenario.task.load(0, 4)


def test_check_says_how_long_many_variants_take(tmp_path, monkeypatch):
    """Of 1,437 images with 3 variants; the measured time scales with both."""
    assert check(given(tmp_path, FLIP))["notes"] == []
    monkeypatch.setattr(check_module, "_LONG", 0.0)
    (note,) = check(given(tmp_path, FLIP))["notes"]
    assert re.match(r"task\.transform: 3 variants of 1,437 images are made before the first round .* about \d+ s", note)
    few, many = (given(tmp_path, FLIP | {"variants": n}).task.transform_seconds(0, 4) for n in (3, 300))
    assert many > 5 * few > 0
    assert given(tmp_path, {"train": [NORMAL], "test": [NORMAL]}).task.transform_seconds(0, 4) == 0


def test_each_step_sees_a_variant_of_its_own_and_longer_trips_begin_alike():
    order = np.arange(1000) % 50
    draws = lambda: stream(0, Purpose.VARIANT, 3, 2)  # noqa: E731
    whole = varied(draws(), order, 4, 50)
    assert np.array_equal(whole % 50, order)
    assert np.array_equal(whole[:300], varied(draws(), order[:300], 4, 50))
    assert np.bincount(whole // 50).min() > 200
    assert varied(draws(), order + 200, 4, 50).tolist() == (order + 200).tolist(), "further data have no variants"


@pytest.mark.slow
def test_a_run_with_variants_has_the_same_bits_on_local_and_ray(tmp_path):
    scenario = given(tmp_path, FLIP)
    results = [
        run(scenario, tmp_path / fleet, fleet=fleet, actors=actors, report=False).summary["digests"]
        for fleet, actors in (("local", 1), ("ray", 2))
    ]
    assert results[0] == results[1]
    other = run(given(tmp_path, FLIP | {"variants": 2}), tmp_path / "other", fleet="local", report=False)
    assert other.summary["digests"]["model"] != results[0]["model"]


def test_one_variant_of_each_is_what_the_data_are(tmp_path):
    """Flips that always happen are no different from data that were flipped before."""
    always = {"train": [{"name": "RandomHorizontalFlip", "p": 1.0}], "variants": 2}
    one = run(given(tmp_path, always), tmp_path / "one", fleet="local", report=False).summary["digests"]["model"]
    (tmp_path / "data.py").write_text(
        "from fedactors.data.sets.digits import Digits\n"
        "def load():\n    d = Digits().load(0, 1)\n"
        "    return (d.x[..., ::-1].copy(), d.y), (d.test_x, d.test_y)\n"
    )
    flipped = scene(tmp_path, TASK | {"dataset": {"name": "torch", "factory": "data.py:load"}})
    assert run(flipped, tmp_path / "two", fleet="local", report=False).summary["digests"]["model"] == one


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ({"train": ["RandomHorizontalFlip"]}, "train: RandomHorizontalFlip is random, and applied once"),
        ({"train": ["ColorJitter"]}, "ColorJitter is random"),
        ({"test": ["RandomHorizontalFlip"]}, "test: RandomHorizontalFlip is random (accepted: CenterCrop"),
        ({"train": [NORMAL], "variants": 3}, "variants: no transform of training images is random"),
        ({"train": [{"name": "RandomFlip"}], "variants": 2}, 'torchvision has no transform "RandomFlip"; did you mean'),
        ({"train": [{"name": "Resize", "sise": 4}]}, "train.0: Resize: Resize.__init__() got an unexpected keyword"),
        ({"train": [{"name": "CenterCrop", "size": 4}]}, "training images become (1, 4, 4), test images (1, 8, 8)"),
        ({"train": [{"name": "Normalize", "mean": [0.5], "std": [0]}]}, "std evaluated to zero"),
        ({"train": [{"name": "Grayscale", "num_output_channels": 2}]}, "num_output_channels must be 1 or 3"),
    ],
)
def test_one_message_for_a_wrong_transform(tmp_path, transform, message):
    with pytest.raises(UsageError) as error:
        prepare(given(tmp_path, transform))
    assert message in str(error.value)
    assert "task.transform" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(("transform", "path"), [({"trian": []}, "trian"), ({"train": [3]}, "train"), (3, "transform")])
def test_one_message_for_a_wrong_form(tmp_path, transform, path):
    with pytest.raises(ScenarioError, match=path) as error:
        given(tmp_path, transform)
    assert len(str(error.value).splitlines()) == 1


def test_only_images_are_transformed(tmp_path):
    task = TASK | {"dataset": "synthetic", "transform": {"train": ["Grayscale"]}}
    with pytest.raises(ScenarioError, match=r'samples of "synthetic" have the shape \(60,\)'):
        prepare(scene(tmp_path, task))


def test_the_server_s_own_data_have_no_variants(tmp_path):
    scenario = given(
        tmp_path, FLIP, algorithm={"name": "fsl", "server_weight": 0.1}, data={"name": "iid", "samples": 20}
    )
    with pytest.raises(ScenarioError, match=r"variants: server\.data would have one variant"):
        prepare(scenario)


GLYPHS = {"algorithm": {"name": "fsl", "server_weight": 0.1}, "data": "glyphs"}


def test_images_of_the_server_from_elsewhere_are_transformed_as_those_of_clients(tmp_path):
    def drawn(transform):
        prepared = prepare(given(tmp_path, transform, **GLYPHS))
        data, split, _ = clients_data(prepared)
        return own_of(prepared, data, split).x

    plain, normal = drawn({}), drawn({"train": [NORMAL], "test": [NORMAL]})
    assert np.allclose(normal, (plain - 0.5) / 0.25)
    small = {"name": "Resize", "size": [4, 4]}
    assert drawn({"train": [small], "test": [small]}).shape[1:] == (1, 4, 4)


def test_images_of_the_server_from_elsewhere_must_keep_their_shape(tmp_path):
    pad = {"name": "Pad", "padding": 2}
    with pytest.raises(ScenarioError, match=r"made for images of another shape than \(1, 12, 12\), .* glyphs gives"):
        prepare(given(tmp_path, {"train": [pad], "test": [pad]}, **GLYPHS))
