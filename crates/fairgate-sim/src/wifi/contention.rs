//! Contention for the channel: who transmits next, and who collides.
//!
//! Source: IEEE 802.11-2020, 10.3.4 (DCF) and 10.23.2.4 (EDCA).
//!
//! Idea: while the channel is idle, time is a grid of slots that begins SIFS after the channel became idle. A
//! contender transmits in the slot AIFSN + backoff. So the next transmission is a minimum, and nothing
//! happens in the slots before it. When the channel becomes busy in a slot, every other contender's backoff
//! is reduced by the slots that it has counted.
//!
//! ```text
//!   busy | SIFS | 0 | 1 | 2 | 3 | 4 | 5 | ...       AIFSN 2, backoff 3: transmits in slot 5
//!        idle_from                                  DIFS is SIFS and slots 0 and 1
//! ```
//!
//! Invariants: the backoff of a contender that waits is never drawn anew, only reduced. A contender that is
//! not active has no frame and no backoff.

use fairgate::Time;

use crate::random::{Distribution, Stream};
use crate::wifi::category::CategoryParameters;

/// How many slots a contender has counted when another one transmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Countdown {
    /// DCF counts a slot at its end, so the slot in which the channel becomes busy does not count.
    AfterSlot,
    /// EDCA counts at the boundary at which a slot begins, so that slot counts too.
    AtBoundary,
}

/// One category of one member.
#[derive(Clone, Copy, Debug)]
struct Contender {
    parameters: CategoryParameters,
    /// The current contention window.
    window: u32,
    /// Failed attempts since the last success.
    failures: u32,
    /// Slots that are left at the beginning of the current idle time.
    backoff: u64,
    /// The first slot of this idle time in which it may transmit. It arrived in the slot before.
    earliest: u64,
    /// It has a frame to transmit.
    wants: bool,
    /// It is in the list of active contenders: it has a frame, or a backoff after the last one.
    is_active: bool,
}

/// All contenders of a channel.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    contenders: Vec<Contender>,
    active: Vec<u32>,
    countdown: Countdown,
    slot: u64,
    sifs: u64,
    /// After this many failures the contention window starts anew. `None`: never.
    most_failures: Option<u32>,
    /// The channel is idle from this time. `None` while it is busy for an unknown time.
    idle_from: Option<Time>,
}

impl Contention {
    /// Creates a channel that is idle from time 0. Contenders are numbered in the order of `parameters`.
    pub(crate) fn new(
        parameters: impl IntoIterator<Item = CategoryParameters>,
        countdown: Countdown,
        slot: u64,
        sifs: u64,
        most_failures: Option<u32>,
    ) -> Contention {
        let contenders = parameters
            .into_iter()
            .map(|parameters| Contender {
                parameters,
                window: parameters.cw_min,
                failures: 0,
                backoff: 0,
                earliest: 0,
                wants: false,
                is_active: false,
            })
            .collect();
        Contention {
            contenders,
            active: Vec::new(),
            countdown,
            slot,
            sifs,
            most_failures,
            idle_from: Some(Time::ZERO),
        }
    }

    /// A contender has a frame from now on. It may already have had one.
    pub(crate) fn request(&mut self, contender: u32, now: Time, random: &mut Stream) {
        let earliest = self
            .idle_from
            .filter(|&from| from <= now)
            .map(|from| self.next_slot(from, now));
        let state = &mut self.contenders[contender as usize];
        if state.wants {
            return;
        }
        state.wants = true;
        // Without a backoff from an earlier frame, it may transmit at once on an idle channel, and draws one
        // on a busy channel.
        if !state.is_active {
            state.backoff = match earliest {
                Some(_) => 0,
                None => draw(state.window, random),
            };
            state.is_active = true;
            self.active.push(contender);
        }
        state.earliest = earliest.unwrap_or(0);
    }

