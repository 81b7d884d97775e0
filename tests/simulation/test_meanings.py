"""`check` says where decisions about departures have too few losses to go by."""

import pytest

from fedactors.algorithms.members.departure import Constants, excludes, fitted
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.default_weights import default_weights, weights_of_all
from fedactors.simulation.checks.meanings import meanings
from fedactors.simulation.checks.server_rates import default_rate, rate_of_one, rates_of_all

BASE = {
    "name": "leaving",
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
    "population": [{"name": "devices", "count": 4, "depart": "100s"}],
}


@pytest.mark.parametrize(
    ("departures", "every", "said"), [("auto", 10, True), ("auto", 1, False), ("include", 10, False)]
)
def test_rare_evaluations_leave_auto_without_losses(departures, every, said):
    server = {
        "rounds": 20,
        "cohort": "all",
        "membership": {"name": "vanilla", "departures": departures},
        "evaluate_every": every,
    }
    notes = meanings(Scenario.model_validate({**BASE, "server": server}))
    assert len(notes) == said
    assert not said or "one in 10 rounds (evaluate_every: 10)" in notes[0]


def test_two_losses_include_whatever_excluding_would_gain():
    """V is 0 then, so that f0 is 0 at once, and no f1 is below it."""
    course = fitted([(10, 2.0), (20, 1.0)], local_steps=5.0)
    assert course.v == 0.0
    assert not excludes(Constants(5.0, 20, 10**6, d=100.0, v=course.v, vt=1e-9, gamma=course.gamma))


def scenario_of(algorithm, cohort=12, **options):
    size = {} if cohort is None else {"cohort": cohort}
    server = {"rounds": 2, **size, "algorithm": algorithm, "data": {"name": "iid", "samples": 10}, **options}
    population = [{"name": "devices", "count": 20}]
    return Scenario.model_validate({**BASE, "population": population, "server": server})


def test_a_server_that_steps_by_the_root_of_the_cohort_is_told():
    """sqrt(12) = 3.46."""
    assert meanings(scenario_of("scaffold")) == [
        "scaffold steps with global_lr = sqrt(cohort) = 3.46, fedavg with 1: to compare the rules at one rate, write"
        " {name: scaffold, global_lr: 1}, and one server.participation for both (by default uniform, fedavg's is"
        " samples)"
    ]


@pytest.mark.parametrize("algorithm", ["fedavg", "feddyn", {"name": "scaffold", "global_lr": 1}])
def test_other_rates_of_the_server_are_not_told(algorithm):
    assert meanings(scenario_of(algorithm)) == []


def test_a_rate_that_is_1_anyway_is_not_told():
    assert rate_of_one(scenario_of("scaffold", cohort=1)) == []


def test_the_root_of_a_cohort_of_all_has_no_number():
    """Which of the devices have work is known when data are assigned: the run steps by the root of their number."""
    [said] = rate_of_one(scenario_of("scaffold", cohort="all"))
    assert said.startswith("scaffold steps with global_lr = sqrt(cohort), fedavg with 1: to compare the rules")
    rates = [default_rate(scenario_of(name, cohort="all")) for name in ("fsl", "scaffold", "fedavg")]
    assert rates_of_all(rates)[0].startswith("fsl and scaffold step with global_lr = sqrt(cohort), fedavg with 1:")
    some = [*rates[1:2], default_rate(scenario_of("scaffold", cohort=4))]
    steps = "scaffold steps with global_lr = sqrt(cohort)"
    assert rates_of_all(some)[0].startswith(f"{steps}, scaffold with global_lr = sqrt(cohort) = 2:")
    fewer = scenario_of("scaffold", cohort="all")
    fewer = fewer.model_copy(update={"population": [fewer.population[0].model_copy(update={"count": 5})]})
    assert rates_of_all([rates[1], default_rate(fewer)])[0].startswith(f"{steps}: to compare the rules at one rate")


