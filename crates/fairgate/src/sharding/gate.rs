//! Holds a shard to a rate that changes often.
//!
//! The gate is open while the shard has credit, and a packet is paid for when it leaves. So the last packet
//! may cost more than there is, and the gate is closed until the rate has paid for it. Credit survives a
//! change of the rate.

use crate::time::Time;

/// What a byte costs: 10^-9 bytes. A rate of one byte per second grants 1 in a nanosecond.
const BYTE: i128 = 1_000_000_000;

/// A gate.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// Bytes per second.
    rate: u64,
    /// 10^-9 bytes at `at`.
    credit: i128,
    /// What the rate has granted since the last report: 10^-9 bytes.
    granted: i128,
    at: Time,
}

impl Gate {
    pub(super) fn new() -> Gate {
        Gate {
            rate: 0,
            credit: 0,
            granted: 0,
            at: Time::ZERO,
        }
    }

    /// Grants what the rate has earned.
    #[inline]
    fn fill(&mut self, now: Time) {
        let granted = i128::from(self.rate) * i128::from(now.nanos_since(self.at));
        self.credit += granted;
        self.granted += granted;
        self.at = self.at.max(now);
    }

    /// Grants what the rate has earned until `now`, and no more: takes back what was granted ahead of time.
    /// Packets that were sent on it are a debt. It takes back no more than was granted since the last report:
    /// if the clock was set back by hours, that would be a debt of hours.
    fn fill_until(&mut self, now: Time) {
        let ahead = i128::from(self.rate) * i128::from(self.at.nanos_since(now));
        let ahead = ahead.min(self.granted);
        self.credit -= ahead;
        self.granted -= ahead;
        self.at = self.at.min(now);
        self.fill(now);
    }

    /// Changes the rate from `now` on, in bytes per second.
    pub(super) fn set_rate(&mut self, rate: u64, now: Time) {
        self.fill_until(now);
        self.rate = rate;
    }

    /// Whether a packet may leave.
    ///
    /// # Errors
    /// If not, returns when one may leave at this rate.
    #[inline]
    pub(super) fn check(&mut self, now: Time) -> Result<(), Time> {
        if self.credit < 0 {
            self.fill(now);
        }
        if self.credit >= 0 {
            return Ok(());
        }
        Err(match self.rate {
            0 => Time::MAX,
            rate => {
                let nanos = (-self.credit) as u128;
                let nanos = nanos.div_ceil(rate.into());
                self.at + u64::try_from(nanos).unwrap_or(u64::MAX >> 1)
            }
        })
    }

    /// Pays for a packet of `bytes` on the link.
    #[inline]
    pub(super) fn pay(&mut self, bytes: u64) {
        self.credit -= i128::from(bytes) * BYTE;
    }

    /// Returns the debt, in bytes.
    pub(super) fn debt(&self) -> u64 {
        (-self.credit.min(0) / BYTE) as u64
    }

    /// Returns what was granted since the last settlement, less what is given back, and what is kept. If the
    /// shard does not wait for its rate, it gives back its credit. It keeps a debt in any case.
    pub(super) fn settle(&mut self, waits: bool, now: Time) -> (i128, u64) {
        self.fill_until(now);
        let unused = if waits { 0 } else { self.credit.max(0) };
        self.credit -= unused;
        let taken = core::mem::take(&mut self.granted) - unused;
        (taken, u64::try_from(self.credit.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_on_credit_and_is_paid_for_later() {
        let mut gate = Gate::new();
        gate.set_rate(1_000_000, Time::ZERO);
        assert_eq!(gate.check(Time::ZERO), Ok(()));
        gate.pay(1000);
        assert_eq!(gate.check(Time::ZERO), Err(Time::from_millis(1)));
        // Twice the rate from the middle on: the rest of the debt takes half of the time.
        gate.set_rate(2_000_000, Time::from_micros(500));
        assert_eq!(gate.check(Time::from_micros(600)), Err(Time::from_micros(750)));
        assert_eq!(gate.check(Time::from_micros(750)), Ok(()));
        gate.set_rate(0, Time::from_micros(750));
        gate.pay(1);
        assert_eq!(gate.check(Time::from_secs(1)), Err(Time::MAX));
    }

    /// The tree of a live worker may be ahead of the clock. What it sent on a later time counts as a debt.
    #[test]
    fn what_is_granted_ahead_of_time_is_a_debt() {
        let mut gate = Gate::new();
        gate.set_rate(1_000_000, Time::ZERO);
        gate.pay(1000);
        assert_eq!(gate.check(Time::from_millis(1)), Ok(()));
        gate.pay(1);
        let granted = 400 * BYTE;
        assert_eq!(gate.settle(true, Time::from_micros(400)), (granted, 0));
        assert_eq!(gate.debt(), 601);
        // The new rate holds from now on, not from the time that the tree was ahead to.
        gate.set_rate(2_000_000, Time::from_micros(400));
        assert_eq!(gate.settle(true, Time::from_micros(500)), (200 * BYTE, 0));
        assert_eq!(gate.debt(), 401);
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_debt_of_that_time() {
        let mut gate = Gate::new();
        gate.set_rate(1_000_000, Time::from_secs(100));
        gate.settle(true, Time::from_secs(100));
        gate.pay(2000);
        assert_eq!(
            gate.check(Time::from_secs(100) + 1_000_000),
            Err(Time::from_secs(100) + 2_000_000)
        );
        let (granted, _) = gate.settle(true, Time::from_secs(1));
        assert_eq!((granted, gate.debt()), (0, 2000));
        assert_eq!(
            gate.check(Time::from_secs(1)),
            Err(Time::from_secs(1) + 2_000_000)
        );
    }

    #[test]
    fn what_is_granted_is_sent_given_back_or_kept() {
        let mut gate = Gate::new();
        gate.set_rate(1_000_000, Time::ZERO);
        // 1000 bytes are granted in a millisecond.
        gate.pay(400);
        assert_eq!(
            gate.settle(true, Time::from_millis(1)),
            (1000 * BYTE, 600 * BYTE as u64)
        );
        assert_eq!(gate.settle(false, Time::from_millis(2)), (-600 * BYTE, 0));
        gate.pay(1500);
        assert_eq!(gate.settle(false, Time::from_millis(3)), (1000 * BYTE, 0));
        assert_eq!(gate.debt(), 500);
    }
}
