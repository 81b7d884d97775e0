"""The rows of the timeline in a real browser: decoding, search, order, scrolling, pauses; examples worked by hand."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedactors.report.html import write
from fedactors.report.timeline.device_choice import choose
from fedactors.report.timeline.packed_columns import packed
from fedactors.run_files.records import OUTCOMES, read
from tests.report.chromium import BINARY, window
from tests.report.conftest import made_up

pytestmark = pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")

SHOWN = "[...fedactors.shown.view.rows].map((row) => fedactors.shown.model.device[row])"


def chosen(tool, value, event="change"):
    """Return an expression that gives a tool of the timeline a value, and comes to the devices that are shown."""
    return (
        f"(() => {{ const tool = document.querySelector('[data-tool={tool}]'); tool.value = {json.dumps(value)};"
        f" tool.dispatchEvent(new Event('{event}')); return {SHOWN}; }})()"
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the records of 40 rounds with 6 of 50 devices, and what asks their page."""
    folder = made_up(tmp_path_factory.mktemp("devices") / "run", rounds=40, cohort=6, devices=50)
    with window(write(folder)) as shown:
        yield read(folder), shown.js


@pytest.mark.slow
def test_columns_come_back_from_text_as_they_were(made):
    draw = np.random.default_rng(3)
    columns = {
        "a": draw.integers(-(2**31), 2**31, 1000), "b": np.zeros(0, np.int64), "c": np.arange(300) - 150,
    }  # fmt: skip
    expression = f"fedactors.unpack({json.dumps(packed(columns))}).then((found) => Object.entries(found).map(" + (
        "([name, values]) => [name, [...values]]))"
    )
    found = made[1](expression)
    assert dict(found) == {name: values.tolist() for name, values in columns.items()}
    with pytest.raises(ValueError, match="column a does not fit"):
        packed({"a": np.array([2**31])})


def test_trips_are_those_of_the_records(made):
    records, js = made
    js("document.querySelector('button[data-zoom=all]').click()")
    rows = list(csv.DictReader(io.StringIO(js("fedactors.csv(fedactors.shown.csv())"))))
    orders = records.orders
    order = np.lexsort((orders["started"], orders["client"]))
    assert len(rows) == len(order)
    for row, k in zip(rows, order.tolist(), strict=True):
        assert (int(row["device"]), int(row["round"])) == (orders["client"][k], orders["version"][k] + 1)
        assert row["outcome"] == OUTCOMES[orders["outcome"][k]].replace("_", " ")
        assert (int(row["steps"]), int(row["wanted"])) == (orders["steps"][k], orders["wanted"][k])
        for name in ("started", "downloaded", "computed", "finished"):
            assert float(row[name]) == pytest.approx(orders[name][k] / 1e9, abs=0.1)  # units are a 400th of a trip


def test_every_device_is_found_by_number_and_by_what_happened_to_it(made):
    records, js = made
    late = np.unique(records.orders["client"][records.orders["outcome"] == OUTCOMES.index("late")]).tolist()
    heard = records.orders["client"][np.isin(records.orders["outcome"], [0, 1])]
    found = {
        text: js(chosen("find", text, "input"))
        for text in ("17", "3, 40-43", "late", "never", "late 0-9", "kiosks", "")
    }
    assert found == {
        "17": [17],
        "3, 40-43": [3, 40, 41, 42, 43],
        "late": late,
        "never": np.setdiff1d(np.arange(50), heard).tolist(),
        "late 0-9": [device for device in late if device <= 9],
        "kiosks": [],
        "": list(range(50)),
    }


@pytest.mark.parametrize(("order", "outcome"), [("late", "late"), ("offline", "offline"), ("too slow", "too_slow")])
def test_rows_stand_in_the_order_that_is_chosen(made, order, outcome):
    records, js = made
    mine = records.orders["client"][records.orders["outcome"] == OUTCOMES.index(outcome)]
    counts = np.bincount(mine, minlength=50)
    assert js(chosen("order", order)) == sorted(range(50), key=lambda device: (-counts[device], device))


@pytest.mark.slow
def test_rows_stand_by_group(finished):
    with window(write(finished)) as shown:
        assert shown.js(chosen("order", "group")) == list(range(20))
        assert shown.js(chosen("find", "naive", "input")) == list(range(12, 20))
        assert shown.js("document.querySelector('[data-tool=found]').textContent") == "8 of 20 devices"


@pytest.mark.slow
def test_all_of_a_thousand_devices_are_reached_by_scrolling(tmp_path):
    path = write(made_up(tmp_path / "run", rounds=50, cohort=20, devices=1000))
    bottom = (
        "new Promise((seen) => { const {scroll} = fedactors.shown; scroll.scrollTop = scroll.scrollHeight;"
        " requestAnimationFrame(() => seen(fedactors.shown.at(5, scroll.clientHeight - 3).row)); })"
    )
    with window(path) as shown:
        assert shown.js(SHOWN) == list(range(1000))
        assert shown.js("fedactors.shown.at(5, 3).row") == 0
        assert shown.js(bottom) == 999
        shown.js("document.querySelector('button[data-zoom=all]').click()")
        shown.js(chosen("size", "all"))
        assert "<image" not in shown.js("fedactors.svg('timeline')")
        shown.js("fedactors.MOST_SHAPES = 500")
        assert "<image" in shown.js("fedactors.svg('timeline')")


