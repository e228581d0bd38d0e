//! Well-formed captures in every variant of the two formats.

use std::io::{Cursor, Write};

use crate::common::{Bytes, COMPRESSIONS, Packet, many_packets, read};
use fairgate::Time;
use fairgate_capture::{Capture, CaptureWriter, LinkType};

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for big in [false, true] {
        for (nanos, fraction) in [(false, 999_999), (true, 999_999_999)] {
            let mut file = Bytes::pcap(big, nanos, 1);
            file.record(1, fraction, 1514, &[7; 60]);
            let (packets, counts, error) = read(&file.bytes);
            assert!(error.is_none(), "{error:?}");
            let expected = if nanos { 1_999_999_999 } else { 1_999_999_000 };
            assert_eq!(
                packets,
                [Packet {
                    nanos: expected,
                    link: 1,
                    length: 1514,
                    data: vec![7; 60]
                }]
            );
            assert_eq!(
                (counts.packets, counts.bytes, counts.cut, counts.interfaces),
                (1, 1514, 1, 1)
            );
        }
    }
}

#[test]
fn pcapng_with_sections_of_either_order_and_clocks_of_any_resolution() {
    let mut file = Bytes::new(false);
    file.section(false)
        .interface(1, 0, &[])
        .interface(101, 0, &[(2, b"eth0"), (9, &[9])])
        .enhanced(0, 1_000_001, 60, &[1; 60])
        .enhanced(1, 2_000_000_003, 1500, &[2; 33]);
    file.section(true)
        .interface(113, 0, &[(9, &[0x80 | 20]), (14, &10i64.to_be_bytes())])
        .enhanced(0, 3 << 19, 70, &[3; 70]);
    let (packets, counts, error) = read(&file.bytes);
    assert!(error.is_none(), "{error:?}");
    let seen: Vec<_> = packets
        .iter()
        .map(|p| (p.nanos, p.link, p.length, p.data.len()))
        .collect();
    assert_eq!(
        seen,
        [
            (1_000_001_000, 1, 60, 60),
            (2_000_000_003, 101, 1500, 33),
            // 3 * 2^19 ticks of 2^-20 s are 1.5 s, 10 s after 1970.
            (11_500_000_000, 113, 70, 70),
        ]
    );
    assert_eq!((counts.interfaces, counts.cut, counts.skipped_blocks), (3, 1, 0));
}

#[test]
fn simple_packets_are_cut_to_the_snap_length_and_get_the_time_before() {
    let mut file = Bytes::new(false);
    file.section(false)
        .interface(1, 5, &[])
        .enhanced(0, 7, 60, &[1; 5]);
    let mut simple = Bytes::new(false);
    simple.u32(60).raw(&[9; 5]);
    file.block(3, &simple);
    let (packets, counts, error) = read(&file.bytes);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        packets[1],
        Packet {
            nanos: 7_000,
            link: 1,
            length: 60,
            data: vec![9; 5]
        }
    );
    assert_eq!(counts.without_time, 1);
}

#[test]
fn obsolete_packet_blocks_are_read_and_unknown_blocks_counted() {
    let mut file = Bytes::new(true);
    file.section(true).interface(1, 0, &[]);
    let mut packet = Bytes::new(true);
    packet
        .u16(0)
        .u16(3)
        .u32(0)
        .u32(42)
        .u32(4)
        .u32(60)
        .raw(&[1, 2, 3, 4]);
    file.block(2, &packet);
    let mut names = Bytes::new(true);
    names.u32(0);
    file.block(4, &names);
    let (packets, counts, error) = read(&file.bytes);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        packets,
        [Packet {
            nanos: 42_000,
            link: 1,
            length: 60,
            data: vec![1, 2, 3, 4]
        }]
    );
    assert_eq!(counts.skipped_blocks, 1);
}

#[test]
fn packets_without_bytes_and_times_that_go_back_are_counted() {
    let mut file = Bytes::pcap(false, false, 1);
    file.record(10, 0, 0, &[])
        .record(9, 0, 60, &[0; 60])
        .record(9, 500_000, 60, &[0; 60])
        .record(11, 0, 60, &[]);
    let (packets, counts, error) = read(&file.bytes);
    assert!(error.is_none(), "{error:?}");
    let seconds: Vec<_> = packets.iter().map(|p| p.nanos / 1_000_000_000).collect();
    assert_eq!(seconds, [10, 10, 10, 11]);
    assert_eq!((counts.empty, counts.cut), (1, 1));
    assert_eq!((counts.out_of_order, counts.furthest_back), (2, 1_000_000_000));
}

/// The modified format of old Linux distributions has interface, protocol and kind after the lengths.
#[test]
fn records_with_a_longer_header_are_read() {
    for big in [false, true] {
        let mut file = Bytes::pcap(big, false, 1);
        let magic = if big {
            0xa1b2_cd34_u32.to_be_bytes()
        } else {
            0xa1b2_cd34_u32.to_le_bytes()
        };
        file.bytes[..4].copy_from_slice(&magic);
        for second in 1..=2 {
            file.u32(second)
                .u32(7)
                .u32(60)
                .u32(1514)
                .u32(3)
                .u16(0x0800)
                .u16(0)
                .raw(&[9; 60]);
        }
        let (packets, _, error) = read(&file.bytes);
        assert!(error.is_none(), "{error:?}");
        let expected = |second: u64| Packet {
            nanos: second * 1_000_000_000 + 7_000,
            link: 1,
            length: 1514,
            data: vec![9; 60],
        };
        assert_eq!(packets, [expected(1), expected(2)]);
    }
}

