"""The client beside real runs, in network namespaces: at a unix socket, and over TLS with a token."""

from __future__ import annotations

import doctest
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from conftest import ROOT
from live_run import PATIENCE, Run
from pydantic import BaseModel

import fairgate as fg
from fairgate import client
from fairgate.client import Client, Entry, TermsStatus, errors

pytestmark = pytest.mark.live

TOKEN = "0123456789abcdef0123456789abcdef"

# Classes in one direction, and a tree that can hold reservations in the other.
CLASSES = """
[queue.shaped]
discipline = "htb"
default = 20

[[queue.shaped.class]]
id = 1
rate = "20mbit"

[[queue.shaped.class]]
id = 20
parent = 1
rate = "5mbit"
ceil = "20mbit"
discipline = "fifo"

[[queue.shaped.class]]
id = 30
parent = 1
rate = "6mbit"
ceil = "20mbit"
discipline = "fq_codel"

[queue.promised]
discipline = "tbf"
rate = "20mbit"
burst = "5kb"

[queue.promised.inner]
discipline = "hfsc"
default = 1

[[queue.promised.inner.class]]
id = 1
ls = "20mbit"
discipline = "fq_codel"

[run]
left = "eth0"
right = "eth1"
left_to_right = "shaped"
right_to_left = "promised"
api = "unix:api.sock"
packet_log = "60s"
"""

SUBSCRIBERS = """
[subscribers]
down = "1gbit"
up = "1gbit"

[plans.home]
down = "100mbit"
up = "20mbit"

[run]
left = "eth0"
right = "eth1"
left_to_right = "down"
right_to_left = "up"
api = "127.0.0.1:8443"
api_token = "tokens"
api_certificate = "certificate.pem"
api_key = "key.pem"
metrics = "127.0.0.1:9095"
"""

ANNA = Entry(id="1001", name="Anna", prefixes=["100.64.0.1"], plan="home")
BEN = Entry(id="1002", name="Ben", prefixes=["100.64.0.2"], down="30mbit", up="10mbit")
CALL = TermsStatus(
    name="call",
    rate_bps=100_000,
    burst_bytes=3000,
    filter="destination_port=5004 protocol=udp",
    lifetime_ms=90_000,
    delay_us=20_000,
)


# A frame of UDP, from 192.0.2.1 to 192.0.2.2, port 9.
PACKET = bytes.fromhex(
    "02000000000202000000000108004500002c0000000040110000c0000201c0000202"
    "00070009001800004f6e65207061636b65742e2e2e2e2e2e"
)


