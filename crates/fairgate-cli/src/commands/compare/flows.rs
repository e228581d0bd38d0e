//! The flows of a capture. A limited number of them is counted separately: those with most bytes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use fairgate::FlowKey;

use super::open_loop::FlowSlot;
use super::services::{protocol, service};

/// The number of flows with a slot. If all slots are taken, the half with fewest bytes loses them. A flow
/// with many bytes in a long capture never loses its slot, and memory is bounded. Flows without a slot are
/// counted together as "the rest". A flow that gets a slot again starts at 0.
const MOST_SLOTS: usize = 512;

/// The fields that identify a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FiveTuple {
    source: [u8; 16],
    destination: [u8; 16],
    source_port: u16,
    destination_port: u16,
    protocol: u8,
    /// Only used for packets without addresses.
    ethertype: u16,
}

impl FiveTuple {
    pub(super) fn of(key: &FlowKey) -> FiveTuple {
        FiveTuple {
            source: key.source,
            destination: key.destination,
            source_port: key.source_port,
            destination_port: key.destination_port,
            protocol: key.protocol,
            ethertype: key.ethertype,
        }
    }

    /// Returns a name such as `192.0.2.7:https → 10.0.0.5:51234`.
    pub(super) fn name(&self) -> String {
        if self.source == [0; 16] && self.destination == [0; 16] {
            return match self.ethertype {
                0 => "unreadable packets".into(),
                0x0806 => "ARP".into(),
                other => format!("EtherType {other:#06x}"),
            };
        }
        // The addresses of encrypted 802.11 frames are those of the stations.
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

    /// Returns the name of the transport protocol.
    pub(super) fn protocol(&self) -> String {
        protocol(self.protocol)
    }
}

/// Formats a station's address, such as `02:00:5e:10:00:01`.
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

/// A flow that has a slot at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) slot: FlowSlot,
    pub(super) tuple: FiveTuple,
    pub(super) bytes: u64,
    pub(super) packets: u64,
}

/// The table of flows.
#[derive(Default)]
pub(super) struct FlowTable {
    by_tuple: HashMap<FiveTuple, u32>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// The number of times that a flow lost its slot.
    displaced: u64,
}

impl FlowTable {
    /// Counts a packet, and returns the slot of its flow.
    pub(super) fn count(&mut self, key: &FlowKey, bytes: u32) -> FlowSlot {
        let tuple = FiveTuple::of(key);
        let slot = match self.by_tuple.get(&tuple) {
            Some(&slot) => slot,
            None => self.admit(tuple),
        };
        let flow = &mut self.flows[slot as usize];
        flow.bytes += u64::from(bytes);
        flow.packets += 1;
        FlowSlot {
            index: slot,
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
        if self.free.is_empty() && self.flows.len() == MOST_SLOTS {
            self.make_room();
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                let former = &mut self.flows[slot as usize];
                flow.generation = former.generation + 1;
                *former = flow;
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
        by_bytes.truncate(MOST_SLOTS / 2);
        for &slot in &by_bytes {
            self.by_tuple.remove(&self.flows[slot as usize].tuple);
        }
        self.displaced += by_bytes.len() as u64;
        self.free = by_bytes;
    }

    /// Returns the flows that have a slot, sorted by bytes in descending order.
    pub(super) fn placed(&self) -> Vec<Placed> {
        let mut placed: Vec<Placed> = self
            .by_tuple
            .values()
            .map(|&slot| {
                let flow = self.flows[slot as usize];
                Placed {
                    slot: FlowSlot {
                        index: slot,
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

    /// Returns the number of times that a flow lost its slot.
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
    fn large_flows_keep_their_slots_beside_any_number_of_small_ones() {
        let mut table = FlowTable::default();
        for round in 0..50_000u32 {
            table.count(&key(1), 1500);
            table.count(&key(2 + (round % 60_000) as u16), 40);
        }
        let placed = table.placed();
        assert!(placed.len() <= MOST_SLOTS);
        assert_eq!(placed[0].tuple, FiveTuple::of(&key(1)));
        assert_eq!((placed[0].packets, placed[0].slot.generation), (50_000, 0));
        assert!(table.displaced() > 49_000);
        let slots: std::collections::HashSet<u32> = placed.iter().map(|flow| flow.slot.index).collect();
        assert_eq!(slots.len(), placed.len(), "no slot is assigned twice");
    }
}
