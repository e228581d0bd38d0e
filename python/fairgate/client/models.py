"""The documents of the API.

This file is written by python/generate_client.py from python/openapi.json. `make python-client` writes it
again.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, RootModel

from fairgate.client._base import Input, Model, Tagged, Value


class AutorateDirection(Model):
    """The rate of a direction that follows the line."""

    achieved_bps: int
    """What has left the tree in the last two intervals, bit/s."""
    base_bps: int
    """The rate at the start and under low load."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that frames are received from."""
    max_bps: int
    """It never rises above this."""
    min_bps: int
    """It never falls below this."""
    rate_bps: int
    """The rate of the tree, bit/s."""
    state: str
    """
    What is done with the rate: `low` (it returns to the base), `high` (it rises), `congested` (it falls),
    `draining` (it waits until the queue is gone), `silent` (no probe is answered), `file`, or `refused`
    (the tree can't have it).
    """


class AutorateStatus(Model):
    """The rates that follow the line."""

    baseline_us: float | None = None
    """The round trip of a line without load, microseconds. `None` before the first answer, and with a file."""
    changes: int
    """How often a tree has got another rate."""
    directions: list[AutorateDirection]
    """The directions that follow."""
    excess_us: float | None = None
    """How much longer the last round trips were on average, microseconds. `None` with a file."""
    longest_pause_us: float
    """The longest time for which a change of a rate stopped forwarding, microseconds."""
    refused: int
    """How often a tree has refused it."""
    source: str
    """Where the rates come from: `probes` or `file`."""


class ChangeMade(Tagged):
    """A change that was made."""

    dropped: int
    """Packets for which a new limit had no room, or whose class was removed."""
    pause_us: float
    """For how long nothing was forwarded, microseconds."""
    revision: int
    """The revision of the trees from now on."""


class ChangesStatus(Model):
    """Changes of the trees during the run."""

    applied: int
    """Changes that were applied."""
    dropped: int
    """Packets that were dropped because a new limit had no room, or because their class was removed."""
    longest_pause_us: float
    """The longest time for which a change stopped forwarding, microseconds."""
    refused: int
    """Changes that were refused: nothing was changed by them."""
    unconfirmed_s: float | None = None
    """The time that is left to confirm a change, seconds, if one waits for it. Then it is undone."""


class Confirmed(Tagged):
    """A change that is kept."""

    revision: int
    """The revision of the trees."""


class CountStatus(Model):
    """A number of packets and their bytes."""

    bytes: int
    """Their bytes, including the Ethernet header."""
    packets: int
    """The number of packets."""


class Difference(Model):
    """How many subscribers differ between a list and the one before it."""

    added: int
    """Those that were not in the list before."""
    changed: int
    """Those with other addresses, rates or names."""
    count: int
    """The length of the list."""
    removed: int
    """Those that are not in the list any more."""


class Entry(Input):
    """A subscriber. What is null or left out comes from the plan."""

    down: str | None = None
    """The most that it gets, like `100mbit`."""
    down_min: str | None = None
    """What it gets in any case."""
    id: str | None = None
    """Identifies it."""
    name: str | None = None
    """For people."""
    plan: str | None = None
    """The name of its plan."""
    prefixes: list[str] = []
    """Its addresses and prefixes."""
    up: str | None = None
    """The most that it sends."""
    up_min: str | None = None
    """What it may send in any case."""


class ErrorTermsStatus(Model):
    """What a hop adds to the delay along a path (RFC 2212)."""

    c_bytes: int
    """C, bytes: takes its time at the reserved rate."""
    d_us: int
    """D, microseconds: whatever the rate is."""


class Health(Model):
    """That the run answers."""

    may_change: bool
    """Whether this client may change the run. Some tokens may only read."""
    name: str
    """The run's name."""
    packets: bool
    """Whether the run keeps its last packets (`packet_log`)."""
    pid: int
    """Its process id."""
    revision: int
    """The revision of the trees."""
    subscribers: bool
    """Whether the run has a list of subscribers."""
    uptime_s: float
    """Seconds since its start."""
    version: str
    """The version of Fairgate."""


