//! What probes say of a line.
//!
//! A probe is sent to a reflector, which answers it. Its delay above the baseline of this reflector is the
//! *excess*: what queues and the medium add. A probe without an answer counts as soon as it is overdue: on a
//! line whose capacity has just fallen, answers come late, and waiting for them would make everything worse.
//! (cake-autorate counts answers only.)
//!
//! The baseline is the delay of a line without load. It falls fast, because a shorter delay is proof, and
//! rises slowly, because a longer one is no proof: routes become longer, but queues go away.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::Time;
use crate::autorate::settings::Settings;

/// How many probes are remembered without an answer. Older ones count as lost.
const MOST_OUTSTANDING: usize = 1024;

/// After how many times the length of the window a sample is too old to be looked at.
const WINDOWS: u32 = 4;

/// What the probes of a line have measured.
#[derive(Clone, Debug)]
pub struct Delays {
    settings: Settings,
    reflectors: Vec<Reflector>,
    /// The newest samples, in the order of the answers.
    samples: VecDeque<Sample>,
    /// Without an answer, in the order in which they were sent.
    outstanding: VecDeque<Probe>,
    /// The last answer, or the start.
    heard: Time,
    /// When the newest of the probes was sent that were answered.
    answered: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reflector {
    /// The delay without load, ns. `None` before the first answer.
    baseline: Option<f64>,
    heard: Time,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    sent: Time,
    at: Time,
    /// Delay above the baseline, ns.
    excess: f64,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    reflector: usize,
    sent: Time,
}

/// What is seen of the line at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Whether enough of the newest samples are late.
    pub is_congested: bool,
    /// Their mean delay above the baseline, ns.
    pub excess: f64,
    /// The delay above the baseline of the newest answer, or of the probe that has waited longest if one is
    /// overdue, ns: how long the line's queue takes at least.
    pub queue: f64,
    /// How fast the line was of late, if the newest sample is late.
    pub passage: Option<Passage>,
    /// Whether the delay falls: the queue drains.
    pub is_draining: bool,
    /// Whether nothing was heard for so long that nothing is known.
    pub is_silent: bool,
}

/// How long the line took for what was sent between two probes.
///
/// Probes wait in the line's queue behind what was sent before them. So from the moment when the first one
/// left the line until the second one did, the line has sent what was sent between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When the first probe was sent.
    pub from: Time,
    /// When the second one was sent.
    pub to: Time,
    /// The time from when the first one left the line until the second one did, ns, at least 1. If the second
    /// one is overdue, the time until now: it takes longer still.
    pub took: u64,
}

impl Delays {
    /// Returns the state at the start, `now`, with this number of reflectors.
    pub fn new(settings: &Settings, reflectors: usize, now: Time) -> Delays {
        Delays {
            settings: *settings,
            reflectors: vec![Reflector::default(); reflectors.max(1)],
            samples: VecDeque::new(),
            outstanding: VecDeque::new(),
            heard: now,
            answered: None,
        }
    }

    /// Returns the number of reflectors, at least 1.
    pub fn reflectors(&self) -> usize {
        self.reflectors.len()
    }

