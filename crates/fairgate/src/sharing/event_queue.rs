//! Numbers ordered by the time of their event, in constant time for any count: a radix heap (Ahuja, Mehlhorn,
//! Orlin and Tarjan 1990) from which any number can be removed.
//!
//! Times never go back. The *floor* is a time that no queued event is before. An event is filed by the
//! highest digit (of 6 bits) in which its time differs from the floor: nearby events finely, distant ones
//! coarsely. A bitmap for each digit shows which of its 64 slots have events. When the first slot is due, the
//! floor is raised to the earliest time in it, and its events are filed again, each at a lower digit than
//! before. An event is filed at most 11 times; for delays of milliseconds mostly 3 or 4 times.
//!
//! The order is exact: by time, and for equal times by insertion. The earliest time is exact too. Each slot
//! stores its own. After that event has left, the slot is searched.

use alloc::boxed::Box;

use crate::structures::boxed;

/// The bits of a digit, and the number of its slots.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// The number of digits of a time.
const DIGITS: usize = u64::BITS.div_ceil(BITS) as usize;

/// No event.
const NONE: u32 = u32::MAX;
/// The earliest time of a slot that has to be searched for it. It stays the least, whatever is added.
const UNKNOWN: u64 = 0;
/// The earliest time of a slot without events. No event has this time.
const NEVER: u64 = u64::MAX;

/// The events with the same value of a digit.
#[derive(Clone, Copy, Debug)]
struct Slot {
    earliest: u64,
    head: u32,
    tail: u32,
}

const EMPTY: Slot = Slot {
    earliest: NEVER,
    head: NONE,
    tail: NONE,
};

/// The event of a number.
#[derive(Clone, Copy, Debug)]
struct Event {
    time: u64,
    next: u32,
    previous: u32,
    /// The slot, or [`NONE`] if no event is queued.
    slot: u32,
}

/// The queue. Memory for all numbers is allocated at construction.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// A time that no event is before.
    floor: u64,
    /// Bit d is set if a slot of digit d has events.
    digits: u16,
    /// For each digit, which of its slots have events.
    used: [u64; DIGITS],
    slots: Box<[Slot; DIGITS * SLOTS]>,
    events: Box<[Event]>,
}

impl EventQueue {
    /// Creates an empty queue for numbers below `size`.
    pub(crate) fn new(size: usize) -> EventQueue {
        let none = Event {
            time: 0,
            next: NONE,
            previous: NONE,
            slot: NONE,
        };
        EventQueue {
            floor: 0,
            digits: 0,
            used: [0; DIGITS],
            slots: boxed((0..DIGITS * SLOTS).map(|_| EMPTY)),
            events: vec![none; size].into_boxed_slice(),
        }
    }

