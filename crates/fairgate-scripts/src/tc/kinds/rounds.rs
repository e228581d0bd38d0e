//! Fair queueing and round robins.

use fairgate::DropReason;
use fairgate::rounds::sfq;
use fairgate_config::Value;

use super::aqm::{
    CODEL_CONTROL, CODEL_PARAMETERS, PIE_CONTROL, PIE_FLAGS, PIE_PARAMETERS, complete_selector, of_one,
    selector,
};
use super::{
    Amount, Children, ClassSpec, Detail, Kind, Look, Opt, PLAIN, Reads, Running, Seen, frame, means,
    mtu_of_one_frame, none, option, quantum_of_one_frame, same, show, show_as, time,
};
use crate::tc::display::{bytes, packets, plain, rate, row, size};

pub(super) const DRR: Kind = Kind {
    name: "drr",
    discipline: "drr",
    options: &[],
    children: Children::Classes {
        options: &[same("quantum", "quantum")],
        defaults: quantum_of_one_frame,
    },
    defaults: none,
    look: Look {
        class_options: &[show("quantum", bytes)],
        has_classes_at_root: true,
        ..PLAIN
    },
};

pub(super) const QFQ: Kind = Kind {
    name: "qfq",
    discipline: "qfq_plus",
    options: &[],
    children: Children::Classes {
        options: &[
            // sch_qfq.c: QFQ_MAX_WEIGHT, QFQ_MIN_LMAX and 1 << QFQ_MTU_SHIFT.
            option("weight", "weight", Reads::Within(1, 1 << 10)),
            option("maxpkt", "max_packet", Reads::Within(512, 1 << 16)),
        ],
        defaults: |device| vec![("max_packet", frame(device).to_string())],
    },
    defaults: none,
    look: Look {
        class_options: &[show("weight", plain), show_as("maxpkt", "max_packet", plain)],
        has_classes_at_root: true,
        ..PLAIN
    },
};

pub(super) const ETS: Kind = Kind {
    name: "ets",
    discipline: "ets",
    options: &[&[
        same("bands", "bands"),
        same("strict", "strict"),
        option("quanta", "quanta", Reads::ListAtLeast(LEAST_QUANTUM)),
        option("priomap", "priomap", Reads::List),
    ]],
    children: Children::SharingBands,
    defaults: none,
    look: Look {
        options: &[&[show("priomap", plain)]],
        complete: complete_ets,
        complete_class: |seen, class, details| {
            let is_strict = u64::from(class.minor) <= seen.number("strict").unwrap_or(0);
            details.extend(
                quantum(class)
                    .filter(|_| !is_strict)
                    .map(|bytes| Detail::new("quantum", plain(bytes))),
            );
        },
        has_classes_at_root: true,
        ..PLAIN
    },
};

pub(super) const SFQ: Kind = Kind {
    name: "sfq",
    discipline: "sfq",
    options: &[&[
        same("limit", "limit"),
        // sch_sfq.c: SFQ_MAX_DEPTH and SFQ_MAX_FLOWS.
        option("depth", "depth", Reads::AtMost(127)),
        option("flows", "flows", Reads::AtMost((1 << 16) - 256)),
        same("divisor", "divisor"),
        same("quantum", "quantum"),
        means("headdrop", "drop", "head"),
        option("perturb", "perturb", Reads::Time("s")),
        // `flow_red.rs` derives the thresholds.
        same("redflowlimit", "redflowlimit"),
        same("min", "min"),
        same("max", "max"),
        same("avpkt", "avpkt"),
        same("burst", "burst"),
        same("probability", "probability"),
        means("ecn", "ecn", "true"),
        means("harddrop", "harddrop", "true"),
    ]],
    children: Children::None,
    defaults: |device| {
        let mut defaults = quantum_of_one_frame(device);
        defaults.push(("perturb", "none".to_owned()));
        defaults
    },
    look: Look {
        options: &[&[
            show("limit", packets),
            show("quantum", bytes),
            show("depth", plain),
            show("flows", plain).in_detail(),
            show("divisor", plain),
            show("perturb", |nanos| Amount::Count(nanos / 1_000_000_000, "sec")),
        ]],
        complete: complete_sfq,
        ..PLAIN
    },
};

