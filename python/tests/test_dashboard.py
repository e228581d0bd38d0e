"""The web page in a browser, beside real traffic.

`SCREENSHOTS=docs/images make python PYTEST='-k dashboard'` writes the pictures of `docs/dashboard.md`.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT, skip
from live_run import PATIENCE, Namespace, Run, ip
from live_traffic import Forwarder, Hosts, at_port, at_socket
from PIL import Image
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    Route,
    expect,
    sync_playwright,
)

from fairgate.client import Client

pytestmark = pytest.mark.live

WEB = ROOT / "crates/fairgate-run/web"
TOKEN = "0123456789abcdef0123456789abcdef"
PORT, TLS_PORT = 8080, 8443
MOST_BYTES = 200_000

# For all that is expected of the page, as for all other waits.
expect.set_options(timeout=PATIENCE * 1000)

# Nothing of the browser itself goes to the network, and its sandbox does not work for root.
CHROMIUM = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A name of another site that resolves to the loopback address.
    "--host-resolver-rules=MAP evil.example 127.0.0.1",
]

TREES = """
[queue.wan]
discipline = "htb"
default = 30

[[queue.wan.filter]]
class = 10
dscp = "EF"

[[queue.wan.filter]]
class = 20
destination_port = 5201

[[queue.wan.class]]
id = 1
rate = "20mbit"

[[queue.wan.class]]
id = 10
parent = 1
rate = "2mbit"
ceil = "20mbit"
discipline = "fifo"

[[queue.wan.class]]
id = 20
parent = 1
rate = "12mbit"
ceil = "20mbit"
discipline = "fq_codel"

[[queue.wan.class]]
id = 30
parent = 1
rate = "6mbit"
ceil = "20mbit"
discipline = "drr"
default = 2

[[queue.wan.class.filter]]
class = 1
destination_port = 5202

[[queue.wan.class.class]]
id = 1
discipline = "fifo"

[[queue.wan.class.class]]
id = 2
discipline = "codel"

[queue.lan]
discipline = "tbf"
rate = "50mbit"
burst = "8kb"
inner = { discipline = "fq_codel" }

[run]
name = "office"
left = "eth0"
right = "eth1"
left_to_right = "wan"
right_to_left = "lan"
packet_log = "20s"
"""

SUBSCRIBERS = """
[subscribers]
file = "subscribers.csv"
down = "30mbit"
up = "30mbit"

[plans.home]
down = "10mbit"
up = "5mbit"

[plans.business]
down = "20mbit"
up = "20mbit"

[run]
name = "village"
left = "eth0"
right = "eth1"
left_to_right = "down"
right_to_left = "up"
api = "unix:api.sock"
"""
# Identifiers of subscribers that are the numbers of other subscribers' classes: classes begin at 16.
FIRST_ID, FIRST_CLASS = 17, 16
# It would hide the figures of all rows, and turn the text around it.
LONG = "Ben \u202e" + "x" * 190
BLOCK = "2001:db8:7"
NAMES = [
    "Anna",
    LONG,
    "Carla",
    "David",
    "Emil",
    "Frieda",
    "Gustav",
    "Hanna",
    "Ida",
    "Jonas",
    "Klara",
    "Lena",
]


@pytest.fixture(scope="module")
def desk(live: None, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """Where the browser runs: a namespace from which nothing else can be reached than what is forwarded."""
    missing = [tool for tool in ("chromium", "iperf3", "ping") if shutil.which(tool) is None]
    if missing:
        skip(request, f"needs {', '.join(missing)}; `make tools` installs them")
    namespace = Namespace(())
    yield namespace
    namespace.close()


@pytest.fixture(scope="module")
def run(desk: Namespace, program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with traffic, whose API is at a unix socket and, forwarded from it, at a port."""
    folder = tmp_path_factory.mktemp("office")
    with (
        Run(program, f'{TREES}api = "unix:api.sock"\n', folder) as started,
        Hosts(started) as hosts,
        Forwarder(desk, PORT, at_socket(folder / "api.sock")),
    ):
        hosts.serve(5201, 5202, 5203)
        for port in (5201, 5202, 5203):
            hosts.send(port, "--parallel", "2")
        hosts.start(hosts.client, "ping", "-i", "0.05", "-Q", "0xb8", "10.0.0.2")
        started.until("traffic passes", lambda: rate_of(started) > 15e6)
        yield started


@pytest.fixture(scope="module")
def api(run: Run) -> Iterator[Client]:
    """The client of the API, beside the page."""
    with client_of(run) as client:
        yield client


def client_of(run: Run) -> Client:
    return Client(f"unix:{run.folder}/api.sock")


def rate_of(run: Run) -> float:
    with client_of(run) as client:
        classes = client.classes("eth0").classes
    return classes[0].rate_bps if classes else 0.0


@pytest.fixture(scope="module")
def browser(desk: Namespace) -> Iterator[Browser]:
    with desk.entered():
        playwright = sync_playwright().start()
        path = shutil.which("chromium")
        started = playwright.chromium.launch(executable_path=path, args=CHROMIUM, timeout=PATIENCE * 1000)
    yield started
    started.close()
    playwright.stop()


