"""Disciplines written in Python.

A subclass of `Discipline` is a discipline like any other from its definition on: in trees, in scenarios, in
`compare`, in a `Queue` that is driven by hand.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from . import _arguments, _native
from ._native import Packet
from .errors import InputError
from .trees import Tree

__all__ = ["Discipline", "Packet", "Parameter"]


class Parameter:
    """A parameter of a discipline, as an attribute of its class. An instance has the value.

    Parameters
    ----------
    default : int, bool, str or None
        The value if the user gives none. None if the user must give one.
    least, most : int or str
        The range.
    unit : str
        ``bytes``, ``time`` (nanoseconds), ``rate`` (bit/s), or what a plain number counts.
    doc : str
        What it does, in one sentence.

    Examples
    --------
    >>> class Short(Discipline):
    ...     name = "short_example"
    ...     limit = Parameter(100, 1, 1000, unit="packets", doc="Largest number of packets.")
    """

    def __init__(
        self,
        default: int | bool | str | None,
        least: int | str = 0,
        most: int | str = 2**32 - 1,
        *,
        unit: str = "number",
        doc: str = "",
    ) -> None:
        self.default, self.least, self.most, self.unit, self.doc = default, least, most, unit, doc

    def __get__(self, instance: object, owner: type) -> Any:
        """Return the description; an instance has the value under the same name."""
        return self


class Discipline(_native.DisciplineBase):
    """A discipline written in Python.

    A subclass has a `name` and defines `enqueue` and `dequeue`. Its parameters are attributes of the class,
    each a `Parameter`. `__init__` takes no arguments; parameters and `seed` are set before it.

    Times are whole nanoseconds, lengths are bytes. Every packet that is enqueued must leave once: from
    `dequeue`, or by `drop`. What breaks this rule is a `DisciplineError` that names the call.

    Attributes
    ----------
    name : str
        The name in trees and files.
    seed : int
        The seed of this instance's random choices.
    random : random.Random
        Random numbers from this seed.

    Examples
    --------
    >>> from collections import deque
    >>> class Lifo(Discipline):
    ...     "The newest packet first"
    ...     name = "lifo_example"
    ...     limit = Parameter(100, 1, 10_000, unit="packets", doc="Largest number of packets.")
    ...
    ...     def __init__(self) -> None:
    ...         self.stack: list[Packet] = []
    ...
    ...     def enqueue(self, packet: Packet, now: int) -> None:
    ...         self.stack.append(packet)
    ...         if len(self.stack) > self.limit:
    ...             self.drop(self.stack.pop(0))
    ...
    ...     def dequeue(self, now: int) -> Packet | None:
    ...         return self.stack.pop() if self.stack else None
    >>> Lifo.tree(limit=20)
    Tree('lifo_example', limit=20)
    """

    name: ClassVar[str] = ""
    seed: int

    # All disciplines of this process, by name.
    _known: ClassVar[dict[str, type[Discipline]]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            return
        cls._register()

    @classmethod
    def _register(cls) -> None:
        """Make the discipline known to this process."""
        if not isinstance(cls.name, str) or not cls.name.isidentifier():
            raise InputError(f"the name {cls.name!r} of {cls.__name__} must be a word such as my_fifo")
        summary = (cls.__doc__ or "A discipline written in Python").strip().splitlines()[0].rstrip(".")
        found = {name: getattr(cls, name) for name in dir(cls)}
        parameters = {name: value for name, value in found.items() if isinstance(value, Parameter)}
        _native.register(
            cls,
            cls.name,
            summary,
            [(name, p.unit, p.least, p.most, p.default, p.doc) for name, p in parameters.items()],
        )
        Discipline._known[cls.name] = cls

    @classmethod
    def _made(cls, seed: int, values: Mapping[str, Any]) -> Self:
        discipline = cls.__new__(cls)
        discipline.__dict__.update(values, seed=seed)
        discipline.__init__()  # type: ignore[misc]
        return discipline

    @classmethod
    def tree(cls, **parameters: Any) -> Tree:
        """Return a tree of this discipline alone."""
        return Tree(cls.name, **parameters)

    @classmethod
    def check(cls, cases: int = 200, *, seed: int = 1) -> None:
        """Run the library's conformance suite: random operations with random parameters.

        After every call each packet that was enqueued was dequeued or dropped or is still queued; peek and
        dequeue agree; no packet of a flow is reordered; the same seed gives the same decisions; what holds
        packets back says until when.

        Parameters
        ----------
        cases : int
            How many cases are tried.
        seed : int
            The seed of the cases.

        Raises
        ------
        DisciplineError
            If a rule is broken. The smallest failing case is in the text.
        """
        shapes = cls.watchdog is not Discipline.watchdog
        cases = _arguments.whole("`cases`", cases, 1, 1 << 31)
        seed = _arguments.whole("the seed", seed, 0, (1 << 63) - 1)
        _native.conformance(cls.name, cases, seed, shapes)

    @cached_property
    def random(self) -> random.Random:
        """Random numbers from `seed`."""
        return random.Random(self.seed)

    def enqueue(self, packet: Packet, now: int) -> None:
        """Take a packet in. It may drop any packet that it has."""
        raise NotImplementedError

    def dequeue(self, now: int) -> Packet | None:
        """Return the next packet. None if there is none, or if `watchdog` says when to ask again."""
        raise NotImplementedError

    def peek(self) -> Packet | None:
        """Return the packet that the next `dequeue` is certain to return, whatever is enqueued before.

        A discipline that does not know leaves this out. Then a packet is dequeued to be shown, and kept.
        """
        return None

    def watchdog(self) -> int | None:
        """Return when to ask again, after a `dequeue` that returned None although packets are queued."""
        return None

    def clear(self) -> None:
        """Forget all packets. Someone else has taken them. The default makes the instance anew."""
        self.__init__()  # type: ignore[misc]

    def reconfigured(self) -> None:
        """React to changed parameters, which are already set. The default does nothing."""

    def variables(self) -> Mapping[str, int]:
        """Return inner state by name, as whole numbers, for observations."""
        return {}
