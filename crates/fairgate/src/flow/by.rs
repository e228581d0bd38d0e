//! The granularity of flows: which header fields distinguish them.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::flow::{FlowHash, FlowKey};
use crate::pool::{PacketId, Pool};

/// The header fields that are equal in all packets of a flow (Bonald, Muscariello & Ostallo 2011, section
/// III-A: "The exact definition depends on the desired degree of traffic aggregation").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowBy {
    /// Addresses, ports and protocol: the hash computed by the driver.
    #[default]
    FiveTuple,
    /// The source address: all packets that a host sends are one flow.
    Source,
    /// The destination address: all packets that a host receives are one flow.
    Destination,
    /// The source address, protocol and source port: all packets that an application sends are one flow.
    SourcePort,
    /// The destination address, protocol and destination port: all packets that an application receives are
    /// one flow.
    DestinationPort,
    /// Both addresses. The two directions are different flows.
    HostPair,
    /// The interface that received the packet ([`FlowKey::interface`]): all packets that come in on it are
    /// one flow.
    Interface,
    /// Both addresses and the IPv6 flow label (RFC 6437, RFC 6438): the fields that routers can read in
    /// fragments and encrypted packets, too. Without a flow label, addresses, ports and protocol.
    FlowLabel,
}

crate::words!(FlowBy {
    "five-tuple" => FlowBy::FiveTuple,
    "source" => FlowBy::Source,
    "destination" => FlowBy::Destination,
    "source-port" => FlowBy::SourcePort,
    "destination-port" => FlowBy::DestinationPort,
    "host-pair" => FlowBy::HostPair,
    "interface" => FlowBy::Interface,
    "flow-label" => FlowBy::FlowLabel,
});

/// Hashes packets to flows with its own key.
#[derive(Clone, Copy, Debug)]
pub struct FlowByHasher {
    by: FlowBy,
    hasher: SipHasher13,
}

impl FlowByHasher {
    /// Returns a hasher whose key comes from `seed`.
    pub fn new(by: FlowBy, seed: u64) -> FlowByHasher {
        FlowByHasher {
            by,
            hasher: SipHasher13::new_with_keys(seed, !seed),
        }
    }

    /// Returns the flow of a packet. Without header fields, this is the driver's hash.
    #[inline]
    pub(crate) fn flow(&self, id: PacketId, pool: &Pool) -> FlowHash {
        match self.by {
            FlowBy::FiveTuple => pool[id].flow,
            _ => pool.headers(id).map_or(pool[id].flow, |key| self.hash(key)),
        }
    }

    /// Returns the flow of a packet with these header fields. `flow` is the driver's hash.
    #[inline]
    pub fn of(&self, key: &FlowKey, flow: FlowHash) -> FlowHash {
        match self.by {
            FlowBy::FiveTuple => flow,
            _ => self.hash(key),
        }
    }

