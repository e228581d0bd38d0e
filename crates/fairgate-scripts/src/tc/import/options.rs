//! The options of a qdisc or a class as they are written, from those that tc shows.

use super::average::{self, Thresholds};
use super::bucket::Filling;
use super::{Wrong, named, unit};
use crate::tc::display::Amount;
use crate::tc::kinds::parts_of_256;

/// Words that tc shows and does not read, with the number of words after each.
const SHOWN_ONLY: [(&str, usize); 13] = [
    ("refcnt", 1),
    ("offloaded", 0),
    ("direct_packets_stat", 1),
    ("ver", 1),
    ("leaf", 1),
    ("level", 1),
    ("not_in_hw", 0),
    ("multiqueue:", 1),
    ("dev", 1),
    ("chain", 1),
    ("order", 1),
    // fq: of the kernel's own senders.
    ("orphan_mask", 1),
    ("timer_slack", 1),
];

/// Words of the average of red, choke, gred and sfq, which tc shows and does not read.
const AVERAGE: [&str; 3] = ["ewma", "Plog", "Scell_log"];

/// Returns the options as words.
pub(super) fn options(kind: &str, words: &[&str]) -> Result<Vec<String>, Wrong> {
    let thresholds = match kind {
        "red" => Some(Thresholds::Bytes),
        "choke" => Some(Thresholds::Packets),
        // Its three bands and their map can't be changed. A multiq has as many bands as the device has
        // transmit queues.
        "pfifo_fast" | "multiq" => return Ok(Vec::new()),
        "mqprio" => return Ok(mqprio(words)),
        _ => None,
    };
    let mut written = as_written(kind, words);
    if let Some(thresholds) = thresholds {
        written.extend(average::options(kind, words, thresholds)?);
    }
    if kind == "sfq" && words.contains(&"ewma") {
        written.extend(average::of_flows(words)?);
    }
    Ok(written)
}

/// Returns the command words of a gred: those of its `setup`, and those of each virtual queue.
pub(super) fn gred(words: &[&str]) -> Result<(Vec<String>, Vec<Vec<String>>), Wrong> {
    let mut parts = words.split(|word| *word == "vq");
    let own = parts.next().unwrap_or_default();
    let mut setup = vec!["setup".to_owned()];
    setup.extend(as_written("gred", own));
    let mut queues = Vec::new();
    for part in parts {
        let [number, rest @ ..] = part else { continue };
        // The kernel gives the flags of the table to all its queues.
        let rest: Vec<&str> = rest
            .iter()
            .copied()
            .filter(|word| !(GRED_FLAGS.contains(word) && own.contains(word)))
            .collect();
        let mut queue = as_written("gred", &rest);
        queue.extend(average::options("gred", &rest, Thresholds::Bytes)?);
        queue.extend(["DP".to_owned(), (*number).to_owned()]);
        queues.push(queue);
    }
    Ok((setup, queues))
}

/// Flags of a gred's table and of each virtual queue.
const GRED_FLAGS: [&str; 2] = ["ecn", "harddrop"];

fn as_written(kind: &str, words: &[&str]) -> Vec<String> {
    let mut options = Vec::new();
    let words_have_ecn = words.contains(&"ecn");
    let all = words;
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        if let Some((_, after)) = SHOWN_ONLY.iter().find(|(shown, _)| *shown == word) {
            words.by_ref().take(*after).for_each(drop);
        } else if AVERAGE.contains(&word) {
            words.next();
        } else if kind == "sfq" && word == "flows" {
            // How many flows there are now, and what the divisor says.
            words.next();
        } else if kind == "sfq" && word == "limit" && is_default_limit(all) {
            words.next();
        } else if (word, words.peek()) == ("direct_qlen", Some(&"1000")) {
            // The kernel's default.
            words.next();
        } else if (kind, word) == ("cake", AUTORATE) {
            // It comes last.
        } else if kind == "cake" && word == "overhead" && all.contains(&"raw") {
            words.next();
        } else if (kind, word, words.peek()) == ("cake", "bandwidth", Some(&"unlimited")) {
            options.extend(words.next().map(str::to_owned));
        } else if let Some(filling) = Filling::of(kind, word, all) {
            options.push(word.to_owned());
            options.extend(words.next().map(|depth| filling.written(depth)));
        } else if kind == "tbf" && word == "mpu" && options.iter().any(|option| option == "mpu") {
            // It is shown for both rates.
            words.next();
        } else if kind == "tbf"
            && matches!(
                (word, words.peek()),
                ("linklayer", Some(&"ethernet")) | ("mpu", Some(&"0b"))
            )
        {
            words.next();
        } else if kind == "etf" && matches!(word, "offload" | "deadline_mode" | "skip_sock_check") {
            // It is shown whether each is on.
            options.extend((words.next() == Some("on")).then(|| word.to_owned()));
        } else if kind == "dualpi2" && matches!(word, "alpha" | "beta") {
            options.push(word.to_owned());
            options.extend(words.next().map(weight));
        } else if kind == "dualpi2" && word == "step_thresh" {
            // Its unit says whether it is a time or a number of packets.
            options.push(word.to_owned());
            options.extend(words.next().map(str::to_owned));
        } else if (kind, word) == ("netem", "seed") {
            // The kernel draws one, and shows it since 6.6.
            words.next();
        } else if (kind, word) == ("fq", "bands") && starts_with(words.clone(), &FQ_BANDS) {
            // The kernel's defaults since 6.7.
            words.by_ref().take(FQ_BANDS.len()).for_each(drop);
        } else if (kind, word, words.peek()) == ("fq", "offload_horizon", Some(&"0us")) {
            words.next();
        } else if kind == "netem" && NETEM_STATES.contains(&word) {
            // The probabilities of a model of losses are shown with names, and read without.
        } else if matches!(kind, "codel" | "fq_codel") && CODEL_TIMES.contains(&word) {
            options.push(word.to_owned());
            options.extend(words.next().map(codel_time));
        } else {
            options.push(unit(word));
        }
    }
    // It marks by default, and tc shows no word for the opposite.
    if kind == "fq_codel" && !words_have_ecn {
        options.push("noecn".to_owned());
    }
    // A bandwidth after it would switch it off, and the keys of JSON have no order.
    options.extend((kind == "cake" && all.contains(&AUTORATE)).then(|| AUTORATE.to_owned()));
    options
}

