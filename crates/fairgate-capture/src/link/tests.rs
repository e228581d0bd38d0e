//! Frames written by hand from the specifications of the link types. All of them contain the same packet.

use etherparse::PacketBuilder;
use fairgate::Time;
use fairgate::flow::{FlowKey, dissect_payload};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::record::Record;

/// Returns a TCP packet and its key.
fn packet(version_4: bool) -> (Vec<u8>, FlowKey) {
    let mut bytes = Vec::new();
    let builder = match version_4 {
        true => PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64),
        false => PacketBuilder::ipv6([1; 16], [2; 16], 64),
    };
    builder
        .tcp(443, 50_000, 1, 1000)
        .write(&mut bytes, &[0xa5; 9])
        .expect("a vector takes every byte");
    let ethertype = if version_4 { IPV4 } else { IPV6 };
    let key = dissect_payload(&bytes, ethertype).key;
    assert_eq!(key.source_port, 443);
    (bytes, key)
}

/// The parts of a frame: the bytes before the packet, and the number of bytes after it.
struct Framed {
    link: u16,
    before: Vec<u8>,
    after: usize,
}

fn framed(link: u16, before: &[&[u8]]) -> Framed {
    Framed {
        link,
        before: before.concat(),
        after: 0,
    }
}

fn with_check_sequence(link: u16, before: &[&[u8]]) -> Framed {
    Framed {
        after: 4,
        ..framed(link, before)
    }
}

