"""Shared by the tests of fetching: no waiting between tries, and MNIST packed as it is published."""

import gzip

import pytest

from tests.conftest import SHARED


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Have pooch try again at once."""
    core = pytest.importorskip("pooch.core")
    monkeypatch.setattr(core.time, "sleep", lambda seconds: None)


@pytest.fixture(scope="session")
def packed_mnist():
    """Return MNIST's four archives by name, of another gzip level than the published ones."""
    raw = SHARED / "data" / "MNIST" / "raw"
    if not raw.is_dir():
        pytest.skip(f"MNIST is not at {raw} (set FEDACTORS_SHARED)")
    return {f"{path.name}.gz": gzip.compress(path.read_bytes(), 1, mtime=0) for path in sorted(raw.iterdir())}
