//! The qdiscs of time-sensitive networks.

use std::slice;

use fairgate::queues::{cbs, etf};
use fairgate_config::language::Given;
use toml::Spanned;

use super::{Amount, Children, Detail, Kind, Look, Opt, PLAIN, Reads, Unreadable, means, none, option, same};
use crate::script::Word;
use crate::tc::display::plain;

pub(super) const CBS: Kind = Kind {
    name: "cbs",
    discipline: "cbs",
    options: &[OF_CBS],
    children: Children::Inner { of_default: &[] },
    defaults: none,
    look: Look {
        complete: |seen, details| {
            let config = seen.config::<cbs::Config>();
            let kilobits = |rate: fairgate::Rate| (rate.bits_per_second() / 1000) as i64;
            let numbers = [
                ("hicredit", i64::from(config.hicredit)),
                ("locredit", -i64::from(config.locredit)),
                ("sendslope", -kilobits(config.sendslope)),
                ("idleslope", kilobits(config.idleslope)),
                ("offload", 0),
            ];
            details.extend(numbers.map(|(word, number)| Detail::new(word, Amount::Signed(number))));
        },
        ..PLAIN
    },
};

const OF_CBS: &[Opt] = &[
    option("idleslope", "idleslope", Reads::Several(idleslope)),
    option("sendslope", "sendslope", Reads::Several(sendslope)),
    same("hicredit", "hicredit"),
    option("locredit", "locredit", Reads::Several(locredit)),
    option(
        "offload",
        "",
        Reads::Only("0", "the shaper is software, and no interface does its work"),
    ),
];

/// Whether a cbs of these lines delays nothing: its credit never falls below 0, because the send slope is not
/// negative, or because `locredit` does not let it (`cbs_dequeue_soft` in sch_cbs.c). All are 0 by default.
pub(in crate::tc) fn cbs_delays_nothing(lines: &[Vec<Word>]) -> bool {
    let mut values = [
        ("sendslope", 0i32),
        ("locredit", 0),
        ("idleslope", 0),
        ("hicredit", 0),
    ];
    for pair in lines.iter().flat_map(|line| line.chunks(2)) {
        let [option, value] = pair else { return false };
        let known = values.iter_mut().find(|(word, _)| word == option.get_ref());
        match (known, value.get_ref().parse()) {
            (Some((_, known)), Ok(number)) => *known = number,
            (None, Ok(0)) if option.get_ref() == "offload" => {}
            // What is wrong is reported when it is read.
            _ => return false,
        }
    }
    let [(_, sendslope), (_, locredit), ..] = values;
    sendslope >= 0 || locredit >= 0
}

pub(super) const ETF: Kind = Kind {
    name: "etf",
    discipline: "etf",
    options: &[OF_ETF],
    children: Children::None,
    defaults: none,
    look: Look {
        complete: |seen, details| {
            let config = seen.config::<etf::Config>();
            let switch = |is_on: bool| Amount::Text(if is_on { "on" } else { "off" }.to_owned());
            details.push(Detail::new("clockid", Amount::Text("TAI".to_owned())));
            details.push(Detail::new("delta", plain(config.delta.as_nanos() as u64)));
            details.push(Detail::new("offload", switch(false)));
            details.push(Detail::new("deadline_mode", switch(config.deadline_mode)));
            // There is no socket to check.
            details.push(Detail::new("skip_sock_check", switch(true)));
        },
        ..PLAIN
    },
};

const OF_ETF: &[Opt] = &[
    option("clockid", "", Reads::Several(clock)),
    option("delta", "delta", Reads::Several(delta)),
    means("deadline_mode", "deadline_mode", "true"),
    means("skip_sock_check", "", ""),
    option(
        "offload",
        "",
        Reads::Refused("the queue is software, and no interface does its work: leave the word out"),
    ),
];

