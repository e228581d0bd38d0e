//! Captures of what interfaces send, read back by our own reader and by an independent one.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use fairgate_capture::{Capture, LinkType};
use fairgate_config::Document;
use fairgate_sim::{Error, Results, Scenario, Simulation};

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read(text: &str) -> Result<Scenario, fairgate_config::FileError> {
    Scenario::read(&Document::parse("folder/test.toml", text).expect("the queues are valid"))
}

/// Runs the scenario. Returns its results and its captures.
fn run(text: &str) -> (Results, Vec<Vec<u8>>) {
    let scenario = read(text).expect("the file has no mistakes");
    let mut simulation = Simulation::new(&scenario).unwrap();
    let files: Vec<Memory> = scenario.captures.iter().map(|_| Memory::default()).collect();
    for (number, file) in files.iter().enumerate() {
        simulation.capture(number, file.clone()).unwrap();
    }
    let results = simulation.run().unwrap();
    (
        results,
        files.iter().map(|file| file.0.lock().unwrap().clone()).collect(),
    )
}

/// A packet of a capture.
struct Packet {
    nanos: u64,
    length: u32,
    bytes: Vec<u8>,
}

fn packets(file: &[u8]) -> Vec<Packet> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    std::fs::write(&path, file).unwrap();
    let mut capture = Capture::open(&path).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = capture.next_record().unwrap() {
        assert_eq!(record.link, LinkType::RAW_IP);
        packets.push(Packet {
            nanos: record.time.nanos(),
            length: record.length,
            bytes: record.data.to_vec(),
        });
    }
    packets
}

const NETWORK: &str = r#"
[simulate]
duration = "3s"

[[simulate.node]]
name = "a"
address = "ADDRESS_A"
[[simulate.node]]
name = "b"
address = "ADDRESS_B"

[[simulate.link]]
a = "a"
b = "b"
rate = "10mbit"
delay = "10ms"

[[simulate.flow]]
name = "download"
from = "a"
to = "b"
ecn = true
tcp = { size = "100kb", transfers = 1 }

[[simulate.flow]]
name = "call"
from = "a"
to = "b"
start = "1s"
dscp = 46
port = 5060
udp = { rate = "64kbit", size = "160b" }

[[simulate.flow]]
name = "ping"
from = "a"
to = "b"
start = "1s"
ping = { interval = "100ms", size = "56b" }

[[simulate.capture]]
interface = "a->b"
file = "there.pcapng"

[[simulate.capture]]
interface = "b->a"
file = "back.pcapng"
snap = 60
"#;

fn network(address_a: &str, address_b: &str) -> String {
    NETWORK
        .replace("ADDRESS_A", address_a)
        .replace("ADDRESS_B", address_b)
}

