"""Freed blocks stay with the process: the system does not clear them anew for each step."""

import subprocess
import sys

import pytest

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
