//! Answers requests that reserve a rate and a delay.

use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_live::clock;
use fairgate_run_api::{
    ErrorTermsStatus, ExcessStatus, Mistake, Refused, ReservationStatus, Reservations, Reserve, ReserveOrder,
    TermsStatus,
};

use super::Run;
use super::changes::Refusal;
use super::reserver::{LIFETIMES, Order, ReserveError};
use crate::reserve::{Excess, Reservation, Reservations as Table, Terms, check_place};

impl Run {
    /// Carries out an order, for `who`.
    pub(super) fn reserve(&self, who: &str, reserve: Reserve) -> Result<Reservations, Refused> {
        let Reserve {
            from,
            order,
            if_revision: expected,
        } = reserve;
        let what = serde_json::to_string(&order).unwrap_or_default();
        let is_read_only = matches!(order, ReserveOrder::List);
        let from = from.as_deref();
        let target = Target { from, expected };
        let done = match order {
            ReserveOrder::List => self.list(from),
            ReserveOrder::Add(terms) => self.with_terms(target, terms, Order::Add),
            ReserveOrder::Change(terms) => self.with_terms(target, terms, Order::Change),
            ReserveOrder::Withdraw { name } => self.order(target, &name, Order::Withdraw),
            ReserveOrder::Refresh { name } => self.order(target, &name, Order::Refresh),
        };
        let done = done.map_err(|Refusal(refused)| refused);
        if !is_read_only {
            let outcome = match &done {
                Ok(done) => format!("done, revision {}", done.revision),
                Err(refused) => refused.to_string(),
            };
            self.0.audit.note(who, &format!("reserve {what}"), outcome);
        }
        done
    }

    fn list(&self, from: Option<&str>) -> Result<Reservations, Refusal> {
        let sides = match from {
            None => 0..2,
            Some(_) => self.side(from).map(|side| side..side + 1)?,
        };
        let now = clock::now();
        let of_side = |side: usize| {
            let name = self.name(side);
            let reservations = self.reserver().of(side);
            let shown = reservations
                .iter()
                .map(|(own, found)| shown(own, found, &name, now));
            shown.collect::<Vec<_>>()
        };
        let revision = self.plan().revision;
        Ok(Reservations {
            revision,
            reservations: sides.flat_map(of_side).collect(),
        })
    }

    fn with_terms(
        &self,
        target: Target<'_>,
        terms: TermsStatus,
        order: impl FnOnce(Terms) -> Order,
    ) -> Result<Reservations, Refusal> {
        let name = terms.name.clone();
        let longest = self.reserver().longest();
        let terms = read(terms, longest)?;
        self.order(target, &name, order(terms))
    }

    fn order(&self, target: Target<'_>, name: &str, order: Order) -> Result<Reservations, Refusal> {
        let side = self.side(target.from)?;
        let done = self.reserver().carry_out(side, name, order, target.expected);
        let (kept, revision) = done.map_err(|error| match error {
            ReserveError::Refused(refusal) => Refusal::from(refusal),
            ReserveError::Reload(error) => Refusal::from(error),
        })?;
        Ok(Reservations {
            revision,
            reservations: self.one(&kept, name, side),
        })
    }

    fn one(&self, kept: &Table, name: &str, side: usize) -> Vec<ReservationStatus> {
        let found = kept.get(name).into_iter();
        found
            .map(|found| shown(name, found, &self.name(side), clock::now()))
            .collect()
    }

    fn name(&self, side: usize) -> String {
        self.plan().ends[side].title().to_owned()
    }

