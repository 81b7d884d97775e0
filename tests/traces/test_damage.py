"""Whatever happens to a file's bytes, reading it gives a timeline or one TraceError."""

import contextlib
import gzip
import json
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.errors import TraceError
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.format_registry import formats, read, read_any
from fedactors.traces.formats import native
from fedactors.traces.series import Series
from fedactors.traces.timeline import Timeline, build
from tests.examples import drawn

LOG = "".join(
    f"2020-02-0{1 + k // 20} {k % 20:02}:00:00 \t{word}\n"
    for k, word in enumerate(["wifi", "battery_charged_on", "screen_lock", "40.0%", "4G", "screen_on"] * 5)
)


def _written(timeline: Timeline, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        native.write(timeline, Path(folder) / name)
        return (Path(folder) / name).read_bytes()


_TIMELINE = build([(f"phone {k}", [(k, 20 + k), (30 + k, 50 + k)], 0, 100) for k in range(8)])
SAMPLES = {
    "csv": _written(_TIMELINE, "t.csv"),
    "gzip": gzip.compress(_written(_TIMELINE, "t.csv"), mtime=0),
    "parquet": _written(_TIMELINE, "t.parquet"),
    "rates": b"row,from_ns,to,bytes/s\n"
    + b"".join(b"link %d,%d,%ds,%d\n" % (k // 2, 5 * 10**9 * (k % 2), 5 * (k % 2 + 1), k) for k in range(12)),
    "devices": b"device,inference_ns,benchmark\n" + b"".join(b"phone %d,%d,x\n" % (k, k) for k in range(12)),
    "latencies": b"from,to,ns\n" + b"".join(b"%d,%d,%d\n" % (k // 4, k % 4, k) for k in range(16)),
    "fedscale": pickle.dumps(
        {k: {"active": [5, 90], "inactive": [50, 100 + k], "finish_time": 200, "duration": 55 + k} for k in range(5)}
    ),
    "fta": b"# event_id node_id event_type event_start_time event_stop_time\n"
    + b"".join(b"%d n%d %d %d %d\n" % (k, k // 4, k % 2, 86_400 + k, 86_401 + k) for k in range(12)),
    "spot": json.dumps({"metadata": {"gap_seconds": 30}, "data": [0, 1, 2, 2, 1, 0] * 4}).encode(),
    "hsdpa": b"".join(b"%d %d 59.8 NOFIX %d 1000\n" % (1_285_675_666 + k, k, k * 77) for k in range(12)),
    "irish-5g": b"Timestamp,DL_bitrate,UL_bitrate,State\n"
    + b"".join(b"2019.12.16_11.49.%02d,%d,-,I\n2019.12.16_11.49.%02d,%d,7,D\n" % (k, k, k, k) for k in range(9)),
    "mahimahi": b"".join(b"%d\n" % (k * k // 3) for k in range(30)),
    "cooked": b"".join(b"%d.5\t0.%d\n" % (k * 5, k) for k in range(30)),
    "planetlab": b"".join(b"%d\n" % (k * 7 % 100) for k in range(288)),
    "fedscale-devices": pickle.dumps(
        {k: {"computation": np.float64(k + 1), "communication": 10.5, "dl_kbps": 7} for k in range(5)},
        protocol=3,
    ),
    "ai-benchmark": json.dumps([{"Model": f"m{k}", "AI_Score": f" {k} 1,6"} for k in range(5)]).encode(),
    "latency": b"".join(b"%d.25,%d,-0.5,7\n" % (k, k * 9) for k in range(4)),
    "flash": json.dumps(
        {str(k): {"guid": str(k), "messages": "\n".join(LOG.split("\n")[3 * k :])} for k in (0, 1, 2)}
    ).encode(),
}


def _flip(data: bytes, at: int, value: int) -> bytes:
    at %= max(len(data), 1)
    return data[:at] + bytes([value]) + data[at + 1 :]


def _swap(data: bytes, at: int, value: int) -> bytes:
    lines = data.split(b"\n")
    one, two = at % len(lines), value % len(lines)
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


HARM = {
    "truncate": lambda data, at, value: data[: at % (len(data) + 1)],
    "flip": _flip,
    "nul": lambda data, at, value: _flip(data, at, 0),
    "insert": lambda data, at, value: data[: at % (len(data) + 1)] + bytes([value]) + data[at % (len(data) + 1) :],
    "swap lines": _swap,
    "repeat": lambda data, at, value: data + data[at % (len(data) + 1) :],
    "cut out": lambda data, at, value: data[: at % (len(data) + 1)] + data[at % (len(data) + 1) + value :],
}
HARMS = st.lists(st.tuples(st.sampled_from(sorted(HARM)), st.integers(0, 10_000), st.integers(0, 255)), max_size=4)


def test_every_format_has_a_sample_that_it_recognises(tmp_path):
    assert SAMPLES.keys() - {"gzip"} == {kind.name for kind in formats()}
    for kind in formats():
        recognised = next(one for one in formats() if one.reader.looks_like(SAMPLES[kind.name]))
        assert recognised is kind
        read_any(_put(tmp_path / "trace", SAMPLES[kind.name]))


@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_damaged_bytes_give_a_timeline_or_one_error(kind, tmp_path):
    path = tmp_path / "trace"

    @drawn(40)
    @given(HARMS, st.sampled_from([None, kind.replace("gzip", "csv")]), st.booleans())
    def check(harms, named, strict):
        data = SAMPLES[kind]
        for harm, at, value in harms:
            data = HARM[harm](data, at, value)
        path.write_bytes(data)
        message = ""
        try:
            assert isinstance(read_any(path, format=named, strict=strict), (Timeline, Series, DeviceTable, Matrix))
        except TraceError as error:
            message = str(error)
        assert not message or (message.startswith(f"{path}: ") and len(message) < 1000)

    check()


@drawn(15)
@given(st.binary(max_size=200))
def test_any_bytes_at_all(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(data)
        for kind in (None, *sorted(SAMPLES.keys() - {"gzip"})):
            with contextlib.suppress(TraceError):
                read_any(path, format=kind)


def test_a_flipped_bit_in_parquet_is_never_another_timeline(tmp_path):
    """Every eleventh byte in turn: read as written, or refused."""
    path = tmp_path / "trace"
    whole = read(_put(path, SAMPLES["parquet"]))
    for at in range(0, len(SAMPLES["parquet"]), 11):
        try:
            back = read(_put(path, _flip(SAMPLES["parquet"], at, SAMPLES["parquet"][at] ^ 4)))
        except TraceError:
            continue
        assert back.same_as(whole), at


def _put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
