//! The state of a run, read for the status socket and for worker 0: in steps, one a turn.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use super::Bridge;
use crate::clock;
use crate::nat::Tracking;
use crate::port::Port;
use crate::status::{
    Detail, DirectionReading, ProcessorStatus, RunReading, STEP, Sent, Status, WorkerReading, WorkersReading,
};

/// A reading that is being made.
pub(super) struct Reading {
    own: WorkerReading,
    is_whole: bool,
    goal: Goal,
}

/// Who gets the reading.
enum Goal {
    /// The status socket, together with the readings of the further workers.
    Socket {
        others: Vec<WorkerReading>,
        coming: Receiver<WorkerReading>,
        expected: usize,
    },
    /// Worker 0.
    Lead(Sender<WorkerReading>),
}

impl Bridge {
    /// Begins a reading for the status socket.
    pub(super) fn read_for_server(&mut self) {
        let goal = self.for_socket();
        self.start_reading(goal);
    }

    /// Begins a reading for worker 0.
    pub(super) fn read_for(&mut self, lead: Sender<WorkerReading>) {
        self.start_reading(Goal::Lead(lead));
    }

    /// Begins the current reading anew: what was read of the trees may not fit the changed ones.
    pub(super) fn read_anew(&mut self) {
        if let Some(reading) = self.reading.take() {
            let goal = match reading.goal {
                // The other workers have changed, too.
                Goal::Socket { .. } => self.for_socket(),
                lead => lead,
            };
            self.start_reading(goal);
        }
    }

    /// Asks the further workers for their readings.
    fn for_socket(&self) -> Goal {
        let (coming, expected) = match &self.crew {
            Some(crew) => crew.ask(),
            None => (std::sync::mpsc::channel().1, 0),
        };
        Goal::Socket {
            others: Vec::with_capacity(expected),
            coming,
            expected,
        }
    }

    fn start_reading(&mut self, goal: Goal) {
        self.reading = Some(Reading {
            own: self.without_trees(),
            is_whole: false,
            goal,
        });
    }

    /// Reads the next part of what is wanted. Returns true if there is more to read here.
    #[cold]
    pub(super) fn read_on(&mut self) -> bool {
        let Some(mut reading) = self.reading.take() else {
            return false;
        };
        if !reading.is_whole {
            let end = clock::now() + STEP.as_nanos() as u64;
            if !self.read_part(&mut reading.own, &|| clock::now() >= end) {
                self.reading = Some(reading);
                return true;
            }
            reading.is_whole = true;
            if let Some(delays) = &mut self.delays {
                for (from, direction) in self.directions.iter_mut().enumerate() {
                    reading.own.sent.delays = delays.flush(from, &mut direction.link);
                }
            }
            if let Some(packets) = &mut self.packets {
                reading.own.sent.packets = packets.flush(&mut self.directions, clock::now());
            }
        }
        match &mut reading.goal {
            Goal::Lead(lead) => {
                // Worker 0 may have begun another one, or may have ended.
                let _ = lead.send(reading.own);
                if let Some(news) = &self.lead_news {
                    let _ = news.write(1);
                }
            }
            Goal::Socket {
                others,
                coming,
                expected,
            } => {
                others.extend(coming.try_iter());
                if others.len() < *expected {
                    // The news of the missing ones wake this thread.
                    self.reading = Some(reading);
                    return false;
                }
                let others = std::mem::take(others);
                let whole = self.whole(reading.own.with(others));
                if let Some(server) = &self.server {
                    server.hand_over(whole);
                }
            }
        }
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
            worker: self.worker,
            processor: ProcessorStatus::of(&self.pace.punctuality, self.realtime),
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

    /// Returns the reading of the run, whose workers have done this together.
    fn whole(&self, together: WorkersReading) -> RunReading {
        RunReading {
            plan: Arc::clone(&self.plan),
            changes: self.orders.tally(),
            isolated: self.ports.iter().all(Port::is_isolated),
            processor: together.processor,
            started: self.started,
            at: clock::now(),
            sent: together.sent,
            board: self.orders.board(),
            bypass: self.bypass,
            nat: self.nat.as_ref().map(Tracking::translations),
            directions: together.directions,
        }
    }

    /// Returns the status, with all counters since the start.
    pub fn status(&mut self) -> Status {
        let own = self.whole_reading();
        let others = self.crew.as_mut().map_or_else(Vec::new, |crew| crew.readings());
        Status::of_reading(self.whole(own.with(others)), Detail::All)
    }
}
