"""The client of a run's API."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx

from .. import _arguments
from ..errors import InputError
from ._operations import Operations
from ._transport import Transport
from .models import DirectionStatus, Interval, Status

_T = TypeVar("_T")

__all__ = ["Client"]


class Client(Operations):
    """A client of the API of a run. docs/api.md describes the API, and each method here is a route of it.

    Several threads may use a client at the same time. Connections are kept open between requests; `close` or
    the end of a `with` block closes them.

    Parameters
    ----------
    address : str
        Where the API is, `unix:/run/fairgate/api.sock` or `https://router:8443`. `http://127.0.0.1:9150` is
        an address of metrics without a token, where only `metrics` is answered.
    token : str, optional
        The token, over TLS: without the name that its line in the file of the run begins with.
    ca : path, optional
        A file with the certificate that has signed that of the run, in PEM. Default: whom the system trusts.
    timeout : float or None
        For how many seconds to wait for a connection, and for each part of an answer. None waits forever.

    Examples
    --------
    >>> with Client("unix:/run/fairgate/api.sock") as run:
    ...     before = run.trees()
    ...     made = run.change(["class change 30 rate=7mbit"], from_="eth0", if_match=before.etag)
    >>> made.revision == before.revision + 1
    True
    >>> made.dropped
    0

    From another machine:

    >>> with Client("https://router:8443", token=token, ca="/etc/fairgate/ca.pem") as run:
    ...     len(run.subscribers().subscribers)
    2
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        timeout: float | None = 30.0,
        _transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = Transport(address, token, ca, timeout, _transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._transport.address!r})"

    def close(self) -> None:
        """Close all connections. After that, no method can be called.

        Examples
        --------
        >>> run = Client("unix:/run/fairgate/api.sock")
        >>> run.close()
        """
        self._transport.close()

    @overload
    def status(self, *, used: bool = False, classes: str | None = None) -> Status: ...

    @overload
    def status(self, from_: str, *, used: bool = False, classes: str | None = None) -> DirectionStatus: ...

    def status(
        self, from_: str | None = None, *, used: bool = False, classes: str | None = None
    ) -> Status | DirectionStatus:
        """Return the whole status, or that of one direction.

        Parameters
        ----------
        from_ : str, optional
            The interface that the direction receives from.
        used : bool, optional
            Leave out what no packet has come to, and the description of the trees: with thousands of classes
            this is much faster.
        classes : str, optional
            The numbers of a page of the classes at the roots, as ``16-115``: only these are read.

        Returns
        -------
        Status or DirectionStatus

        Raises
        ------
        NotFound
            No direction is from this interface.

        Examples
        --------
        >>> [direction.from_ for direction in run.status().directions]
        ['eth0', 'eth1']
        >>> run.status("eth0").tree.discipline
        'htb'
        """
        if from_ is None:
            return super().status(used=used, classes=classes)
        return self.direction_status(from_, used=used, classes=classes)

    def intervals(self, *, interval: float = 0.4) -> Generator[Interval, None, None]:
        """Yield what each class did, interval after interval, as long as the run goes on.

        The first one has no rows: it says that the run records. The request is sent when it is taken. The
        connection is closed with the generator: at the end of a loop that was left, by its `close`, or by
        `contextlib.closing`. A run has four clients at the same time.

        Parameters
        ----------
        interval : float
            How long an interval is, seconds: 0.001 to 3600.

        Yields
        ------
        Interval
            A row for each root, and for each other discipline where packets came, left or waited.

        Raises
        ------
        Busy
            Four clients are told of each interval already.
        Unreachable
            The connection broke, or this program took an interval more than 5 s late.

        Examples
        --------
        >>> from contextlib import closing
        >>> with closing(run.intervals(interval=0.1)) as intervals:
        ...     begun = next(intervals)
        ...     first = next(intervals)
        >>> len(begun.rows), {row.from_ for row in first.rows} == {"eth0", "eth1"}
        (0, True)
        """
        seconds = _arguments.finite("interval", interval)
        if not 0.001 <= seconds <= 3600:
            raise InputError(f"interval is {interval!r}, but must be from 0.001 to 3600 seconds")
        query = {"interval_us": round(seconds * 1e6)}
        return self._transport.stream("/v1/intervals", Interval, query=query, pause=seconds)

    def request(
        self,
        method: str,
        path: str,
        into: type[_T],
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
    ) -> _T | None:
        """Send any request: one that this version has no method for.

        Parameters
        ----------
        method : str
            The method of HTTP.
        path : str
            The path, with all that must be escaped in it escaped.
        into : type
            What the answer is: a document of `fairgate.client.models`, a type of JSON's values such as
            `dict`, `str` for text, `bytes` for the answer as it is.
        query, headers : mapping, optional
            The parameters behind the question mark, and fields of the head. None leaves one out.
        body : optional
            What is sent as JSON.

        Returns
        -------
        into or None
            The answer. None is status 304: the client has it already.

        Examples
        --------
        >>> run.request("GET", "/v1/health", dict)["revision"] == run.health().revision
        True
        """
        return self._transport.ask_unless_known(method, path, into, query=query, headers=headers, body=body)
