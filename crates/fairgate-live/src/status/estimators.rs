//! The rates of disciplines and classes that have an estimator.
//!
//! The arithmetic is that of Linux (`est_timer` in net/core/gen_estimator.c): after each sample of
//! 250 ms * 2^n, average += (sample >> log) - (average >> log), in units of 1/256 byte per second. The
//! average begins at 0.
//!
//! What a class has sent is what the leaves below it have sent. Counters are only compared with themselves,
//! so it does not matter since when a discipline counts. A sample is taken between two turns of the loop. If
//! there are many estimators, several turns take it, and packets pass between them. Where the kernel
//! forwards, a sample is taken of what was read of the whole tree.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use fairgate::classify::{Holder, Host};
use fairgate::{Count, Discipline, Time};
use fairgate_config::{Estimator, Spec};

/// About how many disciplines are read between two looks at packets. It takes some microseconds.
const STEP: usize = 64;

/// What an estimator says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EstimatedRate {
    /// Bytes per second.
    pub(crate) bytes: u64,
    /// Packets per second.
    pub(crate) packets: u64,
}

/// The estimators of a tree that packets pass.
pub(crate) struct Estimators {
    places: Arc<[Estimated]>,
    /// One for each place.
    meters: Vec<Meter>,
    has_begun: bool,
    /// When the next sample is due; the end of time if there are no estimators.
    due: Time,
    /// What is read of the current sample.
    progress: Progress,
}

/// A discipline or a class with an estimator.
#[derive(Debug)]
pub(crate) struct Estimated {
    /// The numbers of the classes that lead to it. The last one is that of the class.
    path: Vec<u32>,
    is_class: bool,
    estimator: Estimator,
    /// The same path as places in the order of the classes, to the discipline whose packets are counted. Of a
    /// class without one, to the discipline that has the class.
    route: Vec<usize>,
    /// Of a class without a discipline, the places of the leaves below it.
    leaves: Option<Vec<Range<usize>>>,
}

/// A tree whose counters are read.
pub(crate) trait Counted {
    /// Reads what was sent at a place, at most about `left` disciplines. Returns `None` if there is more to
    /// read.
    fn read(&self, place: &Estimated, progress: &mut Progress, left: &mut usize) -> Option<Sent>;

    fn read_whole(&self, place: &Estimated) -> Sent {
        let mut left = usize::MAX;
        self.read(place, &mut Progress::default(), &mut left)
            .unwrap_or_default()
    }
}

/// How far a sample is read.
#[derive(Default)]
pub(crate) struct Progress {
    meter: usize,
    /// The range of leaves, and the number of its leaves that are read.
    range: usize,
    read: usize,
    sum: Count,
}

#[derive(Clone)]
struct Meter {
    /// The end of the current sample.
    due: Time,
    /// What the discipline had sent when the current sample began, or when the tree was changed.
    before: Count,
    /// What was sent since the sample began, before the tree was changed.
    held: Count,
    /// The host that has the class.
    host: Option<Host>,
    average: Average,
}

/// Bytes and packets per second, in 1/256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Average {
    bytes: u64,
    packets: u64,
}

/// What a discipline has sent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    count: Count,
    /// The host that has its class, and what was sent since it got the class.
    host: Option<(Host, Count)>,
}

/// What the estimators of a direction say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    workers: Vec<WorkerRates>,
}

/// What the estimators of a worker say.
#[derive(Clone, Debug)]
struct WorkerRates {
    /// The number of the worker, from 1, if there are several.
    worker: Option<u32>,
    places: Arc<[Estimated]>,
    /// The rate of each place.
    rates: Vec<EstimatedRate>,
}

impl Sent {
    /// What was sent, whoever has the class.
    pub(super) fn of(count: Count) -> Sent {
        Sent { count, host: None }
    }
}

impl Average {
    /// The number of bits of the fraction.
    const FRACTION: u8 = 8;

    /// Ends a sample in which this was sent.
    fn add(&mut self, sent: Count, estimator: &Estimator) {
        let log = estimator.ewma_log();
        // A sample lasts 2^(log - 2) seconds.
        let scale = Average::FRACTION + 2 - estimator.sample_log();
        let next = |average: u64, sent: u64| average - (average >> log) + ((sent << scale) >> log);
        self.bytes = next(self.bytes, sent.bytes);
        self.packets = next(self.packets, sent.packets);
    }

