"""A client of the HTTP API of a run: its state, its trees, and changes of them.

``pip install 'fairgate[client]'`` installs what it needs. The documents in `fairgate.client.models` and a
method for each route are generated from the OpenAPI document of the API.

Examples
--------
>>> from fairgate.client import Client, Stale
>>> with Client("unix:/run/fairgate/api.sock") as run:
...     run.status("eth0").sent.packets >= 0
True
"""

from __future__ import annotations

from .._optional import optional

# Before the modules that need them, so that the message names the remedy.
with optional("fairgate.client"):
    import httpx as _httpx  # noqa: F401
    import pydantic as _pydantic  # noqa: F401

from . import models
from ._client import Client
from .errors import (
    BugInRun,
    Busy,
    ClientError,
    CrossSite,
    Forbidden,
    Malformed,
    MediaType,
    MethodNotAllowed,
    Misdirected,
    NotFound,
    ProblemError,
    Refused,
    Silent,
    Slow,
    Stale,
    TimedOut,
    TooLarge,
    Unauthorized,
    UnexpectedAnswer,
    Unreachable,
)
from .models import Entry, TermsStatus

__all__ = [
    "BugInRun",
    "Busy",
    "Client",
    "ClientError",
    "CrossSite",
    "Entry",
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
    "TermsStatus",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "UnexpectedAnswer",
    "Unreachable",
    "models",
]
