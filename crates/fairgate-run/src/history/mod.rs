//! What the classes did in the last 24 hours, and just now.
//!
//! ```text
//!   the run's status --[ thread, each second ]--> History --> /v1/history   rings, root and 64 classes
//!                                                     \-----> /v1/classes   all classes, the last interval
//! ```
//!
//! What is in the rings outlives the run, if it has a file for it ([`file`], [`saved`]): a thread of its own
//! writes there what is new each minute, and the next run begins with it. A class is found again by what
//! tells it from others ([`identity`]) when packets come to it, and keeps its place until then.
//!
//! Its memory is bounded. For each direction there are rings for the root and the [`MOST_SERIES`] classes
//! that send most ([`busiest`], [`rings`]), which is 11 MB together at most. Besides, each class that packets
//! have come to takes 0.5 kB, and 1.7 kB for its points of five minutes, if it is one of the first
//! [`coarse::MOST_CLASSES`] ([`coarse`]).
//!
//! Percentiles of delays need a recorder, and with it the forwarding threads note each sojourn time. So there
//! is one only as long as somebody asks for what the classes did ([`History::is_wanted`]).

mod busiest;
mod coarse;
mod file;
mod identity;
mod latest;
mod network;
mod rings;
mod saved;
mod thread;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::metrics::nodes;

use busiest::{Busiest, faded};
pub(crate) use coarse::{Coarse, CoarseAxis, CoarseFigure, STEP_S};
use fairgate_run_api::{
    DirectionStatus, Interval, Losses, NodeStatus, PassedByStatus, Percentiles, Sojourn, Status,
};
pub use file::HistoryFile;
use file::Keeper;
pub(crate) use file::{kept, recall};
pub(crate) use latest::ClassFigures;
use rings::KEPT;
pub(crate) use rings::{Axis, Figure, Rings, SPAN_S};
use saved::{Clocks, DirectionToSave, Marks, Saved, SavedDirection};
pub(crate) use thread::{Reader, Sampler, start};

/// How many classes of a direction have a history of their own.
pub(crate) const MOST_SERIES: usize = 64;

/// For how long percentiles are made after somebody has asked for what the classes did. An open page asks
/// each second, and a program that draws a chart hardly less often than once a minute.
const INTEREST: Duration = Duration::from_secs(60);

/// The ring by which a class of an earlier run is weighed. It reaches back two hours.
const WEIGHED: usize = 1;

/// The shortest time between the points of two runs, seconds.
const LEAST_GAP_S: f64 = 0.01;

/// The name of the root among the classes.
pub(crate) const ROOT: &str = "root";

/// What the classes did.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// In the order of the status.
    pub(crate) directions: Vec<DirectionHistory>,
    /// The revision of the trees at the last reading.
    pub(crate) revision: u64,
    /// Sojourn times that are not in the percentiles of the last reading. There is none if no percentiles
    /// were made.
    pub(crate) missed_delays: Option<u64>,
    /// Why the run has another configuration than its file says, if so.
    pub(crate) fallback: Option<String>,
    /// The times in which packets went past the run.
    pub(crate) passed_by: PassedByStatus,
    /// When somebody asked last.
    asked: Option<Instant>,
    /// When the last reading was taken.
    taken: Option<Instant>,
    /// What the runs before this one have left, until this one has been read.
    recalled: Option<Recalled>,
}

/// What earlier runs have left.
#[derive(Debug)]
struct Recalled {
    saved: Saved,
    /// For how long nothing was noted, until this moment.
    away_s: f64,
    at: Instant,
}

/// What the classes of a direction did.
#[derive(Debug, Default)]
pub(crate) struct DirectionHistory {
    pub(crate) from: String,
    pub(crate) to: String,
    /// When the last reading was made, seconds since the start of the run.
    pub(crate) at_s: f64,
    /// The time from the reading before to the last one. There is none before the second reading.
    pub(crate) seconds: Option<f64>,
    /// Since the start of the run.
    pub(crate) delay: Sojourn,
    pub(crate) lost: Losses,
    /// What all classes did between the last two readings.
    pub(crate) latest: Vec<ClassFigures>,
    /// What the nodes of a network did: the sums of what is below them.
    pub(crate) nodes: Vec<ClassFigures>,
    /// The times of the points of all rings.
    pub(crate) axis: Axis,
    pub(crate) series: BTreeMap<String, Series>,
    /// Classes with a history that packets have not come to since the start of the run. Their keys are no
    /// paths.
    absent: BTreeMap<String, Absent>,
    busiest: Busiest,
    /// All classes, by their paths.
    before: HashMap<String, Known>,
    /// The times of the points of all classes.
    pub(crate) coarse: CoarseAxis,
    /// How many classes have such points.
    coarse_classes: usize,
    /// The points of classes that packets have not come to since the start of the run, by what tells them
    /// from others.
    absent_coarse: HashMap<String, Box<Coarse>>,
}

