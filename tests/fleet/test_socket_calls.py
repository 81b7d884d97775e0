"""Calls over sockets, with threads in the place of actors: order, hand-over, failures and ends."""

import gc
import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from fedactors.fleet.base import Fault, perform
from fedactors.fleet.transport.channel import ChannelClosed
from fedactors.fleet.transport.shared_buffers import SharedBuffer, receive, send
from fedactors.fleet.transport.socket_calls import SocketCalls
from fedactors.fleet.transport.socket_server import ChannelError, answer, connected
from tests.fleet.test_ray import wait_until

VALUES = [
    None,
    {"x": np.arange(610, dtype=np.float32)},
    {"x": np.arange(159_010, dtype=np.float32), "y": np.zeros(0, np.float32)},
    ["a" * 100_000, (1, 2.5)],
    [np.arange(size, dtype=np.int64) for size in (1, 7, 3000, 0, 5)],
]


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


@pytest.mark.parametrize("value", VALUES, ids=["nothing", "small", "large", "text", "several"])
def test_a_buffer_holds_what_was_put_in_on_both_sides_of_a_socket(value):
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        buffer = SharedBuffer.of(value)
        send(here, ("a", 1), [buffer, buffer])
        message, buffers = receive(there)
    assert message == ("a", 1)
    assert all(same(one.open(), value) for one in [buffer, *buffers])


def test_arrays_of_a_buffer_are_aligned_and_cannot_be_written_to():
    for size in (3, 50_000):
        for array in SharedBuffer.of([np.ones(size, np.float32), np.ones(size, np.float32)]).open():
            assert array.ctypes.data % 64 == 0
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 2.0


def test_a_message_that_is_too_long_for_a_socket_arrives():
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    small = [SharedBuffer.of(np.full(1500, number, np.float32)) for number in range(200)]
    with here, there:
        send(here, ("long",), small)
        message, buffers = receive(there)
    assert message == ("long",)
    assert [buffer.open()[0] for buffer in buffers] == list(range(200))


def test_more_buffers_than_a_message_has_room_for_are_handed_on_again_and_again():
    large = [SharedBuffer.of([number, np.full(3000, number, np.float32)]) for number in range(205)]
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        for _ in range(3):
            send(here, (), large)
            _, large = receive(there)
            large = large[::-1]  # so that they do not lie where they did
    found = [buffer.open() for buffer in large[::-1]]
    assert all(number == place and (array == place).all() for place, (number, array) in enumerate(found))


def test_the_memory_of_buffers_is_given_back():
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    arrays = [SharedBuffer.of(np.full(100_000, number, np.float32)).open() for number in range(50)]
    assert [array[-1] for array in arrays] == list(range(50))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before, "who opens a buffer has a copy"


class Actor:
    """A worker, answered for by a thread of this process."""

    def __init__(self, calls):
        self.channel = calls.channel()
        self.did = []
        self.free = threading.Event()
        self.free.set()
        address = (str(calls.path), self.channel.number, self.channel.secret)
        self.thread = threading.Thread(target=answer, args=(*address, lambda method, args: perform(self, method, args)))

    def add(self, *numbers):
        self.free.wait()
        self.did.append(numbers)
        return sum(numbers)

    def two(self, value):
        return value, [value] * 2

    def half(self, value):
        return value, lambda: None  # which cannot be sent

    def broken(self):
        return 1 / 0


@pytest.fixture
def calls(tmp_path):
    opened = SocketCalls(tmp_path / "calls")
    before = threading.active_count()
    yield opened
    opened.close()
    wait_until(lambda: threading.active_count() < before)  # no thread is left behind


@pytest.fixture
def actors(calls):
    return [Actor(calls) for _ in range(2)]


def admitted(calls, channel):
    """Return the connection of a process that has proved itself, and now does what a test has it do."""
    return connected(str(calls.path), channel.number, channel.secret)


def got(reply):
    assert reply.there.wait(10)
    return reply.answer.open() if isinstance(reply.answer, SharedBuffer) else reply.answer


def test_only_this_user_may_call(calls):
    assert Path(calls.path).stat().st_mode & 0o077 == 0


