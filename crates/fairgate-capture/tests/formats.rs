//! What well-formed captures hold, in every variant of the two formats.

mod common;

use std::io::Write;

use common::{Bytes, Packet, read};
use fairgate::Time;
use fairgate::flow::LinkType;
use fairgate_capture::CaptureWriter;

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
fn simple_packets_are_cut_to_the_snap_length_and_take_the_time_before() {
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

#[test]
fn gzip_is_told_by_the_first_bytes_and_position_counts_the_file() {
    let mut file = Bytes::pcap(false, false, 1);
    for second in 0..10_000 {
        file.record(second, 0, 1514, &[0; 60]);
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&file.bytes).unwrap();
    let mut on_disk = tempfile::NamedTempFile::new().unwrap();
    on_disk.write_all(&gzip.finish().unwrap()).unwrap();

    let mut capture = fairgate_capture::Capture::open(on_disk.path()).unwrap();
    while capture.next_record().unwrap().is_some() {}
    assert_eq!(capture.counts().packets, 10_000);
    assert_eq!(Some(capture.position()), capture.size());
}

/// Another program's reader finds in our files what we wrote.
#[test]
fn what_is_written_reads_the_same_elsewhere() {
    use pcap_parser::PcapCapture;

    let mut writer = CaptureWriter::new(Vec::new(), LinkType::Ethernet, 64).unwrap();
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
