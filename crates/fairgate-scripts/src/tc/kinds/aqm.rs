//! Active queue management of one queue.

use std::slice;

use fairgate::aqm::dualpi2::{self, Step};
use fairgate::aqm::red::Response;
use fairgate::aqm::{choke, gred, red};

use fairgate::{ConfigError, DropReason, Probability, Variable};
use fairgate_config::language::Given;
use toml::Spanned;

use super::{
    Amount, Children, Detail, Kind, Look, Opt, PLAIN, Reads, Row, Running, Seen, Show, Unreadable, When,
    means, mtu_of_one_frame, none, option, same, show, show_keyed, time,
};
use crate::script::{Word, number};
use crate::tc::display::{aligned, packets, plain, row, size, ticks};

pub(super) const RED: Kind = Kind {
    name: "red",
    discipline: "red",
    options: &[
        RED_PARAMETERS,
        &[
            means("harddrop", "harddrop", "true"),
            means("nodrop", "nodrop", "true"),
            means("adaptive", "adaptive", "true"),
            means("adaptative", "adaptive", "true"),
        ],
    ],
    children: Children::Inner { of_default: &[] },
    defaults: none,
    look: Look {
        options: &[&[show("limit", size)]],
        complete: |seen, details| {
            let config = seen.config::<red::Config>();
            show_thresholds(config.thresholds(), size, details);
            show_response(config.response, config.adaptive, details);
            show_average(config.logarithms(), config.probability, details);
        },
        statistics: |red| vec![row("  ", red_counts(red))],
        ..PLAIN
    },
};

pub(super) const CODEL: Kind = Kind {
    name: "codel",
    discipline: "codel",
    options: &[&[same("limit", "limit")], CODEL_PARAMETERS],
    children: Children::None,
    defaults: none,
    look: Look {
        options: &[&[show("limit", packets)], CODEL_CONTROL, &[show("ecn", plain)]],
        statistics: |codel| {
            let is_dropping = codel.is_set("dropping");
            let dropping = Detail::new("dropping", Amount::Flag(true));
            let overlimit = codel.dropped_for(&[DropReason::QueueLimit]);
            vec![
                row(
                    "  ",
                    [
                        codel.variable("count", "count"),
                        codel.variable("lastcount", "lastcount"),
                        codel
                            .number("ldelay")
                            .map(|nanos| Detail::new("ldelay", ticks(nanos))),
                        is_dropping.then_some(dropping),
                        // Otherwise it is the time from the reading to the next drop.
                        (!is_dropping).then(|| Detail::new("drop_next", Amount::Time(0))),
                    ],
                ),
                row(
                    "  ",
                    [
                        codel.variable("maxpacket", "maxpacket"),
                        Running::count("ecn_mark", codel.marked()),
                        Running::count("drop_overlimit", overlimit),
                    ],
                ),
            ]
        },
        ..PLAIN
    },
};

pub(super) const PIE: Kind = Kind {
    name: "pie",
    discipline: "pie",
    options: &[&[same("limit", "limit")], PIE_PARAMETERS],
    children: Children::None,
    defaults: mtu_of_one_frame,
    look: Look {
        options: &[&[show("limit", packets)], PIE_CONTROL, PIE_FLAGS],
        statistics: |pie| {
            let prob = pie
                .number("prob")
                .map(|parts| Detail::new("prob", of_one(Probability::from_parts(parts))));
            let rate = pie.variable("avg_dq_rate", "avg_dq_rate");
            let rate = rate.filter(|_| pie.has_option("dq_rate_estimator"));
            vec![
                row("  ", [prob, pie.time("delay", "delay"), rate]),
                row(
                    "  ",
                    [
                        Running::count("pkts_in", pie.taken_in()),
                        Running::count("overlimit", pie.dropped_for(&[DropReason::QueueLimit])),
                        Running::count("dropped", pie.dropped_for(&[DropReason::Aqm])),
                        pie.variable("maxq", "maxq"),
                        Running::count("ecn_mark", pie.marked()),
                    ],
                ),
            ]
        },
        ..PLAIN
    },
};

