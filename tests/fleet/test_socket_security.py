"""The socket against strangers: of another user, or of a process without the secret, nothing is unpickled."""

import logging
import os
import pickle
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from fedactors.errors import ClusterError
from fedactors.fleet.base import perform
from fedactors.fleet.transport import authentication, private_folder, socket_calls
from fedactors.fleet.transport.private_folder import UnsafeFolderError, check_private
from fedactors.fleet.transport.socket_calls import SocketCalls
from fedactors.fleet.transport.socket_server import ChannelError, answer, connected
from tests.fleet.test_ray import wait_until

NOBODY = 65534
SECRET = b"s" * authentication.SECRET_BYTES
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


class Opened:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.fixture
def folder():
    """A folder as the transport makes it, under one that every user may enter and write to."""
    made = private_folder.private_folder("s")
    yield made
    for left in made.glob("*"):
        left.unlink()
    made.rmdir()


@pytest.fixture
def calls(folder):
    opened = SocketCalls(folder / "s")
    yield opened
    opened.close()


@pytest.fixture
def refused(caplog):
    """Return the messages about refused connections so far."""
    caplog.set_level(logging.WARNING, socket_calls.__name__)
    return lambda: [record.getMessage() for record in caplog.records]


def by_nobody(code, *arguments):
    """Run Python code as another user; return what it prints."""
    become = f"import os, socket, sys; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    command = [sys.executable, "-I", "-c", become + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/").stdout.strip()


RENAME = """
path, own = sys.argv[1:]
for attempt in (lambda: os.rename(path, own), lambda: os.rename(os.path.dirname(path), own), lambda: os.unlink(path)):
    try:
        attempt()
        print("done")
    except OSError as error:
        print(type(error).__name__)
"""


@as_root
def test_another_user_can_neither_rename_nor_remove_the_socket_nor_its_folder(calls):
    said = by_nobody(RENAME, calls.path, "/tmp/taken")
    assert said.split() == ["PermissionError"] * 3
    assert calls.path.exists()


SEND = """
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    connection.connect(sys.argv[1])
    connection.send(bytes.fromhex(sys.argv[2]))
    print(len(connection.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


@as_root
def test_another_user_cannot_connect(calls, tmp_path):
    assert by_nobody(SEND, calls.path, pickle.dumps(Opened(tmp_path / "unpickled")).hex()) == "PermissionError"
    assert not (tmp_path / "unpickled").exists()


@as_root
def test_another_user_is_refused_even_where_the_folder_is_open_to_all(calls, folder, tmp_path, refused):
    folder.chmod(0o777)
    calls.path.chmod(0o777)
    said = by_nobody(SEND, calls.path, pickle.dumps(Opened(tmp_path / "unpickled")).hex())
    assert said in ("0", "BrokenPipeError", "ConnectionResetError")
    wait_until(refused)
    (message,) = refused()
    assert f"process of user {NOBODY}, not of user 0" in message
    assert not (tmp_path / "unpickled").exists()


LISTEN = """
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print("listening", flush=True)
connection, _ = listener.accept()
try:
    connection.send(bytes.fromhex(sys.argv[2]))
    print(len(connection.recv(100)))
except OSError as error:
    print(type(error).__name__)
"""


@as_root
def test_an_actor_refuses_a_socket_that_another_user_has_put_there_first(tmp_path):
    """The race is lost: the stranger listens before the actor connects, in a folder that was open to all."""
    theirs = Path(tempfile.mkdtemp(dir="/tmp"))
    theirs.chmod(0o777)
    payload = pickle.dumps(Opened(tmp_path / "unpickled")).hex()
    become = f"import os, socket, sys; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    command = [sys.executable, "-I", "-c", become + LISTEN, str(theirs / "s"), payload]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/") as stranger:
        assert stranger.stdout.readline() == "listening\n"
        with pytest.raises(ChannelError, match="has mode 0777") as mode:
            connected(str(theirs / "s"), 0, SECRET)
        theirs.chmod(0o700)
        with pytest.raises(ChannelError, match=f"process of user {NOBODY}, not of user 0") as user:
            connected(str(theirs / "s"), 0, SECRET)
        stranger.wait(30)
    assert all(len(str(error.value).splitlines()) == 1 for error in (mode, user))
    assert not (tmp_path / "unpickled").exists()
    (theirs / "s").unlink()
    theirs.rmdir()


@as_root
def test_a_folder_that_another_user_has_made_is_not_used():
    theirs = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(theirs, NOBODY, NOBODY)
    with pytest.raises(UnsafeFolderError, match=f"belongs to user {NOBODY}, not to user 0"):
        check_private(theirs)
    with pytest.raises(UnsafeFolderError, match="belongs to user"):
        SocketCalls(theirs / "s")
    theirs.rmdir()


def test_a_link_to_a_private_folder_is_none(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(UnsafeFolderError, match="is no folder"):
        check_private(tmp_path / "link")


def impostor(folder, replies):
    """Listen like a driver of this user that does not have the secret, and send `replies`; return the thread."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(folder / "s"))
    listener.listen()

    def serve():
        connection, _ = listener.accept()
        with listener, connection:
            for reply in replies:
                hello = connection.recv(1000)
                connection.send(reply(hello))
            assert connection.recv(1000) == b"", "the actor must not prove itself to a stranger"

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


