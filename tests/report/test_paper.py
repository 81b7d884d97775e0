"""What a drawing of the timeline shows is whole: no row of a device is cut at its edge, on paper or in a file."""

from xml.etree import ElementTree

import pytest

from fedactors.report.html import write
from tests.report.chromium import BINARY, window
from tests.report.conftest import made_up

pytestmark = pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")

SVG = "{http://www.w3.org/2000/svg}"
AXIS = 24  # pixels below the rows


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return an open page of 100 devices, of which about 30 fit on the screen."""
    folder = made_up(tmp_path_factory.mktemp("paper") / "run", rounds=30, cohort=20, devices=100)
    with window(write(folder)) as opened_page:
        yield opened_page


def rows_of(svg):
    """Return the height above the axis, and the middle of the row of each device that is named, top down."""
    root = ElementTree.fromstring(svg)
    names = [one for one in root.iter(f"{SVG}text") if one.get("text-anchor") == "end" and float(one.get("x")) < 130]
    return float(root.get("viewBox").split()[3]) - AXIS, [
        (int(one.text.split()[0]), float(one.get("y"))) for one in names
    ]


@pytest.mark.parametrize("top", [0, 5, 18 * 20 + 7, 10_000])
def test_rows_of_a_drawing_are_whole(shown, top):
    """Rows are 18 pixels high. Also where the screen has scrolled to the middle of a row."""
    shown.js(f"fedactors.shown.scroll.scrollTop = {top}")
    height, rows = rows_of(shown.js("fedactors.svg('timeline')"))
    assert height % 18 == 0
    assert [middle for _, middle in rows] == [9 + 18 * k for k in range(int(height // 18))]
    assert len({device for device, _ in rows}) == len(rows) > 20
    if top == 0:
        assert rows[0][0] == 0
    shown.js("fedactors.shown.scroll.scrollTop = 0")


@pytest.mark.parametrize(("size", "row"), [("low", 6), ("all", None)])
def test_rows_without_names_are_whole_too(shown, size, row):
    resize = "(() => {{ const tool = fedactors.shown.tool('size'); tool.value = '{}'; fedactors.shown.list(); }})()"
    shown.js(resize.format(size))
    high = shown.js("fedactors.shown.frame().row")
    root = ElementTree.fromstring(shown.js("fedactors.svg('timeline')"))
    shown.js(resize.format("tall"))
    count = (float(root.get("height")) - AXIS) / high
    assert count == pytest.approx(round(count), abs=1e-6)
    assert row in (high, None)
    assert round(count) == 100 if size == "all" else 60 < round(count) < 100


def test_a_drawing_says_how_many_devices_it_shows(shown):
    svg = shown.js("fedactors.svg('timeline')")
    height, rows = rows_of(svg)
    assert f">{len(rows)} of 100 devices</text>" in svg
    assert int(height // 18) == len(rows)


def test_the_last_row_is_whole_on_paper(shown):
    shown.js("dispatchEvent(new Event('beforeprint'))")
    height, rows = rows_of(shown.js("document.querySelector('#timeline + .paper').innerHTML"))
    shown.js("dispatchEvent(new Event('afterprint'))")
    assert rows[-1][1] + 9 == height
