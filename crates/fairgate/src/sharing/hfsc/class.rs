//! A class: its part in link sharing, and a leaf's part in real-time service.

use crate::count::Count;
use crate::sharing::index::{ClassIndex, LeafIndex};
use crate::sharing::statistics::LeafCounters;
use crate::sharing::tree::LEVELS;

use super::ServiceCurve;
use super::curve::{Course, Curve};

/// A class and its part in link sharing. Times are in ticks.
#[derive(Debug)]
pub(super) struct HfscClass {
    /// The parent. `NONE` for the root.
    pub(super) parent: ClassIndex,
    /// The position among its siblings.
    pub(super) sibling: u32,
    /// The leaf, or `NONE` for an inner class.
    pub(super) leaf: LeafIndex,
    /// The number of active children. 1 for an active leaf.
    pub(super) active: u32,
    /// How often the class has become active, and the parent's count when it last did.
    pub(super) period: u64,
    pub(super) parent_period: u64,
    /// The bytes that the class has got in total.
    pub(super) total: u64,
    pub(super) virtual_time: u64,
    /// By how much virtual time was advanced because the class was skipped due to its limit.
    pub(super) put_forward: u64,
    /// The time from which its own limit permits service.
    pub(super) own_fit: u64,
    /// The time from which the class can be served. The limit of one of its children must permit it too.
    pub(super) fit: u64,
    /// Breaks ties of virtual time: the class that reached it first is served first.
    pub(super) turn: u64,
    pub(super) sharing: Option<Curve>,
    pub(super) shared: Course,
    pub(super) limit: Option<Curve>,
    pub(super) limited: Course,
}

/// A leaf's part in real-time service. Times are in ticks.
#[derive(Debug)]
pub(super) struct RealTime {
    pub(super) curve: Option<Curve>,
    pub(super) course: Course,
    /// The bytes that the leaf has got by the real-time criterion.
    pub(super) served: u64,
    pub(super) eligible: u64,
    pub(super) deadline: u64,
    pub(super) turn: u64,
}

/// A leaf.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) class: ClassIndex,
    pub(super) is_active: bool,
    pub(super) real_time: RealTime,
    /// What the leaf has sent since the last change of the tree's shape.
    pub(super) sent: Count,
}

impl Leaf {
    /// Returns what the leaf has sent. No class lends.
    pub(super) fn counters(&self) -> LeafCounters {
        let mut packets_from = [0; LEVELS];
        packets_from[0] = self.sent.packets;
        LeafCounters {
            class: self.class,
            bytes: self.sent.bytes,
            packets_from,
        }
    }
}

impl HfscClass {
    /// Creates an idle class.
    pub(super) fn new(
        parent: ClassIndex,
        sibling: u32,
        leaf: LeafIndex,
        sharing: Option<ServiceCurve>,
        limit: Option<ServiceCurve>,
    ) -> HfscClass {
        let (sharing, limit) = (
            sharing.map(|curve| Curve::new(&curve)),
            limit.map(|curve| Curve::new(&curve)),
        );
        let start = |curve: Option<Curve>| curve.map_or(Course::default(), |curve| curve.from(0, 0));
        HfscClass {
            parent,
            sibling,
            leaf,
            active: 0,
            period: 0,
            parent_period: 0,
            total: 0,
            virtual_time: 0,
            put_forward: 0,
            own_fit: 0,
            fit: 0,
            turn: 0,
            sharing,
            shared: start(sharing),
            limit,
            limited: start(limit),
        }
    }
}

impl Leaf {
    /// Creates an idle leaf with a real-time curve, if there is one.
    pub(super) fn new(class: ClassIndex, real_time: Option<ServiceCurve>) -> Leaf {
        let curve = real_time.map(|curve| Curve::new(&curve));
        Leaf {
            class,
            is_active: false,
            real_time: RealTime {
                course: curve.map_or(Course::default(), |curve| curve.from(0, 0)),
                curve,
                served: 0,
                eligible: 0,
                deadline: 0,
                turn: 0,
            },
            sent: Count::default(),
        }
    }
}
