//! Interfaces, links, and the packets on them.
//!
//! All packets of the network are in one [`Pool`] from the source to the destination. The simulator's own
//! data about a packet is its [`Journey`], at the same index of an array beside the pool, so the cookie is
//! not needed. A hop takes three steps. [`Network::forward`] enqueues. If the link is idle,
//! [`Network::serve`] dequeues, sets the time of arrival, and appends the packet to those in flight.
//! [`Network::arrive`] receives it at the other end.
//!
//! Packets arrive in the order in which they were sent, and only the first packet in flight has an event. A
//! packet that finds the link idle and leaves it idle costs only this event. On a link that reorders packets,
//! each packet in flight has an event.

mod acknowledgement;
mod air;
mod impairments;
mod interface;
mod line;
mod processor;
mod routes;
mod tap;

use std::cmp::Reverse;
use std::sync::Arc;

use fairgate::balance::{self, Imbalance};
use fairgate::flow::HeaderBytes;
use fairgate::{Copied, Count, DropReason, FlowKey, Next, Packet, PacketId, PacketQueue, Pool, Time};
use fairgate_config::{ChangeError, Spec};
use prefetch_index::prefetch_index;
use thiserror::Error;

use crate::events::{Event, Events, Ticket};
use crate::monitor::Lost;
use crate::tcp::Segment;
use air::{AirHop, Member};
pub(crate) use air::{Cell, Receiver};
pub(crate) use impairments::Impairments;
pub(crate) use interface::Interface;
pub(crate) use line::{ExactClock, Line};
pub(crate) use processor::Processor;
pub(crate) use routes::Routes;
pub(crate) use tap::Tap;

/// Slots at the start. The pool doubles when it is full. Few, because a sweep has many small runs.
const FIRST_SLOTS: u32 = 1024;
/// Most packets in the network at once: 2 GB of slots and journeys.
const MOST_SLOTS: u32 = 1 << 24;

/// Queues without limits have swallowed more packets than memory should hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("more than {MOST_SLOTS} packets are in the network at {at}; give the queues limits")]
pub struct TooManyPackets {
    /// The simulated time.
    pub at: Time,
}

/// One end of a flow: sends packets, and counts those that arrive from it. Two for each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) flow: u32,
    /// Whether packets go from the flow's destination to its source.
    pub(crate) back: bool,
}

impl Origin {
    /// For arrays with a place for each origin.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.flow as usize * 2 + usize::from(self.back)
    }
}

/// What the simulator knows of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journey {
    /// When it was sent first.
    pub(crate) sent_at: Time,
    /// When it reaches the other end of the link that it is on.
    arrives_at: Time,
    /// The place of that event in the order of events.
    ticket: Ticket,
    pub(crate) origin: Origin,
    /// Length of the IP packet, bytes: without framing.
    pub(crate) length: u32,
    /// The position of the next hop in [`Routes`].
    next_hop: u32,
}

/// What all packets of an origin have in common.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) packet: Packet,
    pub(crate) headers: FlowKey,
    pub(crate) origin: Origin,
    /// The position of the first hop in [`Routes`].
    pub(crate) route: u32,
}

/// The network.
pub(crate) struct Network {
    pub(crate) pool: Pool,
    journeys: Vec<Journey>,
    /// The TCP segment of each packet, by slot of the pool.
    segments: Vec<Segment>,
    pub(crate) interfaces: Vec<Interface>,
    /// Of the nodes that take time for packets that they forward.
    pub(crate) processors: Vec<Processor>,
    pub(crate) routes: Routes,
    /// By [`Origin::index`].
    pub(crate) lost: Vec<Lost>,
    /// The flows whose data packets admission control has rejected since the list was last taken. A flow may
    /// be there several times.
    pub(crate) rejected: Vec<u32>,
    /// Packets transmitted by interfaces.
    pub(crate) hops: u64,
    pub(crate) cells: Vec<Cell>,
    /// The first interface and the first hop that belong to a cell. Those before belong to links.
    first_air: u32,
    /// The hops from `first_air` on.
    air_hops: Vec<AirHop>,
    /// The interfaces from `first_air` on.
    members: Vec<Member>,
}

