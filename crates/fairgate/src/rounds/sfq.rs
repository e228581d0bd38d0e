//! Stochastic fairness queueing (McKenney 1990), with the parameters of Linux's `sfq`.
//!
//! Packets are hashed into `divisor` buckets; each bucket in use has one of `flows` slots, and slots are served round
//! robin. A slot has an allotment of `quantum` bytes: it is served while some is left, by the last packet it may go
//! below zero, and it is given the next quantum when its turn comes again.
//!
//! **Buffer stealing**: over the limit the longest slot, by packets, loses its newest packet, or with `headdrop` its
//! oldest. Lists of slots by length find it in constant time. When no slot has more than one packet, the first slot of
//! the round pays.
//!
//! **Perturbation**: every `perturb` the salt of the hash changes, so that flows that share a bucket part. Queued packets
//! move to their new buckets at once, each old slot in order: a flow's packets all lie in one slot, so they stay
//! in order among themselves and before those that arrive later. This is the only step that costs more than constant
//! time. As in Linux, packets that find no slot or a full one then are dropped.
//!
//! No more than `limit` slots are ever in use (Linux: flows = min(flows, limit)). Deviations from Linux: depth may
//! exceed 127; quanta below 64 are refused, not raised; perturbation is on by default as in the paper, and happens
//! at the first call after it is due. Non-goals: Linux's RED inside sfq.

mod config;

use alloc::vec::Vec;

use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::DropFrom;
use crate::structures::{ActiveList, ByLength, Linked, ListLink, random};
use crate::time::Time;

pub use config::{Config, DESCRIPTION, PARAMETERS};

/// Marks a bucket without a slot.
const NO_SLOT: u32 = u32::MAX;

/// What is looked at for each packet: 40 bytes.
#[derive(Clone, Debug)]
struct Slot {
    queue: PacketQueue,
    /// Bytes left of the quantum; below zero after a packet that was longer.
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
    /// Slots not in use, the one used last on top.
    free: Vec<u32>,
    round: ActiveList,
    by_length: ByLength,
    packets: u32,
    salt: u64,
    /// When the next salt is due; from the first packet on.
    perturb_at: Option<Time>,
    config: Config,
}

/// Where a packet went.
enum Placed {
    /// Into this slot, which now holds one more.
    Slot(u32),
    /// Into its slot, whose oldest packet made room.
    HeadDropped,
    /// Nowhere.
    Dropped,
}

impl Sfq {
    /// Empty slots. The first salt, and all that follow, are derived from `seed`.
    pub fn node(config: Config, seed: u64) -> Result<Node<Sfq>, ConfigError> {
        config.check()?;
        Ok(Node::new(Sfq::empty(config, seed)))
    }

    fn empty(config: Config, salt: u64) -> Sfq {
        let slots = config.flows.min(config.limit);
        Sfq {
            slot_of: vec![NO_SLOT; config.divisor as usize],
            slots: vec![Slot::EMPTY; slots as usize],
            free: (0..slots).rev().collect(),
            round: ActiveList::new(),
            // A slot may be one packet over the limit until the theft.
            by_length: ByLength::new(slots, config.depth.min(config.limit + 1), config.limit),
            packets: 0,
            salt,
            perturb_at: None,
            config,
        }
    }

    /// Puts a packet into its bucket's slot. What finds no room goes back for the reason `instead`, or for the limit
    /// that it met.
    #[inline]
    fn place(&mut self, id: PacketId, instead: Option<DropReason>, pool: &mut Pool) -> Placed {
        let bucket = self
            .config
            .classifier
            .flow(id, pool, self.salt, self.config.divisor);
        let mut index = self.slot_of[bucket as usize];
        if index == NO_SLOT {
            let Some(free) = self.free.pop() else {
                pool.give_back(id, instead.unwrap_or(DropReason::NoFreeFlow));
                return Placed::Dropped;
            };
            index = free;
            self.slot_of[bucket as usize] = index;
            let slot = &mut self.slots[index as usize];
            slot.bucket = bucket;
            slot.allotment = self.config.quantum as i32;
            self.round.push_back(index, &mut self.slots);
        }
        let slot = &mut self.slots[index as usize];
        if slot.queue.len() >= self.config.depth {
            return self.place_in_full_slot(index, id, instead.unwrap_or(DropReason::FlowLimit), pool);
        }
        slot.queue.push_back(id, pool);
        self.packets += 1;
        let length = slot.queue.len();
        self.by_length.grew(index, length);
        Placed::Slot(index)
    }

    #[cold]
    fn place_in_full_slot(
        &mut self,
        index: u32,
        id: PacketId,
        reason: DropReason,
        pool: &mut Pool,
    ) -> Placed {
        if self.config.drop_from == DropFrom::Tail {
            pool.give_back(id, reason);
            return Placed::Dropped;
        }
        let queue = &mut self.slots[index as usize].queue;
        let oldest = queue.pop_front(pool).expect("a slot at its depth isn't empty");
        queue.push_back(id, pool);
        pool.give_back(oldest, reason);
        Placed::HeadDropped
    }

