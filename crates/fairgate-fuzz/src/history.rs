//! The file in which the history of a run outlives it.

use std::time::{SystemTime, UNIX_EPOCH};

use fairgate_run::rehearsal::{INTERFACES, Rehearsal, Stage};

/// The largest history, bytes, with the longest names.
const LARGEST: usize = 9 << 20;

/// Has a run begin with what a file says, as it is, and with checksums that are right. Returns whether both
/// are files of a run of Fairgate.
///
/// # Panics
/// Panics if a file is refused without a reason, if the API can't show what it says, or if what was taken is
/// not read again.
pub fn history(bytes: &[u8]) -> bool {
    let is_whole = begin(bytes);
    begin(&repaired(bytes)) && is_whole
}

fn begin(file: &[u8]) -> bool {
    let next = Stage::new(Rehearsal::new("fifo").expect("a valid tree"));
    let recalled = next.recall(file);
    if let Err(wrong) = &recalled {
        assert!(wrong.contains(';'), "it says no remedy: {wrong}");
    }
    next.read();
    for from in INTERFACES {
        for seconds in [60, 86_400] {
            let target = format!("/v1/history?from={from}&seconds={seconds}&limit=64");
            let reply = next.ask("GET", &target, &[], b"").expect("a request");
            assert_eq!(reply.status, 200, "{target}");
            serde_json::from_slice::<serde_json::Value>(&reply.body).expect("a document");
        }
    }
    let kept = next.kept().expect("it was read twice");
    assert!(kept.len() <= LARGEST, "{}", kept.len());
    next.recall(&kept).expect("what was kept is read again");
    recalled.is_ok()
}

/// Returns the file with the right checksum for each block that is as long as it says, and as if it had been
/// written just now.
fn repaired(file: &[u8]) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("it is after 1970").as_secs_f64();
    let mut file = file.to_vec();
    let mut at = file
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(file.len(), |end| end + 1);
    while let Some(length) = file.get(at..).and_then(<[u8]>::first_chunk) {
        let length = u32::from_le_bytes(*length) as usize;
        let Some(content) = file.get_mut(at + 8..).and_then(|rest| rest.get_mut(..length)) else {
            break;
        };
        // Behind the time of the run.
        if let Some(unix) = content.get_mut(8..16) {
            unix.copy_from_slice(&now.to_le_bytes());
        }
        let mut sum = flate2::Crc::new();
        sum.update(content);
        file[at + 4..at + 8].copy_from_slice(&sum.sum().to_le_bytes());
        at += 8 + length;
    }
    file
}
