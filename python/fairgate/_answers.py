"""Commands of the program as functions: arguments in, a document out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from . import _native
from .errors import BugError, InputError, Problem, SimulationError

__all__ = ["answer", "option"]


def option(name: str, value: object | None) -> list[str]:
    """Return an option with its value, or nothing if the value is None."""
    return [] if value is None else [f"--{name}={value}"]


def answer(
    arguments: Iterable[str], file: str = "", name: str = "", *, is_lab: bool = False
) -> dict[str, Any]:
    """Run a command and return its document.

    Parameters
    ----------
    arguments : iterable of str
        What follows the program's name.
    file, name : str
        In messages `file` is called `name`.
    is_lab : bool
        The command is one of `fairgate-lab`.

    Raises
    ------
    InputError
        If the input is wrong.
    SimulationError
        If the system refused something.
    BugError
        If the figures do not add up.
    """
    code, text, message = _native.answer(list(arguments), is_lab)
    if file:
        text, message = text.replace(file, name), message.replace(file, name)
    document: dict[str, Any] = json.loads(text)
    if code in (0, 1) or document.get("schema") != "fairgate.error/1":
        return document
    if code == 2:
        located = [error for error in document["errors"] if error.get("file")]
        problems = [
            Problem(e["message"], "", e["help"] or "", e["file"], e["line"], e["column"]) for e in located
        ]
        raise InputError(message.strip("\n"), problems)
    raise (SimulationError if code == 3 else BugError)(message.strip("\n"))
