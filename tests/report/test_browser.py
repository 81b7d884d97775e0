"""In a real browser: charts are drawn, nothing is fetched, nothing complains, the keyboard reaches everything."""

import asyncio
import json
import shutil
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from fedactors.report.html import write, write_many
from fedactors.report.palette import DARK, LIGHT, OUTCOME
from tests.report.chromium import BINARY, opened
from tests.report.conftest import made_up

pytestmark = pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")

TWO_FRAMES = "new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))"
MODEL = "Bokeh.documents.flatMap((d) => d.roots()).flatMap((r) => [...r.references()])"


def pixels(png, color):
    """Count the pixels of a colour, as far as a browser's rounding."""
    picture = np.asarray(Image.open(BytesIO(png)).convert("RGB")).astype(int)
    wanted = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
    return int((np.abs(picture - wanted).max(axis=2) <= 3).sum())


def visit(path, look, scheme="light"):
    """Open a page, let `look(page, state)` look at it, and return the page."""

    async def go():
        async with opened(path, scheme) as (page, state):
            await look(page, state)
            return page

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("kind", "charts", "scheme", "theme"),
    [("finished", "7", "light", LIGHT), pytest.param("replayed", "5", "dark", DARK, marks=pytest.mark.slow)],
)
def test_draws_everything_without_the_network(request, kind, charts, scheme, theme):
    path = write(request.getfixturevalue(kind))
    outcomes = json.loads((path.parent / "summary.json").read_text())["outcomes"]
    common = max(outcomes, key=outcomes.__getitem__)

    async def look(page, state):
        assert state == charts
        await page.js("document.getElementById('rounds').scrollIntoView()")
        await page.js(TWO_FRAMES)
        png = await page.picture()
        assert pixels(png, OUTCOME[common]) > 2_000
        assert pixels(png, theme["page"]) > 200_000
        assert await page.js("document.documentElement.scrollWidth") <= 1366

    page = visit(path, look, scheme)
    assert page.trouble == []
    assert [url for url in page.requests if not url.startswith("data:")] == [path.as_uri()]


def test_names_do_not_become_markup(finished):
    async def look(page, state):
        assert await page.js("document.title") == "tiny · fedactors"
        assert await page.js("document.querySelectorAll('img').length") == 0
        assert "<img src=x" in await page.js("document.querySelector('#h-groups').closest('section').innerText")

    assert visit(write(finished), look).trouble == []


