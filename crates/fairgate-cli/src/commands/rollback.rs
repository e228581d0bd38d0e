//! `fairgate rollback`: the versions of a run's files that have forwarded, and the way back to one of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fairgate_config::Registry;
use fairgate_config::folder::Folder;
use fairgate_live::Plan;
use fairgate_run::client::Remote;
use fairgate_run::running;
use fairgate_run_api::{ChangeMade, Question, ask, brief};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input::Texts;
use crate::last_good::{LastGood, Version};
use crate::lines::{self, Line};
use crate::output::{self, Format};
use crate::remote::failed;
use crate::subscribers::{self, Draft};

/// Where the copies of services are.
const STATE: &str = "/var/lib/fairgate";

/// How many lines of a file are printed, and how many characters of who and why.
const MOST_LINES: usize = 100;
const MOST_CHARACTERS: usize = 60;

/// List the versions of a run's files that have forwarded, and return to one of them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate rollback /etc/fairgate/home.toml          the versions: since when, who brought them, and why
  fairgate rollback /etc/fairgate/home.toml 1        what would change in the files; nothing does
  fairgate rollback /etc/fairgate/home.toml 1 --yes  the files are written, and the run reads them
  fairgate rollback home.toml 1 --last-good copy.json   the copy of a run that is no service

Version 0 forwards now, 1 is the one before it. The last 50 are in the copy that a run with --last-good keeps:
the file and its lists of subscribers. A version has its time when all threads have forwarded with it; changes
by hand, which the next reading undoes, are none. A file that is read again has the reason that `fairgate
reload --because` gives, and a list that clients change has their change.")]
pub(crate) struct Args {
    /// The configuration file of the run
    file: PathBuf,

    /// The version to return to
    #[arg(value_name = "VERSION")]
    number: Option<usize>,

    /// Return to it; without this, what would change is shown only
    #[arg(long, requires = "number")]
    yes: bool,

    /// The copy that the run keeps [default: /var/lib/fairgate/NAME.json]
    #[arg(long, value_name = "COPY")]
    last_good: Option<PathBuf>,

    /// The socket of the run [default: that of a run with the name of the file]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(Debug, Error, Diagnostic)]
enum NoVersion {
    #[error("there are no versions in {path}")]
    #[diagnostic(help(
        "a run with --last-good COPY keeps them, as services do: name the copy with --last-good; root may \
         read it"
    ))]
    NoCopy { path: String, source: io::Error },
    #[error("{path} has versions of {known}, not of {file}")]
    #[diagnostic(help("name the configuration file of the run, or another copy with --last-good"))]
    OtherFile {
        path: String,
        known: String,
        file: String,
    },
    #[error("there is no version {number}: {path} has 0 to {last}")]
    #[diagnostic(help("`fairgate rollback FILE` lists them"))]
    NoSuch {
        number: usize,
        path: String,
        last: usize,
    },
}

#[derive(Debug, Error, Diagnostic)]
#[error("can't write {path}{rest}")]
#[diagnostic(help("nothing is changed; run the command as a user who may write there"))]
struct Unwritten {
    path: String,
    rest: String,
    source: io::Error,
}

/// `fairgate.rollback/1`.
#[derive(Serialize)]
struct Document {
    versions: Vec<Row>,
    /// The version that was asked for.
    version: Option<usize>,
    /// The files that differ from it.
    files: Vec<Differing>,
    /// Files that the version has and the present file does not name, or the other way round. They stay.
    left: Vec<PathBuf>,
    /// Whether the files were written.
    is_made: bool,
    /// The revision of the trees of the run that has read them.
    revision: Option<u64>,
}

