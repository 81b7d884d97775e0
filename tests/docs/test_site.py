"""The site lists every page once, and its reference says what the code says. `make docs` builds it, strictly."""

import importlib.util
import sys

import pytest

import fedactors
from fedactors import registry
from fedactors.option_texts import option_texts
from fedactors.papers.catalogue import FULL, REDUCED
from fedactors.scenario.server_options import ServerOptions
from tests.docs.blocks import ROOT


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (pip install fedactors[docs])")
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs/_site/hooks.py")
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


def leaves(nav):
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            yield from leaves([page for pages in entry.values() for page in pages])


def test_every_page_is_listed_once(hooks):
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")]
    listed = list(leaves(hooks.contents(sorted([*pages, "a-page-nobody-thought-of.md"]))))
    assert sorted(listed) == sorted([*pages, *hooks.reference.PAGES, "a-page-nobody-thought-of.md"])


def test_the_reference_has_every_key_name_and_command(hooks):
    keys, names, commands = (
        hooks.reference.PAGES[f"reference/{page}.md"]() for page in ("scenario", "names", "commands")
    )
    texts = option_texts(ServerOptions)
    assert len(texts) > 10
    for key in ServerOptions.model_fields:
        assert f"| `{key}` |" in keys
        assert " ".join(texts.get(key, "").split()).replace("|", "\\|") in keys
    for kind in registry.BUILTIN:
        for name in registry.BUILTIN[kind]:
            assert f"### {name}\n" in names
    assert "## fedactors traces record" in commands
    python = hooks.reference.PAGES["reference/python.md"]()
    for name in fedactors.__all__:
        assert f"`fedactors.{name}` is `fedactors." in python
    assert "::: fedactors.simulation.replay.replay\n" in python
    experiments = hooks.reference.PAGES["papers/experiments.md"]()
    for name in {**REDUCED, **FULL}:
        assert experiments.count(f"| `{name}` |") == 1
