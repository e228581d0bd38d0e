//! The queue of future events, and with it the simulator's clock.
//!
//! Events are ordered by time, then by ticket: tickets are handed out in the order of insertion, so the order is total
//! and a run can be repeated to the last byte. Time never runs backwards: scheduling into the past is refused. What lies
//! beyond the end is forgotten at once.
//!
//! A 4-ary heap of 128-bit numbers: half the depth of a binary one, a comparison is two instructions and no branch, and
//! the children of a node fill one cache line.
//!
//! ```text
//!   127          72 71             26 25   22 21       0
//!   | time, ns: 56 |   ticket: 46   | kind: 4 | index: 22 |
//! ```
//!
//! Most events schedule a successor at once (a link's next arrival, a source's next packet), so the root is only marked
//! vacant when its event is taken; the next insertion fills it with one sift down, instead of one down and one up.
//! Nothing is ever deleted from the middle. Who no longer wants an event ignores it when it comes.

use fairgate::Time;

const CHILDREN: usize = 4;

const INDEX_BITS: u32 = 22;
const EVENT_BITS: u32 = 26;
const TIME_SHIFT: u32 = 72;

/// What happens in the simulation. Indices are below [`Event::INDICES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet in flight on this interface's link reaches the other end.
    Arrival(u32),
    /// This interface may have something to transmit.
    Wake(u32),
    /// The source of this flow has something to send or to write.
    Source(u32),
    /// The source of this flow falls silent.
    Stop(u32),
    /// A timer of this TCP connection's sender is due.
    SenderTimer(u32),
    /// A timer of this TCP connection's receiver is due.
    ReceiverTimer(u32),
    /// An interval of the time series ends.
    Interval,
    /// The window of measurement opens.
    Opening,
    /// The window of measurement closes.
    Closing,
    /// The simulation ends.
    End,
}

impl Event {
    /// How many interfaces or flows can be told apart.
    pub(crate) const INDICES: u32 = 1 << INDEX_BITS;

    #[inline]
    fn pack(self) -> u32 {
        let (kind, index) = match self {
            Event::Arrival(index) => (0, index),
            Event::Wake(index) => (1, index),
            Event::Source(index) => (2, index),
            Event::Stop(index) => (3, index),
            Event::SenderTimer(index) => (4, index),
            Event::ReceiverTimer(index) => (5, index),
            Event::Interval => (6, 0),
            Event::Opening => (7, 0),
            Event::Closing => (8, 0),
            Event::End => (9, 0),
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
            2 => Event::Source(index),
            3 => Event::Stop(index),
            4 => Event::SenderTimer(index),
            5 => Event::ReceiverTimer(index),
            6 => Event::Interval,
            7 => Event::Opening,
            8 => Event::Closing,
            _ => Event::End,
        }
    }
}

/// An event's place among those of the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Future events.
#[derive(Debug)]
pub(crate) struct Events {
    heap: Vec<u128>,
    /// The root's event has been taken, its place not yet filled.
    vacant: bool,
    next_ticket: u64,
    now: Time,
    end: Time,
}

impl Events {
    /// The latest end: a little more than two years.
    pub(crate) const LATEST: Time = Time::from_nanos((1 << 56) - 1);

    /// No events; the clock at zero.
    pub(crate) fn until(end: Time) -> Events {
        assert!(end <= Events::LATEST, "56 bits hold every time of a simulation");
        Events {
            heap: Vec::new(),
            vacant: false,
            next_ticket: 0,
            now: Time::ZERO,
            end,
        }
    }

    /// The time of the event taken last.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Reserves a place in the order now for an event to be inserted later: a link keeps its packets in a queue of its
    /// own and inserts only the first, yet ties come out as if every packet had been inserted when it was sent.
    /// 46 bits last for most of a year at three million a second.
    #[inline]
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    /// Inserts an event after all events of the same time inserted so far.
    ///
    /// # Panics
    /// If `time` has passed.
    #[inline]
    pub(crate) fn schedule(&mut self, time: Time, event: Event) {
        let ticket = self.ticket();
        self.schedule_with(ticket, time, event);
    }

    /// Inserts an event in the place of `ticket`, which is used by one event at a time.
    ///
    /// # Panics
    /// If `time` has passed.
    #[inline]
    pub(crate) fn schedule_with(&mut self, ticket: Ticket, time: Time, event: Event) {
        assert!(
            time >= self.now,
            "time runs forwards: it is {}, not {time}",
            self.now
        );
        if time > self.end {
            return;
        }
        let entry = u128::from(time.nanos()) << TIME_SHIFT
            | u128::from(ticket.0) << EVENT_BITS
            | u128::from(event.pack());
        if self.vacant {
            self.vacant = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(entry);
        }
    }

