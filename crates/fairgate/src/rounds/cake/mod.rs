//! CAKE: a shaper for the line, tins for kinds of traffic, fair queues for hosts and flows, and COBALT on each (Høiland-
//! Jørgensen, Täht, Morton: "Piece of CAKE: A Comprehensive Queue Management Solution for Home Gateways", LANMAN 2018);
//! Linux's `cake`.
//!
//! ```text
//!   DSCP, mark, filters          set-associative hash        DRR++, a quantum divided by the host's flows
//!         |                           |                             |
//!   packet ----> tin (tins.rs, ----> flow (ways.rs, -- queue ----> COBALT ----> tins by their thresholds ---> shaper
//!                    tin.rs)              hosts.rs)                (aqm/cobalt)  (shaper.rs)           counts framing.rs
//! ```
//!
//! * The **shaper** has no bucket. It knows when the next packet may leave and counts what the line adds to each.
//! * **Tins** go by priority below their thresholds, beyond them by who has waited longest. Without a bandwidth they share by
//!   weight.
//! * **Flows** share queues only if eight others are active in the same set of the hash. Hosts share a tin, the flows of a host what
//!   is the host's. Flows that send little go first.
//! * **COBALT** keeps each queue short; its target follows from the round-trip time and from how long a frame takes.
//! * When memory runs out the longest queue of all tins loses its oldest packet.
//!
//! In all this it follows Linux 6.1. Deviations: packets are held as the driver gives them, none is split (`split-gso`); the
//! classifier chooses tins, where Linux's filters choose flows and hosts; ARP, which has no DSCP, is best effort; times that
//! packets take are rounded as in our other shapers. Non-goals: `nat` (no packet carries its addresses before translation),
//! `autorate-ingress` (it divides on the packet path, by a guess), and what is dropped of a stream of acknowledgements
//! (`ack-filter`), which a descriptor does not tell apart.

mod chain;
mod config;
mod framing;
mod hosts;
mod line;
mod shaper;
#[cfg(test)]
mod tests;
mod tin;
mod tins;
mod ways;

pub use config::{Config, DESCRIPTION, PARAMETERS, Settings};
pub use framing::{Cells, Framing};
pub use hosts::Isolation;
pub use tins::Tins;

use alloc::boxed::Box;

