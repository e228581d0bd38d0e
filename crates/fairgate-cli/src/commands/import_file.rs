//! `fairgate import`: reads a file of another program, whatever it is.

use fairgate_config::Origin;
use fairgate_scripts::sources::{self, Source};
use fairgate_scripts::tc::Device;
use fairgate_scripts::{dummynet as of_dummynet, pf};

use crate::commands::script::{Language, ScriptArgs, Text};
use crate::commands::script_trees::Tree;
use crate::commands::{dummynet, script, tc};
use crate::failure::{Failure, Outcome};
use crate::foreign::NotRead;
use crate::output::Format;

const LANGUAGE: Language = Language {
    name: "import",
    starts: &[],
};

/// Read a file of another program: print its queues as a configuration file, check them, run them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate import /etc/systemd/network/50-wan.network    systemd-networkd: [CAKE], [HierarchyTokenBucket] ...
  fairgate import /etc/config/sqm --tree                 OpenWrt's sqm, and its qosify
  fairgate import vyos.conf > office.toml                VyOS: set qos policy ...
  fairgate import export.rsc                             RouterOS: /queue tree, /queue simple, /queue type
  fairgate import /etc/pf.conf --run em1                 live; also tc, ipfw and dnctl commands

The file is recognised by its content. It is also read as a connection of NetworkManager ([tc]). A line
that is not carried over is an error, or a warning that names it. A shell script is not run: fairgate tc
--record does that where it can change nothing.")]
pub(crate) struct Args {
    #[command(flatten)]
    script: ScriptArgs,

    /// The interface of a file that names none
    #[arg(long, value_name = "INTERFACE")]
    device: Option<String>,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let device = Device {
        mtu: args.script.mtu,
        has_marks: !args.script.is_run(),
        ..Device::default()
    };
    let source = || {
        let mut text = script::given(&args.script, &LANGUAGE)?;
        if let Some(source) = sources::recognise(&text.text) {
            text.notes.push(format!("{} is {}", text.name, source.what()));
        }
        Ok(text)
    };
    let read = |text: &Text| trees(text, device, args.device.as_deref());
    script::run(
        &args.script,
        &LANGUAGE,
        &script::Source::default(),
        source,
        read,
        format,
    )
}

/// Returns the trees of a file.
fn trees(text: &Text, device: Device, named: Option<&str>) -> Result<Vec<Tree>, Failure> {
    let name = text.name.clone();
    let Some(source) = sources::recognise(&text.text) else {
        return Err(NotRead::Unknown { name }.into());
    };
    match source {
        Source::Tc => tc::trees(text, device),
        Source::Dummynet => {
            let trees = of_dummynet::Script::parse(&text.name, &text.text, device)?.trees()?;
            Ok(trees
                .into_iter()
                .map(|tree| dummynet::named(tree, named))
                .collect())
        }
        Source::Pf => {
            let trees = pf::trees(&text.name, &text.text, device)?;
            Ok(trees
                .into_iter()
                .map(|tree| dummynet::named(tree, named))
                .collect())
        }
        source if source.gives_commands() => {
            let commands = sources::commands(&text.name, &text.text, source, named)?;
            let origin = |line: &usize| {
                Some(Origin {
                    file: text.name.clone(),
                    line: *line,
                })
            };
            let of_tc = Text {
                name: format!("the commands of {name}"),
                text: commands.text(),
                origins: commands.lines.iter().map(|(line, _)| origin(line)).collect(),
                notes: Vec::new(),
            };
            let mut trees = tc::trees(&of_tc, device)?;
            for tree in &mut trees {
                tree.spec = commands.changed(&tree.name, tree.spec.clone())?;
            }
            if let Some(first) = trees.first_mut() {
                let of_file = commands.notes.iter().map(ToString::to_string);
                first.warnings = of_file.chain(std::mem::take(&mut first.warnings)).collect();
            }
            Ok(trees)
        }
        kind => Err(NotRead::Another { name, kind }.into()),
    }
}
