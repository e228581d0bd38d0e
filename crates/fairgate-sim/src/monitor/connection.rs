//! Measures a TCP connection: its sender's counters and its transfers, in the window and over the whole run.

use crate::monitor::{Phase, Recorder};
use crate::tcp::SenderCounters;

/// Measures a TCP connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionMonitor {
    /// The durations of the transfers completed since the phase began.
    pub(crate) transfers: Recorder,
    /// `None` while the flow is in its first phase.
    past: Option<Box<Past>>,
}

/// What was measured in past phases.
#[derive(Clone, Debug)]
struct Past {
    before: Recorder,
    opening: SenderCounters,
    within: Recorder,
    closing: SenderCounters,
}

/// The measurements of a connection that is over.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionWindow {
    /// The sender's counters of the window alone.
    pub(crate) counters: SenderCounters,
    /// The transfers completed in the window.
    pub(crate) transfers: Recorder,
    /// The transfers completed in the whole run.
    pub(crate) all_transfers: Recorder,
}

impl ConnectionMonitor {
    /// Creates the monitor of a connection that begins in any phase.
    pub(crate) fn new() -> ConnectionMonitor {
        ConnectionMonitor {
            transfers: Recorder::coarse(),
            past: None,
        }
    }

    /// Returns what was recorded in a past phase, to be filled in.
    fn past(&mut self) -> &mut Past {
        self.past.get_or_insert_with(|| {
            Box::new(Past {
                before: Recorder::coarse(),
                opening: SenderCounters::default(),
                within: Recorder::coarse(),
                closing: SenderCounters::default(),
            })
        })
    }

    pub(crate) fn window_opens(&mut self, counters: SenderCounters) {
        let completed = std::mem::replace(&mut self.transfers, Recorder::coarse());
        let past = self.past();
        (past.before, past.opening) = (completed, counters);
    }

    pub(crate) fn window_closes(&mut self, counters: SenderCounters) {
        let completed = std::mem::replace(&mut self.transfers, Recorder::coarse());
        let past = self.past();
        (past.within, past.closing) = (completed, counters);
    }

    /// Returns the measurements. The connection ends in this phase.
    pub(crate) fn finish(&mut self, phase: Phase, counters: SenderCounters) -> ConnectionWindow {
        match phase {
            // Nothing of it is in the window.
            Phase::Before => self.window_opens(SenderCounters::default()),
            Phase::Within => self.window_closes(counters),
            Phase::After => {}
        }
        let past = self.past().clone();
        let mut all_transfers = past.before;
        all_transfers.add(&past.within);
        all_transfers.add(&self.transfers);
        ConnectionWindow {
            counters: past.closing.since(&past.opening),
            transfers: past.within,
            all_transfers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_transfers_are_those_of_the_window() {
        use Phase::{After, Before, Within};
        let counted = |segments| SenderCounters {
            data_segments: segments,
            ..SenderCounters::default()
        };
        let measure = |phases: &[Phase]| {
            let mut monitor = ConnectionMonitor::new();
            let mut now = phases[0];
            let mut segments = 0;
            for &phase in phases {
                match (now, phase) {
                    (Before, Within) => monitor.window_opens(counted(segments)),
                    (Within, After) => monitor.window_closes(counted(segments)),
                    _ => {}
                }
                now = phase;
                segments += 10;
                monitor.transfers.record(5);
            }
            let window = monitor.finish(now, counted(segments));
            assert_eq!(window.all_transfers.count(), phases.len() as u64);
            (window.counters.data_segments, window.transfers.count())
        };
        assert_eq!(measure(&[Before, Within, Within, After]), (20, 2));
        assert_eq!(measure(&[Before, Before]), (0, 0));
        assert_eq!(measure(&[Before, Within]), (10, 1));
        assert_eq!(measure(&[Within, After, After]), (10, 1));
        assert_eq!(measure(&[Within]), (10, 1));
        assert_eq!(measure(&[After]), (0, 0));
    }
}
