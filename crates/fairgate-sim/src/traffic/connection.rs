//! A TCP connection: the protocol engine at both ends, the program that writes, and the alarms of the timers.
//!
//! Data flows from the sending end to the receiving end. Most programs write there only, and the sending end
//! opens the connection. If a program has a conversation, there is a second stream for requests, from the
//! receiving end (the client, which opens) to the sending end (the server). Acknowledgements of one stream
//! travel in the data segments of the other one.

use std::mem::offset_of;

use fairgate::Time;

use crate::events::{Alarm, Event, Events};
use crate::monitor::ConnectionMonitor;
use crate::prefetch::{Start, prefetch};
use crate::tcp::{Config, Flags, Receiver, Segment, Sender, SenderCounters};
use crate::traffic::program::Write;
use crate::traffic::{End, Program};

/// A TCP connection. What is needed for each packet comes first.
#[repr(C)]
pub(crate) struct Connection {
    start: Start,
    pub(crate) sender: Sender,
    /// The stream from the receiving end to the sending end, if the program needs one.
    requests: Option<Box<Requests>>,
    sender_alarm: Alarm,
    receiver_alarm: Alarm,
    /// The bytes that the receiver's program has got.
    delivered: u64,
    /// Whether the connection is stopped: the sending end neither sends nor receives, and the receiving end
    /// makes no more requests.
    stopped: bool,
    receiver: Receiver,
    program: Program,
    /// Its transfers are those that the program completed: transfers, or responses.
    pub(crate) monitor: ConnectionMonitor,
}

/// The stream of requests.
struct Requests {
    sender: Sender,
    receiver: Receiver,
    delivered: u64,
}

impl Connection {
    /// Creates a connection that opens at `start`.
    pub(crate) fn new(config: &Config, program: Program, start: Time) -> Connection {
        let requests = program.is_conversation().then(|| {
            Box::new(Requests {
                sender: Sender::new(config, start),
                receiver: Receiver::new(config, start),
                delivered: 0,
            })
        });
        Connection {
            start: [],
            sender: match requests {
                None => Sender::new(config, start),
                Some(_) => Sender::passive(config, start),
            },
            receiver: Receiver::new(config, start),
            requests,
            program,
            monitor: ConnectionMonitor::new(),
            delivered: 0,
            stopped: false,
            sender_alarm: Alarm::UNSET,
            receiver_alarm: Alarm::UNSET,
        }
    }

    /// Prefetches what an end needs for a segment: the sender and what follows, or the receiver and what is
    /// before it and after it.
    #[inline]
    pub(crate) fn prefetch(&self, end: End) {
        let (from, to) = match end {
            End::Sender => (0, offset_of!(Connection, receiver)),
            End::Receiver => (
                offset_of!(Connection, requests),
                offset_of!(Connection, program) + size_of::<Program>(),
            ),
        };
        prefetch(&self.start, from, to - from);
    }

    /// Lets the program write. Returns the end that has something to send now, and when the program wants to
    /// write again.
    pub(crate) fn turn(&mut self, now: Time) -> (End, Option<Time>) {
        if self.stopped {
            return (End::Sender, None);
        }
        let turn = self.program.turn(now);
        let sender = match (turn.at, &mut self.requests) {
            (End::Receiver, Some(requests)) => &mut requests.sender,
            _ => &mut self.sender,
        };
        match turn.write {
            Write::Nothing => {}
            Write::Bytes(bytes) => sender.write(bytes, now),
            Write::Endless => sender.write_forever(now),
            Write::Withdraw { buffered } => sender.withdraw_unsent(buffered),
        }
        (turn.at, turn.next)
    }

    /// Stops the connection.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Handles a segment that has arrived at an end.
    #[inline]
    pub(crate) fn on_segment(&mut self, end: End, segment: &Segment, now: Time) {
        if self.is_silent(end) {
            return;
        }
        let Some(requests) = &mut self.requests else {
            match end {
                End::Sender => self.sender.on_segment(segment, now),
                End::Receiver => self.receiver.on_segment(segment, now),
            }
            return;
        };
        match end {
            End::Sender => {
                requests.receiver.on_segment(segment, now);
                if requests.receiver.is_established() {
                    // The first segment after the SYN opens the sender. It does nothing later.
                    let rtt = requests.receiver.smoothed_rtt();
                    self.sender.accept(segment, rtt, now);
                    acknowledge(&mut self.sender, segment, now);
                }
            }
            End::Receiver if segment.flags.contains(Flags::SYN) => {
                requests.sender.on_segment(segment, now);
                let rtt = requests.sender.smoothed_rtt();
                self.receiver.accept(segment, rtt, now);
            }
            End::Receiver => {
                self.receiver.on_segment(segment, now);
                acknowledge(&mut requests.sender, segment, now);
            }
        }
    }

