"""`fedactors traces`: describe, convert, sample and formats, as a user meets them."""

import json

import pytest
from PIL import Image

from fedactors.cli.main import main
from fedactors.traces.format_registry import read, read_any

INTERVALS = "device,on,off,first,last\n" + "".join(f"phone {k},{9 + k}h,{12 + k}h,0,48h\n" for k in range(4))
OTHERS = {
    "rates": "row,from,to,bytes/s\nhome,0,90s,5000\nhome,90s,180s,15000\n",
    "devices": "device,flops_per_s\na,5\nb,7\n",
    "latencies": "from,to,ns\na,a,0\na,b,5\nb,a,7\nb,b,0\n",
}


def said(capsys, *words):
    assert main(["traces", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_describe_in_the_terminal_as_json_and_as_a_picture(written, tmp_path, capsys):
    path = written(INTERVALS)
    text = said(capsys, "describe", path, "--png", tmp_path / "on.png")
    assert "4 devices, observed for 2 days" in text
    assert "on 6.2% of the time, in 4 windows" in text
    assert "highest 37.5% at 11:00" in text
    assert Image.open(tmp_path / "on.png").size == (960, 400)
    figures = json.loads(said(capsys, "describe", path, "--json"))
    assert (figures["devices"], figures["windows"], figures["share"]) == (4, 4, 0.0625)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("rates", "10,000 bytes/s on average over time"),
        ("devices", "flops_per_s at most: 10% 5"),
        ("latencies", "round_trip_ns at most: 10% 0"),
    ],
)
def test_every_kind_is_described_and_drawn(written, tmp_path, capsys, kind, expected):
    path = written(OTHERS[kind])
    assert expected in said(capsys, "describe", path, "--png", tmp_path / "picture.png")
    json.loads(said(capsys, "describe", path, "--json"))
    assert (tmp_path / "picture.png").stat().st_size > 1000


@pytest.mark.parametrize("kind", [*OTHERS, "csv"])
def test_convert_there_and_back_loses_nothing(written, tmp_path, capsys, kind):
    path = written(OTHERS.get(kind, INTERVALS))
    said(capsys, "convert", path, tmp_path / "one.parquet")
    said(capsys, "convert", tmp_path / "one.parquet", tmp_path / "two.csv.gz")
    said(capsys, "convert", tmp_path / "two.csv.gz", tmp_path / "three.parquet", "--strict")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "three.parquet").read_bytes()
    assert read_any(tmp_path / "two.csv.gz").names == read_any(path).names


def test_sample_draws_by_seed(written, tmp_path, capsys):
    path = written(INTERVALS)
    drawn = []
    for seed in (1, 1, 2, 3, 4):
        said(capsys, "sample", path, tmp_path / "some.csv", "--devices", 2, "--seed", seed)
        drawn.append(read(tmp_path / "some.csv").names)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    assert main(["traces", "sample", str(path), str(tmp_path / "x.csv"), "--devices", "5"]) == 2
    assert "--devices 5" in capsys.readouterr().err


def test_formats_lists_them(capsys):
    kinds = json.loads(said(capsys, "formats", "--json"))["formats"]
    assert {"csv", "flash", "fedscale", "rates"} <= {kind["name"] for kind in kinds}
    assert "FLASH" in said(capsys, "formats")


def test_mistakes_are_told_in_one_line(written, capsys):
    assert main(["traces", "describe", "nowhere.csv"]) == 2
    assert capsys.readouterr().err == "fedactors: nowhere.csv: no such file (the path of a recording)\n"
    with pytest.raises(SystemExit, match="2"):
        main(["traces", "descrbe", "x"])
    assert 'no command "descrbe"; did you mean "describe"?' in capsys.readouterr().err