use crate::discipline::{Algorithm, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::FlowByHasher;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::structures::{Bounds, Random};
use crate::time::Time;
use shaper::Shaper;
use tin::{Rules, Tin};
use ways::{Key, PLACES};

/// The discipline. Make one with [`Cake::node`].
#[derive(Debug)]
pub struct Cake {
    tins: Box<[Tin]>,
    /// The tin that was served last.
    serving: usize,
    hasher: Option<FlowByHasher>,
    seed: u64,
    /// Of the flows of all tins, one tin after the other.
    bounds: Bounds,
    common: Common,
    memory_limit: u64,
    config: Config,
}

/// What all tins count in.
#[derive(Debug)]
struct Common {
    shaper: Option<Shaper>,
    framing: Framing,
    link_header: u16,
    ingress: bool,
    packets: u32,
    memory: u64,
    random: Random,
}

impl Common {
    #[inline]
    fn on_the_line(&self, length: u32) -> u64 {
        self.framing.on_the_line(length, self.link_header)
    }

    #[inline]
    fn took_out(&mut self, id: PacketId, pool: &Pool) {
        self.packets -= 1;
        self.memory -= u64::from(pool[id].memory);
    }

    #[inline]
    fn sent(&mut self, bytes: u64) {
        if let Some(shaper) = &mut self.shaper {
            shaper.sent(bytes);
        }
    }

    #[cold]
    fn dropped(&mut self, bytes: u64) {
        if let Some(shaper) = &mut self.shaper {
            shaper.dropped(bytes);
        }
    }

    /// Reads the parameters, keeping the shaper's debt.
    fn change(&mut self, config: &Config, now: Time) {
        self.framing = config.framing;
        self.link_header = config.link_header;
        self.ingress = config.ingress;
        self.shaper = config.bandwidth.map(|rate| match self.shaper {
            Some(mut shaper) => {
                shaper.set_rate(rate);
                shaper
            }
            None => Shaper::new(rate, now),
        });
    }
}

impl Cake {
    /// A shaper with tins of flow queues, ready to use. The seed salts the choice of flows, and makes its dice.
    ///
    /// ```
    /// use fairgate::rounds::cake::{Cake, Config};
    /// use fairgate::{Discipline, Packet, Pool, Rate, Time};
    ///
    /// let mut pool = Pool::with_capacity(16);
    /// let config = Config { bandwidth: Some(Rate::mbit(10)), ..Config::default() };
    /// let mut cake = Cake::node(config, 7)?;
    /// for _ in 0..2 {
    ///     let id = pool.insert(Packet::of_length(1250)).expect("16 slots");
    ///     cake.enqueue(id, Time::ZERO, &mut pool);
    /// }
    /// assert!(cake.dequeue(Time::ZERO, &mut pool).is_some());
    /// assert!(cake.dequeue(Time::ZERO, &mut pool).is_none());
    /// assert_eq!(cake.watchdog(), Some(Time::from_millis(1)));
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    pub fn node(config: Config, seed: u64) -> Result<Node<Cake>, ConfigError> {
        config.check()?;
        let mut common = Common {
            shaper: None,
            framing: config.framing,
            link_header: config.link_header,
            ingress: config.ingress,
            packets: 0,
            memory: 0,
            random: Random::new(seed),
        };
        common.change(&config, Time::ZERO);
        let mut cake = Cake {
            tins: Box::default(),
            serving: 0,
            hasher: None,
            seed,
            bounds: Bounds::new(0),
            common,
            memory_limit: config.memory(),
            config,
        };
        cake.make_tins();
        Ok(Node::new(cake))
    }

    /// Tins without packets in the place of those that there are.
    fn make_tins(&mut self) {
        let Config { isolation, .. } = self.config;
        let tin = |rules| Tin::new(rules, isolation, self.seed);
        self.tins = rules(&self.config).map(tin).collect();
        self.serving = 0;
        self.hasher = isolation.queue_by().map(|by| FlowByHasher::new(by, self.seed));
        self.bounds = Bounds::new((self.tins.len() * PLACES) as u32);
        self.common.packets = 0;
        self.common.memory = 0;
    }

    #[inline]
    fn tin_of(&self, id: PacketId, pool: &Pool) -> u8 {
        let tins = self.config.tins;
        if tins == Tins::Besteffort {
            return 0;
        }
        let packet = &pool[id];
        if self.config.fwmark != 0 {
            let number = (packet.mark & self.config.fwmark) >> self.config.fwmark.trailing_zeros();
            if let Some(tin) = u16::try_from(number)
                .ok()
                .and_then(|number| tins.of_class(number))
            {
                return tin;
            }
        }
        self.config
            .classifier
            .classify(id, pool)
            .and_then(|class| tins.of_class(class))
            .unwrap_or(tins.map()[usize::from(packet.dscp & 63)])
    }

    #[inline]
    fn key_of(&self, id: PacketId, pool: &Pool) -> Key {
        match &self.hasher {
            Some(hasher) => Key::new(hasher.flow(id, pool), self.seed),
            None => Key { home: 0, tag: 0 },
        }
    }

    /// Puts a packet into its flow; returns the flow's number among those of all tins.
    #[inline]
    fn place(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> u32 {
        let number = usize::from(self.tin_of(id, pool));
        let key = self.key_of(id, pool);
        let common = &mut self.common;
        if common.packets == 0
            && let Some(shaper) = &mut common.shaper
        {
            shaper.refresh(now);
        }
        common.packets += 1;
        common.memory += u64::from(pool[id].memory);
        let tin = &mut self.tins[number];
        let index = tin.flow_of(key, id, pool);
        let bytes = tin.push(index, id, now, &mut common.random, pool);
        let flow = (number * PLACES) as u32 + u32::from(index);
        self.bounds.grew(flow, bytes);
        flow
    }

    /// While there is more than memory for, the flow with most bytes loses. Returns whether it was `arrived` once.
    #[cold]
    fn overflow(&mut self, arrived: u32, reason: DropReason, now: Time, pool: &mut Pool) -> bool {
        let mut has_lost = false;
        while self.common.memory > self.memory_limit {
            let victim = self.fattest();
            has_lost |= victim == arrived;
            let (number, index) = (victim as usize / PLACES, victim as usize % PLACES);
            let tin = &mut self.tins[number];
            let id = tin.overflow(index, now, pool);
            self.common.took_out(id, pool);
            if self.common.ingress {
                let bytes = self.common.on_the_line(pool[id].length);
                tin.count_dropped(bytes, now);
                self.common.dropped(bytes);
            }
            pool.give_back(id, reason);
        }
        has_lost
    }

    fn fattest(&mut self) -> u32 {
        let tins = &self.tins;
        let bytes = |flow: u32| tins[flow as usize / PLACES].bytes(flow as usize % PLACES);
        if let Some((flow, _)) = self.bounds.largest(bytes) {
            return flow;
        }
        // Packets without a length: whoever has any.
        let mut backlogged = (0..).zip(tins).filter_map(|(number, tin)| {
            let index = tin.any_backlogged()?;
            Some((number * PLACES + index) as u32)
        });
        backlogged.next().expect("what takes memory is queued")
    }

    /// The tin to serve. There are packets.
    #[inline]
    fn choose_tin(&mut self, now: Time) -> usize {
        if self.common.shaper.is_some() {
            self.first_by_threshold(now)
        } else {
            self.next_by_weight()
        }
    }

    /// Of the tins below their thresholds the one that goes first; else the one that is below it next.
    #[inline]
    fn first_by_threshold(&self, now: Time) -> usize {
        let mut chosen = 0;
        let mut earliest = Time::MAX;
        for (number, tin) in self.tins.iter().enumerate().rev() {
            if tin.is_active() {
                let from = tin.below_part_from();
                if from <= now {
                    return number;
                }
                if from < earliest {
                    (chosen, earliest) = (number, from);
                }
            }
        }
        chosen
    }

    #[inline]
    fn next_by_weight(&mut self) -> usize {
        while !self.tins[self.serving].takes_turn() {
            self.serving += 1;
            if self.serving == self.tins.len() {
                self.serving = 0;
            }
        }
        self.serving
    }
}

/// What the parameters come to in each tin.
fn rules(config: &Config) -> impl Iterator<Item = Rules> {
    let parts = config.tins.parts(config.bytes_per_second());
    let (rtt, mtu) = (config.rtt, config.mtu);
    parts.into_iter().map(move |part| Rules::new(part, rtt, mtu))
}

impl Algorithm for Cake {
    const NAME: &'static str = "cake";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let flow = self.place(id, now, pool);
        if self.config.wash && pool[id].dscp != 0 {
            pool.remark(id, 0);
        }
        if self.common.memory > self.memory_limit && self.overflow(flow, DropReason::MemoryLimit, now, pool) {
            return Verdict::Congested;
        }
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let mut may_decay = true;
        while self.common.packets > 0 {
            if self.common.shaper.is_some_and(|shaper| shaper.is_closed(now)) {
                return None;
            }
            let number = self.choose_tin(now);
            let sent = self.tins[number].serve(&mut may_decay, now, &mut self.common, pool);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for tin in &mut self.tins {
            tin.drain(pool, into);
        }
        self.make_tins();
    }

    fn watchdog(&self) -> Option<Time> {
        self.common.shaper.as_ref().map(Shaper::opens_at)
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Packets are placed anew if there are other tins or other queues.
    fn reconfigure(&mut self, config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let queues = |config: &Config| (config.tins, config.isolation);
        let are_same = queues(&config) == queues(&self.config);
        self.memory_limit = config.memory();
        self.config = config;
        self.common.change(&self.config, now);
        if are_same {
            for (tin, rules) in self.tins.iter_mut().zip(rules(&self.config)) {
                tin.change(rules, now);
            }
        } else {
            let mut queued = PacketQueue::new();
            self.drain(pool, &mut queued);
            while let Some(id) = queued.pop_front(pool) {
                self.place(id, now, pool);
            }
        }
        self.overflow(u32::MAX, DropReason::Reconfigured, now, pool);
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let sum = |of: fn(&Tin) -> u64| Variable::Integer(self.tins.iter().map(of).sum::<u64>() as i64);
        let (target, interval) = self.tins[0].target_and_interval();
        visit("target", Variable::Nanos(target));
        visit("interval", Variable::Nanos(interval));
        visit("memory_used", Variable::Integer(self.common.memory as i64));
        visit("memory_limit", Variable::Integer(self.memory_limit as i64));
        visit("sparse_flows", sum(|tin| tin.sparse_flows().into()));
        visit("bulk_flows", sum(|tin| tin.counts.bulk.into()));
        visit("unresponsive_flows", sum(|tin| tin.counts.unresponsive.into()));
        visit("way_misses", sum(|tin| tin.counts.way_misses));
        visit("way_collisions", sum(|tin| tin.counts.way_collisions));
    }
}
