//! The rate of one direction of a link: constant, by a schedule, or by a recorded trace.

use std::sync::Arc;
use std::time::Duration;

use fairgate::{Rate, Time};

use crate::scenario::LONGEST;

/// The rate of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineRate {
    /// Transmission takes no time, so that only a shaper can build a queue.
    #[default]
    Unlimited,
    /// Always the same rate.
    Constant(Rate),
    /// A rate that changes at given times.
    Schedule(Schedule),
    /// Opportunities to deliver bytes, recorded from a real link.
    Trace(Trace),
}

impl From<Rate> for LineRate {
    fn from(rate: Rate) -> LineRate {
        LineRate::Constant(rate)
    }
}

/// `None` is [`LineRate::Unlimited`].
impl From<Option<Rate>> for LineRate {
    fn from(rate: Option<Rate>) -> LineRate {
        rate.map_or(LineRate::Unlimited, LineRate::Constant)
    }
}

impl LineRate {
    /// Reads a recorded line: a trace of mahimahi, or times with rates. In the second case each line has a
    /// time in seconds and a rate in Mbit/s, and a line of names may be the first one, as pensieve, the FCC's
    /// traces in its form, and measurements of Starlink have them. A third column is the delay of one way in
    /// ms. A rate and a delay hold until the next time, and the last ones as long as those before. Then the
    /// line starts anew.
    pub(crate) fn recorded(text: &str) -> Result<LineRate, WrongLine> {
        let columns = |line: &str| {
            line.split([',', ' ', '\t', ';'])
                .filter(|part| !part.is_empty())
                .count()
        };
        let first = text.lines().find(|line| !line.trim().is_empty());
        match first.is_some_and(|line| columns(line.trim()) > 1) {
            true => Schedule::recorded(text).map(LineRate::Schedule),
            false => Trace::parse(text).map(LineRate::Trace),
        }
    }

    /// Returns the rate if it is constant.
    pub fn constant(&self) -> Option<Rate> {
        match self {
            LineRate::Constant(rate) => Some(*rate),
            _ => None,
        }
    }

    /// Returns what the line can transmit from `start` to `end`, in units of 10^-9 bits. `None` if
    /// transmission takes no time.
    pub(crate) fn nanobits(&self, start: Time, end: Time) -> Option<u128> {
        match self {
            LineRate::Unlimited => None,
            LineRate::Constant(rate) => {
                Some(u128::from(rate.bits_per_second()) * u128::from(end.nanos_since(start)))
            }
            LineRate::Schedule(schedule) => {
                Some(schedule.nanobits_until(end) - schedule.nanobits_until(start))
            }
            LineRate::Trace(trace) => {
                let opportunities = trace.opportunities_before(end) - trace.opportunities_before(start);
                Some(u128::from(opportunities) * u128::from(Trace::OPPORTUNITY) * 8_000_000_000)
            }
        }
    }
}

/// The largest number of phases of a schedule, and of opportunities of a trace: 128 MB.
const MOST_ENTRIES: usize = 1 << 24;

/// Rates with the times from which they hold. Copies share the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    phases: Arc<[(Time, Rate)]>,
    /// The time after which the schedule starts anew.
    period: Option<Time>,
    /// The recorded delay of each phase, ns. Empty if there is none.
    delays: Arc<[u64]>,
}

impl Schedule {
    /// Creates a schedule. The first phase begins at 0, and each one after the previous one. If `period` is
    /// given, the schedule starts anew after this time. Otherwise the last rate stays.
    ///
    /// # Errors
    /// Says which rule is broken, and the remedy after a semicolon.
    pub fn new(phases: &[(Duration, Rate)], period: Option<Duration>) -> Result<Schedule, String> {
        let Some((first, _)) = phases.first() else {
            return Err("the schedule is empty; write [[\"0s\", \"10mbit\"], [\"5s\", \"2mbit\"]]".into());
        };
        if phases.len() > MOST_ENTRIES {
            return Err(format!(
                "the schedule has {} rates, but must have at most {MOST_ENTRIES}; shorten it",
                phases.len()
            ));
        }
        if !first.is_zero() {
            return Err(format!(
                "the schedule begins at {first:?}, but must begin at 0; say which rate holds from \"0s\""
            ));
        }
        for pair in phases.windows(2) {
            let (before, after) = (pair[0].0, pair[1].0);
            if after <= before {
                return Err(format!(
                    "{after:?} comes after {before:?} in the schedule, but times must increase; sort the \
                     list, and give each time one rate"
                ));
            }
        }
        let last = phases[phases.len() - 1].0;
        if last > LONGEST || period.is_some_and(|period| period > LONGEST) {
            return Err("the schedule is longer than a year, which is the limit; shorten it".into());
        }
        if let Some(period) = period
            && period <= last
        {
            return Err(format!(
                "the schedule repeats after {period:?}, but its last rate begins at {last:?}; repeat it \
                 later than that"
            ));
        }
        let phases = phases.iter().map(|&(from, rate)| (Time::ZERO + from, rate));
        Ok(Schedule {
            phases: phases.collect(),
            period: period.map(|period| Time::ZERO + period),
            delays: Arc::default(),
        })
    }

