"""Sentences of a sweep say what the differences in pairs say, worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from fedactors.study import findings as module
from fedactors.study.findings import findings, sentences
from fedactors.study.run_figures import StudyRow
from fedactors.study.study_cells import axis
from fedactors.study.sweep import Swept

VALUES = {
    # scheme, algorithm: a value for each of two seeds
    ("A", "x"): (0.1, 0.2),
    ("B", "x"): (0.5, 0.61),
    ("A", "y"): (0.3, 0.5),
    ("B", "y"): (0.4, 0.3),
}


def swept(monkeypatch, shared=()):
    rows, values = [], []
    for (scheme, algorithm), found in VALUES.items():
        for seed, value in enumerate(found):
            at = algorithm if (scheme, algorithm) not in shared else "shared"
            row = StudyRow({"scheme": scheme, "algorithm": algorithm}, seed, Path(f"{at}-{scheme}-{seed}"), None)
            if shared and algorithm == "y":
                row = StudyRow(row.labels, seed, Path(f"one-{seed}"), None)
            rows.append(row)
            values.append({"accuracy": value})
    axes = [axis("scheme", ["A", "B"]), axis("algorithm", ["x", "y"])]
    found = Swept("s", axes, rows, "accuracy", None, 1)
    vars(found)["figures"] = values
    monkeypatch.setattr(Swept, "rises", lambda self: True)
    return found


def test_differences_are_means_of_pairs_by_seed(monkeypatch):
    """B - A: at x .40 and .41; at y .1 and -.2; everywhere .25 and .105. t of one degree of freedom is 12.706."""
    found = {(one.axis, *one.at.values()): one.difference for one in findings(swept(monkeypatch))}
    assert found["scheme", "x"].mean == pytest.approx(0.405)
    assert found["scheme", "x"].half == pytest.approx(12.7062 * 0.005, rel=1e-4)
    assert found["scheme", "y"].mean == pytest.approx(-0.05)
    assert found["scheme",].mean == pytest.approx(np.mean([0.25, 0.105]))
    assert found["algorithm",].mean == pytest.approx(np.mean([(0.2 - 0.1) / 2, (0.3 - 0.31) / 2]))
    assert found["algorithm", "A"].mean == pytest.approx(0.25)


def test_a_sentence_says_only_what_its_interval_says(monkeypatch):
    said = sentences(swept(monkeypatch))
    assert "scheme, algorithm x: against A, B is better (+0.405 ± 0.064)." in said
    assert any(one.startswith("scheme, algorithm y: against A, B is too close to tell (-0.050 ±") for one in said)
    monkeypatch.setattr(Swept, "rises", lambda self: False)
    assert "scheme, algorithm x: against A, B is worse (+0.405 ± 0.064)." in sentences(swept_again(monkeypatch))


def swept_again(monkeypatch):
    found = swept(monkeypatch)
    monkeypatch.setattr(Swept, "rises", lambda self: False)
    return found


def test_runs_that_are_the_same_say_nothing(monkeypatch):
    """At y, both schemes share their runs: no finding there, and the mean over all places is that of x."""
    found = {(one.axis, *one.at.values()): one.difference for one in findings(swept(monkeypatch, ["y"]))}
    assert ("scheme", "y") not in found
    assert found["scheme",].mean == pytest.approx(0.405)


def test_one_seed_gives_no_sentence(monkeypatch):
    found = swept(monkeypatch)
    one = Swept("s", found.axes, found.rows[::2], "accuracy", None, 1)
    vars(one)["figures"] = found.figures[::2]
    assert sentences(one) == []


def test_pairs_that_lack_a_figure_are_counted(monkeypatch):
    """A seed of (A, y) has none: of the four pairs on the axis of schemes three are left, of two seeds."""
    found = swept(monkeypatch)
    found.figures[4]["accuracy"] = None
    said = sentences(found)
    assert "scheme, algorithm x: against A, B is better (+0.405 ± 0.064)." in said
    assert any(one.startswith("scheme, everywhere: against A, B") and "; 3 of 4 pairs)" in one for one in said)


def test_three_labels_are_compared_in_all_pairs_and_four_with_the_first():
    assert module._pairs(["A", "B", "C"]) == [("A", "B"), ("A", "C"), ("B", "C")]
    assert module._pairs([1, 2, 3, 4]) == [(1, 2), (1, 3), (1, 4)]