    /// Makes room for one packet, and returns the slot that lost it.
    #[cold]
    fn steal(&mut self, reason: DropReason, pool: &mut Pool) -> u32 {
        let (longest, length) = self
            .by_length
            .longest()
            .expect("a discipline over its limit isn't empty");
        // All equal at one packet: whichever pays loses its slot, and the first of the round is the one that can be
        // taken out of it.
        let victim = match length {
            1 => self.round.front().expect("every slot in use is in the round"),
            _ => longest,
        };
        let queue = &mut self.slots[victim as usize].queue;
        let stolen = match self.config.drop_from {
            DropFrom::Tail => queue.pop_back(pool),
            DropFrom::Head => queue.pop_front(pool),
        };
        let stolen = stolen.expect("a slot in use isn't empty");
        self.packets -= 1;
        self.by_length.shrank(victim, length - 1);
        if length == 1 {
            self.free_first_slot();
        }
        pool.give_back(stolen, reason);
        victim
    }

    /// The first slot of the round is empty: its bucket has none from now on.
    #[inline]
    fn free_first_slot(&mut self) {
        let index = self
            .round
            .pop_front(&mut self.slots)
            .expect("every slot in use is in the round");
        self.slot_of[self.slots[index as usize].bucket as usize] = NO_SLOT;
        self.free.push(index);
    }

    /// Changes the salt if that is due.
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
            self.place(id, None, pool);
        }
    }
}

impl Algorithm for Sfq {
    const NAME: &'static str = "sfq";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.perturb(now, pool);
        match self.place(id, None, pool) {
            Placed::Slot(index) => {
                if self.packets > self.config.limit && self.steal(DropReason::LongestFlow, pool) == index {
                    return Verdict::Congested;
                }
                Verdict::Queued
            }
            Placed::HeadDropped => Verdict::Congested,
            Placed::Dropped => Verdict::Dropped,
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.perturb(now, pool);
        loop {
            let index = self.round.front()?;
            let slot = &mut self.slots[index as usize];
            if slot.allotment <= 0 {
                slot.allotment += self.config.quantum as i32;
                self.round.rotate(&mut self.slots);
                continue;
            }
            let first = slot.queue.pop_front(pool).expect("a slot in use isn't empty");
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
        while let Some(index) = self.round.front() {
            self.slots[index as usize].queue.append_to(into, pool);
            self.free_first_slot();
        }
        self.by_length.clear();
        self.packets = 0;
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// All packets are placed anew, in the order of their flows.
    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        *self = Sfq::empty(config, self.salt);
        while let Some(id) = queued.pop_front(pool) {
            self.place(id, Some(DropReason::Reconfigured), pool);
            if self.packets > self.config.limit {
                self.steal(DropReason::Reconfigured, pool);
            }
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let longest = self.slots.iter().map(|slot| slot.queue.len()).max().unwrap_or(0);
        visit("active_flows", Variable::Integer(self.round.len().into()));
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
    use crate::flow::FlowHash;
    use crate::packet::Packet;
    use crate::testing::{Driver, in_class};
    use proptest::prelude::*;

    fn sfq(config: Config) -> Driver<Sfq> {
        let classifier = Classifier {
            handle: 1,
            ..Classifier::default()
        };
        Driver::new(Sfq::node(Config { classifier, ..config }, 1).unwrap())
    }

    fn offer(driver: &mut Driver<Sfq>, bucket: u16) -> Verdict {
        driver.offer(in_class(bucket, 1000), Time::ZERO)
    }

    #[test]
    fn hot_state_of_a_slot_is_less_than_a_cache_line() {
        assert_eq!(core::mem::size_of::<Slot>(), 40);
    }

    #[test]
    fn an_allotment_may_go_below_zero_once() {
        let mut driver = sfq(Config::default());
        for bucket in [1, 1, 1, 1, 2, 2, 2, 2] {
            offer(&mut driver, bucket);
        }
        // 1514 bytes pay for two packets of 1000, the debt of 486 leaves 1028 for the next turn: two again.
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 4, 5, 2, 3, 6, 7]);
    }

    #[test]
    fn the_longest_slot_pays() {
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
            "slot 2 came to two packets last"
        );
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 3]);
    }

    #[test]
    fn depth_and_slots_are_limits_too() {
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
    fn a_lowered_limit_takes_from_the_longest() {
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
    fn what_a_change_leaves_no_room_for_says_so() {
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
    fn flows_that_share_a_bucket_part_under_another_salt() {
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
            busy.push(driver.root.algorithm().round.len());
            driver.drain(now);
        }
        assert!(busy.contains(&1) && busy.contains(&2), "{busy:?}");
        assert!(
            busy.chunks(10).all(|salt| salt.iter().all(|&n| n == salt[0])),
            "{busy:?}"
        );
    }

    proptest! {
        /// Whatever moves between buckets and whenever: a flow's packets leave in the order in which they came.
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
