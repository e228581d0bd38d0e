//! `fairgate subscribers import`: the list of a file, from UISP or Splynx.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fairgate::classify::Prefix;
use fairgate_config::units::parse_rate;
use fairgate_config::{Document, Registry};
use fairgate_run::import::{ImportError, Imported, Kind, LeftOut, Program, Server, Wishes, read};
use fairgate_run::subscribers::{Settings, Source, Subscribers};
use fairgate_run_api::Difference;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use super::super::status::NAME;
use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Texts};
use crate::output::{self, Format, Targets};
use crate::subscribers;

/// How many of what is left out are printed.
const SHOWN: usize = 20;

/// Write the list of a file anew, from the customers and sites of UISP or Splynx
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate subscribers import uisp https://uisp.example.com isp.toml --token-file token --dry-run
  fairgate subscribers import uisp https://uisp.example.com isp.toml --token-file token
  fairgate subscribers import uisp https://uisp.example.com isp.toml --token-file token --ca uisp.pem
  fairgate subscribers import splynx https://splynx.example.com isp.toml --token-file token
  fairgate subscribers import splynx https://splynx.example.com isp.toml --token-file token --suspended 256kbit

The file names the list: [subscribers] libreqos = { devices = \"...\", network = \"...\" }. Both files are
checked as `fairgate check` does, and written only if they change. A run takes them over by itself.
The file of the token has UISP's token, or key and secret of Splynx in one line, and mode 0600.
Nothing is written if an answer is missing or cut off, or if the list would lose more than most_removed
allows. A node of network.json with \"fixed\": true keeps its rates. All other changes of both files are
lost.")]
pub(super) struct Args {
    /// Where the customers are
    program: Origin,

    /// The address of the server: https://HOST[:PORT]
    url: String,

    /// The file of the run, which names the list
    file: PathBuf,

    /// The file with the token, mode 0600
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,

    /// The certificate of the server, or of its authority (PEM) [default: those that the system trusts]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// What suspended customers get each way, like 256kbit [default: they are left out]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    suspended: Option<u64>,

    /// Addresses that are those of no customer; may be repeated [default: 192.168.0.0/16]
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    ignore: Vec<Prefix>,

    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Where customers are.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Origin {
    /// Ubiquiti's UISP, by its NMS API v2.1
    Uisp,
    /// Splynx, by its API 2.0
    Splynx,
}

#[derive(Debug, Error, Diagnostic)]
enum Refused {
    #[error("{file} has no list of LibreQoS' files, so nothing can be written")]
    #[diagnostic(help(
        "write libreqos = {{ devices = \"ShapedDevices.csv\", network = \"network.json\" }} to [subscribers]"
    ))]
    NoFiles { file: String },
    #[error(
        "nothing is left of the answer: {left_out} subscribers are left out ({why}); nothing was written"
    )]
    #[diagnostic(help(
        "--dry-run names them; is that the right server, and may the token see the customers?"
    ))]
    Empty { left_out: usize, why: String },
    #[error(
        "{removed} of the {had} subscribers of {devices} are not there any more ({difference}): an import \
         removes at most {most} percent of them, and never all; nothing was written"
    )]
    #[diagnostic(help(
        "if the answer is too short, import again later; if it is right, write confirmed_removed = {removed} \
         to [subscribers]; most_removed changes the limit"
    ))]
    CutOff {
        removed: usize,
        had: usize,
        devices: String,
        difference: Difference,
        most: u64,
    },
}

/// `fairgate.subscribers_import/1`.
#[derive(Serialize)]
struct Report<'a> {
    /// `UISP` or `Splynx`.
    program: String,
    subscribers: usize,
    devices: usize,
    addresses: usize,
    nodes: usize,
    /// Subscribers that are connected to no node, but to the line.
    on_line: usize,
    left_out: &'a [LeftOut],
    /// How the list differs from the one in the files before. None if there was none.
    difference: Option<Difference>,
    /// The files that have other content now, or would have.
    files: Vec<String>,
    is_written: bool,
    warnings: Vec<String>,
}

/// The two files, and what is in them.
struct Files<'a> {
    paths: [&'a Path; 2],
    texts: [Option<String>; 2],
}

