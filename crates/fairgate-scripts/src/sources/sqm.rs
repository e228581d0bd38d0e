//! OpenWrt's `/etc/config/sqm`: what sqm-scripts do with it.
//!
//! The scripts simple.qos, simplest.qos, simplest_tbf.qos, piece_of_cake.qos and layer_cake.qos are known.
//! What arrives is redirected to an ifb, `ifb4` and the interface's name.

use super::Writer;
use super::sections::{Section, uci};

pub(super) fn read(writer: &mut Writer<'_>) {
    let (sections, others) = uci(writer.text);
    for line in others {
        writer.problem(line, "this is no line of UCI", "write config, option or list");
    }
    for section in &sections {
        if section.kind.get_ref() != "queue" {
            writer.note(&section.at(), "only sections `queue` are about queues");
            continue;
        }
        if !section.is_on("enabled", false) {
            let lines: Vec<_> = section.lines().collect();
            writer
                .notes
                .add_lines(&lines, "this queue is not enabled, and gives no tree");
            continue;
        }
        queue(writer, section);
    }
}

/// The keys that say nothing about a tree.
const SILENT: [&str; 6] = [
    "debug_logging",
    "verbosity",
    "linklayer_advanced",
    "use_mq",
    "tcMTU",
    "tcTSIZE",
];

const KNOWN: [&str; 24] = [
    "enabled",
    "interface",
    "qdisc_advanced",
    "qdisc_really_really_advanced",
    "download",
    "upload",
    "qdisc",
    "script",
    "squash_dscp",
    "squash_ingress",
    "ingress_ecn",
    "egress_ecn",
    "linklayer",
    "linklayer_adaptation_mechanism",
    "overhead",
    "tcMPU",
    "iqdisc_opts",
    "eqdisc_opts",
    "ilimit",
    "elimit",
    "itarget",
    "etarget",
    "zero_dscp",
    "ignore_dscp",
];

fn queue(writer: &mut Writer<'_>, section: &Section) {
    let mut silent = Vec::new();
    let script = section.text("script").unwrap_or("simple.qos");
    for (key, _) in &section.entries {
        let name = key.get_ref().as_str();
        // The scripts of cake have their own qdisc.
        if SILENT.contains(&name) || name == "qdisc" && script.contains("cake") {
            silent.push(key.span());
        } else if !KNOWN.contains(&name) {
            let message = format!("the option `{name}` can't be carried over");
            writer.problem(
                key.span(),
                &message,
                format!("understood are {}", KNOWN.join(", ")),
            );
        }
    }
    writer
        .notes
        .add_lines(&silent, "these options change nothing in a tree");
    let Some(device) = section
        .text("interface")
        .map(str::to_owned)
        .or_else(|| writer.device(&section.at()))
    else {
        return;
    };
    let mut rate = |key: &str| -> Option<u64> {
        let value = section.get(key)?;
        match value.get_ref().parse() {
            Ok(kbit) => Some(kbit),
            Err(_) => {
                let message = format!("`{}` is not a number of kbit/s", value.get_ref());
                writer.problem(value.span(), &message, "write a number; 0 does not shape");
                None
            }
        }
    };
    let (up, down) = (rate("upload").unwrap_or(0), rate("download").unwrap_or(0));
    let advanced = section.is_on("qdisc_advanced", false);
    let really = advanced && section.is_on("qdisc_really_really_advanced", false);
    let one = Sqm {
        section,
        advanced,
        really,
        squash: !advanced || section.is_on("squash_dscp", true),
        ignore: !advanced || section.is_on("squash_ingress", true),
    };
    let ifb = format!("ifb4{device}");
    let at = section.at();
    let both = [(device.clone(), up, true), (ifb.clone(), down, false)];
    for (to, kbit, is_up) in both.into_iter().filter(|(_, kbit, _)| *kbit > 0) {
        match script {
            "layer_cake.qos" | "piece_of_cake.qos" => {
                let has_layers = script == "layer_cake.qos" && (is_up || !one.ignore);
                let tins = if has_layers { "diffserv3" } else { "besteffort" };
                let wash = if !is_up && one.squash { " wash" } else { "" };
                let options = one.options(is_up);
                let line = one.cake_layer();
                writer.command(
                    &at,
                    format!(
                        "tc qdisc replace dev {to} root cake bandwidth {kbit}kbit{line} {tins}{wash}{options}"
                    ),
                );
            }
            "simple.qos" => one.simple(writer, &to, kbit, is_up),
            "simplest.qos" => {
                let (stab, leaf) = (one.stab(), one.leaf(kbit, is_up));
                let burst = burst(kbit);
                let bursts = format!(
                    "quantum {0} rate {kbit}kbit ceil {kbit}kbit burst {burst} cburst {burst}",
                    burst.clamp(1514, 60_000)
                );
                writer.command(
                    &at,
                    format!("tc qdisc replace dev {to} root handle 1: {stab}htb default 10"),
                );
                writer.command(
                    &at,
                    format!("tc class replace dev {to} parent 1: classid 1:1 htb {bursts}"),
                );
                writer.command(
                    &at,
                    format!("tc class replace dev {to} parent 1:1 classid 1:10 htb {bursts} prio 0"),
                );
                writer.command(
                    &at,
                    format!("tc qdisc replace dev {to} parent 1:10 handle 110: {leaf}"),
                );
            }
            "simplest_tbf.qos" => {
                let (stab, leaf) = (one.stab(), one.leaf(kbit, is_up));
                let burst = burst(kbit);
                writer.command(
                    &at,
                    format!(
                        "tc qdisc replace dev {to} root handle 1: {stab}tbf rate \
                    {kbit}kbit burst {burst} latency 300ms"
                    ),
                );
                writer.command(
                    &at,
                    format!("tc qdisc replace dev {to} parent 1: handle 110: {leaf}"),
                );
            }
            other => {
                let at = section.get("script").map_or(at.clone(), toml::Spanned::span);
                let message = format!("the script `{other}` is not known");
                let help = "known are simple.qos, simplest.qos, simplest_tbf.qos, piece_of_cake.qos and \
                    layer_cake.qos; record others with fairgate tc --record";
                return writer.problem(at, &message, help);
            }
        }
    }
    if down > 0 {
        writer.command(&at, format!("tc qdisc add dev {device} handle ffff: ingress"));
        writer.command(
            &at,
            format!(
                "tc filter add dev {device} parent ffff: protocol all prio 10 matchall action \
                mirred egress redirect dev {ifb}"
            ),
        );
    }
    if up == 0 && down == 0 {
        writer.note(
            &at,
            "neither `upload` nor `download` is above 0: nothing is shaped",
        );
    }
}

