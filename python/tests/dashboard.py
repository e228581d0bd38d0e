"""What the tests of the web page share: the page in a browser, and what is seen in it."""

from __future__ import annotations

import io
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT
from live_run import PATIENCE, Namespace, Run
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from fairgate.client import Client

# Where the page of the first run is, in the namespace of the browser.
PORT = 8080

# For all that is expected of the page, as for all other waits.
expect.set_options(timeout=PATIENCE * 1000)

# Nothing of the browser itself goes to the network, and its sandbox does not work for root.
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A name of another site that resolves to the loopback address.
    "--host-resolver-rules=MAP evil.example 127.0.0.1",
]


@contextmanager
def chromium(desk: Namespace) -> Iterator[Browser]:
    """Start a browser in a namespace."""
    with desk.entered():
        playwright = sync_playwright().start()
        # Without a window: it takes half of the processor time of Chromium itself.
        path = shutil.which("chromium-headless-shell")
        started = playwright.chromium.launch(executable_path=path, args=CHROMIUM, timeout=PATIENCE * 1000)
    yield started
    started.close()
    playwright.stop()


def client_of(run: Run) -> Client:
    return Client(f"unix:{run.folder}/api.sock")


def rate_of(run: Run) -> float:
    with client_of(run) as client:
        classes = client.classes("eth0").classes
    return classes[0].rate_bps if classes else 0.0


def until(what: str, condition: Callable[[], object]) -> None:
    """Wait for something that must happen."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


class Watched:
    """A page, and what goes wrong in it."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        viewport = options.pop("viewport", {"width": 1280, "height": 860})
        self.context: BrowserContext = browser.new_context(viewport=viewport, **options)
        self.context.set_default_timeout(PATIENCE * 1000)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.loaded: dict[str, int] = {}
        self.hosts: set[str] = set()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self.hear)
        self.page.add_init_script(
            "window.violations = []; document.addEventListener('securitypolicyviolation', "
            "(event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));"
        )

    def hear(self, message: ConsoleMessage) -> None:
        # The tests read what is drawn, and the browser advises against it.
        if message.type in ("error", "warning") and "Canvas2D" not in message.text:
            self.errors.append(message.text)

    def open(self, address: str = f"http://localhost:{PORT}/") -> Page:
        self.page.goto(address)
        return self.page

    def close(self) -> None:
        # An answer that a test is making needs the page.
        self.page.unroute_all(behavior="wait")
        self.context.close()

    def check(self, expected: str = "^$") -> None:
        """Nothing has gone wrong, except for what is expected: the browser's words for a status."""
        unexpected = [error for error in self.errors if not re.search(expected, error)]
        assert not unexpected, unexpected
        violations = [each for each in self.page.evaluate("violations") if not re.search(expected, each)]
        assert not violations, violations


def drawn(page: Page, chart: str, series: int, prefix: str = "") -> bool:
    """Return whether a chart has a line in the colour of a series."""
    return page.evaluate(
        """([chart, series]) => {
            const canvas = document.querySelector(`#${chart} canvas`);
            if (!canvas?.width) return false;
            const colour = getComputedStyle(document.documentElement).getPropertyValue(`--series-${series}`);
            const wanted = [1, 3, 5].map((at) => parseInt(colour.trim().slice(at, at + 2), 16));
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let pixels = 0;
            for (let at = 0; at < data.length; at += 4) {
                const isAlike = wanted.every((part, k) => Math.abs(part - data[at + k]) < 12);
                if (data[at + 3] > 40 && isAlike) pixels += 1;
            }
            return pixels > 30;
        }""",
        [f"{prefix}chart-{chart}", series],
    )


def screenshot(page: Page, name: str, *, whole: bool = False) -> None:
    """Take a picture for the documentation, if it is wanted."""
    page.wait_for_timeout(300)
    bytes_ = page.screenshot(full_page=whole)
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        image = Image.open(io.BytesIO(bytes_)).convert("RGB").quantize(256)
        image.save(ROOT / folder / f"dashboard-{name}.png", optimize=True)


def accessible(page: Page) -> None:
    """No rule of axe-core is violated seriously."""
    found = Axe().run(page).response["violations"]
    serious = [
        (rule["id"], [node["html"] for node in rule["nodes"]])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
    # What is missing has a sign of its own. Lines that are sent to the API may say null.
    text = page.evaluate("""() => {
        const said = document.body.cloneNode(true);
        for (const lines of said.querySelectorAll("pre, script")) lines.remove();
        return said.textContent;
    }""")
    assert re.findall(".{0,20}(?:null|undefined|NaN).{0,20}", text) == []
