"""A function for each discipline: ``fq_codel(target="5ms")`` is ``Tree("fq_codel", target="5ms")``.

This file is written by python/generate_disciplines.py from the registry of the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .trees import Class, Filter, Tree

__all__ = [
    "admission",
    "ared",
    "busy_link",
    "cake",
    "cbq",
    "cbs",
    "choke",
    "codel",
    "drr",
    "dualpi2",
    "etf",
    "ets",
    "fifo",
    "fq",
    "fq_codel",
    "fq_nagle",
    "fq_pie",
    "frr",
    "gfq",
    "gred",
    "hfsc",
    "hhf",
    "hsqf",
    "htb",
    "leaky_bucket",
    "lqf",
    "mq",
    "msfc",
    "netem",
    "pdrr",
    "pfifo_fast",
    "pfq",
    "pie",
    "policer",
    "prio",
    "qfq",
    "qfq_plus",
    "red",
    "rred",
    "s_kps",
    "scfq",
    "sfb",
    "sfq",
    "sqf",
    "tbf",
    "wf2q_plus",
    "wfq",
    "wred",
]


def fifo(
    *,
    limit: float | str | None = None,
    limit_bytes: str | None = None,
    drop: str | None = None,
) -> Tree:
    """First in, first out, with a limit of packets, bytes or both.

    Use it: As a leaf of other disciplines, and as the baseline of comparisons.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog in packets. In packets. Allowed: at least 1, or none. Default: 1000.
    limit_bytes : str, optional
        The largest backlog in bytes. Allowed: at least 1b, or none. Default: none.
    drop : str, optional
        Which packet is dropped when the queue is full: the arriving one or the oldest. Allowed: tail or
        head. Default: tail.
    """
    return Tree(
        "fifo",
        limit=limit,
        limit_bytes=limit_bytes,
        drop=drop,
    )


def pfifo_fast(
    *,
    limit: float | str | None = None,
) -> Tree:
    """Three fifos in strict priority, chosen by the packet's priority; Linux's former default.

    Use it: To compare with the queue of Linux machines before fq_codel.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog of each of the three bands. In packets. Allowed: at least 1. Default: 1000.
    """
    return Tree(
        "pfifo_fast",
        limit=limit,
    )


def prio(
    *,
    priomap: Sequence[int] | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Strict priority over classes, each with any discipline inside.

    Use it: Where one kind of traffic must always go first and is known to be little. It can starve the
    rest.

    Parameters
    ----------
    priomap : Sequence[int] | str, optional
        The band, counted from 0, for each packet priority from 0 to 15, where no filter chooses a class.
        Allowed: 16 numbers, 0 to 63. Default: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1].
    classes : iterable of Class
        Its classes.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "prio",
        priomap=priomap,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def tbf(
    *,
    rate: str,
    burst: str,
    limit: str | None = None,
    latency: str | None = None,
    peakrate: str | None = None,
    mtu: str | None = None,
    stripped: str | None = None,
    overhead: str | None = None,
    mpu: str | None = None,
    cells: str | None = None,
    inner: Tree | None = None,
) -> Tree:
    """Token bucket shaper over a fifo or any discipline inside.

    Use it: To send a little slower than the modem, so that the queue is here and not in the modem.

    Parameters
    ----------
    rate : str
        The rate at which packets leave. Allowed: at least 1bit.
    burst : str
        Bytes that may leave at once after an idle time: at least the longest packet. Allowed: at least
        1b.
    limit : str, optional
        The largest backlog; not with an inner discipline. Allowed: at least 1b, or none. Default: none.
    latency : str, optional
        The longest time that a packet may be queued, instead of `limit`. Allowed: at least 1ns, or none.
        Default: none.
    peakrate : str, optional
        The rate at which a burst leaves: above the rate. Allowed: at least 1bit, or none. Default: none.
    mtu : str, optional
        Bytes that may leave at once at the peak rate: at least the longest packet. Allowed: at least 1b,
        or none. Default: none.
    stripped : str, optional
        The bytes of each packet that the link does not send; they are not paid for. Allowed: 0b to 255b.
        Default: 0b.
    overhead : str, optional
        The bytes that the link adds to each packet; they are paid for. Allowed: 0b to 65535b. Default:
        0b.
    mpu : str, optional
        The least bytes that are paid for a packet. Allowed: 0b to 65535b. Default: 0b.
    cells : str, optional
        How the link encodes packets: ATM sends 53 bytes for 48, PTM 65 for 64. Allowed: uncut or atm or
        ptm. Default: uncut.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "tbf",
        rate=rate,
        burst=burst,
        limit=limit,
        latency=latency,
        peakrate=peakrate,
        mtu=mtu,
        stripped=stripped,
        overhead=overhead,
        mpu=mpu,
        cells=cells,
        inner=inner,
    )


def leaky_bucket(
    *,
    rate: str,
    bucket: str,
) -> Tree:
    """A queue that sends at a constant rate, without bursts, and drops on overflow.

    Use it: In front of something that takes no bursts at all: a radio link, a policer, a short hardware
    queue.

    Parameters
    ----------
    rate : str
        The rate at which packets leave. Allowed: at least 8bit.
    bucket : str
        The largest backlog: at least the longest packet. Allowed: at least 1b.
    """
    return Tree(
        "leaky_bucket",
        rate=rate,
        bucket=bucket,
    )


def policer(
    *,
    rate: str,
    burst: str,
    peakrate: str | None = None,
    mtu: str | None = None,
    remark: float | str | None = None,
    inner: Tree | None = None,
) -> Tree:
    """Drops or re-marks packets that exceed a rate and a burst; any discipline inside.

    Use it: To hold senders to a contract without queueing, or to mark the packets that are dropped first
    later on.

    Parameters
    ----------
    rate : str
        The rate that conforms. Allowed: at least 1bit.
    burst : str
        Bytes that conform at once after an idle time: at least the longest packet. Allowed: at least 1b.
    peakrate : str, optional
        The rate of bursts that conforms: above the rate. Allowed: at least 1bit, or none. Default: none.
    mtu : str, optional
        Bytes that conform at once at the peak rate: at least the longest packet. Allowed: at least 1b, or
        none. Default: none.
    remark : float | str, optional
        The DSCP for packets that exceed the rate; without it they are dropped. In DSCP. Allowed: 0 to 63,
        or none. Default: none.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "policer",
        rate=rate,
        burst=burst,
        peakrate=peakrate,
        mtu=mtu,
        remark=remark,
        inner=inner,
    )


def cbs(
    *,
    idleslope: str,
    sendslope: str,
    hicredit: str,
    locredit: str,
    inner: Tree | None = None,
) -> Tree:
    """Credit-based shaper for audio and video (802.1Qav) over a fifo or any discipline inside.

    Use it: In a class of prio for a stream with a reserved rate, whose packets must leave evenly.

    Parameters
    ----------
    idleslope : str
        The rate that is reserved for the queue: credit grows at it. Allowed: 8bit to 1125899906842624bit.
    sendslope : str
        The rate of the port less `idleslope`: credit falls at it while a packet is sent. Allowed: 8bit to
        1125899906842624bit.
    hicredit : str
        The most credit: what other queues can send meanwhile, times `idleslope` / the port's rate.
        Allowed: 0b to 2147483647b.
    locredit : str
        The most debt: the longest packet times `sendslope` / the port's rate. Allowed: 0b to 2147483647b.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "cbs",
        idleslope=idleslope,
        sendslope=sendslope,
        hicredit=hicredit,
        locredit=locredit,
        inner=inner,
    )


def etf(
    *,
    delta: str | None = None,
    deadline_mode: bool | None = None,
) -> Tree:
    """Each packet leaves at its own departure time; late ones are dropped.

    Use it: In a program that knows when each packet must leave; frames from an interface have no such
    time.

    Parameters
    ----------
    delta : str, optional
        How long before its departure time a packet is handed to the driver. Allowed: 0ns to 2147483647ns.
        Default: 0ns.
    deadline_mode : bool, optional
        Whether packets leave as soon as possible, and the departure time is the latest one. Allowed: true
        or false. Default: false.
    """
    return Tree(
        "etf",
        delta=delta,
        deadline_mode=deadline_mode,
    )