def until(what: str, condition: Callable[[], object]) -> None:
    """Wait for something that must happen."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def tree_of(api: Client, origin: str) -> str:
    """Return the tree of a direction as a configuration file has it."""
    return next(tree.queue for tree in api.trees().directions if tree.from_ == origin)


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
        assert unexpected == []
        violations = self.page.evaluate("violations")
        assert [violation for violation in violations if not re.search(expected, violation)] == []


@pytest.fixture
def watched(browser: Browser, run: Run) -> Iterator[Watched]:
    page = Watched(browser)
    yield page
    page.close()


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


def test_dashboard_files_are_those_of_npm(request: pytest.FixtureRequest) -> None:
    if shutil.which("npm") is None:
        skip(request, "needs npm")
    compared = subprocess.run([WEB / "vendor", "--check"], capture_output=True, text=True, timeout=PATIENCE)
    said = compared.stdout + compared.stderr
    if compared.returncode == 3:
        skip(request, f"needs the registry of npm: {said}")
    assert compared.returncode == 0, said


def test_dashboard_shows_a_run(watched: Watched) -> None:
    """Charts, tiles and tree of real traffic, in few bytes of one host and as the policy demands."""
    answers: list[Response] = []
    requests: list[str] = []
    page = watched.page
    page.on("request", lambda request: requests.append(request.url))
    page.on("response", lambda answer: answers.append(answer))
    watched.open()
    expect(page.locator("#health")).to_have_attribute("data-state", "good")
    expect(page).to_have_title("office - Fairgate")
    page.get_by_role("radio", name="1 min").check()
    for chart in ("rate", "delay", "drops"):
        until(f"the chart {chart} is drawn", lambda chart=chart: drawn(page, chart, 1))
    legend = page.locator("#legend li").all_inner_texts()
    assert [text.split()[0] for text in legend] == ["10", "20", "30/1", "30/2"]
    expect(page.locator("#tiles")).to_contain_text("Mbit/s")
    expect(page.locator("#tree tbody tr")).to_have_count(7)
    bar = page.locator("#tree tr[data-path='20'] .bar-fill")
    until("the bar of class 20 is long", lambda: bar.bounding_box()["width"] > 20)  # type: ignore[index]
    assert {url.split("/")[2] for url in requests} == {f"localhost:{PORT}"}
    page_bytes = sum(len(answer.body()) for answer in answers if "/v1/" not in answer.url)
    assert 50_000 < page_bytes < MOST_BYTES
    assert "Mbit/s" in (page.locator("#chart-rate [role=img]").get_attribute("aria-label") or "")
    watched.check()


def test_dashboard_charts_are_tables_too(watched: Watched, api: Client) -> None:
    page = watched.open()
    page.get_by_role("radio", name="10 min").check()
    page.locator("#chart-rate").get_by_role("button", name="Show as table").click()
    rows = page.locator("#chart-rate tbody tr")
    expect(rows.first).to_contain_text("bit/s")
    heads = page.locator("#chart-rate thead th").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["Time", "10", "20", "30/1", "30/2"]
    # What the table says is what the API says.
    shown = rows.first.locator("td").nth(1).inner_text()
    recent = api.history("eth0", class_="20", seconds=600).series[0].rate_bps
    value = float(shown.split()[0]) * {"Mbit/s": 1e6, "kbit/s": 1e3}[shown.split()[1]]
    assert any(abs(value - rate) < 0.01 * rate for rate in recent if rate)
    page.locator("#chart-rate").get_by_role("button", name="Show as chart").click()
    # A class that is hidden is not drawn. One class alone has the charts for itself.
    page.get_by_role("button", name=re.compile("^20 fq_codel")).click()
    until("class 20 is gone", lambda: not drawn(page, "delay", 1))
    page.locator("#tree tr[data-path='30/1']").click()
    page.get_by_role("button", name="Only this class in the charts").click()
    expect(page.locator("#legend li")).to_have_count(1)
    page.get_by_role("button", name=re.compile("Show all classes")).click()
    expect(page.locator("#legend li")).to_have_count(4)
    page.get_by_role("radio", name="eth1 → eth0").check()
    expect(page.locator("#tree tbody tr")).to_have_count(2)
    expect(page.locator("#detail-title")).to_contain_text("tbf")
    watched.check()


def test_dashboard_shows_percentiles_of_delays(watched: Watched, api: Client) -> None:
    """In the tree, of the chosen class, and beside the means of the chart. They are those of the API."""
    page = watched.open()
    page.get_by_role("radio", name="1 min").check()
    time_ = re.compile(r"[0-9] (µs|ms|s)$")
    page.locator("#tree tr[data-path='20']").click()
    expect(page.locator("#tree tr[data-path='20'] .p95")).to_have_text(time_)
    # Those of an inner class can't be told from those of the classes below it.
    expect(page.locator("#tree tr[data-path='1'] .delay")).to_have_text(time_)
    expect(page.locator("#tree tr[data-path='1'] .p95")).to_have_text("\u2013")
    detail = page.locator("#detail .figures div").filter(has_text="Delay, p95")
    expect(detail).to_contain_text(re.compile(r"[0-9] (µs|ms|s)p99 "))
    expect(page.locator("#tiles")).to_contain_text(re.compile(r"Mean delay.*sp95 .* · p99 .*Drops"))
    chart = page.locator("#chart-delay")
    expect(chart).to_contain_text("dashed: p95")
    expect(chart.get_by_role("img")).to_have_attribute("aria-label", re.compile("20 fq_codel .*, p95 "))
    chart.get_by_role("button", name="Show as table").click()
    heads = chart.locator("thead th").all_inner_texts()
    assert [head for head in heads if head.startswith("20 ")] == ["20 fq_codel", "20 fq_codel p95"]
    cell = chart.locator("tbody tr").first.locator("td").nth(heads.index("20 fq_codel p95") - 1)
    expect(cell).to_have_text(time_)
    number, unit = cell.inner_text().split()
    value = float(number) * {"µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]
    recent = api.history("eth0", class_="20", seconds=60).series[0].highest_p95_ms
    assert any(abs(value - p95) < 0.01 * p95 for p95 in recent if p95)
    watched.check()


def test_dashboard_tree_by_keyboard(watched: Watched) -> None:
    page = watched.open()
    rows = page.locator("#tree tbody tr")
    expect(rows).to_have_count(7)
    focused = "document.activeElement.dataset.path"

    def press(*keys: str) -> str:
        for key in keys:
            page.keyboard.press(key)
        return page.evaluate(focused)

    # Tab reaches the tree from the field above it, and one row only.
    page.get_by_placeholder("Find a class").focus()
    assert press("Tab") == "root"
    assert press("ArrowDown", "ArrowDown") == "10"
    assert press("ArrowLeft") == "1"
    press("ArrowLeft")
    expect(rows).to_have_count(2)
    assert page.locator("#tree tr[data-path='1']").get_attribute("aria-expanded") == "false"
    press("ArrowRight")
    expect(rows).to_have_count(7)
    assert press("ArrowRight") == "10"
    assert press("End") == "30/2"
    assert press("ArrowUp", "Enter") == "30/1"
    expect(page.locator("#detail-title")).to_have_text("Class 30/1 fifo")
    assert page.locator("#tree tr[aria-selected=true]").get_attribute("data-path") == "30/1"
    assert page.locator("#tree tr[tabindex='0']").count() == 1
    assert press("Home") == "root"
    page.get_by_placeholder("Find a class").fill("codel")
    expect(rows).to_have_count(2)
    watched.check()


def open_change(page: Page, path: str) -> None:
    page.locator(f"#tree tr[data-path='{path}']").click()
    page.get_by_role("button", name="Change …").click()
    expect(page.locator("#change")).to_be_visible()


def test_dashboard_changes_are_confirmed_and_undone(watched: Watched, api: Client) -> None:
    page = watched.open()
    before = tree_of(api, "eth0")
    open_change(page, "20")
    dialog = page.locator("#change")
    dialog.get_by_label("rate", exact=True).fill("8mbit")
    dialog.get_by_text("12 more parameters").click()
    dialog.get_by_label("target", exact=True).fill("7ms")
    dialog.get_by_role("button", name="Review").click()
    expect(dialog.locator("pre")).to_have_text("class change 20 rate=8mbit\nqueue change 20 target=7ms")
    screenshot(page, "change")
    accessible(page)
    assert tree_of(api, "eth0") == before, "nothing is changed before it is confirmed"
    dialog.get_by_role("button", name="Make this change").click()
    expect(page.locator("#toast")).to_contain_text("Forwarding paused for")
    after = tree_of(api, "eth0")
    assert 'rate = "8mbit"' in after
    assert 'target = "7ms"' in after
    expect(page.locator("#detail .settings")).to_contain_text("8mbit")

    page.get_by_role("button", name="Undo").click()
    expect(dialog.locator("pre")).to_have_text("queue change 20 target=\nclass change 20 rate=12mbit")
    dialog.get_by_role("button", name="Undo it").click()
    expect(page.locator("#toast")).to_contain_text("Undone")
    assert tree_of(api, "eth0") == before
    watched.check()


def test_dashboard_a_refused_change_says_why(watched: Watched, api: Client) -> None:
    page = watched.open()
    before = tree_of(api, "eth0")
    open_change(page, "20")
    dialog = page.locator("#change")
    dialog.get_by_role("button", name="Review").click()
    expect(dialog).to_contain_text("Nothing is different yet")
    dialog.get_by_label("rate", exact=True).fill("fast")
    dialog.get_by_role("button", name="Review").click()
    dialog.get_by_role("button", name="Make this change").click()
    expect(dialog.get_by_role("alert")).to_contain_text("rate")
    dialog.get_by_role("button", name="Back").click()
    expect(dialog.get_by_label("rate", exact=True)).to_have_value("fast")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    assert tree_of(api, "eth0") == before
    watched.check("status of 422")


def test_dashboard_does_not_overwrite_what_others_changed(watched: Watched, api: Client) -> None:
    page = watched.open()
    before = tree_of(api, "eth0")
    open_change(page, "20")
    dialog = page.locator("#change")
    dialog.get_by_label("rate", exact=True).fill("8mbit")
    dialog.get_by_role("button", name="Review").click()
    api.change(["class change 20 rate=9mbit"], from_="eth0")
    dialog.get_by_role("button", name="Make this change").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Somebody else has changed the trees")
    assert 'rate = "9mbit"' in tree_of(api, "eth0")
    dialog.get_by_role("button", name="Read it again").click()
    expect(dialog.get_by_label("rate", exact=True)).to_have_value("9mbit")
    api.change(["class change 20 rate=12mbit"], from_="eth0")
    assert tree_of(api, "eth0") == before
    watched.check("status of 412")


def test_dashboard_with_a_token_over_tls(
    desk: Namespace, browser: Browser, program: str, tmp_path: Path
) -> None:
    """The page is got without a token, and shows nothing until there is one. It says when the run ends."""
    issued = trustme.CA().issue_cert("localhost")
    for name, text in (
        ("certificate.pem", b"".join(part.bytes() for part in issued.cert_chain_pems)),
        ("key.pem", issued.private_key_pem.bytes()),
        ("tokens", f"alice {TOKEN}\n".encode()),
    ):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_bytes(text)
    configuration = TREES + (
        f'api = "127.0.0.1:{TLS_PORT}"\napi_token = "tokens"\napi_certificate = "certificate.pem"\n'
        'api_key = "key.pem"\n'
    )
    with Run(program, configuration, tmp_path) as run:
        with Forwarder(desk, TLS_PORT, at_port(run.namespace, TLS_PORT)):
            watched = sign_in(browser)
        # Nothing answers at the port any more.
        page = watched.page
        expect(page.locator("#alert")).to_contain_text("does not answer")
        expect(page.locator("#health")).to_have_attribute("data-state", "bad")
        watched.close()


def sign_in(browser: Browser) -> Watched:
    watched = Watched(browser, ignore_https_errors=True)
    page = watched.open(f"https://localhost:{TLS_PORT}/")
    expect(page.locator("#login")).to_be_visible()
    accessible(page)
    page.get_by_label("Token").fill("wrong" * 8)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#login-wrong")).to_contain_text("Try another one")
    page.keyboard.press("Escape")
    expect(page.locator("#login")).to_be_visible()
    expect(page.locator("#run-name")).to_be_empty()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("#run-name")).to_have_text("office")
    expect(page.locator("#tree tbody tr")).to_have_count(7)
    assert TOKEN not in page.url
    assert page.evaluate("Object.values(sessionStorage)") == [TOKEN]
    assert TOKEN not in page.evaluate("JSON.stringify(localStorage) + document.cookie")
    # It is kept for this tab, and not for another one.
    page.reload()
    expect(page.locator("#run-name")).to_have_text("office")
    other = watched.context.new_page()
    other.goto(page.url)
    expect(other.locator("#login")).to_be_visible()
    other.close()
    watched.check("status of 401")
    return watched


def test_dashboard_is_not_for_pages_of_other_names(watched: Watched) -> None:
    """A name of another site that resolves to this machine gets the empty page, and nothing of the run."""
    page = watched.open(f"http://evil.example:{PORT}/")
    expect(page.get_by_role("alert")).to_contain_text("name an address or localhost")
    expect(page.locator("#run-name")).to_be_empty()
    # The header of the page that such an origin may not use is another complaint.
    watched.check("status of 421|Cross-Origin-Opener-Policy")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dashboard_light_and_dark(browser: Browser, run: Run, scheme: str) -> None:
    watched = Watched(browser, color_scheme=scheme)
    page = watched.open()
    page.get_by_role("radio", name="1 min").check()
    page.locator("#tree tr[data-path='20']").click()
    until("the charts are drawn", lambda: drawn(page, "delay", 1))
    brightness = "getComputedStyle(document.documentElement).backgroundColor.match(/[0-9]+/g).map(Number)[0]"
    assert (page.evaluate(brightness) > 128) == (scheme == "light")
    accessible(page)
    screenshot(page, scheme, whole=True)
    # The button goes on to the other themes, and the choice is kept.
    other = "dark" if scheme == "light" else "light"
    while page.locator("#theme").get_attribute("aria-label") != f"Theme: {other}":
        page.locator("#theme").click()
    assert (page.evaluate(brightness) > 128) == (other == "light")
    page.reload()
    expect(page.locator("#theme")).to_have_attribute("aria-label", f"Theme: {other}")
    watched.check()
    watched.close()


def test_dashboard_on_a_phone(browser: Browser, run: Run) -> None:
    watched = Watched(browser, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page = watched.open()
    page.get_by_role("radio", name="1 min").check()
    until("the charts are drawn", lambda: drawn(page, "delay", 1))
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    screenshot(page, "phone")
    page.locator("#tree tr[data-path='20']").tap()
    page.get_by_role("button", name="Change …").tap()
    expect(page.locator("#change")).to_be_visible()
    box = page.locator("#change").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    accessible(page)
    watched.check()
    watched.close()


REPORT = """<!doctype html><html><head><style>:root { --tone: rgb(1, 2, 3) } p { color: var(--tone) }</style>
<script>window.intruded = true</script></head><body>
<p style="margin-left: 17px" onclick="window.intruded = true">fq_codel would have dropped 7 packets</p>
<img src="x" onerror="window.intruded = true"></body></html>"""


def test_dashboard_tabs_can_be_chosen_before_the_run_answers(watched: Watched) -> None:
    """What was chosen while the first answer was awaited is shown once it is there."""
    page = watched.page
    awaited: list[Route] = []
    page.route("**/v1/health", lambda route: awaited.append(route), times=1)
    watched.open()
    tab = page.get_by_role("tab", name="Flows")
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")
    until("the run is asked", lambda: page.evaluate("true") and len(awaited) == 1)
    awaited[0].continue_()
    expect(page.locator("#flows")).to_contain_text("active")
    watched.check()


def test_dashboard_shows_flows(watched: Watched) -> None:
    """The flows of real traffic, sorted, of the chosen direction."""
    page = watched.open()
    page.get_by_role("tab", name="Flows").click()
    rows = page.locator("#flows tbody tr")
    expect(rows.filter(has_text="5201").first).to_contain_text(re.compile(r"tcp.*Mbit/s"))
    expect(page.locator("#flows")).to_contain_text("active")
    page.get_by_role("radio", name="Round trip").check()
    expect(rows.first).to_contain_text(re.compile(r"tcp.* ms.* ms"))
    accessible(page)
    screenshot(page, "flows")
    watched.check()


def test_dashboard_shows_what_became_of_the_last_packets(watched: Watched) -> None:
    """The capture, and the report of the run. One that is hostile can do nothing."""
    page = watched.open()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the last packets").click()
    assert re.fullmatch(r"fairgate-.*\.pcapng", download.value.suggested_filename)
    assert download.value.path().read_bytes().startswith(b"\n\r\r\n")

    button = page.get_by_role("button", name="What would another discipline have done?")
    dialog = page.locator("#what-if-dialog")
    button.click()
    expect(dialog.get_by_label("Disciplines")).to_have_value("fq_codel\ncake\nfifo")
    dialog.get_by_label("Disciplines").fill("fifo limit=0")
    dialog.get_by_role("button", name="Compare").click()
    expect(dialog.get_by_role("alert")).to_contain_text("limit")
    dialog.get_by_label("Disciplines").fill("fifo limit=7\n\n fq_codel ")
    dialog.get_by_role("button", name="Compare").click()
    report = dialog.locator(".report")
    for part in ("the present tree", "fifo limit=7", "fq_codel", "The last packets from eth0"):
        expect(report).to_contain_text(part)
    screenshot(page, "what-if")
    dialog.get_by_role("button", name="Close").click()

    asked: list[Any] = []

    def answer(route: Any) -> None:
        asked.append(route.request.post_data_json)
        route.fulfill(body=REPORT, content_type="text/html")

    page.route("**/v1/what-if", answer)
    button.click()
    dialog.get_by_role("button", name="Compare").click()
    text = dialog.locator(".report p")
    expect(text).to_contain_text("would have dropped 7 packets")
    assert asked == [{"from": "eth0", "queues": ["fq_codel", "cake", "fifo"]}]
    # It has its own style, and nothing of it has run.
    expect(text).to_have_css("color", "rgb(1, 2, 3)")
    expect(text).to_have_css("margin-left", "17px")
    text.click()
    assert page.evaluate("window.intruded") is None
    watched.check("inline event handler|script-src-attr|422")


def test_dashboard_shows_what_a_run_lacks(watched: Watched) -> None:
    """Without subscribers there is no view of them."""
    page = watched.open()
    expect(page.locator("#tree tbody tr")).to_have_count(7)
    expect(page.get_by_role("tab", name="Subscribers")).not_to_be_visible()
    watched.check()


def test_dashboard_warns_of_what_is_not_as_the_file_says(watched: Watched) -> None:
    page = watched.open()
    expect(page.locator("#health")).to_have_attribute("data-state", "good")
    expect(page.locator("#warnings")).to_be_hidden()

    def answer(route: Any) -> None:
        response = route.fetch()
        document = response.json()
        document["fallback"] = "line 3: no such discipline"
        document["passed_by"] = {"times": 2, "seconds": 1.62}
        route.fulfill(response=response, json=document)

    page.route("**/v1/classes?*", answer)
    expect(page.locator("#warnings")).to_have_text(
        "Not what the file says: line 3: no such discipline\n"
        "Packets went past this run, unshaped: 2 times, for 1.62 s in all."
    )
    accessible(page)
    screenshot(page, "warnings")
    page.unroute_all(behavior="wait")
    expect(page.locator("#warnings")).to_be_hidden()
    watched.check()


@pytest.fixture(scope="module")
def village(desk: Namespace, program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with subscribers, of whom five receive something."""
    folder = tmp_path_factory.mktemp("village")
    plans = ["business" if name == "David" else "home" for name in NAMES]
    entries = [
        f"{FIRST_ID + place},{name},10.0.1.{place + 1} {BLOCK}:{place:x}00::/56,,,{plan}"
        for place, (name, plan) in enumerate(zip(NAMES, plans, strict=True))
    ]
    (folder / "subscribers.csv").write_text("\n".join(["id,name,prefixes,down,up,plan", *entries]) + "\n")
    with (
        Run(program, SUBSCRIBERS, folder) as started,
        Hosts(started) as hosts,
        Forwarder(desk, PORT + 1, at_socket(folder / "api.sock")),
    ):
        with hosts.server.entered():
            for place in range(len(NAMES)):
                ip("address", "add", f"10.0.1.{place + 1}/16", "dev", "eth0")
        ports = range(5211, 5216)
        hosts.serve(*ports)
        for place, port in enumerate(ports):
            bound = ["--bitrate", "2M"] if place % 2 else []
            hosts.send(port, *bound, to=f"10.0.1.{place + 1}")
        started.until("traffic passes", lambda: rate_of(started) > 20e6)
        yield started


