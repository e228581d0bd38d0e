//! Common parts of the commands that read scripts: finding the script, printing its trees, running them.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use fairgate_config::{Document, Origin, Registry};
use fairgate_live::Plan;
use fairgate_run::{RunningList, default_socket};
use fairgate_scripts::tc::Device;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::commands::script_trees::{Run, RunError, Tree, without_run};
use crate::commands::{check, run};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Texts};
use crate::output::{self, Format};

/// The arguments that all these commands share.
#[derive(clap::Args)]
pub(crate) struct ScriptArgs {
    /// Commands, a file with commands, or - for standard input
    #[arg(value_name = "COMMANDS|FILE|-")]
    commands: Vec<OsString>,

    /// Print the trees instead of TOML
    #[arg(long)]
    tree: bool,

    /// Run the trees: forward between this interface and the script's device, both ways, until Ctrl-C
    #[arg(
        long,
        value_name = "INTERFACE",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with = "tree"
    )]
    run: Option<String>,

    /// With --run, instead of another interface: run on the script's device, which this machine itself uses
    #[arg(long, requires = "run")]
    dev: bool,

    /// MTU of the device, in bytes; some defaults depend on it
    #[arg(long, default_value_t = Device::default().mtu)]
    pub(crate) mtu: u32,
}

impl ScriptArgs {
    /// Returns which packets of the trees' devices are run, or nothing if the trees are printed.
    fn joined(&self) -> Result<Option<Joined<'_>>, ScriptError> {
        match (self.run.as_deref(), self.dev) {
            (None, _) => Ok(None),
            (Some(""), true) => Ok(Some(Joined::Itself)),
            (Some(""), false) => Err(ScriptError::NoInterface),
            (Some(interface), true) => Err(ScriptError::Both {
                interface: interface.to_owned(),
            }),
            (Some(interface), false) => Ok(Some(Joined::With(interface))),
        }
    }

    /// Whether the trees are run, and not printed.
    pub(crate) fn is_run(&self) -> bool {
        self.run.is_some()
    }
}

/// What the script's device is joined with.
#[derive(Clone, Copy)]
enum Joined<'a> {
    /// With another interface.
    With(&'a str),
    /// With this machine.
    Itself,
}

impl Joined<'_> {
    fn run(self, trees: &[Tree]) -> Result<Run, RunError> {
        match self {
            Joined::With(interface) => Run::of(trees, interface),
            Joined::Itself => Run::on_device(trees),
        }
    }
}

/// A scripting language.
pub(crate) struct Language {
    /// The name of the command, and of its document's schema.
    pub(crate) name: &'static str,
    /// The words with which a command can begin.
    pub(crate) starts: &'static [&'static str],
}

/// The text of a script.
pub(crate) struct Text {
    /// Its name, for messages.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The line that each line was made from, if the text was made from other files.
    pub(crate) origins: Vec<Option<Origin>>,
    /// What happened when the text was made.
    pub(crate) notes: Vec<String>,
}

impl Text {
    /// A text that somebody wrote.
    fn written(name: impl Into<String>, text: impl Into<String>) -> Text {
        Text {
            name: name.into(),
            text: text.into(),
            origins: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the line that a line was made from. Lines are counted from 1.
    pub(crate) fn origin(&self, line: usize) -> Option<Origin> {
        self.origins.get(line.checked_sub(1)?)?.clone()
    }
}

#[derive(Debug, Error, Diagnostic)]
enum ScriptError {
    #[error("can't read standard input")]
    #[diagnostic(help("the script must be text in UTF-8"))]
    Unreadable(#[source] std::io::Error),
    #[error("--run names no interface")]
    #[diagnostic(help(
        "name the interface on the other side of the script's device, like --run eth1; or add --dev, which \
         runs on the script's device itself"
    ))]
    NoInterface,
    #[error("--run {interface} and --dev exclude each other")]
    #[diagnostic(help(
        "leave --dev out to forward between {interface} and the script's device, or name no interface to \
         run on the script's device itself"
    ))]
    Both { interface: String },
    #[error("no commands are given")]
    #[diagnostic(help(
        "write them as arguments, or name a file, or give - and write them to standard input"
    ))]
    Nothing,
    #[error("the commands are not text: some bytes are not UTF-8")]
    #[diagnostic(help("write them in UTF-8, or give one file"))]
    NoText,
}