def netem(
    *,
    limit: float | str | None = None,
    delay: str | None = None,
    jitter: str | None = None,
    delay_correlation: float | str | None = None,
    distribution: str | None = None,
    table: Sequence[int] | str | None = None,
    loss: float | str | None = None,
    loss_correlation: float | str | None = None,
    p13: float | str | None = None,
    p31: float | str | None = None,
    p32: float | str | None = None,
    p23: float | str | None = None,
    p14: float | str | None = None,
    p: float | str | None = None,
    r: float | str | None = None,
    loss_bad: float | str | None = None,
    loss_good: float | str | None = None,
    ecn: bool | None = None,
    duplicate: float | str | None = None,
    duplicate_correlation: float | str | None = None,
    corrupt: float | str | None = None,
    corrupt_correlation: float | str | None = None,
    reorder: float | str | None = None,
    reorder_correlation: float | str | None = None,
    gap: float | str | None = None,
    rate: str | None = None,
    packet_overhead: float | str | None = None,
    cell_size: str | None = None,
    cell_overhead: float | str | None = None,
    slot_min: str | None = None,
    slot_max: str | None = None,
    slot_delay: str | None = None,
    slot_jitter: str | None = None,
    slot_distribution: str | None = None,
    slot_table: Sequence[int] | str | None = None,
    slot_packets: float | str | None = None,
    slot_bytes: str | None = None,
    inner: Tree | None = None,
) -> Tree:
    """Emulates a network: delay, jitter, loss, duplicates, wrong bits, reordering, rate, slots.

    Use it: To try programs and disciplines behind a long or bad path, live or simulated.

    Parameters
    ----------
    limit : float | str, optional
        The most packets that are delayed at a time. In packets. Allowed: at least 1. Default: 1000.
    delay : str, optional
        The delay of each packet. Allowed: 0ns to 86400s. Default: 0ns.
    jitter : str, optional
        The deviation of the delay; packets may overtake each other. Allowed: 0ns to 86400s. Default: 0ns.
    delay_correlation : float | str, optional
        The weight of the last random number in the next delay. In probability. Allowed: 0 to 1. Default:
        0.
    distribution : str, optional
        The distribution of the delay. Allowed: uniform or normal or pareto or paretonormal or table.
        Default: uniform.
    table : Sequence[int] | str, optional
        With `distribution = "table"`: deviations from the mean in 8192ths of the jitter, rising. Allowed:
        at most 16384 numbers, -32768 to 32768. Default: [].
    loss : float | str, optional
        The probability that a packet is lost. In probability. Allowed: 0 to 1, or none. Default: none.
    loss_correlation : float | str, optional
        The weight of the last random number in the next decision on a loss. In probability. Allowed: 0 to
        1. Default: 0.
    p13 : float | str, optional
        Losses by four states: the probability that a burst of losses begins. In probability. Allowed: 0
        to 1, or none. Default: none.
    p31 : float | str, optional
        Losses by four states: the probability that a burst ends; by default 1 - `p13`. In probability.
        Allowed: 0 to 1, or none. Default: none.
    p32 : float | str, optional
        Losses by four states: the probability that packets go through within a burst; by default 0. In
        probability. Allowed: 0 to 1, or none. Default: none.
    p23 : float | str, optional
        Losses by four states: the probability that losses continue within a burst; by default 1. In
        probability. Allowed: 0 to 1, or none. Default: none.
    p14 : float | str, optional
        Losses by four states: the probability of a single loss; by default 0. In probability. Allowed: 0
        to 1, or none. Default: none.
    p : float | str, optional
        Losses by Gilbert and Elliott: the probability that bad times begin. In probability. Allowed: 0 to
        1, or none. Default: none.
    r : float | str, optional
        Losses by Gilbert and Elliott: the probability that bad times end; by default 1 - `p`. In
        probability. Allowed: 0 to 1, or none. Default: none.
    loss_bad : float | str, optional
        Losses by Gilbert and Elliott: the probability of a loss in bad times; by default 1. In
        probability. Allowed: 0 to 1, or none. Default: none.
    loss_good : float | str, optional
        Losses by Gilbert and Elliott: the probability of a loss in good times; by default 0. In
        probability. Allowed: 0 to 1, or none. Default: none.
    ecn : bool, optional
        Whether an ECN-capable packet is marked instead of lost. Allowed: true or false. Default: false.
    duplicate : float | str, optional
        The probability that a packet arrives twice. In probability. Allowed: 0 to 1. Default: 0.
    duplicate_correlation : float | str, optional
        The weight of the last random number in the next decision on a duplicate. In probability. Allowed:
        0 to 1. Default: 0.
    corrupt : float | str, optional
        The probability that a bit of a packet is wrong. In probability. Allowed: 0 to 1. Default: 0.
    corrupt_correlation : float | str, optional
        The weight of the last random number in the next decision on a wrong bit. In probability. Allowed:
        0 to 1. Default: 0.
    reorder : float | str, optional
        The probability that a packet is not delayed, and overtakes those that wait. In probability.
        Allowed: 0 to 1, or none. Default: none.
    reorder_correlation : float | str, optional
        The weight of the last random number in the next decision on the order. In probability. Allowed: 0
        to 1. Default: 0.
    gap : float | str, optional
        The least distance of packets that are not delayed, from one to the next. In packets. Allowed: at
        least 0. Default: 0.
    rate : str, optional
        The rate at which packets are sent one after the other. Allowed: at least 8bit, or none. Default:
        none.
    packet_overhead : float | str, optional
        The bytes that are added to each packet at the rate; negative ones are subtracted. In signed
        bytes. Allowed: -1048576 to 1048576. Default: 0.
    cell_size : str, optional
        The payload of a cell into which packets are cut at the rate; 0 for no cells. Allowed: 0b to 1mb.
        Default: 0b.
    cell_overhead : float | str, optional
        The bytes that are added to each cell. In signed bytes. Allowed: -1048576 to 1048576. Default: 0.
    slot_min : str, optional
        The least time between slots. Allowed: 0ns to 86400s, or none. Default: none.
    slot_max : str, optional
        The longest time between slots; by default the least. Allowed: 0ns to 86400s, or none. Default:
        none.
    slot_delay : str, optional
        The mean time between slots, instead of `slot_min`. Allowed: 0ns to 86400s, or none. Default:
        none.
    slot_jitter : str, optional
        The deviation of the time between slots. Allowed: 0ns to 86400s, or none. Default: none.
    slot_distribution : str, optional
        The distribution of the time between slots, with `slot_delay`. Allowed: uniform or normal or
        pareto or paretonormal or table. Default: uniform.
    slot_table : Sequence[int] | str, optional
        With `slot_distribution = "table"`: deviations from the mean, as in `table`. Allowed: at most
        16384 numbers, -32768 to 32768. Default: [].
    slot_packets : float | str, optional
        The most packets of a slot. In packets. Allowed: 1 to 2147483647, or none. Default: none.
    slot_bytes : str, optional
        The bytes after which a slot ends. Allowed: 1b to 2147483647b, or none. Default: none.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "netem",
        limit=limit,
        delay=delay,
        jitter=jitter,
        delay_correlation=delay_correlation,
        distribution=distribution,
        table=table,
        loss=loss,
        loss_correlation=loss_correlation,
        p13=p13,
        p31=p31,
        p32=p32,
        p23=p23,
        p14=p14,
        p=p,
        r=r,
        loss_bad=loss_bad,
        loss_good=loss_good,
        ecn=ecn,
        duplicate=duplicate,
        duplicate_correlation=duplicate_correlation,
        corrupt=corrupt,
        corrupt_correlation=corrupt_correlation,
        reorder=reorder,
        reorder_correlation=reorder_correlation,
        gap=gap,
        rate=rate,
        packet_overhead=packet_overhead,
        cell_size=cell_size,
        cell_overhead=cell_overhead,
        slot_min=slot_min,
        slot_max=slot_max,
        slot_delay=slot_delay,
        slot_jitter=slot_jitter,
        slot_distribution=slot_distribution,
        slot_table=slot_table,
        slot_packets=slot_packets,
        slot_bytes=slot_bytes,
        inner=inner,
    )


def busy_link(
    *,
    rate: str,
    extra: Sequence[int] | str | None = None,
    lost_from: float | str | None = None,
    burst: str | None = None,
    inner: Tree | None = None,
) -> Tree:
    """Emulates a link that is busy for an extra random time with each packet, and loses some.

    Use it: To try disciplines in front of a radio or a shared medium, where packets cost more than their
    bytes.

    Parameters
    ----------
    rate : str
        The rate at which the bytes of packets are sent. Allowed: at least 8bit.
    extra : Sequence[int] | str, optional
        Extra times in microseconds, equally likely: the link is busy for one of them with each packet.
        Allowed: at most 1024 numbers, 0 to 3600000000. Default: [].
    lost_from : float | str, optional
        The first entry of `extra`, counted from 0, whose packets are lost at the end of their time. In
        entries. Allowed: 0 to 1023, or none. Default: none.
    burst : str, optional
        Bytes that leave at once after an idle time. Allowed: at least 0b. Default: 0b.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "busy_link",
        rate=rate,
        extra=extra,
        lost_from=lost_from,
        burst=burst,
        inner=inner,
    )


def red(
    *,
    limit: str | None = None,
    limit_packets: float | str | None = None,
    min: str | None = None,
    max: str | None = None,
    avpkt: str | None = None,
    burst: float | str | None = None,
    probability: float | str | None = None,
    bandwidth: str | None = None,
    ecn: bool | None = None,
    harddrop: bool | None = None,
    nodrop: bool | None = None,
    adaptive: bool | None = None,
    gentle: bool | None = None,
    measure: str | None = None,
    by_length: bool | None = None,
    inner: Tree | None = None,
) -> Tree:
    """Random early detection: random marks or drops, more often the longer the queue is on average.

    Use it: To compare with what routers have done since 1993, or where the rate and traffic of a link are
    well known.

    Parameters
    ----------
    limit : str, optional
        The largest backlog in bytes. Allowed: at least 1b. Default: 400000b.
    limit_packets : float | str, optional
        The largest backlog in packets; not with an inner discipline. In packets. Allowed: at least 1, or
        none. Default: none.
    min : str, optional
        The average from which on packets are marked; none for a third of `max`. Allowed: at least 1b, or
        none. Default: none.
    max : str, optional
        The average from which on every packet is marked; none for three times `min`, or a quarter of
        `limit`. Allowed: at least 1b, or none. Default: none.
    avpkt : str, optional
        The length of a typical packet. Allowed: at least 1b. Default: 1000b.
    burst : float | str, optional
        The packets that may arrive at once unmarked; none for (2 `min` + `max`) / 3 in packets of
        `avpkt`. In packets. Allowed: at least 1, or none. Default: none.
    probability : float | str, optional
        The probability of a mark where the average is at `max`. In probability. Allowed: 0 to 1. Default:
        0.02.
    bandwidth : str, optional
        The rate of the link, which converts idle time into packets. Allowed: at least 1bit. Default:
        10mbit.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    harddrop : bool, optional
        With `ecn`: whether all packets above `max` are dropped, ECN-capable or not. Allowed: true or
        false. Default: false.
    nodrop : bool, optional
        With `ecn`: whether packets that cannot be marked are queued instead of dropped. Allowed: true or
        false. Default: false.
    adaptive : bool, optional
        Whether `probability` is adapted every 0.5 s, to hold the average halfway between `min` and `max`.
        Allowed: true or false. Default: false.
    gentle : bool, optional
        Whether above `max` the probability rises to 1 gradually, up to twice `max`. Allowed: true or
        false. Default: false.
    measure : str, optional
        The unit of the average; packets count as `avpkt` bytes each. Allowed: bytes or packets. Default:
        bytes.
    by_length : bool, optional
        Whether a packet is marked in proportion to its length. Allowed: true or false. Default: false.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "red",
        limit=limit,
        limit_packets=limit_packets,
        min=min,
        max=max,
        avpkt=avpkt,
        burst=burst,
        probability=probability,
        bandwidth=bandwidth,
        ecn=ecn,
        harddrop=harddrop,
        nodrop=nodrop,
        adaptive=adaptive,
        gentle=gentle,
        measure=measure,
        by_length=by_length,
        inner=inner,
    )


def ared(
    *,
    bandwidth: str,
    target: str | None = None,
    avpkt: str | None = None,
    limit: str | None = None,
    ecn: bool | None = None,
    harddrop: bool | None = None,
    nodrop: bool | None = None,
    inner: Tree | None = None,
) -> Tree:
    """Adaptive RED: derives its thresholds from the rate of the link and adapts its probability to the queue.

    Use it: Where RED is wanted without tuning it, on a link of known rate.

    Parameters
    ----------
    bandwidth : str
        The rate of the link. Allowed: at least 1bit.
    target : str, optional
        The delay that the average queue should have. Allowed: at least 1ns. Default: 5ms.
    avpkt : str, optional
        The length of a typical packet. Allowed: at least 1b. Default: 1000b.
    limit : str, optional
        The largest backlog in bytes; none for four times RED's `max`. Allowed: at least 1b, or none.
        Default: none.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    harddrop : bool, optional
        With `ecn`: whether all packets above `max` are dropped, ECN-capable or not. Allowed: true or
        false. Default: false.
    nodrop : bool, optional
        With `ecn`: whether packets that cannot be marked are queued instead of dropped. Allowed: true or
        false. Default: false.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "ared",
        bandwidth=bandwidth,
        target=target,
        avpkt=avpkt,
        limit=limit,
        ecn=ecn,
        harddrop=harddrop,
        nodrop=nodrop,
        inner=inner,
    )