pub(super) const FQ: Kind = Kind {
    name: "fq",
    discipline: "fq",
    options: &[&[
        same("limit", "limit"),
        same("flow_limit", "flow_limit"),
        same("buckets", "flows"),
        same("quantum", "quantum"),
        same("initial_quantum", "initial_quantum"),
        same("maxrate", "maxrate"),
        same("low_rate_threshold", "low_rate_threshold"),
        time("refill_delay", "refill_delay"),
        time("horizon", "horizon"),
        means("horizon_drop", "beyond_horizon", "drop"),
        means("horizon_cap", "beyond_horizon", "hold"),
        time("ce_threshold", "ce_threshold"),
        option(
            "pacing",
            "",
            Reads::Noted("packets that pass a bridge name no rate of their own"),
        ),
        option(
            "nopacing",
            "",
            Reads::Noted("packets that pass a bridge name no rate of their own"),
        ),
        option(
            "orphan_mask",
            "",
            Reads::NotedValue("a bridge has no sockets, whose orphans it is for"),
        ),
        option(
            "timer_slack",
            "",
            Reads::NotedValue("when to wake up is not the discipline's business here"),
        ),
    ]],
    children: Children::None,
    defaults: |device| {
        let frame = u64::from(frame(device));
        let quanta = [("quantum", 2 * frame), ("initial_quantum", 10 * frame)];
        quanta.map(|(name, bytes)| (name, bytes.to_string())).to_vec()
    },
    look: Look {
        options: &[&[
            show("limit", packets),
            show("flow_limit", packets),
            show_as("buckets", "flows", plain),
            show("quantum", size),
            show("initial_quantum", size),
            show("maxrate", rate),
            show("low_rate_threshold", rate),
            show("refill_delay", Amount::Time),
            show("ce_threshold", Amount::Time),
            show("horizon", Amount::Time),
        ]],
        complete: |seen, details| {
            let word = match seen.is_word("beyond_horizon", "drop") {
                true => "horizon_drop",
                false => "horizon_cap",
            };
            details.push(Detail::bare(word, word, None));
        },
        statistics: |fq| {
            // Flows without packets are not counted here.
            let inactive = Detail::keyed("(inactive", "inactive", plain(0));
            let throttled = fq.number("throttled_flows");
            let throttled = throttled.map(|flows| Detail::keyed("throttled", "", Amount::Count(flows, ")")));
            vec![
                row(
                    "  ",
                    [fq.variable("flows", "active_flows"), Some(inactive), throttled],
                ),
                row("  ", [fq.variable("throttled", "throttlings")]),
            ]
        },
        ..PLAIN
    },
};

pub(super) const FQ_CODEL: Kind = Kind {
    name: "fq_codel",
    discipline: "fq_codel",
    options: &[
        OF_FLOWS,
        CODEL_PARAMETERS,
        &[
            option(
                "ce_threshold_selector",
                "ce_threshold_selector",
                Reads::Several(selector),
            ),
            same("drop_batch", "drop_batch"),
        ],
    ],
    children: Children::None,
    defaults: quantum_of_one_frame,
    look: Look {
        options: &[
            &[
                show("limit", packets),
                show("flows", plain),
                show("quantum", plain),
            ],
            CODEL_CONTROL,
            &[
                show("memory_limit", size),
                show("ecn", plain),
                show("drop_batch", plain),
            ],
        ],
        complete: complete_selector,
        statistics: |fq_codel| {
            let overmemory = fq_codel.dropped_for(&[DropReason::MemoryLimit]);
            let overlimit = fq_codel.dropped_for(&[DropReason::LongestFlow]) + overmemory;
            let overmemory = (overmemory > 0).then(|| Detail::new("drop_overmemory", plain(overmemory)));
            let memory = fq_codel.variable("memory_used", "memory_used");
            vec![
                row(
                    "  ",
                    [
                        fq_codel.variable("maxpacket", "maxpacket"),
                        Running::count("drop_overlimit", overlimit),
                        fq_codel.variable("new_flow_count", "new_flow_count"),
                        Running::count("ecn_mark", fq_codel.marked()),
                        memory.filter(|memory| memory.amount != plain(0)),
                        overmemory,
                    ],
                ),
                row("  ", lists(fq_codel)),
            ]
        },
        ..PLAIN
    },
};