    /// Takes the next event and sets the clock to its time.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        if self.vacant {
            self.vacant = false;
            let last = self.heap.pop()?;
            if !self.heap.is_empty() {
                self.sift_down(last);
            }
        }
        let first = *self.heap.first()?;
        self.vacant = true;
        self.now = Time::from_nanos((first >> TIME_SHIFT) as u64);
        Some(Event::unpack(first as u32 & ((1 << EVENT_BITS) - 1)))
    }

    /// Puts `entry` at the root's place and moves it down to its own.
    #[inline]
    fn sift_down(&mut self, entry: u128) {
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first_child = hole * CHILDREN + 1;
            let Some((offset, least)) = least_of(&heap[first_child.min(heap.len())..]) else {
                break;
            };
            if entry <= least {
                break;
            }
            heap[hole] = least;
            hole = first_child + offset;
        }
        heap[hole] = entry;
    }

    /// Moves the last entry up to its place.
    #[inline]
    fn sift_up(&mut self, entry: u128) {
        let heap = self.heap.as_mut_slice();
        let mut hole = heap.len() - 1;
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if heap[parent] <= entry {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = entry;
    }
}

/// The least of the first four entries, or of as many as there are, and its place.
///
/// The order of a heap's children is beyond the processor's guess: a choice between two values needs no branch.
#[inline]
fn least_of(entries: &[u128]) -> Option<(usize, u128)> {
    let lesser = |a: (usize, u128), b: (usize, u128)| if b.1 < a.1 { b } else { a };
    if let Some(&[a, b, c, d]) = entries.first_chunk::<CHILDREN>() {
        return Some(lesser(lesser((0, a), (1, b)), lesser((2, c), (3, d))));
    }
    entries.iter().copied().enumerate().reduce(lesser)
}

/// A timer that is moved more often than it fires. Moved to a later time, it leaves its event where it is: when that
/// comes, its owner finds that it isn't time yet and sets it anew. Moved to an earlier time, it gets a new event, and
/// the old one is obsolete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    /// When the event is due that counts; [`Time::MAX`] for none.
    at: Time,
}

impl Alarm {
    pub(crate) const UNSET: Alarm = Alarm { at: Time::MAX };

    /// Makes sure that `event` comes at `at` or earlier.
    #[inline]
    pub(crate) fn set(&mut self, at: Time, event: Event, events: &mut Events) {
        if at < self.at {
            self.at = at;
            events.schedule(at, event);
        }
    }

    /// An event has come: whether it is the one that counts. If so, the alarm is unset.
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
    fn ties_come_out_in_the_order_of_their_tickets() {
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
    #[should_panic(expected = "time runs forwards")]
    fn the_past_is_refused() {
        let mut events = Events::until(at(10));
        events.schedule(at(5), Event::End);
        events.next();
        events.schedule(at(4), Event::End);
    }

    #[test]
    fn what_lies_beyond_the_end_is_forgotten() {
        let mut events = Events::until(Events::LATEST);
        events.schedule(Time::MAX, Event::Interval);
        events.schedule(Events::LATEST, Event::End);
        assert_eq!(events.next(), Some(Event::End));
        assert_eq!((events.now(), events.next()), (Events::LATEST, None));
    }

    #[test]
    fn every_event_comes_out_as_it_went_in() {
        let last = Event::INDICES - 1;
        let all = [
            Event::Arrival(last),
            Event::Wake(0),
            Event::Source(last),
            Event::Stop(1),
            Event::SenderTimer(last),
            Event::ReceiverTimer(2),
            Event::Interval,
            Event::Opening,
            Event::Closing,
            Event::End,
        ];
        for event in all {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    #[test]
    fn an_alarm_rings_at_the_earliest_time_it_was_set_to() {
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
        /// Against a sorted list, with insertions between removals.
        #[test]
        fn order_is_total(steps in prop::collection::vec((0u64..20, 0usize..3), 1..300)) {
            let mut events = Events::until(Events::LATEST);
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (number, (delay, removals)) in (0u32..).zip(steps) {
                let time = events.now() + delay;
                events.schedule(time, Event::Source(number));
                model.push((time.nanos(), number));
                for _ in 0..removals {
                    model.sort_unstable();
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    let taken = events.next();
                    prop_assert_eq!(taken, expected.map(|(_, number)| Event::Source(number)));
                    if let Some((time, _)) = expected {
                        prop_assert_eq!(events.now().nanos(), time);
                    }
                }
            }
        }
    }
}
