//! The queue of future events. It also holds the simulator's clock.
//!
//! Events are ordered by time. Events with the same time are ordered by ticket, and tickets are given out in
//! the order of insertion. The order is therefore total, and a run can be repeated exactly. Scheduling an
//! event in the past is a bug and panics. Events after the end of the simulation are discarded at once.
//!
//! An event is a number of 128 bits:
//!
//! ```text
//!   127          72 71             26 25   22 21       0
//!   | time, ns: 56 |   ticket: 46   | kind: 4 | index: 22 |
//! ```
//!
//! Those of the near future are in a [calendar](Calendar), which has most of what comes next. All others are
//! in a [heap](Heap): timers of connections, of which tens of thousands may wait, and most of them will be
//! moved before they are due.
//!
//! No event is ever removed from the middle. If an event is no longer needed, its owner ignores it when it
//! occurs.

mod calendar;
mod heap;

use std::time::Duration;

use fairgate::Time;

use calendar::Calendar;
use heap::Heap;

const INDEX_BITS: u32 = 22;
const EVENT_BITS: u32 = 26;
const TIME_SHIFT: u32 = 72;

/// What is later than every event: it stands for none.
const NOTHING: u128 = u128::MAX;

/// After how many events the calendar is adapted to the time between them: a power of two.
const BEFORE_ADAPTING: u64 = 1 << 12;

/// Converts a duration to a point in simulated time.
pub(crate) fn time(duration: Duration) -> Time {
    Time::ZERO + duration
}

/// An event of the simulation. Indices are below [`Event::INDICES`]. The order is that of the packed kinds,
/// so that unpacking takes no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet in flight on this interface's link reaches the other end.
    Arrival(u32),
    /// This interface may have a packet to transmit.
    Wake(u32),
    /// A node has processed the first packet that waits for it. The index is that of the processor.
    Processed(u32),
    /// A transmission on the medium of this cell begins or ends.
    Medium(u32),
    /// The source of this flow has a datagram to send or data to write.
    Source(u32),
    /// The source of this flow stops sending.
    Stop(u32),
    /// A timer of this TCP connection's sender is due.
    SenderTimer(u32),
    /// A timer of this TCP connection's receiver is due.
    ReceiverTimer(u32),
    /// An interval of the time series ends.
    Interval,
    /// The measurement window opens.
    Opening,
    /// The measurement window closes.
    Closing,
    /// The simulation ends.
    End,
    /// The next flow of this group starts.
    Start(u32),
    /// The rate of this follower is due for a review.
    Review(u32),
}

impl Event {
    /// The number of interfaces or flows that events can distinguish.
    pub(crate) const INDICES: u32 = 1 << INDEX_BITS;

    // Inlined, because where the kind is known this is a constant beside the index.
    #[inline(always)]
    fn pack(self) -> u32 {
        let (kind, index) = match self {
            Event::Arrival(index) => (0, index),
            Event::Wake(index) => (1, index),
            Event::Processed(index) => (2, index),
            Event::Medium(index) => (3, index),
            Event::Source(index) => (4, index),
            Event::Stop(index) => (5, index),
            Event::SenderTimer(index) => (6, index),
            Event::ReceiverTimer(index) => (7, index),
            Event::Interval => (8, 0),
            Event::Opening => (9, 0),
            Event::Closing => (10, 0),
            Event::End => (11, 0),
            Event::Start(index) => (12, index),
            Event::Review(index) => (13, index),
        };
        debug_assert!(index < Event::INDICES);
        kind << INDEX_BITS | index
    }

    #[inline]
    fn unpack(packed: u32) -> Event {
        let index = packed & (Event::INDICES - 1);
        match packed >> INDEX_BITS {
            0 => Event::Arrival(index),
            1 => Event::Wake(index),
            2 => Event::Processed(index),
            3 => Event::Medium(index),
            4 => Event::Source(index),
            5 => Event::Stop(index),
            6 => Event::SenderTimer(index),
            7 => Event::ReceiverTimer(index),
            8 => Event::Interval,
            9 => Event::Opening,
            10 => Event::Closing,
            11 => Event::End,
            12 => Event::Start(index),
            13 => Event::Review(index),
            _ => unreachable!("every packed event has one of these kinds"),
        }
    }
}

