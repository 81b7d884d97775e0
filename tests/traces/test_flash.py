"""FLASH's event logs: every quirk on a small file of its own, and the counts of the real recording."""

import json
import os
import time

import numpy as np
import pytest
from timelines import as_dict, repaired

from fedactors.errors import TraceError
from fedactors.traces.format_registry import read

SECOND, HOUR, DAY = 10**9, 3600 * 10**9, 86_400 * 10**9


def log(*events: str, day: str = "2020-02-02", tab: str = " \t") -> str:
    """Write "09:00:00 wifi" events as FLASH does."""
    lines = [event.split(" ", 1) for event in events]
    return "".join(f"{day} {clock}{tab}{word}\n" for clock, word in lines)


@pytest.fixture
def phones(written):
    """Return a function that writes {name: messages} and gives the path."""

    def write(**messages):
        records = {name: {"guid": name, "messages": text, "model": "X"} for name, text in messages.items()}
        return written(json.dumps(records))

    return write


def test_a_window_is_open_while_the_rule_holds_and_time_of_day_is_kept(phones):
    path = phones(
        a=log(
            "09:00:12 battery_charged_on",
            "09:00:41 wifi",
            "10:00:00 screen_lock",
            "11:00:00 4G",
            "12:00:00 wifi",
        )
        + log("01:00:00 screen_unlock", "02:00:00 screen_on", day="2020-02-03"),
        b=log("08:00:00 wifi"),
    )
    timeline = read(path)
    assert as_dict(timeline) == {"a": [(10 * HOUR, 11 * HOUR), (12 * HOUR, 25 * HOUR)], "b": []}
    assert timeline.first.tolist() == [9 * HOUR + 12 * SECOND, 8 * HOUR]
    assert timeline.last.tolist() == [26 * HOUR, 8 * HOUR]
    assert timeline.repairs == ()
    assert as_dict(read(path, when="wifi"))["b"] == []  # seen for one instant only
    assert as_dict(read(path, when="!locked & charging")) == {"a": [(25 * HOUR, 26 * HOUR)], "b": []}


def test_an_open_window_closes_at_the_last_real_event(phones):
    added = log("09:00:00 screen_on", "09:00:00 2G", day="2020-02-04", tab="\t")
    timeline = read(phones(a=log("09:00:00 wifi", "17:00:00 50.0%") + added), when="wifi")
    assert as_dict(timeline) == {"a": [(9 * HOUR, 17 * HOUR)]}
    assert timeline.last.tolist() == [17 * HOUR]
    assert repaired(timeline) == {"added screen_on + 2G pair left out": 1}
    assert timeline.repairs[0].first == 'device "a", line 3'


def test_added_pairs_are_told_from_recorded_ones(phones):
    start, end = log("09:00:00 wifi", "17:00:00 screen_off"), "2020-02-03"
    real = log("17:00:00 screen_on", "17:00:00 2G")
    added_at_end = log("17:00:00 screen_on", "17:00:00 2G", tab="\t")
    added_on_day = log("09:00:00 screen_on", "09:00:00 2G", day=end, tab="\t")
    spaced_on_day = log("09:00:00 screen_on", "09:00:00 2G", day=end)
    cases = {
        start: (0, 17),
        start + real: (0, 17),
        start + added_on_day: (1, 17),
        start + spaced_on_day: (1, 17),  # a copy that tidied the separators
        start + added_at_end + added_on_day: (2, 17),
        start + log("18:00:00 screen_on", "18:00:00 2G"): (0, 18),
        added_on_day: (0, 33 - 24),
    }
    for text, (count, last) in cases.items():
        timeline = read(phones(a=text))
        assert repaired(timeline).get("added screen_on + 2G pair left out", 0) == count, text
        assert timeline.last.tolist() == [last * HOUR], text


def test_events_of_one_second_keep_their_order(phones):
    """Off and on within a second is no gap, on and off within a second no window."""
    timeline = read(
        phones(a=log("09:00:00 wifi", "10:00:00 4G", "10:00:00 wifi", "11:00:00 4G", "12:00:00 wifi", "12:00:00 3G")),
        when="wifi",
    )
    assert as_dict(timeline) == {"a": [(9 * HOUR, 11 * HOUR)]}
    assert repaired(timeline) == {"window without length dropped": 1, "touching windows joined": 1}


def test_every_other_network_ends_wifi(phones):
    for other in ("2G", "3G", "4G", "5G", "Unknown"):
        path = phones(a=log("09:00:00 wifi", f"10:00:00 {other}", "11:00:00 screen_on"))
        assert as_dict(read(path, when="wifi")) == {"a": [(9 * HOUR, 10 * HOUR)]}


def test_battery_levels(phones):
    path = phones(a=log("09:00:00 39.0%", "10:00:00 40%", "11:00:00 100.0%", "12:00:00 0.0%"))
    assert as_dict(read(path, when="battery >= 40")) == {"a": [(10 * HOUR, 12 * HOUR)]}


def test_repeated_states_and_messages_cut_into_a_list(phones):
    text = log("09:00:00 wifi", "09:00:00 wifi", "10:00:00 wifi", "11:00:00 4G")
    pieces = [text[:31], text[31:40], text[40:]]
    assert as_dict(read(phones(a=pieces), when="wifi")) == {"a": [(9 * HOUR, 11 * HOUR)]}


