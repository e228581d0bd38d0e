//! Stochastic fairness queueing (McKenney 1990), with the parameters of Linux's `sfq`.
//!
//! Packets are hashed into `divisor` buckets. Each bucket in use has one of `flows` slots, and slots are
//! served round robin. A slot has an allotment of `quantum` bytes. It is served while the allotment is
//! positive; the last packet may make it negative. It gets the next quantum when its turn comes again.
//!
//! **Buffer stealing**: over the limit the slot with the most packets loses its newest packet, or with
//! `headdrop` its oldest. Lists of slots by length find it in constant time. If no slot has more than one
//! packet, the first slot of the active list loses its packet.
//!
//! **Perturbation**: every `perturb` the salt of the hash changes, so that flows that shared a bucket are
//! separated. Queued packets move to their new buckets at once, each old slot in order. All packets of a flow
//! are in one slot, so they stay in order among themselves and before later arrivals. This is the only step
//! that takes more than constant time. As in Linux, packets that then find no slot or a full one are dropped.
//!
//! At most `limit` slots are in use (Linux: flows = min(flows, limit)). Deviations from Linux: the depth may
//! exceed 127. Quanta below 64 are rejected, not raised. Perturbation is on by default as in the paper, and
//! happens at the first call after it is due.
//!
//! **RED** on each flow, with `min` (`sfq/red.rs`).

mod config;
mod red;

use alloc::vec::Vec;

use crate::arrival::Needs;
use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::DropFrom;
use crate::structures::{ActiveList, ByLength, Linked, ListLink, random};
use crate::time::Time;

use red::Red;

pub use config::{Config, DESCRIPTION, PARAMETERS};
pub use red::FlowRed;

/// The value of a bucket without a slot.
const NO_SLOT: u32 = u32::MAX;

/// The state that each packet needs: 40 bytes.
#[derive(Clone, Debug)]
struct Slot {
    queue: PacketQueue,
    /// The rest of the quantum, in bytes; negative after a packet longer than that.
    allotment: i32,
    /// The bucket that uses this slot.
    bucket: u32,
    link: ListLink,
}

impl Slot {
    const EMPTY: Slot = Slot {
        queue: PacketQueue::new(),
        allotment: 0,
        bucket: 0,
        link: ListLink::OUTSIDE,
    };
}

impl Linked for Slot {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// The discipline. Make one with [`Sfq::node`].
#[derive(Debug)]
pub struct Sfq {
    /// The slot of each bucket, or [`NO_SLOT`].
    slot_of: Vec<u32>,
    slots: Vec<Slot>,
    /// The free slots; the last one freed is on top.
    free: Vec<u32>,
    active: ActiveList,
    by_length: ByLength,
    packets: u32,
    salt: u64,
    /// When the next salt is due. Set by the first packet.
    perturb_at: Option<Time>,
    red: Option<Red>,
    config: Config,
}

/// What happened to a packet.
enum Inserted {
    /// It is in this slot, which holds one packet more.
    Slot(u32),
    /// It is in its slot, from which the oldest packet was dropped.
    HeadDropped,
    /// It was dropped.
    Dropped,
}

impl Sfq {
    /// Creates empty slots. The first salt and all later ones are derived from `seed`.
    pub fn node(config: Config, seed: u64) -> Result<Node<Sfq>, ConfigError> {
        config.check()?;
        Ok(Node::new(Sfq::empty(config, seed)))
    }

    /// Decides about a packet by the average of its flow. Returns `None` if the packet may be queued.
    /// Otherwise it drops a packet and returns the verdict.
    #[inline(never)]
    fn red(&mut self, bucket: u32, id: PacketId, pool: &mut Pool) -> Option<Verdict> {
        let (index, red) = (self.slot_of[bucket as usize], self.red.as_mut()?);
        if index == NO_SLOT || red.admits(index, &self.slots[index as usize].queue, id, pool) {
            return None;
        }
        match self.insert_in_full_slot(index, id, DropReason::Aqm, pool) {
            Inserted::HeadDropped => Some(Verdict::Congested),
            _ => Some(Verdict::Dropped),
        }
    }