    /// Returns the direction from this interface. Without one, it is the only direction whose tree can hold
    /// reservations.
    fn side(&self, from: Option<&str>) -> Result<usize, Refusal> {
        let plan = self.plan();
        let names = [plan.ends[0].title(), plan.ends[1].title()];
        let of_both = format!("say which one: --from {} or --from {}", names[0], names[1]);
        let Some(from) = from else {
            let possible = plan.queues.each_ref().map(check_place);
            let mut fit = (0..2).filter(|&side| possible[side].is_ok());
            return match (fit.next(), fit.next()) {
                (Some(only), None) => Ok(only),
                (Some(_), Some(_)) => {
                    let message = "reservations are possible in both directions".to_owned();
                    Err(Mistake::new(message, &of_both).into())
                }
                _ => {
                    let [left, right] = possible;
                    // Of a direction without a tree there is nothing to say.
                    let why = match plan.shaped() {
                        [false, true] => right,
                        _ => left,
                    };
                    Err(why.expect_err("neither is possible").into())
                }
            };
        };
        let known = names.iter().position(|name| *name == from);
        known.ok_or_else(|| Mistake::new(format!("no direction is from `{from}`"), of_both).into())
    }
}

/// Which direction is asked for, and of which revision of the trees.
#[derive(Clone, Copy)]
struct Target<'a> {
    from: Option<&'a str>,
    expected: Option<u64>,
}

/// Reads terms as a client sent them.
fn read(terms: TermsStatus, longest: u32) -> Result<Terms, Mistake> {
    let rate = Rate::from_bits_per_second(terms.rate_bps)
        .map_err(|error| Mistake::new(format!("the rate: {error}"), "name a rate like 1mbit"))?;
    let peak = terms.peak_bps.map(Rate::from_bits_per_second).transpose();
    let peak =
        peak.map_err(|error| Mistake::new(format!("the peak rate: {error}"), "name a rate like 5mbit"))?;
    let lifetime = Duration::from_millis(terms.lifetime_ms);
    if !LIFETIMES.contains(&lifetime) {
        let message = format!("a lifetime of {lifetime:?} is not between 1 s and 136 years");
        return Err(Mistake::new(message, "name a time like 90s"));
    }
    let max_packet = terms.max_packet_bytes.unwrap_or(longest);
    let min_packet = terms.min_packet_bytes;
    Ok(Terms {
        rate,
        burst: terms.burst_bytes,
        peak,
        min_packet: min_packet.unwrap_or(Terms::MIN_PACKET.min(max_packet)),
        max_packet,
        delay: terms.delay_us.map(Duration::from_micros),
        filter: terms.filter,
        excess: match terms.excess {
            None | Some(ExcessStatus::BestEffort) => Excess::BestEffort,
            Some(ExcessStatus::Drop) => Excess::Drop,
        },
        lifetime,
    })
}

fn shown(name: &str, reservation: &Reservation, from: &str, now: Time) -> ReservationStatus {
    let Reservation {
        terms,
        class,
        grant,
        expires,
    } = reservation;
    ReservationStatus {
        from: from.to_owned(),
        class: Table::path(*class),
        terms: TermsStatus {
            name: name.to_owned(),
            rate_bps: terms.rate.bits_per_second(),
            burst_bytes: terms.burst,
            peak_bps: terms.peak.map(Rate::bits_per_second),
            min_packet_bytes: Some(terms.min_packet),
            max_packet_bytes: Some(terms.max_packet),
            delay_us: terms.delay.map(|delay| delay.as_micros() as u64),
            filter: terms.filter.clone(),
            excess: Some(match terms.excess {
                Excess::BestEffort => ExcessStatus::BestEffort,
                Excess::Drop => ExcessStatus::Drop,
            }),
            lifetime_ms: terms.lifetime.as_millis() as u64,
        },
        reserved_bps: grant.rate,
        promised_us: grant.delay.as_nanos() as f64 / 1e3,
        error_terms: grant.error_terms.ok().map(|terms| ErrorTermsStatus {
            c_bytes: terms.c,
            d_us: terms.d.as_nanos().div_ceil(1_000) as u64,
        }),
        no_error_terms: grant.error_terms.err().map(|why| why.to_string()),
        expires_s: expires.nanos_since(now) as f64 * 1e-9,
    }
}
