//! The granularity of flows: which header fields distinguish them.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::flow::{FlowHash, FlowKey};
use crate::pool::{PacketId, Pool};

/// The header fields that are equal in all packets of a flow (Bonald, Muscariello & Ostallo 2011, section
/// III-A: "The exact definition depends on the desired degree of traffic aggregation").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
}

crate::words!(FlowBy {
    "five-tuple" => FlowBy::FiveTuple,
    "source" => FlowBy::Source,
    "destination" => FlowBy::Destination,
    "source-port" => FlowBy::SourcePort,
    "destination-port" => FlowBy::DestinationPort,
    "host-pair" => FlowBy::HostPair,
});

/// Hashes packets to flows with its own key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowByHasher {
    by: FlowBy,
    hasher: SipHasher13,
}

impl FlowByHasher {
    pub(crate) fn new(by: FlowBy, seed: u64) -> FlowByHasher {
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
        }
        FlowHash::from_raw(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    /// Returns the flow of a packet from 10.0.0.`hosts.0` to 10.0.0.`hosts.1` with these ports.
    fn flow(by: FlowBy, hosts: (u8, u8), ports: (u16, u16)) -> FlowHash {
        let mut pool = Pool::with_capacity(1);
        let key = FlowKey::of(
            [10, 0, 0, hosts.0].into(),
            [10, 0, 0, hosts.1].into(),
            17,
            ports.0,
            ports.1,
        );
        let id = pool.insert_with_headers(Packet::of_length(100), key).unwrap();
        FlowByHasher::new(by, 1).flow(id, &pool)
    }

    #[test]
    fn a_flow_depends_on_its_fields_only() {
        let base = ((1, 2), (3, 4));
        // Whether source, destination, source port and destination port matter.
        let fields = [
            (FlowBy::Source, [true, false, false, false]),
            (FlowBy::Destination, [false, true, false, false]),
            (FlowBy::SourcePort, [true, false, true, false]),
            (FlowBy::DestinationPort, [false, true, false, true]),
            (FlowBy::HostPair, [true, true, false, false]),
        ];
        for (by, matters) in fields {
            let changed = [
                ((9, 2), (3, 4)),
                ((1, 9), (3, 4)),
                ((1, 2), (9, 4)),
                ((1, 2), (3, 9)),
            ];
            for (changed, matters) in changed.into_iter().zip(matters) {
                let is_other = flow(by, changed.0, changed.1) != flow(by, base.0, base.1);
                assert_eq!(is_other, matters, "{by:?}: {changed:?}");
            }
        }
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