    fn empty(config: Config, salt: u64) -> Sfq {
        let slots = config.flows.min(config.limit);
        Sfq {
            slot_of: vec![NO_SLOT; config.divisor as usize],
            slots: vec![Slot::EMPTY; slots as usize],
            free: (0..slots).rev().collect(),
            active: ActiveList::new(),
            // Before a packet is stolen a slot may be one packet over the limit.
            by_length: ByLength::new(slots, config.depth.min(config.limit + 1), config.limit),
            packets: 0,
            salt,
            perturb_at: None,
            red: Red::of(&config.red, config.drop_from, slots, random::mixed(salt))
                .expect("the parameters are checked"),
            config,
        }
    }

    /// Puts a packet that was in the queue before into its bucket. The averages of RED then begin anew with
    /// the packets that moved, as in Linux.
    fn insert_again(&mut self, id: PacketId, instead: Option<DropReason>, pool: &mut Pool) {
        let Config {
            classifier, divisor, ..
        } = &self.config;
        let bucket = classifier.flow_again(id, pool, self.salt, *divisor);
        let inserted = self.insert(bucket, id, instead, pool);
        if let (Inserted::Slot(index), Some(red)) = (inserted, &mut self.red) {
            let bytes = self.slots[index as usize].queue.count().bytes;
            red.average(index, bytes - u64::from(pool[id].length));
        }
    }

    /// Puts a packet into the slot of `bucket`. If there is no room it is dropped, for the reason `instead`,
    /// or else for the limit that it exceeded.
    #[inline]
    fn insert(
        &mut self,
        bucket: u32,
        id: PacketId,
        instead: Option<DropReason>,
        pool: &mut Pool,
    ) -> Inserted {
        let mut index = self.slot_of[bucket as usize];
        if index == NO_SLOT {
            let Some(free) = self.free.pop() else {
                pool.give_back(id, instead.unwrap_or(DropReason::NoFreeFlow));
                return Inserted::Dropped;
            };
            index = free;
            self.slot_of[bucket as usize] = index;
            if let Some(red) = &mut self.red {
                red.begin(index);
            }
            let slot = &mut self.slots[index as usize];
            slot.bucket = bucket;
            slot.allotment = self.config.quantum as i32;
            self.active.push_back(index, &mut self.slots);
        }
        let slot = &mut self.slots[index as usize];
        if slot.queue.len() >= self.config.depth {
            return self.insert_in_full_slot(index, id, instead.unwrap_or(DropReason::FlowLimit), pool);
        }
        slot.queue.push_back(id, pool);
        self.packets += 1;
        let length = slot.queue.len();
        self.by_length.grew(index, length);
        Inserted::Slot(index)
    }

    #[cold]
    fn insert_in_full_slot(
        &mut self,
        index: u32,
        id: PacketId,
        reason: DropReason,
        pool: &mut Pool,
    ) -> Inserted {
        if self.config.drop_from == DropFrom::Tail {
            pool.give_back(id, reason);
            return Inserted::Dropped;
        }
        let queue = &mut self.slots[index as usize].queue;
        let oldest = queue.pop_front(pool).expect("a slot at its depth is not empty");
        queue.push_back(id, pool);
        pool.give_back(oldest, reason);
        Inserted::HeadDropped
    }

    /// Drops a packet to make room for another one. Returns the slot that lost it.
    #[cold]
    fn steal(&mut self, reason: DropReason, pool: &mut Pool) -> u32 {
        let (longest, length) = self
            .by_length
            .longest()
            .expect("a discipline over its limit is not empty");
        // If all slots have one packet, the slot that loses it becomes free. Only the first slot of the
        // active list can be removed from the list.
        let victim = match length {
            1 => self
                .active
                .front()
                .expect("every slot in use is in the active list"),
            _ => longest,
        };
        let queue = &mut self.slots[victim as usize].queue;
        let stolen = match self.config.drop_from {
            DropFrom::Tail => queue.pop_back(pool),
            DropFrom::Head => queue.pop_front(pool),
        };
        let stolen = stolen.expect("a slot in use is not empty");
        self.packets -= 1;
        self.by_length.shrank(victim, length - 1);
        if length == 1 {
            self.free_first_slot();
        }
        pool.give_back(stolen, reason);
        victim
    }

