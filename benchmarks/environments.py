"""Environments of the peers: a venv each under .venvs/, made when missing; PyTorch is shared with the project's.

PyTorch weighs gigabytes and every peer accepts the version that the project has, so a .pth file puts the project's
site-packages behind the peer's own: whatever the peer needs in another version is found in its venv first.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

FOLDER = Path(__file__).parent / ".venvs"
REQUIREMENTS = {"flower": ("flwr[simulation]==1.42.0",), "pfl": ("pfl==0.6.0",)}


def python(environment: str) -> str:
    """Return the interpreter of an environment; "project" is the one that runs now."""
    if environment == "project":
        return sys.executable
    folder = FOLDER / environment
    done = folder / "installed.txt"
    wanted = "\n".join(REQUIREMENTS[environment])
    if not done.exists() or done.read_text() != wanted:
        _make(folder, REQUIREMENTS[environment])
        done.write_text(wanted)
    return str(folder / "bin" / "python")


def _make(folder: Path, requirements: tuple[str, ...]) -> None:
    print(f"making {folder} with {', '.join(requirements)}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    own = folder / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = subprocess.run([own, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    (Path(packages) / "shared_with_project.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    subprocess.run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements], check=True)


def version(environment: str, package: str) -> str:
    """Return the version of a package in an environment."""
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python(environment), "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
