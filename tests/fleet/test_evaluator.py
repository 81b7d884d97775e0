"""The evaluator's work at single clients: few models in memory at once, and what few clients keep in one call."""

import weakref
from dataclasses import replace
from types import SimpleNamespace

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.fleet.client_states import ClientStates
from fedactors.fleet.evaluator import Evaluator
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.measurements import Measurements
from fedactors.fleet.stubs import EvaluatorStub
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.own_models import OWN
from fedactors.models.network import initial
from fedactors.workload import FineTuning
from tests.engines.test_engines import MODELS, SIZES, samples, task

MODEL = MODELS["logistic"]
DATA = samples(MODEL)
TEST = EvaluationSet(DATA.x, DATA.y)
CLIENTS = [client for client, size in enumerate(SIZES) if size]


def test_models_of_clients_are_made_one_by_one(monkeypatch):
    made, alive, original = [], [], ModelEvaluator.evaluate

    def noting(self, flat, rows=None):
        made.append(weakref.ref(flat))
        alive.append(sum(one() is not None for one in made))
        return original(self, flat, rows)

    monkeypatch.setattr(ModelEvaluator, "evaluate", noting)
    tuned = Evaluator(replace(task(MODEL), fine_tuning=FineTuning(None, 1, 5, 0.1)), TEST, DATA)
    found = tuned.evaluate_clients({"x": initial(MODEL, 0)}, 0, CLIENTS)
    assert [one.client for one in found] == CLIENTS
    assert len({one.loss for one in found}) == len(CLIENTS) > 3
    assert max(alive) <= 2


def test_a_call_has_what_few_clients_keep():
    clients, states = tuple(range(70)), ClientStates()
    for client in clients:
        states.restore(client, {OWN: initial(MODEL, client)})
    public = {"x": initial(MODEL, 0)}
    with LocalFleet() as fleet:
        evaluator = EvaluatorStub.started(fleet, task(MODEL), TEST)
        measurements = Measurements(fleet, evaluator, None, [], None, states)
        wanted = SimpleNamespace(evaluated_clients=clients, facts=SimpleNamespace(version=0))
        parts = measurements.of_clients(wanted, public)
        whole = evaluator.evaluate_clients(public, 0, clients, [states.of(client) for client in clients])
    assert len(parts) == 3
    assert sum(parts, ()) == whole
    assert len({one.loss for one in whole}) == len(clients)
