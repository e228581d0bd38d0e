"""The exceptions of the client.

The errors of the API are problem details (RFC 9457). Each `type` of them is an exception of its own.
"""

from __future__ import annotations

from ..errors import FairgateError
from .models import Mistake, Problem

__all__ = [
    "BugInRun",
    "Busy",
    "ClientError",
    "CrossSite",
    "Forbidden",
    "Malformed",
    "MediaType",
    "MethodNotAllowed",
    "Misdirected",
    "NotFound",
    "ProblemError",
    "Refused",
    "Silent",
    "Slow",
    "Stale",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "UnexpectedAnswer",
    "Unreachable",
]

_PREFIX = "urn:fairgate:problem:"


class ClientError(FairgateError, RuntimeError):
    """The base of all exceptions of the client."""


class Unreachable(ClientError, ConnectionError):
    """There is no connection, or it broke. A change may have been made if it broke before the answer."""


class TimedOut(Unreachable, TimeoutError):
    """No answer came within the time-out. A change may be made all the same."""


class UnexpectedAnswer(ClientError):
    """The answer is not what the API answers: from another program, or from a run of another version.

    Attributes
    ----------
    status : int
        The HTTP status code.
    """

    def __init__(self, status: int, what: str) -> None:
        super().__init__(status, what)
        self.status = status
        self.what = what

    def __str__(self) -> str:
        return f"the answer with status {self.status} is not one of this version's API: {self.what}"


class ProblemError(ClientError):
    """The run answers with a problem. Problems of a type that this version does not know are of this class.

    Attributes
    ----------
    problem : Problem
        The document: `type`, `title`, `status`, `detail`, and perhaps `errors` and `revision`.
    etag : str or None
        The entity tag of what has changed since (`Stale`).
    retry_after : float or None
        After how many seconds to try again (`Busy`, `Silent`).

    Examples
    --------
    >>> try:
    ...     run.change(["class delete 99"], from_="eth0")
    ... except ProblemError as error:
    ...     print(type(error).__name__, error.problem.type)
    Refused urn:fairgate:problem:refused
    """

    def __init__(self, problem: Problem, etag: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(problem, etag, retry_after)
        self.problem = problem
        self.etag = etag
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.problem.title}: {self.problem.detail}"


class Malformed(ProblemError):
    """The run does not understand the request."""


class Unauthorized(ProblemError):
    """The token is missing or wrong."""


class Forbidden(ProblemError):
    """The socket is not for this user."""


class CrossSite(ProblemError):
    """The request looks like one that a browser sends for a page of another site."""


class NotFound(ProblemError):
    """There is no such direction, class, subscriber or route."""


class MethodNotAllowed(ProblemError):
    """The path has no such method."""


class Slow(ProblemError):
    """The body took too long."""


class Stale(ProblemError):
    """Somebody has changed it since it was read. Nothing was changed.

    Examples
    --------
    >>> etag = run.trees().etag
    >>> made = run.change(["class change 30 rate=6mbit"], from_="eth0")    # by somebody else
    >>> try:
    ...     run.change(["class change 30 rate=7mbit"], from_="eth0", if_match=etag)
    ... except Stale as error:
    ...     error.revision == made.revision and error.etag == made.etag
    True
    """

    @property
    def revision(self) -> int | None:
        """The revision of the trees by now. None if it is a subscriber that has changed."""
        return self.problem.revision


class TooLarge(ProblemError):
    """The body has more than 16 MiB."""


class MediaType(ProblemError):
    """The body is not JSON."""


class Misdirected(ProblemError):
    """The request is for another host. Only of metrics without a token."""


class Refused(ProblemError):
    """The run refuses it. Nothing was changed.

    Examples
    --------
    >>> try:
    ...     run.change(["class change 30 rate=7mbit", "class delete 99"], from_="eth0")
    ... except Refused as error:
    ...     [mistake.place for mistake in error.errors]
    ['line 2, word 3']
    """

    @property
    def errors(self) -> list[Mistake]:
        """All mistakes, each with its place, the rule and the remedy."""
        return self.problem.errors

    def __str__(self) -> str:
        lines = [self.problem.title]
        for mistake in self.errors:
            place = f"{mistake.place}: " if mistake.place else ""
            lines += [f"{place}{mistake.message}", f"  help: {mistake.help}"]
        return "\n".join(lines) if self.errors else super().__str__()


class BugInRun(ProblemError):
    """A bug in the run."""


class Busy(ProblemError):
    """The run answers too many requests. Try again after `retry_after` seconds."""


class Silent(ProblemError):
    """The run ends, or its forwarding threads do not answer."""


TYPES: dict[str, type[ProblemError]] = {
    _PREFIX + name: exception
    for name, exception in {
        "busy": Busy,
        "cross-site": CrossSite,
        "forbidden": Forbidden,
        "internal": BugInRun,
        "malformed": Malformed,
        "media-type": MediaType,
        "method": MethodNotAllowed,
        "misdirected": Misdirected,
        "not-found": NotFound,
        "refused": Refused,
        "silent": Silent,
        "slow": Slow,
        "stale": Stale,
        "too-large": TooLarge,
        "unauthorized": Unauthorized,
    }.items()
}