    /// Ends samples in which nothing was sent.
    fn decay(&mut self, samples: u64, estimator: &Estimator) {
        for _ in 0..samples {
            let before = *self;
            self.add(Count::default(), estimator);
            if *self == before {
                // It has reached its end, which is not always 0.
                return;
            }
        }
    }

    fn rate(&self) -> EstimatedRate {
        EstimatedRate {
            bytes: self.bytes >> Average::FRACTION,
            packets: self.packets >> Average::FRACTION,
        }
    }
}

impl Meter {
    fn new() -> Meter {
        Meter {
            due: Time::ZERO,
            before: Count::default(),
            held: Count::default(),
            host: None,
            average: Average::default(),
        }
    }

    /// Ends the samples that are due at `now`. What was sent belongs to the first of them: if there are more,
    /// the loop slept, and nothing was sent in the others.
    fn sample(&mut self, sent: Sent, now: Time, estimator: &Estimator) {
        let count = self.take(sent);
        let length = estimator.sample().as_nanos() as u64;
        let further = now.nanos_since(self.due) / length;
        self.average.add(count, estimator);
        self.average.decay(further, estimator);
        self.due += (1 + further) * length;
    }

    /// Returns what was sent since the last time. A host that gets a class begins at 0.
    fn take(&mut self, sent: Sent) -> Count {
        let before = std::mem::replace(&mut self.before, sent.count);
        let held = std::mem::take(&mut self.held);
        match sent.host {
            Some((host, since)) if self.host != Some(host) => {
                self.host = Some(host);
                self.average = Average::default();
                since
            }
            _ => Count {
                packets: held.packets + sent.count.packets.saturating_sub(before.packets),
                bytes: held.bytes + sent.count.bytes.saturating_sub(before.bytes),
            },
        }
    }
}

impl Estimators {
    /// Returns the estimators of a tree that is built from this description.
    pub(crate) fn of(spec: &Spec) -> Estimators {
        let mut places = Vec::new();
        add_places(spec, &mut Vec::new(), &mut Vec::new(), &mut places);
        // For `change_to`.
        places.sort_by(|one, other| one.key().cmp(&other.key()));
        Estimators {
            meters: vec![Meter::new(); places.len()],
            due: match places.is_empty() {
                true => Time::MAX,
                false => Time::ZERO,
            },
            places: places.into(),
            has_begun: false,
            progress: Progress::default(),
        }
    }

    /// Takes a sample, if it is time. Call it before each turn.
    #[inline]
    pub(crate) fn look_at(&mut self, root: &(impl Counted + ?Sized), now: Time) {
        if now >= self.due {
            self.go_on(root, now);
        }
    }

    /// Returns when to look again.
    #[inline]
    pub(crate) fn due(&self) -> Option<Time> {
        (self.due != Time::MAX).then_some(self.due)
    }

    /// Reads more of the sample that is due.
    #[cold]
    fn go_on(&mut self, root: &(impl Counted + ?Sized), now: Time) {
        if !self.has_begun {
            self.begin(now);
            self.resume(root);
        }
        let mut left = STEP;
        while let Some(meter) = self.meters.get_mut(self.progress.meter) {
            if meter.due > now {
                self.progress.meter += 1;
                continue;
            }
            if left == 0 {
                return;
            }
            let place = &self.places[self.progress.meter];
            if let Some(sent) = root.read(place, &mut self.progress, &mut left) {
                meter.sample(sent, now, &place.estimator);
                self.progress = Progress {
                    meter: self.progress.meter + 1,
                    ..Progress::default()
                };
            }
        }
        self.progress = Progress::default();
        self.set_due();
    }

    fn begin(&mut self, now: Time) {
        self.has_begun = true;
        for (meter, place) in self.meters.iter_mut().zip(self.places.iter()) {
            meter.due = now + place.estimator.sample().as_nanos() as u64;
        }
        self.set_due();
    }

