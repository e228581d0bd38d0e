//! The comparison on a capture: one pass over the file, all disciplines side by side.
//!
//! The file is streamed. This thread reads and dissects packets and identifies their flows. Each discipline
//! has a thread that runs its link. Packets are passed in batches that all links share. The number of batches
//! is limited, so that memory stays bounded for a file of any length.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use fairgate::{DropCounts, Time};
use fairgate_capture::Counts;
use fairgate_report::{Comparison, Discipline, Fact, Group, Input, Meter, bin_width, jain};

use super::Contestant;
use super::capture::{Options, TraceError};
use super::flows::Placed;
use super::open_loop::{Arrival, OpenLoop, QueueTooLong, Totals};
use super::reading::{self, Pauses, Reading};
use crate::failure::{Failure, Imbalanced};

/// The number of packets in a batch.
const BATCH: usize = 2048;

/// The number of batches that a link may be behind.
const BATCHES_UNDER_WAY: usize = 8;

/// Replays the capture under each discipline.
pub(super) fn run(
    options: &Options,
    contestants: Vec<Contestant>,
    command: String,
) -> Result<Comparison, Failure> {
    let mut names = Vec::new();
    let mut links = Vec::new();
    for contestant in contestants {
        names.push(contestant.name);
        let discipline = contestant.spec.build(options.seed).map_err(TraceError::Build)?;
        links.push(OpenLoop::new(discipline, options.rate));
    }
    let reads_acknowledgements = links.iter().any(OpenLoop::reads_acknowledgements);
    let (reading, totals) = std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        for mut link in links {
            let (sender, receiver) = sync_channel::<Arc<Vec<Arrival>>>(BATCHES_UNDER_WAY);
            senders.push(sender);
            threads.push(scope.spawn(move || -> Result<Totals, QueueTooLong> {
                for batch in receiver {
                    for arrival in batch.iter() {
                        link.arrive(arrival)?;
                    }
                }
                Ok(link.finish())
            }));
        }
        let reading = feed(options, reads_acknowledgements, &senders);
        drop(senders);
        let totals: Vec<Result<Totals, QueueTooLong>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a link does not panic"))
            .collect();
        (reading, totals)
    });
    let reading = reading?;
    let totals = names
        .iter()
        .zip(totals)
        .map(|(name, totals)| {
            totals.map_err(|error| TraceError::QueueTooLong {
                discipline: name.clone(),
                packets: error.packets,
            })
        })
        .collect::<Result<Vec<Totals>, TraceError>>()?;
    if reading.taken == 0 {
        let file = options.source.to_string();
        return Err(match reading.packets {
            0 => TraceError::NoPackets { file },
            packets => TraceError::NothingTaken {
                file,
                packets,
                view: reading.view.describe(),
            },
        }
        .into());
    }
    reading.check().map_err(Imbalanced::from)?;
    Ok(assemble(options, reading, names, totals, command))
}

/// Reads the capture and sends the replayed packets to all links, in batches. The failure of a link is
/// noticed when its thread is joined.
fn feed(
    options: &Options,
    reads_acknowledgements: bool,
    senders: &[SyncSender<Arc<Vec<Arrival>>>],
) -> Result<Reading, TraceError> {
    let mut batch = Vec::with_capacity(BATCH);
    let send = |batch: &mut Vec<Arrival>| {
        let full = Arc::new(std::mem::replace(batch, Vec::with_capacity(BATCH)));
        senders
            .iter()
            .all(|sender| sender.send(Arc::clone(&full)).is_ok())
    };
    let reading = reading::read(options, reads_acknowledgements, |arrival| {
        batch.push(arrival);
        batch.len() < BATCH || send(&mut batch)
    })?;
    send(&mut batch);
    Ok(reading)
}

/// Assembles the result: names, sums and remarks.
fn assemble(
    options: &Options,
    reading: Reading,
    names: Vec<String>,
    totals: Vec<Totals>,
    command: String,
) -> Comparison {
    let duration = totals.iter().map(|totals| totals.end).max().unwrap_or(Time::ZERO);
    let placed = reading.flows.placed();
    let (shown, others) = placed.split_at(placed.len().min(options.top));
    let unplaced = reading.flows.displaced();
    let mut groups: Vec<Group> = shown
        .iter()
        .map(|flow| Group {
            name: flow.tuple.name(),
            detail: format!(
                "{}, {} packets, {:.3} MB",
                flow.tuple.protocol(),
                flow.packets,
                flow.bytes as f64 / 1e6
            ),
            in_total: true,
        })
        .collect();
    let with_rest = !others.is_empty() || unplaced > 0;
    if with_rest {
        groups.push(Group {
            name: "all other flows".into(),
            detail: match unplaced {
                0 => format!("{} flows", others.len()),
                _ => format!("more than {} flows", others.len()),
            },
            in_total: true,
        });
    }
    let disciplines = names
        .into_iter()
        .zip(totals)
        .map(|(name, totals)| discipline(name, totals, shown, with_rest, duration))
        .collect();
    Comparison {
        version: env!("CARGO_PKG_VERSION"),
        command,
        seed: options.seed,
        input: Input::Capture {
            file: options.source.to_string(),
            packets: reading.packets,
            replayed: reading.taken,
            on_line: reading.on_line,
        },
        rate_bps: Some(options.rate.bits_per_second()),
        duration_ns: duration.nanos(),
        bin_ns: bin_width(duration),
        facts: facts(options, &reading),
        remarks: remarks(&reading),
        groups,
        fairness_over: "the delivered share of each shown flow's bytes".into(),
        disciplines,
    }
}

