//! The state of a run, read for those who ask it: in steps, one a turn.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use fairgate_run_api::{Detail, Status};

use super::Bridge;
use super::helpers::Helpers;
use super::observer::Readings;
use crate::clock;
use crate::nat::Tracking;
use crate::port::Port;
use crate::status::{RunReading, WorkerReading, WorkersReading, status_of};

/// The readings of all workers, on their way to those who ask the run.
pub(super) struct Awaited {
    come: Vec<WorkerReading>,
    coming: Receiver<WorkerReading>,
    expected: usize,
}

impl Bridge {
    /// Asks all workers for their readings.
    pub(super) fn ask_workers(&mut self) {
        let (to, coming) = mpsc::channel();
        let detail = self.readings.as_ref().map_or(Detail::All, Readings::detail);
        let others = self
            .helpers
            .as_ref()
            .map_or(0, |helpers| helpers.ask(&to, detail));
        self.worker.read_for(to, detail);
        self.awaited = Some(Awaited {
            come: Vec::with_capacity(others + 1),
            coming,
            expected: others + 1,
        });
    }

    /// Takes the readings that have come, and hands them over when all have.
    pub(super) fn gather(&mut self) {
        let Some(awaited) = &mut self.awaited else { return };
        awaited.come.extend(awaited.coming.try_iter());
        if awaited.come.len() < awaited.expected {
            return;
        }
        let come = std::mem::take(&mut awaited.come);
        self.awaited = None;
        let whole = self.whole(WorkersReading::of(come));
        if let Some(readings) = &self.readings {
            readings.hand_over(whole);
        }
    }

    /// Returns the reading of the run, whose workers have done this together.
    fn whole(&self, together: WorkersReading) -> RunReading {
        let worker = &self.worker;
        RunReading {
            plan: Arc::clone(&worker.plan),
            changes: worker.orders.tally(),
            isolated: worker.ports.iter().all(Port::is_isolated),
            processor: together.processor,
            started: worker.started,
            at: clock::now(),
            sent: together.sent,
            board: worker.orders.board(),
            bypass: worker.bypass,
            nat: self.nat.as_ref().map(Tracking::translations),
            directions: together.directions,
        }
    }

    /// Returns the status, with all counters since the start.
    pub fn status(&mut self) -> Status {
        let mut all = vec![self.worker.whole_reading()];
        all.extend(self.helpers.iter_mut().flat_map(Helpers::readings));
        status_of(self.whole(WorkersReading::of(all)), Detail::All)
    }
}
