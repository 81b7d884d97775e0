"""Makes docs/terminal.svg: what a terminal shows of the first commands, as they print now.

    python docs/_site/terminal.py

The commands run in a new folder, on this machine; rich draws the picture.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "fedactors check quickstart",
    "fedactors run quickstart --fleet local --out first",
    "fedactors watch first",
)
WIDTH = 112


def printed(command, folder):
    """Return what a command prints, warnings and progress included. Raises CalledProcessError if it fails."""
    words = [sys.executable, "-m", "fedactors", *command.split()[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(words, cwd=folder, env=environment, text=True, check=True, **streams).stdout


def main():
    """Run the commands and write the picture."""
    with open(os.devnull, "w") as nowhere, tempfile.TemporaryDirectory() as folder:
        console = Console(record=True, width=WIDTH, file=nowhere)
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text(printed(command, folder).rstrip()))
            console.print()
        (ROOT / "docs/terminal.svg").write_text(
            without_requests(console.export_svg(title="fedactors")), encoding="utf-8"
        )


def without_requests(svg):
    """Return the picture without the fonts that it would load from another server: a font of the reader's does."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()
