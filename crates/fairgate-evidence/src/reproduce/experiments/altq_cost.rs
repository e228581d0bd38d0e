//! Tables 1 to 3 and Figure 7 of the ALTQ paper: what a discipline, filters and classes cost.
//!
//! The paper took the latency of requests over ATM. Here frames of a capture take the live packet path, from
//! the receiving to the sending end without the kernel, and the time of a packet is measured. The kernel
//! would add tens of microseconds to each packet, and much more noise than a discipline costs. Everything is
//! measured in turns, so that a slow minute affects all cases equally. How much longer a case takes than
//! another is the median of the differences within each turn. Its error is half of its 95 % interval. A claim
//! that depends on less is not judged. `--live` also measures the throughput of TCP through bridges.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fairgate_config::Document;
use fairgate_live::testbed::{Interrupt, TestbedError};
use fairgate_live::{Captures, DryRun, Plan};
use fairgate_report::chart::{Chart, Curve, Drawn, Point, Scale};
use fairgate_sim::Scenario;
use fairgate_theory::estimate::Estimate;
use serde::Deserialize;

use crate::lab::{Lab, Machine};
use crate::reproduce::findings::LiveReport;
use crate::reproduce::{Figure, Findings, ReproduceError, Run};

/// The frames of a capture. It is read many times, and is so short that it stays in a second-level cache.
const FRAMES: u64 = 200;
/// The time between two frames, µs: at this distance no class is over its limit.
const GAP: u32 = 20;
/// What is called almost constant: the paper's greatest value, in Table 2, is so many times its least.
const ALMOST: f64 = 11.9 / 9.0;
/// What matters little.
const TENTH: f64 = 0.1;
/// The paper's greatest overhead over a link, Table 1: 1.07 %.
const NO_EFFECT: f64 = 1.07;

/// The parameters in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// How often each case is measured, and the passes through the capture each time.
    turns: u32,
    passes: u64,
    /// Lengths of frames.
    #[serde(default)]
    frames: Vec<usize>,
    /// Names of queues in the file, in the paper's order of cost. The first one is the base.
    #[serde(default)]
    queues: Vec<String>,
    /// Numbers of filters and classes.
    #[serde(default)]
    counts: Vec<u32>,
}

/// The times of a packet in each turn, ns.
struct Turns(Vec<f64>);

impl Turns {
    fn median(&self) -> Timed {
        Timed::median(self.0.clone())
    }

    /// Returns how much longer these take than those of `base`, turn by turn.
    fn above(&self, base: &Turns) -> Timed {
        let pairs = self.0.iter().zip(&base.0);
        Timed::median(pairs.map(|(own, base)| own - base).collect())
    }
}

/// A time, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Timed {
    nanos: f64,
    /// Half of the 95 % interval.
    error: f64,
}

impl Timed {
    /// Returns the median, and the interval between the order statistics that contain it with a probability
    /// of 95 %: as many are above as a fair coin shows heads.
    fn median(mut all: Vec<f64>) -> Timed {
        all.sort_by(f64::total_cmp);
        let count = all.len();
        let nanos = (all[count / 2] + all[(count - 1) / 2]) / 2.0;
        let half = 0.98 * (count as f64).sqrt();
        let low = (count as f64 / 2.0 - half).floor();
        // The approximation by the normal distribution needs eight values.
        let error = match low {
            low if low < 1.0 => f64::INFINITY,
            low => (all[count - low as usize] - all[low as usize - 1]) / 2.0,
        };
        Timed { nanos, error }
    }

    /// Returns whether it is at most `limit`. `None` if that is uncertain.
    fn is_at_most(self, limit: f64) -> Option<bool> {
        match self.nanos {
            nanos if nanos + self.error <= limit => Some(true),
            nanos if nanos - self.error > limit => Some(false),
            _ => None,
        }
    }

    fn text(self) -> String {
        format!("{:.0} ns (error {:.0})", self.nanos, self.error)
    }
}

