//! Numbers by the time at which something is due for them, in constant time whatever their count: a radix heap (Ahuja,
//! Mehlhorn, Orlin and Tarjan 1990) that any number can leave.
//!
//! Times never go back, so an event is filed by the highest digit (of 6 bits) in which its time differs from the *floor*,
//! a time that everything queued is at or after: nearby events finely, distant ones coarsely. A bitmap a digit tells
//! which of its 64 slots are taken. Only when the first slot is due is the floor raised to its earliest time and its
//! events are filed anew, each at a lower digit than before: at most 11 times in all, mostly 3 or 4 for milliseconds.
//!
//! Order is exact: by time, and among equal times by arrival. The earliest time is exact too; each slot remembers its
//! own, found again by a look at its events after that one has left.

use alloc::boxed::Box;

/// Bits of a digit, and the slots of one.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Digits of a time.
const DIGITS: usize = u64::BITS.div_ceil(BITS) as usize;

/// No event.
const NONE: u32 = u32::MAX;
/// A slot's earliest time when it has to be looked for. No event is at this time.
const UNKNOWN: u64 = u64::MAX;

/// Events filed under the same digit.
#[derive(Clone, Copy, Debug)]
struct Slot {
    earliest: u64,
    head: u32,
    tail: u32,
}

const EMPTY: Slot = Slot {
    earliest: UNKNOWN,
    head: NONE,
    tail: NONE,
};

/// Where a number's event is.
#[derive(Clone, Copy, Debug)]
struct Place {
    time: u64,
    next: u32,
    previous: u32,
    /// The slot, or [`NONE`].
    slot: u32,
}

/// The queue. Room for all numbers is made at construction.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// No event is earlier.
    floor: u64,
    /// Bit d is set if a slot of digit d is taken.
    digits: u16,
    /// Which slots of each digit are taken.
    taken: [u64; DIGITS],
    slots: Box<[Slot]>,
    places: Box<[Place]>,
}

impl EventQueue {
    /// An empty queue for numbers below `size`.
    pub(crate) fn new(size: usize) -> EventQueue {
        let outside = Place {
            time: 0,
            next: NONE,
            previous: NONE,
            slot: NONE,
        };
        EventQueue {
            floor: 0,
            digits: 0,
            taken: [0; DIGITS],
            slots: vec![EMPTY; DIGITS * SLOTS].into_boxed_slice(),
            places: vec![outside; size].into_boxed_slice(),
        }
    }

    /// Whether an event is queued for a number.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.places[number as usize].slot != NONE
    }

    /// Queues an event for a number that has none. `time` is not before any time asked for so far, `now` not after it.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32, time: u64, now: u64) {
        debug_assert!(!self.contains(number), "each number has one event");
        debug_assert!(time >= now && time >= self.floor && time != UNKNOWN);
        if self.digits == 0 {
            self.floor = now;
        }
        self.file(number, time);
    }

    /// Takes a number's event out.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let Place {
            time,
            next,
            previous,
            slot,
        } = self.places[number as usize];
        debug_assert!(slot != NONE, "the number has an event");
        self.places[number as usize].slot = NONE;
        match previous {
            NONE => self.slots[slot as usize].head = next,
            previous => self.places[previous as usize].next = next,
        }
        match next {
            NONE => self.slots[slot as usize].tail = previous,
            next => self.places[next as usize].previous = previous,
        }
        let place = &mut self.slots[slot as usize];
        if place.head == NONE {
            self.vacate(slot);
        } else if place.earliest == time {
            place.earliest = UNKNOWN;
        }
    }

    /// Takes the first number out whose event is due; or tells when the first will be, if there is one.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: u64) -> Result<u32, Option<u64>> {
        loop {
            let slot = self.first_slot().ok_or(None)?;
            let earliest = self.earliest(slot);
            if earliest > now {
                return Err(Some(earliest));
            }
            let Slot { head, tail, .. } = self.slots[slot as usize];
            // All that are in a slot of the lowest digit have the same time.
            if head == tail || (slot as usize) < SLOTS {
                self.take_first(slot);
                return Ok(head);
            }
            self.refile(slot, earliest);
        }
    }

    /// When the first is due, if there is one.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let slot = self.first_slot()?;
        Some(self.earliest(slot))
    }

    /// Takes out the first of a slot whose events have the same time.
    #[inline]
    fn take_first(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        let first = &mut self.places[place.head as usize];
        first.slot = NONE;
        place.head = first.next;
        match first.next {
            NONE => self.vacate(slot),
            next => self.places[next as usize].previous = NONE,
        }
    }

    /// The first slot that is taken.
    #[inline]
    fn first_slot(&self) -> Option<u32> {
        let digit = self.digits.trailing_zeros();
        let taken = self.taken.get(digit as usize)?;
        Some(digit << BITS | taken.trailing_zeros())
    }

    /// The earliest time in a slot that is taken.
    #[inline]
    fn earliest(&mut self, slot: u32) -> u64 {
        match self.slots[slot as usize].earliest {
            UNKNOWN => self.look_for_earliest(slot),
            earliest => earliest,
        }
    }

    #[cold]
    fn look_for_earliest(&mut self, slot: u32) -> u64 {
        let (mut earliest, mut number) = (UNKNOWN, self.slots[slot as usize].head);
        while number != NONE {
            let place = &self.places[number as usize];
            earliest = earliest.min(place.time);
            number = place.next;
        }
        self.slots[slot as usize].earliest = earliest;
        earliest
    }

    /// Raises the floor to the earliest of a slot's events, and files them under lower digits, in their order.
    fn refile(&mut self, slot: u32, earliest: u64) {
        self.floor = earliest;
        let mut number = self.slots[slot as usize].head;
        self.vacate(slot);
        while number != NONE {
            let Place { time, next, .. } = self.places[number as usize];
            self.file(number, time);
            number = next;
        }
    }

    /// Puts an event at the end of its slot.
    #[inline]
    fn file(&mut self, number: u32, time: u64) {
        let differs = (time ^ self.floor) | 1;
        let digit = differs.ilog2() / BITS;
        let within = (time >> (digit * BITS)) as u32 % SLOTS as u32;
        self.digits |= 1 << digit;
        self.taken[digit as usize] |= 1 << within;
        let slot = digit << BITS | within;
        let place = &mut self.slots[slot as usize];
        let previous = place.tail;
        place.tail = number;
        if previous == NONE {
            (place.head, place.earliest) = (number, time);
        } else {
            if place.earliest != UNKNOWN {
                place.earliest = place.earliest.min(time);
            }
            self.places[previous as usize].next = number;
        }
        self.places[number as usize] = Place {
            time,
            next: NONE,
            previous,
            slot,
        };
    }

    fn vacate(&mut self, slot: u32) {
        self.slots[slot as usize] = EMPTY;
        let digit = (slot >> BITS) as usize;
        self.taken[digit] &= !(1 << (slot % SLOTS as u32));
        if self.taken[digit] == 0 {
            self.digits &= !(1 << digit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Against an ordered map, over pauses and waits of every magnitude.
        #[test]
        fn what_is_due_comes_in_order(
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
                // What is due is taken out before the clock goes on.
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