/// Before version 2.3 the original length came first. In 2.3 programs used either order.
#[test]
fn old_versions_have_the_lengths_in_another_order() {
    for (minor, first, second) in [(2, 1514, 60), (3, 1514, 60), (3, 60, 1514), (4, 60, 1514)] {
        let mut file = Bytes::pcap(false, false, 1);
        file.bytes[6] = minor;
        file.u32(1).u32(0).u32(first).u32(second).raw(&[9; 60]);
        let (packets, _, error) = read(&file.bytes);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(
            (packets[0].length, packets[0].data.len()),
            (1514, 60),
            "version 2.{minor}"
        );
    }
}

#[test]
fn a_time_that_was_rounded_up_to_the_next_second_is_accepted() {
    let mut file = Bytes::pcap(false, false, 1);
    file.record(1, 1_000_046, 60, &[0; 60])
        .record(1, 2_000_000, 60, &[0; 60]);
    let (packets, _, error) = read(&file.bytes);
    assert_eq!(packets[0].nanos, 2_000_046_000);
    assert!(
        error
            .expect("the time is two seconds too late")
            .to_string()
            .contains("2000000 units")
    );
}

#[test]
fn the_file_states_the_length_of_the_frame_check_sequence() {
    let seen = |file: &[u8]| {
        let mut capture = Capture::from_reader(Box::new(Cursor::new(file.to_vec()))).unwrap();
        capture.next_record().unwrap().expect("a packet").check_sequence
    };
    let mut file = Bytes::pcap(false, false, 1 | 1 << 26 | 2 << 28);
    file.record(1, 0, 64, &[0; 64]);
    assert_eq!(seen(&file.bytes), 4, "two times 16 bits");
    for (given, expected) in [(32, 4), (4, 4), (16, 2), (0, 0)] {
        let mut file = Bytes::new(false);
        file.section(false)
            .interface(1, 0, &[(13, &[given])])
            .enhanced(0, 1, 64, &[0; 64]);
        assert_eq!(seen(&file.bytes), expected, "if_fcslen {given}");
    }
}

#[test]
fn compression_is_recognised_by_the_first_bytes_and_position_counts_the_file() {
    let plain = many_packets();
    for (name, pack) in COMPRESSIONS {
        // Two streams one after the other are read as one.
        let (first, second) = plain.split_at(100_000);
        let packed = [pack(first), pack(second)].concat();
        assert!(packed.len() < plain.len() / 10, "{name}");
        let mut on_disk = tempfile::NamedTempFile::new().unwrap();
        on_disk.write_all(&packed).unwrap();

        let mut capture = Capture::open(on_disk.path()).unwrap();
        while capture.next_record().unwrap().is_some() {}
        assert_eq!(capture.counts().packets, 10_000, "{name}");
        assert!(
            capture.next_record().unwrap().is_none(),
            "{name}: the end of the file is returned again"
        );
        assert_eq!(Some(capture.position()), capture.size(), "{name}");
    }
}

/// Another program's reader reads the same from our files as this crate.
#[test]
fn written_files_are_read_the_same_by_another_program() {
    use pcap_parser::PcapCapture;

    let mut writer = CaptureWriter::new(Vec::new(), LinkType::ETHERNET, 64).unwrap();
    writer
        .packet(Time::from_nanos(5_000_000_007), 1514, &[1; 100])
        .unwrap();
    writer
        .packet(Time::from_nanos(6_000_000_000), 60, &[2; 60])
        .unwrap();
    let bytes = writer.finish().unwrap();

    let theirs = PcapCapture::from_file(&bytes).expect("our header is valid");
    assert!(theirs.header.is_nanosecond_precision());
    let theirs: Vec<_> = theirs
        .blocks
        .iter()
        .map(|b| Packet {
            nanos: u64::from(b.ts_sec) * 1_000_000_000 + u64::from(b.ts_usec),
            link: 1,
            length: b.origlen,
            data: b.data.to_vec(),
        })
        .collect();
    let (ours, counts, error) = read(&bytes);
    assert!(error.is_none());
    assert_eq!(ours, theirs);
    assert_eq!((ours.len(), counts.cut), (2, 1));
}

/// docs/compare.md names every supported link type, also as a range such as `178 to 181`.
#[test]
fn the_documentation_lists_every_link_type() {
    let text = include_str!("../../../../docs/compare.md");
    let list = text.split("* **Link types**").nth(1).expect("the list exists");
    let list = list
        .split("* **Frames without IP**")
        .next()
        .expect("the list ends");
    let words: Vec<&str> = list
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .filter(|word| !word.is_empty())
        .collect();
    let mut named = std::collections::BTreeSet::new();
    for (index, word) in words.iter().enumerate() {
        let Ok(number) = word.parse::<u16>() else { continue };
        match words.get(index + 1..index + 3) {
            Some(["to", last]) => named.extend(number..=last.parse().expect("a number")),
            _ => _ = named.insert(number),
        }
    }
    // 1394 is the name of a standard, not a link type.
    named.remove(&1394);
    let known: std::collections::BTreeSet<u16> = LinkType::all().map(LinkType::number).collect();
    assert_eq!(named, known);
}
