"""torchvision fetches and compares; what it cannot have is one message. Then a scenario runs on what was fetched."""

import hashlib
import io
import json
import zipfile

import pytest

from fedactors.cli.main import main
from fedactors.data.sets.ratings import MovieLens
from fedactors.errors import UsageError
from fedactors.fetching import sources
from fedactors.fetching.data_sets import fetch_data
from tests.fetching.faulty_server import serving
from tests.fetching.test_trace_sets import contents, thousand


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a new folder as FEDACTORS_HOME; nothing else says where data are."""
    monkeypatch.delenv("FEDACTORS_DATA", raising=False)
    monkeypatch.delenv("FEDACTORS_TRACES", raising=False)
    monkeypatch.setenv("FEDACTORS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def mnist(packed_mnist, monkeypatch):
    """Return MNIST as published but for gzip's level, by path, with the checksums that torchvision is to compare."""
    from torchvision.datasets import MNIST

    known = [(name, hashlib.md5(content).hexdigest()) for name, content in packed_mnist.items()]
    monkeypatch.setattr(MNIST, "resources", known)
    return {f"MNIST/{name}": content for name, content in packed_mnist.items()}


@pytest.mark.parametrize("command", ["replay", pytest.param("run", marks=pytest.mark.slow)])
def test_phones_mnist_runs_after_the_two_commands_that_its_messages_name(command, home, shared, mnist, capsys):
    phones = thousand(json.loads((shared / "traces" / "flash" / "state_traces_60.json").read_text()))
    with serving({**mnist, "flash/state_traces.json": phones}) as server:
        assert main(["check", "phones-mnist"]) == 2
        assert "fedactors traces fetch flash" in capsys.readouterr().err
        assert main(["traces", "fetch", "flash", "--mirror", server.url]) == 0
        assert main(["check", "phones-mnist"]) == 2
        assert "fedactors data fetch mnist" in capsys.readouterr().err
        assert main(["data", "fetch", "mnist", "--mirror", server.url]) == 0
    assert (home / "data/MNIST/raw/train-labels-idx1-ubyte").is_file()
    assert main(["check", "phones-mnist"]) == 0
    fleet = ["--fleet", "local"] if command == "run" else []
    assert main([command, "phones-mnist", *fleet, "--set", "server.rounds=1", "--out", "out"]) == 0


@pytest.mark.parametrize("fault", ["cut", "short length", "other bytes", "missing", "silent"])
def test_an_faulty_server_is_one_message(fault, home, mnist):
    small = {path: content for path, content in mnist.items() if "labels" in path or "t10k" in path}
    small |= dict.fromkeys(mnist.keys() - small.keys(), b"x" * 1000)
    with (
        serving(small, fault) as server,
        pytest.raises(UsageError, match=r"mnist: not fetched: .*by torchvision, into ") as caught,
    ):
        fetch_data("mnist", home, server.url, lambda text: None, patience=0.3)
    assert "\n" not in str(caught.value)
    assert not [path for path in contents(home) if not path.endswith(".gz")], "nothing was unpacked"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["cut", "other bytes"])
def test_a_second_try_is_enough(fault, home, mnist):
    with serving(mnist, fault, faulty_times=2) as server:  # torchvision asks twice: for redirections, and for the file
        fetch_data("mnist", home, server.url, lambda text: None)
    assert (home / "MNIST/raw/t10k-images-idx3-ubyte").is_file()


def archive(ratings):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("ml-100k/u.data", ratings)
    return made.getvalue()


def test_movielens_is_unpacked_where_scenarios_look(home):
    with serving({"movielens/ml-100k.zip": archive("1\t2\t3\t4\n1\t3\t3\t5\n")}) as server:
        fetch_data("movielens-100k", home / "data", server.url, lambda text: None)
    assert MovieLens(name="movielens", size="100k").ratings(0).users == 1
    (home / "data/ml-100k/u.data").unlink()
    with pytest.raises(UsageError, match="or fetch it: fedactors data fetch movielens-100k"):
        MovieLens(name="movielens", size="100k").check()


@pytest.mark.parametrize("fault", ["cut", "short length", "long length", "other bytes"])
def test_movielens_from_an_faulty_server(fault, home):
    with (
        serving({"movielens/ml-100k.zip": archive("1\t2\t3\t4\n")}, fault) as server,
        pytest.raises(UsageError, match=r"not fetched|not a zip archive that can be read.*removed"),
    ):
        fetch_data("movielens-100k", home, server.url, lambda text: None, patience=0.3)
    assert contents(home) == {}


def test_the_users_folder_comes_before_what_was_fetched(home, tmp_path, monkeypatch):
    for folder, ratings in ((home / "data", 1), (tmp_path / "mine", 2)):
        (folder / "ml-100k").mkdir(parents=True)
        lines = "".join(f"{user}\t2\t3\t4\n{user}\t3\t3\t5\n" for user in range(1, ratings + 1))
        (folder / "ml-100k" / "u.data").write_text(lines)
    monkeypatch.setenv("FEDACTORS_DATA", str(tmp_path / "mine"))
    assert MovieLens(name="movielens", size="100k").ratings(0).users == 2
    monkeypatch.delenv("FEDACTORS_DATA")
    assert MovieLens(name="movielens", size="100k").ratings(0).users == 1


@pytest.mark.parametrize("name", sorted(sources.DATA))
def test_every_name_leads_to_a_request_below_the_mirror(name, home, monkeypatch):
    with serving({}) as server, pytest.raises(UsageError) as caught:
        fetch_data(name, home, server.url, lambda text: None, patience=10)
    if name == "celeba":
        assert "lies on Google Drive" in str(caught.value)
    else:
        assert server.asked
        assert "404" in str(caught.value)


def test_names_are_listed_and_wrong_ones_refused(capsys):
    assert main(["data", "fetch"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == set(sources.DATA)
    assert main(["data", "fetch", "mnits"]) == 2
    assert 'data fetch: no "mnits"; did you mean "mnist"?' in capsys.readouterr().err
