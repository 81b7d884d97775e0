"""What listens at an address is looked at before Ray connects: nothing, another service, or a Ray for this machine."""

import socket
import threading
import time

import pytest

from fedactors.errors import ClusterError
from fedactors.fleet.ray import ray_address, ray_start
from fedactors.fleet.ray.ray_address import is_loopback, reachable


@pytest.fixture
def listener():
    """Return a function that starts a service which answers each greeting with `answer`, and its address."""
    opened = []

    def start(answer):
        server = socket.create_server(("127.0.0.1", 0))
        opened.append(server)

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(64)
                if answer is None:
                    time.sleep(20)
                connection.sendall(answer or b"")

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield start
    for server in opened:
        server.close()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"220 ready\r\n"])
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_another_service_is_no_cluster(listener, answer, scheme):
    address = scheme + listener(answer)
    with pytest.raises(ClusterError, match=f"no Ray cluster at {address}: a process listens there that is none of Ray"):
        reachable(address)


def test_a_service_that_says_nothing_is_no_cluster(listener, monkeypatch):
    monkeypatch.setattr(ray_address, "_ANSWER_SECONDS", 0.3)
    with pytest.raises(ClusterError, match="none of Ray's"):
        reachable(listener(None))


def test_a_service_that_speaks_grpc_is_let_through(listener):
    address = listener(bytes([0, 0, 18, 4, 0, 0, 0, 0, 0]) + bytes(18))
    assert reachable(address) == address


def test_a_closed_port_is_no_cluster():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(ClusterError, match="refused"):
        reachable(address)


def test_auto_names_the_address_at_which_nothing_answers(monkeypatch):
    """The Ray of somebody's local run is recorded under an outer address, at which it does not listen."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setattr(ray_address, "_found", lambda: address)
    with pytest.raises(ClusterError, match=rf"no Ray cluster at auto \({address}\): "):
        reachable("auto")


def test_addresses_of_this_machine():
    assert is_loopback("ray://127.0.0.1:10001")
    assert is_loopback("[::1]:6379")
    assert not is_loopback("10.0.0.1:6379")


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
def test_a_long_folder_for_temporary_files_is_not_used_for_sockets(variable, monkeypatch, tmp_path):
    for name in ("TMPDIR", "RAY_TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    assert ray_start._short_folder() is None
    monkeypatch.setenv(variable, str(tmp_path / ("x" * 60)))
    assert ray_start._short_folder() == "/tmp/ray"
    monkeypatch.setattr(ray_start, "_USUAL_FOLDER", str(tmp_path / "nowhere"))
    with pytest.raises(ClusterError, match=f"^{variable}: "):
        ray_start._short_folder()


def test_ray_is_started_a_second_time_and_then_given_up_in_one_line(monkeypatch, capsys):
    tried = []

    def fail(*args, **options):
        tried.append(args)
        raise TimeoutError("timed out after 30 s\nwhile waiting for node to register")

    monkeypatch.setattr(ray_start.ray, "init", fail)
    with pytest.raises(ClusterError, match=r"^Ray does not start on this machine: TimeoutError: timed out") as caught:
        ray_start._start({})
    assert len(tried) == 2
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().err == "Ray did not start (TimeoutError): it is tried again\n"
