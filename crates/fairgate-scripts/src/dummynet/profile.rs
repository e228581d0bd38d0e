//! Reads the file of a pipe's `profile`: extra delays of its packets, as a distribution (ipfw(8), `PROFILE`;
//! `load_extra_delays` of ipfw's dummynet.c).
//!
//! ```text
//! name        wifi      # optional
//! samples     100       # how many delays the distribution becomes; 100 if not given
//! loss-level  0.86      # packets whose delay is at this probability or above it are lost; 1 if not given
//! bw          11Mbit/s  # optional: the bandwidth of the pipe
//! prob        delay     # or `delay prob`: the order of the numbers in the lines after it
//! 0           2         # points of the distribution: a probability, and a delay in ms
//! 0.8         2
//! 1           40
//! ```
//!
//! Words may be in capitals. The points need no order. Between them the distribution is a straight line.

use std::fs;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairgate::queues::busy_link;
use fairgate_config::language::Problems;
use miette::NamedSource;

use super::units::{self, Wrong};
use crate::script::{Word, lines};

/// The extra delays of a pipe's packets.
pub(super) struct Profile {
    /// The delays, ms. Each is as likely as any other.
    pub(super) samples: Vec<u32>,
    /// The index of the first delay whose packets are lost. The number of delays if none are.
    pub(super) lost_from: usize,
    /// The bandwidth of the pipe, bit/s, if the file names one.
    pub(super) bandwidth: Option<u64>,
    /// What dummynet does with the numbers, and the tree too: sentences about the file.
    pub(super) notes: Vec<String>,
}

/// What is missing in the script's line if a file can't be read: message and remedy.
pub(super) type Unreadable = (String, String);

/// The most samples and points (dummynet: `ED_MAX_SAMPLES_NO`).
const MOST: usize = busy_link::MOST_TIMES;
/// dummynet's default.
const USUAL_SAMPLES: usize = 100;
/// The longest delay, ms.
const LONGEST: f64 = (busy_link::LONGEST_EXTRA / 1000) as f64;
/// The largest file, bytes. 1024 points need far less.
const LARGEST_FILE: u64 = 1 << 20;

/// The form of a file, for remedies.
const FORM: &str = "write lines like samples 100, loss-level 0.9, bw 11Mbit/s, then prob delay, and after \
    it a probability and a delay in ms in each line";

/// Returns the path of a profile that a script in this file names.
pub(super) fn path(script: &str, name: &str) -> PathBuf {
    let folder = Path::new(script).parent().unwrap_or(Path::new(""));
    folder.join(name)
}

/// Reads the text of a profile.
pub(super) fn text(path: &Path) -> Result<String, Unreadable> {
    let shown = path.display();
    let unreadable = |reason: String| {
        let help = "name a file with the points of the profile; its path begins at the folder of the script";
        (
            format!("the profile {shown} can't be read: {reason}"),
            help.to_owned(),
        )
    };
    let is_file = fs::metadata(path)
        .map_err(|error| unreadable(error.to_string()))?
        .is_file();
    if !is_file {
        return Err(unreadable("it is not a file".to_owned()));
    }
    let file = fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(unreadable("it has more than 1 MiB".to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| unreadable("it is not text in UTF-8".to_owned()))
}

/// Parses the text of a profile. Mistakes are added to `problems` at their place in the profile.
pub(super) fn read(path: &Path, text: String, problems: &mut Problems) -> Option<Profile> {
    let source = Arc::new(NamedSource::new(path.display().to_string(), text));
    let mut of_file = Problems::new(Arc::clone(&source));
    let mut reader = Reader {
        problems: &mut of_file,
        samples: None,
        loss_level: None,
        has_name: false,
        bandwidth: None,
        order: None,
        points: Vec::new(),
    };
    for (words, end) in lines(source.inner(), &[]) {
        reader.line(&words, end);
    }
    let profile = reader.profile(source.inner().len());
    let is_right = of_file.count() == 0;
    problems.add_all(of_file);
    profile.filter(|_| is_right)
}

/// The order of the numbers in a line.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    DelayFirst,
    ProbabilityFirst,
}

/// A point of the distribution.
#[derive(Clone, Copy)]
struct Point {
    probability: f64,
    /// In ms.
    delay: f64,
}

