//! CAKE: a shaper for the link, tins for kinds of traffic, fair queues for hosts and flows, and COBALT on
//! each queue (Høiland-Jørgensen, Täht, Morton: "Piece of CAKE: A Comprehensive Queue Management Solution for
//! Home Gateways", LANMAN 2018); Linux's `cake`.
//!
//! ```text
//!   DSCP, mark, filters       set-associative hash      DRR++, a quantum divided by the host's flows
//!         |                        |                           |
//!   packet --> tin (tins.rs, --> flow (ways.rs, - queue --> COBALT --> tins by their thresholds --> shaper
//!                  tin.rs)            hosts.rs)           (aqm/cobalt)  (shaper.rs)      counts framing.rs
//! ```
//!
//! * The **shaper** has no bucket. It stores the time when the next packet may leave, and counts the bytes of
//!   the link layer.
//! * **Tins** below their thresholds go by priority. Above the thresholds the tin goes first that is below
//!   its threshold earliest. Without a bandwidth tins share by weight.
//! * **Flows** share a queue only if eight other flows are active in the same set of the hash. Hosts share a
//!   tin, and the flows of a host share the part of the host. Sparse flows go first.
//! * **COBALT** keeps each queue short. Its target is derived from the round-trip time and the transmission
//!   time of a frame.
//! * When the memory is full, the longest queue of all tins loses its oldest packet.
//! * On request, redundant acknowledgements are dropped (`ack_filter.rs`), and the bandwidth follows the rate
//!   of arriving packets (`estimator.rs`).
//!
//! All of this follows Linux 6.1. Deviations: packets are queued as the driver gives them and not split
//! (`split-gso`). The classifier chooses tins, where Linux's filters choose flows and hosts. ARP, which has
//! no DSCP, is best effort. Transmission times are rounded as in our other shapers. Lengths for the
//! statistics are noted when a packet leaves, and not when it arrives. Non-goal: `nat` (no packet carries its
//! addresses before translation).

mod ack_filter;
mod chain;
mod config;
mod estimator;
mod framing;
mod hosts;
mod lengths;
mod line;
mod shaper;
#[cfg(test)]
mod tests;
mod tin;
mod tins;
mod ways;

pub use crate::link_layer::Cells;
pub use ack_filter::AckFilter;
pub use config::{Config, DESCRIPTION, PARAMETERS, Settings};
pub use framing::Framing;
pub use hosts::Isolation;
pub use line::Line;
pub use tins::Tins;

use alloc::boxed::Box;

use crate::arrival::Needs;
use crate::class_reading::ClassReading;
use crate::discipline::{Algorithm, ClassState, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::FlowByHasher;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool, TableKind};
use crate::rate::Rate;
use crate::registry::Tables;
use crate::structures::{Bounds, Random};
use crate::time::Time;
use config::LEAST_BANDWIDTH;
use estimator::Estimator;
use lengths::Lengths;
use shaper::Shaper;
use tin::{Rules, Tin};
use ways::{ENTRIES, Key};

/// The discipline. Make one with [`Cake::node`].
#[derive(Debug)]
pub struct Cake {
    tins: Box<[Tin]>,
    /// When the tins get their tables.
    tables: Tables,
    /// The tin that was served last.
    serving: usize,
    hasher: Option<FlowByHasher>,
    seed: u64,
    /// Upper bounds of the bytes of all flows, one tin after the other. Empty until the first packet comes,
    /// if tables are made when used.
    bounds: Bounds,
    common: Common,
    memory_limit: u64,
    /// The bandwidth now: the configured one, or 15/16 of an estimate.
    bandwidth: Option<Rate>,
    /// Estimates the bandwidth, if it should.
    estimator: Option<Estimator>,
    config: Config,
}

/// The state that all tins share.
#[derive(Debug)]
struct Common {
    shaper: Option<Shaper>,
    lengths: Lengths,
    ingress: bool,
    packets: u32,
    memory: u64,
    /// The most memory that packets occupied.
    memory_peak: u64,
    random: Random,
}