    /// The first slot that begins at `now` or later.
    ///
    /// The division is done once for a packet that finds the channel idle, not for those that wait in a
    /// queue.
    fn next_slot(&self, from: Time, now: Time) -> u64 {
        (now - from).saturating_sub(self.sifs).div_ceil(self.slot)
    }

    /// When the next transmission begins, if nobody else arrives. `None` if nobody has a frame, or while the
    /// channel is busy for an unknown time.
    pub(crate) fn next(&self) -> Option<Time> {
        let from = self.idle_from?;
        let slot = self.first_slot()?;
        Some(from + self.sifs + slot * self.slot)
    }

    fn first_slot(&self) -> Option<u64> {
        let waiting = self.active.iter().map(|&index| &self.contenders[index as usize]);
        waiting
            .filter(|contender| contender.wants)
            .map(Contender::transmits_in)
            .min()
    }

    /// Begins the transmission that [`next`](Contention::next) announced. Writes the contenders that transmit
    /// in this slot to `winners`, in ascending order.
    pub(crate) fn begin(&mut self, winners: &mut Vec<u32>) {
        winners.clear();
        let Some(slot) = self.first_slot() else { return };
        self.idle_from = None;
        let contenders = &mut self.contenders;
        let countdown = self.countdown;
        self.active.retain(|&index| {
            let contender = &mut contenders[index as usize];
            if contender.wants && contender.transmits_in() == slot {
                contender.backoff = 0;
                winners.push(index);
            } else {
                let end = match countdown {
                    Countdown::AfterSlot => slot,
                    Countdown::AtBoundary => slot + 1,
                };
                let counted = end.saturating_sub(contender.parameters.aifsn.into());
                contender.backoff = contender.backoff.saturating_sub(counted);
                contender.is_active = contender.wants || contender.backoff > 0;
            }
            contender.earliest = 0;
            contender.is_active
        });
        winners.sort_unstable();
    }

    /// A contender that began has succeeded. `wants`: it has another frame.
    pub(crate) fn succeeded(&mut self, contender: u32, wants: bool, random: &mut Stream) {
        let state = &mut self.contenders[contender as usize];
        state.failures = 0;
        state.window = state.parameters.cw_min;
        self.back_off(contender, wants, random);
    }

    /// A contender that began has failed: a collision, or no answer. `wants`: it has another frame, or will
    /// repeat this one.
    pub(crate) fn failed(&mut self, contender: u32, wants: bool, random: &mut Stream) {
        let state = &mut self.contenders[contender as usize];
        state.failures += 1;
        if self.most_failures.is_some_and(|most| state.failures > most) {
            state.failures = 0;
            state.window = state.parameters.cw_min;
        } else {
            state.window = (2 * state.window + 1).min(state.parameters.cw_max);
        }
        self.back_off(contender, wants, random);
    }

    /// Draws the backoff that follows every transmission.
    fn back_off(&mut self, contender: u32, wants: bool, random: &mut Stream) {
        let state = &mut self.contenders[contender as usize];
        state.backoff = draw(state.window, random);
        state.wants = wants;
        state.earliest = 0;
        let is_active = wants || state.backoff > 0;
        match (state.is_active, is_active) {
            (true, false) => self.active.retain(|&other| other != contender),
            (false, true) => self.active.push(contender),
            _ => {}
        }
        state.is_active = is_active;
    }

    /// The channel is idle from this time on, which may be in the future.
    pub(crate) fn release(&mut self, idle_from: Time) {
        self.idle_from = Some(idle_from);
    }
}

impl Contender {
    /// The slot of this idle time in which it transmits.
    fn transmits_in(&self) -> u64 {
        (u64::from(self.parameters.aifsn) + self.backoff).max(self.earliest)
    }
}

