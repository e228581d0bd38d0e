"""Checks of arguments. An error names the argument, what it is, and what it must be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import Any, TypeVar

from .errors import InputError

_T = TypeVar("_T")

__all__ = ["finite", "instance", "listed", "mapping", "path", "refused", "text", "whole"]


def refused(name: str, value: object, rule: str) -> InputError:
    """Return the error for a value that an argument can't have."""
    return InputError(f"{name} is {value!r} of type {type(value).__name__}, but must be {rule}")


def text(name: str, value: object, rule: str = "text") -> str:
    """Return text."""
    if not isinstance(value, str):
        raise refused(name, value, rule)
    return value


def whole(name: str, value: object, least: int, most: int, more: str = "") -> int:
    """Return a whole number in a range. Numbers of numpy are numbers too, flags are not."""
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise InputError(f"{name} is {value!r}, but must be a whole number from {least} to {most}{more}")
    return number


def finite(name: str, value: object) -> float:
    """Return a finite number."""
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
        raise refused(name, value, "a finite number")
    return float(number)


def listed(name: str, values: object, rule: str = "a list") -> list[Any]:
    """Return the items of anything but text and mappings, of which a list was meant."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise refused(name, values, rule)
    return list(values)


def mapping(name: str, value: object, rule: str = "a dict") -> dict[Any, Any]:
    """Return a mapping as a dict."""
    if not isinstance(value, Mapping):
        raise refused(name, value, rule)
    return dict(value)


def path(name: str, value: str | PathLike[str]) -> str:
    """Return the path of a file or folder."""
    if not isinstance(value, str | PathLike):
        raise refused(name, value, "a path")
    return fspath(value)


def instance(name: str, value: object, kind: type[_T], rule: str) -> _T:
    """Return an object of a class."""
    if not isinstance(value, kind):
        raise refused(name, value, rule)
    return value
