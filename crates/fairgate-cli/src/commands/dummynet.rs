//! `fairgate dummynet`: converts dummynet's commands to a configuration file, checks them, or runs them.

use fairgate_scripts::dummynet::{self, Direction, Script};
use fairgate_scripts::pf;
use fairgate_scripts::sources::Source as Kind;
use fairgate_scripts::tc::{Device, TreeDirection};

use crate::commands::script::{self, Language, ScriptArgs, Source, Text};
use crate::commands::script_trees::Tree;
use crate::failure::{Failure, Outcome};
use crate::foreign;
use crate::output::Format;

const LANGUAGE: Language = Language {
    name: "dummynet",
    starts: &["ipfw", "dnctl", "pipe", "queue", "sched", "add"],
};

/// Read dummynet's commands (ipfw, dnctl): print them as a configuration file, check them, run them
#[derive(clap::Args)]
#[command(visible_aliases = ["ipfw", "dnctl"], after_help = "\
Examples:
  fairgate dummynet 'pipe 1 config bw 10Mbit/s codel'   a pipe as TOML, for all packets
  fairgate dummynet office.ipfw > office.toml      a script; `ipfw` and `dnctl` at the start are optional
  fairgate dummynet office.ipfw --tree             the trees in readable form
  fairgate dummynet office.ipfw --run em1          live: between em1 and the interface that the rules name
  fairgate dummynet out.ipfw --device em0 --run em1     the same if the rules name none

Supported: pipe, queue and sched with config, delete and flush; rules with pipe, queue and allow, by protocol,
addresses, ports, dscp, iptos, in, out and via; rules of pf with dnpipe and dnqueue. What cannot be translated
(keep-state, nat ...) is an error with its location.")]
pub(crate) struct Args {
    #[command(flatten)]
    script: ScriptArgs,

    /// The interface of rules that do not name one
    #[arg(long, value_name = "INTERFACE")]
    device: Option<String>,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let device = Device {
        mtu: args.script.mtu,
        ..Device::default()
    };
    let read = |text: &Text| {
        let trees = trees(text, device, args.device.as_deref());
        let known = [Kind::Dummynet, Kind::Pf];
        trees.map_err(|failure| foreign::another_kind(&text.name, &text.text, &known).unwrap_or(failure))
    };
    let source = || script::given(&args.script, &LANGUAGE);
    script::run(&args.script, &LANGUAGE, &Source::default(), source, read, format)
}

fn trees(text: &Text, device: Device, named_by: Option<&str>) -> Result<Vec<Tree>, Failure> {
    // ALTQ's queues are in the same file.
    let is_of_pf = pf::has_queues(&text.text) && !pf::has_pipes(&text.text);
    let trees = match is_of_pf {
        true => pf::trees(&text.name, &text.text, device)?,
        false => Script::parse(&text.name, &text.text, device)?.trees()?,
    };
    Ok(trees.into_iter().map(|tree| named(tree, named_by)).collect())
}

/// Returns a tree with its name. `device` is that of rules that name none.
pub(crate) fn named(tree: dummynet::Tree, device: Option<&str>) -> Tree {
    Tree {
        name: tree.name(),
        device: tree.interface.or_else(|| device.map(str::to_owned)),
        direction: match tree.direction {
            Direction::In => TreeDirection::In,
            Direction::Out => TreeDirection::Out,
        },
        spec: tree.spec,
        warnings: tree.warnings.iter().map(ToString::to_string).collect(),
        nat: false,
        of_nat: Vec::new(),
        files: tree.files,
    }
}
