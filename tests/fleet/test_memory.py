"""Memory that is handed on and written to again."""

import gc
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from fedactors.fleet.transport.memory_files import Mappings, Memory, Reused


def numbers(values):
    return memoryview(np.array(values, np.uint8))


def test_what_was_written_is_read_in_pieces_and_begins_where_arrays_should():
    memory = Memory.new(1000)
    memory.write([numbers([1, 2, 3]), numbers([7])], [0, 640])
    assert list(Mappings().read(memory, 0, 3)) == [1, 2, 3]
    found = Mappings().read(memory, 639, 642)
    assert list(found) == [0, 7, 0]
    assert np.frombuffer(found, np.uint8).ctypes.data % 64 == 0


def test_memory_that_is_shorter_than_it_should_be_is_told():
    with pytest.raises(ValueError, match="bytes 2 to 11 of a memory of 10 bytes"):
        Mappings().read(Memory.new(10), 2, 11)


def test_what_was_read_stays_when_the_memory_is_written_to_again():
    memory, mappings = Memory.new(100), Mappings()
    memory.write([numbers([1])], [0])
    before = mappings.read(memory, 0, 1)
    memory.write([numbers([2])], [0])
    assert (list(before), list(mappings.read(memory, 0, 1))) == ([1], [2])


@pytest.mark.parametrize(("size", "most"), [(100, 64), (20_000_000, 3), (70_000_000, 1)])
def test_few_files_stay_mapped_and_those_that_come_again_are_told_apart(size, most):
    gc.collect()
    before, mappings = len(os.listdir("/proc/self/fd")), Mappings()
    for number in range(80 if size == 100 else 5):
        memory = Memory.new(size)
        memory.write([numbers([number])], [0])
        assert list(mappings.read(memory, 0, 1)) == [number]
    del memory
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before + most


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


_FAULTS = """
import resource
import threading

import numpy as np

from fedactors.fleet import freed_memory


def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        vectors = [np.ones(159_010, np.float32) for _ in range(6)]
        del vectors
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


freed_memory.keep()
for _ in range(3):
    faults()
threading.Thread(target=lambda: [faults(), faults()]).start()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="told to glibc only")
def test_memory_that_is_freed_is_kept_for_what_is_needed_next_by_threads_too():
    found = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=True)
    first, *others, thread, again = map(int, found.stdout.split())
    assert first >= 100
    assert thread >= 100
    assert max(*others, again) < 10, "20 times 930 pages otherwise"