class LanStatus(Model):
    """A host in the LAN, behind a translated address."""

    address: str
    """Its address."""
    port: int
    """Its port, or the identifier of ICMP."""


class ListedNode(Model):
    """A node of the network: a site, an access point."""

    above: str | None = None
    """The node above it. None: the line itself."""
    class_: Annotated[int, Field(alias="class")]
    """Its class in both trees."""
    down_bps: int
    """What it sends at most to the subscribers, bit/s."""
    name: str
    """Its name."""
    up_bps: int
    """What it sends at most from them, bit/s."""


class LossStatus(Model):
    """TCP segments with data in the last 10 to 20 seconds."""

    lost: int
    """
    How many of them had been lost on the way here, and were sent again: they filled a gap in the sequence
    numbers more than 3 ms later.
    """
    segments: int
    """How many arrived."""


class Losses(Model):
    """Frames lost outside of the tree, by reason."""

    no_frame: int
    """All frames of the store were in use. Increase `frames` in `[run]`, or lower the limits of queues."""
    refused: int
    """The interface did not accept the frame."""
    ring_full: int
    """The receive ring was full: this process was too slow."""
    tiny_segments: int
    """A super-packet of more segments than one for each 32 bytes that have arrived."""
    too_long: int
    """The frame was longer than the MTU allows."""
    truncated: int
    """The kernel delivered only a part of the frame."""
    unsupported_offload: int
    """The frame needed an offload that can't be done in software."""


class Mistake(Model):
    """Why a request is refused."""

    help: str
    """What to do."""
    message: str
    """What is wrong."""
    place: str | None = None
    """Where: `word 3` or `line 2, word 3` of a change, or a place in the tree that would result."""


class NatStatus(Model):
    """The translations in this machine's table of connections."""

    no_room: int
    """How often there was no room for one. The packets of such a connection count as those of this router."""
    translations: int
    """How many translations are known."""


class OutlineEntry(Model):
    """A discipline, a class or both."""

    above: int | None = None
    """The index of the place above; null for the root."""
    discipline: str | None = None
    """The discipline. An inner class of a tree of classes has none."""
    hosts: int | None = None
    """How many classes there are for hosts, numbered on from that of the path."""
    name: str | None = None
    """
    What a list of subscribers calls the class: the name of a node of the network, or that of a
    subscriber, or its identifier if it has none.
    """
    path: str
    """
    The numbers of the classes from the root on, as `20/3`; `root` for the root. Of classes for hosts it
    is the first.
    """
    settings: dict[str, str]
    """What was set of the class and of its discipline, as users write it."""


class ParameterDocument(Model):
    """A parameter and its value."""

    allowed: str
    """The allowed values, in words."""
    is_given: bool
    """Whether it was set. If not, it has its default."""
    meaning: str
    """What it does."""
    name: str
    """Its name."""
    unit: str
    """What it is a number of: `packets`, `rate`, `time`."""
    value: str
    """Its value, as users write it."""


class PassedByStatus(Model):
    """
    The times in which packets went past the run, through the kernel and unshaped: the run hung, or its TAP
    device could not be used.
    """

    seconds: float
    """The seconds of all of them."""
    times: int
    """How many times there were."""


class Percentiles(Model):
    """Sojourn times, in microseconds. Percentiles are accurate to 7 %."""

    max_us: float
    """The maximum."""
    p50_us: float
    """The median."""
    p95_us: float
    """The 95th percentile."""
    p99_us: float
    """The 99th percentile."""
    packets: int
    """The number of packets that were measured."""


class Problem(Model):
    """What is wrong with a request: problem details of RFC 9457."""

    detail: str
    """What is wrong with this request, and what to do."""
    errors: Annotated[list[Mistake], Field(validate_default=True)] = []
    """The mistakes in what the run was asked."""
    revision: int | None = None
    """The revision of the trees, if another one was expected."""
    status: int
    """The HTTP status code."""
    title: str
    """What this type means."""
    type: str
    """`urn:fairgate:problem:` and a name that does not change."""