pub(super) const CHOKE: Kind = Kind {
    name: "choke",
    discipline: "choke",
    options: &[RED_PARAMETERS, &[means("noecn", "ecn", "false")]],
    children: Children::None,
    defaults: none,
    look: Look {
        options: &[&[show("limit", packets)]],
        complete: |seen, details| {
            let config = seen.config::<choke::Config>();
            show_thresholds(config.thresholds(), packets, details);
            show_response(config.response, false, details);
            show_average(config.logarithms(), config.probability, details);
        },
        statistics: |choke| {
            let matched = choke.variable("matched", "matched");
            vec![row("  ", choke_counts(choke).into_iter().chain([matched]))]
        },
        ..PLAIN
    },
};

pub(super) const DUALPI2: Kind = Kind {
    name: "dualpi2",
    discipline: "dualpi2",
    options: &[&[
        same("limit", "limit"),
        same("memlimit", "memory_limit"),
        time("target", "target"),
        time("tupdate", "tupdate"),
        option("alpha", "alpha", Reads::In256ths),
        option("beta", "beta", Reads::In256ths),
        option("step_thresh", "step_thresh step_packets", Reads::TimeOrPackets),
        same("min_qlen_step", "min_qlen_step"),
        same("coupling_factor", "coupling_factor"),
        option("classic_protection", "classic_protection", Reads::MaybePercent),
        means("drop_on_overload", "drop_overload", "true"),
        means("overflow", "drop_overload", "false"),
        means("drop_enqueue", "drop_early", "true"),
        means("drop_dequeue", "drop_early", "false"),
        means("l4s_ect", "any_ect", "false"),
        means("any_ect", "any_ect", "true"),
        // No super-packets are queued, so both options have no effect.
        means("split_gso", "", ""),
        means("no_split_gso", "", ""),
        // `round_trips` replaces these by other parameters.
        time("max_rtt", "max_rtt"),
        time("typical_rtt", "typical_rtt"),
    ]],
    children: Children::None,
    defaults: mtu_of_one_frame,
    look: Look {
        options: &[&[
            show("limit", packets),
            show_keyed("memlimit", "memory-limit", "memory_limit", |bytes| {
                Amount::Count(bytes, "B")
            }),
            show("target", Amount::Time),
            show("tupdate", Amount::Time),
            show("alpha", parts_of_256),
            show("beta", parts_of_256),
            show_keyed("step_thresh", "step-thresh-pkts", "step_packets", packets),
            show_keyed("step_thresh", "step-thresh-us", "step_thresh", Amount::Time),
            show_keyed("min_qlen_step", "min-qlen-step", "min_qlen_step", packets),
            show_keyed("coupling_factor", "coupling", "coupling_factor", plain),
        ]],
        complete: complete_dualpi2,
        statistics: statistics_of_dualpi2,
        ..PLAIN
    },
};

/// `translate/virtual_queues.rs` reads the lines.
pub(super) const GRED: Kind = Kind {
    name: "gred",
    discipline: "gred",
    options: &[],
    children: Children::None,
    defaults: none,
    look: Look {
        complete: complete_gred,
        statistics: |gred| gred.state.parts.iter().map(|queue| row_of_queue(queue)).collect(),
        ..PLAIN
    },
};

/// Adds the table, and each virtual queue that is set up (`gred_print_opt` of q_gred.c).
fn complete_gred(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<gred::Config>();
    details.push(Detail::new("vqs", plain(config.queues.into())));
    details.push(Detail::new("default", plain(config.default_queue.into())));
    details.push(Detail::new("limit", size(config.limit.into())));
    details.push(Detail::new("grio", Amount::Flag(config.grio)));
    details.push(Detail::new("ecn", Amount::Flag(config.response.ecn)));
    details.push(Detail::new("harddrop", Amount::Flag(config.response.harddrop)));
    for index in 0..gred::MOST {
        let Some(queue) = config.virtual_queue(index) else {
            continue;
        };
        let (min, max) = queue.red.thresholds();
        let numbers = [
            ("vq", plain(index as u64)),
            ("prio", plain(queue.priority.into())),
            ("limit", size(queue.red.limit.into())),
            ("min", size(min.into())),
            ("max", size(max.into())),
        ];
        details.extend(numbers.map(|(word, amount)| Detail::keyed(word, "", amount)));
        let mut average = Vec::new();
        show_average(queue.red.logarithms(), queue.red.probability, &mut average);
        details.extend(average.into_iter().map(|detail| Detail { key: "", ..detail }));
    }
}

