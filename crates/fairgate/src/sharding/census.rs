//! Counts the flows of a shard by the packets that enter and leave, whatever the discipline between them.
//!
//! Flows are hashed to buckets, so that a count needs no memory of its own for each flow. Flows that share a
//! bucket count once. The estimate corrects for that: of `B` buckets, `n` flows occupy about
//! `n - n^2 / 2B` (linear counting; Whang, Vander-Zanden, Taylor 1990).
//!
//! A flow is *light* if its queue became empty in the last window, and it sent less than three quarters of
//! what the busiest flow sent. All others count as flows that always have packets: also flows of TCP whose
//! queues are empty now and then. A flow that was not seen in a window is not light until the next one ends.

use alloc::boxed::Box;

use crate::flow::FlowHash;

/// The number of buckets.
const BUCKETS: u32 = 4096;
/// Separates the choice of the bucket from other uses of the hash.
const SALT: u64 = 0x6365_6e73_7573_0001;
/// A window ends when a flow has sent so many bytes: enough packets to compare flows.
const ENOUGH: u64 = 16 * FRAME;
/// It ends after so many intervals at the latest.
const LONGEST: u32 = 512;
/// A full frame, bytes. A flow may have sent one less than another one by chance.
const FRAME: u64 = 1514;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    packets: u32,
    /// What it has sent in this window.
    bytes: u32,
    /// Whether it became empty in this window.
    was_empty: bool,
    is_light: bool,
}

/// What was counted in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// The buckets that sent.
    pub(super) senders: u32,
    /// The bytes that were sent.
    pub(super) bytes: u64,
    /// The buckets that were light.
    pub(super) light: u32,
    /// The bytes that these sent.
    pub(super) light_bytes: u64,
    /// How long the window took, ns.
    pub(super) nanos: u64,
}

impl Window {
    /// Converts bytes of the window to bytes per second.
    pub(super) fn rate(&self, bytes: u64) -> u64 {
        let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(self.nanos.max(1));
        u64::try_from(per_second).unwrap_or(u64::MAX)
    }
}

/// The flows of a shard.
#[derive(Clone, Debug)]
pub(super) struct Census {
    buckets: Box<[Bucket]>,
    /// The buckets that hold packets, and are not light.
    heavy: u32,
    packets: u32,
    /// The intervals of this window, their time in ns, and the bytes of all buckets and of the one with most.
    intervals: u32,
    nanos: u64,
    bytes: u64,
    most: u64,
    last: Window,
}

impl Census {
    pub(super) fn new() -> Census {
        Census {
            buckets: vec![Bucket::default(); BUCKETS as usize].into_boxed_slice(),
            heavy: 0,
            packets: 0,
            intervals: 0,
            nanos: 0,
            bytes: 0,
            most: 0,
            last: Window::default(),
        }
    }

    /// Returns the index of a flow's bucket.
    pub(super) fn place(flow: FlowHash) -> usize {
        flow.bucket(SALT, BUCKETS) as usize
    }

    #[inline]
    pub(super) fn arrived(&mut self, flow: FlowHash) {
        let bucket = &mut self.buckets[Census::place(flow)];
        bucket.packets += 1;
        let is_first = bucket.packets == 1 && !bucket.is_light;
        self.heavy += u32::from(is_first);
        self.packets += 1;
    }

    /// Notes that a packet was sent or dropped.
    #[inline]
    fn left(&mut self, flow: FlowHash) -> &mut Bucket {
        self.packets = self.packets.saturating_sub(1);
        let bucket = &mut self.buckets[Census::place(flow)];
        if bucket.packets == 1 && !bucket.is_light {
            self.heavy -= 1;
        }
        // A packet whose arrival is not known was here before `clear`.
        bucket.packets = bucket.packets.saturating_sub(1);
        bucket.was_empty |= bucket.packets == 0;
        bucket
    }

    #[inline]
    pub(super) fn dropped(&mut self, flow: FlowHash) {
        self.left(flow);
    }

    #[inline]
    pub(super) fn sent(&mut self, flow: FlowHash, bytes: u64) {
        let bucket = self.left(flow);
        bucket.bytes = bucket.bytes.saturating_add(bytes.min(u32::MAX.into()) as u32);
        let of_bucket = u64::from(bucket.bytes);
        self.most = self.most.max(of_bucket);
        self.bytes += bytes;
    }