impl Network {
    pub(crate) fn new(interfaces: Vec<Interface>, origins: usize) -> Network {
        let mut network = Network {
            pool: Pool::with_capacity(0),
            journeys: Vec::new(),
            segments: Vec::new(),
            first_air: interfaces.len() as u32,
            interfaces,
            processors: Vec::new(),
            routes: Routes::default(),
            lost: vec![Lost::default(); origins],
            rejected: Vec::new(),
            hops: 0,
            cells: Vec::new(),
            air_hops: Vec::new(),
            members: Vec::new(),
        };
        network.pool.allow_copies();
        network.keep_needs(0);
        network.make_room(FIRST_SLOTS);
        network
    }

    /// Makes the pool keep what the disciplines read of packets, of the interfaces from `first` on.
    fn keep_needs(&mut self, first: usize) {
        for interface in &self.interfaces[first..] {
            self.pool.keep(interface.needs);
        }
    }

    /// Makes sure that losses of this many origins can be counted.
    pub(crate) fn count_losses_of(&mut self, origins: usize) {
        if self.lost.len() < origins {
            self.lost.resize(origins, Lost::default());
        }
    }

    /// Makes a new packet, to be handed to [`forward`](Network::forward). `length` is that of the IP packet.
    #[inline]
    pub(crate) fn create(
        &mut self,
        template: &Template,
        length: u32,
        now: Time,
    ) -> Result<PacketId, TooManyPackets> {
        // One slot stays free for a copy.
        if self.pool.len() + 1 >= self.pool.capacity() {
            self.grow(now)?;
        }
        let id = self
            .pool
            .insert((template.packet, template.headers))
            .expect("a free slot was just seen or made");
        if template.packet.stamp > 0 {
            self.pool[id].stamp += now.nanos();
        }
        if self.pool.kept().bytes {
            self.make_bytes(id, length);
        }
        self.journeys[id.index()] = Journey {
            sent_at: now,
            arrives_at: now,
            ticket: Ticket::default(),
            origin: template.origin,
            length,
            next_hop: template.route,
        };
        Ok(id)
    }

    /// Gives a new packet the header bytes that its fields imply.
    #[cold]
    fn make_bytes(&mut self, id: PacketId, length: u32) {
        let traffic_class = self.pool[id].traffic_class();
        if let Some(headers) = self.pool.headers(id) {
            let bytes = HeaderBytes::of_fields(headers, traffic_class, length);
            self.pool.set_bytes(id, bytes);
        }
    }

    /// Lets a packet carry a segment.
    #[inline]
    pub(crate) fn attach(&mut self, id: PacketId, segment: Segment) {
        if let Some(bytes) = self.pool.bytes_mut(id) {
            bytes.set_tcp_flags(segment.flags.bits());
        }
        if self.segments.len() <= id.index() {
            let slots = self.pool.capacity() as usize;
            self.segments.resize(slots, Segment::default());
        }
        self.segments[id.index()] = segment;
    }

    /// Returns the segment that a packet carries.
    #[inline]
    pub(crate) fn segment(&self, id: PacketId) -> Segment {
        self.segments[id.index()]
    }

    /// Returns the segment that a packet carries, to change it.
    #[inline]
    pub(crate) fn segment_mut(&mut self, id: PacketId) -> &mut Segment {
        &mut self.segments[id.index()]
    }

    /// Writes a packet that an interface sends now into the interface's capture.
    #[cold]
    fn capture(&mut self, index: u32, id: PacketId, now: Time) {
        let (packet, journey) = (&self.pool[id], &self.journeys[id.index()]);
        let headers = self.pool.headers(id).expect("each simulated packet has headers");
        let nothing = Segment::default();
        let content = tap::Content {
            headers,
            dscp: packet.dscp,
            ecn: packet.ecn,
            segment: self.segments.get(id.index()).unwrap_or(&nothing),
            is_back: journey.origin.back,
            length: journey.length,
        };
        if let Some(tap) = &mut self.interfaces[index as usize].tap {
            tap.packet(now, &content);
        }
    }

    /// Moves a packet on to its next interface. False: it is at its destination.
    pub(crate) fn forward(&mut self, id: PacketId, events: &mut Events) -> bool {
        self.hop(id, events)
    }

