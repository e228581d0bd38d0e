//! `fairgate pf`: converts the queues of a pf.conf to a configuration file, checks them, or runs them.

use fairgate_scripts::pf;
use fairgate_scripts::sources::Source as Kind;
use fairgate_scripts::tc::Device;

use crate::commands::dummynet;
use crate::commands::script::{self, Language, ScriptArgs, Source, Text};
use crate::failure::{Failure, Outcome};
use crate::foreign;
use crate::output::Format;

const LANGUAGE: Language = Language {
    name: "pf",
    starts: &["altq", "queue", "pass", "match", "dummynet"],
};

/// Read the queues of a pf.conf (ALTQ's, OpenBSD's): print them as a configuration file, check them, run them
#[derive(clap::Args)]
#[command(visible_aliases = ["pf.conf", "altq"], after_help = "\
Examples:
  fairgate pf /etc/pf.conf > office.toml           the queues of the interfaces as TOML
  fairgate pf pf.conf --tree                       the trees in readable form
  fairgate pf pf.conf --run em1                    live: between em1 and the interface of the queues
  fairgate pf 'queue fq on em0 flows 1024 default' a queue of OpenBSD

Supported: ALTQ of FreeBSD and pfSense: altq on with cbq, priq, hfsc, fairq and codel, their queues, and rules
with queue (a, b); OpenBSD's queues with bandwidth, min, max, burst, qlimit, flows; rules that lead to
dummynet: dnpipe, dnqueue, and macOS' dummynet. Which packets pass is left to the firewall.")]
pub(crate) struct Args {
    #[command(flatten)]
    script: ScriptArgs,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let device = Device {
        mtu: args.script.mtu,
        ..Device::default()
    };
    let read = |text: &Text| {
        let trees = match pf::trees(&text.name, &text.text, device) {
            Ok(trees) => trees,
            Err(error) => {
                let other = foreign::another_kind(&text.name, &text.text, &[Kind::Pf, Kind::Dummynet]);
                return Err(other.unwrap_or_else(|| error.into()));
            }
        };
        Ok(trees
            .into_iter()
            .map(|tree| dummynet::named(tree, None))
            .collect())
    };
    let source = || script::given(&args.script, &LANGUAGE);
    script::run(&args.script, &LANGUAGE, &Source::default(), source, read, format)
}
