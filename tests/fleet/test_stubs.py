"""Stubs of workers: each calls a method that its worker has, with fitting arguments, and type checkers see both."""

import inspect
import os
import subprocess
import sys
import textwrap

import pytest

from fedactors.fleet import workers
from fedactors.fleet.evaluator import Evaluator
from fedactors.fleet.sleeping_host import SleepingHost
from fedactors.fleet.stubs import CentralHostStub, ClientHostStub, EvaluatorStub, ServerStub, WorkerStub

PAIRS = [
    (ClientHostStub, workers.ClientHost),
    (ServerStub, workers.ServerWorker),
    (CentralHostStub, workers.CentralHost),
    (EvaluatorStub, Evaluator),
]


class Recording:
    """A fleet that notes calls."""

    def __init__(self):
        self.calls = []

    def call(self, actor, method, *args):
        self.calls.append((method, args))

    def call_several(self, actor, method, *args, returns):
        self.calls.append((method, args))
        return [None] * returns


def methods(stub):
    """Return the names of a stub's methods that make calls."""
    found = inspect.getmembers(stub, inspect.isfunction)
    return [name for name, _ in found if not name.startswith("_")]


CALLS = [(stub, worker, name) for stub, worker in PAIRS for name in methods(stub)]


@pytest.mark.parametrize(("stub", "worker", "name"), CALLS, ids=[f"{s.__name__}.{n}" for s, _, n in CALLS])
def test_a_stub_calls_what_its_worker_has(stub, worker, name):
    fleet = Recording()
    method = getattr(stub(fleet, "actor"), name)
    method(*([f"argument {number}"] for number in range(len(inspect.signature(method).parameters))))
    ((called, args),) = fleet.calls
    inspect.signature(getattr(worker, called)).bind("self", *args)  # raises if there are too many or too few


@pytest.mark.parametrize(("stub", "worker"), PAIRS, ids=lambda one: one.__name__)
def test_a_worker_has_no_method_that_its_stub_lacks(stub, worker):
    own = {name for name, _ in inspect.getmembers(worker, inspect.isfunction) if not name.startswith("_")}
    fleet = Recording()
    for name in methods(stub):
        method = getattr(stub(fleet, "actor"), name)
        method(*([] for _ in inspect.signature(method).parameters))
    assert own - {called for called, _ in fleet.calls} == {"about"}, "`about` is for whoever watches processes"


def test_a_host_that_sleeps_has_what_every_run_calls():
    assert {
        name for name in ("prepare", "learn", "fold", "worked", "about") if not hasattr(SleepingHost, name)
    } == set()
    assert set(methods(WorkerStub)) == {"worked"}


WRONG = """
from fedactors.fleet.base import Fleet, Handle
from fedactors.fleet.stubs import ClientHostStub, ServerStub
from fedactors.learning.training_task import ChunkResult, Vectors

def wrong(fleet: Fleet, host: ClientHostStub, server: ServerStub, model: Handle[Vectors]) -> None:
    host.lern([], [model])
    host.limit("three")
    host.learn([], [host.worked()])
    found: int = fleet.get(host.learn([], [model]))

def right(fleet: Fleet, host: ClientHostStub, server: ServerStub, model: Handle[Vectors]) -> list[ChunkResult]:
    host.limit(3)
    return fleet.get(host.fold([host.learn([], [model])]))
"""


@pytest.mark.slow
def test_the_type_checker_finds_a_wrong_method_a_wrong_argument_and_a_wrong_result(tmp_path):
    (tmp_path / "wrong.py").write_text(textwrap.dedent(WRONG))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "wrong.py")],
        capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": os.getcwd()},
    )  # fmt: skip
    errors = [line.split("wrong.py:")[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert [error.split(":")[0] for error in errors] == ["7", "8", "9", "10"], done.stdout
    for error, what in zip(errors, ("attr-defined", "arg-type", "list-item", "assignment"), strict=True):
        assert what in error