    fn set_due(&mut self) {
        let dues = self.meters.iter().map(|meter| meter.due);
        self.due = dues.min().unwrap_or(Time::MAX);
    }

    /// Notes what was sent until now, because the tree is going to change.
    pub(crate) fn hold(&mut self, root: &(impl Counted + ?Sized)) {
        if !self.has_begun {
            return;
        }
        for (meter, place) in self.meters.iter_mut().zip(self.places.iter()) {
            meter.held = meter.take(root.read_whole(place));
        }
        self.progress = Progress::default();
    }

    /// Goes on with the counters of a tree that was changed.
    pub(crate) fn resume(&mut self, root: &(impl Counted + ?Sized)) {
        for (meter, place) in self.meters.iter_mut().zip(self.places.iter()) {
            let sent = root.read_whole(place);
            meter.before = sent.count;
            meter.host = sent.host.map(|(host, _)| host);
        }
    }

    /// Goes on as `new`, the estimators of the changed tree, and leaves the old ones there. As in Linux, an
    /// estimator with other times goes on with the average of the old one, and begins a sample.
    pub(crate) fn change_to(&mut self, new: &mut Estimators, now: Time) {
        new.begin(now);
        if self.has_begun {
            let mut old = self.places.iter().zip(&self.meters).peekable();
            for (place, meter) in new.places.iter().zip(&mut new.meters) {
                while old.next_if(|(old, _)| old.key() < place.key()).is_some() {}
                if let Some((old, running)) = old.next_if(|(old, _)| old.key() == place.key()) {
                    if old.estimator == place.estimator {
                        *meter = running.clone();
                    } else {
                        meter.average = running.average;
                    }
                }
            }
            new.set_due();
        }
        std::mem::swap(self, new);
    }

    /// Returns the rates.
    pub(crate) fn rates(&self) -> Rates {
        if self.places.is_empty() {
            return Rates::default();
        }
        let rates = self.meters.iter().map(|meter| meter.average.rate());
        Rates {
            workers: vec![WorkerRates {
                worker: None,
                places: Arc::clone(&self.places),
                rates: rates.collect(),
            }],
        }
    }
}

impl Estimated {
    /// Orders disciplines and classes.
    fn key(&self) -> (&[u32], bool) {
        (&self.path, self.is_class)
    }

    /// The numbers of the classes that lead to it.
    pub(super) fn path(&self) -> &[u32] {
        &self.path
    }

    /// Whether it is a class that has no discipline, but classes below it.
    pub(super) fn is_inner(&self) -> bool {
        self.leaves.is_some()
    }
}

/// The running tree, on the forwarding thread.
impl Counted for dyn Discipline {
    fn read(&self, place: &Estimated, progress: &mut Progress, left: &mut usize) -> Option<Sent> {
        let Some(ranges) = &place.leaves else {
            *left = left.saturating_sub(1);
            let mut sent = Sent::default();
            descend(self, Holder::Anyone, &place.route, &mut |discipline, holder| {
                let statistics = discipline.statistics();
                sent.count = statistics.dequeued;
                if let Holder::Host(tenant) = holder {
                    sent.host = Some((*tenant.host(), tenant.statistics(&statistics).dequeued));
                }
            });
            return Some(sent);
        };
        while let Some(range) = ranges.get(progress.range) {
            let start = range.start + progress.read;
            let end = range.end.min(start.saturating_add(*left));
            if start == end && end < range.end {
                return None;
            }
            descend(self, Holder::Anyone, &place.route, &mut |discipline, _| {
                discipline.visit_classes_at(start..end, &mut |class| {
                    progress.sum += class.discipline.statistics().dequeued;
                });
            });
            *left -= end - start;
            progress.read = end - range.start;
            if end == range.end {
                progress.range += 1;
                progress.read = 0;
            }
        }
        Some(Sent::of(progress.sum))
    }
}

