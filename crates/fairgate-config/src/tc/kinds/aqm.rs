//! Active queue management over one queue.

use fairgate::aqm::dualpi2::{self, Step};
use fairgate::aqm::{choke, red};

use super::{
    Amount, Children, Detail, Kind, Look, Opt, PLAIN, Reads, Seen, look, means, mtu_of_one_frame, none,
    option, same, show, show_keyed, time,
};
use crate::tc::show::{packets, plain, size};

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
    children: Children::None,
    defaults: none,
    look: Look {
        options: &[
            show("limit", size),
            show("ecn", plain),
            show("harddrop", plain),
            show("adaptive", plain),
            show("nodrop", plain),
        ],
        complete: |seen, details| {
            show_thresholds(seen.config::<red::Config>().thresholds(), size, details);
        },
        ..PLAIN
    },
};

pub(super) const CODEL: Kind = Kind {
    name: "codel",
    discipline: "codel",
    options: &[&[same("limit", "limit")], CODEL_PARAMETERS],
    children: Children::None,
    defaults: none,
    look: look(&[
        show("limit", packets),
        show("target", Amount::Time),
        show("ce_threshold", Amount::Time),
        show("interval", Amount::Time),
        show("ecn", plain),
    ]),
};

pub(super) const PIE: Kind = Kind {
    name: "pie",
    discipline: "pie",
    options: &[&[same("limit", "limit")], PIE_PARAMETERS],
    children: Children::None,
    defaults: mtu_of_one_frame,
    look: look(&[
        show("limit", packets),
        show("target", Amount::Time),
        show("tupdate", Amount::Time),
        show("alpha", plain),
        show("beta", plain),
        show("ecn", plain),
        show("bytemode", plain),
        show("dq_rate_estimator", plain),
    ]),
};

pub(super) const CHOKE: Kind = Kind {
    name: "choke",
    discipline: "choke",
    options: &[RED_PARAMETERS, &[means("noecn", "ecn", "false")]],
    children: Children::None,
    defaults: none,
    look: Look {
        options: &[show("limit", packets), show("ecn", plain)],
        complete: |seen, details| {
            show_thresholds(seen.config::<choke::Config>().thresholds(), packets, details);
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
        // Super-packets come to no queue: with or without the two nothing is different.
        means("split_gso", "", ""),
        means("no_split_gso", "", ""),
        // No parameters of ours: `round_trips` turns them into some.
        time("max_rtt", "max_rtt"),
        time("typical_rtt", "typical_rtt"),
    ]],
    children: Children::None,
    defaults: mtu_of_one_frame,
    look: Look {
        options: &[
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
        ],
        complete: complete_dualpi2,
        ..PLAIN
    },
};

/// What RED is told, also in choke.
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

/// What CoDel is told, also in fq_codel.
pub(super) const CODEL_PARAMETERS: &[Opt] = &[
    time("target", "target"),
    time("interval", "interval"),
    time("ce_threshold", "ce_threshold"),
    means("ecn", "ecn", "true"),
    means("noecn", "ecn", "false"),
];

/// What PIE is told, also in fq_pie.
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

/// Thresholds behind the limit, given or derived.
fn show_thresholds((min, max): (u32, u32), form: fn(u64) -> Amount, details: &mut Vec<Detail>) {
    let thresholds = [("min", min), ("max", max)];
    details.splice(
        1..1,
        thresholds.map(|(word, number)| Detail::new(word, form(number.into()))),
    );
}

/// Choices, of which tc shows the one that is made.
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
    details.push(Detail::bare("no_split_gso", "", None));
}

fn parts_of_256(parts: u64) -> Amount {
    Amount::Decimal(parts as f64 / 256.0)
}