    /// Frees the first slot of the active list, which is empty. Its bucket then has no slot.
    #[inline]
    fn free_first_slot(&mut self) {
        let index = self
            .active
            .pop_front(&mut self.slots)
            .expect("every slot in use is in the active list");
        self.slot_of[self.slots[index as usize].bucket as usize] = NO_SLOT;
        self.free.push(index);
    }

    /// Changes the salt if a new one is due.
    #[inline]
    fn perturb(&mut self, now: Time, pool: &mut Pool) {
        let Some(period) = self.config.perturb else { return };
        match self.perturb_at {
            Some(due) if now < due => {}
            Some(_) => self.change_salt(now + period, pool),
            None => self.perturb_at = Some(now + period),
        }
    }

    #[cold]
    fn change_salt(&mut self, next: Time, pool: &mut Pool) {
        self.perturb_at = Some(next);
        self.salt = random::mixed(self.salt);
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        while let Some(id) = queued.pop_front(pool) {
            self.insert_again(id, None, pool);
        }
    }
}

impl Algorithm for Sfq {
    const NAME: &'static str = "sfq";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.perturb(now, pool);
        let Config {
            classifier, divisor, ..
        } = &mut self.config;
        let Ok(bucket) = classifier.flow(id, now, pool, self.salt, *divisor) else {
            return Verdict::Unclassified;
        };
        if self.red.is_some()
            && let Some(verdict) = self.red(bucket, id, pool)
        {
            return verdict;
        }
        match self.insert(bucket, id, None, pool) {
            Inserted::Slot(index) => {
                if self.packets > self.config.limit && self.steal(DropReason::LongestFlow, pool) == index {
                    return Verdict::Congested;
                }
                Verdict::Queued
            }
            Inserted::HeadDropped => Verdict::Congested,
            Inserted::Dropped => Verdict::Dropped,
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.perturb(now, pool);
        loop {
            let index = self.active.front()?;
            let slot = &mut self.slots[index as usize];
            if slot.allotment <= 0 {
                slot.allotment += self.config.quantum as i32;
                self.active.rotate(&mut self.slots);
                continue;
            }
            let first = slot.queue.pop_front(pool).expect("a slot in use is not empty");
            slot.allotment -= pool[first].length as i32;
            let left = slot.queue.len();
            self.packets -= 1;
            self.by_length.shrank(index, left);
            if left == 0 {
                self.free_first_slot();
            }
            return Some(first);
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some(index) = self.active.front() {
            self.slots[index as usize].queue.append_to(into, pool);
            self.free_first_slot();
        }
        self.by_length.clear();
        self.packets = 0;
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// All packets are enqueued again, in the order of their flows.
    fn reconfigure(&mut self, mut config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        config.classifier.take_over(&self.config.classifier);
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        *self = Sfq::empty(config, self.salt);
        while let Some(id) = queued.pop_front(pool) {
            self.insert_again(id, Some(DropReason::Reconfigured), pool);
            if self.packets > self.config.limit {
                self.steal(DropReason::Reconfigured, pool);
            }
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let longest = self.slots.iter().map(|slot| slot.queue.len()).max().unwrap_or(0);
        visit("active_flows", Variable::Integer(self.active.len().into()));
        visit("longest_flow", Variable::Integer(longest.into()));
        visit(
            "perturb_at",
            self.perturb_at
                .map_or(Variable::Unset, |due| Variable::Nanos(due.nanos())),
        );
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::classify::Classifier;
    use crate::discipline::Inspect;
    use crate::flow::FlowHash;
    use crate::packet::{Ecn, Packet};
    use crate::testing::{Driver, in_class};
    use proptest::prelude::*;

    fn sfq(config: Config) -> Driver<Sfq> {
        let classifier = Classifier {
            handle: 1,
            ..Classifier::default()
        };
        Driver::new(Sfq::node(Config { classifier, ..config }, 1).unwrap())
    }

    /// Above `max` all packets of a flow are dropped or marked, and those of other flows are not touched.
    #[test]
    fn red_is_of_each_flow() {
        let red = FlowRed {
            min: Some(2000),
            max: Some(4000),
            burst: Some(3),
            ..FlowRed::default()
        };
        let config = |red: &FlowRed| Config {
            limit: 1000,
            red: red.clone(),
            ..Config::default()
        };
        let ect = Packet {
            ecn: Ecn::Ect0,
            ..in_class(1, 1000)
        };
        let run = |config: Config, packet: Packet| {
            let mut driver = sfq(config);
            let first: Vec<Verdict> = (0..40).map(|_| driver.offer(packet, Time::ZERO)).collect();
            assert!(
                first[..2].iter().all(|verdict| *verdict == Verdict::Queued),
                "the average is low"
            );
            let other = driver.offer(in_class(2, 1000), Time::ZERO);
            assert_eq!(other, Verdict::Queued, "another flow");
            let statistics = driver.root.statistics();
            (
                first[39],
                statistics.dropped_for(DropReason::Aqm),
                driver.pool.marked_total(),
            )
        };
        let (last, dropped, marked) = run(config(&red), ect);
        assert_eq!((last, marked), (Verdict::Dropped, 0));
        assert!(dropped > 20, "{dropped}");
        let with_ecn = FlowRed {
            ecn: true,
            ..red.clone()
        };
        let (last, dropped, marked) = run(config(&with_ecn), ect);
        assert_eq!((last, dropped), (Verdict::Queued, 0));
        assert!(marked > 20, "{marked}");
        let incapable = in_class(1, 1000);
        assert_eq!(run(config(&with_ecn), incapable).0, Verdict::Dropped);
        let hard = FlowRed {
            harddrop: true,
            ..with_ecn
        };
        assert_eq!(run(config(&hard), ect).0, Verdict::Dropped);
        let head = Config {
            drop_from: DropFrom::Head,
            ..config(&red)
        };
        assert_eq!(run(head, ect).0, Verdict::Congested, "the oldest is dropped");
        let refused = |alone: FlowRed| {
            let node = Sfq::node(config(&alone), 1);
            node.err().and_then(|error| error.parameter())
        };
        assert_eq!(refused(FlowRed { min: None, ..red }), Some("max"));
        let length = FlowRed {
            avpkt: 500,
            ..FlowRed::default()
        };
        assert_eq!(refused(length), Some("avpkt"));
    }

    fn offer(driver: &mut Driver<Sfq>, bucket: u32) -> Verdict {
        driver.offer(in_class(bucket, 1000), Time::ZERO)
    }

    #[test]
    fn the_hot_state_of_a_slot_is_less_than_a_cache_line() {
        assert_eq!(core::mem::size_of::<Slot>(), 40);
    }

    #[test]
    fn an_allotment_becomes_negative_by_at_most_one_packet() {
        let mut driver = sfq(Config::default());
        for bucket in [1, 1, 1, 1, 2, 2, 2, 2] {
            offer(&mut driver, bucket);
        }
        // 1514 bytes allow two packets of 1000. The debt of 486 leaves 1028 for the next turn: again two
        // packets.
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 4, 5, 2, 3, 6, 7]);
    }

    #[test]
    fn the_longest_slot_loses_a_packet() {
        let mut driver = sfq(Config {
            limit: 3,
            ..Config::default()
        });
        for bucket in [1, 1, 2] {
            assert_eq!(offer(&mut driver, bucket), Verdict::Queued);
        }
        assert_eq!(offer(&mut driver, 3), Verdict::Queued);
        assert_eq!(driver.returned, [(1, DropReason::LongestFlow)]);
        assert_eq!(offer(&mut driver, 2), Verdict::Congested);
        assert_eq!(driver.returned, [(4, DropReason::LongestFlow)]);
    }

    #[test]
    fn head_drop_takes_the_oldest_of_the_longest_slot() {
        let mut driver = sfq(Config {
            limit: 3,
            drop_from: DropFrom::Head,
            ..Config::default()
        });
        for bucket in [1, 1, 2, 2] {
            offer(&mut driver, bucket);
        }
        assert_eq!(
            driver.returned,
            [(2, DropReason::LongestFlow)],
            "slot 2 was the last to reach two packets"
        );
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 3]);
    }