class ProcessorStatus(Model):
    """How punctual the forwarding thread is."""

    late_wake_ups: int
    """How often it woke up more than 1 ms after the time that was set."""
    latest_us: float
    """The largest delay of a timed wake-up, microseconds."""
    longest_stall_us: float
    """The longest stall, microseconds."""
    realtime: bool
    """Whether it has real-time priority."""
    stalls: int
    """
    How often it made no progress for more than 5 ms while it had work: another thread had the processor,
    or the kernel throttled it.
    """
    waited_s: float | None = None
    """
    Seconds for which it was ready to run but waited for the processor. `None` if the kernel does not
    count them.
    """
    wake_ups: int
    """How often it woke up."""


class RateStatus(Model):
    """What an estimator says."""

    rate_bps: int
    """Bits per second."""
    rate_pps: int
    """Packets per second."""


class RoundTripStatus(Model):
    """Round trip times, milliseconds. They begin behind the queue of this run."""

    latest: float
    """The last one."""
    median: float
    """The median of the last 16."""
    minimum: float
    """The shortest one."""


class SeriesDocument(Model):
    """
    What a class did. Values are null where there are none: the class was not there, or no packet had left. Of
    steps of 5 minutes only rate, delay and drops are kept.
    """

    backlog_bytes: list[float | None]
    """What waited at the end of the step; of longer steps, the most of all readings in it."""
    class_: Annotated[str, Field(alias="class")]
    """The numbers of the classes from the root on, as `20/3`; `root` for the root."""
    delay_ms: list[float | None]
    """The mean time that packets spent in it, milliseconds."""
    discipline: str
    """The discipline in it."""
    dropped_per_s: list[float | None]
    """Packets dropped in each second."""
    highest_p95_ms: list[float | None]
    """
    The 95th percentile of these times, accurate to 7 %; of longer steps, the highest one of the readings
    in it. It is null where none was counted: nobody had asked for the history or the classes in the
    minute before.
    """
    highest_p99_ms: list[float | None]
    """The 99th percentile of these times; of longer steps, the highest one of the readings in it."""
    marked_per_s: list[float | None]
    """Packets marked in each second."""
    rate_bps: list[float | None]
    """What left it, bits per second."""


class Shaped(Model):
    """What a subscriber gets."""

    down_bps: int
    """The most that it gets, bit/s."""
    down_min_bps: int | None = None
    """What it gets in any case, bit/s."""
    limited_until_s: int | None = None
    """Until when it has these rates in place of those of the list, seconds since 1970 (Unix time)."""
    node: str | None = None
    """The node of the network that it is connected to. None: the line itself."""
    up_bps: int
    """The most that it sends, bit/s."""
    up_min_bps: int | None = None
    """What it may send in any case, bit/s."""


class SharedNode(Model):
    """A node of the network on the path of a subscriber."""

    class_: Annotated[str, Field(alias="class")]
    """Its class."""
    limit_bps: int | None = None
    """What the list lets it send at most, bits per second."""
    name: str
    """Its name."""
    rate_bps: float
    """What left it, bits per second, of all workers together."""


class Sojourn(Model):
    """The sojourn times of packets in the tree, in microseconds. Percentiles are accurate to 1 %."""

    max_us: float
    """The maximum."""
    mean_us: float
    """The mean."""
    p50_us: float
    """The median."""
    p95_us: float
    """The 95th percentile."""
    p99_us: float
    """The 99th percentile."""
    packets: int
    """The number of packets measured."""


