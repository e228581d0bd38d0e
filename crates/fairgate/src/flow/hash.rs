//! A keyed hash of the flow key. An outsider who does not know the key can't cause collisions.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::flow::FlowKey;

/// The hash of a packet's flow under the driver's key: 64 bits, computed once per packet when its headers are
/// read. Disciplines reduce it to their number of buckets, each with its own salt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowHash(u64);

impl FlowHash {
    /// The hash of a packet without a flow.
    pub const NONE: FlowHash = FlowHash(0);

    /// Creates a hash that was computed elsewhere. It must be keyed, and uniform over all 64 bits.
    pub const fn from_raw(hash: u64) -> FlowHash {
        FlowHash(hash)
    }

    /// Returns all 64 bits.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Returns one of `buckets` under a salt. Flows that collide under one salt are separated under another.
    /// It needs no division (Lemire 2016).
    #[inline]
    pub fn bucket(self, salt: u64, buckets: u32) -> u32 {
        ((u128::from(self.salted(salt)) * u128::from(buckets)) >> 64) as u32
    }

    /// Mixes the hash with a salt. The mapping is one to one, and every bit of both affects the high bits of
    /// the result.
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
    /// Creates a hasher with a key. The key is random in a live system, and comes from the seed in a
    /// simulation.
    pub fn new(key: [u64; 2]) -> FlowHasher {
        FlowHasher {
            hasher: SipHasher13::new_with_keys(key[0], key[1]),
        }
    }

    /// Returns the hash of the five-tuple: addresses, ports, protocol. Packets without ports (fragments, ESP)
    /// are distinguished by their IPv6 flow label instead (RFC 6438). With ports, the label adds nothing, and
    /// may change during a connection.
    #[inline]
    pub fn five_tuple(&self, key: &FlowKey) -> FlowHash {
        let ports = u64::from(key.source_port) << 16 | u64::from(key.destination_port);
        let finer = if ports == 0 {
            u64::from(key.flow_label)
        } else {
            ports
        };
        // One write of all bytes takes half the instructions of three.
        let mut bytes = [0; 40];
        bytes[..16].copy_from_slice(&key.source);
        bytes[16..32].copy_from_slice(&key.destination);
        bytes[32..].copy_from_slice(&(finer << 16 | u64::from(key.protocol)).to_le_bytes());
        let mut hasher = self.hasher;
        hasher.write(&bytes);
        FlowHash(hasher.finish())
    }
}
