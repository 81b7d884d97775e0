"""Keys of clients: equal values of unlike types are one client."""

import numpy as np
import pytest

from fedactors.data.user.samples import owner_column


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        ([2, 10], [2, 10]),
        ([2.0, 10.0], [2, 10]),
        (np.array([2.0, 10.0], np.float32), [2, 10]),
        ([2.0, 2.5], ["2", "2.5"]),
        ([2.0, "a", b"a"], ["2", "a", "a"]),
        ([1e30, 2], [str(int(1e30)), "2"]),
    ],
)
def test_equal_values_are_one_client(owners, found):
    assert owner_column(owners, "train").tolist() == found