def wred(
    *,
    limit: str | None = None,
    min_0: str | None = None,
    max_0: str | None = None,
    probability_0: float | str | None = None,
    min_1: str | None = None,
    max_1: str | None = None,
    probability_1: float | str | None = None,
    min_2: str | None = None,
    max_2: str | None = None,
    probability_2: float | str | None = None,
    precedence: Sequence[int] | str | None = None,
    avpkt: str | None = None,
    burst: float | str | None = None,
    bandwidth: str | None = None,
    ecn: bool | None = None,
    harddrop: bool | None = None,
    nodrop: bool | None = None,
    gentle: bool | None = None,
) -> Tree:
    """RED with a curve for each drop precedence: packets marked as out of profile are dropped first.

    Use it: Behind a policer or a network that marks drop precedences by DSCP (assured forwarding, RFC
    2597).

    Parameters
    ----------
    limit : str, optional
        The largest backlog in bytes. Allowed: at least 1b. Default: 400000b.
    min_0 : str, optional
        The average from which on packets of precedence 0 are marked. Allowed: at least 1b. Default:
        60000b.
    max_0 : str, optional
        The average from which on all packets of precedence 0 are marked. Allowed: at least 1b. Default:
        90000b.
    probability_0 : float | str, optional
        The probability of a mark at `max_0`. In probability. Allowed: 0 to 1. Default: 0.02.
    min_1 : str, optional
        The average from which on packets of precedence 1 are marked. Allowed: at least 1b. Default:
        45000b.
    max_1 : str, optional
        The average from which on all packets of precedence 1 are marked. Allowed: at least 1b. Default:
        90000b.
    probability_1 : float | str, optional
        The probability of a mark at `max_1`. In probability. Allowed: 0 to 1. Default: 0.05.
    min_2 : str, optional
        The average from which on packets of precedence 2 are marked. Allowed: at least 1b. Default:
        30000b.
    max_2 : str, optional
        The average from which on all packets of precedence 2 are marked. Allowed: at least 1b. Default:
        90000b.
    probability_2 : float | str, optional
        The probability of a mark at `max_2`. In probability. Allowed: 0 to 1. Default: 0.1.
    precedence : Sequence[int] | str, optional
        The drop precedence of each DSCP; by default that of assured forwarding, and 0 for others.
        Allowed: 64 numbers, 0 to 2. Default: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0,
        1, 0, 2, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].
    avpkt : str, optional
        The length of a typical packet. Allowed: at least 1b. Default: 1000b.
    burst : float | str, optional
        The packets that may arrive at once unmarked; none for (2 min + max) / 3 of the lowest curve. In
        packets. Allowed: at least 1, or none. Default: none.
    bandwidth : str, optional
        The rate of the link, which converts idle time into packets. Allowed: at least 1bit. Default:
        10mbit.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    harddrop : bool, optional
        With `ecn`: whether all packets above `max` are dropped, ECN-capable or not. Allowed: true or
        false. Default: false.
    nodrop : bool, optional
        With `ecn`: whether packets that cannot be marked are queued instead of dropped. Allowed: true or
        false. Default: false.
    gentle : bool, optional
        Whether above a curve's max the probability rises to 1 gradually, up to twice the max. Allowed:
        true or false. Default: false.
    """
    return Tree(
        "wred",
        limit=limit,
        min_0=min_0,
        max_0=max_0,
        probability_0=probability_0,
        min_1=min_1,
        max_1=max_1,
        probability_1=probability_1,
        min_2=min_2,
        max_2=max_2,
        probability_2=probability_2,
        precedence=precedence,
        avpkt=avpkt,
        burst=burst,
        bandwidth=bandwidth,
        ecn=ecn,
        harddrop=harddrop,
        nodrop=nodrop,
        gentle=gentle,
    )


def gred(
    *,
    limit: str | None = None,
    queues: float | str | None = None,
    default_queue: float | str | None = None,
    grio: bool | None = None,
    ecn: bool | None = None,
    harddrop: bool | None = None,
    precedence: Sequence[int] | str | None = None,
    limits: Sequence[int] | str | None = None,
    min: Sequence[int] | str | None = None,
    max: Sequence[int] | str | None = None,
    avpkt: Sequence[int] | str | None = None,
    burst: Sequence[int] | str | None = None,
    probability: Sequence[int] | str | None = None,
    bandwidth: Sequence[int] | str | None = None,
    priority: Sequence[int] | str | None = None,
) -> Tree:
    """RED with up to 16 virtual queues in one queue, each with a curve, an average and a limit of its own.

    Use it: To take over a gred of Linux, or for more drop precedences than the three of wred.

    Parameters
    ----------
    limit : str, optional
        The largest backlog in bytes. Allowed: at least 1b. Default: 400000b.
    queues : float | str, optional
        The number of virtual queues; tc's `vqs`. In virtual queues. Allowed: 1 to 16. Default: 3.
    default_queue : float | str, optional
        The virtual queue, from 0, of packets whose own one is not set up. In virtual queue. Allowed: 0 to
        15. Default: 0.
    grio : bool, optional
        Whether the averages of virtual queues with higher priorities count for a packet too; those with
        one priority share an average. Allowed: true or false. Default: false.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    harddrop : bool, optional
        With `ecn`: whether all packets above `max` are dropped, ECN-capable or not. Allowed: true or
        false. Default: false.
    precedence : Sequence[int] | str, optional
        The virtual queue of each DSCP, from 0. Allowed: 64 numbers, 0 to 15. Default: [0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].
    limits : Sequence[int] | str, optional
        The largest backlog of each virtual queue in bytes; 0 for one that is not set up. Allowed: at most
        16 numbers, 0 to 4294967295. Default: [400000, 400000, 400000].
    min : Sequence[int] | str, optional
        For each, the average in bytes from which on packets are marked; 0 for a third of `max`. Allowed:
        at most 16 numbers, 0 to 4294967295. Default: [30000, 30000, 30000].
    max : Sequence[int] | str, optional
        For each, the average in bytes from which on every packet is marked; 0 for three times `min`, or a
        quarter of the limit. Allowed: at most 16 numbers, 0 to 4294967295. Default: [90000, 90000,
        90000].
    avpkt : Sequence[int] | str, optional
        For each, the length of a typical packet in bytes; [] for 1000. Allowed: at most 16 numbers, 1 to
        4294967295. Default: [].
    burst : Sequence[int] | str, optional
        For each, the packets that may arrive at once unmarked; 0 for (2 `min` + `max`) / 3 in packets of
        `avpkt`. Allowed: at most 16 numbers, 0 to 4294967295. Default: [].
    probability : Sequence[int] | str, optional
        For each, the probability of a mark at `max` in millionths; [] for 20000, which is 2 %. Allowed:
        at most 16 numbers, 0 to 1000000. Default: [20000, 50000, 100000].
    bandwidth : Sequence[int] | str, optional
        For each, the rate of the link in kbit/s, which converts idle time into packets; [] for 10000.
        Allowed: at most 16 numbers, 1 to 4294967295. Default: [].
    priority : Sequence[int] | str, optional
        For each, the priority with `grio`, of which 1 is the highest; [] for 8. Allowed: at most 16
        numbers, 0 to 255. Default: [].
    """
    return Tree(
        "gred",
        limit=limit,
        queues=queues,
        default_queue=default_queue,
        grio=grio,
        ecn=ecn,
        harddrop=harddrop,
        precedence=precedence,
        limits=limits,
        min=min,
        max=max,
        avpkt=avpkt,
        burst=burst,
        probability=probability,
        bandwidth=bandwidth,
        priority=priority,
    )


def rred(
    *,
    t_star: str | None = None,
    bins: float | str | None = None,
    limit: str | None = None,
    limit_packets: float | str | None = None,
    min: str | None = None,
    max: str | None = None,
    avpkt: str | None = None,
    burst: float | str | None = None,
    probability: float | str | None = None,
    bandwidth: str | None = None,
    ecn: bool | None = None,
    harddrop: bool | None = None,
    nodrop: bool | None = None,
    adaptive: bool | None = None,
    gentle: bool | None = None,
    measure: str | None = None,
    by_length: bool | None = None,
) -> Tree:
    """Robust RED: RED behind a filter for flows that continue to send right after a drop.

    Use it: Against low-rate denial of service: bursts with the period of TCP's time-outs.

    Parameters
    ----------
    t_star : str, optional
        How long after a drop a packet is suspected. Allowed: 1ns to 60s. Default: 10ms.
    bins : float | str, optional
        Bins in each of three levels that flows are hashed into: a power of two. In bins. Allowed: 1 to
        65536. Default: 1024.
    limit : str, optional
        The largest backlog in bytes. Allowed: at least 1b. Default: 400000b.
    limit_packets : float | str, optional
        The largest backlog in packets; not with an inner discipline. In packets. Allowed: at least 1, or
        none. Default: none.
    min : str, optional
        The average from which on packets are marked; none for a third of `max`. Allowed: at least 1b, or
        none. Default: none.
    max : str, optional
        The average from which on every packet is marked; none for three times `min`, or a quarter of
        `limit`. Allowed: at least 1b, or none. Default: none.
    avpkt : str, optional
        The length of a typical packet. Allowed: at least 1b. Default: 1000b.
    burst : float | str, optional
        The packets that may arrive at once unmarked; none for (2 `min` + `max`) / 3 in packets of
        `avpkt`. In packets. Allowed: at least 1, or none. Default: none.
    probability : float | str, optional
        The probability of a mark where the average is at `max`. In probability. Allowed: 0 to 1. Default:
        0.02.
    bandwidth : str, optional
        The rate of the link, which converts idle time into packets. Allowed: at least 1bit. Default:
        10mbit.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    harddrop : bool, optional
        With `ecn`: whether all packets above `max` are dropped, ECN-capable or not. Allowed: true or
        false. Default: false.
    nodrop : bool, optional
        With `ecn`: whether packets that cannot be marked are queued instead of dropped. Allowed: true or
        false. Default: false.
    adaptive : bool, optional
        Whether `probability` is adapted every 0.5 s, to hold the average halfway between `min` and `max`.
        Allowed: true or false. Default: false.
    gentle : bool, optional
        Whether above `max` the probability rises to 1 gradually, up to twice `max`. Allowed: true or
        false. Default: false.
    measure : str, optional
        The unit of the average; packets count as `avpkt` bytes each. Allowed: bytes or packets. Default:
        bytes.
    by_length : bool, optional
        Whether a packet is marked in proportion to its length. Allowed: true or false. Default: false.
    """
    return Tree(
        "rred",
        t_star=t_star,
        bins=bins,
        limit=limit,
        limit_packets=limit_packets,
        min=min,
        max=max,
        avpkt=avpkt,
        burst=burst,
        probability=probability,
        bandwidth=bandwidth,
        ecn=ecn,
        harddrop=harddrop,
        nodrop=nodrop,
        adaptive=adaptive,
        gentle=gentle,
        measure=measure,
        by_length=by_length,
    )


def choke(
    *,
    limit: float | str | None = None,
    min: float | str | None = None,
    max: float | str | None = None,
    avpkt: str | None = None,
    burst: float | str | None = None,
    probability: float | str | None = None,
    bandwidth: str | None = None,
    ecn: bool | None = None,
    harddrop: bool | None = None,
) -> Tree:
    """RED that compares an arriving packet with a random queued one and drops both if they are of one flow.

    Use it: To limit unresponsive flows without state per flow; fair queueing does it better.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog in packets. In packets. Allowed: 1 to 131071. Default: 1000.
    min : float | str, optional
        The average above which packets are compared and marked; none for a third of `max`. In packets.
        Allowed: at least 1, or none. Default: none.
    max : float | str, optional
        The average above which every packet is marked; none for a quarter of `limit`. In packets.
        Allowed: at least 1, or none. Default: none.
    avpkt : str, optional
        The length of a typical packet. Allowed: at least 1b. Default: 1000b.
    burst : float | str, optional
        The packets that may arrive at once unmarked; none for (2 `min` + `max`) / 3. In packets. Allowed:
        at least 1, or none. Default: none.
    probability : float | str, optional
        The probability of a mark where the average is at `max`. In probability. Allowed: 0 to 1. Default:
        0.02.
    bandwidth : str, optional
        The rate of the link, which converts idle time into packets. Allowed: at least 1bit. Default:
        10mbit.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    harddrop : bool, optional
        With `ecn`: whether all packets above `max` are dropped, ECN-capable or not. Allowed: true or
        false. Default: false.
    """
    return Tree(
        "choke",
        limit=limit,
        min=min,
        max=max,
        avpkt=avpkt,
        burst=burst,
        probability=probability,
        bandwidth=bandwidth,
        ecn=ecn,
        harddrop=harddrop,
    )