/// Returns whether all hold: no if one does not hold, and `None` if one that matters is uncertain.
fn all(each: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let each: Vec<Option<bool>> = each.into_iter().collect();
    match each.contains(&None) {
        _ if each.contains(&Some(false)) => Some(false),
        true => None,
        false => Some(true),
    }
}

/// Adds the verdict on a claim.
fn judge(findings: &mut Findings, claim: &str, holds: Option<bool>, found: String) {
    match holds {
        Some(holds) => findings.judge(claim, holds, found),
        None => findings.leave_open(claim, format!("the error is too large: {found}")),
    }
}

/// A case: its name, its configuration, and the length of its frames.
struct Case {
    name: String,
    file: String,
    frame: usize,
}

/// Tables 1 to 3.
pub(super) fn overhead(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let parameters: Parameters = run.parameters()?;
    let mut cases = Vec::new();
    for &frame in &parameters.frames {
        for queue in &parameters.queues {
            cases.push(Case {
                name: format!("{queue}, {frame} B"),
                file: format!("{}\n[run]\nleft_to_right = \"{queue}\"\n", run.document.text()),
                frame,
            });
        }
    }
    let (times, machine) = Machine::during(|| measure(run, &parameters, &cases));
    let times = times?;
    let mut findings = Findings::default();
    tell(&mut findings, &cases, &times);
    let at = |queue: &str, frame: usize| {
        let name = format!("{queue}, {frame} B");
        let place = cases.iter().position(|case| case.name == name);
        &times[place.expect("all combinations were measured")]
    };
    let base = parameters.queues[0].as_str();
    let added = |queue: &str, frame: usize| at(queue, frame).above(at(base, frame));
    let mut curves = Vec::new();
    for (colour, queue) in parameters.queues.iter().skip(1).enumerate() {
        let each: Vec<f64> = (parameters.frames.iter())
            .map(|&frame| added(queue, frame).nanos)
            .collect();
        for (&frame, &nanos) in parameters.frames.iter().zip(&each) {
            let name = format!("{queue}, {frame} B");
            findings.measure("time added to that of a fifo", name, "ns", Estimate::exact(nanos));
        }
        let points = parameters.frames.iter().zip(each);
        let points = points.map(|(&x, y)| Point {
            x: x as f64,
            y,
            interval: None,
        });
        curves.push(Curve {
            drawn: Drawn::LineAndMarks,
            ..Curve::marks(queue.clone(), colour, points)
        });
    }
    findings.figures.push(chart(
        "Time of a packet, above that of a fifo",
        "length of frames, bytes",
        curves,
    ));

    let smallest = parameters.frames[0];
    let costly = &parameters.queues[1..];
    let text: Vec<String> = (costly.iter())
        .map(|queue| format!("{queue} {}", added(queue, smallest).text()))
        .collect();
    // Each one minus the next one is below 0.
    let order = costly.windows(2).map(|pair| {
        let [less, more] = [&pair[0], &pair[1]].map(|queue| at(queue, smallest));
        less.above(more).is_at_most(0.0)
    });
    let found = format!("above the fifo, with {smallest} B: {}", text.join(", "));
    judge(&mut findings, "order", all(order), found);
    let of_cbq: Vec<Timed> = (parameters.frames.iter())
        .map(|&frame| added("CBQ", frame))
        .collect();
    // Of each two, one takes at most so many times as long as the other one.
    let is_constant = of_cbq.iter().flat_map(|more| {
        let each = of_cbq.iter().map(|less| Timed {
            nanos: more.nanos - ALMOST * less.nanos,
            error: more.error + ALMOST * less.error,
        });
        each.map(|beyond| beyond.is_at_most(0.0))
    });
    let text: Vec<String> = (parameters.frames.iter().zip(&of_cbq))
        .map(|(frame, time)| format!("{} with {frame} B", time.text()))
        .collect();
    let found = format!("CBQ adds {}", text.join(", "));
    judge(&mut findings, "constant", all(is_constant), found);
    match run.conditions.live {
        None => {
            for claim in ["throughput", "loopback"] {
                findings.leave_open(claim, "TCP needs a live run: add --live");
            }
        }
        Some(interrupt) => throughput(run, interrupt, &mut findings)?,
    }
    findings.remark(how(&parameters, &machine));
    Ok(findings)
}

