//! Asks the forwarding threads for a sign of life.
//!
//! A thread gives it between two turns. So it has received and sent frames before, and a thread that is stuck
//! anywhere, in a discipline, in the kernel or for want of a processor, gives none. A thread that sleeps
//! because nothing is due is woken.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::Bridge;
use super::changes::{Changer, Task};
use crate::config::Plan;
use crate::pulse::{Beat, Heart, Pulse};
use crate::status::Board;

impl Heart for Changer {
    /// Asks all threads, and waits until each has answered. Before the run has taken its frames from the
    /// kernel, no thread answers.
    fn beat(&self, patience: Option<Duration>) -> Beat {
        let begin = Instant::now();
        let mut asked = Vec::new();
        for inbox in self.workers() {
            let (to, answer) = mpsc::channel();
            if !inbox.leave(Task::Beat(to)) {
                return Beat::Ended;
            }
            asked.push(answer);
        }
        // Worker 0 first: only if it forwards, the others have threads that answer or end.
        for answer in asked {
            let answer = match patience {
                Some(patience) => answer.recv_timeout(patience.saturating_sub(begin.elapsed())),
                None => answer.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match answer {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return Beat::Late,
                // The thread takes no more, and has thrown the question away.
                Err(RecvTimeoutError::Disconnected) => return Beat::Ended,
            }
        }
        Beat::Alive
    }

    fn plan(&self) -> Arc<Plan> {
        Changer::plan(self)
    }

    fn board(&self) -> &Board {
        Changer::board(self)
    }

    /// Asks all threads, and waits until each has answered.
    fn sent(&self) -> Option<[u64; 2]> {
        let mut asked = Vec::new();
        for inbox in self.workers() {
            let (to, answer) = mpsc::channel();
            if !inbox.leave(Task::Count(to)) {
                return None;
            }
            asked.push(answer);
        }
        let mut sum = [0; 2];
        for answer in asked {
            let one = answer.recv().ok()?;
            sum = [sum[0] + one[0], sum[1] + one[1]];
        }
        Some(sum)
    }
}

impl Bridge {
    /// Returns a handle by which other threads ask whether this run forwards.
    pub fn pulse(&self) -> Pulse {
        Pulse::of(Arc::new(self.changer()))
    }
}
