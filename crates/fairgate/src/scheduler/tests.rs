//! Tests that `Flows` and `Classes` keep their contract with schedulers, with a scheduler that checks every
//! call.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::classes::{self, ClassConfig, Classes};
use super::flows::{self, Flows};
use super::{Head, Holds, MAX_PACKET, Scheduler};
use crate::classify::Classifier;
use crate::discipline::{Algorithm, Node, Reconfigure};
use crate::error::ConfigError;
use crate::packet::{DropReason, Packet};
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::{self, Fifo};
use crate::queues::tbf::{self, Tbf};
use crate::queues::token_bucket::Profile;
use crate::rate::Rate;
use crate::testing::{Driver, fifo, in_class};
use crate::time::Time;
use crate::timestamps::scfq::Scfq;
use crate::timestamps::{MAX_WEIGHT, Weight};
use crate::{Discipline, Verdict};

/// A scheduler that serves flows in turn and checks every call. With `FLAT` each packet is stamped. Without
/// it, only first packets are known.
#[derive(Debug, Default)]
struct Checked<const FLAT: bool> {
    /// The known packets of each flow: all of them, or the first.
    queues: Vec<VecDeque<Head>>,
    turn: VecDeque<u32>,
    stamps: u64,
    latest: Time,
}

impl<const FLAT: bool> Checked<FLAT> {
    fn check_time(&mut self, now: Time) {
        assert!(now >= self.latest, "time must not decrease");
        self.latest = now;
    }
}

impl<const FLAT: bool> Scheduler for Checked<FLAT> {
    const NAME: &'static str = "checked";
    const STAMPS: bool = FLAT;
    type Share = Weight;
    type Settings = ();
    type Flow = u32;

    fn new((): &(), _origin: u64) -> Result<Self, ConfigError> {
        Ok(Self::default())
    }

    fn add_flow(&mut self, share: &Weight) -> Result<u32, ConfigError> {
        self.queues.push(VecDeque::new());
        Ok(share.0)
    }

    fn change_share(&mut self, flow: &mut u32, share: &Weight) {
        *flow = share.0;
    }

    fn stamp<F: Holds<State = u32>>(&mut self, _: &mut [F], flow: u32, length: u32, now: Time) -> u64 {
        self.check_time(now);
        assert!(FLAT);
        self.stamps += 1;
        let stamp = self.stamps;
        self.queues[flow as usize].push_back(Head { length, stamp });
        stamp
    }

    fn stolen<F: Holds<State = u32>>(&mut self, _: &mut [F], flow: u32, head: Head, now: Time) {
        self.check_time(now);
        let queue = &mut self.queues[flow as usize];
        assert_eq!(queue.pop_back(), Some(head), "the newest packet must be stolen");
        assert_eq!(
            !queue.is_empty(),
            self.turn.contains(&flow),
            "a flow's first packet must not be stolen"
        );
    }

    fn activate<F: Holds<State = u32>>(&mut self, _: &mut [F], flow: u32, head: Head, now: Time) {
        self.check_time(now);
        assert!(
            !self.turn.contains(&flow),
            "an active flow must not be activated again"
        );
        self.turn.push_back(flow);
        let queue = &mut self.queues[flow as usize];
        if FLAT {
            assert_eq!(queue.front(), Some(&head));
        } else {
            queue.push_back(head);
        }
    }

    fn select<F: Holds<State = u32>>(&mut self, _: &mut [F], now: Time) -> Option<u32> {
        self.check_time(now);
        self.turn.front().copied()
    }

    fn update<F: Holds<State = u32>>(
        &mut self,
        _: &mut [F],
        flow: u32,
        sent: u32,
        next: Option<Head>,
        now: Time,
    ) {
        self.check_time(now);
        assert_eq!(self.turn.pop_front(), Some(flow), "the selected flow must send");
        let queue = &mut self.queues[flow as usize];
        let first = queue.pop_front().expect("the flow has packets");
        assert!(
            sent == first.length || (sent == 0 && !FLAT),
            "the first packet of the flow must be sent"
        );
        if FLAT {
            assert_eq!(queue.front().copied(), next);
        } else {
            queue.extend(next);
        }
        if next.is_some() {
            self.turn.push_back(flow);
        }
    }

    fn clear<F: Holds<State = u32>>(&mut self, _: &mut [F]) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.turn.clear();
    }
}

fn by_class() -> Classifier {
    Classifier {
        handle: 1,
        ..Classifier::default()
    }
}

