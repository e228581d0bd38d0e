//! "What would each discipline have done to my traffic?": one pass over a capture, all disciplines side by side.
//!
//! The beginning of the file is read once more before, to find out which side is local. Then the file streams through:
//! this thread reads, dissects and names flows; a thread for each discipline runs its line. Packets travel in batches
//! that all lanes share, a few at a time, so that memory stays bounded however long the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use fairgate::classify::Prefix;
use fairgate::flow::dissect;
use fairgate::{DropReason, FlowHasher, Rate, Time};
use fairgate_capture::{Capture, CaptureError, Counts, Record};
use fairgate_config::BuildError;
use fairgate_report::{Comparison, Discipline, Fact, Group, Input, Meter, bin_width, jain};
use miette::Diagnostic;
use thiserror::Error;

use super::direction::{Direction, Side, Survey, View};
use super::flows::{FlowTable, Placed};
use super::lane::{Arrival, Books, Lane, QueueTooLong};
use super::{Contestant, offload};
use crate::exit::Failure;
use crate::output::Format;
use crate::progress;

/// Packets at the beginning of the capture that tell the local side.
const SURVEYED: u64 = 50_000;

/// Packets that travel together.
const BATCH: usize = 2048;

/// Batches that a lane may be behind.
const BATCHES_UNDER_WAY: usize = 8;

/// Every packet counts as an Ethernet frame without its check sequence, whatever link it was captured on.
const ETHERNET_HEADER: u32 = 14;

/// What the user asked for.
pub(super) struct Options {
    pub(super) file: PathBuf,
    pub(super) rate: Rate,
    pub(super) direction: Direction,
    pub(super) local: Vec<(String, Prefix)>,
    pub(super) from: Vec<(String, Prefix)>,
    pub(super) to: Vec<(String, Prefix)>,
    /// Only so much of the capture.
    pub(super) duration: Option<Duration>,
    /// Flows shown one by one.
    pub(super) top: usize,
    /// Longest IP packet on the line.
    pub(super) mtu: u32,
    /// Make do with what comes before a defect.
    pub(super) partial: bool,
    pub(super) seed: u64,
    /// Whether to show progress.
    pub(super) format: Format,
}

#[derive(Debug, Error, Diagnostic)]
enum TraceError {
    #[error("can't read all of {file}")]
    #[diagnostic(help("`--partial` compares on the packets before it"))]
    Broken { file: String, source: CaptureError },
    #[error("can't read {file}")]
    Unusable { file: String, source: CaptureError },
    #[error("{file}: there is no packet in it")]
    #[diagnostic(help(
        "a capture of at least some seconds of traffic is needed: tcpdump -i IFACE -s 96 -w my.pcap"
    ))]
    NoPackets { file: String },
    #[error("{file}: none of its {packets} packets is taken ({view})")]
    #[diagnostic(help(
        "`--direction all` takes every packet; `--local PREFIX` says who is on the local side; `--from` and `--to` \
         choose by address"
    ))]
    NothingTaken {
        file: String,
        packets: u64,
        view: String,
    },
    #[error(transparent)]
    Build(BuildError),
    #[error("the queue of `{discipline}` grew to {packets} packets, more than fit here")]
    #[diagnostic(help("give it a lower limit, or the line a rate nearer to the traffic's"))]
    QueueTooLong { discipline: String, packets: u32 },
}

impl TraceError {
    fn of(file: &Path, source: CaptureError) -> TraceError {
        let file = file.display().to_string();
        match source.leaves_a_sound_beginning() {
            true => TraceError::Broken { file, source },
            false => TraceError::Unusable { file, source },
        }
    }
}

/// What reading the capture brought, beside the arrivals.
#[derive(Default)]
struct Reading {
    counts: Counts,
    flows: FlowTable,
    taken: u64,
    opposite: u64,
    elsewhere: u64,
    /// Packets of the capture that were several on the line.
    joined: u64,
    defect: Option<String>,
    first: Option<Time>,
}

