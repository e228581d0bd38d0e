//! Finds out whether the identification of a super-packet's IPv4 packets was counted up or constant.
//!
//! Linux merges both kinds: packets whose identification counts up, and packets with a constant
//! identification if fragmentation is forbidden (`inet_gro_flush`). Its own segmentation restores the
//! original values by a flag (`SKB_GSO_TCP_FIXEDID`), which is not in the virtio header. These rules replace
//! the flag:
//!
//! * If fragments are allowed, the identification counts up.
//! * If fragments are forbidden and the identification is zero, it is constant. Hosts that do not count send
//!   zero (RFC 6864 section 4.1). A host that counts and has just reached zero gets zeros for one
//!   super-packet. They have the same meaning.
//! * If a super-packet begins with the same identification as the previous one of its connection, it is
//!   constant.
//!
//! The first super-packet of a connection with another constant is therefore counted up. So are all
//! super-packets of a host that uses a new constant for each of them. Receivers do not mind: the
//! identification has no meaning in a packet that can't be fragmented.

/// The number of slots for connections. A connection that loses its slot to another one counts as new.
const SLOTS: usize = 1024;

/// The IPv4 flag DF.
const DONT_FRAGMENT: u8 = 0x40;

/// The first identification of a connection's last super-packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// A part of the connection's hash. It is zero in a slot that was never used.
    connection: u32,
    identification: u16,
}

/// Remembers the first identification of the last super-packet of each connection.
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
    /// Returns whether the packets merged into `packet` had a constant identification. `packet` is an IPv4
    /// super-packet from its IP header on. Remembers its identification.
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

/// Returns a hash of addresses, protocol and ports. An attacker who takes another connection's slot gains
/// nothing.
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
        // Other protocols have fields here that may differ from packet to packet.
        _ => 0,
    };
    // The odd constants of SplitMix64's finalizer.
    let mut hash = (word(12) << 32 | word(16)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^= hash >> 31 ^ ports << 8 ^ u64::from(protocol);
    hash = hash.wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 29
}
