//! cake's options, most of which are words without a value, and how tc shows cake.

use fairgate::rounds::cake::{Cells, Config};

use super::{
    Amount, Children, Detail, Device, Kind, Look, Opt, PLAIN, Reads, Seen, frame, means, option, same, time,
};
use crate::tc::display::{plain, rate, size};

pub(super) const CAKE: Kind = Kind {
    name: "cake",
    discipline: "cake",
    options: &[OPTIONS],
    children: Children::NoneNorFilters,
    defaults,
    look: Look { complete, ..PLAIN },
};

const OPTIONS: &[Opt] = &[
    same("bandwidth", "bandwidth"),
    means("unlimited", "bandwidth", "none"),
    means("besteffort", "tins", "besteffort"),
    means("precedence", "tins", "precedence"),
    means("diffserv3", "tins", "diffserv3"),
    means("diffserv4", "tins", "diffserv4"),
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
    means("ether-vlan", "vlan_tags", "1"),
    same("overhead", "overhead"),
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
    is_so("no-ack-filter"),
    is_so("no-split-gso"),
    option(
        "nat",
        "",
        Reads::Noted(
            "a packet's addresses before translation are not known: hosts behind NAT count as one, unless \
             the translation is after this interface",
        ),
    ),
    option(
        "split-gso",
        "",
        Reads::Noted("a packet that the interface merged is queued whole, as with no-split-gso"),
    ),
    is_not("ack-filter", "acknowledgements are not read: leave the word out"),
    is_not(
        "ack-filter-aggressive",
        "acknowledgements are not read: leave the word out",
    ),
    is_not(
        "autorate-ingress",
        "the rate is never estimated: give a bandwidth",
    ),
    is_not(
        "autorate_ingress",
        "the rate is never estimated: give a bandwidth",
    ),
];

const fn line(word: &'static str) -> Opt {
    means(word, "line", word)
}

/// Returns a word that switches off a feature that does not exist here. It sets nothing.
const fn is_so(word: &'static str) -> Opt {
    means(word, "", "")
}

const fn is_not(word: &'static str, why: &'static str) -> Opt {
    option(word, "", Reads::Refused(why))
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
    let bandwidth = config
        .bandwidth
        .map(|bandwidth| rate(bandwidth.bits_per_second()));
    let unlimited = || Amount::Text("unlimited".to_owned());
    details.push(Detail::new("bandwidth", bandwidth.unwrap_or_else(unlimited)));
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
    details.push(Detail::bare("no-ack-filter", "ack-filter", Some("disabled")));
    details.push(Detail::keyed("no-split-gso", "split_gso", Amount::Switch(false)));
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
    }

    #[test]
    fn unsupported_options_are_rejected_with_the_reason() {
        for (word, reason) in [
            ("ack-filter", "acknowledgements are not read"),
            ("ack-filter-aggressive", "acknowledgements are not read"),
            ("autorate-ingress", "give a bandwidth"),
        ] {
            let error = config(&format!("bandwidth 1mbit {word}")).unwrap_err();
            assert!(
                error.contains(&format!("the option `{word}` is not supported")) && error.contains(reason),
                "{error}"
            );
        }
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
                    dual-srchost split-gso rtt 100ms noatm overhead 44 memlimit 32Mb egress";
        let script = Script::parse("test.tc", text, Device::default()).unwrap();
        let (spec, warnings) = script.translate().expect("it can be carried over");
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
                "line 1: `nat`: a packet's addresses before translation are not known: hosts behind NAT \
                 count as one, unless the translation is after this interface",
                "line 1: `split-gso`: a packet that the interface merged is queued whole, as with \
                 no-split-gso",
            ]
        );
        let rtt = |options: &str| config(options).unwrap().rtt;
        assert_eq!(rtt("rtt 50ms internet"), Duration::from_millis(100));
        assert_eq!(rtt("internet rtt 50ms"), Duration::from_millis(50));
        let twice = config("rtt 5ms rtt 6ms").expect_err("the same word");
        assert!(twice.contains("`rtt` is given twice"), "{twice}");
    }
}
