//! What is passed by value.

use std::ffi::{CString, c_char};
use std::sync::LazyLock;

use fairgate::flow::LinkType;
use fairgate::{ClassId, DropReason, Ecn, FlowHash, Packet, Slot, Verdict};

/// A packet as the caller describes it. A field that is not used is 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CPacket {
    /// The earliest departure in nanoseconds, for `fq`. 0 means at once.
    pub departure: u64,
    /// The hash of the packet's flow: uniform over 64 bits, and keyed if senders may be hostile. 0 is a
    /// packet without a flow; `fairgate_node_enqueue_frame` computes it then.
    pub flow: u64,
    /// A number of the caller: a pointer, an index. It comes back with the packet.
    pub cookie: u64,
    /// The length on the link in bytes, above 0.
    pub length: u32,
    /// The memory that the packet takes, in bytes, for memory limits. 0 means `length`.
    pub memory: u32,
    /// The class that the caller chooses, as in tc: major << 16 | minor. 0 is none.
    pub class_id: u32,
    /// A mark for filters.
    pub mark: u32,
    /// The priority, 0 to 15.
    pub priority: u8,
    /// The DSCP, 0 to 63.
    pub dscp: u8,
    /// The two ECN bits: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    pub ecn: u8,
}

impl CPacket {
    /// Returns the packet for the library, or what is wrong: a text that ends with a zero byte.
    #[inline]
    pub(crate) fn checked(&self) -> Result<Packet, &'static str> {
        if self.length == 0 || self.priority > 15 || self.dscp > 63 || self.ecn > 3 {
            return Err(self.mistake());
        }
        Ok(Packet {
            stamp: self.departure,
            flow: FlowHash::from_raw(self.flow),
            cookie: self.cookie,
            length: self.length,
            memory: if self.memory == 0 {
                self.length
            } else {
                self.memory
            },
            class: ClassId::new((self.class_id >> 16) as u16, self.class_id as u16),
            mark: self.mark,
            priority: self.priority,
            dscp: self.dscp,
            ecn: Ecn::from_bits(self.ecn),
        })
    }

    #[cold]
    fn mistake(&self) -> &'static str {
        if self.length == 0 {
            "`length` is 0; set it to the packet's length in bytes\0"
        } else if self.priority > 15 {
            "`priority` is above 15; pass 0 to 15\0"
        } else if self.dscp > 63 {
            "`dscp` is above 63; pass the six upper bits of the traffic class, shifted down by two\0"
        } else {
            "`ecn` is above 3; pass the two lower bits of the traffic class\0"
        }
    }
}

/// "No bit is wrong", as `corrupted_bit`.
pub const FAIRGATE_NO_BIT: u64 = u64::MAX;

/// A packet that is to be sent.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CDeparture {
    /// The caller's number.
    pub cookie: u64,
    /// When it was enqueued.
    pub enqueued_at: u64,
    /// The wrong bit of a packet that `netem` corrupted, one of `length` bytes: the caller flips it with
    /// `fairgate_frame_flip`. `FAIRGATE_NO_BIT` for any other packet.
    pub corrupted_bit: u64,
    /// The length in bytes.
    pub length: u32,
    /// The DSCP. It differs from that of the arrival if `is_remarked`.
    pub dscp: u8,
    /// The ECN bits. They differ from those of the arrival if `is_marked`.
    pub ecn: u8,
    /// Whether a discipline marked it with congestion experienced: the caller writes that into the packet.
    pub is_marked: bool,
    /// Whether a discipline changed the DSCP: the caller writes it into the packet.
    pub is_remarked: bool,
}

impl CDeparture {
    #[inline]
    pub(crate) fn of(slot: &Slot) -> CDeparture {
        // Few packets are corrupted. The call is made only for those.
        let corrupted_bit = if slot.is_corrupted() {
            slot.corrupted_bit(slot.length as usize)
        } else {
            None
        };
        CDeparture {
            cookie: slot.cookie,
            enqueued_at: slot.enqueued_at.nanos(),
            corrupted_bit: corrupted_bit.unwrap_or(FAIRGATE_NO_BIT),
            length: slot.length,
            dscp: slot.dscp,
            ecn: slot.ecn as u8,
            is_marked: slot.is_marked(),
            is_remarked: slot.is_remarked(),
        }
    }
}

/// A packet that a discipline dropped or flushed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CDropped {
    /// The caller's number.
    pub cookie: u64,
    /// Why: "aqm", "queue_limit", "flushed", ... It is valid for ever.
    pub reason: *const c_char,
    /// The length in bytes.
    pub length: u32,
}

impl CDropped {
    pub(crate) fn of(slot: &Slot, reason: DropReason) -> CDropped {
        CDropped {
            cookie: slot.cookie,
            reason: name(reason),
            length: slot.length,
        }
    }
}

/// Returns the name of a reason as a string of C. It is valid for ever.
pub(crate) fn name(reason: DropReason) -> *const c_char {
    static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
        let names = DropReason::ALL.iter();
        names
            .map(|reason| CString::new(reason.name()).unwrap_or_default())
            .collect()
    });
    NAMES[reason as usize].as_ptr()
}

/// The answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Enqueue: the packet is queued. Packets of other flows may have been dropped to make room.
    FairgateQueued = 0,
    /// Enqueue: it was dropped, or another packet was dropped instead and the sender should know.
    FairgateDropped = 1,
    /// Enqueue: it may or may not be queued, but its flow lost a packet and should slow down.
    FairgateCongested = 2,
    /// Enqueue: no class takes it, and it was dropped.
    FairgateUnclassified = 3,
    /// Dequeue and peek: `departure` is the packet to send.
    FairgatePacket = 16,
    /// Dequeue and peek: packets are queued, but none may be sent now.
    FairgateWait = 17,
    /// Dequeue and peek: nothing is queued.
    FairgateIdle = 18,
    /// Enqueue: the pool is full. Nothing has changed; the packet is still the caller's.
    FairgateFull = -1,
    /// An argument is wrong. Nothing has changed. `fairgate_node_mistake` says what is wrong.
    FairgateInvalid = -2,
    /// An earlier call found a bug in Fairgate. The node and its pool can only be freed.
    FairgateBroken = -3,
}

impl Status {
    #[inline]
    pub(crate) fn of(verdict: Verdict) -> Status {
        match verdict {
            Verdict::Queued => Status::FairgateQueued,
            Verdict::Dropped => Status::FairgateDropped,
            Verdict::Congested => Status::FairgateCongested,
            Verdict::Unclassified => Status::FairgateUnclassified,
        }
    }
}

/// The link layer of a frame: it begins with an Ethernet header.
pub const FAIRGATE_ETHERNET: u32 = 0;

/// The link layer of a frame: it begins with an IP header.
pub const FAIRGATE_RAW_IP: u32 = 1;

/// Returns the link layer with this number.
pub(crate) fn link_type_of(number: u32) -> Option<LinkType> {
    match number {
        FAIRGATE_ETHERNET => Some(LinkType::Ethernet),
        FAIRGATE_RAW_IP => Some(LinkType::RawIp),
        _ => None,
    }
}