    /// Reads lines of a time in seconds and a rate in Mbit/s, and perhaps a delay in ms.
    fn recorded(text: &str) -> Result<Schedule, WrongLine> {
        let mut phases: Vec<(Duration, Rate)> = Vec::new();
        let mut delays: Vec<u64> = Vec::new();
        let mut begin = None;
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |what: String, remedy: &'static str| WrongLine {
                line: number,
                what,
                remedy,
            };
            let parts: Vec<&str> = line
                .split([',', ' ', '\t', ';'])
                .filter(|part| !part.trim().is_empty())
                .map(str::trim)
                .collect();
            let is_text = parts.iter().all(|part| part.parse::<f64>().is_err());
            // The names of the columns.
            if parts.is_empty() || phases.is_empty() && is_text {
                continue;
            }
            let (time, rate, delay) = match parts[..] {
                [time, rate] if delays.is_empty() => (time, rate, None),
                [time, rate, delay] if delays.len() == phases.len() => (time, rate, Some(delay)),
                _ => {
                    let what = format!("`{}` has {} columns", excerpt(line), parts.len());
                    let remedy = "write a time in seconds and a rate in Mbit/s in each line, and perhaps a \
                                  delay in ms as the third number of each";
                    return Err(wrong(what, remedy));
                }
            };
            let number_of = |part: &str| part.parse::<f64>().ok().filter(|number| number.is_finite());
            if let Some(delay) = delay {
                let nanos =
                    number_of(delay).and_then(|millis| Duration::try_from_secs_f64(millis / 1e3).ok());
                let Some(nanos) = nanos.filter(|delay| *delay <= LONGEST) else {
                    let what = format!("`{delay}` is no delay");
                    return Err(wrong(what, "write milliseconds from 0 up, such as 31.5"));
                };
                delays.push(nanos.as_nanos() as u64);
            }
            let Some((time, rate)) = number_of(time)
                .zip(number_of(rate))
                .filter(|(_, rate)| *rate >= 0.0)
            else {
                let what = format!("`{}` is not a time and a rate", excerpt(line));
                return Err(wrong(what, "write seconds and Mbit/s, such as 12.5 3.2"));
            };
            let begin = *begin.get_or_insert(time);
            let from = Duration::try_from_secs_f64(time - begin).map_err(|_| {
                wrong(
                    format!("{time} s comes after {begin} s"),
                    "sort the lines by time",
                )
            })?;
            // A line that stands still.
            let bits = ((rate * 1e6).round() as u64).max(1);
            let rate = Rate::from_bits_per_second(bits).expect("it is above 0");
            phases.push((from, rate));
        }
        let last = phases.last().map_or(Duration::ZERO, |phase| phase.0);
        let before = phases.len().checked_sub(2).map(|at| phases[at].0);
        let period = before.map(|before| last + last.saturating_sub(before));
        let schedule = Schedule::new(&phases, period).map_err(|what| WrongLine {
            line: phases.len().max(1),
            what: what.split("; ").next().unwrap_or_default().to_owned(),
            remedy: "write one line for each time, in their order",
        })?;
        Ok(Schedule {
            delays: delays.into(),
            ..schedule
        })
    }

    /// Whether delays were recorded.
    pub(crate) fn has_delays(&self) -> bool {
        !self.delays.is_empty()
    }

    /// Returns the recorded delay at a time, ns.
    pub(crate) fn delay_at(&self, time: Time) -> u64 {
        let nanos = self
            .period
            .map_or(time.nanos(), |period| time.nanos() % period.nanos());
        let phase = self.phases.partition_point(|phase| phase.0.nanos() <= nanos) - 1;
        self.delays[phase]
    }

    /// Returns the greatest rate.
    pub fn fastest(&self) -> Rate {
        let rates = self.phases.iter().map(|phase| phase.1);
        rates
            .max_by_key(|rate| rate.bits_per_second())
            .expect("a schedule has at least one phase")
    }

    /// Returns the phases.
    pub(crate) fn phases(&self) -> &[(Time, Rate)] {
        &self.phases
    }

    /// Returns the time after which the schedule starts anew.
    pub(crate) fn period(&self) -> Option<Time> {
        self.period
    }

    pub(crate) fn nanobits_until(&self, end: Time) -> u128 {
        let of_round = |until: Time| -> u128 {
            let ends = self.phases[1..].iter().map(|phase| phase.0).chain([Time::MAX]);
            let phases = self.phases.iter().zip(ends);
            phases
                .map(|(&(from, rate), to)| {
                    u128::from(rate.bits_per_second()) * u128::from(until.min(to).nanos_since(from))
                })
                .sum()
        };
        match self.period {
            None => of_round(end),
            Some(period) => {
                let (rounds, rest) = (end.nanos() / period.nanos(), end.nanos() % period.nanos());
                u128::from(rounds) * of_round(period) + of_round(Time::from_nanos(rest))
            }
        }
    }
}