/// Figure 7.
pub(super) fn filters(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let parameters: Parameters = run.parameters()?;
    type File = fn(u32) -> String;
    let kinds: [(&str, File); 3] = [
        ("wildcard filters", |count| filters_of(count, false)),
        ("fixed filters", |count| filters_of(count, true)),
        ("classes", classes_of),
    ];
    let mut cases = Vec::new();
    for (kind, file) in kinds {
        for &count in &parameters.counts {
            cases.push(Case {
                name: format!("{count} {kind}"),
                file: file(count),
                frame: 64,
            });
        }
    }
    let (times, machine) = Machine::during(|| measure(run, &parameters, &cases));
    let times = times?;
    let mut findings = Findings::default();
    tell(&mut findings, &cases, &times);
    let time_of = |kind: &str, count: u32| {
        let name = format!("{count} {kind}");
        let place = cases.iter().position(|case| case.name == name);
        &times[place.expect("all combinations were measured")]
    };
    let added = |kind: &str, count: u32| {
        // As in the paper, filters are added to a first one: a packet is classified in each case.
        time_of(kind, count).above(time_of(kind, u32::from(kind != "classes")))
    };
    let up_to = |most: u32| -> Vec<Curve> {
        let each = kinds.iter().enumerate().map(|(colour, (kind, _))| {
            let least = u32::from(*kind != "classes");
            let counts = parameters
                .counts
                .iter()
                .filter(|&&count| (least..=most).contains(&count));
            let points = counts.map(|&count| Point {
                x: f64::from(count),
                y: added(kind, count).nanos,
                interval: None,
            });
            Curve {
                drawn: Drawn::LineAndMarks,
                ..Curve::marks(*kind, colour, points)
            }
        });
        each.collect()
    };
    let most = parameters.counts.iter().copied().max().unwrap_or(0);
    for (title, most) in [("up to 100, as published", 100), ("all", most)] {
        let title = format!("Time added to a packet by filters and classes: {title}");
        findings
            .figures
            .push(chart(&title, "filters or classes", up_to(most)));
    }
    let text = |kind: &str, counts: &[u32]| {
        let each = counts
            .iter()
            .map(|&count| format!("{count}: {}", added(kind, count).text()));
        format!("added by {kind}: {}", each.collect::<Vec<_>>().join(", "))
    };
    let published = [10, 50, 100];
    let [half, whole] = [50, 100].map(|count| added("wildcard filters", count));
    // Twice as many filters add twice as much, within a tenth.
    let distance = Timed {
        nanos: (whole.nanos - 2.0 * half.nanos).abs(),
        error: whole.error + 2.0 * half.error,
    };
    let is_linear = distance.is_at_most(TENTH * 2.0 * half.nanos);
    judge(
        &mut findings,
        "linear",
        is_linear,
        text("wildcard filters", &published),
    );
    let is_index = added("wildcard filters", most).is_at_most(10.0 * whole.nanos);
    judge(
        &mut findings,
        "logarithmic",
        is_index,
        text("wildcard filters", &[100, most]),
    );
    let [few, many] = [10, 100].map(|count| added("fixed filters", count));
    let beyond = Timed {
        nanos: many.nanos - 2.0 * few.nanos,
        error: many.error + 2.0 * few.error,
    };
    let fixed = text("fixed filters", &published);
    judge(&mut findings, "fixed", beyond.is_at_most(0.0), fixed);
    for (claim, kind, count) in [("classes", "classes", 0), ("fixed-tenth", "fixed filters", 1)] {
        let added = added(kind, 100);
        let base = time_of(kind, count).median();
        let change = Timed {
            nanos: added.nanos.abs(),
            ..added
        };
        let found = format!("{}; a packet takes {}", text(kind, &published), base.text());
        let is_little = change.is_at_most(TENTH * base.nanos);
        judge(&mut findings, claim, is_little, found);
    }
    findings.remark(how(&parameters, &machine));
    if run.conditions.live.is_some() {
        findings.remark("Nothing of this experiment depends on the network: `--live` changes nothing.");
        findings.live = Some(LiveReport::of(&[machine]));
    }
    Ok(findings)
}