def test_calls_are_answered_in_order_and_results_handed_on_before_they_exist(calls, actors):
    one, other = actors
    (first,) = calls.call(one.channel, "add", [1, 2], 1)
    (second,) = calls.call(other.channel, "add", [first, 10], 1)
    (third,) = calls.call(one.channel, "add", [second, first, second], 1)
    many = [calls.call(one.channel, "add", [number], 1)[0] for number in range(20)]
    assert not first.there.wait(0.01), "no actor is connected"
    for actor in actors:
        actor.thread.start()
    assert [got(result) for result in (third, second, first)] == [29, 13, 3]
    assert [got(result) for result in many] == list(range(20))
    assert one.did == [(1, 2), (13, 3, 13), *((number,) for number in range(20))]


def test_calls_whose_results_nobody_wants_are_done_in_order_and_not_answered(calls, actors):
    actor = actors[0]
    actor.thread.start()
    for number in range(9):  # more than may be unanswered
        assert calls.call(actor.channel, "add", [number], 0) == []
    assert calls.call(actor.channel, "broken", [], 0) == []
    (last,) = calls.call(actor.channel, "add", [100], 1)
    assert got(last) == 100
    assert actor.did == [(number,) for number in (*range(9), 100)]


def test_an_array_goes_from_actor_to_actor(calls, actors):
    for actor in actors:
        actor.thread.start()
    vector = np.arange(200_000, dtype=np.float32)
    same_vector, twice = calls.call(actors[0].channel, "two", [vector], 2)
    (total,) = calls.call(actors[1].channel, "add", [same_vector, same_vector], 1)
    assert np.array_equal(got(total), 2 * vector)
    assert np.array_equal(got(twice)[1], vector)


def test_memory_is_written_to_again_only_when_nobody_needs_what_is_in_it(calls, actors):
    one, other = actors
    other.free.clear()
    for actor in actors:
        actor.thread.start()
    kept, waiting = [], []
    for number in range(30):  # more than are sent to an actor ahead
        (vector,) = calls.call(one.channel, "add", [np.full(5000, number, np.float32)], 1)
        kept += [vector] * (number % 7 == 0)
        waiting += calls.call(other.channel, "add", [vector, 1], 1)
    for number in range(20):  # further results, while the others are still asked for
        got(calls.call(one.channel, "add", [np.full(5000, -number, np.float32)], 1)[0])
    other.free.set()
    assert [got(result)[0] for result in waiting] == [number + 1 for number in range(30)]
    assert [got(vector)[-1] for vector in kept] == [0, 7, 14, 21, 28]


def test_files_do_not_grow_with_calls_nor_with_those_that_fail(calls, actors):
    actors[0].thread.start()

    def files():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    def round_of_calls():
        assert got(calls.call(actors[0].channel, "add", [np.ones(5000, np.float32)], 1)[0])[0] == 1
        assert isinstance(got(calls.call(actors[0].channel, "half", [np.ones(5000, np.float32)], 2)[0]), Fault)

    round_of_calls()
    before = files()
    for _ in range(20):
        round_of_calls()
    assert files() <= before + 6


def test_who_needs_what_failed_fails_with_the_same_fault_and_nobody_else(calls, actors):
    one, other = actors
    for actor in actors:
        actor.thread.start()
    (broken,) = calls.call(one.channel, "broken", [], 1)
    (after,) = calls.call(other.channel, "add", [broken, 1], 1)
    (further,) = calls.call(one.channel, "add", [after], 1)
    (well,) = calls.call(other.channel, "add", [1, 1], 1)
    for result in (broken, after, further):
        fault = got(result)
        assert isinstance(fault, Fault)
        assert "ZeroDivisionError" in fault.text
        assert not fault.died
    assert got(well) == 2
    assert other.did == [(1, 1)]