#[test]
fn each_packet_is_there_with_its_headers() {
    let (results, files) = run(&network("192.0.2.1", "198.51.100.2"));
    let [there, back] = [&files[0], &files[1]].map(|file| packets(file));
    assert_eq!(there.len() as u64, results.interfaces[0].transmitted);
    assert_eq!(back.len() as u64, results.interfaces[1].transmitted);
    let bytes: u64 = there.iter().map(|packet| u64::from(packet.length) + 14).sum();
    assert_eq!(bytes, results.interfaces[0].transmitted_bytes);
    assert!(there.windows(2).all(|pair| pair[0].nanos <= pair[1].nanos));

    let (mut payload, mut calls, mut pings, mut next) = (0, 0, 0, 1);
    for packet in &there {
        assert_eq!(packet.bytes.len(), packet.length as usize);
        let sliced = SlicedPacket::from_ip(&packet.bytes).expect("valid headers");
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else {
            panic!("this is no IPv4 packet")
        };
        let header = ip.header();
        assert_eq!(
            (header.source(), header.destination()),
            ([192, 0, 2, 1], [198, 51, 100, 2])
        );
        assert_eq!(
            header.header_checksum(),
            header.to_header().calc_header_checksum()
        );
        match sliced.transport.expect("a known transport") {
            TransportSlice::Tcp(tcp) => {
                let expected = tcp
                    .calc_checksum_ipv4(header.source(), header.destination())
                    .unwrap();
                assert_eq!(tcp.checksum(), expected);
                if tcp.syn() {
                    assert_eq!((tcp.sequence_number(), tcp.ack()), (0, false));
                    assert_eq!(packet.nanos, 0, "the first packet is sent at once");
                } else if !tcp.payload().is_empty() {
                    assert_eq!(tcp.sequence_number(), next, "nothing is lost or repeated");
                    assert_eq!(header.ecn().value(), 2, "ECT(0)");
                    next += tcp.payload().len() as u32;
                    payload += tcp.payload().len();
                }
            }
            TransportSlice::Udp(udp) => {
                assert_eq!((udp.destination_port(), udp.payload().len()), (5060, 160));
                assert_eq!(header.dcp().value(), 46);
                calls += 1;
            }
            TransportSlice::Icmpv4(icmp) => {
                assert!(matches!(icmp.icmp_type(), etherparse::Icmpv4Type::EchoRequest(_)));
                pings += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(payload, 102_400, "one transfer of 100 kB");
    assert_eq!((calls, pings), (100, 20));

    for packet in &back {
        assert_eq!(
            packet.bytes.len() as u32,
            packet.length.min(60),
            "the rest is not written"
        );
    }
    // The first packet that comes back answers the SYN, 10 ms and the transmission of 74 bytes later.
    assert_eq!(back[0].nanos, 10_059_200);
    let headers = SlicedPacket::from_ip(&back[0].bytes).expect("valid headers");
    let Some(TransportSlice::Tcp(tcp)) = headers.transport else {
        panic!("this is no TCP packet")
    };
    assert!(tcp.syn() && tcp.ack());
    assert_eq!(tcp.acknowledgment_number(), 1);
}

#[test]
fn packets_of_ipv6_have_its_headers() {
    let (results, files) = run(&network("2001:db8::1", "2001:db8::2"));
    let there = packets(&files[0]);
    assert_eq!(there.len() as u64, results.interfaces[0].transmitted);
    let mut kinds = std::collections::BTreeSet::new();
    for packet in &there {
        let sliced = SlicedPacket::from_ip(&packet.bytes).expect("valid headers");
        let Some(NetSlice::Ipv6(ip)) = &sliced.net else {
            panic!("this is no IPv6 packet")
        };
        assert_eq!(ip.header().hop_limit(), 64);
        kinds.insert(match sliced.transport {
            Some(TransportSlice::Tcp(_)) => "tcp",
            Some(TransportSlice::Udp(_)) => "udp",
            Some(TransportSlice::Icmpv6(_)) => "icmp",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(Vec::from_iter(kinds), ["icmp", "tcp", "udp"]);
}

#[test]
fn a_capture_changes_no_results() {
    let text = network("192.0.2.1", "192.0.2.2");
    let (with, _) = run(&text);
    let mut scenario = read(&text).unwrap();
    scenario.captures.clear();
    assert_eq!(with, Simulation::new(&scenario).unwrap().run().unwrap());
}

#[test]
fn a_full_disk_ends_the_run_with_an_error() {
    let scenario = read(&network("192.0.2.1", "192.0.2.2")).unwrap();
    let mut simulation = Simulation::new(&scenario).unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    simulation.capture(0, io::BufWriter::new(full)).unwrap();
    match simulation.run() {
        Err(Error::Capture { interface, what }) => {
            assert_eq!(interface, "a->b");
            assert!(what.contains("No space left"), "{what}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn mistakes_are_reported_at_their_places() {
    let good = network("192.0.2.1", "192.0.2.2");
    for (from, to, place, message) in [
        (
            "interface = \"b->a\"",
            "interface = \"a->c\"",
            "\"a->c\"",
            "there is no interface `a->c`",
        ),
        (
            "interface = \"b->a\"",
            "interface = \"a->b\"",
            "\"a->b\"",
            "a->b has two captures",
        ),
        (
            "back.pcapng",
            "there.pcapng",
            "\"there.pcapng\"",
            "another capture is written to `there.pcapng`, too",
        ),
        (
            "back.pcapng",
            "back.pcap",
            "\"back.pcap\"",
            "`back.pcap` does not end in .pcapng, the format that is written",
        ),
        (
            "snap = 60",
            "snap = 19",
            "19",
            "`snap` is 19, but must be 20 to 65555, or none",
        ),
    ] {
        let text = good.replace(from, to);
        let error = read(&text).expect_err(to);
        let problem = &error.problems()[0];
        assert_eq!(
            (&text[problem.span.clone()], problem.message.as_str()),
            (place, message)
        );
        assert!(!problem.help.is_empty());
    }
    let file = &read(&good).unwrap().captures[0].file;
    assert_eq!(
        file,
        std::path::Path::new("folder/there.pcapng"),
        "the path begins at the folder of the file"
    );
}
