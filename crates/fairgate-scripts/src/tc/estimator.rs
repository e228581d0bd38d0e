//! `estimator`: how the rate of a qdisc or a class is estimated. The times are as tc reads them.

use std::time::Duration;

use fairgate_config::Estimator;
use fairgate_config::language::{Given, Problems, Written};

use crate::script::{Word, setting};

/// The word `estimator`, and what the two times after it mean.
pub(super) struct Estimated {
    pub(super) word: Word,
    estimator: Estimator,
    /// The sample that was written, if the kernel's is longer.
    shorter: Option<String>,
}

impl Estimated {
    /// Makes an estimator of two times in microseconds, as `tc_setup_estimator` does: a sample of 250 ms or
    /// the next power of two that is not shorter, and the weight for the sample that was written. Reports
    /// times that tc refuses.
    pub(super) fn read(
        word: Word,
        [(sample_word, sample), (constant_word, constant)]: [(&Word, u32); 2],
        problems: &mut Problems,
    ) -> Option<Estimated> {
        let [sample, constant] = [sample, constant].map(|micros| Duration::from_micros(micros.into()));
        let log = Estimator::log_of(sample, constant).filter(|log| *log <= MOST_LOG);
        let Some(estimator) = log.and_then(|log| Estimator::with_log(sample, log)) else {
            let (at, help) = match Estimator::with_log(sample, MOST_LOG) {
                None => (sample_word, "sample at least every 8 seconds"),
                Some(_) => (
                    constant_word,
                    "average over several samples, like estimator 250ms 8s",
                ),
            };
            let message = "no estimator of the kernel has these times";
            problems.add(at.span(), message, "not possible", help);
            return None;
        };
        // The constant as it was written, if it has the same weight.
        let as_written = Estimator::new(estimator.sample(), constant).ok();
        let as_written = as_written.filter(|written| written.ewma_log() == estimator.ewma_log());
        Some(Estimated {
            word,
            estimator: as_written.unwrap_or(estimator),
            shorter: (sample < estimator.sample()).then(|| sample_word.get_ref().clone()),
        })
    }

    /// Returns what the kernel does differently from what is written.
    pub(super) fn note(&self) -> Option<String> {
        let shorter = self.shorter.as_ref()?;
        Some(format!(
            "`estimator`: the sample of {shorter} is one of {} ms, as in Linux",
            self.estimator.sample().as_millis()
        ))
    }

    /// Returns the setting of a configuration file.
    pub(super) fn setting(&self) -> Written {
        let value = Given::Meant(self.estimator.to_string());
        setting(&self.word.span(), "estimator", value)
    }
}

/// The largest logarithm that tc finds. The kernel would take one more.
const MOST_LOG: u8 = 29;

/// Reads a time as tc's `get_time` does, in microseconds. A number without a unit is in microseconds.
pub(super) fn micros(word: &Word) -> Option<u32> {
    let text = word.get_ref();
    let is_unit = |character: char| character.is_ascii_alphabetic() && !matches!(character, 'e' | 'E');
    let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "us" | "usec" | "usecs" => 1.0,
        "ms" | "msec" | "msecs" => 1e3,
        "s" | "sec" | "secs" => 1e6,
        _ => return None,
    };
    let micros = number.parse::<f64>().ok()? * factor;
    (0.0..=f64::from(u32::MAX))
        .contains(&micros)
        .then_some(micros as u32)
}

#[cfg(test)]
mod tests {
    use fairgate_config::Spec;

    use crate::tc::{Device, Script};

    fn translated(lines: &str) -> Result<(Spec, Vec<String>), String> {
        let mut trees = Script::translate_all("test.tc", lines, Device::default())
            .map_err(|error| error.problems()[0].message.clone())?;
        let tree = trees.remove(0);
        let notes = tree.warnings.into_iter().map(|note| note.text);
        Ok((tree.spec, notes.collect()))
    }

    fn root(times: &str) -> Result<(String, Vec<String>), String> {
        let line = format!("qdisc add dev e root estimator {times} pfifo");
        translated(&line).map(|(spec, notes)| (spec.estimator().expect("it has one").to_string(), notes))
    }

    /// Each pair of times was given to tc of iproute2 6.1. What it sent to the kernel is beside it: the
    /// doublings of 250 ms, and the logarithm of the inverse weight.
    #[test]
    fn the_times_mean_what_tc_sends_to_the_kernel() {
        for (times, sent) in [
            ("250ms 361ms", (0, 1)),
            ("250ms 1s", (0, 2)),
            ("250ms 8sec", (0, 5)),
            ("1s 7s", (2, 2)),
            ("300ms 8s", (1, 4)),
            ("0.5s 8s", (1, 4)),
            ("1e6 8e6", (2, 3)),
            ("250MS 8Sec", (0, 5)),
            ("8secs 4294s", (5, 9)),
            ("1us 536s", (0, 28)),
            ("1us 600s", (0, 29)),
            ("10us 4294s", (0, 28)),
        ] {
            let line = format!("qdisc add dev e root est {times} pfifo");
            let (spec, _) = translated(&line).expect(times);
            let estimator = spec.estimator().expect(times);
            assert_eq!((estimator.sample_log(), estimator.ewma_log()), sent, "{times}");
        }
    }