/// What is known of a class.
#[derive(Debug)]
struct Known {
    counted: Counted,
    coarse: Option<Box<Coarse>>,
}

/// The history of a class.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) discipline: String,
    /// What tells it from others, also in the next run.
    identity: String,
    pub(crate) rings: Rings,
}

/// What a class that is new begins with.
#[derive(Debug, Default)]
struct Found {
    /// What it has sent, fading.
    weight: f64,
    coarse: Option<Box<Coarse>>,
}

/// The history of a class that may come again.
#[derive(Debug)]
struct Absent {
    identity: String,
    rings: Rings,
    /// What it has sent, fading.
    weight: f64,
}

/// The counters of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    at_s: f64,
    packets: u64,
    bytes: u64,
    dropped: u64,
    marked: u64,
    delay_s: f64,
    /// What it has sent, fading.
    weight: f64,
}

/// What a class did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moved {
    pub(crate) seconds: f64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    pub(crate) delay_s: f64,
    /// What waited at the end, or the most at the ends of intervals that were added up.
    pub(crate) backlog_bytes: u64,
    /// Percentiles of the delay in the interval, milliseconds, or the highest ones of intervals that were
    /// added up. Those of a longer time can't be told from those of its parts.
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
}

impl Counted {
    fn of(node: &NodeStatus) -> Counted {
        Counted {
            at_s: node.at_s,
            packets: node.dequeued.packets,
            bytes: node.dequeued.bytes,
            dropped: node.dropped.packets,
            marked: node.marked,
            delay_s: node.sojourn_s,
            weight: 0.0,
        }
    }

    /// Returns what happened since `before`. If the counters have begun anew, they did so at 0.
    fn since(&self, before: Counted, node: &NodeStatus) -> Moved {
        let has_fallen = self.packets < before.packets
            || self.bytes < before.bytes
            || self.dropped < before.dropped
            || self.marked < before.marked
            || self.delay_s < before.delay_s;
        let base = match has_fallen {
            true => Counted {
                at_s: before.at_s,
                ..Counted::default()
            },
            false => before,
        };
        Moved {
            seconds: (self.at_s - base.at_s).max(0.0),
            packets: self.packets - base.packets,
            bytes: self.bytes - base.bytes,
            dropped: self.dropped - base.dropped,
            marked: self.marked - base.marked,
            delay_s: self.delay_s - base.delay_s,
            backlog_bytes: node.backlog.bytes,
            p95_ms: None,
            p99_ms: None,
        }
    }
}

impl Moved {
    pub(crate) fn add(&mut self, other: &Moved) {
        self.seconds += other.seconds;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        self.marked += other.marked;
        self.delay_s += other.delay_s;
        self.backlog_bytes = self.backlog_bytes.max(other.backlog_bytes);
        self.p95_ms = highest(self.p95_ms, other.p95_ms);
        self.p99_ms = highest(self.p99_ms, other.p99_ms);
    }

    /// Adds what another class did in the same interval. Percentiles can't be added.
    fn add_beside(&mut self, other: &Moved) {
        self.seconds = self.seconds.max(other.seconds);
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        self.marked += other.marked;
        self.delay_s += other.delay_s;
    }

    /// Returns a count for each second.
    pub(crate) fn per_second(&self, count: u64) -> f64 {
        match self.seconds > 0.0 {
            true => count as f64 / self.seconds,
            false => 0.0,
        }
    }

    /// Returns the mean time that packets which have left spent in the class, milliseconds.
    pub(crate) fn delay_ms(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.delay_s * 1e3 / self.packets as f64)
    }
}

/// Returns the higher one of two values that may be missing.
fn highest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