def figures_are_visible(page: Page, table: str, name: str) -> None:
    """A name is cut, with the whole of it as its title, and every row has its figures within the page."""
    cut = page.locator(f"{table} .named", has_text=name).first
    expect(cut).to_have_attribute("title", name)
    assert "\u202e" not in page.locator(table).inner_text()
    within = """table => {
      const card = table.closest(".card").getBoundingClientRect();
      const cells = [...table.querySelectorAll("td.number")];
      return cells.every(cell => cell.getBoundingClientRect().right <= card.right);
    }"""
    grid = page.locator(table if table == "#tree" else f"{table} table")
    assert grid.evaluate(within), "the figures are beside the card"


def test_dashboard_subscribers(village: Run, browser: Browser) -> None:
    """The worst subscribers by delay and by use of their plan."""
    watched = Watched(browser)
    page = watched.open(f"http://127.0.0.1:{PORT + 1}/")
    expect(page.locator("#tree tbody tr").first).to_be_visible()
    # This run keeps none.
    expect(page.get_by_role("button", name="Save the last packets")).not_to_be_visible()
    page.get_by_role("tab", name="Subscribers").click()
    rows = page.locator("#subscribers tbody tr")
    expect(rows.first).to_contain_text("Mbit/s")
    # What the page shows is not what there is.
    with client_of(village) as client:
        seen = client.classes("eth0", limit=0).subscribers
    assert seen >= 5
    expect(page.locator("#subscribers .card-head")).to_contain_text(
        f"12 subscribers, {seen} have had packets, {seen} are shown"
    )
    page.get_by_role("radio", name="Most of the limit").check()
    # Anna, Carla and Emil send as much as their plan allows. Ben and David want 2 Mbit/s.
    busy = ("Anna", "Carla", "Emil")
    until("those without a bound are first", lambda: rows.first.locator("button").inner_text() in busy)
    names = rows.locator("button").all_inner_texts()
    shown = LONG.replace("\u202e", "\\u{202e}")
    assert names.index(shown) > names.index("Anna")
    figures_are_visible(page, "#subscribers", shown)
    accessible(page)
    page.set_viewport_size({"width": 1280, "height": 440})
    screenshot(page, "subscribers")
    page.get_by_role("button", name="Carla").click()
    expect(page.locator("#subscriber-title")).to_have_text("Carla")
    page.get_by_role("button", name="Show in the tree").click()
    expect(page.locator("#detail-title")).to_contain_text("Carla")
    expect(page.locator("#detail")).to_be_focused()
    expect(page.locator("#tree")).to_contain_text("Anna")
    figures_are_visible(page, "#tree", shown)
    watched.check()
    watched.close()


