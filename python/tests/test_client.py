"""The client of the API without a run: addresses, errors, and what is generated."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import json
import pickle
import re
import socket
import string
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
import trustme
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

import fairgate as fg
from fairgate import client
from fairgate.client import Client, Entry, errors

TOKEN = "0123456789abcdef0123456789abcdef"


def answering(answer: httpx.Response | Exception, seen: list[httpx.Request] | None = None) -> Client:
    """Return a client that gets this answer to everything."""

    def answered(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Client("http://127.0.0.1", _transport=httpx.MockTransport(answered))


def problem(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, "title": "A title", "status": 400, "detail": "A detail", **members}


def loaded(path: Path) -> ModuleType:
    """Return the module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Pydantic looks there for the types of members.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def generator() -> ModuleType:
    return loaded(ROOT / "python" / "generate_client.py")


def test_the_generated_files_are_those_of_the_document(tmp_path: Path) -> None:
    """If this fails, run make python-client."""
    document = json.loads((ROOT / "python" / "openapi.json").read_text())
    for name, text in generator().generated(document, tmp_path).items():
        path = ROOT / "python" / "fairgate" / "client" / name
        assert path.read_text() == text, f"{path} is another one; run make python-client"


def test_routes_of_all_kinds_can_be_described(tmp_path: Path) -> None:
    """Kinds that no route has yet."""
    words = {"type": "string", "enum": ["rate", "drops"]}
    number, text = {"type": ["integer", "null"], "minimum": 0}, {"type": "string"}

    def named(name: str) -> dict[str, Any]:
        return {"$ref": f"#/components/schemas/{name}"}

    def route(id: str, answer: dict[str, Any] | None, kind: str = "application/json", **more: Any) -> Any:
        content = {} if answer is None else {"content": {kind: {"schema": answer}}}
        return {
            "operationId": id,
            "summary": id,
            "responses": {"200": {"description": id, **content}},
            **more,
        }

    def asked(name: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
        return {"name": name, "in": "query", "description": name, "required": required, "schema": schema}

    sorts = {"oneOf": [{"type": "null"}, named("Sort")]}
    order = {
        "type": "object",
        "required": ["lines"],
        "properties": {"lines": {"type": "array", "items": text}},
    }
    order["properties"] |= {
        "class": number,
        "by": words,
        "terms": {"oneOf": [{"type": "null"}, named("Terms")]},
    }
    flow = {
        "type": "object",
        "required": ["schema", "kind"],
        "properties": {"schema": text, "kind": named("Sort")},
    }
    flow["properties"] |= {
        "marks": {"type": "array", "items": text},
        "at": {"type": "array", "items": number},
    }
    flow["required"] += ["at"]
    document = {
        "paths": {
            "/a": {
                "get": route(
                    "flowsOf",
                    {"type": "array", "items": named("Flow")},
                    parameters=[
                        asked("sort", sorts),
                        asked("from", text, required=True),
                        asked("class", number),
                    ],
                ),
                "delete": route("stop", None),
            },
            "/b": {
                "get": route("table", text, "text/csv"),
                "put": route("capture", text, "application/x-pcap"),
            },
            "/c": {
                "post": route(
                    "whatIf",
                    named("Flow"),
                    requestBody={"content": {"application/json": {"schema": named("Order")}}},
                )
            },
        },
        "components": {
            "schemas": {
                "Flow": flow,
                "Order": order,
                "Problem": {"type": "object", "properties": {"title": text}},
                "Sort": words,
                "Terms": {"type": "object", "additionalProperties": False, "properties": {"name": text}},
                "Unused": {"type": "object", "properties": {"name": text}},
            }
        },
    }
    files = generator().generated(document, tmp_path)
    signatures = re.findall(
        r"def (\w+)\(\s*self,?(?: \*,)?(.*?),?\s*\) -> (.*?):\n", files["_operations.py"], re.S
    )
    assert {name: (" ".join(given.split()), answer) for name, given, answer in signatures} == {
        "flows_of": (
            'from_: str, *, sort: Literal["rate", "drops"] | None = None, class_: int | None = None',
            "list[Flow]",
        ),
        "stop": ("", "None"),
        "table": ("", "str"),
        "capture": ("", "bytes"),
        "what_if": (
            "lines: Iterable[str], *, class_: int | None = None, "
            'by: Literal["rate", "drops"] | None = None, terms: Terms | None = None',
            "Flow",
        ),
    }
    (tmp_path / "made_up.py").write_text(files["models.py"])
    models = loaded(tmp_path / "made_up.py")
    made = {name for name, each in vars(models).items() if getattr(each, "__module__", "") == "made_up"}
    assert made == {"Flow", "Problem", "Terms"}
    # A newer run may have more words.
    read = models.Flow.model_validate_json('{"schema": "x/1", "kind": "colour", "at": [1, null]}')
    assert (read.schema_, read.kind, read.marks, read.at) == ("x/1", "colour", [], [1, None])
    with pytest.raises(ValueError, match="Terms has no `rate`"):
        models.Terms(rate=7)


def test_each_route_has_an_example() -> None:
    """An example is in python/client_examples.toml, or in a method that is written by hand."""
    public = {name: member for name, member in inspect.getmembers(Client) if not name.startswith("_")}
    without = [name for name, member in public.items() if ">>>" not in (inspect.getdoc(member) or "")]
    assert without == [], "add them to python/client_examples.toml, and run make python-client"
    paths = json.loads((ROOT / "python" / "openapi.json").read_text())["paths"]
    ids = {operation["operationId"] for path in paths.values() for operation in path.values()}
    assert {re.sub(r"(?<!^)(?=[A-Z])", "_", id).lower() for id in ids} <= public.keys()
    examples = tomllib.loads((ROOT / "python" / "client_examples.toml").read_text())
    assert examples.keys() <= ids, "there are examples of routes that do not exist"
    for documented in (client, Client, errors.ProblemError, errors.Stale, errors.Refused):
        assert ">>>" in (inspect.getdoc(documented) or "")


def test_each_type_of_problem_is_an_exception() -> None:
    """Those of the documentation, which a test of the API compares with the code, are those of the client."""
    table = (ROOT / "docs" / "api.md").read_text().partition("## Errors")[2].partition("## Bounds")[0]
    documented = {
        f"urn:fairgate:problem:{name}": int(status)
        for name, status in re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", table, re.M)
    }
    assert documented.keys() == errors.TYPES.keys()
    source = (ROOT / "crates/fairgate-run/src/http/problem.rs").read_text()
    assert set(re.findall(r'"(urn:fairgate:problem:[a-z-]+)"', source)) == errors.TYPES.keys()
    assert len(set(errors.TYPES.values())) == len(errors.TYPES)
    for kind, status in documented.items():
        body = problem(kind, status=status)
        answer = httpx.Response(status, json=body, headers={"Content-Type": "application/problem+json"})
        with pytest.raises(errors.TYPES[kind], match="A title") as raised:
            answering(answer).health()
        assert isinstance(raised.value, fg.FairgateError)
        assert raised.value.problem.status == status


TEXTS = st.text(max_size=30)
MISTAKES = st.fixed_dictionaries(
    {"message": TEXTS, "help": TEXTS}, optional={"place": st.none() | TEXTS, "new": TEXTS}
)
PROBLEMS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(sorted(errors.TYPES)) | TEXTS,
        "title": TEXTS,
        "status": st.integers(400, 599),
        "detail": TEXTS,
    },
    optional={
        "errors": st.lists(MISTAKES, max_size=3),
        "revision": st.none() | st.integers(0, 2**64 - 1),
        "instance": TEXTS,
    },
)
TAGS = st.none() | st.text(string.ascii_letters + string.digits + '"-', min_size=1)