    /// [`forward`](Network::forward), for those who do it for most packets: a hop without a call.
    #[inline(always)]
    fn hop(&mut self, id: PacketId, events: &mut Events) -> bool {
        let journey = &mut self.journeys[id.index()];
        let Some((next, rest)) = self.routes.next(journey.next_hop, || self.pool[id].flow) else {
            return false;
        };
        journey.next_hop = rest;
        if next >= self.first_air {
            self.forward_over_air(next, id, events);
            return true;
        }
        self.enqueue(next, id, events.now());
        self.serve_when_free(next, events);
        true
    }

    /// Tells the disciplines of an interface what a packet acknowledges, if it carries a segment.
    #[cold]
    #[inline(never)]
    fn tell_acknowledgement(&mut self, id: PacketId) {
        let headers = self.pool.headers(id).expect("each simulated packet has headers");
        let segment = self.segments.get(id.index());
        if let Some(segment) = segment.filter(|_| headers.protocol == tap::TCP) {
            let acknowledgement = acknowledgement::acknowledgement(segment, headers);
            self.pool.set_acknowledgement(id, acknowledgement);
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, index: u32, id: PacketId, now: Time) {
        let mut interface = &mut self.interfaces[index as usize];
        if interface.needs.acknowledgements {
            self.tell_acknowledgement(id);
            interface = &mut self.interfaces[index as usize];
        }
        let packet = &mut self.pool[id];
        packet.length = self.journeys[id.index()].length + interface.overhead;
        packet.memory = packet.length;
        // The verdict is for senders that are informed of drops on their own host. Here senders detect losses
        // end to end.
        interface.egress.enqueue(id, now, &mut self.pool);
        if self.pool.has_copies() {
            self.enqueue_copies(index, now);
        }
        self.bury_returned();
    }

    /// Enqueues the copies of packets that the discipline of an interface has asked for.
    #[cold]
    fn enqueue_copies(&mut self, index: u32, now: Time) {
        while let Some(Copied { copy, original }) = self.pool.take_copy() {
            let journey = self.journeys[original.index()];
            self.journeys[copy.index()] = journey;
            if let Some(&segment) = self.segments.get(original.index()) {
                self.attach(copy, segment);
            }
            self.lost[journey.origin.index()].add_copy(journey.length);
            self.interfaces[index as usize]
                .egress
                .enqueue(copy, now, &mut self.pool);
        }
    }

    /// Dequeues from the discipline of an interface.
    fn dequeue(&mut self, index: u32, now: Time) -> Next<PacketId> {
        let next = self.interfaces[index as usize]
            .egress
            .dequeue(now, &mut self.pool);
        self.after_dequeue(next, index, now)
    }

    /// Enqueues the copies and counts the drops of a dequeue. Returns what the discipline sends then.
    #[inline(never)]
    fn after_dequeue(&mut self, mut next: Next<PacketId>, index: u32, now: Time) -> Next<PacketId> {
        while self.pool.has_copies() {
            self.enqueue_copies(index, now);
            if let Next::Packet(_) = next {
                break;
            }
            next = self.interfaces[index as usize]
                .egress
                .dequeue(now, &mut self.pool);
        }
        self.bury_returned();
        next
    }

    /// An event meant for [`serve`](Network::serve) has come.
    #[inline]
    pub(crate) fn wake(&mut self, index: u32, events: &mut Events) {
        if index >= self.first_air {
            self.wake_member(index, events);
            return;
        }
        let interface = &mut self.interfaces[index as usize];
        if interface.alarm.rings(events.now()) {
            self.serve_when_free(index, events);
        }
    }

    /// Transmits what may be sent over a free line, now or when it is free.
    #[inline(always)]
    fn serve_when_free(&mut self, index: u32, events: &mut Events) {
        let interface = &mut self.interfaces[index as usize];
        let free_from = interface.line.free_from(events.now());
        if free_from <= events.now() {
            self.serve(index, events);
        } else {
            interface.alarm.set(free_from, Event::Wake(index), events);
        }
    }

    /// Transmits what may be sent now over a free line.
    #[inline(always)]
    fn serve(&mut self, index: u32, events: &mut Events) {
        let now = events.now();
        loop {
            let mut interface = &mut self.interfaces[index as usize];
            let mut next = interface.egress.dequeue(now, &mut self.pool);
            if self.pool.has_copies() || self.pool.has_returned() {
                next = self.after_dequeue(next, index, now);
                interface = &mut self.interfaces[index as usize];
            }
            let id = match next {
                Next::Packet(id) => id,
                Next::Idle => return,
                Next::Wait(until) => {
                    assert!(
                        until < Time::MAX,
                        "a discipline that holds packets back says until when (`Discipline::watchdog`)"
                    );
                    let again = interface.asked_again(until, now);
                    interface.alarm.set(again, Event::Wake(index), events);
                    return;
                }
            };
            self.hops += 1;
            let packet = &self.pool[id];
            interface.monitor.left(now - packet.enqueued_at);
            let left_at = interface.line.transmit(now, packet.length);
            if interface.tap.is_some() {
                self.capture(index, id, now);
                interface = &mut self.interfaces[index as usize];
            }
            if !fly(
                interface,
                index,
                id,
                left_at,
                (&mut self.pool, &mut self.journeys),
                events,
            ) {
                self.lose(index, id);
                interface = &mut self.interfaces[index as usize];
            }
            let free_from = interface.line.free_from(now);
            if free_from > now {
                if interface.egress.transmits_until(left_at) {
                    interface.alarm.set(free_from, Event::Wake(index), events);
                }
                return;
            }
        }
    }

    /// Counts and releases a packet that the link loses.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, index: u32, id: PacketId) {
        let journey = &self.journeys[id.index()];
        self.interfaces[index as usize].monitor.lost();
        self.lost[journey.origin.index()].add_on_link(journey.length);
        self.pool.release(id);
    }

