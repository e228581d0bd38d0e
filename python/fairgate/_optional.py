"""Packages that are imported only when they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import MissingPackageError


@contextmanager
def optional(purpose: str) -> Iterator[None]:
    """Name the remedy if a package that is imported here is not installed.

    Parameters
    ----------
    purpose : str
        What needs the package, for the message.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package == "fairgate":
            raise
        raise MissingPackageError(package, purpose) from error