    /// Returns the bytes delivered to the program at an end since the last call. Also returns when the
    /// program wants its next turn because of them. If the same end answers at once, it writes here, so that
    /// the acknowledgement travels with the answer.
    #[inline]
    pub(crate) fn take_delivered(&mut self, end: End, now: Time) -> (u64, Option<Time>) {
        let (total, before) = match (end, &mut self.requests) {
            (End::Receiver, _) => (self.receiver.delivered(), &mut self.delivered),
            (End::Sender, Some(requests)) => (requests.receiver.delivered(), &mut requests.delivered),
            (End::Sender, None) => return (0, None),
        };
        let fresh = total - *before;
        if fresh == 0 {
            return (0, None);
        }
        *before = total;
        let durations = &mut self.monitor.transfers;
        let next = self.program.delivered(end, total, now, durations);
        match next == Some(now) && self.program.answers_at(end) {
            true => (fresh, self.turn(now).1),
            false => (fresh, next),
        }
    }

    /// Returns the next segment that an end sends now.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, end: End, now: Time) -> Option<Segment> {
        if self.is_silent(end) {
            return None;
        }
        let Some(requests) = &mut self.requests else {
            return match end {
                End::Sender => self.sender.poll_transmit(now),
                End::Receiver => self.receiver.poll_transmit(now),
            };
        };
        let (sender, receiver) = match end {
            End::Sender => (&mut self.sender, &mut requests.receiver),
            End::Receiver => (&mut requests.sender, &mut self.receiver),
        };
        match sender.poll_transmit(now) {
            Some(mut segment) => {
                if !segment.flags.contains(Flags::SYN) {
                    receiver.piggyback(&mut segment, now);
                }
                Some(segment)
            }
            None => receiver.poll_transmit(now),
        }
    }

    /// Schedules an event for the timer of an end.
    #[inline]
    pub(crate) fn set_alarm(&mut self, end: End, flow: u32, events: &mut Events) {
        let Some(at) = self.timer(end) else { return };
        let (alarm, event) = match end {
            End::Sender => (&mut self.sender_alarm, Event::SenderTimer(flow)),
            End::Receiver => (&mut self.receiver_alarm, Event::ReceiverTimer(flow)),
        };
        alarm.set(at.max(events.now()), event, events);
    }

    /// Handles an alarm's event: notifies the end if its timer is due.
    pub(crate) fn on_alarm(&mut self, end: End, now: Time) {
        let rings = match end {
            End::Sender => self.sender_alarm.rings(now),
            End::Receiver => self.receiver_alarm.rings(now),
        };
        if !rings || self.timer(end).is_none_or(|at| at > now) {
            return;
        }
        let is_due = |timer: Option<Time>| timer.is_some_and(|at| at <= now);
        let (sender, receiver) = match end {
            End::Sender => (
                Some(&mut self.sender),
                self.requests.as_mut().map(|requests| &mut requests.receiver),
            ),
            End::Receiver => (
                self.requests.as_mut().map(|requests| &mut requests.sender),
                Some(&mut self.receiver),
            ),
        };
        if let Some(sender) = sender.filter(|sender| is_due(sender.timer())) {
            sender.on_timer(now);
        }
        if let Some(receiver) = receiver.filter(|receiver| is_due(receiver.timer())) {
            receiver.on_timer(now);
        }
    }

    /// Returns whether the program has nothing to write any more, and all that it wrote has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.program.is_complete()
    }

    /// Returns whether neither end sends anything, unless a packet arrives.
    pub(crate) fn is_quiet(&self) -> bool {
        self.timer(End::Sender).is_none() && self.timer(End::Receiver).is_none()
    }

    /// Releases the memory that the ends need only while packets are outstanding.
    pub(crate) fn release_memory(&mut self) {
        self.sender.release_memory();
        self.receiver.release_memory();
        if let Some(requests) = &mut self.requests {
            requests.sender.release_memory();
            requests.receiver.release_memory();
        }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Returns the counters of the sending end. Those of requests are not included.
    pub(crate) fn counters(&self) -> SenderCounters {
        self.sender.counters()
    }

    /// Returns whether an end neither sends nor receives any more.
    #[inline]
    fn is_silent(&self, end: End) -> bool {
        self.stopped && (end == End::Sender || self.requests.is_some())
    }

    #[inline]
    fn timer(&self, end: End) -> Option<Time> {
        if self.is_silent(end) {
            return None;
        }
        let own = match end {
            End::Sender => self.sender.timer(),
            // A server gives up a connection that was never opened, when the client is gone.
            End::Receiver if self.stopped && !self.receiver.is_established() => None,
            End::Receiver => self.receiver.timer(),
        };
        let Some(requests) = &self.requests else {
            return own;
        };
        let other = match end {
            End::Sender => requests.receiver.timer(),
            End::Receiver => requests.sender.timer(),
        };
        [own, other].into_iter().flatten().min()
    }
}

/// Lets the sender of an end read the acknowledgement of a segment.
fn acknowledge(sender: &mut Sender, segment: &Segment, now: Time) {
    if segment.range().is_empty() || sender.is_news(segment) {
        sender.on_segment(segment, now);
    }
}
