"""Signals that end a command, and what it prints to when its terminal is gone or a disk is full."""

import errno
import json
import os
import pty
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fedactors.cli import standard_streams, stopping
from fedactors.simulation.interrupts import put_off
from tests.fleet.conftest import QUICKSTART

LONG = ["run", str(QUICKSTART), "--fleet", "local", "--set", "server.rounds=100000", "--out"]


@pytest.fixture(autouse=True)
def _handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    stopping.asked.clear()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_command(number):
    stopping.listen()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert stopping.asked.is_set()


def test_a_second_hangup_does_not_interrupt_the_saving_after_the_first():
    """A shell passes it on to its jobs, and the system sends another one when the shell ends."""
    stopping.listen()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGHUP)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_a_hangup_that_is_ignored_stays_so():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # by nohup
    stopping.listen()
    signal.raise_signal(signal.SIGHUP)
    with put_off():
        signal.raise_signal(signal.SIGHUP)
    assert not stopping.asked.is_set()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_hangup_that_is_ignored_hides_no_later_signal():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # by nohup
    stopping.listen()

    def block():
        with put_off():
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        block()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_must_not_be_done_by_half_is_done_first(number):
    stopping.listen()
    done = []

    def block():
        with put_off():
            signal.raise_signal(number)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == [1]


def gone_terminal(folder):
    """Return a descriptor of a terminal that was closed at its other end."""
    master, slave = pty.openpty()
    os.close(master)
    return slave, errno.EIO


def full_disk(folder):
    """Return a descriptor of the device on which there is never any room."""
    device = Path("/dev/full")
    if not device.is_char_device():
        device = folder / "full"
        try:
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 7))
            return os.open(device, os.O_WRONLY), errno.ENOSPC
        except PermissionError:
            pytest.skip("there is no /dev/full")
    return os.open(device, os.O_WRONLY), errno.ENOSPC


def pipe_without_reader(folder):
    reader, writer = os.pipe()
    os.close(reader)
    return writer, errno.EPIPE


@pytest.mark.parametrize("made", [gone_terminal, full_disk, pipe_without_reader])
def test_messages_that_cannot_be_written_are_dropped(made, tmp_path):
    descriptor, number = made(tmp_path)
    try:
        with pytest.raises(OSError, match=os.strerror(number)):
            os.write(descriptor, b"message")
        with standard_streams._UnheardFile(descriptor, "wb", closefd=False) as file:
            assert file.write(b"message") == 7
    finally:
        os.close(descriptor)


@pytest.mark.slow
def test_a_run_whose_log_has_no_room_goes_on(tmp_path):
    words = [*LONG, str(tmp_path / "run"), "--set", "server.rounds=2"]
    descriptor, _ = full_disk(tmp_path)
    with os.fdopen(descriptor, "wb") as full:
        done = subprocess.run([sys.executable, "-m", "fedactors", *words], stderr=full, timeout=120, check=False)
    assert done.returncode == 0
    assert json.loads((tmp_path / "run/summary.json").read_text())["plans"] == 2


def until_rounds(folder, process):
    for _ in range(1200):
        if (folder / "metrics.jsonl").exists() and (folder / "metrics.jsonl").stat().st_size:
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            break
    pytest.fail("the run has no rounds")


@pytest.mark.slow
def test_a_run_whose_terminal_is_closed_is_saved(tmp_path):
    """As when a connection breaks: the system sends SIGHUP, and nothing can be written to the terminal any more."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "fedactors", *LONG, str(tmp_path / "run")],
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    try:
        until_rounds(tmp_path / "run", process)
        os.close(master)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
    assert json.loads((tmp_path / "run/summary.json").read_text())["ended_because"] == "interrupted"


@pytest.mark.slow
def test_a_run_under_nohup_goes_on(tmp_path):
    command = ["nohup", sys.executable, "-m", "fedactors", *LONG, str(tmp_path / "run")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until_rounds(tmp_path / "run", process)
        process.send_signal(signal.SIGHUP)
        before = (tmp_path / "run/metrics.jsonl").stat().st_size
        time.sleep(1)
        assert process.poll() is None
        assert (tmp_path / "run/metrics.jsonl").stat().st_size > before
    finally:
        process.terminate()
        assert process.wait(60) == 130