def sfb(
    *,
    limit: float | str | None = None,
    max: float | str | None = None,
    target: float | str | None = None,
    increment: float | str | None = None,
    decrement: float | str | None = None,
    penalty_rate: float | str | None = None,
    penalty_burst: float | str | None = None,
    rehash: str | None = None,
    warmup: str | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """A fifo with BLUE for each flow by hashed bins: limits flows that ignore marks (Stochastic Fair Blue).

    Use it: To limit unresponsive flows with little state, as choke does, and to mark the others early.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog. In packets. Allowed: at least 1. Default: 1000.
    max : float | str, optional
        The most packets of a flow, by the least of its bins; none for five quarters of target. In
        packets. Allowed: 1 to 65535, or none. Default: none.
    target : float | str, optional
        The packets of a bin from which on its probability rises; none for four fifths of max, or 20. In
        packets. Allowed: 1 to 65535, or none. Default: none.
    increment : float | str, optional
        What a bin's probability rises by if a packet finds target packets there. In probability. Allowed:
        0 to 1. Default: 0.0005.
    decrement : float | str, optional
        What a bin's probability falls by if a packet finds no other there. In probability. Allowed: 0 to
        1. Default: 0.00005.
    penalty_rate : float | str, optional
        How many packets may pass of flows that do not react to marks and drops. In packets per second.
        Allowed: at least 0. Default: 10.
    penalty_burst : float | str, optional
        How many packets of such flows may pass at once. In packets. Allowed: at least 0. Default: 20.
    rehash : str, optional
        How often the hash changes, so that flows do not share bins for long; 0ns for never. Allowed: at
        least 0ns. Default: 600s.
    warmup : str, optional
        How long before a change of the hash the next bins learn which flows do not react. Allowed: at
        least 0ns. Default: 60s.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "sfb",
        limit=limit,
        max=max,
        target=target,
        increment=increment,
        decrement=decrement,
        penalty_rate=penalty_rate,
        penalty_burst=penalty_burst,
        rehash=rehash,
        warmup=warmup,
        filters=filters,
        handle=handle,
        default=default,
    )


def codel(
    *,
    limit: float | str | None = None,
    limit_bytes: str | None = None,
    target: str | None = None,
    interval: str | None = None,
    ecn: bool | None = None,
    ce_threshold: str | None = None,
    ce_threshold_selector: float | str | None = None,
    ce_threshold_mask: float | str | None = None,
    mtu: str | None = None,
) -> Tree:
    """Controlled Delay (RFC 8289): drops by the sojourn time of packets, not by their number.

    Use it: On one queue whose delay must stay low, if flows need not be separated.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog in packets. In packets. Allowed: at least 1. Default: 1000.
    limit_bytes : str, optional
        The largest backlog in bytes. Allowed: at least 1b, or none. Default: none.
    target : str, optional
        The acceptable standing delay. Allowed: 1024ns to 137s. Default: 5ms.
    interval : str, optional
        How long the delay may stay above the target: about the longest expected round-trip time. Allowed:
        1024ns to 137s. Default: 100ms.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    ce_threshold : str, optional
        Marks every ECN-capable packet with a longer sojourn time than this, for DCTCP. Allowed: 0ns to
        137s, or none. Default: none.
    ce_threshold_selector : float | str, optional
        The bits of the traffic class of the packets that ce_threshold is for: 1 and mask 3 are ECT(1). In
        traffic class. Allowed: 0 to 255. Default: 0.
    ce_threshold_mask : float | str, optional
        Which bits of the traffic class (DSCP and ECN) are compared; 0: ce_threshold is for all packets.
        In traffic class. Allowed: 0 to 255. Default: 0.
    mtu : str, optional
        No packet is dropped if at most this much is queued behind it: the longest packet. Allowed: at
        least 0b. Default: 1514b.
    """
    return Tree(
        "codel",
        limit=limit,
        limit_bytes=limit_bytes,
        target=target,
        interval=interval,
        ecn=ecn,
        ce_threshold=ce_threshold,
        ce_threshold_selector=ce_threshold_selector,
        ce_threshold_mask=ce_threshold_mask,
        mtu=mtu,
    )


def pie(
    *,
    limit: float | str | None = None,
    limit_bytes: str | None = None,
    on_off: bool | None = None,
    target: str | None = None,
    tupdate: str | None = None,
    alpha: float | str | None = None,
    beta: float | str | None = None,
    ecn: bool | None = None,
    ecn_prob: float | str | None = None,
    bytemode: bool | None = None,
    dq_rate_estimator: bool | None = None,
    mtu: str | None = None,
    max_burst: str | None = None,
    cap_drop: bool | None = None,
    derandomize: bool | None = None,
) -> Tree:
    """Proportional integral controller (RFC 8033): drops on arrival, with a probability that holds the delay at a target.

    Use it: On one queue whose delay must stay low, if packets must be dropped on arrival, as in cable
    modems (DOCSIS).

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog in packets. In packets. Allowed: at least 1. Default: 1000.
    limit_bytes : str, optional
        The largest backlog in bytes. Allowed: at least 1b, or none. Default: none.
    on_off : bool, optional
        Whether packets are only dropped or marked after a third of the limit was queued, until congestion
        is over (RFC 8033, section 5.3). Allowed: true or false. Default: false.
    target : str, optional
        The delay that PIE aims at. Allowed: 64ns to 60s. Default: 15ms.
    tupdate : str, optional
        Time between updates of the probability. Allowed: 64ns to 60s. Default: 15ms.
    alpha : float | str, optional
        Weight of the difference between delay and target, in sixteenths of 1/s. In weight. Allowed: 0 to
        32. Default: 2.
    beta : float | str, optional
        Weight of the change of the delay, in sixteenths of 1/s. In weight. Allowed: 0 to 32. Default: 20.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    ecn_prob : float | str, optional
        With `ecn`: the highest probability at which packets are marked; above it they are dropped. In
        probability. Allowed: 0 to 1. Default: 0.1.
    bytemode : bool, optional
        Whether a packet shorter than `mtu` is dropped in proportion to its length. Allowed: true or
        false. Default: false.
    dq_rate_estimator : bool, optional
        Whether the delay is computed from the backlog and the rate of departures, instead of measured.
        Allowed: true or false. Default: false.
    mtu : str, optional
        The longest packet: nothing is dropped with less than two of them queued. Allowed: at least 1b.
        Default: 1514b.
    max_burst : str, optional
        How long nothing is dropped at the beginning of congestion. Allowed: 0ns to 60s. Default: 150ms.
    cap_drop : bool, optional
        Whether a drop probability above 10 % rises by at most 2 % in an update (RFC 8033, section 5.5).
        Allowed: true or false. Default: true.
    derandomize : bool, optional
        Whether drops are spread evenly: between two there are 0.85 to 8.5 expected drops (RFC 8033,
        section 5.4). Allowed: true or false. Default: true.
    """
    return Tree(
        "pie",
        limit=limit,
        limit_bytes=limit_bytes,
        on_off=on_off,
        target=target,
        tupdate=tupdate,
        alpha=alpha,
        beta=beta,
        ecn=ecn,
        ecn_prob=ecn_prob,
        bytemode=bytemode,
        dq_rate_estimator=dq_rate_estimator,
        mtu=mtu,
        max_burst=max_burst,
        cap_drop=cap_drop,
        derandomize=derandomize,
    )


def dualpi2(
    *,
    limit: float | str | None = None,
    memory_limit: str | None = None,
    target: str | None = None,
    tupdate: str | None = None,
    alpha: float | str | None = None,
    beta: float | str | None = None,
    step_thresh: str | None = None,
    step_packets: float | str | None = None,
    step_range: str | None = None,
    min_qlen_step: float | str | None = None,
    coupling_factor: float | str | None = None,
    drop_overload: bool | None = None,
    drop_early: bool | None = None,
    classic_protection: float | str | None = None,
    any_ect: bool | None = None,
    mtu: str | None = None,
) -> Tree:
    """Dual-queue coupled AQM (RFC 9332): scalable senders (L4S) have almost no delay and share fairly with classic ones.

    Use it: On an access line with L4S senders (TCP Prague and others); without them it is PI2 over one
    queue.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog of both queues together in packets. In packets. Allowed: at least 1. Default:
        10000.
    memory_limit : str, optional
        The most memory that queued packets occupy; none for two `mtu` per packet of `limit`. Allowed: at
        least 1b, or none. Default: none.
    target : str, optional
        The delay of the classic queue that the controller aims at. Allowed: 0ns to 60s. Default: 15ms.
    tupdate : str, optional
        Time between updates of the probability. Allowed: 1ns to 60s. Default: 16ms.
    alpha : float | str, optional
        Weight of the difference between delay and target, in 256ths of 1/s. In weight. Allowed: 0 to
        2147483647. Default: 41.
    beta : float | str, optional
        Weight of the change of the delay, in 256ths of 1/s. In weight. Allowed: 0 to 2147483647. Default:
        819.
    step_thresh : str, optional
        The delay above which the low-latency queue marks by itself; none for 1 ms, or with
        `step_packets`. Allowed: 0ns to 60s, or none. Default: none.
    step_packets : float | str, optional
        Instead of `step_thresh`: the low-latency queue marks a packet that leaves more than this behind.
        In packets. Allowed: at least 0, or none. Default: none.
    step_range : str, optional
        How far above `step_thresh` all packets are marked: a ramp instead of a step. Allowed: 0ns to 60s.
        Default: 0ns.
    min_qlen_step : float | str, optional
        The step does not mark a packet that finds fewer than this in the low-latency queue. In packets.
        Allowed: at least 0. Default: 0.
    coupling_factor : float | str, optional
        Scalable packets are marked this many times as often as the base probability; classic ones by its
        square. In times. Allowed: 1 to 255. Default: 2.
    drop_overload : bool, optional
        Whether scalable packets are dropped when marks no longer help; else only the limit drops them.
        Allowed: true or false. Default: true.
    drop_early : bool, optional
        Whether packets are dropped and marked on arrival instead of on departure. Allowed: true or false.
        Default: false.
    classic_protection : float | str, optional
        The share of the bytes that the classic queue gets at least, in percent. In percent. Allowed: 0 to
        100. Default: 10.
    any_ect : bool, optional
        Whether ECT(0) also goes to the low-latency queue, as ECT(1) and CE do. Allowed: true or false.
        Default: false.
    mtu : str, optional
        The longest packet: nothing is dropped with less than two of them queued. Allowed: 1b to 16mb.
        Default: 1514b.
    """
    return Tree(
        "dualpi2",
        limit=limit,
        memory_limit=memory_limit,
        target=target,
        tupdate=tupdate,
        alpha=alpha,
        beta=beta,
        step_thresh=step_thresh,
        step_packets=step_packets,
        step_range=step_range,
        min_qlen_step=min_qlen_step,
        coupling_factor=coupling_factor,
        drop_overload=drop_overload,
        drop_early=drop_early,
        classic_protection=classic_protection,
        any_ect=any_ect,
        mtu=mtu,
    )


def fq_nagle(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Packet by packet round robin over hashed flows (Nagle 1985).

    Use it: To compare with the first fair queueing, which is unfair if packets differ in length.

    With classes: Packet by packet round robin over classes, each with any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    classes : iterable of Class
        Its classes.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "fq_nagle",
        flows=flows,
        limit=limit,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def sfq(
    *,
    limit: float | str | None = None,
    depth: float | str | None = None,
    flows: float | str | None = None,
    divisor: float | str | None = None,
    quantum: str | None = None,
    drop: str | None = None,
    perturb: str | None = None,
    min: str | None = None,
    max: str | None = None,
    burst: float | str | None = None,
    avpkt: str | None = None,
    probability: float | str | None = None,
    ecn: bool | None = None,
    harddrop: bool | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Stochastic fairness queueing: few queues, round robin, drops from the longest queue.

    Use it: For fair shares with little memory, if delay does not matter much; otherwise take fq_codel.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog in packets. In packets. Allowed: 2 to 16777216. Default: 127.
    depth : float | str, optional
        The largest backlog of one flow in packets. In packets. Allowed: 1 to 65535. Default: 127.
    flows : float | str, optional
        The most flows at a time. In flows. Allowed: 1 to 65408. Default: 128.
    divisor : float | str, optional
        The number of hash buckets, a power of two; with more, fewer flows share a bucket by chance. In
        buckets. Allowed: 1 to 65536. Default: 1024.
    quantum : str, optional
        The bytes that a flow may send in a round. Allowed: 64b to 1gb. Default: 1514b.
    drop : str, optional
        Which packet of the longest flow is dropped: the newest or the oldest. Allowed: tail or head.
        Default: tail.
    perturb : str, optional
        The time after which flows are hashed with a new salt. Allowed: at least 1ms, or none. Default:
        10s.
    min : str, optional
        RED on each flow: the average backlog from which packets are marked or dropped; none: no RED.
        Allowed: 1b to 2147483647b, or none. Default: none.
    max : str, optional
        RED: the average backlog from which all packets are. By default three times `min`. Allowed: 1b to
        2147483647b, or none. Default: none.
    burst : float | str, optional
        RED: packets that pass before the average reaches `min`. By default (2 min + max) / (3 avpkt). In
        packets. Allowed: at least 1, or none. Default: none.
    avpkt : str, optional
        RED: the mean length of packets. Allowed: at least 1b. Default: 1000b.
    probability : float | str, optional
        RED: the probability of a mark or drop at `max`. In probability. Allowed: 0 to 1. Default: 0.02.
    ecn : bool, optional
        RED: whether ECN-capable packets are marked instead of dropped. Allowed: true or false. Default:
        false.
    harddrop : bool, optional
        RED, with `ecn`: whether all packets above `max` are dropped. Allowed: true or false. Default:
        false.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "sfq",
        limit=limit,
        depth=depth,
        flows=flows,
        divisor=divisor,
        quantum=quantum,
        drop=drop,
        perturb=perturb,
        min=min,
        max=max,
        burst=burst,
        avpkt=avpkt,
        probability=probability,
        ecn=ecn,
        harddrop=harddrop,
        filters=filters,
        handle=handle,
        default=default,
    )


def drr(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    quantum: str | None = None,
    quanta: Sequence[int] | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Deficit round robin over hashed flows.

    Use it: For exactly fair shares in bytes at the lowest cost, if delay does not matter much.

    With classes: Deficit round robin over classes, each with a quantum and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    quantum : str, optional
        The bytes that a flow may send in a round: at least the longest packet for constant cost. Allowed:
        64b to 1gb. Default: 1514b.
    quanta : Sequence[int] | str, optional
        The quanta of the first flows, which filters name; the other flows have the common quantum.
        Allowed: at most 4096 numbers, 64 to 1073741824. Default: [].
    classes : iterable of Class
        Its classes. Parameters of a class: `quantum` (64b to 1gb, default 1514b): The bytes that the
        class may send in a round: its share is its part of the sum.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "drr",
        flows=flows,
        limit=limit,
        quantum=quantum,
        quanta=quanta,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def ets(
    *,
    strict: float | str | None = None,
    priomap: Sequence[int] | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Enhanced transmission selection: strict bands first, the others share by deficit round robin.

    Use it: Where a little traffic must always go first and the rest is shared in given proportions.

    Parameters
    ----------
    strict : float | str, optional
        The number of bands in strict priority, counted from the first. In bands. Allowed: 0 to 64.
        Default: 0.
    priomap : Sequence[int] | str, optional
        The band, counted from 0, for each packet priority if no filter chooses a class; none is the last
        band. Allowed: 16 numbers, 0 to 63, or none. Default: none.
    classes : iterable of Class
        Its classes. Parameters of a class: `quantum` (256b to 1gb, or none, default none): The bytes that
        the band may send in a round, 1514 by default; not in a strict band.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "ets",
        strict=strict,
        priomap=priomap,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def mq(
    *,
    priomap: Sequence[int] | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """The transmit queues of a device: flows are hashed to classes, which take turns.

    Use it: To take over a tree of Linux that has one discipline for each hardware queue. Its classes
    share nothing: each has its own rate.

    Parameters
    ----------
    priomap : Sequence[int] | str, optional
        The traffic class for each packet priority from 0 to 15, where no filter chooses a band. Allowed:
        16 numbers, 0 to 15. Default: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].
    classes : iterable of Class
        Its classes. Parameters of a class: `traffic_class` (0 to 15, default 0): The traffic class that
        this band is for. The flow hash chooses among the bands of a traffic class.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "mq",
        priomap=priomap,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def fq(
    *,
    limit: float | str | None = None,
    flow_limit: float | str | None = None,
    flows: float | str | None = None,
    quantum: str | None = None,
    initial_quantum: str | None = None,
    maxrate: str | None = None,
    low_rate_threshold: str | None = None,
    refill_delay: str | None = None,
    horizon: str | None = None,
    beyond_horizon: str | None = None,
    ce_threshold: str | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Fair queueing over hashed flows with pacing: by a rate for each flow, by packets' departure times.

    Use it: On a machine that sends much itself, or to limit the rate of every flow; on a congested link
    take fq_codel or cake.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog in packets. In packets. Allowed: at least 1. Default: 10000.
    flow_limit : float | str, optional
        The largest backlog of one flow in packets. In packets. Allowed: at least 1. Default: 100.
    flows : float | str, optional
        The number of queues into which flows are hashed. In flows. Allowed: 1 to 1048576. Default: 1024.
    quantum : str, optional
        The bytes that a flow may send in a turn. Allowed: 256b to 1mb. Default: 3028b.
    initial_quantum : str, optional
        The bytes that a new flow may send at once. Allowed: 0b to 1gb. Default: 15140b.
    maxrate : str, optional
        The largest rate of any flow. Allowed: at least 1bit, or none. Default: none.
    low_rate_threshold : str, optional
        If `maxrate` is at most this, each packet is paced by its own length; above it, by a quantum at a
        time. Allowed: at least 1bit, or none. Default: 550kbit.
    refill_delay : str, optional
        A flow that was away for longer starts with a quantum. Allowed: 0ns to 86400s. Default: 40ms.
    horizon : str, optional
        How far in the future a packet's departure time may be. Allowed: 0ns to 86400s. Default: 10s.
    beyond_horizon : str, optional
        What happens to a packet whose departure time is further ahead: dropped, or held until the
        horizon. Allowed: drop or hold. Default: drop.
    ce_threshold : str, optional
        Marks packets that leave later than their departure time by more than this. Allowed: 0ns to
        86400s, or none. Default: none.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "fq",
        limit=limit,
        flow_limit=flow_limit,
        flows=flows,
        quantum=quantum,
        initial_quantum=initial_quantum,
        maxrate=maxrate,
        low_rate_threshold=low_rate_threshold,
        refill_delay=refill_delay,
        horizon=horizon,
        beyond_horizon=beyond_horizon,
        ce_threshold=ce_threshold,
        filters=filters,
        handle=handle,
        default=default,
    )


