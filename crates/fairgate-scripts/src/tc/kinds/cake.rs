//! cake's options, most of which are words without a value, and how tc shows cake and its tins (q_cake.c of
//! iproute2).

use std::slice;

use fairgate::Variable;
use fairgate::rounds::cake::{AckFilter, Cells, Config};
use fairgate_config::language::Given;
use toml::Spanned;

use super::{
    Amount, Children, Detail, Device, Kind, Look, Opt, PLAIN, Reads, Row, Running, Seen, Unreadable, frame,
    means, option, same, time,
};
use crate::script::{Word, number};
use crate::tc::display::{State, aligned, plain, rate, size};

pub(super) const CAKE: Kind = Kind {
    name: "cake",
    discipline: "cake",
    options: &[OPTIONS],
    children: Children::NoneNorFilters,
    defaults,
    look: Look {
        complete,
        statistics,
        ..PLAIN
    },
};

/// One cake for each transmit queue, which share one rate. Here the workers of a run do that. Its own line
/// has the options, and those of the cakes have their statistics (`cake_mq_dump` in sch_cake.c).
pub(super) const CAKE_MQ: Kind = Kind {
    name: "cake_mq",
    look: Look {
        complete,
        has_classes_at_root: true,
        ..PLAIN
    },
    ..CAKE
};

const OPTIONS: &[Opt] = &[
    same("bandwidth", "bandwidth -autorate"),
    means("unlimited", "bandwidth -autorate", "none"),
    means("autorate-ingress", "autorate", "true"),
    means("besteffort", "tins", "besteffort"),
    means("precedence", "tins", "precedence"),
    means("diffserv3", "tins", "diffserv3"),
    means("diffserv4", "tins", "diffserv4"),
    means("diffserv", "tins", "diffserv4"),
    means("diffserv8", "tins", "diffserv8"),
    means("flowblind", "isolation", "flowblind"),
    means("srchost", "isolation", "srchost"),
    means("dsthost", "isolation", "dsthost"),
    means("hosts", "isolation", "hosts"),
    means("flows", "isolation", "flows"),
    means("dual-srchost", "isolation", "dual-srchost"),
    means("dual-dsthost", "isolation", "dual-dsthost"),
    means("triple-isolate", "isolation", "triple-isolate"),
    time("rtt", "rtt"),
    means("datacentre", "rtt", "100us"),
    means("lan", "rtt", "1ms"),
    means("metro", "rtt", "10ms"),
    means("regional", "rtt", "30ms"),
    means("internet", "rtt", "100ms"),
    means("oceanic", "rtt", "300ms"),
    means("satellite", "rtt", "1s"),
    means("interplanetary", "rtt", "3600s"),
    line("raw"),
    line("conservative"),
    line("ethernet"),
    line("docsis"),
    line("pppoe-ptm"),
    line("bridged-ptm"),
    line("pppoa-vcmux"),
    line("pppoa-llc"),
    line("pppoe-vcmux"),
    line("pppoe-llcsnap"),
    line("bridged-vcmux"),
    line("bridged-llcsnap"),
    line("ipoa-vcmux"),
    line("ipoa-llcsnap"),
    option("ether-vlan", "vlan_tags", Reads::Tally),
    option("overhead", "overhead", Reads::Several(overhead)),
    same("mpu", "mpu"),
    means("noatm", "cells", "uncut"),
    means("atm", "cells", "atm"),
    means("ptm", "cells", "ptm"),
    option("fwmark", "fwmark", Reads::Mask),
    means("wash", "wash", "true"),
    means("nowash", "wash", "false"),
    means("ingress", "ingress", "true"),
    means("egress", "ingress", "false"),
    same("memlimit", "memory_limit"),
    is_so("via-ethernet"),
    is_so("nonat"),
    means("no-ack-filter", "ack_filter", "off"),
    means("ack-filter", "ack_filter", "on"),
    means("ack-filter-aggressive", "ack_filter", "aggressive"),
    is_so("split-gso"),
    option(
        "nat",
        "",
        Reads::Nat(
            "the translation is not known, because the frames of a run are not in this machine's table of \
             connections: hosts behind NAT count as one, unless the translation is after this interface",
        ),
    ),
    option(
        "no-split-gso",
        "",
        Reads::Noted("a run cuts merged packets into those that the link carries, as with split-gso"),
    ),
];

