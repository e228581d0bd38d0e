//! netem's options, most of which have several values, and how tc shows them (iproute2, q_netem.c).

use std::slice;
use std::time::Duration;

use fairgate::Probability;
use fairgate::queues::netem::{Chance, Config, Loss, SlotGap};
use fairgate_config::language::Given;
use toml::Spanned;

use super::{
    Amount, Children, Detail, Kind, Look, Opt, PLAIN, Reads, Seen, Unreadable, means, none, option, same,
    show,
};
use crate::script::{Word, number};
use crate::tc::display::plain;
use crate::tc::values::time;

pub(super) const NETEM: Kind = Kind {
    name: "netem",
    discipline: "netem",
    options: &[OPTIONS],
    children: Children::InnerOrNone,
    defaults: none,
    look: Look {
        options: &[&[show("limit", plain)]],
        complete,
        ..PLAIN
    },
};

const OPTIONS: &[Opt] = &[
    same("limit", "limit"),
    option("delay", "delay", Reads::Several(delay)),
    option("latency", "delay", Reads::Several(delay)),
    option("distribution", "distribution", Reads::Several(distribution)),
    option("loss", "loss", Reads::Several(loss)),
    option("drop", "loss", Reads::Several(loss)),
    means("ecn", "ecn", "true"),
    option("duplicate", "duplicate", Reads::Several(duplicate)),
    option("corrupt", "corrupt", Reads::Several(corrupt)),
    option("reorder", "reorder", Reads::Several(reorder)),
    same("gap", "gap"),
    option("rate", "rate", Reads::Several(rate)),
    option("slot", "slot_min", Reads::Several(slot)),
    option(
        "seed",
        "",
        Reads::Refused("the run's seed decides: give --seed, or leave it out"),
    ),
];

type Words<'w> = slice::Iter<'w, Word>;
type Settings = Result<Vec<(&'static str, Spanned<Given>)>, Unreadable>;

fn next<'w>(words: &mut Words<'w>) -> Result<&'w Word, Unreadable> {
    words.next().ok_or(Unreadable::Missing)
}

/// Takes the next word if it begins like a number.
fn next_number<'w>(words: &mut Words<'w>) -> Option<&'w Word> {
    let is_number = |word: &Word| word.get_ref().starts_with(|first: char| first.is_ascii_digit());
    words
        .as_slice()
        .first()
        .filter(|word| is_number(word))
        .and_then(|_| words.next())
}

/// Takes the next word if it begins like a number, perhaps with a sign.
fn next_signed<'w>(words: &mut Words<'w>) -> Option<&'w Word> {
    let is_number = |word: &Word| {
        let digits = word.get_ref().strip_prefix(['-', '+']).unwrap_or(word.get_ref());
        digits.starts_with(|first: char| first.is_ascii_digit())
    };
    words
        .as_slice()
        .first()
        .filter(|word| is_number(word))
        .and_then(|_| words.next())
}

/// Reads a percentage, with or without its sign, as a probability: `0.1%` and `0.1` are 0.001.
fn percent(word: &Word) -> Spanned<Given> {
    let text = word.get_ref().strip_suffix('%').unwrap_or(word.get_ref());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Spanned::new(word.span(), Given::Word(word.get_ref().clone()));
    }
    let padded = format!("{whole:0>3}");
    let (ones, hundredths) = padded.split_at(padded.len() - 2);
    Spanned::new(
        word.span(),
        Given::Meant(format!("{ones}.{hundredths}{fraction}")),
    )
}

