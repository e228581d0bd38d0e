"""A queue that is driven by hand."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairgate as fg
from fairgate import Packet, Queue

MS = 1_000_000


def test_a_round_robin_takes_turns() -> None:
    q = Queue("drr limit=100 quantum=1500b", seed=3)
    for number in range(12):
        assert q.enqueue(Packet(1500, flow=number // 4, number=number), now=0) == "queued"
    assert q.peek(0) is q.peek(0)
    order = []
    while (packet := q.dequeue(MS)) is not None:
        order.append(packet.flow)
    assert sorted(order[:3]) == [0, 1, 2]
    assert order == order[:3] * 4
    assert q.next_time is None
    (node,) = q.nodes
    assert node.enqueued == node.dequeued == (12, 18_000)
    assert "drr" in q._repr_html_()


def test_a_shaper_says_when_to_ask_again() -> None:
    q = Queue(fg.Tree("tbf", rate="8mbit", burst="1500b", inner=fg.Tree("fifo")))
    packets = [Packet(1500, number=n) for n in (1, 2)]
    for packet in packets:
        q.enqueue(packet, 0)
    assert q.dequeue(0) is packets[0]
    assert q.dequeue(0) is None
    assert q.next_time == 1_500_000
    assert q.dequeue(1_500_000) is packets[1]
    root, inner = q.nodes
    assert (root.path, inner.path) == ((), (1,))
    assert (root.discipline, inner.discipline) == ("tbf", "fifo")
    assert root.overlimits == 1


def test_marks_drops_and_changes() -> None:
    q = Queue("codel target=1ms interval=10ms ecn=true")
    for number in range(200):
        q.enqueue(Packet(1500, ecn=1 + number % 2, number=number), now=0)
    sent = [q.dequeue(number * 5 * MS) for number in range(100)]
    marked = [packet for packet in sent if packet is not None and packet.ecn == 3]
    assert q.nodes[0].marked == len(marked) > 0
    q.configure("codel limit=10", 600 * MS)
    assert q.backlog.packets == 10
    assert {dropped.reason for dropped in q.take_dropped()} == {"reconfigured"}
    assert q.tree == fg.Tree("codel", limit=10)
    q.flush(600 * MS)
    assert [dropped.reason for dropped in q.take_dropped()] == ["flushed"] * 10
    for number in range(3):
        q.enqueue(Packet(1500, number=number), now=600 * MS)
    q.configure("pfifo_fast", 600 * MS)
    assert [q.dequeue(600 * MS).number for _ in range(3)] == [0, 1, 2]
    assert q.nodes[0].enqueued.packets == 203


def test_filters_see_headers() -> None:
    tree = fg.Tree(
        "prio",
        classes=[fg.Class(n, fg.Tree("fifo")) for n in (1, 2, 3)],
        filters=[fg.Filter(1, destination_port="53")],
        default=3,
    )
    q = Queue(tree)
    hosts = {"source": ip_address("192.0.2.1"), "destination": ip_address("192.0.2.2")}
    q.enqueue(Packet(100, number=1, **hosts, destination_port=80), 0)
    q.enqueue(Packet(100, number=2, **hosts, destination_port=53), 0)
    first = q.dequeue(0)
    assert first is not None
    assert (first.number, first.destination, first.destination_port) == (2, hosts["destination"], 53)
    assert [node.dequeued.packets for node in q.nodes] == [1, 1, 0, 0]


def test_filters_see_the_bytes_that_headers_imply() -> None:
    tree = fg.Tree(
        "prio",
        classes=[fg.Class(n, fg.Tree("fifo")) for n in (1, 2, 3)],
        filters=[fg.Filter(1, length="0-100")],
        default=3,
    )
    q = Queue(tree)
    hosts = {"source": ip_address("192.0.2.1"), "destination": ip_address("192.0.2.2")}
    q.enqueue(Packet(1500, number=1, **hosts), 0)
    q.enqueue(Packet(100, number=2, **hosts), 0)
    first = q.dequeue(0)
    assert first is not None
    assert first.number == 2


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Packet(0), "length is 0"),
        (lambda: Packet("1500b"), "length is 1500b"),  # type: ignore[arg-type]
        (lambda: Packet(True), "length is True"),
        (lambda: Packet(100, flow=-1), "flow is -1"),
        (lambda: Packet(100, number=1.5), "number is 1.5"),  # type: ignore[arg-type]
        (lambda: Packet(100, mark=1 << 32), "mark is 4294967296"),
        (lambda: Packet(100, priority=16), "priority is 16"),
        (lambda: Packet(100, destination_port=70_000), "destination port is 70000"),
        (lambda: Packet(100, class_id=(1, 70_000)), "class is (1, 70000)"),
        (lambda: Packet(100, source="10.0.0", destination="10.0.0.1"), "source is 10.0.0"),
        (lambda: Queue(5), "tree is 5 of type int"),  # type: ignore[arg-type]
        (lambda: Queue("fifo").enqueue(100, 0), "packet is 100"),  # type: ignore[arg-type]
        (lambda: Queue("fifo", seed=True), "seed is True"),
        (lambda: Queue("fifo", capacity=2.0), "capacity is 2.0"),  # type: ignore[arg-type]
        (lambda: Packet(100, dscp=64), "DSCP is 64"),
        (lambda: Packet(100, source=ip_address("::1")), "two addresses"),
        (lambda: Queue("fifo", seed=-1), "seed is -1"),
        (lambda: Queue("fifo", capacity=0), "capacity is 0"),
        (lambda: Queue("fifoo"), "did you mean `fifo`"),
        (lambda: Queue("fifo").dequeue(-1), "the time is -1"),
        (lambda: Queue("fifo").dequeue(0.5), "the time is 0.5"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments(make: object, part: str) -> None:
    assert callable(make)
    with pytest.raises(fg.InputError) as caught:
        make()
    assert part in str(caught.value)


def test_time_and_slots() -> None:
    q = Queue("fifo limit=10", capacity=2)
    q.enqueue(Packet(100), 5)
    with pytest.raises(fg.InputError, match="the last call was at 5 ns"):
        q.enqueue(Packet(100), 4)
    q.enqueue(Packet(100), 5)
    with pytest.raises(fg.InputError, match="all 2 slots"):
        q.enqueue(Packet(100), 5)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(
        ["fifo limit=5", "fq_codel limit=8", "red limit=20000", "sfq", "drr limit=9", "pie limit=7"]
    ),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1500), st.integers(0, 20 * MS)), max_size=60),
)
def test_each_packet_leaves_once(tree: str, steps: list[tuple[int, int, int]]) -> None:
    q = Queue(tree)
    now, offered, left = 0, 0, []
    for flow, length, pause in steps:
        now += pause
        q.enqueue(Packet(length, flow=flow, number=offered), now)
        offered += 1
        if pause % 3 == 0 and (packet := q.dequeue(now)) is not None:
            left.append(packet.number)
        left += [dropped.packet.number for dropped in q.take_dropped()]
        assert len(left) + q.backlog.packets == offered
    while (packet := q.dequeue(now)) is not None:
        left.append(packet.number)
        left += [dropped.packet.number for dropped in q.take_dropped()]
    assert sorted(left) == list(range(offered))


def test_a_corrupted_packet_names_its_wrong_bit() -> None:
    q = Queue("netem corrupt=0.5", seed=2)
    bits = []
    for number in range(1000):
        packet = Packet(100, number=number)
        q.enqueue(packet, number)
        assert packet.corrupted_bit is None
        sent = q.dequeue(number)
        assert sent is packet
        bits.append(sent.corrupted_bit)
    wrong = [bit for bit in bits if bit is not None]
    assert q.nodes[0].variables["corrupted"] == len(wrong)
    assert 400 < len(wrong) < 600
    assert all(0 <= bit < 800 for bit in wrong)
    assert len(set(wrong)) > 300
    # It is sent again, and the bit of the first time is forgotten.
    clean = Queue("fifo")
    damaged = Packet(100)
    q.configure("netem corrupt=1", 1000)
    q.enqueue(damaged, 1000)
    assert q.dequeue(1000) is damaged
    assert damaged.corrupted_bit is not None
    clean.enqueue(damaged, 0)
    assert clean.dequeue(0) is damaged
    assert damaged.corrupted_bit is None


def test_a_duplicate_is_a_packet_of_its_own() -> None:
    q = fg.Queue("netem duplicate=1")
    packet = fg.Packet(
        1500, flow=1, number=7, dscp=46, source=ip_address("10.0.0.1"), destination=ip_address("10.0.0.2")
    )
    assert q.enqueue(packet, now=0) == "queued"
    assert q.backlog == (2, 3000)
    first, second = q.dequeue(now=0), q.dequeue(now=0)
    assert first is packet
    assert second is not None
    assert second is not packet
    assert (second.number, second.length, second.dscp, second.source) == (7, 1500, 46, packet.source)
    assert q.dequeue(now=0) is None
    (node,) = q.nodes
    assert node.variables["duplicated"] == 1
    assert node.enqueued == node.dequeued == (2, 3000)


def test_a_duplicate_without_room_is_left_out() -> None:
    q = fg.Queue("netem duplicate=1", capacity=3)
    for number in (1, 2):
        q.enqueue(fg.Packet(100, number=number), now=0)
    assert q.backlog.packets == 3
    assert [packet.number for _ in range(3) if (packet := q.dequeue(now=0))] == [1, 1, 2]