    /// Returns whether an event is queued for a number.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.events[number as usize].slot != NONE
    }

    /// Queues an event for a number that has none. `time` must not be before `now`, nor before the `now` of
    /// any earlier call.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32, time: u64, now: u64) {
        debug_assert!(!self.contains(number), "each number has one event");
        debug_assert!(time >= now && time >= self.floor && time != NEVER);
        if self.digits == 0 {
            self.floor = now;
        }
        let EventQueue {
            used, slots, events, ..
        } = self;
        self.digits |= file(number, time, self.floor, used, slots, events);
    }

    /// Removes the event of a number.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let Event {
            time,
            next,
            previous,
            slot,
        } = self.events[number as usize];
        debug_assert!(slot != NONE, "the number has an event");
        self.events[number as usize].slot = NONE;
        match previous {
            NONE => self.slots[slot as usize].head = next,
            previous => self.events[previous as usize].next = next,
        }
        match next {
            NONE => self.slots[slot as usize].tail = previous,
            next => self.events[next as usize].previous = previous,
        }
        let left = &mut self.slots[slot as usize];
        if left.head == NONE {
            self.vacate(slot as usize);
        } else if left.earliest == time {
            left.earliest = UNKNOWN;
        }
    }

    /// Removes and returns the first number whose event is due. If none is due, returns the time of the first
    /// event, or `None` if the queue is empty.
    // Otherwise the compiler makes it a call, because htb and hfsc use it: 40 instructions a pair.
    #[inline(always)]
    pub(crate) fn pop_due(&mut self, now: u64) -> Result<u32, Option<u64>> {
        loop {
            let slot = self.first_slot().ok_or(None)?;
            let Slot {
                mut earliest,
                head,
                tail,
            } = self.slots[slot];
            if earliest == UNKNOWN {
                earliest = self.search_earliest(slot);
            }
            if earliest > now {
                return Err(Some(earliest));
            }
            // All events in a slot of the lowest digit have the same time.
            if head == tail || slot < SLOTS {
                self.take_first(slot, head);
                return Ok(head);
            }
            self.refile(slot, head, earliest);
        }
    }

    /// Returns the time of the first event.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let slot = self.first_slot()?;
        Some(match self.slots[slot].earliest {
            UNKNOWN => self.search_earliest(slot),
            earliest => earliest,
        })
    }

    /// Removes the first event of a slot whose events have the same time.
    #[inline(always)]
    fn take_first(&mut self, slot: usize, head: u32) {
        let first = &mut self.events[head as usize];
        first.slot = NONE;
        match first.next {
            NONE => self.vacate(slot),
            next => {
                self.slots[slot].head = next;
                self.events[next as usize].previous = NONE;
            }
        }
    }

    /// Returns the first slot that has events.
    #[inline]
    fn first_slot(&self) -> Option<usize> {
        let digit = self.digits.trailing_zeros() as usize;
        let used = self.used.get(digit)?;
        Some((digit << BITS) + used.trailing_zeros() as usize % SLOTS)
    }

    #[cold]
    fn search_earliest(&mut self, slot: usize) -> u64 {
        let (mut earliest, mut number) = (NEVER, self.slots[slot].head);
        while number != NONE {
            let event = &self.events[number as usize];
            earliest = earliest.min(event.time);
            number = event.next;
        }
        self.slots[slot].earliest = earliest;
        earliest
    }

    /// Raises the floor to the earliest time in a slot, and files its events under lower digits, in their
    /// order.
    fn refile(&mut self, slot: usize, head: u32, earliest: u64) {
        self.vacate(slot);
        self.floor = earliest;
        let EventQueue {
            used, slots, events, ..
        } = self;
        // As locals, so that they need not be loaded again for each event.
        let (slots, events) = (&mut **slots, &mut **events);
        let (mut number, mut digits) = (head, 0);
        while let Some(&Event { time, next, .. }) = events.get(number as usize) {
            digits |= file(number, time, earliest, used, slots, events);
            number = next;
        }
        self.digits |= digits;
    }

    /// Removes all events of a slot.
    #[inline]
    fn vacate(&mut self, slot: usize) {
        self.slots[slot] = EMPTY;
        let digit = slot >> BITS;
        self.used[digit] &= !(1 << (slot % SLOTS));
        if self.used[digit] == 0 {
            self.digits &= !(1 << digit);
        }
    }
}

/// Appends an event to its slot. Returns the digit of the slot, as a bit.
#[inline(always)]
fn file(
    number: u32,
    time: u64,
    floor: u64,
    used: &mut [u64; DIGITS],
    slots: &mut [Slot; DIGITS * SLOTS],
    events: &mut [Event],
) -> u16 {
    let differs = (time ^ floor) | 1;
    let digit = differs.ilog2() / BITS;
    let within = (time >> (digit * BITS)) as u32 % SLOTS as u32;
    used[digit as usize] |= 1 << within;
    let slot = digit << BITS | within;
    let of_slot = &mut slots[slot as usize];
    let previous = core::mem::replace(&mut of_slot.tail, number);
    of_slot.earliest = of_slot.earliest.min(time);
    match previous {
        NONE => of_slot.head = number,
        previous => events[previous as usize].next = number,
    }
    events[number as usize] = Event {
        time,
        next: NONE,
        previous,
        slot,
    };
    1 << digit
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Compares with an ordered map, over pauses and delays of every magnitude.
        #[test]
        fn due_events_are_in_order(
            operations in prop::collection::vec((0u8..6, any::<u64>(), 0u32..40, 0u32..30), 0..400),
        ) {
            let mut queue = EventQueue::new(30);
            let mut model = BTreeMap::new();
            let mut keys = [None; 30];
            let (mut now, mut arrivals) = (1u64 << 60, 0);
            for (operation, random, magnitude, number) in operations {
                let nanos = random & ((1 << magnitude) - 1);
                match operation {
                    0..=3 if keys[number as usize].is_none() => {
                        queue.insert(number, now + nanos, now);
                        let key = (now + nanos, arrivals);
                        arrivals += 1;
                        model.insert(key, number);
                        keys[number as usize] = Some(key);
                    }
                    4 => if let Some(key) = keys[number as usize].take() {
                        queue.remove(number);
                        model.remove(&key);
                    },
                    5 => now += nanos,
                    _ => {}
                }
                // All due events are removed before the clock advances.
                let next = loop {
                    match queue.pop_due(now) {
                        Ok(due) => {
                            let (key, expected) = model.pop_first().unwrap();
                            prop_assert_eq!(due, expected);
                            prop_assert!(key.0 <= now);
                            keys[due as usize] = None;
                        }
                        Err(next) => break next,
                    }
                };
                prop_assert!(next.is_none_or(|next| next > now));
                prop_assert_eq!(next, model.keys().next().map(|key| key.0));
                prop_assert_eq!(queue.next(), next);
                for number in 0..30 {
                    prop_assert_eq!(queue.contains(number), keys[number as usize].is_some());
                }
            }
        }
    }
}
