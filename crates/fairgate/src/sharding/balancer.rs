//! The rates of shards: max-min fairness over the flows of all of them.
//!
//! What a shard can use depends on the *level*, the rate of a flow that always has packets. A flow that asks
//! for less is *light*: it gets what it asks for. So a shard uses
//!
//! ```text
//!   f(level) = min(light, light_weight * level) + weight * level
//! ```
//!
//! with `weight` backlogged flows, and `light_weight` light ones that ask for `light` together. A class of
//! htb or hfsc has [`Terms`] of its own: a guarantee, a weight and a limit. The balancer finds the level at
//! which all shards together use the rate of the line. That is the level of one tree with all these flows, so
//! each flow gets what it would get there. If the light flows of a shard ask for different rates, the formula
//! takes their mean; the difference is only seen if the level is between them.
//!
//! **Nothing is lost, nothing is invented**: rate that a shard did not use comes back with its next report,
//! and is shared out in the next intervals, an eighth of what is left in each. It comes in lumps: a class
//! near its limit could not use all of its part of a lump, and would have less than its share between lumps.
//! What the burst has no room for is shared out at once. What was sent in any time never exceeds what the
//! line sends in that time and one interval, the burst, and a packet of each shard: a gate lets a packet pass
//! before it is paid for.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::terms::{Classes, FRACTION, KINDS, Terms};
use crate::rate::Rate;

/// The shortest interval, ns.
const SHORTEST: u64 = 200_000;
/// The longest interval, ns.
const LONGEST: u64 = 10_000_000;
/// The bytes that the line sends in an interval, if that is between the bounds: two full frames.
const BYTES: u64 = 2 * 1514;

/// The part of what is unspent that is shared out in an interval: one in so many.
const SPREAD: i128 = 8;

/// Returns the time between two rebalancings of a line with this rate, ns: 0.2 ms from 121 Mbit/s on, and
/// longer on slower lines, where fewer packets pass.
pub fn interval(rate: Rate) -> u64 {
    rate.transmission_nanos(BYTES).clamp(SHORTEST, LONGEST)
}

/// What a shard can use, as a function of the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// What the light flows ask for together, bytes per second.
    pub light: u64,
    /// What is guaranteed to the light flows together, bytes per second.
    pub light_least: u64,
    /// The weight of the light flows together: their number, if all weigh the same.
    pub light_weight: u64,
    /// The number of flows that always have packets, of each kind.
    pub backlogged: [u32; KINDS],
}

impl Demand {
    /// Returns what this many equal flows ask for that always have packets.
    pub fn of_flows(count: u32) -> Demand {
        let mut demand = Demand::default();
        demand.backlogged[0] = count;
        demand
    }

    /// The bytes per second that the shard uses at `level`, in 2^-16 bytes per second.
    fn at(&self, kinds: &[Terms], level: u128) -> u128 {
        let shared = u128::from(self.light_weight).saturating_mul(level) >> FRACTION;
        let light = u128::from(self.light_least) + shared;
        let backlogged = kinds
            .iter()
            .zip(self.backlogged)
            .filter(|(_, count)| *count > 0)
            .map(|(terms, count)| terms.used(count, level));
        light.min(self.light.into()) + backlogged.sum::<u128>()
    }
}

