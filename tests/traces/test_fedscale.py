"""FedScale's pickles: windows, periods, numpy of two ages, and pickles that try to run code."""

import os
import pickle

import numpy as np
import pytest
from timelines import as_dict, repaired

from fedactors.errors import TraceError
from fedactors.plan import SECOND
from fedactors.traces import pickles
from fedactors.traces.format_registry import read
from fedactors.traces.source import RecordingFile, load


def record(active, inactive, finish=86_400, **more):
    return {"active": active, "inactive": inactive, "finish_time": finish, **more}


def seconds(*windows):
    return [(on * SECOND, off * SECOND) for on, off in windows]


def test_windows_and_the_period_after_which_they_repeat(written):
    clients = {1: record([0, 20], [10, 30], duration=20), "2": record([], [], 172_800, duration=0)}
    timeline = read(written(pickle.dumps(clients)), strict=True)
    assert as_dict(timeline) == {"1": seconds((0, 10), (20, 30)), "2": []}
    assert timeline.first.tolist() == [0, 0]
    assert timeline.last.tolist() == [86_400 * SECOND, 172_800 * SECOND]


def test_repairs(written):
    clients = {
        "touch": record([0, 10, 30], [10, 20, 30], duration=20),
        "beyond": record([86_000, 90_000], [87_000, 91_000], duration=2000),
        "sum": record([0], [10], duration=11),
    }
    path = written(pickle.dumps(clients))
    timeline = read(path)
    assert as_dict(timeline) == {
        "touch": seconds((0, 20)),
        "beyond": seconds((86_000, 86_400)),
        "sum": seconds((0, 10)),
    }
    assert repaired(timeline) == {
        "windows that do not add up to the stated duration": 1,
        "window beyond finish_time cut off": 2,
        "window without length dropped": 2,
        "touching windows joined": 1,
    }
    with pytest.raises(TraceError, match=r'device "sum": windows that do not add up .*\(10 s, stated 11 s\)'):
        read(path, strict=True)


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([1, "inactive", "finish_time"], "a pickle of something else"),
        ({(1, 2): record([], [])}, "keys that are neither numbers nor texts"),
        ({1: ["inactive", "finish_time"]}, "of no client"),
        ({1: record([1], [])}, 'device "1": 1 times active, 0 inactive'),
        ({1: record([1, "2"], [2, 3])}, 'device "1": active is "[1, \'2\']"'),
        ({1: record([1.5], [2])}, 'device "1": active is'),
        ({1: record([[1]], [[2]])}, 'device "1": active is'),
        ({1: record([True], [2])}, 'device "1": active is'),
        ({1: record([-1], [2])}, 'device "1": active is'),
        ({1: record([1], [2**70])}, 'device "1": inactive is'),
        ({1: record([float("nan")], [2])}, 'device "1": active is'),
        ({1: record([1], [2], None)}, 'device "1": finish_time is'),
        ({1: record([5], [2])}, 'device "1", window 0: window ends before it begins'),
    ],
)
def test_damage_is_named_with_its_client(written, clients, message):
    path = written(pickle.dumps(clients))
    with pytest.raises(TraceError) as caught:
        read(path, format="fedscale")
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


class Attack:
    """Pickles as a call of `function(*arguments)`."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("function", [os.mkdir, eval, getattr, np.array, __import__])
def test_a_pickle_that_would_run_code_is_refused(written, tmp_path, function, protocol):
    target = str(tmp_path / "made")
    content = {1: record([], []), "inactive finish_time": Attack(function, target)}
    with pytest.raises(TraceError, match="pickle refused: it asks for"):
        read(written(pickle.dumps(content, protocol)))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numpy_scalars_load_whatever_numpy_wrote_them(protocol):
    numbers = [
        np.float64(153.5),
        np.float32(0.5),
        np.int64(-7),
        np.int32(7),
        np.uint8(200),
        np.dtype(">i4").type(9),
    ]
    data = pickle.dumps(numbers, protocol)
    old = data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray") if protocol < 4 else data
    for content in {data, old}:
        assert pickles.load(RecordingFile("here", content)) == [153.5, 0.5, -7, 7, 200, 9]


def test_big_endian_scalars():
    value = np.array([1.5], dtype=">f8")[0]
    assert pickles.load(RecordingFile("here", pickle.dumps(value))) == 1.5


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04",
        b"\x80\x04.",
        b"\x80\x02}r\xff\xff\xff\xff.",  # a memo of 4 billion entries
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",  # bytes longer than memory
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff}.",
        b"\x80\x02cnumpy\ndtype\n(X\x02\x00\x00\x00O8tR.q",
        b"\x80\x02cnumpy.core.multiarray\nscalar\n(K\x01K\x02tR.",
        b"\x80\x02\x82\x01.",  # the extension registry
        b"\x80\x02Pid\n.",  # a persistent id
        b"\x80\x63.",
    ],
)
def test_damaged_pickles_give_data_or_one_error(data):
    try:
        pickles.load(RecordingFile("here", data))
    except TraceError as error:
        message = str(error)
    else:
        message = ""
    assert not message or message.startswith("here: pickle ")


def test_counts_of_the_real_recording(recording):
    """The 70 most available clients of FedScale's file."""
    path = recording("fedscale/client_behave_trace")
    timeline = read(path)
    clients = pickles.load(load(path))
    assert len(timeline) == 70
    assert timeline.names[:3] == ("1", "2", "3")
    windows = sum(len(client["active"]) for client in clients.values())
    assert repaired(timeline) == {"window without length dropped": 5, "touching windows joined": 485}
    assert len(timeline.on) == windows - 490 == 4042
    on = np.add.reduceat(timeline.off - timeline.on, timeline.starts[:-1]) // SECOND
    assert on.tolist() == [client["duration"] for client in clients.values()]
    assert sorted(on.tolist(), reverse=True) == on.tolist()
    days = timeline.last / (86_400 * SECOND)
    assert set(days) <= set(range(5, 14))
    assert list(timeline.windows(0)) == seconds((51490, 59046), (60870, 87718), (140727, 161219), (164520, 1081886))
