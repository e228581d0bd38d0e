//! CoDel's control law: which packets are dropped or marked. All disciplines that run CoDel use it.
//!
//! The idea: a queue is bad if for a whole `interval` even the shortest sojourn time was above `target`. Then
//! one packet is dropped. The next one is dropped `interval / sqrt(count)` later, where `count` is the number
//! of drops so far. This ends when a packet's sojourn time is below `target`, or when at most one MTU is
//! queued behind it.
//!
//! The arithmetic is Linux's, so that decisions fall on the same packets. Time is in ticks of 1024 ns that
//! wrap after 73 minutes. `1 / sqrt(count)` is a 16-bit fraction, updated by one Newton step per drop.
//!
//! Deviation: Linux stores "never" as time 0. If an overflow raises a flow's count before its first drop,
//! Linux compares with the clock's origin. On a machine that has been up for 37 to 73 minutes such a flow
//! loses all packets. Here "never" is a flag, and no decision depends on the origin of time.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, Pool};
use crate::registry::{Lens, Parameter, Unit};
use crate::time::Time;

/// CoDel's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The acceptable standing delay.
    pub target: Duration,
    /// How long the delay may stay above the target: about the longest expected round-trip time.
    pub interval: Duration,
    /// Whether to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Marks every ECN-capable packet with a longer sojourn time than this, independently of the control law
    /// (DCTCP).
    pub ce_threshold: Option<Duration>,
    /// Of the packets that `ce_threshold` is for, the bits of the traffic class (DSCP and ECN) that
    /// `ce_threshold_mask` selects.
    pub ce_threshold_selector: u8,
    /// Which bits of the traffic class must be those of `ce_threshold_selector`. 0: `ce_threshold` is for
    /// every packet.
    pub ce_threshold_mask: u8,
    /// A packet is never dropped if at most this many bytes are queued behind it: the longest packet.
    pub mtu: u32,
}

/// Target 5 ms, interval 100 ms (RFC 8289), Ethernet frames, no marking.
impl Default for Params {
    fn default() -> Params {
        Params {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            ce_threshold: None,
            ce_threshold_selector: 0,
            ce_threshold_mask: 0,
            mtu: 1514,
        }
    }
}

impl Params {
    /// Checks what no range of one parameter can say: a selector with bits that are not compared selects no
    /// packet.
    pub(crate) fn check_selector(&self) -> Result<(), ConfigError> {
        let (selector, mask) = (self.ce_threshold_selector, self.ce_threshold_mask);
        if selector & !mask == 0 {
            return Ok(());
        }
        Err(ConfigError::conflict(
            "ce_threshold_mask",
            mask,
            format!("a mask that holds all bits of ce_threshold_selector, {selector}"),
            format!("take {}, or clear the bits of the selector", mask | selector),
        ))
    }
}

/// The times that the control law can handle: from one tick of 1024 ns to below 2^37 ns. Ticks are compared
/// by the sign of their 32-bit difference, and 16 intervals must stay below half of their range.
const LAW_TIMES: RangeInclusive<u64> = 1 << TICK_SHIFT..=137_000_000_000;
const _: () = assert!(*LAW_TIMES.end() < 1 << 27 << TICK_SHIFT);

/// CoDel's parameters for a discipline that runs it: `$codel` is the path to them.
macro_rules! codel_parameters {
    (|$config:ident| $codel:expr; $($first:expr,)*) => {
        &[
            $($first,)*
            crate::aqm::codel::target(|$config, _| &mut $codel.target),
            crate::aqm::codel::interval(|$config, _| &mut $codel.interval),
            crate::aqm::codel::ecn(|$config, _| &mut $codel.ecn),
            crate::aqm::codel::ce_threshold(|$config, _| &mut $codel.ce_threshold),
            crate::aqm::codel::ce_threshold_selector(|$config, _| &mut $codel.ce_threshold_selector),
            crate::aqm::codel::ce_threshold_mask(|$config, _| &mut $codel.ce_threshold_mask),
            crate::aqm::codel::mtu(|$config, _| &mut $codel.mtu),
        ]
    };
}

pub(crate) const fn target<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "target",
        Unit::Time,
        LAW_TIMES,
        "The acceptable standing delay.",
        field,
    )
}

pub(crate) const fn interval<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "interval",
        Unit::Time,
        LAW_TIMES,
        "How long the delay may stay above the target: about the longest expected round-trip time.",
        field,
    )
}

pub(crate) const fn ecn<S>(field: Lens<S>) -> Parameter<S> {
    let doc = "Whether to mark ECN-capable packets instead of dropping them.";
    Parameter::word("ecn", Unit::Flag, doc, field)
}

pub(crate) const fn ce_threshold<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "ce_threshold",
        Unit::Time,
        0..=*LAW_TIMES.end(),
        "Marks every ECN-capable packet with a longer sojourn time than this, for DCTCP.",
        field,
    )
}

