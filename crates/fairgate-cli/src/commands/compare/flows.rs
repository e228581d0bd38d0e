//! The flows of a capture, as many as fit: those that carry most keep a place of their own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use fairgate::FlowKey;

use super::lane::Place;
use super::services::{protocol, service};

/// Flows with a place. When all are taken, the half that has carried least gives way: whoever carries much of a long
/// capture is never among it, and memory is bounded. Flows without a place count as "the rest"; one that comes back
/// starts again.
const MOST_PLACES: usize = 512;

/// What makes packets a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FiveTuple {
    source: [u8; 16],
    destination: [u8; 16],
    source_port: u16,
    destination_port: u16,
    protocol: u8,
    /// Only told apart where there are no addresses.
    ethertype: u16,
}

impl FiveTuple {
    fn of(key: &FlowKey) -> FiveTuple {
        FiveTuple {
            source: key.source,
            destination: key.destination,
            source_port: key.source_port,
            destination_port: key.destination_port,
            protocol: key.protocol,
            ethertype: key.ethertype,
        }
    }

    /// `192.0.2.7:https → 10.0.0.5:51234`.
    pub(super) fn name(&self) -> String {
        if self.source == [0; 16] && self.destination == [0; 16] {
            return match self.ethertype {
                0 => "unreadable packets".into(),
                0x0806 => "ARP".into(),
                other => format!("EtherType {other:#06x}"),
            };
        }
        // Encrypted frames of 802.11 have their stations for addresses.
        if self.ethertype == 0 {
            return format!(
                "{} → {}, encrypted",
                station(self.source),
                station(self.destination)
            );
        }
        let end = |octets, port| match (address(octets), port) {
            (address, 0) => address.to_string(),
            (IpAddr::V4(v4), port) => format!("{v4}:{}", service(self.protocol, port)),
            (IpAddr::V6(v6), port) => format!("[{v6}]:{}", service(self.protocol, port)),
        };
        format!(
            "{} → {}",
            end(self.source, self.source_port),
            end(self.destination, self.destination_port)
        )
    }

    /// The transport protocol's name.
    pub(super) fn protocol(&self) -> String {
        protocol(self.protocol)
    }
}

/// `02:00:5e:10:00:01`.
fn station(octets: [u8; 16]) -> String {
    let parts: Vec<String> = octets[10..].iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

fn address(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).to_canonical()
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    tuple: FiveTuple,
    generation: u32,
    bytes: u64,
    packets: u64,
}

/// A flow that has a place at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) place: Place,
    pub(super) tuple: FiveTuple,
    pub(super) bytes: u64,
    pub(super) packets: u64,
}

/// The table.
#[derive(Default)]
pub(super) struct FlowTable {
    by_tuple: HashMap<FiveTuple, u32>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// How often a flow lost its place.
    displaced: u64,
}

impl FlowTable {
    /// The place of a packet's flow.
    pub(super) fn place(&mut self, key: &FlowKey, bytes: u32) -> Place {
        let tuple = FiveTuple::of(key);
        let slot = match self.by_tuple.get(&tuple) {
            Some(&slot) => slot,
            None => self.admit(tuple),
        };
        let flow = &mut self.flows[slot as usize];
        flow.bytes += u64::from(bytes);
        flow.packets += 1;
        Place {
            slot,
            generation: flow.generation,
        }
    }

    fn admit(&mut self, tuple: FiveTuple) -> u32 {
        let mut flow = Flow {
            tuple,
            generation: 0,
            bytes: 0,
            packets: 0,
        };
        if self.free.is_empty() && self.flows.len() == MOST_PLACES {
            self.make_room();
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                let place = &mut self.flows[slot as usize];
                flow.generation = place.generation + 1;
                *place = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        self.by_tuple.insert(tuple, slot);
        slot
    }

    fn make_room(&mut self) {
        let mut by_bytes: Vec<u32> = (0..self.flows.len() as u32).collect();
        by_bytes.sort_by_key(|&slot| (self.flows[slot as usize].bytes, slot));
        by_bytes.truncate(MOST_PLACES / 2);
        for &slot in &by_bytes {
            self.by_tuple.remove(&self.flows[slot as usize].tuple);
        }
        self.displaced += by_bytes.len() as u64;
        self.free = by_bytes;
    }

    /// The flows that have a place, those that carried most first.
    pub(super) fn placed(&self) -> Vec<Placed> {
        let mut placed: Vec<Placed> = self
            .by_tuple
            .values()
            .map(|&slot| {
                let flow = self.flows[slot as usize];
                Placed {
                    place: Place {
                        slot,
                        generation: flow.generation,
                    },
                    tuple: flow.tuple,
                    bytes: flow.bytes,
                    packets: flow.packets,
                }
            })
            .collect();
        placed.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.tuple));
        placed
    }

    /// How often a flow lost its place.
    pub(super) fn displaced(&self) -> u64 {
        self.displaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        FlowKey::of([192, 0, 2, 1].into(), [10, 0, 0, 5].into(), 6, 443, port)
    }

    #[test]
    fn names_have_ports_and_services() {
        let tuple = FiveTuple::of(&key(50_000));
        assert_eq!(tuple.name(), "192.0.2.1:https → 10.0.0.5:50000");
        assert_eq!(tuple.protocol(), "TCP");
        assert_eq!(FiveTuple::of(&FlowKey::default()).name(), "unreadable packets");
        let mut encrypted = FlowKey::default();
        encrypted.source[10..].copy_from_slice(&[2, 0, 0x5e, 0x10, 0, 1]);
        encrypted.destination[15] = 0xff;
        assert_eq!(
            FiveTuple::of(&encrypted).name(),
            "02:00:5e:10:00:01 → 00:00:00:00:00:ff, encrypted"
        );
    }

    #[test]
    fn the_large_flows_outlast_any_number_of_small_ones() {
        let mut table = FlowTable::default();
        for round in 0..50_000u32 {
            table.place(&key(1), 1500);
            table.place(&key(2 + (round % 60_000) as u16), 40);
        }
        let placed = table.placed();
        assert!(placed.len() <= MOST_PLACES);
        assert_eq!(placed[0].tuple, FiveTuple::of(&key(1)));
        assert_eq!((placed[0].packets, placed[0].place.generation), (50_000, 0));
        assert!(table.displaced() > 49_000);
        let places: std::collections::HashSet<u32> = placed.iter().map(|flow| flow.place.slot).collect();
        assert_eq!(places.len(), placed.len(), "no place is given twice");
    }
}
