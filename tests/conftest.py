"""Shared by all tests: one torch thread, no deadline on examples, and where real recordings and images lie."""

import gc
import os
from pathlib import Path

import pytest

from fedactors import bits

bits.choose()  # before numpy is imported

from hypothesis import HealthCheck, settings  # noqa: E402

from tests.examples import USUAL, share  # noqa: E402

SHARED = Path(os.environ.get("FEDACTORS_SHARED", Path(__file__).parents[2] / "shared"))

os.environ["FEDACTORS_HOME"] = str(Path(__file__).parent / "nothing-was-fetched")  # not what a user has fetched
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two threads give other bits, and crawl when the machine is busy
# the first example pays for imports; partitions refuse many of the examples drawn for them
refused = [HealthCheck.filter_too_much]
settings.register_profile("fedactors", deadline=None, max_examples=share(USUAL), suppress_health_check=refused)
settings.load_profile("fedactors")


def pytest_collection_finish():
    """Leave out of later collections of garbage what is there: all libraries, which thousands of tests would visit."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_pages():
    """Draw no page of a run: it takes four times as long as a small run. Tests that look at pages ask for `pages`."""
    from fedactors.simulation import runner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "write_report", lambda folder: None)
        yield


@pytest.fixture
def pages(monkeypatch):
    """Have runs draw their pages, as they do outside of tests."""
    from fedactors.report.html import write

    monkeypatch.setattr("fedactors.simulation.runner.write_report", write)


@pytest.fixture
def shared():
    """Return the folder of real recordings and images; skip where it is absent."""
    if not (SHARED / "traces").exists():
        pytest.skip(f"real recordings and images are not at {SHARED} (set FEDACTORS_SHARED)")
    return SHARED