    /// Takes the packet that has come over the link of this interface. Returns it if it is at its
    /// destination, and moves it on otherwise.
    #[inline]
    pub(crate) fn arrive(&mut self, index: u32, events: &mut Events) -> Option<PacketId> {
        let interface = &mut self.interfaces[index as usize];
        let overtaking = interface
            .impairments
            .as_mut()
            .and_then(|impairments| impairments.overtaking());
        let id = match overtaking {
            Some(overtaking) => overtaking.pop().map(|Reverse((_, _, id))| id),
            None => interface.in_flight.pop_front(&self.pool),
        };
        let id = id.expect("an arrival is scheduled for a packet in flight");
        if let Some(next) = interface.in_flight.front() {
            let journey = &self.journeys[next.index()];
            events.schedule_with(journey.ticket, journey.arrives_at, Event::Arrival(index));
            // In a large network what is known of a packet has left the caches while it was in flight.
            if let Some(third) = interface.in_flight.third(&self.pool) {
                self.pool.prefetch(third);
                prefetch_index(&self.journeys, third.index());
            }
        }
        let (number, processor) = (interface.far_number, interface.far_processor);
        self.received(id, number, processor, events)
    }

    /// Returns the flows of the next three packets that arrive over the link of this interface, each if the
    /// packet is then at its destination. Of links that reorder packets nothing is known. Prefetches the
    /// segment of the first one.
    #[inline]
    pub(crate) fn next_arrivals(&self, index: u32) -> [Option<Origin>; 3] {
        let in_flight = &self.interfaces[index as usize].in_flight;
        if let Some(first) = in_flight.front() {
            prefetch_index(&self.segments, first.index());
            prefetch_index(&self.segments, first.index() + 1);
        }
        let next = [
            in_flight.front(),
            in_flight.second(&self.pool),
            in_flight.third(&self.pool),
        ];
        next.map(|id| {
            let journey = &self.journeys[id?.index()];
            self.routes.is_end(journey.next_hop).then_some(journey.origin)
        })
    }

    /// Moves a packet on that a node has received over its interface `number`. Returns it if it is at its
    /// destination.
    #[inline(always)]
    fn received(
        &mut self,
        id: PacketId,
        number: u16,
        processor: Option<u32>,
        events: &mut Events,
    ) -> Option<PacketId> {
        self.pool.received_by(id, number);
        if let Some(processor) = processor
            && !self.routes.is_end(self.journeys[id.index()].next_hop)
        {
            self.process(processor, id, events);
            return None;
        }
        (!self.hop(id, events)).then_some(id)
    }

