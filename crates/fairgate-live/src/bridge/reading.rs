//! The state of a run, read for those who ask it: in steps, one a turn.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use fairgate_run_api::{Detail, Status};

use super::Bridge;
use super::helpers::Helpers;
use super::worker::Worker;
use crate::clock;
use crate::nat::Tracking;
use crate::port::Port;
use crate::status::{
    DirectionReading, RunReading, STEP, Sent, Taps, WorkerReading, WorkersReading, processor_status,
    status_of,
};

/// A reading that a worker makes.
pub(super) struct Reading {
    own: WorkerReading,
    to: Sender<WorkerReading>,
}

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
        let others = self.helpers.as_ref().map_or(0, |helpers| helpers.ask(&to));
        self.worker.read_for(to);
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

impl Worker {
    /// Begins a reading for the run.
    pub(super) fn read_for(&mut self, to: Sender<WorkerReading>) {
        let own = self.without_trees();
        self.reading = Some(Reading { own, to });
    }

    /// Begins the current reading anew: what was read of the trees may not fit the changed ones.
    pub(super) fn read_anew(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.read_for(reading.to);
        }
    }

    /// Reads the next part of what is wanted. Returns true if there is more to read.
    #[cold]
    pub(super) fn read_on(&mut self) -> bool {
        let Some(mut reading) = self.reading.take() else {
            return false;
        };
        let end = clock::now() + STEP.as_nanos() as u64;
        if !self.read_part(&mut reading.own, &|| clock::now() >= end) {
            self.reading = Some(reading);
            return true;
        }
        if let Some(Taps { delays, packets }) = &mut self.logs {
            for (from, direction) in self.directions.iter_mut().enumerate() {
                reading.own.sent.delays = delays.flush(from, &mut direction.link);
            }
            reading.own.sent.packets = packets.flush(&mut self.directions, clock::now());
        }
        // Another reading may have begun, or the run may have ended.
        let _ = reading.to.send(reading.own);
        let _ = self.news.write(1);
        false
    }

    /// Reads everything of this worker except the trees.
    fn without_trees(&mut self) -> WorkerReading {
        self.count_passed();
        let now = clock::now();
        let names = [0, 1].map(|side: usize| self.ports[side].title().to_owned());
        let directions = [0, 1].map(|from: usize| {
            let missed = self.ports[from].missed();
            let direction = &mut self.directions[from];
            let reading = DirectionReading::new(direction, now, &names[from], &names[1 - from], missed);
            DirectionReading {
                rates: self.estimators[from].rates(),
                ..reading
            }
        });
        WorkerReading {
            worker: self.number,
            processor: processor_status(&self.pace.punctuality, self.realtime),
            directions,
            sent: Sent::default(),
        }
    }

    /// Reads more of both trees until `is_over`. Returns true if everything is read.
    fn read_part(&self, reading: &mut WorkerReading, is_over: &dyn Fn() -> bool) -> bool {
        let trees = reading.directions.iter_mut().zip(&self.directions);
        let mut open = trees.map(|(reading, direction)| reading.tree.go_on(direction.link.root(), is_over));
        open.all(|is_whole| is_whole)
    }

    /// Reads everything of this worker at once.
    pub(super) fn whole_reading(&mut self) -> WorkerReading {
        let mut reading = self.without_trees();
        self.read_part(&mut reading, &|| false);
        reading
    }
}