fn discipline(
    name: String,
    mut totals: Totals,
    shown: &[Placed],
    with_rest: bool,
    duration: Time,
) -> Discipline {
    let mut meters: Vec<Meter> = shown.iter().map(|flow| totals.take(flow.slot)).collect();
    let rest = totals.take_rest();
    let shares: Vec<f64> = meters
        .iter()
        .map(|meter| meter.total_delivered().bytes as f64 / (meter.total_offered().bytes as f64).max(1.0))
        .collect();
    if with_rest {
        meters.push(rest);
    }
    let mut total = Meter::default();
    meters.iter().for_each(|meter| total.merge(meter.clone()));
    Discipline {
        name,
        total: total.finish(duration),
        groups: meters.into_iter().map(|meter| meter.finish(duration)).collect(),
        utilisation: totals.busy_nanos as f64 / (duration.nanos() as f64).max(1.0),
        fairness: jain(&shares),
        drops: drops(&totals.drops),
        queue: totals.queue.finish(duration),
    }
}

/// Returns the packets dropped by reason, for the reasons that occurred.
fn drops(drops: &DropCounts) -> BTreeMap<String, u64> {
    drops
        .iter()
        .map(|(reason, packets)| (reason.name().to_owned(), packets))
        .collect()
}

fn facts(options: &Options, reading: &Reading) -> Vec<Fact> {
    let counts = &reading.counts;
    let fact = |label: &str, value: String| Fact {
        label: label.into(),
        value,
    };
    let mut facts = vec![
        fact("Capture", options.source.to_string()),
        fact("Direction", reading.view.describe()),
        fact(
            "Packets",
            format!(
                "{} in the capture: {} replayed, {} of the opposite direction, {} not on the link (local, \
                 multicast, no IP)",
                reading.packets, reading.taken, reading.opposite, reading.elsewhere
            ),
        ),
        fact(
            "Length of a packet",
            "its Ethernet frame without check sequence: IP packet plus 14 bytes".into(),
        ),
        fact(
            "Delay of a packet",
            "from its arrival at the queue to the end of its transmission".into(),
        ),
    ];
    let mut if_any = |count: u64, label: &str, value: String| {
        if count > 0 {
            facts.push(fact(label, value));
        }
    };
    if_any(
        counts.cut,
        "Cut by the snap length",
        format!("{} packets, counted with their full length", counts.cut),
    );
    if_any(counts.empty, "Empty", format!("{} packets", counts.empty));
    if_any(
        counts.without_time,
        "Without a time stamp",
        format!(
            "{} packets, replayed at the time of the packet before",
            counts.without_time
        ),
    );
    if_any(
        reading.joined,
        "Merged by the capturing host",
        format!(
            "{} packets were longer than {} bytes and are replayed as the packets that were on the link",
            reading.joined, options.mtu
        ),
    );
    if_any(
        counts.skipped_blocks,
        "Blocks without packets",
        format!("{} skipped", counts.skipped_blocks),
    );
    if_any(
        reading.flows.displaced(),
        "Flows counted together",
        format!(
            "{} small flows: only a limited number is counted separately at a time",
            reading.flows.displaced()
        ),
    );
    facts
}

fn remarks(reading: &Reading) -> Vec<String> {
    let remarks = vec![
        "A replay is an open loop: each packet arrives when it was captured, and no sender reacts. TCP would \
         slow down after each drop and speed up where there is room. So trust what happens within a burst \
         more than what happens to a whole transfer. `fairgate compare` without `--trace` simulates senders \
         that react."
            .to_owned(),
        format!("Replayed packets: {}.", reading.view.describe()),
    ];
    [
        remarks,
        irregularities(&reading.counts, reading.pauses, reading.defect.as_deref()),
    ]
    .concat()
}

/// Returns remarks on what is irregular in a capture.
pub(super) fn irregularities(counts: &Counts, pauses: Pauses, defect: Option<&str>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(defect) = defect {
        remarks.push(format!("Only the beginning of the file is used: {defect}."));
    }
    if counts.out_of_order > 0 {
        remarks.push(format!(
            "{} packets had an earlier time than a packet before them, by up to {:.6} s. They arrive at the \
             latest time so far.",
            counts.out_of_order,
            counts.furthest_back as f64 / 1e9
        ));
    }
    if pauses.count > 0 {
        let Pauses {
            count,
            longest_nanos,
            behind,
        } = pauses;
        remarks.push(format!(
            "{count} pauses between two packets were longer than a day, the longest of {:.0} days after \
             packet {behind}. A clock was set, or captures were joined. Each pause is replayed as one \
             second.",
            longest_nanos as f64 / 86_400e9
        ));
    }
    if counts.interfaces > 1 {
        remarks.push(format!(
            "The capture is from {} interfaces. A packet that was captured at two of them is in it, and in \
             the replay, twice.",
            counts.interfaces
        ));
    }
    remarks
}

#[cfg(test)]
mod tests;
