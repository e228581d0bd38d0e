//! A tin: its flows, each with a queue under COBALT, and the lists in which they take turns (DRR++).
//!
//! ```text
//!   idle --packet--> sparse --deficit used up--> bulk
//!    ^               |  ^ \                       |        in the list of the sparse flows, which go first,
//!    |  became empty |  |  \ used up, and empty   | became or of the others
//!    |               v  |   v                     | empty
//!    +-- decayed - decaying   waiting --packet---+--> bulk
//! ```
//!
//! Each packet that leaves updates one flow that became empty, until the state of its queue management has
//! decayed. Until then the flow keeps its entry in the hash.
//!
//! Invariants: a flow with packets is sparse, waiting or bulk. Waiting flows have none. The hosts' loads
//! count the bulk flows.

use alloc::boxed::Box;
use core::time::Duration;

use super::Common;
use super::ack_filter::{self, AckFilter};
use super::chain::{Chain, ChainLink, Linked};
use super::estimator::average;
use super::hosts::{Ends, HostTable, Hosts, Isolation};
use super::shaper::Threshold;
use super::tins::Part;
use super::ways::{ENTRIES, Found, Key, Ways};
use crate::aqm::cobalt::{Blue, ControlLaw, Leaving, State};
use crate::count::Count;
use crate::discipline::Variable;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool, Table, TableKind};
use crate::rate::Rate;
use crate::structures::Random;
use crate::time::Time;

/// The phase of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// It has no packets and is in no list.
    #[default]
    Idle,
    /// It sends less than its share, as far as is known.
    Sparse,
    /// It became empty when it had just used its share. It is in the list of the bulk flows, but does not
    /// count as bulk.
    Waiting,
    /// It is always backlogged.
    Bulk,
    /// It became empty, and the state of its queue management has not decayed yet.
    Decaying,
}

/// One flow, in one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Flow {
    queue: PacketQueue,
    cobalt: State,
    link: ChainLink,
    /// The bytes on the link that it may still send in this turn.
    deficit: i32,
    ends: Ends,
    phase: Phase,
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut ChainLink {
        &mut self.link
    }
}

/// One tin.
#[derive(Debug)]
pub(super) struct Tin {
    flows: Box<[Flow]>,
    /// The rarely used part of each flow's queue management.
    blues: Box<[Blue]>,
    ways: Ways,
    hosts: Hosts,
    new: Chain,
    old: Chain,
    decaying: Chain,
    rules: Rules,
    /// The time until which the tin has used its part of the bandwidth; `None` without a bandwidth.
    threshold: Option<Threshold>,
    /// The backlog, packets.
    packets: u32,
    /// Without a bandwidth: the bytes on the link that it may still send before the next tin.
    deficit: i64,
    delays: Delays,
    pub(super) counts: Counts,
}

/// The table of a tin, as it is in reserve. Its size is the number of ends whose hosts matter.
pub(super) struct TinTable {
    flows: Box<[Flow]>,
    blues: Box<[Blue]>,
    ways: Ways,
    hosts: [Option<HostTable>; 2],
}

impl Table for TinTable {
    fn of_size(sides: u32) -> TinTable {
        TinTable {
            flows: vec![Flow::default(); ENTRIES].into(),
            blues: vec![Blue::default(); ENTRIES].into(),
            ways: Ways::new(),
            hosts: [0, 1].map(|side| (side < sides).then(HostTable::new)),
        }
    }
}

/// The rules of a tin, derived from the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    law: ControlLaw,
    /// The bytes that a flow may send in a turn if no other flow of its host is backlogged.
    quantum: u32,
    weight: u16,
    /// The part of the bandwidth, bytes per second; 0 without a bandwidth.
    threshold: u64,
    rate: Option<Rate>,
}

