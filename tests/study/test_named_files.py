"""Digests by which a study identifies recordings and data."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from fedactors.scenario.model import Scenario
from fedactors.study import named_files
from fedactors.study.named_files import file_digests
from fedactors.study.run_folders import folder_of

SCENARIO = """
name: named
task:
  dataset: {name: csv, train: people.csv, label: income, test_share: 0.2}
  model: {name: torch, factory: "torch.nn:Identity", weights: start.pt}
  partition: {name: iid, samples: 1}
population:
  - {name: a, count: 1, availability: {name: trace, path: "on/*.csv"}}
  - {name: b, count: 1, compute: {per_sample: 1ms, share: {path: share.csv}}, network: {places: {path: no.csv}}}
server: {rounds: 1, cohort: 1, deadline: 1s, local: {epochs: 1, batch: 1}}
"""
NAMED = ("people.csv", "start.pt", "on/1.csv", "on/2.csv", "share.csv")


@pytest.fixture
def load(tmp_path):
    (tmp_path / "on").mkdir()
    for name in (*NAMED, "other.csv"):
        (tmp_path / name).write_text(name)
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return lambda *overrides: Scenario.load(path, overrides)


def test_what_a_scenario_names_is_known_by_its_content(load):
    found = file_digests(load())
    assert list(found) == ["on/*.csv", "people.csv", "share.csv", "start.pt"]
    content = hashlib.sha256(b"people.csv").hexdigest()
    assert found["people.csv"] == hashlib.sha256(json.dumps([["people.csv", content]]).encode()).hexdigest()


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_changes_has_another_folder(name, load, tmp_path):
    before = folder_of(load(), tmp_path)
    assert folder_of(load(), tmp_path) == before
    (tmp_path / name).write_text("else")
    assert folder_of(load(), tmp_path) != before
    (tmp_path / name).write_text(name)
    assert folder_of(load(), tmp_path) == before


def test_texts_are_named_too(load, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("one")
    scenario = load(f"task.dataset={{name: texts, federated: {texts}}}", "task.model=char_gru")
    before = file_digests(scenario)
    assert str(texts) in before
    (texts / "b.txt").write_text("two")
    assert file_digests(scenario)[str(texts)] != before[str(texts)]


def test_large_data_are_known_by_their_times(load, tmp_path, monkeypatch):
    monkeypatch.setattr(named_files, "_MOST_BYTES", 5)
    before = file_digests(load())["people.csv"]
    os.utime(tmp_path / "people.csv", ns=(1, 1))
    assert file_digests(load())["people.csv"] != before


def test_without_files_and_with_portable_bits_folders_are_called_as_ever(scenario):
    loaded = Scenario.load(scenario)
    assert file_digests(loaded) == {}
    said = {key: value for key, value in loaded.dump().items() if key not in ("name", "cluster")}
    name = f"run-{hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]}"
    assert folder_of(loaded, Path()).name == name
    assert folder_of(Scenario.load(scenario, ["cluster.bits=native"]), Path()).name != name
