//! What a service manager is told of a run, as sd_notify(3) defines it: when it forwards, that it reads its
//! configuration again, that it ends, and, if the manager watches it, that its forwarding threads work.
//!
//! A thread of its own tells it. Forwarding never waits for the manager.

mod manager;
mod waiting;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

use fairgate::harmless;
use fairgate_live::{Beat, Pulse};
use nix::time::{ClockId, clock_gettime};

pub(crate) use manager::Manager;
pub(crate) use waiting::{Patience, Waited};

/// What happens to a run that its manager should know.
enum Event {
    Reloading,
    /// The configuration was read again. The text says what became of it.
    Reloaded(String),
    Stopping,
}

/// Tells the manager, if there is one. The manager's thread ends when all copies are gone.
#[derive(Clone)]
pub(crate) struct Service(Option<Sender<Event>>);

impl Service {
    /// Returns a handle, and what a thread of its own has to do for it: [`Attendant::attend`].
    pub(crate) fn of(manager: Option<Manager>) -> (Service, Option<Attendant>) {
        let Some(manager) = manager else {
            return (Service(None), None);
        };
        let (events, happened) = mpsc::channel();
        (Service(Some(events)), Some(Attendant { manager, happened }))
    }

    pub(crate) fn reloading(&self) {
        self.tell(Event::Reloading);
    }

    pub(crate) fn reloaded(&self, status: String) {
        self.tell(Event::Reloaded(status));
    }

    pub(crate) fn stopping(&self) {
        self.tell(Event::Stopping);
    }

    fn tell(&self, event: Event) {
        if let Some(events) = &self.0 {
            // Without a manager any more, nobody wants to know.
            let _ = events.send(event);
        }
    }
}

/// Tells the manager what happens, on a thread of its own.
pub(crate) struct Attendant {
    manager: Manager,
    happened: Receiver<Event>,
}

impl Attendant {
    /// Waits until all forwarding threads have made their first turn, and tells the manager that the run is
    /// ready, with `status`. Then tells it everything else, until all copies of the [`Service`] are gone.
    pub(crate) fn attend(self, pulse: &Pulse, status: &str) {
        if pulse.beat(None) == Beat::Alive {
            self.manager.tell(&ready(status));
        }
        // Half of the time, as sd_watchdog_enabled(3) recommends.
        let period = self.manager.watchdog().map(|most| most / 2);
        let mut due = period.map(|period| Instant::now() + period);
        loop {
            let event = match due {
                Some(due) => self
                    .happened
                    .recv_timeout(due.saturating_duration_since(Instant::now())),
                None => self.happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(event) => self.manager.tell(&event.words()),
                Err(RecvTimeoutError::Timeout) => {
                    // An answer may take half a period, so that two signs of life are never further apart
                    // than the manager allows.
                    if pulse.beat(period.map(|period| period / 2)) == Beat::Alive {
                        self.manager.tell("WATCHDOG=1");
                    }
                    due = due.zip(period).map(|(due, period)| due + period);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

impl Event {
    /// Returns the assignments of sd_notify(3).
    fn words(&self) -> String {
        match self {
            Event::Reloading => match clock_gettime(ClockId::CLOCK_MONOTONIC) {
                Ok(now) => format!(
                    "RELOADING=1\nMONOTONIC_USEC={}",
                    now.tv_sec() * 1_000_000 + now.tv_nsec() / 1_000
                ),
                Err(_) => "RELOADING=1".to_owned(),
            },
            Event::Reloaded(status) => ready(status),
            Event::Stopping => "STOPPING=1\nSTATUS=Sending what is queued.".to_owned(),
        }
    }
}

/// Returns that the run forwards. The status is one line, whatever a file is called.
fn ready(status: &str) -> String {
    format!("READY=1\nSTATUS={}", harmless::name(status))
}