fn flat(flows: u32, limit: u32) -> flows::Config<Weight, ()> {
    flows::Config {
        flows,
        limit,
        classifier: by_class(),
        ..flows::Config::default()
    }
}

fn classful(weights: &[u32]) -> classes::Config<Weight, ()> {
    classes::Config {
        classifier: by_class(),
        classes: (1..)
            .zip(weights)
            .map(|(minor, &weight)| ClassConfig {
                minor,
                share: Weight(weight),
            })
            .collect(),
        templates: Default::default(),
        settings: (),
    }
}

/// A token bucket of 1000 bytes that fills at one byte per microsecond, over a fifo.
fn shaper() -> Box<dyn Discipline> {
    let config = tbf::Config {
        profile: Profile::new(Rate::mbit(8), 1000),
        limit: None,
    };
    Box::new(Tbf::node(config, Some(fifo(100))).expect("the parameters are within their ranges"))
}

#[test]
fn a_packet_that_is_too_long_is_dropped_flat_and_classful() {
    let mut flat = Driver::new(Flows::<Checked<true>>::node(self::flat(2, 10), 0).unwrap());
    let mut classful =
        Driver::new(Classes::<Checked<false>>::node(self::classful(&[1]), vec![fifo(10)]).unwrap());
    let longest = in_class(1, MAX_PACKET);
    let longer = in_class(1, MAX_PACKET + 1);
    for (packet, expected) in [(longest, Verdict::Queued), (longer, Verdict::Dropped)] {
        assert_eq!(flat.offer(packet, Time::ZERO), expected);
        assert_eq!(classful.offer(packet, Time::ZERO), expected);
    }
    assert_eq!(flat.returned, [(1, DropReason::LargerThanMaximum)]);
    assert_eq!(classful.returned, [(1, DropReason::LargerThanMaximum)]);
    assert_eq!(
        (flat.drain(Time::ZERO), classful.drain(Time::ZERO)),
        (vec![0], vec![0])
    );
}

#[test]
fn a_packet_of_a_flow_that_does_not_exist_is_given_back() {
    let mut driver = Driver::new(Flows::<Checked<true>>::node(flat(2, 10), 0).unwrap());
    for (flow, expected) in [
        (1, Verdict::Queued),
        (2, Verdict::Unclassified),
        (u32::MAX, Verdict::Unclassified),
    ] {
        let id = driver.pool.insert(Packet::of_length(100)).unwrap();
        let verdict = driver.root.enqueue_flow(flow, id, Time::ZERO, &mut driver.pool);
        assert_eq!(verdict, expected);
    }
    let returned: Vec<DropReason> = core::iter::from_fn(|| driver.pool.take_returned())
        .map(|(_, reason)| reason)
        .collect();
    assert_eq!(returned, [DropReason::NoFreeFlow; 2]);
    assert_eq!(driver.root.backlog().packets, 1);
}

#[test]
fn invalid_settings_are_rejected() {
    let refused = |change: fn(&mut flows::Config<Weight, ()>)| {
        let mut config = flat(4, 10);
        change(&mut config);
        Flows::<Scfq>::node(config, 0).unwrap_err().parameter()
    };
    assert_eq!(refused(|config| config.flows = 0), Some("flows"));
    assert_eq!(refused(|config| config.flows = (1 << 20) + 1), Some("flows"));
    assert_eq!(refused(|config| config.limit = 0), Some("limit"));
    assert_eq!(refused(|config| config.limit = (1 << 25) + 1), Some("limit"));
    assert_eq!(
        refused(|config| config.shares = vec![Weight(1); 5]),
        Some("flows")
    );
    assert_eq!(refused(|config| config.share = Weight(0)), Some("weight"));

    let refused = |weights: &[u32]| {
        let inner = weights.iter().map(|_| fifo(1)).collect();
        let classes = Classes::<Scfq>::node(classful(weights), inner);
        classes.err().and_then(|error| error.parameter())
    };
    assert_eq!(refused(&[0]), Some("weight"));
    assert_eq!(refused(&[MAX_WEIGHT + 1]), Some("weight"));
    assert_eq!(refused(&[MAX_WEIGHT; 1025]), Some("weight"), "the sum");
    assert_eq!(refused(&[MAX_WEIGHT; 1024]), None);
}

