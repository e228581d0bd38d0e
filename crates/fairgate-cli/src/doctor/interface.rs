//! What an interface does to a run on it: offloads that a run can't undo, shapers and programs beside it, and
//! frames that it loses.

use fairgate_live::readings::{Flowtable, InterfaceReading, Shaper, is_forwarding};

use super::{Finding, Level, counted, or_ok};

/// What a run does at an interface, or would do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Use {
    /// Whether it takes what the interface receives, and what this machine sends.
    pub(crate) taken: [bool; 2],
    /// The BPF programs that it has attached itself. `None` if they can't be seen.
    pub(crate) programs: Option<Vec<u32>>,
    /// Whether the kernel forwards, with the trees in its module.
    pub(crate) is_by_kernel: bool,
}

/// Finds that the kernel does not forward from an interface to another one, whose tree is to shape that.
pub(crate) fn forwarding(from: &str, to: &str) -> Finding {
    let of = format!("{from} -> {to}");
    match is_forwarding(from, to) {
        true => Finding::ok("forwarding", &of, "this machine forwards that way"),
        false => Finding::new(
            Level::Warning,
            "forwarding",
            &of,
            "this machine is no router that way, and has no bridge of both",
            "A run by the kernel shapes what the kernel forwards, and forwards nothing itself.",
        )
        .remedy("sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1, or a bridge of both"),
    }
}

/// Judges an interface. `before` is an earlier reading, if there is one.
pub(crate) fn judge(
    reading: &InterfaceReading,
    before: Option<&InterfaceReading>,
    of_run: &Use,
) -> Vec<Finding> {
    let name = &reading.name;
    let checks = [
        or_ok(
            // The kernel itself copes with what it has merged.
            if of_run.is_by_kernel {
                Vec::new()
            } else {
                offloads(reading)
            },
            "offloads",
            name,
            &format!(
                "gro {}, lro {}",
                on_off(reading.merges[0]),
                on_off(reading.merges[1])
            ),
        ),
        or_ok(
            shapers(reading, of_run),
            "shapers",
            name,
            "no shaper of the kernel",
        ),
        or_ok(
            bypass(reading, of_run),
            "bypass",
            name,
            "no XDP program, no flowtable, no hw-tc-offload",
        ),
        or_ok(losses(reading, before), "ring", name, "it has missed no packet"),
    ];
    checks.concat()
}

fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn has(reading: &InterfaceReading, feature: &str) -> bool {
    let mut features = reading.features.iter().flatten();
    features.any(|name| name == feature)
}

fn offloads(reading: &InterfaceReading) -> Vec<Finding> {
    /// The longest packet that a header of IP describes, bytes. Longer ones are "BIG TCP".
    const LONGEST: u32 = 65_536;
    let name = &reading.name;
    let mut found = Vec::new();
    if reading.merges[1] {
        found.push(
            Finding::new(
                Level::Problem,
                "offloads",
                name,
                "large receive offload is on",
                "It merges packets in a way that nothing can undo; a run does not start, or forwards packets \
                 that no sender has sent.",
            )
            .remedy(format!("ethtool -K {name} lro off")),
        );
    }
    if has(reading, "rx-gro-list") {
        found.push(
            Finding::new(
                Level::Warning,
                "offloads",
                name,
                "rx-gro-list is on",
                "The kernel chains received packets, and a run can't cut such a chain: it is dropped and \
                 counted as `unsupported offload`.",
            )
            .remedy(format!("ethtool -K {name} rx-gro-list off")),
        );
    }
    if reading.longest_merged > LONGEST {
        found.push(
            Finding::new(
                Level::Warning,
                "offloads",
                name,
                format!(
                    "packets are merged up to {} bytes (BIG TCP)",
                    reading.longest_merged
                ),
                "A run takes merged packets of up to 64 KiB; longer ones are dropped and counted as \
                 `unsupported offload`.",
            )
            .remedy(format!("ip link set dev {name} gro_max_size {LONGEST}")),
        );
    }
    found
}