/// The counters that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Flows that are always backlogged.
    pub(super) bulk: u32,
    /// Flows from which BLUE drops packets.
    pub(super) unresponsive: u32,
    /// Flows found in a neighbour of their entry of the hash.
    way_hits: u64,
    /// Flows that found their entry of the hash, or a neighbour, free.
    pub(super) way_misses: u64,
    /// Flows that share the entry of another flow.
    pub(super) way_collisions: u64,
    arrived: Count,
    sent: Count,
    /// Packets dropped by COBALT, or because the memory was full.
    dropped: u64,
    marked: u64,
    redundant_acks: u64,
    /// The length of the longest packet, bytes.
    longest: u32,
}

/// Averages of the sojourn times of packets that were sent, ns. A sample counts 1/256, or 1/4 if it is more
/// than the peak or less than the base.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    average: u64,
    peak: u64,
    base: u64,
}

impl Delays {
    #[inline]
    fn add(&mut self, delay: u64) {
        self.average = average(self.average, delay, 8);
        self.peak = average(self.peak, delay, if delay > self.peak { 2 } else { 8 });
        self.base = average(self.base, delay, if delay < self.base { 2 } else { 8 });
    }
}

/// The state of a tin, under the names that tc uses.
pub(super) type TinVariables = [(&'static str, Variable); 20];

/// The list from which a turn is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    New,
    Old,
    Decaying,
}

impl Rules {
    /// The rules of a tin with this part of the bandwidth, for packets of up to `mtu` bytes and round trips
    /// of `rtt`.
    pub(super) fn new(part: Part, rtt: Duration, mtu: u32) -> Rules {
        let rate = Rate::from_bits_per_second(part.threshold * 8).ok();
        let frame_time = rate.map_or(0, |rate| rate.meter().nanos(mtu.into()));
        Rules {
            law: ControlLaw::new(rtt, frame_time),
            // A quarter of a millisecond of the link, between 300 and 1514 bytes, so that small packets pass
            // on a slow link.
            quantum: match part.threshold {
                0 => 1514,
                threshold => (threshold >> 12).clamp(300, 1514) as u32,
            },
            weight: part.weight,
            threshold: part.threshold,
            rate,
        }
    }
}

impl Tin {
    /// Returns a tin without packets. It gets its table when the first packet comes.
    pub(super) fn new(rules: Rules, isolation: Isolation, seed: u64) -> Tin {
        Tin {
            flows: Box::default(),
            blues: Box::default(),
            ways: Ways::none(),
            hosts: Hosts::new(isolation, seed),
            new: Chain::default(),
            old: Chain::default(),
            decaying: Chain::default(),
            rules,
            threshold: rules.rate.map(|rate| Threshold::new(rate, Time::ZERO)),
            packets: 0,
            deficit: 0,
            delays: Delays::default(),
            counts: Counts::default(),
        }
    }

    /// The kind of its table.
    pub(super) fn table(&self) -> TableKind {
        TableKind::of::<TinTable>(self.hosts.sides() as u32)
    }

    /// Returns a table for it.
    pub(super) fn new_table(&self) -> TinTable {
        TinTable::of_size(self.hosts.sides() as u32)
    }

    /// Adds the table, which it has not yet.
    pub(super) fn add_table(&mut self, table: TinTable) {
        (self.flows, self.blues, self.ways) = (table.flows, table.blues, table.ways);
        self.hosts.add_tables(table.hosts);
    }

    /// Changes the rules.
    pub(super) fn change(&mut self, rules: Rules, now: Time) {
        self.rules = rules;
        self.threshold = rules.rate.map(|rate| match self.threshold {
            Some(mut threshold) => {
                threshold.set_rate(rate);
                threshold
            }
            None => Threshold::new(rate, now),
        });
    }

    /// Whether a flow waits for its turn.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        !(self.new.is_empty() && self.old.is_empty())
    }

    /// When the tin is below its part of the bandwidth.
    #[inline]
    pub(super) fn below_part_from(&self) -> Time {
        self.threshold
            .as_ref()
            .map_or(Time::ZERO, |threshold| threshold.next())
    }

    /// Without a bandwidth: whether it is this tin's turn. If not, the tin gets its bytes for the next turn.
    #[inline]
    pub(super) fn takes_turn(&mut self) -> bool {
        if self.deficit >= 0 && self.is_active() {
            return true;
        }
        if self.deficit <= 0 {
            self.deficit += i64::from(self.rules.weight);
        }
        false
    }

    /// The bytes queued in flow `index`.
    pub(super) fn bytes(&self, index: usize) -> u64 {
        self.flows[index].queue.bytes()
    }

    /// Returns any flow with packets.
    pub(super) fn any_backlogged(&self) -> Option<usize> {
        self.flows.iter().position(|flow| !flow.queue.is_empty())
    }

    /// Finds the flow of a packet, and stores its hosts.
    #[inline]
    pub(super) fn flow_of(&mut self, key: Key, id: PacketId, pool: &mut Pool) -> u16 {
        if self.ways.is_at_home(key) && self.flows[usize::from(key.home)].phase != Phase::Idle {
            return key.home;
        }
        self.search(key, id, pool)
    }

    #[inline(never)]
    fn search(&mut self, key: Key, id: PacketId, pool: &mut Pool) -> u16 {
        if self.flows.is_empty() {
            self.add_table(pool.take_table(self.hosts.sides() as u32));
        }
        let flows = &self.flows;
        let found = self
            .ways
            .find(key, |entry| flows[usize::from(entry)].phase != Phase::Idle);
        let entry = match found {
            Found::Own(entry) => {
                self.counts.way_hits += u64::from(entry != key.home);
                return entry;
            }
            Found::Former(entry) => {
                self.counts.way_hits += u64::from(entry != key.home);
                entry
            }
            Found::New(entry) => {
                self.counts.way_misses += 1;
                entry
            }
            Found::Shared(entry) => {
                self.counts.way_collisions += 1;
                entry
            }
        };
        let flow = &mut self.flows[usize::from(entry)];
        if flow.phase == Phase::Bulk {
            self.hosts.left(flow.ends);
        }
        flow.ends = self.hosts.find(id, pool);
        if flow.phase == Phase::Bulk {
            self.hosts.joined(flow.ends);
        }
        entry
    }

    /// Puts a packet into flow `index`. Returns the bytes queued in the flow.
    #[inline]
    pub(super) fn push(
        &mut self,
        index: u16,
        id: PacketId,
        now: Time,
        random: &mut Random,
        pool: &mut Pool,
    ) -> u64 {
        if self.packets == 0
            && let Some(threshold) = &mut self.threshold
        {
            threshold.refresh(now);
        }
        self.packets += 1;
        let flow = &mut self.flows[usize::from(index)];
        flow.queue.push_back(id, pool);
        let length = pool[id].length;
        self.counts.arrived.add(length);
        self.counts.longest = self.counts.longest.max(length);
        let bytes = flow.queue.bytes();
        match flow.phase {
            Phase::Sparse | Phase::Bulk => {}
            Phase::Waiting => self.becomes_bulk(index),
            Phase::Idle | Phase::Decaying => {
                if flow.phase == Phase::Decaying {
                    self.decaying.remove(index, &mut self.flows);
                }
                self.new.push_back(index, &mut self.flows);
                let flow = &mut self.flows[usize::from(index)];
                flow.phase = Phase::Sparse;
                flow.deficit = self.hosts.quantum(flow.ends, self.rules.quantum, random) as i32;
            }
        }
        bytes
    }

    /// Returns the next packet; `None` if the flow that had the turn is empty, or if its drops have used up
    /// the link. `may_decay`: whether this packet may still update a decaying flow.
    #[inline]
    pub(super) fn serve(
        &mut self,
        may_decay: &mut bool,
        now: Time,
        common: &mut Common,
        pool: &mut Pool,
    ) -> Option<PacketId> {
        loop {
            let (round, index) = self.next_turn(core::mem::take(may_decay))?;
            let flow = &mut self.flows[usize::from(index)];
            if flow.deficit <= 0 {
                self.end_turn(round, index, &mut common.random);
                continue;
            }
            loop {
                let Some(id) = flow.queue.pop_front(pool) else {
                    self.ran_empty(round, index, now);
                    return None;
                };
                self.packets -= 1;
                common.took_out(id, pool);
                let bytes = common.on_the_link(pool[id].length);
                let leaving = Leaving {
                    id,
                    now,
                    bulk_flows: if common.ingress { self.counts.bulk } else { 0 },
                };
                let blue = &self.blues[usize::from(index)];
                let marked = pool.marked_total();
                let should_drop =
                    self.rules
                        .law
                        .should_drop(&mut flow.cobalt, blue, leaving, &mut common.random, pool);
                // The last packet of a flow may be marked but is not dropped, because its sender might get no
                // other signal.
                let is_sent = !should_drop || flow.queue.is_empty();
                if is_sent || common.ingress {
                    flow.deficit -= bytes as i32;
                    self.deficit -= bytes as i64;
                    if let Some(threshold) = &mut self.threshold {
                        threshold.count(bytes, now);
                    }
                }
                if is_sent {
                    common.sent(bytes);
                    let packet = &pool[id];
                    self.delays.add(now.nanos_since(packet.enqueued_at));
                    self.counts.sent.add(packet.length);
                    self.counts.marked += pool.marked_total() - marked;
                    return Some(id);
                }
                self.counts.dropped += 1;
                pool.give_back(id, DropReason::Aqm);
                if common.ingress {
                    common.dropped(bytes);
                    break;
                }
            }
        }
    }

    #[inline]
    fn next_turn(&self, may_decay: bool) -> Option<(Round, u16)> {
        if may_decay && let Some(index) = self.decaying.front() {
            return Some((Round::Decaying, index));
        }
        match self.new.front() {
            Some(index) => Some((Round::New, index)),
            None => Some((Round::Old, self.old.front()?)),
        }
    }

    /// Ends the turn of a flow that has sent its share: it moves to the end of the bulk flows and gets the
    /// bytes for its next turn.
    fn end_turn(&mut self, round: Round, index: u16, random: &mut Random) {
        let flow = &mut self.flows[usize::from(index)];
        if flow.phase == Phase::Sparse {
            if flow.queue.is_empty() {
                flow.phase = Phase::Waiting;
            } else {
                self.becomes_bulk(index);
            }
        }
        let flow = &mut self.flows[usize::from(index)];
        flow.deficit += self.hosts.quantum(flow.ends, self.rules.quantum, random) as i32;
        if round == Round::Old {
            self.old.rotate(&mut self.flows);
        } else {
            self.leave(round);
            self.old.push_back(index, &mut self.flows);
        }
    }

    /// Handles that the flow that has the turn is empty.
    fn ran_empty(&mut self, round: Round, index: u16, now: Time) {
        let entry = usize::from(index);
        let flow = &mut self.flows[entry];
        let came_to_rest = self
            .rules
            .law
            .ran_empty(&mut flow.cobalt, &mut self.blues[entry], now);
        self.counts.unresponsive -= u32::from(came_to_rest);
        if flow.phase == Phase::Bulk {
            self.counts.bulk -= 1;
            self.hosts.left(flow.ends);
        }
        let is_at_rest = flow.cobalt.is_at_rest(now);
        flow.phase = if is_at_rest { Phase::Idle } else { Phase::Decaying };
        self.leave(round);
        if !is_at_rest {
            self.decaying.push_back(index, &mut self.flows);
        }
    }

    /// Removes the first flow of a list.
    fn leave(&mut self, round: Round) {
        let chain = match round {
            Round::New => &mut self.new,
            Round::Old => &mut self.old,
            Round::Decaying => &mut self.decaying,
        };
        chain.pop_front(&mut self.flows);
    }

    fn becomes_bulk(&mut self, index: u16) {
        let flow = &mut self.flows[usize::from(index)];
        flow.phase = Phase::Bulk;
        self.counts.bulk += 1;
        self.hosts.joined(flow.ends);
    }

    /// Takes the oldest packet out of flow `index`, because the memory is full, and notifies COBALT. The flow
    /// must have packets.
    pub(super) fn overflow(&mut self, index: usize, now: Time, pool: &Pool) -> PacketId {
        let flow = &mut self.flows[index];
        let id = flow.queue.pop_front(pool).expect("the longest flow has packets");
        self.packets -= 1;
        let is_new = self
            .rules
            .law
            .overflowed(&mut flow.cobalt, &mut self.blues[index], now);
        self.counts.unresponsive += u32::from(is_new);
        self.counts.dropped += 1;
        id
    }

    /// Takes the acknowledgement out of flow `index` that the packet which has just arrived there makes
    /// redundant.
    pub(super) fn take_redundant(
        &mut self,
        index: usize,
        filter: AckFilter,
        pool: &mut Pool,
    ) -> Option<PacketId> {
        let queue = &mut self.flows[index].queue;
        let id = ack_filter::redundant(queue, filter, pool)?;
        queue.remove(id, pool);
        self.packets -= 1;
        self.counts.redundant_acks += 1;
        Some(id)
    }

    /// Counts a packet that was dropped because the memory was full, if it has used the link before.
    pub(super) fn count_dropped(&mut self, bytes: u64, now: Time) {
        if let Some(threshold) = &mut self.threshold {
            threshold.count(bytes, now);
        }
    }

    /// Moves all packets to `into`, flow by flow. The tin must not be used afterwards.
    pub(super) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for flow in &mut self.flows {
            flow.queue.append_to(into, pool);
        }
    }

    /// COBALT's target and interval for the flows of the tin, ns.
    pub(super) fn target_and_interval(&self) -> (u64, u64) {
        (self.rules.law.target(), self.rules.law.interval())
    }

    /// The packets that were sent from the tin.
    pub(super) fn sent(&self) -> Count {
        self.counts.sent
    }

    /// The state that tc shows.
    pub(super) fn variables(&self) -> TinVariables {
        let Counts { arrived, .. } = self.counts;
        let backlog: u64 = self.flows.iter().map(|flow| flow.queue.bytes()).sum();
        let (target, interval) = self.target_and_interval();
        let integer = |number: u64| Variable::Integer(number as i64);
        [
            ("threshold_rate", integer(self.rules.threshold)),
            ("sent_bytes", integer(arrived.bytes)),
            ("backlog_bytes", integer(backlog)),
            ("target", Variable::Nanos(target)),
            ("interval", Variable::Nanos(interval)),
            ("peak_delay", Variable::Nanos(self.delays.peak)),
            ("avg_delay", Variable::Nanos(self.delays.average)),
            ("base_delay", Variable::Nanos(self.delays.base)),
            ("sent_packets", integer(arrived.packets)),
            ("way_indirect_hits", integer(self.counts.way_hits)),
            ("way_misses", integer(self.counts.way_misses)),
            ("way_collisions", integer(self.counts.way_collisions)),
            ("drops", integer(self.counts.dropped)),
            ("ecn_mark", integer(self.counts.marked)),
            ("ack_drops", integer(self.counts.redundant_acks)),
            (
                "sparse_flows",
                integer(u64::from(self.sparse_flows()) + u64::from(self.decaying.len())),
            ),
            ("bulk_flows", integer(self.counts.bulk.into())),
            ("unresponsive_flows", integer(self.counts.unresponsive.into())),
            ("max_pkt_len", integer(self.counts.longest.into())),
            ("flow_quantum", integer(self.rules.quantum.into())),
        ]
    }

    /// The number of flows with packets that are not known to be always backlogged.
    pub(super) fn sparse_flows(&self) -> u32 {
        u32::from(self.new.len()) + u32::from(self.old.len()) - self.counts.bulk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_one_cache_line() {
        assert_eq!((size_of::<Flow>(), align_of::<Flow>()), (64, 64));
    }
}
