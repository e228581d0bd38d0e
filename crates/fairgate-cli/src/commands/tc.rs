//! `fairgate tc`: what tc's commands describe, as a configuration file, checked or run.

use std::fmt::Write;
use std::io::Read;
use std::path::PathBuf;

use fairgate_config::tc::{Device, Script};
use fairgate_config::{Document, Spec};
use fairgate_live::status::default_socket;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::commands::run;
use crate::exit::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};

/// Read tc commands: print them as a configuration file, check them, run them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate tc 'qdisc add dev eth0 root fq_codel limit 1000'   the same as TOML
  fairgate tc home.tc > home.toml                  a script; lines may begin with `tc` or not, as for tc -batch
  fairgate tc - < home.tc                          the same from standard input
  fairgate tc home.tc --tree                       the trees as people read them
  fairgate tc home.tc --json                       every parameter, for a script
  fairgate tc home.tc --run eth1                   live: what comes in on eth1 leaves by the script's device

Read are qdisc, class and filter with add, change, replace and del; the filters u32, fw, flower, basic and matchall.
What can't be carried over is an error at its place.")]
pub(crate) struct Args {
    /// Commands, the file that they are in, or - for standard input
    #[arg(required = true, value_name = "COMMANDS|FILE|-")]
    commands: Vec<String>,

    /// Print the trees instead of TOML
    #[arg(long)]
    tree: bool,

    /// Join this interface and the script's device, whose tree schedules what leaves by it, until Ctrl-C
    #[arg(long, value_name = "INTERFACE", conflicts_with = "tree")]
    run: Option<String>,

    /// Longest IP packet of the device, bytes: defaults follow it
    #[arg(long, default_value_t = Device::default().mtu)]
    mtu: u32,

    /// Default limit of the device's fifos, packets
    #[arg(long, default_value_t = Device::default().txqueuelen)]
    txqueuelen: u32,
}

#[derive(Debug, Error, Diagnostic)]
enum TcError {
    #[error("can't read standard input")]
    #[diagnostic(help("give a script as text, in UTF-8"))]
    Unreadable(#[source] std::io::Error),
    #[error("the script has trees for {devices}; one can be run")]
    #[diagnostic(help("leave the lines for the other devices out"))]
    Several { devices: String },
}

/// `fairgate.tc/1`.
#[derive(Serialize)]
struct Trees {
    queues: serde_json::Map<String, serde_json::Value>,
    warnings: Vec<String>,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let trees = trees(&args)?;
    if let Some(interface) = &args.run {
        return run_live(&args, interface, &trees, format);
    }
    input::warn(named(&trees), format);
    match (format, args.tree) {
        (Format::Json, _) => {
            let tree = |(name, spec): &(String, Spec)| (name.clone(), super::check::tree(spec));
            let queues = trees.iter().map(tree).collect();
            let warnings = input::warnings(named(&trees));
            output::json("tc", &Trees { queues, warnings })?;
        }
        (Format::Text, true) => output::text(&super::check::queues_text(named(&trees)))?,
        (Format::Text, false) => output::text(&toml(&trees))?,
    }
    Ok(Outcome::Yes)
}

/// The tree of each device.
fn trees(args: &Args) -> Result<Vec<(String, Spec)>, Failure> {
    let (name, text) = script(&args.commands)?;
    let device = Device {
        mtu: args.mtu,
        txqueuelen: args.txqueuelen,
        ..Device::default()
    };
    let scripts = Script::parse_all(&name, &text, device)?;
    let tree = |script: &Script| Ok((script.device_name().to_owned(), script.spec()?));
    scripts.iter().map(tree).collect()
}

fn named(trees: &[(String, Spec)]) -> impl Iterator<Item = (&str, &Spec)> {
    trees.iter().map(|(name, spec)| (name.as_str(), spec))
}

/// The script's name for messages, and its text.
fn script(commands: &[String]) -> Result<(String, String), Failure> {
    const OBJECTS: [&str; 4] = ["tc", "qdisc", "class", "filter"];
    let first = commands[0].split_whitespace().next().unwrap_or_default();
    let [single] = commands else {
        return Ok(("command line".to_owned(), join(commands)));
    };
    if single == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(TcError::Unreadable)?;
        return Ok(("standard input".to_owned(), text));
    }
    if OBJECTS.contains(&first) && single.contains(char::is_whitespace) {
        return Ok(("command line".to_owned(), single.clone()));
    }
    let path = PathBuf::from(single);
    Ok((single.clone(), input::text(&path)?))
}

/// Commands, one an argument, each a line; or the words of a single one.
fn join(commands: &[String]) -> String {
    let are_lines = commands
        .iter()
        .all(|command| command.contains(char::is_whitespace));
    commands.join(if are_lines { "\n" } else { " " })
}

fn toml(trees: &[(String, Spec)]) -> String {
    let mut text = String::new();
    for (name, spec) in trees {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&spec.to_toml(name));
    }
    text
}

fn run_live(
    args: &Args,
    interface: &str,
    trees: &[(String, Spec)],
    format: Format,
) -> Result<Outcome, Failure> {
    let [(device, _)] = trees else {
        let devices: Vec<&str> = trees.iter().map(|(device, _)| device.as_str()).collect();
        let devices = devices.join(", ");
        return Err(TcError::Several { devices }.into());
    };
    let read = || {
        let trees = self::trees(args)?;
        document(&trees, device, interface)
    };
    let socket = default_socket(device);
    run::run_document(&read, "the script", &socket, None, format)
}

/// What `fairgate run` would be given for these trees.
fn document(trees: &[(String, Spec)], device: &str, interface: &str) -> Result<Document, Failure> {
    let mut text = toml(trees);
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let _ = write!(
        text,
        "\n[run]\nleft = {}\nright = {}\nleft_to_right = {}\n",
        quoted(interface),
        quoted(device),
        quoted(device)
    );
    Ok(Document::parse(device, &text)?)
}