def test_dashboard_has_a_page_for_each_subscriber(village: Run, browser: Browser) -> None:
    """It is found by name, identifier or address, and has both directions. Its rates are changed there."""
    watched, page = opened(village, browser)
    page.get_by_role("tab", name="Subscribers").click()
    rows = page.locator("#subscribers section.card tbody tr")
    find = page.get_by_placeholder("Find a subscriber")
    # Hanna has it in her name, too.
    for text, count in (("anna", 2), ("17", 1), ("10.0.1.1", 1), (f"{BLOCK}:0::7", 1)):
        find.fill(text)
        expect(rows).to_have_count(count)
        expect(rows.first).to_contain_text("Anna")
    # Who has had no packet is found, too.
    find.fill("Lena")
    expect(rows).to_contain_text(["Lena"])
    find.fill("17")
    rows.get_by_role("button", name="Anna").click()
    subscriber = page.locator("#subscriber")
    expect(subscriber).to_be_focused()
    expect(subscriber.locator("#subscriber-title")).to_have_text("Anna")
    expect(subscriber).to_contain_text(f"10.0.1.1/32, {BLOCK}::/56")
    download = subscriber.get_by_label("Download", exact=True)
    expect(download).to_contain_text(re.compile(r"Rate[0-9.]+ Mbit/s[0-9.]+ % of 10.0 Mbit/s"))
    expect(download).to_contain_text(re.compile(r"Delay[0-9.]+ (µs|ms|s)p95 "))
    # What comes back are acknowledgements.
    expect(subscriber.get_by_label("Upload", exact=True)).to_contain_text(
        re.compile(r"[0-9.]+ % of 5.00 Mbit/s")
    )
    flows = subscriber.locator("table.grid tbody tr")
    expect(flows.filter(has_text="5211").filter(has_text="Download").first).to_contain_text("Mbit/s")
    expect(subscriber.locator(".legend li")).to_have_count(2)
    until("the rate is drawn", lambda: drawn(page, "rate", 0, "subscriber-"))
    accessible(page)
    screenshot(page, "subscriber", whole=True)

    subscriber.get_by_role("button", name="Change plan and rates …").click()
    dialog = page.locator("#change")
    dialog.get_by_label("Plan", exact=True).fill("business")
    dialog.get_by_label("Up", exact=True).fill("3mbit")
    dialog.get_by_role("button", name="Review").click()
    expect(dialog.locator(".values")).to_have_text("Planhome → businessUpnone of its own → 3mbit")
    dialog.get_by_role("button", name="Make this change").click()
    expect(subscriber.locator(".settings").first).to_contain_text("business")
    expect(download).to_contain_text("of 20.0 Mbit/s")
    expect(subscriber.get_by_label("Upload", exact=True)).to_contain_text("of 3.00 Mbit/s")
    page.get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo it").click()
    expect(download).to_contain_text("of 10.0 Mbit/s")
    page.get_by_role("button", name="All subscribers").click()
    expect(find).to_be_focused()
    expect(subscriber).to_have_count(0)
    watched.check()
    watched.close()


