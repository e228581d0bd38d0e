//! Interfaces, links, and the packets on them.
//!
//! All packets of the network are in one [`Pool`] from the source to the destination. The simulator's own
//! data about a packet is its [`Journey`], at the same index of an array beside the pool, so the cookie is
//! not needed. A hop takes three steps. [`Network::forward`] enqueues. If the link is idle,
//! [`Network::serve`] dequeues, sets the time of arrival, and appends the packet to those in flight.
//! [`Network::arrive`] receives it at the other end.
//!
//! A link's delay is constant, so packets arrive in the order in which they were sent, and only the first
//! packet in flight has an event. A packet that finds the link idle and leaves it idle costs only this event.

mod clock;
mod interface;

use fairgate::balance::{self, Imbalance};
use fairgate::{Count, FlowKey, Next, Packet, PacketId, PacketQueue, Pool, Time};
use thiserror::Error;

use crate::events::{Event, Events, Ticket};
use crate::monitor::Lost;
pub(crate) use clock::ExactClock;
pub(crate) use interface::Interface;

/// Where a route ends: the packet has arrived.
const DESTINATION: u32 = u32::MAX;
/// Slots at the start. The pool doubles when it is full.
const FIRST_SLOTS: u32 = 4096;
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
    /// Where in `Network::routes` the next hop stands.
    next_hop: u32,
}

/// What all packets of an origin have in common.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) packet: Packet,
    pub(crate) headers: FlowKey,
    pub(crate) origin: Origin,
    /// Where in `Network::routes` the first hop stands.
    pub(crate) route: u32,
}

/// The network.
pub(crate) struct Network {
    pub(crate) pool: Pool,
    journeys: Vec<Journey>,
    pub(crate) interfaces: Vec<Interface>,
    /// Interfaces to pass, one route after another, each closed by [`DESTINATION`].
    routes: Vec<u32>,
    /// By [`Origin::index`].
    pub(crate) lost: Vec<Lost>,
    /// Packets transmitted by interfaces.
    pub(crate) hops: u64,
}

impl Network {
    pub(crate) fn new(interfaces: Vec<Interface>, origins: usize) -> Network {
        let mut network = Network {
            pool: Pool::with_capacity(0),
            journeys: Vec::new(),
            interfaces,
            routes: Vec::new(),
            lost: vec![Lost::default(); origins],
            hops: 0,
        };
        network.make_room(FIRST_SLOTS);
        network
    }

    /// Adds a route over these interfaces and tells where it stands.
    pub(crate) fn add_route(&mut self, interfaces: impl IntoIterator<Item = u32>) -> u32 {
        let start = self.routes.len() as u32;
        self.routes.extend(interfaces);
        self.routes.push(DESTINATION);
        start
    }

