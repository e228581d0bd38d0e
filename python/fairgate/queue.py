"""A queue that a program drives by hand: for teaching, and inside other simulations."""

from __future__ import annotations

from typing import NamedTuple

from . import _arguments, _native
from ._native import Packet
from .errors import InputError
from .scenario import checked_seed
from .trees import Tree

__all__ = ["Count", "Dropped", "Node", "Queue"]

_NAME = "tree"


class Count(NamedTuple):
    """A number of packets, and their bytes."""

    packets: int
    bytes: int


class Dropped(NamedTuple):
    """A packet that a discipline dropped or flushed, and why."""

    packet: Packet
    reason: str


class Node(NamedTuple):
    """The state of a node of a tree. enqueued = dequeued + dropped + flushed + backlog.

    Attributes
    ----------
    path : tuple of int
        The classes from the root to the node. Empty for the root.
    discipline : str
        Its name.
    enqueued, dequeued, dropped, flushed, backlog : Count
        Its statistics.
    marked, overlimits : int
        Packets marked with Congestion Experienced; dequeues without a packet although packets were queued.
    drops : dict of str to int
        Packets dropped, by reason.
    variables : dict of str to int, bool or None
        Inner state by name. Times are nanoseconds.
    """

    path: tuple[int, ...]
    discipline: str
    enqueued: Count
    dequeued: Count
    dropped: Count
    flushed: Count
    backlog: Count
    marked: int
    overlimits: int
    drops: dict[str, int]
    variables: dict[str, int | bool | None]


class Queue:
    """A tree of disciplines that is driven call by call. Times are whole nanoseconds and never go back.

    A duplicate that ``netem`` makes is a packet of its own, with the number of its original. A packet that it
    corrupted has a `corrupted_bit`: the program flips it in the payload.

    Parameters
    ----------
    tree : Tree or str
        The tree, or its description in one line.
    seed : int
        The seed of random choices and of the keys of hashes.
    capacity : int
        How many packets fit, dropped ones that were not taken included.

    Examples
    --------
    >>> q = Queue("fifo limit=2")
    >>> [q.enqueue(Packet(1500, flow=1, number=n), now=0) for n in (1, 2, 3)]
    ['queued', 'queued', 'dropped']
    >>> q.take_dropped()
    [Dropped(packet=<packet 3 of 1500 bytes, flow 1>, reason='queue_limit')]
    >>> q.dequeue(now=1_000_000)
    <packet 1 of 1500 bytes, flow 1>
    >>> q.backlog
    Count(packets=1, bytes=1500)
    """

    def __init__(self, tree: Tree | str, *, seed: int = 1, capacity: int = 10_000) -> None:
        capacity = _arguments.whole("the capacity", capacity, 1, 1 << 26, " packets")
        self._native = _native.Queue(_toml(tree), _NAME, checked_seed(seed), capacity)

    def enqueue(self, packet: Packet, now: int) -> str:
        """Enqueue a packet.

        Returns
        -------
        str
            ``queued``; ``dropped``: this packet or, instead of it, another one; ``congested``: its flow lost
            a packet and should slow down; ``unclassified``: no class takes it.

        Raises
        ------
        InputError
            If the time goes back, or nothing more fits.
        DisciplineError
            If a discipline written in Python failed.
        """
        if not isinstance(packet, Packet):
            raise _arguments.refused("the packet", packet, "a Packet")
        return self._native.enqueue(packet, _time(now))

    def dequeue(self, now: int) -> Packet | None:
        """Return the next packet if one may be sent now. `next_time` says when to ask again otherwise."""
        return self._native.dequeue(_time(now))

    def peek(self, now: int) -> Packet | None:
        """Return the packet that the next `dequeue` will return, now or later."""
        return self._native.peek(_time(now))

    def take_dropped(self) -> list[Dropped]:
        """Return the packets that were dropped or flushed since the last call."""
        return [Dropped(*each) for each in self._native.take_dropped()]

    def flush(self, now: int) -> None:
        """Remove all packets. `take_dropped` returns them."""
        self._native.flush(_time(now))

    def configure(self, tree: Tree | str, now: int) -> None:
        """Change the tree to any other tree. Packets stay queued, in the order of their flows.

        What both trees have in common stays as it is. Packets for which a new limit has no room are dropped.
        The statistics of the root and of classes that still exist go on.

        Raises
        ------
        InputError
            If a discipline refuses the change. Nothing has changed then.
        """
        self._native.configure(_toml(tree), _NAME, _time(now))

    @property
    def tree(self) -> Tree:
        """The tree with its current parameters."""
        return Tree.from_toml(self._native.toml(_NAME))

    @property
    def now(self) -> int:
        """The time of the last call."""
        return self._native.now

    @property
    def next_time(self) -> int | None:
        """When to ask again, after a dequeue without a packet although packets are queued."""
        return self._native.next_time

    @property
    def backlog(self) -> Count:
        """What is queued."""
        return Count(*self._native.backlog)

    @property
    def nodes(self) -> list[Node]:
        """The state of every node: the root, then each node before those below it."""
        counts = ("enqueued", "dequeued", "dropped", "flushed", "backlog")
        nodes = []
        for entry in self._native.nodes():
            entry.update({name: Count(*entry[name]) for name in counts})
            nodes.append(Node(**{**entry, "path": tuple(entry["path"])}))
        return nodes

    def __repr__(self) -> str:
        return f"<Queue {self.tree!r}: {self.backlog.packets} packets, {self.backlog.bytes} bytes>"

    def _repr_html_(self) -> str:
        from ._html import grid

        header = ["class", "discipline", "queued", "bytes", "dequeued", "dropped", "marked", "state"]
        rows = [
            [
                "/".join(map(str, node.path)) or "root",
                node.discipline,
                str(node.backlog.packets),
                str(node.backlog.bytes),
                str(node.dequeued.packets),
                str(node.dropped.packets),
                str(node.marked),
                ", ".join(f"{name} = {value}" for name, value in node.variables.items()),
            ]
            for node in self.nodes
        ]
        return grid(header, rows)


def _toml(tree: Tree | str) -> str:
    rule = "a Tree, or its description in one line"
    tree = Tree.parse(tree) if isinstance(tree, str) else _arguments.instance("the tree", tree, Tree, rule)
    return tree.to_toml(_NAME)


def _time(now: object) -> int:
    if hasattr(now, "item"):
        now = now.item()
    if not isinstance(now, int) or isinstance(now, bool) or not 0 <= now < 1 << 63:
        raise InputError(f"the time is {now!r}, but must be whole nanoseconds from 0 on")
    return now
