"""Makes docs/report.png: the top of the report of the quickstart, as Chromium shows it.

    python docs/_site/report_picture.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SIZE = (1180, 1500)  # pixels
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1")
OPTIONS += ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")


def main():
    """Run the quickstart and write the picture. Raises SystemExit if there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium and no google-chrome found (accepted: one of them on the PATH)")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "first"
        words = [sys.executable, "-m", "fedactors", "run", "quickstart", "--fleet", "local", "--out", str(run)]
        subprocess.run(words, env=environment, check=True)
        picture = f"--screenshot={ROOT / 'docs/report.png'}"
        page = (run / "report.html").as_uri()
        size = "--window-size={},{}".format(*SIZE)
        own = f"--user-data-dir={folder}/browser"
        subprocess.run([browser, *OPTIONS, own, size, "--virtual-time-budget=5000", picture, page], check=True)


if __name__ == "__main__":
    main()
