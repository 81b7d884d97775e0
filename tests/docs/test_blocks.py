"""Every command and every Python block of the documentation is followed, page by page; see `blocks` for the rules."""

import os
import re
import shlex

import pytest

from fedactors.cli.main import parser
from tests.conftest import SHARED
from tests.docs.blocks import PAGES, PYTHON, ROOT, SHELL, Reader, blocks, plain

_FOLDERS = {"FEDACTORS_DATA": SHARED / "data", "FEDACTORS_TRACES": SHARED / "traces"}
_TITLES = re.compile(r"not run: \S.*|(needs FEDACTORS_\w+( and FEDACTORS_\w+)*)?(, )?(takes minutes)?")


def known():
    """Return the variables that are set, or whose folder is where tests look for it."""
    found = {name: os.environ.get(name, str(path)) for name, path in _FOLDERS.items()}
    return {name: value for name, value in found.items() if os.path.isdir(value)}


def follow(page, folder, *, slow):
    """Follow a page; return how many blocks were followed, and of those that could not be, what they need."""
    reader, left, followed = Reader(folder, known()), [], 0
    for block in blocks(page):
        if block.slow and not slow:
            continue
        if lacking := [name for name in block.needs if name not in known()]:
            left.append(f"{block.where} needs {', '.join(lacking)}")
        else:
            reader.follow(block)
            followed += 1
    return followed, left


def named(page):
    return str(page.relative_to(ROOT))


LONG = {  # two seconds and more
    "asynchronous.md", "attackers.md", "compare.md", "edges.md", "faults.md", "json.md", "losses-and-metrics.md",
    "own-algorithm.md", "own-behaviour.md", "own-data.md", "own-model.md", "own-traces.md", "personal-models.md",
    "plugins.md", "reproduce.md", "schedules.md", "selection.md", "traces.md", "traffic.md",
}  # fmt: skip
MARKED = [pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG)) for page in PAGES]


@pytest.mark.parametrize("page", MARKED, ids=[named(page) for page in PAGES])
def test_a_page_can_be_followed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    followed, left = follow(page, tmp_path, slow=False)
    assert followed + len(left) == sum(not block.slow for block in blocks(page))
    if left:
        pytest.skip("; ".join(left))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(block.slow for block in blocks(page))], ids=named)
def test_a_page_can_be_followed_to_its_end(page, tmp_path, monkeypatch, pages):
    monkeypatch.chdir(tmp_path)
    followed, left = follow(page, tmp_path, slow=True)
    assert followed + len(left) == len(blocks(page))
    if left:
        pytest.skip("; ".join(left))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_block_says_in_a_known_way_what_it_needs(page):
    for block in blocks(page):
        if block.language in (*SHELL, *PYTHON) and not block.file:
            assert _TITLES.fullmatch(block.title), f"{block.where}: title {block.title!r}: see tests/docs/blocks.py"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_command_that_is_not_run_is_one_that_the_command_line_accepts(page, capsys):
    for block in blocks(page):
        for command in block.commands if block.language in SHELL and not block.file else ():
            if plain(command):
                assert accepted(shlex.split(command, comments=True)[1:]), (
                    f"{block.where}: {command}: {capsys.readouterr().err}"
                )


def accepted(words):
    """Say whether the command line takes these words; it prints what it does not take."""
    try:
        parser().parse_args(words)
    except SystemExit as left:
        return left.code == 0
    return True


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "tutorial"], ids=named)
def test_a_tutorial_has_commands_that_run(page):
    """Of a page without any, the test that it can be followed could not fail."""
    commands = [line for one in blocks(page) if one.runs and one.language in SHELL for line in one.commands]
    assert any(map(plain, commands)), f"{named(page)}: no block of sh with a command of fedactors that is run"


def test_no_shell_block_hides_under_another_name():
    for page in PAGES:
        for block in blocks(page):
            starts = [line for line in block.text.splitlines() if re.match(r"(\$ )?fedactors [a-z]", line)]
            assert not starts or block.language in SHELL, f"{block.where}: a command in a block of {block.language!r}"
