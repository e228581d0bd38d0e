"""Requests and answers over HTTP. What goes wrong is an exception of this package."""

from __future__ import annotations

import functools
import json
import math
import os
import ssl
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from .. import _arguments
from .._native import __version__
from ..errors import InputError
from ._base import Tagged
from .errors import TYPES, ClientError, ProblemError, TimedOut, UnexpectedAnswer, Unreachable
from .models import Problem

_T = TypeVar("_T")

_RULE = "an address of an API, `unix:/run/fairgate/api.sock` or `https://HOST:PORT`"
_SHOWN = 200


class Transport:
    """Sends requests to one run, and reads its answers."""

    def __init__(
        self,
        address: str,
        token: str | None,
        ca: str | os.PathLike[str] | None,
        timeout: float | None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.address = _arguments.text("address", address, _RULE)
        base, own = _place(address, is_secret=token is not None, has_ca=ca is not None)
        headers = {"User-Agent": f"fairgate-python/{__version__}"}
        if token is not None:
            headers["Authorization"] = f"Bearer {_checked_token(token)}"
        if timeout is not None and _arguments.finite("timeout", timeout) <= 0:
            raise InputError(f"timeout is {timeout!r}, but must be above 0 seconds, or None to wait forever")
        self._http = httpx.Client(
            base_url=base,
            headers=headers,
            timeout=timeout,
            verify=_trusted(ca) if base.startswith("https:") else False,
            transport=transport or own,
            # The environment's proxy is for other sites, and a token is for this run only.
            trust_env=False,
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        into: type[_T],
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
    ) -> _T:
        """Send a request and return its answer."""
        answer = self.ask_unless_known(method, path, into, query=query, headers=headers, body=body)
        if answer is None:
            raise UnexpectedAnswer(httpx.codes.NOT_MODIFIED, "nothing was said of what is known already")
        return answer

    def ask_unless_known(
        self,
        method: str,
        path: str,
        into: type[_T],
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
    ) -> _T | None:
        """Send a request and return its answer, or None if the client has it already (status 304)."""
        request = self._request(method, path, query, headers, body)
        with self._failing(request):
            response = self._exchange(request)
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        if not response.is_success:
            raise problem_of(response)
        return _read(response, into)

    def stream(
        self, path: str, into: type[_T], *, query: Mapping[str, Any], pause: float
    ) -> Generator[_T, None, None]:
        """Send a request, and yield the document in each line of its answer.

        The run needs `pause` seconds for each of them. The connection is closed with the generator.
        """
        request = self._request("GET", path, query, None, None)
        times = request.extensions["timeout"]
        if times["read"] is not None:
            request.extensions["timeout"] = times | {"read": times["read"] + pause}
        with self._failing(request):
            response = self._exchange(request, is_stream=True)
        with closing(response):
            if not response.is_success:
                with self._failing(request):
                    response.read()
                raise problem_of(response)
            rest = b""
            parts = response.iter_bytes()
            while True:
                with self._failing(request):
                    part = next(parts, None)
                if part is None:
                    break
                # Text may have what other functions take for the end of a line.
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    yield _document(response, line, into)
            if rest:
                raise UnexpectedAnswer(response.status_code, "its last line has no end")

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str | None] | None,
        body: Any,
    ) -> httpx.Request:
        sent = {name: _field(name, value) for name, value in (headers or {}).items() if value is not None}
        wanted = {name: _unicode(name, value) for name, value in (query or {}).items() if value is not None}
        if self._http.is_closed:
            raise ClientError(f"the client of {self.address} is closed")
        content = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            content = _encoded(body)
        return self._http.build_request(method, path, params=wanted, headers=sent, content=content)

    @contextmanager
    def _failing(self, request: httpx.Request) -> Iterator[None]:
        """Let a connection that breaks be an exception of this package."""
        try:
            yield
        except httpx.TimeoutException as error:
            asked = f"{request.method} {request.url.path}"
            seconds = request.extensions["timeout"]["read"]
            raise TimedOut(f"{self.address}: no answer to {asked} within {seconds:g} s") from error
        except httpx.HTTPError as error:
            raise Unreachable(f"{self.address}: {_reason(error)}") from error
        except httpx.StreamError as error:
            raise ClientError(f"the client of {self.address} is closed") from error

    def _exchange(self, request: httpx.Request, *, is_stream: bool = False) -> httpx.Response:
        try:
            return self._http.send(request, stream=is_stream)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            # A run closes each connection after a minute: perhaps just now. What only reads is asked again.
            if request.method != "GET":
                raise
            return self._http.send(request, stream=is_stream)


def path_of(template: str, **parts: str) -> str:
    """Return a path. A part may have any characters: `/` is escaped, too."""
    for name, part in parts.items():
        # Dots would mean another path.
        if _unicode(name, _arguments.text(name, part)) in ("", ".", ".."):
            raise InputError(f"{name} is {part!r}, which can't be part of a path")
    return template.format_map({name: quote(part, safe="") for name, part in parts.items()})