type Words<'w> = slice::Iter<'w, Word>;
type Settings = Result<Vec<(&'static str, Spanned<Given>)>, Unreadable>;

/// Reads a whole number. It is negative exactly if it has to be.
fn signed(words: &mut Words<'_>, is_negative: bool, help: &str) -> Result<Spanned<u64>, Unreadable> {
    let word = words.next().ok_or(Unreadable::Missing)?;
    let number: Option<i32> = word.get_ref().parse().ok();
    match number {
        Some(number) if number == 0 || (number < 0) == is_negative => {
            Ok(Spanned::new(word.span(), number.unsigned_abs().into()))
        }
        _ => Err(Unreadable::Wrong {
            location: word.span(),
            message: format!("`{}` is not such a number", word.get_ref()),
            help: help.to_owned(),
        }),
    }
}

/// tc's slopes are in kbit/s.
fn slope(number: Spanned<u64>) -> Spanned<Given> {
    Spanned::new(number.span(), Given::Meant(format!("{}kbit", number.get_ref())))
}

fn idleslope(_: &Word, words: &mut Words<'_>) -> Settings {
    let number = signed(words, false, "write the rate of the queue in kbit/s, like 98688")?;
    Ok(vec![("idleslope", slope(number))])
}

fn sendslope(_: &Word, words: &mut Words<'_>) -> Settings {
    let help = "write the idle slope less the rate of the port in kbit/s, like -901312";
    let number = signed(words, true, help)?;
    Ok(vec![("sendslope", slope(number))])
}

fn locredit(_: &Word, words: &mut Words<'_>) -> Settings {
    let number = signed(words, true, "write the least credit in bytes, like -1389")?;
    let bytes = Given::Integer((*number.get_ref()).into());
    Ok(vec![("locredit", Spanned::new(number.span(), bytes))])
}

fn delta(_: &Word, words: &mut Words<'_>) -> Settings {
    let number = signed(words, false, "write a number of nanoseconds, like 200000")?;
    let time = Given::Meant(format!("{}ns", number.get_ref()));
    Ok(vec![("delta", Spanned::new(number.span(), time))])
}

/// The kernel takes no other clock than TAI. Here it is the clock of the driver.
fn clock(_: &Word, words: &mut Words<'_>) -> Settings {
    let word = words.next().ok_or(Unreadable::Missing)?;
    match word.get_ref().trim_start_matches("CLOCK_") {
        "TAI" => Ok(Vec::new()),
        _ => Err(Unreadable::Wrong {
            location: word.span(),
            message: format!("the clock `{}` is not possible", word.get_ref()),
            help: "write CLOCK_TAI, as the kernel requires".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::{Device, Script, show};

    /// The options as tc shows them, or the error and its remedy.
    fn shown(kind: &str) -> Result<String, String> {
        let text = format!("qdisc add dev e root handle 1: {kind}");
        let spec = Script::parse("test.tc", &text, Device::default())
            .and_then(|script| script.spec())
            .map_err(|error| {
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

    /// The examples of the manual pages. What iproute2's source prints for them is on the right.
    #[test]
    fn options_are_shown_as_by_tc() {
        for (kind, expected) in [
            (
                "cbs idleslope 98688 sendslope -901312 hicredit 153 locredit -1389",
                "hicredit 153 locredit -1389 sendslope -901312 idleslope 98688 offload 0",
            ),
            (
                "etf clockid CLOCK_TAI delta 200000 deadline_mode skip_sock_check",
                "clockid TAI delta 200000 offload off deadline_mode on skip_sock_check on",
            ),
        ] {
            assert_eq!(shown(kind).as_deref(), Ok(expected), "{kind}");
        }
    }

    /// The kernel's credit is then never below 0.
    #[test]
    fn a_cbs_that_delays_nothing_is_what_is_in_it() {
        for options in [
            "",
            " hicredit 64",
            " idleslope 666",
            " sendslope 888",
            " locredit 10",
            " idleslope 1000 sendslope 1000 hicredit 1 locredit -1",
        ] {
            let text = format!("qdisc add dev e root handle 1: cbs{options}");
            let fifo = Script::translate_all("test.tc", &text, Device::default()).expect("it is taken");
            assert_eq!(fifo[0].spec.discipline(), "fifo", "{options}");
            assert!(fifo[0].warnings[0].text.contains("delays nothing"), "{options}");
            let within = format!("{text}\nqdisc add dev e parent 1:1 handle 2: sfq");
            let sfq = Script::translate_all("test.tc", &within, Device::default()).expect("it is taken");
            assert_eq!(sfq[0].spec.discipline(), "sfq", "{options}");
        }
    }

    #[test]
    fn what_can_not_be_done_is_rejected() {
        for (kind, reason) in [
            (
                "cbs idleslope 1000 sendslope -1000 hicredit 1 locredit -1 offload 1",
                "`offload` must be 0",
            ),
            ("cbs idleslope x sendslope -1000", "`x` is not such a number"),
            ("cbs sendslope -1000 locredit -1", "idleslope"),
            (
                "etf clockid CLOCK_MONOTONIC delta 1",
                "the clock `CLOCK_MONOTONIC` is not possible",
            ),
            (
                "etf clockid CLOCK_TAI delta 1 offload",
                "no interface does its work",
            ),
        ] {
            let error = shown(kind).expect_err(kind);
            assert!(error.contains(reason), "{kind}: {error}");
        }
    }
}
