"""What a function of the user may return, what becomes of it, and what is said of all that cannot be used."""

import numpy as np
import pytest
import torch

from fedactors.data.base import InputPart
from fedactors.errors import DataError, ScenarioError, UsageError
from fedactors.report import terminal_text
from fedactors.simulation.checks.check import check
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load, resume, run
from tests.data.user.scenes import scene

DATA = """
import numpy as np
import torch
from torch.utils.data import Dataset, TensorDataset

def numbers(n=12, classes=3, seed=0):
    draws = np.random.default_rng(seed)
    return draws.normal(size=(n, 5)), np.arange(n) % classes

def arrays():
    return numbers(), numbers(6, seed=1)

def tensors():
    return {which: tuple(map(torch.tensor, part)) for which, part in zip(("train", "test"), arrays())}

class Images(Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return torch.full((1, 4, 4), i / 10), i % 2

def images():
    return Images(8), Images(4)

def lists():
    return [([1.0, 2], 0), ([3, 4], 1)], [([5, 6], np.int32(1))]

def triple():
    x, y = numbers()
    return TensorDataset(torch.tensor(x), torch.tensor(x[:, :2]), torch.tensor(y)), TensorDataset(
        torch.zeros(2, 5), torch.zeros(2, 2), torch.tensor([0, 1]))

def rows(n=12, users=("ann", "bob", "cleo", "dan")):
    part = [{"pixels": np.full(3, i), "words": [i % 7, 1], "user": users[(i * 5) % len(users)], "label": i % 3}
            for i in range(n)]
    return {"train": part, "test": part[:5]}

def client_of(sample):
    return len(sample["user"]) * 10 + ord(sample["user"][0]) % 2

def next_words():
    x = np.arange(40).reshape(10, 4) % 6
    return (x, (x + 1) % 6), (x[:2], (x[:2] + 1) % 6)

def values():
    x, _ = numbers()
    return (x, x[:, 0]), (x[:3], x[:3, 0])

def pairs():
    x, _ = numbers()
    return (x, x[:, :2] + 0.5), (x[:3], x[:3, :2])

def answers():
    x, _ = numbers()
    y = (x[:, :4] > 0).astype(int)
    return (x, y), (x, y)

def from_one():
    (x, y), test = arrays()
    return (x, y * 3 + 1), (test[0], test[1] * 3 + 1)
"""
NETS = """
from torch import nn
class Two(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.words, self.pixels, self.out = nn.Embedding(7, 4), nn.Linear(3, 4), nn.Linear(4, classes)
    def forward(self, words, pixels):
        return self.out(self.words(words).mean(1) + self.pixels(pixels))
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(6, 8), nn.Linear(8, 6)
    def forward(self, words):
        return self.out(self.words(words))
"""
LOGISTIC = {"model": "logistic", "partition": "iid"}


@pytest.fixture
def given(tmp_path):
    (tmp_path / "data.py").write_text(DATA)
    (tmp_path / "nets.py").write_text(NETS)

    def made(function, task=LOGISTIC, count=4, **options):
        dataset = {"name": "torch", "factory": f"data.py:{function}", **options}
        return scene(tmp_path, {"dataset": dataset, **task}, count)

    return made


def read(scenario):
    return scenario.task.info(0, scenario.devices), scenario.task.load(0, scenario.devices)


@pytest.mark.parametrize("function", ["arrays", "tensors"])
def test_arrays_and_tensors_become_float32_and_int64(given, function):
    info, data = read(given(function))
    x = np.random.default_rng(0).normal(size=(12, 5))
    assert (data.x.dtype, data.y.dtype) == (np.float32, np.int64)
    assert np.array_equal(data.x, x.astype(np.float32))
    assert (info.train_size, info.test_size, info.input_shape, info.classes) == (12, 6, (5,), 3)
    assert info.class_counts == (4, 4, 4)
    assert info.kind == "class"
    assert info.outputs == 3


def test_map_style_datasets_and_lists_are_read_item_by_item(given):
    info, data = read(given("images"))
    assert info.input_shape == (1, 4, 4)
    assert np.allclose(data.x[3], 0.3)
    assert data.y.tolist() == [0, 1] * 4
    _, data = read(given("lists", count=1))
    assert data.x.tolist() == [[1, 2], [3, 4]]
    assert data.test_y.tolist() == [1]


