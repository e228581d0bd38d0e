"""The exceptions of this package.

Every error of a user's input is an `InputError`, which is a `ValueError`. Its text is what the program
``fairgate`` shows: the location, the rule and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "BugError",
    "DisciplineError",
    "FairgateError",
    "InputError",
    "MissingPackageError",
    "Problem",
    "SimulationError",
    "SweepError",
]


class Problem(NamedTuple):
    """A mistake at a location of a text.

    Attributes
    ----------
    message : str
        What is wrong.
    label : str
        The rule in a few words.
    help : str
        The remedy.
    file : str
        The name of the text. It is ``python`` for objects, which are checked as TOML.
    line, column : int
        The location, both counted from 1.
    """

    message: str
    label: str
    help: str
    file: str
    line: int
    column: int


class FairgateError(Exception):
    """The base of all exceptions of this package."""


class InputError(FairgateError, ValueError):
    """A wrong input: a setting, a file, an argument.

    Attributes
    ----------
    problems : tuple of Problem
        The mistakes with their locations. Empty for an argument, which has no location.
    """

    def __init__(self, text: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(text, tuple(problems))
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return str(self.args[0])


class SimulationError(FairgateError, RuntimeError):
    """A simulation that has no results: it needs too much memory, or a capture can't be written."""


class DisciplineError(FairgateError, RuntimeError):
    """A discipline written in Python that broke its contract, or raised an exception.

    Attributes
    ----------
    discipline : str
        The name of the discipline.
    call : str
        The call that failed, such as ``enqueue(packet 17, now=1250000)``.
    """

    def __init__(self, discipline: str, call: str, what: str) -> None:
        super().__init__(discipline, call, what)
        self.discipline = discipline
        self.call = call
        self.what = what

    def __str__(self) -> str:
        return f"`{self.discipline}`, {self.call}: {self.what}"


class SweepError(FairgateError, RuntimeError):
    """A sweep that is not complete. What was finished is kept; the same call continues."""


class MissingPackageError(FairgateError, ImportError):
    """A package is not installed that fairgate needs only for some tasks.

    Attributes
    ----------
    name : str
        The name of the package, as for every ImportError.
    """

    def __init__(self, package: str, purpose: str) -> None:
        super().__init__(package, purpose, name=package)
        self.purpose = purpose

    def __str__(self) -> str:
        return (
            f"{self.purpose} needs the package `{self.name}`, which is not installed\n"
            f"  help: pip install {self.name}"
        )


class BugError(FairgateError, RuntimeError):
    """A bug in fairgate. No figures are returned, because they would be wrong."""
