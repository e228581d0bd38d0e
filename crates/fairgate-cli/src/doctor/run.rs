//! What a run counts over some seconds: whether the queue is in it, or at a slower place behind it, and
//! whether anything is lost or goes past it.

use fairgate_config::Document;
use fairgate_config::autorate::RootRate;
use fairgate_live::readings::InterfaceReading;
use fairgate_run_api::{AutorateStatus, DirectionStatus, FlowsStatus, QUEUE, Status};

use super::{Finding, Level, counted, network, or_ok};

/// Round trips behind the run that are this much longer than the shortest one say that a queue is there, ms.
/// It is more than the jitter of a line, and as much as a fair queue keeps at its own bottleneck.
const EXCESS: f64 = 20.0;
/// Round trips that are this long may be those of a long path, or of a queue that is always full, ms.
const LONG: f64 = 150.0;
/// So many packets of a flow are enough to judge its round trips, and show that it does not wait for its
/// application.
const ENOUGH: u64 = 100;
/// What a direction has to send at least, so that its figures say something, bit/s.
const LEAST: f64 = 100e3;
/// A rate that is proposed: this share of what the line has carried, per cent.
const SHARE: u64 = 95;

/// What was read of a run: twice, with some seconds between.
pub(crate) struct RunReading {
    /// The first status, with the description of the trees.
    pub(crate) before: Status,
    pub(crate) after: Status,
    pub(crate) flows: FlowsStatus,
    /// The options that name the run in a command.
    pub(crate) options: String,
}

/// What one direction has done meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
struct Meanwhile {
    from: String,
    to: String,
    /// The rate at the root of the tree, bit/s, if it has one.
    rate: Option<u64>,
    /// What has left the tree, bit/s.
    sent: f64,
    /// The mean time of packets in the tree, ms.
    delay: f64,
    /// The round trips of its largest flow behind the run, ms: the median of the last ones, and the shortest.
    round_trip: Option<[f64; 2]>,
    /// How often the interface had no room.
    full: u64,
    /// What it has sent over the last second, bit/s: no queue fills any more.
    at_the_end: f64,
}

/// Judges a run.
pub(crate) fn judge(reading: &RunReading) -> Vec<Finding> {
    let name = &reading.after.name;
    let mut found = rates(reading);
    found.extend(network::full_nodes(&reading.before, &reading.after));
    found.extend(or_ok(
        losses(reading),
        "losses",
        name,
        "no packet is lost outside of the queues",
    ));
    found.extend(or_ok(
        passed_by(&reading.after),
        "bypass",
        name,
        "no packet went past the run",
    ));
    if let Some(fallback) = &reading.after.fallback {
        found.push(
            Finding::new(
                Level::Problem,
                "file",
                name,
                format!("another configuration than the file's: {fallback}"),
                "What the file says does not forward.",
            )
            .remedy("correct the file, then: fairgate reload"),
        );
    }
    found
}

/// Judges whether the trees get to queue at all.
fn rates(reading: &RunReading) -> Vec<Finding> {
    let name = &reading.after.name;
    let directions: Vec<Meanwhile> = (0..reading.after.directions.len())
        .filter_map(|index| meanwhile(reading, index))
        .collect();
    let mut found: Vec<Finding> = autorate(reading, &directions);
    let busy = directions.iter().filter_map(|direction| direction.round_trip);
    let is_busy = busy.count() > 0;
    let mut judged = Vec::new();
    for direction in &directions {
        judged.extend(elsewhere(name, direction, &directions, reading));
        judged.extend(full(name, direction));
    }
    found.extend(judged);
    let state: Vec<String> = directions.iter().map(Meanwhile::words).collect();
    let state = state.join("; ");
    if !found.is_empty() {
        return found;
    }
    match is_busy {
        true => vec![Finding::ok("rate", name, state)],
        false => vec![
            Finding::new(
                Level::Note,
                "rate",
                name,
                format!("too little TCP to judge: {state}"),
                "Only a line that is loaded shows where its queue is.",
            )
            .remedy(format!(
                "load the line, for example by a download, meanwhile: fairgate doctor{}",
                reading.options
            )),
        ],
    }
}