@settings(deadline=None)
@given(PROBLEMS, TAGS, st.none() | st.integers(0, 99))
def test_a_problem_is_an_exception_with_its_members(
    body: dict[str, Any], etag: str | None, retry: int | None
) -> None:
    fields = {"Content-Type": "application/problem+json; charset=utf-8", "ETag": etag}
    if retry is not None:
        fields["Retry-After"] = str(retry)
    headers = {name: value for name, value in fields.items() if value is not None}
    answer = httpx.Response(body["status"], content=json.dumps(body).encode(), headers=headers)
    with pytest.raises(errors.ProblemError) as raised:
        answering(answer).change(["class delete 7"])
    error = raised.value
    assert type(error) is errors.TYPES.get(body["type"], errors.ProblemError)
    assert (error.problem.type, error.problem.detail) == (body["type"], body["detail"])
    assert error.problem.revision == body.get("revision")
    assert [mistake.message for mistake in error.problem.errors] == [
        mistake["message"] for mistake in body.get("errors", [])
    ]
    assert (error.etag, error.retry_after) == (etag, retry)
    assert body["title"] in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.etag) == (type(error), str(error), etag)
    if isinstance(error, errors.Refused):
        assert all(mistake.help in str(error) for mistake in error.errors)


@settings(deadline=None)
@given(
    st.integers(200, 599).filter(lambda status: status != 304),
    st.sampled_from(["application/problem+json", "application/json", "text/html", ""]),
    st.binary(max_size=60)
    | st.recursive(st.none() | st.integers() | TEXTS, st.lists).map(lambda value: json.dumps(value).encode()),
)
def test_any_other_answer_is_unexpected(status: int, media_type: str, body: bytes) -> None:
    answer = httpx.Response(status, content=body, headers={"Content-Type": media_type})
    with pytest.raises(client.UnexpectedAnswer, match=str(status)) as raised:
        answering(answer).trees()
    assert raised.value.status == status
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_an_answer_without_its_tag_is_unexpected() -> None:
    """Its empty tag would be no condition."""
    answer = httpx.Response(200, json={"revision": 3, "directions": []})
    with pytest.raises(client.UnexpectedAnswer, match="ETag"):
        answering(answer).trees()
    with pytest.raises(client.UnexpectedAnswer, match="304"):
        answering(httpx.Response(304)).health()


