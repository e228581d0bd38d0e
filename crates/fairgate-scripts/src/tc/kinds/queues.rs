//! Queues without flows, and shapers.

use super::{
    Amount, Children, Detail, Kind, Look, PLAIN, Reads, Seen, frame, look, none, option, same, show, show_as,
    show_keyed, time,
};
use crate::tc::display::{in_cells, link_layer, packets, plain, rate, size};

pub(super) const PFIFO: Kind = Kind {
    name: "pfifo",
    discipline: "fifo",
    options: &[&[same("limit", "limit")]],
    children: Children::None,
    defaults: |device| vec![("limit", device.txqueuelen.to_string())],
    look: look(&[&[show("limit", packets)]]),
};

pub(super) const BFIFO: Kind = Kind {
    name: "bfifo",
    options: &[&[same("limit", "limit_bytes")]],
    defaults: |device| {
        let bytes = u64::from(device.txqueuelen) * u64::from(frame(device));
        vec![("limit", "none".to_owned()), ("limit_bytes", bytes.to_string())]
    },
    look: look(&[&[show_as("limit", "limit_bytes", size)]]),
    ..PFIFO
};

pub(super) const PFIFO_HEAD_DROP: Kind = Kind {
    name: "pfifo_head_drop",
    defaults: |device| {
        let limit = device.txqueuelen.to_string();
        vec![("limit", limit), ("drop", "head".to_owned())]
    },
    ..PFIFO
};

pub(super) const PFIFO_FAST: Kind = Kind {
    name: "pfifo_fast",
    discipline: "pfifo_fast",
    options: &[],
    look: Look {
        complete: |_, details| {
            details.push(Detail::new("bands", plain(3)));
            let priomap = fairgate::queues::prio::Config::default().priomap;
            details.push(Detail::new(
                "priomap",
                Amount::Numbers(priomap.map(u64::from).to_vec()),
            ));
            details.push(multiqueue());
        },
        ..PLAIN
    },
    ..PFIFO
};

pub(super) const PRIO: Kind = Kind {
    name: "prio",
    discipline: "prio",
    options: &[&[
        // pkt_sched.h: TCQ_MIN_PRIO_BANDS and TCQ_PRIO_BANDS.
        option("bands", "bands", Reads::Within(2, 16)),
        option("priomap", "priomap", Reads::Numbers(16)),
    ]],
    children: Children::Bands { option: "bands" },
    defaults: |_| vec![("bands", "3".to_owned())],
    look: Look {
        options: &[&[show("priomap", plain)]],
        complete: |seen, details| {
            details.insert(0, seen.number_of_classes("bands"));
            details.push(multiqueue());
        },
        ..PLAIN
    },
};

pub(super) const TBF: Kind = Kind {
    name: "tbf",
    discipline: "tbf",
    options: &[&[
        same("rate", "rate"),
        same("burst", "burst"),
        same("buffer", "burst"),
        same("maxburst", "burst"),
        same("limit", "limit"),
        time("latency", "latency"),
        time("lat", "latency"),
        same("peakrate", "peakrate"),
        same("mtu", "mtu"),
        same("minburst", "mtu"),
    ]],
    children: Children::Inner {
        of_default: &["limit", "latency"],
    },
    defaults: none,
    look: Look {
        options: &[&[
            show("rate", rate),
            show("burst", size).in_brief(),
            // tc does not show it in JSON.
            show_keyed("peakrate", "", "peakrate", rate),
            show_as("minburst", "mtu", size).in_brief(),
        ]],
        complete: |seen, details| {
            let burst = seen.number("burst").map(|bytes| in_cells("burst", bytes));
            details.splice(2..2, burst.into_iter().flatten());
            details.extend(
                seen.number("mtu")
                    .map(|bytes| in_cells("mtu", bytes))
                    .into_iter()
                    .flatten(),
            );
            let latency = seen.number("latency").or_else(|| latency(seen));
            details.extend(latency.map(|nanos| Detail::new("lat", Amount::Time(nanos))));
            details.push(link_layer());
        },
        ..PLAIN
    },
};

/// Returns tc's `multiqueue`: whether the bands are distributed over a device's queues, which is never the
/// case here.
fn multiqueue() -> Detail {
    Detail::in_json("multiqueue", Amount::Flag(false))
}

/// Returns the latency as tc computes it: the time to send the limit without the burst.
fn latency(seen: &Seen<'_>) -> Option<u64> {
    let beyond = seen.number("limit")?.saturating_sub(seen.number("burst")?);
    let bits = u128::from(beyond) * 8_000_000_000;
    Some((bits / u128::from(seen.number("rate")?.max(1))) as u64)
}