/// A recorded trace in the format of mahimahi (Netravali et al., USENIX ATC 2015): one line for each
/// opportunity to deliver [`Trace::OPPORTUNITY`] bytes, with its time in milliseconds. At its last time the
/// trace starts anew. Copies share the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    opportunities: Arc<[u64]>,
}

/// A line of a trace that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongLine {
    /// The number of the line, from 1 on.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) remedy: &'static str,
}

impl Trace {
    /// The bytes of an opportunity.
    pub const OPPORTUNITY: u32 = 1500;
    const MILLI: u64 = 1_000_000;

    /// Creates a trace from the times of its opportunities, ms.
    ///
    /// # Errors
    /// Says which rule is broken, and the remedy after a semicolon.
    pub fn new(millis: &[u64]) -> Result<Trace, String> {
        for (number, pair) in (2..).zip(millis.windows(2)) {
            check_order(Some(pair[0]), pair[1])
                .map_err(|(what, remedy)| format!("opportunity {number}: {what}; {remedy}"))?;
        }
        Trace::of(millis.to_vec()).map_err(|(what, remedy)| format!("{what}; {remedy}"))
    }

    fn of(millis: Vec<u64>) -> Result<Trace, (String, &'static str)> {
        match millis.last() {
            None => Err((
                "the trace is empty".to_owned(),
                "write one line for each opportunity, with its time in milliseconds",
            )),
            _ if millis.len() > MOST_ENTRIES => Err((
                format!("the trace has more than {MOST_ENTRIES} opportunities, which is the limit"),
                "cut off its end, or choose a slower trace",
            )),
            Some(0) => Err((
                "the trace ends at 0 ms, but must last for some time, because it repeats".to_owned(),
                "add opportunities at later times",
            )),
            Some(_) => Ok(Trace {
                opportunities: millis.into(),
            }),
        }
    }

    /// Reads a trace.
    pub(crate) fn parse(text: &str) -> Result<Trace, WrongLine> {
        let mut millis: Vec<u64> = Vec::new();
        let mut number = 0;
        let wrong = |line, (what, remedy)| WrongLine { line, what, remedy };
        for line in text.lines() {
            number += 1;
            let digits = line.trim_ascii_end();
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let milli = digits.parse().ok().filter(|_| is_number).ok_or_else(|| {
                let remedy = "write the time of an opportunity in whole milliseconds, such as 12";
                wrong(number, (format!("`{}` is not a time", excerpt(line)), remedy))
            })?;
            check_order(millis.last().copied(), milli).map_err(|mistake| wrong(number, mistake))?;
            millis.push(milli);
        }
        Trace::of(millis).map_err(|mistake| wrong(number.max(1), mistake))
    }

    /// Returns the number of opportunities in one round of the trace.
    pub(crate) fn len(&self) -> usize {
        self.opportunities.len()
    }

    /// Returns the time of an opportunity from the start of its round.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> u64 {
        self.opportunities[index] * Trace::MILLI
    }

    /// Returns the duration of a round, ns. It is above 0.
    pub(crate) fn round(&self) -> u64 {
        self.at(self.len() - 1)
    }

    /// Returns the index of the first opportunity of a round that is not before `nanos`.
    pub(crate) fn first_from(&self, nanos: u64) -> usize {
        let milli = nanos.div_ceil(Trace::MILLI);
        self.opportunities.partition_point(|&at| at < milli)
    }

    /// Returns the number of opportunities before `end`.
    fn opportunities_before(&self, end: Time) -> u64 {
        // The last opportunity of a round has the time at which the next round begins.
        let rounds = end.nanos().saturating_sub(1) / self.round();
        let rest = end.nanos() - rounds * self.round();
        rounds * self.len() as u64 + self.first_from(rest) as u64
    }
}

/// Checks that times do not decrease, and that they are within a year.
fn check_order(before: Option<u64>, milli: u64) -> Result<(), (String, &'static str)> {
    if let Some(before) = before.filter(|&before| milli < before) {
        return Err((
            format!("{milli} ms comes after {before} ms, but times must not decrease"),
            "sort the lines of the trace",
        ));
    }
    if u128::from(milli) > LONGEST.as_millis() {
        return Err((
            format!("{milli} ms is later than a year, which is the limit"),
            "write times in milliseconds from the start of the trace, not dates",
        ));
    }
    Ok(())
}