def test_a_newer_run_may_say_more() -> None:
    body = {"name": "home", "pid": 7, "version": "9.0.0", "uptime_s": 1.5, "revision": 4, "weather": "fair"}
    body |= {"subscribers": True, "packets": False, "may_change": True}
    health = answering(httpx.Response(200, json=body)).health()
    assert (health.name, health.revision) == ("home", 4)
    entry = {
        "class": 16,
        "shaped": {"down_bps": 7, "up_bps": 7, "colour": "blue"},
        "subscriber": {"id": "7", "prefixes": [], "colour": "blue"},
    }
    answer = httpx.Response(200, json=entry, headers={"ETag": '"x"'})
    assert answering(answer).subscriber("7").subscriber.id == "7"
    with pytest.raises(ValueError, match="Entry has no `colour`; it has down, "):
        Entry(colour="blue")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("failure", "exception"),
    [
        (httpx.ConnectError("no route"), client.Unreachable),
        (httpx.RemoteProtocolError("gone"), client.Unreachable),
        (httpx.ReadTimeout("late"), client.TimedOut),
        (httpx.ConnectTimeout("late"), client.TimedOut),
        (httpx.PoolTimeout("late"), client.TimedOut),
    ],
)
def test_a_broken_connection_is_an_exception(failure: Exception, exception: type[Exception]) -> None:
    with pytest.raises(exception, match="http://127") as raised:
        answering(failure).health()
    assert isinstance(raised.value, ConnectionError | TimeoutError)
    assert isinstance(raised.value, client.ClientError)


def test_what_only_reads_is_asked_again_if_the_connection_was_closed() -> None:
    """A run closes each connection after a minute, perhaps while a request is on its way."""
    body = {
        "name": "home",
        "pid": 7,
        "version": "0.1.0",
        "uptime_s": 1.5,
        "revision": 4,
        "subscribers": False,
        "packets": False,
        "may_change": True,
    }
    seen: list[str] = []

    def once(request: httpx.Request) -> httpx.Response:
        seen.append(request.method)
        if len(seen) == 1:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        return httpx.Response(200, json=body)

    run = Client("http://127.0.0.1", _transport=httpx.MockTransport(once))
    assert run.health().revision == 4
    assert seen == ["GET", "GET"]
    seen.clear()
    # Whether it was made is not known.
    with pytest.raises(client.Unreachable):
        run.change(["class delete 7"])
    assert seen == ["POST"]


# httpcore does not close the socket of a connection that fails; Python does.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_where_no_run_is_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(client.Unreachable, match="help: does a run offer its API there"):
        Client(f"unix:{tmp_path}/none.sock").health()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{tmp_path}/bound.sock")
    with pytest.raises(client.Unreachable, match="help: does a run offer its API there"):
        Client(f"unix:{tmp_path}/bound.sock").health()
    # It takes the connection, and says nothing.
    listener.listen()
    with pytest.raises(client.TimedOut, match=r"no answer to GET /v1/health within 0.05 s"):
        Client(f"unix:{tmp_path}/bound.sock", timeout=0.05).health()
    listener.close()


@pytest.mark.parametrize(
    "address",
    ["", "unix:", "/run/api.sock", "localhost:8443", "https://", "https://a/v1", "https://a?b", "ftp://a",
     "https://name:secret@a", "https://a:b", "unix:a\0b", 7],
)  # fmt: skip
def test_a_wrong_address_is_refused(address: Any) -> None:
    with pytest.raises(fg.InputError, match="address"):
        Client(address)


