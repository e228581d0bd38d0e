//! The shared medium of a cell: takes frames in, and gives back each one delivered or lost.
//!
//! Source: IEEE 802.11-2020: transmit opportunities, 10.23.2.8; aggregation, 10.12; block acknowledgement,
//! 10.25; RTS and CTS, 10.3.2.
//!
//! A transmission takes two events. [`Medium::advance`] at its start decides who transmits and which frames
//! the PPDU holds. At the end of the PPDU it decides which frames arrived. The acknowledgement needs no
//! event: its end only says from when the channel is idle.
//!
//! ```text
//!   idle ... | [RTS SIFS CTS SIFS] PPDU | SIFS ack | [SIFS PPDU | SIFS ack ...] | idle ...
//!            start                      end                                      a transmit opportunity
//! ```
//!
//! The access point (member 0) has a queue for each station and category, and serves the stations of a
//! category in turn, one PPDU each. Station `s` is member `s + 1`, and has a queue for each category. All
//! frames go to or from the access point.
//!
//! Invariant: a member's contender wants to transmit exactly while one of its queues has frames that the
//! receiver does not have.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use fairgate::Time;

use crate::random::Stream;
use crate::wifi::category::{AccessCategory, CategoryParameters};
use crate::wifi::contention::{Contention, Countdown};
use crate::wifi::counters::{DirectionCounters, MediumCounters};
use crate::wifi::queue::{Aggregate, AggregateLimits, MacQueue};
use crate::wifi::rate::{StationRate, Timing};

const CATEGORIES: u32 = AccessCategory::COUNT as u32;
const ACCESS_POINT: u32 = 0;

/// A direction between the access point and a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AirDirection {
    /// The number of the station, from 0.
    pub(crate) station: u32,
    /// From the access point to the station.
    pub(crate) is_down: bool,
}

impl AirDirection {
    /// The member that transmits.
    pub(crate) fn sender(self) -> u32 {
        if self.is_down {
            ACCESS_POINT
        } else {
            self.station + 1
        }
    }

    pub(crate) fn index(self) -> usize {
        2 * self.station as usize + usize::from(self.is_down)
    }

    fn of_queue(queue: u32) -> AirDirection {
        let index = queue / CATEGORIES;
        AirDirection {
            station: index / 2,
            is_down: index % 2 == 1,
        }
    }

    fn queue(self, category: u32) -> u32 {
        self.index() as u32 * CATEGORIES + category
    }
}

/// The settings of a medium.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timing: Timing,
    pub(crate) limits: AggregateLimits,
    /// Sequence numbers that may be unacknowledged.
    pub(crate) window: u32,
    /// In the order of the categories.
    pub(crate) parameters: [CategoryParameters; AccessCategory::COUNT],
    pub(crate) countdown: Countdown,
    /// How often a frame is repeated before it is given up. `None`: without end.
    pub(crate) retries: Option<u8>,
    /// RTS and CTS go before PPDUs with at least this many bytes. `None`: never.
    pub(crate) rts_from: Option<u32>,
    /// The most frames in the queue of a member for one receiver and category.
    pub(crate) queue_limit: u32,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Delivered,
    /// Given up after the last repetition.
    Lost,
}

/// A frame that has left the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolved<T> {
    pub(crate) id: T,
    pub(crate) fate: Fate,
}

/// A PPDU on air.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    contender: u32,
    queue: u32,
    aggregate: Aggregate,
    /// RTS, CTS and the spaces around them, ns. 0 without.
    protection: u64,
    /// The duration of the PPDU, ns.
    data: u64,
}

/// The medium. `T` identifies a frame for the caller.
#[derive(Clone, Debug)]
pub(crate) struct Medium<T> {
    settings: Settings,
    /// By station.
    rates: Vec<StationRate>,
    contention: Contention,
    /// By [`AirDirection::queue`].
    queues: Vec<MacQueue<T>>,
    /// By category: the stations for which the access point has frames, in the order of service.
    turns: [VecDeque<u32>; AccessCategory::COUNT],
    /// By member: its queues that are at their limit.
    full_queues: Vec<u32>,
    on_air: Vec<Transmission>,
    /// When what is on air ends.
    until: Option<Time>,
    /// The busy time before this has been counted.
    counted_until: Time,
    opportunity_end: Time,
    /// Buffer for those who begin.
    winners: Vec<u32>,
    /// The members whose transmissions the last call has ended.
    ended: Vec<u32>,
    counters: MediumCounters,
    /// By [`AirDirection::index`].
    directions: Vec<DirectionCounters>,
}

