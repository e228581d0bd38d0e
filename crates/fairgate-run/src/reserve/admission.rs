//! Admission control: what each reservation needs of the scheduler, and whether all of them fit.

use std::collections::BTreeSet;
use std::time::Duration;

use fairgate::Rate;
use fairgate::hfsc::ServiceCurve;
use fairgate_theory::guarantees::bounds;
use fairgate_theory::guarantees::bounds::{Promises, System};
use fairgate_theory::guarantees::measures::{Measure, Weights};
use fairgate_theory::guarantees::token_bucket::{
    ArrivalCurve, blocking, delay_by_curve, delay_by_index, error_terms_by_curve, error_terms_by_index,
    rounded_up,
};

use super::refusal::Refusal;
use super::reservable::{Kind, ReservableTree};
use super::{ErrorTerms, Excess, Grant, NoErrorTerms, SHORTEST, Terms};

/// The largest weight of a class.
const MAX_WEIGHT: u32 = 1 << 16;
/// Slopes are whole bytes per second.
const SLOPE_STEP: u64 = 8;
/// `hfsc` computes deadlines with inverse slopes, like Linux: whole parts, of which a second has so many for
/// each byte per second. It rounds them up.
const INVERSE_PARTS: u64 = 15_625_000 << 14;
/// The tick of its clock, ns.
const TICK: u64 = 64;

/// A reservation that wants to be admitted.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'t> {
    pub(crate) name: &'t str,
    pub(crate) terms: &'t Terms,
}

/// What is not reserved.
pub(crate) struct Rest<'t> {
    pub(crate) tree: &'t ReservableTree<'t>,
    /// The classes that are reserved, or were: nothing is left for them.
    pub(crate) reserved: BTreeSet<u32>,
    /// The longest packet of the link, bytes.
    pub(crate) longest: u32,
}

/// Admits all of `wishes` or none. The refusal is about the reservation `asking`.
pub(crate) fn admit(rest: &Rest<'_>, wishes: &[Wish<'_>], asking: &str) -> Result<Vec<Grant>, Refusal> {
    for wish in wishes {
        check(wish.terms, rest.tree, rest.longest)?;
    }
    check_rates(rest, wishes, asking)?;
    fit(rest, wishes).ok_or_else(|| too_short(rest, wishes, asking))
}

/// Returns what all reservations get, or `None` if not all can be kept.
fn fit(rest: &Rest<'_>, wishes: &[Wish<'_>]) -> Option<Vec<Grant>> {
    let Rest {
        tree,
        reserved,
        longest,
    } = rest;
    match &tree.kind {
        Kind::Curves => by_curves(tree, wishes, &tree.other_curves(reserved), *longest),
        Kind::Weights {
            promises,
            has_max_packet,
        } => {
            let others = tree.other_weights(reserved);
            let mut shares = Shares::new(tree, promises, wishes, others, *longest);
            shares.raise().then(|| shares.grants(*has_max_packet))
        }
    }
}

/// Returns why not all reservations can be kept, although the link has all token rates: the shortest delay
/// that `asking` could be promised beside the others, if there is one.
fn too_short(rest: &Rest<'_>, wishes: &[Wish<'_>], asking: &str) -> Refusal {
    let own = wishes.iter().position(|wish| wish.name == asking);
    let Some((own, wanted)) = own.and_then(|own| Some((own, wishes[own].terms.delay?))) else {
        return Refusal::Others;
    };
    let promised = |delay: Option<Duration>| {
        let terms = Terms {
            delay,
            ..wishes[own].terms.clone()
        };
        let mut changed: Vec<Wish<'_>> = wishes.to_vec();
        changed[own].terms = &terms;
        Some(fit(rest, &changed)?[own].delay)
    };
    let Some(mut best) = promised(None) else {
        return Refusal::Others;
    };
    let mut refused = wanted;
    // To a tenth of a percent.
    while best > refused && best - refused > best / 1_000 {
        let middle = refused + (best - refused) / 2;
        match promised(Some(middle)) {
            Some(_) => best = middle,
            None => refused = middle,
        }
    }
    Refusal::Delay { wanted, best }
}

