//! Wi-Fi cells in the network: disciplines above, the shared medium below.
//!
//! ```text
//!   packets for all stations -> discipline of the access point -> MAC queue of each station and category
//!   packets of a station     -> its discipline                 -> its MAC queue of each category
//!                                                                      |
//!                                                                    medium -> delivered | lost
//! ```
//!
//! As in Linux, a discipline lies above the queues of the driver. The driver takes packets from it until one
//! of its queues is full, and stops it until that queue has room again. So one discipline serves all stations
//! of an access point, and a slow station whose MAC queue is full holds up the packets for the others.

use fairgate::{Next, PacketId, PacketQueue, Time};

use crate::events::{Alarm, Event, Events};
use crate::monitor::CellMonitor;
use crate::network::Network;
use crate::random::Stream;
use crate::wifi::{AccessCategory, AirDirection, Fate, Medium, Resolved};

/// A cell.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) medium: Medium<PacketId>,
    pub(crate) monitor: CellMonitor,
    /// Whether the DSCP decides about the category. Otherwise all packets are best effort.
    uses_categories: bool,
    /// The access point's interface. Those of the stations follow.
    access_point: u32,
    random: Stream,
    /// Has the medium advance.
    alarm: Alarm,
    /// Frames that have left the medium in the current event.
    resolved: Vec<Resolved<PacketId>>,
    /// Delivered, and not taken yet.
    delivered: PacketQueue,
}

impl Cell {
    pub(crate) fn new(medium: Medium<PacketId>, uses_categories: bool, random: Stream) -> Cell {
        Cell {
            medium,
            monitor: CellMonitor::default(),
            uses_categories,
            access_point: 0,
            random,
            alarm: Alarm::UNSET,
            resolved: Vec::new(),
            delivered: PacketQueue::new(),
        }
    }

    /// Packets given up on air.
    pub(crate) fn lost(&self) -> u64 {
        self.medium
            .directions()
            .iter()
            .map(|direction| direction.lost)
            .sum()
    }

    pub(crate) fn window_opens(&mut self, now: Time) {
        self.monitor.window_opens(&self.medium, now);
    }

    pub(crate) fn window_closes(&mut self, now: Time) {
        self.monitor.window_closes(&self.medium, now);
    }
}

/// A hop between an access point and a station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AirHop {
    direction: AirDirection,
    /// The interface whose discipline holds the packet before.
    interface: u32,
    receiver: Receiver,
}

/// What the node at the receiving end of a hop does with a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    /// The number under which the node knows the cell: after its links, in the order of the scenario. 0
    /// stands for an unknown interface.
    pub(crate) number: u16,
    /// The node's processor, if it takes time for packets that it forwards.
    pub(crate) processor: Option<u32>,
}

/// The member of a cell to which an interface belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    cell: u32,
    number: u32,
}

impl Network {
    /// Adds a cell, with the interfaces of its members: first the access point's, then those of its stations.
    /// Its hops follow those of the cells before: two for each station, to the access point and back.
    /// `receivers` are in the order of the members.
    pub(crate) fn add_cell(
        &mut self,
        mut cell: Cell,
        interfaces: Vec<super::Interface>,
        receivers: &[Receiver],
    ) {
        let number = self.cells.len() as u32;
        let access_point = self.interfaces.len() as u32;
        for member in 0..interfaces.len() as u32 {
            self.members.push(Member {
                cell: number,
                number: member,
            });
        }
        for station in 0..interfaces.len() as u32 - 1 {
            for is_down in [false, true] {
                self.air_hops.push(AirHop {
                    direction: AirDirection { station, is_down },
                    interface: if is_down {
                        access_point
                    } else {
                        access_point + 1 + station
                    },
                    receiver: receivers[if is_down { station as usize + 1 } else { 0 }],
                });
            }
        }
        self.interfaces.extend(interfaces);
        self.keep_needs(access_point as usize);
        cell.access_point = access_point;
        self.cells.push(cell);
    }

