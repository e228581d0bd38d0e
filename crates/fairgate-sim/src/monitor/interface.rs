//! Measures the queue of one interface. Sojourn times are recorded for each packet; all else comes from the
//! discipline's own statistics.

use std::collections::BTreeMap;

use fairgate::{Count, Discipline, Statistics};

use crate::classes::{self, ClassCounts, Path};
use crate::monitor::Recorder;
use crate::results::ClassResults;

/// The state of a queue at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueSample {
    pub(crate) backlog: Count,
    /// The sum of the sojourn times of the packets that left in the interval, ns.
    pub(crate) sojourn_sum: u64,
    /// The number of packets that left.
    pub(crate) left: u64,
}

/// Measures the queue of one interface.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceMonitor {
    sojourn: Recorder,
    at_opening: Statistics,
    classes_at_opening: BTreeMap<Path, ClassCounts>,
    /// Packets that the link has lost.
    lost: u64,
    lost_at_opening: u64,
    running: QueueSample,
    series: Vec<QueueSample>,
}

/// The measurements of a window.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceWindow {
    pub(crate) sojourn: Recorder,
    /// The discipline's statistics of the window alone. Backlog and values derived from it are meaningless
    /// here.
    pub(crate) statistics: Statistics,
    /// Packets that the link has lost.
    pub(crate) lost: u64,
    pub(crate) classes: Vec<ClassResults>,
}

impl InterfaceMonitor {
    pub(crate) fn new(intervals: usize) -> InterfaceMonitor {
        InterfaceMonitor {
            sojourn: Recorder::new(),
            at_opening: Statistics::default(),
            classes_at_opening: BTreeMap::new(),
            lost: 0,
            lost_at_opening: 0,
            running: QueueSample::default(),
            series: Vec::with_capacity(intervals),
        }
    }

    /// Records that a packet left the queue after `nanos`.
    #[inline]
    pub(crate) fn left(&mut self, nanos: u64) {
        self.sojourn.record(nanos);
        self.running.sojourn_sum += nanos;
        self.running.left += 1;
    }

    /// Counts a packet that the link has lost.
    pub(crate) fn lost(&mut self) {
        self.lost += 1;
    }

    /// Returns the number of packets that the link has lost in the whole run.
    pub(crate) fn lost_total(&self) -> u64 {
        self.lost
    }

    pub(crate) fn interval_ends(&mut self, backlog: Count) {
        let sample = std::mem::take(&mut self.running);
        self.series.push(QueueSample { backlog, ..sample });
    }

    pub(crate) fn window_opens(&mut self, tree: &dyn Discipline) {
        self.at_opening = tree.statistics();
        self.classes_at_opening = classes::counts(tree);
        self.lost_at_opening = self.lost;
        self.sojourn = Recorder::new();
    }

    pub(crate) fn window_closes(&mut self, tree: &dyn Discipline) -> InterfaceWindow {
        let before = std::mem::take(&mut self.classes_at_opening);
        let nothing = ClassCounts::default();
        let classes = classes::counts(tree).into_iter().map(|(path, after)| {
            let before = before.get(&path).unwrap_or(&nothing);
            ClassResults::between(path.to_string(), before, &after)
        });
        InterfaceWindow {
            sojourn: std::mem::replace(&mut self.sojourn, Recorder::new()),
            statistics: tree.statistics().since(&self.at_opening),
            lost: self.lost - self.lost_at_opening,
            classes: classes.collect(),
        }
    }

    pub(crate) fn series(&self) -> &[QueueSample] {
        &self.series
    }
}
