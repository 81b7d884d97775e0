"""Runs on one page are called by the settings in which their scenarios differ."""

import pytest

from fedactors.cli.main import main
from fedactors.report.compare import named
from fedactors.report.variant_names import in_words, told_apart, variant_of
from fedactors.run_files.records import read
from tests.report.conftest import made_up
from tests.report.test_html import text_of

PHONES = {"name": "phones", "count": 3}


def scenario(algorithm="fedavg", more=(), **others):
    rule = {"name": algorithm, **dict(more)}
    return {"name": "one", "seed": 1, "population": [PHONES], "server": {"rounds": 2, "algorithm": rule}, **others}


def names(*scenarios):
    return [in_words(labels) for labels in told_apart(scenarios)]


def test_what_differs_is_named_by_its_last_word_and_the_seed_comes_last():
    found = names(scenario(), scenario(seed=2), scenario("fsl", seed=2))
    assert found == ["algorithm=fedavg, seed=1", "algorithm=fedavg, seed=2", "algorithm=fsl, seed=2"]


def test_scenarios_that_differ_by_name_alone_have_no_labels():
    assert told_apart([scenario(), scenario(name="two")]) == [{}, {}]
    assert told_apart([scenario()]) == [{}]
    assert told_apart([{}, {}]) == [{}, {}]


def test_settings_that_come_with_an_algorithm_are_left_out_until_they_differ_themselves():
    fsl = [scenario("fsl", {"server_weight": weight}) for weight in (0.5, 1)]
    assert names(scenario(), fsl[0]) == ["algorithm=fedavg", "algorithm=fsl"]
    assert names(scenario(), *fsl) == [
        "algorithm=fedavg", "algorithm=fsl, server_weight=0.5", "algorithm=fsl, server_weight=1",
    ]  # fmt: skip


def test_two_settings_with_one_last_word_keep_their_whole_keys():
    groups = [[PHONES, {"name": "tablets", "count": count}] for count in (1, 2)]
    more = [[{**PHONES, "count": 4}, one[1]] for one in groups]
    found = names(*(scenario(population=population) for population in (*groups, *more)))
    assert found[0] == "population.phones.count=3, population.tablets.count=1"
    assert len(set(found)) == 4


def test_of_many_settings_those_that_tell_runs_apart_are_named():
    """Four settings change together, a fifth by itself: one of the four and the fifth are enough."""
    together = [scenario(a=k, b=k, c=k, d=k) for k in (1, 2)]
    assert names(*together, scenario(a=2, b=2, c=2, d=2, e=5)) == ["a=1", "a=2", "a=2, e=5"]


def test_values_are_short():
    paths = [scenario(trace={"path": f"/a/long/way/{name}.csv"}) for name in ("day", "night")]
    assert names(*paths) == ["path=day.csv", "path=night.csv"]
    assert names(scenario(x="y" * 99), scenario(x=True))[0] == f"x={'y' * 40}…"


def test_one_key_that_is_varied_needs_no_name():
    assert variant_of({"server.algorithm": "fsl"}) == "fsl"
    assert variant_of({"server.algorithm": "fsl", "server.rounds": 2}) == "algorithm=fsl, rounds=2"


@pytest.fixture
def folders(tmp_path):
    """Return folders of runs with two rates and two seeds, of one scenario."""
    found = []
    for rate, seed in ((0.1, 1), (0.1, 2), (0.5, 1)):
        folder = made_up(tmp_path / f"run-{len(found)}", rounds=3, cohort=4, devices=9)
        (folder / "scenario.yaml").write_text(f"name: tiny\nseed: {seed}\nserver: {{schedule: {{lr: {rate}}}}}\n")
        found.append(folder)
    return found


def test_runs_of_one_scenario_are_called_by_what_differs(folders, tmp_path):
    assert main(["report", *map(str, folders), "--out", str(tmp_path / "page.html")]) == 0
    text = text_of(tmp_path / "page.html")
    assert "tiny: 3 runs compared" in text
    for name in ("lr=0.1, seed=1", "lr=0.1, seed=2", "lr=0.5, seed=1"):
        assert text.count(name) >= 2, name  # in both tables
    assert all(str(folder) in text for folder in folders)


def test_runs_of_other_scenarios_keep_their_names(folders, tmp_path):
    other = made_up(tmp_path / "other", rounds=3, cohort=4, devices=9)
    found = named([read(one) for one in (*folders, other)])
    assert found == ["tiny lr=0.1, seed=1", "tiny lr=0.1, seed=2", "tiny lr=0.5, seed=1", "made-up"]


def test_runs_that_are_equal_are_told_apart_by_their_folders(folders, tmp_path):
    again = made_up(tmp_path / "again", rounds=3, cohort=4, devices=9)
    (again / "scenario.yaml").write_text((folders[0] / "scenario.yaml").read_text())
    found = named([read(one) for one in (folders[0], folders[2], again)])
    assert found == [f"lr=0.1 ({folders[0]})", "lr=0.5", f"lr=0.1 ({again})"]
    assert named([read(folders[0])]) == ["tiny"]