/// Replays the capture under each discipline.
pub(super) fn run(
    options: &Options,
    contestants: Vec<Contestant>,
    command: String,
) -> Result<Comparison, Failure> {
    let view = choose_view(options)?;
    let mut names = Vec::new();
    let mut lanes = Vec::new();
    for contestant in contestants {
        names.push(contestant.name);
        let discipline = contestant.spec.build(options.seed).map_err(TraceError::Build)?;
        lanes.push(Lane::new(discipline, options.rate));
    }
    let (reading, books) = std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        for mut lane in lanes {
            let (sender, receiver) = sync_channel::<Arc<Vec<Arrival>>>(BATCHES_UNDER_WAY);
            senders.push(sender);
            threads.push(scope.spawn(move || -> Result<Books, QueueTooLong> {
                for batch in receiver {
                    for arrival in batch.iter() {
                        lane.arrive(arrival)?;
                    }
                }
                Ok(lane.finish())
            }));
        }
        let reading = read(options, &view, senders);
        let books: Vec<Result<Books, QueueTooLong>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a lane ends with books or an error"))
            .collect();
        (reading, books)
    });
    let reading = reading?;
    let books = names
        .iter()
        .zip(books)
        .map(|(name, books)| {
            books.map_err(|error| TraceError::QueueTooLong {
                discipline: name.clone(),
                packets: error.packets,
            })
        })
        .collect::<Result<Vec<Books>, TraceError>>()?;
    if reading.taken == 0 {
        let file = options.file.display().to_string();
        return Err(match reading.counts.packets {
            0 => TraceError::NoPackets { file },
            packets => TraceError::NothingTaken {
                file,
                packets,
                view: view.describe(),
            },
        }
        .into());
    }
    Ok(assemble(options, &view, reading, names, books, command))
}

/// Which packets to take: as the user says, or by the beginning of the capture.
fn choose_view(options: &Options) -> Result<View, Failure> {
    if !options.from.is_empty() || !options.to.is_empty() {
        return Ok(View::Between {
            from: options.from.clone(),
            to: options.to.clone(),
        });
    }
    let mut survey = Survey::default();
    let fail = |source| Failure::from(TraceError::of(&options.file, source));
    let mut capture = Capture::open(&options.file).map_err(fail)?;
    while capture.counts().packets < SURVEYED {
        match capture.next_record() {
            Ok(Some(record)) => survey.add(&dissect(record.data, record.link).key, record.length),
            // A defect is told when the whole is read.
            Ok(None) | Err(_) => break,
        }
    }
    Ok(survey.view(options.direction, &options.local))
}

/// Reads the capture and hands what is taken to all lanes. A lane that has failed is noticed when it is joined.
fn read(
    options: &Options,
    view: &View,
    senders: Vec<SyncSender<Arc<Vec<Arrival>>>>,
) -> Result<Reading, Failure> {
    let mut capture = Capture::open(&options.file).map_err(|source| TraceError::of(&options.file, source))?;
    let bar = progress::bytes(capture.size(), options.format);
    let hasher = FlowHasher::new([options.seed, 0]);
    let mut reading = Reading::default();
    let mut batch = Vec::with_capacity(BATCH);
    let deliver = |batch: &mut Vec<Arrival>| {
        let full = Arc::new(std::mem::replace(batch, Vec::with_capacity(BATCH)));
        senders
            .iter()
            .all(|sender| sender.send(Arc::clone(&full)).is_ok())
    };
    loop {
        let record = match capture.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) if options.partial && error.leaves_a_sound_beginning() => {
                let cause =
                    std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
                reading.defect = Some(format!("{error}{cause}"));
                break;
            }
            Err(error) => return Err(TraceError::of(&options.file, error).into()),
        };
        let first = *reading.first.get_or_insert(record.time);
        let time = Time::from_nanos(record.time - first);
        if options
            .duration
            .is_some_and(|most| u128::from(time.nanos()) >= most.as_nanos())
        {
            break;
        }
        reading.take(&record, time, options.mtu, view, &hasher, &mut batch);
        if batch.len() >= BATCH {
            bar.set_position(capture.position());
            if !deliver(&mut batch) {
                break;
            }
        }
    }
    deliver(&mut batch);
    reading.counts = capture.counts();
    bar.finish_and_clear();
    Ok(reading)
}

impl Reading {
    /// Puts the packets of a record into `batch`, if they crossed the line.
    fn take(
        &mut self,
        record: &Record,
        time: Time,
        mtu: u32,
        view: &View,
        hasher: &FlowHasher,
        batch: &mut Vec<Arrival>,
    ) {
        let dissection = dissect(record.data, record.link);
        match view.side(&dissection.key) {
            Side::Taken => self.taken += 1,
            Side::Opposite => {
                self.opposite += 1;
                return;
            }
            Side::Elsewhere => {
                self.elsewhere += 1;
                return;
            }
        }
        let mut push = |length: u32| {
            batch.push(Arrival {
                time,
                flow: self.flows.place(&dissection.key, length),
                packet: dissection.packet(length, hasher),
                key: dissection.key,
            });
        };
        // Without an IP header there is nothing below it to take off: the packet counts as it is.
        let Some(offset) = dissection.network_offset else {
            return push(record.length);
        };
        let ip_length = record.length.saturating_sub(u32::from(offset));
        let captured = record.data.get(usize::from(offset)..).unwrap_or(&[]);
        match offload::cut(captured, ip_length, dissection.key.protocol, mtu) {
            None => push(ETHERNET_HEADER + ip_length),
            Some(pieces) => {
                self.joined += 1;
                for _ in 0..pieces.full {
                    push(ETHERNET_HEADER + pieces.full_length);
                }
                if pieces.last_length > 0 {
                    push(ETHERNET_HEADER + pieces.last_length);
                }
            }
        }
    }
}