const fn line(word: &'static str) -> Opt {
    means(word, "line", word)
}

/// Returns a word that switches off a feature that does not exist here. It sets nothing.
const fn is_so(word: &'static str) -> Opt {
    means(word, "", "")
}

fn defaults(device: &Device) -> Vec<(&'static str, String)> {
    vec![
        ("mtu", frame(device).to_string()),
        ("link_header", device.hard_header_len.to_string()),
    ]
}

/// Adds cake's words, and the numbers of its link layer.
fn complete(seen: &Seen<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<Config>();
    details.push(Detail::new(
        "bandwidth",
        match config.bandwidth {
            _ if config.autorate => Amount::VariableRate("bandwidth"),
            Some(bandwidth) => rate(bandwidth.bits_per_second()),
            None => Amount::Text("unlimited".to_owned()),
        },
    ));
    let autorate = "autorate-ingress";
    details.extend(
        config
            .autorate
            .then(|| Detail::bare(autorate, "autorate", Some(autorate))),
    );
    let choice = |parameter: &str, key| Some((seen.word(parameter)?, key));
    let choices = [choice("tins", "diffserv"), choice("isolation", "flowmode")];
    details.extend(
        choices
            .into_iter()
            .flatten()
            .map(|(word, key)| Detail::bare(word, key, Some(word))),
    );
    details.push(Detail::keyed("nonat", "nat", Amount::Switch(false)));
    let wash = if config.wash { "wash" } else { "nowash" };
    details.push(Detail::keyed(wash, "wash", Amount::Switch(config.wash)));
    details.push(Detail::new("ingress", Amount::Flag(config.ingress)));
    let (word, in_json) = match config.ack_filter {
        AckFilter::Off => ("no-ack-filter", "disabled"),
        AckFilter::On => ("ack-filter", "enabled"),
        AckFilter::Aggressive => ("ack-filter-aggressive", "aggressive"),
    };
    details.push(Detail::bare(word, "ack-filter", Some(in_json)));
    details.push(Detail::keyed("split-gso", "split_gso", Amount::Switch(true)));
    details.push(Detail::new("rtt", Amount::Time(config.rtt.as_nanos() as u64)));
    let framing = config.framing;
    details.push(Detail::new("raw", Amount::Flag(framing.overhead.is_none())));
    let cells = match framing.cells {
        Cells::None => "noatm",
        Cells::Atm => "atm",
        Cells::Ptm => "ptm",
    };
    let has_cells = framing.overhead.is_some() || framing.cells != Cells::None;
    details.extend(has_cells.then(|| Detail::bare(cells, "atm", Some(cells))));
    details.push(Detail::new(
        "overhead",
        plain(framing.overhead.unwrap_or(0).into()),
    ));
    let mpu = u64::from(framing.mpu);
    details.extend((mpu > 0).then(|| Detail::new("mpu", plain(mpu))));
    details.extend(
        config
            .memory_limit
            .map(|limit| Detail::new("memlimit", size(limit))),
    );
    details.push(match config.fwmark {
        0 => Detail::in_json("fwmark", Amount::Text("0".to_owned())),
        mask => Detail::new("fwmark", Amount::Text(format!("{mask:#x}"))),
    });
}