impl History {
    /// Notes that somebody asks for what the classes did.
    pub(crate) fn note_interest(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    /// Returns whether somebody has asked recently.
    fn is_wanted(&self, now: Instant) -> bool {
        self.asked
            .is_some_and(|asked| now.saturating_duration_since(asked) < INTEREST)
    }

    /// Returns the direction that receives from an interface.
    pub(crate) fn direction(&self, from: &str) -> Option<&DirectionHistory> {
        self.directions.iter().find(|direction| direction.from == from)
    }

    /// Takes a status of what is used. The first one gives no points: it only begins the counts. `recorded`
    /// has the delays of the same time, if they were recorded.
    pub(crate) fn take(&mut self, status: &Status, recorded: Option<&Interval>) {
        self.missed_delays = recorded.map(|interval| interval.missed_delays);
        self.fallback.clone_from(&status.fallback);
        self.passed_by = status.passed_by;
        let are_the_same = std::mem::replace(&mut self.revision, status.revision) == status.revision;
        self.taken = Some(Instant::now());
        self.directions
            .resize_with(status.directions.len(), DirectionHistory::default);
        let recalled = self.recalled.take();
        let offset = recalled.as_ref().map_or(0.0, |recalled| {
            status.uptime_s - recalled.saved.at_s - recalled.away_s - recalled.at.elapsed().as_secs_f64()
        });
        let mut saved = recalled.map_or(Vec::new(), |recalled| recalled.saved.directions);
        for (history, direction) in self.directions.iter_mut().zip(&status.directions) {
            if !are_the_same {
                history.forget_renamed(direction);
            }
            let ends = (&direction.from, &direction.to);
            let place = saved.iter().position(|saved| (&saved.from, &saved.to) == ends);
            let saved = place.map(|place| (saved.swap_remove(place), offset));
            history.take(direction, status.uptime_s, recorded, saved);
        }
    }

    /// Begins with what earlier runs have left, which noted nothing for `away_s` until now.
    fn begin_with(&mut self, saved: Saved, away_s: f64) {
        self.recalled = Some(Recalled {
            saved,
            away_s,
            at: Instant::now(),
        });
    }

    /// Ends the steps that are being filled: no reading follows.
    fn close(&mut self) {
        for direction in &mut self.directions {
            let ended = direction.axis.close();
            let absent = direction.absent.values_mut().map(|absent| &mut absent.rings);
            let series = direction.series.values_mut().map(|series| &mut series.rings);
            series.chain(absent).for_each(|rings| rings.close(&ended));
            if direction.coarse.close() {
                direction.all_coarse_mut().for_each(Coarse::end_step);
            }
        }
    }

    /// Returns the content of a block for a file: all, or what has come after these marks. There is none
    /// before the first points.
    fn content(&self, clocks: &Clocks, marks: Option<&Marks>) -> Option<(Vec<u8>, Marks)> {
        let (taken, first) = (self.taken?, self.directions.first()?);
        if !first.axis.has_points() {
            return None;
        }
        let directions: Vec<_> = self.directions.iter().map(DirectionHistory::to_save).collect();
        let at_s = first.at_s + taken.elapsed().as_secs_f64();
        Some(saved::content(at_s, clocks, &directions, marks))
    }
}

impl DirectionHistory {
    fn to_save(&self) -> DirectionToSave<'_> {
        let series = self
            .series
            .values()
            .map(|series| (&*series.identity, &series.rings));
        let absent = self
            .absent
            .values()
            .map(|absent| (&*absent.identity, &absent.rings));
        let coarse = self.before.values().filter_map(|known| known.coarse.as_ref());
        DirectionToSave {
            from: &self.from,
            to: &self.to,
            axis: &self.axis,
            series: series.chain(absent).collect(),
            coarse_axis: &self.coarse,
            coarse: coarse
                .chain(self.absent_coarse.values())
                .map(|coarse| &**coarse)
                .collect(),
        }
    }

    fn all_coarse_mut(&mut self) -> impl Iterator<Item = &mut Coarse> {
        let known = self.before.values_mut().filter_map(|known| known.coarse.as_mut());
        known
            .chain(self.absent_coarse.values_mut())
            .map(|coarse| &mut **coarse)
    }

    /// Returns the points of five minutes of a class, if there are some.
    pub(crate) fn coarse_of(&self, class: &str) -> Option<&Coarse> {
        let coarse = self.before.get(class)?.coarse.as_deref();
        coarse.filter(|coarse| coarse.len() > 0)
    }