    #[test]
    fn depth_and_number_of_slots_are_limits() {
        let mut driver = sfq(Config {
            depth: 1,
            flows: 1,
            ..Config::default()
        });
        assert_eq!(offer(&mut driver, 1), Verdict::Queued);
        assert_eq!(offer(&mut driver, 1), Verdict::Dropped);
        assert_eq!(driver.returned, [(1, DropReason::FlowLimit)]);
        assert_eq!(offer(&mut driver, 2), Verdict::Dropped);
        assert_eq!(driver.returned, [(2, DropReason::NoFreeFlow)]);
        let mut config = driver.root.algorithm().config();
        config.drop_from = DropFrom::Head;
        driver.reconfigure(config, Time::ZERO);
        assert_eq!(offer(&mut driver, 1), Verdict::Congested);
        assert_eq!(driver.returned, [(0, DropReason::FlowLimit)]);
        assert_eq!(driver.drain(Time::ZERO), [3]);
    }

    #[test]
    fn a_lowered_limit_drops_from_the_longest_slot() {
        let mut driver = sfq(Config::default());
        for bucket in [1, 1, 1, 2] {
            offer(&mut driver, bucket);
        }
        let mut config = driver.root.algorithm().config();
        config.limit = 2;
        driver.reconfigure(config, Time::ZERO);
        let returned: Vec<u64> = driver.returned.iter().map(|&(cookie, _)| cookie).collect();
        assert_eq!(returned, [2, 1]);
        assert_eq!(driver.drain(Time::ZERO), [0, 3]);
    }