def opened(village: Run, browser: Browser, **options: Any) -> tuple[Watched, Page]:
    """The page of the run with subscribers, with its tree."""
    watched = Watched(browser, **options)
    page = watched.open(f"http://127.0.0.1:{PORT + 1}/")
    expect(page.locator("#tree")).to_contain_text("Anna")
    return watched, page


def test_dashboard_says_what_it_leaves_out(village: Run, browser: Browser) -> None:
    """Of many subscribers the worst are shown. How many there are is not how many the page has asked for."""
    watched, page = opened(village, browser)

    def many(route: Any) -> None:
        document = route.fetch().json()
        route.fulfill(json={**document, "count": 20_003, "subscribers": 19_999})

    page.route("**/v1/classes?*", many)
    page.get_by_role("tab", name="Subscribers").click()
    head = page.locator("#subscribers .card-head")
    expect(head).to_contain_text(re.compile("12 subscribers, 19,999 have had packets, [0-9]+ are shown"))
    expect(page.locator("#subscribers .pager")).to_contain_text("1\u201325 of 19,999")
    watched.check()
    watched.close()


def test_dashboard_finds_subscribers_by_what_they_are_called(village: Run, browser: Browser) -> None:
    """A number is an identifier, and one of a class only if the user says so."""
    watched, page = opened(village, browser)
    found = page.locator("#tree tbody tr")

    def paths(text: str) -> list[str]:
        page.locator("#tree-find").fill(text)
        return [row.get_attribute("data-path") or "" for row in found.all()]

    # Anna is 17 in class 16, and Ben is 18 in class 17.
    assert paths("17") == ["16"]
    expect(found).to_contain_text(["Anna"])
    expect(found).to_contain_text(["17 · fq_codel"])
    assert paths("class:17") == ["17"]
    assert paths("class:1") == ["1"]
    assert paths("carla") == ["18"]
    # All that have it are there, and the one that is it is first.
    assert paths("2") == [str(FIRST_CLASS + place) for place in (3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2)]
    # An address that is written to its end is one, also within a prefix.
    assert paths("10.0.1.1") == ["16"]
    assert paths("10.0.1") == [str(FIRST_CLASS + place) for place in range(len(NAMES))]
    assert paths(f"{BLOCK}:300::5") == ["19"]
    assert paths(f"{BLOCK}:3ff:0:0:0:1".upper()) == ["19"]
    assert paths(f"{BLOCK}:ff00::1") == []
    expect(page.locator("#tree-note")).to_contain_text("class:20 finds the class of this number")
    assert paths("fq_codel")[-1] == str(FIRST_CLASS + len(NAMES) - 1)
    watched.check()
    watched.close()


