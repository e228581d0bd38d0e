"""Writes TOML. The standard library reads it, but does not write it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import InputError

__all__ = ["Table", "Value", "clean", "dumps"]

Value = Any
"""Text, a number, a flag, or lists and tables of these."""

Table = dict[str, Value]
"""A table of TOML."""


def clean(place: str, value: object) -> Value:
    """Return a value as TOML has it, as a copy.

    Parameters
    ----------
    place : str
        What the value is, for the message of an error.
    value : object
        Text, a number, a flag; a sequence or mapping of these; an object with a method ``to_dict``.

    Raises
    ------
    InputError
        If TOML has no such value.
    """
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise InputError(f"{place} is {value}, but a whole number must be from -2^63 to 2^63 - 1")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{place} is {value}, but must be a finite number; leave it out for the default")
        return float(value)
    if isinstance(value, Mapping):
        table: Table = {}
        for key, below in value.items():
            if not isinstance(key, str):
                raise InputError(f"{place} has the key {key!r}, but keys must be text")
            if below is not None:
                table[key] = clean(f"{place}, `{key}`", below)
        return table
    if hasattr(value, "to_dict"):
        return clean(place, value.to_dict())
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [clean(f"{place}, item {number}", item) for number, item in enumerate(value, 1)]
    if hasattr(value, "item") and not isinstance(value, type):
        return clean(place, value.item())
    raise InputError(
        f'{place} is {value!r} of type {type(value).__name__}; write text with a unit ("20mbit", "5ms"), '
        "a number, True or False, or a list or dict of these"
    )


def dumps(document: Mapping[str, Value]) -> str:
    """Return a document as TOML. Lists of tables become ``[[...]]``, tables in them stay on their line."""
    lines: list[str] = []
    _table(lines, "", document)
    return "\n".join(lines).strip("\n") + "\n"


def _is_list_of_tables(value: Value) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _has_lists_of_tables(value: Value) -> bool:
    if isinstance(value, dict):
        return any(_is_list_of_tables(below) or _has_lists_of_tables(below) for below in value.values())
    return False


def _is_section(path: str, value: Value) -> bool:
    """Whether a table gets a header of its own."""
    return isinstance(value, dict) and (path == "" or path == "queue" or _has_lists_of_tables(value))


def _table(lines: list[str], path: str, table: Mapping[str, Value]) -> None:
    later: list[tuple[str, Value]] = []
    for key, value in table.items():
        if _is_list_of_tables(value) or _is_section(path, value):
            later.append((key, value))
        else:
            lines.append(f"{_key(key)} = {_inline(value)}")
    for key, value in later:
        name = f"{path}.{_key(key)}" if path else _key(key)
        if isinstance(value, dict):
            if name != "queue":
                lines += ["", f"[{name}]"]
            _table(lines, name, value)
            continue
        for item in value:
            lines += ["", f"[[{name}]]"]
            _table(lines, name, item)


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _text(key)


def _text(text: str) -> str:
    escaped = []
    for character in text:
        code = ord(character)
        if character in '"\\':
            escaped.append("\\" + character)
        elif code < 0x20 or code == 0x7F:
            escaped.append(f"\\u{code:04x}")
        elif 0xD800 <= code < 0xE000:
            raise InputError(f"the text {text!r} has a lone surrogate, which no file can hold")
        else:
            escaped.append(character)
    return '"' + "".join(escaped) + '"'


def _inline(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" in text else text + ".0"
    if isinstance(value, dict):
        if not value:
            return "{}"
        pairs = ", ".join(f"{_key(key)} = {_inline(below)}" for key, below in value.items())
        return f"{{ {pairs} }}"
    return "[" + ", ".join(_inline(item) for item in value) + "]"
