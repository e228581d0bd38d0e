//! The state of a program that writes to a TCP connection.

use fairgate::Time;

use crate::monitor::Recorder;
use crate::network::ExactClock;
use crate::random::{Distribution, Stream};
use crate::scenario::Application;

/// The result of [`Program::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The bytes to write now. `None` for an unlimited number.
    pub(crate) write: Option<u64>,
    /// When the program wants its next turn.
    pub(crate) next: Option<Time>,
}

/// The state of a program.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    Bulk,
    Limited {
        clock: ExactClock,
        size: u32,
    },
    Transfers {
        size: Distribution,
        pause: Distribution,
        stream: Stream,
        /// The number of transfers that have not begun.
        left: u64,
        /// The bytes of all transfers that have begun.
        written: u64,
        /// When the current transfer began.
        began: Option<Time>,
    },
}

impl Program {
    pub(crate) fn new(application: &Application, stream: Stream) -> Program {
        match *application {
            Application::Bulk => Program::Bulk,
            Application::Limited { rate, size } => Program::Limited {
                clock: ExactClock::new(rate),
                size,
            },
            Application::Transfers { size, pause, count } => Program::Transfers {
                size,
                pause,
                stream,
                left: count.unwrap_or(u64::MAX),
                written: 0,
                began: None,
            },
        }
    }

    /// Lets the program write. Called at the start of the flow, and when the program asked for it.
    pub(crate) fn turn(&mut self, now: Time) -> Turn {
        match self {
            Program::Bulk => Turn {
                write: None,
                next: None,
            },
            Program::Limited { clock, size } => Turn {
                write: Some((*size).into()),
                next: Some(now + clock.advance(*size)),
            },
            Program::Transfers {
                size,
                stream,
                left,
                written,
                began,
                ..
            } => {
                let bytes = size.sample(stream).max(1);
                *left -= 1;
                *written += bytes;
                *began = Some(now);
                Turn {
                    write: Some(bytes),
                    next: None,
                }
            }
        }
    }

    /// Notes that `total` bytes have arrived at the other end. Returns when the program wants its next turn.
    pub(crate) fn delivered(&mut self, total: u64, now: Time, durations: &mut Recorder) -> Option<Time> {
        let Program::Transfers {
            pause,
            stream,
            left,
            written,
            began,
            ..
        } = self
        else {
            return None;
        };
        if total < *written {
            return None;
        }
        durations.record(now - began.take()?);
        (*left > 0).then(|| Time::from_nanos(now.nanos().saturating_add(pause.sample(stream))))
    }
}
