"""The notebooks run from top to bottom."""

import pytest

from tests.docs.blocks import ROOT

NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))


@pytest.mark.filterwarnings("ignore")  # those of Jupyter's own libraries; the cells run in a process of their own
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) for path in NOTEBOOKS],
    ids=[path.stem for path in NOTEBOOKS],
)
def test_a_notebook_runs(path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (pip install fedactors[dev])")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept: they change with every run"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": ROOT}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in shown) >= 2