#[derive(Serialize)]
struct Row {
    number: usize,
    /// When it has forwarded first, UTC.
    since: String,
    who: String,
    why: String,
    /// The files that differ from those of the version before it.
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Differing {
    path: PathBuf,
    lines: Vec<Line>,
    #[serde(skip)]
    text: String,
}

pub(crate) fn run(args: &Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let copy = match &args.last_good {
        Some(copy) => copy.clone(),
        None => {
            let name = args.file.file_stem().unwrap_or_default().to_string_lossy();
            Path::new(STATE).join(format!("{name}.json"))
        }
    };
    let shown = copy.display().to_string();
    let versions = LastGood::versions(&copy).map_err(|source| NoVersion::NoCopy {
        path: shown.clone(),
        source,
    })?;
    let file = known_as(&args.file, &versions[0], &shown)?;
    let mut document = Document {
        versions: rows(&versions),
        version: args.number,
        files: Vec::new(),
        left: Vec::new(),
        is_made: false,
        revision: None,
    };
    let mut unread = None;
    if let Some(number) = args.number {
        let version = versions.get(number).ok_or(NoVersion::NoSuch {
            number,
            path: shown,
            last: versions.len() - 1,
        })?;
        (document.files, document.left) = differing(version, &file, registry);
        if args.yes {
            let plan = checked(version, &file, registry)?;
            write(&document.files)?;
            document.is_made = true;
            let socket = args.socket.clone().or_else(|| socket_of(&args.file, &plan.name));
            if let Some(socket) = socket {
                let run = Remote::from(socket);
                let because = Some(format!(
                    "rollback to version {number}, of {}",
                    version.begin.since
                ));
                let made = ask::<ChangeMade, _>(&run, "", Question::Reload { because });
                match made.map_err(failed(&run)) {
                    Ok(made) => document.revision = Some(made.revision),
                    Err(failure) => unread = Some(failure),
                }
            }
        }
    }
    match format {
        Format::Json => output::json("rollback", &document)?,
        Format::Text => output::text(&text(&document))?,
    }
    unread.map_or(Ok(Outcome::Yes), Err)
}

/// Returns the socket of the run of this file: it has the name of the file, as a service has, or that of the
/// run. None if it does not run.
fn socket_of(file: &Path, name: &str) -> Option<PathBuf> {
    let names = [file.file_stem(), Some(OsStr::new(name))];
    let mut sockets = running().unwrap_or_default().into_iter();
    sockets.find(|socket| socket.file_stem().is_some_and(|stem| names.contains(&Some(stem))))
}

/// Returns the path by which the run has read this file.
fn known_as(file: &Path, version: &Version, copy: &str) -> Result<PathBuf, NoVersion> {
    let same = |known: &&PathBuf| {
        known.as_path() == file
            || matches!((known.canonicalize(), file.canonicalize()), (Ok(known), Ok(file)) if known == file)
    };
    let mut known = version.texts.keys();
    known
        .clone()
        .find(same)
        .cloned()
        .ok_or_else(|| NoVersion::OtherFile {
            path: copy.to_owned(),
            known: known
                .next()
                .map_or_else(String::new, |path| path.display().to_string()),
            file: file.display().to_string(),
        })
}

fn rows(versions: &[Version]) -> Vec<Row> {
    let none = BTreeMap::new();
    let before = versions
        .iter()
        .skip(1)
        .map(|version| &version.texts)
        .chain([&none]);
    let row = |(number, (version, before)): (usize, (&Version, &BTreeMap<PathBuf, String>))| {
        let paths = version
            .texts
            .keys()
            .chain(before.keys().filter(|path| !version.texts.contains_key(*path)));
        let differs = |path: &&PathBuf| version.texts.get(*path) != before.get(*path);
        // What was before the first one is not known.
        let files = if before.is_empty() {
            Vec::new()
        } else {
            paths.filter(differs).cloned().collect()
        };
        Row {
            number,
            since: version.begin.since.clone(),
            who: version.begin.who.clone(),
            why: version.begin.why.clone(),
            files,
        }
    };
    versions.iter().zip(before).enumerate().map(row).collect()
}

/// Returns the files that differ from a version, and those that stay whatever it has. The copy belongs to the
/// user of the run: only the file that the operator names, and the lists that this names, are written.
fn differing(version: &Version, file: &Path, registry: &Registry) -> (Vec<Differing>, Vec<PathBuf>) {
    let lists = document::read(file, registry).map(|document| subscribers::lists(&document, registry));
    let lists = lists.unwrap_or_default();
    let (mut files, mut left) = (Vec::new(), Vec::new());
    for (path, text) in &version.texts {
        let now = fs::read_to_string(path).unwrap_or_default();
        if now == *text {
            continue;
        }
        match path == file || lists.contains(path) {
            true => files.push(Differing {
                path: path.clone(),
                lines: lines::between(&now, text),
                text: text.clone(),
            }),
            false => left.push(path.clone()),
        }
    }
    left.extend(lists.into_iter().filter(|path| !version.texts.contains_key(path)));
    (files, left)
}

/// Checks that this program accepts a version.
fn checked(version: &Version, file: &Path, registry: &Registry) -> Result<Plan, Failure> {
    let texts = Texts::of_copy(version.texts.clone());
    let document = document::of(&texts, file, registry)?;
    let (document, _) = subscribers::added_to(document, None, registry, &texts)?;
    Ok(Plan::read(&document)?)
}

/// Writes the files: all of them or none.
fn write(files: &[Differing]) -> Result<(), Failure> {
    let unwritten = |path: &Path, source: io::Error, rest: String| {
        Failure::environment(Unwritten {
            path: path.display().to_string(),
            rest,
            source,
        })
    };
    let mut drafts = Vec::new();
    for file in files {
        let draft = || {
            let (folder, name) = Folder::end_of(&file.path)?;
            let (before, like, found) = match folder.open_file(&name) {
                Ok(like) => {
                    let found = like.metadata()?;
                    (Some(fs::read_to_string(&file.path)?), like, Some(found))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    (None, File::open(folder.fixed_path())?, None)
                }
                Err(error) => return Err(error),
            };
            let draft = Draft::write(folder, name, found, like, &file.text)?;
            Ok((draft, before))
        };
        drafts.push(draft().map_err(|error| unwritten(&file.path, error, String::new()))?);
    }
    for (place, (draft, _)) in drafts.iter().enumerate() {
        let Err(error) = draft.put() else { continue };
        let back = drafts[..place]
            .iter()
            .filter(|(draft, before)| draft.put_back(before.as_deref()).is_err());
        let rest =
            back.map(|(draft, _)| format!("; {} has the version all the same", draft.path().display()));
        return Err(unwritten(&files[place].path, error, rest.collect()));
    }
    Ok(())
}

fn text(document: &Document) -> String {
    let Some(number) = document.version else {
        let mut table = output::table(["VERSION", "SINCE", "WHO", "WHY", "FILES"]);
        for row in &document.versions {
            let names = row.files.iter().filter_map(|path| path.file_name());
            let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
            let known = |text: &str| {
                if text.is_empty() {
                    "-".to_owned()
                } else {
                    brief(text, MOST_CHARACTERS)
                }
            };
            table.add_row([
                row.number.to_string(),
                row.since.clone(),
                known(&row.who),
                known(&row.why),
                known(&names.join(" ")),
            ]);
        }
        return output::table_text(&table);
    };
    let mut text = String::new();
    for file in &document.files {
        text += &format!("{}:\n", file.path.display());
        for line in file.lines.iter().take(MOST_LINES) {
            text += &format!("{} {:>4}  {}\n", line.sign, line.number, line.text);
        }
        if file.lines.len() > MOST_LINES {
            text += &format!("... and {} more lines\n", file.lines.len() - MOST_LINES);
        }
        if file.lines.is_empty() {
            text += "  only line ends differ\n";
        }
    }
    for path in &document.left {
        text += &format!(
            "{} stays as it is: the present file does not name it, or the version does not have it.\n",
            path.display()
        );
    }
    let end = match (document.is_made, document.revision) {
        _ if document.files.is_empty() => format!("The files are those of version {number}.\n"),
        (false, _) => {
            format!("Nothing is changed yet. With --yes the files become those of version {number}.\n")
        }
        (true, Some(revision)) => {
            format!("The files are those of version {number}, and run: revision {revision}.\n")
        }
        (true, None) => format!("The files are those of version {number}. No run has read them yet.\n"),
    };
    text + &end
}