    /// Lets a packet wait until the node has processed it.
    fn process(&mut self, index: u32, id: PacketId, events: &mut Events) {
        let processor = &mut self.processors[index as usize];
        let journey = &mut self.journeys[id.index()];
        journey.arrives_at = processor.ready(events.now());
        journey.ticket = events.ticket();
        if processor.waiting.is_empty() {
            events.schedule_with(journey.ticket, journey.arrives_at, Event::Processed(index));
        }
        processor.waiting.push_back(id, &mut self.pool);
    }

    /// Moves on the packet that the node has processed.
    pub(crate) fn processed(&mut self, index: u32, events: &mut Events) {
        let waiting = &mut self.processors[index as usize].waiting;
        let id = waiting
            .pop_front(&self.pool)
            .expect("the event is scheduled for a waiting packet");
        if let Some(next) = waiting.front() {
            let journey = &self.journeys[next.index()];
            events.schedule_with(journey.ticket, journey.arrives_at, Event::Processed(index));
        }
        let moved = self.forward(id, events);
        debug_assert!(moved, "only packets that are forwarded are processed");
    }

    /// Takes out every packet that is still on its way, and counts them by origin. This ends the network.
    ///
    /// # Errors
    /// If a discipline's statistics do not agree with what it holds, or a packet is nowhere.
    pub(crate) fn take_left(&mut self) -> Result<Vec<Count>, Imbalance> {
        let mut left = vec![Count::default(); self.lost.len()];
        let mut in_flight: Vec<PacketQueue> = Vec::new();
        for interface in &mut self.interfaces {
            let discipline = interface.egress.root_mut();
            let statistics = discipline.statistics();
            let mut queue = PacketQueue::new();
            discipline.drain(&mut self.pool, &mut queue);
            let mut queued = Count::default();
            while let Some(id) = queue.pop_front(&self.pool) {
                let journey = &self.journeys[id.index()];
                left[journey.origin.index()].add(journey.length);
                queued.add(self.pool.release(id).length);
            }
            statistics.check(interface.egress.root().name(), queued)?;
            let overtaking = interface
                .impairments
                .as_mut()
                .and_then(|impairments| impairments.overtaking());
            for Reverse((_, _, id)) in overtaking.into_iter().flat_map(|heap| heap.drain()) {
                interface.in_flight.push_back(id, &mut self.pool);
            }
            in_flight.push(std::mem::take(&mut interface.in_flight));
        }
        in_flight.extend(
            self.processors
                .iter_mut()
                .map(|processor| std::mem::take(&mut processor.waiting)),
        );
        for mut packets in in_flight {
            while let Some(id) = packets.pop_front(&self.pool) {
                let journey = &self.journeys[id.index()];
                left[journey.origin.index()].add(journey.length);
                self.pool.release(id);
            }
        }
        for cell in &mut self.cells {
            for id in cell.medium.drain() {
                let journey = &self.journeys[id.index()];
                left[journey.origin.index()].add(journey.length);
                self.pool.release(id);
            }
        }
        let remaining = u64::from(self.pool.len());
        balance::of(
            "the network",
            "packets",
            ("neither queued nor in flight", remaining),
            &[],
        )?;
        Ok(left)
    }

    /// What the simulator knows of a packet.
    #[inline]
    pub(crate) fn journey(&self, id: PacketId) -> &Journey {
        &self.journeys[id.index()]
    }

    /// Returns the interfaces of links. Those of cells follow them.
    pub(crate) fn of_links(&self) -> &[Interface] {
        let count = self.interfaces.len().min(self.first_air as usize);
        &self.interfaces[..count]
    }

