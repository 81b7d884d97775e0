"""Overrides of keys that lie within one another: nothing is lost, whatever their order."""

from itertools import permutations
from pathlib import Path

import pytest

from fedactors.cli.main import main
from fedactors.scenario.model import Scenario

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"


def loaded(*changes):
    return Scenario.load(QUICKSTART, changes)


def refused(capsys, *changes):
    """Return what `check` says of overrides that it refuses."""
    assert main(["check", str(QUICKSTART), *(word for change in changes for word in ("--set", change))]) == 2
    return capsys.readouterr().err


def test_what_is_set_within_a_value_stays_when_the_value_is_set_after_it():
    algorithm = loaded("server.algorithm.mu=0.3", "server.algorithm=fedprox").server.algorithm
    assert (algorithm.name, algorithm.mu) == ("fedprox", 0.3)


CHANGES = (
    "server.local={epochs: 3}",
    "server.local.batch=7",
    "server.local.optimizer=adam",
    "server.local.optimizer.beta1=0.5",
    "population.0.compute={per_sample: 9ms}",
    "population.phones.compute.spread=0.25",
)


def test_the_order_of_overrides_within_one_another_changes_nothing():
    wanted = loaded(*CHANGES).dump()
    local, compute = wanted["server"]["local"], wanted["population"][0]["compute"]
    assert (local["epochs"], local["batch"], local["optimizer"]["beta1"], compute["spread"]) == (3, 7, 0.5, 0.25)
    assert all(loaded(*order, *CHANGES[4:]).dump() == wanted for order in permutations(CHANGES[:4]))
    assert all(loaded(*CHANGES[:4], *order).dump() == wanted for order in permutations(CHANGES[4:]))


def test_the_last_of_two_values_for_one_key_holds():
    assert loaded("server.cohort=5", "server.cohort=6").server.cohort == 6
    assert loaded("server.local.batch=5", "server.local.batch=6", "server.local={epochs: 2}").server.local.batch == 6
    assert loaded("server.local={epochs: 2, batch: 4}", "server.local.batch=6").server.local.batch == 6


def test_a_value_that_agrees_with_what_was_set_within_it_is_accepted():
    assert loaded("server.local.batch=4", "server.local={epochs: 2, batch: 4}").server.local.batch == 4


ONE_OF = "(accepted: one of the two, or the whole value first)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            ["server.local.batch=6", "server.local={epochs: 2, batch: 4}"],
            f"--set server.local.batch=6: --set server.local={{epochs: 2, batch: 4}}, after it, says 4 {ONE_OF}",
        ),
        (
            ["server.algorithm.name=fedprox", "server.algorithm=scaffold"],
            f"--set server.algorithm.name=fedprox: --set server.algorithm=scaffold, after it, says scaffold {ONE_OF}",
        ),
        (
            ["server.data={name: iid, samples: 9}", "server.data.samples=8", "server.data=null"],
            f"--set server.data.samples=8: --set server.data=null, after it, leaves server.data without keys {ONE_OF}",
        ),
        (["server.algorithm.mu=0.3", "server.algorithm=fedavg"], "--set server.algorithm.mu=0.3: server.algorithm"),
        (["population.phones.count=3", "population=[]"], '--set population.phones.count=3: no group "phones"'),
    ],
    ids=["other number", "other name", "nothing", "no such option", "no such group"],
)
def test_overrides_that_contradict_each_other_are_refused(changes, words, capsys):
    said = refused(capsys, *changes)
    assert words in said
    assert len(said.splitlines()) == 1