impl Common {
    #[inline]
    fn on_the_link(&mut self, length: u32) -> u64 {
        self.lengths.on_the_link(length)
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

    /// Takes over the parameters. The shaper keeps its debt.
    fn change(&mut self, config: &Config, bandwidth: Option<Rate>, now: Time) {
        self.lengths.change(config.framing, config.link_header);
        self.ingress = config.ingress;
        self.set_rate(bandwidth, now);
    }

    fn set_rate(&mut self, bandwidth: Option<Rate>, now: Time) {
        self.shaper = bandwidth.map(|rate| match self.shaper {
            Some(mut shaper) => {
                shaper.set_rate(rate);
                shaper
            }
            None => Shaper::new(rate, now),
        });
    }
}

impl Cake {
    /// Creates a shaper with tins of empty flow queues. The seed salts the choice of flows and is for random
    /// drops.
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
        Cake::node_with(config, seed, Tables::Now)
    }

    /// Creates the same, with the tables of the tins made now or when the first packet of each comes.
    ///
    /// # Errors
    /// If parameters are out of range or contradict each other.
    pub fn node_with(config: Config, seed: u64, tables: Tables) -> Result<Node<Cake>, ConfigError> {
        config.check()?;
        let mut common = Common {
            shaper: None,
            lengths: Lengths::new(config.framing, config.link_header),
            ingress: config.ingress,
            packets: 0,
            memory: 0,
            memory_peak: 0,
            random: Random::new(seed),
        };
        common.set_rate(config.bandwidth, Time::ZERO);
        let mut cake = Cake {
            tins: Box::default(),
            tables,
            serving: 0,
            hasher: None,
            seed,
            bounds: Bounds::new(0),
            common,
            memory_limit: config.memory(),
            bandwidth: config.bandwidth,
            estimator: estimator(&config),
            config,
        };
        cake.make_tins();
        Ok(Node::new(cake))
    }

    /// Creates the tins anew, without packets.
    fn make_tins(&mut self) {
        let Config { isolation, .. } = self.config;
        let tin = |rules| {
            let mut tin = Tin::new(rules, isolation, self.seed);
            if self.tables == Tables::Now {
                tin.add_table(tin.new_table());
            }
            tin
        };
        self.tins = rules(&self.config, self.bandwidth).map(tin).collect();
        self.serving = 0;
        self.hasher = isolation.queue_by().map(|by| FlowByHasher::new(by, self.seed));
        self.bounds = match self.tables {
            Tables::Now => Bounds::new(self.flows()),
            Tables::WhenUsed => Bounds::new(0),
        };
        self.common.packets = 0;
        self.common.memory = 0;
    }

