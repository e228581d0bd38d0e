//! The C ABI does what the library does: random calls through both have the same answers.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ptr;

use fairgate::{Ecn, FlowHash, Link, LinkFull, Next, Packet, Time, Verdict};
use fairgate_config::Spec;
use fairgate_ffi::*;
use proptest::prelude::*;

/// A call of a program.
#[derive(Clone, Debug)]
enum Call {
    Enqueue {
        flow: u64,
        length: u32,
        ecn: u8,
        priority: u8,
    },
    Dequeue,
    Peek,
    Flush,
}

fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
    let enqueue =
        (1..6u64, 40..1600u32, 0..4u8, 0..16u8).prop_map(|(flow, length, ecn, priority)| Call::Enqueue {
            flow: flow.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            length,
            ecn,
            priority,
        });
    let call =
        prop_oneof![8 => enqueue, 6 => Just(Call::Dequeue), 2 => Just(Call::Peek), 1 => Just(Call::Flush)];
    prop::collection::vec((0..3_000_000u64, call), 1..200)
}

const TREES: [&str; 7] = [
    "fifo limit=10",
    "fq_codel limit=20 target=1ms interval=5ms",
    "tbf rate=20mbit burst=5kb / codel limit=9",
    "red limit=30kb min=3kb max=9kb avpkt=1000 burst=5",
    "qfq",
    "cake bandwidth=10mbit",
    "netem corrupt=0.3",
];

/// A tree of the C ABI with its pool.
struct ThroughC {
    pool: *mut SharedPool,
    node: *mut QueueNode,
}

impl ThroughC {
    fn new(line: &str, capacity: u32, seed: u64) -> ThroughC {
        let line = CString::new(line).unwrap();
        // SAFETY: the line is a string, and nobody wants texts of errors. All objects are used as documented.
        unsafe {
            let tree = fairgate_tree_from_line(line.as_ptr(), ptr::null_mut());
            assert!(!tree.is_null());
            let pool = fairgate_pool_new(capacity, ptr::null_mut());
            let node = fairgate_node_new(tree, pool, seed, ptr::null_mut());
            fairgate_tree_free(tree);
            assert!(!pool.is_null() && !node.is_null());
            ThroughC { pool, node }
        }
    }

    /// Returns the cookies and reasons of what was dropped since the last call.
    fn dropped(&mut self) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        let mut dropped = MaybeUninit::uninit();
        // SAFETY: the pool is valid, and `dropped` is written if the answer is true. Reasons are strings.
        unsafe {
            while fairgate_pool_take_dropped(self.pool, dropped.as_mut_ptr()) {
                let dropped: CDropped = dropped.assume_init();
                let reason = std::ffi::CStr::from_ptr(dropped.reason);
                all.push((dropped.cookie, reason.to_str().unwrap().to_owned()));
            }
        }
        all
    }
}

impl Drop for ThroughC {
    fn drop(&mut self) {
        // SAFETY: both are from this library, and not freed yet.
        unsafe {
            fairgate_node_free(self.node);
            fairgate_pool_free(self.pool);
        }
    }
}

fn dropped_by_library(link: &mut Link<u64>) -> Vec<(u64, String)> {
    let next = || link.take_dropped();
    std::iter::from_fn(next)
        .map(|dropped| (dropped.payload, dropped.reason.name().to_owned()))
        .collect()
}

proptest! {
    #[test]
    fn same_answers(tree in prop::sample::select(&TREES[..]), seed: u64, calls in calls()) {
        let mut c = ThroughC::new(tree, 40, seed);
        let mut link: Link<u64> = Link::new(Spec::inline(tree).unwrap().build(seed).unwrap(), 40);
        let mut now = 0;
        for (cookie, (pause, call)) in (0u64..).zip(calls) {
            now += pause;
            let time = Time::from_nanos(now);
            let mut departure = MaybeUninit::uninit();
            match call {
                Call::Enqueue { flow, length, ecn, priority } => {
                    let packet = CPacket { flow, cookie, length, ecn, priority, ..CPacket::default() };
                    // SAFETY: node and packet are valid.
                    let status = unsafe { fairgate_node_enqueue(c.node, &packet, now) };
                    let packet = Packet {
                        flow: FlowHash::from_raw(flow),
                        // A wrong bit depends on it.
                        cookie,
                        ecn: Ecn::from_bits(ecn),
                        priority,
                        ..Packet::of_length(length)
                    };
                    let expected = match link.enqueue(packet, cookie, time) {
                        Ok(Verdict::Queued) => Status::FairgateQueued,
                        Ok(Verdict::Dropped) => Status::FairgateDropped,
                        Ok(Verdict::Congested) => Status::FairgateCongested,
                        Ok(Verdict::Unclassified) => Status::FairgateUnclassified,
                        Err(LinkFull { .. }) => Status::FairgateFull,
                    };
                    prop_assert_eq!(status, expected);
                }
                Call::Dequeue => {
                    let mut until = 0;
                    // SAFETY: node, departure and time are valid.
                    let status =
                        unsafe { fairgate_node_dequeue(c.node, now, departure.as_mut_ptr(), &mut until) };
                    match link.dequeue(time) {
                        Next::Packet(expected) => {
                            prop_assert_eq!(status, Status::FairgatePacket);
                            // SAFETY: it is written with this answer.
                            let departure: CDeparture = unsafe { departure.assume_init() };
                            prop_assert_eq!(departure.cookie, expected.payload);
                            prop_assert_eq!(departure.ecn, expected.slot.ecn as u8);
                            prop_assert_eq!(departure.is_marked, expected.slot.is_marked());
                            let bit = expected.slot.corrupted_bit(expected.slot.length as usize);
                            let bit = bit.unwrap_or(FAIRGATE_NO_BIT);
                            prop_assert_eq!(departure.corrupted_bit, bit);
                            prop_assert_eq!(departure.enqueued_at, expected.slot.enqueued_at.nanos());
                        }
                        Next::Wait(expected) => {
                            prop_assert_eq!(status, Status::FairgateWait);
                            prop_assert_eq!(until, expected.nanos());
                        }
                        Next::Idle => prop_assert_eq!(status, Status::FairgateIdle),
                    }
                }
                Call::Peek => {
                    // SAFETY: node and departure are valid.
                    let status = unsafe { fairgate_node_peek(c.node, now, departure.as_mut_ptr()) };
                    let expected = link.peek(time).map(|(_, cookie)| *cookie);
                    // SAFETY: it is written with this answer.
                    let seen = (status == Status::FairgatePacket)
                        .then(|| unsafe { departure.assume_init() }.cookie);
                    prop_assert_eq!(seen, expected);
                }
                Call::Flush => {
                    // SAFETY: the node is valid.
                    unsafe { fairgate_node_flush(c.node) };
                    link.change(|root, pool| root.flush(pool));
                }
            }
            prop_assert_eq!(c.dropped(), dropped_by_library(&mut link));
            // SAFETY: the pool is valid.
            let length = unsafe { fairgate_pool_length(c.pool) };
            prop_assert_eq!(length, link.len());
        }
        let mut statistics = CStatistics::default();
        // SAFETY: node and statistics are valid.
        let is_written = unsafe { fairgate_node_statistics(c.node, &mut statistics) };
        prop_assert!(is_written);
        let expected = link.root().statistics();
        prop_assert_eq!(statistics.enqueued_packets, expected.enqueued.packets);
        prop_assert_eq!(statistics.dropped_bytes, expected.dropped.bytes);
        prop_assert_eq!(statistics.backlog_packets, expected.backlog().packets);
        prop_assert_eq!(statistics.marked, expected.marked);
    }
}
