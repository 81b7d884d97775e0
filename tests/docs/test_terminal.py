"""The picture of a terminal shows commands that there are and figures that the README shows; it loads no fonts."""

import html
import importlib.util
import re
import shlex

from tests.docs.blocks import ROOT
from tests.docs.test_blocks import accepted

PICTURE = (ROOT / "docs/terminal.svg").read_text(encoding="utf-8")


def shown():
    """Return the lines of the picture."""
    lines = {}
    for y, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', PICTURE):
        lines[float(y)] = lines.get(float(y), "") + html.unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    return [line.strip() for _, line in sorted(lines.items())]


def test_its_commands_are_those_of_the_script_and_are_accepted():
    spec = importlib.util.spec_from_file_location("terminal", ROOT / "docs/_site/terminal.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    commands = [line.removeprefix("$ ") for line in shown() if line.startswith("$ ")]
    assert commands == list(script.COMMANDS)
    assert all(accepted(shlex.split(command)[1:]) for command in commands)


def test_its_figures_are_those_of_the_readme():
    (line,) = [line for line in shown() if line.startswith("quickstart: accuracy")]
    assert line in (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_loads_nothing():
    assert "url(http" not in PICTURE.replace('"', "")
    assert not re.search(r"(href|src)=\"?http", PICTURE)