fn draw(window: u32, random: &mut Stream) -> u64 {
    let uniform = Distribution::Uniform {
        low: 0,
        high: window.into(),
    };
    uniform.sample(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: u64 = 9_000;
    const SIFS: u64 = 16_000;

    fn contention(countdown: Countdown, parameters: &[CategoryParameters]) -> Contention {
        Contention::new(parameters.iter().copied(), countdown, SLOT, SIFS, Some(7))
    }

    fn parameters(aifsn: u32, cw: u32) -> CategoryParameters {
        CategoryParameters {
            aifsn,
            cw_min: cw,
            cw_max: 4 * cw + 3,
            txop: 0,
        }
    }

    fn stream() -> Stream {
        Stream::new(1, "test", "contention")
    }

    fn slot(number: u64) -> Time {
        Time::from_nanos(SIFS + number * SLOT)
    }

    #[test]
    fn on_an_idle_channel_a_frame_leaves_at_the_next_boundary_after_aifs() {
        let mut contention = contention(Countdown::AtBoundary, &[parameters(3, 15), parameters(2, 15)]);
        contention.request(0, Time::ZERO, &mut stream());
        assert_eq!(contention.next(), Some(slot(3)));
        contention.request(1, slot(2) + 1, &mut stream());
        // It arrived within slot 2, so it transmits in slot 3 as well: they collide.
        let mut winners = Vec::new();
        assert_eq!(contention.next(), Some(slot(3)));
        contention.begin(&mut winners);
        assert_eq!(winners, [0, 1]);
        assert_eq!(contention.next(), None);
    }

    /// DCF freezes the backoff in the slot in which the channel becomes busy, EDCA one slot further on.
    #[test]
    fn a_backoff_is_frozen_while_the_channel_is_busy() {
        for (countdown, counted) in [(Countdown::AfterSlot, 3), (Countdown::AtBoundary, 4)] {
            let mut contention = contention(countdown, &[parameters(2, 15), parameters(2, 1023)]);
            let mut random = stream();
            contention.idle_from = None;
            contention.request(0, Time::ZERO, &mut random);
            contention.request(1, Time::ZERO, &mut random);
            (contention.contenders[0].backoff, contention.contenders[1].backoff) = (3, 10);
            contention.release(Time::ZERO);
            let mut winners = Vec::new();
            assert_eq!(contention.next(), Some(slot(5)));
            contention.begin(&mut winners);
            assert_eq!(winners, [0]);
            assert_eq!(contention.contenders[1].backoff, 10 - counted);
        }
    }

    #[test]
    fn the_window_doubles_with_failures_and_starts_anew_after_the_limit() {
        let mut contention = contention(Countdown::AtBoundary, &[parameters(2, 15)]);
        let mut random = stream();
        let mut windows = Vec::new();
        for _ in 0..9 {
            contention.request(0, Time::ZERO, &mut random);
            contention.begin(&mut Vec::new());
            contention.failed(0, true, &mut random);
            windows.push(contention.contenders[0].window);
            contention.release(Time::ZERO);
        }
        assert_eq!(windows, [31, 63, 63, 63, 63, 63, 63, 15, 31]);
        contention.begin(&mut Vec::new());
        contention.succeeded(0, false, &mut random);
        assert_eq!(contention.contenders[0].window, 15);
    }

    /// After its last frame a contender still counts down a backoff. A frame that arrives later than its end
    /// leaves at once, an earlier one waits for it.
    #[test]
    fn the_backoff_after_the_last_frame_runs_without_a_frame() {
        for (arrival, expected) in [(slot(4), slot(7)), (slot(9), slot(9))] {
            let mut contention = contention(Countdown::AtBoundary, &[parameters(2, 15)]);
            let mut random = stream();
            contention.request(0, Time::ZERO, &mut random);
            contention.begin(&mut Vec::new());
            contention.succeeded(0, false, &mut random);
            contention.contenders[0].backoff = 5;
            contention.release(Time::ZERO);
            assert_eq!(contention.next(), None);
            contention.request(0, arrival, &mut random);
            assert_eq!(contention.next(), Some(expected));
        }
    }
}
