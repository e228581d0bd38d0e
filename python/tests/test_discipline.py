"""Disciplines written in Python run like any other, and their mistakes are exceptions that name the call."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

import fairgate as fg


class Fifo(fg.Discipline):
    """First in, first out, in Python."""

    name = "py_fifo"
    limit = fg.Parameter(1000, 1, 100_000, unit="packets", doc="Largest number of packets.")

    def __init__(self) -> None:
        self.queue: deque[fg.Packet] = deque()

    def enqueue(self, packet: fg.Packet, now: int) -> None:
        if len(self.queue) >= self.limit:
            self.drop(packet)
        else:
            self.queue.append(packet)

    def dequeue(self, now: int) -> fg.Packet | None:
        return self.queue.popleft() if self.queue else None


class PeekingFifo(Fifo):
    """The same, with a peek of its own."""

    name = "py_peeking_fifo"

    def peek(self) -> fg.Packet | None:
        return self.queue[0] if self.queue else None

    def variables(self) -> dict[str, int]:
        return {"length": len(self.queue)}


class Pacer(Fifo):
    """A packet every so often."""

    name = "py_pacer"
    gap = fg.Parameter("1ms", "1us", "1s", unit="time", doc="Time between packets.")
    strict = fg.Parameter(True, doc="Whether to wait at all.")

    def __init__(self) -> None:
        super().__init__()
        self.next = 0

    def dequeue(self, now: int) -> fg.Packet | None:
        if self.strict and now < self.next:
            return None
        self.next = now + self.gap
        return super().dequeue(now)

    def watchdog(self) -> int | None:
        return self.next


def line(tree: fg.Tree, **changes: Any) -> fg.Scenario:
    return fg.Scenario(
        "1s",
        queues={"wan": tree},
        links=[fg.Link("server", "home", rate="10mbit", delay="5ms", queue_a="wan")],
        flows=[
            fg.Flow("downloads", "server", "home", count=2, tcp={}),
            fg.Flow("call", "server", "home", udp={"rate": "1mbit", "pattern": "poisson"}),
        ],
        **changes,
    )


@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("py_fifo", lambda tree: tree),
        ("py_peeking_fifo", lambda tree: tree),
        # Without a peek of its own, a packet that is shown has left its queue, and is not in its limit.
        ("py_peeking_fifo", lambda tree: fg.Tree("tbf", rate="9mbit", burst="5kb", inner=tree)),
        (
            "py_fifo",
            lambda tree: fg.Tree("prio", classes=[fg.Class(1, tree), fg.Class(2, tree), fg.Class(3, tree)]),
        ),
    ],
)
def test_a_fifo_in_python_gives_the_figures_of_the_librarys(
    name: str, around: Callable[[fg.Tree], fg.Tree]
) -> None:
    own, librarys = (line(around(fg.Tree(kind, limit=20))).run(3) for kind in (name, "fifo"))
    text = own.to_json().replace(f'"{name}"', '"fifo"')
    assert json.loads(text) == librarys.document
    assert sum(librarys.interfaces["dropped"]) > 10


def test_it_is_in_the_list_and_in_files() -> None:
    (description,) = fg.list("py_pacer")
    assert description.family == "external"
    assert description.summary == "A packet every so often"
    gap = {p.name: p for p in description.parameters}["gap"]
    assert (gap.unit, gap.default, gap.allowed) == ("time", "1ms", "1us to 1s")
    assert fg.Tree.parse("py_pacer gap=2ms") == Pacer.tree(gap="2ms")
    with pytest.raises(fg.InputError, match="1us to 1s"):
        Pacer.tree(gap="2s")
    with pytest.raises(fg.InputError, match="did you mean `gap`"):
        Pacer.tree(gaps="1ms")


def test_a_shaper_in_python_is_asked_again() -> None:
    paced = line(Pacer.tree(gap="2ms")).run()
    sent = dict(zip(paced.interfaces["interface"], paced.interfaces["transmitted"], strict=True))
    assert 490 <= sent["server->home"] <= 501
    free = line(Pacer.tree(gap="2ms", strict=False)).run()
    assert free.goodput_bps > 8_000_000


def test_variables_are_observed() -> None:
    scenario = line(PeekingFifo.tree(limit=20), observations=[fg.Observe("length", "server->home", "length")])
    assert 10 < max(scenario.run().observations["value"]) <= 20


def test_random_choices_depend_on_the_seed_alone() -> None:
    class Lossy(Fifo):
        name = "py_lossy"

        def enqueue(self, packet: fg.Packet, now: int) -> None:
            if self.random.random() < 0.1:
                self.drop(packet, "aqm")
            else:
                super().enqueue(packet, now)

    scenario = line(Lossy.tree())
    one = scenario.run(1)
    assert one == scenario.run(1)
    assert one.document["interfaces"][0]["dropped_by_reason"]["aqm"] > 0
    assert scenario.run_seeds([1, 2], jobs=2) == [one, scenario.run(2)]


def test_a_class_can_be_defined_again() -> None:
    def define(limit: int) -> type[Fifo]:
        class Again(Fifo):
            name = "py_again"
            most = fg.Parameter(limit, 1, 100, unit="packets")

        return Again

    define(5)
    assert fg.Tree("py_again").parameters["most"] == "5"
    define(7)
    assert fg.Tree("py_again").parameters["most"] == "7"
    with pytest.raises(fg.InputError, match="already a discipline `fifo`"):
        type("Taken", (Fifo,), {"name": "fifo"})
    with pytest.raises(fg.InputError, match="must be a word"):
        type("Odd", (Fifo,), {"name": "my fifo"})
    with pytest.raises(fg.InputError, match="within its range"):
        type("Wrong", (Fifo,), {"name": "py_wrong", "most": fg.Parameter(0, 1, 2)})


class Broken(Fifo):
    """Breaks one rule at the tenth packet."""

    name = "py_broken"
    fault = fg.Parameter(0, 0, 20, unit="number", doc="Which one.")

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0
        self.sent: list[fg.Packet] = []

    def enqueue(self, packet: fg.Packet, now: int) -> Any:
        self.arrived += 1
        super().enqueue(packet, now)
        if self.arrived != 10:
            return None
        if self.fault == 1:
            raise ZeroDivisionError("no packets")
        if self.fault == 2:
            self.queue.pop()
        if self.fault == 3:
            self.drop(self.sent[0])
        if self.fault == 4:
            return packet
        if self.fault == 5:
            self.drop(packet)
            self.drop(packet)
        if self.fault == 6:
            self.drop(packet)
        if self.fault == 7:
            self.drop(packet, "boredom")
        return None

    def dequeue(self, now: int) -> Any:
        packet = super().dequeue(now)
        if packet is not None:
            self.sent.append(packet)
            if self.fault == 8 and len(self.sent) > 3:
                return self.sent[0]
            if self.fault == 9:
                return "a packet"
            if self.fault == 10:
                return OTHERS[0]
        return packet


OTHERS: list[fg.Packet] = []


@pytest.mark.parametrize(
    ("fault", "call", "what"),
    [
        (1, "enqueue(packet 10,", "raised ZeroDivisionError: no packets"),
        (2, "dequeue(now=", "packet 10 is neither dequeued nor dropped"),
        (3, "enqueue(packet 10,", "packet 1 was dropped, but it had left by dequeue before"),
        (4, "enqueue(packet 10,", "must return nothing"),
        (5, "enqueue(packet 10,", "packet 10 was dropped, but it was dropped before"),
        (6, "dequeue(now=", "packet 10 was returned, but it was dropped before"),
        (7, "enqueue(packet 10,", "no drop reason `boredom`"),
        (8, "dequeue(now=", "packet 1 was returned, but it had left by dequeue before"),
        (9, "dequeue(now=", "returned 'a packet', but must return a packet or None"),
        (10, "dequeue(now=", "belongs to another discipline"),
    ],
)
def test_mistakes_name_the_call(fault: int, call: str, what: str) -> None:
    if not OTHERS:

        class Keeper(Fifo):
            name = "py_keeper"

            def enqueue(self, packet: fg.Packet, now: int) -> None:
                super().enqueue(packet, now)
                OTHERS.append(packet)

        line(Keeper.tree()).run()
    for run in (lambda s: s.run(), lambda s: s.run_seeds(2)):
        with pytest.raises(fg.DisciplineError) as caught:
            run(line(Broken.tree(fault=fault)))
        assert caught.value.discipline == "py_broken"
        assert caught.value.call.startswith(call)
        assert what in str(caught.value)
        assert (caught.value.__cause__ is not None) == (fault in (1, 7))
    assert line(Broken.tree()).run().packet_hops > 0, "the next run has no trace of it"


def test_a_late_watchdog_and_a_broken_promise() -> None:
    class Late(Pacer):
        name = "py_late"

        def watchdog(self) -> int | None:
            return self.next - 10_000_000

    with pytest.raises(fg.DisciplineError, match="must return a later time"):
        line(Late.tree()).run()

    class Fickle(PeekingFifo):
        name = "py_fickle"

        def dequeue(self, now: int) -> fg.Packet | None:
            return self.queue.pop() if self.queue else None

    with pytest.raises(fg.DisciplineError, match="but peek had shown packet"):
        line(fg.Tree("tbf", rate="5mbit", burst="5kb", inner=Fickle.tree())).run()


def test_an_init_that_raises() -> None:
    class Stillborn(Fifo):
        name = "py_stillborn"

        def __init__(self) -> None:
            raise RuntimeError("not today")

    with pytest.raises(fg.DisciplineError, match=r"__init__\(\): it raised RuntimeError: not today"):
        line(Stillborn.tree()).run()


def test_ctrl_c_in_a_discipline_is_ctrl_c() -> None:
    class Interrupted(Fifo):
        name = "py_interrupted"

        def dequeue(self, now: int) -> fg.Packet | None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        line(Interrupted.tree()).run()


def test_the_conformance_suite_runs_on_disciplines_in_python() -> None:
    for discipline in (Fifo, PeekingFifo, Pacer):
        discipline.check(40)


def test_the_conformance_suite_finds_a_broken_rule() -> None:
    class Lifo(Fifo):
        name = "py_lifo"

        def dequeue(self, now: int) -> fg.Packet | None:
            return self.queue.pop() if self.queue else None

    with pytest.raises(fg.DisciplineError, match="order") as caught:
        Lifo.check()
    assert "smallest case" in str(caught.value)
    with pytest.raises(fg.DisciplineError) as caught:
        Broken.check()
    assert "py_broken" in str(caught.value)