def test_dashboard_changes_a_subscriber(village: Run, browser: Browser) -> None:
    """In its list, because the list decides about its class, and with name and address to be confirmed."""
    watched, page = opened(village, browser)
    dialog = page.locator("#change")

    def of_david() -> str | None:
        with client_of(village) as client:
            return client.subscriber("20").subscriber.down

    page.locator("#tree-find").fill("20")
    page.locator("#tree tbody tr").first.click()
    expect(page.locator("#detail-title")).to_contain_text("David 20 · fq_codel")
    expect(page.locator("#detail")).to_contain_text("10.0.1.4/32")
    page.get_by_role("button", name="Change the subscriber …").click()
    expect(dialog).to_contain_text("Change subscriber David")
    dialog.get_by_label("Down", exact=True).fill("3mbit")
    dialog.get_by_role("button", name="Review").click()
    expect(dialog.locator(".who")).to_have_text(
        re.compile(rf"NameDavidIdentifier20Addresses10\.0\.1\.4/32, {BLOCK}:300::/56")
    )
    expect(dialog.locator(".values")).to_have_text("Downnone of its own → 3mbit")
    expect(dialog.locator("pre")).to_have_text('PATCH /v1/subscribers/20\n{ "down": "3mbit" }')
    accessible(page)
    assert of_david() is None, "nothing is changed before it is confirmed"
    dialog.get_by_role("button", name="Make this change").click()
    expect(page.locator("#toast")).to_contain_text("Forwarding paused for")
    assert of_david() == "3mbit"
    expect(page.locator("#detail .settings")).to_contain_text("3mbit")
    page.get_by_role("button", name="Undo").click()
    expect(dialog.locator(".values")).to_have_text("Down3mbit → none of its own")
    dialog.get_by_role("button", name="Undo it").click()
    expect(page.locator("#toast")).to_contain_text("Undone")
    assert of_david() is None
    watched.check()

    # Somebody else has changed it in the meantime, or it is refused.
    page.get_by_role("button", name="Change the subscriber …").click()
    dialog.get_by_label("Down", exact=True).fill("fast")
    dialog.get_by_role("button", name="Review").click()
    dialog.get_by_role("button", name="Make this change").click()
    expect(dialog.get_by_role("alert")).to_contain_text("fast")
    with client_of(village) as client:
        client.patch_subscriber("20", {"up": "4mbit"})
    dialog.get_by_role("button", name="Make this change").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Somebody else has changed this subscriber")
    dialog.get_by_role("button", name="Read it again").click()
    expect(dialog.get_by_label("Up", exact=True)).to_have_value("4mbit")
    page.keyboard.press("Escape")
    with client_of(village) as client:
        client.patch_subscriber("20", {"up": None})
    watched.check("status of 412|status of 422")
    watched.close()


def test_dashboard_offers_no_change_that_is_refused(village: Run, browser: Browser) -> None:
    """The trees are those of the list: no class of them is changed by hand."""
    watched, page = opened(village, browser)
    change = page.locator("#open-change")
    for path in ("root", "1", "2"):
        page.locator(f"#tree tr[data-path='{path}']").click()
        expect(page.locator("#not-here")).to_contain_text("The list of subscribers decides")
        expect(change).to_have_count(0)
    # LibreQoS' files are changed there.
    page.route(
        "**/v1/subscribers",
        lambda route: route.fulfill(json={**route.fetch().json(), "is_changeable": False}),
    )
    page.reload()
    page.locator("#tree tr[data-path='19']").click()
    expect(page.locator("#not-here")).to_contain_text("ShapedDevices.csv")
    expect(change).to_have_count(0)
    watched.check()
    watched.close()


