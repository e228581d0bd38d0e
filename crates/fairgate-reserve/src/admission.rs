//! Admission control: what each reservation needs of the scheduler, and whether all of them fit.

use std::collections::BTreeSet;
use std::time::Duration;

use fairgate::hfsc::ServiceCurve;
use fairgate_theory::guarantees::bounds::{Promises, System};
use fairgate_theory::guarantees::measures::Weights;
use fairgate_theory::guarantees::token_bucket::{blocking, delay_by_curve, delay_by_index, rounded_up};

use crate::place::{Kind, Place};
use crate::refusal::Refusal;
use crate::{Grant, Terms};

/// The largest weight of a class.
const MAX_WEIGHT: u32 = 1 << 16;
/// Slopes are whole bytes per second.
const SLOPE_STEP: u64 = 8;

/// A reservation that wants to be admitted.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'t> {
    pub(crate) name: &'t str,
    pub(crate) terms: &'t Terms,
}

/// What is not reserved.
pub(crate) struct Rest<'t> {
    pub(crate) place: &'t Place<'t>,
    /// The classes that are reserved, or were: nothing is left for them.
    pub(crate) reserved: BTreeSet<u16>,
    /// The longest packet of the link, bytes.
    pub(crate) longest: u32,
}

/// Admits all of `wishes` or none. The refusal is about the reservation `asking`.
pub(crate) fn admit(rest: &Rest<'_>, wishes: &[Wish<'_>], asking: &str) -> Result<Vec<Grant>, Refusal> {
    for wish in wishes {
        check(wish.terms, rest.place, rest.longest)?;
    }
    check_rates(rest, wishes, asking)?;
    fit(rest, wishes).ok_or_else(|| too_short(rest, wishes, asking))
}

/// Returns what all reservations get, or `None` if not all can be kept.
fn fit(rest: &Rest<'_>, wishes: &[Wish<'_>]) -> Option<Vec<Grant>> {
    let Rest {
        place,
        reserved,
        longest,
    } = rest;
    match &place.kind {
        Kind::Curves => by_curves(place, wishes, &place.other_curves(reserved), *longest),
        Kind::Weights {
            promises,
            has_max_packet,
        } => {
            let others = place.other_weights(reserved);
            let mut shares = Shares::new(place, promises, wishes, others, *longest);
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

fn check(terms: &Terms, place: &Place<'_>, longest: u32) -> Result<(), Refusal> {
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
    if terms.burst < terms.max_packet.into() {
        let what = format!(
            "a burst of {} bytes has no room for a packet of {}",
            terms.burst, terms.max_packet
        );
        return refused(what, "raise the burst, or lower the longest packet");
    }
    // A bucket that takes longer than that to send is no reservation, and larger ones overflow the bounds.
    if terms.burst > 1 << 32 {
        let what = format!("a burst of {} bytes is more than 4 GB", terms.burst);
        return refused(what, "lower the burst");
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
    if terms.filter.contains(['\n', '\r']) {
        return refused(
            "a filter is one line".to_owned(),
            "write all conditions in one line",
        );
    }
    let shortest = rounded_up(blocking(place.link, longest));
    match terms.delay {
        // Curves have whole microseconds.
        Some(delay) if delay < shortest + Duration::from_micros(1) => Err(Refusal::TooShort {
            wanted: delay,
            shortest,
        }),
        _ => Ok(()),
    }
}

/// Checks that the link has the token rates of all reservations.
fn check_rates(rest: &Rest<'_>, wishes: &[Wish<'_>], asking: &str) -> Result<(), Refusal> {
    let place = rest.place;
    let link = place.link.bits_per_second();
    let curves = match place.kind {
        Kind::Curves => place.other_curves(&rest.reserved),
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
    place: &Place<'_>,
    wishes: &[Wish<'_>],
    others: &[ServiceCurve],
    longest: u32,
) -> Option<Vec<Grant>> {
    let blocked = rounded_up(blocking(place.link, longest));
    let curve = |terms: &Terms| {
        let linear = ServiceCurve::linear(terms.rate.bits_per_second().next_multiple_of(SLOPE_STEP));
        let Some(delay) = terms.delay else { return linear };
        // In configurations the first piece has whole microseconds.
        let first = Duration::from_micros(delay.saturating_sub(blocked).as_micros() as u64);
        let steep = ServiceCurve::of_packet(terms.burst, first.min(ServiceCurve::LONGEST), linear.m2);
        match steep.m1 > linear.m2 {
            true => steep,
            // The rate alone sends the bucket soon enough.
            false => linear,
        }
    };
    let own = wishes.iter().map(|wish| curve(wish.terms));
    let curves: Vec<ServiceCurve> = others.iter().copied().chain(own).collect();
    let link = ServiceCurve::linear(place.link.bits_per_second());
    let is_too_steep = |curve: &ServiceCurve| curve.m1 > ServiceCurve::STEEPEST;
    if link.exceeded_by(&curves).is_some() || curves.iter().any(is_too_steep) {
        return None;
    }
    let grant = |wish: &Wish<'_>| {
        let terms = wish.terms;
        let curve = curve(terms);
        let delay = rounded_up(delay_by_curve(&curve, terms.burst, place.link, longest));
        let settings = match curve.d.is_zero() {
            true => format!("rt={}bit", curve.m2),
            false => format!("rt={}bit:{}us:{}bit", curve.m1, curve.d.as_micros(), curve.m2),
        };
        Grant {
            rate: curve.m2,
            delay,
            settings,
        }
    };
    Some(wishes.iter().map(grant).collect())
}

/// Reservations in a scheduler with weights. All weights of reservations are raised until each has its share.
struct Shares<'t> {
    place: &'t Place<'t>,
    promises: &'static Promises,
    wishes: &'t [Wish<'t>],
    /// The weights of the reservations, then those of all other classes.
    weights: Vec<u32>,
    max_packets: Vec<u32>,
}

impl<'t> Shares<'t> {
    fn new(
        place: &'t Place<'t>,
        promises: &'static Promises,
        wishes: &'t [Wish<'t>],
        others: Vec<u32>,
        longest: u32,
    ) -> Shares<'t> {
        let own = wishes.iter().map(|wish| wish.terms.max_packet);
        let max_packets = own.chain(others.iter().map(|_| longest)).collect();
        let weights = wishes.iter().map(|_| 1).chain(others).collect();
        Shares {
            place,
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
            rate: self.place.link,
        }
    }

    /// Returns the rate and the delay that a reservation has with these weights.
    fn of(&self, flow: usize) -> (u64, Duration) {
        let system = self.system();
        let burst = self.wishes[flow].terms.burst;
        let delay = delay_by_index(self.promises, &system, flow, burst);
        let sum: u128 = self.weights.iter().copied().map(u128::from).sum();
        let link = u128::from(self.place.link.bits_per_second());
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
            Grant {
                rate,
                delay,
                settings,
            }
        };
        (0..self.wishes.len()).map(grant).collect()
    }
}