    /// Returns the tin of a packet that the classifier sends to class `named`.
    #[inline]
    fn tin_of(&self, named: Option<u32>, id: PacketId, pool: &Pool) -> u8 {
        let tins = self.config.tins;
        if tins == Tins::Besteffort {
            return 0;
        }
        let packet = &pool[id];
        if self.config.fwmark != 0 {
            let number = (packet.mark & self.config.fwmark) >> self.config.fwmark.trailing_zeros();
            if let Some(tin) = tins.of_class(number) {
                return tin;
            }
        }
        named
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

    /// Puts a packet that the classifier sends to class `named` into its flow. Returns the flow's number
    /// among those of all tins.
    #[inline]
    fn insert(&mut self, named: Option<u32>, id: PacketId, now: Time, pool: &mut Pool) -> u32 {
        let number = usize::from(self.tin_of(named, id, pool));
        let key = self.key_of(id, pool);
        let common = &mut self.common;
        if common.packets == 0
            && let Some(shaper) = &mut common.shaper
        {
            shaper.refresh(now);
        }
        common.packets += 1;
        common.memory += u64::from(pool[id].memory);
        common.memory_peak = common.memory_peak.max(common.memory);
        let tin = &mut self.tins[number];
        let index = tin.flow_of(key, id, pool);
        let bytes = tin.push(index, id, now, &mut common.random, pool);
        let flow = (number * ENTRIES) as u32 + u32::from(index);
        if !self.bounds.hold(flow, bytes) {
            self.raise_bounds(flow, bytes, pool);
        }
        flow
    }

    #[cold]
    #[inline(never)]
    fn raise_bounds(&mut self, flow: u32, bytes: u64, pool: &mut Pool) {
        if self.bounds.is_empty() {
            self.bounds = pool.take_table(self.flows());
        }
        self.bounds.grew(flow, bytes);
    }

    /// The number of flows of all tins.
    fn flows(&self) -> u32 {
        (self.tins.len() * ENTRIES) as u32
    }

    /// Drops the acknowledgement that the packet which has just arrived in flow `arrived` makes redundant.
    #[inline(never)]
    fn filter_acknowledgements(&mut self, arrived: u32, now: Time, pool: &mut Pool) {
        let (number, index) = (arrived as usize / ENTRIES, arrived as usize % ENTRIES);
        let tin = &mut self.tins[number];
        let Some(id) = tin.take_redundant(index, self.config.ack_filter, pool) else {
            return;
        };
        self.common.took_out(id, pool);
        if self.common.ingress {
            let bytes = self.common.on_the_link(pool[id].length);
            tin.count_dropped(bytes, now);
            self.common.dropped(bytes);
        }
        pool.give_back(id, DropReason::RedundantAck);
    }

    /// Sets the bandwidth to an estimate of bytes per second.
    #[cold]
    fn adapt(&mut self, bytes_per_second: u64, now: Time) {
        let bits = bytes_per_second.saturating_mul(8).max(LEAST_BANDWIDTH);
        self.bandwidth = Rate::from_bits_per_second(bits).ok();
        self.memory_limit = self.config.memory_at(self.bandwidth);
        self.common.set_rate(self.bandwidth, now);
        for (tin, rules) in self.tins.iter_mut().zip(rules(&self.config, self.bandwidth)) {
            tin.change(rules, now);
        }
    }

    /// Drops packets from the flow with the most bytes until the memory is below its limit. Returns whether
    /// flow `arrived` lost one.
    #[cold]
    fn overflow(&mut self, arrived: u32, reason: DropReason, now: Time, pool: &mut Pool) -> bool {
        let mut has_lost = false;
        while self.common.memory > self.memory_limit {
            let victim = self.longest();
            has_lost |= victim == arrived;
            let (number, index) = (victim as usize / ENTRIES, victim as usize % ENTRIES);
            let tin = &mut self.tins[number];
            let id = tin.overflow(index, now, pool);
            self.common.took_out(id, pool);
            if self.common.ingress {
                let bytes = self.common.on_the_link(pool[id].length);
                tin.count_dropped(bytes, now);
                self.common.dropped(bytes);
            }
            pool.give_back(id, reason);
        }
        has_lost
    }

    fn longest(&mut self) -> u32 {
        let tins = &self.tins;
        let bytes = |flow: u32| tins[flow as usize / ENTRIES].bytes(flow as usize % ENTRIES);
        if let Some((flow, _)) = self.bounds.largest(bytes) {
            return flow;
        }
        // All packets have length 0: take any flow with packets.
        let mut backlogged = (0..).zip(tins).filter_map(|(number, tin)| {
            let index = tin.any_backlogged()?;
            Some((number * ENTRIES + index) as u32)
        });
        backlogged
            .next()
            .expect("a packet that occupies memory is queued")
    }

    /// Returns the tin to serve. There must be packets.
    #[inline]
    fn choose_tin(&mut self, now: Time) -> usize {
        if self.common.shaper.is_some() {
            self.first_by_threshold(now)
        } else {
            self.next_by_weight()
        }
    }

    /// Returns the tin below its threshold with the highest priority; if there is none, the one that is below
    /// it first.
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
        let mut serving = self.serving;
        while !self.tins[serving].takes_turn() {
            serving += 1;
            if serving == self.tins.len() {
                serving = 0;
            }
        }
        self.serving = serving;
        serving
    }
}

/// The rules of each tin, derived from the parameters.
fn rules(config: &Config, bandwidth: Option<Rate>) -> impl Iterator<Item = Rules> + use<> {
    let parts = config.tins.parts(bytes_per_second(bandwidth));
    let (rtt, mtu) = (config.rtt, config.mtu);
    parts.map(move |part| Rules::new(part, rtt, mtu))
}

/// Bytes per second; 0 for no bandwidth.
fn bytes_per_second(bandwidth: Option<Rate>) -> u64 {
    bandwidth.map_or(0, |rate| rate.bits_per_second() / 8)
}

