"""Finds the blocks of the documentation and does what they say; CONTRIBUTING.md states the convention.

A block is fenced. What its title says decides what is done with it:

    ```sh                                 run by every test run, as are blocks of python
    ```python title="takes minutes"       run by `pytest -m slow`
    ```sh title="needs FEDACTORS_DATA"    run where that is there, else skipped
    ```sh title="not run: why"            only read: the command line must accept its commands
    ```yaml title="phones.yaml"           written to that file, for the blocks that follow

The blocks of a page share a folder, beside the repository's `scenarios` and `traces`, the variables they export and the
names they define.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fedactors.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
SHELL, PYTHON = ("sh", "bash", "console"), ("python", "py")
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>.*)\n(?P<body>(?:.*\n)*?)(?P=indent)```\s*$", re.MULTILINE
)
_TITLE = re.compile(r'title="([^"]*)"')
_FILE = re.compile(r"[\w./-]+\.\w+")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, its language, its title and its text."""

    page: Path
    line: int
    language: str
    title: str
    text: str

    @property
    def where(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self):
        """The file that this block is written to, or nothing."""
        return self.title if _FILE.fullmatch(self.title) else ""

    @property
    def runs(self):
        return self.language in (*SHELL, *PYTHON) and not self.file and not self.title.startswith("not run: ")

    @property
    def slow(self):
        return "takes minutes" in self.title

    @property
    def needs(self):
        """Names of the folders it cannot do without."""
        return re.findall(r"FEDACTORS_\w+", self.title) if "needs " in self.title else []

    @property
    def commands(self):
        """Lines of a shell block, with those that go on in the next joined."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.strip().removeprefix("$ ") for line in lines if line.strip() and not line.lstrip().startswith("#")]


def blocks(page):
    """Return every block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] if line.strip() else line for line in match["body"].splitlines(keepends=True))
        title = _TITLE.search(match["rest"])
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match["language"], title[1] if title else "", body))
    return found


class Reader:
    """Somebody who follows a page from top to bottom, in a folder of their own."""

    def __init__(self, folder, environment):
        self._folder, self._environment, self._names = folder, dict(environment), {"__name__": "__main__"}
        for name in ("scenarios", "traces", "docs", "examples"):
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    def follow(self, block):
        """Do what a block says. Raises AssertionError, with what was printed, if that fails."""
        if block.file:
            path = self._folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.runs and block.language in PYTHON:
            self._python(block)
        elif block.runs:
            for command in block.commands:
                self._command(block, command)

    def _python(self, block):
        code = compile("\n" * block.line + block.text, str(block.page), "exec")
        with self._there(), contextlib.redirect_stdout(io.StringIO()):
            exec(code, self._names)  # the page's own code

    def _command(self, block, command):
        if match := re.fullmatch(r"export (\w+)=(\S+)(?:\s+#.*)?", command):
            self._export(match[1], match[2].strip("\"'"))
        elif plain(command) and "PYTHONPATH" not in self._environment:
            self._fedactors(block, command)
        else:
            self._shell(block, command)

    def _export(self, name, text):
        """Set a variable; where recordings and data lie is known better than the page can say."""
        with self._there():
            value = os.path.expanduser(os.path.expandvars(text))
            self._environment[name] = os.environ.get(name, value) if name.startswith("FEDACTORS_") else value

    def _fedactors(self, block, command):
        """Call the command line in this process: starting Python anew takes seconds."""
        said = io.StringIO()
        with self._there(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            words = [os.path.expandvars(word) for word in shlex.split(command, comments=True)[1:]]
            code = main(words)
        assert code == 0, f"{block.where}: {command}\n{said.getvalue()}"

    def _shell(self, block, command):
        tools = {"fedactors": "-m fedactors", "pip": "-m pip", "python": ""}
        tool = "; ".join(f'{name}() {{ "{sys.executable}" {how} "$@"; }}' for name, how in tools.items())
        path = os.pathsep.join(filter(None, [self._environment.get("PYTHONPATH"), str(ROOT)]))
        variables = {**os.environ, **self._environment, "PYTHONPATH": path}
        done = subprocess.run(
            ["bash", "-ec", f'{tool}; {command}'],
            cwd=self._folder, env=variables, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        assert done.returncode == 0, f"{block.where}: {command}\n{done.stdout}\n{done.stderr}"

    @contextlib.contextmanager
    def _there(self):
        before, here = dict(os.environ), Path.cwd()
        os.environ.update(self._environment)
        os.chdir(self._folder)
        try:
            yield
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)


def plain(command):
    """Say whether a line calls fedactors and nothing else."""
    return command.startswith("fedactors ") and not re.search(
        r"[|;&<>`]|\$\(", re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    )