pub(crate) const fn ce_threshold_selector<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "ce_threshold_selector",
        Unit::Count("traffic class"),
        0..=255,
        "The bits of the traffic class of the packets that ce_threshold is for: 1 and mask 3 are ECT(1).",
        field,
    )
}

pub(crate) const fn ce_threshold_mask<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "ce_threshold_mask",
        Unit::Count("traffic class"),
        0..=255,
        "Which bits of the traffic class (DSCP and ECN) are compared; 0: ce_threshold is for all packets.",
        field,
    )
}

pub(crate) const fn mtu<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "mtu",
        Unit::Bytes,
        0..=u32::MAX as u64,
        "No packet is dropped if at most this much is queued behind it: the longest packet.",
        field,
    )
}

pub(crate) use codel_parameters;

/// The state of one queue: 24 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Drops or marks since the dropping state was entered, including the remembered ones.
    count: u32,
    /// `count` when the dropping state was last entered.
    last_count: u32,
    /// When the delay will have been above the target for an interval, in ticks. Valid if `above`.
    first_above: u32,
    /// When the next drop is due, in ticks. Valid if `scheduled`. It is kept when the dropping state is left.
    drop_next: u32,
    /// `65536 / sqrt(count)`.
    rec_inv_sqrt: u16,
    /// Whether the sojourn time of the last packet was above the target.
    above: bool,
    /// Whether packets are being dropped on a schedule.
    dropping: bool,
    /// Whether `drop_next` was ever set.
    scheduled: bool,
}

/// The queue from which CoDel takes its packets.
pub(crate) trait Source {
    /// Takes the oldest packet.
    fn take(&mut self, pool: &Pool) -> Option<PacketId>;

    /// The bytes left, for the comparison with the MTU.
    fn backlog(&self) -> u64;
}

/// The parameters as the packet path needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlLaw {
    target: u32,
    interval: u32,
    ce_threshold: Option<u32>,
    /// The bits that are compared, and their values.
    ce_threshold_for: (u8, u8),
    mtu: u64,
    ecn: bool,
}

/// A tick is 2^10 ns.
const TICK_SHIFT: u32 = 10;
/// 65535/65536, the 16-bit fraction that represents 1.
const ONE: u16 = u16::MAX;
/// If the dropping state is entered again within this many intervals, the count continues.
const REMEMBERED_INTERVALS: u32 = 16;

impl ControlLaw {
    /// The control law with these parameters, which were checked.
    pub(crate) fn new(params: &Params) -> ControlLaw {
        ControlLaw {
            target: duration_ticks(params.target),
            interval: duration_ticks(params.interval),
            ce_threshold: params.ce_threshold.map(duration_ticks),
            ce_threshold_for: (params.ce_threshold_mask, params.ce_threshold_selector),
            mtu: params.mtu.into(),
            ecn: params.ecn,
        }
    }

    /// Returns the next packet that is not dropped. Dropped packets go back through the pool.
    #[inline]
    pub(crate) fn dequeue(
        &self,
        state: &mut State,
        source: &mut impl Source,
        now: Time,
        pool: &mut Pool,
    ) -> Option<PacketId> {
        let now = ticks(now);
        let Some(first) = source.take(pool) else {
            state.dropping = false;
            return None;
        };
        let chosen = if self.too_long_above(state, Some(first), source, now, pool) {
            self.control(state, first, source, now, pool)?
        } else {
            state.dropping = false;
            first
        };
        if let Some(threshold) = self.ce_threshold
            && is_after(sojourn(chosen, now, pool), threshold)
            && pool[chosen].traffic_class() & self.ce_threshold_for.0 == self.ce_threshold_for.1
        {
            pool.mark_congestion(chosen);
        }
        Some(chosen)
    }

    /// Drops or marks what is due, after the delay has been above the target for an interval.
    #[cold]
    fn control(
        &self,
        state: &mut State,
        first: PacketId,
        source: &mut impl Source,
        now: u32,
        pool: &mut Pool,
    ) -> Option<PacketId> {
        let mut packet = Some(first);
        if !state.dropping {
            if !self.mark(first, pool) {
                pool.give_back(first, DropReason::Aqm);
                packet = source.take(pool);
                self.too_long_above(state, packet, source, now, pool);
            }
            state.enter_dropping(now, self.interval);
            return packet;
        }
        // With a large backlog several drops may be due at the same time.
        while let Some(id) = packet
            && state.dropping
            && !is_before(now, state.drop_next)
        {
            state.count = state.count.wrapping_add(1);
            state.newton_step();
            if self.mark(id, pool) {
                state.schedule(state.drop_next, self.interval);
                break;
            }
            pool.give_back(id, DropReason::Aqm);
            packet = source.take(pool);
            if self.too_long_above(state, packet, source, now, pool) {
                state.schedule(state.drop_next, self.interval);
            } else {
                state.dropping = false;
            }
        }
        packet
    }

