"""What a study chooses by: samples for validation where there are some, and the test samples' value stands beside."""

import json
from dataclasses import replace

import pytest
import yaml

from fedactors.cli.main import main
from fedactors.errors import ScenarioError
from fedactors.report import compare as several
from fedactors.report.measures import BEST_ROUND
from fedactors.run_files.records import read
from fedactors.study import comparison_tables, page, sweep_page
from fedactors.study.comparison import Comparison, compare
from fedactors.study.exports import comparison_files
from fedactors.study.ranking import ranking_column
from fedactors.study.run_figures import StudyRow, common_target, figures
from fedactors.study.study_cells import StudyAxis
from fedactors.study.sweep import Swept, sweep
from tests.cli.described import assert_described

# (test, validation) accuracy after each of two rounds: 0.1 is best on validation and second on test
CURVES = {
    "0.01": [(0.50, 0.40), (0.60, 0.55)],
    "0.1": [(0.70, 0.75), (0.80, 0.90)],
    "1.0": [(0.72, 0.65), (0.95, 0.70)],
}


def made(folder, name, curve, seed, *, validation=True):
    """Write the records of a run by hand; its loss is what the accuracy lacks."""
    path = folder / f"{name}-{seed}"
    path.mkdir(parents=True)
    rows = []
    for number, (test, aside) in enumerate(curve, start=1):
        shift = 0.01 * seed
        row = {
            "round": number,
            "virtual_seconds": 10.0 * number,
            "asked": 1,
            "heard": 1,
            "bytes_down": 1,
            "bytes_up": 1,
        }
        row |= {"accuracy": test + shift, "loss": 1 - test, "wall_seconds": 1.0}
        rows.append(row | ({"validation_accuracy": aside + shift, "validation_loss": 1 - aside} if validation else {}))
    (path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (path / "scenario.yaml").write_text(yaml.safe_dump({"name": "made", "task": {"metrics": []}}))
    return StudyRow({"lr": name}, seed, path, read(path, tables=False))


def rows_of(folder, *, validation=True):
    return {
        name: [made(folder, name, curve, seed, validation=validation) for seed in (0, 1)]
        for name, curve in CURVES.items()
    }


def comparison(rows, window=1):
    return Comparison("made", rows, "0.01", common_target(rows["0.01"], window), 0.95, window)


def test_the_variant_that_is_best_on_validation_is_chosen_though_second_on_test(tmp_path):
    """By hand, means over the seeds 0 and 1 in the last round: 0.1 has 0.905 on validation and 0.805 on test."""
    found = comparison(rows_of(tmp_path))
    assert comparison_tables.columns(found)[:3] == ["validation_accuracy", "accuracy", "loss"]
    assert comparison_tables.heads(found)[:5] == ["", "validation accuracy", "difference", "test accuracy", "test loss"]
    assert comparison_tables.answer(found).startswith(
        "0.1 has the highest validation accuracy, 0.905 (test accuracy 0.805)."
    )
    _, best, last = comparison_tables.lines(found)
    assert [cell.split(" ")[0] for cell in best[:4]] == ["0.1", "0.905", "+0.350", "0.805"]
    assert [cell.split(" ")[0] for cell in last[:4]] == ["1.0", "0.705", "+0.150", "0.955"]
    assert "Ranked by validation accuracy: no test sample was used for the choice." in comparison_tables.notes(found)
    assert "validation accuracy" in comparison_files.latex(found)


MIXED = "; but test samples differ by seed, and those of one seed may be validation samples of another."


@pytest.mark.parametrize(
    ("share", "seeds", "by_seed", "mixed"),
    [
        (0.2, (0, 1), True, True),
        (0.2, (0, 1), None, True),  # what is not known may be so
        (0.2, (0, 1), False, False),
        (0.2, (0,), True, False),
        (None, (0, 1), True, False),
    ],
)
def test_a_note_says_where_test_samples_of_a_seed_are_for_validation_of_another(tmp_path, share, seeds, by_seed, mixed):
    rows = rows_of(tmp_path)
    for one in tmp_path.glob("*/scenario.yaml"):
        one.write_text(yaml.safe_dump({"name": "made", "task": {"metrics": [], "validation": share}}))
        one.with_name("summary.json").write_text(json.dumps({} if by_seed is None else {"tests_by_seed": by_seed}))
    rows = {
        name: [replace(one, records=read(one.folder, tables=False)) for one in runs if one.seed in seeds]
        for name, runs in rows.items()
    }
    said = "Ranked by validation accuracy: no test sample was used for the choice" + (MIXED if mixed else ".")
    assert said in comparison_tables.notes(comparison(rows))
    assert said in sweep_page.text(swept(rows, "accuracy"))


def test_without_validation_the_test_samples_choose_and_a_note_says_so(tmp_path):
    found = comparison(rows_of(tmp_path, validation=False))
    assert comparison_tables.columns(found)[:2] == ["accuracy", "loss"]
    assert comparison_tables.heads(found)[:4] == ["", "accuracy", "difference", "loss"]
    assert comparison_tables.answer(found).startswith("1.0 has the highest accuracy, 0.955. ")
    [note] = [said for said in comparison_tables.notes(found) if said.startswith("Ranked by")]
    assert note == (
        "Ranked by the test samples, so the figure of the best one is too good: to report it, choose by others"
        " (task.validation)."
    )
    assert not any("validation_" in line for line in comparison_files.as_csv(found).splitlines())
    alone = {"0.1": found.variants["0.1"]}
    one = Comparison("made", alone, "0.1", None, 0.95, 1)
    assert not any("Ranked by" in said for said in comparison_tables.notes(one)), "nothing is chosen"


def test_variants_of_which_some_have_no_part_are_ranked_by_the_test_samples(tmp_path):
    rows = rows_of(tmp_path / "with") | {"1.0": rows_of(tmp_path / "without", validation=False)["1.0"]}
    found = replace(comparison(rows), target=0.72)
    assert comparison_tables.columns(found)[0] == "accuracy"
    assert "Ranked by the test samples, so" in comparison_tables.text(found)
    assert "Target: accuracy 0.72;" in comparison_tables.text(found)
    reached = {name: [one["rounds_to"] for one in found.figures(name)] for name in CURVES}
    assert reached == {"0.01": [None, None], "0.1": [2, 2], "1.0": [1, 1]}, "0.1 has 0.75 on validation in round 1"


def test_the_target_is_one_of_validation(tmp_path):
    """90 % of the baseline's 0.555 on validation, in whole percent, is 0.49; 0.01 reaches it in round 2."""
    found = comparison(rows_of(tmp_path))
    assert found.target == 0.49
    assert "Target: validation accuracy 0.49;" in comparison_tables.text(found)
    reached = {name: [one["rounds_to"] for one in found.figures(name)] for name in CURVES}
    assert reached == {"0.01": [2, 2], "0.1": [1, 1], "1.0": [1, 1]}
    plain = comparison(rows_of(tmp_path / "plain", validation=False))
    assert plain.target == 0.54


def test_a_baseline_without_figures_has_no_target_for_that_reason(tmp_path):
    rows = rows_of(tmp_path)
    failed = [replace(one, failure="diverged") for one in rows["0.01"]]
    said = comparison_tables.text(comparison(rows | {"0.01": failed}))
    assert "No target: 0.01 has no validation accuracy; --target names one." in said
    flat = {name: [made(tmp_path / "flat", name, [(0.5, 0.5)] * 2, 0)] for name in CURVES}
    said = comparison_tables.text(comparison(flat))
    assert "No target: 0.01 has 90 % of its validation accuracy at the end when it is first evaluated;" in said


def test_means_over_rounds_are_of_the_same_rounds_in_both_parts(tmp_path):
    [one, _] = rows_of(tmp_path)["0.1"]
    found = figures(one, None, 2)
    assert found["validation_accuracy"] == pytest.approx((0.75 + 0.90) / 2)
    assert found["accuracy"] == pytest.approx((0.70 + 0.80) / 2)


def test_the_best_round_is_that_of_validation_in_each_run(tmp_path):
    """By hand: validation is best in round 1 of the two, the test accuracy in round 2."""
    one = made(tmp_path, "peak", [(0.7, 0.9), (0.8, 0.6)], 0)
    found = figures(one, None, BEST_ROUND)
    assert (found["validation_accuracy"], found["accuracy"], found["validation_loss"]) == (0.9, 0.7, pytest.approx(0.1))
    assert found["client_accuracy"] is None
    plain = made(tmp_path / "plain", "peak", [(0.7, 0.9), (0.8, 0.6)], 0, validation=False)
    assert figures(plain, None, BEST_ROUND)["accuracy"] is None, "no test sample says which round is the best"
    rows = {name: [made(tmp_path / name, name, CURVES[name][::-1], 0)] for name in CURVES}
    found = Comparison("made", rows, "0.01", None, 0.95, BEST_ROUND)
    assert comparison_tables.answer(found).startswith(
        "0.1 has the highest validation accuracy, 0.900 (test accuracy 0.800)."
    )
    assert "are those of each run's best round in validation." in comparison_tables.text(found)


def swept(rows, measure):
    flat = [one for runs in rows.values() for one in runs]
    axis = StudyAxis("lr", dict.fromkeys(rows, ()))
    return Swept("made", [axis], flat, ranking_column(measure, flat), None, 1)


def test_a_sweep_chooses_by_validation_and_shows_the_test_value_there(tmp_path):
    rows = rows_of(tmp_path)
    text = sweep_page.text(swept(rows, "accuracy"))
    assert text.splitlines()[0] == "made: 3 places, 6 runs, mean validation accuracy"
    assert text.splitlines()[1].startswith("0.1 has the highest validation accuracy, 0.905 (test accuracy 0.805).")
    assert "Best: lr = 0.1 with 0.905 of validation, test accuracy 0.805." in text
    assert "Ranked by validation accuracy: no test sample was used for the choice." in text
    assert text.splitlines()[3].split() == ["lr", "validation", "accuracy", "test", "accuracy"]
    by_loss = sweep_page.text(swept(rows, "loss"))
    assert "Best: lr = 0.1 with 0.100 of validation, test loss 0.200." in by_loss
    by_test = sweep_page.text(swept(rows, "test_accuracy"))
    assert "Best: lr = 1.0 with 0.955." in by_test
    assert "Ranked by the test samples, although there are others for validation." in by_test
    by_time = sweep_page.text(swept(rows, "seconds"))
    assert "Ranked by" not in by_time


def test_a_sweep_without_validation_is_as_it_was_but_for_the_note(tmp_path):
    found = swept(rows_of(tmp_path, validation=False), "accuracy")
    text = sweep_page.text(found)
    assert "Best: lr = 1.0 with 0.955." in text
    assert "Ranked by the test samples, so the figure of the best one is too good" in text
    assert (found.columns, found.on_test) == (["accuracy"], None)


def test_a_page_of_several_runs_names_the_best_by_validation(tmp_path):
    rows = rows_of(tmp_path)
    runs = [rows[name][0].records for name in CURVES]
    assert several._answer(runs, list(CURVES), 1).startswith("0.1 has the highest validation accuracy, 90.00%, 20.00")
    plain = rows_of(tmp_path / "plain", validation=False)
    runs = [plain[name][0].records for name in CURVES]
    assert several._answer(runs, list(CURVES), 1).startswith("1.0 has the highest accuracy, 95.00%, 15.00 points")


SCENARIO = {
    "name": "rates",
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid", "validation": 0.25},
    "population": [{"name": "phones", "count": 4}],
    "server": {"rounds": 4, "local": {"epochs": 1, "batch": 50}},
    "sweep": {"grid": {"server.schedule.lr": [0.01, 0.1]}, "seeds": 2},
}


@pytest.fixture(scope="module")
def rates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rates")
    (folder / "rates.yaml").write_text(yaml.safe_dump(SCENARIO))
    return folder / "rates.yaml"


@pytest.mark.slow
@pytest.mark.usefixtures("pages")
def test_the_commands_say_what_they_chose_by(rates, tmp_path, capsys):
    words = [str(rates), "--jobs", "1", "--json", "--out"]
    assert main(["sweep", *words, str(tmp_path / "sweep")]) == 0
    said = capsys.readouterr().out
    assert_described("sweep", said)
    found = json.loads(said)
    assert found["measure"] == "validation_accuracy"
    assert all(place["value"]["mean"] != place["test"]["mean"] for place in found["places"])
    assert "Ranked by validation accuracy" in (tmp_path / "sweep" / "sweep.html").read_text()
    assert main(["compare", *words, str(tmp_path / "compare"), "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert_described("compare", said)
    found = json.loads(said)
    assert found["ranked_by"] == "validation_accuracy"
    assert {"accuracy", "validation_accuracy", "validation_loss"} <= {one["measure"] for one in found["estimates"]}
    assert "validation accuracy: difference from" in (tmp_path / "compare" / "comparison.html").read_text()
    head = (tmp_path / "compare" / "runs.csv").read_text().splitlines()[0]
    assert "validation_accuracy,validation_loss" in head


def test_measures_of_one_part_are_known_by_name(rates, tmp_path):
    found = sweep(rates, out=tmp_path, jobs=1, measure="test_loss", overrides=["server.rounds=1"])
    assert found.measure == "loss"
    for name in ("validation_gini", "test_seconds", "validation_acuracy"):
        with pytest.raises(ScenarioError, match="no measure"):
            sweep(rates, out=tmp_path, jobs=1, measure=name)


def test_a_best_round_needs_samples_for_validation(rates, tmp_path, capsys):
    words = [str(rates), "--jobs", "1", "--metric", "best-round", "--set", "server.rounds=2", "--out"]
    for command in ("compare", "sweep"):
        seeds = ["--seeds", "1"] if command == "compare" else []
        assert main([command, *words, str(tmp_path / command), *seeds, "--set", "task.validation=null"]) == 2
        assert "no samples for validation say which round is the best" in capsys.readouterr().err
    found = sweep(rates, out=tmp_path / "runs", jobs=1, overrides=["server.rounds=2"], window=BEST_ROUND)
    best = found.rows[0].records.metrics["validation_accuracy"].max()
    assert figures(found.rows[0], None, BEST_ROUND)["validation_accuracy"] == best


def test_seeds_of_a_comparison_share_their_test_samples(rates, tmp_path):
    """A test sample of one seed is for validation in none: its accuracies are shares of the same 270."""
    found = compare(rates, {"server.schedule.lr": [0.1]}, 2, out=tmp_path, jobs=1, overrides=["server.rounds=1"])
    page.write(found, tmp_path / "page.html")
    for one in found.rows:
        assert one.records.metrics["accuracy"][0] * 270 == pytest.approx(
            round(one.records.metrics["accuracy"][0] * 270)
        )