def test_rates_that_differ_between_variants_are_one_sentence():
    rates = [default_rate(scenario_of(name)) for name in ("fsl", "fedavg", "scaffold", "feddyn")]
    assert rates_of_all(rates) == [
        "fsl and scaffold step with global_lr = sqrt(cohort) = 3.46, fedavg with 1: to compare the rules at one rate,"
        " write {name: fsl, global_lr: 1} and {name: scaffold, global_lr: 1}"
    ]
    assert rates_of_all(rates[:1] * 2) == []
    cohorts = [default_rate(scenario_of("scaffold", cohort)) for cohort in (4, 9)]
    assert rates_of_all(cohorts) == [
        "scaffold steps with global_lr = sqrt(cohort) = 2, scaffold with global_lr = sqrt(cohort) = 3: to compare the"
        " rules at one rate, write {name: scaffold, global_lr: 1}"
    ]


@pytest.mark.parametrize(
    ("algorithm", "participation", "said"),
    [
        ("scaffold", "samples", "participation samples changes the way there, and not where it leads"),
        ("scaffold", "C", "participation C changes the way there"),
        ("feddyn", "samples", "(alpha_by: share minimises the mean by samples)"),
        ("scaffold", "uniform", None),
        ({"name": "feddyn", "alpha_by": "share"}, "samples", None),
        ("fedavg", "samples", None),
        ("ditto", "samples", None),
    ],
)
def test_weights_that_do_not_say_what_is_minimised_are_told(algorithm, participation, said):
    server = {"rounds": 2, "algorithm": algorithm, "participation": participation}
    scenario = Scenario.model_validate({**BASE, "server": server})
    notes = [note for note in meanings(scenario) if "plain mean" in note]
    assert len(notes) == (said is not None)
    assert said is None or said in notes[0]


def test_weights_that_differ_between_variants_that_name_none_are_told():
    """SCAFFOLD, FedDyn and FedBuff are uniform; whoever names weights has chosen them."""
    named = ("fedavg", "fedprox", "scaffold", "feddyn")
    found = [scenario_of(name) for name in named]
    [said] = weights_of_all(list(map(default_weights, found)))
    assert said.startswith(
        "updates have unlike weights by default (samples with fedavg and fedprox; uniform with scaffold and feddyn),"
    )
    assert said.endswith("to compare the rules alone, give all the same, such as --set server.participation=uniform")
    assert weights_of_all(list(map(default_weights, found[:2]))) == []
    assert weights_of_all(list(map(default_weights, found[2:]))) == []
    chosen = [scenario_of(name, participation="uniform") for name in named]
    assert list(map(default_weights, chosen)) == [None] * 4
    sent = [found[0], scenario_of("fedavg", cohort=None, timing={"name": "fedbuff", "concurrency": 6, "buffer": 3})]
    [said] = weights_of_all(list(map(default_weights, sent)))
    assert "samples with fedavg; uniform with fedbuff" in said
    robust = [scenario_of("fedavg"), scenario_of("fedavg", aggregation="median")]
    assert weights_of_all(list(map(default_weights, robust))) == []


def timed(timing, algorithm="fedavg", **further):
    server = {"rounds": 2, "timing": timing, "algorithm": algorithm, **further}
    return Scenario.model_validate({**BASE, "server": server | {"data": {"name": "iid", "samples": 10}}})


FEDBUFF = {"name": "fedbuff", "concurrency": 2, "buffer": 1}


def test_weights_that_a_timing_has_in_place_of_the_algorithm_s_are_told():
    assert meanings(timed(FEDBUFF)) == [
        "participation is by default uniform under timing fedbuff, and samples with fedavg in rounds: to compare the"
        " two, give both the same, such as --set server.participation=uniform"
    ]
    assert meanings(timed(FEDBUFF, participation="samples")) == []
    assert meanings(timed(FEDBUFF, "fed-sgd")) == []  # uniform in rounds, too
    assert meanings(timed({"name": "fedasync", "concurrency": 2})) == []


@pytest.mark.parametrize("selection", ["samples", {"name": "power-of-choice", "candidates": 2}])
def test_samples_that_count_twice_are_told(selection):
    """They are drawn by, and weigh; the papers take the plain mean. Who draws alike may weigh by samples."""
    [said] = meanings(scenario_of("fedavg", selection=selection))
    name = selection if isinstance(selection, str) else selection["name"]
    assert said.startswith(f"selection {name} draws by samples, and participation samples weighs by them again")
    assert meanings(scenario_of("fedavg", selection=selection, participation="uniform")) == []
    assert meanings(scenario_of("fedavg", selection="round-robin")) == []