class SubscriberDocument(Tagged):
    """The subscribers."""

    classes: dict[str, int]
    """The class of each one in both trees, by its identifier."""
    difference: Difference | None = None
    """
    How the list differed from the one before it when it was last read from its files or when several
    subscribers were changed. None if that never happened.
    """
    is_changeable: bool
    """Whether they may be changed by the API."""
    nodes: list[ListedNode]
    """The nodes of the network that they are connected to, each behind the one above it."""
    revision: int
    """The revision of the trees."""
    shaped: dict[str, Shaped]
    """What each one gets, by its identifier, as the list and the plans say it."""
    subscribers: list[Entry]
    """The subscribers, in the order of the list."""
    unchangeable: Mistake | None = None
    """Why they may not, as far as that is known before: their files can't be written."""


class SubscriberMade(Tagged):
    """A change that was made."""

    difference: Difference | None = None
    """How the list differs from the one before it, if several subscribers were changed."""
    dropped: int
    """Packets that had no room any more."""
    pause_us: float
    """For how long nothing was forwarded, microseconds."""
    revision: int
    """The revision of the trees from now on."""


class SubscriberName(Model):
    """The subscriber that a class belongs to."""

    id: str
    """Its identifier in the list."""
    limited_until_s: int | None = None
    """Until when it has other rates than those of the list, seconds since 1970 (Unix time)."""
    name: str | None = None
    """Its name in the list, if it has one."""
    plan: str | None = None
    """Its plan, if it has one."""


class SubscriberStatus(Tagged):
    """A subscriber and its class."""

    class_: Annotated[int, Field(alias="class")]
    """The number of its class in both trees."""
    shaped: Shaped
    """What it gets, as the list and the plans say it."""
    subscriber: Entry
    """The subscriber."""


class TermsStatus(Input):
    """The terms of a reservation."""

    burst_bytes: int
    """The size of the token bucket, bytes."""
    delay_us: int | None = None
    """The longest acceptable delay, microseconds."""
    excess: str | None = None
    """What happens to packets beyond the token bucket. Without it, they are best effort."""
    filter: str
    """The conditions of the filter in words."""
    lifetime_ms: int
    """How long it exists unless it is refreshed, milliseconds."""
    max_packet_bytes: int | None = None
    """The longest packet, bytes. Without it, the longest one of the interfaces."""
    min_packet_bytes: int | None = None
    """
    The minimum policed unit, bytes: shorter packets count as much. Without it, 60, the length of the
    shortest frame on an Ethernet cable.
    """
    name: str
    """Its name."""
    peak_bps: int | None = None
    """The peak rate, bit/s: at least the token rate. Without it, the bucket may come at once."""
    rate_bps: int
    """The token rate, bit/s."""


class Worker(RootModel[int]):
    root: Annotated[int, Field(ge=0)]


class TreeStatus(Model):
    """The tree of a direction."""

    from_: Annotated[str, Field(alias="from")]
    """The interface that frames are received from."""
    name: str | None = None
    """
    The name that the configuration gives to the tree. None if the direction has the fifo of one for which
    it names none.
    """
    names: Annotated[dict[str, str], Field(max_length=0)] = {}
    """
    What people call the classes of a list of subscribers, by their numbers: nodes by their names, and
    subscribers by their identifiers and names.
    """
    queue: str
    """Its description: `[queue.tree]` of a configuration file."""
    to: str
    """The interface that frames are sent to."""
    workers: list[list[Worker]] | None = None
    """The classes that each worker has, if several workers divide the classes of the tree."""


class TreesStatus(Tagged):
    """The trees of a run."""

    directions: list[TreeStatus]
    """From left to right, and from right to left."""
    revision: int
    """It grows by 1 with each change of the trees, whoever makes it. A run starts with 0."""


class Why(Model):
    """Why a direction is slow, or that nothing here slows it."""

    cause: str
    """The first cause on the path of its packets."""
    node: str | None = None
    """The node that is full."""
    text: str
    """The cause with its figures, a sentence or two."""


class Changeable(Model):
    """What can be set of a place."""

    parameters: list[ParameterDocument]
    """The parameters."""
    title: str
    """What is changed."""
    words: str
    """The words of a change, up to the first parameter: `class change 20`."""