def test_the_end_of_a_channel_fails_what_was_asked_on_it_and_what_waits_for_that(calls, actors):
    one, other = actors
    for actor in actors:
        actor.thread.start()
        assert got(calls.call(actor.channel, "add", [0], 1)[0]) == 0  # it is connected
    one.free.clear()
    (before,) = calls.call(other.channel, "add", [7], 1)
    asked = [calls.call(one.channel, "add", [number], 1)[0] for number in range(10)]
    (waits,) = calls.call(other.channel, "add", [asked[-1]], 1)
    assert got(before) == 7
    calls.end(one.channel)
    one.free.set()
    assert all(isinstance(got(result), ChannelClosed) for result in [*asked, waits])
    assert isinstance(got(calls.call(one.channel, "add", [1], 1)[0]), ChannelClosed)
    assert got(calls.call(other.channel, "add", [before, 1], 1)[0]) == 8


def test_a_process_that_goes_away_ends_its_channel(calls, actors):
    channel = actors[0].channel
    process = admitted(calls, channel)
    (result,) = calls.call(channel, "add", [1], 1)
    assert receive(process) is not None
    process.close()
    assert isinstance(got(result), ChannelClosed)


@pytest.mark.filterwarnings("ignore")
def test_a_caller_without_a_channel_is_refused(calls):
    with pytest.raises(ChannelError, match="ended the connection"):
        connected(str(calls.path), 99, b"s" * 32)


def test_a_caller_that_talks_nonsense_is_refused_and_holds_up_no_other(calls, actors):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(str(calls.path))
        stranger.send(b"nonsense")
        assert receive(stranger) is None
    actors[0].thread.start()
    assert got(calls.call(actors[0].channel, "add", [3, 4], 1)[0]) == 7


def test_many_large_arguments_arrive_each_in_its_place(calls, actors):
    one = actors[0]
    one.thread.start()
    vectors = [calls.call(one.channel, "two", [np.full(5000, n, np.float32)], 2)[0] for n in range(300)]
    (total,) = calls.call(one.channel, "add", [vector for vector in vectors if got(vector) is not None], 1)
    assert np.array_equal(got(total), np.full(5000, sum(range(300))))
    assert got(calls.call(one.channel, "add", [3, 4], 1)[0]) == 7


def test_what_cannot_be_packed_or_opened_is_told_and_the_channel_goes_on(calls, actors):
    one = actors[0]
    one.thread.start()
    one.unpacked = threading.Lock
    (fault,) = calls.call(one.channel, "unpacked", [], 1)
    assert "cannot pickle" in got(fault).text
    assert not got(fault).died
    with pytest.raises(TypeError, match="cannot pickle"):
        calls.call(one.channel, "add", [threading.Lock()], 1)
    assert got(calls.call(one.channel, "add", [3, 4], 1)[0]) == 7


def test_an_answer_out_of_step_ends_the_channel(calls, actors):
    channel = actors[0].channel
    with admitted(calls, channel) as process:
        replies = [calls.call(channel, "add", [1], 1)[0] for _ in range(2)]
        (number, *_), _ = receive(process)
        send(process, (number + 1, None), [SharedBuffer.of(2)])
        fault = got(replies[0]).fault
        assert "came to call" in fault.text
        assert fault.died
        assert isinstance(got(replies[1]), ChannelClosed)


def test_a_process_that_does_not_read_holds_nobody_up(calls, actors):
    """Calls of 30 kB fill its socket; the other one is served all the same."""
    slow, other = actors
    other.thread.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        stranger.connect(str(calls.path))
        for _ in range(30):
            calls.call(slow.channel, "add", [1] * 40, 1)
        assert got(calls.call(other.channel, "add", [3, 4], 1)[0]) == 7


def test_it_closes_while_strangers_are_connected_and_more_than_once(tmp_path):
    calls = SocketCalls(tmp_path / "calls")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(str(calls.path))
        (reply,) = calls.call(calls.channel(), "add", [1], 1)
        calls.close()
        calls.close()
        assert isinstance(got(reply), ChannelClosed)
        assert receive(stranger) is None
    assert not calls.path.exists()


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_what_is_written_to_an_argument_is_seen_by_nobody_else():
    buffer = SharedBuffer.of(np.zeros(50_000, np.float32))
    torch.from_numpy(buffer.open()).add_(1.0)
    assert not buffer.open().any()