/// Returns the beginning of a line, for messages.
fn excerpt(line: &str) -> String {
    line.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_schedule_that_breaks_a_rule_is_rejected() {
        let second = Duration::from_secs;
        let rate = Rate::mbit(1);
        for (phases, period, rule) in [
            (vec![], None, "empty"),
            (vec![(second(1), rate)], None, "must begin at 0"),
            (vec![(second(0), rate), (second(0), rate)], None, "must increase"),
            (
                vec![(second(0), rate), (second(5), rate)],
                Some(second(5)),
                "repeats after 5s",
            ),
            (
                vec![(second(0), rate), (second(400 * 86_400), rate)],
                None,
                "longer than a year",
            ),
        ] {
            let error = Schedule::new(&phases, period).unwrap_err();
            assert!(error.contains(rule) && error.contains("; "), "{error}");
        }
    }

    #[test]
    fn a_recorded_line_may_have_times_and_rates() {
        let rate = |kbit: u64| Rate::from_bits_per_second(kbit * 1000).unwrap();
        let at = Duration::from_millis;
        let expected = Schedule::new(&[(at(0), rate(5200)), (at(1000), rate(3300))], Some(at(2000)));
        for text in [
            "0.0 5.2\n1.0 3.3\n",
            "time,mbps\n7,5.2\n8,3.3\n",
            "3\t5.2\n\n4\t3.3",
        ] {
            let found = LineRate::recorded(text);
            assert_eq!(
                found,
                Ok(LineRate::Schedule(expected.clone().unwrap())),
                "{text:?}"
            );
        }
        for (text, line, rule) in [
            ("0 5 20 1\n", 1, "has 4 columns"),
            ("0 5\n1 5 20\n", 2, "has 3 columns"),
            ("0 5 20\n1 5\n", 2, "has 2 columns"),
            ("0 5 -1\n", 1, "`-1` is no delay"),
            ("0 5\n1 x\n", 2, "is not a time and a rate"),
            ("5 5\n4 1\n", 2, "comes after"),
        ] {
            let error = LineRate::recorded(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error:?}");
            assert!(error.what.contains(rule), "{error:?}");
        }
        let Ok(LineRate::Schedule(delayed)) = LineRate::recorded("s,mbps,ms\n5,1,20\n6,1,31.5\n") else {
            panic!("a trace with delays is read");
        };
        assert!(delayed.has_delays());
        let of = |millis| delayed.delay_at(Time::from_millis(millis));
        assert_eq!(
            [0, 999, 1000, 1999, 2000, 3500].map(of),
            [
                20_000_000, 20_000_000, 31_500_000, 31_500_000, 20_000_000, 31_500_000
            ]
        );
        assert_eq!(
            LineRate::recorded("1\n2\n"),
            Trace::parse("1\n2\n").map(LineRate::Trace)
        );
    }

    #[test]
    fn a_wrong_line_of_a_trace_is_named() {
        for (text, line, rule) in [
            ("1\n2\nx\n", 3, "`x` is not a time"),
            ("1\n\n2\n", 2, "`` is not a time"),
            ("1\n+2\n", 2, "is not a time"),
            ("5\n4\n", 2, "must not decrease"),
            ("0\n0\n", 2, "ends at 0 ms"),
            ("", 1, "is empty"),
            ("1\n1500000000000\n", 2, "later than a year"),
            ("99999999999999999999999\n", 1, "is not a time"),
        ] {
            let error = Trace::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error:?}");
            assert!(error.what.contains(rule), "{error:?}");
        }
        assert_eq!(
            Trace::parse("0\r\n3\r\n3\r\n"),
            Ok(Trace::new(&[0, 3, 3]).unwrap())
        );
    }

    proptest! {
        #[test]
        fn opportunities_are_counted_round_by_round(
            steps in prop::collection::vec(0u64..4, 1..8),
            end in 0u64..60_000_000,
        ) {
            let mut at = 0;
            let millis: Vec<u64> = steps.iter().map(|step| { at += step; at }).collect();
            prop_assume!(at > 0);
            let trace = Trace::new(&millis).unwrap();
            let mut count = 0;
            for round in 0.. {
                let base = round * at * 1_000_000;
                if base > end {
                    break;
                }
                count += millis.iter().filter(|&&milli| base + milli * 1_000_000 < end).count() as u64;
            }
            prop_assert_eq!(trace.opportunities_before(Time::from_nanos(end)), count);
        }
    }
}