#[test]
fn a_change_of_flat_parameters_keeps_the_packets() {
    let mut driver = Driver::new(Flows::<Checked<true>>::node(flat(4, 10), 0).unwrap());
    for flow in [1, 2, 3, 4, 1, 2, 3, 4] {
        driver.offer(in_class(flow, 100), Time::ZERO);
    }
    driver.reconfigure(flat(4, 6), Time::ZERO);
    let reasons: Vec<DropReason> = driver.returned.iter().map(|&(_, reason)| reason).collect();
    assert_eq!(
        reasons,
        [DropReason::Reconfigured; 2],
        "only packets over the limit are dropped"
    );
    assert_eq!(driver.drain(Time::ZERO).len(), 6);
}

#[test]
fn a_throttled_class_is_parked_until_its_watchdog() {
    let config = classful(&[1, 1]);
    let mut driver = Driver::new(Classes::<Checked<false>>::node(config, vec![shaper(), fifo(10)]).unwrap());
    let start = Time::from_secs(1);
    for class in [1, 1, 2, 2, 2] {
        driver.offer(in_class(class, 1000), start);
    }
    assert_eq!(
        [(); 4].map(|()| driver.next(start)),
        [Some(0), Some(2), Some(3), Some(4)]
    );
    assert_eq!(driver.next(start), None, "the bucket is empty");
    let wake = driver
        .root
        .watchdog()
        .expect("a throttled discipline has a watchdog time");
    assert_eq!(wake, start + 1_000_000);
    assert_eq!(driver.next(wake), Some(1));
    assert_eq!(driver.root.watchdog(), None);
}

#[test]
fn a_parked_class_does_not_delay_other_classes() {
    let config = classful(&[MAX_WEIGHT, 1]);
    let mut driver = Driver::new(Classes::<Scfq>::node(config, vec![shaper(), fifo(10)]).unwrap());
    let start = Time::from_secs(1);
    for class in [1, 1, 1, 2, 2] {
        driver.offer(in_class(class, 1000), start);
    }
    assert_eq!(driver.drain(start), [0, 3, 4]);
    // The class gets no credit for the time in which it was parked. It starts from the current virtual time.
    driver.offer(in_class(2, 1), start);
    assert_eq!(driver.drain(start + 1_000_000), [1, 5]);
}

/// A fifo that sends a packet every `period` from `next` on, and counts how often its dequeue is called.
struct Timed {
    queue: PacketQueue,
    next: Time,
    period: u64,
    asked: Arc<AtomicU64>,
}

impl Algorithm for Timed {
    const NAME: &'static str = "timed";
    type Config = ();

    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        self.queue.push_back(id, pool);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if now < self.next {
            return None;
        }
        self.next = now + self.period;
        self.queue.pop_front(pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
    }

    fn watchdog(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.next)
    }

    fn config(&self) {}

    fn reconfigure(&mut self, (): (), _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }
}

/// Creates a class for each of `starts`. It can send a packet at that time, and every `period` after it.
fn timed(starts: &[Time], period: u64) -> (Driver<Classes<Checked<false>>>, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let inner = starts.iter().map(|&next| -> Box<dyn Discipline> {
        Box::new(Node::new(Timed {
            queue: PacketQueue::new(),
            next,
            period,
            asked: asked.clone(),
        }))
    });
    let config = classful(&vec![1; starts.len()]);
    let root = Classes::node(config, inner.collect()).unwrap();
    (Driver::new(root), asked)
}

#[test]
fn a_class_that_wakes_up_does_not_wake_the_others() {
    const CLASSES: u32 = 500;
    let starts: Vec<Time> = (1..=u64::from(CLASSES)).map(Time::from_micros).collect();
    let (mut driver, asked) = timed(&starts, 1_000_000);
    for class in (1..=CLASSES).chain(1..=CLASSES) {
        driver.offer(in_class(class, 100), Time::ZERO);
    }
    let mut now = Time::ZERO;
    let mut sent = Vec::new();
    while driver.root.backlog().packets > 0 {
        match driver.next(now) {
            Some(packet) => sent.push(packet),
            None => {
                now = driver
                    .root
                    .watchdog()
                    .expect("a throttled discipline has a watchdog time")
            }
        }
    }
    assert!(
        sent.into_iter().eq(0..2 * u64::from(CLASSES)),
        "each class sends in its microsecond"
    );
    // For each packet: on arrival, at its time, and for the packet after it.
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked <= 4 * 2 * u64::from(CLASSES), "{asked} calls");
}

