//! The queue of one interface: sojourn times on the packet's path, all else from the discipline's own books.

use fairgate::{Count, Statistics};

use crate::monitor::Recorder;

/// The queue at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueSample {
    pub(crate) backlog: Count,
    /// Sum of the sojourn times of the packets that left in the interval, ns.
    pub(crate) sojourn_sum: u64,
    /// How many left.
    pub(crate) left: u64,
}

/// The monitor.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceMonitor {
    sojourn: Recorder,
    at_opening: Statistics,
    running: QueueSample,
    series: Vec<QueueSample>,
}

/// What a window of measurement has seen.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceWindow {
    pub(crate) sojourn: Recorder,
    /// The discipline's books, of the window alone; backlog and what follows from it means nothing here.
    pub(crate) books: Statistics,
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

    /// A packet leaves the queue after `nanos`.
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

    pub(crate) fn window_opens(&mut self, books: Statistics) {
        self.at_opening = books;
        self.sojourn = Recorder::new();
    }

    pub(crate) fn window_closes(&mut self, books: Statistics) -> InterfaceWindow {
        InterfaceWindow {
            sojourn: std::mem::replace(&mut self.sojourn, Recorder::new()),
            books: books.since(&self.at_opening),
        }
    }

    pub(crate) fn series(&self) -> &[QueueSample] {
        &self.series
    }
}