def test_several_inputs_lie_one_after_the_other(given):
    info, data = read(given("triple"))
    assert info.inputs == (InputPart("", (5,)), InputPart("", (2,)))
    assert np.array_equal(data.x[:, 5:], data.x[:, :2])


def test_dictionaries_have_named_inputs_and_go_to_models_by_name(given):
    two = {"model": {"name": "torch", "factory": "nets.py:Two"}, "partition": {"name": "natural", "by": "user"}}
    scenario = given("rows", two)
    info, data = read(scenario)
    assert info.inputs == (InputPart("pixels", (3,), True), InputPart("words", (2,), True))
    assert data.client_names == ("ann", "bob", "cleo", "dan")
    info, data = read(given("rows", two, inputs=["pixels", "words"], integers="values"))
    assert not any(part.integer for part in info.inputs)


def test_a_model_gets_inputs_by_name_and_trains(tmp_path, given):
    source = DATA.replace('"pixels": np.full(3, i)', '"pixels": np.full(3, i / 12)')
    (tmp_path / "data.py").write_text(source)
    two = {"model": {"name": "torch", "factory": "nets.py:Two"}, "partition": {"name": "natural", "by": "user"}}
    result = run(given("rows", two), tmp_path / "run", fleet="local", report=False)
    assert 0 < result.summary["final"]["loss"] < 3


def test_a_run_goes_on_with_the_same_bits_and_refuses_other_data(tmp_path, given):
    whole = run(given("arrays"), tmp_path / "whole", fleet="local", report=False).summary["digests"]
    run(given("arrays"), tmp_path / "run", fleet="local", report=False, stop_after=1)
    assert resume(tmp_path / "run", fleet="local", report=False).summary["digests"] == whole
    run(given("arrays"), tmp_path / "other", fleet="local", report=False, stop_after=1)
    (tmp_path / "data.py").write_text(DATA.replace("draws.normal(", "draws.uniform("))
    with pytest.raises(UsageError, match="data"):
        resume(tmp_path / "other", fleet="local", report=False)


@pytest.mark.slow
def test_data_of_the_user_train_on_ray_with_the_same_bits(tmp_path, given):
    digests = [
        run(given("images"), tmp_path / fleet, fleet=fleet, actors=actors, report=False).summary["digests"]
        for fleet, actors in (("local", 1), ("ray", 2))
    ]
    assert digests[0] == digests[1]


def test_clients_by_key_and_by_function_are_numbered_in_order(given):
    _, data = read(given("rows", {"model": "logistic", "partition": {"name": "natural", "by": "user"}}))
    owners = [("ann", "bob", "cleo", "dan")[(i * 5) % 4] for i in range(12)]
    order = sorted(range(12), key=lambda i: owners[i])
    assert data.y.tolist() == [i % 3 for i in order]
    assert np.diff(data.clients).tolist() == [3, 3, 3, 3]
    assert np.diff(data.test_clients).sum() == 5
    by_function = {"model": "logistic", "partition": {"name": "natural", "by": "data.py:client_of"}}
    _, data = read(given("rows", by_function, inputs=["pixels"], count=3))
    assert data.client_names == ("30", "31", "41")


def test_next_tokens_are_sequences_and_train(tmp_path, given):
    language = {"model": {"name": "torch", "factory": "nets.py:Language"}, "partition": "iid"}
    scenario = given("next_words", language)
    info, _ = read(scenario)
    assert (info.kind, info.classes, info.label_shape, info.outputs) == ("sequence", 6, (4,), 6)
    assert info.inputs[0].integer
    result = run(scenario, tmp_path / "run", fleet="local", report=False)
    assert result.summary["final"]["loss"] > 0


def test_values_and_several_answers_are_floats_that_iid_clients_share(given):
    info, data = read(given("values"))
    assert (info.kind, info.outputs, data.y.dtype, data.y.shape) == ("value", 1, np.float32, (12,))
    info, data = read(given("pairs"))
    assert (info.kind, info.outputs, info.label_shape) == ("value", 2, (2,))
    info, data = read(given("answers"))
    assert (info.kind, info.outputs, data.y.dtype) == ("multi-label", 4, np.float32)
    with pytest.raises(ScenarioError, match="are of the kind multi-label, and the loss cross_entropy"):
        prepare(given("answers"))


