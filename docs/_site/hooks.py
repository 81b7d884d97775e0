"""Makes the site's table of contents from the files that are there, and its reference from the code.

A page that is not named here is listed under "How to", so that adding a page is adding a file.
"""

import sys
from pathlib import Path

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path
import reference

TUTORIAL = tuple(
    f"tutorial/{name}.md"
    for name in ("quickstart", "first-scenario", "own-model", "own-traces", "own-behaviour", "own-algorithm")
)
FIRST = (
    "how-to/install.md",
    "how-to/fetch.md",
    "how-to/compare.md",
    "how-to/follow.md",
    "how-to/timeline.md",
    "how-to/selection.md",
    "how-to/secure-aggregation.md",
    "how-to/edges.md",
    "how-to/costs.md",
    "how-to/traffic.md",
    "how-to/notebooks.md",
    "how-to/plugins.md",
    "how-to/reproduce.md",
    "how-to/release.md",
    "how-to/gpus.md",
)
EXPLANATION = "explanation/"
PAPERS = "papers/"
REFERENCE = ("traces.md",)


def on_config(config):
    """Write the table of contents."""
    docs = Path(config.docs_dir)
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    config.nav = contents([page for page in pages if not page.startswith("_")])
    return config


def contents(pages):
    """Return the table of contents of these pages, each of them in one place."""
    explained = [page for page in pages if page.startswith(EXPLANATION)]
    papers = [page for page in pages if page.startswith(PAPERS)]
    elsewhere = {"index.md", *TUTORIAL, *explained, *papers, *REFERENCE}
    others = [page for page in pages if page not in elsewhere]
    first = [page for page in FIRST if page in others]
    sections = {
        "Tutorial": [page for page in TUTORIAL if page in pages],
        "How to": [*first, *(page for page in others if page not in first)],
        "Papers": [*papers, *(page for page in reference.PAGES if page.startswith(PAPERS))],
        "Explanation": explained,
        "Reference": [*(page for page in (*REFERENCE, *reference.PAGES) if _refers(page, pages))],
    }
    home = [page for page in ("index.md",) if page in pages]
    return [*home, *({title: found} for title, found in sections.items() if found)]


def _refers(page, pages):
    return page in pages or (page in reference.PAGES and not page.startswith(PAPERS))


def on_files(files, config):
    """Add the pages of the reference."""
    for name, make in reference.PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files
