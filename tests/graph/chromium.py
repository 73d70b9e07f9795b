"""A browser for tests: Chromium without a window, spoken to over a pipe in the DevTools protocol."""

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# How long the browser may take for one answer, in seconds.
PATIENCE = 120.0


def executable() -> str | None:
    """The browser's path: the environment's CHROMIUM, or the first one found."""
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else list(NAMES)
    return next((path for path in map(shutil.which, names) if path), None)


def missing() -> str | None:
    """Why no browser can be driven here; None where one can."""
    if not hasattr(os, "posix_spawn"):
        return "the browser gets its pipes as POSIX hands them on"
    if executable() is None:
        return "no Chromium here; on Debian: apt-get install chromium"
    return None


class Page:
    """One page of a running browser."""

    def __init__(self, reading: int, writing: int) -> None:
        """`reading` and `writing` are the ends of the pipes."""
        self._reading, self._writing = reading, writing
        self._ids = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.errors: list[str] = []

    def _receive(self) -> dict[str, Any]:
        """The next message; they end with a zero byte."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            if not select.select([self._reading], [], [], max(end - time.monotonic(), 0.0))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._reading, 1 << 20)
            if not piece:
                raise ConnectionError("the browser ended")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, message: dict[str, Any]) -> None:
        """Keeps what the page reports as an error or a warning."""
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"]))
        if message.get("method") == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.errors.append(json.dumps(params["args"]))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(params["entry"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result."""
        key = next(self._ids)
        request: dict[str, Any] = {"id": key, "method": method, "params": params}
        if self._session is not None:
            request["sessionId"] = self._session
        os.write(self._writing, json.dumps(request).encode() + b"\0")
        while (message := self._receive()).get("id") != key:
            self._note(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def attach(self) -> None:
        """Opens an empty page and listens to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Goes to `url` and waits until it is loaded."""
        self.call("Page.navigate", url=url)
        end = time.monotonic() + PATIENCE
        while self.run("document.readyState + location.href") != "complete" + url:
            if time.monotonic() > end:
                raise TimeoutError(f"{url} does not load")
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        out = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in out:
            raise RuntimeError(out["exceptionDetails"]["exception"].get("description", str(out)))
        return out["result"].get("value")

    def size(self, width: int, height: int) -> None:
        """Sets the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Makes the user one who prefers "light" or "dark" pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event: "mousePressed", "mouseMoved", "mouseReleased", "mouseWheel"."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Presses and releases the left button."""
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self.call("Input.insertText", text=text)

    def key(self, name: str, code: int) -> None:
        """Presses and releases a key that is no character."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code)

    def close(self) -> None:
        """Ends the browser."""
        self._session = None
        self.call("Browser.close")

    def screenshot(self, path: Path) -> bytes:
        """Writes what the window shows as PNG, and returns it."""
        # Two frames: what the last event changed is painted.
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        path.write_bytes(data)
        return data


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with a fresh profile in `folder` and one page."""
    # Windows has no such module: it may be imported only where a browser is started.
    import fcntl

    path = executable()
    if path is None:
        raise FileNotFoundError(missing())
    # The browser reads from descriptor 3 and writes to 4; copies above 9 cannot be overwritten on the way
    # there.
    low = (*os.pipe(), *os.pipe())
    there_in, here_out, here_in, there_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    flags += ["--no-first-run", f"--user-data-dir={folder}", "--remote-debugging-pipe"]
    silent = [(os.POSIX_SPAWN_OPEN, end, os.devnull, os.O_RDWR, 0) for end in (0, 1, 2)]
    pipes = [(os.POSIX_SPAWN_DUP2, there_in, 3), (os.POSIX_SPAWN_DUP2, there_out, 4)]
    process = os.posix_spawn(path, [path, *flags], os.environ, file_actions=[*silent, *pipes])
    os.close(there_in)
    os.close(there_out)
    try:
        page = Page(here_in, here_out)
        page.attach()
        yield page
        with contextlib.suppress(ConnectionError):
            page.close()
    finally:
        os.close(here_out)
        os.close(here_in)
        _wait(process)


def _wait(process: int) -> None:
    """Waits until a process ends; after a while it is ended."""
    end = time.monotonic() + 20
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return
        time.sleep(0.02)
