//! The options of red, choke, gred and sfq from which tc computes what it shows of the average.
//!
//! tc reads `avpkt`, `burst` and `bandwidth`. It sends to the kernel what follows from them, and shows that
//! with `-d`: the weight of the average, 2^-`ewma`; the probability at `max`, in older versions as `Plog`;
//! and `Scell_log`, the scale of the table by which the average falls in idle times. The options here give
//! the same weight and the same scale. They are tc's defaults where these do, `avpkt 1000` and `bandwidth
//! 10Mbit`. A scale stands for all bandwidths between one and twice of it: in idle times the average falls as
//! fast as in the kernel, up to this factor.

use fairgate::Rate;
use fairgate::aqm::red;
use fairgate_config::units::parse_size;

use super::{Wrong, named, unit};
use crate::script::weight::burst_of_weight;

/// The packet lengths that are tried, bytes: tc's default first.
const LENGTHS: [u32; 7] = [1000, 1500, 500, 256, 128, 64, 9000];
/// The bandwidth that tc takes if none is given.
const USUAL: Rate = Rate::mbit(10);
/// Idle times after which nothing is left of the average, as multiples of the scale. A scale stands for 256
/// to 512 of them.
const SPANS: [f64; 5] = [384.0, 320.0, 448.0, 272.0, 496.0];
/// How often the average is halved until nothing is left of it.
const HALVINGS: f64 = 31.0;
/// tc's ticks in a microsecond.
const TICKS: f64 = 15.625;

const IN_DETAIL: &str = "save the listing again with -d: tc -d -j qdisc show dev DEVICE";

const UNUSUAL: &str = "tc can't have set it up: replace it by one whose options you know, and save the \
    listing again";

/// How thresholds are counted.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Thresholds {
    Bytes,
    Packets,
}

/// Returns the options that tc reads for an average that it shows in these words. The words include the
/// thresholds. `kind` is for messages.
pub(super) fn options(kind: &str, words: &[&str], thresholds: Thresholds) -> Result<Vec<String>, Wrong> {
    let number = |word: &str| number(kind, words, word);
    let (weight, scale) = (number("ewma")?, number("Scell_log")?);
    let (min, max) = (number("min")?, number("max")?);
    let min_for = |avpkt: u32| match thresholds {
        Thresholds::Bytes => u64::from(min),
        Thresholds::Packets => u64::from(min) * u64::from(avpkt),
    };
    let found = LENGTHS.iter().find_map(|avpkt| {
        let min = min_for(*avpkt);
        let burst = burst_of_weight(weight, min, (*avpkt).into())?;
        let bandwidth = bandwidth(*avpkt, weight, scale)?;
        Some([
            format!("avpkt {avpkt}"),
            format!("burst {burst}"),
            format!("bandwidth {}bit", bandwidth.bits_per_second()),
        ])
    });
    let Some(found) = found else {
        let message = format!(
            "no `avpkt`, `burst` and `bandwidth` of this {kind} give `ewma {weight}` and `Scell_log {scale}`"
        );
        return Err(Wrong::new(message, UNUSUAL));
    };
    let mut options = found.to_vec();
    // tc up to 3.2 gave the kernel no probability, and the kernel computes it like this.
    if named(words, "probability").is_none() {
        let log = number("Plog")?;
        let probability = f64::from(max.saturating_sub(min)) / f64::from(log.min(62)).exp2();
        options.push(format!("probability {:.12}", probability.min(1.0)));
    }
    Ok(options)
}

/// Returns the options that tc reads for the average of an sfq's flows. tc does not show `redflowlimit`,
/// which is at least `max`, nor the scale, which follows from a bandwidth that nobody can choose.
pub(super) fn of_flows(words: &[&str]) -> Result<[String; 3], Wrong> {
    let number = |word: &str| number("sfq", words, word);
    let (weight, min, max) = (number("ewma")?, number("min")?, number("max")?);
    let found = LENGTHS.iter().find_map(|avpkt| {
        let burst = burst_of_weight(weight, min.into(), (*avpkt).into())?;
        Some([
            format!("redflowlimit {max}"),
            format!("avpkt {avpkt}"),
            format!("burst {burst}"),
        ])
    });
    found.ok_or_else(|| {
        let message = format!("no `avpkt` and `burst` of this sfq give `ewma {weight}`");
        Wrong::new(message, UNUSUAL)
    })
}