/// Reads percentages for these parameters: the first one, and the others as far as they are given.
fn percentages(parameters: &[&'static str], words: &mut Words<'_>) -> Settings {
    let mut read = vec![(parameters[0], percent(next(words)?))];
    for parameter in &parameters[1..] {
        match next_number(words) {
            Some(word) => read.push((parameter, percent(word))),
            None => break,
        }
    }
    Ok(read)
}

fn delay(_: &Word, words: &mut Words<'_>) -> Settings {
    let mut read = vec![("delay", time(next(words)?, "ns"))];
    if let Some(jitter) = next_number(words) {
        read.push(("jitter", time(jitter, "ns")));
        // Without jitter there is nothing that a correlation could change.
        let is_zero = jitter.get_ref().starts_with('0')
            && jitter
                .get_ref()
                .bytes()
                .all(|byte| !(b'1'..=b'9').contains(&byte));
        if let Some(correlation) = next_number(words).filter(|_| !is_zero) {
            read.push(("delay_correlation", percent(correlation)));
        }
    }
    Ok(read)
}

fn duplicate(_: &Word, words: &mut Words<'_>) -> Settings {
    percentages(&["duplicate", "duplicate_correlation"], words)
}

fn corrupt(_: &Word, words: &mut Words<'_>) -> Settings {
    percentages(&["corrupt", "corrupt_correlation"], words)
}

fn reorder(_: &Word, words: &mut Words<'_>) -> Settings {
    percentages(&["reorder", "reorder_correlation"], words)
}

fn loss(_: &Word, words: &mut Words<'_>) -> Settings {
    const RANDOM: &[&str] = &["loss", "loss_correlation"];
    let model = words.as_slice().first().ok_or(Unreadable::Missing)?;
    let parameters: &[&'static str] = match model.get_ref().as_str() {
        text if text.starts_with(|first: char| first.is_ascii_digit()) => return percentages(RANDOM, words),
        "random" => RANDOM,
        "state" => &["p13", "p31", "p32", "p23", "p14"],
        "gemodel" => &["p", "r", "loss_bad", "loss_good"],
        other => {
            return Err(Unreadable::Wrong {
                location: model.span(),
                message: format!("there is no model of losses `{other}`"),
                help: "write a percentage, or one of random, state and gemodel before it".to_owned(),
            });
        }
    };
    let _ = words.next();
    percentages(parameters, words)
}

fn rate(_: &Word, words: &mut Words<'_>) -> Settings {
    let word = |word: &Word| Spanned::new(word.span(), Given::Word(word.get_ref().clone()));
    let mut read = vec![("rate", word(next(words)?))];
    if let Some(overhead) = next_signed(words) {
        read.push(("packet_overhead", word(overhead)));
        if let Some(size) = next_number(words) {
            read.push(("cell_size", word(size)));
            if let Some(overhead) = next_signed(words) {
                read.push(("cell_overhead", word(overhead)));
            }
        }
    }
    Ok(read)
}

fn distribution(_: &Word, words: &mut Words<'_>) -> Settings {
    shape(next(words)?, "distribution", "table")
}

fn slot(_: &Word, words: &mut Words<'_>) -> Settings {
    let first = next(words)?;
    let mut read = if first.get_ref() == "distribution" {
        let mut read = shape(next(words)?, "slot_distribution", "slot_table")?;
        read.push(("slot_delay", time(next(words)?, "ns")));
        read.push(("slot_jitter", time(next(words)?, "ns")));
        read
    } else {
        let mut read = vec![("slot_min", time(first, "ns"))];
        read.extend(next_number(words).map(|most| ("slot_max", time(most, "ns"))));
        read
    };
    for (name, parameter) in [("packets", "slot_packets"), ("bytes", "slot_bytes")] {
        if words
            .as_slice()
            .first()
            .is_some_and(|word| word.get_ref() == name)
        {
            let _ = words.next();
            let count = next(words)?;
            // 0 is no limit.
            if number(count.get_ref()) != Some(0) {
                read.push((
                    parameter,
                    Spanned::new(count.span(), Given::Word(count.get_ref().clone())),
                ));
            }
        }
    }
    Ok(read)
}

/// The distributions that need no file.
const BUILT_IN: [&str; 4] = ["uniform", "normal", "pareto", "paretonormal"];

/// Reads the name of a distribution: one that is built in, or a table in tc's folder.
fn shape(name: &Word, parameter: &'static str, table: &'static str) -> Settings {
    let given = |value| Spanned::new(name.span(), value);
    let text = name.get_ref();
    if BUILT_IN.contains(&text.as_str()) {
        return Ok(vec![(parameter, given(Given::Meant(text.clone())))]);
    }
    let numbers = numbers_of(text).map_err(|message| Unreadable::Wrong {
        location: name.span(),
        message,
        help: "uniform, normal, pareto and paretonormal need no file; TC_LIB_DIR names another folder"
            .to_owned(),
    })?;
    let numbers = numbers
        .into_iter()
        .map(|number| given(Given::Integer(number.into())));
    Ok(vec![
        (parameter, given(Given::Meant("table".to_owned()))),
        (table, given(Given::List(numbers.collect()))),
    ])
}

/// Returns the file of a table.
fn path_of(name: &str) -> String {
    let folder = std::env::var("TC_LIB_DIR").unwrap_or_else(|_| "/usr/lib/tc".to_owned());
    format!("{folder}/{name}.dist")
}

/// Returns the files of the tables that these words name.
pub(super) fn files(words: &[Word]) -> impl Iterator<Item = String> {
    let named = words
        .windows(2)
        .filter(|pair| pair[0].get_ref() == "distribution");
    let names = named.map(|pair| pair[1].get_ref().as_str());
    names.filter(|name| !BUILT_IN.contains(name)).map(path_of)
}

/// The most numbers that tc reads.
const MOST_NUMBERS: usize = 16_384;

/// Reads the numbers of a table from tc's folder.
fn numbers_of(name: &str) -> Result<Vec<i16>, String> {
    if name.contains(['/', '\0']) || name.starts_with('.') {
        return Err(format!("`{name}` is not the name of a distribution"));
    }
    let path = path_of(name);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("there is no distribution `{name}`: {path}: {error}"))?;
    numbers_in(&text).map_err(|message| format!("{path}: {message}"))
}

