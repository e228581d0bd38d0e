//! Makes `examples/home.pcap.gz`: ten seconds of a home's traffic as it arrives at the access line, before
//! any queue.
//!
//! The traffic is synthetic and always the same, byte by byte, so that the README's command has an input.
//! Downstream, a call and a game send at regular intervals. Two downloads send a window of packets in each
//! round trip. A video arrives in chunks at the server's speed. Web pages arrive in bursts, and three torrent
//! peers send at random times. Upstream are the other direction of the call and acknowledgements.
//!
//! ```sh
//! cargo run -p fairgate-capture --example home -- examples/home.pcap.gz
//! ```

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;

use fairgate::Time;
use fairgate_capture::{CaptureWriter, LinkType};
use flate2::{Compression, GzBuilder};

const HOME: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 20);
const DURATION: u64 = 10_000_000;
const SECOND: u64 = 1_000_000;

/// The length of the Ethernet, IPv4 and TCP headers: the least that a capture program keeps.
const SNAP_LENGTH: u32 = 54;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The server's side of a flow.
#[derive(Clone, Copy)]
struct Peer {
    address: Ipv4Addr,
    protocol: u8,
    port: u16,
    home_port: u16,
    traffic_class: u8,
}

impl Peer {
    fn new(address: [u8; 4], protocol: u8, port: u16, home_port: u16) -> Peer {
        Peer {
            address: address.into(),
            protocol,
            port,
            home_port,
            traffic_class: 0,
        }
    }
}

/// One packet: its time in µs, its flow, whether it goes to the home, and the length of the frame in bytes.
type Packet = (u64, Peer, bool, u32);

/// A random number generator that needs no crate: xorshift64* (Vigna 2016).
struct Chance(u64);

impl Chance {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (high * end) >> 32
    }
}

/// Adds a train of full packets with a distance of `spacing` µs, and an acknowledgement for every second
/// packet.
fn train(packets: &mut Vec<Packet>, peer: Peer, start: u64, count: u64, spacing: u64) {
    for index in 0..count {
        let time = start + index * spacing;
        packets.push((time, peer, true, 1514));
        if index % 2 == 1 {
            packets.push((time + 600, peer, false, 54));
        }
    }
}

fn evening() -> Vec<Packet> {
    let mut chance = Chance(20_250_611);
    let mut packets = Vec::new();
    let call = Peer {
        traffic_class: 46 << 2,
        ..Peer::new([203, 0, 113, 5], UDP, 5004, 40_004)
    };
    for time in (0..DURATION).step_by(20_000) {
        packets.push((time + chance.below(1500), call, true, 214));
        packets.push((time + 9_000 + chance.below(300), call, false, 214));
    }
    let game = Peer::new([203, 0, 113, 77], UDP, 27_015, 50_015);
    for time in (3_000..DURATION).step_by(15_625) {
        packets.push((
            time + chance.below(900),
            game,
            true,
            90 + chance.below(120) as u32,
        ));
        packets.push((time + 5_000 + chance.below(900), game, false, 82));
    }
    let video = Peer::new([198, 51, 100, 9], TCP, 443, 50_443);
    for start in (SECOND..DURATION).step_by(3 * SECOND as usize) {
        for round in 0..9 {
            train(&mut packets, video, start + round * 21_000, 100, 150);
        }
    }
    for (index, round_trip) in [(0u64, 34_000), (1, 47_000)] {
        let peer = Peer::new([198, 51, 100, 30 + index as u8], TCP, 443, 50_500 + index as u16);
        let (mut time, mut window) = (500_000 + index * 1_300_000, 10);
        while time < DURATION {
            train(&mut packets, peer, time, window, 60);
            window = if window > 12 + chance.below(12) {
                window * 7 / 10
            } else {
                window + 1
            };
            time += round_trip + chance.below(2_000);
        }
    }
    for page in 0..6u64 {
        let start = 400_000 + page * 1_550_000 + chance.below(400_000);
        for object in 0..4u64 {
            let port = (51_000 + page * 8 + object) as u16;
            let peer = Peer::new([192, 0, 2, 10 + page as u8], TCP, 443, port);
            train(
                &mut packets,
                peer,
                start + object * 9_000,
                6 + chance.below(30),
                120,
            );
        }
    }
    for number in 0..3u64 {
        let peer = Peer::new(
            [203, 0, 113, 100 + number as u8],
            TCP,
            6881,
            52_000 + number as u16,
        );
        let mut time = 2 * SECOND + number * 250_000;
        while time < DURATION {
            train(&mut packets, peer, time, 1 + chance.below(3), 240);
            time += 9_000 + chance.below(16_000);
        }
    }
    packets.retain(|packet| packet.0 < DURATION);
    packets.sort_by_key(|packet| (packet.0, packet.1.port, packet.1.home_port, packet.2));
    packets
}

/// Returns Ethernet, IPv4, and TCP or UDP headers.
fn headers(&(_, peer, homewards, length): &Packet, sequence: u32) -> Vec<u8> {
    let ends = [(peer.address, peer.port), (HOME, peer.home_port)];
    let [(source, source_port), (destination, destination_port)] =
        if homewards { ends } else { [ends[1], ends[0]] };
    let ip_length = (length - 14) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend([0x45, peer.traffic_class]);
    frame.extend(ip_length.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 57, peer.protocol, 0, 0]);
    frame.extend(source.octets());
    frame.extend(destination.octets());
    let sum: u32 = frame[14..]
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(source_port.to_be_bytes());
    frame.extend(destination_port.to_be_bytes());
    if peer.protocol == UDP {
        frame.extend((ip_length - 20).to_be_bytes());
        frame.extend([0; 2]);
    } else {
        let (sequence, acknowledged) = if homewards { (sequence, 1) } else { (1, sequence) };
        frame.extend(sequence.to_be_bytes());
        frame.extend(u32::to_be_bytes(acknowledged));
        frame.extend([0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    }
    frame
}

fn main() -> io::Result<()> {
    let path = std::env::args()
        .nth(1)
        .ok_or_else(|| io::Error::other("give the file to write"))?;
    // The gzip header has no name and no time, so that the bytes are the same every time.
    let gzip = GzBuilder::new().write(File::create(path)?, Compression::best());
    let mut writer = CaptureWriter::new(gzip, LinkType::ETHERNET, SNAP_LENGTH)?;
    let mut sent = std::collections::HashMap::new();
    // 1 June 2025, 20:00 UTC.
    let evening_begins = 1_748_808_000 * SECOND;
    for packet in evening() {
        let sequence = sent.entry((packet.1.address, packet.1.home_port)).or_insert(1u32);
        writer.packet(
            Time::from_micros(evening_begins + packet.0),
            packet.3,
            &headers(&packet, *sequence),
        )?;
        if packet.2 && packet.1.protocol == TCP {
            *sequence += packet.3 - 54;
        }
    }
    writer.finish()?.finish()?;
    Ok(())
}
