//! The rate of a direction, shared by its workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairgate::Time;
use fairgate::sharding::{Balancer, Classes, Demand, Limit, Report};

/// A worker that does nothing for so many intervals keeps what its rate grants, even if the burst is shorter.
const PATIENCE: u64 = 4;

/// The rate of a direction, and what each worker has of it.
pub(crate) struct Shares {
    workers: Box<[WorkerSlot]>,
    /// The usual time between two exchanges, ns.
    interval: AtomicU64,
    /// For how long a worker that does nothing keeps what its rate grants, ns.
    longest_credit: AtomicU64,
    balance: Mutex<Balance>,
}

/// A worker's place. It has a cache line of its own, which others touch once in an interval.
#[repr(align(128))]
#[derive(Default)]
struct WorkerSlot {
    report: Mutex<Last>,
    /// Bytes per second.
    rate: AtomicU64,
}

/// The last report of a worker.
#[derive(Default)]
struct Last {
    report: Report,
    at: Time,
    /// The rate that the worker has since then.
    rate: u64,
    /// Whether it waits for its rate, and so takes what this grants.
    waits: bool,
    /// What it is assumed to have taken since then: 10^-9 bytes. Workers report at their own times, and one
    /// that loses its processor for a moment must not lose its part to the others.
    assumed: i128,
}

struct Balance {
    /// `None` if the tree has no rate.
    balancer: Option<(Limit, Balancer)>,
    at: Time,
}

impl Shares {
    /// Returns the shares of `workers` workers. Without a limit, nobody is held to a rate.
    /// `classes` are what the workers divide, if these are not flows or hosts.
    pub(crate) fn new(workers: u16, limit: Option<Limit>, classes: Option<&Classes>) -> Shares {
        let shares = Shares {
            workers: (0..workers).map(|_| WorkerSlot::default()).collect(),
            interval: AtomicU64::new(0),
            longest_credit: AtomicU64::new(0),
            balance: Mutex::new(Balance {
                balancer: None,
                at: Time::ZERO,
            }),
        };
        shares.set(limit, classes);
        shares
    }

    /// Changes what is shared. Each worker does so when it changes its tree; the first one is enough.
    pub(crate) fn set(&self, limit: Option<Limit>, classes: Option<&Classes>) {
        let mut balance = lock(&self.balance);
        match (&mut balance.balancer, limit) {
            (Some((current, _)), Some(limit)) if *current == limit => {}
            (Some((current, balancer)), Some(limit)) => {
                balancer.change(limit.rate, limit.burst);
                *current = limit;
            }
            (balancer, limit) => {
                *balancer =
                    limit.map(|limit| (limit, Balancer::new(limit.rate, limit.burst, self.workers.len())));
            }
        }
        if let (Some((_, balancer)), Some(classes)) = (&mut balance.balancer, classes) {
            balancer.set_classes(classes);
        }
        let times = balance.balancer.as_ref().map(|(limit, balancer)| {
            let interval = balancer.interval();
            let burst = limit.rate.transmission_nanos(limit.burst.into());
            (interval, burst.max(PATIENCE * interval))
        });
        let (interval, longest_credit) = times.unwrap_or_default();
        self.interval.store(interval, Ordering::Relaxed);
        self.longest_credit.store(longest_credit, Ordering::Relaxed);
    }

    /// Returns the usual time between two exchanges, ns.
    pub(crate) fn interval(&self) -> u64 {
        self.interval.load(Ordering::Relaxed)
    }

    /// Returns for how long a worker that does nothing keeps what its rate grants, ns. That is the time of
    /// the burst, as in one tree. A worker that has not reported for longer asks for nothing.
    pub(crate) fn longest_credit(&self) -> u64 {
        self.longest_credit.load(Ordering::Relaxed)
    }

    /// Takes a worker's report, rebalances if it is time, and returns the worker's rate in bytes per second.
    /// `waits` says whether the worker keeps what the rate grants until it has sent it.
    pub(crate) fn exchange(&self, worker: usize, report: Report, waits: bool, now: Time) -> u64 {
        let place = &self.workers[worker];
        {
            let mut last = lock(&place.report);
            // What was taken adds up until the balancer reads it.
            let taken = last.report.taken + report.taken - last.assumed;
            *last = Last {
                report: Report { taken, ..report },
                at: now,
                rate: 0,
                waits,
                assumed: 0,
            };
        }
        // If another worker rebalances at this moment, its rates come with the next exchange.
        if let Ok(mut balance) = self.balance.try_lock() {
            self.rebalance(&mut balance, now);
        }
        let rate = place.rate.load(Ordering::Relaxed);
        lock(&place.report).rate = rate;
        rate
    }