/// `fairgate.tc/1`, `fairgate.dummynet/1`.
#[derive(Serialize)]
struct Trees {
    queues: serde_json::Map<String, serde_json::Value>,
    run: Option<Run>,
    warnings: Vec<String>,
}

/// How a script is found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// It is what other programs print. They are executed again when it is read again.
    pub(crate) is_of_programs: bool,
    /// A folder from which it is made.
    pub(crate) folder: Option<PathBuf>,
}

/// Prints the trees of a script, or runs them. `source` returns the script, and `read` parses it.
pub(crate) fn run(
    args: &ScriptArgs,
    language: &Language,
    place: &Source,
    source: impl Fn() -> Result<Text, Failure> + Sync,
    read: impl Fn(&Text) -> Result<Vec<Tree>, Failure> + Sync,
    format: Format,
) -> Result<Outcome, Failure> {
    let joined = args.joined()?;
    let text = source()?;
    let found = read(&text).inspect_err(|_| input::warn(&text.notes, format))?;
    if args.run.is_none() {
        check_written(&text.name, &found)?;
    }
    let named = || found.iter().map(|tree| (tree.name.as_str(), &tree.spec));
    if args.run.is_none() {
        input::warn(&warnings(&text, &found), format);
    } else {
        // `run` itself warns about the trees.
        let of_script = found.iter().flat_map(|tree| &tree.warnings);
        let run = joined.and_then(|joined| joined.run(&found).ok());
        let of_nat = of_nat(&found, run.as_ref());
        let notes: Vec<String> = text
            .notes
            .iter()
            .chain(of_script)
            .chain(of_nat)
            .cloned()
            .collect();
        input::warn(&notes, format);
    }
    match (joined, format, args.tree) {
        (Some(joined), ..) => {
            let device = joined.run(&found)?.device().to_owned();
            let read = |_: &Texts| {
                let document = document(&read(&source()?)?, joined)?;
                let plan = Plan::read(&document)?;
                Ok((document, plan))
            };
            let files: Vec<PathBuf> = args.commands.iter().map(PathBuf::from).collect();
            let scripts = files.into_iter().filter(|file| file.is_file());
            let named = found.iter().flat_map(|tree| tree.files.clone());
            let files: Vec<PathBuf> = scripts.chain(named).chain(place.folder.clone()).collect();
            let socket = default_socket(&device);
            let later = |_: &Plan| run::Later {
                read: files.clone(),
                socket: socket.clone(),
                api: None,
                written: Vec::new(),
            };
            let manner = run::Manner {
                unconfined: place
                    .is_of_programs
                    .then_some("a reload executes the programs that print the script"),
                ..run::Manner::default()
            };
            let (list, registry) = (RunningList::default(), Registry::builtin());
            run::run_document(&read, "the script", &list, &later, &manner, &registry, format)
        }
        (None, Format::Json, _) => {
            let queues = named().map(|(name, spec)| (name.to_owned(), check::tree(spec)));
            let trees = Trees {
                queues: queues.collect(),
                run: printed_run(&found),
                warnings: warnings(&text, &found),
            };
            output::json(language.name, &trees)?;
            Ok(Outcome::Yes)
        }
        (None, Format::Text, true) => {
            output::text(&check::queues_text(named()))?;
            Ok(Outcome::Yes)
        }
        (None, Format::Text, false) => {
            output::text(&toml(&found))?;
            Ok(Outcome::Yes)
        }
    }
}