    /// Goes on with what earlier runs have left. This one has no points before `begun`.
    fn go_on(&mut self, mut saved: SavedDirection, offset: f64, begun: f64) {
        // A calendar that was set back must not put the past behind the present.
        let last = KEPT.filter_map(|tier| saved.axis.last(tier));
        let last = last.chain(saved.coarse_axis.last()).reduce(f64::max);
        let offset = last.map_or(offset, |last| offset.min(begun - LEAST_GAP_S - last));
        saved.axis.go_on(offset, begun);
        self.axis = saved.axis;
        saved.coarse_axis.go_on(offset, begun);
        self.coarse = saved.coarse_axis;
        for mut coarse in saved.coarse.into_values() {
            coarse.end_step();
            self.absent_coarse
                .insert(coarse.identity.clone(), Box::new(coarse));
        }
        let times = self.axis.times(WEIGHED, f64::MIN);
        for (identity, mut rings) in saved.series {
            rings.go_on();
            if identity == ROOT {
                self.series.insert(ROOT.to_owned(), Series::new(identity, rings));
                continue;
            }
            let sent = rings.sent(WEIGHED, &times);
            let weight = sent.fold(0.0, |weight, (seconds, bytes)| faded(weight, seconds, bytes));
            let key = format!("absent {identity}");
            self.busiest.give(&key, begun);
            self.absent.insert(
                key,
                Absent {
                    identity,
                    rings,
                    weight,
                },
            );
        }
    }

    /// Gives classes that are there the history that they have from earlier runs. Returns what new ones
    /// begin with, by their paths.
    fn find_again(
        &mut self,
        direction: &DirectionStatus,
        is_new: impl Fn(&str) -> bool,
    ) -> HashMap<String, Found> {
        let mut found: HashMap<String, Found> = HashMap::new();
        identity::each(&direction.tree, &mut |path, identity| {
            let kept = self.absent_coarse.remove(identity);
            if kept.is_some() || is_new(path) {
                let coarse = kept.unwrap_or_else(|| Box::new(Coarse::new(identity.to_owned())));
                found.entry(path.to_owned()).or_default().coarse = Some(coarse);
            }
            let key = format!("absent {identity}");
            // One that has begun again already keeps what it has.
            if !self.series.contains_key(path)
                && let Some(absent) = self.absent.remove(&key)
            {
                self.busiest.rename(&key, path);
                self.series
                    .insert(path.to_owned(), Series::new(absent.identity, absent.rings));
                found.entry(path.to_owned()).or_default().weight = absent.weight;
            }
        });
        found
    }

    /// Forgets what classes did whose numbers belong to others now.
    fn forget_renamed(&mut self, direction: &DirectionStatus) {
        self.series.retain(|path, series| {
            let now = identity::of(&direction.tree, path);
            path == ROOT || now.is_none_or(|now| now == series.identity)
        });
        identity::each(&direction.tree, &mut |path, identity| {
            if let Some(coarse) = self.before.get_mut(path).and_then(|known| known.coarse.as_mut())
                && coarse.identity != identity
            {
                **coarse = Coarse::new(identity.to_owned());
            }
        });
    }

