"""Which runs the axes of a study make: what is set within what, and what may not be varied."""

import pytest

from fedactors.cli.main import main
from fedactors.errors import ScenarioError
from fedactors.scenario.model import Scenario
from fedactors.study.study_cells import RECORDING, StudyAxis, axis, axis_of, crossed, merged, refuse_lost

RATE = "server.algorithm.global_lr"


def test_what_lies_within_another_key_is_set_after_it(scenario):
    cells = list(crossed([axis(RATE, [0.5, 1.5]), axis("server.algorithm", ["fedavg", "fedprox"])], [1]))
    loaded = [Scenario.load(scenario, cell.overrides).server.algorithm for cell in cells]
    assert [(one.name, one.global_lr) for one in loaded] == [
        ("fedavg", 0.5), ("fedprox", 0.5), ("fedavg", 1.5), ("fedprox", 1.5),
    ]  # fmt: skip


def test_each_of_eight_cells_has_a_run_of_its_own(scenario, tmp_path):
    words = ["compare", str(scenario), "--vary", f"{RATE}=0.5,1.5", "--vary", "server.algorithm=fedavg,fedprox"]
    words += ["--seeds", "2", "--set", "server.rounds=1", "--jobs", "1", "--out", str(tmp_path), "--clock-only"]
    assert main(words) == 0
    assert len(list(tmp_path.glob("replay-*"))) == 8


@pytest.mark.parametrize(
    ("words", "lost"),
    [
        (["compare", "--set", f"{RATE}=0.001", "--vary", "server.algorithm=fedavg,fsl"], f"{RATE}=0.001"),
        (["compare", "--set", "server.rounds=3", "--vary", "server.rounds=1,2"], "server.rounds=3"),
        (["compare", "--set", "population.phones.count=9", "--vary", "population.0=a,b"], "population.phones.count=9"),
        (["compare", "--set", "server.algorithm=fedprox"], "server.algorithm=fedprox"),
        (["sweep", "--set", "server.schedule.lr=1"], "server.schedule.lr=1"),
    ],
    ids=["below", "same", "group", "list of changes", "grid"],
)
def test_an_override_that_would_be_lost_is_refused(words, lost, scenario, tmp_path, capsys):
    assert main([words[0], str(scenario), *words[1:], "--out", str(tmp_path / "x")]) == 2
    assert f"fedactors: --set {lost}: without effect" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_an_override_that_some_values_leave_is_not_lost():
    some = StudyAxis("variant", {"FL": ("server.participation=uniform",), "FSL": ()})
    recordings = StudyAxis(RECORDING, {"a": ("population.phones.availability={}",)})
    refuse_lost(["server.participation=A", "population.phones.availability.when=wifi"], [some, recordings], ["phones"])
    refuse_lost(["server.algorithm=fsl"], [axis(RATE, [1, 2])], [])
    for all_set in (
        StudyAxis("variant", dict.fromkeys("ab", ("server.participation=C",))),
        axis("server.participation", "BC"),
    ):
        with pytest.raises(ScenarioError, match=r"server\.participation=A: without effect"):
            refuse_lost(["server.participation=A"], [some, all_set], [])


@pytest.mark.parametrize("key", ["cluster.bits=portable,native", "cluster.price_per_node_hour=1,2"])
def test_a_cluster_is_not_varied(key, scenario, tmp_path, capsys):
    assert main(["compare", str(scenario), "--vary", key, "--out", str(tmp_path / "x")]) == 2
    assert "a cluster is not varied" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_values_are_read_as_those_of_set_are():
    assert list(axis_of("server.schedule.lr=1e-3,1e-1,1_000").values) == [0.001, 0.1, 1000]
    assert list(axis_of("server.deadline=2020-01-01,1:30").values) == ["2020-01-01", 90]
    with pytest.raises(ScenarioError, match=r"--vary a=\[: the value is not valid YAML"):
        axis_of("a=[")


def test_a_run_leaves_out_what_its_cell_sets_again():
    """An override within a value that the cell sets whole would be refused after it as a contradiction."""
    recordings = StudyAxis(RECORDING, {"a": ("population.phones.availability={}",)})
    (cell,) = crossed([recordings], [7])
    changes = ["population.0.availability.when=wifi", "server.cohort=3", "seed=1"]
    assert merged(changes, cell, ["phones"]) == ("server.cohort=3", *cell.overrides)