/// Returns what holds of hosts behind translated addresses, if the run does not know them.
fn of_nat<'t>(trees: &'t [Tree], run: Option<&Run>) -> impl Iterator<Item = &'t String> {
    let are_known = matches!(run, Some(Run::On { .. }));
    trees
        .iter()
        .filter(move |_| !are_known)
        .flat_map(|tree| &tree.of_nat)
}

/// Returns warnings. The trees of a script are for real frames, so warnings for live use are included.
fn warnings(text: &Text, trees: &[Tree]) -> Vec<String> {
    let mut warnings = text.notes.clone();
    warnings.extend(input::warnings(
        trees.iter().map(|tree| (tree.name.as_str(), &tree.spec)),
    ));
    warnings.extend(of_nat(trees, printed_run(trees).as_ref()).cloned());
    let origin = |line| text.origin(line);
    for tree in trees {
        warnings.extend(tree.warnings.iter().cloned());
        warnings.extend(input::live_warnings(&tree.spec, origin));
        warnings.extend(input::refused_live(&tree.spec, origin));
    }
    warnings
}

/// Returns the script that the arguments give or name.
pub(crate) fn given(args: &ScriptArgs, language: &Language) -> Result<Text, Failure> {
    let arguments = &args.commands;
    let commands: Vec<&str> = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .collect();
    let single = match (&arguments[..], &commands[..]) {
        ([], _) => return Err(ScriptError::Nothing.into()),
        ([_], [single]) => *single,
        // The name of a file need not be UTF-8.
        ([file], _) => {
            return Ok(Text::written(
                file.display().to_string(),
                input::text(Path::new(file))?,
            ));
        }
        _ if commands.len() == arguments.len() => {
            return Ok(Text::written("command line", join(&commands)));
        }
        _ => return Err(ScriptError::NoText.into()),
    };
    if single == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(ScriptError::Unreadable)?;
        return Ok(Text::written("standard input", text));
    }
    let first = single.split_whitespace().next().unwrap_or_default();
    if language.starts.contains(&first) && single.contains(char::is_whitespace) {
        return Ok(Text::written("command line", single));
    }
    Ok(Text::written(single, input::text(Path::new(single))?))
}

/// Joins commands. Several commands become one line each; the words of a single command become one line.
fn join(commands: &[&str]) -> String {
    let are_lines = commands
        .iter()
        .all(|command| command.contains(char::is_whitespace));
    commands.join(if are_lines { "\n" } else { " " })
}

/// Checks the configuration that is written, as `fairgate check` does: a script may have names that a
/// configuration can't have.
fn check_written(script: &str, trees: &[Tree]) -> Result<(), Failure> {
    let document = Document::parse(&format!("configuration from {script}"), &toml(trees))?;
    if printed_run(trees).is_some() {
        Plan::read(&document)?;
    }
    Ok(())
}

fn toml(trees: &[Tree]) -> String {
    let queues = trees.iter().map(|tree| tree.spec.to_toml(&tree.name));
    let run = match printed_run(trees) {
        Some(run) => run.section(),
        None => without_run(trees, trees.iter().all(works)),
    };
    let texts: Vec<String> = queues.chain([run]).collect();
    texts.join("\n")
}

/// Returns the run to print beside the trees. A tree that can't work live has none.
fn printed_run(trees: &[Tree]) -> Option<Run> {
    Run::named_by(trees).filter(|_| trees.iter().all(works))
}

/// Returns whether a tree can work live.
fn works(tree: &Tree) -> bool {
    input::refused_live(&tree.spec, |_| None).is_empty()
}

/// Returns the document that `fairgate run` would get for these trees.
fn document(trees: &[Tree], joined: Joined<'_>) -> Result<Document, Failure> {
    let run = joined.run(trees)?;
    // The trees are added as parsed, so that an error in one of them has its location in the script.
    let queues = trees.iter().map(|tree| (tree.name.clone(), tree.spec.clone()));
    Ok(Document::parse(run.device(), &run.section())?.with_queues(queues))
}