/// Returns the statistics of a virtual queue as a line of text.
fn row_of_queue(queue: &[(String, Variable)]) -> Row {
    let of = |name: &str| {
        let found = queue.iter().find(|(known, _)| known == name);
        match found.map(|(_, value)| *value) {
            Some(Variable::Integer(number)) => u64::try_from(number).unwrap_or(0),
            _ => 0,
        }
    };
    let text = format!(
        "  vq {} average {}b current {}b forced {} early {} pdrop {} marked {} packets {} bytes {}",
        of("vq"),
        of("average"),
        of("backlog"),
        of("forced"),
        of("early"),
        of("pdrop"),
        of("marked"),
        of("packets"),
        of("bytes"),
    );
    aligned(text, [])
}

/// The options of RED and choke.
const RED_PARAMETERS: &[Opt] = &[
    same("limit", "limit"),
    same("min", "min"),
    same("max", "max"),
    same("avpkt", "avpkt"),
    same("burst", "burst"),
    same("probability", "probability"),
    same("bandwidth", "bandwidth"),
    means("ecn", "ecn", "true"),
];

/// The options of CoDel and fq_codel.
pub(super) const CODEL_PARAMETERS: &[Opt] = &[
    time("target", "target"),
    time("interval", "interval"),
    time("ce_threshold", "ce_threshold"),
    means("ecn", "ecn", "true"),
    means("noecn", "ecn", "false"),
];

/// Reads a value and a mask of the traffic class, like `0x1/0x3`.
pub(super) fn selector(
    _: &Word,
    words: &mut slice::Iter<'_, Word>,
) -> Result<Vec<(&'static str, Spanned<Given>)>, Unreadable> {
    let word = words.next().ok_or(Unreadable::Missing)?;
    let bits = |text: &str| number(text).and_then(|number| u8::try_from(number).ok());
    let both = word.get_ref().split_once('/');
    let Some((value, mask)) = both.and_then(|(value, mask)| bits(value).zip(bits(mask))) else {
        return Err(Unreadable::Wrong {
            location: word.span(),
            message: format!("`{}` is no value and mask of the traffic class", word.get_ref()),
            help: "write two numbers up to 0xff, like 0x1/0x3".to_owned(),
        });
    };
    let setting = |name, bits: u8| (name, Spanned::new(word.span(), Given::Integer(bits.into())));
    Ok(vec![
        setting("ce_threshold_selector", value),
        setting("ce_threshold_mask", mask),
    ])
}

/// Adds the selector after the threshold.
pub(super) fn complete_selector(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let mask = seen.number("ce_threshold_mask").filter(|mask| *mask > 0);
    let place = details.iter().position(|detail| detail.word == "ce_threshold");
    if let (Some(mask), Some(place)) = (mask, place) {
        let value = seen.number("ce_threshold_selector").unwrap_or(0);
        let text = Amount::Text(format!("{value:#x}/{mask:#x}"));
        let shown = [
            Detail::keyed("ce_threshold_selector", "", text),
            Detail::in_json("ce_threshold_selector", plain(value)),
            Detail::in_json("ce_threshold_mask", plain(mask)),
        ];
        details.splice(place + 1..place + 1, shown).for_each(drop);
    }
}

/// The times of CoDel and fq_codel.
pub(super) const CODEL_CONTROL: &[Show] = &[
    show("target", ticks),
    show("ce_threshold", ticks),
    show("interval", ticks),
];

/// The times and weights of PIE and fq_pie.
pub(super) const PIE_CONTROL: &[Show] = &[
    show("target", Amount::Time),
    show("tupdate", Amount::Time),
    show("alpha", plain),
    show("beta", plain),
];

/// The flags of PIE and fq_pie.
pub(super) const PIE_FLAGS: &[Show] = &[
    show("ecn", plain),
    show("bytemode", plain),
    show("dq_rate_estimator", plain),
];

