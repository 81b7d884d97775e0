"""Zoom tied over all charts, figures as SVG and CSV, colours, and paper: in a real browser, on a page of a real run."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from base64 import b64decode

import pytest

from fedactors.report.html import write
from fedactors.report.page.script import script
from fedactors.report.palette import DARK, LIGHT
from tests.report.chromium import BINARY, window

pytestmark = pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")

MODEL = "Bokeh.documents.flatMap((d) => d.roots())"
FIGURES = ["accuracy", "loss", "rounds", "steps", "clients", "traffic", "timeline"]


@pytest.fixture(scope="module")
def shown(finished):
    """Return a page of a run of six rounds, open."""
    with window(write(finished)) as opened_page:
        yield opened_page


def ranges(shown):
    """Return the windows of the charts of learning, of rounds and of traffic, and of the timeline in seconds."""
    tied = shown.js(
        "Bokeh.documents.flatMap((d) => d.roots()).map((root) => root.x_range)"
        ".filter((range) => range.tags[0] === 'tied').map(({start, end}) => [start, end])"
    )
    view = "[fedactors.shown.view.start, fedactors.shown.view.end].map((time) => time * fedactors.shown.second)"
    return [*tied, shown.js(view)]


@pytest.mark.slow
def test_what_one_chart_zooms_to_all_show(shown, finished):
    """Rounds 2 to 4 by their ends: bars 2.5 to 4.5, and the virtual times at which these rounds were over."""
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    times = [rows[1]["virtual_seconds"], rows[3]["virtual_seconds"]]
    shown.js(f"{MODEL}[0].x_range.setv({{start: 2, end: 4}})")
    accuracy, loss, rounds, traffic, timeline = ranges(shown)
    assert accuracy == loss == [2, 4]
    assert rounds == pytest.approx([2.5, 4.5])
    assert traffic == pytest.approx(times)
    assert timeline == pytest.approx(times, abs=0.05)
    shown.js("document.getElementById('timeline').dispatchEvent(new KeyboardEvent('keydown', {key: '0'}))")
    assert ranges(shown)[0] == pytest.approx([0, 6], abs=0.3)


@pytest.mark.parametrize("key", FIGURES)
def test_each_figure_is_an_svg(shown, key):
    root = ElementTree.fromstring(shown.js(f"fedactors.svg({json.dumps(key)})"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.get("width")) > 300
    drawn = {one.tag.partition("}")[2] for one in root.iter()}
    assert drawn & {"path", "rect"}
    assert "text" in drawn


def rows_of(shown, key):
    return list(csv.DictReader(io.StringIO(shown.js(f"fedactors.csv(fedactors.table({json.dumps(key)}))"))))


def test_the_numbers_of_a_figure_are_those_of_the_run(shown, finished):
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    found = rows_of(shown, "accuracy")
    assert [float(row["round"]) for row in found] == [row["round"] for row in rows]
    assert [float(row["accuracy on the test set"]) for row in found] == pytest.approx([row["accuracy"] for row in rows])
    series = rows_of(shown, "loss")
    assert [row["series"] for row in series] == ["clients, while they train"] * 6 + ["test set"] * 6
    assert [float(row["loss (cross entropy)"]) for row in series[6:]] == pytest.approx([row["loss"] for row in rows])
    assert [float(row["virtual time (seconds)"]) for row in found] == pytest.approx(
        [r["virtual_seconds"] for r in rows]
    )
    bars = rows_of(shown, "rounds")
    assert [float(row["partial"]) for row in bars] == [row["outcomes"].get("partial", 0) for row in rows]
    assert max(row["outcomes"].get("partial", 0) for row in rows) > 0


def test_a_click_saves_a_file(shown, tmp_path):
    """Names of runs become names of files; figures of one run bear its name."""
    shown.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), **shown.page.profile)
    for kind in ("svg", "csv"):
        shown.js(f"document.querySelector('[data-save={kind}][data-of=accuracy]').click()")
    wait = "new Promise((go) => setTimeout(go, 50))"
    for _ in range(100):
        if len([path for path in tmp_path.iterdir() if path.suffix in (".svg", ".csv")]) == 2:
            break
        shown.js(wait)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny-accuracy.csv", "tiny-accuracy.svg"]
    assert (tmp_path / "tiny-accuracy.csv").read_text().startswith("accuracy on the test set,round,")


def test_a_name_cannot_leave_its_cell_in_csv(shown):
    said = shown.js("fedactors.csv([['a,b', 'say \\'x\\'', 'a\\nb', '\"', 1.5, null, NaN]])")
    assert next(csv.reader(io.StringIO(said))) == ["a,b", "say 'x'", "a\nb", '"', "1.5", "", ""]


def test_colours_are_changed_by_a_button_and_kept(shown):
    background = "getComputedStyle(document.body).backgroundColor"
    axis = f"{MODEL}[0].below[0].axis_label_text_color"

    def rgb(color):
        return "rgb({}, {}, {})".format(*(int(color[k : k + 2], 16) for k in (1, 3, 5)))

    assert (shown.js(background), shown.js(axis)) == (rgb(LIGHT["page"]), LIGHT["text"])
    shown.js("document.getElementById('theme').click()")
    assert (shown.js(background), shown.js(axis)) == (rgb(DARK["page"]), DARK["text"])
    assert shown.js("document.getElementById('theme').textContent") == "light"
    shown.js("document.getElementById('theme').click()")
    assert shown.js(background) == rgb(LIGHT["page"])


def test_on_paper_all_figures_are_drawings_in_light_colours(shown):
    """Each canvas gives way to an SVG, which is sharp; the tools are gone, and all of it is back on the screen."""
    shown.js("document.getElementById('theme').click()")
    paper = (
        "(() => { dispatchEvent(new Event('beforeprint')); const all = [...document.querySelectorAll('.paper svg')];"
        " const found = [all.length, all.every((one) => one.getAttribute('viewBox')),"
        f" {MODEL}[0].below[0].axis_label_text_color]; return found; }})()"
    )
    assert shown.js(paper) == [len(FIGURES), True, LIGHT["text"]]
    widths = "[...document.querySelectorAll('.paper svg')].map((one) => one.viewBox.baseVal.width)"
    assert all(690 < width < 710 for width in shown.js(widths))  # of 703 on A4, so text of 12 pixels has 9 points
    assert shown.js("document.querySelectorAll('.paper img').length") == 0  # names of groups stay text
    shown.js("dispatchEvent(new Event('afterprint'))")
    assert shown.js("document.querySelectorAll('.paper').length") == 0
    assert shown.js(f"{MODEL}[0].below[0].axis_label_text_color") == DARK["text"]
    shown.js("document.getElementById('theme').click()")
    pdf = b64decode(shown.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
    assert pdf.startswith(b"%PDF")
    found = re.findall(rb"FlateDecode[^>]*>>\s*stream\r?\n(.*?)\r?\nendstream", pdf, re.S)
    drawn = [zlib.decompress(one) for one in found]
    assert sum(one.count(b" re\n") + one.count(b" l\n") for one in drawn) > 200  # bars and lines


def test_scripts_load_nothing():
    """No address stands in our own scripts but the name space of SVG."""
    assert re.findall(r"https?://[^\"'`\s]+", script()) == ["http://www.w3.org/2000/svg"]