TOWN = SUBSCRIBERS.replace(
    'file = "subscribers.csv"', 'libreqos = { devices = "d.csv", network = "n.json" }'
).replace("village", "town")
CIRCUITS, SITES, POINTS = 1_000, 4, 5


@pytest.fixture(scope="module")
def town(desk: Namespace, program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with the files of LibreQoS: sites, access points, and 1,000 circuits, of which three are busy."""
    folder = tmp_path_factory.mktemp("town")
    points = [[f"AP {site}-{point}" for point in range(POINTS)] for site in range(SITES)]
    rate = {"downloadBandwidthMbps": 100, "uploadBandwidthMbps": 100}
    network = {
        f"Site {site}": {**rate, "children": dict.fromkeys(names, rate)} for site, names in enumerate(points)
    }
    (folder / "n.json").write_text(json.dumps(network))
    head = (
        "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,"
        "Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm"
    )
    names = list(itertools.chain.from_iterable(points))
    lines = [
        f"{number},Customer {number},{number},,{names[number % len(names)]},,"
        f"10.0.{1 + number // 250}.{1 + number % 250},,1,1,10,10,,"
        for number in range(CIRCUITS)
    ]
    (folder / "d.csv").write_text("\n".join([head, *lines]) + "\n")
    with (
        Run(program, TOWN, folder) as started,
        Hosts(started) as hosts,
        Forwarder(desk, PORT + 2, at_socket(folder / "api.sock")),
    ):
        busy = ["10.0.1.1", "10.0.2.1", "10.0.3.2"]
        with hosts.server.entered():
            for address in busy:
                ip("address", "add", f"{address}/16", "dev", "eth0")
        ports = range(5221, 5224)
        hosts.serve(*ports)
        for address, port in zip(busy, ports, strict=True):
            hosts.send(port, to=address)
        started.until("traffic passes", lambda: rate_of(started) > 20e6)
        yield started


@pytest.mark.parametrize("width", [390, 1300])
def test_dashboard_of_a_thousand_classes_is_short(town: Run, browser: Browser, width: int) -> None:
    """It shows those who send, by their names and below their nodes, and finds all others."""
    watched = Watched(browser, viewport={"width": width, "height": 900})
    page = watched.open(f"http://127.0.0.1:{PORT + 2}/")
    rows = page.locator("#tree tbody tr")
    tree = page.locator("#tree")
    expect(tree).to_contain_text("Customer 0")
    shown = ("line", "Site 0", "AP 0-0", "Customer 0", "AP 0-1", "Customer 501", "Site 2", "Customer 250")
    for name in shown:
        expect(tree.locator(".named", has_text=re.compile(f"^{name}$"))).to_have_count(1)
    assert rows.count() <= 15
    expect(page.locator("#tree-note")).to_contain_text("idle classes are not shown")
    # A name has no number before it.
    called = rows.locator(".called").all_inner_texts()
    assert [text for text in called if re.match("[0-9]", text)] == []
    # A node does what is below it.
    site = rows.filter(has=page.locator(".named", has_text=re.compile("^Site 0$")))
    expect(site.locator(".rate-text")).to_have_text(re.compile("[0-9.]+ Mbit/s"))
    site.click()
    expect(page.locator("#detail-title")).to_have_text("Site 0 node")
    expect(page.locator("#detail .figures")).to_contain_text("of 100 Mbit/s")
    expect(page.locator("#detail .figures")).to_contain_text(
        re.compile(r"Round trip[0-9.]+ (µs|ms|s)median of ")
    )
    expect(page.locator("#detail .settings")).to_contain_text("limit100mbit")
    height = "document.documentElement.scrollHeight"
    assert page.evaluate(height) < 4_500
    picture(page, f"town-{width}")

    page.get_by_label("Idle classes too").check()
    expect(rows).to_have_count(25)
    pager = page.locator("#tree-pager")
    expect(pager).to_contain_text("1\u201325 of 1,028")
    pager.get_by_role("button", name="Next").click()
    expect(pager).to_contain_text("26\u201350 of 1,028")
    expect(rows).to_have_count(25)
    assert page.evaluate(height) < 5_500
    assert page.evaluate(BEYOND) == []
    accessible(page)
    picture(page, f"town-all-{width}")
    # All are found, also from another page.
    page.locator("#tree-find").fill("Customer 777")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Customer 777")
    page.locator("#tree-find").fill("ap 3-")
    expect(rows.locator(".named")).to_have_text([f"AP 3-{point}" for point in range(POINTS)])
    page.locator("#tree-find").fill("")
    page.get_by_role("tab", name="Subscribers").click()
    table = page.locator("#subscribers tbody tr")
    expect(table.first).to_contain_text("Customer")
    picture(page, f"subscribers-{width}")
    page.get_by_placeholder("Find a subscriber").fill("customer")
    expect(page.locator("#subscribers .pager")).to_contain_text("1\u201325 of 1,000")
    page.get_by_placeholder("Find a subscriber").fill("10.0.1.1")
    table.get_by_role("button", name="Customer 0").click()
    subscriber = page.locator("#subscriber")
    expect(subscriber.get_by_label("Download", exact=True)).to_contain_text(re.compile("[0-9.]+ Mbit/s"))
    expect(subscriber).to_contain_text("AP 0-0")
    expect(subscriber).to_contain_text("change ShapedDevices.csv")
    until("the rate is drawn", lambda: drawn(page, "rate", 0, "subscriber-"))
    assert page.evaluate(BEYOND) == []
    picture(page, f"subscriber-{width}")
    # An idle one is shown in the tree, too.
    page.get_by_role("button", name="All subscribers").click()
    page.get_by_placeholder("Find a subscriber").fill("customer 777")
    table.get_by_role("button", name="Customer 777").click()
    expect(subscriber).to_contain_text("begins with this page")
    page.get_by_role("button", name="Show in the tree").click()
    expect(page.locator("#detail-title")).to_contain_text("Customer 777")
    expect(rows.filter(has_text="Customer 777")).to_be_visible()
    watched.check()
    watched.close()


def picture(page: Page, name: str) -> None:
    """Take a picture of the whole page to look at, if it is wanted."""
    if folder := os.environ.get("LOOK"):
        page.wait_for_timeout(300)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


# What is drawn beyond its card or its cell. What a box with an edge of its own cuts or scrolls is left out.
BEYOND = """() => {
  const found = [];
  const leftOut = ".canvas, .table-box, .visually-hidden";
  const isSeen = element => element.checkVisibility() && !element.closest(leftOut);
  const describe = (element, what) => found.push(`${what}: ${element.outerHTML.slice(0, 160)}`);
  for (const card of document.querySelectorAll(".card, .tiles > div, .top, .tabs, .bar, .legend")) {
    if (!isSeen(card)) continue;
    const { left, right } = card.getBoundingClientRect();
    for (const part of card.querySelectorAll("*")) {
      const box = part.getBoundingClientRect();
      const isBeyond = box.right > right + 0.5 || box.left < left - 0.5;
      if (isSeen(part) && box.width && isBeyond) describe(part, "card");
    }
  }
  for (const cell of document.querySelectorAll(".grid td, .grid th")) {
    if (!isSeen(cell)) continue;
    const { left, right } = cell.getBoundingClientRect();
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      // A name is cut by its own box, which is in the card.
      if (texts.currentNode.parentElement.closest(".named")) continue;
      const range = document.createRange();
      range.selectNodeContents(texts.currentNode);
      const box = range.getBoundingClientRect();
      if (box.width && (box.right > right + 0.5 || box.left < left - 0.5)) describe(cell, "cell");
    }
  }
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.push(`the page has ${scrollWidth} of ${clientWidth}`);
  return found;
}"""
# The widths at which something changes, and more.
WIDTHS = [360, 420, 600, 601, 605, 899, 900, 901, *range(640, 1301, 60)]
# What takes much room.
WIDE = {
    "rate_bps": 998_000_000_000,
    "delay_ms": 0.0123,
    "p95_ms": 0.0999,
    "dropped_per_s": 88_888,
    "backlog_bytes": 998_000_000,
}
ENDS = {"source": "2001:db8:ffff:eeee:dddd:cccc:bbbb:aaaa", "destination": "2001:db8:ffff:eeee::aaaa:1:2"}


def test_dashboard_fits_all_widths(village: Run, browser: Browser) -> None:
    """Names get the room that figures leave. They are cut, and their titles are the whole names."""
    watched, page = opened(village, browser)

    def widen(route: Any, list_: str, members: dict[str, object]) -> None:
        document = route.fetch().json()
        document[list_] = [{**row, **members} for row in document[list_]]
        route.fulfill(json=document)

    page.route("**/v1/classes?*", lambda route: widen(route, "classes", WIDE))
    page.route("**/v1/flows?*", lambda route: widen(route, "flows", {**WIDE, **ENDS, "dropped": 8_888_888}))
    shown = LONG.replace("\u202e", "\\u{202e}")
    views = {
        "Overview": page.locator("#tree tbody tr").filter(has_text="998 Gbit/s").nth(5),
        "Subscribers": page.locator("#subscribers tbody tr").filter(has_text="998 Gbit/s").first,
        "Flows": page.locator("#flows tbody tr").filter(has_text="998 Gbit/s").first,
    }
    for view, row in views.items():
        page.get_by_role("tab", name=view).click()
        expect(row).to_be_visible()
        if view == "Overview":
            page.locator("#tree tr[data-path='17']").click()
        name = page.locator(f"#{view.lower()} .grid .named").filter(has_text=shown).first
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(50)
            assert page.evaluate(BEYOND) == [], f"{view} at {width}"
            if view == "Flows":
                continue
            expect(name).to_have_attribute("title", shown)
            # The rows are made anew each second: it is looked for and measured at once.
            room = page.evaluate(
                """([view, title]) => {
                    const names = [...document.querySelectorAll(`#${view} .grid .named`)];
                    const name = names.find((one) => one.title === title);
                    return [name.clientWidth, name.scrollWidth, getComputedStyle(name).textOverflow];
                }""",
                [view.lower(), shown],
            )
            assert 40 < room[0] < room[1], f"the name at {width}: {room}"
            assert room[2] == "ellipsis"
        if folder := os.environ.get("LOOK"):
            for width in (360, 605, 760, 901, 1100, 1300):
                page.set_viewport_size({"width": width, "height": 900})
                page.wait_for_timeout(300)
                page.screenshot(path=f"{folder}/{view.lower()}-{width}.png", full_page=True)
    watched.check()
    watched.close()


def test_dashboard_draws_nothing_where_nothing_was(village: Run, browser: Browser) -> None:
    """No line leads from the delay before an idle time to that behind it. A delay alone is a point."""
    watched = Watched(browser)
    page = watched.page
    idle = range(15, 45)

    def answer(route: Any) -> None:
        document = route.fetch().json()
        at = [document["now_s"] - 60 + second for second in range(1, 61)]
        root = document["series"][0]
        delay = [None if second in idle else 5.0 for second in range(60)]
        delay[30] = 5.0
        nothing = [0.0] * 60
        lists = {name: nothing for name, value in root.items() if isinstance(value, list)}
        lists |= {"delay_ms": delay, "highest_p95_ms": delay}
        if "after=" in route.request.url:
            at, lists = [], {name: [] for name in lists}
        route.fulfill(json={**document, "at_s": at, "step_s": 1.0, "series": [{**root, **lists}]})

    page.route("**/v1/history?*", answer)
    page.goto(f"http://127.0.0.1:{PORT + 1}/")
    page.get_by_role("radio", name="1 min").check()
    until("the delay is drawn", lambda: drawn(page, "delay", 0))
    columns = page.evaluate(
        """() => {
            const canvas = document.querySelector("#chart-delay canvas");
            const colour = getComputedStyle(document.documentElement).getPropertyValue("--series-0").trim();
            const wanted = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            const isDrawn = x => [...Array(height).keys()].some(y => {
                const at = 4 * (y * width + x);
                return data[at + 3] > 40 && wanted.every((part, k) => Math.abs(part - data[at + k]) < 40);
            });
            return [...Array(width).keys()].filter(isDrawn);
        }"""
    )
    # Two lines, and the point between them.
    gaps = [(one, other) for one, other in itertools.pairwise(columns) if other - one > 20]
    assert len(gaps) == 2, columns
    # The last line is 14 s long.
    seconds = (columns[-1] - gaps[1][1]) / 14
    assert all(abs((other - one) / seconds - 15.5) < 1.5 for one, other in gaps), gaps
    watched.check()
    watched.close()