def test_labels_with_gaps_can_be_numbered_anew(given):
    info, data = read(given("from_one", labels="remap"))
    assert (info.classes, data.label_names) == (3, ("1", "4", "7"))
    assert data.y.tolist() == [0, 1, 2] * 4
    info, _ = read(given("from_one", classes=9))
    assert info.class_counts == (0, 4, 0, 0, 4, 0, 0, 4, 0)


def test_data_are_read_once_in_a_process_and_again_when_the_code_changes(tmp_path, given):
    counting = "import pathlib, numpy as np\ndef load():\n" + (
        "    with open(r'%s', 'a') as file: file.write('x')\n"
        "    return (np.ones((4, 2)), [0, 1, 0, 1]), (np.ones((2, 2)), [0, 1])\n" % (tmp_path / "count")
    )
    (tmp_path / "counted.py").write_text(counting)
    scenario = scene(tmp_path, {"dataset": {"name": "torch", "factory": "counted.py:load"}, **LOGISTIC}, 2)
    load(prepare(scenario))
    prepare(scenario)
    assert (tmp_path / "count").read_text() == "xx", "quick data are read twice, and compared"
    (tmp_path / "counted.py").write_text(counting.replace("np.ones((4, 2))", "np.zeros((4, 2))"))
    again = scene(tmp_path, {"dataset": {"name": "torch", "factory": "counted.py:load"}, **LOGISTIC}, 2)
    assert not load(prepare(again)).samples.x.any()


BY_CLIENT = """
import numpy as np
import torch
from torch.utils.data import Subset, TensorDataset

WHOLE = TensorDataset(torch.arange(24.0).reshape(12, 2), torch.arange(12) % 3)
SHARES = [range(5, 12), range(3), range(3, 5)]

def dictionary():
    draw = lambda share: (np.arange(24.0).reshape(12, 2)[share], np.arange(12)[share] % 3)
    return {"train": dict(zip("cab", map(draw, map(list, SHARES)))), "test": {"a": draw([0]), "c": draw([1, 2])}}

def subsets():
    return [Subset(WHOLE, share) for share in SHARES], WHOLE

def unlike():
    return {0: (np.ones((2, 2)), [0, 1]), 1: (np.ones((2, 3)), [0, 1])}, (np.ones((2, 2)), [0, 1])

def pairs():
    return [(np.ones((n, 2)), np.arange(n) % 3) for n in (3, 4, 5)], (np.ones((2, 2)), [0, 1])

def named():
    part = {"pixels": np.arange(24.0).reshape(12, 2), "user": np.arange(12) % 3, "label": np.arange(12) % 3}
    return part, part

class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(2, 3), torch.nn.Sigmoid())
"""


@pytest.fixture
def by_client(tmp_path):
    (tmp_path / "parts.py").write_text(BY_CLIENT)

    def scenario(function, partition="natural", model="logistic", **options):
        dataset = {"name": "torch", "factory": f"parts.py:{function}", **options}
        return scene(tmp_path, {"dataset": dataset, "model": model, "partition": partition}, 3)

    return scenario


def test_parts_by_client_are_those_of_a_natural_partition(by_client):
    info, data = read(by_client("dictionary"))
    assert (info.client_sizes.tolist(), data.client_names) == ([3, 2, 7], ("a", "b", "c"))
    assert data.x[:, 0].tolist() == [2 * i for i in (0, 1, 2, 3, 4, *range(5, 12))]
    assert data.test_clients.tolist() == [0, 1, 1, 3]
    info, data = read(by_client("subsets"))
    assert (info.client_sizes.tolist(), data.x[0].tolist()) == ([7, 3, 2], [10.0, 11.0])
    assert read(by_client("subsets", "iid"))[0].train_size == 12