#[test]
fn classes_that_wake_up_together_send_in_the_order_of_their_numbers() {
    let (mut driver, _) = timed(&[5, 1, 9, 3, 7].map(Time::from_millis), 1);
    for class in 1..=5 {
        driver.offer(in_class(class, 100), Time::ZERO);
    }
    assert_eq!(driver.root.watchdog(), Some(Time::from_millis(1)));
    assert_eq!(driver.drain(Time::from_millis(7)), [0, 1, 3, 4]);
    assert_eq!(driver.root.watchdog(), Some(Time::from_millis(9)));
    assert_eq!(driver.drain(Time::from_millis(9)), [2]);
}

/// A queue that drops everything when it is asked for the next packet.
struct Void(PacketQueue);

impl Algorithm for Void {
    const NAME: &'static str = "void";
    type Config = ();

    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        self.0.push_back(id, pool);
        Verdict::Queued
    }

    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        while let Some(id) = self.0.pop_front(pool) {
            pool.give_back(id, DropReason::Aqm);
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.0.append_to(into, pool);
    }

    fn config(&self) {}

    fn reconfigure(&mut self, (): (), _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }
}

/// A class that becomes active is peeked. The packet that made it active may be dropped by that.
#[test]
fn a_packet_that_the_peek_drops_is_not_called_queued() {
    let void: Box<dyn Discipline> = Box::new(Node::new(Void(PacketQueue::new())));
    let mut root = Classes::<Checked<false>>::node(classful(&[1]), vec![void]).unwrap();
    let mut pool = Pool::with_capacity(4);
    let id = pool.insert(in_class(1, 100)).unwrap();
    assert_eq!(root.enqueue(id, Time::ZERO, &mut pool), Verdict::Dropped);
    assert_eq!(pool.take_returned(), Some((id, DropReason::Aqm)));
    assert_eq!(root.backlog().packets, 0);
}

#[test]
fn an_inner_discipline_that_contains_packets_is_served() {
    let mut pool = Pool::with_capacity(16);
    let mut inner = fifo(10);
    for cookie in 0..2 {
        let id = pool
            .insert(Packet {
                cookie,
                ..Packet::of_length(100)
            })
            .unwrap();
        inner.enqueue(id, Time::ZERO, &mut pool);
    }
    let mut root = Classes::<Checked<false>>::node(classful(&[1, 1]), vec![fifo(10), inner]).unwrap();
    let first = root
        .dequeue(Time::ZERO, &mut pool)
        .map(|id| pool.release(id).cookie);
    let second = root.peek(Time::ZERO, &mut pool).map(|id| pool[id].cookie);
    assert_eq!((first, second), (Some(0), Some(1)));
}

#[test]
fn a_changed_share_takes_effect_while_the_class_is_active() {
    let inner = vec![fifo(4000), fifo(4000)];
    let mut driver = Driver::new(Classes::<Scfq>::node(classful(&[1, 1]), inner).unwrap());
    for number in 0..3000 {
        driver.offer(in_class(1 + number % 2, 1000), Time::ZERO);
    }
    let of_first = |driver: &mut Driver<Classes<Scfq>>| {
        (0..400)
            .filter(|_| driver.next(Time::ZERO).unwrap().is_multiple_of(2))
            .count()
    };
    assert_eq!(of_first(&mut driver), 200);
    driver.reconfigure(classful(&[1, 3]), Time::ZERO);
    let share = of_first(&mut driver);
    assert!((99..=101).contains(&share), "{share} of 400 at 1 to 3");
}

#[test]
fn changes_that_need_a_new_discipline_are_rejected_without_effect() {
    let mut driver = Driver::new(Classes::<Scfq>::node(classful(&[1, 2]), vec![fifo(9), fifo(9)]).unwrap());
    driver.offer(in_class(1, 100), Time::ZERO);
    for (weights, parameter) in [
        (&[1][..], "classes"),
        (&[1, 0], "weight"),
        (&[1, 1, 1], "classes"),
    ] {
        let config = classful(weights);
        let refused = driver
            .root
            .reconfigure(&config, Time::ZERO, &mut driver.pool)
            .unwrap_err();
        assert_eq!(refused.parameter(), Some(parameter));
    }
    assert_eq!(driver.drain(Time::ZERO), [0]);
}

