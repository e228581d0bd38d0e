//! Queues without flows, and shapers.

use std::slice;

use fairgate::{Rate, tbf};
use fairgate_config::language::Given;
use toml::Spanned;

use super::{
    Amount, Children, Detail, Kind, LINK_LAYER, Look, PLAIN, Reads, Seen, Unreadable, frame, look, none,
    option, same, show, show_as, time,
};
use crate::script::Word;
use crate::tc::display::{When, bucket, in_cells, link_layer, packets, plain, size};

/// Reads a priomap. As in tc, priorities that are not written keep their default band.
fn priomap(
    option: &Word,
    words: &mut slice::Iter<'_, Word>,
) -> Result<Vec<(&'static str, Spanned<Given>)>, Unreadable> {
    let default = fairgate::queues::prio::Config::default().priomap;
    let is_number = |word: &&Word| word.get_ref().starts_with(|first: char| first.is_ascii_digit());
    let count = words.as_slice().iter().take_while(is_number).count();
    let given: Vec<&Word> = words.by_ref().take(count).collect();
    let (Some(first), Some(last)) = (given.first(), given.last()) else {
        return Err(Unreadable::Missing);
    };
    let location = first.span().start..last.span().end;
    if count > default.len() {
        return Err(Unreadable::Wrong {
            location,
            message: format!(
                "`{}` has a band for each of 16 priorities, and here are {count}",
                option.get_ref()
            ),
            help: "write at most 16 numbers".to_owned(),
        });
    }
    let written = given
        .iter()
        .map(|word| Spanned::new(word.span(), Given::Word(word.get_ref().clone())));
    let rest = default[count..].iter().map(|band| {
        let band = i128::from(*band);
        Spanned::new(last.span(), Given::Integer(band))
    });
    let list = Given::List(written.chain(rest).collect());
    Ok(vec![("priomap", Spanned::new(location, list))])
}

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

/// The kernel sends packets without a queue. So does a run without a tree, which is a fifo.
pub(super) const NOQUEUE: Kind = Kind {
    name: "noqueue",
    options: &[],
    children: Children::NoneNorFilters,
    ..PFIFO
};

pub(super) const PRIO: Kind = Kind {
    name: "prio",
    discipline: "prio",
    options: &[&[
        // pkt_sched.h: TCQ_MIN_PRIO_BANDS and TCQ_PRIO_BANDS.
        option("bands", "bands", Reads::Within(2, 16)),
        option("priomap", "priomap", Reads::Several(priomap)),
    ]],
    children: Children::Bands { option: "bands" },
    defaults: |_| vec![("bands", "3".to_owned())],
    look: Look {
        options: &[&[show("priomap", plain)]],
        complete: |seen, details| {
            // The default has no band beyond the last one.
            let last = (seen.classes().len() as u64).saturating_sub(1);
            for detail in &mut *details {
                if let Amount::Numbers(bands) = &mut detail.amount {
                    bands.iter_mut().for_each(|band| *band = (*band).min(last));
                }
            }
            details.insert(0, seen.number_of_classes("bands"));
            details.push(multiqueue());
        },
        ..PLAIN
    },
};

pub(super) const TBF: Kind = Kind {
    name: "tbf",
    discipline: "tbf",
    options: &[
        &[
            same("rate", "rate"),
            option("burst", "burst", Reads::SizeAndCell),
            option("buffer", "burst", Reads::SizeAndCell),
            option("maxburst", "burst", Reads::SizeAndCell),
            same("limit", "limit"),
            time("latency", "latency"),
            time("lat", "latency"),
            same("peakrate", "peakrate"),
            option("mtu", "mtu", Reads::SizeAndCell),
            option("minburst", "mtu", Reads::SizeAndCell),
        ],
        LINK_LAYER,
    ],
    children: Children::Inner {
        of_default: &["limit", "latency"],
    },
    defaults: none,
    look: Look {
        complete: complete_tbf,
        ..PLAIN
    },
};

/// Adds what tc shows of a tbf. The kernel stores the depth of a bucket as the time to send a packet of this
/// size, from which tc computes a size again. So headers and cells are part of it.
fn complete_tbf(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let profile = seen.config::<tbf::Config>().profile;
    let link = profile.link_layer;
    let nanos = |rate: Rate, bytes: u32| rate.meter().nanos(link.count(bytes).into());
    let buckets = |brief, detailed, rate: Rate, bytes: u32| {
        let bytes = bucket(rate, nanos(rate, bytes));
        let [cells, mpu] = in_cells(detailed, bytes, link.mpu.into());
        [Detail::new(brief, size(bytes)).when(When::Brief), cells, mpu]
    };
    details.push(Detail::new("rate", Amount::Rate(profile.rate)));
    details.extend(buckets("burst", "burst", profile.rate, profile.burst));
    if let Some(peak) = profile.peak {
        // tc does not show it in JSON.
        details.push(Detail::keyed("peakrate", "", Amount::Rate(peak.rate)));
        details.extend(buckets("minburst", "mtu", peak.rate, peak.mtu));
    }
    let given = seen
        .number("latency")
        .map(|nanos| Detail::new("lat", Amount::Time(nanos)));
    let of_limit = || {
        let limit = seen.number("limit")?;
        // `None` if the bucket holds more than the queue.
        let beyond = |rate: Rate, bucket: u32| {
            let full = u128::from(limit) * 8_000_000_000 / u128::from(rate.bits_per_second());
            (full as u64).checked_sub(nanos(rate, bucket))
        };
        let by_peak = profile.peak.and_then(|peak| beyond(peak.rate, peak.mtu));
        Some(match beyond(profile.rate, profile.burst).max(by_peak) {
            Some(nanos) => Detail::new("lat", Amount::Time(nanos)),
            None => Detail::new("limit", size(limit)),
        })
    };
    details.extend(given.or_else(of_limit));
    details.extend((link.overhead > 0).then(|| Detail::new("overhead", plain(link.overhead.into()))));
    details.push(link_layer(link.cells));
}

/// Returns tc's `multiqueue`: whether the bands are distributed over a device's queues, which is never the
/// case here.
fn multiqueue() -> Detail {
    Detail::in_json("multiqueue", Amount::Flag(false))
}