def fq_codel(
    *,
    limit: float | str | None = None,
    memory_limit: str | None = None,
    flows: float | str | None = None,
    quantum: str | None = None,
    drop_batch: float | str | None = None,
    target: str | None = None,
    interval: str | None = None,
    ecn: bool | None = None,
    ce_threshold: str | None = None,
    ce_threshold_selector: float | str | None = None,
    ce_threshold_mask: float | str | None = None,
    mtu: str | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Flow queues with CoDel on each (RFC 8290): fair shares, low delay, sparse flows first.

    Use it: As the first choice for an access line, inside a shaper like tbf.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog of all flows together in packets. In packets. Allowed: at least 1. Default:
        10240.
    memory_limit : str, optional
        The most memory that queued packets occupy. Allowed: at least 1b. Default: 32mb.
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    quantum : str, optional
        The bytes that a flow may send in a turn; 300 favours small packets on slow links. Allowed: 256b
        to 1mb. Default: 1514b.
    drop_batch : float | str, optional
        The most packets dropped at once when a limit is reached. In packets. Allowed: at least 1.
        Default: 64.
    target : str, optional
        The acceptable standing delay. Allowed: 1024ns to 137s. Default: 5ms.
    interval : str, optional
        How long the delay may stay above the target: about the longest expected round-trip time. Allowed:
        1024ns to 137s. Default: 100ms.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        true.
    ce_threshold : str, optional
        Marks every ECN-capable packet with a longer sojourn time than this, for DCTCP. Allowed: 0ns to
        137s, or none. Default: none.
    ce_threshold_selector : float | str, optional
        The bits of the traffic class of the packets that ce_threshold is for: 1 and mask 3 are ECT(1). In
        traffic class. Allowed: 0 to 255. Default: 0.
    ce_threshold_mask : float | str, optional
        Which bits of the traffic class (DSCP and ECN) are compared; 0: ce_threshold is for all packets.
        In traffic class. Allowed: 0 to 255. Default: 0.
    mtu : str, optional
        No packet is dropped if at most this much is queued behind it: the longest packet. Allowed: at
        least 0b. Default: 1514b.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "fq_codel",
        limit=limit,
        memory_limit=memory_limit,
        flows=flows,
        quantum=quantum,
        drop_batch=drop_batch,
        target=target,
        interval=interval,
        ecn=ecn,
        ce_threshold=ce_threshold,
        ce_threshold_selector=ce_threshold_selector,
        ce_threshold_mask=ce_threshold_mask,
        mtu=mtu,
        filters=filters,
        handle=handle,
        default=default,
    )


def fq_pie(
    *,
    limit: float | str | None = None,
    memory_limit: str | None = None,
    flows: float | str | None = None,
    quantum: str | None = None,
    target: str | None = None,
    tupdate: str | None = None,
    alpha: float | str | None = None,
    beta: float | str | None = None,
    ecn: bool | None = None,
    ecn_prob: float | str | None = None,
    bytemode: bool | None = None,
    dq_rate_estimator: bool | None = None,
    mtu: str | None = None,
    max_burst: str | None = None,
    cap_drop: bool | None = None,
    derandomize: bool | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Flow queues with PIE on each: fair shares, a delay held on average, drops on arrival.

    Use it: As fq_codel, if packets must be dropped on arrival; to compare the two.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog of all flows together in packets. In packets. Allowed: at least 1. Default:
        10240.
    memory_limit : str, optional
        The most memory that queued packets occupy. Allowed: at least 1b. Default: 32mb.
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    quantum : str, optional
        The bytes that a flow may send in a turn. Allowed: 256b to 1mb. Default: 1514b.
    target : str, optional
        The delay that PIE aims at. Allowed: 64ns to 60s. Default: 15ms.
    tupdate : str, optional
        Time between updates of the probability. Allowed: 64ns to 60s. Default: 15ms.
    alpha : float | str, optional
        Weight of the difference between delay and target, in sixteenths of 1/s. In weight. Allowed: 0 to
        32. Default: 2.
    beta : float | str, optional
        Weight of the change of the delay, in sixteenths of 1/s. In weight. Allowed: 0 to 32. Default: 20.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    ecn_prob : float | str, optional
        With `ecn`: the highest probability at which packets are marked; above it they are dropped. In
        probability. Allowed: 0 to 1. Default: 0.1.
    bytemode : bool, optional
        Whether a packet shorter than `mtu` is dropped in proportion to its length. Allowed: true or
        false. Default: false.
    dq_rate_estimator : bool, optional
        Whether the delay is computed from the backlog and the rate of departures, instead of measured.
        Allowed: true or false. Default: false.
    mtu : str, optional
        The longest packet: nothing is dropped with less than two of them queued. Allowed: at least 1b.
        Default: 1514b.
    max_burst : str, optional
        How long nothing is dropped at the beginning of congestion. Allowed: 0ns to 60s. Default: 150ms.
    cap_drop : bool, optional
        Whether a drop probability above 10 % rises by at most 2 % in an update (RFC 8033, section 5.5).
        Allowed: true or false. Default: true.
    derandomize : bool, optional
        Whether drops are spread evenly: between two there are 0.85 to 8.5 expected drops (RFC 8033,
        section 5.4). Allowed: true or false. Default: true.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "fq_pie",
        limit=limit,
        memory_limit=memory_limit,
        flows=flows,
        quantum=quantum,
        target=target,
        tupdate=tupdate,
        alpha=alpha,
        beta=beta,
        ecn=ecn,
        ecn_prob=ecn_prob,
        bytemode=bytemode,
        dq_rate_estimator=dq_rate_estimator,
        mtu=mtu,
        max_burst=max_burst,
        cap_drop=cap_drop,
        derandomize=derandomize,
        filters=filters,
        handle=handle,
        default=default,
    )