    #[test]
    fn packets_without_room_after_a_change_are_dropped_as_reconfigured() {
        let mut driver = sfq(Config::default());
        for bucket in [1, 1, 2] {
            offer(&mut driver, bucket);
        }
        let mut config = driver.root.algorithm().config();
        (config.depth, config.flows) = (1, 1);
        driver.reconfigure(config, Time::ZERO);
        assert_eq!(
            driver.returned,
            [(1, DropReason::Reconfigured), (2, DropReason::Reconfigured)]
        );
    }

    #[test]
    fn another_salt_separates_flows_that_share_a_bucket() {
        let mut driver = Driver::new(
            Sfq::node(
                Config {
                    divisor: 2,
                    ..Config::default()
                },
                1,
            )
            .unwrap(),
        );
        let flow = |n: u64| Packet {
            flow: FlowHash::from_raw(n.wrapping_mul(0x1234_5678_9abc_def1)),
            ..Packet::of_length(1000)
        };
        let mut busy = Vec::new();
        for second in 0..200u64 {
            let now = Time::from_secs(second);
            driver.offer(flow(1), now);
            driver.offer(flow(2), now);
            busy.push(driver.root.algorithm().active.len());
            driver.drain(now);
        }
        assert!(busy.contains(&1) && busy.contains(&2), "{busy:?}");
        assert!(
            busy.chunks(10).all(|salt| salt.iter().all(|&n| n == salt[0])),
            "{busy:?}"
        );
    }

    proptest! {
        /// A flow's packets leave in the order of their arrival, whenever packets move between buckets.
        #[test]
        fn perturbation_keeps_the_order_within_a_flow(
            operations in prop::collection::vec((any::<bool>(), 0u64..12, 0u64..700), 1..400),
        ) {
            let config = Config {
                divisor: 8,
                flows: 5,
                depth: 9,
                limit: 40,
                perturb: Some(Duration::from_secs(1)),
                ..Config::default()
            };
            let mut driver = Driver::new(Sfq::node(config, 7).unwrap());
            let mut flow_of = Vec::new();
            let mut last = [None; 12];
            let mut now = Time::ZERO;
            for (enqueue, flow, pause) in operations {
                now += pause * 1_000_000;
                if enqueue {
                    flow_of.push(flow as usize);
                    let packet = Packet {
                        flow: FlowHash::from_raw(random::mixed(flow)),
                        ..Packet::of_length(600)
                    };
                    driver.offer(packet, now);
                } else if let Some(cookie) = driver.next(now) {
                    let last = &mut last[flow_of[cookie as usize]];
                    prop_assert!(last.is_none_or(|last| last < cookie));
                    *last = Some(cookie);
                }
            }
        }
    }
}