    /// Notes that probe `number` was sent to a reflector. Numbers must differ among the probes without an
    /// answer.
    ///
    /// # Panics
    /// If there is no such reflector.
    pub fn sent(&mut self, number: u64, reflector: usize, now: Time) {
        assert!(
            reflector < self.reflectors.len(),
            "there is no reflector {reflector}"
        );
        if self.outstanding.len() == MOST_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Probe {
            number,
            reflector,
            sent: now,
        });
    }

    /// Notes the answer to probe `number`. Returns its delay, or `None` if no such probe waits for an answer.
    /// Older probes to the same reflector count as lost.
    pub fn answered(&mut self, number: u64, now: Time) -> Option<Duration> {
        let place = self.outstanding.iter().position(|probe| probe.number == number)?;
        let probe = self.outstanding[place];
        let mut index = 0;
        self.outstanding.retain(|other| {
            index += 1;
            index > place + 1 || other.reflector != probe.reflector
        });
        self.answered = self.answered.max(Some(probe.sent));
        self.observe(&probe, now);
        Some(Duration::from_nanos(now.nanos_since(probe.sent)))
    }

    /// Takes a sample into account.
    fn observe(&mut self, probe: &Probe, now: Time) {
        self.heard = now;
        let nanos = now.nanos_since(probe.sent) as f64;
        let of = &mut self.reflectors[probe.reflector];
        let excess = match &mut of.baseline {
            None => {
                of.baseline = Some(nanos);
                0.0
            }
            Some(baseline) => {
                let above = nanos - *baseline;
                *baseline += above
                    * match above < 0.0 {
                        true => share(self.settings.baseline_fall.parts()),
                        false => part_of(now.nanos_since(of.heard), self.settings.baseline_rise),
                    };
                above.max(0.0)
            }
        };
        of.heard = now;
        if self.samples.len() == self.settings.window as usize {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            sent: probe.sent,
            at: now,
            excess,
        });
    }

    /// Returns the lowest baseline of the reflectors. `None` before the first answer.
    pub fn baseline(&self) -> Option<Duration> {
        let known = self.reflectors.iter().filter_map(|reflector| reflector.baseline);
        let lowest = known.min_by(f64::total_cmp)?;
        Some(Duration::from_nanos(lowest as u64))
    }

    /// Returns what is seen `now`.
    pub fn seen(&mut self, now: Time) -> Seen {
        let settings = &self.settings;
        let window = settings.window as usize;
        let length = settings.probe_interval * settings.window * WINDOWS;
        let oldest = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.samples.retain(|sample| now.nanos_since(sample.at) <= oldest);

        let threshold = settings.threshold.as_nanos() as f64;
        // Probes leave the line in their order. One that was sent before an answered one was lost, or its
        // reflector is gone.
        let overdue: Vec<Sample> = (self.outstanding.iter())
            .filter(|probe| Some(probe.sent) > self.answered)
            .filter_map(|probe| {
                let baseline = self.reflectors[probe.reflector].baseline?;
                let excess = now.nanos_since(probe.sent) as f64 - baseline;
                (excess > threshold).then_some(Sample {
                    sent: probe.sent,
                    at: now,
                    excess,
                })
            })
            .collect();
        let all: Vec<Sample> = self.samples.iter().chain(&overdue).copied().collect();
        let newest = &all[all.len().saturating_sub(window)..];
        let late = newest.iter().filter(|sample| sample.excess > threshold).count();
        let (older, newer) = newest.split_at(newest.len() / 2);
        let last = overdue.first().or(self.samples.back()).copied();
        Seen {
            is_congested: late >= settings.late as usize,
            excess: mean(newest),
            queue: last.map_or(0.0, |last| last.excess),
            passage: last.and_then(|last| self.passage(&last, threshold)),
            is_draining: overdue.is_empty() && !older.is_empty() && mean(newer) < 0.9 * mean(older),
            is_silent: now.nanos_since(self.heard) as u128 > settings.silence.as_nanos(),
        }
    }

    /// Returns how long the line took from the newest sample that was not late to `last`, which is late. If
    /// all of the window are late: from the oldest one.
    fn passage(&self, last: &Sample, threshold: f64) -> Option<Passage> {
        let before = || self.samples.iter().filter(|sample| sample.sent < last.sent);
        let mut timely = before().filter(|sample| sample.excess <= threshold);
        let first = timely.next_back().or_else(|| before().next())?;
        let took = last.sent.nanos_since(first.sent) as f64 + last.excess - first.excess;
        (last.excess > threshold && took >= 1.0).then_some(Passage {
            from: first.sent,
            to: last.sent,
            took: took as u64,
        })
    }
}

/// Returns parts of 2^32 as a number from 0 to 1.
pub(crate) fn share(parts: u64) -> f64 {
    parts as f64 / 4_294_967_296.0
}

/// Returns the part of a difference that goes away in `nanos` with a time constant: the first-order
/// approximation, which is below 1 however long the time is.
pub(crate) fn part_of(nanos: u64, constant: Duration) -> f64 {
    let nanos = nanos as f64;
    nanos / (nanos + constant.as_nanos() as f64)
}