class Changes(Tagged):
    """The changes so far."""

    changes: ChangesStatus
    """What they have done."""
    revision: int
    """The revision of the trees: it grows by 1 with each change, whoever makes it."""


class ClassFigures(Model):
    """What a class did between the last two readings."""

    backlog_bytes: int
    """What waits."""
    backlog_packets: int
    """What waits."""
    class_: Annotated[str, Field(alias="class")]
    """The numbers of the classes from the root on, as `20/3`; `root` for the root."""
    delay_ms: float | None = None
    """The mean time that the packets which left it had spent there; null if none did."""
    discipline: str
    """The discipline in it. It is empty for a node of a network."""
    dropped_packets: int
    """Packets dropped since the start of the run."""
    dropped_per_s: float
    """Packets dropped."""
    host: str | None = None
    """The host that has the class, if classes are given to hosts."""
    limit_bps: int | None = None
    """What the list lets it send at most, bits per second."""
    marked_per_s: float
    """Packets marked with Congestion Experienced."""
    name: str | None = None
    """
    What a list of subscribers calls the class: the name of a node of the network, or that of a
    subscriber, or its identifier if it has none.
    """
    node: int | None = None
    """The class of the node that it is connected to."""
    p95_ms: float | None = None
    """
    The 95th percentile of these times, accurate to 7 %; null if none was counted: no packet left, or
    nobody has asked for the classes or the history in the last minute.
    """
    p99_ms: float | None = None
    """The 99th percentile of these times."""
    packets_per_s: float
    """What left it."""
    rate_bps: float
    """What left it, bits per second."""
    sent_bytes: int
    """What left it since the start of the run."""
    subscriber: SubscriberName | None = None
    """The subscriber that the class belongs to, if the tree is that of a list of subscribers."""


class ClassInterval(Model):
    """What a discipline did in an interval."""

    at_s: float
    """When its counters were read, in seconds since the start of the run."""
    backlog: CountStatus
    """What is queued at the end of the interval."""
    class_: Annotated[str, Field(alias="class")]
    """The numbers of the classes from the root on, like `1/30`. Empty for the root."""
    delay: Percentiles | None = None
    """The distribution of these times."""
    discipline: str
    """The discipline's name."""
    drops: dict[str, int] = {}
    """Packets dropped, by reason. Reasons that did not occur are left out."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that the direction receives from."""
    host: str | None = None
    """The host that has the class."""
    marked: int
    """Packets marked with congestion experienced."""
    mean_delay_us: float | None = None
    """The mean time from the arrival at the tree to the departure from this discipline, microseconds."""
    seconds: float
    """The time since they were read before."""
    sent: CountStatus
    """What left it."""


class ClassRateStatus(RateStatus):
    """What the estimator of a class says."""

    class_: Annotated[int, Field(alias="class")]
    """The number of the class."""


class ClassStatus(Model):
    """The state that a discipline keeps for one of its classes."""

    at_s: float | None = None
    """When these figures were read, in seconds since the start of the run."""
    class_: Annotated[int, Field(alias="class")]
    """The number of the class."""
    limit_bps: int | None = None
    """What that node sends at most, bit/s."""
    name: str | None = None
    """
    The name of the node of the network, if it is the class of one in the tree of a list of subscribers.
    The class of a subscriber has its name at its discipline.
    """
    node: int | None = None
    """The class of the node above that node."""
    overlimits: int
    """How often the class was held back by its own limit."""
    sent: CountStatus
    """Packets sent from this class or a class below it."""
    variables: dict[str, Value]
    """Other state variables, under the field's usual names."""


