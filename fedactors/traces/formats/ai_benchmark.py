"""FLASH's tables of how fast phones compute: scores of ai-benchmark.com, and the names of the scored.

    benchmark2score.json         {"Huawei Mate 30": 61560, …}
    raw_ai_benchmark_list.json   [{"Model": "Huawei Mate 30", …, "AI_Score": " 76206 1,6"}, …]
    real2benchmark.json          {"RMX1941": "Realme C2", "CPH1909": "unknown", …}

Source: C. Yang et al., WWW 2021; github.com/PKU-Chengxu/FLASH, `models/utils/device_util`. Most phones of the
map are "unknown", and a score may be dirty: its first number counts, what follows is counted as a repair.
"""

from __future__ import annotations

import re

from fedactors.traces.device_tables import BENCHMARK, SCORE, DeviceTable, table
from fedactors.traces.source import RecordingFile, RepairLog, device, shown

_SCORE = re.compile(r"\s*(\d{1,9})(?!\S)\s*(.*)", re.ASCII | re.DOTALL)
_UNKNOWN = "unknown"


def looks_like(data: bytes) -> bool:
    """Whether `data` looks like one of the three: scores by name, names by model, or the raw list."""
    start = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    flat = re.match(rb'\{\s*"[^"\\]*"\s*:\s*(\d+|"[^"]*")\s*[,}]', start)
    return flat is not None or (start[:1] == b"[" and b'"AI_Score"' in start)


def read(source: RecordingFile, repair_log: RepairLog) -> DeviceTable:
    """Read `ai_score` by phone, or of the map the label `benchmark` by model code.

    Raises TraceError if the file is damaged.
    """
    content = source.json()
    if isinstance(content, list):
        return _raw(content, source, repair_log)
    if not isinstance(content, dict) or not content:
        raise source.error("", "no table", "an object or list of phones")
    if all(isinstance(value, str) for value in content.values()):
        names = ["" if value == _UNKNOWN else str(value) for value in content.values()]
        return table(content, {}, {BENCHMARK: names}, repair_log.repairs)
    return _scores(content, source, repair_log)


def _scores(content: dict[str, object], source: RecordingFile, repair_log: RepairLog) -> DeviceTable:
    """Return the table of scores by phone."""
    scores: dict[str, int] = {}
    for name, value in content.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**9:
            raise source.error(device(name), f"score {shown(value)}", "a whole number")
        scores[name] = value
    return table(scores, {SCORE: list(scores.values())}, repairs=repair_log.repairs)


def _raw(content: list[object], source: RecordingFile, repair_log: RepairLog) -> DeviceTable:
    scores: dict[str, int] = {}
    for number, record in enumerate(content):
        name = record.get("Model") if isinstance(record, dict) else None
        score = record.get("AI_Score") if isinstance(record, dict) else None
        match = _SCORE.fullmatch(score) if isinstance(score, str) else None
        if not isinstance(name, str) or not match:
            raise source.error(f"record {number}", f"score {shown(score)} of {shown(name)}", "a model and a number")
        if match[2]:
            repair_log.note("junk after a score left out", device(name), match[2])
        if name in scores:
            repair_log.note("model listed twice, the last counts", device(name))  # as in FLASH's own scores
        scores[name] = int(match[1])
    if not scores:
        raise source.error("", "no phone", "a list of phones")
    return table(scores, {SCORE: list(scores.values())}, repairs=repair_log.repairs)
