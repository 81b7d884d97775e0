"""A campaign goes on where it ended: killed, out of time, on another machine, and with results of other code."""

import json
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fedactors.cli.main import main
from fedactors.errors import RunFolderError, ScenarioError
from fedactors.papers.campaign import (
    campaign_costs,
    campaign_file,
    campaign_runs,
    cell_results,
    experiment_results,
    matrix,
    matrix_page,
)
from fedactors.papers.campaign.campaign_cells import ExperimentCells
from fedactors.papers.campaign.campaign_costs import CellCosts
from fedactors.papers.campaign.cell_results import file_name, load
from fedactors.papers.campaign.experiment_results import judge
from fedactors.papers.catalogue import FULL, REDUCED
from fedactors.papers.claims import more
from fedactors.papers.experiment import Experiment, Measures
from fedactors.papers.wanted_cells import wanted
from fedactors.simulation import runner
from fedactors.study import run_folders
from fedactors.study.runs import finished
from fedactors.version import ENGINE
from tests.cli.described import assert_described

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios"
TINY = """
results: results
runs: runs
page: page.md
reduced:
  - name: fsl-conf-fig6
    note: on digits
    set:
      - task.dataset=digits
      - "task.partition={name: classes, classes: 2, samples: 60}"
      - task.model=logistic
      - server.rounds=3
      - server.pretraining=null
"""
PAGE = f"# Papers\n\n{matrix_page.BEGIN}\n{matrix_page.END}\n\nThe end.\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "papers.yaml").write_text(TINY)
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path


@pytest.fixture
def counted(monkeypatch):
    """Count the runs that are begun."""
    begun, whole = [], runner.run
    monkeypatch.setattr(runner, "run", lambda *args, **kwargs: begun.append(args) or whole(*args, **kwargs))
    return begun


def play(folder, tell=lambda text: None, seconds=None, jobs=1, **options):
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    return campaign_runs.play(campaign, seconds, jobs, tell, **options)


def cells(folder):
    return sorted((folder / "results/reduced/fsl-conf-fig6").glob("*.json"))


def without_cost(path):
    found = json.loads(path.read_text())
    found["cost"] = found["measures"]["wall"] = None
    return found


@pytest.mark.slow
def test_a_campaign_that_is_killed_goes_on_and_finds_the_same(folder, tmp_path_factory, counted):
    def kill(text):
        if "2 of 6 cells" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(folder, kill)
    assert len(cells(folder)) == 2
    (found,) = play(folder)
    assert len(counted) == 6
    assert (found["cells"], found["cells_wanted"], found["seeds"]) == (6, 6, [1, 2, 3])
    other = tmp_path_factory.mktemp("at-once")
    (other / "papers.yaml").write_text(TINY)
    (other / "page.md").write_text(PAGE)
    (at_once,) = play(other)
    assert found["claims"] == at_once["claims"]
    assert [without_cost(path) for path in cells(folder)] == [without_cost(path) for path in cells(other)]


@pytest.mark.slow
def test_several_runs_at_a_time_find_the_same(folder, tmp_path_factory):
    (one,) = play(folder)
    other = tmp_path_factory.mktemp("two-jobs")
    (other / "papers.yaml").write_text(TINY)
    (two,) = play(other, jobs=2)
    assert two["claims"] == one["claims"]
    assert [without_cost(path) for path in cells(other)] == [without_cost(path) for path in cells(folder)]


@pytest.mark.slow
def test_another_machine_goes_on_from_the_results_alone(folder, tmp_path_factory, counted):
    play(folder)
    other = tmp_path_factory.mktemp("other-machine")
    for name in ("papers.yaml", "page.md"):
        shutil.copy(folder / name, other)
    shutil.copytree(folder / "results", other / "results")
    cells(other)[0].unlink()
    counted.clear()
    play(other)
    assert len(counted) == 1
    assert [without_cost(path) for path in cells(other)] == [without_cost(path) for path in cells(folder)]


