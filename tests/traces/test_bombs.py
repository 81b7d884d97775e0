"""A few bytes that ask for gigabytes or for days: pickles and gzip files are read within bounds."""

import gzip
import pickle
import resource
import time

import pytest

from fedactors.errors import TraceError
from fedactors.traces.format_registry import read, read_any

HEAD = b"\x80\x02}"  # protocol 2, and a dict on the stack


def client(**changes):
    return pickle.dumps({1: {"active": [1], "inactive": [2], "finish_time": 9, **changes}})


def doubled(times):
    """Return a tuple of two times the same tuple of two times the same …"""
    value = (1,)
    for _ in range(times):
        value = (value, value)
    return value


@pytest.mark.parametrize("format", ["fedscale", "fedscale-devices"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps({10**10_000: {}}), "a number of 9,9"),
        (client(active=[10**10_000]), "a number of 9,9"),
        (client(duration=-(10**10_000)), "a number of 9,9"),
        (HEAD + b"I" + b"9" * 5000 + b"\nK\x01s.", "pickle damaged"),
        (HEAD + b"K\x01" + b"]" * 100_000 + b"a" * 99_999 + b"s.", "lists or dicts in one another"),
        (HEAD + b"K\x01)" + b"\x85" * 100_000 + b"s.", "lists or dicts in one another"),
        pytest.param(
            HEAD + b")" + b"\x85" * 1_000_000 + b"K\x01s.",
            "keys that are neither numbers nor texts",
            marks=pytest.mark.slow,
        ),
        (HEAD + b"(" + b"K\x01\x85" + b"2\x86" * 40 + b"K\x01u.", "keys that are neither numbers nor texts"),
        (client(active=doubled(40)), "more than its bytes can state"),
        (client(active=["x" * 1_000_000] * 3000), "more than its bytes can state"),
        (b"\x80\x02]q\x00h\x00a.", "lists or dicts in one another"),
        (HEAD + b"K\x01](" + b"}" * 2_000_001 + b"es.", "more than 2,000,000 lists and dicts"),
        (client(active={1, 2}), "sets or instances"),
    ],
    ids=range(13),
)
def test_a_pickle_that_asks_for_too_much_is_refused_at_once(written, format, content, words):
    path = written(content)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with pytest.raises(TraceError) as caught:
        read_any(path, format=format)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400
    assert time.perf_counter() - begun < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # kB


def test_one_list_that_several_clients_share_is_read(written):
    times = [1, 5]
    clients = {k: {"active": times, "inactive": [2, 9], "finish_time": 9} for k in range(50)}
    assert len(read(written(pickle.dumps(clients)))) == 50


def test_a_pickle_cannot_change_the_reader(written):
    """Attributes are set on our stand-ins of numpy's types alone, not on the functions that rebuild scalars."""
    content = b"\x80\x02cnumpy.core.multiarray\nscalar\n}X\x01\x00\x00\x00aK\x01sb."
    with pytest.raises(TraceError, match="sets or instances"):
        read(written(content), format="fedscale")


def test_gzip_unpacks_up_to_a_bound_unless_told(written, monkeypatch):
    path = written(gzip.compress(b"device,on,off\na,0,5s\n" + b"#" * 3_000_000, mtime=0))
    monkeypatch.setenv("FEDACTORS_UNPACKED", "2 MB")
    with pytest.raises(TraceError, match=r"unpacks to more than 2,000,000 bytes .*FEDACTORS_UNPACKED"):
        read(path)
    monkeypatch.setenv("FEDACTORS_UNPACKED", "4 MB")
    with pytest.raises(TraceError, match="line 3: field larger"):
        read(path)
    monkeypatch.setenv("FEDACTORS_UNPACKED", "much")
    with pytest.raises(TraceError, match="environment variable FEDACTORS_UNPACKED: 'much'"):
        read(path)


@pytest.mark.slow
def test_gzip_of_a_gigabyte_is_refused(written, monkeypatch):
    monkeypatch.delenv("FEDACTORS_UNPACKED", raising=False)
    part = gzip.compress(bytes(2**24), mtime=0)  # members of a gzip file follow one another
    with pytest.raises(TraceError, match="unpacks to more than 536,870,912 bytes"):
        read(written(part * 64))
