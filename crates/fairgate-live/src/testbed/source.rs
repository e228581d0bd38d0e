//! A source of frames, which sends them as fast as one thread can.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::checksum::Sum;
use crate::error::LiveError;
use crate::outgoing::Outgoing;
use crate::sys::batch::BATCH;
use crate::sys::interface::Interface;
use crate::sys::layout::Layout;
use crate::sys::socket::PacketSocket;
use crate::testbed::error::TestbedError;
use crate::testbed::network::Network;

/// The length of the smallest Ethernet frame without its checksum. On the link it has 64 bytes.
const SMALLEST: usize = 60;

/// The addresses and the type of an Ethernet frame.
const ETHERNET: usize = 14;

/// The longest malformed frame. Longer ones would be sent less often.
const LONGEST: usize = 160;

/// Types that the dissector reads on from: IPv4, IPv6, VLAN tags, PPPoE, MPLS, ARP, and a length (802.3).
const TYPES: [u16; 8] = [0x0800, 0x86dd, 0x8100, 0x88a8, 0x8864, 0x8847, 0x0806, 0x0026];

/// Protocols behind which the dissector looks: TCP, UDP, ICMP, IPv4 and IPv6 in IP, GRE, ESP, and the
/// extension headers of IPv6.
const PROTOCOLS: [u8; 12] = [6, 17, 1, 58, 4, 41, 47, 50, 0, 43, 44, 60];

/// What a source sends. All frames go to a MAC address that no host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// UDP of 64 bytes, of so many flows in turn, at least one.
    Flows(u16),
    /// UDP of 64 bytes. Each is of a new flow, by random addresses and ports.
    NewFlows,
    /// Frames of 14 to 160 bytes that begin as a frame may begin: with one of the types and protocols that
    /// are dissected. The other bytes are random: versions, lengths, offsets, further headers. So is the
    /// length of the frame.
    Malformed,
}

/// Makes frames, one after the other.
struct Maker {
    source: Source,
    next: u16,
    random: Xoshiro256PlusPlus,
}

impl Maker {
    fn new(source: Source, seed: u64) -> Maker {
        Maker {
            source,
            next: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Writes the next frame. Returns its length.
    fn write(&mut self, frame: &mut [u8; LONGEST]) -> usize {
        match self.source {
            Source::Flows(flows) => {
                udp(frame, [10, 77, 0, 1, 10, 77, 0, 2], [self.next, 9]);
                self.next = (self.next + 1) % flows.max(1);
                SMALLEST
            }
            Source::NewFlows => {
                let ports = self.random.next_u64();
                let addresses = self.random.next_u64().to_be_bytes();
                udp(frame, addresses, [ports as u16, (ports >> 16) as u16]);
                SMALLEST
            }
            Source::Malformed => self.malformed(frame),
        }
    }

    fn malformed(&mut self, frame: &mut [u8; LONGEST]) -> usize {
        self.random.fill_bytes(frame);
        let choice = self.random.next_u64();
        let pick = |shift: u32, of: usize| (choice >> shift) as usize % of;
        addresses(frame);
        // One of sixteen has a random type.
        let kind = TYPES[pick(0, TYPES.len())];
        if pick(8, 16) > 0 {
            frame[12..ETHERNET].copy_from_slice(&kind.to_be_bytes());
        }
        // Half of the IP headers have the version of the type, and a protocol that is read.
        if pick(12, 2) > 0 {
            let protocol = PROTOCOLS[pick(16, PROTOCOLS.len())];
            match kind {
                0x0800 => (frame[14], frame[23]) = (0x45 | (frame[14] & 0xf), protocol),
                0x86dd => (frame[14], frame[20]) = (0x60, protocol),
                _ => {}
            }
        }
        ETHERNET + pick(24, LONGEST - ETHERNET + 1)
    }
}

/// The MAC addresses of the sink and the source. No host has them.
fn addresses(frame: &mut [u8]) {
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0xfe]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0xfd]);
}