/// An operation on a scheduler over classes. Some change an inner discipline from outside.
#[derive(Clone, Debug)]
enum Operation {
    Offer(u32, u32),
    Next,
    Peek,
    Flush(u32),
    Shorten(u32, u32),
    Replace(u32),
    Drain,
    Wait(u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let class = 1u32..=3;
    let operation = prop_oneof![
        6 => (class.clone(), 1u32..1500).prop_map(|(class, length)| Operation::Offer(class, length)),
        4 => Just(Operation::Next),
        2 => Just(Operation::Peek),
        1 => class.clone().prop_map(Operation::Flush),
        1 => (class.clone(), 1u32..4).prop_map(|(class, limit)| Operation::Shorten(class, limit)),
        1 => class.prop_map(Operation::Replace),
        1 => Just(Operation::Drain),
        2 => (0u64..2_000_000).prop_map(Operation::Wait),
    ];
    prop::collection::vec(operation, 0..150)
}

proptest! {
    /// Checks every call of the flat form, with stolen packets, a clock that stands still, and drains.
    #[test]
    fn flows_keep_the_contract_with_the_scheduler(
        limit in 1u32..12,
        operations in prop::collection::vec((0u8..8, 1u32..=4, 1u32..1500), 0..200),
    ) {
        let mut driver = Driver::new(Flows::<Checked<true>>::node(flat(4, limit), 0).unwrap());
        let mut queued = 0;
        for (operation, flow, length) in operations {
            match operation {
                0..=4 => {
                    driver.offer(in_class(flow, length), Time::ZERO);
                    queued = limit.min(queued + 1);
                    let queues = &driver.root.algorithm().scheduler().queues;
                    let known = queues.iter().map(VecDeque::len).sum::<usize>();
                    prop_assert_eq!(known, queued as usize);
                }
                5 | 6 => {
                    prop_assert_eq!(driver.next(Time::ZERO).is_some(), queued > 0);
                    queued = queued.saturating_sub(1);
                }
                _ => {
                    driver.root.flush(&mut driver.pool);
                    while let Some((id, _)) = driver.pool.take_returned() {
                        driver.pool.release(id);
                    }
                    queued = 0;
                }
            }
        }
    }

    /// Checks every call of the classful form, over fifos and a shaper. Classes are flushed, shortened and
    /// replaced from outside while they are selected, peeked at or parked. At the end all packets are
    /// dequeued.
    #[test]
    fn classes_keep_the_contract_with_the_scheduler(operations in operations()) {
        let inner = vec![fifo(5), shaper(), fifo(50)];
        let mut driver = Driver::new(Classes::<Checked<false>>::node(classful(&[1, 1, 1]), inner).unwrap());
        let mut now = Time::from_secs(1);
        for operation in operations {
            match operation {
                Operation::Offer(class, length) => {
                    driver.offer(in_class(class, length.min(1000)), now);
                }
                Operation::Next => {
                    driver.next(now);
                }
                Operation::Peek => {
                    let shown = driver.peek(now);
                    prop_assert!(shown.is_none() || shown == driver.next(now));
                }
                Operation::Flush(class) => driver.change_class(class, &mut |class, pool| class.flush(pool)),
                Operation::Shorten(class, limit) => driver.change_class(class, &mut |class, pool| {
                    let config = fifo::Config { limit_packets: Some(limit), ..fifo::Config::default() };
                    // A shaper rejects the parameters of a fifo.
                    let _ = class.reconfigure(&config, now, pool);
                }),
                Operation::Replace(class) => {
                    let config = fifo::Config { limit_packets: Some(7), ..fifo::Config::default() };
                    let child: Box<dyn Discipline> =
                        if class == 2 { shaper() } else { Box::new(Fifo::node(config).unwrap()) };
                    driver.replace_class(class, child, now);
                }
                Operation::Drain => {
                    let mut all = PacketQueue::new();
                    driver.root.drain(&mut driver.pool, &mut all);
                    while let Some(id) = all.pop_front(&driver.pool) {
                        driver.pool.release(id);
                    }
                }
                Operation::Wait(nanos) => now += nanos,
            }
        }
        while driver.root.backlog().packets > 0 {
            if driver.next(now).is_none() {
                let wake = driver.root.watchdog().expect("a throttled discipline has a watchdog time");
                prop_assert!(wake > now, "the packet could have been sent now");
                now = wake;
            }
        }
        // A class that was flushed while it was active is found empty when it is selected.
        prop_assert_eq!(driver.next(now), None);
        let queues = &driver.root.algorithm().scheduler().queues;
        prop_assert!(queues.iter().all(VecDeque::is_empty));
    }
}