/// The options of PIE and fq_pie.
pub(super) const PIE_PARAMETERS: &[Opt] = &[
    time("target", "target"),
    time("tupdate", "tupdate"),
    same("alpha", "alpha"),
    same("beta", "beta"),
    means("ecn", "ecn", "true"),
    means("noecn", "ecn", "false"),
    means("bytemode", "bytemode", "true"),
    means("nobytemode", "bytemode", "false"),
    means("dq_rate_estimator", "dq_rate_estimator", "true"),
    means("no_dq_rate_estimator", "dq_rate_estimator", "false"),
];

/// Adds the thresholds after the limit, whether given or derived.
fn show_thresholds((min, max): (u32, u32), form: fn(u64) -> Amount, details: &mut Vec<Detail>) {
    let thresholds = [("min", min), ("max", max)];
    details.splice(
        1..1,
        thresholds.map(|(word, number)| Detail::new(word, form(number.into()))),
    );
}

/// Adds the flags. JSON has also the flags that are off.
fn show_response(response: Response, is_adaptive: bool, details: &mut Vec<Detail>) {
    let flags = [
        ("ecn", response.ecn),
        ("harddrop", response.harddrop),
        ("adaptive", is_adaptive),
        ("nodrop", response.nodrop),
    ];
    details.extend(flags.map(|(word, is_on)| Detail::new(word, Amount::Flag(is_on))));
}

/// Adds the parameters of the average, which tc shows with `-d`. Nothing is added if the parameters are
/// contradictory.
fn show_average(
    logarithms: Result<(u32, u32), ConfigError>,
    probability: Probability,
    details: &mut Vec<Detail>,
) {
    let Ok((ewma, cell)) = logarithms else {
        return;
    };
    let shown = [
        ("ewma", plain(ewma.into())),
        ("probability", of_one(probability)),
        ("Scell_log", plain(cell.into())),
    ];
    details.extend(shown.map(|(word, amount)| Detail::new(word, amount).when(When::Detailed)));
}

/// Returns red's counters. They do not include marks and drops of an inner discipline. The kernel no longer
/// counts other reasons.
fn red_counts(red: &Running<'_>) -> [Option<Detail>; 4] {
    let own = |name: &str| red.number(name).unwrap_or(0);
    counts(red, own("marked"), own("early"), |_| 0)
}

/// Returns choke's counters. It has no inner discipline.
fn choke_counts(choke: &Running<'_>) -> [Option<Detail>; 4] {
    let early = choke.dropped_for(&[DropReason::Aqm]);
    counts(choke, choke.marked(), early, |full| {
        choke.dropped() - early - full
    })
}

/// Returns the numbers of packets marked, dropped early, dropped at the limit, and dropped for other reasons.
fn counts(aqm: &Running<'_>, marked: u64, early: u64, other: impl Fn(u64) -> u64) -> [Option<Detail>; 4] {
    let full = aqm.dropped_for(&[DropReason::QueueLimit]);
    [
        Running::count("marked", marked),
        Running::count("early", early),
        Running::count("pdrop", full),
        Running::count("other", other(full)),
    ]
}

pub(super) fn of_one(probability: Probability) -> Amount {
    Amount::Digits(probability.parts() as f64 / Probability::ONE.parts() as f64)
}

/// Returns the statistics of the two queues.
fn statistics_of_dualpi2(dualpi2: &Running<'_>) -> Vec<Row> {
    let prob = dualpi2.number("prob");
    let prob = prob.map(|parts| Detail::new("prob", Amount::Decimal(parts as f64 / f64::from(u32::MAX))));
    let credit = dualpi2.integer("credit");
    let queue = credit.map(|credit| if credit > 0 { "(C-queue)" } else { "(L-queue)" });
    vec![
        row("", [prob]),
        row(
            "",
            [Some(Detail::keyed(
                "ecn_mark",
                "ecn-mark",
                plain(dualpi2.marked()),
            ))],
        ),
        row(
            "",
            [
                credit.map(|credit| Detail::new("credit", Amount::Signed(credit))),
                queue.map(|queue| Detail::bare(queue, "", None)),
            ],
        ),
    ]
}

