"""`fedactors data describe`: who holds what, in the terminal, as JSON, as a page and as SVG."""

import json
import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from fedactors.cli.main import main
from fedactors.data.partitions.partition import ClassPartition
from fedactors.data.sets.digits import Digits
from fedactors.report.client_data.holdings_text import cells
from tests.data.user.scenes import scene

DIGITS = {"dataset": "digits", "model": "logistic", "partition": {"name": "classes", "classes": 2}}


def described(tmp_path, capsys, task, *words, count=10):
    scene(tmp_path, task, count)
    code = main(["data", "describe", str(tmp_path / "small.yaml"), *words])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_the_figures_are_the_partition_s(tmp_path, capsys):
    code, out, _ = described(tmp_path, capsys, DIGITS, "--json")
    assert code == 0
    figures = json.loads(out)
    partition, data = ClassPartition(classes=2), Digits().load(0, 10)
    sizes = partition.sizes(Digits().info(0, 10), 10, 0)
    split = partition.split(data.y, 10, sizes, 0)
    assert figures["counts"] == [np.bincount(data.y[split.of(k)], minlength=10).tolist() for k in range(10)]
    assert figures["sizes"] == sizes.tolist()
    assert figures["labels_per_client"] == 2
    assert 0.7 < figures["label_distance"] < 0.9


def test_the_picture_has_a_row_for_each_client_shown(tmp_path, capsys):
    code, out, _ = described(tmp_path, capsys, DIGITS, "--clients", "4")
    assert code == 0
    rows = [line for line in out.splitlines() if "█" in line or "▓" in line]
    assert sum(line.split()[0] in "0123" for line in rows) == 4
    assert "6 more clients are not shown" in out
    assert "clients by samples" in out


@pytest.mark.parametrize(
    ("target", "dataset"),
    [("value", "x[:, 0]"), ("multi-label", "(x[:, :3] > 0).astype(int)"), ("sequence", "(x > 0) + 2")],
)
def test_labels_of_other_kinds_are_shown_too(tmp_path, capsys, target, dataset):
    (tmp_path / "data.py").write_text(
        "import numpy as np\ndef load():\n    x = np.random.default_rng(0).normal(size=(40, 4))\n"
        f"    part = x, {dataset}\n    return part, part\n"
    )
    task = {"dataset": {"name": "torch", "factory": "data.py:load"}, "model": "logistic", "partition": "iid"}
    code, out, err = described(tmp_path, capsys, task, "--json", count=4)
    assert code == 0, err
    figures = json.loads(out)
    assert figures["kind"] == target
    assert len(figures["labels"]) == {"value": 8, "multi-label": 3, "sequence": 0}[target]
    assert described(tmp_path, capsys, task, count=4)[0] == 0


def test_brackets_in_names_are_text(capsys):
    """Names of labels and of clients are those of folders and files: rich would read [red] as a colour."""
    names = {"labels": ["[red]", ":x:", "[/b]"], "client_names": ["[/tmp/x]", "[bold]", ":smile:"]}
    figures = {**names, "counts": np.eye(3, dtype=int).tolist(), "sizes": [1, 1, 1], "clients": 3}
    Console(file=sys.stdout, width=160).print(cells(figures))
    head, *rows = capsys.readouterr().out.splitlines()[:4]
    assert head.split() == ["client", "[red]", ":x:", "[/b]", "samples"]
    assert [row.split()[0] for row in rows] == names["client_names"]


def test_charts_are_written_and_ask_nothing_of_the_network(tmp_path, capsys):
    code, _, _ = described(tmp_path, capsys, DIGITS, "--out", str(tmp_path / "who.html"))
    assert code == 0
    page = (tmp_path / "who.html").read_text()
    assert "small: digits, partition classes" in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.http", page)
    code, _, _ = described(tmp_path, capsys, DIGITS, "--out", str(tmp_path / "who.svg"))
    assert code == 0
    text = (tmp_path / "who.svg").read_text()
    assert ET.fromstring(text).tag.endswith("svg")
    assert "url(http" not in text.replace(" ", "")


@pytest.mark.parametrize(
    ("task", "words", "message"),
    [
        (DIGITS, ["--out", "who.png"], "accepted: a file that ends in .html or .svg"),
        (DIGITS, ["--out", "/nowhere/who.svg"], "cannot be written"),
        (DIGITS | {"partition": {"name": "classes", "classes": 11}}, [], "task.partition.classes: found 11"),
        (DIGITS | {"partition": {"name": "iid", "samples": 5, "reallocate": True}}, [], "hold other samples in every"),
        (DIGITS | {"partition": "natural"}, [], '"digits" does not come by client'),
    ],
)
def test_one_message_for_what_cannot_be_described(tmp_path, capsys, task, words, message):
    code, _, err = described(tmp_path, capsys, task, *words)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