    /// Changes the tree of a link's interface to another one.
    pub(crate) fn reconfigure(
        &mut self,
        index: u32,
        spec: &Spec,
        events: &mut Events,
    ) -> Result<(), ChangeError> {
        let interface = &mut self.interfaces[index as usize];
        // Each change builds disciplines with other seeds. The time makes them so, and is repeatable.
        let seed = u64::from(index) ^ events.now().nanos();
        let mut sharded = None;
        let change = match (&interface.spec, &interface.sharded) {
            (_, Some(running)) => {
                let workers = running.workers();
                let wanted = spec
                    .sharded_after(workers, Some(running))
                    .map_err(|problem| workers.refused(&problem))?;
                let change = running.change_to(&wanted, seed)?;
                sharded = Some(Arc::new(wanted));
                change
            }
            (Some(running), None) => running.change_to(spec, seed)?,
            (None, None) => spec.take_over(seed)?,
        };
        let root = interface.egress.root_mut();
        let result = change.apply(root, events.now(), &mut self.pool).map(drop);
        if result.is_ok() {
            interface.needs = root.needs();
            self.pool.keep(interface.needs);
            interface.spec = Some(Arc::new(spec.clone()));
            interface.sharded = sharded;
        }
        self.bury_returned();
        result?;
        // The next packet may be allowed to leave earlier now.
        let alarm = &mut self.interfaces[index as usize].alarm;
        alarm.set(events.now(), Event::Wake(index), events);
        Ok(())
    }

    /// Counts and releases what the last call to a discipline dropped.
    #[inline]
    fn bury_returned(&mut self) {
        if self.pool.has_returned() {
            self.bury();
        }
    }

    #[cold]
    #[inline(never)]
    fn bury(&mut self) {
        while let Some((id, reason)) = self.pool.take_returned() {
            let journey = &self.journeys[id.index()];
            self.lost[journey.origin.index()].add(journey.length, reason);
            if reason == DropReason::NotAdmitted && !journey.origin.back {
                self.rejected.push(journey.origin.flow);
            }
            self.pool.release(id);
        }
    }

    #[cold]
    fn grow(&mut self, at: Time) -> Result<(), TooManyPackets> {
        let capacity = self.pool.capacity() * 2;
        if capacity > MOST_SLOTS {
            return Err(TooManyPackets { at });
        }
        self.make_room(capacity);
        Ok(())
    }

    fn make_room(&mut self, capacity: u32) {
        self.pool.grow(capacity);
        let empty = Journey {
            sent_at: Time::ZERO,
            arrives_at: Time::ZERO,
            ticket: Ticket::default(),
            origin: Origin { flow: 0, back: false },
            length: 0,
            next_hop: 0,
        };
        self.journeys.resize(capacity as usize, empty);
    }
}