/// Divides `total` bytes per second among shards whose flows are of these kinds: fills `rates`, which add up
/// to `total`. If all shards together ask for less, each one gets the same amount more than it asks for, so
/// that it can begin to send more at once. If the guarantees of backlogged classes exceed the total, each
/// shard gets a part in proportion to them.
///
/// ```
/// use fairgate::sharding::{Demand, Terms, share};
///
/// let light = Demand { light: 200, light_weight: 1, ..Demand::default() };
/// let demands = [Demand::of_flows(3), Demand::of_flows(1), light];
/// let mut rates = [0; 3];
/// share(1000, &[Terms::FLOW], &demands, &mut rates);
/// assert_eq!(rates, [600, 200, 200]);
/// ```
///
/// # Panics
/// If there are not as many rates as demands.
pub fn share(total: u64, kinds: &[Terms], demands: &[Demand], rates: &mut [u64]) {
    assert_eq!(demands.len(), rates.len(), "each shard has a demand and a rate");
    if rates.is_empty() {
        return;
    }
    let all: u128 = total.into();
    let used = |level: u128| demands.iter().map(|demand| demand.at(kinds, level)).sum::<u128>();
    let guaranteed = used(0);
    if guaranteed > all {
        for (rate, demand) in rates.iter_mut().zip(demands) {
            *rate = (all * demand.at(kinds, 0) / guaranteed) as u64;
        }
        let left = all - rates.iter().map(|rate| u128::from(*rate)).sum::<u128>();
        return share_equally(left, rates);
    }
    // The level is the greatest at which the total suffices. At a level of `total + 1` one backlogged flow
    // uses more than all, and light flows use all that they ask for.
    let (mut level, mut above) = (0, (all + 1) << FRACTION);
    while above - level > 1 {
        let middle = level.midpoint(above);
        match used(middle) <= all {
            true => level = middle,
            false => above = middle,
        }
    }
    let mut left = all - used(level);
    for (rate, demand) in rates.iter_mut().zip(demands) {
        // The level's last bit: less than one byte per second for each flow, up to `left` in total.
        let own = demand.at(kinds, level);
        let more = (demand.at(kinds, level + 1) - own).min(left);
        left -= more;
        *rate = (own + more) as u64;
    }
    share_equally(left, rates);
}

/// Adds an equal part of `left` to each rate.
fn share_equally(left: u128, rates: &mut [u64]) {
    let count = rates.len() as u128;
    for (number, rate) in (0..).zip(rates) {
        *rate += (left / count + u128::from(number < left % count)) as u64;
    }
}

/// What a shard tells the balancer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What it can use in the next interval.
    pub demand: Demand,
    /// What its rate has granted since the last report, less what it gives back: 10^-9 bytes.
    pub taken: i128,
    /// What it keeps, to send it soon: 10^-9 bytes.
    pub kept: u64,
}

/// Shares the rate of a line among shards. It has no clock: the caller says how much time has passed.
#[derive(Clone, Debug)]
pub struct Balancer {
    /// Bytes per second.
    rate: u64,
    /// What can be unspent for longer than an interval: the burst. 10^-9 bytes.
    burst: i128,
    /// The usual time between two calls, ns.
    interval: u64,
    /// What the line could have sent and no shard has taken: 10^-9 bytes. It is negative while more was
    /// granted than the line can send, because an interval took longer.
    unspent: i128,
    kinds: Vec<Terms>,
    demands: Box<[Demand]>,
    rates: Box<[u64]>,
}

impl Balancer {
    /// Shares out `rate` among `shards` shards of flows. After an idle time, `burst` bytes may be sent at
    /// once.
    pub fn new(rate: Rate, burst: u32, shards: usize) -> Balancer {
        let mut balancer = Balancer {
            rate: 0,
            burst: 0,
            interval: 0,
            unspent: i128::MAX,
            kinds: vec![Terms::FLOW],
            demands: vec![Demand::default(); shards].into_boxed_slice(),
            rates: vec![0; shards].into_boxed_slice(),
        };
        balancer.change(rate, burst);
        balancer
    }

    /// Changes rate and burst. What is unspent is kept.
    pub fn change(&mut self, rate: Rate, burst: u32) {
        self.rate = rate.bits_per_second() / 8;
        self.interval = interval(rate);
        self.burst = i128::from(burst) * 1_000_000_000;
        self.unspent = self.unspent.min(self.most());
    }

    /// Shares the rate among these classes.
    pub fn set_classes(&mut self, classes: &Classes) {
        self.kinds.clear();
        self.kinds.extend_from_slice(classes.terms());
    }

    /// Returns the usual time between two rebalancings, ns.
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// The most that can be unspent: the burst, and what is given back of one interval. 10^-9 bytes.
    fn most(&self) -> i128 {
        self.burst + i128::from(self.rate) * i128::from(self.interval)
    }

