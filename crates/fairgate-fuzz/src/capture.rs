//! Checks captures with [`fairgate_capture::Capture`].

use std::io::Cursor;

use fairgate::Time;
use fairgate_capture::{Capture, CaptureWriter, LinkType};

use crate::link::check_headers;

/// The bytes are a capture file.
pub fn capture(bytes: &[u8]) {
    let Ok(mut capture) = Capture::from_reader(Box::new(Cursor::new(bytes.to_vec()))) else {
        return;
    };
    let mut latest = Time::ZERO;
    let (mut packets, mut length_in_all) = (0, 0);
    let mut copies: Vec<(LinkType, Time, u32, Vec<u8>)> = Vec::new();
    let error = loop {
        match capture.next_record() {
            Ok(Some(record)) => {
                assert!(record.time >= latest, "the time went back");
                latest = record.time;
                packets += 1;
                length_in_all += u64::from(record.length);
                check_headers(&record);
                copies.push((record.link, record.time, record.length, record.data.to_vec()));
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let again = capture.next_record().map(|record| record.is_some());
    match &error {
        None => assert!(matches!(again, Ok(false)), "a packet came after the end"),
        Some(_) => assert!(again.is_err(), "the reader went on after an error"),
    }
    let counts = capture.counts();
    assert_eq!((counts.packets, counts.bytes), (packets, length_in_all));
    for (link, time, length, data) in copies {
        check_copy(link, time, length, &data);
    }
}

/// Checks that a record is the same after it is written and read again.
fn check_copy(link: LinkType, time: Time, length: u32, data: &[u8]) {
    let written = CaptureWriter::new(Vec::new(), link, u32::MAX).and_then(|mut writer| {
        writer.packet(time, length, data)?;
        writer.finish()
    });
    let Ok(file) = written else {
        return; // The time is after 2106.
    };
    let mut copy = Capture::from_reader(Box::new(Cursor::new(file))).expect("our own file");
    let record = copy.next_record().expect("our own record").expect("one record");
    assert_eq!(
        (record.link, record.time, record.length, record.data),
        (link, time, length, data)
    );
}
