//! A keyed hash of the flow key, so that an outsider who does not know the key can't aim collisions.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::flow::FlowKey;

/// The hash of a packet's flow under the driver's key: 64 bits, computed once for each packet by whoever reads its
/// headers. Disciplines reduce it to as many buckets as they have, each with a salt of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowHash(u64);

impl FlowHash {
    /// Of a packet without a flow.
    pub const NONE: FlowHash = FlowHash(0);

    /// A hash computed elsewhere; it must be uniform over all 64 bits and keyed.
    pub const fn from_raw(hash: u64) -> FlowHash {
        FlowHash(hash)
    }

    /// All 64 bits.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// One of `buckets`, under a salt: two flows that meet under one salt part under the next. Without a division (Lemire 2016).
    #[inline]
    pub fn bucket(self, salt: u64, buckets: u32) -> u32 {
        ((u128::from(self.salted(salt)) * u128::from(buckets)) >> 64) as u32
    }

    /// The hash under a salt, one to one: every bit of the two decides over the high ones of the result.
    #[inline]
    pub(crate) fn salted(self, salt: u64) -> u64 {
        let mut mixed = (self.0 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 32;
        mixed.wrapping_mul(0xd6e8_feb8_6659_fd93)
    }
}

/// Hashes flow keys with SipHash-1-3 under a 128-bit key.
#[derive(Clone, Copy, Debug)]
pub struct FlowHasher {
    hasher: SipHasher13,
}

impl FlowHasher {
    /// A hasher under a key: random in a live system, from the seed in a simulation.
    pub fn new(key: [u64; 2]) -> FlowHasher {
        FlowHasher {
            hasher: SipHasher13::new_with_keys(key[0], key[1]),
        }
    }

    /// The hash of the five-tuple: addresses, ports, protocol. Packets without ports (fragments, ESP) are told apart
    /// by their IPv6 flow label instead (RFC 6438); with ports the label adds nothing, and may change under a
    /// connection.
    #[inline]
    pub fn five_tuple(&self, key: &FlowKey) -> FlowHash {
        let mut hasher = self.hasher;
        hasher.write(&key.source);
        hasher.write(&key.destination);
        let ports = u64::from(key.source_port) << 16 | u64::from(key.destination_port);
        let finer = if ports == 0 {
            u64::from(key.flow_label)
        } else {
            ports
        };
        hasher.write_u64(finer << 16 | u64::from(key.protocol));
        FlowHash(hasher.finish())
    }
}