impl<T: Copy> Medium<T> {
    /// Creates an idle medium with one station for each rate.
    pub(crate) fn new(settings: Settings, rates: Vec<StationRate>) -> Medium<T> {
        let members = rates.len() + 1;
        let parameters = settings.parameters.iter().copied().cycle();
        let timing = settings.timing;
        Medium {
            contention: Contention::new(
                parameters.take(members * AccessCategory::COUNT),
                settings.countdown,
                timing.slot,
                timing.sifs,
                settings.retries.map(u32::from),
            ),
            queues: (0..2 * rates.len() * AccessCategory::COUNT)
                .map(|_| MacQueue::new())
                .collect(),
            turns: Default::default(),
            full_queues: vec![0; members],
            on_air: Vec::new(),
            until: None,
            counted_until: Time::ZERO,
            opportunity_end: Time::ZERO,
            winners: Vec::new(),
            ended: Vec::new(),
            counters: MediumCounters::default(),
            directions: vec![DirectionCounters::default(); 2 * rates.len()],
            rates,
            settings,
        }
    }

    /// Whether a member takes frames: none of its queues is at its limit.
    pub(crate) fn has_room(&self, member: u32) -> bool {
        self.full_queues[member as usize] == 0
    }

    /// Takes a packet of `length` bytes in. The sender must have room.
    pub(crate) fn offer(
        &mut self,
        direction: AirDirection,
        category: AccessCategory,
        id: T,
        length: u32,
        now: Time,
        random: &mut Stream,
    ) {
        let (sender, category) = (direction.sender(), category.index() as u32);
        debug_assert!(self.has_room(sender), "the caller asks for room first");
        let bytes = self.settings.timing.mpdu(length);
        let queue = &mut self.queues[direction.queue(category) as usize];
        let was_empty = queue.unsent() == 0;
        queue.push(id, bytes, now);
        if queue.unsent() == self.settings.queue_limit {
            self.full_queues[sender as usize] += 1;
        }
        if direction.is_down && was_empty {
            self.turns[category as usize].push_back(direction.station);
        }
        self.contention
            .request(sender * CATEGORIES + category, now, random);
    }

    /// When [`advance`](Medium::advance) is due. An earlier time may follow from [`offer`](Medium::offer).
    pub(crate) fn next(&self) -> Option<Time> {
        self.until.or_else(|| self.contention.next())
    }

    /// Handles what is due now. `left` gets the frames that leave the medium, in the order of delivery.
    pub(crate) fn advance(&mut self, now: Time, random: &mut Stream, left: &mut Vec<Resolved<T>>) {
        debug_assert_eq!(self.next(), Some(now), "nothing is due now");
        self.ended.clear();
        match self.until.take() {
            None => self.begin(now, random),
            Some(_) if self.on_air.len() == 1 => self.end_alone(now, random, left),
            Some(_) => self.end_collision(now, random, left),
        }
    }

    /// The members whose transmissions the last call of [`advance`](Medium::advance) has ended. They may have
    /// room again.
    pub(crate) fn ended(&self) -> &[u32] {
        &self.ended
    }