def test_a_run_whose_time_is_up_is_gone_on_with(folder, tmp_path):
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    one = ExperimentCells(campaign, campaign.entries[0])
    work = one.of(one.missing[0]).work
    with pytest.raises(KeyboardInterrupt):
        finished(work._replace(until=time.time()))
    (run,) = campaign.runs.glob("run-*")
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 1  # of three rounds
    assert campaign_runs._played(work._replace(until=time.time()), False) == campaign_runs.PlayedCell()
    went_on = json.loads((finished(work) / "summary.json").read_text())
    at_once = json.loads((finished(work._replace(out=tmp_path / "elsewhere")) / "summary.json").read_text())
    assert went_on["digests"] == at_once["digests"]


def test_a_run_that_another_engine_began_is_known_as_such_and_set_aside_on_request(folder, monkeypatch):
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    one = ExperimentCells(campaign, campaign.entries[0])
    work = one.of(one.missing[0]).work
    monkeypatch.setattr("fedactors.simulation.resume.resume.ENGINE", "1")
    with pytest.raises(KeyboardInterrupt):
        finished(work._replace(until=time.time()))
    (run,) = campaign.runs.glob("run-*")
    monkeypatch.undo()
    assert run_folders.engine_of_begun(run) == "1"
    aside = shutil.copytree(run, run.with_name("kept"))
    assert campaign_runs._played(work, False).measures is not None
    assert run_folders.engine_of(json.loads((run / "summary.json").read_text())) == "1"
    shutil.rmtree(run)
    aside.rename(run)
    assert campaign_runs._played(work, True).measures is not None
    assert run_folders.engine_of(json.loads((run / "summary.json").read_text())) == ENGINE
    assert [path.name for path in campaign.runs.glob("*.unfinished-*")] == [f"{run.name}.unfinished-1"]


def test_what_an_experiment_finds_in_the_folder_of_a_run_is_kept_with_the_cell(folder):
    """So that its verdicts follow from the cells, as all others do, where the runs are not at hand."""
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    (entry,) = campaign.entries

    def from_run(run):
        return {"rows": float(len((run / "metrics.jsonl").read_text().splitlines()))}

    def claims(table):
        return [more("as many rounds", table.further("rows", seed=1), 2)]

    entry = entry._replace(experiment=replace(entry.experiment, from_run=from_run, claims=claims, seeds=(1,)))
    cells = ExperimentCells(campaign, entry)
    for cell in cells.missing:
        one = cells.of(cell)
        campaign_runs._take(campaign_runs._played(one.work, False), cells, one, lambda text: None)
    said = judge(campaign.results, cells)
    assert said["claims"][0]["ours"].startswith("3.000 > 2.000")
    shutil.rmtree(campaign.runs)
    assert judge(campaign.results, ExperimentCells(campaign, entry)) == said


def test_without_a_valid_result_no_verdict_stays(folder):
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    path = experiment_results.path_of(campaign.results, campaign.entries[0])
    path.parent.mkdir(parents=True)
    path.write_text('{"claims": ["of scenarios that have changed since"]}')
    said = judge(campaign.results, ExperimentCells(campaign, campaign.entries[0]))
    assert (said["cells"], said["claims"]) == (0, [])
    assert json.loads(path.read_text()) == said


def test_damaged_files_of_a_campaign_are_named(folder):
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    experiment = experiment_results.path_of(campaign.results, campaign.entries[0])
    experiment.parent.mkdir(parents=True)
    experiment.write_text('{"claims": []}')
    with pytest.raises(RunFolderError, match=r"fsl-conf-fig6.json: damaged: no cells, cells_wanted, engines"):
        matrix.rows(campaign.results)
    campaign.runs.mkdir()
    (campaign.runs / "forecasts.json").write_text('{"run-1": "soon"}')
    with pytest.raises(RunFolderError, match=r"forecasts.json: damaged: could not convert string to float: 'soon'"):
        CellCosts(campaign.runs, lambda text: None)