/// The position of an event among the events with the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

impl Ticket {
    /// Returns the ticket `number` places later, of those that were reserved together.
    pub(crate) fn nth(self, number: u64) -> Ticket {
        Ticket(self.0 + number)
    }
}

/// The future events.
#[derive(Debug)]
pub(crate) struct Events {
    near: Calendar,
    far: Heap,
    next_ticket: u64,
    now: Time,
    end: Time,
    /// The number of events that were taken.
    taken: u64,
    /// When the calendar was adapted last.
    adapted_at: Time,
}

impl Events {
    /// The latest possible end: a little more than two years.
    pub(crate) const LATEST: Time = Time::from_nanos((1 << 56) - 1);

    /// Creates an empty queue with the clock at zero.
    pub(crate) fn until(end: Time) -> Events {
        assert!(
            end <= Events::LATEST,
            "the end of a simulation must fit into 56 bits"
        );
        Events {
            near: Calendar::new(),
            far: Heap::new(),
            next_ticket: 0,
            now: Time::ZERO,
            end,
            taken: 0,
            adapted_at: Time::ZERO,
        }
    }

    /// Returns the number of events that were taken.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the time of the last event taken.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Reserves a position in the order for an event that is inserted later. A link keeps its packets in its
    /// own queue and inserts only the first arrival. With tickets, ties are still ordered as if every
    /// packet's arrival had been inserted when the packet was sent. At three million tickets per second, 46
    /// bits last for most of a year.
    #[inline]
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    /// Reserves `count` successive positions and returns the first.
    pub(crate) fn tickets(&mut self, count: u64) -> Ticket {
        let first = Ticket(self.next_ticket + 1);
        self.next_ticket += count;
        first
    }

    /// Returns the end. Later events are discarded.
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// Inserts an event after all events with the same time inserted so far.
    ///
    /// # Panics
    /// Panics if `time` is in the past.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, time: Time, event: Event) {
        let ticket = self.ticket();
        self.schedule_with(ticket, time, event);
    }

    /// Inserts an event at the position of `ticket`. Only one event at a time may use a ticket.
    ///
    /// # Panics
    /// Panics if `time` is in the past.
    #[inline(always)]
    pub(crate) fn schedule_with(&mut self, ticket: Ticket, time: Time, event: Event) {
        if time < self.now {
            in_the_past(time, self.now);
        }
        if time > self.end {
            return;
        }
        let entry = u128::from(time.nanos()) << TIME_SHIFT
            | u128::from(ticket.0) << EVENT_BITS
            | u128::from(event.pack());
        if !self.near.insert(entry, self.now.nanos()) {
            self.far.insert(entry);
        }
    }

    /// Removes the next event and sets the clock to its time.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        let (near, far) = (self.near.least(), self.far.least());
        let first = near.min(far);
        if first == NOTHING {
            return None;
        }
        match near < far {
            true => self.near.take(),
            false => self.far.take(),
        }
        self.now = Time::from_nanos((first >> TIME_SHIFT) as u64);
        self.taken += 1;
        if self.taken.is_multiple_of(BEFORE_ADAPTING) {
            self.adapt();
        }
        Some(Event::unpack(first as u32 & ((1 << EVENT_BITS) - 1)))
    }
}

impl Events {
    /// Adapts the calendar to the time between the last events.
    #[cold]
    fn adapt(&mut self) {
        let gap = self.now.nanos_since(self.adapted_at) / BEFORE_ADAPTING;
        self.adapted_at = self.now;
        let far = &mut self.far;
        self.near.adapt(gap, self.now.nanos(), |entry| far.insert(entry));
    }
}

/// A function of its own, so that the check takes two instructions.
#[cold]
#[inline(never)]
fn in_the_past(time: Time, now: Time) -> ! {
    panic!("an event is scheduled in the past: the time is {now}, but the event is at {time}")
}