def test_parts_by_client_that_are_unlike_or_asked_for_by_key_are_told(by_client):
    with pytest.raises(DataError, match=r"client 1 has input of shape \(3,\), .* client 0 has input of shape \(2,\)"):
        prepare(by_client("unlike"))
    with pytest.raises(DataError, match="comes by client already"):
        prepare(by_client("dictionary", {"name": "natural", "by": "user"}))
    with pytest.raises(DataError, match=r"train: is a list of 3 pairs of arrays, .* dict\(enumerate\(parts\)\)"):
        prepare(by_client("pairs"))
    with pytest.raises(ScenarioError, match=r"a function of yours may return {client: part}"):
        prepare(by_client("named"))


def test_the_clients_key_is_no_input_whatever_the_partition(by_client):
    for partition in ("natural", "iid"):
        info, _ = read(by_client("named", partition, client="user"))
        assert [part.name for part in info.inputs] == ["pixels"]
    assert info.client_sizes.tolist() == [4, 4, 4]
    assert [part.name for part in read(by_client("named", "iid"))[0].inputs] == ["pixels", "user"]


def test_check_says_which_keys_are_inputs(by_client):
    found = check(by_client("named", "iid"))
    assert found["inputs"] == [{"name": "pixels", "shape": [2]}, {"name": "user", "shape": []}]
    assert "\n  inputs     pixels (2,), user ()\n" in terminal_text.check(found)


def test_an_only_input_goes_by_position_where_forward_does_not_name_it(by_client):
    model = {"name": "torch", "factory": "parts.py:Net"}
    assert prepare(by_client("named", "iid", model, client="user")).model.parameters == 9


def test_data_of_a_file_that_takes_long_to_import_are_compared_too(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time, numpy as np\ntime.sleep(1.01)\n"
        "def load():\n"
        "    return (np.random.default_rng().normal(size=(4, 2)), [0, 1, 0, 1]), (np.ones((2, 2)), [0, 1])\n"
    )
    with pytest.raises(DataError, match=r"slow.py:load: returned other data when it was called again"):
        prepare(scene(tmp_path, {"dataset": {"name": "torch", "factory": "slow.py:load"}, **LOGISTIC}, 2))