REPLIES = {
    "a pickle": lambda path: lambda hello: pickle.dumps(Opened(path)),
    "a pickle of the right size": lambda path: lambda hello: pickle.dumps(Opened(path)).ljust(64, b"\0")[:64],
    "its own words": lambda path: lambda hello: hello[8:] + hello[8:],
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_an_actor_refuses_a_driver_of_this_user_without_the_secret(reply, folder, tmp_path):
    thread = impostor(folder, [reply(tmp_path / "unpickled")])
    with pytest.raises(ChannelError, match=r"process \d+ has no connection to its driver over .*: the other side"):
        answer(str(folder / "s"), 3, SECRET, lambda method, args: None)
    thread.join(10)
    assert not thread.is_alive()
    assert not (tmp_path / "unpickled").exists()


class Worker:
    """Adds."""

    def add(self, *numbers):
        return sum(numbers)


def served(calls, channel):
    """Return a thread that serves a channel as an actor does."""
    address = (str(calls.path), channel.number, channel.secret)
    thread = threading.Thread(target=answer, args=(*address, lambda method, args: perform(Worker(), method, args)))
    thread.start()
    return thread


def stranger(calls):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(10)
    connection.connect(str(calls.path))
    return connection


def works(calls, channel):
    """Whether the actor of a channel can be called."""
    thread = served(calls, channel)
    (reply,) = calls.call(channel, "add", [3, 4], 1)
    assert reply.there.wait(10)
    found = reply.answer.open()
    calls.end(channel)
    thread.join(10)
    return found == 7


def test_a_stranger_that_sends_a_pickle_is_refused_and_the_actor_still_gets_its_channel(calls, tmp_path, refused):
    channel = calls.channel()
    for _ in range(3):
        with stranger(calls) as connection:
            connection.send(pickle.dumps(Opened(tmp_path / "unpickled")))
            assert connection.recv(1000) == b""
    assert not (tmp_path / "unpickled").exists()
    wait_until(refused)
    (message,) = refused()
    assert "was refused, nothing of it was unpickled: the other side sent a message of the wrong size" in message
    assert works(calls, channel)


def test_a_stranger_that_knows_the_channel_but_not_its_secret_is_refused(calls, tmp_path, refused):
    channel = calls.channel()
    with stranger(calls) as connection:
        connection.send(channel.number.to_bytes(8, "big") + b"n" * 32)
        challenge = connection.recv(1000)
        assert len(challenge) == 64
        connection.send(challenge[32:])  # the driver's own proof
        assert connection.recv(1000) == b""
    with pytest.raises(ChannelError, match="does not have the channel's secret"):
        connected(str(calls.path), channel.number, SECRET)
    wait_until(refused)
    assert len(refused()) == 1, "one message for all of them"
    assert works(calls, channel)


def test_strangers_that_say_nothing_hold_up_no_actor_and_are_ended_in_time(calls, monkeypatch, refused):
    monkeypatch.setattr(authentication, "SECONDS", 0.5)
    silent = [stranger(calls) for _ in range(5)]
    channel = calls.channel()
    half = stranger(calls)
    half.send(channel.number.to_bytes(8, "big") + b"n" * 32)
    assert len(half.recv(1000)) == 64
    assert works(calls, channel), "a greeting that was begun does not hold the channel"
    for connection in [*silent, half]:
        assert connection.recv(1000) == b""
        connection.close()
    (message,) = refused()
    assert "it did not prove itself in time" in message


def test_of_too_many_silent_strangers_the_oldest_is_ended(calls, monkeypatch):
    monkeypatch.setattr(socket_calls, "_MOST_GREETING", 2)
    silent = [stranger(calls) for _ in range(3)]
    assert silent[0].recv(1000) == b""
    assert works(calls, calls.channel())
    for connection in silent:
        connection.close()


def test_a_channel_has_one_actor(calls):
    channel = calls.channel()
    first = connected(str(calls.path), channel.number, channel.secret)
    calls.call(channel, "add", [1], 1)
    assert first.recv(100_000)
    with pytest.raises(ChannelError, match="ended the connection"):
        connected(str(calls.path), channel.number, channel.secret)
    first.close()


def test_an_actor_without_a_driver_says_so_in_one_line(folder):
    with pytest.raises(ChannelError, match=r"has no connection to its driver over .*No such file") as missing:
        answer(str(folder / "s"), 0, SECRET, lambda method, args: None)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(folder / "s"))
    listener.close()
    with pytest.raises(ChannelError, match=r"has no connection to its driver over .*refused") as refusing:
        answer(str(folder / "s"), 0, SECRET, lambda method, args: None)
    assert all(len(str(error.value).splitlines()) == 1 for error in (missing, refusing))


def test_the_folder_is_this_users_alone_and_under_the_runtime_folder_if_that_is_private(tmp_path, monkeypatch):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    made = private_folder.private_folder("s")
    assert made.parent == runtime
    assert stat.S_IMODE(made.lstat().st_mode) == 0o700
    runtime.chmod(0o755)
    other = private_folder.private_folder("s")
    assert other.parent != runtime, "others can read there"
    assert stat.S_IMODE(other.lstat().st_mode) == 0o700
    made.rmdir()
    other.rmdir()


def test_a_parent_in_which_others_can_rename_is_refused(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ClusterError, match="set XDG_RUNTIME_DIR or TMPDIR to a folder of your own"):
        private_folder.private_folder("s")
    tmp_path.chmod(0o1777)
    private_folder.private_folder("s").rmdir()
    tmp_path.chmod(0o700)


def test_a_path_that_is_too_long_for_a_socket_names_the_variable_to_set(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 100)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    with pytest.raises(ClusterError, match=r"accepted: up to 107; set XDG_RUNTIME_DIR or TMPDIR"):
        private_folder.private_folder("s")
    assert not list(long.iterdir())


def test_a_message_in_memory_is_bounded(monkeypatch):
    from fedactors.fleet.transport import shared_buffers

    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        shared_buffers.send(here, ("x" * 40_000,))
        monkeypatch.setattr(shared_buffers, "_MOST_IN_MEMORY", 30_000)
        with pytest.raises(OSError, match="accepted: up to 30000"):
            shared_buffers.receive(there)