/// Returns a frame for every way to carry a packet over a link layer.
fn frames(version_4: bool) -> Vec<Framed> {
    let ethertype: &[u8] = if version_4 { &[0x08, 0x00] } else { &[0x86, 0xdd] };
    let ppp: &[u8] = if version_4 { &[0x00, 0x21] } else { &[0x00, 0x57] };
    let nlpid: &[u8] = if version_4 { &[0xcc] } else { &[0x8e] };
    let arcnet: u8 = if version_4 { 212 } else { 196 };
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0], ethertype].concat();
    let ethernet = [&[0x0a; 12], ethertype].concat();
    let family = |number: u8| if version_4 { 2 } else { number };
    let mut all = vec![
        framed(0, &[&[family(24), 0, 0, 0]]),
        framed(0, &[&[0, 0, 0, family(30)]]),
        framed(0, &[&[family(23), 0, 0, 0]]),
        framed(108, &[&[0, 0, 0, family(24)]]),
        framed(109, &[&[family(24), 0, 0, 0], &[7; 8]]),
        framed(117, &[&[61, family(24)], &[7; 62]]),
        framed(226, &[&[1, family(26)], &[7; 22]]),
        framed(239, &[&[2, 0, 0, 0], &[6, 0, 10, 0], &[1; 4], &[49, 0, 9, 0]]),
        framed(239, &[&[2, 0, 0, 0], &[0, 6, 0, 10], &[1; 4], &[0, 49, 0, 9]]),
        framed(113, &[&[0; 14], ethertype]),
        framed(113, &[&[0; 14], &[0x81, 0, 0, 0], ethertype]),
        framed(113, &[&[0; 14], &[0, 4], &snap]),
        framed(276, &[ethertype, &[0; 18]]),
        framed(276, &[&[0, 4], &[0; 18], &snap]),
        framed(258, &[&[16, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0, 7, 7, 7, 7]]),
        framed(258, &[&[12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0], &ethernet]),
        framed(1, &[&ethernet]),
        framed(1, &[&[0x0a; 12], &[0, 60], &snap]),
        framed(110, &[&[0, 7], &ethernet]),
        framed(259, &[&[0x55; 8], &ethernet]),
        framed(274, &[&[0x55; 8], &ethernet]),
        with_check_sequence(240, &[&[7; 4], &ethernet]),
        with_check_sequence(241, &[&[7; 4], &[0x55; 8], &ethernet]),
        framed(281, &[&[0x0a; 12], &[7; 4], ethertype]),
        framed(282, &[&[7; 4], &ethernet]),
        framed(284, &[&[0x0a; 12], &[7; 4], ethertype]),
        framed(285, &[&[0x0a; 12], &[7; 8], ethertype]),
        framed(242, &[&[7; 40], ethertype, &[0, 0]]),
        framed(138, &[&[7; 16], ethertype]),
        framed(143, &[&[0, 0, 0, 90, 1, 2], &ethernet]),
        with_check_sequence(175, &[&[7; 8], &[2, 4, 0, 90, 0, 0, 0, 70], &[0; 2], &ethernet]),
        with_check_sequence(
            197,
            &[
                &[7; 8],
                &[0x82, 4, 0, 90, 0, 0, 0, 70],
                &[0x83; 8],
                &[3; 8],
                &[0; 2],
                &ethernet,
            ],
        ),
        framed(176, &[&[7; 8], &[1, 4, 0, 90, 0, 0, 0, 70], &[0xff, 3], ppp]),
        framed(197, &[&[7; 8], &[22, 4, 0, 90, 0, 0, 0, 70]]),
        framed(6, &[&[0x10, 0x40], &[0x0a; 12], &snap]),
        framed(
            6,
            &[&[0x10, 0x40], &[0x0a; 6], &[0x8a; 6], &[6, 1, 2, 3, 4, 5], &snap],
        ),
        framed(10, &[&[0x50], &[0x0a; 12], &snap]),
        framed(122, &[&[7; 16], &snap]),
        framed(100, &[&snap]),
        framed(11, &[&snap]),
        framed(106, &[&snap]),
        framed(106, &[]),
        framed(123, &[&[2, 0, 0, 5], &snap]),
        framed(123, &[&[1, 0, 0, 5], &[0, 7], &ethernet]),
        framed(7, &[&[1, 2, arcnet, 0, 0, 1]]),
        framed(7, &[&[1, 2, arcnet, 0xff, 0xff, 0xff, arcnet, 0, 0, 1]]),
        framed(129, &[&[1, 2, 0, 0, arcnet, 1, 0, 1]]),
        framed(8, &[&[0, 0x40], &[7; 14]]),
        framed(9, &[&[0xff, 3], ppp]),
        framed(9, &[ppp]),
        framed(9, &[&ppp[1..]]),
        framed(50, &[&[0xff, 3], ppp]),
        framed(50, &[&[0x0f, 0], ethertype]),
        framed(51, &[&[0x11, 0, 0, 1, 0, 90], ppp]),
        framed(166, &[&[1, 3], ppp]),
        framed(166, &[&[0], ppp]),
        framed(204, &[&[1, 0xff, 3], ppp]),
        framed(104, &[&[0x0f, 0], ethertype]),
        framed(205, &[&[0, 0x8f, 0], ethertype]),
        framed(107, &[&[0x18, 0x41, 3], nlpid]),
        framed(107, &[&[0x18, 0x40, 0x40, 0x41, 3, 0], nlpid]),
        framed(107, &[&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0], ethertype]),
        framed(107, &[&[0x18, 0x41, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 7], &ethernet]),
        with_check_sequence(107, &[&[0x18, 0x41, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 1], &ethernet]),
        framed(107, &[&[0x18, 0x41, 3, 0xcf], ppp]),
        framed(107, &[&[0x18, 0x41], ethertype]),
        framed(206, &[&[1, 0x18, 0x41, 3], nlpid]),
        framed(182, &[&[0xc0, 1, 0x18, 0x41, 3], nlpid]),
        framed(178, &[b"MGC\x80", &[0, 3, 1, 1, 7], &ethernet]),
        framed(167, &[b"MGC\x00", &ethernet]),
        framed(179, &[b"MGC\x02", &[7; 4]]),
        framed(179, &[b"MGC\x00", &[0xff, 3], ppp]),
        framed(180, &[b"MGC\x00", &[0x18, 0x41, 3], nlpid]),
        framed(181, &[b"MGC\x00", &[0x0f, 0], ethertype]),
        framed(219, &[&[0, 1, 0, 64, 0, 2, 1, 64]]),
    ];
    let of_one_version = if version_4 { 228 } else { 229 };
    all.extend([12, 14, 101, of_one_version].map(|raw| framed(raw, &[])));
    for wifi in wifi_headers() {
        all.push(framed(105, &[&wifi, &snap]));
        all.push(framed(119, &[&[0, 0, 0, 0x44], &[7; 140], &wifi, &snap]));
        all.push(framed(
            119,
            &[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 12], &[7; 4], &wifi, &snap],
        ));
        all.push(framed(
            163,
            &[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64], &[7; 56], &wifi, &snap],
        ));
        all.push(framed(127, &[&[0, 0, 8, 0, 0, 0, 0, 0], &wifi, &snap]));
        // Flags after the time and three words of fields. A check sequence follows.
        let chained = [
            &[0, 0, 36, 0, 3, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0][..],
            &[7; 8],
            &[0x10],
            &[7; 11],
        ];
        all.push(with_check_sequence(127, &[&chained.concat(), &wifi, &snap]));
        // Only flags. The header is padded.
        let padding = vec![0; wifi.len().next_multiple_of(4) - wifi.len()];
        let is_aggregate = wifi.len() > 36;
        if !is_aggregate {
            all.push(framed(
                127,
                &[&[0, 0, 9, 0, 2, 0, 0, 0, 0x20], &wifi, &padding, &snap],
            ));
        }
        let common = [
            &[5, 0, 2, 0, 7, 7][..],
            &[2, 0, 20, 0],
            &[7; 8],
            &[1, 0],
            &[7; 10],
        ]
        .concat();
        let length = 8 + common.len() as u8;
        all.push(with_check_sequence(
            192,
            &[&[0, 0, length, 0, 105, 0, 0, 0], &common, &wifi, &snap],
        ));
    }
    all.push(framed(192, &[&[0, 0, 8, 0, 1, 0, 0, 0], &ethernet]));
    all
}