WRONG = {
    "not a pair": ("return np.ones(3)", "returned ndarray (accepted: a pair train, test"),
    "a third part": (
        "return dict.fromkeys(['train', 'val', 'test'], pair([[1.0]], [0]))",
        "returned a dictionary with train, val, test (accepted: the keys train and test, or train,",
    ),
    "four parts": (
        "return [1], [2], [3], [4]",
        "returned 4 things (accepted: two, training data and test data, or a third, validation data)",
    ),
    "a dictionary without test": ("return {'train': []}", "returned a dictionary with train (accepted: the keys"),
    "no length": ("return iter([(1, 2)]), []", "train: found list_iterator, which has no length or no items"),
    "a streamed data set": (
        "return Streamed(), [([1.0], 0)]",
        "train: found Streamed, which has no length or no items",
    ),
    "no samples": ("return [], [([1.0], 0)]", "train: has no samples"),
    "no test samples": ("return [([1.0], 0)], []", "test: has no samples"),
    "no label": ("return [np.ones(3)], [np.ones(3)]", "train sample 0: found ndarray (accepted: (input, label)"),
    "ragged": (
        "return [([1.0], 0), ([1.0, 2.0], 1)], [([1.0], 0)]",
        "train sample 1, input: found shape (2,), sample 0 has (1,)",
    ),
    "text": ("return [('cat', 0)], [('dog', 0)]", "train sample 0, input: found text"),
    "an object": ("return [(object(), 0)], [(object(), 0)]", "train sample 0, input: found object"),
    "NaN": (
        "return pair([[1.0, 2], [np.nan, 3]], [0, 1]), pair([[1.0, 2]], [0])",
        "train sample 1, input: found nan (accepted: finite numbers)",
    ),
    "NaN in test": (
        "return pair([[1.0, 2], [1, 3]], [0, 1]), pair([[1.0, np.nan]], [0])",
        "test sample 0, input: found nan (accepted: finite numbers)",
    ),
    "NaN test labels": (
        "return (np.ones((2, 2)), [0.5, 1.5]), (np.ones((1, 2)), [np.nan])",
        "test sample 0, label: found nan",
    ),
    "infinite in test": (
        "return pair([[1.0, 2], [1, 3]], [0, 1]), pair([[1.0, np.inf]], [0])",
        "test sample 0, input: found inf",
    ),
    "too large for float32": ("return pair([[1e300], [1.0]], [0, 1]), pair([[1.0]], [0])", "found 1e+300"),
    "large identifiers": (
        "return pair([[2**25], [1]], [0, 1]), pair([[1]], [0])",
        "integers are exact up to 16,777,216",
    ),
    "lengths": ("return (np.ones((3, 2)), [0, 1]), (np.ones((1, 2)), [0])", "3 samples but 2 labels"),
    "shapes of train and test": (
        "return (np.ones((2, 2)), [0, 1]), (np.ones((1, 3)), [0])",
        "training samples have an input of shape (2,), test samples an input of shape (3,)",
    ),
    "labels from 1": ("return (np.ones((2, 2)), [1, 2]), (np.ones((1, 2)), [1])", "labels: found 1 to 2 but no 0"),
    "gaps": ("return (np.ones((2, 2)), [0, 2]), (np.ones((1, 2)), [0])", "labels: found 0 to 2 but no 1"),
    "negative": ("return (np.ones((2, 2)), [0, -1]), (np.ones((1, 2)), [0])", "labels: found -1 (accepted: from 0"),
    "NaN labels": (
        "return (np.ones((2, 2)), [0.5, np.nan]), (np.ones((1, 2)), [0.5])",
        "train sample 1, label: found nan",
    ),
    "labels of two shapes": ("return (np.ones((2, 2)), [0, 1]), (np.ones((1, 2)), [[0, 1]])", "(accepted: one shape;"),
    "raises": ("return 1 / 0", "line 6 (return 1 / 0): raised ZeroDivisionError"),
    "raises in an item": ("return Failing(), Failing()", "an item of its data raised ValueError: broken item"),
    "other data each time": (
        "return (np.random.rand(2, 2), [0, 1]), (np.ones((1, 2)), [0])",
        "returned other data when",
    ),
    "complex": ("return (np.ones((2, 2), complex), [0, 1]), (np.ones((1, 2)), [0])", "found complex128"),
    "lists of one length": ("return ([[1.0], [1.0, 2.0]], [0, 1]), ([[1.0]], [0])", "found list: setting an array"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_message_for_a_wrong_data_set(tmp_path, name):
    body, message = WRONG[name]
    (tmp_path / "wrong.py").write_text(
        f"""import numpy as np
class Streamed:
    def __iter__(self): yield 1
def pair(x, y): return np.array(x), np.array(y)
def load():
    {body}
class Failing:
    def __len__(self): return 2
    def __getitem__(self, i): raise ValueError("broken item")
"""
    )
    scenario = scene(tmp_path, {"dataset": {"name": "torch", "factory": "wrong.py:load"}, **LOGISTIC}, 1)
    with pytest.raises(DataError) as error:
        prepare(scenario)
    assert message in str(error.value)
    assert "wrong.py:load" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("function", "options", "partition", "count", "message"),
    [
        ("rows", {}, "iid", 4, 'the key "user" holds text'),
        ("rows", {"label": "lable"}, "iid", 4, 'has no key "lable"; did you mean "label"?'),
        ("rows", {}, {"name": "natural", "by": "usr"}, 4, 'has no key "usr"; did you mean "user"?'),
        ("rows", {}, {"name": "natural", "by": "user"}, 5, '"torch" comes from 4 clients, found 5 in the population'),
        ("arrays", {}, {"name": "natural", "by": "user"}, 4, 'has no column "user": it is arrays without names'),
        ("images", {}, {"name": "natural", "by": "user"}, 4, 'has no key "user": it is a tuple'),
        ("arrays", {}, "natural", 4, '"torch" does not come by client'),
        ("missing", {}, "iid", 4, "raised AttributeError"),
        ("arrays", {"arguments": {"year": 1}}, "iid", 4, "unexpected keyword argument 'year'"),
        ("arrays", {"shape": [1, 4, 4]}, "iid", 4, "samples of shape (5,) cannot become (1, 4, 4)"),
        ("values", {"target": "class"}, "iid", 4, "(accepted: whole numbers, or target: value)"),
        ("arrays", {"target": "sequence"}, "iid", 4, "labels of the kind sequence with shape ()"),
        ("values", {}, "iid", 4, "are of the kind value, and the loss cross_entropy"),
        ("arrays", {"classes": 2}, "iid", 4, "labels: found 2 (accepted: 0 to 1, as classes says)"),
    ],
)
def test_one_message_for_a_wrong_option(given, function, options, partition, count, message):
    scenario = given(function, {"model": "logistic", "partition": partition}, count, **options)
    with pytest.raises(UsageError) as error:
        prepare(scenario)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("by", "message"),
    [("gone.py:of", "no file"), (5, "must be a column, a key, or a function"), ("data.py:2", "must name something")],
)
def test_one_message_for_a_wrong_owner(given, by, message):
    with pytest.raises(ScenarioError, match=message) as error:
        given("rows", {"model": "logistic", "partition": {"name": "natural", "by": by}})
    assert "task.partition.by" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_function_of_a_sample_gets_a_dictionary_also_of_whole_columns(tmp_path, given):
    (tmp_path / "data.py").write_text(
        DATA
        + """
def columns(short=8):
    part = {"x": np.arange(8.0), "o": np.arange(short) % 2, "w": np.ones(8), "label": np.arange(8) % 2}
    return part, part
def who(sample): return f'{sample["o"]} of {sorted(sample)}'
"""
    )
    by = {"name": "natural", "by": "data.py:who"}
    _, data = read(given("columns", {"model": "logistic", "partition": by}, 2, inputs=["x"]))
    assert data.client_names == ("0 of ['label', 'o', 'w', 'x']", "1 of ['label', 'o', 'w', 'x']")
    with pytest.raises(DataError, match='column "o": 5 samples but 8 labels'):
        read(given("columns", {"model": "logistic", "partition": by}, 2, inputs=["x"], arguments={"short": 5}))