def test_of_more_devices_than_rows_the_extremes_are_kept(tmp_path):
    records = read(made_up(tmp_path / "run", rounds=400, cohort=50, devices=8000))
    rows = choose(records)
    assert 2_500 <= len(rows.devices) <= 3_000
    late = np.bincount(records.orders["client"][records.orders["outcome"] == OUTCOMES.index("late")], minlength=8000)
    most = np.argsort(-late, kind="stable")[:50]
    assert set(most.tolist()) <= set(rows.devices.tolist())
    assert rows.counts[np.searchsorted(rows.devices, most), OUTCOMES.index("late")].tolist() == late[most].tolist()
    assert f"{len(rows.devices):,} of 8,000 devices have a row" in rows.note


def test_pauses_are_where_no_window_is(made):
    """Device 4 is on in [0, 10), [20, 30) and [50, 60); a trip from 5 to 55 pauses in [10, 20) and [30, 50).

    Rows: 0 is that device, 1 is on from 0 to 100, of 2 nothing is known, 3 is never on (it has no band to pause in).
    """
    read_windows = "fedactors.readWindows({windows: [3, 1, -1, 0], gap: [0, 10, 20, 0], length: [10, 10, 10, 100]})"
    trips = [(0, 5, 55), (1, 5, 90), (0, 22, 30), (0, 25, 45), (2, 0, 9)]
    found = [made[1](f"fedactors.pauses({read_windows}, {row}, {began}, {ended})") for row, began, ended in trips]
    assert found == [[[10, 20], [30, 50]], [], [], [[30, 45]], []]


@pytest.mark.slow
def test_windows_of_devices_are_those_of_the_file(tmp_path):
    folder = made_up(tmp_path / "run", rounds=5, cohort=4, devices=4)
    second = 10**9
    lists = {"on": [[0, 90 * second], [], [30 * second]], "off": [[60 * second, 120 * second], [], [240 * second]]}
    columns = {name: pa.array(values, pa.list_(pa.int64())) for name, values in lists.items()}
    table = pa.table({"client": [0, 2, 3], "sampled": [True, True, False], **columns})
    pq.write_table(table, folder / "windows.parquet")
    expression = (
        "(({windows: {known, starts, on, off}}, second) => [[...known], [...starts],"
        " [...on].map((time) => time * second), [...off].map((time) => time * second)])"
        "(fedactors.shown.model, fedactors.shown.second)"
    )
    page = write(folder)
    assert "Of 1 of them the folder does not say when they were on" in page.read_text()
    with window(page) as shown:
        known, starts, on, off = shown.js(expression)
    assert (known, starts) == ([2, -1, 0, 1], [0, 2, 2, 2, 3])
    assert on == pytest.approx([0, 90, 30], abs=0.1)
    assert off == pytest.approx([60, 120, 240], abs=0.1)


VIEW = "[fedactors.shown.view.start, fedactors.shown.view.end]"


@pytest.mark.slow
def test_pointer_and_wheel_move_and_zoom_what_is_shown(tmp_path):
    """The wheel with Ctrl zooms around the pointer, a drag takes the time along, and the strip jumps to a time."""
    with window(write(made_up(tmp_path / "run", rounds=60, cohort=8, devices=30))) as shown:
        shown.js("document.getElementById('timeline').scrollIntoView()")
        corner = "(({{left, top}}) => [left, top])(document.querySelector('[data-part={}]').getBoundingClientRect())"
        left, top = shown.js(corner.format("rows"))
        x, width = shown.js("(({x, width}) => [x, width])(fedactors.shown.frame())")
        begun, ended = shown.js(VIEW)
        middle = {"x": left + x + width / 2, "y": top + 40}
        shown.ask("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-200, modifiers=2, **middle)
        length = ended - begun
        assert shown.js(VIEW) == pytest.approx([begun + length / 4, ended - length / 4])
        shown.ask("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **middle)
        shown.ask("Input.dispatchMouseEvent", type="mouseMoved", buttons=1, x=middle["x"] + width / 4, y=middle["y"])
        shown.ask(
            "Input.dispatchMouseEvent", type="mouseReleased", button="left", x=middle["x"] + width / 4, y=middle["y"]
        )
        assert shown.js(VIEW) == pytest.approx([begun + length / 8, begun + 5 * length / 8], rel=0.01)
        left, top = shown.js(corner.format("strip"))
        there = {"x": left + x + 0.8 * width, "y": top + 10}
        shown.ask("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **there)
        shown.ask("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, **there)
        end = shown.js("fedactors.shown.data.end")
        assert sum(shown.js(VIEW)) / 2 == pytest.approx(0.8 * end, rel=0.01)


def test_what_is_pointed_at_is_told(made):
    """The first trip of the first row that has one, pointed at in its middle."""
    records, js = made
    js(chosen("find", "", "input"))
    js(chosen("order", "device"))
    orders = records.orders
    device = int(orders["client"].min())
    first = min(np.flatnonzero(orders["client"] == device), key=lambda k: orders["started"][k])
    told = js(f"fedactors.shown.words({{row: {device}, trip: fedactors.shown.model.trips.starts[{device}]}})")
    outcome = OUTCOMES[orders["outcome"][first]].replace("_", " ")
    assert told[0] == f"device {device}, all"
    assert told[1] == (
        f"round {orders['version'][first] + 1}: {outcome}, {orders['steps'][first]} of {orders['wanted'][first]} steps"
    )


@pytest.mark.parametrize(
    ("seconds", "step", "said"),
    [(0, 1, "00:00:00"), (3661, 1, "01:01:01"), (90061, 60, "1 d 01:01:01"), (1.25, 0.05, "00:00:01.25"),
     (59.96, 0.1, "00:01:00.0"), (172800, 86400, "2 d")],
)  # fmt: skip
def test_times_are_read_as_on_a_clock(made, seconds, step, said):
    assert made[1](f"fedactors.clock({seconds}, {step})") == said
