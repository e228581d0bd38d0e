//! The signals by which a run is told to end, or to read its configuration again.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::LiveError;

/// Why a run returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// SIGINT, SIGTERM or a [`Stopper`](crate::Stopper).
    Stop,
    /// SIGHUP: the configuration should be read again.
    Reload,
}

/// SIGINT, SIGTERM and SIGHUP of the thread that watches them. Other threads that were started before would
/// receive the signals.
#[derive(Debug)]
pub(crate) struct Signals(SignalFd);

impl Signals {
    pub(crate) fn watch() -> Result<Signals, LiveError> {
        let system = || LiveError::system("watching for signals");
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().map_err(system())?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        signals.map(Signals).map_err(system())
    }

    /// Returns what has come, if something has.
    pub(crate) fn read(&self) -> Result<Option<Wake>, LiveError> {
        let signal = self
            .0
            .read_signal()
            .map_err(LiveError::system("reading a signal"))?;
        Ok(
            signal.map(|signal| match signal.ssi_signo == Signal::SIGHUP as u32 {
                true => Wake::Reload,
                false => Wake::Stop,
            }),
        )
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