@pytest.mark.slow
def test_axes_are_switched_by_the_keyboard(finished):
    axis = f"{MODEL}.find((m) => m.tags.includes('progress')).axis_label"
    last = f"[...{MODEL}.find((m) => m.tags.includes('switch')).get_column('x')].at(-1)"

    async def look(page, state):
        assert await page.js(axis) == "round"
        assert await page.js(last) == 6
        await page.js("document.querySelector('input[name=axis]').focus()")
        await page.press("ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
        assert await page.js(axis) == "virtual time (seconds)"
        assert await page.js(last) == pytest.approx(30, abs=1)

    assert visit(write(finished), look).trouble == []


@pytest.mark.slow
def test_the_timeline_moves_and_zooms_by_the_keyboard(tmp_path):
    path = write(made_up(tmp_path / "run", rounds=60, cohort=8, devices=30))
    window = "[fedactors.shown.view.start, fedactors.shown.view.end].map((time) => time * fedactors.shown.second)"

    async def look(page, state):
        start, end = await page.js(window)
        length = end - start
        assert (start, length) == (0, pytest.approx(18 * 60, rel=0.01))  # five trips of each device: 5 * 30 / 8 rounds
        await page.js("document.getElementById('timeline').focus()")
        await page.press("ArrowRight")
        assert await page.js(window) == pytest.approx([length / 4, 5 * length / 4])
        await page.press("+", text="+")
        assert await page.js(window) == pytest.approx([length / 2, length])
        await page.press("ArrowLeft")
        await page.press("0", text="0")
        start, end = await page.js(window)
        assert start == 0
        assert end > 59 * 60
        await page.js("document.querySelector('button[data-zoom=\"0.5\"]').click()")
        assert await page.js(window) == pytest.approx([end / 4, 3 * end / 4])

    assert visit(path, look).trouble == []


@pytest.mark.slow
def test_a_comparison_is_drawn(finished, replayed, tmp_path):
    async def look(page, state):
        assert state == "2"

    page = visit(write_many([finished, replayed], tmp_path / "both.html"), look)
    assert page.trouble == []


WORDS_ON_ONE_LINE = """[...document.querySelectorAll('td')].every((cell) => {
  const text = [...cell.childNodes].find((node) => node.nodeType === 3);
  const lines = (from, to) => {
    const range = document.createRange();
    range.setStart(text, from);
    range.setEnd(text, to);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
  };
  const words = text ? [...text.data.matchAll(/[a-z]+/gi)] : [];
  return words.every((word) => lines(word.index, word.index + word[0].length) === 1);
})"""
TABLES_FIT = """[...document.querySelectorAll('table')].every((table) => {
  const box = table.getBoundingClientRect(), sheet = table.parentElement.getBoundingClientRect();
  return box.right <= sheet.right + 1 && [...table.querySelectorAll('td')].every((cell) => {
    const inner = document.createRange();
    inner.selectNodeContents(cell);
    return inner.getBoundingClientRect().right <= cell.getBoundingClientRect().right + 1;
  });
})"""


async def at_width(page, width, media):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    await page.ask("Emulation.setDeviceMetricsOverride", **size)
    await page.ask("Emulation.setEmulatedMedia", media=media)
    await page.js(TWO_FRAMES)  # charts take the new width in a frame of their own
    await page.js(TWO_FRAMES)


@pytest.mark.slow
def test_names_in_tables_do_not_break_inside_words(finished, replayed, tmp_path):
    """Wide tables scroll in their own boxes on a narrow screen, and fit A4, whose text is 186 mm (703 pixels) wide."""

    async def look(page, state):
        for width in (800, 500):
            await at_width(page, width, "screen")
            assert await page.js(WORDS_ON_ONE_LINE)
            assert await page.js("document.documentElement.scrollWidth") <= width
        await at_width(page, 703, "print")
        assert await page.js(TABLES_FIT)
        assert await page.js(WORDS_ON_ONE_LINE)

    for path in (write(finished), write_many([finished, replayed], tmp_path / "both.html")):
        assert visit(path, look).trouble == []


@pytest.mark.slow
def test_a_million_orders_are_drawn_from_a_small_page(tmp_path):
    path = write(made_up(tmp_path / "big", rounds=5_000, cohort=200, devices=100_000))
    assert path.stat().st_size < 5_000_000

    async def look(page, state):
        assert state == "8"

    assert visit(path, look).trouble == []


@pytest.mark.slow
def test_a_row_that_is_pointed_at_makes_its_line_stand_out(finished, replayed, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "again")
    lines = (
        f"{MODEL}.filter((m) => m.type === 'GlyphRenderer' && m.name)"
        ".map((m) => [m.name, m.glyph.line_alpha.value ?? m.glyph.line_alpha])"
    )
    point = "document.querySelectorAll('tbody tr')[1].dispatchEvent(new PointerEvent('pointer{}'))"

    async def look(page, state):
        assert state == "2"
        said = await page.js("document.querySelector('.answer').textContent")
        assert "has the highest accuracy" in said
        assert "0.00 points above" in said
        await page.js(point.format("enter"))
        alphas = dict(await page.js(lines))
        assert sorted(alphas.values()) == [0.1, 1]
        assert alphas[f"tiny ({folder})"] == 1
        await page.js(point.format("leave"))
        assert {alpha for _, alpha in await page.js(lines)} == {1}

    assert visit(write_many([finished, folder, replayed], tmp_path / "three.html"), look).trouble == []


@pytest.mark.slow
def test_a_thousand_devices_ten_thousand_rounds_and_twenty_runs_are_there_in_three_seconds(tmp_path):
    """Times are the best of three, since other work on the machine only makes them longer."""
    folder = made_up(tmp_path / "run", rounds=10_000, cohort=20, devices=1_000)
    twenty = [folder, *(shutil.copytree(folder, tmp_path / f"run-{k}", symlinks=True) for k in range(19))]
    for path in (write(folder), write_many(twenty, tmp_path / "twenty.html")):
        assert path.stat().st_size < 5_000_000
        times = []

        async def look(page, state, times=times):
            times.append(await page.js("performance.getEntriesByName('usable')[0].startTime"))

        for _ in range(3):
            assert visit(path, look).trouble == []
        assert min(times) < 3_000