pub(super) fn run(args: &Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let document = document::read(&args.file, registry)?;
    let settings = Settings::read(&document, registry)?;
    let Some(Settings {
        source: Source::LibreQos { devices, network },
        ..
    }) = &settings
    else {
        let file = args.file.display().to_string();
        return Err(Refused::NoFiles { file }.into());
    };
    let files = Files::at([devices, network])?;
    let before = files.list(document.clone(), registry)?;
    // A file that can't be written is reported before the server is asked.
    let mut targets = Targets::beside([args.file.as_path(), args.token_file.as_path()]);
    let targets = match args.dry_run {
        true => Vec::new(),
        false => vec![targets.open(network)?, targets.open(devices)?],
    };
    let imported = args.imported(files.texts[1].as_deref())?;
    let texts = [&imported.devices_text, &imported.network_text];
    let list = files
        .with(texts)
        .list(document, registry)?
        .expect("both texts are there");
    let difference = before.as_ref().map(|before| list.since(before));
    if !args.dry_run {
        allowed(&list, before.as_ref(), &imported, devices)?;
    }
    let changed = files.changed(texts);
    let is_written = !args.dry_run && !changed.is_empty();
    if is_written {
        // Devices name their nodes, so these are there first.
        for (target, text) in targets.into_iter().zip([texts[1], texts[0]]) {
            target.write(|file| file.write_all(text.as_bytes()))?;
        }
    }
    let warnings = list.warnings();
    input::warn(&warnings, format);
    let report = Report {
        program: args.program().to_string(),
        subscribers: imported.subscribers,
        devices: imported.devices,
        addresses: imported.addresses,
        nodes: imported.nodes,
        on_line: imported.on_line,
        left_out: &imported.left_out,
        difference,
        files: changed,
        is_written,
        warnings,
    };
    match format {
        Format::Json => output::json("subscribers_import", &report)?,
        Format::Text => output::text(&text(&report, args.dry_run))?,
    }
    Ok(Outcome::Yes)
}

impl Args {
    fn program(&self) -> Program {
        match self.program {
            Origin::Uisp => Program::Uisp,
            Origin::Splynx => Program::Splynx,
        }
    }

    /// Asks the server, and makes the list of its answers.
    fn imported(&self, network: Option<&str>) -> Result<Imported, Failure> {
        let wishes = Wishes {
            suspended: self.suspended,
            ignored: match self.ignore.is_empty() {
                true => Wishes::ignored(),
                false => self.ignore.clone(),
            },
        };
        let imported = || -> Result<Imported, ImportError> {
            let answers =
                Server::at(self.program(), &self.url, &self.token_file, self.ca.as_deref())?.answers()?;
            read(self.program(), &answers, &wishes, network)
        };
        imported().map_err(|error| match error.is_bad_input() {
            true => error.into(),
            false => Failure::environment(error),
        })
    }
}

