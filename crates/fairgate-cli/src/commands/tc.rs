//! `fairgate tc`: converts tc's commands to a configuration file, checks them, or runs them.

use fairgate::Rate;
use fairgate_config::units::parse_rate;
use fairgate_scripts::tc::{Device, Script, Translated};

use crate::commands::script::{self, Language, ScriptArgs};
use crate::commands::ways::Tree;
use crate::failure::{Failure, Outcome};
use crate::output::Format;

const LANGUAGE: Language = Language {
    name: "tc",
    starts: &["tc", "qdisc", "class", "filter"],
};

/// Read tc commands: print them as a configuration file, check them, run them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate tc 'qdisc add dev eth0 root fq_codel limit 1000'   the same as TOML
  fairgate tc home.tc > home.toml                  a script; `tc` at the start of a line is optional
  fairgate tc - < home.tc                          the same from standard input
  fairgate tc home.tc --tree                       the trees in readable form
  fairgate tc home.tc --json                       every parameter, for a script
  fairgate tc home.tc --run eth1                   live: frames from eth1 leave by the script's device, and
                                                   those that the script redirects to an ifb leave by eth1

Supported: qdisc, class and filter with add, change, replace and del; the filters u32, fw, flower, basic and
matchall; ingress and clsact, with the action mirred.
What cannot be translated is an error with its location.")]
pub(crate) struct Args {
    #[command(flatten)]
    script: ScriptArgs,

    /// Default limit of the device's fifos, in packets
    #[arg(long, default_value_t = Device::default().txqueuelen)]
    txqueuelen: u32,

    /// Transmit queues of the device, for mq, multiq and mqprio [default: as many as the script names]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    tx_queues: Option<u16>,

    /// Speed of the device's link, like 1gbit, for rates like 10%
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    speed: Option<Rate>,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let device = Device {
        mtu: args.script.mtu,
        txqueuelen: args.txqueuelen,
        queues: args.tx_queues,
        speed: args.speed.map(Rate::bits_per_second),
        ..Device::default()
    };
    let read = |name: &str, text: &str| {
        let tree = |translated: Translated| Tree {
            name: translated.name,
            device: Some(translated.device),
            way: translated.way,
            spec: translated.spec,
            warnings: translated.warnings,
        };
        let translated = Script::translate_all(name, text, device)?;
        Ok(translated.into_iter().map(tree).collect())
    };
    script::run(&args.script, &LANGUAGE, read, format)
}