fn how(parameters: &Parameters, machine: &Machine) -> String {
    format!(
        "Times are the median of {} turns of {} packets each on the live packet path, without the kernel. \
         The processors were idle for {:.0} % of the time meanwhile.",
        parameters.turns,
        parameters.passes * FRAMES,
        100.0 * machine.idle
    )
}

fn chart(title: &str, x: &str, curves: Vec<Curve>) -> Figure {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let right = points().map(|point| point.x).fold(1.0, f64::max);
    let top = points().map(|point| point.y).fold(1.0, f64::max);
    let bottom = points().map(|point| point.y).fold(0.0, f64::min);
    Figure::Chart(Chart {
        title: title.to_owned(),
        x: Scale::linear(x, 0.0, right),
        y: Scale::linear("ns", bottom * 1.05, top * 1.05),
        curves,
    })
}

fn tell(findings: &mut Findings, cases: &[Case], times: &[Turns]) {
    for (case, time) in cases.iter().zip(times) {
        let nanos = time.median().nanos;
        findings.measure(
            "time of a packet",
            case.name.clone(),
            "ns",
            Estimate::exact(nanos),
        );
    }
}

/// Returns a configuration of CBQ with a class that takes the packet, and filters that match other packets.
fn filters_of(count: u32, is_fixed: bool) -> String {
    let mut file = head();
    for number in 0..count {
        // A port that no packet has. A filter with an address is one that the paper hashes.
        let port = 20_000 + number;
        let _ = write!(file, "[[queue.line.filter]]\nclass = 1\nsource_port = {port}\n");
        if is_fixed {
            let [high, low] = (number as u16).to_be_bytes();
            let _ = writeln!(file, "destination = \"10.9.{high}.{low}/32\"");
        }
    }
    file + "[run]\nleft_to_right = \"line\"\n"
}

/// Returns a configuration of CBQ with more classes, which are idle.
fn classes_of(count: u32) -> String {
    let mut file = head();
    for number in 0..count {
        let id = 200 + number;
        let _ = write!(
            file,
            "[[queue.line.class]]\nid = {id}\nparent = 100\nrate = \"10kbit\"\n\
             discipline = \"fifo\"\nlimit = 50\n"
        );
    }
    file + "[run]\nleft_to_right = \"line\"\n"
}

/// CBQ with three classes, as in the paper.
fn head() -> String {
    "[queue.line]\ndiscipline = \"cbq\"\nbandwidth = \"1gbit\"\npacket = \"64b\"\nmax_packet = \"1514b\"\n\
     default = 2\n[[queue.line.class]]\nid = 100\nrate = \"1gbit\"\n[[queue.line.class]]\nid = 1\n\
     parent = 100\nrate = \"100mbit\"\ndiscipline = \"fifo\"\nlimit = 50\n[[queue.line.class]]\nid = 2\n\
     parent = 100\nrate = \"800mbit\"\ndiscipline = \"fifo\"\nlimit = 50\n"
        .to_owned()
}

