//! The books of a shard: what it may send, and what it asks for.

use super::balancer::{Demand, Report};
use super::census::Census;
use super::gate::Gate;
use super::terms::Classes;
use crate::flow::FlowHash;
use crate::time::Time;

/// What a shard waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// For nothing: it holds no packets.
    Idle,
    /// For its own tree, which holds its packets back.
    Throttled,
    /// For its rate.
    Waiting,
}

/// The rate of a shard is averaged over so many intervals. In one interval the whole line sends two full
/// frames, so what a shard sends in it says little.
const RECENT: u64 = 16;

/// A shard that does not wait asks for enough to pay its debt in so many intervals.
const REPAYMENT: u64 = 4;

/// The books of a shard. The owner of the tree keeps them, and the [`Balancer`](super::Balancer) gets a
/// [`Report`] in each interval.
#[derive(Clone, Debug)]
pub struct Account {
    gate: Gate,
    census: Census,
    /// The bytes sent since the last report.
    sent: u64,
    /// The bytes per second sent in the last [`RECENT`] intervals. Older ones count less and less.
    recent: u64,
    reported_at: Time,
}

impl Account {
    /// Opens the books of a shard of flows (or hosts), without packets. It has no rate yet.
    pub fn of_flows() -> Account {
        Account::of(Census::of_flows())
    }

    /// Opens the books of a shard of classes.
    pub fn of_classes(classes: &Classes) -> Account {
        Account::of(Census::of_classes(classes))
    }

    fn of(census: Census) -> Account {
        Account {
            gate: Gate::new(),
            census,
            sent: 0,
            recent: 0,
            reported_at: Time::ZERO,
        }
    }

    /// Changes the classes. Packets stay in the books.
    pub fn set_classes(&mut self, classes: &Classes) {
        self.census.set_classes(classes);
    }

    /// Returns the place of a flow (or host) in the books. The place of a class is its number.
    #[inline]
    pub fn place(flow: FlowHash) -> u32 {
        Census::place(flow)
    }

    /// Notes that a packet of the flow, host or class at this place was handed to the tree.
    #[inline]
    pub fn arrived(&mut self, place: u32) {
        self.census.arrived(place);
    }

    /// Notes that the tree has dropped a packet.
    #[inline]
    pub fn dropped(&mut self, place: u32) {
        self.census.dropped(place);
    }

    /// Notes that a packet was sent that takes `bytes` on the link.
    #[inline]
    pub fn sent(&mut self, place: u32, bytes: u64) {
        self.census.sent(place, bytes);
        self.gate.pay(bytes);
        self.sent += bytes;
    }

    /// Whether the tree may be asked for a packet.
    ///
    /// # Errors
    /// If not, returns when it may be asked at the current rate.
    #[inline]
    pub fn may_send(&mut self, now: Time) -> Result<(), Time> {
        self.gate.check(now)
    }

    /// Compares the number of packets with the tree's. If the tree is empty, so are the books from now on:
    /// packets may have been moved or flushed from outside.
    #[inline]
    pub fn agree(&mut self, packets: u64) {
        if packets == 0 && self.census.packets() != 0 {
            self.census.clear();
        }
    }

    /// Sets the rate from `now` on, in bytes per second.
    pub fn set_rate(&mut self, rate: u64, now: Time) {
        self.gate.set_rate(rate, now);
    }

    /// Reports what the shard has done since the last report, and what it asks for in the next interval of
    /// `interval` ns. A shard that is not [`Waiting`](State::Waiting) gives back what it did not use.
    pub fn report(&mut self, state: State, interval: u64, now: Time) -> Report {
        let elapsed = now.nanos_since(self.reported_at);
        self.reported_at = now;
        self.census.interval_ends(elapsed);
        self.recent = self.rate_until_now(elapsed, RECENT * interval);
        let (taken, kept) = self.gate.settle(state == State::Waiting, now);
        let demand = match state {
            State::Waiting => self.demand(),
            // Classes that are held back by their limits: the balancer knows these.
            State::Throttled if self.census.knows_limits() => self.demand(),
            State::Idle | State::Throttled => self.light_demand(interval),
        };
        self.sent = 0;
        Report { demand, taken, kept }
    }

    /// What a shard asks for whose rate is too low.
    fn demand(&self) -> Demand {
        let window = self.census.last();
        let mut backlogged = self.census.backlogged();
        if window.light == 0 && backlogged.iter().all(|count| *count == 0) {
            // It waits, so it has a flow, known or not.
            backlogged[0] = 1;
        }
        Demand {
            light: window.rate(window.light_bytes),
            light_least: window.light_least,
            light_weight: window.light,
            backlogged,
        }
    }

    /// Returns the average rate over about `span` ns, of which the last `elapsed` ns are not counted yet.
    fn rate_until_now(&self, elapsed: u64, span: u64) -> u64 {
        let last = u128::from(elapsed.min(span));
        let before = u128::from(self.recent) * (u128::from(span) - last);
        let now = u128::from(per_second(self.sent, elapsed)) * last;
        u64::try_from((before + now) / u128::from(span.max(1))).unwrap_or(u64::MAX)
    }

    /// What a shard asks for whose rate is high enough: a quarter more than it has used lately, and its debt.
    /// It gives back what it does not use. A shard without a rate can send its first packet at once, because
    /// the gate lets one packet pass before it is paid for.
    fn light_demand(&self, interval: u64) -> Demand {
        let window = self.census.last();
        let debt = per_second(self.gate.debt(), REPAYMENT * interval);
        Demand {
            light: self.recent.saturating_add(self.recent / 4).saturating_add(debt),
            light_least: window.senders_least,
            light_weight: window.senders.max(self.census.backlogged_weight()).max(1),
            ..Demand::default()
        }
    }
}

/// Converts bytes in `nanos` ns to bytes per second.
fn per_second(bytes: u64, nanos: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(nanos.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