    fn begin(&mut self, now: Time, random: &mut Stream) {
        let mut winners = std::mem::take(&mut self.winners);
        self.contention.begin(&mut winners);
        for (index, &contender) in winners.iter().enumerate() {
            // Within a member the highest category transmits. For the others this is a collision.
            let member = contender / CATEGORIES;
            if winners
                .get(index + 1)
                .is_some_and(|other| other / CATEGORIES == member)
            {
                self.counters.internal_collisions += 1;
                self.contention.failed(contender, true, random);
                continue;
            }
            let txop = self.settings.parameters[(contender % CATEGORIES) as usize].txop;
            let time = if txop == 0 { u64::MAX } else { txop };
            let transmission = self.assemble(contender, time, true);
            self.on_air.push(transmission);
        }
        self.winners = winners;
        self.counted_until = now;
        let propagation = self.settings.timing.propagation;
        let busy = match &self.on_air[..] {
            [alone] => {
                let txop = self.settings.parameters[(alone.contender % CATEGORIES) as usize].txop;
                self.opportunity_end = now + txop;
                self.counters.opportunities += 1;
                alone.protection + alone.data
            }
            several => {
                let first_frame = several.iter().map(|transmission| match transmission.protection {
                    0 => transmission.data,
                    _ => self.rates[AirDirection::of_queue(transmission.queue).station as usize].rts,
                });
                first_frame.max().expect("a contender has won")
            }
        };
        self.until = Some(now + busy + propagation);
    }

    /// Puts together the next PPDU of a contender. Its exchange takes at most `time`, except with one MPDU.
    fn assemble(&mut self, contender: u32, time: u64, is_first: bool) -> Transmission {
        let queue = self
            .next_queue(contender)
            .expect("a contender that begins has a frame");
        let Settings {
            timing,
            limits,
            window,
            rts_from,
            ..
        } = self.settings;
        let direction = AirDirection::of_queue(queue);
        let rate = &self.rates[direction.station as usize];
        let rts_from = rts_from.filter(|_| is_first);
        let protection = rts_from.map_or(0, |_| rate.protection);
        let response = timing.sifs + rate.block_ack + 2 * timing.propagation;
        let duration = limits.duration.min(time.saturating_sub(protection + response));
        let bytes = limits.bytes.min(rate.data.most_bytes(duration));
        let aggregate = self.queues[queue as usize].aggregate(window, limits.frames, bytes);
        let is_protected = rts_from.is_some_and(|from| aggregate.bytes >= from);
        self.directions[direction.index()].retries += u64::from(aggregate.repeated);
        Transmission {
            contender,
            queue,
            aggregate,
            protection: if is_protected { protection } else { 0 },
            data: rate.data.duration(aggregate.bytes),
        }
    }

    /// The queue that a contender serves next, if it has frames.
    fn next_queue(&self, contender: u32) -> Option<u32> {
        let (member, category) = (contender / CATEGORIES, contender % CATEGORIES);
        if member == ACCESS_POINT {
            let station = *self.turns[category as usize].front()?;
            let direction = AirDirection {
                station,
                is_down: true,
            };
            return Some(direction.queue(category));
        }
        let direction = AirDirection {
            station: member - 1,
            is_down: false,
        };
        let queue = direction.queue(category);
        (self.queues[queue as usize].unsent() > 0).then_some(queue)
    }

    /// A PPDU without collision ends.
    fn end_alone(&mut self, now: Time, random: &mut Stream, left: &mut Vec<Resolved<T>>) {
        let transmission = self.on_air.pop().expect("it was on air");
        let Transmission {
            contender,
            queue,
            aggregate,
            ..
        } = transmission;
        let direction = AirDirection::of_queue(queue);
        let rate = self.rates[direction.station as usize];
        let received = self.resolve(transmission, now, left, |bytes| {
            rate.errors.are_impossible() || random.unit() <= rate.errors.success(bytes)
        });
        let timing = self.settings.timing;
        let answered = received > 0;
        let end = match answered {
            true => now + timing.sifs + rate.response(aggregate.frames) + timing.propagation,
            false => now,
        };
        let airtime = self.count_busy(end);
        let counters = &mut self.directions[direction.index()];
        counters.airtime += airtime;
        counters.ppdus += 1;
        counters.mpdus += u64::from(aggregate.frames);
        counters.damaged += u64::from(aggregate.frames - received);
        self.take_turn(direction, contender, answered);
        let wants = self.next_queue(contender).is_some();
        if !answered {
            self.contention.failed(contender, wants, random);
            self.contention.release(end + timing.recovery);
        } else if !self.continues(contender, end) {
            self.contention.succeeded(contender, wants, random);
            self.contention.release(end);
        }
    }

