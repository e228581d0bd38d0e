//! A conversation over one connection: the ends write in turn. An end writes when everything that the other
//! end wrote has arrived, after a wait.

use std::ops::Range;
use std::sync::Arc;

use fairgate::Time;

use super::player::Player;
use super::requests::{Fetch, Requester};
use super::step::Step;
use super::{Turn, Write};
use crate::monitor::Recorder;
use crate::random::Stream;
use crate::results::ApplicationResults;
use crate::scenario::{Adaptive, Requests};
use crate::traffic::{End, RecordedTurn};

/// The state of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    script: Script,
    state: State,
    /// The bytes that the source and the destination have written.
    written: [u64; 2],
    is_open: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The next step begins at this time.
    Waiting(Step, Time),
    /// This end has written, and not all has arrived.
    Speaking(End),
    /// Nothing is to be written.
    Silent,
}

/// Who writes how much, and what is measured.
#[derive(Clone, Debug)]
enum Script {
    Requests(Box<Requester>),
    Player(Box<Player>),
    Recorded(Recorded),
    Fetch(Fetch),
}

/// The position in a recorded conversation.
#[derive(Clone, Debug)]
struct Recorded {
    turns: Arc<[RecordedTurn]>,
    position: usize,
    completed: u64,
    start: Time,
    completed_at: Option<Time>,
}

impl Exchange {
    /// Requests and responses of random sizes.
    pub(crate) fn requests(
        requests: &Requests,
        stream: Stream,
        start: Time,
        window: Range<Time>,
    ) -> Exchange {
        Exchange::of(
            Script::Requests(Box::new(Requester::new(requests, stream, window))),
            start,
        )
    }

    /// The player of an adaptive video.
    pub(crate) fn player(adaptive: Arc<Adaptive>, start: Time, window: Range<Time>) -> Exchange {
        Exchange::of(
            Script::Player(Box::new(Player::new(adaptive, start, window))),
            start,
        )
    }

    /// A recorded conversation.
    pub(crate) fn recorded(turns: Arc<[RecordedTurn]>, start: Time) -> Exchange {
        let recorded = Recorded {
            turns,
            position: 0,
            completed: 0,
            start,
            completed_at: None,
        };
        Exchange::of(Script::Recorded(recorded), start)
    }

    /// One fetch after another, as [`fetch`](Exchange::fetch) says.
    pub(crate) fn fetches(start: Time) -> Exchange {
        Exchange::of(Script::Fetch(Fetch::default()), start)
    }

    fn of(script: Script, start: Time) -> Exchange {
        let mut exchange = Exchange {
            script,
            state: State::Silent,
            written: [0; 2],
            is_open: false,
        };
        exchange.prepare(start);
        exchange
    }

    /// Requests an object, which the server sends `service` ns after the request has arrived. The exchange
    /// must be idle. The program wants a turn now.
    pub(crate) fn fetch(&mut self, request: u64, response: u64, service: u64, now: Time) {
        let Script::Fetch(fetch) = &mut self.script else {
            unreachable!("only a browser's exchanges are told what to fetch")
        };
        fetch.begin(request, response, service, now);
        self.prepare(now);
    }

    /// Returns how long the last fetch took, ns, once it is complete.
    pub(crate) fn take_fetched(&mut self) -> Option<u64> {
        match &mut self.script {
            Script::Fetch(fetch) => fetch.take_duration(),
            _ => None,
        }
    }

    /// Returns whether this end writes next.
    pub(crate) fn answers_at(&self, end: End) -> bool {
        matches!(self.state, State::Waiting(step, _) if step.speaker == end)
    }

    /// Returns whether nothing more is to be written, and all has arrived. A browser may always fetch more.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.state, State::Silent) && !matches!(self.script, Script::Fetch(_))
    }

    pub(crate) fn results(&self) -> Option<ApplicationResults> {
        match &self.script {
            Script::Requests(requester) => Some(requester.results()),
            Script::Player(player) => Some(player.results()),
            Script::Recorded(recorded) => Some(ApplicationResults::Conversation {
                turns: recorded.turns.len() as u64,
                completed_turns: recorded.completed,
                completion_ns: recorded.completed_at.map(|at| at - recorded.start),
            }),
            // The browser has the results.
            Script::Fetch(_) => None,
        }
    }

    /// Lets an end write if its time has come. The first turn opens the connection.
    pub(crate) fn turn(&mut self, now: Time) -> Turn {
        // The client opens the connection, whoever writes first.
        let opens = !std::mem::replace(&mut self.is_open, true);
        match self.state {
            State::Waiting(step, due) if due <= now && !(opens && step.speaker == End::Sender) => {
                self.state = State::Speaking(step.speaker);
                self.written[step.speaker as usize] += step.bytes;
                self.script.begun(now);
                Turn {
                    at: step.speaker,
                    write: Write::Bytes(step.bytes),
                    next: None,
                }
            }
            State::Waiting(_, due) => Turn {
                at: End::Receiver,
                write: Write::Nothing,
                next: Some(due.max(now)),
            },
            State::Speaking(_) | State::Silent => Turn {
                at: End::Receiver,
                write: Write::Nothing,
                next: None,
            },
        }
    }

    /// Notes that `total` bytes have arrived at `end`. Returns when the next turn is due.
    pub(crate) fn delivered(
        &mut self,
        end: End,
        total: u64,
        now: Time,
        durations: &mut Recorder,
    ) -> Option<Time> {
        let speaker = end.other();
        match self.state {
            State::Speaking(speaking) if speaking == speaker && total >= self.written[speaker as usize] => {}
            _ => return None,
        }
        self.script.completed(now, durations);
        self.prepare(now)
    }

    /// Prepares the next step. Returns when it is due.
    fn prepare(&mut self, now: Time) -> Option<Time> {
        match self.script.next(now) {
            None => {
                self.state = State::Silent;
                None
            }
            Some(step) => {
                let due = now + step.wait;
                self.state = State::Waiting(step, due);
                Some(due)
            }
        }
    }
}

impl Script {
    /// Returns the next step, if there is one.
    fn next(&mut self, now: Time) -> Option<Step> {
        match self {
            Script::Requests(requester) => requester.next(),
            Script::Player(player) => player.next(now),
            Script::Recorded(recorded) => recorded.next(),
            Script::Fetch(fetch) => fetch.next(),
        }
    }

    /// The step is written now.
    fn begun(&mut self, now: Time) {
        match self {
            Script::Requests(requester) => requester.begun(now),
            Script::Player(player) => player.begun(now),
            Script::Recorded(_) | Script::Fetch(_) => {}
        }
    }

    /// Everything of the step has arrived.
    fn completed(&mut self, now: Time, durations: &mut Recorder) {
        match self {
            Script::Requests(requester) => requester.completed(now, durations),
            Script::Player(player) => player.completed(now, durations),
            Script::Recorded(recorded) => recorded.completed(now, durations),
            Script::Fetch(fetch) => fetch.completed(now, durations),
        }
    }
}

impl Recorded {
    fn next(&mut self) -> Option<Step> {
        let turn = self.turns.get(self.position)?;
        self.position += 1;
        Some(Step {
            speaker: match turn.by_client {
                true => End::Receiver,
                false => End::Sender,
            },
            wait: turn.wait,
            bytes: turn.bytes,
        })
    }

    fn completed(&mut self, now: Time, durations: &mut Recorder) {
        self.completed += 1;
        if self.completed == self.turns.len() as u64 {
            self.completed_at = Some(now);
            durations.record(now - self.start);
        }
    }
}