def hhf(
    *,
    limit: float | str | None = None,
    quantum: str | None = None,
    hh_limit: float | str | None = None,
    reset_timeout: str | None = None,
    admit_bytes: str | None = None,
    evict_timeout: str | None = None,
    non_hh_weight: float | str | None = None,
) -> Tree:
    """Two fifos, for flows that send much and for all others, by a small filter (heavy-hitter filter).

    Use it: To keep short transfers ahead of bulk ones with little state; flows of one kind share a fifo.

    Parameters
    ----------
    limit : float | str, optional
        The largest backlog of both buckets. In packets. Allowed: at least 1. Default: 1000.
    quantum : str, optional
        The bytes that the bucket of heavy flows may send in a turn. Allowed: 256b to 1mb. Default: 1514b.
    hh_limit : float | str, optional
        The most heavy flows at a time; further ones stay with the light flows. In flows. Allowed: 0 to
        2048. Default: 2048.
    reset_timeout : str, optional
        How often the bytes of all flows are counted anew. Allowed: at least 1ns. Default: 40ms.
    admit_bytes : str, optional
        A flow is heavy if it sends more than these between two resets. Allowed: at least 0b. Default:
        128kb.
    evict_timeout : str, optional
        A heavy flow that is silent for longer is light again. Allowed: at least 1ns. Default: 1s.
    non_hh_weight : float | str, optional
        The quanta that the bucket of light flows may send in a turn. In quanta. Allowed: 1 to 2000.
        Default: 2.
    """
    return Tree(
        "hhf",
        limit=limit,
        quantum=quantum,
        hh_limit=hh_limit,
        reset_timeout=reset_timeout,
        admit_bytes=admit_bytes,
        evict_timeout=evict_timeout,
        non_hh_weight=non_hh_weight,
    )


def msfc(
    *,
    prios: float | str | None = None,
    ratio: float | str | None = None,
    flow_aware: bool | None = None,
    auto_priority: bool | None = None,
    auto_interval: str | None = None,
    auto_drops: float | str | None = None,
    class_by: str | None = None,
    dscp_map: Sequence[int] | str | None = None,
    priomap: Sequence[int] | str | None = None,
    flows: float | str | None = None,
    quantum: str | None = None,
    limit: float | str | None = None,
    memory_limit: str | None = None,
    drop_batch: float | str | None = None,
    target: str | None = None,
    interval: str | None = None,
    ecn: bool | None = None,
    ce_threshold: str | None = None,
    ce_threshold_selector: float | str | None = None,
    ce_threshold_mask: float | str | None = None,
    mtu: str | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Multilevel Stochastic Fairness CoDel: classes that share in a fixed ratio, fq_codel within each.

    Use it: On an access line with marked traffic: interactive traffic gets more, and bulk never starves.
    Without marks fq_codel does nearly the same.

    Parameters
    ----------
    prios : float | str, optional
        The number of classes; the highest one gets the largest share. In classes. Allowed: 1 to 16.
        Default: 3.
    ratio : float | str, optional
        The ratio between the share of a class and that of the next lower class. In times. Allowed: at
        least 1. Default: 2.
    flow_aware : bool, optional
        Whether the ratio is between the flows of two classes instead of between the classes; with
        auto_priority it always is. Allowed: true or false. Default: false.
    auto_priority : bool, optional
        Whether flows rise by a class that trigger CoDel seldom and send below their fair share, and other
        flows sink. Allowed: true or false. Default: false.
    auto_interval : str, optional
        The time over which drops and marks are counted; a flow that stays within its share without any
        rises after it; none is 5s. Allowed: 10ms to 3600s, or none. Default: none.
    auto_drops : float | str, optional
        The drops and marks within auto_interval with which a flow sinks; none is 2. In packets. Allowed:
        1 to 65535, or none. Default: none.
    class_by : str, optional
        The field that determines a packet's class if no filter does. Allowed: dscp or priority. Default:
        dscp.
    dscp_map : Sequence[int] | str, optional
        The class, counted from 0, for each DSCP; none is 0 for CS1 and LE, 2 for EF, VA, AF4x and CS4 up,
        else 1. Allowed: 64 numbers, 0 to 15, or none. Default: none.
    priomap : Sequence[int] | str, optional
        The class, counted from 0, for each packet priority; none is the map of pfifo_fast. Allowed: 16
        numbers, 0 to 15, or none. Default: none.
    flows : float | str, optional
        The number of flow queues in each class. In flows. Allowed: 1 to 1048576. Default: 1024.
    quantum : str, optional
        The bytes that a flow may send in its turn, and that the lowest class may send in its turn.
        Allowed: 256b to 1mb. Default: 1514b.
    limit : float | str, optional
        The largest backlog of all flows together in packets. In packets. Allowed: at least 1. Default:
        10240.
    memory_limit : str, optional
        The most memory that queued packets occupy. Allowed: at least 1b. Default: 32mb.
    drop_batch : float | str, optional
        The most packets dropped at once when a limit is reached. In packets. Allowed: at least 1.
        Default: 64.
    target : str, optional
        The acceptable standing delay. Allowed: 1024ns to 137s. Default: 5ms.
    interval : str, optional
        How long the delay may stay above the target: about the longest expected round-trip time. Allowed:
        1024ns to 137s. Default: 100ms.
    ecn : bool, optional
        Whether to mark ECN-capable packets instead of dropping them. Allowed: true or false. Default:
        false.
    ce_threshold : str, optional
        Marks every ECN-capable packet with a longer sojourn time than this, for DCTCP. Allowed: 0ns to
        137s, or none. Default: none.
    ce_threshold_selector : float | str, optional
        The bits of the traffic class of the packets that ce_threshold is for: 1 and mask 3 are ECT(1). In
        traffic class. Allowed: 0 to 255. Default: 0.
    ce_threshold_mask : float | str, optional
        Which bits of the traffic class (DSCP and ECN) are compared; 0: ce_threshold is for all packets.
        In traffic class. Allowed: 0 to 255. Default: 0.
    mtu : str, optional
        No packet is dropped if at most this much is queued behind it: the longest packet. Allowed: at
        least 0b. Default: 1514b.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "msfc",
        prios=prios,
        ratio=ratio,
        flow_aware=flow_aware,
        auto_priority=auto_priority,
        auto_interval=auto_interval,
        auto_drops=auto_drops,
        class_by=class_by,
        dscp_map=dscp_map,
        priomap=priomap,
        flows=flows,
        quantum=quantum,
        limit=limit,
        memory_limit=memory_limit,
        drop_batch=drop_batch,
        target=target,
        interval=interval,
        ecn=ecn,
        ce_threshold=ce_threshold,
        ce_threshold_selector=ce_threshold_selector,
        ce_threshold_mask=ce_threshold_mask,
        mtu=mtu,
        filters=filters,
        handle=handle,
        default=default,
    )


def cake(
    *,
    bandwidth: str | None = None,
    tins: str | None = None,
    isolation: str | None = None,
    rtt: str | None = None,
    line: str | None = None,
    overhead: str | None = None,
    vlan_tags: float | str | None = None,
    mpu: str | None = None,
    cells: str | None = None,
    link_header: str | None = None,
    fwmark: float | str | None = None,
    wash: bool | None = None,
    ingress: bool | None = None,
    autorate: bool | None = None,
    ack_filter: str | None = None,
    memory_limit: str | None = None,
    mtu: str | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Shaper, DiffServ tins, fair shares for hosts and their flows, COBALT against delay (CAKE).

    Use it: As the only setting for a home's access line: it needs only the bandwidth and the kind of
    line.

    Parameters
    ----------
    bandwidth : str, optional
        The rate of the link; none if something else limits the rate. Allowed: at least 8192bit, or none.
        Default: none.
    tins : str, optional
        The kinds of traffic by DSCP; filters, marks and the default count them from 1, bulk first.
        Allowed: besteffort or precedence or diffserv3 or diffserv4 or diffserv8. Default: diffserv3.
    isolation : str, optional
        What has its own queue, and from dual-srchost on, which hosts share the link. Allowed: flowblind
        or srchost or dsthost or hosts or flows or dual-srchost or dual-dsthost or triple-isolate.
        Default: triple-isolate.
    rtt : str, optional
        The round-trip time of typical connections; the target delay is a twentieth of it. Allowed: 1us to
        3600s. Default: 100ms.
    line : str, optional
        The kind of access line, which determines what it adds to a packet; raw adds nothing. Allowed: raw
        or conservative or ethernet or docsis or pppoe-ptm or bridged-ptm or pppoa-vcmux or pppoa-llc or
        pppoe-vcmux or pppoe-llcsnap or bridged-vcmux or bridged-llcsnap or ipoa-vcmux or ipoa-llcsnap.
        Default: raw.
    overhead : str, optional
        The bytes that the line adds to an IP packet, instead of those of its kind. Allowed: 0b to 256b,
        or none. Default: none.
    vlan_tags : float | str, optional
        The VLAN tags that the line adds too, 4 bytes each. In tags. Allowed: 0 to 4. Default: 0.
    mpu : str, optional
        The least bytes that a packet takes on the line, instead of those of its kind. Allowed: 0b to
        256b, or none. Default: none.
    cells : str, optional
        How the line encodes packets, instead of as its kind does: ATM sends 53 bytes for 48, PTM 65 for
        64. Allowed: uncut or atm or ptm, or none. Default: none.
    link_header : str, optional
        The bytes of a packet's length before the IP header; used if there is an overhead. Allowed: 0b to
        256b. Default: 14b.
    fwmark : float | str, optional
        The bits of a packet's mark that hold its tin number, from 1. In mask. Allowed: at least 0.
        Default: 0.
    wash : bool, optional
        Whether packets leave with DSCP 0. Allowed: true or false. Default: false.
    ingress : bool, optional
        Whether dropped packets count for the shaper, because they have used a bottleneck before it.
        Allowed: true or false. Default: false.
    autorate : bool, optional
        Whether the bandwidth follows the rate of arriving packets: 15/16 of their peak rate. Allowed:
        true or false. Default: false.
    ack_filter : str, optional
        Whether a TCP acknowledgement is dropped if a later one in the queue says the same; on keeps two,
        aggressive one. Allowed: off or on or aggressive. Default: off.
    memory_limit : str, optional
        The most memory that queued packets occupy; none for four rtt of the bandwidth, at least 4mb.
        Allowed: at least 1b, or none. Default: none.
    mtu : str, optional
        The length of the longest packet; the target is at least the time of one and a half. Allowed: 64b
        to 1mb. Default: 1514b.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "cake",
        bandwidth=bandwidth,
        tins=tins,
        isolation=isolation,
        rtt=rtt,
        line=line,
        overhead=overhead,
        vlan_tags=vlan_tags,
        mpu=mpu,
        cells=cells,
        link_header=link_header,
        fwmark=fwmark,
        wash=wash,
        ingress=ingress,
        autorate=autorate,
        ack_filter=ack_filter,
        memory_limit=memory_limit,
        mtu=mtu,
        filters=filters,
        handle=handle,
        default=default,
    )