impl Meanwhile {
    /// How much of its rate it uses. Without a rate nothing can be too high.
    fn share(&self) -> f64 {
        self.rate.map_or(0.0, |rate| self.sent / rate as f64)
    }

    fn words(&self) -> String {
        let of = self
            .rate
            .map_or(String::new(), |rate| format!(" of {}", mbit(rate as f64)));
        format!(
            "from {} {}{of}, held for {:.1} ms",
            self.from,
            mbit(self.sent),
            self.delay
        )
    }
}

fn mbit(bits: f64) -> String {
    format!("{:.1} Mbit/s", bits / 1e6)
}

/// Compares two readings of a direction.
fn meanwhile(reading: &RunReading, index: usize) -> Option<Meanwhile> {
    let [before, after] = [&reading.before, &reading.after].map(|status| status.directions.get(index));
    let (before, after) = (before?, after?);
    let seconds = (reading.after.uptime_s - reading.before.uptime_s).max(1e-3);
    let bytes = after.sent.bytes.saturating_sub(before.sent.bytes);
    let left = after
        .tree
        .dequeued
        .packets
        .saturating_sub(before.tree.dequeued.packets);
    let waited = (after.tree.sojourn_s - before.tree.sojourn_s).max(0.0);
    Some(Meanwhile {
        from: after.from.clone(),
        to: after.to.clone(),
        rate: root_rate(before).map(|(_, rate)| rate),
        sent: bytes as f64 * 8.0 / seconds,
        delay: waited * 1e3 / left.max(1) as f64,
        round_trip: round_trip(&reading.flows, &after.from),
        at_the_end: after.rate_bps,
        full: after.socket_full.saturating_sub(before.socket_full),
    })
}

/// Returns where a tree has its rate, and the rate, bit/s.
fn root_rate(direction: &DirectionStatus) -> Option<(RootRate, u64)> {
    let document = Document::parse("the trees", &direction.queue).ok()?;
    let tree = document.queue(QUEUE)?;
    let root = RootRate::of(tree).ok()?;
    Some((root, root.get(tree)?.bits_per_second()))
}

/// Returns the round trips of the flow with most packets in a direction, of those that go on: the median of
/// its last ones, and the shortest one to the same destination.
fn round_trip(flows: &FlowsStatus, from: &str) -> Option<[f64; 2]> {
    let of_direction = flows.flows.iter().filter(|flow| flow.from == from);
    let largest = of_direction
        .clone()
        .filter(|flow| flow.packets >= ENOUGH && flow.idle_s < 1.0 && flow.round_trip_ms.is_some())
        .max_by_key(|flow| flow.packets)?;
    let to_the_same = of_direction.filter(|flow| flow.destination == largest.destination);
    let shortest = to_the_same.filter_map(|flow| Some(flow.round_trip_ms?.minimum));
    Some([
        largest.round_trip_ms?.median,
        shortest.fold(f64::INFINITY, f64::min),
    ])
}

/// Finds a queue behind the run: round trips grow there while the tree holds nothing back. They are the same
/// for both directions of a line, so the one that uses more of its rate is named.
fn elsewhere(name: &str, direction: &Meanwhile, all: &[Meanwhile], reading: &RunReading) -> Option<Finding> {
    let [median, shortest] = direction.round_trip?;
    let loaded = all
        .iter()
        .max_by(|one, other| one.share().total_cmp(&other.share()))?;
    let rate = loaded.rate.filter(|_| loaded.sent >= LEAST)?;
    let is_ours = loaded.delay * 2.0 >= median - shortest;
    let seen = |what: String| format!("{}; round trips behind it {what}", loaded.words());
    if median - shortest >= EXCESS && !is_ours {
        let why = format!(
            "The queue is at a slower place on the way, which has no queueing discipline of yours: the rate \
             of the tree, {}, is above the line's.",
            mbit(rate as f64)
        );
        let what = format!("{median:.0} ms, the shortest {shortest:.0} ms");
        return Some(
            Finding::new(Level::Problem, "rate", name, seen(what), why).remedy(lower(loaded, reading)),
        );
    }
    let is_idle = loaded.delay < EXCESS / 4.0 && loaded.share() < 0.9;
    (median >= LONG && is_idle).then(|| {
        Finding::new(
            Level::Note,
            "rate",
            name,
            seen(format!("{median:.0} ms, none below {shortest:.0} ms")),
            "The path is long, or a queue behind this run is never empty.",
        )
        .remedy("compare with `ping` while the line is idle; if that is shorter, lower the rate of the tree")
    })
}

