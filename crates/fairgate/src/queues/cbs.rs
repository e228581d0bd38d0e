//! Credit-based shaper (IEEE 802.1Qav, now 802.1Q clause 8.6.8.2). Linux's `cbs` in software.
//!
//! A queue for audio and video has credit. While a packet waits, credit grows at the *idle slope*, the rate
//! that is reserved for the queue. While a packet is sent, credit falls at the *send slope*: the rate of the
//! port less the idle slope. A packet may leave if the credit is not negative. So packets leave at the idle
//! slope, one at a time, and not in bursts.
//!
//! Credit is at most `hicredit` and at least minus `locredit`. A queue that is empty loses positive credit.
//!
//! The credit is stored as the time in which the idle slope gives it, in 2^-20 ns. So it grows by the time
//! that passes, and a packet costs a multiplication.
//!
//! Invariant: from the first packet of a busy period on, packets leave at most at the idle slope, plus
//! `hicredit`.
//!
//! Not work-conserving: [`watchdog`](Discipline::watchdog) is when the credit is 0 again, or when the port
//! has sent the last packet.
//!
//! Deviations from Linux: the rate of the port is the sum of the two slopes and not that of the device; the
//! standard defines the send slope so. Fractions of a byte are kept. Linux adds credit only while it is
//! negative, also in the moment of the dequeue; so does this.

use alloc::boxed::Box;

use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::{self, Fifo};
use crate::rate::{Rate, RateMeter};
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};
use crate::time::Time;

/// The number of the only class, as in Linux.
const INNER: u32 = 1;

/// The places after the point of a credit in ns.
const PLACES: u32 = 20;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate at which credit grows, at least 8 bit/s.
    pub idleslope: Rate,
    /// The rate at which credit falls while a packet is sent, at least 8 bit/s. The rate of the port is the
    /// sum of the two.
    pub sendslope: Rate,
    /// The most credit, bytes.
    pub hicredit: u32,
    /// The most debt, bytes: the longest packet times the send slope, divided by the rate of the port.
    pub locredit: u32,
}

