"""Thousands of damaged recordings and scenarios: read, or refused in one message, in bounded time and memory."""

import random
import resource
import time
from pathlib import Path

import pytest
from test_damage import HARM, SAMPLES

from fedactors.errors import ScenarioError, TraceError
from fedactors.scenario.loading import parse, validate
from fedactors.traces.doubts import doubts
from fedactors.traces.format_registry import read_any
from fedactors.traces.summaries import summarize

ROOT = Path(__file__).parents[2]
SCENARIOS = [path.read_bytes() for path in sorted((ROOT / "scenarios").glob("*.yaml"))]
LONGEST = 20.0  # s
LARGEST = 2 * 10**6  # kB
PIECES = [
    *(b"9" * 5000, b"-1", b"1e99", b"0x" + b"f" * 5000, b"nan", b"inf", b"\xff\xfe", b"\x00", b"\xed\xa0\xbd"),
    *(b"\xf0\x9f\x98\x80", b"!!timestamp abc", b"!!binary x", b"&a [*a]", b"[" * 3000, b"{" * 3000, b"2 Mb/s"),
    *(b"1:30:00", b"<<: 3", b"? [a]"),
    *(b"\"\\ud83d\"", b",,,,", b";", b'"', b"\n\n", b"\r", b"\t", b" ", b"9223372036854775808", b"1700000000000"),
    *(b"]" * 3000 + b"a" * 2999, b"\x85" * 3000, b"2\x86" * 60, b"\x8a\xff", b"q\x00h\x00a", b"\x1f\x8b"),
]  # fmt: skip


def damaged(draws, data):
    """Return `data` after one to four harms."""
    for _ in range(draws.randint(1, 4)):
        at = draws.randrange(len(data) + 1)
        if draws.random() < 0.4:
            piece = draws.choice(PIECES)
            data = data[:at] + piece + data[at + draws.choice([0, 1, len(piece)]) :]
        else:
            data = HARM[draws.choice(sorted(HARM))](data, at, draws.randrange(256))
    return data


def recording(draws, path):
    """Read one damaged recording, and say what it holds."""
    kind = draws.choice(sorted(SAMPLES))
    path.write_bytes(damaged(draws, SAMPLES[kind]))
    named = draws.choice([None, kind.replace("gzip", "csv")])
    try:
        found = read_any(path, format=named, strict=draws.random() < 0.2)
    except TraceError as error:
        return str(error)
    assert summarize(found).text() + "".join(doubts(found))
    return f"{path}: read"


def scenario(draws, path):
    """Validate one damaged scenario."""
    text = damaged(draws, draws.choice(SCENARIOS)).decode("utf-8", "replace")
    try:
        data, lines = parse(text, str(path))
        validate(data, str(path), lines, ROOT / "scenarios")
    except ScenarioError as error:
        return str(error)
    return f"{path}: sound"


def fuzz(one, seeds, path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        begun = time.perf_counter()
        said = one(random.Random(seed), path)
        assert time.perf_counter() - begun < LONGEST, seed
        assert said.startswith(str(path)), seed
        assert len(said) < 5000, seed
        assert "Traceback" not in said, seed
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LARGEST, "more memory than before, kB"


@pytest.mark.parametrize("one", [recording, scenario])
def test_a_slice(one, tmp_path):
    fuzz(one, range(60), tmp_path / "file")


@pytest.mark.slow
@pytest.mark.parametrize(("one", "count"), [(recording, 5000), (scenario, 2000)])
def test_thousands(one, count, tmp_path):
    fuzz(one, range(1000, 1000 + count), tmp_path / "file")