/// Names, sums up, and says what to know of it.
fn assemble(
    options: &Options,
    view: &View,
    reading: Reading,
    names: Vec<String>,
    books: Vec<Books>,
    command: String,
) -> Comparison {
    let duration = books.iter().map(|books| books.end).max().unwrap_or(Time::ZERO);
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
        });
    }
    let disciplines = names
        .into_iter()
        .zip(books)
        .map(|(name, books)| discipline(name, books, shown, with_rest, duration))
        .collect();
    Comparison {
        version: env!("CARGO_PKG_VERSION"),
        command,
        seed: options.seed,
        input: Input::Capture {
            file: options.file.display().to_string(),
            packets: reading.counts.packets,
            replayed: reading.taken,
        },
        rate_bps: options.rate.bits_per_second(),
        duration_ns: duration.nanos(),
        bin_ns: bin_width(duration),
        facts: facts(options, view, &reading),
        remarks: remarks(view, &reading),
        groups,
        fairness_over: "the part of its packets' bytes that each flow shown got through".into(),
        disciplines,
    }
}

fn discipline(
    name: String,
    mut books: Books,
    shown: &[Placed],
    with_rest: bool,
    duration: Time,
) -> Discipline {
    let mut meters: Vec<Meter> = shown.iter().map(|flow| books.take(flow.place)).collect();
    let rest = books.take_rest();
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
        utilisation: books.busy_nanos as f64 / (duration.nanos() as f64).max(1.0),
        fairness: jain(&shares),
        drops: drops(&books.drops),
        queue: books.queue.finish(duration),
    }
}

/// Packets dropped by reason, those that occurred.
fn drops(by_reason: &[u64; DropReason::COUNT]) -> BTreeMap<String, u64> {
    DropReason::ALL
        .into_iter()
        .zip(by_reason)
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| (reason.name().to_owned(), *count))
        .collect()
}

fn facts(options: &Options, view: &View, reading: &Reading) -> Vec<Fact> {
    let counts = &reading.counts;
    let fact = |label: &str, value: String| Fact {
        label: label.into(),
        value,
    };
    let mut facts = vec![
        fact("Capture", options.file.display().to_string()),
        fact("Direction taken", view.describe()),
        fact(
            "Packets",
            format!(
                "{} in the capture: {} replayed, {} of the opposite direction, {} that never crossed the line (local, \
             multicast, no IP)",
                counts.packets, reading.taken, reading.opposite, reading.elsewhere
            ),
        ),
        fact(
            "Length of a packet",
            "its Ethernet frame without check sequence: IP packet plus 14 bytes".into(),
        ),
        fact(
            "Delay of a packet",
            "from its arrival at the line to its last bit".into(),
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
    if_any(
        counts.empty,
        "Without a byte",
        format!("{} packets", counts.empty),
    );
    if_any(
        counts.without_time,
        "Without a time",
        format!(
            "{} packets, taken at the time of the packet before",
            counts.without_time
        ),
    );
    if_any(
        reading.joined,
        "Joined by the capturing host",
        format!(
            "{} packets were longer than {} bytes and are replayed as the packets that they were on the line",
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
        "Flows not followed to the end",
        format!(
            "{} small ones: only so many are kept apart at a time, the others count as a whole",
            reading.flows.displaced()
        ),
    );
    facts
}

fn remarks(view: &View, reading: &Reading) -> Vec<String> {
    let mut remarks = vec![
        "A replay is an open loop: each packet comes when it was captured, and no sender reacts. TCP would have slowed \
         down after each drop and sped up where there was room, so believe what happens within a burst more than what \
         happens to a transfer as a whole. `fairgate compare` without `--trace` simulates senders that react."
            .to_owned(),
        format!("Taken was the {}.", view.describe()),
    ];
    let counts = &reading.counts;
    if let Some(defect) = &reading.defect {
        remarks.push(format!("Only the beginning of the file is used: {defect}."));
    }
    if counts.out_of_order > 0 {
        remarks.push(format!(
            "{} packets had an earlier time than a packet before them, by up to {:.6} s; they arrive at the latest time \
             so far.",
            counts.out_of_order,
            counts.furthest_back as f64 / 1e9
        ));
    }
    if counts.interfaces > 1 {
        remarks.push(format!(
            "The capture comes from {} interfaces: a packet forwarded from one to another is in it, and here, twice.",
            counts.interfaces
        ));
    }
    remarks
}