/// Returns the lines about memory and lengths, and the table of tins.
fn statistics(cake: &Running<'_>) -> Vec<Row> {
    let number = |name: &str| cake.number(name).unwrap_or(0);
    let of = |key: &'static str| Detail::in_json(key, plain(number(key)));
    let text = |amount: Amount| amount.text().unwrap_or_default();
    let memory = [number("memory_peak"), number("memory_limit")];
    let [used, limit] = memory.map(|bytes| text(size(bytes)));
    let estimate = number("capacity_estimate");
    let span = |what: &str, width: usize, [least, most]: [&'static str; 2]| {
        let (from, to) = (number(least), number(most));
        aligned(
            format!(" min/max {what}: {from:width$} /{to:8}"),
            [of(least), of(most)],
        )
    };
    let mut rows = vec![
        aligned(
            format!(" memory used: {used} of {limit}"),
            [
                Detail::in_json("memory_used", plain(memory[0])),
                of("memory_limit"),
            ],
        ),
        aligned(
            format!(" capacity estimate: {}", text(of_bytes(estimate))),
            [of("capacity_estimate")],
        ),
        span("network layer size", 12, ["min_network_size", "max_network_size"]),
        span("overhead-adjusted size", 8, ["min_adj_size", "max_adj_size"]),
        aligned(
            format!(" average network hdr offset: {:12}", number("avg_hdr_offset")),
            [of("avg_hdr_offset")],
        ),
        blank(),
    ];
    rows.extend(table(cake.state));
    rows.push(blank());
    rows
}

fn blank() -> Row {
    aligned(String::new(), [])
}

/// Returns a rate of bytes per second, as tc shows it.
fn of_bytes(bytes_per_second: u64) -> Amount {
    match bytes_per_second {
        0 => Amount::Count(0, "bit"),
        bytes => rate(bytes.saturating_mul(8)),
    }
}

/// The kernel counts whole microseconds.
fn in_micros(nanos: u64) -> Amount {
    Amount::Time(nanos / 1000 * 1000)
}

/// A line of the table of tins: its title, its key in JSON, the variable, and how it is shown.
type Line = (&'static str, &'static str, &'static str, fn(u64) -> Amount);

/// The lines in the order of the text.
const LINES: [Line; 20] = [
    ("thresh", "threshold_rate", "threshold_rate", of_bytes),
    ("target", "target_us", "target", in_micros),
    ("interval", "interval_us", "interval", in_micros),
    ("pk_delay", "peak_delay_us", "peak_delay", in_micros),
    ("av_delay", "avg_delay_us", "avg_delay", in_micros),
    ("sp_delay", "base_delay_us", "base_delay", in_micros),
    ("backlog", "backlog_bytes", "backlog_bytes", size),
    ("pkts", "sent_packets", "sent_packets", plain),
    ("bytes", "sent_bytes", "sent_bytes", plain),
    ("way_inds", "way_indirect_hits", "way_indirect_hits", plain),
    ("way_miss", "way_misses", "way_misses", plain),
    ("way_cols", "way_collisions", "way_collisions", plain),
    ("drops", "drops", "drops", plain),
    ("marks", "ecn_mark", "ecn_mark", plain),
    ("ack_drop", "ack_drops", "ack_drops", plain),
    ("sp_flows", "sparse_flows", "sparse_flows", plain),
    ("bk_flows", "bulk_flows", "bulk_flows", plain),
    ("un_flows", "unresponsive_flows", "unresponsive_flows", plain),
    ("max_len", "max_pkt_len", "max_pkt_len", plain),
    ("quantum", "flow_quantum", "flow_quantum", plain),
];

/// Returns the table of tins. In JSON it is an array of objects.
fn table(state: &State) -> Vec<Row> {
    let tins = &state.parts;
    let titles: Vec<String> = match tins.len() {
        0 => return Vec::new(),
        3 => ["Bulk", "Best Effort", "Voice"].map(str::to_owned).to_vec(),
        4 => ["Bulk", "Best Effort", "Video", "Voice"]
            .map(str::to_owned)
            .to_vec(),
        count => (0..count).map(|number| format!("Tin {number}")).collect(),
    };
    let line = |title: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.map(|cell| format!(" {cell:>12}")).collect();
        format!("  {title:8}{cells}")
    };
    let value = |tin: &[(String, Variable)], name: &str| {
        let found = tin.iter().find(|(known, _)| known == name);
        match found.map(|(_, value)| *value) {
            Some(Variable::Integer(number)) => u64::try_from(number).unwrap_or(0),
            Some(Variable::Nanos(nanos)) => nanos,
            _ => 0,
        }
    };
    let object = |tin: &Vec<(String, Variable)>| {
        let detail = |(_, key, name, form): &Line| {
            let number = value(tin, name);
            match form(number) {
                time @ Amount::Time(_) => Detail::in_json(key, time),
                _ => Detail::in_json(key, plain(number)),
            }
        };
        LINES.iter().map(detail).collect()
    };
    let objects = Amount::Objects(tins.iter().map(object).collect());
    let mut rows = vec![aligned(
        line("", &mut titles.into_iter()),
        [Detail::in_json("tins", objects)],
    )];
    rows.extend(LINES.iter().map(|(title, _, name, form)| {
        let cell = |tin: &Vec<(String, Variable)>| form(value(tin, name)).text().unwrap_or_default();
        aligned(line(title, &mut tins.iter().map(cell)), [])
    }));
    rows
}

