"""Data frames of pandas as data sets, and what is said of data that a newcomer is likely to bring in another form."""

import numpy as np
import pytest

from fedactors.data.user.client_parts import read_clients
from fedactors.data.user.labels import LabelRules, labels_of
from fedactors.data.user.samples import Keys
from fedactors.errors import DataError

pandas = pytest.importorskip("pandas")
TOWNS = ["Rome", "Oslo", "Rome"]
FRAME = pandas.DataFrame({"age": [20.0, 30, 40], "size": [1, 2, 3], "town": TOWNS, "label": [0, 1, 0]})
WHERE = "data.py:load: train"


def read(part, **keys):
    return read_clients(part, WHERE, Keys(**keys))


def test_columns_of_a_frame_are_those_of_a_dictionary():
    plain = {name: FRAME[name].tolist() for name in FRAME}
    for keys in ({"inputs": ("age", "size")}, {"label": "town"}, {"owner": "town"}):
        found, wanted = read(FRAME, **keys), read(plain, **keys)
        assert [name for name, _ in found.inputs] == [name for name, _ in wanted.inputs]
        pairs = [(one[1], other[1]) for one, other in zip(found.inputs, wanted.inputs, strict=True)]
        pairs.append((found.labels, wanted.labels))
        assert all(np.array_equal(one, other) for one, other in pairs)
    assert read(FRAME, owner="town").owners.tolist() == TOWNS
    assert read({"ann": FRAME, "bob": FRAME}, inputs=("age",)).owners.tolist() == ["ann"] * 3 + ["bob"] * 3


def test_a_frame_of_numbers_beside_labels_is_one_input():
    found = read((FRAME[["age", "size"]], FRAME["town"]))
    assert np.array_equal(found.inputs[0][1], [[20, 1], [30, 2], [40, 3]])
    assert found.labels.tolist() == TOWNS


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (FRAME, 'the key "town" holds text'),
        ((FRAME, [0, 1, 0]), 'train inputs, column "town": found text'),
        (FRAME.assign(town=pandas.to_datetime(["2020"] * 3)), r'train column "town": found datetime64'),
        ((FRAME.assign(town=[None, 1, {}]), [0, 1, 0]), 'train inputs, column "town": found list'),
    ],
)
def test_a_column_that_is_no_numbers_is_named(part, said):
    with pytest.raises(DataError, match=said):
        read(part)


def test_masks_are_told_how_to_become_labels():
    masks = np.zeros((5, 4, 4), int)
    with pytest.raises(DataError, match=r"masks as lists of 16, with target: sequence and a model that answers \(16, "):
        labels_of([masks, masks], LabelRules())
    flat = masks.reshape(5, 16)
    assert labels_of([flat, flat], LabelRules(target="sequence")).kind == "sequence"