/// Returns headers of 802.11 data frames: for every direction through a distribution system, with and without
/// QoS, HT control and aggregation.
fn wifi_headers() -> Vec<Vec<u8>> {
    let mut headers = Vec::new();
    for distribution in 0..=3u8 {
        let addresses = [
            vec![7; 18],
            vec![0x30, 0x12],
            vec![7; if distribution == 3 { 6 } else { 0 }],
        ]
        .concat();
        let header = |control: u8, flags: u8, qos: &[u8]| {
            [&[control, distribution | flags, 44, 0], &addresses[..], qos].concat()
        };
        headers.push(header(0x08, 0, &[]));
        headers.push(header(0x88, 0, &[5, 0]));
        headers.push(header(0x88, 0x80, &[5, 0, 7, 7, 7, 7]));
        headers.push([header(0x88, 0, &[0x85, 0]), vec![7; 14]].concat());
    }
    headers
}

/// Returns frames that can carry only IPv4: the old ARCNET type, and LLC without SNAP.
fn frames_of_ipv4() -> Vec<Framed> {
    vec![
        framed(7, &[&[1, 2, 240]]),
        framed(129, &[&[1, 2, 0, 0, 240]]),
        framed(100, &[&[6, 6, 3]]),
    ]
}

fn record<'a>(link: u16, data: &'a [u8]) -> Record<'a> {
    Record {
        time: Time::ZERO,
        link: LinkType::from_number(link).expect("a link that is read"),
        length: data.len() as u32 + 1000,
        data,
        check_sequence: 0,
    }
}

#[test]
fn numbers_are_sorted_for_the_binary_search() {
    assert!(KNOWN.is_sorted_by(|one, next| one.0 < next.0));
    for link in LinkType::all() {
        assert_eq!(LinkType::from_number(link.number()), Some(link));
    }
    assert_eq!(LinkType::from_number(189), None, "USB carries no IP");
    assert_eq!(LinkType::ETHERNET.to_string(), "Ethernet (1)");
}

#[test]
fn the_packet_is_found_for_every_link_type() {
    let mut seen_types = std::collections::BTreeSet::new();
    for version_4 in [true, false] {
        let (packet, key) = packet(version_4);
        let mut all = frames(version_4);
        if version_4 {
            all.extend(frames_of_ipv4());
        }
        for Framed { link, before, after } in all {
            seen_types.insert(link);
            let frame = [&before[..], &packet, &vec![0xfc; after]].concat();
            let record = record(link, &frame);
            let headers = record.headers();
            let seen = FlowKey {
                vlan: 0,
                outer_ethertype: key.outer_ethertype,
                ..headers.dissection.key
            };
            assert_eq!(seen, key, "link type {link}, {before:02x?}");
            assert_eq!(
                headers.dissection.network_offset,
                Some(before.len() as u16),
                "{link}"
            );
            let ip = headers.packet.expect("an IP packet");
            assert_eq!(
                ip.length as usize,
                packet.len() + 1000,
                "link type {link}, {before:02x?}"
            );
            assert!(ip.captured.starts_with(&packet));
        }
    }
    let known: std::collections::BTreeSet<u16> = LinkType::all().map(LinkType::number).collect();
    assert_eq!(seen_types, known, "every link type needs an example here");
}