class ClassesDocument(Model):
    """What the classes of a direction did between the last two readings of the run."""

    at_s: float
    """When the last reading was made, seconds since the start of the run."""
    classes: list[ClassFigures]
    """The root, and the classes that have most of what is sorted by."""
    count: int
    """How many classes packets have come to, with the root."""
    fallback: str | None = None
    """Why the run has another configuration than its file says; null if it has that one."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that the direction receives from."""
    lost: Losses
    """Frames lost outside of the tree since the start of the run."""
    missed_delays: int | None = None
    """
    Sojourn times of both directions between the two readings that are not in the percentiles, because the
    run was too busy to count them; null if none were counted, because nobody had asked in the minute
    before.
    """
    nodes: list[ClassFigures]
    """
    The nodes of the network above subscribers, all that packets have come to: the sums of the classes
    below them, without percentiles.
    """
    passed_by: PassedByStatus
    """The times in which packets went past this run on one interface, because it took none."""
    revision: int
    """The revision of the trees."""
    schema_: Annotated[str, Field(alias="schema")]
    """`fairgate.classes/1`."""
    seconds: float | None = None
    """The time between the two readings; null before the second one."""
    sojourn: Sojourn
    """The times that packets have spent in the tree since the start of the run."""
    subscribers: int
    """How many of these are the classes of subscribers."""
    to: str
    """The interface that it sends to."""


class FlowStatus(Model):
    """A flow in one direction."""

    age_s: float
    """The time since its first packet, seconds."""
    bytes: int
    """Bytes that were sent."""
    class_: Annotated[str, Field(alias="class")]
    """The numbers of the classes to the queue that its last packet was in, like `20/3`. Empty for the root."""
    delay_ms: float
    """The time in the tree, milliseconds: the mean of about the last 16 packets."""
    destination: str
    """The destination address."""
    destination_port: int
    """Its port, or 0."""
    discipline: str
    """The discipline of that queue. Empty if it is not there any more."""
    dropped: int
    """Packets that were dropped."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that its direction receives from."""
    idle_s: float
    """The time since its last packet, seconds."""
    lan: LanStatus | None = None
    """
    Whose flow this is in the LAN, if the run is on a router that translates its address (`nat`). It is
    behind the destination of received packets, and behind the source of packets that are sent.
    """
    lost_before: LossStatus | None = None
    """What of it was lost before it got here, of a TCP flow that had data in the last 10 seconds."""
    marked: int
    """Packets that the trees marked with congestion experienced."""
    packets: int
    """Packets that were sent."""
    protocol: str
    """The name of the transport protocol, or the number of one without a name here."""
    rate_bps: float
    """What was sent over the last second, bit/s."""
    round_trip_ms: RoundTripStatus | None = None
    """The time from here to the destination and back, of a TCP connection with timestamps."""
    source: str
    """The source address. It is `::` if the packets are no IP packets."""
    source_port: int
    """Its port, or 0."""
    subscriber: SubscriberName | None = None
    """The subscriber whose class that queue is in, if the tree is that of a list of subscribers."""


class FlowsStatus(Model):
    """The flows of a run that had packets in the last minute."""

    active: int
    """The number of flows."""
    flows: list[FlowStatus]
    """The first of the flows, in the order that was asked for."""
    forgotten: int
    """The number of flows that were forgotten, because there was no room for more."""
    missed_packets: int
    """The number of packets that are missing here, because the run was too busy to note them."""
    observed_s: float
    """
    For how long flows have been observed, seconds. It begins when somebody asks for them, and ends half a
    minute after the last one has, unless the run has a packet log.
    """


class HistoryDocument(Model):
    """What the classes of a direction did. All lists have a member for each of the times."""

    at_s: list[float]
    """
    The ends of the steps, seconds since the start of the run. Those of runs before it are negative. Where
    none was there, a step has null for all values.
    """
    classes: int
    """
    How many classes have a history in short steps: those that send most. A class gets its place when it
    has clearly sent more than another one, in the last hour above all. What it did before is null.
    """
    classes_limit: int
    """How many classes may have one."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that the direction receives from."""
    now_s: float
    """When the last reading was made, seconds since the start of the run."""
    schema_: Annotated[str, Field(alias="schema")]
    """`fairgate.history/1`."""
    series: list[SeriesDocument]
    """The root, and the classes that are wanted."""
    step_s: float
    """
    The length of a step: a reading each second or less often, or means of 10 s or of a minute. Of a class
    that is not among those that send most: means of 5 minutes.
    """
    to: str
    """The interface that it sends to."""