/// The Ethernet header before the IP packet, to which cake adds the overhead.
const HEADER: u32 = 14;

/// The least overhead (`cake_parse_opt` in q_cake.c).
const LEAST: u32 = 64;

/// Reads an overhead. One below 0 makes the packet shorter than its IP part: more is left out before it.
fn overhead(
    _: &Word,
    words: &mut slice::Iter<'_, Word>,
) -> Result<Vec<(&'static str, Spanned<Given>)>, Unreadable> {
    let word = words.next().ok_or(Unreadable::Missing)?;
    let given = |value: Given| Spanned::new(word.span(), value);
    let Some(negative) = word.get_ref().strip_prefix('-') else {
        return Ok(vec![("overhead", given(Given::Word(word.get_ref().clone())))]);
    };
    match number(negative).filter(|amount| *amount <= LEAST) {
        Some(amount) => Ok(vec![
            ("overhead", given(Given::Integer(0))),
            ("link_header", given(Given::Integer((HEADER + amount).into()))),
        ]),
        None => Err(Unreadable::Wrong {
            location: word.span(),
            message: format!("`{}` is no overhead of cake", word.get_ref()),
            help: "write -64 to 256".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use fairgate::rounds::cake::{Framing, Isolation, Tins};
    use miette::Diagnostic;
    use std::time::Duration;

    use super::*;
    use crate::tc::Script;

    /// Returns the parameters for these options, or the error and its remedy.
    fn config(options: &str) -> Result<Config, String> {
        let text = format!("qdisc add dev e root handle 1: cake {options}");
        let script = Script::parse("test.tc", &text, Device::default());
        let spec = script
            .and_then(|script| script.spec())
            .map_err(|error| format!("{error}: {}", error.help().expect("a remedy")))?;
        let config = spec.config().expect("the options agree");
        Ok(*config.downcast().expect("cake's"))
    }

    #[test]
    fn options_and_defaults_are_those_of_the_kernel() {
        let plain = config("").unwrap();
        assert_eq!(plain.classifier.handle, 1);
        let mut expected = Config::default();
        expected.classifier.handle = 1;
        assert_eq!(plain, expected);

        let home = config("bandwidth 18mbit besteffort flows docsis regional nat-less")
            .expect_err("there is no such word");
        assert!(home.contains("nat-less"), "{home}");
        let home =
            config("bandwidth 18mbit diffserv8 dual-dsthost docsis regional ingress wash nonat").unwrap();
        assert_eq!(
            home.bandwidth.map(|rate| rate.bits_per_second()),
            Some(18_000_000)
        );
        assert_eq!(
            (home.tins, home.isolation),
            (Tins::Diffserv8, Isolation::DualDestination)
        );
        assert_eq!(
            (home.framing, home.rtt),
            (Framing::DOCSIS, Duration::from_millis(30))
        );
        assert!(home.ingress && home.wash);
    }

    #[test]
    fn words_for_link_layers_can_be_refined() {
        let framing = |options| config(options).unwrap().framing;
        assert_eq!(framing("pppoe-ptm"), Framing::PPPOE_PTM);
        let tagged = Framing {
            overhead: Some(26),
            ..Framing::BRIDGED_PTM
        };
        assert_eq!(framing("bridged-ptm ether-vlan"), tagged);
        let own = Framing {
            overhead: Some(40),
            mpu: 80,
            cells: Cells::Atm,
        };
        assert_eq!(framing("overhead 40 mpu 80 atm"), own);
        assert_eq!(framing("conservative noatm").cells, Cells::None);
        assert_eq!(framing("pppoe-ptm ether-vlan ether-vlan").overhead, Some(38));
    }

    #[test]
    fn the_last_of_bandwidth_unlimited_and_autorate_counts() {
        let rates = |options| {
            let config = config(options).unwrap();
            (
                config.bandwidth.map(|rate| rate.bits_per_second()),
                config.autorate,
            )
        };
        assert_eq!(rates("bandwidth 1mbit autorate-ingress"), (Some(1_000_000), true));
        assert_eq!(
            rates("autorate-ingress bandwidth 1mbit"),
            (Some(1_000_000), false)
        );
        assert_eq!(rates("autorate-ingress"), (None, true));
        assert_eq!(rates("autorate-ingress unlimited"), (None, false));
    }

    #[test]
    fn filters_of_acknowledgements_have_three_words() {
        let filter = |options| config(options).unwrap().ack_filter;
        assert_eq!(filter(""), AckFilter::Off);
        assert_eq!(filter("ack-filter"), AckFilter::On);
        assert_eq!(filter("ack-filter-aggressive"), AckFilter::Aggressive);
        assert_eq!(filter("ack-filter no-ack-filter"), AckFilter::Off);
    }

    #[test]
    fn filters_are_rejected_with_the_reason() {
        let error =
            config("\nfilter add dev e parent 1: protocol ip prio 1 handle 5 fw classid 1:1").unwrap_err();
        assert!(
            error.contains("choose a flow and a host in the kernel") && error.contains("fwmark"),
            "{error}"
        );
    }

    /// Lines that SQM and OpenWrt write: the last of words that exclude one another counts, as in tc.
    #[test]
    fn lines_of_sqm_are_taken() {
        let text = "qdisc add dev e root cake bandwidth 9mbit diffserv3 triple-isolate nat wash besteffort \
                    dual-srchost no-split-gso ack-filter rtt 100ms noatm overhead 44 memlimit 32Mb egress";
        let script = Script::parse("test.tc", text, Device::default()).unwrap();
        let (spec, warnings) = script.translate().expect("it can be carried over");
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let cake: Config = *spec.config().unwrap().downcast().expect("cake's");
        assert_eq!(
            (cake.tins, cake.isolation),
            (Tins::Besteffort, Isolation::DualSource)
        );
        assert_eq!(
            (cake.framing.overhead, cake.memory_limit),
            (Some(44), Some(32 << 20))
        );
        assert_eq!(
            warnings,
            [
                "line 1: `nat`: the translation is not known, because the frames of a run are not in this \
                 machine's table of connections: hosts behind NAT count as one, unless the translation is \
                 after this interface",
                "line 1: `no-split-gso`: a run cuts merged packets into those that the link carries, as \
                 with split-gso",
            ]
        );
        let rtt = |options: &str| config(options).unwrap().rtt;
        assert_eq!(rtt("rtt 50ms internet"), Duration::from_millis(100));
        assert_eq!(rtt("internet rtt 50ms"), Duration::from_millis(50));
        let twice = config("rtt 5ms rtt 6ms").expect_err("the same word");
        assert!(twice.contains("`rtt` is given twice"), "{twice}");
    }
}