def test_cells_of_code_that_is_in_no_commit_are_counted_in_the_matrix(folder, monkeypatch):
    monkeypatch.setattr(cell_results, "commit", lambda: "0123456789ab-dirty")
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    cells = ExperimentCells(campaign, campaign.entries[0])
    one = cells.of(cells.missing[0])
    campaign_runs._take(campaign_runs._played(one.work, False), cells, one, lambda text: None)
    judge(campaign.results, cells)
    (row,) = (row for row in matrix.rows(campaign.results) if row.found)
    said = "1 of 1 cells were computed by code with changes that are in no commit"
    assert row.note == f"on digits; {said}"
    assert f"* `fsl-conf-fig6`: {row.note}." in matrix_page.markdown([row])


def test_a_result_is_filed_under_the_scenario_that_was_run(folder, tmp_path):
    scenarios = Path(shutil.copytree(SCENARIOS / "papers", tmp_path / "scenarios/papers")).parent
    campaign = campaign_file.load(folder / "papers.yaml", scenarios, reduced=True)
    cells = ExperimentCells(campaign, campaign.entries[0])
    one = cells.of(cells.missing[0])
    played = campaign_runs._played(one.work, False)
    one.work.scenario.write_text(one.work.scenario.read_text().replace("cohort:", "among: members\n  cohort:"))
    told = []
    campaign_runs._take(played, cells, one, told.append)
    assert told == [f"{one.where}: its scenario has changed while it was run: it is run again"]
    assert not cells.found
    assert load(one.file).asked == played.asked


def test_a_run_whose_metrics_were_cut_is_run_again(folder):
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    cells = ExperimentCells(campaign, campaign.entries[0])
    work = cells.of(cells.missing[0]).work
    whole = campaign_runs._played(work, False).measures
    metrics = whole.folder / "metrics.jsonl"
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:-1]))
    again = campaign_runs._played(work, False).measures
    assert again._replace(wall=0) == whole._replace(wall=0)


def test_a_commit_is_marked_where_code_has_changed_and_not_where_results_have(tmp_path):
    assert cell_results.commit_of(tmp_path) == ""
    for name in ("fedactors/a.py", "docs/page.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    found = cell_results.commit_of(tmp_path)
    assert re.fullmatch("[0-9a-f]{12}", found)
    (tmp_path / "docs/page.md").write_text("2\n")
    assert cell_results.commit_of(tmp_path) == found
    (tmp_path / "fedactors/a.py").write_text("2\n")
    assert cell_results.commit_of(tmp_path) == f"{found}-dirty"


def test_a_cell_names_the_commit_and_the_machine_of_its_run(folder, monkeypatch):
    """A run that was complete before its result was stored, as when a campaign was killed in between."""
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    one = ExperimentCells(campaign, campaign.entries[0])
    cell = one.of(one.missing[0])
    monkeypatch.setattr(cell_results, "commit", lambda: "0123456789ab")
    monkeypatch.setattr(cell_results, "machine", lambda: {"processor": "another", "cores": 64})
    campaign_runs._played(cell.work, False)
    monkeypatch.undo()
    played = campaign_runs._played(cell.work, False)
    campaign_runs._take(played, one, cell, lambda text: None)
    result = load(cell.file)
    assert (result.code["commit"], result.machine) == ("0123456789ab", {"processor": "another", "cores": 64})


def test_cells_with_a_run_in_common_are_not_run_at_the_same_time(folder, tmp_path):
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=True)
    known = [ExperimentCells(campaign, entry) for entry in (*campaign.entries, *campaign.entries)]
    costs = CellCosts(tmp_path, lambda text: None)
    going = set()
    for _ in range(6):
        _, one, _ = campaign_runs._next(known, costs, going, lambda text: None)
        assert campaign_runs._folder(one.work) not in going
        going.add(campaign_runs._folder(one.work))
    assert campaign_runs._next(known, costs, going, lambda text: None) is None


def test_no_budget_runs_nothing_and_says_what_is_there(folder, counted):
    told = []
    assert play(folder, told.append, seconds=0.0) == []
    assert told == ["1 experiments: 0 cells have results, 6 are to be run"]
    assert not counted