/// Measures the time of a packet in each case, ns.
fn measure(run: &Run<'_>, parameters: &Parameters, cases: &[Case]) -> Result<Vec<Turns>, ReproduceError> {
    let folder = tempfile::tempdir().map_err(system("creating a temporary folder"))?;
    let (turns, passes) = match run.conditions.quick {
        true => (1, 1),
        false => (parameters.turns, parameters.passes),
    };
    let mut prepared = Vec::new();
    for case in cases {
        let file = case
            .file
            .replace("[run]", "[run]\nleft = \"left\"\nright = \"right\"\nframes = 64");
        let plan = Plan::read(&Document::parse(&case.name, &file)?)?;
        let path = folder.path().join(format!("{}.pcap", case.frame));
        if !path.exists() {
            std::fs::write(&path, capture(case.frame)).map_err(system("writing a capture"))?;
        }
        prepared.push((plan, path));
    }
    let mut times: Vec<Turns> = cases.iter().map(|_| Turns(Vec::new())).collect();
    for turn in 0..turns {
        for place in 0..cases.len() {
            // Each case comes first in some turns: what a case leaves in the caches is seen by the next one.
            let number = (place + turn as usize) % cases.len();
            let (plan, path) = &prepared[number];
            let done = f64::from(turn) + place as f64 / cases.len() as f64;
            (run.conditions.progress)(done / f64::from(turns), &cases[number].name);
            if let Some(interrupt) = run.conditions.live {
                interrupt.check().map_err(crate::lab::LabError::from)?;
            }
            times[number].0.push(time(plan, path, passes)?);
        }
    }
    Ok(times)
}

/// Returns the time of a packet, ns. The first pass is not counted: it brings the capture into the caches.
fn time(plan: &Plan, path: &Path, passes: u64) -> Result<f64, ReproduceError> {
    let captures = Captures {
        received: [Some(PathBuf::from(path)), None],
        sent: [None, None],
        passes: 1 + passes,
    };
    let failed = |error: fairgate_live::DryRunError| system("forwarding a capture")(io::Error::other(error));
    let mut dry = DryRun::open(plan, captures, Some(1)).map_err(failed)?;
    dry.go_on(FRAMES as usize).map_err(failed)?;
    let start = Instant::now();
    while dry.go_on(10_000).map_err(failed)? {}
    Ok(start.elapsed().as_nanos() as f64 / (passes * FRAMES) as f64)
}

fn system(action: &str) -> impl FnOnce(io::Error) -> ReproduceError {
    let action = action.to_owned();
    move |error| {
        let reason = error.to_string();
        ReproduceError::Live(TestbedError::System { action, reason }.into())
    }
}

/// Returns a capture of UDP packets of this length, as pcap.
fn capture(length: usize) -> Vec<u8> {
    let mut file = Vec::new();
    // Magic number, version 2.4, time zone, accuracy, longest packet, Ethernet.
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    // The length on the wire has a check sequence of 4 bytes, which captures lack.
    let captured = (length - 4) as u32;
    let mut frame = vec![0u8; captured as usize];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip = &mut frame[14..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((captured - 14) as u16).to_be_bytes());
    ip[8..10].copy_from_slice(&[64, 17]);
    ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    ip[20..24].copy_from_slice(&[0x10, 0x00, 0x20, 0x00]);
    ip[24..26].copy_from_slice(&((captured - 34) as u16).to_be_bytes());
    for number in 0..FRAMES as u32 {
        for word in [1, number * GAP, captured, captured] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame);
    }
    file
}

/// A link of Table 1, and the claim of which it is a part.
struct Row {
    claim: &'static str,
    name: &'static str,
    rate: &'static str,
    /// The longest segment of TCP, bytes: the MTU without the 52 bytes of the headers of IP and TCP.
    mss: u32,
    /// The part of the throughput that CBQ may take, per cent.
    most: f64,
}

impl Row {
    const fn link(rate: &'static str) -> Row {
        Row {
            claim: "throughput",
            name: rate,
            rate,
            mss: 1448,
            most: NO_EFFECT,
        }
    }

    /// The processor is the limit here, not a link.
    const fn loopback(name: &'static str, mtu: u32, most: f64) -> Row {
        Row {
            claim: "loopback",
            name,
            rate: "100gbit",
            mss: mtu - 52,
            most,
        }
    }
}

