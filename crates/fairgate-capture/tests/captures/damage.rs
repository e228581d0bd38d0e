//! Damaged captures cause an error with the offset, keep the packets before it, and never cause a panic.

use std::io::{Cursor, Write};

use crate::common::{Bytes, COMPRESSIONS, many_packets, read};
use fairgate_capture::{Capture, CaptureError};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

fn three_packets() -> Bytes {
    let mut file = Bytes::pcap(false, false, 1);
    for second in 1..=3 {
        file.record(second, 0, 100, &[second as u8; 100]);
    }
    file
}

fn three_blocks() -> Bytes {
    let mut file = Bytes::new(false);
    file.section(false).interface(1, 0, &[(9, &[9]), (14, &[0; 8])]);
    for tick in 1..=3 {
        file.enhanced(0, tick, 100, &[0; 99]);
    }
    file
}

#[test]
fn a_truncated_file_reports_where_its_last_record_starts() {
    let file = three_packets().bytes;
    let last = 24 + 2 * 116;
    for cut in [last + 1, last + 15, last + 16, last + 115] {
        let (packets, counts, error) = read(&file[..cut]);
        assert_eq!((packets.len(), counts.packets), (2, 2));
        match error {
            Some(CaptureError::Truncated {
                offset,
                packets: 2,
                there,
                needed,
                ..
            }) => {
                assert_eq!((offset, there), (last as u64, (cut - last) as u64));
                assert!(there < needed);
            }
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
    assert!(
        read(&file[..last]).2.is_none(),
        "a cut between two records only makes the file shorter"
    );
}

#[test]
fn other_files_are_rejected_by_their_first_bytes() {
    assert!(matches!(read(b"").2, Some(CaptureError::Empty)));
    assert!(matches!(
        read(b"\xd4\xc3").2,
        Some(CaptureError::NotACapture { .. })
    ));
    let error = read(b"PK\x03\x04....").2.expect("a zip archive");
    assert!(error.to_string().contains("504b0304"), "{error}");
    assert!(!error.leaves_a_sound_beginning());
}

#[test]
fn garbage_between_records_is_an_error_with_its_offset() {
    let mut file = three_packets();
    file.raw(&[0xff; 200]);
    let (packets, _, error) = read(&file.bytes);
    assert_eq!(packets.len(), 3);
    let error = error.expect("0xff is not a record");
    assert!(error.leaves_a_sound_beginning());
    assert!(matches!(error, CaptureError::Damaged { offset, packets: 3, .. } if offset == 24 + 3 * 116));

    let mut file = three_blocks();
    let end = file.bytes.len() as u64;
    file.raw(&[0xff; 200]);
    let (packets, _, error) = read(&file.bytes);
    assert_eq!(packets.len(), 3);
    assert!(matches!(error, Some(CaptureError::Damaged { offset, packets: 3, .. }) if offset == end));
}

/// Adds an invalid block.
type AddInvalid = fn(&mut Bytes);

#[test]
fn invalid_headers_are_named_in_the_error() {
    let cases: [(&str, AddInvalid); 4] = [
        ("interface 5", |file| _ = file.enhanced(5, 0, 60, &[0; 60])),
        ("claims an original length", |file| {
            _ = file.enhanced(0, 0, u32::MAX, &[0; 60])
        }),
        ("time option 9", |file| _ = file.interface(1, 0, &[(9, &[1, 2])])),
        ("at its end", |file| _ = file.u32(5).u32(12).u32(16)),
    ];
    for (complaint, add) in cases {
        let mut file = three_blocks();
        add(&mut file);
        let error = read(&file.bytes).2.expect(complaint).to_string();
        assert!(error.contains(complaint), "{error}");
        assert!(error.contains("3 packets"), "{error}");
    }
}

#[test]
fn a_link_type_that_is_not_supported_is_named() {
    let error = read(&Bytes::pcap(false, false, 189).bytes)
        .2
        .expect("USB")
        .to_string();
    assert!(
        error.contains("link type 189 (USB), which is not supported"),
        "{error}"
    );
    assert!(error.contains("802.11 with radiotap (127)"), "{error}");
    assert!(error.contains("raw IP (12, 14, 101)"), "{error}");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
    }

    /// Random bytes after a valid start, so that more than the recognition of the format is tested.
    #[test]
    fn random_tails_never_panic(tail in prop::collection::vec(any::<u8>(), 0..400), block in any::<bool>()) {
        let mut file = if block { three_blocks() } else { three_packets() };
        file.raw(&tail);
        let (packets, counts, _) = read(&file.bytes);
        prop_assert!(packets.len() >= 3);
        prop_assert_eq!(counts.packets as usize, packets.len());
    }

    /// With some bytes changed and the end cut off, the packets are still within the file and in the order of
    /// time.
    #[test]
    fn mutated_captures_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        keep in any::<prop::sample::Index>(),
        block in any::<bool>(),
    ) {
        let mut bytes = if block { three_blocks().bytes } else { three_packets().bytes };
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(keep.index(bytes.len() + 1));
        let (packets, counts, _) = read(&bytes);
        prop_assert!(packets.iter().map(|p| p.data.len()).sum::<usize>() <= bytes.len());
        prop_assert!(packets.is_sorted_by_key(|p| p.nanos));
        prop_assert_eq!(counts.bytes, packets.iter().map(|p| u64::from(p.length)).sum::<u64>());
    }
}

