"""Files of TensorFlow Federated and of Hugging Face's datasets; skipped where the extras are not installed."""

import importlib.util

import numpy as np
import pytest

from fedactors.errors import UsageError
from fedactors.simulation.prepare import prepare
from tests.data.user.scenes import scene

HDF5 = {"name": "tff", "train": "train.h5", "test": "test.h5"}


def read(scenario):
    return scenario.task.info(0, scenario.devices), scenario.task.load(0, scenario.devices)


def given(folder, dataset, count=2, partition="natural"):
    return scene(folder, {"dataset": dataset, "model": "logistic", "partition": partition}, count)


@pytest.fixture
def federated_emnist(tmp_path):
    h5py = pytest.importorskip("h5py", reason="the extra tff is not installed")
    for which, count in (("train", 4), ("test", 2)):
        with h5py.File(tmp_path / f"{which}.h5", "w") as file:
            for number, client in enumerate(("f0001_41", "f0000_14")):
                group = file.create_group(f"examples/{client}")
                group["pixels"] = np.full((count + number, 28, 28), number + 0.5, np.float32)
                group["label"] = np.arange(count + number, dtype=np.int32) % 2
    return tmp_path


def test_tff_s_clients_are_clients(federated_emnist):
    info, data = read(given(federated_emnist, HDF5 | {"shape": [1, 28, 28]}))
    assert data.client_names == ("f0000_14", "f0001_41")
    assert info.client_sizes.tolist() == [5, 4]
    assert info.input_shape == (1, 28, 28)
    assert data.x[:5].mean() == 1.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": "gone.h5"}, "gone.h5: no such file"),
        ({"label": "lable"}, 'has no key "lable"; did you mean "label"?'),
        ({"inputs": ["pixel"]}, 'has no "pixel"; did you mean "pixels"?'),
        ({"train": "small.yaml"}, "small.yaml cannot be read"),
    ],
)
def test_one_message_for_a_wrong_tff_file(federated_emnist, options, message):
    with pytest.raises(UsageError) as error:
        prepare(given(federated_emnist, HDF5 | options))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def on_disk(folder, parts=("train", "test")):
    datasets = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    rows = {"tokens": [[i % 5, 1, 2] for i in range(8)], "user": list("abababab"), "label": [0, 1] * 4}
    whole = datasets.Dataset.from_dict(rows)
    whole = datasets.DatasetDict(dict.fromkeys(parts, whole)) if parts else whole
    whole.save_to_disk(folder / "saved")


def test_saved_datasets_are_read_by_column(tmp_path):
    on_disk(tmp_path)
    by_user = {"name": "natural", "by": "user"}
    info, data = read(given(tmp_path, {"name": "hugging_face", "path": "saved"}, partition=by_user))
    assert info.client_sizes.tolist() == [4, 4]
    assert info.inputs[0].integer
    assert data.client_names == ("a", "b")


def test_a_share_of_a_single_one_is_kept_for_testing(tmp_path):
    on_disk(tmp_path, ())
    by_user = {"name": "natural", "by": "user"}
    dataset = {"name": "hugging_face", "path": "saved", "test_share": 0.5}
    info, data = read(given(tmp_path, dataset, partition=by_user))
    assert (info.train_size, np.diff(data.test_clients).tolist()) == (4, [2, 2])
    with pytest.raises(UsageError, match="has one part only"):
        prepare(given(tmp_path, {"name": "hugging_face", "path": "saved"}, partition=by_user))


@pytest.mark.parametrize(("library", "dataset"), [("h5py", HDF5), ("datasets", {"name": "hugging_face", "path": "."})])
def test_one_message_where_an_extra_is_not_installed(tmp_path, library, dataset):
    if importlib.util.find_spec(library):
        pytest.skip(f"{library} is installed")
    with pytest.raises(UsageError, match=f"{library} is not installed"):
        prepare(given(tmp_path, dataset))
