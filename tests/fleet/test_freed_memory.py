"""Freed blocks stay with the process: the system does not clear them anew for each step."""

import subprocess
import sys

import pytest

from fedactors.fleet import freed_memory

FAULTS = """
import resource, numpy
from fedactors.fleet import freed_memory
{keep}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
numpy.ones(11_000_000, "f4")
before = faults()
for _ in range(5):
    numpy.ones(11_000_000, "f4")
print(faults() - before)
"""
PAGES = 5 * 44_000_000 // 2**21  # of the largest usual size


def faults(keep):
    code = FAULTS.format(keep=keep)
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc")
def test_blocks_of_a_large_model_are_used_again():
    assert faults("") >= PAGES > faults("freed_memory.keep()")


class OldLibrary:
    """glibc whose blocks of more than 32 MiB always go back."""

    def __init__(self):
        self.settings = {}

    def mallopt(self, name, value):
        if name == -3 and value > 2**25:
            return 0
        self.settings[name] = value
        return 1


def test_a_library_that_refuses_large_blocks_keeps_what_it_can():
    old = OldLibrary()
    freed_memory.keep_in(old)
    assert old.settings == {-3: 2**25, -1: 2**27}