/// Returns the command that sets the rate a little below what the line has carried.
fn lower(direction: &Meanwhile, reading: &RunReading) -> String {
    let autorate = reading.after.autorate.iter();
    let mut follow = autorate.flat_map(|autorate| &autorate.directions);
    if follow.any(|follows| follows.from == direction.from) {
        return "lower `max` and `base` in [run.autorate], and start the run again".to_owned();
    }
    // Three digits, because the figure is a measurement of seconds.
    let carried = match direction.at_the_end >= LEAST {
        true => direction.sent.min(direction.at_the_end),
        false => direction.sent,
    };
    let proposed = (carried as u64).saturating_mul(SHARE) / 100;
    let unit = 10u64.pow(proposed.max(1).ilog10().saturating_sub(2));
    let rate = fairgate::Rate::from_bits_per_second((proposed / unit * unit).max(1));
    let of_direction = |status: &&DirectionStatus| status.from == direction.from;
    let status = reading.before.directions.iter().find(of_direction);
    match (status.and_then(root_rate), rate) {
        (Some((root, _)), Ok(rate)) => {
            // The first word of a change is the command.
            let words = root.words(rate);
            let (command, rest) = words.split_once(' ').unwrap_or((&words, ""));
            format!(
                "fairgate {command}{} --from {} {rest}",
                reading.options, direction.from
            )
        }
        _ => "lower the rate of the tree: fairgate queue show, then fairgate queue change".to_owned(),
    }
}

/// Finds an interface that has no room while the tree, which has a rate, holds nothing.
fn full(name: &str, direction: &Meanwhile) -> Option<Finding> {
    let is_slower = direction.rate.is_some() && direction.full > 0 && direction.delay < 1.0;
    is_slower.then(|| {
        let times = counted(direction.full, "time");
        Finding::new(
            Level::Warning,
            "rate",
            name,
            format!("{} had no room {times}; {}", direction.to, direction.words()),
            "Packets wait in the interface, behind the tree: it is slower than the rate of the tree.",
        )
        .remedy("lower the rate of the tree: fairgate queue show, then fairgate queue change")
    })
}

/// Finds rates that follow the line and can't fall as far as it has.
fn autorate(reading: &RunReading, directions: &[Meanwhile]) -> Vec<Finding> {
    let Some(AutorateStatus {
        excess_us: Some(excess),
        directions: follow,
        ..
    }) = &reading.after.autorate
    else {
        return Vec::new();
    };
    let excess = excess / 1e3;
    let is_stuck = |from: &str| {
        let direction = directions.iter().find(|direction| direction.from == from);
        direction.is_some_and(|direction| direction.delay * 2.0 < excess)
    };
    let stuck = follow
        .iter()
        .filter(|follows| follows.rate_bps <= follows.min_bps && excess >= EXCESS && is_stuck(&follows.from));
    stuck
        .map(|follows| {
            Finding::new(
                Level::Problem,
                "rate",
                &reading.after.name,
                format!(
                    "autorate of {} is at its `min`, {}; round trips of the line are {excess:.0} ms longer \
                     than its baseline",
                    follows.from,
                    mbit(follows.min_bps as f64)
                ),
                "The line is slower than the lowest rate that autorate may set, so the queue is on the line.",
            )
            .remedy("lower `min` in [run.autorate], and start the run again")
        })
        .collect()
}

/// Finds packets that were lost outside of the trees.
fn losses(reading: &RunReading) -> Vec<Finding> {
    let name = &reading.after.name;
    let mut found = Vec::new();
    for (index, direction) in reading.after.directions.iter().enumerate() {
        let earlier = reading.before.directions.get(index);
        let earlier = earlier.map(|earlier| earlier.lost.by_reason());
        for (place, (reason, count)) in direction.lost.by_reason().into_iter().enumerate() {
            if count == 0 {
                continue;
            }
            let now = count - earlier.map_or(0, |earlier| earlier[place].1.min(count));
            let level = if now > 0 { Level::Warning } else { Level::Note };
            let seen = format!(
                "{} from {} lost since the start: {reason}, {now} of them meanwhile",
                counted(count, "packet"),
                direction.from
            );
            let [why, remedy] = loss(reason);
            found.push(Finding::new(level, "losses", name, seen, why).remedy(remedy));
        }
    }
    found
}

