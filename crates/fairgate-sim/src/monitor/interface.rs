//! Measures the queue of one interface. Sojourn times are recorded for each packet; all else comes from the
//! discipline's own statistics.

use fairgate::{Count, Statistics};

use crate::monitor::Recorder;

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
}

impl InterfaceMonitor {
    pub(crate) fn new(intervals: usize) -> InterfaceMonitor {
        InterfaceMonitor {
            sojourn: Recorder::new(),
            at_opening: Statistics::default(),
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

    pub(crate) fn interval_ends(&mut self, backlog: Count) {
        let sample = std::mem::take(&mut self.running);
        self.series.push(QueueSample { backlog, ..sample });
    }

    pub(crate) fn window_opens(&mut self, statistics: Statistics) {
        self.at_opening = statistics;
        self.sojourn = Recorder::new();
    }

    pub(crate) fn window_closes(&mut self, statistics: Statistics) -> InterfaceWindow {
        InterfaceWindow {
            sojourn: std::mem::replace(&mut self.sojourn, Recorder::new()),
            statistics: statistics.since(&self.at_opening),
        }
    }

    pub(crate) fn series(&self) -> &[QueueSample] {
        &self.series
    }
}