    /// Whether the delay has been above the target for longer than an interval. Updates the state.
    #[inline]
    fn too_long_above(
        &self,
        state: &mut State,
        packet: Option<PacketId>,
        source: &impl Source,
        now: u32,
        pool: &Pool,
    ) -> bool {
        let is_above = packet
            .is_some_and(|id| !is_before(sojourn(id, now, pool), self.target) && source.backlog() > self.mtu);
        if !is_above {
            state.above = false;
            return false;
        }
        if !state.above {
            state.above = true;
            state.first_above = now.wrapping_add(self.interval);
            return false;
        }
        is_after(now, state.first_above)
    }

    fn mark(&self, id: PacketId, pool: &mut Pool) -> bool {
        self.ecn && pool.mark_congestion(id)
    }
}

impl State {
    /// Counts drops that an overflow made instead of CoDel, so that the next dropping state starts at a
    /// higher rate. As in Linux the inverse square root is not updated before the next Newton step.
    pub(crate) fn add_drops(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// Visits the variables under Linux's names. Times are in ticks of 1024 ns, modulo 2^32.
    pub(crate) fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let time = |set: bool, ticks: u32| {
            if set {
                Variable::Integer(ticks.into())
            } else {
                Variable::Unset
            }
        };
        visit("count", Variable::Integer(self.count.into()));
        visit("lastcount", Variable::Integer(self.last_count.into()));
        visit("dropping", Variable::Flag(self.dropping));
        visit("first_above", time(self.above, self.first_above));
        visit("drop_next", time(self.scheduled, self.drop_next));
        visit("rec_inv_sqrt", Variable::Integer(self.rec_inv_sqrt.into()));
    }

    /// Enters the dropping state. If the last one ended recently, the drop rate starts where it was then.
    fn enter_dropping(&mut self, now: u32, interval: u32) {
        self.dropping = true;
        let last_episode = self.count.wrapping_sub(self.last_count);
        let is_recent =
            self.scheduled && is_before(now.wrapping_sub(self.drop_next), REMEMBERED_INTERVALS * interval);
        if last_episode > 1 && is_recent {
            self.count = last_episode;
            self.newton_step();
        } else {
            self.count = 1;
            self.rec_inv_sqrt = ONE;
        }
        self.last_count = self.count;
        self.schedule(now, interval);
    }

    /// Sets the next drop to `interval / sqrt(count)` after `from`.
    fn schedule(&mut self, from: u32, interval: u32) {
        let gap = (u64::from(interval) * u64::from(self.rec_inv_sqrt)) >> 16;
        self.drop_next = from.wrapping_add(gap as u32);
        self.scheduled = true;
    }

    /// One step of Newton's method for `x = 1 / sqrt(count)`: `x (3 - count x^2) / 2`, where `x` has 32
    /// fractional bits. One step is enough because the count grew by only one since the last step. The error
    /// of the very first step is 29 %.
    fn newton_step(&mut self) {
        let x = u64::from(self.rec_inv_sqrt) << 16;
        let x_squared = (x * x) >> 32;
        let three_less = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(x_squared));
        // Two bits less, so that the product fits into 64 bits.
        let halved = (three_less >> 2).wrapping_mul(x) >> (32 - 2 + 1);
        self.rec_inv_sqrt = (halved >> 16) as u16;
    }
}

fn duration_ticks(duration: Duration) -> u32 {
    (duration.as_nanos() >> TICK_SHIFT) as u32
}

#[inline]
fn ticks(time: Time) -> u32 {
    (time.nanos() >> TICK_SHIFT) as u32
}

/// The sojourn time of a packet, in ticks.
#[inline]
fn sojourn(id: PacketId, now: u32, pool: &Pool) -> u32 {
    now.wrapping_sub(ticks(pool[id].enqueued_at))
}

#[inline]
fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

#[inline]
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_queue_is_24_bytes() {
        assert!(size_of::<State>() <= 24);
    }

    /// Compares the fixed-point fraction with exact arithmetic, over the counts of a long dropping state.
    #[test]
    fn newton_steps_follow_the_square_root() {
        let mut state = State {
            count: 1,
            rec_inv_sqrt: ONE,
            ..State::default()
        };
        for count in 2..100_000u32 {
            state.count = count;
            state.newton_step();
            let exact = 65536.0 / f64::from(count).sqrt();
            let relative = f64::from(state.rec_inv_sqrt) / exact;
            let slack = if count == 2 { 0.3 } else { 0.03 + 1.0 / exact };
            assert!(
                (relative - 1.0).abs() < slack,
                "count {count}: {relative} times the exact value"
            );
        }
    }

    #[test]
    fn comparisons_hold_across_the_wrap() {
        assert!(is_before(u32::MAX, 3) && is_after(3, u32::MAX));
        assert!(!is_before(7, 7) && !is_after(7, 7));
    }
}