class Interval(Model):
    """What the disciplines of a run did in an interval."""

    at_s: float
    """When it ended, in seconds since the start of the run."""
    missed_delays: int
    """Sojourn times that are not in the percentiles, because the run was too busy to count them."""
    rows: list[ClassInterval]
    """A row for each root, and for each other discipline where packets came, left or waited."""


class NodeStatus(Model):
    """The status of a discipline and its classes."""

    at_s: float | None = None
    """
    When these figures were read, in seconds since the start of the run. A rate is the difference of two
    counters divided by the difference of their times.
    """
    backlog: CountStatus
    """Packets queued now."""
    class_: Annotated[int | None, Field(alias="class")] = None
    """The class of the parent that this discipline serves. `None` for the root."""
    class_states: Annotated[list[ClassStatus], Field(validate_default=True)] = []
    """The state of classes that have more than a discipline, including inner nodes."""
    classes: list[NodeStatus]
    """The disciplines of its classes. Classes that are reserved for hosts but not assigned are left out."""
    dequeued: CountStatus
    """Packets dequeued."""
    discipline: str
    """The discipline's name."""
    dropped: CountStatus
    """Packets dropped."""
    drops: dict[str, int]
    """Packets dropped, by reason. Reasons that did not occur are left out."""
    enqueued: CountStatus
    """Packets enqueued."""
    estimated: RateStatus | None = None
    """The rate, if the discipline has an estimator."""
    estimated_classes: Annotated[list[ClassRateStatus], Field(validate_default=True)] = []
    """The rates of classes that have an estimator, in the order of their numbers."""
    flushed: CountStatus
    """Packets flushed, or moved to a discipline that replaced this one."""
    host: str | None = None
    """
    The host that has this class, if classes are assigned to hosts. The counters of this node are then
    since the host got the class. Counters of disciplines below it are since the start.
    """
    limit_bps: int | None = None
    """What the list lets it send at most, bit/s."""
    marked: int
    """Packets marked with congestion experienced."""
    name: str | None = None
    """
    What a list of subscribers calls this class: the name of a node of the network, or that of a
    subscriber, or its identifier if it has none.
    """
    node: int | None = None
    """The class of the node that it is connected to."""
    overlimits: int
    """How often nothing could be sent although packets were queued."""
    sojourn_s: float
    """
    The sum of the sojourn times of all dequeued packets, seconds. The sojourn time is measured from
    arrival at to departure from this node. From two statuses, divide the difference of these sums by the
    difference of `dequeued.packets`: the result is the mean delay between them.
    """
    subscriber: SubscriberName | None = None
    """The subscriber that this class belongs to, if the tree is that of a list of subscribers."""
    variables: dict[str, Value]
    """State variables, under the field's usual names."""


class OutlineDocument(Tagged):
    """What a tree is made of."""

    from_: Annotated[str, Field(alias="from")]
    """The interface that the direction receives from."""
    places: list[OutlineEntry]
    """Its places, each behind the one above it. The first is the root."""
    revision: int
    """The revision of the trees."""
    to: str
    """The interface that it sends to."""


class PlaceDocument(Tagged):
    """What can be set at a place."""

    changeable: list[Changeable]
    """What can be set: of the class, then of its discipline."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that the direction receives from."""
    path: str
    """The path of the place."""
    revision: int
    """The revision of the trees."""


class ReservationStatus(Model):
    """A reservation."""

    class_: Annotated[str, Field(alias="class")]
    """The path of classes to its class."""
    error_terms: ErrorTermsStatus | None = None
    """What the hop adds along a path. None if its bound does not have this form."""
    expires_s: float
    """When it ends unless it is refreshed, in seconds from now."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that its direction receives from."""
    no_error_terms: str | None = None
    """Why there are none."""
    promised_us: float
    """The delay that is promised, microseconds."""
    reserved_bps: int
    """The rate that is guaranteed, bit/s."""
    terms: TermsStatus
    """What was asked for."""


