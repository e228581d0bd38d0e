"""The web page in a browser, beside real traffic.

`SCREENSHOTS=docs/images make python PYTEST='-k dashboard'` writes the pictures of `docs/dashboard.md`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from conftest import ROOT, skip
from dashboard import PORT, Watched, accessible, client_of, drawn, rate_of, screenshot, until
from live_run import PATIENCE, Namespace, Run
from live_traffic import LONG_FRAMES, Forwarder, Hosts, at_port, at_socket
from playwright.sync_api import (
    Browser,
    Page,
    Response,
    Route,
    expect,
)

from fairgate.client import Client

pytestmark = pytest.mark.live

WEB = ROOT / "crates/fairgate-run/web"
TOKEN = "0123456789abcdef0123456789abcdef"
READER = "readers-" * 5
TLS_PORT = 8443
MOST_BYTES = 200_000

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
burst = "16kb"
inner = { discipline = "fq_codel" }

[run]
name = "office"
left = "eth0"
right = "eth1"
left_to_right = "wan"
right_to_left = "lan"
packet_log = "20s"
"""


@pytest.fixture(scope="module")
def run(desk: Namespace, program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with traffic, whose API is at a unix socket and, forwarded from it, at a port."""
    folder = tmp_path_factory.mktemp("office")
    with (
        Run(program, f'{TREES}api = "unix:api.sock"\n', folder, LONG_FRAMES) as started,
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


def tree_of(api: Client, origin: str) -> str:
    """Return the tree of a direction as a configuration file has it."""
    return next(tree.queue for tree in api.trees().directions if tree.from_ == origin)


@pytest.fixture
def watched(browser: Browser, run: Run) -> Iterator[Watched]:
    page = Watched(browser)
    yield page
    page.close()


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


def test_dashboard_numbers_have_three_digits(watched: Watched) -> None:
    """Also those that are rounded up: a fourth digit is beyond its cell on a phone."""
    page = watched.open()
    shown = page.evaluate(
        "numbers => import('/format.js').then(format => numbers.map(format.rate))",
        [9_994_000, 9_998_000, 99_960_000, 999_400_000, 999_700_000, 0],
    )
    assert shown == ["9.99 Mbit/s", "10.0 Mbit/s", "100 Mbit/s", "999 Mbit/s", "1.00 Gbit/s", "0 bit/s"]
    watched.check()


def test_dashboard_waits_for_its_first_history(watched: Watched) -> None:
    """Buttons of the charts are there before the run has answered."""
    page = watched.page
    held: list[Route] = []
    page.route("**/v1/history?*", lambda route: held.append(route))
    watched.open()
    until("a history is asked for", lambda: held or page.wait_for_timeout(20))
    chart = page.locator("#chart-rate")
    chart.get_by_role("button", name="Show as table").click()
    for route in held:
        route.continue_()
    page.unroute("**/v1/history?*")
    expect(chart.locator("tbody tr").first).to_contain_text("bit/s")
    watched.check()


def test_dashboard_waits_for_the_first_points(watched: Watched) -> None:
    """A history without points, which a run has in its first second, is no trouble."""

    def empty(route: Route) -> None:
        answer = route.fetch()
        document = answer.json()
        route.fulfill(response=answer, json={**document, "at_s": [], "series": []})

    watched.page.route("**/v1/history?*", empty)
    page = watched.open()
    expect(page.locator("#tree")).to_contain_text("root")
    page.wait_for_timeout(1_500)
    expect(page.locator("body")).not_to_contain_text("undefined")
    page.unroute("**/v1/history?*")
    until("there are points", lambda: drawn(page, "rate", 1))
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
        ("readers", f"bob {READER}\n".encode()),
    ):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_bytes(text)
    configuration = TREES + (
        f'api = "127.0.0.1:{TLS_PORT}"\napi_token = "tokens"\napi_certificate = "certificate.pem"\n'
        'api_key = "key.pem"\napi_read_token = "readers"\n'
    )
    with Run(program, configuration, tmp_path) as run:
        with Forwarder(desk, TLS_PORT, at_port(run.namespace, TLS_PORT)):
            reads_only(browser)
            watched = sign_in(browser)
        # Nothing answers at the port any more.
        page = watched.page
        expect(page.locator("#alert")).to_contain_text("does not answer")
        expect(page.locator("#health")).to_have_attribute("data-state", "bad")
        watched.close()


def reads_only(browser: Browser) -> None:
    """Who may only read sees all, and no button that would be refused."""
    watched = Watched(browser, ignore_https_errors=True)
    page = watched.open(f"https://localhost:{TLS_PORT}/")
    page.get_by_label("Token").fill(READER)
    page.keyboard.press("Enter")
    page.locator("#tree tr[data-path='20']").click()
    expect(page.locator("#not-here")).to_have_text("Your token may only read.")
    expect(page.locator("#open-change")).to_have_count(0)
    expect(page.locator("#what-if")).to_be_hidden()
    watched.check("status of 401")
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