    fn rebalance(&self, balance: &mut Balance, now: Time) {
        let elapsed = now.nanos_since(balance.at);
        let Some((_, balancer)) = &mut balance.balancer else {
            return;
        };
        // Workers exchange at their own times: half of an interval is soon enough.
        if elapsed < balancer.interval() / 2 {
            return;
        }
        balance.at = now;
        let longest_credit = self.longest_credit();
        let reports = self.workers.iter().map(|place| {
            let mut last = lock(&place.report);
            let silence = now.nanos_since(last.at);
            let granted = match last.waits {
                true => i128::from(last.rate) * i128::from(silence.min(longest_credit)),
                false => 0,
            };
            let assumed = std::mem::replace(&mut last.assumed, granted);
            Report {
                demand: match silence > longest_credit {
                    true => Demand::default(),
                    false => last.report.demand,
                },
                taken: std::mem::take(&mut last.report.taken) + granted - assumed,
                kept: last.report.kept,
            }
        });
        let rates = balancer.rebalance(elapsed, reports);
        for (place, rate) in self.workers.iter().zip(rates) {
            place.rate.store(*rate, Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use fairgate::LinkLayer;
    use fairgate::Rate;
    use fairgate::sharding::Lengths;

    use super::*;

    fn limit(mbit: u64) -> Option<Limit> {
        Some(Limit {
            rate: Rate::mbit(mbit),
            burst: 20_000,
            lengths: Lengths::LinkLayer(LinkLayer::NONE),
        })
    }

    fn report(weight: u32, taken: i128) -> Report {
        Report {
            demand: Demand::of_flows(weight),
            taken,
            kept: 0,
        }
    }

    /// Two workers report at their own times. Together they have the rate. A worker that loses its processor
    /// for a moment keeps its part, and one that sleeps or stays away keeps nothing from the other one.
    #[test]
    fn workers_share_the_rate() {
        let shares = Shares::new(2, limit(80), None);
        let mut rates = [0; 2];
        let mut exchange = |worker: usize, weight: u32, waits: bool, micros: u64, since: u64| {
            let taken = i128::from(rates[worker]) * i128::from(since) * 1000;
            let taken = if waits { taken } else { 0 };
            rates[worker] = shares.exchange(worker, report(weight, taken), waits, Time::from_micros(micros));
            rates
        };
        let mut now = 0;
        for _ in 0..1000 {
            now += 300;
            exchange(0, 1, true, now, 300);
            exchange(1, 3, true, now + 100, 300);
        }
        let [first, second] = exchange(0, 1, true, now + 300, 300);
        assert!((first + second).abs_diff(10_000_000) < 10_000, "{first} {second}");
        assert!(second.abs_diff(3 * first) < 30_000, "{first} {second}");
        // The second one says nothing for 1.2 ms, less than the time of the burst.
        for after in [600, 900, 1200] {
            let [first, _] = exchange(0, 1, true, now + after, 300);
            assert!(first.abs_diff(2_500_000) < 20_000, "{first}");
        }
        let [first, second] = exchange(1, 3, true, now + 1300, 1200);
        assert!((first + second).abs_diff(10_000_000) < 50_000, "{first} {second}");
        now += 1300;
        // It has many flows, and then does not come back.
        exchange(1, 300, true, now, 0);
        for _ in 0..1000 {
            now += 300;
            exchange(0, 1, true, now, 300);
        }
        let [first, _] = exchange(0, 1, true, now + 300, 300);
        assert!(first > 9_900_000, "{first}");
        // It sleeps, and says so.
        now += 300;
        exchange(1, 0, false, now, 0);
        exchange(0, 1, true, now + 300, 300);
        let [first, _] = exchange(0, 1, true, now + 600, 300);
        assert!(first > 9_900_000, "{first}");
        shares.set(None, None);
        assert_eq!(shares.interval(), 0);
    }
}
