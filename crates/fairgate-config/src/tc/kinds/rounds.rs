//! Fair queueing.

use super::aqm::{CODEL_PARAMETERS, PIE_PARAMETERS};
use super::{
    Amount, Children, ClassSpec, Detail, Kind, Look, Opt, PLAIN, Reads, Seen, frame, look, means,
    mtu_of_one_frame, none, option, quantum_of_one_frame, same, show, show_as, time,
};
use crate::tc::show::{bytes, packets, plain, rate, size};
use crate::value::Value;

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
        options: &[same("weight", "weight"), same("maxpkt", "max_packet")],
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
        option("quanta", "quanta", Reads::List),
        option("priomap", "priomap", Reads::List),
    ]],
    children: Children::SharingBands,
    defaults: none,
    look: Look {
        options: &[show("strict", plain), show("priomap", plain)],
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
        same("depth", "depth"),
        same("flows", "flows"),
        same("divisor", "divisor"),
        same("quantum", "quantum"),
        means("headdrop", "drop", "head"),
        option("perturb", "perturb", Reads::Time("s")),
    ]],
    children: Children::None,
    defaults: |device| {
        let mut defaults = quantum_of_one_frame(device);
        defaults.push(("perturb", "none".to_owned()));
        defaults
    },
    look: Look {
        options: &[
            show("limit", packets),
            show("quantum", bytes),
            show("depth", plain),
            show("flows", plain),
            show("divisor", plain),
            show("perturb", |nanos| Amount::Count(nanos / 1_000_000_000, "sec")),
        ],
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
    ]],
    children: Children::None,
    defaults: |device| {
        let frame = u64::from(frame(device));
        let quanta = [("quantum", 2 * frame), ("initial_quantum", 10 * frame)];
        quanta.map(|(name, bytes)| (name, bytes.to_string())).to_vec()
    },
    look: Look {
        options: &[
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
        ],
        complete: |seen, details| {
            let word = match seen.is_word("beyond_horizon", "drop") {
                true => "horizon_drop",
                false => "horizon_cap",
            };
            details.push(Detail::bare(word, word, None));
        },
        ..PLAIN
    },
};

pub(super) const FQ_CODEL: Kind = Kind {
    name: "fq_codel",
    discipline: "fq_codel",
    options: &[OF_FLOWS, CODEL_PARAMETERS, &[same("drop_batch", "drop_batch")]],
    children: Children::None,
    defaults: quantum_of_one_frame,
    look: look(&[
        show("limit", packets),
        show("flows", plain),
        show("quantum", plain),
        show("target", Amount::Time),
        show("ce_threshold", Amount::Time),
        show("interval", Amount::Time),
        show("memory_limit", size),
        show("ecn", plain),
        show("drop_batch", plain),
    ]),
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
            show("limit", packets),
            show("flows", plain),
            show("target", Amount::Time),
            show("tupdate", Amount::Time),
            show("alpha", plain),
            show("beta", plain),
            show("quantum", size),
            show("memory_limit", size),
            show("ecn_prob", hundredths),
            show("ecn", plain),
            show("bytemode", plain),
            show("dq_rate_estimator", plain),
        ],
        ..PLAIN
    },
};

/// What AQMs over hashed flows are told.
const OF_FLOWS: &[Opt] = &[
    same("limit", "limit"),
    same("flows", "flows"),
    same("quantum", "quantum"),
    same("memory_limit", "memory_limit"),
];

/// tc has a quantum for each band that is not strict, and always a priomap.
fn complete_ets(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let classes = seen.classes();
    let strict = seen.number("strict").unwrap_or(0) as usize;
    let quanta = classes.iter().skip(strict).filter_map(quantum).collect();
    details.insert(0, seen.number_of_classes("bands"));
    details.insert(2, Detail::new("quanta", Amount::Numbers(quanta)));
    if !details.iter().any(|detail| detail.word == "priomap") {
        let last = classes.len().saturating_sub(1) as u64;
        details.push(Detail::new("priomap", Amount::Numbers(vec![last; 16])));
    }
}

fn quantum(class: &ClassSpec<'_>) -> Option<u64> {
    match class.parameters.first()?.1 {
        Value::Number(quantum) => Some(quantum),
        _ => None,
    }
}

fn complete_sfq(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    // The kernel has no more flows than packets.
    let flows = seen.number("flows").zip(seen.number("limit"));
    if let Some((flows, limit)) = flows
        && let Some(shown) = details.iter_mut().find(|detail| detail.word == "flows")
    {
        shown.amount = plain(flows.min(limit));
    }
    if seen.is_word("drop", "head") {
        details.push(Detail::new("headdrop", Amount::Flag(true)));
    }
}

/// A probability as a plain number of hundredths.
fn hundredths(parts: u64) -> Amount {
    plain((parts * 100 + (1 << 31)) >> 32)
}