    /// Moves a packet on to a hop of a cell.
    pub(super) fn forward_over_air(&mut self, hop: u32, id: PacketId, events: &mut Events) {
        let interface = self.air_hops[(hop - self.first_air) as usize].interface;
        // The cookie tells the hop until the packet is received.
        self.pool[id].cookie = hop.into();
        self.enqueue(interface, id, events.now());
        self.pull(interface, events);
    }

    /// Moves packets from the discipline of a cell's member to its MAC queues while these have room.
    pub(super) fn pull(&mut self, index: u32, events: &mut Events) {
        let now = events.now();
        let member = self.members[(index - self.first_air) as usize];
        while self.cells[member.cell as usize].medium.has_room(member.number) {
            let next = self.dequeue(index, now);
            if let Next::Packet(id) = next
                && self.interfaces[index as usize].tap.is_some()
            {
                self.capture(index, id, now);
            }
            let interface = &mut self.interfaces[index as usize];
            let id = match next {
                Next::Packet(id) => id,
                Next::Idle => break,
                Next::Wait(until) => {
                    assert!(
                        until < Time::MAX,
                        "a discipline that holds packets back says until when (`Discipline::watchdog`)"
                    );
                    interface.alarm.set(until, Event::Wake(index), events);
                    break;
                }
            };
            self.hops += 1;
            let packet = &self.pool[id];
            interface.monitor.left(now - packet.enqueued_at);
            if packet.is_corrupted() {
                self.lose(index, id);
                continue;
            }
            let journey = &self.journeys[id.index()];
            let direction = self.air_hops[(packet.cookie as u32 - self.first_air) as usize].direction;
            let cell = &mut self.cells[member.cell as usize];
            let category = match cell.uses_categories {
                true => AccessCategory::of_dscp(packet.dscp),
                false => AccessCategory::BestEffort,
            };
            cell.medium
                .offer(direction, category, id, journey.length, now, &mut cell.random);
        }
        self.set_medium_alarm(member.cell, events);
    }

    /// The interface of a cell's member may have packets again: a shaper's time has come.
    pub(super) fn wake_member(&mut self, index: u32, events: &mut Events) {
        if self.interfaces[index as usize].alarm.rings(events.now()) {
            self.pull(index, events);
        }
    }

    fn set_medium_alarm(&mut self, index: u32, events: &mut Events) {
        let cell = &mut self.cells[index as usize];
        if let Some(due) = cell.medium.next() {
            cell.alarm.set(due, Event::Medium(index), events);
        }
    }

    /// An event of a cell's medium has come. Afterwards the caller takes what was delivered.
    pub(crate) fn advance_medium(&mut self, index: u32, events: &mut Events) {
        let now = events.now();
        let cell = &mut self.cells[index as usize];
        if !cell.alarm.rings(now) {
            return;
        }
        cell.medium.advance(now, &mut cell.random, &mut cell.resolved);
        for frame in cell.resolved.drain(..) {
            match frame.fate {
                Fate::Delivered => cell.delivered.push_back(frame.id, &mut self.pool),
                Fate::Lost => {
                    let journey = &self.journeys[frame.id.index()];
                    self.lost[journey.origin.index()].add_on_air(journey.length);
                    self.pool.release(frame.id);
                }
            }
        }
        let access_point = cell.access_point;
        for place in 0..self.cells[index as usize].medium.ended().len() {
            let member = self.cells[index as usize].medium.ended()[place];
            self.pull(access_point + member, events);
        }
        self.set_medium_alarm(index, events);
    }

    /// Receives a packet that a cell has delivered. Returns it if it is at its destination, and moves it on
    /// otherwise.
    pub(crate) fn receive_over_air(&mut self, id: PacketId, events: &mut Events) -> Option<PacketId> {
        let hop = self.pool[id].cookie as u32 - self.first_air;
        let Receiver { number, processor } = self.air_hops[hop as usize].receiver;
        self.received(id, number, processor, events)
    }

    /// Takes the next packet that a cell has delivered.
    pub(crate) fn take_delivered(&mut self, cell: u32) -> Option<PacketId> {
        self.cells[cell as usize].delivered.pop_front(&self.pool)
    }
}