/// Calls `visit` with the discipline at the end of a route, and who has its class.
fn descend(
    node: &dyn Discipline,
    holder: Holder<'_>,
    route: &[usize],
    visit: &mut dyn FnMut(&dyn Discipline, Holder<'_>),
) {
    match route.split_first() {
        None => visit(node, holder),
        Some((&place, rest)) => node.visit_classes_at(place..place + 1, &mut |class| {
            descend(class.discipline, class.holder, rest, visit);
        }),
    }
}

/// Adds the disciplines and classes of a tree that have estimators.
fn add_places(spec: &Spec, path: &mut Vec<u32>, route: &mut Vec<usize>, places: &mut Vec<Estimated>) {
    if !spec.has_estimators() {
        return;
    }
    places.extend(spec.estimator().map(|estimator| Estimated {
        path: path.clone(),
        is_class: false,
        estimator,
        route: route.clone(),
        leaves: None,
    }));
    let classes = spec.classes();
    let mut leaves = BTreeMap::new();
    let mut first = 0;
    for class in &classes {
        let Some(tree) = class.tree else { continue };
        let alike = first..first + class.count() as usize;
        first = alike.end;
        let minors = match class.template {
            Some(template) => template.classes(),
            None => class.minor..=class.minor,
        };
        for (place, minor) in alike.clone().zip(minors) {
            path.push(minor);
            route.push(place);
            places.extend(class.estimator.map(|estimator| Estimated {
                path: path.clone(),
                is_class: true,
                estimator,
                route: route.clone(),
                leaves: None,
            }));
            add_places(tree, path, route, places);
            path.pop();
            route.pop();
        }
        leaves.insert(class.minor, alike);
    }
    let inner = classes.iter().filter(|class| class.tree.is_none());
    let estimated: Vec<_> = inner
        .filter_map(|class| Some((class.minor, class.estimator?)))
        .collect();
    if estimated.is_empty() {
        return;
    }
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for class in &classes {
        if let Some(parent) = class.parent() {
            children.entry(parent).or_default().push(class.minor);
        }
    }
    for (minor, estimator) in estimated {
        let mut below = Vec::new();
        add_leaves(minor, &children, &leaves, &mut below);
        below.sort_by_key(|range: &Range<usize>| range.start);
        below.dedup_by(|next, range| {
            let is_next = range.end == next.start;
            if is_next {
                range.end = next.end;
            }
            is_next
        });
        places.push(Estimated {
            path: [&path[..], &[minor]].concat(),
            is_class: true,
            estimator,
            route: route.clone(),
            leaves: Some(below),
        });
    }
}

/// Adds the places of the leaves below a class.
fn add_leaves(
    above: u32,
    children: &BTreeMap<u32, Vec<u32>>,
    leaves: &BTreeMap<u32, Range<usize>>,
    found: &mut Vec<Range<usize>>,
) {
    for minor in children.get(&above).into_iter().flatten() {
        match leaves.get(minor) {
            Some(range) => found.push(range.clone()),
            None => add_leaves(*minor, children, leaves, found),
        }
    }
}

impl Rates {
    /// Adds what another worker says.
    pub(crate) fn include(&mut self, other: Rates) {
        self.workers.extend(other.workers);
    }

    /// Makes these the rates of one of several workers. The number is from 1.
    pub(crate) fn of_worker(mut self, number: u32) -> Rates {
        for rates in &mut self.workers {
            rates.worker = Some(number);
        }
        self
    }

    /// Calls `visit` with each path, whether it leads to a class, and the rate. Of several workers, the first
    /// number of a path is the worker's, and the root of all has the sum of their roots.
    pub(crate) fn visit(&self, mut visit: impl FnMut(&[u32], bool, EstimatedRate)) {
        let mut sum: Option<EstimatedRate> = None;
        for WorkerRates {
            worker,
            places,
            rates,
        } in &self.workers
        {
            for (place, rate) in places.iter().zip(rates) {
                let Some(worker) = worker else {
                    visit(&place.path, place.is_class, *rate);
                    continue;
                };
                if place.path.is_empty() {
                    let sum = sum.get_or_insert_default();
                    sum.bytes += rate.bytes;
                    sum.packets += rate.packets;
                }
                let path = [&[*worker][..], &place.path].concat();
                visit(&path, place.is_class, *rate);
            }
        }
        if let Some(sum) = sum {
            visit(&[], false, sum);
        }
    }
}

#[cfg(test)]
mod tests;