@pytest.mark.parametrize(
    "token", ["", f"{TOKEN}\n", f"alice {TOKEN}", TOKEN + "ä", f"{TOKEN}\r\nX: y", TOKEN.encode()]
)
def test_a_wrong_token_is_refused_and_not_shown(token: Any) -> None:
    with pytest.raises(fg.InputError, match="token") as raised:
        Client("https://router:8443", token=token)
    assert TOKEN not in str(raised.value)


def test_what_would_not_be_safe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fg.InputError, match="anybody could read the token"):
        Client("http://router:8443", token=TOKEN)
    with pytest.raises(fg.InputError, match="the kernel says who asks"):
        Client("unix:/run/fairgate/api.sock", token=TOKEN)
    for wrong in (tmp_path / "none.pem", Path(__file__)):
        with pytest.raises(fg.InputError, match="no file of certificates in PEM"):
            Client("https://router:8443", token=TOKEN, ca=wrong)
    authority = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(authority))
    for timeout in (0, -1, float("nan")):
        with pytest.raises(fg.InputError, match="timeout"):
            Client("https://router:8443", token=TOKEN, ca=authority, timeout=timeout)
    run = Client("https://router:8443", token=TOKEN, ca=authority, timeout=None)
    assert TOKEN not in repr(run)
    run.close()
    with pytest.raises(client.ClientError, match="is closed"):
        run.health()


@settings(deadline=None)
@given(st.text(min_size=1))
def test_any_name_is_one_part_of_the_path(name: str) -> None:
    seen: list[httpx.Request] = []
    run = answering(httpx.Response(200, json={}), seen)
    try:
        run.subscriber(name)
    except fg.InputError:
        assert name in (".", "..") or any("\ud800" <= character <= "\udfff" for character in name)
        assert not seen
    except client.UnexpectedAnswer:
        prefix, _, last = seen[0].url.raw_path.decode().rpartition("/")
        assert (prefix, unquote(last)) == ("/v1/subscribers", name)


def test_arguments_become_members_of_the_body() -> None:
    seen: list[httpx.Request] = []
    made = {"revision": 8, "pause_us": 85.0, "dropped": 0}
    run = answering(httpx.Response(200, json=made, headers={"ETag": '"a-8"'}), seen)
    assert run.change(line for line in ["class delete 7"]).etag == '"a-8"'
    run.change(["x"], from_="eth0", if_match='"a-7"')
    run.patch_subscriber("7", {"down": None})
    run.put_subscriber("7", Entry(prefixes=["192.0.2.7"], down="7mbit"))
    assert [json.loads(request.content) for request in seen] == [
        {"lines": ["class delete 7"]},
        {"from": "eth0", "lines": ["x"]},
        {"down": None},
        {"prefixes": ["192.0.2.7"], "down": "7mbit"},
    ]
    assert [request.headers.get("If-Match") for request in seen] == [None, '"a-7"', None, None]
    assert {request.headers["Content-Type"] for request in seen} == {"application/json"}
    seen.clear()
    for wrong in ("", "ä", "a\nb", 7):
        with pytest.raises(fg.InputError, match="if_match"):
            run.change(["x"], if_match=wrong)  # type: ignore[arg-type]
    # Its letters would be the lines.
    with pytest.raises(fg.InputError, match="lines"):
        run.change("class delete 7")
    with pytest.raises(fg.InputError, match="JSON"):
        run.patch_subscriber("7", {"down": float("nan")})
    with pytest.raises(fg.InputError, match="JSON"):
        run.patch_subscriber("7", {"down": object()})
    assert seen == []


class Stream(httpx.SyncByteStream):
    """A body in parts, which may break."""

    def __init__(self, parts: list[bytes | Exception]) -> None:
        self.parts = parts
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        for part in self.parts:
            if isinstance(part, Exception):
                raise part
            yield part

    def close(self) -> None:
        self.is_closed = True


ROW = {
    "from": "eth0",
    # It has what other functions take for the end of a line.
    "class": "1\u2028",
    "discipline": "fifo",
    "at_s": 1.4,
    "seconds": 0.4,
    "sent": {"packets": 3, "bytes": 300},
    "delay": {"packets": 3, "p50_us": 1.0, "p95_us": 2.0, "p99_us": 3.0, "max_us": 4.0},
    "marked": 0,
    "backlog": {"packets": 0, "bytes": 0},
}


def line(at_s: float, *rows: dict[str, Any]) -> bytes:
    document = {"at_s": at_s, "missed_delays": 0, "rows": rows}
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