impl<'a> Files<'a> {
    /// Reads the files that are there.
    fn at(paths: [&'a Path; 2]) -> Result<Files<'a>, Failure> {
        let mut texts = [None, None];
        for (path, text) in paths.iter().zip(&mut texts) {
            if path.exists() {
                *text = Some(input::text(path)?);
            }
        }
        Ok(Files { paths, texts })
    }

    fn with(&self, texts: [&String; 2]) -> Files<'a> {
        Files {
            paths: self.paths,
            texts: texts.map(|text| Some(text.clone())),
        }
    }

    /// Reads the list as `fairgate check` does, if both files are there.
    fn list(&self, document: Document, registry: &Registry) -> Result<Option<Subscribers>, Failure> {
        let [Some(devices), Some(network)] = &self.texts else {
            return Ok(None);
        };
        let texts = [devices, network].map(String::clone);
        let copy: BTreeMap<PathBuf, String> = self.paths.map(Path::to_owned).into_iter().zip(texts).collect();
        let (_, list) = subscribers::added_to(document, None, registry, &Texts::of_copy(copy))?;
        Ok(list)
    }

    /// Returns the names of the files that have another content.
    fn changed(&self, texts: [&String; 2]) -> Vec<String> {
        let pairs = self.paths.iter().zip(self.texts.iter().zip(texts));
        let changed = pairs.filter(|(_, (old, new))| old.as_ref() != Some(*new));
        changed.map(|(path, _)| path.display().to_string()).collect()
    }
}

/// Refuses a list that lacks too many. A run would refuse it too, but not at its next start.
fn allowed(
    list: &Subscribers,
    before: Option<&Subscribers>,
    imported: &Imported,
    devices: &Path,
) -> Result<(), Refused> {
    let settings = list.settings();
    let Some(before) = before else {
        return match imported.subscribers {
            0 => Err(Refused::Empty {
                left_out: reasons(&imported.left_out, Kind::Subscriber)
                    .iter()
                    .map(|(_, count)| count)
                    .sum(),
                why: counted(&reasons(&imported.left_out, Kind::Subscriber)),
            }),
            _ => Ok(()),
        };
    };
    let difference = list.since(before);
    let removed = difference.removed;
    if settings.may_remove(&difference) || settings.confirmed_removed == Some(removed as u64) {
        return Ok(());
    }
    Err(Refused::CutOff {
        removed,
        had: before.list().subscribers.len(),
        devices: output::name(&devices.display().to_string()),
        difference,
        most: settings.most_removed,
    })
}

/// Counts why things of a kind are left out.
fn reasons(left_out: &[LeftOut], kind: Kind) -> Vec<(&'static str, usize)> {
    let mut counts = BTreeMap::new();
    for one in left_out.iter().filter(|one| one.of == kind) {
        *counts.entry(one.reason).or_insert(0) += 1;
    }
    counts
        .into_iter()
        .map(|(reason, count)| (reason.words(), count))
        .collect()
}

fn counted(reasons: &[(&str, usize)]) -> String {
    let words: Vec<String> = reasons
        .iter()
        .map(|(words, count)| format!("{count} {words}"))
        .collect();
    words.join(", ")
}

fn text(report: &Report<'_>, is_dry: bool) -> String {
    let mut text = String::new();
    if !report.left_out.is_empty() {
        let mut table = output::table(["LEFT OUT", "ID", "NAME", "ADDRESS", "WHY"]);
        for one in report.left_out.iter().take(SHOWN) {
            table.add_row([
                of(one.of).to_owned(),
                output::name(&one.id),
                fairgate_run_api::brief(&one.name, NAME),
                one.address.clone().unwrap_or_default(),
                one.reason.words().to_owned(),
            ]);
        }
        text += &output::table_text(&table);
        if let Some(more) = report.left_out.len().checked_sub(SHOWN + 1) {
            text += &format!("and {} more, which --json names\n", more + 1);
        }
        text.push('\n');
    }
    let mut table = output::table(["", "TAKEN", "LEFT OUT"]);
    let counts = [
        (Kind::Subscriber, "subscribers", report.subscribers),
        (Kind::Device, "devices", report.devices),
        (Kind::Address, "addresses", report.addresses),
        (Kind::Node, "nodes", report.nodes),
    ];
    for (kind, what, taken) in counts {
        let reasons = counted(&reasons(report.left_out, kind));
        table.add_row([what.to_owned(), taken.to_string(), reasons]);
    }
    text += &output::table_text(&table);
    if report.on_line > 0 {
        text += &format!("connected to the line, at no node: {}\n", report.on_line);
    }
    if let Some(difference) = &report.difference {
        text += &format!("since the files before: {difference}\n");
    }
    let files: Vec<String> = report.files.iter().map(|file| output::name(file)).collect();
    let files = files.join(", ");
    text + &match (report.files.is_empty(), is_dry) {
        (true, _) => "The files have this already.\n".to_owned(),
        (false, true) => format!("Nothing is written; without --dry-run: {files}\n"),
        (false, false) => format!("Written: {files}\n"),
    }
}

fn of(kind: Kind) -> &'static str {
    match kind {
        Kind::Subscriber => "subscriber",
        Kind::Address => "address",
        Kind::Device => "device",
        Kind::Node => "node",
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let rate = parse_rate(text).map_err(|error| error.to_string())?;
    Ok(rate.bits_per_second())
}

fn prefix(text: &str) -> Result<Prefix, String> {
    let wrong = || "write an address or a prefix, like 192.168.0.0/16".to_owned();
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    let address: std::net::IpAddr = address.parse().map_err(|_| wrong())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        "" => longest,
        length => length.parse().map_err(|_| wrong())?,
    };
    Prefix::new(address, length).map_err(|error| error.to_string())
}
