//! Disciplines over hashed counters: sfb and hhf.

use fairgate::DropReason;
use fairgate::aqm::sfb;

use super::{
    Amount, Children, Detail, Kind, Look, PLAIN, Reads, Running, frame, option, same, show, show_as, time,
};
use crate::tc::display::{bytes, packets, plain, row, size};

pub(super) const SFB: Kind = Kind {
    name: "sfb",
    discipline: "sfb",
    options: &[&[
        option("rehash", "rehash", Reads::Time("ms")),
        option("db", "warmup", Reads::Time("ms")),
        option("limit", "limit", Reads::OrDefault),
        option("max", "max", Reads::OrDefault),
        option("target", "target", Reads::OrDefault),
        same("increment", "increment"),
        same("decrement", "decrement"),
        same("penalty_rate", "penalty_rate"),
        same("penalty_burst", "penalty_burst"),
    ]],
    children: Children::None,
    // The default of `limit`.
    defaults: |device| vec![("limit", device.txqueuelen.max(1).to_string())],
    look: Look {
        options: &[&[
            show("rehash", Amount::Time),
            show_as("db", "warmup", Amount::Time),
            show("limit", packets),
        ]],
        complete: |seen, details| {
            let config = seen.config::<sfb::Config>();
            details.push(Detail::new("max", packets(config.most_of_flow().into())));
            details.push(Detail::new("target", packets(config.packets_of_bin().into())));
            let [increment, decrement] = config.increments().map(|parts| of_65535(parts.into()));
            details.push(Detail::new("increment", increment));
            details.push(Detail::new("decrement", decrement));
            let rate = Amount::Count(config.penalty_rate.into(), "pps");
            details.push(Detail::new("penalty_rate", rate));
            details.push(Detail::new("penalty_burst", packets(config.penalty_burst.into())));
        },
        statistics: |sfb| {
            let dropped = |word, reason| Running::count(word, sfb.dropped_for(&[reason]));
            let probability = |name: &'static str| {
                let parts = sfb.number(name)?;
                Some(Detail::new(name, of_65535(parts)))
            };
            vec![
                row(
                    "  ",
                    [
                        dropped("earlydrop", DropReason::Aqm),
                        dropped("penaltydrop", DropReason::Policed),
                        dropped("bucketdrop", DropReason::FlowLimit),
                        dropped("queuedrop", DropReason::QueueLimit),
                        // The queue inside has the same limit, so it never drops.
                        Running::count("childdrop", 0),
                        Running::count("marked", sfb.marked()),
                    ],
                ),
                row(
                    "  ",
                    [
                        sfb.variable("maxqlen", "maxqlen"),
                        probability("maxprob"),
                        probability("avgprob"),
                    ],
                ),
            ]
        },
        ..PLAIN
    },
};

pub(super) const HHF: Kind = Kind {
    name: "hhf",
    discipline: "hhf",
    options: &[&[
        option("limit", "limit", Reads::OrDefault),
        option("quantum", "quantum", Reads::OrDefault),
        option("hh_limit", "hh_limit", Reads::OrDefault),
        time("reset_timeout", "reset_timeout"),
        option("admit_bytes", "admit_bytes", Reads::OrDefault),
        time("evict_timeout", "evict_timeout"),
        option("non_hh_weight", "non_hh_weight", Reads::OrDefault),
    ]],
    children: Children::None,
    defaults: |device| vec![("quantum", frame(device).clamp(256, 1 << 20).to_string())],
    look: Look {
        options: &[&[
            show("limit", packets),
            show("quantum", bytes),
            show("hh_limit", plain),
            show("reset_timeout", Amount::Time),
            show("admit_bytes", size),
            show("evict_timeout", Amount::Time),
            show("non_hh_weight", plain),
        ]],
        statistics: |hhf| {
            let counts = ["drop_overlimit", "hh_overlimit", "tot_hh", "cur_hh"];
            vec![row("  ", counts.map(|name| hhf.variable(name, name)))]
        },
        ..PLAIN
    },
};

/// Formats a probability that the kernel keeps in 65535ths.
fn of_65535(parts: u64) -> Amount {
    Amount::Digits(parts as f64 / 65_535.0)
}

#[cfg(test)]
mod tests {
    use fairgate::rounds::hhf;
    use std::time::Duration;

    use super::*;
    use crate::tc::{Device, Script};

    fn config<C: 'static>(options: &str) -> Result<C, String> {
        let text = format!("qdisc add dev e root handle 1: {options}");
        let script = Script::parse("test.tc", &text, Device::default());
        let spec = script.and_then(|script| script.spec());
        let config = spec.map_err(|error| error.to_string())?.config();
        Ok(*config
            .expect("the options agree")
            .downcast()
            .expect("of this kind"))
    }

    #[test]
    fn defaults_of_sfb_are_those_of_tc() {
        let mut plain: sfb::Config = config("sfb").unwrap();
        plain.classifier.handle = 0;
        assert_eq!(plain, sfb::Config::default());
        let zeros: sfb::Config = config("sfb limit 0 max 0 target 0").unwrap();
        assert_eq!(
            (zeros.limit, zeros.most_of_flow(), zeros.packets_of_bin()),
            (1000, 25, 20)
        );
        let off: sfb::Config = config("sfb rehash 0 db 0 penalty_rate 0").unwrap();
        assert_eq!(
            (off.rehash, off.warmup, off.penalty_rate),
            (Duration::ZERO, Duration::ZERO, 0)
        );
        assert!(config::<sfb::Config>("sfb increment 1.5").is_err());
    }

    #[test]
    fn defaults_of_hhf_are_those_of_the_kernel() {
        assert_eq!(config::<hhf::Config>("hhf"), Ok(hhf::Config::default()));
        let zeros: hhf::Config =
            config("hhf limit 0 quantum 0 hh_limit 0 admit_bytes 0 non_hh_weight 0").unwrap();
        assert_eq!(zeros, hhf::Config::default());
        assert!(config::<hhf::Config>("hhf non_hh_weight 100000 quantum 100000").is_err());
    }
}