/// Returns why packets were lost for a reason, and what helps.
fn loss(reason: &str) -> [&'static str; 2] {
    match reason {
        "ring full" => [
            "The ring that the run shares with the kernel had no room: the run did not get the processor in \
             time, or there is more traffic than it forwards.",
            "leave `realtime` on, stop what competes for the processor, or use `workers` in [run]",
        ],
        "no free frame" => [
            "All frames of the store were in use: the queues may hold more than `frames` allows.",
            "raise `frames` in [run], or lower the limits of the queues",
        ],
        "unsupported offload" | "tiny segments" => [
            "Merged packets came that can't be cut into those of the link.",
            "write offloads = \"off\" in [run], and start the run again",
        ],
        "too long" => [
            "They are longer than the MTU of the interface that they should leave by.",
            "ip link: give both interfaces the same MTU",
        ],
        _ => [
            "The kernel delivered or took them only in part.",
            "ip -s link  # the counters of the interfaces say more",
        ],
    }
}

/// Finds packets that the kernel took itself, because the run took none.
fn passed_by(status: &Status) -> Vec<Finding> {
    let passed: u64 = status
        .directions
        .iter()
        .map(|direction| direction.passed_by)
        .sum();
    if passed == 0 {
        return Vec::new();
    }
    vec![
        Finding::new(
            Level::Warning,
            "bypass",
            &status.name,
            format!(
                "{} went past the run in {:.1} s",
                counted(passed, "packet"),
                status.passed_by.seconds
            ),
            "The run took no packets for more than 200 ms, or its TAP device was down; they left unshaped.",
        )
        .remedy("journalctl -t fairgate FAIRGATE_EVENT=interface  # says when; `status` counts stalls"),
    ]
}

/// Returns the interfaces that a run takes packets from.
pub(crate) fn interfaces(status: &Status) -> Vec<&str> {
    let names = status.directions.iter().map(|direction| direction.from.as_str());
    names.filter(|name| *name != fairgate_run_api::HOST).collect()
}

/// Judges buckets and limits of the trees of a run at the MTU of its interfaces.
pub(crate) fn buckets(status: &Status, interfaces: &[InterfaceReading]) -> Vec<Finding> {
    let Some(mtu) = interfaces.iter().map(|interface| interface.mtu).max() else {
        return Vec::new();
    };
    let trees = status.directions.iter().filter_map(|direction| {
        let document = Document::parse("the trees", &direction.queue).ok()?;
        document.queue(QUEUE).cloned()
    });
    let trees: Vec<_> = trees.collect();
    bursts(&status.name, fairgate_live::too_small_at(&trees, None, mtu), mtu)
}

/// Makes findings of what drops full-sized frames, and of what drops those with a VLAN tag.
pub(crate) fn bursts(
    of: &str,
    [always, tagged]: [Vec<fairgate_config::Problem>; 2],
    mtu: usize,
) -> Vec<Finding> {
    let is_known = |message: &str| always.iter().any(|problem| problem.message == message);
    let warned = tagged.iter().filter(|problem| !is_known(&problem.message));
    let warned = warned.filter(|problem| always.iter().all(|known| known.span != problem.span));
    let finding = |level, problem: &fairgate_config::Problem, which: &str| {
        Finding::new(
            level,
            "burst",
            of,
            format!("{} (MTU {mtu})", problem.message),
            format!("Every full-sized frame{which} is dropped, whatever is queued."),
        )
        .remedy(problem.help.clone())
    };
    let found = always.iter().map(|problem| finding(Level::Problem, problem, ""));
    let warned = warned.map(|problem| finding(Level::Warning, problem, " with a VLAN tag"));
    let fine = format!("buckets and limits hold a full frame (MTU {mtu})");
    or_ok(found.chain(warned).collect(), "burst", of, &fine)
}

#[cfg(test)]
pub(crate) mod tests;