fn check(terms: &Terms, tree: &ReservableTree<'_>, longest: u32) -> Result<(), Refusal> {
    let refused = |what: String, help| Err(Refusal::Terms { what, help });
    if terms.max_packet == 0 || terms.max_packet > longest {
        let what = format!(
            "a longest packet of {} bytes is not 1 to {longest}",
            terms.max_packet
        );
        return refused(
            what,
            "name the length of the flow's longest packet, with its Ethernet header",
        );
    }
    if terms.min_packet < SHORTEST || terms.min_packet > terms.max_packet {
        let what = format!(
            "a minimum policed unit of {} bytes is not {SHORTEST} to {}",
            terms.min_packet, terms.max_packet
        );
        return refused(
            what,
            "name the length of the flow's shortest packet, or leave it out",
        );
    }
    if terms.burst < terms.max_packet.into() {
        let what = format!(
            "a burst of {} bytes has no room for a packet of {}",
            terms.burst, terms.max_packet
        );
        return refused(what, "raise the burst, or lower the longest packet");
    }
    // A bucket that takes longer than that to send is no reservation, and policers have no larger ones.
    if terms.burst > u32::MAX.into() {
        let what = format!("a burst of {} bytes is more than 4 GB", terms.burst);
        return refused(what, "lower the burst");
    }
    if let Some(peak) = terms.peak.filter(|peak| *peak < terms.rate) {
        let what = format!("a peak rate of {peak} is below the token rate of {}", terms.rate);
        return refused(
            what,
            "name the rate at which the flow's bursts come, or leave it out",
        );
    }
    if terms.excess == Excess::BestEffort && tree.scheduler.classifier().default.is_none() {
        let what = format!(
            "`{}` has no default class that excess packets could go to",
            tree.scheduler.discipline()
        );
        return refused(what, "set its `default`, or let excess packets be dropped");
    }
    if terms.lifetime.is_zero() {
        return refused(
            "a lifetime of 0 ends at once".to_owned(),
            "name a time, like 90s, and refresh the reservation before it ends",
        );
    }
    if terms.filter.trim().is_empty() {
        return refused(
            "no filter finds the packets of the flow".to_owned(),
            "name conditions, like destination_port=5004 protocol=udp",
        );
    }
    if let Some(key) = outcome(&terms.filter) {
        return refused(
            format!("`{key}` is no condition: the reservation decides what becomes of the packets"),
            "leave it out",
        );
    }
    if terms.filter.contains(['\n', '\r']) {
        return refused(
            "a filter is one line".to_owned(),
            "write all conditions in one line",
        );
    }
    let shortest = rounded_up(blocking(tree.link, longest));
    match terms.delay {
        // Curves have whole microseconds.
        Some(delay) if delay < shortest + Duration::from_micros(1) => Err(Refusal::TooShort {
            wanted: delay,
            shortest,
        }),
        _ => Ok(()),
    }
}

/// Returns a key of the filter by which packets would go elsewhere than to the reservation's class.
fn outcome(filter: &str) -> Option<&str> {
    const OUTCOMES: [&str; 6] = ["class", "police", "drop", "goto", "chain", "at"];
    let mut keys = filter
        .split_whitespace()
        .filter_map(|word| word.split('=').next());
    keys.find(|key| OUTCOMES.contains(&key.split('.').next().unwrap_or_default()))
}

/// Checks that the link has the token rates of all reservations.
fn check_rates(rest: &Rest<'_>, wishes: &[Wish<'_>], asking: &str) -> Result<(), Refusal> {
    let tree = rest.tree;
    let link = tree.link.bits_per_second();
    let curves = match tree.kind {
        Kind::Curves => tree.other_curves(&rest.reserved),
        Kind::Weights { .. } => Vec::new(),
    };
    let others = wishes.iter().filter(|wish| wish.name != asking);
    let rates = others.map(|wish| wish.terms.rate.bits_per_second());
    let used = rates
        .chain(curves.iter().map(|curve| curve.m2))
        .fold(0, u64::saturating_add);
    let left = link.saturating_sub(used);
    let asked = wishes.iter().find(|wish| wish.name == asking);
    let needed = asked.map_or(0, |wish| wish.terms.rate.bits_per_second());
    match needed > left || used > link {
        true => Err(Refusal::Capacity { needed, left, link }),
        false => Ok(()),
    }
}