#[test]
fn a_check_sequence_announced_by_the_file_is_not_part_of_the_packet() {
    let (packet, _) = packet(true);
    let frame = [&[0x0a; 12][..], &[8, 0], &packet, &[0; 4]].concat();
    let record = Record {
        check_sequence: 4,
        length: frame.len() as u32,
        ..record(1, &frame)
    };
    let ip = record.headers().packet.expect("an IP packet");
    assert_eq!(ip.length as usize, packet.len());
}

#[test]
fn encrypted_frames_have_their_stations_and_no_packet() {
    let (packet, _) = packet(true);
    // Sent to the access point: receiver, transmitter (source), destination.
    let header = [&[0x88, 0x41, 0, 0], &[1; 6][..], &[2; 6], &[3; 6], &[0; 4]].concat();
    let frame = [&header[..], &packet].concat();
    let headers = record(105, &frame).headers();
    assert_eq!(headers.packet, None);
    let key = headers.dissection.key;
    assert_eq!(
        (&key.source[10..], &key.destination[10..]),
        (&[2; 6][..], &[3; 6][..])
    );
    assert_eq!(
        (key.ethertype, key.protocol, &key.source[..10]),
        (0, 0, &[0; 10][..])
    );
}

#[test]
fn frames_of_802_11_without_a_packet_have_none() {
    let (packet, _) = packet(true);
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let frame = |control: u8, sequence: u8| {
        [&[control, 0, 0, 0], &[7; 18][..], &[sequence, 0], &snap, &packet].concat()
    };
    assert!(record(105, &frame(0x08, 0x10)).headers().packet.is_some());
    for (what, frame) in [
        ("a beacon", frame(0x80, 0)),
        ("an acknowledgement", frame(0xd4, 0)),
        ("a null frame", frame(0x48, 0)),
        ("a later fragment", frame(0x08, 0x11)),
        ("another version", frame(0x09, 0)),
    ] {
        let headers = record(105, &frame).headers();
        assert_eq!(
            (headers.packet, headers.dissection.key),
            (None, FlowKey::default()),
            "{what}"
        );
    }
}

#[test]
fn frames_without_ip_have_unknown_content() {
    for (what, link, frame) in [
        ("LCP", 9, &[0xff, 3, 0xc0, 0x21, 1, 1, 0, 4][..]),
        ("a token", 6, &[0x10, 0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 0, 0]),
        ("SLARP", 104, &[0x8f, 0, 0x80, 0x35, 0, 0]),
        ("PPPoE discovery", 51, &[0x11, 9, 0, 0, 0, 0]),
        (
            "PPI within PPI",
            192,
            &[0, 0, 8, 0, 192, 0, 0, 0, 0, 0, 8, 0, 101, 0, 0, 0, 0x45],
        ),
        ("IPv4 where IPv6 is announced", 229, &[0x45; 40]),
        ("nothing", 127, &[]),
    ] {
        let headers = record(link, frame).headers();
        assert_eq!(headers.packet, None, "{what}");
        assert_eq!(headers.dissection.key.source, [0; 16], "{what}");
    }
}

proptest! {
    #[test]
    fn random_bytes_cause_no_panic(frame in vec(any::<u8>(), 0..200)) {
        for link in LinkType::all() {
            check(&record(link.number(), &frame))?;
        }
    }

    /// Takes real frames, changes a few bytes and cuts the end off.
    #[test]
    fn broken_headers_cause_no_panic(
        version_4 in any::<bool>(),
        changes in vec((any::<Index>(), any::<u8>()), 0..5),
        cut in any::<Index>(),
    ) {
        let (packet, _) = packet(version_4);
        for Framed { link, before, .. } in frames(version_4) {
            let mut frame = [&before[..], &packet].concat();
            for (position, value) in &changes {
                let position = position.index(frame.len());
                frame[position] = *value;
            }
            frame.truncate(cut.index(frame.len() + 1));
            check(&record(link, &frame))?;
        }
    }
}

/// Checks properties that the headers of any record have.
fn check(record: &Record) -> Result<(), TestCaseError> {
    let headers = record.headers();
    match headers.packet {
        Some(packet) => {
            prop_assert!(packet.length <= record.length);
            prop_assert!(record.data.ends_with(packet.captured) && packet.captured.len() >= 20);
        }
        None => {
            prop_assert_eq!(headers.dissection.network_offset, None);
            prop_assert_eq!(headers.dissection.key.protocol, 0);
        }
    }
    Ok(())
}