fn shapers(reading: &InterfaceReading, of_run: &Use) -> Vec<Finding> {
    let name = &reading.name;
    let [received, sent] = &reading.shapers;
    let shaped = |shaper: &Shaper, level, why: &str, remedy: String| {
        Finding::new(level, "shapers", name, shaper.words(), why).remedy(remedy)
    };
    let mut found = Vec::new();
    if let Some(shaper) = sent.as_ref().filter(|_| of_run.taken[1] && of_run.is_by_kernel) {
        found.push(shaped(
            shaper,
            Level::Problem,
            "The tree of a run by the kernel takes this place, so the run does not start.",
            format!("tc qdisc del dev {name} root"),
        ));
    } else if let Some(shaper) = sent.as_ref().filter(|_| of_run.taken[1]) {
        found.push(shaped(
            shaper,
            Level::Warning,
            "What a run sends leaves past this shaper, and all other packets through it: two shapers for one \
             line.",
            format!("tc qdisc del dev {name} root"),
        ));
    }
    if let Some(shaper) = received.as_ref().filter(|_| of_run.taken[0]) {
        found.push(shaped(
            shaper,
            Level::Problem,
            "What the interface receives is shaped twice: the lower rate decides, and packets wait there.",
            format!("tc filter del dev {name} ingress"),
        ));
    }
    if let Some(below) = &reading.below {
        if let Some(shaper) = &below.shaper {
            found.push(shaped(
                shaper,
                Level::Problem,
                "What a run sends is shaped again on the interface below: the lower rate decides, and \
                 packets wait there.",
                format!("tc qdisc del dev {} root", below.name),
            ));
        } else if let Some(qdisc) = below.qdisc.as_ref().filter(|qdisc| qdisc.backlog > 0) {
            let waiting = counted(qdisc.backlog.into(), "packet");
            found.push(
                Finding::new(
                    Level::Warning,
                    "shapers",
                    name,
                    format!("{waiting} wait in {} on {} below it", qdisc.kind, below.name),
                    "A queue below the run means that the run sends faster than the line takes packets.",
                )
                .remedy("lower the rate of the tree: fairgate queue show, then fairgate queue change"),
            );
        }
    }
    found
}

fn bypass(reading: &InterfaceReading, of_run: &Use) -> Vec<Finding> {
    let name = &reading.name;
    let mut found = Vec::new();
    let own = of_run.programs.as_deref().unwrap_or_default();
    let foreign = reading.programs.iter().filter(|id| !own.contains(id));
    let foreign: Vec<String> = foreign.map(u32::to_string).collect();
    if !foreign.is_empty() {
        let (level, who) = match of_run.programs {
            Some(_) => (Level::Warning, "is attached that is not of this run"),
            None => (
                Level::Note,
                "is attached; who has done it can't be seen without root",
            ),
        };
        let which = foreign.join(", ");
        found.push(
            Finding::new(
                level,
                "bypass",
                name,
                format!("XDP program {which} {who}"),
                "It gets each frame before a run does; what it redirects or drops never comes to the run.",
            )
            .remedy(format!(
                "ip link set dev {name} xdp off; bpftool prog show id {which}"
            )),
        );
    }
    for table in reading.flowtables.iter().flatten() {
        found.push(flowtable(name, table));
    }
    if reading.flowtables.is_none() {
        found.push(
            Finding::new(
                Level::Note,
                "bypass",
                name,
                "flowtables can't be seen",
                "The kernel shows them to root only, if it has nftables at all.",
            )
            .remedy("run it as root"),
        );
    }
    if has(reading, "hw-tc-offload") {
        found.push(
            Finding::new(
                Level::Warning,
                "bypass",
                name,
                "hw-tc-offload is on",
                "Filters of tc can run in the hardware; frames that they forward never come to this machine.",
            )
            .remedy(format!("ethtool -K {name} hw-tc-offload off")),
        );
    }
    found
}