def plain(value: Any) -> Any:
    """Return a body as values of JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(plain(body), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"what is to be sent can't be written as JSON: {error}") from error


def _unicode(name: str, value: Any) -> Any:
    """Return a value. Text with half a character, which Python allows, can't be part of a request."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name} is {value!r}, which is no text of Unicode: {error.reason}") from error
    return value


def problem_of(response: httpx.Response) -> ClientError:
    """Return the exception of an answer that is no success."""
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type != "application/problem+json":
        return UnexpectedAnswer(response.status_code, _extract(response))
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError as error:
        return UnexpectedAnswer(response.status_code, _mistakes(error))
    exception = TYPES.get(problem.type, ProblemError)
    return exception(problem, response.headers.get("ETag"), _seconds(response.headers.get("Retry-After")))


def _place(address: str, *, is_secret: bool, has_ca: bool) -> tuple[str, httpx.BaseTransport | None]:
    """Return the URL of an address, and how to get there."""
    kind, colon, rest = address.partition(":")
    if kind == "unix" and colon:
        if not rest or "\0" in rest:
            raise _arguments.refused("address", address, _RULE)
        if is_secret or has_ca:
            raise InputError(
                "a unix socket takes neither token nor ca: the kernel says who asks; leave them out"
            )
        # Nothing is verified without TLS: loading certificates would take longer than the request.
        return "http://localhost", httpx.HTTPTransport(uds=rest, verify=False)
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise InputError(f"address is {address!r}: {error}; it must be {_RULE}") from error
    is_bare = url.host and url.path in ("", "/") and not (url.userinfo or url.query or url.fragment)
    if url.scheme not in ("https", "http") or not is_bare:
        raise _arguments.refused("address", address, _RULE)
    if url.scheme == "http" and (is_secret or has_ca):
        raise InputError("over http: anybody could read the token; use https:")
    return str(url), None


def _checked_token(token: str) -> str:
    # The message must not have the token.
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
        raise InputError(
            "token must be text in ASCII without line breaks: the second word of a line of api_token"
        )
    if " " in token:
        raise InputError("token has a space: leave out the name that a line of api_token begins with")
    return token


def _trusted(ca: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """Return whom to trust: a certificate authority, or those of the system."""
    try:
        return ssl.create_default_context(cafile=None if ca is None else _arguments.path("ca", ca))
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"ca is {os.fspath(ca or '')!r}, which is no file of certificates in PEM: {error}"
        ) from error


def _field(name: str, value: object) -> str:
    if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable():
        argument = name.lower().replace("-", "_")
        raise _arguments.refused(argument, value, "an entity tag: `etag` of what was read")
    return value


def _reason(error: httpx.HTTPError) -> str:
    """Return what is wrong with a connection, and the remedy."""
    text = str(error) or type(error).__name__
    causes = list(_causes(error))
    if any(isinstance(cause, FileNotFoundError | ConnectionRefusedError) for cause in causes):
        return f"{text}\n  help: does a run offer its API there? `api` in [run], or `fairgate run --api`"
    if any(isinstance(cause, PermissionError) for cause in causes):
        return f"{text}\n  help: root, the user of the run and the members of `api_group` may use the socket"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"{text}\n  help: `ca` names the file of the certificate that has signed the run's"
    return text


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@functools.cache
def _reader(into: Any) -> TypeAdapter[Any]:
    return TypeAdapter(into)


def _read(response: httpx.Response, into: type[_T]) -> _T:
    """Return the document of an answer."""
    answer: Any
    if into is str:
        answer = response.text
    elif into is bytes:
        answer = response.content
    else:
        answer = _document(response, response.content, into)
    if isinstance(answer, Tagged):
        answer.etag = response.headers.get("ETag", "")
        if not answer.etag:
            raise UnexpectedAnswer(response.status_code, "it has no ETag")
    typed: _T = answer
    return typed


def _document(response: httpx.Response, text: bytes, into: type[_T]) -> _T:
    """Return the document of a text in JSON."""
    kind: Any = into
    try:
        document: _T = _reader(kind).validate_json(text)
    except ValidationError as error:
        raise UnexpectedAnswer(response.status_code, _mistakes(error)) from error
    return document


def _mistakes(error: ValidationError) -> str:
    mistakes = error.errors(include_url=False, include_input=False, include_context=False)
    first = mistakes[0]
    place = ".".join(str(part) for part in first["loc"])
    more = f", and {len(mistakes) - 1} more" if len(mistakes) > 1 else ""
    return f"{place}: {first['msg']}{more}" if place else f"{first['msg']}{more}"


def _extract(response: httpx.Response) -> str:
    text = response.text
    return repr(text[:_SHOWN]) + (" ..." if len(text) > _SHOWN else "")


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None