    /// Ends an interval of `nanos` ns.
    pub(super) fn interval_ends(&mut self, nanos: u64) {
        self.nanos += nanos;
        self.intervals += 1;
        // The first window ends early: a new shard soon knows its flows.
        let is_over = self.most >= ENOUGH || self.intervals >= LONGEST || self.last.nanos == 0;
        if is_over {
            self.window_ends();
        }
    }

    #[cold]
    fn window_ends(&mut self) {
        let mut last = Window {
            bytes: self.bytes,
            nanos: self.nanos.max(1),
            ..Window::default()
        };
        let heavy_from = self.most * 3 / 4;
        self.heavy = 0;
        for bucket in &mut self.buckets {
            let bytes = u64::from(bucket.bytes);
            bucket.is_light = bytes > 0 && bucket.was_empty && bytes + FRAME < heavy_from;
            last.senders += u32::from(bytes > 0);
            if bucket.is_light {
                last.light += 1;
                last.light_bytes += bytes;
            } else {
                self.heavy += u32::from(bucket.packets > 0);
            }
            (bucket.bytes, bucket.was_empty) = (0, false);
        }
        self.last = last;
        (self.intervals, self.nanos, self.bytes, self.most) = (0, 0, 0, 0);
    }

    /// Returns the packets that it knows of.
    #[inline]
    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    /// Forgets all packets: the shard has none. They were moved or flushed without notice.
    #[cold]
    pub(super) fn clear(&mut self) {
        for bucket in &mut self.buckets {
            bucket.packets = 0;
        }
        (self.heavy, self.packets) = (0, 0);
    }

    /// Returns the number of flows that have packets, and are not light.
    pub(super) fn backlogged(&self) -> u32 {
        estimate(self.heavy)
    }

    /// Returns the last window that is over.
    pub(super) fn last(&self) -> Window {
        Window {
            senders: estimate(self.last.senders),
            light: estimate(self.last.light),
            ..self.last
        }
    }
}

/// Returns about how many flows occupy this many buckets.
fn estimate(occupied: u32) -> u32 {
    let square = u64::from(occupied) * u64::from(occupied);
    occupied + (square / u64::from(2 * BUCKETS)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: u64) -> FlowHash {
        FlowHash::from_raw(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    #[test]
    fn backlogged_and_light_flows_are_told_apart() {
        let mut census = Census::new();
        census.interval_ends(1);
        for number in [1, 2] {
            (0..100).for_each(|_| census.arrived(flow(number)));
        }
        for _ in 0..4 {
            census.arrived(flow(3));
            census.sent(flow(3), 1000);
        }
        census.arrived(flow(3));
        assert_eq!(census.backlogged(), 3, "nobody is known to be light");
        census.dropped(flow(1));
        for number in [1, 2] {
            (0..25).for_each(|_| census.sent(flow(number), 1000));
        }
        census.interval_ends(1_000_000);
        let expected = Window {
            senders: 3,
            bytes: 54_000,
            light: 1,
            light_bytes: 4000,
            nanos: 1_000_000,
        };
        assert_eq!(census.last(), expected);
        assert_eq!(census.last().rate(4000), 4_000_000);
        assert_eq!((census.backlogged(), census.packets()), (2, 150));
        census.sent(flow(3), 1000);
        census.arrived(flow(3));
        assert_eq!(census.backlogged(), 2, "it is light until the window ends");
        census.clear();
        assert_eq!((census.backlogged(), census.packets()), (0, 0));
        // Packets that were here before leave later.
        census.sent(flow(1), 100);
        assert_eq!((census.backlogged(), census.packets()), (0, 0));
    }

    #[test]
    fn flows_that_share_a_bucket_are_estimated() {
        for flows in [10u64, 300, 1000] {
            let mut census = Census::new();
            (0..flows).for_each(|number| census.arrived(flow(number)));
            let error = u64::from(census.backlogged()).abs_diff(flows);
            assert!(error <= 1 + flows / 50, "{flows}: {}", census.backlogged());
        }
    }
}