/// Returns the number of a shown word.
fn number(kind: &str, words: &[&str], word: &str) -> Result<u32, Wrong> {
    let text = named(words, word).ok_or_else(|| {
        let message = format!("the listing of this {kind} has no `{word}`: tc shows it with -d only");
        Wrong::new(message, IN_DETAIL)
    })?;
    let bytes = parse_size(&unit(text).to_lowercase()).ok();
    bytes.and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(|| {
        let message = format!("`{word} {text}` of this {kind} is no number");
        Wrong::new(message, "save the listing again, as tc prints it")
    })
}

/// Returns a bandwidth for which a packet of `avpkt` bytes and this weight give the scale, in whole kbit/s
/// where it is as much.
fn bandwidth(avpkt: u32, weight: u32, scale: u32) -> Option<Rate> {
    let has_scale = |rate: &Rate| {
        // Any thresholds give this weight with the burst for them: the scale follows from the other three.
        let min = 5 * avpkt;
        let burst = burst_of_weight(weight, min.into(), avpkt.into());
        let config = red::Config {
            min: Some(min),
            avpkt,
            burst,
            bandwidth: *rate,
            ..red::Config::default()
        };
        burst.is_some() && config.logarithms() == Ok((weight, scale))
    };
    let halving = -(-f64::from(weight).exp2().recip()).ln_1p();
    let of_span = |span: &f64| {
        let ticks = span * f64::from(scale).exp2() * halving / HALVINGS;
        let bits = f64::from(avpkt) * 8e6 * TICKS / ticks;
        let unit = if bits < 1e3 { 1.0 } else { 1e3 };
        let units = (bits / unit).round();
        // A gred reads at most so many kbit/s.
        let fits = units <= f64::from(u32::MAX);
        Rate::from_bits_per_second(if fits { (units * unit) as u64 } else { 0 }).ok()
    };
    let candidates = std::iter::once(USUAL).chain(SPANS.iter().filter_map(of_span));
    let mut fitting = candidates.filter(has_scale);
    fitting.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcs_defaults_are_found_again() {
        // tc-red(8): its example without the bandwidth, as iproute2 6.1 shows it.
        let words: Vec<&str> = "limit 400Kb min 30Kb max 90Kb ewma 5 probability 0.02 Scell_log 15"
            .split(' ')
            .collect();
        let found = options("red", &words, Thresholds::Bytes).unwrap();
        assert_eq!(found[0], "avpkt 1000");
        assert_eq!(found[2], "bandwidth 10000000bit");
        assert_eq!(found.len(), 3);
    }

    /// The average of a slow line with long packets falls slowly: with shorter packets that is less than 1
    /// kbit/s.
    #[test]
    fn a_scale_may_need_less_than_a_kilobit() {
        let words = "limit 400Kb min 9999b max 29997b ewma 2 probability 0.02 Scell_log 28";
        let words: Vec<&str> = words.split(' ').collect();
        let found = options("red", &words, Thresholds::Bytes).unwrap();
        assert_eq!(found[0], "avpkt 1000");
        let bandwidth = found[2]
            .strip_prefix("bandwidth ")
            .and_then(|text| text.strip_suffix("bit"));
        assert!(bandwidth.unwrap().parse::<u32>().unwrap() < 1000, "{found:?}");
    }

    /// The factor of the module's head.
    #[test]
    fn the_bandwidth_is_that_of_the_scale() {
        for kilobits in [64, 500, 1000, 2300, 7000, 33_000, 100_000, 940_000] {
            let given = red::Config {
                min: Some(30_000),
                burst: Some(55),
                bandwidth: Rate::from_bits_per_second(kilobits * 1000).unwrap(),
                ..red::Config::default()
            };
            let (weight, scale) = given.logarithms().unwrap();
            let found = bandwidth(1000, weight, scale).unwrap().bits_per_second() as f64;
            let factor = found / (kilobits as f64 * 1000.0);
            assert!((0.5..=2.0).contains(&factor), "{kilobits}: {factor}");
        }
    }

    #[test]
    fn an_old_listing_has_the_logarithm_of_the_probability() {
        let words: Vec<&str> = "limit 60000b min 10000b max 42768b ewma 3 Plog 21 Scell_log 10"
            .split(' ')
            .collect();
        let found = options("red", &words, Thresholds::Bytes).unwrap();
        // 2^15 / 2^21.
        assert_eq!(found[3], "probability 0.015625000000");
    }
}