/// Estimates the bandwidth if it should follow the packets.
fn estimator(config: &Config) -> Option<Estimator> {
    config
        .autorate
        .then(|| Estimator::new(bytes_per_second(config.bandwidth)))
}

impl Algorithm for Cake {
    const NAME: &'static str = "cake";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let Ok(named) = self.config.classifier.class_of(id, now, pool) else {
            return Verdict::Unclassified;
        };
        let flow = self.insert(named, id, now, pool);
        if self.config.wash && pool[id].dscp != 0 {
            pool.remark(id, 0);
        }
        if self.config.ack_filter != AckFilter::Off {
            self.filter_acknowledgements(flow, now, pool);
        }
        if let Some(estimator) = &mut self.estimator
            && let Some(rate) = estimator.arrived(pool[id].length.into(), now)
        {
            self.adapt(rate, now);
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

    /// Packets are enqueued again if the tins or the queues are different. An estimated bandwidth is kept if
    /// neither `bandwidth` nor `autorate` changes.
    fn reconfigure(&mut self, mut config: Config, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let queues = |config: &Config| (config.tins, config.isolation);
        let are_same = queues(&config) == queues(&self.config);
        let rates = |config: &Config| (config.bandwidth, config.autorate);
        if rates(&config) != rates(&self.config) {
            self.bandwidth = config.bandwidth;
            self.estimator = estimator(&config);
        }
        config.classifier.take_over(&self.config.classifier);
        self.memory_limit = config.memory_at(self.bandwidth);
        self.config = config;
        self.common.change(&self.config, self.bandwidth, now);
        if are_same {
            for (tin, rules) in self.tins.iter_mut().zip(rules(&self.config, self.bandwidth)) {
                tin.change(rules, now);
            }
        } else {
            let mut queued = PacketQueue::new();
            self.drain(pool, &mut queued);
            for kind in self.tables().into_iter().flatten() {
                pool.provide(kind);
            }
            while let Some(id) = queued.pop_front(pool) {
                let named = self.config.classifier.classify_again(id, pool);
                self.insert(named, id, now, pool);
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
        let integer = |number: u64| Variable::Integer(number as i64);
        let estimate = self.estimator.map(|estimator| estimator.peak());
        let configured = || bytes_per_second(self.config.bandwidth);
        visit("bandwidth", integer(bytes_per_second(self.bandwidth)));
        visit("capacity_estimate", integer(estimate.unwrap_or_else(configured)));
        let lengths = &self.common.lengths;
        visit("min_network_size", integer(lengths.network.least.into()));
        visit("max_network_size", integer(lengths.network.most.into()));
        visit("min_adj_size", integer(lengths.adjusted.least.into()));
        visit("max_adj_size", integer(lengths.adjusted.most.into()));
        visit("avg_hdr_offset", integer(lengths.header_offset().into()));
        visit("memory_peak", integer(self.common.memory_peak));
        visit("memory_used", integer(self.common.memory));
        visit("memory_limit", integer(self.memory_limit));
        visit("sparse_flows", sum(|tin| tin.sparse_flows().into()));
        visit("bulk_flows", sum(|tin| tin.counts.bulk.into()));
        visit("unresponsive_flows", sum(|tin| tin.counts.unresponsive.into()));
        visit("way_misses", sum(|tin| tin.counts.way_misses));
        visit("way_collisions", sum(|tin| tin.counts.way_collisions));
    }

    /// The tins, under their numbers for users. There are so few that one step reads all.
    fn read_class_states(
        &self,
        _reading: &mut ClassReading,
        _most: usize,
        visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        let tins = self.config.tins;
        for minor in 1..=tins.count() {
            let tin = tins.of_class(minor).map(|number| &self.tins[usize::from(number)]);
            let tin = tin.expect("there are as many tins as numbers");
            visit(ClassState {
                minor,
                sent: tin.sent(),
                overlimits: 0,
                variables: &tin.variables(),
            });
        }
        false
    }

    fn tables(&self) -> [Option<TableKind>; 2] {
        match self.tables {
            Tables::Now => [None; 2],
            Tables::WhenUsed => [self.tins[0].table(), TableKind::of::<Bounds>(self.flows())].map(Some),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            acknowledgements: self.config.ack_filter != AckFilter::Off,
            ..self.config.classifier.needs()
        }
    }
}
