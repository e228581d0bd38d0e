//! `fairgate tc`: converts tc's commands to a configuration file, checks them, or runs them.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Origin;
use fairgate_config::units::parse_rate;
use fairgate_scripts::record::{self, RecordError, Recorded, Request};
use fairgate_scripts::sources::Source as Kind;
use fairgate_scripts::tc::{Device, Note, Script, Translated};

use crate::commands::import;
use crate::commands::script::{self, Language, ScriptArgs, Source, Text};
use crate::commands::script_trees::Tree;
use crate::failure::{Failure, Outcome};
use crate::foreign;
use crate::input;
use crate::output::{Format, harmless};

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
  fairgate tc --record ./shape.sh start eth0       what a shell script does, with all variables expanded
  fairgate tc --import eth0                        what is attached to this machine's eth0 now
  fairgate tc --tree --record wondershaper -a eth0 -d 9000 -u 900   the same for an installed program

Supported: qdisc, class and filter with add, change, replace and del; the filters u32 (with hash tables), fw,
flow, flower, basic and matchall, and their chains; the actions drop, pass, continue, goto chain, police,
skbedit and pedit of the DSCP; ingress and clsact, with the action mirred.
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
    /// Run a shell script where it can change nothing, and read the tc commands that it gives. All words
    /// after this belong to the script
    #[arg(
        long,
        value_names = ["SCRIPT", "ARGUMENTS"],
        num_args = 1..,
        allow_hyphen_values = true,
        conflicts_with = "commands"
    )]
    record: Vec<OsString>,

    /// An interface that the recorded script finds although this machine does not have it
    #[arg(long, value_name = "INTERFACE", requires = "record")]
    with_device: Vec<String>,

    /// How long the recorded script may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = input::positive_duration)]
    time_limit: Duration,

    /// Read what tc shows of this machine: of one device and those that it redirects packets to, or of all
    #[arg(
        long,
        value_name = "INTERFACE",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["commands", "record", "import_from"]
    )]
    import: Option<String>,

    /// The same from files of another machine: INTERFACE.qdisc, INTERFACE.class, INTERFACE.filter, with what
    /// tc -d -j prints, or tc -d
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["commands", "record"])]
    import_from: Option<PathBuf>,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let device = Device {
        mtu: args.script.mtu,
        txqueuelen: args.txqueuelen,
        queues: args.tx_queues,
        speed: args.speed.map(Rate::bits_per_second),
        has_marks: !args.script.is_run(),
        ..Device::default()
    };
    let source = || match (&args.record[..], &args.import, &args.import_from) {
        ([script, arguments @ ..], ..) => recorded(&args, script, arguments),
        (_, Some(device), _) => import::live(device),
        (.., Some(folder)) => import::saved(folder),
        _ => script::given(&args.script, &LANGUAGE),
    };
    let read = |text: &Text| match trees(text, device) {
        Ok(trees) => Ok(trees),
        // A file of another kind has one mistake only.
        Err(failure) => Err(foreign::another_kind(&text.name, &text.text, &[Kind::Tc]).unwrap_or(failure)),
    };
    let place = Source {
        is_of_programs: !args.record.is_empty() || args.import.is_some(),
        folder: args.import_from.clone(),
    };
    script::run(&args.script, &LANGUAGE, &place, source, read, format)
}

/// Returns the trees of tc's commands.
pub(crate) fn trees(text: &Text, device: Device) -> Result<Vec<Tree>, Failure> {
    let warning = |note: Note| match note.line.and_then(|line| text.origin(line)) {
        Some(Origin { file, line }) => format!("{file}:{line}: {}", note.text),
        None => note.to_string(),
    };
    let tree = |translated: Translated| {
        let (of_nat, others): (Vec<Note>, Vec<Note>) =
            translated.warnings.into_iter().partition(|note| note.is_of_nat);
        Tree {
            name: translated.name,
            device: Some(translated.device),
            direction: translated.direction,
            spec: translated.spec,
            warnings: others.into_iter().map(warning).collect(),
            nat: translated.nat,
            of_nat: of_nat.into_iter().map(warning).collect(),
            files: translated.files,
        }
    };
    let translated = Script::translate_all(&text.name, &text.text, device)
        .map_err(|error| error.located(|line| text.origin(line)))?;
    Ok(translated.into_iter().map(tree).collect())
}

/// Shows what a script writes. Its text is not this program's result.
fn print_output(text: &str) {
    // If standard error is closed, nobody wants it.
    let _ = io::stderr().write_all(harmless(text).as_bytes());
}

/// Runs a shell script, and returns the commands of tc that it gave.
fn recorded(args: &Args, script: &OsStr, arguments: &[OsString]) -> Result<Text, Failure> {
    let request = Request {
        script,
        arguments,
        devices: &args.with_device,
        limit: args.time_limit,
    };
    let recording = record::record(&request, &print_output).map_err(|error| match error {
        RecordError::NotFound { .. } | RecordError::TooLong { .. } | RecordError::TooMuch { .. } => {
            Failure::Input(error.into())
        }
        _ => Failure::environment(error),
    })?;
    let text = recording.text();
    let origin = |command: Recorded| {
        let place = command.place?;
        Some(Origin {
            file: place.file,
            line: place.line,
        })
    };
    Ok(Text {
        name: format!("commands of {}", script.display()),
        text,
        notes: recording.notes,
        origins: recording.commands.into_iter().map(origin).collect(),
    })
}
