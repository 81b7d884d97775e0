"""Studies of a metric of the user's own: which way is better is what the scenario says."""

import pytest
import yaml

from fedactors.report.html import write as write_report
from fedactors.study import comparison_tables, sweep_page
from fedactors.study.comparison import compare
from fedactors.study.sweep import sweep

METRIC = "def apart(outputs, labels):\n    return (outputs.argmax(1) - labels).abs().float().mean()\n"
SCENARIO = {
    "name": "apart",
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
    "population": [{"name": "phones", "count": 4}],
    "server": {"rounds": 8, "local": {"epochs": 1, "batch": 50}},
    "sweep": {"grid": {"server.schedule.lr": [1e-6, 1.0]}, "measure": "apart"},
}


@pytest.fixture
def written(tmp_path):
    (tmp_path / "own.py").write_text(METRIC)

    def file(*, rises):
        metric = {"name": "apart", "factory": "own.py:apart", "higher_is_better": rises}
        said = SCENARIO | {"task": SCENARIO["task"] | {"metrics": [metric]}}
        (tmp_path / "own.yaml").write_text(yaml.safe_dump(said))
        return tmp_path / "own.yaml"

    return file


@pytest.mark.parametrize(("rises", "best"), [(False, "1.0"), (True, "1e-06")])
def test_a_sweep_says_which_place_is_best(written, tmp_path, rises, best):
    """Labels as numbers: a model that learnt is less far from them, whatever the user calls better."""
    found = sweep(written(rises=rises), out=tmp_path / "out", jobs=1)
    learnt, not_learnt = (value.mean for _, value in reversed(found.places()))
    assert learnt < not_learnt
    assert f"Best: server.schedule.lr = {best} with {min(learnt, not_learnt) if not rises else not_learnt:.3f}." in (
        sweep_page.text(found)
    )
    page = write_report(found.rows[0].folder).read_text()
    assert ("Higher is better." if rises else "Lower is better.") in page


def test_a_comparison_says_which_way_is_better(written, tmp_path):
    found = compare(written(rises=False), {"server.schedule.lr": [0.05, 0.1]}, 1, out=tmp_path / "out", jobs=1)
    assert "Lower is better: loss, apart." in comparison_tables.text(found)