const TABLE_1: [Row; 5] = [
    Row::link("10mbit"),
    Row::link("100mbit"),
    Row::loopback("MTU 16384", 16_384, 8.58),
    Row::loopback("MTU 9180", 9_180, 7.08),
    Row::loopback("MTU 1500", 1_500, 22.63),
];

/// Measures TCP through CBQ and through a fifo on the links of Table 1, once for each seed, Mbit/s.
fn throughput(run: &Run<'_>, interrupt: &Interrupt, findings: &mut Findings) -> Result<(), ReproduceError> {
    let mut machines = Vec::new();
    for rows in TABLE_1.chunk_by(|one, other| one.claim == other.claim) {
        let mut text = Vec::new();
        let mut holds = true;
        for row in rows {
            let queues = match row.claim {
                "loopback" => ["fifo, no limit", "CBQ, no limit"],
                _ => ["fifo", "CBQ"],
            };
            let names = queues.map(|queue| format!("{queue}, {}", row.name));
            let mut values = [const { Vec::new() }; 2];
            // In pairs: what else the machine does is then the same for both.
            for &seed in run.conditions.seeds {
                for ((queue, name), values) in queues.iter().zip(&names).zip(&mut values) {
                    (run.conditions.progress)(1.0, &format!("TCP through {name}"));
                    let mut scenario = tcp_through(run.document, queue, row)?;
                    scenario.seed = seed;
                    let lab = Lab {
                        interrupt,
                        kernel: &[],
                    };
                    let live = lab.run(&scenario, &|_| ())?;
                    values.push(live.results.goodput_bps as f64 * 1e-6);
                    machines.push(live.machine);
                }
            }
            let mut means = Vec::new();
            for (name, values) in names.into_iter().zip(values) {
                let value = Estimate::of(&values).expect("there is at least one seed");
                findings.measure("TCP throughput", name, "Mbit/s", value);
                means.push(value.mean);
            }
            let overhead = 100.0 * (1.0 - means[1] / means[0]);
            holds &= overhead <= row.most;
            text.push(format!("{overhead:.2} % less with CBQ, {}", row.name));
        }
        text.push(LiveReport::of(&machines).idle_text());
        findings.judge(rows[0].claim, holds, text.join(", "));
    }
    let report = LiveReport::of(&machines);
    findings.remark(report.text());
    findings.live = Some(report);
    Ok(())
}

/// Returns a TCP connection over a link with this queue of the file.
fn tcp_through(file: &Document, queue: &str, row: &Row) -> Result<Scenario, ReproduceError> {
    let Row { rate, mss, .. } = row;
    let text = format!(
        "{}\n[simulate]\nduration = \"6s\"\nmeasure = [\"1s\", \"6s\"]\n[[simulate.link]]\na = \"A\"\n\
         b = \"B\"\nrate = \"{rate}\"\ndelay = \"200us\"\nqueue_a = \"{queue}\"\n\
         [[simulate.flow]]\nname = \"tcp\"\n\
         from = \"A\"\nto = \"B\"\ntcp = {{ mss = {mss} }}\n",
        file.text()
    );
    Ok(Scenario::read(&Document::parse("throughput.toml", &text)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval of a median, by hand: of 100 values those at 40 and 61 (Conover, table A3).
    #[test]
    fn a_median_has_the_interval_of_its_order_statistics() {
        let all = (1..=100).rev().map(f64::from).collect();
        let expected = Timed {
            nanos: 50.5,
            error: 10.5,
        };
        assert_eq!(Timed::median(all), expected);
        let few = Timed::median(vec![3.0, 1.0, 2.0]);
        assert_eq!((few.nanos, few.error), (2.0, f64::INFINITY));
    }

    /// What slows both of a pair changes no difference.
    #[test]
    fn differences_are_those_within_a_turn() {
        let base = Turns((0..50).map(|turn| f64::from(turn * turn)).collect());
        let own = Turns(base.0.iter().map(|nanos| nanos + 7.0).collect());
        assert_eq!(
            own.above(&base),
            Timed {
                nanos: 7.0,
                error: 0.0
            }
        );
    }
}