/// The option of cake by which it estimates its bandwidth.
const AUTORATE: &str = "autorate-ingress";

fn starts_with<'w>(words: impl Iterator<Item = &'w str>, expected: &[&str]) -> bool {
    words.take(expected.len()).eq(expected.iter().copied())
}

/// What fq shows of its bands if nobody changed them (sch_fq.c).
const FQ_BANDS: [&str; 22] = [
    "3", "priomap", "1", "2", "2", "2", "1", "2", "0", "0", "1", "1", "1", "1", "1", "1", "1", "1",
    "weights", "589824", "196608", "65536",
];

/// Returns the options of an mqprio. It shows the first and the last queue of each traffic class, and reads
/// the number of queues and the first one.
fn mqprio(words: &[&str]) -> Vec<String> {
    let mut options = Vec::new();
    for word in words {
        let word = word.strip_prefix("queues:").map_or(*word, |first| {
            options.push("queues".to_owned());
            first
        });
        let range = word.strip_prefix('(').and_then(|word| word.strip_suffix(')'));
        let ends = range.and_then(|range| range.split_once(':'));
        let queues =
            ends.and_then(|(first, last)| Some((first.parse::<u16>().ok()?, last.parse::<u16>().ok()?)));
        match (word, queues) {
            (_, Some((first, last))) if first <= last => {
                options.push(format!("{}@{first}", last - first + 1))
            }
            ("tc", _) => options.push("num_tc".to_owned()),
            // Without hardware these are the only ones.
            ("mode:dcb" | "shaper:dcb" | "", _) => {}
            _ => options.push(word.to_owned()),
        }
    }
    options.extend(["hw", "0"].map(str::to_owned));
    options
}

/// Whether the limit of an sfq was not given. If it is, the kernel has at most as many flows as packets.
fn is_default_limit(words: &[&str]) -> bool {
    let number = |name| named(words, name).and_then(|text| unit(text).parse::<u32>().ok());
    number("limit")
        .zip(number("flows"))
        .is_some_and(|(limit, flows)| flows > limit)
}

/// The names of netem's probabilities, of the model with four states and of Gilbert and Elliott's.
const NETEM_STATES: [&str; 9] = ["p13", "p31", "p32", "p23", "p14", "p", "r", "1-h", "1-k"];

/// The options of codel and fq_codel that the kernel keeps in units of 1,024 ns.
const CODEL_TIMES: [&str; 3] = ["target", "interval", "ce_threshold"];

/// Returns a time that the kernel shows as `text` again. It rounds down when it reads, and when it shows
/// (`codel_time_to_us`): 1000 us is shown as 999 us, and 999 us would be shown as 998 us. Times above a
/// millisecond are shown with three digits, which hide this.
fn codel_time(text: &str) -> String {
    let micros = text
        .strip_suffix("us")
        .and_then(|digits| digits.parse::<u32>().ok())
        .map(u64::from);
    let shown = |micros: u64| (((micros * 1000) >> 10) << 10) / 1000;
    match micros {
        Some(micros) if shown(micros) < micros => format!("{}us", micros + 1),
        _ => text.to_owned(),
    }
}

/// Returns a weight of dualpi2 that is shown as `text` again. The kernel rounds down when it reads it, and
/// when it shows it.
fn weight(text: &str) -> String {
    let Ok(shown) = text.parse::<f64>() else {
        return text.to_owned();
    };
    let parts = (shown * 256.0).round() as u64;
    // Text has six decimals, and JSON six digits.
    let is_shown_so = |parts: &u64| match parts_of_256(*parts) {
        Amount::Decimal(other) => (other - shown).abs() < 1e-3,
        _ => false,
    };
    let found = [parts, parts + 1].into_iter().find(is_shown_so);
    // A fraction of a power of two has an exact decimal.
    found.map_or(text.to_owned(), |parts| (parts as f64 / 256.0).to_string())
}
