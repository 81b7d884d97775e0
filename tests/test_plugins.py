"""Packages add to fedactors through entry points; a wrong one is named, with what would be accepted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedactors import registry
from fedactors.cli.main import main
from fedactors.errors import ScenarioError
from fedactors.traces.format_registry import formats

EXAMPLE = Path(__file__).parents[1] / "examples/fedactors-example"
ROOT = EXAMPLE.parents[1]


def installed(folder, points, code=""):
    """Put a package with these entry points, and a module of `code`, into a folder as an installer would."""
    info = folder / "wrong-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    (folder / "wrong_plugin.py").write_text(code)
    return folder


@pytest.mark.slow
def test_the_example_package_is_installed_and_passes_its_own_tests(tmp_path):
    pytest.importorskip("setuptools", reason="setuptools is not installed: nothing can be built")
    source = shutil.copytree(EXAMPLE, tmp_path / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    words = [*pip, "--target", str(tmp_path / "there"), str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    variables = {**os.environ, "PYTHONPATH": f"{tmp_path / 'there'}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(source / "tests")]
    done = subprocess.run(words, capture_output=True, text=True, env=variables, cwd=source, check=False)
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout


OPTIONS = "from typing import Literal\nfrom fedactors.options import Options\nclass A(Options):\n    "


@pytest.mark.parametrize(
    ("kind", "code", "named"),
    [
        ("algorithms", "import no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("algorithms", "A = 3", "is not a class of fedactors.options.Options"),
        ("algorithms", "class A: pass", "is not a class of fedactors.options.Options"),
        ("algorithms", OPTIONS + "x: int = 1", "has no field name"),
        ("models", OPTIONS + 'name: Literal["b"] = "b"', 'calls itself "b"'),
        ("datasets", OPTIONS + 'name: Literal["mine"] = "mine"', "cannot do info, check, load"),
        ("engines", "A = 3", "is not a class (accepted: a subclass of fedactors.engines.base.Engine)"),
        ("engines", "class A: pass", "cannot do supports, train"),
        ("selection", OPTIONS + 'name: Literal["mine"] = "mine"', "cannot do start"),
    ],
)
def test_a_wrong_plugin_is_named(tmp_path, monkeypatch, kind, code, named):
    monkeypatch.syspath_prepend(installed(tmp_path, f"[fedactors.{kind}]\nmine = wrong_plugin:A\n", code))
    monkeypatch.delitem(sys.modules, "wrong_plugin", raising=False)
    assert "mine" in registry.names(kind)
    with pytest.raises(ScenarioError) as told:
        registry.lookup(kind, "mine")
    assert named in str(told.value)
    assert 'plugin "mine" (wrong_plugin:A) of the package wrong' in str(told.value)
    assert registry.lookup("algorithms", "fedavg").__name__ == "FedAvg"  # others are not disturbed


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("A = 3", "is a int (accepted: an instance of"),
        (
            'from fedactors.traces.format_registry import Format\nA = Format("mine", "weather", "", None)',
            "not a whole format",
        ),
        (
            "from fedactors.traces.format_registry import Format\nfrom fedactors.traces.formats import flash\n"
            'A = Format("flash", "availability", "", flash)',
            'called "flash", like one of ours (accepted: a name of its own)',
        ),
        ("A = 1 / 0", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_wrong_format_is_named(tmp_path, monkeypatch, capsys, code, named):
    monkeypatch.syspath_prepend(installed(tmp_path, "[fedactors.formats]\nmine = wrong_plugin:A\n", code))
    monkeypatch.delitem(sys.modules, "wrong_plugin", raising=False)
    with pytest.raises(ScenarioError, match="wrong_plugin:A"):
        formats()
    assert main(["traces", "formats"]) == 2
    assert named in capsys.readouterr().err
