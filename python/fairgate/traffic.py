"""What flows send. The keys are those of ``docs/sources.md`` and ``docs/tcp.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypedDict, Unpack

from ._section import Section
from .network import Drawn, Each

__all__ = ["Flow", "FlowKeys"]

Source = Mapping[str, Any]
"""The keys of a source, such as ``{"rate": "1mbit", "size": "160b"}``."""


class FlowKeys(TypedDict, total=False):
    """The keys of ``[[simulate.flow]]``: one source, and when and how its packets are sent."""

    udp: Source
    tcp: Source
    video: Source
    voip: Source
    game: Source
    ping: Source
    ssh: Source
    request: Source
    web: Source
    adaptive: Source
    torrent: Source
    pcap: Source
    both: bool
    start: Drawn
    stop: str
    count: int
    stagger: Drawn
    arrivals: Source
    lifetime: Drawn
    gives_up: bool
    rows: bool
    dscp: int | str
    priority: int
    ecn: bool
    mark: int
    departs_after: str
    port: int
    route: Sequence[str]
    each: Each


class Flow(Section):
    """A flow, or a group of equal flows.

    Parameters
    ----------
    name : str
        The name in the results.
    source, destination : str
        The nodes.
    at : str, optional
        The class that its packets name, as in tc: ``"1:14"``.
    **keys
        See `FlowKeys`. One of them is what is sent: ``tcp={}``, ``udp={"rate": "1mbit"}``.

    Examples
    --------
    >>> Flow("downloads", "server", "home", count=4, tcp={"congestion_control": "cubic"})
    Flow('downloads', 'server', 'home', count=4, tcp={'congestion_control': 'cubic'})
    """

    _positional: ClassVar = (("name", "name"), ("source", "from"), ("destination", "to"))
    _renamed: ClassVar = {"at": "class"}
    __slots__ = ()

    def __init__(
        self, name: str, source: str, destination: str, *, at: str | None = None, **keys: Unpack[FlowKeys]
    ) -> None:
        self._set({"name": name, "from": source, "to": destination, "class": at, **keys})
