"""Samples for validation: disjoint from the test samples, as many as asked, the same for each seed of a study."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.data.base import Data, Info
from fedactors.data.sets.digits import Digits
from fedactors.data.sets.synthetic_data import SyntheticData
from fedactors.data.validation import info_with_validation, with_validation
from fedactors.errors import DataError, ScenarioError, UsageError
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load

SCENARIO = {
    "name": "aside",
    "task": {"dataset": "digits", "model": "logistic", "partition": {"name": "classes", "classes": 2}},
    "population": [{"name": "phones", "count": 20}],
    "server": {"rounds": 2, "cohort": 5, "local": {"epochs": 1, "batch": 10}},
}


def scenario(task=None, server=None, **further):
    said = {**SCENARIO, **further}
    return Scenario.load(said | {"task": said["task"] | (task or {}), "server": said["server"] | (server or {})})


def made(labels, sizes=None, central=None):
    """Return data whose test samples are known by their only input: 0, 1, 2 …"""
    y = np.array(labels, np.int64)
    x = np.arange(len(y), dtype=np.float32)[:, None]
    bounds = None if sizes is None else np.concatenate([[0], np.cumsum(sizes)])
    return Data(x[:0], y[:0], x, y, 10, test_clients=bounds, test_central=central)


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=0, max_size=30), min_size=1, max_size=6),
    st.floats(0.05, 0.95),
    st.booleans(),
)
def test_the_part_is_disjoint_of_its_size_and_a_share_of_each_client(clients, share, by_client):
    labels = [label for mine in clients for label in mine]
    sizes = [len(mine) for mine in clients]
    info = Info("made", 0, len(labels), (1,), 10)
    count = round(share * len(labels))
    if not 0 < count < len(labels):
        with pytest.raises(ScenarioError, match="leaves none"):
            info_with_validation(info, share)
        return
    data = made(labels, sizes if by_client else None)
    found = with_validation(data, share)
    known = info_with_validation(info, share)
    assert (known.test_size, known.validation_size) == (len(found.test_y), len(found.validation_y))
    assert (len(found.validation_y), known.evaluated_size) == (count, len(labels))
    tests, aside = (part[:, 0].astype(int) for part in (found.test_x, found.validation_x))
    assert sorted([*tests, *aside]) == list(range(len(labels)))
    assert tests.tolist() == sorted(tests), "test samples keep their order, so they stay with their clients"
    assert found.test_y.tolist() == [labels[k] for k in tests]
    assert found.validation_y.tolist() == [labels[k] for k in aside]
    if not by_client:
        groups = np.array(labels)
        assert found.test_clients is None
    else:
        groups = np.repeat(np.arange(len(clients)), sizes)
        assert np.array_equal(np.diff(found.test_clients), np.bincount(groups[tests], minlength=len(clients)))
    for group in np.unique(groups):
        there = np.count_nonzero(groups == group) * count / len(labels)
        assert abs(np.count_nonzero(groups[aside] == group) - there) < 1, "up to one sample"


def test_both_parts_keep_what_is_like_the_central_data():
    central = np.array([True, False] * 10)
    found = with_validation(made([0, 1] * 10, central=central), 0.5)
    for x, part in ((found.test_x, found.test_central), (found.validation_x, found.validation_central)):
        assert np.array_equal(part, central[x[:, 0].astype(int)])
        assert part.sum() == 5


def test_without_a_share_data_are_as_they_were():
    data, info = made([0, 1, 2]), Info("made", 0, 3, (1,), 10)
    assert with_validation(data, None) is data
    assert info_with_validation(info, None) is info


def test_each_seed_of_a_study_has_the_same_part_and_the_clients_keep_their_samples():
    whole = Digits().load(0, 1)
    parts = []
    for seed in (1, 2):
        _, plain, _, _ = load(prepare(scenario(seed=seed)))
        _, samples, tests, _ = load(prepare(scenario({"validation": 0.2}, seed=seed)))
        assert np.array_equal(samples.split.indices, plain.split.indices)
        assert np.array_equal(samples.x, plain.x)
        parts.append(tests)
    one, other = parts
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.validation.x, other.validation.x)
    assert (len(one.y), len(one.validation.y)) == (288, 72)
    both = np.concatenate([one.x, one.validation.x]).reshape(360, -1)
    assert np.array_equal(np.unique(both, axis=0), np.unique(whole.test_x.reshape(360, -1), axis=0))
    counts = np.bincount(one.validation.y)
    assert counts.min() >= 7
    assert counts.max() <= 8, "each label has its share"


@pytest.mark.parametrize("count", [6, 3000])
def test_data_that_are_made_by_client_have_the_part_too(count):
    """Most of 3,000 clients are never asked, so their samples are not made; the test samples are."""
    dataset = {"name": "synthetic", "samples": 11, "test_clients": 6}
    task = {"dataset": dataset, "model": "logistic", "partition": "natural", "validation": 0.25}
    prepared = prepare(scenario(task, population=[{"name": "phones", "count": count}]))
    assert (prepared.client_source is not None) == (count == 3000)
    _, _, tests, _ = load(prepared)
    whole = SyntheticData(**dataset).load(0, count)
    assert len(tests.validation.y) == prepared.info.validation_size == round(0.25 * len(whole.test_y))
    assert len(tests.y) == prepared.info.test_size == len(whole.test_y) - len(tests.validation.y)


def test_clients_are_evaluated_on_what_is_left_of_their_test_samples():
    task = {"dataset": {"name": "synthetic", "samples": 40}, "partition": "natural"}
    server = {"evaluation": {"on": "held_out", "every": 1}}
    task_of, _, tests, _ = load(prepare(scenario(task | {"validation": 0.2}, server)))
    plain, _, whole, _ = load(prepare(scenario(task, server)))
    for client in range(20):
        left, mine = (part.x[one.holdout.of(client)] for one, part in ((task_of, tests), (plain, whole)))
        aside = len(mine) - len(left)
        assert abs(aside - 0.2 * len(mine)) < 1
        assert {row.tobytes() for row in left} <= {row.tobytes() for row in mine}


REFUSED = {
    "all of them": ({"validation": 0.9999}, {}, "task.validation: 0.9999 of 360 test samples leaves none to test on"),
    "none of them": ({"validation": 0.001}, {}, "0.001 of 360 test samples leaves none for validation"),
    "no share": ({"validation": 1}, {}, "task.validation: found 1, should be less than 1"),
    "a test set that moves": (
        {"validation": 0.2},
        {"membership": {"name": "vanilla", "departures": "include"}},
        "server.membership: its test set follows the members",
    ),
    "no part to stop by": (
        {},
        {"stop": {"validation_accuracy": 0.9}},
        'server.stop: "validation_accuracy" is not measured: the data have no samples for validation',
    ),
    "a loss while training": (
        {"validation": 0.2},
        {"stop": {"validation_train_loss": 0.9}},
        'server.stop: no measure "validation_train_loss"',
    ),
    "nothing that is measured": (
        {"validation": 0.2},
        {"stop": {"validation_acuracy": 0.9}},
        'server.stop: no measure "validation_acuracy"',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused_in_one_message(name):
    task, server, message = REFUSED[name]
    with pytest.raises(UsageError) as error:
        prepare(scenario(task, server))
    assert message in str(error.value)


def test_a_metric_may_not_have_the_name_of_a_column_of_the_part(tmp_path):
    (tmp_path / "own.py").write_text("def own(outputs, labels):\n    return 0.5\n")
    named = {"factory": f"{tmp_path}/own.py:own", "higher_is_better": True}
    metrics = [{"name": "validation_own", **named}]
    assert prepare(scenario({"metrics": metrics})).info.validation_size == 0
    with pytest.raises(ScenarioError, match="the beginning of the columns of samples for validation"):
        prepare(scenario({"metrics": metrics, "validation": 0.2}))
    with pytest.raises(ScenarioError, match="is a column of metrics already"):
        scenario({"metrics": [{"name": "validation_loss", **named}]})


def test_data_with_a_part_of_their_own_take_no_share():
    data = replace(made([0, 1, 2, 3]), validation_x=np.ones((2, 1), np.float32), validation_y=np.array([0, 1]))
    with pytest.raises(ScenarioError, match=r"task.validation: found 0.5, and the data have a part for validation"):
        with_validation(data, 0.5)
    with pytest.raises(ScenarioError, match=r"task.validation: found 0.5, and the data have a part for validation"):
        info_with_validation(Info("made", 0, 4, (1,), 4, validation_size=2), 0.5)


def test_data_describe_counts_the_part(tmp_path, capsys):
    path = tmp_path / "aside.yaml"
    path.write_text(json.dumps(SCENARIO))
    assert main(["data", "describe", str(path), "--set", "task.validation=0.25"]) == 0
    assert "1,437 to train, 270 to test, 90 for validation" in capsys.readouterr().out
    assert main(["data", "describe", str(path), "--json"]) == 0
    assert "validation" not in json.loads(capsys.readouterr().out)


def test_a_data_set_of_a_plugin_may_bring_the_part_as_it_announces_it(monkeypatch):
    """Its samples may be lists, as the others; what `info` says must be true."""
    info, whole = Digits().info(0, 1), Digits().load(0, 1)
    third = {"validation_x": whole.test_x[:10].tolist(), "validation_y": whole.test_y[:10].tolist()}
    monkeypatch.setattr(Digits, "load", lambda *of: replace(whole, **third))
    with pytest.raises(DataError, match=r'"digits": 10 samples for validation \(accepted: 0, the validation_size'):
        load(prepare(scenario()))
    monkeypatch.setattr(Digits, "info", lambda *of: replace(info, validation_size=10))
    _, _, tests, _ = load(prepare(scenario()))
    assert tests.validation.x.dtype == np.float32
    assert np.array_equal(tests.validation.x, whole.test_x[:10])
    third["validation_x"][3][0][0][0] = float("nan")
    with pytest.raises(DataError, match="validation samples: NaN or Inf in sample 3"):
        load(prepare(scenario()))
