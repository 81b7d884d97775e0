"""FedScale's capacity of clients, FedFetch's with separate up- and downlinks, and the CSV variant.

    {1: {"computation": 153.0, "communication": 2209.6}}                      FedScale, a pickle
    {0: {"computation": 42.0, …, "dl_kbps": 114.0, "ul_kbps": 8350.1}}        FedFetch, a pickle

    ,1,2,3                                                                    CSV: clients are columns
    computation,153.0,39.0,22.0
    communication,2209.6,18437.3,22915.4
    sample_size,7,34,56

`computation` is ms to infer one sample (FedScale multiplies it by three for training), rates are kbit/s.
Sources: F. Lai et al., "FedScale", ICML 2022; Q. Yan et al., "FedFetch", INFOCOM 2025.
"""

from __future__ import annotations

import csv
import io
from fractions import Fraction

from fedactors.traces import pickles
from fedactors.traces.device_tables import DOWN, SAMPLE, SAMPLES, UP, DeviceTable, table
from fedactors.traces.lines import is_decimal
from fedactors.traces.source import RecordingFile, RepairLog, device, shown

_MS = 1_000_000  # ns
_KBIT = 125  # bytes
_LARGEST = 10**18
_ACCEPTED = '{client: {"computation": ms, "communication": kbit/s}}'
_WORDS = ("computation", "communication", "sample_size")

Record = dict[str, object]


def looks_like(data: bytes) -> bool:
    """Whether `data` is a pickle that contains computation and communication, or the CSV variant."""
    if pickles.is_pickle(data):
        return b"computation" in data and b"communication" in data
    lines = data[: 1 << 24].split(b"\n", 3)
    return lines[0][:1] == b"," and any(line.startswith(b"computation,") for line in lines)


def read(source: RecordingFile, repair_log: RepairLog) -> DeviceTable:
    """Read one row per client: `inference_ns`, `down_bytes_per_s`, `up_bytes_per_s`, and `samples` if given.

    Raises TraceError if the file is damaged or would run code.
    """
    records = _from_pickle(source) if pickles.is_pickle(source.data) else _from_csv(source)
    columns: dict[str, list[int]] = {SAMPLE: [], DOWN: [], UP: [], SAMPLES: []}
    for name, record in records.items():
        both = record.get("communication")
        for column, value, factor in (
            (SAMPLE, record.get("computation"), _MS),
            (DOWN, record.get("dl_kbps", both), _KBIT),
            (UP, record.get("ul_kbps", both), _KBIT),
        ):
            columns[column].append(_number(value, factor, column, device(name), source))
        if "sample_size" in record:
            columns[SAMPLES].append(_number(record["sample_size"], 1, SAMPLES, device(name), source))
    if len(columns[SAMPLES]) not in (0, len(records)):
        raise source.error("", "sample_size of some clients only", "all, or none")
    if not columns[SAMPLES]:
        del columns[SAMPLES]
    return table(records, columns, repairs=repair_log.repairs)


def _number(value: object, factor: int, what: str, where: str, source: RecordingFile) -> int:
    """Return a number above zero, scaled and rounded to a whole one."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < _LARGEST
    scaled = round(Fraction(value) * factor) if number and isinstance(value, (int, float)) else 0
    if not 0 < scaled < _LARGEST:
        raise source.error(where, f"{what} of {shown(value)}", "a number above 0")
    return scaled


def _from_pickle(source: RecordingFile) -> dict[str, Record]:
    content = pickles.load(source)
    if not isinstance(content, dict) or not content:
        raise source.error("", "a pickle of something else", _ACCEPTED)
    records: dict[str, Record] = {}
    for key, record in content.items():
        if not isinstance(key, (int, str)) or not isinstance(record, dict) or str(key) in records:
            raise source.error("", f"record {shown(key)} of no client, or of one twice", _ACCEPTED)
        records[str(key)] = record
    return records


def _from_csv(source: RecordingFile) -> dict[str, Record]:
    rows = _csv_rows(source)
    names = rows[0][1:] if rows else []
    if not names or len(set(names)) != len(names):
        raise source.error("line 1", "no clients, or one twice", ",1,2,3 …")
    records: dict[str, Record] = {name: {} for name in names}
    for line, (word, *cells) in enumerate(rows[1:], 2):
        _check_row(word, 1 + len(cells), 1 + len(names), f"line {line}", source)
        if word in records[names[0]]:
            raise source.error(f"line {line}", f"row {shown(word)} for a second time", "each row once")
        for name, text in zip(names, cells, strict=True):
            records[name][word] = float(text) if is_decimal(text) else text
    return records


def _check_row(word: str, cells: int, wanted: int, where: str, source: RecordingFile) -> None:
    """Raise TraceError if a row begins with another word than we know, or has not as many cells as are wanted."""
    if word not in _WORDS or cells != wanted:
        found = f"row {shown(word)} of {cells} cells"
        raise source.error(where, found, f"{', '.join(_WORDS)}, each of {wanted} cells")


def _csv_rows(source: RecordingFile) -> list[list[str]]:
    """Return the lines that are not empty, cut into cells."""
    csv_lines = csv.reader(io.StringIO(source.text(), newline=""), strict=True)
    try:
        return [row for row in csv_lines if row]
    except csv.Error as error:
        raise source.error(f"line {csv_lines.line_num}", str(error), "comma-separated values") from error
