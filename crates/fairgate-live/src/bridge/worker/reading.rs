//! The state of a worker, read in steps, one a turn.

use std::sync::mpsc::Sender;

use fairgate_run_api::Detail;

use super::Worker;
use crate::bridge::observer::Taps;
use crate::clock;
use crate::status::{DirectionReading, STEP, Sent, TreeReading, WorkerReading, processor_status};

/// A reading that a worker makes.
pub(in crate::bridge) struct Reading {
    own: WorkerReading,
    to: Sender<WorkerReading>,
    detail: Detail,
}

impl Worker {
    /// Begins a reading for the run, of what is wanted.
    pub(in crate::bridge) fn read_for(&mut self, to: Sender<WorkerReading>, detail: Detail) {
        let mut own = self.without_trees();
        for direction in &mut own.directions {
            direction.tree = TreeReading::with_detail(detail);
        }
        self.reading = Some(Reading { own, to, detail });
    }

    /// Begins the current reading anew: what was read of the trees may not fit the changed ones.
    pub(in crate::bridge) fn read_anew(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.read_for(reading.to, reading.detail);
        }
    }

    /// Reads the next part of what is wanted. Returns true if there is more to read.
    #[cold]
    pub(in crate::bridge) fn read_on(&mut self) -> bool {
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
    pub(in crate::bridge) fn whole_reading(&mut self) -> WorkerReading {
        let mut reading = self.without_trees();
        self.read_part(&mut reading, &|| false);
        reading
    }
}
