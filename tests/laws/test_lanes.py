"""Every test that takes long is in one lane of `.ci/slow`, and is run by somebody."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lanes():
    """Return the paths of each lane, and those that it leaves out."""
    found = dict(re.findall(r'^  \[(\w+)\]="(.*)"$', (ROOT / ".ci/slow").read_text(), re.MULTILINE))
    return {
        name: (
            [word for word in text.split() if not word.startswith("-")],
            re.findall(r"--ignore=(\S+)", text),
        )
        for name, text in found.items()
    }


def below(file, paths):
    return any(file == path or file.startswith(f"{path}/") for path in paths)


def test_every_slow_test_is_in_one_lane():
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.slow" in path.read_text()]
    files = [str(path.relative_to(ROOT)) for path in files if path != Path(__file__)]
    assert len(files) > 20
    within = {
        file: [name for name, (paths, left_out) in lanes().items() if below(file, paths) and not below(file, left_out)]
        for file in files
    }
    assert {file: names for file, names in within.items() if len(names) != 1} == {}


def test_lanes_name_what_is_there():
    assert len(lanes()) == 6
    for paths, left_out in lanes().values():
        for path in (*paths, *left_out):
            assert (ROOT / path).exists(), path