    /// Makes a new packet, to be handed to [`forward`](Network::forward). `length` is that of the IP packet.
    #[inline]
    pub(crate) fn create(
        &mut self,
        template: &Template,
        length: u32,
        now: Time,
    ) -> Result<PacketId, TooManyPackets> {
        if self.pool.len() == self.pool.capacity() {
            self.grow(now)?;
        }
        let id = self
            .pool
            .insert_with_headers(template.packet, template.headers)
            .expect("a free slot was just seen or made");
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

    /// Moves a packet on to its next interface. False: it is at its destination.
    #[inline]
    pub(crate) fn forward(&mut self, id: PacketId, events: &mut Events) -> bool {
        let journey = &mut self.journeys[id.index()];
        let next = self.routes[journey.next_hop as usize];
        if next == DESTINATION {
            return false;
        }
        journey.next_hop += 1;
        let interface = &mut self.interfaces[next as usize];
        let packet = &mut self.pool[id];
        packet.length = journey.length + interface.overhead;
        packet.memory = packet.length;
        let now = events.now();
        // The verdict is for senders that are informed of drops on their own host. Here senders detect losses
        // end to end.
        interface.egress.enqueue(id, now, &mut self.pool);
        self.bury_returned();
        let interface = &mut self.interfaces[next as usize];
        if interface.busy_until <= now {
            self.serve(next, events);
        } else {
            interface
                .alarm
                .set(interface.busy_until, Event::Wake(next), events);
        }
        true
    }

    /// An event meant for [`serve`](Network::serve) has come.
    #[inline]
    pub(crate) fn wake(&mut self, index: u32, events: &mut Events) {
        let interface = &mut self.interfaces[index as usize];
        if !interface.alarm.rings(events.now()) {
            return;
        }
        if interface.busy_until <= events.now() {
            self.serve(index, events);
        } else {
            interface
                .alarm
                .set(interface.busy_until, Event::Wake(index), events);
        }
    }

    /// Transmits what may be sent now over a free line.
    #[inline]
    fn serve(&mut self, index: u32, events: &mut Events) {
        let now = events.now();
        loop {
            let interface = &mut self.interfaces[index as usize];
            let next = interface.egress.dequeue(now, &mut self.pool);
            self.bury_returned();
            let interface = &mut self.interfaces[index as usize];
            let id = match next {
                Next::Packet(id) => id,
                Next::Idle => return,
                Next::Wait(until) => {
                    assert!(
                        until < Time::MAX,
                        "a discipline that holds packets back says until when (`Discipline::watchdog`)"
                    );
                    interface.alarm.set(until, Event::Wake(index), events);
                    return;
                }
            };
            self.hops += 1;
            let packet = &self.pool[id];
            interface.monitor.left(now - packet.enqueued_at);
            interface.transmit(now, packet.length);
            let journey = &mut self.journeys[id.index()];
            journey.arrives_at = interface.busy_until + interface.delay;
            journey.ticket = events.ticket();
            if interface.in_flight.is_empty() {
                events.schedule_with(journey.ticket, journey.arrives_at, Event::Arrival(index));
            }
            interface.in_flight.push_back(id, &mut self.pool);
            if interface.busy_until > now {
                if interface.egress.transmits_until(interface.busy_until) {
                    interface
                        .alarm
                        .set(interface.busy_until, Event::Wake(index), events);
                }
                return;
            }
        }
    }

    /// Takes the packet that has come over the link of this interface.
    #[inline]
    pub(crate) fn arrive(&mut self, index: u32, events: &mut Events) -> PacketId {
        let interface = &mut self.interfaces[index as usize];
        let id = interface
            .in_flight
            .pop_front(&self.pool)
            .expect("an arrival is scheduled for a packet in flight");
        if let Some(next) = interface.in_flight.front() {
            let journey = &self.journeys[next.index()];
            events.schedule_with(journey.ticket, journey.arrives_at, Event::Arrival(index));
        }
        id
    }

    /// Takes out every packet that is still on its way, and counts them by origin. This ends the network.
    ///
    /// # Errors
    /// If a discipline's statistics do not agree with what it holds, or a packet is nowhere.
    pub(crate) fn take_left(&mut self) -> Result<Vec<Count>, Imbalance> {
        let mut left = vec![Count::default(); self.lost.len()];
        for interface in &mut self.interfaces {
            let discipline = interface.egress.root_mut();
            let statistics = discipline.statistics();
            let mut queue = PacketQueue::new();
            discipline.drain(&mut self.pool, &mut queue);
            let mut queued = Count::default();
            for (packets, is_queued) in [(&mut queue, true), (&mut interface.in_flight, false)] {
                while let Some(id) = packets.pop_front(&self.pool) {
                    let journey = &self.journeys[id.index()];
                    left[journey.origin.index()].add(journey.length);
                    let packet = self.pool.release(id);
                    if is_queued {
                        queued.add(packet.length);
                    }
                }
            }
            statistics.check(interface.egress.root().name(), queued)?;
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

    /// Counts and releases what the last call to a discipline dropped.
    #[inline]
    fn bury_returned(&mut self) {
        while let Some((id, reason)) = self.pool.take_returned() {
            let journey = &self.journeys[id.index()];
            self.lost[journey.origin.index()].add(journey.length, reason);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::InterfaceMonitor;
    use crate::network::interface::Interface;
    use fairgate_conformance::{RATE, check_driver};

    /// One interface. Each packet is a flow of its own.
    #[test]
    fn an_interface_drives_by_the_rules() {
        for rate in [None, Some(RATE)] {
            check_driver(rate, |discipline, arrivals| {
                let interface = Interface::new(discipline, rate, 0, 0, InterfaceMonitor::new(1));
                let mut network = Network::new(vec![interface], 2 * arrivals.len());
                let route = network.add_route([0]);
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
                            let id = network.arrive(index, &mut events);
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
}