/// Returns what reservations get as real-time curves beside those of the other classes.
fn by_curves(
    tree: &ReservableTree<'_>,
    wishes: &[Wish<'_>],
    others: &[ServiceCurve],
    longest: u32,
) -> Option<Vec<Grant>> {
    let blocked = rounded_up(blocking(tree.link, longest));
    let promises = wishes
        .iter()
        .map(|wish| Promise::new(wish.terms, tree.link, blocked));
    let promises: Vec<Promise> = promises.collect();
    let own = promises.iter().map(Promise::configured);
    let curves: Vec<ServiceCurve> = others.iter().copied().chain(own).collect();
    let link = ServiceCurve::linear(tree.link.bits_per_second());
    let is_too_steep = |curve: &ServiceCurve| curve.m1 > ServiceCurve::STEEPEST;
    if link.exceeded_by(&curves).is_some() || curves.iter().any(is_too_steep) {
        return None;
    }
    let grant = |(promise, wish): (&Promise, &Wish<'_>)| {
        let Promise { curve, arrivals } = promise;
        let configured = promise.configured();
        let errors = error_terms_by_curve(curve, wish.terms.max_packet, tree.link, longest);
        let settings = match configured.d.is_zero() {
            true => format!("rt={}bit", configured.m2),
            false => format!(
                "rt={}bit:{}us:{}bit",
                configured.m1,
                configured.d.as_micros(),
                configured.m2
            ),
        };
        Grant {
            rate: curve.m2,
            delay: rounded_up(delay_by_curve(curve, arrivals, tree.link, longest)),
            error_terms: errors.map(whole).ok_or(NoErrorTerms::TwoSlopes),
            settings,
        }
    };
    Some(promises.iter().zip(wishes).map(grant).collect())
}

/// The real-time curve of a reservation, and what it counts as sent by the flow.
struct Promise {
    curve: ServiceCurve,
    arrivals: ArrivalCurve,
}

impl Promise {
    fn new(terms: &Terms, link: Rate, blocked: Duration) -> Promise {
        let arrivals = terms.arrivals();
        let linear = |arrivals: &ArrivalCurve| {
            let bits = arrivals.rate().bits_per_second();
            ServiceCurve::linear(bits.next_multiple_of(SLOPE_STEP))
        };
        let of_rate = Promise {
            curve: linear(&arrivals),
            arrivals,
        };
        let Some(delay) = terms.delay else {
            return of_rate;
        };
        // In configurations the first piece has whole microseconds.
        let micros = delay.saturating_sub(blocked).as_micros() as u64;
        let mut curve = within(&arrivals, micros, linear(&arrivals));
        if curve.d.is_zero() {
            return of_rate;
        }
        // The first slope follows from what is lost, and what is lost follows from the first slope.
        loop {
            let steepest = (2 * curve.m1).min(link.bits_per_second()).max(curve.m1);
            let counted = counted(&arrivals, terms.min_packet, steepest);
            curve = within(&counted, micros, linear(&counted));
            if curve.m1 <= steepest || steepest >= link.bits_per_second() {
                return Promise {
                    curve,
                    arrivals: counted,
                };
            }
        }
    }

    /// Returns the curve for the configuration. Its slopes are a little higher: with inverse slopes that are
    /// rounded up, a flow that never pauses would else be served a little slower than it sends.
    fn configured(&self) -> ServiceCurve {
        let slope = |bits: u64| match INVERSE_PARTS.checked_div(bits / SLOPE_STEP) {
            Some(parts) if parts > 0 => SLOPE_STEP * INVERSE_PARTS.div_ceil(parts),
            _ => bits,
        };
        ServiceCurve {
            m1: slope(self.curve.m1),
            d: self.curve.d,
            m2: slope(self.curve.m2),
        }
    }
}

/// Returns what a class with two slopes counts of a flow: more than it sends.
///
/// When a flow begins to send after a pause, `hfsc` computes where its curve goes on, in whole bytes and
/// ticks like Linux: it loses less than two bytes, and what the first slope sends in a tick. A flow that uses
/// all of its bucket for a long time would lose this again and again, and be late. It loses it at most once
/// for each packet, and a packet counts `m` bytes at least. So it is enough if each packet is taken for that
/// much longer.
fn counted(arrivals: &ArrivalCurve, min_packet: u32, steepest: u64) -> ArrivalCurve {
    /// Parts of a byte.
    const PARTS: u128 = 1_000;
    let in_a_tick = (u128::from(steepest) * u128::from(TICK) * PARTS).div_ceil(8_000_000_000);
    let packet = u128::from(min_packet) * PARTS;
    let longer = |number: u64| {
        let longer = (u128::from(number) * (packet + 2 * PARTS + in_a_tick)).div_ceil(packet);
        u64::try_from(longer).unwrap_or(u64::MAX)
    };
    let rate = |rate: Rate| Rate::from_bits_per_second(longer(rate.bits_per_second())).unwrap_or(rate);
    let peak = arrivals
        .peak()
        .map(|(peak, bytes)| (rate(peak), longer(bytes.into()).min(u32::MAX.into()) as u32));
    ArrivalCurve::new(rate(arrivals.rate()), longer(arrivals.burst()), peak)
}

/// Returns the flattest curve that reaches what has arrived at any time within so many microseconds, and goes
/// on with the slope of `linear`.
///
/// In the time `T` it reaches a packet that came alone or the bucket that came at once. With a peak rate the
/// bucket is empty only at `t`; up to then the flow has sent `A`, which the curve reaches by `t + T`. So the
/// first slope is at least `M / T` and `A / (t + T)`, and the bend is where the second slope meets what has
/// to be reached later.
fn within(arrivals: &ArrivalCurve, micros: u64, linear: ServiceCurve) -> ServiceCurve {
    let whole = |number: u64| Measure::from_integer(number.into());
    // Slopes are bits per second, bytes are counted as bits times 10^9.
    let bits = |bytes: Measure| bytes * Measure::from_integer(8_000_000_000);
    let slowest = whole(linear.m2);
    // Returns slope and duration of the first piece, if there is one.
    let first = |at_once: Measure, corner: u64, all: Measure, time: Measure| {
        let until = time + whole(corner);
        let needed = (bits(at_once) / time).max(bits(all) / until) / whole(SLOPE_STEP);
        let slope = needed.ceil() * whole(SLOPE_STEP);
        let beyond = bits(all) - slowest * until;
        (slope > slowest && beyond > whole(0)).then(|| {
            let bend = beyond / (slope - slowest) / whole(1_000);
            (slope, bend.ceil())
        })
    };
    let time = whole(micros.min(ServiceCurve::LONGEST.as_micros() as u64) * 1_000);
    let burst = whole(arrivals.burst());
    let corner = arrivals.peak_nanos();
    let longest = whole(ServiceCurve::LONGEST.as_micros() as u64);
    let with_peak = first(whole(arrivals.at_once()), corner, arrivals.in_long(corner), time);
    // If the burst takes too long, or so long that the rounded second slope alone reaches its end, the curve
    // is that without a peak rate: it has its bend at `T`. Without a first piece the rate alone is enough.
    let with_peak = with_peak.filter(|(_, bend)| *bend <= longest);
    let Some((slope, bend)) = with_peak.or_else(|| first(burst, 0, burst, time)) else {
        return linear;
    };
    let number = |measure: Measure| u64::try_from(measure.to_integer()).unwrap_or(u64::MAX);
    ServiceCurve {
        m1: number(slope),
        d: Duration::from_micros(number(bend)),
        m2: linear.m2,
    }
}

fn whole(terms: bounds::ErrorTerms) -> ErrorTerms {
    ErrorTerms {
        c: u64::try_from(terms.bytes.ceil().to_integer()).unwrap_or(u64::MAX),
        d: rounded_up(terms.nanos),
    }
}

/// Reservations in a scheduler with weights. All weights of reservations are raised until each has its share.
struct Shares<'t> {
    tree: &'t ReservableTree<'t>,
    promises: &'static Promises,
    wishes: &'t [Wish<'t>],
    /// The weights of the reservations, then those of all other classes.
    weights: Vec<u32>,
    max_packets: Vec<u32>,
}

