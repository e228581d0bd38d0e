//! Rates as a part of the device's speed: `rate 10%`.
//!
//! tc reads the speed of the device in Mbit/s (`/sys/class/net/DEVICE/speed`), multiplies it and goes on with
//! a rate in bit/s (`parse_percent_rate` in tc_util.c).

use fairgate_config::language::Problems;
use toml::Spanned;

use super::command::object_of;
use crate::script::Word;

/// The options after which tc accepts such a rate.
const OF_RATES: [&str; 6] = ["rate", "ceil", "peakrate", "maxrate", "m1", "m2"];
/// Decimals that count.
const DECIMALS: usize = 6;

/// Replaces such rates in the words of a line, for a device of this speed in bit/s. Returns whether there
/// were no mistakes.
pub(super) fn resolve(words: &mut [Word], speed: Option<u64>, problems: &mut Problems) -> bool {
    let before = problems.count();
    // The rate of a policer is none of these.
    if words
        .first()
        .is_some_and(|object| object_of(object.get_ref()) == Some("filter"))
    {
        return true;
    }
    for at in 1..words.len() {
        let word = &words[at];
        let is_of_rate = OF_RATES.contains(&words[at - 1].get_ref().as_str());
        let Some(percent) = word.get_ref().strip_suffix('%').filter(|_| is_of_rate) else {
            continue;
        };
        let text = word.get_ref();
        match (millionths(percent), speed) {
            (None, _) => {
                let message = format!("`{text}` is not 0% to 100%");
                let help = "write a part of the device's speed, or a rate like 5mbit";
                problems.add(word.span(), message, "not here", help);
            }
            (_, None) => {
                let message = format!("`{text}` is a part of the device's speed, which no line says");
                let help = "give the speed with --speed, like --speed 1gbit, or write the rate";
                problems.add(word.span(), message, "of an unknown speed", help);
            }
            (Some(millionths), Some(speed)) => {
                let whole = 100 * 10u128.pow(DECIMALS as u32);
                let bits = u128::from(speed) * millionths / whole;
                words[at] = Spanned::new(word.span(), format!("{bits}bit"));
            }
        }
    }
    problems.count() == before
}

/// Reads a decimal number of percent, 0 to 100, as millionths.
fn millionths(percent: &str) -> Option<u128> {
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction: String = fraction
        .chars()
        .chain("0".repeat(DECIMALS).chars())
        .take(DECIMALS)
        .collect();
    let number: u128 = format!("{whole}{fraction}").parse().ok()?;
    (number <= 100 * 10u128.pow(DECIMALS as u32)).then_some(number)
}

#[cfg(test)]
mod tests {
    use crate::tc::{Device, Script};

    fn read(line: &str, speed: Option<u64>) -> Result<String, String> {
        let device = Device {
            speed,
            ..Device::default()
        };
        let script = format!("qdisc add dev e root {line}");
        let script = Script::parse("test.tc", &script, device).and_then(|script| script.spec());
        script
            .map(|spec| spec.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn it_is_the_part_of_the_speed() {
        for (percent, rate) in [
            ("10%", "100mbit"),
            ("12.5%", "125mbit"),
            ("100%", "1gbit"),
            ("0.0001%", "1kbit"),
        ] {
            let tree = read(
                &format!("tbf rate {percent} burst 99kb limit 1mb"),
                Some(1_000_000_000),
            );
            let tree = tree.expect("it is a rate");
            assert!(tree.contains(&format!("rate={rate} ")), "{percent}: {tree}");
        }
        let curve = "hfsc\nclass add dev e parent 1: classid 1:1 hfsc sc m1 50% d 10ms m2 10% ul rate 20%";
        let tree = read(&format!("handle 1: {curve}"), Some(10_000_000)).expect("they are rates");
        for part in ["rt=5mbit:10ms:1mbit", "ls=5mbit:10ms:1mbit", "ul=2mbit"] {
            assert!(tree.contains(part), "{part}: {tree}");
        }
    }

    #[test]
    fn what_is_no_part_of_a_known_speed_is_an_error() {
        let line = |percent: &str| format!("tbf rate {percent} burst 99kb limit 1mb");
        let message = read(&line("10%"), None).expect_err("the speed is unknown");
        assert!(
            message.contains("`10%` is a part of the device's speed, which no line says"),
            "{message}"
        );
        for percent in ["101%", "%", "-1%", "1e1%", "100.000001%", "1.%.%"] {
            let message = read(&line(percent), Some(1_000_000)).expect_err(percent);
            assert!(message.contains("is not 0% to 100%"), "{message}");
        }
    }
}
