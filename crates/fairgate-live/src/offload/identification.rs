//! Whether the IPv4 packets of a super-packet counted their identification, or all carried the same one.
//!
//! Linux merges both: packets whose identification counts up, and, where fragmentation is forbidden, packets
//! where it stays the same (`inet_gro_flush`). Its own segmentation restores what it was; the flag that it
//! does so by (`SKB_GSO_TCP_FIXEDID`) is not in the virtio header. What is left to know:
//!
//! * Where fragments are allowed, it counts.
//! * Zero where fragmentation is forbidden is what hosts send that do not count (RFC 6864 section 4.1). One
//!   that counts and has just come to zero gets zeros for one super-packet, which mean the same.
//! * A connection whose super-packet begins with the identification that the one before began with does not
//!   count.
//!
//! The first super-packet of a connection with another constant counts, therefore, and so do all where the
//! constant is a new one for each of them. Receivers do not mind: the identification of a packet that can't
//! be cut into fragments has no meaning.

/// Slots for connections. A connection that loses its slot to another one is taken for a new one.
const SLOTS: usize = 1024;

/// The IPv4 flag.
const DONT_FRAGMENT: u8 = 0x40;

/// What the last super-packet of a connection began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Part of the connection's hash; zero in a slot that was never used.
    connection: u32,
    identification: u16,
}

/// What the last super-packets of connections began with.
#[derive(Debug)]
pub(crate) struct Identifications {
    seen: Box<[Seen; SLOTS]>,
}

impl Default for Identifications {
    fn default() -> Identifications {
        Identifications {
            seen: Box::new([Seen::default(); SLOTS]),
        }
    }
}

impl Identifications {
    /// Whether the packets that `packet`, an IPv4 super-packet from its header on, stands for carried one and
    /// the same identification.
    pub(super) fn is_constant(&mut self, packet: &[u8]) -> bool {
        let identification = u16::from_be_bytes([packet[4], packet[5]]);
        if packet[6] & DONT_FRAGMENT == 0 {
            return false;
        }
        if identification == 0 {
            return true;
        }
        let hash = connection(packet);
        let now = Seen {
            connection: (hash >> 32) as u32 | 1,
            identification,
        };
        let slot = &mut self.seen[hash as usize % SLOTS];
        std::mem::replace(slot, now) == now
    }
}

/// A hash of addresses, protocol and ports. Whoever aims at another connection's slot gains nothing.
fn connection(packet: &[u8]) -> u64 {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let word = |at: usize| {
        packet[at..at + 4]
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    let payload = usize::from(packet[0] & 0x0f) * 4;
    let protocol = packet[9];
    let ports = match protocol {
        TCP | UDP => word(payload),
        // What else lies there may differ from packet to packet.
        _ => 0,
    };
    // Odd numbers without a pattern: those of SplitMix64's finalizer.
    let mut hash = (word(12) << 32 | word(16)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^= hash >> 31 ^ ports << 8 ^ u64::from(protocol);
    hash = hash.wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 29
}