/// A timer that is moved more often than it fires. If it is moved to a later time, its event stays where it
/// is. When the event occurs, its owner finds that the timer is not due yet, and sets the alarm again. If the
/// timer is moved to an earlier time, it gets a new event, and the old one becomes obsolete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    /// The time of the event that counts. [`Time::MAX`] if there is none.
    at: Time,
}

impl Alarm {
    pub(crate) const UNSET: Alarm = Alarm { at: Time::MAX };

    /// Makes sure that `event` occurs at `at` or earlier.
    #[inline]
    pub(crate) fn set(&mut self, at: Time, event: Event, events: &mut Events) {
        if at < self.at {
            self.at = at;
            events.schedule(at, event);
        }
    }

    /// Returns whether the event that has occurred is the one that counts. If so, unsets the alarm.
    #[inline]
    pub(crate) fn rings(&mut self, now: Time) -> bool {
        let rings = self.at == now;
        if rings {
            self.at = Time::MAX;
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn events_with_the_same_time_come_in_the_order_of_their_tickets() {
        let mut events = Events::until(at(5));
        let early = events.ticket();
        for number in 1..=20 {
            events.schedule(at(5), Event::Source(number));
        }
        events.schedule_with(early, at(5), Event::Source(0));
        let order: Vec<Event> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(order, (0..=20).map(Event::Source).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "scheduled in the past")]
    fn scheduling_in_the_past_panics() {
        let mut events = Events::until(at(10));
        events.schedule(at(5), Event::End);
        events.next();
        events.schedule(at(4), Event::End);
    }

    #[test]
    fn events_after_the_end_are_discarded() {
        let mut events = Events::until(Events::LATEST);
        events.schedule(Time::MAX, Event::Interval);
        events.schedule(Events::LATEST, Event::End);
        assert_eq!(events.next(), Some(Event::End));
        assert_eq!((events.now(), events.next()), (Events::LATEST, None));
    }

    #[test]
    fn every_event_is_packed_and_unpacked() {
        let last = Event::INDICES - 1;
        let all = [
            Event::Arrival(last),
            Event::Processed(last),
            Event::Wake(0),
            Event::Source(last),
            Event::Stop(1),
            Event::SenderTimer(last),
            Event::ReceiverTimer(2),
            Event::Interval,
            Event::Opening,
            Event::Closing,
            Event::End,
            Event::Start(last),
            Event::Medium(last),
            Event::Review(last),
        ];
        for event in all {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    #[test]
    fn an_alarm_rings_at_the_earliest_time_set() {
        let mut events = Events::until(at(10));
        let mut alarm = Alarm::UNSET;
        for nanos in [5, 7, 3] {
            alarm.set(at(nanos), Event::Wake(0), &mut events);
        }
        let mut rung = Vec::new();
        while events.next().is_some() {
            rung.push((events.now().nanos(), alarm.rings(events.now())));
        }
        assert_eq!(rung, [(3, true), (5, false)]);
    }

    proptest! {
        /// Compares with a sorted list, with insertions between removals.
        #[test]
        fn order_is_total(steps in prop::collection::vec((0u64..20, 0usize..3), 1..300)) {
            let mut events = Events::until(Events::LATEST);
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (number, (delay, removals)) in (0u32..).zip(steps) {
                let time = events.now() + delay;
                let event = match number % 3 {
                    0 => Event::Arrival(number),
                    _ => Event::Source(number),
                };
                events.schedule(time, event);
                model.push((time.nanos(), number));
                for _ in 0..removals {
                    model.sort_unstable();
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    let taken = events.next().map(|event| match event {
                        Event::Arrival(number) | Event::Source(number) => number,
                        other => unreachable!("nobody schedules {other:?}"),
                    });
                    prop_assert_eq!(taken, expected.map(|(_, number)| number));
                    if let Some((time, _)) = expected {
                        prop_assert_eq!(events.now().nanos(), time);
                    }
                }
            }
        }
    }
}