/// Linux has no defaults. These reserve 20 Mbit/s of a port of 100 Mbit/s, for frames of 1522 bytes.
impl Default for Config {
    fn default() -> Config {
        Config {
            idleslope: Rate::mbit(20),
            sendslope: Rate::mbit(80),
            hicredit: 305,
            locredit: 1218,
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::required(
        "idleslope",
        Unit::Rate,
        8..=1 << 50,
        "The rate that is reserved for the queue: credit grows at it.",
        |cbs, _| &mut cbs.idleslope,
    ),
    Parameter::required(
        "sendslope",
        Unit::Rate,
        8..=1 << 50,
        "The rate of the port less `idleslope`: credit falls at it while a packet is sent.",
        |cbs, _| &mut cbs.sendslope,
    ),
    Parameter::required(
        "hicredit",
        Unit::Bytes,
        0..=i32::MAX as u64,
        "The most credit: what other queues can send meanwhile, times `idleslope` / the port's rate.",
        |cbs, _| &mut cbs.hicredit,
    ),
    Parameter::required(
        "locredit",
        Unit::Bytes,
        0..=i32::MAX as u64,
        "The most debt: the longest packet times `sendslope` / the port's rate.",
        |cbs, _| &mut cbs.locredit,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "cbs",
        family: Family::Queues,
        summary: "Credit-based shaper for audio and video (802.1Qav) over a fifo or any discipline inside",
        when: "In a class of prio for a stream with a reserved rate, whose packets must leave evenly.",
        children: Children::Inner,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, mut parts| Ok(Box::new(Cbs::node(config, parts.children.pop())?)),
);

/// The parameters as the packet path needs them.
#[derive(Clone, Copy, Debug)]
struct Derived {
    /// The debt for a byte that is sent, in credit.
    per_byte: u128,
    /// The port.
    port: RateMeter,
    most: i128,
    least: i128,
}

impl Config {
    fn check(&self) -> Result<Derived, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        let (idle, send) = (
            u128::from(self.idleslope.bits_per_second()),
            u128::from(self.sendslope.bits_per_second()),
        );
        let in_time = |bytes: u32| {
            let nanos = (u128::from(bytes) * 8_000_000_000) << PLACES;
            (nanos / idle) as i128
        };
        // A byte takes 8 / port seconds, in which send / idle times as much credit is lost as time passes.
        // The slopes are at most 2^50, so that the products fit.
        let port = idle + send;
        let per_byte = ((8_000_000_000u128 << PLACES) * send).div_ceil(port * idle);
        Ok(Derived {
            per_byte,
            port: Rate::from_bits_per_second(port as u64)?.meter(),
            most: in_time(self.hicredit),
            least: -in_time(self.locredit),
        })
    }
}

/// The discipline. Make one with [`Cbs::node`].
#[derive(Debug)]
pub struct Cbs {
    inner: Box<dyn Discipline>,
    derived: Derived,
    /// Credit as the time in which it grows, in units of 2^-20 ns.
    credit: i128,
    /// When the credit was computed, or when the port has sent the last packet.
    last: Time,
    /// When to ask again; `None` unless the last dequeue returned nothing.
    due: Option<Time>,
    config: Config,
}

impl Cbs {
    /// Creates a shaper without credit over `inner`, or over a fifo with its default limit.
    ///
    /// ```
    /// use fairgate::queues::cbs::{Cbs, Config};
    /// use fairgate::{Discipline, Packet, Pool, Rate, Time};
    ///
    /// // 20 of 100 Mbit/s: a packet leaves every five transmission times.
    /// let config = Config { idleslope: Rate::mbit(20), sendslope: Rate::mbit(80), ..Config::default() };
    /// let mut pool = Pool::with_capacity(16);
    /// let mut shaper = Cbs::node(config, None)?;
    /// for _ in 0..2 {
    ///     let id = pool.insert(Packet::of_length(1000)).expect("16 slots");
    ///     shaper.enqueue(id, Time::ZERO, &mut pool);
    /// }
    /// assert!(shaper.dequeue(Time::ZERO, &mut pool).is_some());
    /// assert!(shaper.dequeue(Time::from_micros(399), &mut pool).is_none());
    /// assert!(shaper.dequeue(Time::from_micros(400), &mut pool).is_some());
    /// # Ok::<(), fairgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If a parameter is out of its range.
    pub fn node(config: Config, inner: Option<Box<dyn Discipline>>) -> Result<Node<Cbs>, ConfigError> {
        let derived = config.check()?;
        let inner = match inner {
            Some(inner) => inner,
            None => Box::new(Fifo::node(fifo::Config::default())?),
        };
        Ok(Node::new(Cbs {
            inner,
            derived,
            credit: 0,
            last: Time::ZERO,
            due: None,
            config,
        }))
    }

    /// Returns the credit in bytes, rounded down.
    fn bytes(&self) -> i64 {
        let idle = i128::from(self.config.idleslope.bits_per_second());
        (((self.credit >> PLACES) * idle).div_euclid(8_000_000_000)) as i64
    }
}

impl Algorithm for Cbs {
    const NAME: &'static str = "cbs";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if self.credit > 0 && self.inner.is_empty() {
            self.credit = 0;
            self.last = now;
        }
        self.inner.enqueue(id, now, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.due = None;
        if self.inner.is_empty() {
            // An inner discipline may use the call.
            return self.inner.dequeue(now, pool);
        }
        if now < self.last {
            self.due = Some(self.last);
            return None;
        }
        if self.credit < 0 {
            let grown = i128::from(now - self.last) << PLACES;
            self.credit = (self.credit + grown).min(self.derived.most);
            self.last = now;
            if self.credit < 0 {
                // Rounded up: a moment before, the credit is still negative.
                let missing = (((1 << PLACES) - 1) - self.credit) >> PLACES;
                self.due = Some(now + missing as u64);
                return None;
            }
        }
        let Some(id) = self.inner.dequeue(now, pool) else {
            if !self.inner.is_empty() {
                self.due = self.inner.watchdog();
            }
            return None;
        };
        let length = pool[id].length;
        let cost = (u128::from(length) * self.derived.per_byte) as i128;
        self.credit = (self.credit - cost).max(self.derived.least);
        self.last = now + self.derived.port.nanos(length.into());
        Some(id)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.inner.drain(pool, into);
        self.due = None;
    }

    fn watchdog(&self) -> Option<Time> {
        self.due
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// The credit is kept as a time, within the new limits.
    fn reconfigure(&mut self, config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        self.derived = config.check()?;
        self.credit = self.credit.clamp(self.derived.least, self.derived.most);
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        visit(Class::new(INNER, self.inner.as_ref()));
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        (minor == INNER).then_some(&mut self.inner)
    }

    fn class_replaced(&mut self, _minor: u32, _now: Time, _pool: &mut Pool) {
        self.due = None;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("credit", Variable::Integer(self.bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::testing::Driver;
    use proptest::prelude::*;

    fn shaper(idle: u64, send: u64, hicredit: u32, locredit: u32) -> Driver<Cbs> {
        let rate = |bits| Rate::from_bits_per_second(bits).unwrap();
        let config = Config {
            idleslope: rate(idle),
            sendslope: rate(send),
            hicredit,
            locredit,
        };
        Driver::new(Cbs::node(config, None).unwrap())
    }

    /// When packets leave if the driver asks in time.
    fn departures(driver: &mut Driver<Cbs>, mut now: Time) -> Vec<u64> {
        let mut times = Vec::new();
        while driver.root.backlog().packets > 0 {
            match driver.next(now) {
                Some(_) => times.push(now.nanos()),
                None => now = driver.root.watchdog().expect("a time to ask again"),
            }
        }
        times
    }

    /// The example of the manual page of tc-cbs: class A with 20 Mbit/s of 100 would be paced like this.
    #[test]
    fn packets_leave_at_the_idle_slope() {
        let mut driver = shaper(20_000_000, 80_000_000, 10_000, 10_000);
        for _ in 0..4 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        // 1000 bytes take 80 us on the port, cost 800 bytes of credit, and these grow again in 320 us.
        assert_eq!(
            departures(&mut driver, Time::ZERO),
            [0, 400_000, 800_000, 1_200_000]
        );
    }

    #[test]
    fn credit_has_two_limits() {
        // The debt is at most 100 bytes: it grows again in 40 us after the packet is sent.
        let mut driver = shaper(20_000_000, 80_000_000, 10_000, 100);
        for _ in 0..2 {
            driver.offer(Packet::of_length(1000), Time::ZERO);
        }
        assert_eq!(departures(&mut driver, Time::ZERO), [0, 120_000]);
        // While a packet waits for a driver that asks late, credit grows up to 200 bytes.
        let mut driver = shaper(20_000_000, 80_000_000, 200, 10_000);
        for _ in 0..3 {
            driver.offer(Packet::of_length(100), Time::ZERO);
        }
        assert_eq!(driver.next(Time::ZERO), Some(0));
        let late = Time::from_millis(10);
        assert_eq!(driver.next(late), Some(1));
        assert_eq!(driver.root.algorithm().bytes(), 120);
        // An empty queue loses it.
        assert_eq!(driver.next(late + 8_000), Some(2));
        assert_eq!(driver.root.algorithm().bytes(), 40);
        let _ = driver.offer(Packet::of_length(100), Time::from_millis(20));
        assert_eq!(driver.root.algorithm().bytes(), 0);
    }

    #[test]
    fn slopes_of_zero_are_rejected() {
        let slow = Rate::from_bits_per_second(7).unwrap();
        for (idleslope, sendslope, parameter) in [
            (slow, Rate::mbit(1), "idleslope"),
            (Rate::mbit(1), slow, "sendslope"),
        ] {
            let config = Config {
                idleslope,
                sendslope,
                ..Config::default()
            };
            assert_eq!(Cbs::node(config, None).unwrap_err().parameter(), Some(parameter));
        }
    }

    proptest! {
        /// Compares with Linux's algorithm in exact fractions of bytes. The driver asks at random times.
        #[test]
        fn departures_are_those_of_the_model(
            idle in 1u64..100,
            send in 1u64..100,
            hicredit in 0u32..3000,
            locredit in 0u32..3000,
            steps in prop::collection::vec((0u64..2_000_000, 1u32..1600, any::<bool>()), 1..200),
        ) {
            let (idle, send) = (idle * 1_000_000, send * 1_000_000);
            let mut driver = shaper(idle, send, hicredit, locredit);
            let port = (idle + send) as f64;
            let (mut credit, mut last, mut now) = (0.0f64, 0.0f64, 0u64);
            // How far the credits may be apart: a transmission ends at a whole nanosecond here, and not in
            // the model, and costs are rounded up. A credit of 0 that was just set is exact.
            let mut apart = 0.0f64;
            let mut queue = std::collections::VecDeque::new();
            for (pause, length, is_arrival) in steps {
                now += pause;
                if is_arrival {
                    if queue.is_empty() && credit.abs() < apart {
                        // A rounding decides whether the credit is set to 0.
                        return Ok(());
                    }
                    if queue.is_empty() && credit > 0.0 {
                        (credit, last, apart) = (0.0, now as f64, 0.0);
                    }
                    queue.push_back(length);
                    driver.offer(Packet::of_length(length), Time::from_nanos(now));
                    continue;
                }
                let mut expected = false;
                let mut is_close = false;
                if !queue.is_empty() {
                    is_close = (now as f64 - last).abs() < 1.5;
                    if now as f64 >= last {
                        // A credit below 0 grows, one of 0 does not.
                        is_close |= credit.abs() < apart;
                        if credit < 0.0 {
                            credit = (credit + (now as f64 - last) * idle as f64 / 8e9).min(hicredit.into());
                            last = now as f64;
                            is_close |= credit.abs() < apart;
                        }
                        expected = credit >= 0.0;
                    }
                }
                if is_close {
                    // A rounding decides here.
                    return Ok(());
                }
                let left = driver.next(Time::from_nanos(now));
                prop_assert_eq!(left.is_some(), expected);
                if expected {
                    let length = f64::from(queue.pop_front().expect("a packet is queued"));
                    credit = (credit - length * send as f64 / port).max(-f64::from(locredit));
                    last = now as f64 + length * 8e9 / port;
                    apart += 1e-3 + idle as f64 / 8e9;
                }
            }
        }
    }
}
