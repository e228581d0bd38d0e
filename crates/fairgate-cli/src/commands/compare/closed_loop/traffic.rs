//! Reads a capture: its TCP connections across the link, and the other packets across it.

use std::collections::HashMap;

use fairgate::{FlowKey, Time};
use fairgate_capture::{Conversation, Conversations, Counts};
use fairgate_sim::RecordedPacket;

use crate::commands::compare::capture::{Options, TraceError};
use crate::commands::compare::direction::{Direction, Side, View};
use crate::commands::compare::flows::FiveTuple;
use crate::commands::compare::reading::{Captured, ETHERNET_HEADER, Packets, Pauses};

const TCP: u8 = 6;

/// The headers of IPv4 and UDP, bytes. The simulator adds them to each datagram.
const UDP_HEADERS: u32 = 28;

/// The traffic of a capture.
pub(super) struct Traffic {
    /// Downwards, so that [`Side::Taken`] is towards the local side.
    pub(super) view: View,
    pub(super) connections: Vec<Connection>,
    pub(super) datagrams: Vec<Datagrams>,
    /// Packets of the capture.
    pub(super) packets: u64,
    /// Packets of TCP that could not be read: fragments, and headers that were not captured.
    pub(super) unread: u64,
    /// Packets between local addresses, between remote ones, multicast, or without IP.
    pub(super) elsewhere: u64,
    /// TCP connections without data.
    pub(super) without_data: u64,
    pub(super) counts: Counts,
    pub(super) pauses: Pauses,
    pub(super) defect: Option<String>,
    /// The time of the last packet.
    pub(super) end: Time,
}

/// A TCP connection.
pub(super) struct Connection {
    pub(super) conversation: Conversation,
    /// Whether the client is on the local side.
    pub(super) is_local_client: bool,
    /// The six DSCP bits, and the priority of the first packet that the server sent.
    pub(super) dscp: u8,
    pub(super) priority: u8,
}

/// The packets of a flow that is not TCP.
pub(super) struct Datagrams {
    pub(super) key: FlowKey,
    pub(super) is_downwards: bool,
    pub(super) start: Time,
    pub(super) packets: Vec<RecordedPacket>,
    /// The packets of the capture. The host may have merged several into one.
    pub(super) captured: u64,
    pub(super) dscp: u8,
    pub(super) priority: u8,
}

impl Datagrams {
    /// Returns the payload, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| u64::from(packet.payload)).sum()
    }
}

/// The marks of the packets of a direction of a flow.
type Marks = HashMap<FiveTuple, (u8, u8)>;

/// Reads the capture.
pub(super) fn read(options: &Options) -> Result<Traffic, TraceError> {
    let mut packets = Packets::open(options)?;
    let (view, held) = packets.survey(Direction::Down)?;
    let mut collector = Collector {
        view,
        conversations: Conversations::new(),
        marks: Marks::new(),
        datagrams: HashMap::new(),
        flows: Vec::new(),
        packets: 0,
        unread: 0,
        elsewhere: 0,
        end: Time::ZERO,
    };
    for packet in &held {
        collector.add(packet);
    }
    while let Some(packet) = packets.next()? {
        collector.add(&packet);
    }
    packets.bar.finish_and_clear();
    let (counts, pauses) = (packets.capture.counts(), packets.pauses());
    Ok(collector.finish(counts, pauses, packets.defect))
}

struct Collector {
    view: View,
    conversations: Conversations,
    marks: Marks,
    /// The index in `flows` of each flow that is not TCP.
    datagrams: HashMap<FiveTuple, usize>,
    flows: Vec<Datagrams>,
    packets: u64,
    unread: u64,
    elsewhere: u64,
    end: Time,
}

impl Collector {
    fn add(&mut self, packet: &Captured) {
        self.packets += 1;
        self.end = packet.time;
        let key = &packet.dissection.key;
        let side = self.view.side(key);
        if side == Side::Elsewhere {
            self.elsewhere += 1;
            return;
        }
        match packet.segment {
            Some(segment) => {
                let mark = (packet.dissection.dscp(), packet.dissection.priority());
                self.marks.entry(FiveTuple::of(key)).or_insert(mark);
                self.conversations.add(packet.time, key, &segment);
            }
            None if key.protocol == TCP => self.unread += 1,
            None => self.add_datagram(packet, side == Side::Taken),
        }
    }

    fn add_datagram(&mut self, packet: &Captured, is_downwards: bool) {
        let key = packet.dissection.key;
        let index = *self.datagrams.entry(FiveTuple::of(&key)).or_insert_with(|| {
            self.flows.push(Datagrams {
                key,
                is_downwards,
                start: packet.time,
                packets: Vec::new(),
                captured: 0,
                dscp: packet.dissection.dscp(),
                priority: packet.dissection.priority(),
            });
            self.flows.len() - 1
        });
        let flow = &mut self.flows[index];
        flow.captured += 1;
        flow.packets.extend(packet.lengths().map(|length| RecordedPacket {
            at: packet.time - flow.start,
            payload: length.saturating_sub(ETHERNET_HEADER + UDP_HEADERS).min(65_507),
        }));
    }

    fn finish(self, counts: Counts, pauses: Pauses, defect: Option<String>) -> Traffic {
        let all = self.conversations.finish();
        let found = all.len();
        let connections: Vec<Connection> = all
            .into_iter()
            .filter(|conversation| !conversation.turns.is_empty())
            .map(|conversation| {
                let key = conversation.key;
                let from_server = FlowKey {
                    source: key.destination,
                    destination: key.source,
                    source_port: key.destination_port,
                    destination_port: key.source_port,
                    ..key
                };
                let (dscp, priority) = self
                    .marks
                    .get(&FiveTuple::of(&from_server))
                    .or_else(|| self.marks.get(&FiveTuple::of(&key)))
                    .copied()
                    .unwrap_or_default();
                Connection {
                    // Packets of the client go upwards if the client is local.
                    is_local_client: self.view.side(&key) == Side::Opposite,
                    conversation,
                    dscp,
                    priority,
                }
            })
            .collect();
        Traffic {
            view: self.view,
            without_data: (found - connections.len()) as u64,
            connections,
            datagrams: self.flows,
            packets: self.packets,
            unread: self.unread,
            elsewhere: self.elsewhere,
            counts,
            pauses,
            defect,
            end: self.end,
        }
    }
}