/// Returns the mean delay above the baseline, ns.
fn mean(samples: &[Sample]) -> f64 {
    match samples.len() {
        0 => 0.0,
        count => samples.iter().map(|sample| sample.excess).sum::<f64>() / count as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Sends a probe each 50 ms from 0 on, with these delays in milliseconds.
    fn probed(delays: &[u64]) -> Delays {
        let mut line = Delays::new(&Settings::default(), 1, Time::ZERO);
        let mut answers: Vec<(u64, u64)> = Vec::new();
        for (number, delay) in (0..).zip(delays) {
            line.sent(number, 0, at(50 * number));
            answers.push((50 * number + delay, number));
        }
        answers.sort_unstable();
        for (when, number) in answers {
            line.answered(number, at(when));
        }
        line
    }

    #[test]
    fn the_baseline_falls_fast_and_rises_slowly() {
        assert_eq!(probed(&[]).baseline(), None);
        assert_eq!(probed(&[40]).baseline(), Some(Duration::from_millis(40)));
        assert_eq!(probed(&[40, 20]).baseline(), Some(Duration::from_millis(22)));
        let risen = probed(&[40, 40, 240]).baseline().unwrap();
        assert!(
            risen > Duration::from_millis(40) && risen < Duration::from_millis(42),
            "{risen:?}"
        );
        // Hours later it has followed.
        let mut line = probed(&[40]);
        for number in 1..1000 {
            line.sent(number, 0, at(1000 * number));
            line.answered(number, at(1000 * number + 80));
        }
        assert!(line.baseline().unwrap() > Duration::from_millis(79));
    }

    #[test]
    fn three_late_samples_of_six_are_congestion() {
        let congested = |delays: &[u64], now| probed(delays).seen(at(now)).is_congested;
        assert!(!congested(&[20, 20, 20, 20, 60, 60], 310));
        assert!(congested(&[20, 20, 20, 60, 60, 60], 310));
        // What is long ago says nothing any more.
        assert!(!congested(&[20, 20, 20, 60, 60, 60], 5000));
    }

    #[test]
    fn probes_without_an_answer_count_when_they_are_overdue() {
        let mut line = probed(&[20, 20, 20]);
        for number in 3..6 {
            line.sent(number, 0, at(50 * number));
        }
        // 20 ms are the baseline, 30 ms the threshold.
        assert!(!line.seen(at(300)).is_congested);
        let seen = line.seen(at(301));
        assert!(seen.is_congested && seen.excess > 30e6 && !seen.is_draining);
        // They were lost: the answer to a later one says so.
        line.sent(6, 0, at(310));
        line.answered(6, at(330));
        assert!(!line.seen(at(331)).is_congested);
        assert_eq!(line.answered(4, at(335)), None);
    }

    #[test]
    fn a_queue_that_drains_is_recognised() {
        assert!(probed(&[20, 200, 180, 150, 120, 90]).seen(at(400)).is_draining);
        assert!(!probed(&[20, 90, 120, 150, 180, 200]).seen(at(460)).is_draining);
    }

    #[test]
    fn reflectors_have_baselines_of_their_own() {
        let mut line = Delays::new(&Settings::default(), 2, Time::ZERO);
        for number in 0..20 {
            let reflector = number as usize % 2;
            line.sent(number, reflector, at(50 * number));
            line.answered(number, at(50 * number + [20, 45 + 30][reflector]));
        }
        let seen = line.seen(at(1100));
        assert!(!seen.is_congested && seen.excess < 1e6);
        assert_eq!(line.baseline(), Some(Duration::from_millis(20)));
    }

    /// A reflector that answers no more says nothing of the line, as long as others answer.
    #[test]
    fn a_reflector_that_is_gone_is_no_congestion() {
        let mut line = Delays::new(&Settings::default(), 2, Time::ZERO);
        for number in 0..200 {
            let reflector = number as usize % 2;
            line.sent(number, reflector, at(50 * number));
            if reflector == 0 || number < 20 {
                line.answered(number, at(50 * number + 20));
            }
            let seen = line.seen(at(50 * number + 21));
            assert!(!seen.is_congested && seen.queue < 1e6, "probe {number}: {seen:?}");
        }
        // If the other one does not answer either, the line is to blame.
        for number in 200..206 {
            line.sent(number, 0, at(50 * number));
        }
        assert!(line.seen(at(50 * 206)).is_congested);
    }

    /// From the newest sample that was not late to one that is, or is overdue. The baseline rises a little.
    #[test]
    fn two_probes_say_how_long_the_line_took() {
        let shown = |line: &mut Delays, now| {
            let millis = |time: Time| time.nanos() / 1_000_000;
            let passage = line.seen(at(now)).passage;
            passage.map(|found| {
                [
                    millis(found.from),
                    millis(found.to),
                    (found.took + 500_000) / 1_000_000,
                ]
            })
        };
        assert_eq!(shown(&mut probed(&[20, 20, 20, 20]), 171), None);
        // 20 ms in the queue at 100 ms, 160 ms at 200 ms.
        assert_eq!(
            shown(&mut probed(&[20, 20, 40, 90, 180]), 390),
            Some([100, 200, 240])
        );
        // Without a queue it would have been back 130 ms ago.
        let mut line = probed(&[20, 20, 20]);
        line.sent(3, 0, at(150));
        line.sent(4, 0, at(200));
        assert_eq!(shown(&mut line, 300), Some([100, 150, 180]));
    }

    #[test]
    fn silence_is_noticed() {
        let mut line = probed(&[20]);
        assert!(!line.seen(at(9_000)).is_silent);
        assert!(line.seen(at(10_021)).is_silent);
    }

    proptest! {
        /// Whatever is sent and answered, and in whatever order: figures are finite, and memory is bounded.
        #[test]
        fn any_probes_are_borne(calls in prop::collection::vec((0u8..4, 0u64..40, 0u64..1_000), 1..400)) {
            let mut line = Delays::new(&Settings::default(), 3, Time::ZERO);
            let mut now = 0;
            for (call, number, wait) in calls {
                now += wait;
                match call {
                    0 | 1 => line.sent(number, number as usize % 3, at(now)),
                    2 => drop(line.answered(number, at(now))),
                    _ => {
                        let seen = line.seen(at(now));
                        prop_assert!(seen.excess.is_finite() && seen.excess >= 0.0);
                    }
                }
                prop_assert!(line.outstanding.len() <= MOST_OUTSTANDING);
                prop_assert!(line.samples.len() <= line.settings.window as usize);
            }
        }
    }
}