fn flowtable(name: &str, table: &Flowtable) -> Finding {
    let place = format!("{} {} {}", table.family, table.table, table.name);
    match table.is_offloaded {
        true => Finding::new(
            Level::Problem,
            "bypass",
            name,
            format!("flowtable {place} is offloaded to the hardware"),
            "The hardware forwards known connections by itself: they pass without queue and shaper.",
        )
        .remedy(format!(
            "remove `flags offload` of the flowtable ({place}); on OpenWrt: uci set \
             firewall.@defaults[0].flow_offloading_hw=0; uci commit firewall; service firewall restart"
        )),
        false => Finding::new(
            Level::Note,
            "bypass",
            name,
            format!("flowtable {place}, in software"),
            "Its packets skip the firewall, but not tc's hooks at which a run takes them.",
        ),
    }
}

fn losses(reading: &InterfaceReading, before: Option<&InterfaceReading>) -> Vec<Finding> {
    let name = &reading.name;
    let missed = reading.counters.missed;
    let now = before.map_or(0, |before| missed.saturating_sub(before.counters.missed));
    if missed == 0 {
        return Vec::new();
    }
    let (level, when) = match now {
        0 => (Level::Note, "earlier, none meanwhile".to_owned()),
        now => (Level::Warning, format!("{now} of them meanwhile")),
    };
    let seen = format!(
        "{missed} of {} packets missed, {when}",
        missed + reading.counters.received
    );
    vec![
        Finding::new(
            level,
            "ring",
            name,
            seen,
            "The interface had no room for them: its ring is short, or a processor too busy.",
        )
        .remedy(format!("ethtool -g {name}, then ethtool -G {name} rx 4096")),
    ]
}

#[cfg(test)]
mod tests {
    use fairgate_live::readings::{Below, Counters, Qdisc};
    use proptest::prelude::*;

    use super::*;

    fn reading() -> InterfaceReading {
        InterfaceReading {
            name: "eth0".to_owned(),
            mtu: 1500,
            merges: [true, false],
            longest_merged: 65_536,
            features: Some(vec!["rx-gro".to_owned()]),
            flowtables: Some(Vec::new()),
            ..InterfaceReading::default()
        }
    }

    fn of_run() -> Use {
        Use {
            taken: [true; 2],
            programs: Some(vec![7]),
            ..Use::default()
        }
    }

    fn shaper(device: &str) -> Shaper {
        Shaper {
            device: device.to_owned(),
            kind: "tbf".to_owned(),
            rate: fairgate::Rate::from_bits_per_second(10_000_000).ok(),
        }
    }

    /// The worst finding of a check.
    fn worst(reading: &InterfaceReading, of_run: &Use, check: &str) -> Finding {
        let found = judge(reading, None, of_run);
        let mut found: Vec<Finding> = found
            .into_iter()
            .filter(|finding| finding.check == check)
            .collect();
        found.sort_by_key(|finding| finding.level);
        found.remove(0)
    }