/// The bytes of 1 ms at this rate, at least a frame.
fn burst(kbit: u64) -> u64 {
    (kbit / 8).max(1514)
}

struct Sqm<'s> {
    section: &'s Section,
    advanced: bool,
    really: bool,
    /// Whether DSCPs are removed from packets that arrive, and whether they choose a class.
    squash: bool,
    ignore: bool,
}

impl Sqm<'_> {
    fn is_cells(&self) -> bool {
        matches!(self.section.text("linklayer"), Some("atm" | "adsl"))
    }

    fn has_link_layer(&self) -> bool {
        self.section
            .text("linklayer")
            .is_some_and(|layer| layer != "none")
    }

    fn overhead(&self) -> &str {
        self.section.text("overhead").unwrap_or("0")
    }

    fn mpu(&self) -> &str {
        self.section.text("tcMPU").unwrap_or("0")
    }

    /// The words of cake for the link layer.
    fn cake_layer(&self) -> String {
        if !self.has_link_layer() {
            return String::new();
        }
        let cells = if self.is_cells() { " atm" } else { "" };
        format!("{cells} overhead {} mpu {}", self.overhead(), self.mpu())
    }

    fn stab(&self) -> String {
        if !self.has_link_layer() {
            return String::new();
        }
        let layer = if self.is_cells() { "adsl" } else { "ethernet" };
        format!(
            "stab mpu {} overhead {} linklayer {layer} ",
            self.mpu(),
            self.overhead()
        )
    }

    /// The user's own options.
    fn options(&self, is_up: bool) -> String {
        let key = if is_up { "eqdisc_opts" } else { "iqdisc_opts" };
        let options = self.section.text(key).filter(|_| self.really).unwrap_or_default();
        if options.is_empty() {
            String::new()
        } else {
            format!(" {options}")
        }
    }

    /// The qdisc of a class.
    fn leaf(&self, kbit: u64, is_up: bool) -> String {
        let qdisc = self.section.text("qdisc").unwrap_or("fq_codel");
        let options = self.options(is_up);
        let given = |up: &str, down: &str| {
            self.section
                .text(if is_up { up } else { down })
                .filter(|_| self.really)
        };
        let limit = given("elimit", "ilimit").unwrap_or("1001");
        let ecn = match self
            .section
            .text(if is_up { "egress_ecn" } else { "ingress_ecn" })
            .filter(|_| self.advanced)
        {
            Some("ECN") => "ecn",
            Some("NOECN") => "noecn",
            _ if is_up => "noecn",
            _ => "ecn",
        };
        match qdisc {
            "fq_codel" | "codel" => {
                // Two frames take this long; the target is at least as much (`adapt_target_to_slow_link`).
                let micros = (2 * 1514 * 8 * 1000 / kbit.max(1)).max(5000);
                let target = match given("etarget", "itarget") {
                    Some(target) if target != "auto" => target.to_owned(),
                    _ => format!("{micros}us"),
                };
                let interval = 100_000 + micros - 5000;
                format!("{qdisc} limit {limit} target {target} interval {interval}us {ecn}{options}")
            }
            "cake" => format!("cake unlimited{options}"),
            "pfifo" => format!("pfifo limit {limit}"),
            other => format!("{other}{options}"),
        }
    }

    /// simple.qos: three classes, express, usual and bulk.
    fn simple(&self, writer: &mut Writer<'_>, to: &str, kbit: u64, is_up: bool) {
        let at = self.section.at();
        let (stab, leaf) = (self.stab(), self.leaf(kbit, is_up));
        let burst = burst(kbit);
        let quantum = burst.clamp(1514, 60_000);
        let whole = format!("quantum {quantum} rate {kbit}kbit ceil {kbit}kbit burst {burst} cburst {burst}");
        if !is_up && self.ignore {
            writer.command(
                &at,
                format!("tc qdisc replace dev {to} root handle 1: {stab}htb default 10"),
            );
            writer.command(
                &at,
                format!("tc class replace dev {to} parent 1: classid 1:1 htb {whole}"),
            );
            writer.command(
                &at,
                format!("tc class replace dev {to} parent 1:1 classid 1:10 htb {whole} prio 0"),
            );
            writer.command(
                &at,
                format!("tc qdisc replace dev {to} parent 1:10 handle 110: {leaf}"),
            );
            return;
        }
        let express = if is_up { 128 } else { 32 }.min(kbit);
        let (express_ceil, rate, ceil) = (kbit / 3, kbit / 6, kbit.saturating_sub(16).max(1));
        let quanta = format!("quantum {quantum}");
        writer.command(
            &at,
            format!("tc qdisc replace dev {to} root handle 1: {stab}htb default 12"),
        );
        writer.command(
            &at,
            format!("tc class replace dev {to} parent 1: classid 1:1 htb {whole}"),
        );
        let classes = [
            (11, express, express_ceil.max(express), String::new()),
            (12, rate, ceil, format!(" burst {burst} cburst {burst}")),
            (13, rate, ceil, format!(" burst {burst} cburst {burst}")),
        ];
        for (class, rate, ceil, bursts) in classes {
            let prio = class - 10;
            let rate = rate.max(1);
            writer.command(
                &at,
                format!(
                    "tc class replace dev {to} parent 1:1 classid 1:{class} htb \
                {quanta} rate {rate}kbit ceil {ceil}kbit{bursts} prio {prio}"
                ),
            );
            writer.command(
                &at,
                format!("tc qdisc replace dev {to} parent 1:{class} handle {class}0: {leaf}"),
            );
        }
        if is_up {
            let text = "the rules of a firewall mark what is express or bulk: a bridge sees no such \
                marks, and \
                chooses by the DSCP: EF and CS6, CS7 are express, CS1 is bulk";
            writer.note(&at, text);
        }
        for (prio, (dscp, class)) in [("0xb8", 11), ("0xc0", 11), ("0xe0", 11), ("0x20", 13)]
            .into_iter()
            .enumerate()
        {
            for (protocol, prio) in [("ip", 2 * prio + 1), ("ipv6", 2 * prio + 2)] {
                writer.command(
                    &at,
                    format!(
                        "tc filter add dev {to} parent 1: protocol {protocol} prio \
                    {prio} flower ip_tos {dscp}/0xfc classid 1:{class}"
                    ),
                );
            }
        }
    }
}
