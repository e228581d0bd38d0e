//! Checks frames of capture files with [`fairgate_capture::Record::headers`].

use fairgate::Time;
use fairgate_capture::{LinkType, Record};

/// The first two bytes are the number of the link type. The rest is the frame.
pub fn link(bytes: &[u8]) {
    let Some((number, frame)) = bytes.split_first_chunk() else {
        return;
    };
    // Unknown numbers are mapped to supported ones, so that random bytes test the readers.
    let number = u16::from_be_bytes(*number);
    let link = LinkType::from_number(number).unwrap_or_else(|| {
        let all: Vec<LinkType> = LinkType::all().collect();
        all[usize::from(number) % all.len()]
    });
    let length = frame.len() as u32 + u32::from(number) % 2000;
    check_headers(&Record {
        time: Time::ZERO,
        link,
        length,
        data: frame,
        check_sequence: (number >> 8) as u8 % 5,
    });
}

/// Checks properties that the headers of any record have.
pub(crate) fn check_headers(record: &Record) {
    let headers = record.headers();
    assert_eq!(record.headers(), headers, "the same frame has the same headers");
    let key = headers.dissection.key;
    match headers.packet {
        Some(packet) => {
            assert!(
                packet.length <= record.length,
                "no packet is longer than its frame"
            );
            assert!(record.data.ends_with(packet.captured) && packet.captured.len() >= 20);
            let before = record.data.len() - packet.captured.len();
            assert_eq!(headers.dissection.network_offset, u16::try_from(before).ok());
            assert!(matches!(key.ethertype, 0x0800 | 0x86dd));
        }
        None => {
            assert_eq!(headers.dissection.network_offset, None);
            assert_eq!((key.protocol, key.source_port, key.traffic_class), (0, 0, 0));
            let addresses = key.source.iter().chain(&key.destination);
            if addresses.copied().any(|byte| byte != 0) {
                assert_eq!(
                    key.ethertype, 0,
                    "only encrypted frames have addresses of stations"
                );
            }
        }
    }
    assert!(key.vlan < 1 << 12 && key.flow_label < 1 << 20);
}