    #[test]
    fn a_plain_interface_is_fine() {
        let found = judge(&reading(), None, &of_run());
        assert!(
            found.iter().all(|finding| finding.level == Level::Ok),
            "{found:?}"
        );
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn the_kernel_copes_with_offloads_but_not_with_another_tree() {
        let by_kernel = Use {
            is_by_kernel: true,
            ..of_run()
        };
        let found = InterfaceReading {
            merges: [true; 2],
            shapers: [None, Some(shaper("eth0"))],
            ..reading()
        };
        assert_eq!(worst(&found, &by_kernel, "offloads").level, Level::Ok);
        let [taken, beside] = [&by_kernel, &of_run()].map(|of_run| worst(&found, of_run, "shapers"));
        assert_eq!([taken.level, beside.level], [Level::Problem, Level::Warning]);
        assert!(taken.why.unwrap().contains("does not start"));
    }

    #[test]
    fn each_offload_that_harms_is_found() {
        let lro = InterfaceReading {
            merges: [true; 2],
            ..reading()
        };
        let found = worst(&lro, &of_run(), "offloads");
        assert_eq!(found.level, Level::Problem);
        assert_eq!(found.remedy.unwrap(), "ethtool -K eth0 lro off");
        let lists = InterfaceReading {
            features: Some(vec!["rx-gro-list".to_owned()]),
            ..reading()
        };
        assert_eq!(worst(&lists, &of_run(), "offloads").level, Level::Warning);
        let big = InterfaceReading {
            longest_merged: 185_000,
            ..reading()
        };
        assert!(worst(&big, &of_run(), "offloads").seen.contains("185000 bytes"));
    }

    #[test]
    fn a_shaper_counts_where_the_run_is() {
        let twice = InterfaceReading {
            shapers: [Some(shaper("ifb0")), Some(shaper("eth0"))],
            ..reading()
        };
        assert_eq!(worst(&twice, &of_run(), "shapers").level, Level::Problem);
        let only_sent = Use {
            taken: [false, true],
            ..of_run()
        };
        let found = worst(&twice, &only_sent, "shapers");
        assert_eq!(
            (found.level, found.seen.as_str()),
            (Level::Warning, "tbf at 10Mbit on eth0")
        );
        let below = InterfaceReading {
            below: Some(Below {
                name: "eth1".to_owned(),
                shaper: Some(shaper("eth1")),
                qdisc: None,
            }),
            ..reading()
        };
        let found = worst(&below, &of_run(), "shapers");
        assert_eq!(found.remedy.unwrap(), "tc qdisc del dev eth1 root");
        let waiting = InterfaceReading {
            below: Some(Below {
                name: "eth1".to_owned(),
                shaper: None,
                qdisc: Some(Qdisc {
                    kind: "fq_codel".to_owned(),
                    backlog: 3,
                    drops: 0,
                }),
            }),
            ..reading()
        };
        assert!(
            worst(&waiting, &of_run(), "shapers")
                .seen
                .starts_with("3 packets wait in fq_codel")
        );
    }

    #[test]
    fn only_foreign_programs_count() {
        let attached = InterfaceReading {
            programs: vec![7],
            ..reading()
        };
        assert_eq!(worst(&attached, &of_run(), "bypass").level, Level::Ok);
        let foreign = InterfaceReading {
            programs: vec![7, 8],
            ..reading()
        };
        let found = worst(&foreign, &of_run(), "bypass");
        assert_eq!(found.level, Level::Warning);
        assert!(found.seen.contains("program 8"), "{}", found.seen);
    }

    #[test]
    fn hardware_that_forwards_is_a_problem() {
        let table = Flowtable {
            family: "inet".to_owned(),
            table: "fw4".to_owned(),
            name: "ft".to_owned(),
            devices: vec!["eth0".to_owned()],
            is_offloaded: false,
        };
        for (is_offloaded, level) in [(true, Level::Problem), (false, Level::Note)] {
            let table = Flowtable {
                is_offloaded,
                ..table.clone()
            };
            let with = InterfaceReading {
                flowtables: Some(vec![table]),
                ..reading()
            };
            assert_eq!(worst(&with, &of_run(), "bypass").level, level);
        }
    }

    proptest! {
        /// Whatever was counted: packets that were missed meanwhile warn, earlier ones do not, and none is no
        /// finding.
        #[test]
        fn missed_packets_warn_while_they_are_missed(earlier in 0u64..1_000, now in 0u64..1_000) {
            let of = |missed| InterfaceReading {
                counters: Counters { missed, ..Counters::default() },
                ..reading()
            };
            let found = losses(&of(earlier + now), Some(&of(earlier)));
            let level = found.first().map(|finding| finding.level);
            let expected = match (earlier, now) {
                (0, 0) => None,
                (_, 0) => Some(Level::Note),
                _ => Some(Level::Warning),
            };
            prop_assert_eq!(level, expected);
        }
    }
}
