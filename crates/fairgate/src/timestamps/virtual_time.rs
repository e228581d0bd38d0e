//! Virtual time with a fine grain, and the time stamps of flows. gfq and s_kps share it.
//!
//! Virtual time advances by `1 / sum of all weights` per byte, a flow's time by `1 / weight`. The flows'
//! times must not fall behind virtual time by rounding. So a flow's rate is rounded up and virtual time's is
//! rounded down. Flows that are always busy then run ahead of V by only the rounding, and the rule that V is
//! at least the least start corrects V. With [`FRACTION`] = 40 fraction bits the rounding is less than 2^-24
//! of a flow's service, and less than 2^-14 of the system's service at the largest sum.
//!
//! Flows are grouped by sigma, the least power of two that is at least the time of their longest packet. A
//! scheduler divides time into parts whose lengths are powers of two. They must not be so short that one
//! packet of another flow moves V by more than the scheduler can keep in order: [`Grain`].
//!
//! A scheduler compares the low 64 bits, which wrap. Times of busy flows are within 2^61 of V. Idle flows
//! store the number of wraps with their finish time, so an old finish time is recognised after any time.

use super::parameters::check_max_packet;
use crate::error::ConfigError;
use crate::structures::{Linked, ListLink};
use crate::timestamps::{Share, WeightSum};

/// The number of fraction bits of a byte at weight 1.
pub(super) const FRACTION: u32 = 40;

const ONE: u64 = 1 << FRACTION;

/// How finely a scheduler may divide time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    /// Binary logarithm of the shortest part.
    pub(super) finest: u32,
    /// The longest packet of all flows moves V by at most this many parts.
    pub(super) reach: u64,
}

/// The system's virtual time V.
#[derive(Debug)]
pub(super) struct VirtualTime {
    now: u128,
    /// Binary logarithm of the shortest part in use.
    grain: u32,
    limits: Grain,
    /// The virtual time per byte sent: 1 / sum of weights.
    per_byte: u64,
    weights: WeightSum,
    /// The longest packet of any flow, configured or seen, in bytes.
    longest: u32,
}

/// The state of a flow in a scheduler with groups: 40 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub(super) time: FlowTime,
    /// Its link in a list of its group.
    pub(super) link: ListLink,
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// A flow's start time and its share: 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowTime {
    /// The virtual start of its first packet, or the finish of its last if it is idle.
    pub(super) start: u64,
    /// The virtual time per byte: 1 / weight.
    per_byte: u64,
    /// The upper half of the finish time if it is idle.
    wraps: u32,
    weight: u32,
    /// Its longest packet, configured or seen, in bytes.
    longest: u32,
    /// Binary logarithm of its sigma.
    sigma: u8,
}

impl VirtualTime {
    pub(super) fn new(origin: u64, limits: Grain) -> VirtualTime {
        VirtualTime {
            now: u128::from(origin),
            grain: limits.finest,
            limits,
            per_byte: 0,
            weights: WeightSum::default(),
            longest: 1,
        }
    }

    /// Returns the low half of V.
    #[inline]
    pub(super) fn low(&self) -> u64 {
        self.now as u64
    }

    /// Advances V by `sent` bytes.
    #[inline]
    pub(super) fn serve(&mut self, sent: u32) {
        self.now += u128::from(u64::from(sent) * self.per_byte);
    }

    /// Advances V by `distance`, because nothing is eligible before.
    #[inline]
    pub(super) fn jump(&mut self, distance: u64) {
        self.now += u128::from(distance);
    }

    /// Returns the binary logarithm of the shortest part of time in use.
    #[inline]
    pub(super) fn grain(&self) -> u32 {
        self.grain
    }

    /// Adds an idle flow.
    pub(super) fn add_flow(&mut self, share: &Share) -> Result<Flow, ConfigError> {
        check_max_packet(share.max_packet)?;
        self.weights.add(share.weight)?;
        self.weigh(share.max_packet);
        let mut time = FlowTime {
            start: 0,
            per_byte: 0,
            wraps: 0,
            weight: 0,
            longest: 0,
            sigma: 0,
        };
        time.set_share(share);
        time.restart(self);
        let link = ListLink::OUTSIDE;
        Ok(Flow { time, link })
    }

    /// Changes the share of a flow.
    pub(super) fn change_share(&mut self, flow: &mut FlowTime, share: &Share) {
        self.weights.change(flow.weight, share.weight);
        self.weigh(share.max_packet);
        flow.set_share(share);
    }

    /// Reports a packet of `length` bytes of `flow`. If it is longer than all before, the flow's group
    /// becomes coarser, and perhaps the grain.
    #[inline]
    pub(super) fn see(&mut self, flow: &mut FlowTime, length: u32) {
        if length > flow.longest {
            flow.lengthen(length);
            self.weigh(length);
        }
    }

    /// Updates V's rate and the grain after weights have changed or a packet of `length` bytes was configured
    /// or seen.
    #[cold]
    fn weigh(&mut self, length: u32) {
        self.longest = self.longest.max(length);
        self.per_byte = ONE / self.weights.0;
        let step = u64::from(self.longest) * self.per_byte;
        self.grain = self.limits.finest;
        while self.limits.reach << self.grain < step {
            self.grain += 1;
        }
    }

    /// Returns V in bytes of weight 1, for users.
    pub(super) fn bytes(&self) -> i64 {
        (self.now >> FRACTION) as i64
    }
}

impl FlowTime {
    /// Returns the virtual time of `length` bytes.
    #[inline]
    pub(super) fn cost(&self, length: u32) -> u64 {
        u64::from(length) * self.per_byte
    }

