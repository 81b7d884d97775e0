"""Archives that were fetched: one that is damaged is removed and leaves nothing; a full disk costs no archive."""

import io
import zipfile

import pytest

from fedactors.errors import UsageError
from fedactors.fetching.downloads import unzip

METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
CONTENT = bytes(range(256)) * 4


def archive(method):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as file:
        file.writestr("set/a", CONTENT)
        file.writestr("set/b", CONTENT[::-1])
    return made.getvalue()


def refusal(path, folder):
    """Return what is said of an archive that cannot be unpacked; nothing if it is."""
    try:
        unzip(path, folder)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")  # of names that stand twice
@pytest.mark.parametrize("method", METHODS, ids=["stored", "deflated", "bzip2", "lzma"])
def test_a_damaged_archive_is_removed_and_leaves_nothing(method, tmp_path):
    """Each third byte is changed in turn. What is unpacked all the same holds the bytes that were packed."""
    whole = archive(method)
    damaged = 0
    for place in range(0, len(whole), 3):
        path, folder = tmp_path / "set.zip", tmp_path / f"to-{place}"
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        if said := refusal(path, folder):
            assert "not a zip archive that can be read" in said
            assert "removed" in said
            assert not path.exists()
            assert not folder.exists()
            damaged += 1
        else:
            contents = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
            assert all(content in (CONTENT, CONTENT[::-1]) for content in contents)
    assert damaged > 10


def test_an_archive_that_cannot_be_unpacked_is_kept(tmp_path):
    path = tmp_path / "set.zip"
    path.write_bytes(archive(zipfile.ZIP_DEFLATED))
    (tmp_path / "set").touch()  # where the folder would be
    with pytest.raises(UsageError, match=r"set\.zip: cannot be unpacked into .*: .+") as told:
        unzip(path, tmp_path)
    assert "removed" not in str(told.value)
    assert path.exists()