def test_line_ends_and_byte_order_mark_do_not_matter(written):
    text = log("09:00:00 wifi", "11:00:00 4G").replace("\n", "\r\n")
    path = written("\ufeff" + json.dumps({"é": {"messages": text}}))
    assert as_dict(read(path, when="wifi", strict=True)) == {"é": [(9 * HOUR, 11 * HOUR)]}


def test_lines_out_of_order_are_sorted_stably_and_strict_names_them(phones):
    path = phones(a=log("09:00:00 wifi", "11:00:41 4G", "10:00:12 battery_charged_on", "11:00:41 wifi"))
    timeline = read(path, when="wifi & charging")
    assert as_dict(timeline) == {"a": [(10 * HOUR + 12 * SECOND, 11 * HOUR + 41 * SECOND)]}
    assert repaired(timeline) == {"time runs backwards": 1, "window without length dropped": 1}
    with pytest.raises(TraceError) as caught:
        read(path, when="wifi & charging", strict=True)
    assert 'device "a", line 3: time runs backwards (10:00:12 after 11:00:41)' in str(caught.value)


def test_a_device_without_events_is_left_out_and_counted(phones):
    timeline = read(phones(a="", b=log("09:00:00 wifi")))
    assert timeline.names == ("b",)
    assert repaired(timeline) == {"device without an event left out": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2020-02-02 09:00:00 \twify", 'device "a", line 2: unknown event in'),
        ("2020-02-02 09:00:00 \t101.0%", 'device "a", line 2: unknown event in'),
        ("2020-02-30 09:00:00 \twifi", 'device "a", line 2: day is out of range for month'),
        ("2020-02-02 24:00:00 \twifi", 'device "a", line 2: a line that is no event'),
        ("2020-02-02 09:00:60 \twifi", 'device "a", line 2: a line that is no event'),
        ("2020-02-02 09:00:00 wifi", 'device "a", line 2: a line that is no event'),
        ("x" * 1000, "(YYYY-MM-DD HH:MM:SS, TAB, event)"),
        ("9020-02-02 09:00:00 \twifi", "times span 7004 years (at most 146 years)"),
    ],
)
def test_damage_is_named_with_device_and_line(phones, line, message):
    path = phones(a=log("09:00:00 wifi") + line + "\n")
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": {"messages": "2020', "damaged JSON"),
        ('{"a": {"messages": 5}}', 'device "a": no text of messages'),
        ('{"a": ["messages"]}', 'device "a": no text of messages'),
        ('{"a": {"messages": ""}, "a": {"messages": ""}}', "'a' stands there twice"),
        ('{"a": {"messages": "", "messages": ""}}', "'messages' stands there twice"),
        ('{"a": {"messages": "\\n \\n"}}', "no device with an event"),
        ('{"a": {"messages": "' + "[" * 5 + '"}, "b": ' + "[" * 100_000, "damaged JSON"),
        ('{"a": {"messages": ' + "1" * 5000 + "}}", "damaged JSON"),
    ],
)
def test_damaged_json_is_one_error(written, text, message):
    path = written(text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_the_host_s_time_zone_does_not_matter(phones, monkeypatch):
    """The last Sunday of March 2020 has 23 hours in Paris, and 24 here."""
    path = phones(a=log("00:30:00 wifi", "04:30:00 4G", day="2020-03-29"))
    plain = read(path, when="wifi")
    monkeypatch.setenv("TZ", "Europe/Paris")
    time.tzset()
    try:
        assert read(path, when="wifi").same_as(plain)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert as_dict(plain) == {"a": [(HOUR // 2, 4 * HOUR + HOUR // 2)]}
    assert "TZ" not in os.environ or os.environ["TZ"] != "Europe/Paris"


RECORDING = "flash/state_traces_60.json"


@pytest.mark.parametrize(
    ("when", "windows", "empty", "touching", "never", "share"),
    [
        ("locked & wifi & charging", 727, 60, 8, 17, 0.0646),
        ("screen_off & wifi & charging", 1322, 44, 4, 17, 0.0781),
        ("charging", 1298, 8, 55, 2, 0.2105),
    ],
)
def test_counts_of_the_real_recording(recording, when, windows, empty, touching, never, share):
    """The first 60 phones. Closed windows as recorded: 791, 1365 and 1350; open at the end: 4, 5 and 11."""
    timeline = read(recording(RECORDING), when=when)
    assert len(timeline) == 60
    assert len(timeline.on) == windows
    assert repaired(timeline) == {
        "added screen_on + 2G pair left out": 79,  # 60 on a whole day, 19 at the recording's real end
        "window without length dropped": empty,
        "touching windows joined": touching,
        "contradicting events in one second, the last counts": 259,  # screens that go on and off
    }
    assert (np.diff(timeline.starts) == 0).sum() == never
    on = (timeline.off - timeline.on).sum() / (timeline.last - timeline.first).sum()
    assert on == pytest.approx(share, abs=1e-4)


def test_days_of_the_real_recording(recording):
    """The earliest phone starts 2020-01-24 20:22:47, the latest ends 2020-02-04 22:57:43."""
    timeline = read(recording(RECORDING))
    assert timeline.first.min() == (20 * 3600 + 22 * 60 + 47) * SECOND
    assert timeline.last.max() == 11 * DAY + (22 * 3600 + 57 * 60 + 43) * SECOND
