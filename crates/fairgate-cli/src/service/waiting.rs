//! The time between two attempts to begin a run whose interfaces can't be used yet.
//!
//! At first a run tries again each second, so that it forwards soon after a slow boot, and later less often.
//! The manager hears at once what the run waits for. After a while it is told that the run is ready though it
//! does not forward: otherwise the boot of the machine, or `systemctl start`, would wait as long.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use fairgate::harmless;
use fairgate_live::LiveError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::Manager;
use crate::log::{Entry, Level};

/// How often the run is tried at first, and for how long.
const SOON: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How often it is tried then.
const LATER: Duration = Duration::from_secs(5);

/// When the manager need not wait any more.
const READY: Duration = Duration::from_secs(20);

/// How often the log says again what the run waits for.
const REMINDER: Duration = Duration::from_secs(3600);

/// The patience of a run.
#[derive(Debug)]
pub(crate) struct Patience {
    signals: SignalFd,
    begun: Instant,
    /// What was said last, and when.
    said: Option<(String, Instant)>,
    is_ready: bool,
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// It is time for the next attempt.
    Enough,
    /// SIGINT or SIGTERM: the run ends.
    Stopped,
}

impl Patience {
    /// From now on, signals of this thread are heard while it waits only. Call it before other threads are
    /// started.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(crate) fn new() -> Result<Patience, LiveError> {
        let system = |source| LiveError::System {
            action: "watching for signals".to_owned(),
            source,
        };
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().map_err(system)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Patience {
            signals: SignalFd::with_flags(&set, flags).map_err(system)?,
            begun: Instant::now(),
            said: None,
            is_ready: false,
        })
    }

    /// Returns for how long the run has waited.
    pub(crate) fn spent(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns what the log should say of this reason to wait: of a new one at once, and then rarely.
    pub(crate) fn entry(&mut self, reason: &str) -> Option<Entry> {
        let is_known = self
            .said
            .as_ref()
            .is_some_and(|(said, at)| said == reason && at.elapsed() < REMINDER);
        if is_known {
            return None;
        }
        self.said = Some((reason.to_owned(), Instant::now()));
        let message = format!("waiting: {reason}; it is tried again until it works");
        Some(Entry::new(Level::Warning, "waiting", message))
    }

    /// Waits until the next attempt. SIGHUP makes it due. The manager is told what the run waits for.
    pub(crate) fn wait(&mut self, manager: Option<&Manager>, reason: &str) -> Waited {
        let spent = self.spent();
        if let Some(manager) = manager {
            let ready = match self.is_ready || spent >= READY {
                true => "READY=1\n",
                false => "",
            };
            self.is_ready |= spent >= READY;
            manager.tell(&format!("{ready}STATUS=Waiting: {}.", harmless::name(reason)));
        }
        let (pace, soon) = SOON;
        let due = Instant::now() + if spent < soon { pace } else { LATER };
        let sign_of_life = manager.and_then(Manager::watchdog).map(|most| most / 2);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::Enough;
            }
            let pause = sign_of_life.map_or(left, |period| period.min(left));
            let mut descriptors = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(pause.as_millis() + 1).unwrap_or(PollTimeout::MAX);
            match poll(&mut descriptors, timeout) {
                Ok(0) | Err(Errno::EINTR) => {
                    if let Some(manager) = manager.filter(|_| sign_of_life.is_some()) {
                        manager.tell("WATCHDOG=1");
                    }
                }
                Ok(_) => match self.signals.read_signal() {
                    Ok(Some(signal)) if signal.ssi_signo == Signal::SIGHUP as u32 => return Waited::Enough,
                    Ok(Some(_)) => return Waited::Stopped,
                    // Somebody else has read it.
                    Ok(None) | Err(_) => {}
                },
                // Without signals it is only later.
                Err(_) => std::thread::sleep(pause),
            }
        }
    }
}
