"""The web page of a run with subscribers, in a browser, beside real traffic."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from dashboard import PORT, Watched, accessible, client_of, drawn, rate_of, screenshot, until
from live_run import Namespace, Run, ip
from live_traffic import LONG_FRAMES, Forwarder, Hosts, at_socket
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.live

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
        Run(program, SUBSCRIBERS, folder, LONG_FRAMES) as started,
        Hosts(started) as hosts,
        Forwarder(desk, PORT, at_socket(folder / "api.sock")),
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
    page = watched.open(f"http://127.0.0.1:{PORT}/")
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
    expect(page.locator("#subscribers .card-head").first).to_contain_text(
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
    # All want more than there is.
    full = re.compile("^(Its plan is used up|line is full): [0-9.]+ Mbit/s of [13]0.0 Mbit/s")
    expect(download.locator(".why")).to_have_text(full)
    # What comes back are acknowledgements.
    upload = subscriber.get_by_label("Upload", exact=True)
    expect(upload).to_contain_text(re.compile(r"[0-9.]+ % of 5.00 Mbit/s"))
    expect(upload.locator(".why")).to_contain_text("Nothing here slows it.")
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
    expect(upload).to_contain_text("of 3.00 Mbit/s")
    page.get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo it").click()
    expect(download).to_contain_text("of 10.0 Mbit/s")
    page.get_by_role("button", name="All subscribers").click()
    expect(find).to_be_focused()
    expect(subscriber).to_have_count(0)
    watched.check()
    watched.close()


def test_dashboard_names_what_is_overloaded(village: Run, browser: Browser) -> None:
    """A line that is full for a minute, and no burst."""
    watched = Watched(browser)
    page = watched.page
    page.clock.install()
    rate = 29e6

    def classes(route: Any) -> None:
        document = route.fetch().json()
        route.fulfill(json={**document, "nodes": [{**node, "rate_bps": rate} for node in document["nodes"]]})

    page.route("**/v1/classes?*", classes)
    watched.open(f"http://127.0.0.1:{PORT}/")
    expect(page.locator("#tree")).to_contain_text("Anna")
    page.clock.fast_forward(50_000)
    warnings = page.locator("#warnings")
    expect(warnings).not_to_contain_text("in use")
    page.clock.fast_forward(15_000)
    expect(warnings).to_contain_text(re.compile("All of the rate is in use: line \\(for [0-9]+ s\\)"))
    rate = 28e6
    page.clock.fast_forward(2_000)
    expect(warnings).not_to_contain_text("in use")
    watched.check()
    watched.close()


def opened(village: Run, browser: Browser, **options: Any) -> tuple[Watched, Page]:
    """The page of the run with subscribers, with its tree."""
    watched = Watched(browser, **options)
    page = watched.open(f"http://127.0.0.1:{PORT}/")
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
    head = page.locator("#subscribers .card-head").first
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


def test_dashboard_changes_several_subscribers(village: Run, browser: Browser) -> None:
    """Rows are chosen and changed together. The change is in the file of the list, or ends by itself."""
    watched, page = opened(village, browser)
    file = village.folder / "subscribers.csv"
    before = file.read_text()
    dialog = page.locator("#change")
    page.get_by_role("tab", name="Subscribers").click()
    find = page.get_by_placeholder("Find a subscriber")
    for name in ("Lena", "Klara"):
        find.fill(name)
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    chooser = page.get_by_role("group", name="Chosen subscribers")
    expect(chooser).to_contain_text("2 chosen")
    accessible(page)
    chooser.get_by_role("button", name="Change them …").click()
    expect(dialog).to_contain_text("Change 2 subscribers")
    expect(dialog.locator(".who")).to_have_text("SubscribersKlara, Lena")
    dialog.get_by_label("Down", exact=True).fill("4mbit")
    dialog.get_by_role("button", name="Review").click()
    expect(dialog.locator(".values")).to_have_text("Down4mbit")
    dialog.get_by_role("button", name="Make this change").click()
    expect(page.locator("#toast")).to_contain_text("Changed: revision")
    rows = [line for line in file.read_text().splitlines() if ",4mbit,," in line]
    assert [row.split(",")[1] for row in rows] == ["Klara", "Lena"]
    page.get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo it").click()
    expect(page.locator("#toast")).to_contain_text("Undone")
    assert file.read_text() == before

    chooser.get_by_role("button", name="Change them …").click()
    dialog.get_by_label("Down", exact=True).fill("4mbit")
    dialog.get_by_label("For a time").fill("soon")
    dialog.get_by_role("button", name="Review").click()
    expect(dialog.get_by_role("alert")).to_contain_text("30min or 2h")
    dialog.get_by_label("For a time").fill("2h")
    dialog.get_by_role("button", name="Review").click()
    dialog.get_by_role("button", name="Make this change").click()
    found = page.locator("#subscribers section.card tbody tr")
    expect(found.first).to_contain_text(re.compile("until [0-9]{2}:[0-9]{2}"))
    assert file.read_text() == before
    page.get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo it").click()
    expect(found.first).not_to_contain_text("until")
    watched.check()
    watched.close()


def test_dashboard_offers_no_change_that_is_refused(village: Run, browser: Browser) -> None:
    """The trees are those of the list: no class of them is changed by hand."""
    watched, page = opened(village, browser)
    change = page.locator("#open-change")
    for path in ("root", "1", "2"):
        page.locator(f"#tree tr[data-path='{path}']").click()
        expect(page.locator("#not-here")).to_contain_text("The list of subscribers decides")
        expect(change).to_have_count(0)
    # The page says why the file of the list can't be written, and what to do.
    reason = {"message": "list.csv can't be written: it is read-only", "help": "keep it elsewhere"}
    page.route(
        "**/v1/subscribers",
        lambda route: route.fulfill(
            json={**route.fetch().json(), "is_changeable": False, "unchangeable": reason}
        ),
    )
    page.reload()
    page.locator("#tree tr[data-path='19']").click()
    expect(page.locator("#not-here")).to_contain_text("it is read-only; keep it elsewhere")
    expect(change).to_have_count(0)
    watched.check()
    watched.close()


TOWN = SUBSCRIBERS.replace(
    'file = "subscribers.csv"', 'libreqos = { devices = "d.csv", network = "n.json" }'
).replace("village", "town")
CIRCUITS, SITES, POINTS = 1_000, 4, 5
TOWN_PORT = PORT + 1


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
        Run(program, TOWN, folder, LONG_FRAMES) as started,
        Hosts(started) as hosts,
        Forwarder(desk, TOWN_PORT, at_socket(folder / "api.sock")),
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


def test_dashboard_of_a_thousand_classes_is_short(town: Run, browser: Browser) -> None:
    """It shows those who send, by their names and below their nodes, and finds all others."""
    watched = Watched(browser)
    page = watched.open(f"http://127.0.0.1:{TOWN_PORT}/")
    height = "document.documentElement.scrollHeight"

    def fits(name: str, most: int) -> None:
        """It has at most this height, in pixels, on a phone and on a screen, and nothing is cut."""
        for width in (390, 1300):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(50)
            assert page.evaluate(height) < most
            assert page.evaluate(BEYOND) == [], f"{name} at {width}"
            picture(page, f"{name}-{width}")

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
    fits("town", 4_500)

    page.get_by_label("Idle classes too").check()
    expect(rows).to_have_count(25)
    pager = page.locator("#tree-pager")
    expect(pager).to_contain_text("1\u201325 of 1,028")
    pager.get_by_role("button", name="Next").click()
    expect(pager).to_contain_text("26\u201350 of 1,028")
    expect(rows).to_have_count(25)
    fits("town-all", 5_500)
    accessible(page)
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
    # Sites and access points of those who are busy, the fullest first.
    cells = page.locator("#nodes li")
    busy = ("AP 0-0", "AP 0-1", "AP 2-0", "Site 0", "Site 2")
    until("all have had packets", lambda: {*busy} <= {*page.locator("#nodes .named").all_inner_texts()})
    uses = [float(text.split()[0]) for text in page.locator("#nodes .number").all_inner_texts()]
    assert uses == sorted(uses, reverse=True)
    assert uses[0] > 5
    accessible(page)
    fits("subscribers", 5_500)
    cells.filter(has_text="AP 0-0").get_by_role("button").click()
    expect(page.locator("#detail-title")).to_have_text("AP 0-0 node")
    page.get_by_role("tab", name="Subscribers").click()
    page.get_by_placeholder("Find a subscriber").fill("customer")
    expect(page.locator("#subscribers .pager")).to_contain_text("1\u201325 of 1,000")
    page.get_by_placeholder("Find a subscriber").fill("10.0.1.1")
    table.get_by_role("button", name="Customer 0").click()
    subscriber = page.locator("#subscriber")
    expect(subscriber.get_by_label("Download", exact=True)).to_contain_text(re.compile("[0-9.]+ Mbit/s"))
    expect(subscriber).to_contain_text("AP 0-0")
    expect(subscriber.get_by_role("button", name="Change plan and rates …")).to_be_visible()
    until("the rate is drawn", lambda: drawn(page, "rate", 0, "subscriber-"))
    fits("subscriber", 5_500)
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
    page.goto(f"http://127.0.0.1:{PORT}/")
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


def test_dashboard_changes_a_node(town: Run, browser: Browser) -> None:
    """Its rates, which are in network.json then."""
    watched = Watched(browser)
    page = watched.open(f"http://127.0.0.1:{TOWN_PORT}/")
    dialog = page.locator("#change")
    file = town.folder / "n.json"
    before = file.read_text()
    row = page.locator("#tree tbody tr").filter(has=page.locator(".named", has_text=re.compile("^AP 0-0$")))
    row.click()
    page.get_by_role("button", name="Change the rates …").click()
    expect(dialog).to_contain_text("Change node AP 0-0")
    expect(dialog.locator(".who")).to_have_text("NodeAP 0-0BelowSite 0")
    down = dialog.get_by_label("Down", exact=True)
    expect(down).to_have_value("100mbit")
    down.fill("80500kbit")
    dialog.get_by_role("button", name="Review").click()
    expect(dialog.locator(".values")).to_have_text("Down100mbit → 80500kbit")
    expect(dialog.locator("pre")).to_have_text('PATCH /v1/nodes/AP%200-0\n{ "down": "80500kbit" }')
    accessible(page)
    for width in (390, 1300):
        page.set_viewport_size({"width": width, "height": 900})
        picture(page, f"node-{width}")
    assert file.read_text() == before, "nothing is changed before it is confirmed"
    dialog.get_by_role("button", name="Make this change").click()
    expect(page.locator("#toast")).to_contain_text("Forwarding paused for")
    rates = json.loads(file.read_text())["Site 0"]["children"]["AP 0-0"]
    assert rates == {"downloadBandwidthMbps": 80.5, "uploadBandwidthMbps": 100}
    expect(page.locator("#detail .settings")).to_contain_text("limit80500kbit")
    page.get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo it").click()
    expect(page.locator("#toast")).to_contain_text("Undone")
    assert file.read_text() == before
    watched.check()
    watched.close()
