//! Buffers that the forwarding threads fill and a thread of ordinary priority empties.
//!
//! A forwarding thread exchanges a filled buffer for an empty one. It never waits and allocates nothing. The
//! number of buffers is fixed: if the other thread is too slow, there is no empty one, and the forwarding
//! thread counts what it could not write.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};

/// The end of a worker's forwarding thread. `E` is an empty buffer, `F` is a filled one.
#[derive(Debug)]
pub(crate) struct WorkerEnd<E, F> {
    worker: usize,
    empty: Receiver<E>,
    full: SyncSender<(usize, F)>,
    /// The number of buffers that were sent.
    sent: u64,
}

/// Gives empty buffers to the workers.
#[derive(Clone, Debug)]
pub(crate) struct Suppliers<E>(Vec<SyncSender<E>>);

/// The ends of an exchange.
pub(crate) struct Ends<E, F> {
    pub(crate) workers: Vec<WorkerEnd<E, F>>,
    pub(crate) suppliers: Suppliers<E>,
    /// Filled buffers, with the number of the worker. It ends when all workers' ends are dropped.
    pub(crate) filled: Receiver<(usize, F)>,
    pub(crate) progress: Progress,
}

/// How many buffers of each worker were emptied.
#[derive(Debug)]
pub(crate) struct Progress {
    emptied: Mutex<Vec<u64>>,
    changed: Condvar,
}

/// Returns the ends for `count` workers, each with up to `buffers` buffers. There are no buffers yet.
pub(crate) fn exchange<E, F>(count: usize, buffers: usize) -> Ends<E, F> {
    let (full, filled) = sync_channel(buffers * count);
    let mut suppliers = Vec::with_capacity(count);
    let end = |worker| {
        let (to_worker, empty) = sync_channel(buffers);
        suppliers.push(to_worker);
        WorkerEnd {
            worker,
            empty,
            full: full.clone(),
            sent: 0,
        }
    };
    let workers = (0..count).map(end).collect();
    Ends {
        workers,
        suppliers: Suppliers(suppliers),
        filled,
        progress: Progress {
            emptied: Mutex::new(vec![0; count]),
            changed: Condvar::new(),
        },
    }
}

impl<E, F> WorkerEnd<E, F> {
    /// Returns an empty buffer, if there is one.
    pub(crate) fn empty(&self) -> Option<E> {
        self.empty.try_recv().ok()
    }

    /// Sends a filled buffer.
    pub(crate) fn send(&mut self, filled: F) {
        // There is room for all buffers. An error means that the run ends.
        if self.full.try_send((self.worker, filled)).is_ok() {
            self.sent += 1;
        }
    }

    /// Returns the number of buffers that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }
}

impl Progress {
    /// Notes that a buffer of a worker was emptied.
    pub(crate) fn note(&self, worker: usize) {
        self.emptied.lock().unwrap_or_else(PoisonError::into_inner)[worker] += 1;
        self.changed.notify_all();
    }

    /// Waits until that many buffers of each worker were emptied.
    pub(crate) fn wait(&self, sent: &[u64]) {
        let emptied = self.emptied.lock().unwrap_or_else(PoisonError::into_inner);
        let is_behind =
            |emptied: &mut Vec<u64>| emptied.iter().zip(sent).any(|(emptied, sent)| emptied < sent);
        drop(self.changed.wait_while(emptied, is_behind));
    }
}

impl<E> Suppliers<E> {
    /// Gives an empty buffer to a worker. One that is too many is dropped.
    pub(crate) fn give(&self, worker: usize, empty: E) {
        let _ = self.0[worker].try_send(empty);
    }

    /// Gives each worker `buffers` buffers.
    pub(crate) fn fill(&self, buffers: usize, mut new: impl FnMut() -> E) {
        for worker in 0..self.0.len() {
            for _ in 0..buffers {
                self.give(worker, new());
            }
        }
    }
}
