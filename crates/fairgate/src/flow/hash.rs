//! A keyed hash of the flow key. An outsider who does not know the key can't cause collisions.

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

/// The state of SipHash-1-3 (Aumasson and Bernstein 2012) between words of the message.
///
/// The words are taken in one by one, without the buffer that a hasher of any bytes needs: that is a third
/// fewer instructions for a flow, and two thirds for a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sip([u64; 4]);

impl Sip {
    pub(crate) fn new(key: [u64; 2]) -> Sip {
        Sip([
            key[0] ^ 0x736f_6d65_7073_6575,
            key[1] ^ 0x646f_7261_6e64_6f6d,
            key[0] ^ 0x6c79_6765_6e65_7261,
            key[1] ^ 0x7465_6462_7974_6573,
        ])
    }

    #[inline(always)]
    fn round(self) -> Sip {
        let Sip([mut a, mut b, mut c, mut d]) = self;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        Sip([a, b, c, d])
    }

    /// Takes in eight bytes of the message.
    #[inline(always)]
    pub(crate) fn word(self, word: u64) -> Sip {
        let Sip([a, b, c, d]) = self;
        let Sip([a, b, c, d]) = Sip([a, b, c, d ^ word]).round();
        Sip([a ^ word, b, c, d])
    }

    /// Returns the hash of a message of `length` bytes, a multiple of eight that all were taken in.
    #[inline(always)]
    pub(crate) fn finish(self, length: u64) -> u64 {
        let Sip([a, b, c, d]) = self.word(length << 56);
        let Sip([a, b, c, d]) = Sip([a, b, c ^ 0xff, d]).round().round().round();
        a ^ b ^ c ^ d
    }
}

/// Hashes flow keys with SipHash-1-3 under a 128-bit key.
#[derive(Clone, Copy, Debug)]
pub struct FlowHasher {
    start: Sip,
    /// The state behind the first half of an IPv4 address, which is zero.
    behind_zero: Sip,
}

impl FlowHasher {
    /// Creates a hasher with a key. The key is random in a live system, and comes from the seed in a
    /// simulation.
    pub fn new(key: [u64; 2]) -> FlowHasher {
        let start = Sip::new(key);
        FlowHasher {
            start,
            behind_zero: start.word(0),
        }
    }

    /// Returns the hash of the five-tuple: addresses, ports, protocol. Packets without ports (fragments, ESP)
    /// are distinguished by their IPv6 flow label instead (RFC 6438). With ports, the label adds nothing, and
    /// may change during a connection.
    // Always inlined: often most of the key is in registers, or known to be zero.
    #[inline(always)]
    pub fn five_tuple(&self, key: &FlowKey) -> FlowHash {
        let ports = u64::from(key.source_port) << 16 | u64::from(key.destination_port);
        let finer = if ports == 0 {
            u64::from(key.flow_label)
        } else {
            ports
        };
        let [source, destination] = [key.source, key.destination].map(halves);
        let behind_first = match source[0] {
            0 => self.behind_zero,
            first => self.start.word(first),
        };
        let sip = behind_first.word(source[1]).word(destination[0]);
        let sip = sip
            .word(destination[1])
            .word(finer << 16 | u64::from(key.protocol));
        FlowHash(sip.finish(40))
    }
}

/// Returns the two words of an address.
#[inline(always)]
fn halves(address: [u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(address);
    [both as u64, (both >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use core::hash::Hasher;

    use proptest::prelude::*;
    use siphasher::sip::SipHasher13;

    use super::*;

    proptest! {
        /// IPv4 and IPv6, with ports and with a flow label.
        #[test]
        fn the_hash_is_siphash_of_forty_bytes(
            hash_key: [u64; 2],
            mut source: [u8; 16],
            destination: [u8; 16],
            is_mapped: bool,
            ports: Option<(u16, u16)>,
            flow_label in 0u32..1 << 20,
            protocol: u8,
        ) {
            if is_mapped {
                source[..10].fill(0);
            }
            let (source_port, destination_port) = ports.unwrap_or_default();
            let key = FlowKey {
                source,
                destination,
                source_port,
                destination_port,
                flow_label,
                protocol,
                ..FlowKey::default()
            };
            let finer = match (source_port, destination_port) {
                (0, 0) => u64::from(flow_label),
                (source, destination) => u64::from(source) << 16 | u64::from(destination),
            };
            let mut hasher = SipHasher13::new_with_keys(hash_key[0], hash_key[1]);
            hasher.write(&source);
            hasher.write(&destination);
            hasher.write_u64(finer << 16 | u64::from(protocol));
            prop_assert_eq!(FlowHasher::new(hash_key).five_tuple(&key).raw(), hasher.finish());
        }
    }
}
