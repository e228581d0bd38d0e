"""The disciplines and their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from . import _arguments, _native
from .errors import InputError

__all__ = ["Description", "Listing", "ParameterDescription", "list"]


class ParameterDescription(NamedTuple):
    """A parameter of a discipline.

    Attributes
    ----------
    name, unit : str
        Its name, and its unit (``bytes``, ``time``, ``rate``, ``packets`` and so on).
    default : str or None
        The value if it is not set. None if it must be.
    required : bool
        Whether it must be set.
    allowed : str
        The range.
    meaning : str
        What it does.
    """

    name: str
    unit: str
    default: str | None
    required: bool
    allowed: str
    meaning: str


class Description(NamedTuple):
    """A discipline.

    Attributes
    ----------
    name, family : str
        Its name and family.
    holds : str
        ``none``, ``inner`` or ``classes``.
    summary, when : str
        What it is, and when to use it.
    takes_filters : bool
        Whether filters assign packets to its classes or flows.
    parameters, class_parameters : tuple of ParameterDescription
        Its parameters, and those of each of its classes.
    """

    name: str
    family: str
    holds: str
    summary: str
    when: str
    takes_filters: bool
    parameters: tuple[ParameterDescription, ...]
    class_parameters: tuple[ParameterDescription, ...]

    def _repr_html_(self) -> str:
        from ._html import grid

        rows = [
            [p.name, p.unit, "(required)" if p.required else str(p.default), p.allowed, p.meaning]
            for p in (*self.parameters, *self.class_parameters)
        ]
        table = grid(["parameter", "unit", "default", "allowed", "meaning"], rows)
        return f"<b>{self.name}</b>: {self.summary}<br>Use it: {self.when}{table}"


class Listing(tuple[Description, ...]):
    """Descriptions of disciplines, as a tuple."""

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names, each once."""
        return tuple(dict.fromkeys(each.name for each in self))

    def __repr__(self) -> str:
        return "\n".join(f"{each.name}: {each.summary}" for each in self)

    def _repr_html_(self) -> str:
        from ._html import grid

        return grid(["discipline", "use it", "what it is"], ([e.name, e.when, e.summary] for e in self))


def _described(entries: Iterator[dict[str, Any]]) -> Iterator[Description]:
    for entry in entries:
        own, of_classes = entry.pop("parameters"), entry.pop("class_parameters")
        yield Description(
            **entry,
            parameters=tuple(ParameterDescription(**p) for p in own),
            class_parameters=tuple(ParameterDescription(**p) for p in of_classes),
        )


def list(name: str | None = None) -> Listing:
    """Return the disciplines, as ``fairgate list`` does.

    Parameters
    ----------
    name : str, optional
        Only this one. One that exists with and without classes has two entries.

    Raises
    ------
    InputError
        If there is no such discipline.

    Examples
    --------
    >>> [p.name for p in list("fifo")[0].parameters]
    ['limit', 'limit_bytes', 'drop']
    """
    found = Listing(_described(iter(_native.disciplines())))
    if name is None:
        return found
    name = _arguments.text("the name", name)
    chosen = Listing(each for each in found if each.name == name)
    if not chosen:
        similar = get_close_matches(name, found.names, 1)
        hint = f"did you mean `{similar[0]}`? " if similar else ""
        raise InputError(f"there is no discipline `{name}`; {hint}fairgate.list() shows all")
    return chosen