struct Reader<'p> {
    problems: &'p mut Problems,
    samples: Option<usize>,
    loss_level: Option<f64>,
    has_name: bool,
    bandwidth: Option<u64>,
    /// The order of numbers, if lines are points.
    order: Option<Order>,
    points: Vec<Point>,
}

impl Reader<'_> {
    /// Reads a line of at least one word.
    fn line(&mut self, words: &[Word], end: usize) -> Option<()> {
        let [name, rest @ ..] = words else { return None };
        let value = match rest {
            [value] => value,
            [] => {
                let message = format!("`{}` has no value", name.get_ref());
                self.problems.add(end..end, message, "a value is missing", FORM);
                return None;
            }
            [_, third, ..] => {
                let message = format!(
                    "a line of a profile has two words, but here is `{}`",
                    third.get_ref()
                );
                self.problems.add(third.span(), message, "unexpected", FORM);
                return None;
            }
        };
        match name.get_ref().to_lowercase().as_str() {
            "samples" => {
                self.once(name, self.samples.is_some())?;
                self.samples = Some(self.count(value)?);
                self.order = None;
            }
            // A second bandwidth replaces the first one.
            "bw" => match units::bandwidth(value.get_ref()) {
                Ok(bandwidth) => self.bandwidth = Some(bandwidth),
                Err(wrong) => self.wrong(value, wrong),
            },
            "loss-level" => {
                self.once(name, self.loss_level.is_some())?;
                self.loss_level = Some(self.number(value, 0.0..=1.0, "a probability from 0 to 1")?);
                self.order = None;
            }
            "name" => {
                self.once(name, self.has_name)?;
                self.has_name = true;
                self.order = None;
            }
            first @ ("delay" | "prob") => {
                self.once(name, self.order.is_some())?;
                let (order, second) = match first {
                    "delay" => (Order::DelayFirst, "prob"),
                    _ => (Order::ProbabilityFirst, "delay"),
                };
                if !value.get_ref().eq_ignore_ascii_case(second) {
                    let message = format!(
                        "expected `{second}` after `{first}`, but found `{}`",
                        value.get_ref()
                    );
                    self.problems.add(value.span(), message, "unexpected", FORM);
                }
                self.order = Some(order);
            }
            _ => match self.order {
                Some(order) => self.point(order, name, value)?,
                None => {
                    let message = format!("a profile has no line `{}` here", name.get_ref());
                    let label = "points come after `prob delay` or `delay prob`";
                    self.problems.add(name.span(), message, label, FORM);
                }
            },
        }
        Some(())
    }

    /// Reports a word that may be in one line only.
    fn once(&mut self, word: &Word, is_second: bool) -> Option<()> {
        if is_second {
            let message = format!("there are two lines `{}`", word.get_ref());
            let help = "remove one of them";
            self.problems.add(word.span(), message, "the second one", help);
            return None;
        }
        Some(())
    }

    fn wrong(&mut self, word: &Word, wrong: Wrong) {
        let start = word.span().start;
        let location = start + wrong.part.start..start + wrong.part.end;
        self.problems
            .add(location, wrong.message, "not understood", wrong.help);
    }

    fn count(&mut self, word: &Word) -> Option<usize> {
        match units::plain(word.get_ref()) {
            Ok(count) if (1..=MOST as u64).contains(&count) => Some(count as usize),
            Ok(count) => {
                let message = format!("a profile can't have {count} samples");
                let help = "write a number from 1 to 1024, or leave the line out for 100";
                self.problems.add(word.span(), message, "1 to 1024", help);
                None
            }
            Err(wrong) => {
                self.wrong(word, wrong);
                None
            }
        }
    }

    fn number(&mut self, word: &Word, range: RangeInclusive<f64>, what: &str) -> Option<f64> {
        let number = match units::decimal(word.get_ref()) {
            Ok((digits, scale)) => digits as f64 / scale as f64,
            Err(wrong) => {
                self.wrong(word, wrong);
                return None;
            }
        };
        if !range.contains(&number) {
            let message = format!("`{}` is not {what}", word.get_ref());
            let label = format!("{} to {}", range.start(), range.end());
            self.problems
                .add(word.span(), message, label, format!("write {what}"));
            return None;
        }
        Some(number)
    }

    fn point(&mut self, order: Order, first: &Word, second: &Word) -> Option<()> {
        let (probability, delay) = match order {
            Order::ProbabilityFirst => (first, second),
            Order::DelayFirst => (second, first),
        };
        let probability = self.number(probability, 0.0..=1.0, "a probability from 0 to 1");
        let delay = self.number(
            delay,
            0.0..=LONGEST,
            "a delay of at most an hour, in milliseconds",
        );
        self.points.push(Point {
            probability: probability?,
            delay: delay?,
        });
        if self.points.len() == MOST + 1 {
            let message = format!("the profile has more than {MOST} points");
            let help = "leave out points: between two of them the distribution is a straight line";
            self.problems.add(first.span(), message, "one too many", help);
        }
        Some(())
    }

    /// Returns the profile that the lines describe. The text ends at `end`.
    fn profile(mut self, end: usize) -> Option<Profile> {
        if self.points.len() < 2 && self.problems.count() == 0 {
            let message = match self.points.len() {
                0 => "the profile has no points",
                _ => "the profile has one point",
            };
            self.problems
                .add(end..end, message, "at least two are needed", FORM);
        }
        let samples = self.samples.unwrap_or(USUAL_SAMPLES);
        let loss_level = self.loss_level.unwrap_or(1.0);
        self.points.sort_by(|one, other| {
            (one.probability, one.delay)
                .partial_cmp(&(other.probability, other.delay))
                .expect("no point is NaN")
        });
        Some(Profile {
            samples: interpolated(&self.points, samples),
            lost_from: (loss_level * samples as f64) as usize,
            bandwidth: self.bandwidth,
            notes: notes(&self.points),
        })
    }
}

