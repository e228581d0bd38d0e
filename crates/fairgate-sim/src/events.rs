//! The queue of future events, and with it the simulator's clock.
//!
//! Events are ordered by time, then by ticket: tickets are handed out in the order of insertion, so the order is total
//! and a run can be repeated to the last byte. Time never runs backwards: scheduling into the past is refused.
//!
//! A 4-ary heap: half the depth of a binary one, and the four children of a node share two cache lines. Most events
//! schedule a successor at once (a link's next arrival, a source's next packet), so the root is only marked vacant
//! when its event is taken; the next insertion fills it with one sift down, instead of one down and one up.
//!
//! Nothing is ever deleted from the middle. Who no longer wants an event ignores it when it comes.

use fairgate::Time;

/// What happens in the simulation.
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

const CHILDREN: usize = 4;

/// An event's place among those of the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: Time,
    ticket: Ticket,
    event: E,
}

impl<E> Entry<E> {
    /// One integer for both, so that a comparison is two instructions and no branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time.nanos()) << 64 | u128::from(self.ticket.0)
    }
}

/// Future events of type `E`.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: Vec<Entry<E>>,
    /// The root's event has been taken, its place not yet filled.
    vacant: bool,
    next_ticket: u64,
    now: Time,
}

impl<E: Copy> Events<E> {
    /// No events; the clock at zero.
    pub(crate) fn new() -> Events<E> {
        Events {
            heap: Vec::new(),
            vacant: false,
            next_ticket: 0,
            now: Time::ZERO,
        }
    }

    /// The time of the event taken last.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Reserves a place in the order now for an event to be inserted later: a link keeps its packets in a queue of its
    /// own and inserts only the first, yet ties come out as if every packet had been inserted when it was sent.
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
    pub(crate) fn schedule(&mut self, time: Time, event: E) {
        let ticket = self.ticket();
        self.schedule_with(ticket, time, event);
    }

    /// Inserts an event in the place of `ticket`, which must be used once only.
    ///
    /// # Panics
    /// If `time` has passed.
    #[inline]
    pub(crate) fn schedule_with(&mut self, ticket: Ticket, time: Time, event: E) {
        assert!(
            time >= self.now,
            "time runs forwards: it is {}, not {time}",
            self.now
        );
        let entry = Entry { time, ticket, event };
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
    pub(crate) fn next(&mut self) -> Option<E> {
        if self.vacant {
            self.vacant = false;
            let last = self.heap.pop()?;
            if !self.heap.is_empty() {
                self.sift_down(last);
            }
        }
        let first = *self.heap.first()?;
        self.vacant = true;
        self.now = first.time;
        Some(first.event)
    }

    /// Puts `entry` at the root's place and moves it down to its own.
    #[inline]
    fn sift_down(&mut self, entry: Entry<E>) {
        let heap = self.heap.as_mut_slice();
        let key = entry.key();
        let mut hole = 0;
        loop {
            let first_child = hole * CHILDREN + 1;
            let Some(least) = least_of(&heap[first_child.min(heap.len())..]) else {
                break;
            };
            let least = first_child + least;
            let least_key = heap[least].key();
            if key <= least_key {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = entry;
    }

    /// Moves the last entry up to its place.
    #[inline]
    fn sift_up(&mut self, entry: Entry<E>) {
        let heap = self.heap.as_mut_slice();
        let key = entry.key();
        let mut hole = heap.len() - 1;
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if heap[parent].key() <= key {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = entry;
    }
}

/// The place of the least of the first four entries, or of as many as there are.
///
/// The order of a heap's children is beyond the processor's guess: with all four, comparisons are turned into numbers
/// instead of branches.
#[inline]
fn least_of<E>(entries: &[Entry<E>]) -> Option<usize> {
    if let Some([a, b, c, d]) = entries.first_chunk::<CHILDREN>() {
        let left = usize::from(b.key() < a.key());
        let right = 2 + usize::from(d.key() < c.key());
        let right_is_less = entries[right].key() < entries[left].key();
        return Some(if right_is_less { right } else { left });
    }
    (0..entries.len()).min_by_key(|&place| entries[place].key())
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
    pub(crate) fn set<E: Copy>(&mut self, at: Time, event: E, events: &mut Events<E>) {
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

    #[test]
    fn ties_come_out_in_the_order_of_their_tickets() {
        let mut events = Events::new();
        let early = events.ticket();
        for event in 1..=20 {
            events.schedule(Time::from_nanos(5), event);
        }
        events.schedule_with(early, Time::from_nanos(5), 0);
        let order: Vec<i32> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(order, (0..=20).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "time runs forwards")]
    fn the_past_is_refused() {
        let mut events = Events::new();
        events.schedule(Time::from_nanos(5), ());
        events.next();
        events.schedule(Time::from_nanos(4), ());
    }

    #[test]
    fn an_alarm_rings_at_the_earliest_time_it_was_set_to() {
        let mut events = Events::new();
        let mut alarm = Alarm::UNSET;
        for at in [5, 7, 3] {
            alarm.set(Time::from_nanos(at), at, &mut events);
        }
        let mut rung = Vec::new();
        while let Some(at) = events.next() {
            rung.push((at, alarm.rings(events.now())));
        }
        assert_eq!(rung, [(3, true), (5, false)]);
    }

    proptest! {
        /// Against a sorted list, with insertions between removals.
        #[test]
        fn order_is_total(steps in prop::collection::vec((0u64..20, 0usize..3), 1..300)) {
            let mut events = Events::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (number, (delay, removals)) in steps.into_iter().enumerate() {
                let time = events.now() + delay;
                events.schedule(time, number);
                model.push((time.nanos(), number));
                for _ in 0..removals {
                    model.sort_unstable();
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    let taken = events.next();
                    prop_assert_eq!(taken, expected.map(|(_, number)| number));
                    if let Some((time, _)) = expected {
                        prop_assert_eq!(events.now().nanos(), time);
                    }
                }
            }
        }
    }
}