    /// Begins the next PPDU of the same transmit opportunity after `end`, if there is time for it.
    fn continues(&mut self, contender: u32, end: Time) -> bool {
        let timing = self.settings.timing;
        let start = end + timing.sifs;
        if start >= self.opportunity_end {
            return false;
        }
        let time = self.opportunity_end - start;
        let Some(queue) = self.next_queue(contender) else {
            return false;
        };
        let rate = &self.rates[AirDirection::of_queue(queue).station as usize];
        let first = self.queues[queue as usize].first_bytes().expect("it has a frame");
        let needed = rate.data.duration(first) + timing.sifs + rate.block_ack + 2 * timing.propagation;
        if needed > time {
            return false;
        }
        let next = self.assemble(contender, time, false);
        self.until = Some(start + next.data + timing.propagation);
        self.on_air.push(next);
        true
    }

    /// Two or more PPDUs end of which none can be understood.
    fn end_collision(&mut self, now: Time, random: &mut Stream, left: &mut Vec<Resolved<T>>) {
        self.counters.collision += self.count_busy(now);
        self.counters.collisions += 1;
        for index in 0..self.on_air.len() {
            let transmission = self.on_air[index];
            let direction = AirDirection::of_queue(transmission.queue);
            self.resolve(transmission, now, left, |_| false);
            self.directions[direction.index()].collided += 1;
            self.take_turn(direction, transmission.contender, false);
            let wants = self.next_queue(transmission.contender).is_some();
            self.contention.failed(transmission.contender, wants, random);
        }
        self.on_air.clear();
        self.contention.release(now + self.settings.timing.recovery);
    }

    /// Decides what became of the frames of a PPDU. Returns how many the receiver got.
    fn resolve(
        &mut self,
        transmission: Transmission,
        now: Time,
        left: &mut Vec<Resolved<T>>,
        arrives: impl FnMut(u32) -> bool,
    ) -> u32 {
        let Settings {
            window,
            retries,
            queue_limit,
            ..
        } = self.settings;
        let direction = AirDirection::of_queue(transmission.queue);
        let queue = &mut self.queues[transmission.queue as usize];
        let counters = &mut self.directions[direction.index()];
        let was_full = queue.unsent() >= queue_limit;
        let tally = queue.resolve(window, retries, arrives, |id, since, is_delivered| {
            if is_delivered {
                counters.delivered += 1;
                counters.delay += u128::from(now - since);
            } else {
                counters.lost += 1;
            }
            left.push(Resolved {
                id,
                fate: if is_delivered { Fate::Delivered } else { Fate::Lost },
            });
        });
        if was_full && queue.unsent() < queue_limit {
            self.full_queues[direction.sender() as usize] -= 1;
        }
        self.ended.push(direction.sender());
        tally.received
    }

    /// After a PPDU of the access point, the next station has its turn. A PPDU that nobody understood is
    /// repeated first.
    fn take_turn(&mut self, direction: AirDirection, contender: u32, answered: bool) {
        if !direction.is_down {
            return;
        }
        let category = (contender % CATEGORIES) as usize;
        let has_frames = self.queues[direction.queue(contender % CATEGORIES) as usize].unsent() > 0;
        let turns = &mut self.turns[category];
        debug_assert_eq!(turns.front(), Some(&direction.station));
        if has_frames && !answered {
            return;
        }
        turns.pop_front();
        if has_frames {
            turns.push_back(direction.station);
        }
    }

    /// Counts the busy time until `end`, and returns what was added.
    fn count_busy(&mut self, end: Time) -> u64 {
        let added = end - self.counted_until;
        self.counters.busy += added;
        self.counted_until = end;
        added
    }

    /// The counters, with the busy time exact for `now`.
    pub(crate) fn counters(&self, now: Time) -> MediumCounters {
        let mut counters = self.counters;
        if now < self.counted_until {
            counters.busy -= self.counted_until - now;
        } else if self.until.is_some() {
            counters.busy += now - self.counted_until;
        }
        counters
    }

    /// By [`AirDirection::index`].
    pub(crate) fn directions(&self) -> &[DirectionCounters] {
        &self.directions
    }

    /// The MCS of a station.
    pub(crate) fn mcs(&self, station: u32) -> u8 {
        self.rates[station as usize].mcs
    }

    /// Takes out all frames. This ends the medium.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.queues.iter_mut().flat_map(MacQueue::drain)
    }
}