/// Adds the choices. tc shows the selected one.
fn complete_dualpi2(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<dualpi2::Config>();
    let is_step = |detail: &Detail| detail.word == "step_thresh";
    if !details.iter().any(is_step) {
        let step = match config.step {
            Step::Delay(delay) => ("step-thresh-us", Amount::Time(delay.as_nanos() as u64)),
            Step::Packets(number) => ("step-thresh-pkts", packets(number.into())),
        };
        let before_step = details.iter().position(|detail| detail.word == "min_qlen_step");
        details.insert(
            before_step.unwrap_or(0),
            Detail::keyed("step_thresh", step.0, step.1),
        );
    }
    details.push(match config.drop_overload {
        true => Detail::bare("drop_on_overload", "drop-overload", Some("drop")),
        false => Detail::bare("overflow", "drop-overload", Some("overflow")),
    });
    details.push(match config.drop_early {
        true => Detail::bare("drop_enqueue", "drop-early", Some("drop-enqueue")),
        false => Detail::bare("drop_dequeue", "drop-early", Some("drop-dequeue")),
    });
    let percent = Amount::Count(config.classic_protection.into(), "%");
    details.push(Detail::keyed("classic_protection", "c-protection", percent));
    details.push(match config.any_ect {
        true => Detail::bare("any_ect", "ecn-mask", Some("any-ect")),
        false => Detail::bare("l4s_ect", "ecn-mask", Some("l4s-ect")),
    });
    // Merged packets are cut before they are queued.
    details.push(Detail::bare("split_gso", "split-gso", None));
}

/// Formats a weight of the controller. The kernel keeps it per nanosecond and multiplied by the largest
/// probability, and rounds down on the way there and back (`dualpi2_unscale_alpha_beta` in sch_dualpi2.c).
pub(in crate::tc) fn parts_of_256(parts: u64) -> Amount {
    const MOST: u64 = u32::MAX as u64;
    const NANOS: u64 = 1_000_000_000;
    let kept = ((parts * MOST) >> 2) / NANOS;
    Amount::Decimal((((kept * NANOS) << 2) / MOST) as f64 / 256.0)
}

#[cfg(test)]
mod tests {
    use crate::tc::{Device, Script, show};

    /// The example of tc's source, with what it prints for each virtual queue.
    #[test]
    fn virtual_queues_of_gred_are_set_up_line_by_line() {
        let text = "qdisc add dev e root handle 1: gred setup vqs 4 default 2 grio limit 100KB ecn
            qdisc change dev e root gred limit 60KB min 15K max 25K burst 64 avpkt 1500 \
                bandwidth 10Mbit DP 1 probability 0.1 prio 3
            qdisc change dev e root gred limit 60KB min 15K max 45K burst 20 avpkt 1000 DP 2";
        let script = Script::parse("test.tc", text, Device::default()).expect("it is read");
        let spec = script.spec().expect("it is right");
        let (qdiscs, _) = show(&spec);
        let shown: Vec<String> = qdiscs[0]
            .options
            .iter()
            .filter(|detail| detail.when != crate::tc::display::When::Detailed)
            .filter_map(|detail| detail.text())
            .collect();
        assert_eq!(
            shown.join(" "),
            "vqs 4 default 2 limit 100Kb grio ecn vq 1 prio 3 limit 60Kb min 15Kb max 25Kb vq 2 prio 8 \
             limit 60Kb min 15Kb max 45Kb"
        );
        for (lines, message) in [
            ("gred limit 60KB DP 1", "says how many virtual queues"),
            ("gred setup vqs 17 default 0", "1 to 16"),
            ("gred setup vqs 2 default 2", "the default virtual queue is 2"),
            (
                "gred setup vqs 2 default 0\nqdisc change dev e root gred limit 60KB min 15K max 25K DP 2",
                "no such virtual queue",
            ),
            (
                "gred setup vqs 2 default 0\nqdisc change dev e root gred min 15K max 25K DP 1",
                "the limit of the virtual queue",
            ),
        ] {
            let text = format!("qdisc add dev e root handle 1: {lines}");
            let script = Script::parse("test.tc", &text, Device::default());
            let error = script.and_then(|script| script.spec()).expect_err(lines);
            assert!(
                error.problems()[0].message.contains(message),
                "{:?}",
                error.problems()
            );
        }
    }
}