    fn take(
        &mut self,
        direction: &DirectionStatus,
        at_s: f64,
        recorded: Option<&Interval>,
        saved: Option<(SavedDirection, f64)>,
    ) {
        let is_first = self.from.is_empty();
        self.from.clone_from(&direction.from);
        self.to.clone_from(&direction.to);
        self.delay = direction.sojourn;
        self.lost = direction.lost;
        let last = std::mem::replace(&mut self.at_s, at_s);
        let nodes = nodes(&direction.tree);
        let delays = delays(recorded, &direction.from);
        let mut before = std::mem::take(&mut self.before);
        let is_new = |path: &str| !before.contains_key(path);
        let mut may_be_found = nodes.iter().any(|node| is_new(&node.path));
        if let Some((saved, offset)) = saved {
            let begun = if is_first { at_s } else { last };
            self.go_on(saved, offset, begun);
            may_be_found = true;
        }
        let mut found = match may_be_found {
            true => self.find_again(direction, is_new),
            false => HashMap::new(),
        };
        let coarse_has_ended = !is_first && self.coarse.advance(at_s);
        if coarse_has_ended {
            self.absent_coarse
                .values_mut()
                .for_each(|coarse| coarse.end_step());
            self.absent_coarse.retain(|_, coarse| coarse.is_known());
        }
        let taken = self.coarse_classes + self.absent_coarse.len();
        let mut free = coarse::MOST_CLASSES.saturating_sub(taken);
        self.coarse_classes = 0;
        self.latest.clear();
        let mut moved = Vec::new();
        for node in &nodes {
            let mut now = Counted::of(node.status);
            // A class that was not there has counted from 0 on.
            let unseen = Counted {
                at_s: last,
                ..Counted::default()
            };
            let (known, mut coarse) = match before.remove(&node.path) {
                Some(known) => (known.counted, known.coarse),
                None => (unseen, None),
            };
            let found = found.remove(&node.path).unwrap_or_default();
            let mut of_class = now.since(known, node.status);
            now.weight = faded(known.weight + found.weight, at_s - last, of_class.bytes);
            if let Some(new) = found.coarse
                && node.depth > 0
                && (new.len() > 0 || free > 0)
            {
                free = free.saturating_sub(1);
                coarse = Some(new);
            }
            if let Some(coarse) = &mut coarse {
                self.coarse_classes += 1;
                if coarse_has_ended {
                    coarse.end_step();
                }
                if !is_first {
                    coarse.add(&of_class);
                }
            }
            let counted = now;
            self.before.insert(node.path.clone(), Known { counted, coarse });
            if is_first {
                continue;
            }
            if let Some(delay) = delays.get(node.path.as_str()) {
                of_class.p95_ms = Some(delay.p95_us / 1e3);
                of_class.p99_ms = Some(delay.p99_us / 1e3);
            }
            self.latest.push(ClassFigures::of(node, &of_class));
            moved.push((node, now.weight, of_class));
        }
        if is_first {
            return;
        }
        self.seconds = Some(at_s - last);
        let by_path = moved.iter().map(|(node, _, of_class)| (&*node.path, *of_class));
        self.nodes = network::of_nodes(direction, &by_path.collect());
        let below = moved.iter().filter(|(node, ..)| node.depth > 0);
        let mut weights: Vec<_> = below.map(|(node, weight, _)| (&*node.path, *weight)).collect();
        for (key, absent) in &mut self.absent {
            absent.weight = faded(absent.weight, at_s - last, 0);
            weights.push((key, absent.weight));
        }
        self.busiest.choose(at_s, MOST_SERIES, &weights);
        self.absent.retain(|key, _| self.busiest.has(key));
        self.series
            .retain(|path, _| path == ROOT || self.busiest.has(path));
        let mut of_series = HashMap::new();
        for (node, _, of_class) in &moved {
            let name = match node.depth {
                0 => ROOT,
                _ if self.busiest.has(&node.path) => &node.path,
                _ => continue,
            };
            let series = self.series.entry(name.to_owned()).or_insert_with(|| {
                let identity = identity::of(&direction.tree, name);
                Series::new(identity.unwrap_or_else(|| name.to_owned()), Rings::default())
            });
            series.discipline.clone_from(&node.status.discipline);
            of_series.insert(name, of_class);
        }
        let ended = self.axis.advance(at_s);
        for (name, series) in &mut self.series {
            series.rings.add(of_series.get(name.as_str()).copied(), &ended);
        }
        for absent in self.absent.values_mut() {
            absent.rings.add(None, &ended);
        }
    }

    /// Returns whether a class has others below it that have a history.
    pub(crate) fn is_leaf(&self, class: &str) -> bool {
        let above = format!("{class}/");
        class != ROOT
            && !self
                .series
                .range(above.clone()..)
                .next()
                .is_some_and(|(next, _)| next.starts_with(&above))
    }
}

impl Series {
    fn new(identity: String, rings: Rings) -> Series {
        Series {
            discipline: String::new(),
            identity,
            rings,
        }
    }
}

/// Returns the percentiles of each class of a direction. That of the root is at the empty path, as in the
/// status.
fn delays<'i>(recorded: Option<&'i Interval>, from: &str) -> HashMap<&'i str, &'i Percentiles> {
    let rows = recorded.map(|interval| &*interval.rows).unwrap_or_default();
    rows.iter()
        .filter(|row| row.from == from)
        .filter_map(|row| Some((row.class.as_str(), row.delay.as_ref()?)))
        .collect()
}
