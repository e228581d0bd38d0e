//! cake in tc's words: its options, most of them words that stand for themselves, and what is shown of it.

use std::any::Any;

use fairgate::rounds::cake::{Cells, Config};

use super::Device;
use super::kinds::{Opt, Reads, frame, means, option, same, time};
use super::show::{Amount, as_rate};
use crate::registry::ParameterInfo;
use crate::spec::Spec;
use crate::value::Value;

pub(super) const OPTIONS: &[Opt] = &[
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
    is_not(
        "nat",
        "packets carry the addresses that they have, not those before translation: isolate by the side that is not translated, \
         like dual-dsthost for what comes in",
    ),
    is_not(
        "split-gso",
        "packets are queued as they come: let the interface split them, or leave the word out",
    ),
    is_not(
        "ack-filter",
        "packets don't tell what they acknowledge: leave the word out",
    ),
    is_not(
        "ack-filter-aggressive",
        "packets don't tell what they acknowledge: leave the word out",
    ),
    is_not("autorate-ingress", "the rate is never guessed: give a bandwidth"),
    is_not("autorate_ingress", "the rate is never guessed: give a bandwidth"),
];

const fn line(word: &'static str) -> Opt {
    means(word, "line", word)
}

/// What tc can switch off, and there is not here: it sets nothing.
const fn is_so(word: &'static str) -> Opt {
    means(word, "", "")
}

const fn is_not(word: &'static str, why: &'static str) -> Opt {
    option(word, "", Reads::Refused(why))
}

pub(super) fn defaults(device: &Device) -> Vec<(&'static str, String)> {
    vec![
        ("mtu", frame(device).to_string()),
        ("link_header", device.hard_header_len.to_string()),
    ]
}

/// The words that stand for themselves, and the numbers that the kind of line comes to.
pub(super) fn shown(spec: &Spec, parameters: &[(ParameterInfo, Value)]) -> Vec<(&'static str, Amount)> {
    let word = |name: &str| {
        let value = parameters.iter().find(|(info, _)| info.name == name);
        match value {
            Some((_, Value::Word(word))) => Some((*word, Amount::Flag(true))),
            _ => None,
        }
    };
    let built = spec.entry.config(&spec.settings).ok();
    let config = built.as_deref().and_then(<dyn Any>::downcast_ref::<Config>);
    let Some(config) = config else {
        return Vec::new();
    };
    let bandwidth = match config.bandwidth {
        Some(rate) => as_rate(rate.bits_per_second()),
        None => Amount::Text("unlimited".to_owned()),
    };
    let mut options = vec![("bandwidth", bandwidth)];
    options.extend(word("tins"));
    options.extend(word("isolation"));
    let flag = |is_set: bool, word, otherwise| (if is_set { word } else { otherwise }, Amount::Flag(true));
    options.push(("nonat", Amount::Flag(true)));
    options.push(flag(config.wash, "wash", "nowash"));
    if config.ingress {
        options.push(("ingress", Amount::Flag(true)));
    }
    options.push(("no-ack-filter", Amount::Flag(true)));
    options.push(("no-split-gso", Amount::Flag(true)));
    options.push(("rtt", Amount::Time(config.rtt.as_nanos() as u64)));
    let framing = config.framing;
    if framing.overhead.is_none() {
        options.push(("raw", Amount::Flag(true)));
    }
    let cells = match framing.cells {
        Cells::None => "noatm",
        Cells::Atm => "atm",
        Cells::Ptm => "ptm",
    };
    if framing.overhead.is_some() || framing.cells != Cells::None {
        options.push((cells, Amount::Flag(true)));
    }
    options.push(("overhead", Amount::Plain(framing.overhead.unwrap_or(0).into())));
    if framing.mpu > 0 {
        options.push(("mpu", Amount::Plain(framing.mpu.into())));
    }
    if let Some(limit) = config.memory_limit {
        options.push(("memlimit", Amount::Size(limit)));
    }
    if config.fwmark > 0 {
        options.push(("fwmark", Amount::Text(format!("{:#x}", config.fwmark))));
    }
    options
}

#[cfg(test)]
mod tests {
    use fairgate::rounds::cake::{Framing, Isolation, Tins};
    use miette::Diagnostic;
    use std::time::Duration;

    use super::*;
    use crate::tc::Script;

    /// What the options come to; or what is wrong with them, and the remedy.
    fn config(options: &str) -> Result<Config, String> {
        let text = format!("qdisc add dev e root handle 1: cake {options}");
        let script = Script::parse("test.tc", &text, Device::default());
        let spec = script
            .and_then(|script| script.spec())
            .map_err(|error| format!("{error}: {}", error.help().expect("a remedy")))?;
        let config = spec.entry.config(&spec.settings).expect("the options agree");
        Ok(*config.downcast().expect("cake's"))
    }

    #[test]
    fn options_are_the_kernels() {
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
    fn words_for_lines_can_be_refined() {
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
    fn what_there_is_not_is_refused_with_the_reason() {
        for (word, reason) in [
            ("nat", "before translation"),
            ("split-gso", "let the interface split them"),
            ("ack-filter", "what they acknowledge"),
            ("ack-filter-aggressive", "what they acknowledge"),
            ("autorate-ingress", "give a bandwidth"),
        ] {
            let error = config(&format!("bandwidth 1mbit {word}")).unwrap_err();
            assert!(
                error.contains(&format!("no `{word}` here")) && error.contains(reason),
                "{error}"
            );
        }
        let error =
            config("\nfilter add dev e parent 1: protocol ip prio 1 handle 5 fw classid 1:1").unwrap_err();
        assert!(
            error.contains("choose a flow in the kernel") && error.contains("fwmark"),
            "{error}"
        );
    }
}