def test_clients_with_numbers_beyond_64_bits_are_known_by_their_digits(tmp_path, given):
    (tmp_path / "data.py").write_text("""import numpy as np
def big():
    part = {"x": np.arange(8.0), "o": np.array([2**63 + 1, 7] * 4, dtype=np.uint64), "label": np.arange(8) % 2}
    return part, {name: column[1::2] for name, column in part.items()}
""")
    _, data = read(given("big", {"model": "logistic", "partition": {"name": "natural", "by": "o"}}, 2))
    assert data.client_names == ("7", "9223372036854775809")
    assert sorted(np.diff(data.test_clients).tolist()) == [0, 4]


@pytest.mark.parametrize(("what", "said"), [("w", {"weights": "w"}), ("o", {})])
def test_weights_and_clients_that_change_from_call_to_call_are_refused(tmp_path, given, what, said):
    (tmp_path / "data.py").write_text(f"""import numpy as np
def load():
    part = {{"x": np.ones(8), "o": np.arange(8) % 2, "w": np.ones(8), "label": np.ones(8, int)}}
    return part | {{"{what}": np.random.randint(1, 9, 8)}}, part
""")
    task = {"model": "logistic", "partition": {"name": "natural", "by": "o"} if what == "o" else "iid"}
    with pytest.raises(DataError, match="returned other data when it was called again"):
        read(given("load", task, 2, classes=2, inputs=["x"], **said))


def test_a_built_in_data_set_has_no_columns(tmp_path):
    task = {"dataset": "digits", "model": "logistic", "partition": {"name": "natural", "by": "user"}}
    with pytest.raises(ScenarioError, match='found user, but "digits" has no columns'):
        prepare(scene(tmp_path, task))


def test_weights_of_samples_are_read(tmp_path, given):
    source = DATA.replace('"label": i % 3}', '"label": i % 3, "w": 1 + i}')
    (tmp_path / "data.py").write_text(source)
    scenario = given("rows", {"model": "logistic", "partition": {"name": "natural", "by": "user"}}, weights="w")
    _, data = read(scenario)
    assert sorted(data.weights.tolist()) == list(range(1, 13))
    assert prepare(scenario).info.weighted


def test_tensors_of_low_precision_and_with_gradients_are_read():
    from fedactors.data.user.arrays import array_of

    assert array_of(torch.ones(2, dtype=torch.bfloat16, requires_grad=True), "").tolist() == [1, 1]
