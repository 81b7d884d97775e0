"""Processes of a study that the system ends."""

import os
import signal

import pytest

from fedactors.errors import FleetError
from fedactors.study.worker_processes import each, ends_told


@pytest.mark.parametrize(("function", "work"), [(os._exit, [9, 9]), (signal.raise_signal, [signal.SIGKILL] * 2)])
def test_a_worker_that_is_ended_is_told_in_a_sentence(function, work):
    with pytest.raises(FleetError, match=r"was ended by the system, as it does where memory runs out.*--jobs"):
        list(each(function, work, 2))


def test_other_errors_stay_as_they_are():
    with pytest.raises(ZeroDivisionError), ends_told():
        print(1 / 0)
    with pytest.raises(TypeError):
        list(each(len, [1, 2], 2))
