//! The last packets as a capture, with what became of each as a comment.

use std::fmt::Write as _;
use std::io;

use fairgate::Time;
use fairgate_capture::{LinkType, PcapngWriter};

use super::flows::Names;
use super::keeper::LastPackets;
use super::log::{Outcome, Record, SNAP};

/// Writes the packets as pcapng, in the order of their arrival at the trees, dropped ones included. The
/// interfaces are the two that frames are received from, or `from` alone. `epoch` is what is added to the
/// times.
pub(crate) fn pcapng(
    last: &LastPackets,
    run: &str,
    ends: [&str; 2],
    from: Option<&str>,
    names: &Names<'_>,
    epoch: u64,
) -> io::Result<Vec<u8>> {
    let all = last.by_arrival();
    let mut about = format!(
        "Packets that left or were dropped in the run {run}, as they arrived at its queues. Fairgate {}.",
        env!("CARGO_PKG_VERSION")
    );
    if last.missed > 0 {
        let _ = write!(
            about,
            " Since the start, {} packets were not noted, because the run was too busy.",
            last.missed
        );
    }
    let room = all.len() * (SNAP + 128) + 1024;
    let mut writer = PcapngWriter::of(Vec::with_capacity(room), SNAP as u32, Some(&about))?;
    let mut interfaces = [None; 2];
    for (interface, end) in interfaces.iter_mut().zip(ends) {
        if from.is_none_or(|from| from == end) {
            *interface = Some(writer.interface(LinkType::ETHERNET, end)?);
        }
    }
    let mut comment = String::new();
    for (worker, side, record) in all {
        let Some(interface) = interfaces[side] else {
            continue;
        };
        comment.clear();
        let queue = names(worker, side, record.node.raw());
        describe(&record, &queue.class, &queue.discipline, &mut comment);
        let at = Time::from_nanos(record.arrived.nanos() + epoch);
        writer.received(interface, at, record.length, record.bytes, &comment)?;
    }
    writer.finish()
}

/// Writes what became of a packet, like `sent after 12.345 ms; class 20/3; fq_codel; marked`.
fn describe(record: &Record<'_>, class: &str, discipline: &str, comment: &mut String) {
    let millis = record.sojourn() as f64 / 1e6;
    let _ = match record.outcome {
        Outcome::Sent => write!(comment, "sent after {millis:.3} ms"),
        Outcome::Dropped(reason) => write!(comment, "dropped after {millis:.3} ms: {}", reason.name()),
    };
    if !class.is_empty() {
        let _ = write!(comment, "; class {class}");
    }
    if !discipline.is_empty() {
        let _ = write!(comment, "; {discipline}");
    }
    if record.is_marked {
        comment.push_str("; marked");
    }
}
