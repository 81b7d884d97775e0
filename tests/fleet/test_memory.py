"""Memory that is handed on and written to again."""

import gc
import os

import numpy as np
import pytest

from fedactors.fleet.memory import Memory, Reused


def numbers(values):
    return memoryview(np.array(values, np.uint8))


def test_what_was_written_is_read_in_pieces_and_begins_where_arrays_should():
    memory = Memory.new(1000)
    memory.write([numbers([1, 2, 3]), numbers([7])], [0, 640])
    assert list(memory.read(0, 3)) == [1, 2, 3]
    found = memory.read(639, 642)
    assert list(found) == [0, 7, 0]
    assert np.frombuffer(found, np.uint8).ctypes.data % 64 == 0


def test_memory_that_is_shorter_than_it_should_be_is_told():
    with pytest.raises(EOFError, match="memory ends at 10, before 11"):
        Memory.new(10).read(2, 11)


def test_memory_is_written_to_again_when_it_was_given_back_and_not_before():
    reused = Reused()
    first, second = reused.take(1000), reused.take(1000)
    assert first is not second
    reused.give_back([first.number])
    assert reused.take(1000) is first
    assert reused.take(1000) not in (first, second)


def test_memory_that_is_too_small_or_far_too_large_is_not_taken_again():
    reused = Reused()
    one = reused.take(1000)
    reused.give_back([one.number])
    assert reused.take(1001) is not one
    assert reused.take(499) is not one
    assert reused.take(500) is one


def test_few_files_are_kept_however_many_sizes_there_were():
    gc.collect()
    before, reused = len(os.listdir("/proc/self/fd")), Reused()
    for size in range(10, 400, 13):
        many = [reused.take(size) for _ in range(3)]
        reused.give_back([memory.number for memory in many])
    del many
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 4