@pytest.fixture(scope="module")
def socket_run(live: None, program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with its API at a unix socket, with classes and reservations."""
    with Run(program, CLASSES, tmp_path_factory.mktemp("classes")) as run:
        run.send("left", PACKET)
        with Client(f"unix:{run.folder}/api.sock") as asked:
            run.until("a packet has passed", lambda: asked.status().directions[0].sent.packets > 0)
        yield run


@pytest.fixture(scope="module")
def tls_run(live: None, program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with its API over TLS, with subscribers."""
    folder = tmp_path_factory.mktemp("subscribers")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued = authority.issue_cert("localhost")
    for name, text in (
        ("certificate.pem", b"".join(part.bytes() for part in issued.cert_chain_pems)),
        ("key.pem", issued.private_key_pem.bytes()),
        ("tokens", f"alice {TOKEN}\n".encode()),
    ):
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(text)
    with Run(program, SUBSCRIBERS, folder) as run, run.namespace.entered():
        yield run


@pytest.fixture
def run(socket_run: Run) -> Iterator[Client]:
    """The client at the unix socket, beside one reservation."""
    with Client(f"unix:{socket_run.folder}/api.sock") as run:
        for reservation in run.reservations().reservations:
            run.withdraw(reservation.terms.name)
        run.reserve(CALL)
        yield run


def over_tls(run: Run, **changed: Any) -> Client:
    settings = {"token": TOKEN, "ca": run.folder / "ca.pem", **changed}
    return Client("https://localhost:8443", **settings)


@pytest.fixture
def subscribed(tls_run: Run) -> Iterator[Client]:
    """The client over TLS, beside two subscribers."""
    with over_tls(tls_run) as run:
        run.replace_subscribers([ANNA, BEN])
        yield run


NETWORK = '{"Site": {"downloadBandwidthMbps": 100, "uploadBandwidthMbps": 100}}'
DEVICES = (
    "Circuit ID,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Parent Node\n"
    "1,100.64.0.1,,1,1,20,10,Site\n"
)


@pytest.fixture
def networked(live: None, program: str, tmp_path: Path) -> Iterator[Client]:
    """The client beside a run with the files of LibreQoS."""
    (tmp_path / "n.json").write_text(NETWORK)
    (tmp_path / "d.csv").write_text(DEVICES)
    text = SUBSCRIBERS[: SUBSCRIBERS.index("api =")] + 'api = "unix:api.sock"\n'
    text = text.replace(
        "[subscribers]", '[subscribers]\nlibreqos = { devices = "d.csv", network = "n.json" }'
    )
    with Run(program, text, tmp_path), Client(f"unix:{tmp_path}/api.sock") as run:
        yield run


def test_the_document_is_that_of_the_run(run: Client) -> None:
    """If this fails, run make python-client."""
    committed = json.loads((ROOT / "python" / "openapi.json").read_text())
    assert run.openapi() == committed, "python/openapi.json is another one; run make python-client"


def begun(run: Client) -> object:
    with closing(run.intervals(interval=0.01)) as intervals:
        return next(intervals)


def kept(run: Client) -> object:
    run.change(["class change 30 rate=8mbit"], from_="eth0", confirm_within_s=60)
    return run.confirm()


# For each operation of the document a call that succeeds. Those of subscribers and of nodes go to the runs
# that have some, the others to the one with reservations.
CALLS: dict[str, Callable[[Client], object]] = {
    "change": lambda run: run.change(["class change 30 rate=7mbit"], from_="eth0"),
    "changeReservation": lambda run: run.change_reservation("call", CALL, from_="eth1"),
    "changes": lambda run: run.changes(),
    "classes": lambda run: run.classes("eth0", sort="drops"),
    "classStatus": lambda run: run.class_status("eth0", "30"),
    "confirm": kept,
    "directionStatus": lambda run: run.direction_status("eth1", used=True),
    "flows": lambda run: run.flows(limit=5),
    "health": lambda run: run.health(),
    "history": lambda run: run.history("eth1", seconds=7200),
    "intervals": lambda run: begun(run),
    "metrics": lambda run: run.metrics(),
    "openapi": lambda run: run.openapi(),
    "outline": lambda run: run.outline("eth0"),
    "packets": lambda run: run.packets(seconds=60.0, from_="eth0"),
    "place": lambda run: run.place("eth0", "root"),
    "patchNode": lambda run: run.patch_node("Site", down="50mbit"),
    "patchSubscriber": lambda run: run.patch_subscriber("1001", {"down": "7mbit"}),
    "patchSubscribers": lambda run: run.patch_subscribers([{"id": "1002", "up": "3mbit"}]),
    "putSubscriber": lambda run: run.put_subscriber("a/b ?#%ü", Entry(prefixes=["100.64.0.9"], plan="home")),
    "refresh": lambda run: run.refresh("call"),
    "reload": lambda run: run.reload(),
    "removeSubscriber": lambda run: run.remove_subscriber("1001"),
    "replaceSubscribers": lambda run: run.replace_subscribers([BEN]),
    "reservations": lambda run: run.reservations(from_="eth1"),
    "reserve": lambda run: run.reserve(CALL.model_copy(update={"name": "video"}), from_="eth1"),
    "status": lambda run: run.status(used=True),
    "subscriber": lambda run: run.subscriber("1002"),
    "subscriberNow": lambda run: run.subscriber_now("1002"),
    "subscribers": lambda run: run.subscribers(),
    "trees": lambda run: run.trees(),
    "whatIf": lambda run: run.what_if(from_="eth0", queues=["fifo"], rate="20mbit"),
    "withdraw": lambda run: run.withdraw("call"),
}


def operations() -> dict[str, tuple[str, str]]:
    """Return the method and the path of each operation of the document."""
    document = json.loads((ROOT / "python" / "openapi.json").read_text())
    return {
        operation["operationId"]: (method.upper(), path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def test_no_route_is_left_out() -> None:
    assert CALLS.keys() == operations().keys(), "CALLS of this test needs a call for each operation"


@pytest.mark.parametrize("operation", sorted(operations()))
def test_each_route_is_called(operation: str, request: pytest.FixtureRequest) -> None:
    method, path = operations()[operation]
    fixtures = {"/v1/subscribers": "subscribed", "/v1/nodes": "networked"}
    fixture = next((name for begin, name in fixtures.items() if path.startswith(begin)), "run")
    run: Client = request.getfixturevalue(fixture)
    answers: list[httpx.Response] = []
    run._transport._http.event_hooks = {"response": [answers.append]}
    returned = CALLS[operation](run)
    # What some calls need was asked for before.
    answer = answers[-1]
    assert answer.request.method == method
    assert re.fullmatch(re.sub(r"{.*?}", "[^/]+", path), answer.request.url.raw_path.decode().split("?")[0])
    assert 200 <= answer.status_code < 300
    if operation == "intervals":
        # It has no end. Another test compares a part of it.
        return
    if isinstance(returned, BaseModel):
        # Nothing of the document is lost or made up.
        assert_same(returned.model_dump(by_alias=True, exclude_unset=True), answer.json())
    elif isinstance(returned, str):
        assert returned == answer.text
    elif isinstance(returned, bytes):
        assert returned == answer.content
    else:
        assert returned == answer.json()


def assert_same(read: Any, sent: Any) -> None:
    """Compare a model with what was sent. State variables are sent with their kind."""
    if isinstance(read, dict):
        assert read.keys() == sent.keys()
        for name, value in read.items():
            if name == "variables":
                numbers = {
                    key: None if kind == "unset" else kind.popitem()[1] for key, kind in sent[name].items()
                }
                assert value == numbers
            else:
                assert_same(value, sent[name])
    elif isinstance(read, list):
        for one, other in zip(read, sent, strict=True):
            assert_same(one, other)
    else:
        assert read == sent


def test_a_change_with_the_tag_of_what_was_read(run: Client) -> None:
    before = run.trees()
    made = run.change(["class change 30 rate=3500kbit"], from_="eth0", if_match=before.etag)
    assert (made.revision, made.dropped) == (before.revision + 1, 0)
    after = run.trees()
    assert (after.etag, after.revision) == (made.etag, made.revision)
    assert "3500kbit" in after.directions[0].queue != before.directions[0].queue
    assert run.trees(if_none_match=after.etag) is None
    with pytest.raises(client.Stale, match="nothing was changed") as stale:
        run.change(["class change 30 rate=7mbit"], from_="eth0", if_match=before.etag)
    assert (stale.value.revision, stale.value.etag) == (after.revision, after.etag)
    with pytest.raises(client.Stale):
        run.withdraw("call", if_match=before.etag)
    assert run.trees() == after


def test_a_change_that_is_refused_has_all_its_mistakes(run: Client) -> None:
    before = run.trees()
    with pytest.raises(client.Refused) as refused:
        run.change(["class change 30 rate=7mbit", "class delete 99"], from_="eth0")
    [mistake] = refused.value.errors
    assert mistake.place is not None
    assert mistake.place.startswith("line 2, word ")
    assert mistake.message in str(refused.value)
    assert f"  help: {mistake.help}" in str(refused.value)
    with pytest.raises(client.Refused, match="can be reserved"):
        run.reserve(CALL.model_copy(update={"name": "huge", "rate_bps": 10**9}))
    assert run.trees() == before


def test_intervals_are_those_of_the_run(run: Client, socket_run: Run) -> None:
    with run._transport._http.stream("GET", "/v1/intervals", params={"interval_us": 1000}) as answer:
        sent = [json.loads(line) for line in itertools.islice(answer.iter_lines(), 3)]
    for document in sent:
        read = client.models.Interval.model_validate_json(json.dumps(document))
        assert_same(read.model_dump(by_alias=True, exclude_unset=True), document)
    with closing(run.intervals(interval=0.02)) as intervals:
        assert next(intervals).rows == []
        socket_run.send("left", PACKET)
        rows = (row for interval in itertools.islice(intervals, 50 * PATIENCE) for row in interval.rows)
        # The packet passes the default class.
        passed = next(row for row in rows if (row.from_, row.class_) == ("eth0", "20") and row.sent.packets)
    assert passed.discipline == "fifo"
    assert passed.delay is not None
    assert passed.delay.packets == passed.sent.packets


def test_intervals_end_with_their_generators(run: Client, socket_run: Run) -> None:
    """A run has four clients of this kind."""
    taken = [run.intervals(interval=10) for _ in range(4)]
    for intervals in taken:
        next(intervals)
    with pytest.raises(client.Busy, match="end one of them"):
        next(run.intervals())
    taken.pop().close()

    def is_free() -> bool:
        try:
            taken.append(run.intervals(interval=10))
            next(taken[-1])
        except client.Busy:
            taken.pop()
            return False
        return True

    socket_run.until("the run has noticed that one was closed", is_free)
    for intervals in taken:
        intervals.close()
    # Others go on with the same client.
    assert run.health().revision >= 0


def test_what_is_not_there_is_an_exception(run: Client, subscribed: Client) -> None:
    with pytest.raises(client.NotFound, match="name eth0 or eth1"):
        run.status("eth7")
    with pytest.raises(client.NotFound):
        run.class_status("eth0", "99")
    with pytest.raises(client.Malformed):
        run.class_status("eth0", "x")
    with pytest.raises(client.NotFound, match=r"add \[subscribers\]"):
        run.subscribers()
    with pytest.raises(client.NotFound):
        subscribed.subscriber("7")
    with pytest.raises(client.NotFound):
        run.request("GET", "/v9/health", dict)
    with pytest.raises(client.MethodNotAllowed):
        run.request("DELETE", "/v1/health", dict)


def test_reservations_live_and_end(run: Client) -> None:
    [call] = run.reservations().reservations
    assert (call.terms.name, call.from_) == ("call", "eth1")
    assert call.promised_us <= 20_000
    [changed] = run.change_reservation("call", CALL.model_copy(update={"rate_bps": 200_000})).reservations
    assert changed.reserved_bps >= 200_000
    assert (changed.terms.excess, changed.terms.min_packet_bytes) == ("best_effort", 60)
    peak = CALL.model_copy(update={"peak_bps": 400_000, "excess": "drop", "delay_us": None})
    [changed] = run.change_reservation("call", peak).reservations
    assert (changed.terms.peak_bps, changed.terms.excess) == (400_000, "drop")
    # Error terms, or the reason why there are none.
    assert (changed.error_terms is None) == (changed.no_error_terms is not None)
    assert changed.error_terms is not None
    assert changed.error_terms.c_bytes >= 1514
    assert run.refresh("call").reservations[0].expires_s > 60
    assert run.withdraw("call").reservations == []
    assert run.reservations().reservations == []


def test_subscribers_have_tags_of_their_own(subscribed: Client) -> None:
    anna = subscribed.subscriber("1001")
    ben = subscribed.subscriber("1002")
    subscribed.patch_subscriber("1001", {"down": "60mbit", "up": "6mbit", "plan": None}, if_match=anna.etag)
    with pytest.raises(client.Stale) as stale:
        subscribed.remove_subscriber("1001", if_match=anna.etag)
    assert stale.value.revision is None
    assert stale.value.etag == subscribed.subscriber("1001").etag
    made = subscribed.put_subscriber("1002", Entry(prefixes=["100.64.0.7"], plan="home"), if_match=ben.etag)
    assert made.etag == subscribed.subscriber("1002").etag
    assert subscribed.subscriber("1002").subscriber.name is None
    with pytest.raises(client.Refused, match="plan"):
        subscribed.put_subscriber("1003", Entry(prefixes=["100.64.0.3"], plan="none"))
    odd = "a/b ?#%ü"
    subscribed.put_subscriber(odd, Entry(prefixes=["100.64.0.9"], plan="home"))
    assert subscribed.subscriber(odd).subscriber.id == odd
    listed = subscribed.subscribers()
    assert [each.id for each in listed.subscribers] == ["1001", "1002", odd]
    assert listed.classes.keys() == {"1001", "1002", odd}
    # What was read can be sent again as it is.
    assert (
        subscribed.replace_subscribers(listed.subscribers, if_match=listed.etag).revision >= listed.revision
    )
    assert [each.id for each in subscribed.subscribers().subscribers] == ["1001", "1002", odd]


def test_over_tls_token_and_certificate_are_checked(tls_run: Run, subscribed: Client) -> None:
    assert "alice" not in repr(subscribed)
    for token in (None, TOKEN[:-1] + "0"):
        with over_tls(tls_run, token=token) as stranger, pytest.raises(client.Unauthorized) as refused:
            stranger.health()
        assert refused.value.problem.status == 401
        assert TOKEN not in str(refused.value)
    with over_tls(tls_run, ca=None) as run, pytest.raises(client.Unreachable, match="help: `ca` names"):
        run.health()
    name = "https://127.0.0.1:8443"
    with (
        Client(name, token=TOKEN, ca=tls_run.folder / "ca.pem") as run,
        pytest.raises(client.Unreachable, match=r"127\.0\.0\.1"),
    ):
        run.health()
    tls_run.until("the change is in the log", lambda: "audit: token alice:" in tls_run.said())


def test_metrics_are_read_with_and_without_token(subscribed: Client) -> None:
    for run in (subscribed, Client("http://127.0.0.1:9095")):
        with run:
            text = run.metrics()
            assert 'fairgate_sent_packets_total{from="eth0",to="eth1"} ' in text
            assert text.endswith("# EOF\n")
    with Client("http://127.0.0.1:9095") as run, pytest.raises(client.NotFound):
        run.status()


def test_connections_are_used_again_and_replaced(socket_run: Run) -> None:
    """A connection that the run closes is no error."""
    with Client(f"unix:{socket_run.folder}/api.sock") as run:
        streams = set()
        answers: list[httpx.Response] = []
        run._transport._http.event_hooks = {"response": [answers.append]}
        for _ in range(5):
            run.health()
            streams.add(id(answers[-1].extensions["network_stream"]))
        assert len(streams) == 1
        with pytest.raises(client.MediaType):
            run.request("POST", "/v1/changes", dict)
        assert run.health().pid > 0


# httpcore does not close the socket of a connection that fails; Python does.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("live")
def test_a_run_that_has_ended_is_unreachable(program: str, tmp_path: Path) -> None:
    configuration = '[run]\nleft = "eth0"\nright = "eth1"\napi = "unix:api.sock"\n'
    with Run(program, configuration, tmp_path):
        run = Client(f"unix:{tmp_path}/api.sock")
        assert run.health().revision == 0
    with run, pytest.raises(client.Unreachable):
        run.health()


@pytest.mark.usefixtures("live")
def test_intervals_end_with_the_run(program: str, tmp_path: Path) -> None:
    configuration = '[run]\nleft = "eth0"\nright = "eth1"\napi = "unix:api.sock"\n'
    with Client(f"unix:{tmp_path}/api.sock") as asked:
        with Run(program, configuration, tmp_path):
            intervals = asked.intervals(interval=0.02)
            assert next(intervals).rows == []
            assert len(next(intervals).rows) == 2
        for interval in intervals:
            assert {row.from_ for row in interval.rows} == {"eth0", "eth1"}
        with pytest.raises(StopIteration):
            next(intervals)


def documented() -> Iterator[tuple[str, object]]:
    """Yield everything with examples that need a run."""
    yield "the package", client
    yield "Client", Client
    for name, member in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_"):
            yield name, member
    yield "Operations.status", client._client.Operations.status
    for exception in (errors.ProblemError, errors.Stale, errors.Refused):
        yield exception.__name__, exception


def there(runs: dict[str, str]) -> type[Client]:
    """Return a client for which the addresses of the examples are those of the tests."""

    class There(Client):
        def __init__(self, address: str, **settings: Any) -> None:
            if "ca" in settings:
                settings["ca"] = runs["ca"]
            super().__init__(runs[address], **settings)

    return There


@pytest.mark.parametrize("name", [name for name, _ in documented()])
def test_the_examples_are_right(
    name: str,
    run: Client,
    subscribed: Client,
    socket_run: Run,
    tls_run: Run,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = {
        "unix:/run/fairgate/api.sock": f"unix:{socket_run.folder}/api.sock",
        "https://router:8443": "https://localhost:8443",
        "ca": str(tls_run.folder / "ca.pem"),
    }
    text = inspect.getdoc(dict(documented())[name]) or ""
    # The package's own example imports the client of the package.
    text = text.replace("from fairgate.client import Client, Stale", "pass")
    asked = subscribed if "subscriber" in name else run
    if "node" in name:
        asked = request.getfixturevalue("networked")
    known = {**vars(client), "fg": fg, "token": TOKEN, "run": asked, "Client": there(runs)}
    example = doctest.DocTestParser().get_doctest(text, known, name, None, None)
    assert example.examples
    failed, _ = doctest.DocTestRunner().run(example)
    assert failed == 0, capsys.readouterr().out