/// Reads the numbers of a table. As in tc, a line ends at the first word that is no number.
fn numbers_in(text: &str) -> Result<Vec<i16>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.flat_map(|line| line.split_whitespace().map_while(|word| word.parse::<i64>().ok()));
    let mut numbers = Vec::new();
    for number in words {
        let fits = i16::try_from(number).map_err(|_| format!("{number} does not fit in 16 bits"))?;
        numbers.push(fits);
    }
    match numbers.len() {
        0 => Err("it has no numbers".to_owned()),
        1..=MOST_NUMBERS => Ok(numbers),
        many => Err(format!(
            "it has {many} numbers, but may have at most {MOST_NUMBERS}"
        )),
    }
}

// How tc shows it.

fn share(probability: Probability) -> f64 {
    probability.parts() as f64 / Probability::ONE.parts() as f64
}

/// A percentage with at most six digits.
fn shown(probability: Probability) -> String {
    let text = Amount::Digits(100.0 * share(probability)).text();
    format!("{}%", text.unwrap_or_default())
}

/// A time with three digits (iproute2: `sprint_time64`).
fn time_text(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let (unit, name) = match nanos {
        _ if nanos >= 1e9 => (1e9, "s"),
        _ if nanos >= 1e6 => (1e6, "ms"),
        _ if nanos >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    let value = nanos / unit;
    let decimals = match value {
        _ if value >= 100.0 => 0,
        _ if value >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{name}")
}

/// Adds an option: in text the word and its values, in JSON an object.
fn add(
    details: &mut Vec<Detail>,
    word: &'static str,
    text: String,
    key: &'static str,
    numbers: Vec<(&'static str, f64)>,
) {
    details.push(Detail::keyed(word, "", Amount::Text(text)));
    details.push(Detail::in_json(key, Amount::Object(numbers)));
}

/// Adds an event with its correlation.
fn add_chance(details: &mut Vec<Detail>, word: &'static str, key: &'static str, chance: Chance) {
    if chance.probability == Probability::ZERO {
        return;
    }
    let correlation = correlation(chance.correlation);
    let text = format!("{}{correlation}", shown(chance.probability));
    let numbers = vec![
        (word, share(chance.probability)),
        ("correlation", share(chance.correlation)),
    ];
    add(details, word, text, key, numbers);
}

fn correlation(correlation: Probability) -> String {
    match correlation {
        Probability::ZERO => String::new(),
        correlation => format!(" {}", shown(correlation)),
    }
}

fn complete(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<Config>();
    if config.delay > Duration::ZERO {
        let mut text = time_text(config.delay);
        if config.jitter > Duration::ZERO {
            text += &format!(
                "  {}{}",
                time_text(config.jitter),
                correlation(config.delay_correlation)
            );
        }
        let numbers = vec![
            ("delay", config.delay.as_secs_f64()),
            ("jitter", config.jitter.as_secs_f64()),
            ("correlation", share(config.delay_correlation)),
        ];
        add(details, "delay", text, "delay", numbers);
    }
    add_loss(details, config.loss);
    add_chance(details, "duplicate", "duplicate", config.duplicate);
    let reorder = if config.reorder.gap > 0 {
        config.reorder.chance
    } else {
        Chance::default()
    };
    add_chance(details, "reorder", "reorder", reorder);
    add_chance(details, "corrupt", "corrupt", config.corrupt);
    if let Some(link) = config.rate {
        let mut text = Amount::Rate(link.rate).text().unwrap_or_default();
        let numbers = [
            ("packetoverhead", f64::from(link.packet_overhead)),
            ("cellsize", f64::from(link.cell_size)),
            ("celloverhead", f64::from(link.cell_overhead)),
        ];
        for (name, number) in numbers {
            if number != 0.0 {
                text += &format!(" {name} {number}");
            }
        }
        let bytes = (link.rate.bits_per_second() / 8) as f64;
        add(
            details,
            "rate",
            text,
            "rate",
            [&[("rate", bytes)], &numbers[..]].concat(),
        );
    }
    if let Some(slots) = &config.slots {
        let (mut text, mut numbers) = match &slots.gap {
            SlotGap::Between(least, most) => (
                format!("{} {}", time_text(*least), time_text(*most)),
                vec![
                    ("min-delay", least.as_secs_f64()),
                    ("max-delay", most.as_secs_f64()),
                ],
            ),
            SlotGap::Drawn { mean, deviation, .. } => (
                format!("distribution {} {}", time_text(*mean), time_text(*deviation)),
                vec![
                    ("distribution", mean.as_secs_f64()),
                    ("jitter", deviation.as_secs_f64()),
                ],
            ),
        };
        for (name, most) in [("packets", slots.packets), ("bytes", slots.bytes)] {
            let most = if most == i32::MAX as u32 { 0 } else { most };
            if most > 0 {
                text += &format!(" {name} {most}");
            }
            numbers.push((name, most.into()));
        }
        add(details, "slot", text, "slot", numbers);
    }
    details.push(Detail::in_json("ecn", Amount::Switch(config.ecn)));
    details.push(Detail::in_json("gap", plain(config.reorder.gap.into())));
    let gap = format!("gap {}", config.reorder.gap);
    match (config.ecn, config.reorder.gap) {
        (false, 0) => {}
        (true, 0) => details.push(Detail::keyed("ecn", "", Amount::Text(String::new()))),
        (false, _) => details.push(Detail::keyed("gap", "", plain(config.reorder.gap.into()))),
        // tc prints a space after `ecn`, and one before `gap`.
        (true, _) => details.push(Detail::keyed("ecn", "", Amount::Text(format!(" {gap}")))),
    }
}

fn add_loss(details: &mut Vec<Detail>, loss: Loss) {
    let (word, key, parts): (_, _, Vec<(&'static str, Probability)>) = match loss {
        Loss::None => return,
        Loss::Random {
            probability,
            correlation,
        } => {
            let chance = Chance {
                probability,
                correlation,
            };
            return add_chance(details, "loss", "loss-random", chance);
        }
        Loss::FourStates {
            p13,
            p31,
            p32,
            p23,
            p14,
        } => (
            "loss state",
            "loss-state",
            vec![
                ("p13", p13),
                ("p31", p31),
                ("p32", p32),
                ("p23", p23),
                ("p14", p14),
            ],
        ),
        Loss::GilbertElliott {
            p,
            r,
            loss_bad,
            loss_good,
        } => (
            "loss gemodel",
            "loss-gemodel",
            vec![("p", p), ("r", r), ("1-h", loss_bad), ("1-k", loss_good)],
        ),
    };
    let texts: Vec<String> = parts
        .iter()
        .map(|(name, probability)| format!("{name} {}", shown(*probability)))
        .collect();
    let numbers = parts
        .iter()
        .map(|(name, probability)| (*name, share(*probability)))
        .collect();
    add(details, word, texts.join(" "), key, numbers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::{Device, Script, show};

    fn script(options: &str) -> Script {
        let text = format!("qdisc add dev e root handle 1: netem {options}");
        Script::parse("test.tc", &text, Device::default()).expect("a script")
    }

    /// The options as tc shows them, or the error and its remedy.
    fn shown(options: &str) -> Result<String, String> {
        let spec = script(options).spec().map_err(|error| {
            let problems = error.problems().iter();
            let texts: Vec<String> = problems
                .map(|problem| format!("{}: {}", problem.message, problem.help))
                .collect();
            texts.join("; ")
        })?;
        let (qdiscs, _) = show(&spec);
        let texts: Vec<String> = qdiscs[0].options.iter().filter_map(Detail::text).collect();
        Ok(texts.join(" "))
    }

    /// The lines of netem's manual page, and others. What iproute2's source prints for them is on the right.
    #[test]
    fn options_are_shown_as_by_tc() {
        for (options, expected) in [
            ("", "limit 1000"),
            ("delay 100ms", "limit 1000 delay 100ms"),
            ("delay 100ms 10ms", "limit 1000 delay 100ms  10ms"),
            ("delay 100ms 10ms 25%", "limit 1000 delay 100ms  10ms 25%"),
            (
                "delay 100ms 20ms distribution normal",
                "limit 1000 delay 100ms  20ms",
            ),
            // Since iproute2 4.16 (get_time64) a plain number is one of nanoseconds.
            ("latency 1500 limit 50", "limit 50 delay 1.5us"),
            ("delay 100ns", "limit 1000 delay 100ns"),
            ("loss 0.1%", "limit 1000 loss 0.1%"),
            ("loss random 0.3% 25%", "limit 1000 loss 0.3% 25%"),
            ("drop 10", "limit 1000 loss 10%"),
            ("loss 100% ecn", "limit 1000 loss 100% ecn"),
            (
                "loss state 1% 10% 70% 50% 0.1%",
                "limit 1000 loss state p13 1% p31 10% p32 70% p23 50% p14 0.1%",
            ),
            (
                "loss state 25%",
                "limit 1000 loss state p13 25% p31 75% p32 0% p23 100% p14 0%",
            ),
            (
                "loss gemodel 1% 10% 70% 0.1%",
                "limit 1000 loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
            ),
            (
                "loss gemodel 25%",
                "limit 1000 loss gemodel p 25% r 75% 1-h 100% 1-k 0%",
            ),
            ("duplicate 1%", "limit 1000 duplicate 1%"),
            ("corrupt 0.1% 5%", "limit 1000 corrupt 0.1% 5%"),
            (
                "delay 10ms reorder 25% 50%",
                "limit 1000 delay 10ms reorder 25% 50% gap 1",
            ),
            (
                "gap 5 delay 10ms reorder 100%",
                "limit 1000 delay 10ms reorder 100% gap 5",
            ),
            (
                "loss 1% ecn delay 1ms reorder 2% gap 3",
                "limit 1000 delay 1ms loss 1% reorder 2% ecn  gap 3",
            ),
            (
                "rate 5kbit 20 100 5",
                "limit 1000 rate 5Kbit packetoverhead 20 cellsize 100 celloverhead 5",
            ),
            ("rate 1mbit -14", "limit 1000 rate 1Mbit packetoverhead -14"),
            ("slot 20ms", "limit 1000 slot 20ms 20ms"),
            (
                "slot 800us 1ms packets 5 bytes 9000",
                "limit 1000 slot 800us 1ms packets 5 bytes 9000",
            ),
            (
                "slot distribution pareto 1ms 100us packets 10",
                "limit 1000 slot distribution 1ms 100us packets 10",
            ),
        ] {
            assert_eq!(shown(options).as_deref(), Ok(expected), "{options}");
        }
    }

    #[test]
    fn what_tc_rejects_is_rejected() {
        for (options, reason) in [
            ("delay", "`delay` has no value"),
            ("reorder 25%", "`delay`"),
            ("delay 10ms gap 5", "`gap`"),
            ("ecn", "`ecn`"),
            ("delay 10ms distribution normal", "`distribution`"),
            ("loss often 10%", "there is no model of losses `often`"),
            ("loss 101%", "above 1"),
            ("loss 1% loss 2%", "twice"),
            (
                "delay 10ms 5ms distribution ../../etc/passwd",
                "is not the name of a distribution",
            ),
            (
                "delay 10ms 5ms distribution no-such-table",
                "there is no distribution `no-such-table`",
            ),
            ("slot 2ms 1ms", "slot"),
            ("seed 7", "--seed"),
        ] {
            let error = shown(options).expect_err(options);
            assert!(error.contains(reason), "{options}: {error}");
        }
    }

    #[test]
    fn a_table_is_read_as_by_tc() {
        assert_eq!(
            numbers_in("# a comment\n -3 0 17\n\n 5 x 6\n"),
            Ok(vec![-3, 0, 17, 5])
        );
        assert!(numbers_in("# nothing\n").unwrap_err().contains("no numbers"));
        assert!(numbers_in("40000").unwrap_err().contains("16 bits"));
        assert!(numbers_in(&"1 ".repeat(16_385)).unwrap_err().contains("16385"));
    }

    #[test]
    fn a_qdisc_may_be_attached() {
        let text = "qdisc add dev e root handle 1: netem delay 10ms\n\
                    qdisc add dev e parent 1:1 handle 10: tbf rate 1mbit burst 5kb latency 50ms";
        let spec = Script::parse("test.tc", text, Device::default())
            .and_then(|script| script.spec())
            .unwrap();
        let (qdiscs, classes) = show(&spec);
        assert_eq!((qdiscs.len(), classes.len()), (2, 2));
        assert_eq!(show(&script("delay 1ms").spec().unwrap()).1.len(), 0);
    }
}