impl<'t> Shares<'t> {
    fn new(
        tree: &'t ReservableTree<'t>,
        promises: &'static Promises,
        wishes: &'t [Wish<'t>],
        others: Vec<u32>,
        longest: u32,
    ) -> Shares<'t> {
        let own = wishes.iter().map(|wish| wish.terms.max_packet);
        let max_packets = own.chain(others.iter().map(|_| longest)).collect();
        let weights = wishes.iter().map(|_| 1).chain(others).collect();
        Shares {
            tree,
            promises,
            wishes,
            weights,
            max_packets,
        }
    }

    fn system(&self) -> System {
        System {
            weights: Weights::new(self.weights.clone()),
            max_packets: self.max_packets.clone(),
            quanta: Vec::new(),
            rate: self.tree.link,
        }
    }

    /// Returns the rate and the delay that a reservation has with these weights.
    fn of(&self, flow: usize) -> (u64, Duration) {
        let system = self.system();
        let arrivals = self.wishes[flow].terms.arrivals();
        let delay = delay_by_index(self.promises, &system, flow, &arrivals);
        let sum: u128 = self.weights.iter().copied().map(u128::from).sum();
        let link = u128::from(self.tree.link.bits_per_second());
        let rate = link * u128::from(self.weights[flow]) / sum;
        (rate as u64, delay.map_or(Duration::MAX, rounded_up))
    }

    fn is_kept(&self, flow: usize) -> bool {
        let (terms, (rate, delay)) = (self.wishes[flow].terms, self.of(flow));
        rate >= terms.rate.bits_per_second() && terms.delay.is_none_or(|wanted| delay <= wanted)
    }

    /// Raises weights until all reservations are kept. A raised weight lowers the shares of the others, so
    /// they are looked at again. Weights only grow, so this ends: at the least weights, or with false if no
    /// weights are enough.
    fn raise(&mut self) -> bool {
        while let Some(lacking) = (0..self.wishes.len()).find(|&flow| !self.is_kept(flow)) {
            if !self.raise_one(lacking) {
                return false;
            }
        }
        true
    }

    /// Raises the weight of a reservation until it is kept. Returns false if no weight is enough.
    fn raise_one(&mut self, flow: usize) -> bool {
        let (mut low, mut high) = (self.weights[flow], self.weights[flow]);
        while !self.is_kept(flow) {
            if high == MAX_WEIGHT {
                return false;
            }
            low = high;
            high = high.saturating_mul(2).min(MAX_WEIGHT);
            self.weights[flow] = high;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            self.weights[flow] = middle;
            match self.is_kept(flow) {
                true => high = middle,
                false => low = middle,
            }
        }
        self.weights[flow] = high;
        true
    }

    fn grants(&self, has_max_packet: bool) -> Vec<Grant> {
        let grant = |flow: usize| {
            let (rate, delay) = self.of(flow);
            let weight = self.weights[flow];
            let settings = match has_max_packet {
                true => format!("weight={weight} max_packet={}", self.max_packets[flow]),
                false => format!("weight={weight}"),
            };
            let errors = error_terms_by_index(self.promises, &self.system(), flow);
            Grant {
                rate,
                delay,
                error_terms: errors.map(whole).ok_or(NoErrorTerms::OtherForm),
                settings,
            }
        };
        (0..self.wishes.len()).map(grant).collect()
    }
}