@pytest.mark.slow
def test_results_of_another_engine_are_told_and_computed_again_on_request(folder, counted):
    play(folder)
    first = cells(folder)[0]
    old = json.loads(first.read_text())
    old["code"]["engine"] = "0"
    first.write_text(json.dumps(old))
    summary = folder / "runs" / old["run"] / "summary.json"
    of_run = json.loads(summary.read_text())
    assert of_run["made_with"].pop("engine") == ENGINE  # runs of before had none
    summary.write_text(json.dumps(of_run))
    counted.clear()
    told = []
    (found,) = play(folder, told.append)
    assert any("results of engine 0" in text for text in told)
    assert found["engines"] == ["0", ENGINE]
    assert not counted
    (found,) = play(folder, again=True)
    assert found["engines"] == [ENGINE]
    assert len(counted) == 1
    assert load(first).engine == ENGINE


@pytest.mark.slow
def test_a_result_of_a_scenario_that_has_changed_is_told_and_computed_again(folder, counted):
    play(folder)
    (folder / "papers.yaml").write_text(TINY.replace("rounds=3", "rounds=2"))
    counted.clear()
    told = []
    play(folder, told.append)
    assert sum("its scenario has changed" in text for text in told) == 6
    assert len(counted) == 6
    assert load(cells(folder)[0]).measures.rounds == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("full: [fsl-tabel1]", 'no such experiment "fsl-tabel1"; did you mean "fsl-table1"?'),
        ("full: [{name: fsl-table1, without: {rows: [FL]}}]", 'no axis "rows"; did you mean "row"?'),
        ("full: [{name: fsl-table1, without: {row: [FSL 50]}}]", 'no label "FSL 50"; did you mean "FSL 500"?'),
        ("full: [fsl-table1, fsl-table1]", "fsl-table1 is named twice"),
        ("ful: [fsl-table1]", 'did you mean "full"?'),
        ("full: [{name: fsl-table1, seeds: many}]", "full.0.seeds"),
        ("full: [{name: fsl-table1, seeds: [1, 1]}]", "full.0.seeds: found 1 twice (accepted: how many"),
    ],
)
def test_mistakes_in_a_campaign_file_are_named(text, said, tmp_path):
    path = tmp_path / "papers.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as error:
        campaign_file.load(path, SCENARIOS, reduced=False)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_labels_that_are_numbers_are_left_out_as_they_are_written(tmp_path):
    path = tmp_path / "papers.yaml"
    path.write_text("full: [{name: flexible-table3, without: {T: [1, 2, 4]}}]")
    (entry,) = campaign_file.load(path, SCENARIOS, reduced=False).entries
    assert {cell.at("T") for cell in entry.experiment.cells()} == {3, 5, 6, 7, 8}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to run"),
        (["fsl-fig6", "--campaign", "papers.yaml"], "EXPERIMENT is for a single experiment"),
        (["--campaign", "papers.yaml", "--set", "seed=2"], "--set is for a single experiment"),
        (["--matrix", "--budget", "2h"], "--budget runs nothing with --matrix"),
        (["fsl-fig6", "--budget", "2h"], "--budget is for campaigns"),
        (["--campaign", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_options_that_exclude_each_other_are_refused(words, said, capsys):
    assert main(["reproduce", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_experiment_that_is_finished_soonest_is_first(folder):
    """24 cells of about 1.4 s before six of 9 s; three places have forecasts, the fourth (tau = 30) their mean."""
    (folder / "papers.yaml").write_text("full: [flexible-fig5, flexible-table4]")
    campaign = campaign_file.load(folder / "papers.yaml", SCENARIOS, reduced=False)
    known = [ExperimentCells(campaign, entry) for entry in campaign.entries]
    assert [len(one.missing) for one in known] == [6, 24]

    def seconds(scenario):
        return 9.0 if "fig5" in scenario.name else scenario.server.rounds / 100  # 1.1, 1.3, 1.5, 1.7

    costs = campaign_costs.CellCosts(campaign.runs, lambda text: None, seconds)
    assert [sum(cost for _, cost in costs.of(one)) for one in known] == [54.0, pytest.approx(6 * 4 * 4.3 / 3)]
    chosen = campaign_runs._next(known, costs, set(), lambda text: None)
    assert chosen[1].entry.name == "flexible-table4"
    assert chosen[2] == 1.1
    again = campaign_costs.CellCosts(campaign.runs, lambda text: None, lambda scenario: 1 / 0)  # they were kept
    assert again.of(known[0]) == costs.of(known[0])


def test_tuned_axes_are_known_once_the_first_seed_is_there():
    axes = {"alpha": {1: (), 2: ()}}
    experiment = Experiment("made up", "", [axes], (1, 2), tuned=("alpha",), best_by="accuracy")
    first = wanted(experiment, {})
    assert [cell.labels for cell in first] == [(("alpha", 1), ("seed", 1)), (("alpha", 2), ("seed", 1))]
    measures = [Measures(a, 1, None, 0.0, None, None, 1.0) for a in (0.3, 0.4)]
    found = dict(zip((cell.labels for cell in first), measures, strict=True))
    assert [cell.labels for cell in wanted(experiment, found)[2:]] == [(("alpha", 2), ("seed", 2))]


def test_the_command_shows_the_matrix_and_keeps_the_page(folder, capsys):
    words = ["reproduce", "--campaign", str(folder / "papers.yaml")]
    assert main([*words, "--reduced"]) == 0
    said = capsys.readouterr().out
    assert "fsl-conf-fig6" in said
    assert "fsl-conf-fig6: on digits" in said
    assert "1 not learnt" in said  # after three rounds
    page = (folder / "page.md").read_text()
    assert page.startswith("# Papers\n")
    assert page.endswith("\n\nThe end.\n")
    assert "E_s = 1 is as good as 5" in page
    assert main([*words, "--matrix", "--json"]) == 0
    said = capsys.readouterr().out
    assert_described("reproduce", said)
    (found,) = [one for one in json.loads(said)["experiments"] if one["found"]]
    assert (found["name"], found["size"], found["finished"]) == ("fsl-conf-fig6", "reduced", True)
    (folder / "page.md").write_text("no place\n")
    assert main([*words, "--reduced", "--budget", "0s"]) == 2
    assert "no place for the matrix" in capsys.readouterr().err


def test_files_of_cells_are_named_apart():
    for experiments in (FULL, REDUCED):
        for name, experiment in experiments.items():
            names = [file_name(cell.labels).lower() for cell in experiment.cells()]
            assert len(set(names)) == len(names), name


def test_the_page_of_the_repository_shows_its_results():
    page = (ROOT / "docs/papers/index.md").read_text()
    assert page == matrix_page.updated(page, matrix.rows(ROOT / "docs/papers/results"), "index.md")


@pytest.mark.parametrize("reduced", [False, True])
def test_the_claims_of_the_repository_follow_from_its_cells(reduced, tmp_path):
    """A claim, floor or scenario that has changed since: `fedactors reproduce --campaign papers.yaml --budget 0s`."""
    campaign = campaign_file.load(ROOT / "papers.yaml", SCENARIOS, reduced=reduced)
    copied = replace(campaign, results=tmp_path / "results", runs=tmp_path / "runs")
    shutil.copytree(campaign.results, copied.results)
    for entry in copied.entries:
        found = judge(copied.results, ExperimentCells(copied, entry))
        kept = campaign.results / entry.size / f"{entry.name}.json"
        assert kept.exists() == (found is not None), entry.name
        if found:
            assert json.loads(kept.read_text()) == json.loads(json.dumps(found)), entry.name


@pytest.mark.parametrize("reduced", [False, True])
def test_the_campaign_of_the_repository_is_sound(reduced):
    campaign = campaign_file.load(ROOT / "papers.yaml", SCENARIOS, reduced=reduced)
    assert len(campaign.entries) > 5
    assert campaign.page == ROOT / "docs/papers/index.md"
    matrix_page.refuse_unmarked(campaign.page)
