//! What happens in Python while a simulation runs: Ctrl-C is answered, and progress is shown.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fairgate::Time;
use pyo3::prelude::*;

use crate::{errors, failure};

/// How often Python is called. Ctrl-C is answered within this time and a few milliseconds.
const EVERY: Duration = Duration::from_millis(100);

/// Calls Python from time to time.
pub(crate) struct Watch<'p> {
    next: Instant,
    progress: Option<&'p Py<PyAny>>,
    /// Why the run is to stop.
    failure: Option<PyErr>,
}

impl<'p> Watch<'p> {
    /// `progress` is called with the simulated time, in nanoseconds.
    pub(crate) fn new(progress: Option<&'p Py<PyAny>>) -> Watch<'p> {
        Watch {
            next: Instant::now() + EVERY,
            progress,
            failure: None,
        }
    }

    /// Returns whether the run may go on.
    pub(crate) fn go_on(&mut self, simulated: Time) -> bool {
        if failure::is_set() {
            return false;
        }
        let now = Instant::now();
        if now < self.next {
            return true;
        }
        self.next = now + EVERY;
        self.failure = Python::attach(|py| call(py, self.progress, simulated.nanos())).err();
        self.failure.is_none()
    }

    /// Returns the exception that stopped the run.
    pub(crate) fn into_failure(self) -> Option<PyErr> {
        self.failure
    }
}

/// Lets Python handle signals, and tells it how much is done.
fn call(py: Python<'_>, progress: Option<&Py<PyAny>>, done: u64) -> PyResult<()> {
    py.check_signals()?;
    match progress {
        Some(progress) => progress.call1(py, (done,)).map(|_| ()),
        None => Ok(()),
    }
}

/// What work on other threads shares with the thread that Python called.
#[derive(Default)]
pub(crate) struct Shared {
    stop: AtomicBool,
    done: AtomicU64,
}

impl Shared {
    /// Adds to what is done. Returns whether the work may go on.
    pub(crate) fn goes_on(&self, more: u64) -> bool {
        self.done.fetch_add(more, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Does work on other threads. This one, on which alone Python handles signals, waits for it.
pub(crate) fn side_by_side<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Shared) -> T + Send,
) -> PyResult<T> {
    let shared = Shared::default();
    let mut failure = None;
    let result = py.detach(|| {
        let (send, finished) = mpsc::channel();
        thread::scope(|scope| {
            let shared = &shared;
            let worker = scope.spawn(move || {
                let result = work(shared);
                // The receiver waits until this thread ends.
                let _ = send.send(());
                result
            });
            while finished.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) && !worker.is_finished() {
                let done = shared.done.load(Ordering::Relaxed);
                if failure.is_none() {
                    failure = Python::attach(|py| call(py, progress, done)).err();
                }
                if failure.is_some() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
            }
            worker.join()
        })
    });
    match (failure, result) {
        (Some(failure), _) => Err(failure),
        (None, Err(panic)) => Err(errors::bug(py, &*panic)),
        (None, Ok(result)) => Ok(result),
    }
}

/// Does work on another thread. If Python is interrupted meanwhile, this returns at once, and the work ends
/// unheard.
pub(crate) fn aside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, finished) = mpsc::channel();
    let worker = thread::spawn(move || {
        // Nobody may listen any more.
        let _ = send.send(panic::catch_unwind(AssertUnwindSafe(work)));
    });
    let finished = Mutex::new(finished);
    loop {
        let received = py.detach(|| {
            let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished.recv_timeout(EVERY)
        });
        match received {
            Ok(Ok(result)) => {
                let _ = worker.join();
                return Ok(result);
            }
            Ok(Err(panic)) => return Err(errors::bug(py, &*panic)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(errors::bug(py, &"the thread has gone")),
        }
    }
}
