//! What a driver tells a discipline about a packet. The packet's bytes stay with the driver.

use core::fmt;

use crate::flow::FlowHash;

/// The two ECN bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congestion can only be told by a drop.
    #[default]
    NotEct = 0,
    /// ECN-capable, and by RFC 9331 a request for low-latency (L4S) treatment.
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// From the two low bits of the traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Whether a mark may stand in for a drop.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// A class of a classful discipline, as tc writes it: `major:minor`, both hexadecimal. The major number is the
/// handle of the discipline that the class belongs to.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u32);

impl ClassId {
    /// No class has been chosen yet.
    pub const NONE: ClassId = ClassId(0);

    /// The class `major:minor`.
    pub const fn new(major: u16, minor: u16) -> ClassId {
        ClassId((major as u32) << 16 | minor as u32)
    }

    /// The handle of the discipline.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The class within the discipline.
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

/// Why a packet came back undelivered. Counted at every node that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was at its limit of packets or bytes; the arriving packet was refused.
    QueueLimit,
    /// The queue was at its limit; the oldest packet made room.
    HeadDrop,
    /// The whole discipline was at its limit; the flow with most queued paid.
    LongestFlow,
    /// The flow was at its own limit.
    FlowLimit,
    /// More flows at once than there are places for.
    NoFreeFlow,
    /// The limit of memory was reached; the flow with most queued paid.
    MemoryLimit,
    /// Active queue management told the sender to slow down.
    Aqm,
    /// The packet belongs to no class.
    NoClass,
    /// Longer than the token bucket is deep: it could never be sent.
    LargerThanBurst,
    /// Longer than any packet that the scheduler can give a time stamp.
    LargerThanMaximum,
    /// Its flow is new, and admission control lets no new flows in while the link is congested.
    NotAdmitted,
    /// It may not leave before a time that lies too far ahead.
    BeyondHorizon,
    /// It exceeded the rate that a policer lets pass.
    Policed,
    /// A change of configuration left no place for it.
    Reconfigured,
    /// The queue was flushed. The only reason that does not count as a drop.
    Flushed,
}

impl DropReason {
    /// How many reasons there are.
    pub(crate) const COUNT: usize = DropReason::Flushed as usize + 1;

    /// All of them, in the order of their numbers.
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
            DropReason::Reconfigured => "reconfigured",
            DropReason::Flushed => "flushed",
        }
    }
}

/// What a driver tells a discipline about a packet. [`Pool::insert`](crate::Pool::insert) copies it into a [`Slot`].
///
/// The fields without a value of their own come from [`Packet::of_length`]:
///
/// ```
/// use fairgate::{Ecn, Packet};
/// let packet = Packet { cookie: 7, ecn: Ecn::Ect0, ..Packet::of_length(1514) };
/// assert_eq!((packet.length, packet.memory), (1514, 1514));
/// ```
///
/// [`Slot`]: crate::Slot
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Bytes on the link. Schedulers and shapers count these.
    pub length: u32,
    /// Bytes of memory that the packet occupies in the driver, for limits on memory (Linux: `truesize`).
    pub memory: u32,
    /// The earliest departure time, ns; 0 is at once. `fq` obeys it.
    pub stamp: u64,
    /// Keyed hash of the packet's flow.
    pub flow: FlowHash,
    /// A number of the driver's choice: a frame number, a buffer address. Disciplines do not read it.
    pub cookie: u64,
    /// The class that the driver chose, if any. It takes precedence over filters where its major number is the
    /// discipline's handle.
    pub class: ClassId,
    /// The firewall mark, or another number for filters to match.
    pub mark: u32,
    /// Priority, 0 to 15 (Linux: `skb->priority`): an index into a priomap.
    pub priority: u8,
    /// The six DSCP bits.
    pub dscp: u8,
    /// The ECN bits.
    pub ecn: Ecn,
}

impl Packet {
    /// A packet of `length` bytes. All other fields are zero, except `memory`, which is `length`.
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
