"""The digits are those of scikit-learn, read without importing it."""

import subprocess
import sys
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from fedactors.data.sets import digits
from fedactors.errors import DataError


def test_images_and_labels_are_scikit_learns():
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    images, labels = digits._bundled()
    assert images.dtype == np.float32
    assert labels.dtype == np.int64
    assert np.array_equal(images, (x / 16).astype(np.float32).reshape(-1, 1, 8, 8))
    assert np.array_equal(labels, y)


def test_scikit_learn_is_not_imported():
    code = (
        "import sys; from fedactors.data.sets.digits import Digits; Digits().load(0, 1);"
        "sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_file_that_is_missing_is_named(monkeypatch, tmp_path):
    package = ModuleSpec("sklearn", None, is_package=True)
    package.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(digits, "find_spec", lambda name: package)
    with pytest.raises(DataError, match=r"digits.csv.gz: cannot be read: .*installed anew"):
        digits._bundled.__wrapped__()
    monkeypatch.setattr(digits, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="needs the package scikit-learn"):
        digits._bundled.__wrapped__()