class Reservations(Tagged):
    """Reservations: the one that was added, changed or refreshed, none after it was withdrawn, or all."""

    reservations: list[ReservationStatus]
    """The reservations."""
    revision: int
    """The revision of the trees."""


class Side(Model):
    """A direction of a subscriber."""

    figures: ClassFigures | None = None
    """What its class did between the last two readings of the run; nothing if no packet has come to it."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that the direction receives from."""
    shared: list[SharedNode]
    """The nodes of the network that it shares with others, the nearest one first."""
    why: Why
    """Why it is slow, or that nothing here slows it."""


class SubscriberNow(Model):
    """What a subscriber does just now."""

    at_s: float
    """When the last reading was made, seconds since the start of the run."""
    down: Side
    """What goes to it."""
    flows: list[FlowStatus]
    """Its flows, those with the highest rates: 100 at most."""
    id: str
    """Its identifier."""
    schema_: Annotated[str, Field(alias="schema")]
    """`fairgate.subscriber/1`."""
    up: Side
    """What comes from it."""


class ClassDocument(Model):
    """A class: the state that the discipline above it keeps for it, and the discipline in it."""

    discipline: NodeStatus | None = None
    """The discipline in it. An inner class of a tree of classes has none."""
    estimated: RateStatus | None = None
    """Its rate, if it has an estimator."""
    from_: Annotated[str, Field(alias="from")]
    """The interface that its direction receives from."""
    path: str
    """The numbers of the classes from the root on, as `20/3`."""
    state: ClassStatus | None = None
    """What the discipline above it keeps for it: only of htb, hfsc and cbq."""


class DirectionStatus(Model):
    """The status of one direction."""

    from_: Annotated[str, Field(alias="from")]
    """The interface that frames are received from."""
    in_line: int
    """Frames between the tree and the socket: in the delay line, or waiting for room in the socket."""
    lost: Losses
    """Frames lost outside of the tree, by reason."""
    passed_by: int | None = None
    """Packets that went past the run, through the kernel and unshaped. The tree does not count them."""
    queue: str | None = None
    """
    The description of the tree: `[queue.tree]` of a configuration file. A status of what is used only
    does not have it.
    """
    rate_bps: float
    """Bits per second sent over the last second."""
    sent: CountStatus
    """Frames passed to the kernel, including the Ethernet header."""
    socket_full: int
    """How often the socket had no room. No frames are lost by this."""
    sojourn: Sojourn
    """The time from arrival to departure from the tree, of each frame."""
    super_packets: int | None = None
    """Super-packets that were scheduled as one packet each; the tree counts each as one."""
    to: str
    """The interface that frames are sent to."""
    tree: NodeStatus
    """The tree of disciplines."""


class Status(Model):
    """The status of a run."""

    autorate: AutorateStatus | None = None
    """The rates that follow the line, if there are any."""
    changes: ChangesStatus | None = None
    """What has changed during the run."""
    directions: list[DirectionStatus]
    """The directions from left to right and from right to left."""
    fallback: str | None = None
    """Why the run has another configuration than its file says, if so."""
    isolated: bool
    """Whether both interfaces are isolated from this machine's own stack."""
    name: str
    """The run's name."""
    nat: NatStatus | None = None
    """The translations of addresses that trees look up, if they do."""
    passed_by: PassedByStatus | None = None
    """The times in which packets went past this run on one interface, because it took none."""
    pid: int
    """Its process id."""
    processor: ProcessorStatus
    """How punctual the forwarding thread is."""
    revision: int | None = None
    """The revision of the trees. It grows by 1 with each change, and is 0 at the start."""
    uptime_s: float
    """Seconds since its start."""


NodeStatus.model_rebuild()
