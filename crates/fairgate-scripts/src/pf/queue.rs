//! An interface with its queues, as ALTQ and OpenBSD describe them.

use toml::Spanned;

use super::amount::Bandwidth;
use crate::script::Word;

/// The default length of a queue, in packets (DEFAULT_QLIMIT).
pub(super) const PACKETS: u64 = 50;

/// How an interface schedules its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduler {
    Cbq,
    Priq,
    Hfsc,
    Fairq,
    Codel,
}

/// A service curve: a rate, or one for the first time and then another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    pub(super) first: Option<(Bandwidth, u64)>,
    pub(super) rate: Bandwidth,
}

/// How a queue drops packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropping {
    pub(super) red: bool,
    pub(super) codel: bool,
    pub(super) ecn: bool,
}

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) name: Word,
    /// The queue above it, by name.
    pub(super) parent: Option<String>,
    /// Whether queues are below it.
    pub(super) is_inner: bool,
    /// The interface that it is limited to, as written.
    pub(super) on: Option<Word>,
    pub(super) bandwidth: Option<Spanned<Bandwidth>>,
    /// Its rate in bit/s, computed from the bandwidths above it.
    pub(super) rate: u64,
    pub(super) priority: u8,
    pub(super) limit: Spanned<u64>,
    pub(super) is_default: bool,
    pub(super) borrows: bool,
    pub(super) dropping: Dropping,
    pub(super) codel: Codel,
    /// The number of hashed flows, if the queue has some.
    pub(super) flows: Option<Spanned<u64>>,
    /// Bursts of cbq, in packets.
    pub(super) bursts: Vec<(&'static str, Spanned<u64>)>,
    pub(super) realtime: Option<Curve>,
    pub(super) linkshare: Option<Curve>,
    pub(super) upperlimit: Option<Curve>,
    /// The names of the queues below it.
    pub(super) below: Vec<Word>,
}

/// CoDel's times, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    pub(super) target: Option<u64>,
    pub(super) interval: Option<u64>,
}

impl Queue {
    pub(super) fn named(name: Word) -> Queue {
        let location = name.span();
        Queue {
            name,
            parent: None,
            is_inner: false,
            on: None,
            bandwidth: None,
            rate: 0,
            // DEFAULT_PRIORITY
            priority: 1,
            limit: Spanned::new(location, PACKETS),
            is_default: false,
            borrows: false,
            dropping: Dropping::default(),
            codel: Codel::default(),
            flows: None,
            bursts: Vec::new(),
            realtime: None,
            linkshare: None,
            upperlimit: None,
            below: Vec::new(),
        }
    }
}

/// An interface with queues.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) name: Word,
    pub(super) scheduler: Scheduler,
    /// The rate in bit/s at which it sends.
    pub(super) rate: Option<Spanned<u64>>,
    /// The size of the bucket for this rate, in bytes.
    pub(super) bucket: u64,
    /// Every queue after the one above it.
    pub(super) queues: Vec<Queue>,
}