    /// Returns the rate of each shard, in bytes per second, for the next interval. `elapsed` ns have passed
    /// since the last call.
    ///
    /// # Panics
    /// If there are fewer reports than shards.
    pub fn rebalance(&mut self, elapsed: u64, reports: impl IntoIterator<Item = Report>) -> &[u64] {
        let (mut taken, mut kept) = (0, 0);
        let mut reports = reports.into_iter();
        for demand in &mut self.demands {
            let report = reports.next().expect("each shard reports");
            *demand = report.demand;
            taken += report.taken;
            kept += i128::from(report.kept);
        }
        self.unspent += i128::from(self.rate) * i128::from(elapsed) - taken;
        self.unspent = self.unspent.min((self.most() - kept).max(0));
        // What exceeds the burst would be lost if as much came back again. What is owed is paid at once.
        let exceeding = self.unspent - (self.burst - kept).max(0);
        let shared_out = match self.unspent {
            owed @ ..=0 => owed,
            unspent => exceeding.max(unspent / SPREAD),
        };
        let extra = shared_out / i128::from(self.interval);
        let total = (i128::from(self.rate) + extra).clamp(0, u64::MAX.into());
        share(total as u64, &self.kinds, &self.demands, &mut self.rates);
        &self.rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FLOWS: &[Terms] = &[Terms::FLOW];

    fn demand() -> impl Strategy<Value = Demand> {
        let light = prop_oneof![Just((0, 0)), (1u64..1 << 40, 1u64..1000)];
        let weight = prop_oneof![Just(0), 1u32..10, 1u32..5000];
        (light, weight).prop_map(|((light, light_weight), weight)| Demand {
            light,
            light_weight,
            ..Demand::of_flows(weight)
        })
    }

    /// The exact max-min allocation over single flows, by progressive filling (Bertsekas, Gallager 1992):
    /// each round, the flows that ask for less than an equal part get what they ask for. Returns the rate of
    /// each shard.
    fn reference(total: u64, demands: &[Demand]) -> Vec<f64> {
        let backlogged: f64 = demands.iter().map(|demand| f64::from(demand.backlogged[0])).sum();
        let mut left = total as f64;
        // What the light flows of each shard get, once that is known.
        let mut light: Vec<Option<f64>> = vec![None; demands.len()];
        loop {
            let open = |light: &[Option<f64>]| -> Vec<usize> {
                (0..demands.len())
                    .filter(|shard| light[*shard].is_none())
                    .collect()
            };
            let unknown = open(&light);
            let flows: f64 = unknown
                .iter()
                .map(|shard| demands[*shard].light_weight as f64)
                .sum();
            let level = match backlogged + flows {
                0.0 => 0.0,
                flows => left / flows,
            };
            let equal = |shard: usize| level * demands[shard].light_weight as f64;
            let fits: Vec<usize> = unknown
                .iter()
                .copied()
                .filter(|shard| demands[*shard].light as f64 <= equal(*shard))
                .collect();
            for shard in &fits {
                light[*shard] = Some(demands[*shard].light as f64);
                left -= demands[*shard].light as f64;
            }
            if fits.is_empty() || open(&light).is_empty() && backlogged == 0.0 {
                let rate = |shard: usize| {
                    light[shard].unwrap_or(equal(shard)) + level * f64::from(demands[shard].backlogged[0])
                };
                return (0..demands.len()).map(rate).collect();
            }
        }
    }

    proptest! {
        /// No rate is lost or invented, and nobody starves: each shard with flows gets at least the part of
        /// its flows, up to what they ask for.
        #[test]
        fn rates_add_up_and_nobody_starves(
            total in 0u64..1 << 42,
            demands in proptest::collection::vec(demand(), 1..20),
        ) {
            let mut rates = vec![0; demands.len()];
            share(total, FLOWS, &demands, &mut rates);
            prop_assert_eq!(rates.iter().sum::<u64>(), total);
            let count = |demand: &Demand| demand.light_weight + u64::from(demand.backlogged[0]);
            let flows: u64 = demands.iter().map(count).sum();
            for (rate, demand) in rates.iter().zip(&demands) {
                let equal = |weight: u64| weight * total / flows.max(1);
                let least = equal(demand.light_weight).min(demand.light) + equal(demand.backlogged[0].into());
                // Rounding takes less than a byte per second for each kind of flows.
                prop_assert!(rate + 3 >= least, "{} of {}", rate, least);
            }
        }

        /// The exact reference allocates the same, to one byte per second for each shard.
        #[test]
        fn shares_are_max_min_fair(
            total in 1u64..1 << 42,
            demands in proptest::collection::vec(demand(), 1..20),
        ) {
            let mut rates = vec![0; demands.len()];
            share(total, FLOWS, &demands, &mut rates);
            let wanted = reference(total, &demands);
            let spare = (total as f64 - wanted.iter().sum::<f64>()).max(0.0) / demands.len() as f64;
            for (rate, wanted) in rates.iter().zip(wanted) {
                let expected = wanted + spare;
                let tolerance = 3.0 + expected * 1e-9 + demands.len() as f64;
                prop_assert!((*rate as f64 - expected).abs() <= tolerance, "{} is not {}", rate, expected);
            }
        }

        /// Classes with guarantees, shares and limits get what filling level by level gives them: the level
        /// rises from one limit to the next one, until the total is used.
        #[test]
        fn classes_get_guarantee_and_share_up_to_their_limit(
            total in 1u64..1 << 38,
            kinds in proptest::collection::vec((0u64..1 << 20, 1u32..5000, 1u64..1 << 36), 1..=KINDS),
            counts in proptest::collection::vec(proptest::array::uniform16(0u32..20), 1..5),
        ) {
            let kinds: Vec<Terms> = kinds
                .into_iter()
                .map(|(least, weight, above)| Terms { least, weight, most: least + above, adds_up: true })
                .collect();
            let demands: Vec<Demand> = counts
                .iter()
                .map(|backlogged| Demand { backlogged: *backlogged, ..Demand::default() })
                .collect();
            let mut rates = vec![0; demands.len()];
            share(total, &kinds, &demands, &mut rates);
            prop_assert_eq!(rates.iter().sum::<u64>(), total);

            let all = |kind: usize| -> f64 {
                demands.iter().map(|demand| f64::from(demand.backlogged[kind])).sum()
            };
            let limit = |terms: &Terms| (terms.most - terms.least) as f64 / f64::from(terms.weight);
            let of = |terms: &Terms, level: f64| {
                terms.least as f64 + f64::from(terms.weight) * level.min(limit(terms))
            };
            let used = |level: f64| -> f64 {
                (0..kinds.len()).map(|kind| all(kind) * of(&kinds[kind], level)).sum()
            };
            prop_assume!(used(0.0) <= total as f64);
            let mut limits: Vec<f64> = kinds.iter().map(limit).collect();
            limits.sort_by(f64::total_cmp);
            let mut level = 0.0;
            for next in limits {
                if used(next) <= total as f64 {
                    level = next;
                    continue;
                }
                let slope: f64 = (0..kinds.len())
                    .filter(|kind| limit(&kinds[*kind]) > level)
                    .map(|kind| all(kind) * f64::from(kinds[kind].weight))
                    .sum();
                level += (total as f64 - used(level)) / slope;
                break;
            }
            let spare = (total as f64 - used(level)).max(0.0) / demands.len() as f64;
            for (rate, demand) in rates.iter().zip(&demands) {
                let own = kinds.iter().zip(demand.backlogged);
                let own: f64 = own.map(|(terms, count)| f64::from(count) * of(terms, level)).sum();
                let expected = own + spare;
                let tolerance = 20.0 * KINDS as f64 + expected * 1e-6;
                prop_assert!((*rate as f64 - expected).abs() <= tolerance, "{} is not {}", rate, expected);
            }
        }

        /// If the guarantees are more than the total, each shard gets a part in proportion to them.
        #[test]
        fn guarantees_that_cannot_be_kept_are_shared(
            total in 0u64..1000, counts in proptest::collection::vec(1u32..100, 1..5),
        ) {
            let kinds = [Terms { least: 1000, most: 5000, ..Terms::FLOW }];
            let demands: Vec<Demand> = counts.iter().map(|count| Demand::of_flows(*count)).collect();
            let mut rates = vec![0; counts.len()];
            share(total, &kinds, &demands, &mut rates);
            prop_assert_eq!(rates.iter().sum::<u64>(), total);
            let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
            for (rate, count) in rates.iter().zip(&counts) {
                prop_assert!(rate.abs_diff(total * u64::from(*count) / all) <= counts.len() as u64);
            }
        }

        /// If some shard has backlogged flows, no other shard gets more than it asks for.
        #[test]
        fn unused_rate_goes_to_backlogged_shards(
            total in 1u64..1 << 42,
            demands in proptest::collection::vec(demand(), 2..20),
        ) {
            prop_assume!(demands.iter().any(|demand| demand.backlogged[0] > 0));
            let mut rates = vec![0; demands.len()];
            share(total, FLOWS, &demands, &mut rates);
            for (rate, demand) in rates.iter().zip(&demands) {
                prop_assert!(demand.backlogged[0] > 0 || *rate <= demand.light);
            }
        }

        /// Whatever shards do and however late the calls are: what they take in any window is at most what
        /// the line sends in it, one interval of work, and the burst.
        #[test]
        fn the_rate_of_the_line_is_never_exceeded(
            steps in proptest::collection::vec(
                (1u64..5_000_000, proptest::collection::vec((demand(), 0u64..=100), 3)),
                1..60,
            ),
        ) {
            let rate = Rate::mbit(100);
            let mut balancer = Balancer::new(rate, 20_000, 3);
            let per_second = i128::from(rate.bits_per_second() / 8);
            let mut rates = vec![0; 3];
            let (mut spent, mut time) = (vec![0i128], vec![0i128]);
            for (elapsed, shards) in steps {
                // Each shard uses a part of what its rate granted, and gives the rest back.
                let reports: Vec<Report> = shards.iter().zip(&rates).map(|((demand, percent), rate)| Report {
                    demand: *demand,
                    taken: i128::from(*rate) * i128::from(elapsed) * i128::from(*percent) / 100,
                    kept: 0,
                }).collect();
                let taken: i128 = reports.iter().map(|report| report.taken).sum();
                spent.push(spent.last().unwrap() + taken);
                time.push(time.last().unwrap() + i128::from(elapsed));
                rates = balancer.rebalance(elapsed, reports).to_vec();
            }
            let burst = 20_000 * 1_000_000_000 + per_second * i128::from(interval(rate));
            // A call that is late lets shards go on at their last rates. That is taken back afterwards.
            let late = (per_second + burst / i128::from(interval(rate))) * 5_000_000;
            for end in 0..spent.len() {
                for begin in 0..end {
                    let most = per_second * (time[end] - time[begin]) + burst + late;
                    prop_assert!(spent[end] - spent[begin] <= most);
                }
            }
            // In the long run there is no exception: the debt is known.
            let all = per_second * time.last().unwrap() + burst;
            prop_assert!(spent.last().unwrap() + balancer.unspent <= all);
        }

        /// What one shard leaves unused, the others get in the next interval.
        #[test]
        fn the_line_is_used_up(percent in 0u64..=100, weight in 1u32..100) {
            let mut balancer = Balancer::new(Rate::mbit(80), 20_000, 2);
            let mut rates = vec![0; 2];
            let interval = balancer.interval();
            let mut sent = 0;
            let steps = 2000;
            for _ in 0..steps {
                let taken = |rate: u64, percent: u64| {
                    i128::from(rate) * i128::from(interval) * i128::from(percent) / 100
                };
                let reports = [(0, percent), (1, 100)].map(|(shard, percent)| Report {
                    demand: Demand::of_flows(weight),
                    taken: taken(rates[shard], percent),
                    kept: 0,
                });
                sent += reports[0].taken + reports[1].taken;
                rates = balancer.rebalance(interval, reports).to_vec();
            }
            let line = 10_000_000 * i128::from(interval) * steps;
            prop_assert!(sent > line * 98 / 100, "{} %", sent * 100 / line);
        }
    }

    #[test]
    fn slow_lines_are_rebalanced_less_often() {
        assert_eq!(interval(Rate::mbit(1000)), 200_000);
        assert_eq!(interval(Rate::mbit(10)), 2_422_400);
        assert_eq!(interval(Rate::mbit(1)), 10_000_000);
    }
}