/// Returns the delay of each sample, in whole ms rounded down, with ipfw's arithmetic. Samples outside of the
/// points have no delay. A line that begins within a sample is drawn on to the beginning of the sample; what
/// would be below 0 there is 0.
fn interpolated(points: &[Point], count: usize) -> Vec<u32> {
    let mut samples = vec![0; count];
    for (from, to) in points.iter().zip(points.iter().skip(1)) {
        let [begin, end] = [from, to].map(|point| point.probability * count as f64);
        let slope = (end - begin) / (to.delay - from.delay);
        let zero = begin - slope * from.delay;
        for (index, sample) in samples
            .iter_mut()
            .enumerate()
            .take(end as usize)
            .skip(begin as usize)
        {
            *sample = match from.delay == to.delay {
                true => from.delay as u32,
                false => ((index as f64 - zero) / slope) as u32,
            };
        }
    }
    samples
}

/// Says what is not taken from the points.
fn notes(points: &[Point]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(point) = points.iter().find(|point| point.delay.fract() > 0.0) {
        notes.push(format!(
            "its delays become whole milliseconds, as in dummynet: {} becomes {}",
            point.delay,
            point.delay.trunc()
        ));
    }
    if let Some(first) = points.first().filter(|first| first.probability > 0.0) {
        notes.push(format!(
            "packets below the probability {} have no extra delay, as in dummynet: no point is below it",
            first.probability
        ));
    }
    if let Some(last) = points.last().filter(|last| last.probability < 1.0) {
        notes.push(format!(
            "packets above the probability {} have no extra delay, as in dummynet: no point is above it",
            last.probability
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate_config::FileError;

    fn parsed(text: &str) -> Result<Profile, FileError> {
        let mut problems = Problems::new(Arc::new(NamedSource::new("script", String::new())));
        let profile = read(Path::new("wifi.profile"), text.to_owned(), &mut problems);
        problems.unless_any(())?;
        Ok(profile.expect("without a problem there is a profile"))
    }

    fn samples(text: &str) -> Vec<u32> {
        parsed(text)
            .unwrap_or_else(|error| panic!("{text}: {error:?}"))
            .samples
    }

    /// The example of ipfw(8), and what `load_extra_delays` makes of it.
    #[test]
    fn the_example_of_the_manual_is_read_as_ipfw_does() {
        let text = "name    bla_bla_bla\nsamples 100\nloss-level    0.86\nprob    delay\n\
                    0       200\t# minimum overhead is 200ms\n0.5     200\n0.5     300\n0.8     1000\n\
                    0.9     1300\n1       1300\n";
        let profile = parsed(text).unwrap();
        assert_eq!(profile.samples.len(), 100);
        assert_eq!(profile.lost_from, 86);
        assert_eq!(profile.bandwidth, None);
        assert!(profile.notes.is_empty());
        assert_eq!(profile.samples[..50], [200; 50]);
        // 700 ms in 30 samples, 300 ms in 10.
        assert_eq!(profile.samples[50..53], [300, 323, 346]);
        assert_eq!(profile.samples[80..83], [1000, 1030, 1060]);
        assert_eq!(profile.samples[90..], [1300; 10]);
    }

    #[test]
    fn points_may_be_in_any_order_and_words_in_capitals() {
        let rising = samples("samples 4\nprob delay\n0 0\n1 8\n");
        assert_eq!(rising, [0, 2, 4, 6]);
        assert_eq!(samples("DELAY Prob\n8 1\n0 0\nSamples 4\n"), rising);
        assert_eq!(samples("prob delay\n0 5\n1 5").len(), USUAL_SAMPLES);
        let profile = parsed("samples 2\nbw 2Mbit/s\nprob delay\n0 5\nbw 3Mbit/s\n1 5").unwrap();
        assert_eq!((profile.bandwidth, profile.lost_from), (Some(3_000_000), 2));
    }

    #[test]
    fn numbers_that_dummynet_does_not_keep_are_named() {
        let profile = parsed("samples 10\nprob delay\n0.2 1.5\n0.9 1.5\n").unwrap();
        assert_eq!(profile.samples, [0, 0, 1, 1, 1, 1, 1, 1, 1, 0]);
        let [whole, below, above] = &profile.notes[..] else {
            panic!("{:?}", profile.notes)
        };
        assert!(whole.contains("1.5 becomes 1"), "{whole}");
        assert!(below.contains("below the probability 0.2"), "{below}");
        assert!(above.contains("above the probability 0.9"), "{above}");
    }

    /// A line that begins within a sample: ipfw computes a negative delay for its beginning, and the link
    /// would be busy for years.
    #[test]
    fn no_delay_is_negative() {
        assert_eq!(samples("samples 2\nprob delay\n0 0\n0.25 0\n1 9\n"), [0, 3]);
    }

    #[test]
    fn mistakes_are_located_in_the_file() {
        let at = |text: &str, position: (usize, usize), message: &str| {
            let error = parsed(text).map(|_| ()).expect_err(text);
            let problem = &error.problems()[0];
            assert_eq!(problem.position(), position, "{text}: {}", problem.message);
            assert!(problem.message.contains(message), "{text}: {}", problem.message);
            assert_eq!((problem.file(), error.file()), ("wifi.profile", "wifi.profile"));
            assert!(!problem.help.is_empty() && !problem.label.is_empty());
        };
        at("samples 100\nsamples 50", (2, 1), "two lines `samples`");
        at("samples 1025", (1, 9), "can't have 1025 samples");
        at("samples ten", (1, 9), "`ten` is not a number");
        at("loss-level 1.5", (1, 12), "`1.5` is not a probability");
        at("bw 2.5Mbit/s", (1, 4), "decimals");
        at("bw em0", (1, 4), "`em0` as a clock");
        at("name a\nname b", (2, 1), "two lines `name`");
        at("prob prob", (1, 6), "expected `delay` after `prob`");
        at("prob delay\ndelay prob", (2, 1), "two lines `delay`");
        at("0 5", (1, 1), "no line `0` here");
        at("prob delay\nsamples 5\n0 5", (3, 1), "no line `0` here");
        at("prob delay\n0 5ms", (2, 3), "`5ms` is not a number");
        at("prob delay\n1.1 5", (2, 1), "`1.1` is not a probability");
        at("prob delay\n1 3600001", (2, 3), "is not a delay");
        at("samples", (1, 8), "`samples` has no value");
        at("prob delay\n0 5 6", (2, 5), "two words");
        at("prob delay\n0 5\n", (3, 1), "has one point");
        at("", (1, 1), "has no points");
        let many = format!("prob delay\n{}", "0 5\n".repeat(MOST + 1));
        at(&many, (MOST + 2, 1), "more than 1024 points");
    }
}