#[test]
fn a_broken_gzip_stream_returns_its_error_again() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(&three_packets().bytes).expect("into memory");
    let mut packed = packed.finish().expect("into memory");
    let checksum = packed.len() - 8;
    packed[checksum] ^= 1;
    let mut capture = Capture::from_reader(Box::new(Cursor::new(packed))).expect("a sound beginning");
    let first = loop {
        match capture.next_record() {
            Ok(record) => assert!(record.is_some(), "the damage was taken for the end of the file"),
            Err(error) => break error.to_string(),
        }
    };
    let again = capture.next_record().expect_err("the damage is still there");
    assert_eq!(again.to_string(), first);
}

/// A truncated compressed capture ends with an error, wherever it is cut. It must not look like a shorter
/// file.
#[test]
fn a_truncated_compressed_capture_is_an_error() {
    let plain = many_packets();
    for (name, pack) in COMPRESSIONS {
        let packed = pack(&plain);
        let cuts = (5..packed.len()).step_by((packed.len() / 200).max(1));
        for cut in cuts.chain(packed.len().saturating_sub(20)..packed.len()) {
            let (packets, _, error) = read(&packed[..cut]);
            assert!(packets.len() < 10_000 || error.is_some(), "{name} cut at {cut}");
            assert!(error.is_some(), "{name} cut at {cut} of {}", packed.len());
        }
    }
}

/// A stream that needs gigabytes of memory is rejected.
#[test]
fn windows_of_gigabytes_are_rejected() {
    // Window exponent 10 + 21, one empty last block.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00];
    let error = described(read(&zstd).2.expect("2 GB"));
    assert!(error.contains("2147483648 bytes of memory"), "{error}");

    let checked = |bytes: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        [bytes, &sum.sum().to_le_bytes()].concat()
    };
    let flags = checked(&[0, 1]);
    // The block header has 12 bytes and one filter: LZMA2 with a dictionary of 4 GB.
    let block = checked(&[2, 0, 0x21, 1, 40, 0, 0, 0]);
    let xz = [b"\xfd7zXZ\0", &flags[..], &block].concat();
    let error = described(read(&xz).2.expect("4 GB"));
    assert!(error.contains("memory"), "{error}");
}

/// Returns an error with its cause.
fn described(error: CaptureError) -> String {
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    format!("{error}: {}", cause.unwrap_or_default())
}