/// Lets a packet whose last bit leaves at `left_at` propagate to the other end of the link. False: the link
/// loses it.
#[inline(always)]
fn fly(
    interface: &mut Interface,
    index: u32,
    id: PacketId,
    left_at: Time,
    (pool, journeys): (&mut Pool, &mut [Journey]),
    events: &mut Events,
) -> bool {
    if pool[id].is_corrupted() {
        // The receiver discards it because of its checksum.
        return false;
    }
    let mut arrives_at = left_at + interface.delay;
    if let Some(recorded) = &mut interface.recorded {
        arrives_at = recorded.arrival(left_at, arrives_at);
    }
    if let Some(impairments) = &mut interface.impairments {
        match impairments.arrival(arrives_at) {
            Some(later) => arrives_at = later,
            None => return false,
        }
        if let Some(overtaking) = impairments.overtaking() {
            let ticket = events.ticket();
            overtaking.push(Reverse((arrives_at, ticket, id)));
            events.schedule_with(ticket, arrives_at, Event::Arrival(index));
            return true;
        }
    }
    let journey = &mut journeys[id.index()];
    journey.arrives_at = arrives_at;
    journey.ticket = events.ticket();
    if interface.in_flight.is_empty() {
        events.schedule_with(journey.ticket, journey.arrives_at, Event::Arrival(index));
    }
    interface.in_flight.push_back(id, pool);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::InterfaceMonitor;
    use crate::random::Distribution;
    use crate::scenario::{Direction, Jitter, LineRate, Queue};
    use fairgate_conformance::{RATE, check_driver};
    use std::time::Duration;

    /// One interface. Each packet is a flow of its own.
    #[test]
    fn an_interface_drives_by_the_rules() {
        for rate in [None, Some(RATE)] {
            check_driver(rate, |discipline, arrivals| {
                let name = "a->b".to_owned();
                let interface = Interface::new(name, discipline, rate.into(), 0, 0, InterfaceMonitor::new(1));
                let mut network = Network::new(vec![interface], 2 * arrivals.len());
                let route = network.routes.add_line([0]);
                let mut events = Events::until(Time::from_secs(1000));
                for (number, packet) in arrivals.iter().enumerate() {
                    events.schedule(packet.at, Event::Source(number as u32));
                }
                let mut began = vec![None; arrivals.len()];
                while let Some(event) = events.next() {
                    match event {
                        Event::Source(flow) => {
                            let length = arrivals[flow as usize].length;
                            let template = Template {
                                packet: Packet::of_length(length),
                                headers: FlowKey::default(),
                                origin: Origin { flow, back: false },
                                route,
                            };
                            let id = network.create(&template, length, events.now()).unwrap();
                            assert!(network.forward(id, &mut events));
                        }
                        Event::Wake(index) => network.wake(index, &mut events),
                        Event::Arrival(index) => {
                            let id = network.arrive(index, &mut events).expect("the route ends here");
                            let flow = network.journey(id).origin.flow as usize;
                            let transmission = rate.map_or(0, |_| u64::from(arrivals[flow].length) * 100);
                            began[flow] = Some(Time::from_nanos(events.now().nanos() - transmission));
                            network.pool.release(id);
                        }
                        Event::End => break,
                        other => unreachable!("nobody schedules {other:?}"),
                    }
                }
                began
            });
        }
    }

    /// Sends packets of different origins at the same time over a link with jitter. Returns when each
    /// arrives, in the order of arrival.
    fn over_jitter(reorder: bool, packets: u32) -> Vec<(u32, Time)> {
        let jitter = Jitter {
            delay: Distribution::Uniform { low: 0, high: 50 },
            reorder,
        };
        let fifo = fairgate::queues::fifo::Fifo::node(fairgate::queues::fifo::Config::default());
        let direction = Direction {
            rate: &LineRate::Unlimited,
            delay: Duration::ZERO,
            jitter: Some(&jitter),
            loss: None,
            queue: &Queue::default(),
        };
        let mut interface = Interface::new(
            "a->b".to_owned(),
            Box::new(fifo.expect("the default is valid")),
            LineRate::Unlimited,
            7,
            0,
            InterfaceMonitor::new(1),
        );
        interface.impairments = Impairments::new(direction, 1, "a->b");
        let mut network = Network::new(vec![interface], 2 * packets as usize);
        let route = network.routes.add_line([0]);
        let mut events = Events::until(Time::from_secs(1));
        for flow in 0..packets {
            let template = Template {
                packet: Packet::of_length(100),
                headers: FlowKey::default(),
                origin: Origin { flow, back: false },
                route,
            };
            let id = network.create(&template, 100, events.now()).unwrap();
            assert!(network.forward(id, &mut events));
        }
        let mut arrived = Vec::new();
        while let Some(event) = events.next() {
            let Event::Arrival(index) = event else {
                unreachable!("only arrivals are scheduled");
            };
            let id = network.arrive(index, &mut events).expect("the route ends here");
            arrived.push((network.journey(id).origin.flow, events.now()));
            network.pool.release(id);
        }
        arrived
    }

    #[test]
    fn packets_overtake_only_on_a_link_that_reorders() {
        let flows = |arrived: &[(u32, Time)]| -> Vec<u32> { arrived.iter().map(|packet| packet.0).collect() };
        let kept = over_jitter(false, 500);
        let overtaken = over_jitter(true, 500);
        assert!(flows(&kept).is_sorted());
        assert!(!flows(&overtaken).is_sorted());
        assert!(kept.is_sorted_by_key(|packet| packet.1) && overtaken.is_sorted_by_key(|packet| packet.1));
        // The random numbers are the same. A packet that keeps its place arrives with the latest one so far.
        let mut sent = overtaken.clone();
        sent.sort_unstable();
        let mut latest = Time::ZERO;
        for ((flow, at), (same, own)) in kept.into_iter().zip(sent) {
            latest = latest.max(own);
            assert_eq!((flow, at), (same, latest));
        }
    }
}
