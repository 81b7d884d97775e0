"""The page of a study says what became of the clients asked, by variant and group, and what each variant changes."""

import html
import json
from dataclasses import replace
from statistics import mean

import pytest

from fedactors.report.measures import by_group
from fedactors.run_files.records import read
from fedactors.study import comparison_tables, page, study_sections
from fedactors.study.comparison import compare


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """Return a comparison of two deadlines over two groups, by the clock alone."""
    population = (
        "population=[{name: fast, count: 15, compute: {per_sample: 1ms}},"
        " {name: slow, count: 5, compute: {per_sample: 40ms}}]"
    )
    changes = [population, "server.rounds=3", "server.cohort=10"]
    return compare(
        "quickstart",
        {"server.deadline": ["2s", "30s"]},
        2,
        out=tmp_path_factory.mktemp("grouped"),
        overrides=changes,
        clock_only=True,
        jobs=1,
    )


def texts(section):
    (table,) = section.tables
    return table.heads, [[cell.text for cell in row] for row in table.rows]


def test_shares_of_a_variant_are_means_over_its_seeds(grouped):
    heads, rows = texts(study_sections.participation(grouped.rows)[0])
    assert heads[:3] == ("variant", "rounds", "asked")
    assert [row[0] for row in rows] == ["2s", "30s"]
    for row, runs in zip(rows, grouped.variants.values(), strict=True):
        summaries = [json.loads((one.folder / "summary.json").read_text()) for one in runs]
        for name in ("complete", "partial", "late"):
            share = mean(one["outcomes"].get(name, 0) / one["asked"] for one in summaries)
            assert row[heads.index(name)] == f"{share:.1%}"
        assert row[2] == "30"  # three rounds of ten


def test_groups_have_lines_of_their_own(grouped):
    heads, rows = texts(study_sections.participation(grouped.rows)[1])
    assert [row[:3] for row in rows] == [[v, g, n] for v in ("2s", "30s") for g, n in (("fast", "15"), ("slow", "5"))]
    shares = [by_group(read(one.folder))[1] for one in grouped.variants["2s"]]
    wanted = mean(one.outcomes.get("partial", 0) / one.asked for one in shares)
    assert rows[1][heads.index("partial")] == f"{wanted:.1%}" != "0.0%"
    assert rows[0][heads.index("complete")] == "100.0%"


def test_what_a_variant_changes_is_told_by_its_key(grouped, comparison):
    heads, rows = texts(study_sections.settings(grouped.rows, "30s")[0])
    assert heads == ("variant", "setting", "in 30s", "here")
    assert rows == [["2s", "server.deadline", "30s", "2s"]]
    heads, rows = texts(study_sections.settings(comparison.rows, "fedavg")[0])
    assert ["fsl", "server.algorithm.name", "fedavg", "fsl"] in rows
    assert {row[0] for row in rows} == {"fsl", "scaffold"}
    assert all(row[2] != row[3] for row in rows)


def test_one_group_has_no_table_of_groups(comparison):
    assert [one.key for one in study_sections.participation(comparison.rows)] == ["participation"]


def test_the_page_holds_them_and_the_scenario_of_the_baseline(grouped, tmp_path):
    text = page.write(grouped, tmp_path / "page.html").read_text(encoding="utf-8")
    for said in ("What became of those asked", "Groups of devices", "What each variant changes", "server.deadline"):
        assert said in text
    assert "Scenario, every default shown" in text
    assert "deadline: 2s" in text  # of the first variant, the baseline


def test_runs_that_left_no_scenario_change_nothing_that_is_known():
    assert study_sections.settings([], "none") == []
    assert study_sections.participation([]) == []


def test_a_comparison_shows_its_answer_and_its_variants_in_a_notebook(grouped):
    shown = grouped._repr_html_()
    assert html.escape(comparison_tables.answer(grouped)) in shown
    assert [shown.count(f">{name}</td>") for name in grouped.variants] == [1, 1]
    assert shown.count("<tr>") == 1 + len(grouped.variants)
    hostile = replace(grouped, variants={"<b>": grouped.variants["2s"], "30s": grouped.variants["30s"]}, baseline="30s")
    assert "&lt;b&gt;</td>" in hostile._repr_html_()