/// Writes a UDP frame of [`SMALLEST`] bytes. `between` has the source address and the destination address.
fn udp(frame: &mut [u8; LONGEST], between: [u8; 8], [source, destination]: [u16; 2]) {
    addresses(frame);
    frame[12..ETHERNET].copy_from_slice(&[0x08, 0x00]);
    let ip = &mut frame[ETHERNET..SMALLEST];
    ip.fill(0);
    ip[..4].copy_from_slice(&[0x45, 0, 0, (SMALLEST - ETHERNET) as u8]);
    ip[8..10].copy_from_slice(&[64, 17]);
    ip[12..20].copy_from_slice(&between);
    ip[20..22].copy_from_slice(&source.to_be_bytes());
    ip[22..24].copy_from_slice(&destination.to_be_bytes());
    ip[24..26].copy_from_slice(&((SMALLEST - ETHERNET - 20) as u16).to_be_bytes());
    // The kernel's bridge drops packets whose checksum is wrong, if it shows them to netfilter.
    let sum = Sum::default().add(&ip[..20]).finish();
    ip[10..12].copy_from_slice(&sum);
}

/// Sends frames from the left host while `work` runs. Returns how many it sent, and what `work` returned.
///
/// # Errors
/// Fails if the host can't send, or if `work` fails.
pub(crate) fn while_sending<T>(
    network: &Network,
    source: Source,
    work: impl FnOnce() -> Result<T, TestbedError>,
) -> Result<(u64, T), TestbedError> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| network.left.enter(|| send(source, &done))?);
        let result = work();
        done.store(true, Ordering::Relaxed);
        let sent = sender
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((sent, result?))
    })
}

/// Sends frames from the interface `eth0` of this namespace until `done` is set. Returns their number.
fn send(source: Source, done: &AtomicBool) -> Result<u64, TestbedError> {
    let interface = Interface::lookup("eth0").map_err(LiveError::unusable("eth0"))?;
    let layout = Layout::new(LONGEST, 1).expect("small frames fit a slot");
    let open = LiveError::system("opening a packet socket for the source");
    let mut socket = PacketSocket::open(&interface, layout).map_err(open)?;
    let mut maker = Maker::new(source, 1);
    let mut made = [([0; LONGEST], 0); BATCH];
    let mut sent = 0;
    while !done.load(Ordering::Relaxed) {
        for (frame, length) in &mut made {
            *length = maker.write(frame);
        }
        // A frame that the kernel refuses and those behind it are not sent, and not counted.
        let batch = made
            .iter()
            .map(|(frame, length)| Outgoing::whole(&frame[..*length]));
        let (some, _full) = socket.send(batch);
        sent += some as u64;
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use fairgate::flow::{LinkType, dissect_tunnelled};

    use super::*;

    /// The addresses and the ports of a UDP frame.
    fn flow(maker: &mut Maker) -> Vec<u8> {
        let mut frame = [0; LONGEST];
        assert_eq!(maker.write(&mut frame), SMALLEST);
        frame[26..38].to_vec()
    }

    #[test]
    fn flows_come_in_turn_and_a_new_flow_comes_once() {
        let mut three = Maker::new(Source::Flows(3), 1);
        let flows: Vec<_> = (0..6).map(|_| flow(&mut three)).collect();
        assert_eq!(flows[..3], flows[3..]);
        assert_eq!(flows.iter().collect::<HashSet<_>>().len(), 3);
        let mut new = Maker::new(Source::NewFlows, 1);
        let seen: HashSet<_> = (0..100_000).map(|_| flow(&mut new)).collect();
        assert_eq!(seen.len(), 100_000);
    }

    #[test]
    fn malformed_frames_have_all_types_protocols_and_lengths() {
        let mut maker = Maker::new(Source::Malformed, 1);
        let (mut types, mut protocols, mut lengths) = (HashSet::new(), HashSet::new(), HashSet::new());
        for _ in 0..100_000 {
            let mut frame = [0; LONGEST];
            let length = maker.write(&mut frame);
            lengths.insert(length);
            types.insert([frame[12], frame[13]]);
            protocols.insert(
                dissect_tunnelled(&frame[..length], LinkType::Ethernet)
                    .key
                    .protocol,
            );
        }
        assert_eq!(lengths, (ETHERNET..=LONGEST).collect());
        assert!(TYPES.iter().all(|kind| types.contains(&kind.to_be_bytes())));
        assert!([6, 17, 1, 58].iter().all(|protocol| protocols.contains(protocol)));
    }
}
