"""Recordings come whole and of the right checksum, or one message says why not; nothing wrong is left behind."""

import gzip
import hashlib
import json

import pytest

from fedactors import home
from fedactors.cli.main import main
from fedactors.errors import UsageError
from fedactors.fetching import downloads, sources, trace_sets
from fedactors.fetching.trace_sets import fetch_recording, files_of
from tests.fetching.faulty_server import serving


def made_up(name, monkeypatch):
    """Return other files in place of those of a set, by path; the list has their checksums."""
    files = {file.path: f"{file.path}\n".encode() * 500 for file in files_of(name)}
    listed = [file._replace(sha256=hashlib.sha256(files[file.path]).hexdigest()) for file in files_of(name)]
    monkeypatch.setattr(trace_sets, "files_of", {name: listed}.__getitem__)
    return files


@pytest.fixture
def mahimahi(monkeypatch):
    return made_up("mahimahi", monkeypatch)


def fetched(folder, server, name="mahimahi", patience=5.0):
    said = []
    fetch_recording(name, folder, server.url, said.append, patience)
    return said


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_list_names_known_sets_and_each_has_a_source():
    assert set(sources.TRACES) == set(home.TRACE_SETS)
    for name in home.TRACE_SETS:
        files = files_of(name)
        assert files, name
        assert all(file.path.startswith(f"{name}/") and file.address.startswith("https://") for file in files)
        assert all(len(file.sha256) in (0, 64) for file in files)
        assert len({file.path for file in files}) == len(files)


def test_the_list_has_the_checksums_of_what_is_published(shared, tmp_path):
    folder = shared / "traces" / "mahimahi"
    published = {f"mahimahi/{path.stem}": gzip.decompress(path.read_bytes()) for path in folder.glob("*.gz")}
    with serving(published) as server:
        fetched(tmp_path, server)
    assert contents(tmp_path) == published


def test_whole_files_arrive_and_are_not_fetched_again(mahimahi, tmp_path):
    with serving(mahimahi) as server:
        said = fetched(tmp_path, server)
        assert contents(tmp_path) == mahimahi
        assert len(server.asked) == len(said) == 4
        fetched(tmp_path, server)
        assert len(server.asked) == 4


@pytest.mark.parametrize("fault", ["cut", "short length", "long length", "other bytes", "missing", "silent"])
def test_an_faulty_server_is_one_message_and_leaves_nothing(fault, mahimahi, tmp_path):
    with (
        serving(mahimahi, fault) as server,
        pytest.raises(UsageError, match=r"http://127.0.0.1:\d+/mahimahi/.*: not fetched: \S") as caught,
    ):
        fetched(tmp_path, server, patience=0.3)
    assert "\n" not in str(caught.value)
    assert len(server.asked) == downloads.TRIES
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("fault", ["cut", "short length", "other bytes"])
def test_a_second_try_is_enough(fault, mahimahi, tmp_path):
    with serving(mahimahi, fault, faulty_times=1) as server:
        fetched(tmp_path, server)
    assert contents(tmp_path) == mahimahi


def test_a_fetch_that_was_stopped_goes_on(mahimahi, tmp_path):
    paths = [file.path for file in files_of("mahimahi")]
    with serving({path: mahimahi[path] for path in paths[:2]}) as server, pytest.raises(UsageError, match="404"):
        fetched(tmp_path, server)
    with serving(mahimahi) as server:
        fetched(tmp_path, server)
        assert [path.lstrip("/") for path in server.asked] == paths[2:]
    assert contents(tmp_path) == mahimahi


def test_a_file_of_the_user_is_not_overwritten(mahimahi, tmp_path):
    path = tmp_path / files_of("mahimahi")[0].path
    path.parent.mkdir()
    path.write_text("mine")
    with serving(mahimahi) as server, pytest.raises(UsageError, match="is there already, and is not the file"):
        fetched(tmp_path, server)
    assert path.read_text() == "mine"


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="not fetched: "):
        fetch_recording("latency", tmp_path, "http://127.0.0.1:9", lambda text: None)


def thousand(first):
    """Return a recording like FLASH's whole one, which begins with the phones that are here."""
    more = {str(number): {**first["0"], "guid": str(number)} for number in range(60, 100)}
    return json.dumps({**first, **more}).encode()


def test_of_flash_the_first_phones_are_written_and_compared(shared, tmp_path):
    path = shared / "traces" / "flash" / "state_traces_60.json"
    first = json.loads(path.read_text())
    with serving({"flash/state_traces.json": thousand(first)}) as server:
        said = fetched(tmp_path, server, "flash")
    assert (tmp_path / "flash" / "state_traces_60.json").read_bytes() == path.read_bytes()
    assert "flash: the SHA-256 of 1 of 1 files is not known: compared with nothing" in said


@pytest.mark.parametrize("wrong", [b"<html>not found</html>", b'{"0": {}}', b"[]"])
def test_of_flash_other_phones_are_refused_and_removed(wrong, tmp_path):
    with (
        serving({"flash/state_traces.json": wrong}) as server,
        pytest.raises(UsageError, match=r"not FLASH's recording of phones.*removed"),
    ):
        fetched(tmp_path, server, "flash")
    assert contents(tmp_path) == {}


def test_of_flash_one_changed_event_is_noticed(shared, tmp_path):
    first = json.loads((shared / "traces" / "flash" / "state_traces_60.json").read_text())
    first["7"]["messages"] = first["7"]["messages"].replace("wifi", "3G", 1)
    with (
        serving({"flash/state_traces.json": thousand(first)}) as server,
        pytest.raises(UsageError, match="first 60 phones are not those that were published; removed"),
    ):
        fetched(tmp_path, server, "flash")


def test_an_archive_that_is_none_is_removed(tmp_path):
    with (
        serving({"irish-5g/5G-production-dataset.zip": b"PK not really"}) as server,
        pytest.raises(UsageError, match=r"not a zip archive that can be read.*removed"),
    ):
        fetched(tmp_path, server, "irish-5g")
    assert contents(tmp_path) == {}


def test_the_command_tells_licence_and_citation_and_where(tmp_path, monkeypatch, capsys):
    files = made_up("latency", monkeypatch)
    latency = files["latency/latencies.txt"]
    monkeypatch.delenv("FEDACTORS_TRACES", raising=False)
    monkeypatch.setenv("FEDACTORS_HOME", str(tmp_path / "home"))
    with serving({"latency/latencies.txt": latency}) as server:
        assert main(["traces", "fetch", "latency", "--mirror", server.url]) == 0
        said = capsys.readouterr().out
        assert "licence   MIT" in said
        assert "please cite" in said
        assert (tmp_path / "home/traces/latency/latencies.txt").read_bytes() == latency
        monkeypatch.setenv("FEDACTORS_TRACES", str(tmp_path / "mine"))
        assert main(["traces", "fetch", "latency", "--mirror", server.url]) == 0
        assert (tmp_path / "mine/latency/latencies.txt").read_bytes() == latency


def test_names_are_listed_and_wrong_ones_refused(capsys):
    assert main(["traces", "fetch"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == set(home.TRACE_SETS)
    assert main(["traces", "fetch", "flahs"]) == 2
    assert 'traces fetch: no "flahs"; did you mean "flash"?' in capsys.readouterr().err