    // Not inlined, so that the common case keeps its registers.
    #[inline(never)]
    fn hash(&self, key: &FlowKey) -> FlowHash {
        let mut hasher = self.hasher;
        let application = |port: u16| u32::from(port) << 8 | u32::from(key.protocol);
        match self.by {
            FlowBy::FiveTuple => unreachable!("the driver's hash is used instead"),
            FlowBy::Source => hasher.write(&key.source),
            FlowBy::Destination => hasher.write(&key.destination),
            FlowBy::SourcePort => {
                hasher.write(&key.source);
                hasher.write_u32(application(key.source_port));
            }
            FlowBy::DestinationPort => {
                hasher.write(&key.destination);
                hasher.write_u32(application(key.destination_port));
            }
            FlowBy::HostPair => {
                hasher.write(&key.source);
                hasher.write(&key.destination);
            }
            FlowBy::Interface => hasher.write_u16(key.interface),
            FlowBy::FlowLabel => {
                hasher.write(&key.source);
                hasher.write(&key.destination);
                // The first number tells the two kinds of flows apart: a label has 20 bits and is not 0.
                hasher.write_u32(key.flow_label);
                if key.flow_label == 0 {
                    hasher.write_u32(application(key.source_port));
                    hasher.write_u16(key.destination_port);
                }
            }
        }
        FlowHash::from_raw(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    /// Returns the flow of a packet from 10.0.0.`hosts.0` to 10.0.0.`hosts.1` with these ports, received by
    /// this interface.
    fn flow(by: FlowBy, hosts: (u8, u8), ports: (u16, u16), interface: u16) -> FlowHash {
        let mut pool = Pool::with_capacity(1);
        let key = FlowKey::of(
            [10, 0, 0, hosts.0].into(),
            [10, 0, 0, hosts.1].into(),
            17,
            ports.0,
            ports.1,
        );
        let id = pool.insert((Packet::of_length(100), key)).unwrap();
        pool.received_by(id, interface);
        FlowByHasher::new(by, 1).flow(id, &pool)
    }

    #[test]
    fn a_flow_depends_on_its_fields_only() {
        let base = ((1, 2), (3, 4), 5);
        // Whether source, destination, source port, destination port and interface matter.
        let fields = [
            (FlowBy::Source, [true, false, false, false, false]),
            (FlowBy::Destination, [false, true, false, false, false]),
            (FlowBy::SourcePort, [true, false, true, false, false]),
            (FlowBy::DestinationPort, [false, true, false, true, false]),
            (FlowBy::HostPair, [true, true, false, false, false]),
            (FlowBy::Interface, [false, false, false, false, true]),
        ];
        for (by, matters) in fields {
            let changed = [
                ((9, 2), (3, 4), 5),
                ((1, 9), (3, 4), 5),
                ((1, 2), (9, 4), 5),
                ((1, 2), (3, 9), 5),
                ((1, 2), (3, 4), 9),
            ];
            for (changed, matters) in changed.into_iter().zip(matters) {
                let is_other = flow(by, changed.0, changed.1, changed.2) != flow(by, base.0, base.1, base.2);
                assert_eq!(is_other, matters, "{by:?}: {changed:?}");
            }
        }
    }

    #[test]
    fn a_flow_label_replaces_ports_and_protocol() {
        let hasher = FlowByHasher::new(FlowBy::FlowLabel, 1);
        let key = |label: u32, protocol: u8, ports: (u16, u16)| FlowKey {
            flow_label: label,
            ..FlowKey::of([1; 16].into(), [2; 16].into(), protocol, ports.0, ports.1)
        };
        let flow = |label, protocol, ports| hasher.hash(&key(label, protocol, ports));
        // A fragment has no ports, and an encrypted packet another protocol.
        assert_eq!(flow(7, 17, (3, 4)), flow(7, 17, (0, 0)));
        assert_eq!(flow(7, 17, (3, 4)), flow(7, 50, (0, 0)));
        assert_ne!(flow(7, 17, (3, 4)), flow(8, 17, (3, 4)));
        // Without a label all fields count.
        let base = flow(0, 17, (3, 4));
        for other in [
            flow(0, 6, (3, 4)),
            flow(0, 17, (9, 4)),
            flow(0, 17, (3, 9)),
            flow(7, 17, (3, 4)),
        ] {
            assert_ne!(other, base);
        }
        let mut swapped = key(7, 17, (3, 4));
        core::mem::swap(&mut swapped.source, &mut swapped.destination);
        assert_ne!(
            hasher.hash(&swapped),
            flow(7, 17, (3, 4)),
            "the directions are different flows"
        );
    }

    #[test]
    fn without_header_fields_the_drivers_hash_is_used() {
        let mut pool = Pool::with_capacity(1);
        let packet = Packet {
            flow: FlowHash::from_raw(42),
            ..Packet::of_length(100)
        };
        let id = pool.insert(packet).unwrap();
        for by in [FlowBy::FiveTuple, FlowBy::Source, FlowBy::HostPair] {
            assert_eq!(FlowByHasher::new(by, 1).flow(id, &pool), FlowHash::from_raw(42));
        }
    }

    #[test]
    fn the_hash_depends_on_the_seed() {
        let key = FlowKey::default();
        let of_seed = |seed| FlowByHasher::new(FlowBy::Source, seed).hash(&key);
        assert_ne!(of_seed(1), of_seed(2));
    }
}