def scfq(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Self-clocked fair queueing (Golestani 1994): fair shares by time stamps, at little cost.

    Use it: As a simple baseline of fair queueing; for low delay use qfq or wf2q_plus.

    With classes: Self-clocked fair queueing over classes, each with a weight and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    classes : iterable of Class
        Its classes. Parameters of a class: `weight` (1 to 65536, default 1): The weight of the class; its
        share is its part of the sum of weights.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "scfq",
        flows=flows,
        limit=limit,
        weights=weights,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def qfq(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    max_packet: str | None = None,
    slope: str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Quick Fair Queueing: shares and delays close to the ideal at a cost that does not grow with flows or groups.

    Use it: For many flows that need a low delay and a fair share; qfq_plus is cheaper and less tight.

    With classes: Quick Fair Queueing over classes, each with a weight and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    max_packet : str, optional
        Length of the longest packet, for the delay guarantee; a longer packet raises it when it comes.
        Allowed: 1b to 128kb. Default: 1514b.
    slope : str, optional
        Which weights slow down virtual time: those of flows with packets, or all weights, as in Linux.
        Allowed: live or configured. Default: live.
    classes : iterable of Class
        Its classes. Parameters of a class: `weight` (1 to 65536, default 1): The weight of the class; its
        share is its part of the sum of weights; `max_packet` (1b to 128kb, default 1514b): Length of the
        class's longest packet, for the delay guarantee; a longer packet raises it when it comes.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "qfq",
        flows=flows,
        limit=limit,
        weights=weights,
        max_packet=max_packet,
        slope=slope,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def qfq_plus(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    max_packet: str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """QFQ+ (Linux's `qfq`): Quick Fair Queueing over aggregates of up to eight flows that take turns.

    Use it: For fair shares and bounded delay at nearly the cost of drr; for the lowest delay use qfq.

    With classes: QFQ+ (Linux's `qfq`) over classes, each with a weight and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    max_packet : str, optional
        Length of the longest packet, for the delay guarantee; a longer packet raises it when it comes.
        Allowed: 1b to 128kb. Default: 1514b.
    classes : iterable of Class
        Its classes. Parameters of a class: `weight` (1 to 65536, default 1): The weight of the class; its
        share is its part of the sum of weights; `max_packet` (1b to 128kb, default 1514b): Length of the
        class's longest packet, for the delay guarantee; a longer packet raises it when it comes.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "qfq_plus",
        flows=flows,
        limit=limit,
        weights=weights,
        max_packet=max_packet,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def wf2q_plus(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """WF2Q+ (Bennett and Zhang 1996): fair shares by weight, the least possible delay, O(log N).

    Use it: For the lowest delay and the smoothest service; for many flows qfq costs less.

    With classes: WF2Q+ over classes, each with a weight and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    classes : iterable of Class
        Its classes. Parameters of a class: `weight` (1 to 65536, default 1): The weight of the class; its
        share is its part of the sum of weights.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "wf2q_plus",
        flows=flows,
        limit=limit,
        weights=weights,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def wfq(
    *,
    rate: str,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Weighted fair queueing, exactly: departures in the order of the fluid reference (GPS).

    Use it: As the reference; wf2q_plus is smoother, costs less and need not know the link's rate.

    Parameters
    ----------
    rate : str
        The rate of the link, with which the fluid reference works. Allowed: at least 1bit.
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "wfq",
        rate=rate,
        flows=flows,
        limit=limit,
        weights=weights,
        filters=filters,
        handle=handle,
        default=default,
    )


def pfq(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    quantum: str | None = None,
    exact: bool | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Priority fair queueing (Kortebi et al. 2004): flows that send little go first, the others share.

    Use it: For voice and short transfers without marking; pdrr does the same at lower cost. With exact =
    false a call can share the queue of a download.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    quantum : str, optional
        Bytes that a flow may send before all others after it became active. Allowed: 1b to 1gb. Default:
        1514b.
    exact : bool, optional
        Whether flows are told apart by their whole five-tuple. If not, they are hashed into the queues,
        and some share one. Allowed: true or false. Default: true.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "pfq",
        flows=flows,
        limit=limit,
        weights=weights,
        quantum=quantum,
        exact=exact,
        filters=filters,
        handle=handle,
        default=default,
    )


def s_kps(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    max_packet: str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Simple KPS (Karsten 2006, 2010): WF2Q+ with rounded time stamps in interleaved timer wheels, constant work.

    Use it: To compare with qfq, which is faster; built from what the QFQ paper says, not from the
    articles. Flows are hashed into the queues.

    With classes: Simple KPS over classes, each with a weight and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    max_packet : str, optional
        Length of the longest packet, for the delay guarantee; a longer packet raises it when it comes.
        Allowed: 1b to 128kb. Default: 1514b.
    classes : iterable of Class
        Its classes. Parameters of a class: `weight` (1 to 65536, default 1): The weight of the class; its
        share is its part of the sum of weights; `max_packet` (1b to 128kb, default 1514b): Length of the
        class's longest packet, for the delay guarantee; a longer packet raises it when it comes.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "s_kps",
        flows=flows,
        limit=limit,
        weights=weights,
        max_packet=max_packet,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def frr(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    max_packet: str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Fair round robin (Yuan and Duan 2009): round robin within strata of similar weights, time stamps between them.

    Use it: For comparisons: nearly the cost of round robin, without its delay for heavy flows; qfq's
    bound is better.

    With classes: Fair round robin over classes, each with a weight and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    max_packet : str, optional
        Length of the longest packet, for the delay guarantee; a longer packet raises it when it comes.
        Allowed: 1b to 128kb. Default: 1514b.
    classes : iterable of Class
        Its classes. Parameters of a class: `weight` (1 to 65536, default 1): The weight of the class; its
        share is its part of the sum of weights; `max_packet` (1b to 128kb, default 1514b): Length of the
        class's longest packet, for the delay guarantee; a longer packet raises it when it comes.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "frr",
        flows=flows,
        limit=limit,
        weights=weights,
        max_packet=max_packet,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def gfq(
    *,
    flows: float | str | None = None,
    limit: float | str | None = None,
    weights: Sequence[int] | str | None = None,
    max_packet: str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Grouped fair queueing (Stephens, Bennett, Zhang 1999): WF2Q+ between groups of flows, calendars within.

    Use it: To compare with qfq: less delay, and cost by groups; built from what the QFQ paper says, not
    from the article. Flows are hashed into the queues.

    With classes: Grouped fair queueing over classes, each with a weight and any discipline inside.

    Parameters
    ----------
    flows : float | str, optional
        The number of flow queues; with more, fewer flows share a queue by chance. In flows. Allowed: 1 to
        1048576. Default: 1024.
    limit : float | str, optional
        The maximum number of packets queued. Above it, the longest flow loses a packet. In packets.
        Allowed: 1 to 33554432. Default: 10240.
    weights : Sequence[int] | str, optional
        Weights of the first flows, which filters can select; all other flows have weight 1. Allowed: at
        most 4096 numbers, 1 to 65536. Default: [].
    max_packet : str, optional
        Length of the longest packet, for the delay guarantee; a longer packet raises it when it comes.
        Allowed: 1b to 128kb. Default: 1514b.
    classes : iterable of Class
        Its classes. Parameters of a class: `weight` (1 to 65536, default 1): The weight of the class; its
        share is its part of the sum of weights; `max_packet` (1b to 128kb, default 1514b): Length of the
        class's longest packet, for the delay guarantee; a longer packet raises it when it comes.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "gfq",
        flows=flows,
        limit=limit,
        weights=weights,
        max_packet=max_packet,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def sqf(
    *,
    limit: float | str | None = None,
    limit_bytes: str | None = None,
    drop: str | None = None,
    key: str | None = None,
    flows: float | str | None = None,
    credit: str | None = None,
) -> Tree:
    """Shortest queue first: flows that send at an even pace go first, bulk traffic gets the rest.

    Use it: For calls and streams at an even pace beside one user's downloads; video in bursts loses its
    priority, unless it is below its fair share and `credit` is set.

    Parameters
    ----------
    limit : float | str, optional
        The largest number of queued packets. In packets. Allowed: 1 to 33554432. Default: 200.
    limit_bytes : str, optional
        The largest number of queued bytes. Allowed: 1b to 262136gb, or none. Default: none.
    drop : str, optional
        Which packet of the longest flow is dropped: the newest or the oldest. Allowed: tail or head.
        Default: head.
    key : str, optional
        What the packets of a flow have in common. Allowed: five-tuple or source or destination or source-
        port or destination-port or host-pair or interface or flow-label. Default: five-tuple.
    flows : float | str, optional
        The largest number of flows with packets; none means as many as there can be packets. In flows.
        Allowed: 1 to 1048576, or none. Default: none.
    credit : str, optional
        The bytes that a flow may burst above its fair share as if they were not queued; 0 is the paper's
        sqf. Allowed: 0b to 1gb. Default: 0b.
    """
    return Tree(
        "sqf",
        limit=limit,
        limit_bytes=limit_bytes,
        drop=drop,
        key=key,
        flows=flows,
        credit=credit,
    )


def lqf(
    *,
    limit: float | str | None = None,
    limit_bytes: str | None = None,
    drop: str | None = None,
    key: str | None = None,
    flows: float | str | None = None,
) -> Tree:
    """Longest queue first: the exact opposite of sqf.

    Use it: For comparisons, and where no queue may become full, as in a switch; not for low delay.

    Parameters
    ----------
    limit : float | str, optional
        The largest number of queued packets. In packets. Allowed: 1 to 33554432. Default: 200.
    limit_bytes : str, optional
        The largest number of queued bytes. Allowed: 1b to 262136gb, or none. Default: none.
    drop : str, optional
        Which packet of the longest flow is dropped: the newest or the oldest. Allowed: tail or head.
        Default: head.
    key : str, optional
        What the packets of a flow have in common. Allowed: five-tuple or source or destination or source-
        port or destination-port or host-pair or interface or flow-label. Default: five-tuple.
    flows : float | str, optional
        The largest number of flows with packets; none means as many as there can be packets. In flows.
        Allowed: 1 to 1048576, or none. Default: none.
    """
    return Tree(
        "lqf",
        limit=limit,
        limit_bytes=limit_bytes,
        drop=drop,
        key=key,
        flows=flows,
    )


def hsqf(
    *,
    limit: float | str | None = None,
    quantum: str | None = None,
    users: float | str | None = None,
    user: str | None = None,
    key: str | None = None,
    drop: str | None = None,
) -> Tree:
    """Hierarchical sqf: fair queueing between users, shortest queue first between the flows of a user.

    Use it: On a link that several users share: fair between them, and calls before downloads for each of
    them.

    Parameters
    ----------
    limit : float | str, optional
        The largest number of queued packets. In packets. Allowed: 1 to 16777216. Default: 1000.
    quantum : str, optional
        Bytes that a user may send in a round; should be at least the longest packet. Allowed: 64b to 1gb.
        Default: 1514b.
    users : float | str, optional
        The largest number of users with packets. In users. Allowed: 1 to 16384. Default: 256.
    user : str, optional
        What the packets of a user have in common. Allowed: five-tuple or source or destination or source-
        port or destination-port or host-pair or interface or flow-label. Default: destination.
    key : str, optional
        What the packets of a flow have in common. Allowed: five-tuple or source or destination or source-
        port or destination-port or host-pair or interface or flow-label. Default: five-tuple.
    drop : str, optional
        Which packet of the longest flow of the largest user is dropped: the newest or the oldest.
        Allowed: tail or head. Default: head.
    """
    return Tree(
        "hsqf",
        limit=limit,
        quantum=quantum,
        users=users,
        user=user,
        key=key,
        drop=drop,
    )


def pdrr(
    *,
    limit: float | str | None = None,
    afl: float | str | None = None,
    quantum: str | None = None,
    quanta: Sequence[int] | str | None = None,
    key: str | None = None,
    rate: str | None = None,
    fair_rate_interval: str | None = None,
    priority_load_interval: str | None = None,
    smoothing: float | str | None = None,
    admission: bool | None = None,
    fair_rate: str | None = None,
    priority_load: float | str | None = None,
    idle_timeout: str | None = None,
    flows_in_progress: float | str | None = None,
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Priority deficit round robin: fair shares, and flows below the fair rate go first.

    Use it: On a link that many flows share, each with a small part of it; with admission control also in
    overload.

    Parameters
    ----------
    limit : float | str, optional
        The largest number of queued packets. In packets. Allowed: 1 to 33554432. Default: 1000.
    afl : float | str, optional
        Entries of the active flow list; packets of further flows have priority. In flows. Allowed: 1 to
        1048576. Default: 500.
    quantum : str, optional
        Bytes that a flow may send in a round, and as many with priority. Allowed: 64b to 1gb. Default:
        1514b.
    quanta : Sequence[int] | str, optional
        Quanta of the flows to which filters give class 1, 2 and so on; all other flows have `quantum`.
        Allowed: at most 4096 numbers, 64 to 1073741824. Default: [].
    key : str, optional
        What the packets of a flow have in common. Allowed: five-tuple or source or destination or source-
        port or destination-port or host-pair or interface or flow-label. Default: five-tuple.
    rate : str, optional
        The rate of the link, to measure the fair rate and the priority load. Allowed: at least 1bit, or
        none. Default: none.
    fair_rate_interval : str, optional
        Time between two samples of the fair rate (tf of the paper). Allowed: 1ms to 60s. Default: 100ms.
    priority_load_interval : str, optional
        Time between two samples of the priority load (tp of the paper). Allowed: 1ms to 60s. Default:
        100ms.
    smoothing : float | str, optional
        The weight of what was measured before; that of a sample is the rest. In percent. Allowed: 0 to
        99. Default: 90.
    admission : bool, optional
        Whether packets of new flows are dropped while the link is congested; requires `rate`. Allowed:
        true or false. Default: false.
    fair_rate : str, optional
        New flows are rejected while the fair rate is below this; none means 1 % of the rate. Allowed: at
        least 1bit, or none. Default: none.
    priority_load : float | str, optional
        New flows are rejected while the priority load is above this part of the rate. In percent.
        Allowed: 1 to 100. Default: 80.
    idle_timeout : str, optional
        How long a flow is in progress, and admitted, after a packet. Allowed: 1ms to 3600s. Default: 5s.
    flows_in_progress : float | str, optional
        The largest number of flows in progress. In flows. Allowed: 1 to 1048576. Default: 65536.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "pdrr",
        limit=limit,
        afl=afl,
        quantum=quantum,
        quanta=quanta,
        key=key,
        rate=rate,
        fair_rate_interval=fair_rate_interval,
        priority_load_interval=priority_load_interval,
        smoothing=smoothing,
        admission=admission,
        fair_rate=fair_rate,
        priority_load=priority_load,
        idle_timeout=idle_timeout,
        flows_in_progress=flows_in_progress,
        filters=filters,
        handle=handle,
        default=default,
    )


def admission(
    *,
    rate: str,
    fair_rate: str | None = None,
    fair_rate_interval: str | None = None,
    smoothing: float | str | None = None,
    quantum: str | None = None,
    key: str | None = None,
    idle_timeout: str | None = None,
    flows_in_progress: float | str | None = None,
    inner: Tree | None = None,
) -> Tree:
    """Admission control by flow in front of any fair discipline, drr by default.

    Use it: Where there can be so many flows that a fair share is too small: flows in progress keep their
    share.

    Parameters
    ----------
    rate : str
        The rate of the link. Allowed: at least 1bit.
    fair_rate : str, optional
        New flows are rejected while the fair rate is below this; none means 1 % of the rate. Allowed: at
        least 1bit, or none. Default: none.
    fair_rate_interval : str, optional
        Time between two samples of the fair rate (tf of the paper). Allowed: 1ms to 60s. Default: 100ms.
    smoothing : float | str, optional
        The weight of what was measured before; that of a sample is the rest. In percent. Allowed: 0 to
        99. Default: 90.
    quantum : str, optional
        Bytes that the inner discipline sends of one flow at a time. Allowed: 64b to 1gb. Default: 1514b.
    key : str, optional
        What the packets of a flow have in common. Allowed: five-tuple or source or destination or source-
        port or destination-port or host-pair or interface or flow-label. Default: five-tuple.
    idle_timeout : str, optional
        How long a flow is in progress, and admitted, after a packet. Allowed: 1ms to 3600s. Default: 5s.
    flows_in_progress : float | str, optional
        The largest number of flows in progress. In flows. Allowed: 1 to 1048576. Default: 65536.
    inner : Tree, optional
        What it holds.
    """
    return Tree(
        "admission",
        rate=rate,
        fair_rate=fair_rate,
        fair_rate_interval=fair_rate_interval,
        smoothing=smoothing,
        quantum=quantum,
        key=key,
        idle_timeout=idle_timeout,
        flows_in_progress=flows_in_progress,
        inner=inner,
    )


def htb(
    *,
    r2q: float | str | None = None,
    direct_qlen: float | str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Hierarchical token bucket: classes in a tree, each with a guaranteed rate, that borrow from above up to a ceil.

    Use it: To share an access line between users or kinds of traffic, each with a guaranteed rate and a
    share of the rest.

    Parameters
    ----------
    r2q : float | str, optional
        Divides the rate of a class, in bytes per second: the default of its quantum. In times. Allowed:
        at least 1. Default: 10.
    direct_qlen : float | str, optional
        The maximum number of unclassified packets queued. They are sent first, and not shaped. In
        packets. Allowed: at least 0. Default: 1000.
    classes : iterable of Class
        Its classes. Parameters of a class: `parent` (1 to 262143, or none, default none): The class above
        this one. A class without one is at the top; `rate` (at least 1bit): The guaranteed rate of the
        class; `ceil` (at least 1bit, or none, default none): The rate that the class never exceeds,
        borrowing included. By default its rate; below it, the limit; `burst` (at least 1b, or none,
        default none): Bytes that the class may send at once after an idle time. By default 1 ms at its
        rate, at least 1600b; `cburst` (at least 1b, or none, default none): Bytes that the class may send
        at once, borrowing included. By default 1 ms at its ceil, at least 1600b; `burst_rate` (at least
        1bit, or none, default none): In the place of the ceil while the average of the last burst_time is
        below burst_threshold; `burst_threshold` (at least 1bit, or none, default none): The average rate
        from which the ceil applies again, below burst_rate; `burst_time` (16ms to 3600s, or none, default
        none): The time of the average, not that of the burst: burst_threshold * burst_time / burst_rate;
        `prio` (0 to 7, default 0): Who is served first and borrows first, 0 before 7. Used for leaves
        only; `quantum` (1b to 1gb, or none, default none): Bytes that a leaf may send in its turn. By
        default its rate divided by r2q, 1000b to 200000b; `stripped` (0b to 255b, default 0b): The bytes
        of each packet that the link does not send; they are not paid for; `overhead` (0b to 65535b,
        default 0b): The bytes that the link adds to each packet; they are paid for; `mpu` (0b to 65535b,
        default 0b): The least bytes that are paid for a packet; `cells` (uncut or atm or ptm, default
        uncut): How the link encodes packets: ATM sends 53 bytes for 48, PTM 65 for 64.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "htb",
        r2q=r2q,
        direct_qlen=direct_qlen,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def hfsc(
    *,
    rate: str | None = None,
    stripped: str | None = None,
    overhead: str | None = None,
    mpu: str | None = None,
    cells: str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Hierarchical fair service curves: independent guarantees of delay and rate, the rest shared in a tree.

    Use it: If some traffic needs a low delay at a low rate, such as voice, and the rest is shared in a
    tree of classes.

    Parameters
    ----------
    rate : str, optional
        The rate of the link, used only to check that all real-time curves can be kept. Allowed: at least
        1bit, or none. Default: none.
    stripped : str, optional
        The bytes of each packet that the link does not send; they are not paid for. Allowed: 0b to 255b.
        Default: 0b.
    overhead : str, optional
        The bytes that the link adds to each packet; they are paid for. Allowed: 0b to 65535b. Default:
        0b.
    mpu : str, optional
        The least bytes that are paid for a packet. Allowed: 0b to 65535b. Default: 0b.
    cells : str, optional
        How the link encodes packets: ATM sends 53 bytes for 48, PTM 65 for 64. Allowed: uncut or atm or
        ptm. Default: uncut.
    classes : iterable of Class
        Its classes. Parameters of a class: `parent` (1 to 262143, or none, default none): The class above
        this one. A class without one is at the top; `rt` (a service curve, or none, default none): Real
        time: the bytes that a leaf gets by which time, whatever the other classes do. Used for leaves
        only; `ls` (a service curve, or none, default 1mbit): Link sharing: the share of the rest among
        siblings. A class without it does not share; `ul` (a service curve, or none, default none): Upper
        limit: by sharing, the class does not get more.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "hfsc",
        rate=rate,
        stripped=stripped,
        overhead=overhead,
        mpu=mpu,
        cells=cells,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )


def cbq(
    *,
    bandwidth: str,
    packet: str | None = None,
    max_packet: str | None = None,
    link_sharing: str | None = None,
    classes: Iterable[Class] = (),
    filters: Iterable[Filter] = (),
    handle: str | None = None,
    default: int | None = None,
) -> Tree:
    """Class-based queueing: ALTQ's estimator of idle time, borrowing from above by the formal rule, priorities.

    Use it: To replace ALTQ; with link_sharing = "top-level" also by its rule, under which a high priority
    takes more than its share. htb keeps rates more exactly, hfsc keeps delays.

    Parameters
    ----------
    bandwidth : str
        The rate of the link, by which idle time is measured. Allowed: at least 1bit.
    packet : str, optional
        The length of an average packet, in which bursts are counted. Allowed: 1b to 1mb. Default: 1514b.
    max_packet : str, optional
        The length of the longest packet. Allowed: 1b to 1mb. Default: 1514b.
    link_sharing : str, optional
        Which classes may lend: formal, none while a class with packets is within its rate; or top-level,
        ALTQ's approximation, by which a high priority borrows first. Allowed: formal or top-level.
        Default: formal.
    classes : iterable of Class
        Its classes. Parameters of a class: `parent` (1 to 262143, or none, default none): The class above
        this one. A class without one is at the top; `rate` (at least 1bit): The rate of the class, at
        most the rate of its parent; `priority` (0 to 7, default 1): Who is served first, 7 before 0. Used
        for leaves only; `borrow` (true or false, default true): Whether the class may use what its parent
        does not, as classes do by default. If not, it is suspended when it is over its rate; `weight` (at
        least 1bit, or none, default none): The share of a leaf among the leaves of the same priority. By
        default its rate; `maxburst` (1 to 1000, or none, default none): Packets that the class may send
        in a row after an idle time. By default 16, or 4 for a slow class; `minburst` (1 to 1000, or none,
        default none): Packets that the class may send in a row after it was suspended. By default 2.
    filters : iterable of Filter
        Which packets go to which class or flow.
    handle : str, optional
        The number by which packets name its classes, hexadecimal.
    default : int, optional
        The class of packets that no filter matches.
    """
    return Tree(
        "cbq",
        bandwidth=bandwidth,
        packet=packet,
        max_packet=max_packet,
        link_sharing=link_sharing,
        classes=classes,
        filters=filters,
        handle=handle,
        default=default,
    )
