"""Nodes, links, Wi-Fi cells, and what is observed at them. The keys are those of ``docs/simulation.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict, Unpack

from ._section import Section

__all__ = ["Capture", "Cell", "Drawn", "Link", "LinkKeys", "Node", "Observe"]

Drawn = str | Mapping[str, Any]
"""A quantity, or a distribution such as ``{"exponential": "2ms"}``."""

Each = Mapping[str, Any]
"""The variables of a section that stands for many, such as ``{"i": 9}``."""


class LinkKeys(TypedDict, total=False):
    """The keys of ``[[simulate.link]]``. ``_a`` is for packets from `a`, ``_b`` for those from `b`."""

    name: str
    rate: str | Mapping[str, Any]
    rate_a: str | Mapping[str, Any]
    rate_b: str | Mapping[str, Any]
    delay: str
    delay_a: str
    delay_b: str
    jitter: Drawn
    jitter_a: Drawn
    jitter_b: Drawn
    reorder: bool
    reorder_a: bool
    reorder_b: bool
    loss: float | Mapping[str, Any]
    loss_a: float | Mapping[str, Any]
    loss_b: float | Mapping[str, Any]
    overhead: int
    queue: str
    queue_a: str
    queue_b: str
    workers: int
    workers_a: int
    workers_b: int
    shard_by: Literal["flow", "source", "destination", "class"]
    each: Each


class Node(Section):
    """A host or router that needs more than a name. Links create all others.

    Parameters
    ----------
    name : str
        Its name.
    address : str, optional
        The IPv4 or IPv6 address in the headers of its packets.
    processing : Drawn, optional
        How long each forwarded packet waits before it is enqueued.
    each : mapping, optional
        Variables, if the section stands for many nodes.
    """

    _positional: ClassVar = (("name", "name"),)
    __slots__ = ()

    def __init__(
        self,
        name: str,
        *,
        address: str | None = None,
        processing: Drawn | None = None,
        each: Each | None = None,
    ) -> None:
        self._set({"name": name, "address": address, "processing": processing, "each": each})


class Link(Section):
    """A link between two nodes, which it creates.

    Parameters
    ----------
    a, b : str
        The nodes at both ends.
    **keys
        See `LinkKeys`: ``rate="20mbit"``, ``delay="10ms"``, ``queue_a="wan"`` and so on.

    Examples
    --------
    >>> Link("home", "router", rate="20mbit", delay="10ms", queue_b="wan")
    Link('home', 'router', rate='20mbit', delay='10ms', queue_b='wan')
    """

    _positional: ClassVar = (("a", "a"), ("b", "b"))
    __slots__ = ()

    def __init__(self, a: str, b: str, **keys: Unpack[LinkKeys]) -> None:
        self._set({"a": a, "b": b, **keys})


class Cell(Section):
    """A Wi-Fi cell: an access point and its stations.

    Parameters
    ----------
    name : str
        Its name.
    ap : str
        The node that is the access point.
    stations : int or sequence of str
        The nodes that are stations, or their number.
    **keys
        The keys of ``[[simulate.cell]]``: ``standard="ax"``, ``distances=[3.0, 12.0]`` and so on.
    """

    _positional: ClassVar = (("name", "name"), ("ap", "ap"), ("stations", "stations"))
    __slots__ = ()

    def __init__(self, name: str, ap: str, stations: int | Sequence[str], **keys: Any) -> None:
        self._set({"name": name, "ap": ap, "stations": stations, **keys})


class Observe(Section):
    """A variable of a discipline that is recorded over time.

    Parameters
    ----------
    name : str
        Its name in the results.
    interface : str
        ``a->b``, as the results name it.
    variable : str
        The variable, as ``fairgate status`` shows it.
    at : str, optional
        The class: ``"20"``, ``"20/1"`` or as in tc ``"1:14"``. The root by default.
    each : mapping, optional
        Variables, if the section stands for many observations.
    """

    _positional: ClassVar = (("name", "name"), ("interface", "interface"), ("variable", "variable"))
    _renamed: ClassVar = {"at": "class"}
    __slots__ = ()

    def __init__(
        self,
        name: str,
        interface: str,
        variable: str,
        *,
        at: str | None = None,
        each: Each | None = None,
    ) -> None:
        self._set({"name": name, "interface": interface, "variable": variable, "class": at, "each": each})


class Capture(Section):
    """A file with the packets that an interface sends.

    Parameters
    ----------
    interface : str
        ``a->b``.
    file : str
        The path of the file, a pcapng.
    snap : int, optional
        How many bytes of each packet are kept. All by default.
    each : mapping, optional
        Variables, if the section stands for many captures.
    """

    _positional: ClassVar = (("interface", "interface"), ("file", "file"))
    __slots__ = ()

    def __init__(
        self, interface: str, file: str, *, snap: int | None = None, each: Each | None = None
    ) -> None:
        self._set({"interface": interface, "file": file, "snap": snap, "each": each})