    #[test]
    fn a_sample_is_rounded_up_with_a_note() {
        assert_eq!(root("250ms 8s"), Ok(("250ms 8s".to_owned(), Vec::new())));
        let (estimator, notes) = root("300ms 8s").expect("tc takes it");
        assert_eq!(estimator, "500ms 8s");
        assert_eq!(
            notes,
            ["`estimator`: the sample of 300ms is one of 500 ms, as in Linux"]
        );
        // The weight is that of samples of 1 ms, which is as if the constant were 250 times as long.
        assert_eq!(root("1ms 10ms").expect("tc takes it").0, "250ms 1873ms");
    }

    #[test]
    fn times_that_tc_refuses_are_refused() {
        for (times, complaint) in [
            ("250ms 360ms", "no estimator of the kernel has these times"),
            ("0 8s", "no estimator of the kernel has these times"),
            ("8.1s 20s", "no estimator of the kernel has these times"),
            ("1us 1100s", "no estimator of the kernel has these times"),
            ("250ms 5min", "the time constant"),
            ("250ns 8s", "the time of a sample"),
            ("-1 8s", "the time of a sample"),
            ("250ms pfifo", "the time constant"),
        ] {
            let error = root(times).expect_err(times);
            assert!(error.contains(complaint), "{times}: {error}");
        }
        let error = root("250ms").expect_err("a time is missing");
        assert!(error.contains("the time constant"), "{error}");
        let error = translated("qdisc add dev e root est 1s 8s mq").expect_err("mq has many queues");
        assert!(error.contains("`mq` has no estimator"), "{error}");
    }

    #[test]
    fn qdiscs_and_classes_have_estimators_of_their_own() {
        let lines = "\
            qdisc add dev e root handle 1: estimator 1s 8s htb default 10\n\
            class add dev e parent 1: classid 1:1 estimator 2s 16s htb rate 2mbit\n\
            class add dev e parent 1:1 classid 1:10 estimator 250ms 8s htb rate 1mbit\n\
            class add dev e parent 1:1 classid 1:20 htb rate 1mbit\n\
            qdisc add dev e parent 1:10 handle 10: estimator 500ms 9s fq_codel\n\
            qdisc add dev e parent 1:20 handle 20: estimator 4s 20s fq_codel\n";
        let estimators = |lines: &str| {
            let (spec, notes) = translated(lines).expect(lines);
            assert_eq!(notes, Vec::<String>::new());
            let shown = |estimator: Option<super::Estimator>| estimator.map(|one| one.to_string());
            let mut found = vec![(0, shown(spec.estimator()))];
            for class in spec.classes() {
                found.push((class.minor, shown(class.estimator)));
                found.extend(class.tree.map(|tree| (class.minor, shown(tree.estimator()))));
            }
            let some = |(minor, estimator): (u32, Option<String>)| Some((minor, estimator?));
            found.into_iter().filter_map(some).collect::<Vec<_>>()
        };
        let of = |minor: u32, times: &str| (minor, times.to_owned());
        let first = [
            of(0, "1s 8s"),
            of(1, "2s 16s"),
            of(0x10, "250ms 8s"),
            of(0x10, "500ms 9s"),
            of(0x20, "4s 20s"),
        ];
        assert_eq!(estimators(lines), first);
        // A change without one leaves the one that is there. A replacement begins anew.
        let changed = format!(
            "{lines}class change dev e parent 1:1 classid 1:10 htb rate 1mbit\n\
             class change dev e parent 1: classid 1:1 est 1s 9s htb rate 2mbit\n\
             qdisc change dev e parent 1:10 handle 10: est 1s 7s fq_codel\n\
             qdisc change dev e parent 1:20 handle 20: fq_codel limit 100\n\
             qdisc replace dev e parent 1:20 handle 21: fq_codel\n"
        );
        let second = [
            of(0, "1s 8s"),
            of(1, "1s 9s"),
            of(0x10, "250ms 8s"),
            of(0x10, "1s 7s"),
        ];
        assert_eq!(estimators(&changed), second);
    }

    #[test]
    fn where_it_has_no_effect_there_is_a_note() {
        for (lines, complaint) in [
            (
                "qdisc add dev e root handle 1: ets bands 2\n\
                 class change dev e classid 1:1 est 1s 8s ets quantum 3000\n",
                "a band of `ets` has none",
            ),
            (
                "qdisc add dev e root pfifo\nqdisc add dev e est 1s 8s ingress\n",
                "`ingress` holds no packets",
            ),
        ] {
            let (spec, notes) = translated(lines).expect(lines);
            assert!(!spec.has_estimators(), "{spec}");
            assert!(notes.iter().any(|note| note.contains(complaint)), "{notes:?}");
        }
    }
}
