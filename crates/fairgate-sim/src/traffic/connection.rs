//! A TCP connection: both ends of the protocol engine, the program that writes, and the alarms of the timers.

use fairgate::Time;

use crate::events::{Alarm, Event, Events};
use crate::monitor::Recorder;
use crate::tcp::{Config, Receiver, Segment, Sender};
use crate::traffic::Program;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// A TCP connection.
pub(crate) struct Connection {
    pub(crate) sender: Sender,
    receiver: Receiver,
    program: Program,
    /// The durations of completed transfers.
    pub(crate) transfers: Recorder,
    /// The congestion window at the end of each interval, segments.
    pub(crate) window_series: Vec<u32>,
    /// The smoothed round-trip time at the end of each interval, ns. It is 0 before the first measurement.
    pub(crate) rtt_series: Vec<u64>,
    /// The bytes that the receiver's program has got.
    delivered: u64,
    /// Whether the sender is stopped: it neither sends nor receives.
    stopped: bool,
    sender_alarm: Alarm,
    receiver_alarm: Alarm,
}

impl Connection {
    /// Creates a connection that opens at `start`.
    pub(crate) fn new(config: &Config, program: Program, start: Time) -> Connection {
        Connection {
            sender: Sender::new(config, start),
            receiver: Receiver::new(config, start),
            program,
            transfers: Recorder::new(),
            window_series: Vec::new(),
            rtt_series: Vec::new(),
            delivered: 0,
            stopped: false,
            sender_alarm: Alarm::UNSET,
            receiver_alarm: Alarm::UNSET,
        }
    }

    /// Lets the program write. Returns when it wants to write again.
    pub(crate) fn turn(&mut self, now: Time) -> Option<Time> {
        if self.stopped {
            return None;
        }
        let turn = self.program.turn(now);
        match turn.write {
            Some(bytes) => self.sender.write(bytes, now),
            None => self.sender.write_forever(now),
        }
        turn.next
    }

    /// Stops the sender.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Handles a segment that has arrived at an end.
    pub(crate) fn on_segment(&mut self, end: End, segment: &Segment, now: Time) {
        match end {
            End::Sender if self.stopped => {}
            End::Sender => self.sender.on_segment(segment, now),
            End::Receiver => self.receiver.on_segment(segment, now),
        }
    }

    /// Returns the bytes delivered to the receiver's program since the last call. Also returns when the
    /// writing program wants its next turn because of them.
    pub(crate) fn take_delivered(&mut self, now: Time) -> (u64, Option<Time>) {
        let total = self.receiver.delivered();
        let fresh = total - self.delivered;
        if fresh == 0 {
            return (0, None);
        }
        self.delivered = total;
        (fresh, self.program.delivered(total, now, &mut self.transfers))
    }

    /// Returns the next segment that an end sends now.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, end: End, now: Time) -> Option<Segment> {
        match end {
            End::Sender if self.stopped => None,
            End::Sender => self.sender.poll_transmit(now),
            End::Receiver => self.receiver.poll_transmit(now),
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
        match end {
            End::Sender => self.sender.on_timer(now),
            End::Receiver => self.receiver.on_timer(now),
        }
    }

    pub(crate) fn interval_ends(&mut self) {
        self.window_series.push(self.sender.congestion_window());
        self.rtt_series
            .push(self.sender.smoothed_rtt().map_or(0, |micros| micros * 1_000));
    }

    fn timer(&self, end: End) -> Option<Time> {
        match end {
            End::Sender if self.stopped => None,
            End::Sender => self.sender.timer(),
            End::Receiver => self.receiver.timer(),
        }
    }
}
