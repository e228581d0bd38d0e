//! The state of a program that writes to a TCP connection.

mod exchange;
mod player;
mod requests;
mod step;

use std::ops::Range;

use fairgate::Time;

use crate::monitor::Recorder;
use crate::network::ExactClock;
use crate::random::{Distribution, Stream};
use crate::results::ApplicationResults;
use crate::scenario::{Application, Burst};
use crate::traffic::End;
use crate::traffic::bursts::BurstClock;

pub(crate) use exchange::Exchange;

/// The result of [`Program::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The end that may have something to send now.
    pub(crate) at: End,
    /// What is written there.
    pub(crate) write: Write,
    /// When the program wants its next turn.
    pub(crate) next: Option<Time>,
}

/// What a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Nothing,
    Bytes(u64),
    /// More than the connection can send.
    Endless,
    /// Takes back what was not sent yet and does not fit into a send buffer of so many bytes.
    Withdraw {
        buffered: u64,
    },
}

/// The state of a program.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    Bulk,
    Limited {
        clock: ExactClock,
        size: u32,
    },
    /// Writes at a rate in bursts of a random duration.
    Paced {
        clock: Box<BurstClock>,
        size: u32,
        stream: Stream,
    },
    /// Writes as much as the connection takes, in bursts of a random duration.
    Greedy {
        on: Distribution,
        off: Distribution,
        /// What stays in the send buffer at the end of a burst, bytes.
        buffered: u64,
        stream: Stream,
        is_on: bool,
    },
    /// Writes bursts of random numbers of bytes.
    Counted(Box<Counted>),
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
    /// A conversation between both ends.
    Exchange(Box<Exchange>),
}

/// The state of a program that writes bursts of random numbers of bytes.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    bytes: Distribution,
    off: Distribution,
    stream: Stream,
    /// The rate in a burst. `None` to write the burst at once.
    clock: Option<ExactClock>,
    /// The bytes of a write.
    size: u32,
    /// The rest of the current burst, bytes.
    left: u64,
}

impl Counted {
    /// Returns what is written now, and the time until the next write, ns.
    fn next(&mut self) -> (u64, u64) {
        if self.left == 0 {
            self.left = self.bytes.sample(&mut self.stream).max(1);
        }
        let (bytes, mut wait) = match &mut self.clock {
            None => (self.left, 0),
            Some(clock) => {
                let bytes = self.left.min(self.size.into()) as u32;
                (bytes.into(), clock.advance(bytes))
            }
        };
        self.left -= bytes;
        if self.left == 0 {
            wait = wait.saturating_add(self.off.sample(&mut self.stream));
        }
        (bytes, wait)
    }
}

impl Program {
    /// Creates the program of a connection that opens at `start`. `window` is the measurement window.
    pub(crate) fn new(
        application: &Application,
        mut stream: Stream,
        start: Time,
        window: Range<Time>,
    ) -> Program {
        match application.clone() {
            Application::Bulk => Program::Bulk,
            Application::Limited { rate, size } => Program::Limited {
                clock: ExactClock::new(rate),
                size,
            },
            Application::OnOff {
                burst: Burst::Time(on),
                rate: Some(rate),
                size,
                off,
                ..
            } => Program::Paced {
                clock: Box::new(BurstClock::new(ExactClock::new(rate), on, off, &mut stream)),
                size,
                stream,
            },
            Application::OnOff {
                burst: Burst::Time(on),
                rate: None,
                off,
                buffered,
                ..
            } => Program::Greedy {
                on,
                off,
                buffered,
                stream,
                is_on: false,
            },
            Application::OnOff {
                burst: Burst::Bytes(bytes),
                rate,
                size,
                off,
                ..
            } => Program::Counted(Box::new(Counted {
                bytes,
                off,
                stream,
                clock: rate.map(ExactClock::new),
                size,
                left: 0,
            })),
            Application::Transfers { size, pause, count } => Program::Transfers {
                size,
                pause,
                stream,
                left: count.unwrap_or(u64::MAX),
                written: 0,
                began: None,
            },
            Application::Requests(requests) => {
                Program::Exchange(Box::new(Exchange::requests(&requests, stream, start, window)))
            }
            Application::Adaptive(adaptive) => {
                Program::Exchange(Box::new(Exchange::player(adaptive, start, window)))
            }
            Application::Conversation(turns) => Program::Exchange(Box::new(Exchange::recorded(turns, start))),
            Application::Web(_) => unreachable!("a browser has programs of its own"),
        }
    }

    /// Returns whether both ends write.
    pub(crate) fn is_conversation(&self) -> bool {
        matches!(self, Program::Exchange(_))
    }

    /// Returns whether all has been written and has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Program::Transfers { left, began, .. } => *left == 0 && began.is_none(),
            Program::Exchange(exchange) => exchange.is_complete(),
            _ => false,
        }
    }

    /// Returns whether the next turn of a conversation is that of this end.
    pub(crate) fn answers_at(&self, end: End) -> bool {
        match self {
            Program::Exchange(exchange) => exchange.answers_at(end),
            _ => false,
        }
    }

    /// Returns the exchange. The program must be one.
    pub(crate) fn exchange_mut(&mut self) -> &mut Exchange {
        match self {
            Program::Exchange(exchange) => exchange,
            _ => unreachable!("only exchanges are told what to fetch"),
        }
    }

    /// Returns what the program measured, if it measures anything.
    pub(crate) fn results(&self) -> Option<ApplicationResults> {
        match self {
            Program::Exchange(exchange) => exchange.results(),
            _ => None,
        }
    }

    /// Lets the program write. Called at the start of the flow, and when the program asked for it.
    pub(crate) fn turn(&mut self, now: Time) -> Turn {
        let after = |wait: u64| Some(now + wait);
        let (write, next) = match self {
            Program::Bulk => (Write::Endless, None),
            Program::Limited { clock, size } => (Write::Bytes((*size).into()), after(clock.advance(*size))),
            Program::Paced { clock, size, stream } => {
                (Write::Bytes((*size).into()), after(clock.advance(*size, stream)))
            }
            Program::Greedy {
                on,
                off,
                buffered,
                stream,
                is_on,
            } => {
                *is_on = !*is_on;
                match is_on {
                    true => (Write::Endless, after(on.sample(stream))),
                    false => {
                        let buffered = *buffered;
                        (Write::Withdraw { buffered }, after(off.sample(stream)))
                    }
                }
            }
            Program::Counted(counted) => {
                let (bytes, wait) = counted.next();
                (Write::Bytes(bytes), after(wait))
            }
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
                (Write::Bytes(bytes), None)
            }
            Program::Exchange(exchange) => return exchange.turn(now),
        };
        Turn {
            at: End::Sender,
            write,
            next,
        }
    }

    /// Notes that `total` bytes have arrived at an end. Returns when the program wants its next turn.
    pub(crate) fn delivered(
        &mut self,
        end: End,
        total: u64,
        now: Time,
        durations: &mut Recorder,
    ) -> Option<Time> {
        match self {
            Program::Transfers {
                pause,
                stream,
                left,
                written,
                began,
                ..
            } => {
                if total < *written {
                    return None;
                }
                durations.record(now - began.take()?);
                (*left > 0).then(|| now + pause.sample(stream))
            }
            Program::Exchange(exchange) => exchange.delivered(end, total, now, durations),
            _ => None,
        }
    }
}