@settings(deadline=None)
@given(st.lists(st.integers(0, 600), max_size=8))
def test_a_stream_may_come_in_any_parts(cuts: list[int]) -> None:
    body = line(1.0) + line(1.4, ROW) + line(1.8, ROW, ROW)
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    parts = [body[begin:end] for begin, end in itertools.pairwise(places)]
    stream = Stream([b"", *parts])
    seen: list[httpx.Request] = []
    intervals = list(answering(httpx.Response(200, stream=stream), seen).intervals(interval=0.25))
    assert [(each.at_s, len(each.rows)) for each in intervals] == [(1.0, 0), (1.4, 1), (1.8, 2)]
    row = intervals[1].rows[0]
    assert (row.from_, row.class_, row.sent.bytes, row.drops, row.mean_delay_us) == (
        "eth0", "1\u2028", 300, {}, None
    )  # fmt: skip
    assert row.delay is not None
    assert row.delay.p95_us == 2.0
    assert stream.is_closed
    [request] = seen
    assert request.url.query == b"interval_us=250000"
    # An interval more than for other answers.
    assert request.extensions["timeout"]["read"] == 30.25


def test_a_stream_is_closed_with_its_generator() -> None:
    stream = Stream([line(1.0), line(1.4, ROW), AssertionError("it is closed by now")])
    seen: list[httpx.Request] = []
    run = answering(httpx.Response(200, stream=stream), seen)
    intervals = run.intervals()
    # Nothing is asked for that nobody takes.
    assert not seen
    assert next(intervals).at_s == 1.0
    assert not stream.is_closed
    intervals.close()
    assert stream.is_closed
    with pytest.raises(StopIteration):
        next(intervals)
    run.close()
    with pytest.raises(client.ClientError, match="is closed"):
        next(run.intervals())


@pytest.mark.parametrize(
    ("failure", "exception", "text"),
    [
        (httpx.RemoteProtocolError("incomplete chunked read"), client.Unreachable, "http://127.*incomplete"),
        (httpx.ReadError("reset"), client.Unreachable, "reset"),
        (httpx.ReadTimeout("late"), client.TimedOut, r"no answer to GET /v1/intervals within 30\.4 s"),
        (b'{"at_s": 1.8', client.UnexpectedAnswer, "its last line has no end"),
        (b'{"at_s": 1.8}\n', client.UnexpectedAnswer, "missed_delays"),
        (b"<html>\n", client.UnexpectedAnswer, "200"),
    ],
)
def test_a_stream_that_is_cut_raises(failure: Any, exception: type[Exception], text: str) -> None:
    stream = Stream([line(1.0), line(1.4, ROW), failure])
    intervals = answering(httpx.Response(200, stream=stream)).intervals()
    assert [next(intervals).at_s, next(intervals).at_s] == [1.0, 1.4]
    with pytest.raises(exception, match=text):
        next(intervals)
    assert stream.is_closed


def test_a_connection_that_ends_within_a_stream_is_no_end_of_it(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    first = line(1.0)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/api.sock")
        listener.listen()
        with ThreadPoolExecutor(2) as others, Client(f"unix:{tmp_path}/api.sock") as run:
            accepted = others.submit(listener.accept)
            intervals = run.intervals()
            taken = others.submit(lambda: (next(intervals), list(intervals)))
            with accepted.result()[0] as connection:
                connection.recv(1 << 16)
                connection.sendall(head + b"%x\r\n" % len(first) + first + b"\r\n")
            with pytest.raises(client.Unreachable, match=r"api\.sock.*incomplete"):
                taken.result()


def test_a_stream_is_refused_as_any_other_request() -> None:
    for kind, exception in errors.TYPES.items():
        answer = httpx.Response(503, json=problem(kind), headers={"Content-Type": "application/problem+json"})
        with pytest.raises(exception, match="A detail"):
            next(answering(answer).intervals())
    with pytest.raises(client.UnexpectedAnswer, match="502"):
        next(answering(httpx.Response(502, stream=Stream([b"<html>"]))).intervals())
    seen: list[httpx.Request] = []
    for wrong in (0, -1, 0.0009, 3601, float("nan"), True, "1", None):
        with pytest.raises(fg.InputError, match="interval"):
            answering(httpx.Response(200), seen).intervals(interval=wrong)  # type: ignore[arg-type]
    assert not seen


@pytest.mark.parametrize("package", ["httpx", "pydantic"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("fairgate.client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    with pytest.raises(fg.MissingPackageError, match=f"fairgate.client needs the package `{package}`"):
        importlib.import_module("fairgate.client")