pub(super) const FQ_PIE: Kind = Kind {
    name: "fq_pie",
    discipline: "fq_pie",
    options: &[
        OF_FLOWS,
        PIE_PARAMETERS,
        &[option("ecn_prob", "ecn_prob", Reads::Percent)],
    ],
    children: Children::None,
    defaults: |device| {
        let mut defaults = quantum_of_one_frame(device);
        defaults.append(&mut mtu_of_one_frame(device));
        defaults
    },
    look: Look {
        options: &[
            &[show("limit", packets), show("flows", plain)],
            PIE_CONTROL,
            &[
                show("quantum", size),
                show("memory_limit", size),
                show("ecn_prob", hundredths),
            ],
            PIE_FLAGS,
        ],
        statistics: |fq_pie| {
            let counts = [
                Running::count("pkts_in", fq_pie.taken_in()),
                Running::count("overlimit", fq_pie.dropped_for(&[DropReason::QueueLimit])),
                Running::count("overmemory", fq_pie.dropped_for(&[DropReason::MemoryLimit])),
                Running::count("dropped", fq_pie.dropped_for(&[DropReason::Aqm])),
                Running::count("ecn_mark", fq_pie.marked()),
            ];
            let new = fq_pie.variable("new_flow_count", "new_flow_count");
            let memory = fq_pie.variable("memory_used", "memory_usage");
            vec![
                row("  ", counts),
                row("  ", [new].into_iter().chain(lists(fq_pie)).chain([memory])),
            ]
        },
        ..PLAIN
    },
};

/// The least quantum of ets and of the AQMs with hashed flows, bytes.
const LEAST_QUANTUM: u32 = 256;

/// The options of AQMs with hashed flows.
const OF_FLOWS: &[Opt] = &[
    same("limit", "limit"),
    same("flows", "flows"),
    option("quantum", "quantum", Reads::AtLeast(LEAST_QUANTUM)),
    same("memory_limit", "memory_limit"),
];

/// Returns the lengths of the lists of new and old flows.
fn lists(flows: &Running<'_>) -> [Option<Detail>; 2] {
    ["new_flows_len", "old_flows_len"].map(|name| flows.variable(name, name))
}

/// Completes the options of ets. tc shows a quantum for each band that is not strict, and always a priomap.
/// It does not show `strict` or `quanta` if there are none.
fn complete_ets(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let classes = seen.classes();
    let strict = seen.number("strict").unwrap_or(0);
    let quanta: Vec<u64> = classes.iter().skip(strict as usize).filter_map(quantum).collect();
    if !details.iter().any(|detail| detail.word == "priomap") {
        let last = classes.len().saturating_sub(1) as u64;
        details.push(Detail::new("priomap", Amount::Numbers(vec![last; 16])));
    }
    let first = [
        Some(seen.number_of_classes("bands")),
        (strict > 0).then(|| Detail::new("strict", plain(strict))),
        (!quanta.is_empty()).then(|| Detail::new("quanta", Amount::Numbers(quanta))),
    ];
    details.splice(0..0, first.into_iter().flatten());
}

fn quantum(class: &ClassSpec<'_>) -> Option<u64> {
    match class.parameters.first()?.1 {
        Value::Number(quantum) => Some(quantum),
        _ => None,
    }
}

fn complete_sfq(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let Some(index) = details.iter().position(|detail| detail.word == "flows") else {
        return;
    };
    // If the limit is given, the kernel has at most as many flows as packets.
    let flows = seen.number("flows").zip(seen.number("limit"));
    if let Some((flows, limit)) = flows.filter(|_| seen.is_given("limit")) {
        details[index].amount = plain(flows.min(limit));
    }
    if seen.is_word("drop", "head") {
        details.insert(index, Detail::new("headdrop", Amount::Flag(true)));
    }
    let red = &seen.config::<sfq::Config>().red;
    if let (Some(min), Some(ewma)) = (red.min, red.w_log()) {
        let max = red.max_of(min);
        details.extend([
            Detail::new("ewma", plain(ewma.into())),
            Detail::new("min", bytes(min.into())),
            Detail::new("max", bytes(max.into())),
            Detail::new("probability", of_one(red.probability)),
            Detail::new("ecn", Amount::Flag(red.ecn)),
            Detail::new("harddrop", Amount::Flag(red.harddrop)),
        ]);
    }
}

/// Formats a probability as a number of hundredths.
fn hundredths(parts: u64) -> Amount {
    plain((parts * 100 + (1 << 31)) >> 32)
}
