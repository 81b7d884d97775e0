"""Opens a page in a real browser and asks it questions, over Chromium's debugging protocol."""

import asyncio
import atexit
import contextlib
import json
import shutil
import subprocess
import tempfile
from base64 import b64decode
from functools import cache

from tornado.websocket import websocket_connect

BINARY = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-port=0",
    "--window-size=1366,768",
)  # fmt: skip
_DRAWN = """new Promise((done) => {
  const root = document.documentElement, state = () => root.dataset.failed || root.dataset.charts;
  if (state()) return done(state());
  new MutationObserver(() => state() && done(state())).observe(root, {attributes: true});
})"""


class Page:
    """A page that is open. `trouble` are console errors and exceptions, `requests` what was fetched."""

    def __init__(self, socket):
        self._socket, self._number = socket, 0
        self.trouble, self.requests = [], []
        self.profile = {}  # in which it is open, as a parameter

    async def ask(self, method, **parameters):
        self._number += 1
        await self._socket.write_message(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await self._socket.read_message())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer["method"], answer["params"])

    def _note(self, method, told):
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.trouble.append(told["exceptionDetails"])
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.trouble.append(told["entry"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.trouble.append(told["args"])

    async def js(self, expression):
        """Return the value of an expression, or what its promise comes to."""
        answer = await self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def press(self, key, **codes):
        """Press and release a key."""
        await self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **codes)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, **codes)

    def close(self):
        """Say no more."""
        self._socket.close()

    async def picture(self):
        """Return the bytes of a PNG of the window."""
        return b64decode((await self.ask("Page.captureScreenshot"))["data"])


@contextlib.asynccontextmanager
async def opened(path, scheme="light"):
    """Open a file, wait until its charts are drawn or have failed, and yield the page and what it says about that.

    It has a profile of its own, so that no page sees what another one has stored.
    """
    address = started()
    control = Page(await websocket_connect(address))
    own = await control.ask("Target.createBrowserContext")
    try:
        made = await control.ask("Target.createTarget", url="about:blank", width=1366, height=768, **own)
        tab = address.partition("/devtools/")[0] + f"/devtools/page/{made['targetId']}"
        socket = await websocket_connect(tab, max_message_size=64_000_000)
        page = Page(socket)
        page.profile = own
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.ask(f"{domain}.enable")
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await page.ask("Emulation.setEmulatedMedia", features=features)
        arrived = await page.ask("Page.navigate", url=path.as_uri())
        assert "errorText" not in arrived, arrived
        await page.js("new Promise((go) => document.readyState === 'complete' ? go() : addEventListener('load', go))")
        yield page, await asyncio.wait_for(page.js(_DRAWN), 60)
        socket.close()
    finally:
        await control.ask("Target.disposeBrowserContext", **own)
        control.close()


@cache
def started():
    """Start the browser of this process, which ends with it; return the address at which it is told what to do."""
    profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    command = [BINARY, *_OPTIONS, f"--user-data-dir={profile.name}", "about:blank"]
    browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    atexit.register(ended, browser, profile)
    for line in browser.stderr:
        if "DevTools listening on " in line:
            return line.split("DevTools listening on ", 1)[1].strip()
    raise AssertionError("chromium did not start")


def ended(browser, profile):
    """End the browser, and remove its profile."""
    browser.terminate()
    browser.wait()
    browser.stderr.close()
    profile.cleanup()


class Window:
    """A page that stays open for several tests; `js` waits for its answers."""

    def __init__(self, runner, page, state):
        self._run, self.page, self.state = runner.run, page, state

    def js(self, expression):
        return self._run(self.page.js(expression))

    def ask(self, method, **parameters):
        return self._run(self.page.ask(method, **parameters))


@contextlib.contextmanager
def window(path, scheme="light"):
    """Open a file for tests that are no coroutines. Fails when it is closed if the page has complained."""
    with asyncio.Runner() as runner:
        context = opened(path, scheme)
        page, state = runner.run(context.__aenter__())
        try:
            yield Window(runner, page, state)
        finally:
            runner.run(context.__aexit__(None, None, None))
        assert page.trouble == []