    /// Returns the binary logarithm of sigma.
    #[inline]
    pub(super) fn sigma(&self) -> u32 {
        self.sigma.into()
    }

    fn set_share(&mut self, share: &Share) {
        self.per_byte = ONE.div_ceil(u64::from(share.weight));
        self.weight = share.weight;
        self.lengthen(share.max_packet);
    }

    /// Sets the longest packet to `length` bytes. Sigma is computed exactly from it. The packet's rounded
    /// time may be greater by `2^-23` of it.
    #[cold]
    fn lengthen(&mut self, length: u32) {
        self.longest = length;
        let longest = u64::from(length) << FRACTION;
        let at_most = longest.ilog2() - self.weight.ilog2();
        let is_less = u64::from(self.weight) << at_most < longest;
        self.sigma = (at_most + u32::from(is_less)) as u8;
    }

    /// Becomes idle: stores the complete finish time.
    #[inline]
    pub(super) fn rest(&mut self, time: &VirtualTime) {
        let ahead = self.start.wrapping_sub(time.low()) as i64;
        let finish = time.now.wrapping_add_signed(i128::from(ahead));
        self.wraps = (finish >> 64) as u32;
    }

    /// Becomes busy: starts at V, or at the finish of its last packet if that is later.
    #[inline]
    pub(super) fn wake(&mut self, time: &VirtualTime) {
        let finish = u128::from(self.wraps) << 64 | u128::from(self.start);
        if finish <= time.now {
            self.start = time.low();
        }
    }

    /// Resets the flow to V.
    pub(super) fn restart(&mut self, time: &VirtualTime) {
        self.start = time.low();
        self.wraps = (time.now >> 64) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::MAX_PACKET;

    const GRAIN: Grain = Grain {
        finest: FRACTION,
        reach: 32,
    };

    fn share(weight: u32, max_packet: u32) -> Share {
        Share { weight, max_packet }
    }

    #[test]
    fn the_grain_is_the_finest_that_the_longest_packet_allows() {
        let mut time = VirtualTime::new(0, GRAIN);
        let mut flow = time.add_flow(&share(1, 32)).unwrap().time;
        assert_eq!(time.grain(), FRACTION);
        time.see(&mut flow, 32);
        assert_eq!(time.grain(), FRACTION);
        time.see(&mut flow, 33);
        assert_eq!((time.grain(), flow.sigma()), (FRACTION + 1, FRACTION + 6));
        // With a greater sum of weights the same packet moves V by less.
        time.change_share(&mut flow, &share(2, 33));
        assert_eq!((time.grain(), flow.sigma()), (FRACTION, FRACTION + 5));
    }

    #[test]
    fn an_old_finish_time_is_never_taken_for_a_new_one() {
        let mut time = VirtualTime::new(u64::MAX - 10, GRAIN);
        let mut flow = time.add_flow(&share(1, 1514)).unwrap().time;
        let finish = time.low().wrapping_add(1000);
        flow.start = finish;
        flow.rest(&time);
        time.jump(990);
        flow.wake(&time);
        assert_eq!(flow.start, finish, "ahead, on the other side of the wrap");
        flow.rest(&time);
        // One wrap later, just before the finish time: it seems to be ahead.
        time.jump(u64::MAX - 4);
        flow.wake(&time);
        assert_eq!(flow.start, time.low());
        assert_ne!(flow.start, finish);
    }

    #[test]
    fn shares_out_of_range_are_rejected() {
        let rejected = |shares: &[Share]| {
            let mut time = VirtualTime::new(0, GRAIN);
            shares
                .iter()
                .find_map(|share| time.add_flow(share).err())
                .and_then(|error| error.parameter())
        };
        assert_eq!(rejected(&[share(0, 1514)]), Some("weight"));
        assert_eq!(rejected(&[share((1 << 16) + 1, 1514)]), Some("weight"));
        assert_eq!(rejected(&[share(1, 0)]), Some("max_packet"));
        assert_eq!(rejected(&[share(1, MAX_PACKET + 1)]), Some("max_packet"));
        assert_eq!(rejected(&[share(1 << 16, 1); 1025]), Some("weight"), "the sum");
        assert_eq!(rejected(&[share(1 << 16, MAX_PACKET); 1024]), None);
    }

    #[test]
    fn sigma_is_the_least_power_of_two() {
        for (weight, longest, exponent) in [
            (1, 1, 0),
            (1, 1514, 11),
            (1, 2048, 11),
            (1, 2049, 12),
            (3, 3072, 10),
            (3, 3073, 11),
            (3, 3071, 10),
            (1 << 16, 1, -16),
            (1 << 16, MAX_PACKET, 1),
            (1, MAX_PACKET, 17),
        ] {
            let flow = VirtualTime::new(0, GRAIN)
                .add_flow(&share(weight, longest))
                .unwrap();
            assert_eq!(
                flow.time.sigma() as i32 - FRACTION as i32,
                exponent,
                "{longest} at {weight}"
            );
        }
    }

    #[test]
    fn flows_never_fall_behind_by_rounding() {
        for weight in [1, 3, 7, 1000, 65_535, 65_536] {
            let mut time = VirtualTime::new(0, GRAIN);
            let mut flow = time.add_flow(&share(weight, 1514)).unwrap().time;
            for _ in 0..1000 {
                flow.start += flow.cost(1514);
                time.serve(1514);
            }
            let ahead = flow.start - time.low();
            assert!(ahead <= 2 * 1000 * 1514, "{ahead} at weight {weight}");
        }
    }
}
