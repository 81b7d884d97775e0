"""In a notebook, whose event loop is running, a run shows a bar and its result shows itself; no widget is needed."""

import asyncio

import pytest

import fedactors
from fedactors.simulation.notebook_progress import NotebookProgress, unasked
from fedactors.simulation.progress import Silent
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART

CELL = """
import asyncio
import fedactors

assert asyncio.get_running_loop().is_running()
scenario = fedactors.Scenario.load({path!r}, ["server.rounds=3"])
fedactors.run(scenario, {out!r}, report=False, **{where})
"""


@pytest.mark.filterwarnings("ignore")  # those of Jupyter's own libraries; the cell runs in a process of its own
@pytest.mark.slow
@pytest.mark.parametrize("where", [{"fleet": "local"}, {"actors": 1}], ids=str)
def test_a_cell_that_runs_a_scenario_shows_progress_and_result(where, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (pip install fedactors[dev])")
    pytest.importorskip("ipykernel")
    from nbformat import v4

    notebook = v4.new_notebook()
    notebook.cells.append(v4.new_code_cell(CELL.format(path=str(QUICKSTART), out=str(tmp_path / "run"), where=where)))
    nbclient.NotebookClient(notebook, timeout=300).execute()
    shown = [one["data"]["text/html"] for one in notebook.cells[0].outputs if "text/html" in one.get("data", {})]
    bar, result = shown
    assert '<progress value="3" max="3">' in bar
    assert "round 3/3" in bar
    assert "<b>quickstart: accuracy " in result
    assert "all rounds done" in result


def test_a_coroutine_can_run_a_scenario(tmp_path):
    scenario = fedactors.Scenario.load(QUICKSTART, ["server.rounds=2"])

    async def study():
        return fedactors.run(scenario, tmp_path / "inside", fleet="local", report=False)

    outside = fedactors.run(scenario, tmp_path / "outside", fleet="local", report=False)
    assert asyncio.run(study()).summary["digests"] == outside.summary["digests"]


def test_outside_of_notebooks_nothing_is_shown():
    assert isinstance(unasked(), Silent)


def test_notes_and_names_are_text_and_not_markup(monkeypatch):
    drawn = []
    pytest.importorskip("IPython")
    monkeypatch.setattr("IPython.display.display", lambda page, display_id: drawn.append(page.data))
    progress = NotebookProgress()
    with progress.over("<i>name", 2):
        progress.note("<script>")
    assert "&lt;i&gt;name" in drawn[0]
    assert "&lt;script&gt;" in drawn[-1]
    assert "<script>" not in "".join(drawn)


def test_a_replay_and_a_recorded_run_show_themselves(tmp_path):
    scenario = fedactors.Scenario.load(QUICKSTART, ["server.rounds=2"])
    replayed = replay(scenario, tmp_path / "replay")
    found = replayed._repr_html_()
    assert "<b>quickstart: 100 devices, clock only</b>" in found
    assert fedactors.load_run(tmp_path / "replay")._repr_html_() == found
    outcomes = replayed.summary["outcomes"]
    assert f"complete {outcomes['complete']:,}" in found
    assert found.count("<table>") == found.count("</table>") == 1
    (tmp_path / "replay/summary.json").unlink()
    assert "a run without a summary" in fedactors.load_run(tmp_path / "replay")._repr_html_()
