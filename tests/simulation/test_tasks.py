"""Tasks other than classes, from data to summary: values, several labels at once, the next character."""

from typing import Literal

import numpy as np
import pytest

import fedactors
from fedactors import Scenario, registry
from fedactors.data.base import Data, Info
from fedactors.options import Options
from fedactors.streams import Purpose, stream

CLIENTS, EACH, FEATURES = 6, 40, 5


class Line(Options):
    """Values on a line, with a little noise: y = 2 x_0 - x_1 + 3."""

    name: Literal["line"] = "line"
    shape: tuple[int, ...] = ()

    def info(self, seed, clients):
        sizes = np.full(clients, EACH)
        return Info("line", clients * EACH, 100, (FEATURES,), 1, client_sizes=sizes, label_shape=self.shape)

    def check(self):
        pass

    def load(self, seed, clients):
        draws = stream(seed, Purpose.DATASET)
        x = draws.normal(size=(clients * EACH + 100, FEATURES)).astype(np.float32)
        return parted(x, self.labels(x, draws), clients, 1)

    def labels(self, x, draws):
        return (2 * x[:, 0] - x[:, 1] + 3 + 0.1 * draws.normal(size=len(x))).astype(np.float32)


class Tags(Line):
    """Three labels, each of which is there where a feature is above 0."""

    name: Literal["tags"] = "tags"

    def info(self, seed, clients):
        sizes = np.full(clients, EACH)
        return Info("tags", clients * EACH, 100, (FEATURES,), 3, client_sizes=sizes, label_shape=(3,))

    def labels(self, x, draws):
        return (x[:, :3] > 0).astype(np.float32)


def parted(x, y, clients, classes):
    train = clients * EACH
    bounds = np.arange(clients + 1, dtype=np.int64) * EACH
    return Data(x[:train], y[:train], x[train:], y[train:], classes, bounds)


@pytest.fixture(autouse=True)
def made_up_data(monkeypatch):
    for kind in (Line, Tags):
        monkeypatch.setitem(registry.BUILTIN["datasets"], kind.__name__.lower(), f"{__name__}:{kind.__name__}")


def finished(path, task, **server):
    options = {"rounds": 15, "local": {"epochs": 2, "batch": 10}, "schedule": {"name": "constant", "lr": 0.1}}
    scenario = {
        "name": "task",
        "task": {"partition": "natural", **task},
        "population": [{"name": "phones", "count": CLIENTS}],
        "server": {**options, **server},
    }
    return fedactors.run(Scenario.from_data(scenario, "task.yaml"), path, fleet="local")


@pytest.mark.parametrize("loss", ["mse", "l1", "huber"])
def test_values_on_a_line_are_learned_to_their_noise(loss, tmp_path):
    task = {"dataset": "line", "model": "logistic", "loss": loss, "metrics": ["rmse", "r2"]}
    final = finished(tmp_path / "run", task, stop={"rmse": 0.01, "patience": 15}).summary["final"]
    assert set(final) == {"loss", "rmse", "r2"}
    assert final["rmse"] < (0.12 if loss != "l1" else 0.5)
    assert final["r2"] > 0.9


def test_several_labels_at_once_are_learned(tmp_path):
    metrics = ["f1_macro", "exact_match", "hamming", "auroc"]
    task = {"dataset": "tags", "model": "logistic", "loss": "multi_label", "metrics": metrics}
    result = finished(tmp_path / "run", task, schedule={"name": "constant", "lr": 1.0}, stop={"f1_macro": 0.93})
    final = result.summary["final"]
    assert set(final) == {"loss", "accuracy", *metrics}
    assert final["f1_macro"] >= 0.93
    assert final["accuracy"] == pytest.approx(1 - final["hamming"])
    assert "f1_macro" in result.summary["ended_because"]


@pytest.mark.slow
def test_the_next_character_is_foreseen(tmp_path):
    dataset = {"name": "languages", "characters": 6, "length": 8, "test": 50, "central": 10}
    task = {"dataset": dataset, "model": {"name": "char_gru", "embedding": 4, "units": 8}, "metrics": ["perplexity"]}
    local = {"epochs": 2, "batch": 5, "optimizer": "adam"}
    result = finished(tmp_path / "run", task, local=local, schedule={"name": "constant", "lr": 0.03})
    found = [row["federated_perplexity"] for row in result.metrics]
    assert found[0] < 8
    assert found[-1] < 0.6 * found[0]
    final = result.summary["final"]
    assert final["perplexity"] == pytest.approx(np.exp(final["loss"]), rel=1e-4)


def test_a_loss_of_the_user_learns_and_is_equal_to_torchs(tmp_path):
    (tmp_path / "own.py").write_text(
        "def square(outputs, labels):\n    return ((outputs[:, 0] - labels) ** 2).mean()\n"
    )
    scenario = {
        "name": "own",
        "task": {"dataset": "line", "model": "logistic", "partition": "natural"},
        "population": [{"name": "phones", "count": CLIENTS}],
        "server": {"rounds": 4, "local": {"epochs": 2, "batch": 10}},
    }
    states = []
    for name, loss in (("torchs", "mse"), ("own", {"name": "torch", "factory": "own.py:square"})):
        task = {**scenario["task"], "loss": loss}
        made = Scenario.from_data({**scenario, "task": task}, "own.yaml", folder=tmp_path)
        states.append(fedactors.run(made, tmp_path / name, fleet="local", report=False).state["x"])
    np.testing.assert_allclose(*states, rtol=1e-4, atol=1e-6)
