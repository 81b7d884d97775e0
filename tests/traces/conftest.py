"""Where the real recordings lie, for tests that count on them."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("FEDACTORS_SHARED", Path(__file__).parents[2].parent / "shared")) / "traces"


@pytest.fixture
def recording():
    """Return the path of a real recording; skip the test where the recordings are not at hand."""

    def find(name: str) -> Path:
        if not (SHARED / name).exists():
            pytest.skip(f"the recording {name} is not at {SHARED} (set FEDACTORS_SHARED)")
        return SHARED / name

    return find


@pytest.fixture
def written(tmp_path):
    """Return a function that writes text or bytes to a file and gives its path."""

    def write(content: str | bytes, name: str = "trace") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
