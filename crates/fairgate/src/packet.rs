//! The descriptor of a packet that a driver gives to a discipline. The packet's bytes stay with the driver.

use core::fmt;

use crate::flow::FlowHash;

/// The two ECN bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: only a drop can signal congestion.
    #[default]
    NotEct = 0,
    /// ECN-capable. By RFC 9331 it also requests low-latency (L4S) treatment.
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Converts the two low bits of the traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Whether the packet can be marked instead of dropped.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// The highest number that a class can have within its discipline: 262,143, hexadecimal 3ffff. A [`ClassId`]
/// names only those up to 0xffff, as in Linux. Filters reach the others.
pub const LAST_CLASS: u32 = (1 << 18) - 1;

/// A class of a classful discipline, written as in tc: `major:minor`, both hexadecimal. The major number is
/// the handle of the class's discipline.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u32);

impl ClassId {
    /// No class is chosen.
    pub const NONE: ClassId = ClassId(0);

    /// Returns the class `major:minor`.
    pub const fn new(major: u16, minor: u16) -> ClassId {
        ClassId((major as u32) << 16 | minor as u32)
    }

    /// Returns the handle of the discipline.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the number of the class within the discipline.
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.major(), self.minor())
    }
}

impl fmt::Debug for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a packet was given back. It is counted at every node that the packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was at its limit of packets or bytes. The arriving packet was dropped.
    QueueLimit,
    /// The queue was at its limit. The oldest packet was dropped.
    HeadDrop,
    /// The whole discipline was at its limit. A packet of the flow with the longest queue was dropped.
    LongestFlow,
    /// The flow was at its own limit.
    FlowLimit,
    /// There were more flows at a time than the discipline can hold.
    NoFreeFlow,
    /// The memory limit was reached. A packet of the flow with the longest queue was dropped.
    MemoryLimit,
    /// Active queue management dropped the packet to slow the sender down.
    Aqm,
    /// The packet is unclassified.
    NoClass,
    /// The packet is longer than the burst of the token bucket and could never be sent.
    LargerThanBurst,
    /// The packet is longer than the longest one for which the scheduler can compute a time stamp.
    LargerThanMaximum,
    /// The flow is new, and admission control rejects new flows while the link is congested.
    NotAdmitted,
    /// The packet's departure time is too far in the future.
    BeyondHorizon,
    /// The packet exceeded the rate of a policer.
    Policed,
    /// A filter drops all packets that match it.
    Filtered,
    /// The packet's departure time is missing, or has passed.
    Late,
    /// It was lost on purpose, by the emulation of a lossy network.
    Lost,
    /// It only acknowledges what a later packet of its flow acknowledges too.
    RedundantAck,
    /// There was no room for it after a change of configuration.
    Reconfigured,
    /// The queue was flushed. This is the only reason that is not counted as a drop.
    Flushed,
}

impl DropReason {
    /// The number of reasons.
    pub(crate) const COUNT: usize = DropReason::Flushed as usize + 1;

    /// All reasons, in the order of their numbers.
    pub const ALL: &[DropReason] = &[
        DropReason::QueueLimit,
        DropReason::HeadDrop,
        DropReason::LongestFlow,
        DropReason::FlowLimit,
        DropReason::NoFreeFlow,
        DropReason::MemoryLimit,
        DropReason::Aqm,
        DropReason::NoClass,
        DropReason::LargerThanBurst,
        DropReason::LargerThanMaximum,
        DropReason::NotAdmitted,
        DropReason::BeyondHorizon,
        DropReason::Policed,
        DropReason::Filtered,
        DropReason::Late,
        DropReason::Lost,
        DropReason::RedundantAck,
        DropReason::Reconfigured,
        DropReason::Flushed,
    ];

    /// The name in statistics and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueLimit => "queue_limit",
            DropReason::HeadDrop => "head_drop",
            DropReason::LongestFlow => "longest_flow",
            DropReason::FlowLimit => "flow_limit",
            DropReason::NoFreeFlow => "no_free_flow",
            DropReason::MemoryLimit => "memory_limit",
            DropReason::Aqm => "aqm",
            DropReason::NoClass => "no_class",
            DropReason::LargerThanBurst => "larger_than_burst",
            DropReason::LargerThanMaximum => "larger_than_maximum",
            DropReason::NotAdmitted => "not_admitted",
            DropReason::BeyondHorizon => "beyond_horizon",
            DropReason::Policed => "policed",
            DropReason::Filtered => "filtered",
            DropReason::Late => "late",
            DropReason::Lost => "lost",
            DropReason::RedundantAck => "redundant_ack",
            DropReason::Reconfigured => "reconfigured",
            DropReason::Flushed => "flushed",
        }
    }
}

/// The descriptor of a packet that a driver gives to a discipline. [`Pool::insert`](crate::Pool::insert)
/// copies it into a [`Slot`].
///
/// [`Packet::of_length`] sets the fields that the driver does not use:
///
/// ```
/// use fairgate::{Ecn, Packet};
/// let packet = Packet { cookie: 7, ecn: Ecn::Ect0, ..Packet::of_length(1514) };
/// assert_eq!((packet.length, packet.memory), (1514, 1514));
/// ```
///
/// [`Slot`]: crate::Slot
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// The earliest departure time in nanoseconds. 0 means at once. `fq` and `etf` use it.
    pub stamp: u64,
    /// The keyed hash of the packet's flow.
    pub flow: FlowHash,
    /// A number that the driver chooses: a frame number, a buffer address. Disciplines do not read it.
    pub cookie: u64,
    /// The length on the link, in bytes. Schedulers and shapers count it.
    pub length: u32,
    /// The memory that the packet occupies in the driver, in bytes, for memory limits (Linux: `truesize`).
    pub memory: u32,
    /// The class that the driver chose, if any. If its major number is the discipline's handle, it takes
    /// precedence over filters.
    pub class: ClassId,
    /// The firewall mark, or another number that filters match.
    pub mark: u32,
    /// Priority, 0 to 15 (Linux: `skb->priority`): an index into a priomap.
    pub priority: u8,
    /// The six DSCP bits.
    pub dscp: u8,
    /// The ECN bits.
    pub ecn: Ecn,
}

impl Packet {
    /// Returns a packet of `length` bytes. All other fields are zero, except `memory`, which is `length`.
    pub const fn of_length(length: u32) -> Packet {
        Packet {
            length,
            memory: length,
            stamp: 0,
            flow: FlowHash::NONE,
            cookie: 0,
            class: ClassId::NONE,
            mark: 0,
            priority: 0,
            dscp: 0,
            ecn: Ecn::NotEct,
        }
    }
}
