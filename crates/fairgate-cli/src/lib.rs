//! The program `fairgate`, as a library: [`main_with`] is the whole program with the disciplines of a
//! [`Registry`], [`answer_with`] a single command within another program.
//!
//! Each command is a file in `commands/`, with its arguments and a function `run`. To add a command, add it
//! to `Command` and to `Command::run`. Results are printed through `output`, errors are a `failure::Failure`.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
#[cfg(feature = "live")]
mod doctor;
mod document;
#[cfg(feature = "live")]
mod foreign;
#[cfg(feature = "live")]
mod last_good;
#[cfg(feature = "live")]
mod lines;
#[cfg(feature = "live")]
mod log;
#[cfg(feature = "live")]
mod remote;
#[cfg(feature = "live")]
mod service;
#[cfg(feature = "live")]
mod splice;
#[cfg(feature = "live")]
mod subscribers;
#[cfg(feature = "live")]
pub mod top;
#[cfg(feature = "live")]
mod tune;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use fairgate_config::Registry;
use fairgate_config::run::RUN;
pub use fairgate_report::command::embedded::Answer;
use fairgate_report::command::{embedded, exit, failure, input, output, progress, shell};
#[cfg(feature = "live")]
use fairgate_run::subscribers::{PLANS, SUBSCRIBERS};
use fairgate_sim::SECTIONS;

#[cfg(feature = "parquet")]
use crate::commands::sweep;
use crate::commands::{compare, completions, list, man, moved, plot, schema, simulate};
#[cfg(feature = "live")]
use crate::commands::{live, welcome};
use crate::failure::{Failure, Outcome};
use crate::output::Format;
#[cfg(feature = "live")]
#[doc(hidden)]
pub use crate::tune::any_answer;

/// Packet scheduling and queue management: the same disciplines simulated, live and compared.
#[derive(Parser)]
#[command(name = "fairgate", version, propagate_version = true, after_help = commands::EXAMPLES)]
struct Cli {
    /// Print one JSON document on standard output instead of text: the result, or the error.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compare(compare::Args),
    List(list::Args),
    Simulate(simulate::Args),
    #[cfg(feature = "parquet")]
    Sweep(sweep::Args),
    Plot(plot::Args),
    #[cfg(feature = "live")]
    #[command(flatten)]
    Live(live::Live),
    Man(man::Args),
    Completions(completions::Args),
    Schema(schema::Args),
    #[command(hide = true)]
    Bench(moved::Args),
    #[command(hide = true)]
    Bounds(moved::Args),
    #[command(hide = true)]
    Replay(moved::Args),
    #[command(hide = true)]
    Reproduce(moved::Args),
    #[command(hide = true)]
    Theory(moved::Args),
    #[command(hide = true)]
    Validate(moved::Args),
    #[cfg(not(feature = "live"))]
    #[command(external_subcommand)]
    Other(Vec<String>),
}

impl Command {
    fn run(self, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
        match self {
            Command::Compare(args) => compare::run(args, registry, format),
            Command::List(args) => list::run(args, registry, format),
            Command::Simulate(args) => simulate::run(args, registry, format),
            #[cfg(feature = "parquet")]
            Command::Sweep(args) => sweep::run(args, registry, format),
            Command::Plot(args) => plot::run(args, format),
            #[cfg(feature = "live")]
            Command::Live(command) => command.run(registry, format),
            Command::Man(args) => man::run(args, Cli::command(), format),
            Command::Schema(args) => schema::run(args, registry, format),
            Command::Completions(args) => completions::run(args, Cli::command(), registry, format),
            Command::Bench(args) => moved::run("bench", &args),
            Command::Bounds(args) => moved::run("bounds", &args),
            Command::Replay(args) => moved::run("replay", &args),
            Command::Reproduce(args) => moved::run("reproduce", &args),
            Command::Theory(args) => moved::run("theory", &args),
            Command::Validate(args) => moved::run("validate", &args),
            #[cfg(not(feature = "live"))]
            Command::Other(words) => moved::left_out(&words),
        }
    }
}

/// Runs the program with the arguments of this process, and returns its exit code. Wherever a user names a
/// discipline of their own (`list`, `check`, `compare`, `simulate`, `sweep`, `run`, `show`, `testbed`), it is
/// one of the registry's. The other commands use disciplines of the library: what papers and tc's and
/// dummynet's languages name.
///
/// ```no_run
/// use fairgate_config::Registry;
///
/// fn main() -> std::process::ExitCode {
///     let mut registry = Registry::builtin();
///     // registry.add(&my_discipline::DESCRIPTION).expect("the name is free");
///     fairgate_cli::main_with(&registry)
/// }
/// ```
pub fn main_with(registry: &Registry) -> ExitCode {
    #[cfg(feature = "live")]
    if let Some(code) = fairgate_scripts::record::stage() {
        return code;
    }
    #[cfg(feature = "live")]
    if welcome::is_wanted() {
        return exit::finish(welcome::run(), Format::Text);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let format = Format::from_json_flag(cli.json);
    exit::finish(cli.command.run(&with_sections(registry), format), format)
}

/// Returns the registry with the sections of files that this program knows.
pub fn with_sections(registry: &Registry) -> Registry {
    let registry = registry.clone().with_sections([&RUN]).with_sections(SECTIONS);
    #[cfg(feature = "live")]
    let registry = registry.with_sections([&SUBSCRIBERS, &PLANS]);
    registry
}

/// Runs a command with `--json` within another program. `arguments` are those behind the program's name.
/// Nothing is printed. The command's own files are written.
pub fn answer_with<S: AsRef<str>>(registry: &Registry, arguments: &[S]) -> Answer {
    let words = ["fairgate", "--json"].into_iter();
    let words = words.chain(arguments.iter().map(AsRef::as_ref));
    embedded::answer(|| match Cli::try_parse_from(words) {
        Ok(cli) => cli.command.run(&with_sections(registry), Format::Json),
        Err(error) => Err(exit::usage_failure(&error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(arguments: &[&str]) -> Answer {
        answer_with(&Registry::builtin(), arguments)
    }

    #[test]
    fn a_command_returns_its_document() {
        let answer = answer(&["list", "fifo"]);
        assert_eq!((answer.code, answer.message.as_str()), (0, ""));
        let document: serde_json::Value = serde_json::from_str(&answer.document).unwrap();
        assert_eq!(document["schema"], "fairgate.list/1");
        assert_eq!(document["disciplines"][0]["name"], "fifo");
        assert!(!output::printed::is_kept());
    }

    #[test]
    fn an_error_is_a_document_and_a_message() {
        for arguments in [&["list", "fifoo"][..], &["lits"], &["check", "no such file"]] {
            let answer = answer(arguments);
            assert_eq!(answer.code, 2, "{arguments:?}");
            let document: serde_json::Value = serde_json::from_str(&answer.document).unwrap();
            assert_eq!(document["schema"], "fairgate.error/1");
            let message = document["errors"][0]["message"].as_str().unwrap();
            let first = message.split([':', '\n']).next().unwrap();
            assert!(answer.message.contains(first), "{answer:?}");
        }
    }

    /// The words of an example as a shell takes them. Two blanks outside of quotes end it, for what follows
    /// explains it, and so does a pipe.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        let mut letters = example.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, quote) {
                ('\'' | '"', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                ('|' | '>', None) => return words,
                (' ', None) => {
                    words.push(std::mem::take(&mut word));
                    if letters.peek() == Some(&' ') {
                        return words;
                    }
                }
                _ => word.push(letter),
            }
        }
        words.push(word);
        words
    }

    /// The examples in the help of a command and of those below it.
    fn examples(command: &clap::Command, into: &mut Vec<String>) {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let lines = help.lines().map(str::trim);
        into.extend(
            lines
                .filter(|line| line.starts_with("fairgate "))
                .map(str::to_owned),
        );
        command.get_subcommands().for_each(|below| examples(below, into));
    }

    /// Defaults included: they are read like what is given.
    #[test]
    fn every_example_in_the_help_is_taken() {
        let mut all = Vec::new();
        examples(&Cli::command(), &mut all);
        assert!(all.len() > 40, "only {} examples were found", all.len());
        for example in all {
            if let Err(error) = Cli::try_parse_from(words(&example)) {
                assert!(!error.use_stderr(), "{example}\n{error}");
            }
        }
    }

    /// The error of the simulator's own check reaches the exit code, whichever command ran it.
    #[test]
    fn figures_that_do_not_add_up_have_an_exit_code_of_their_own() {
        let imbalance = || fairgate::balance::of("a", "packets", ("in", 2), &[("out", 1)]).unwrap_err();
        let from_simulator = fairgate_sim::Error::from(imbalance());
        let failures = [
            Failure::from(failure::Imbalanced::from(imbalance())),
            Failure::from(crate::commands::simulate::SimulateError::from(from_simulator)),
        ];
        for failure in failures {
            let code = exit::finish(Err(failure), Format::Text);
            assert_eq!(
                format!("{code:?}"),
                format!("{:?}", ExitCode::from(exit::IMBALANCE_CODE))
            );
        }
        let other = exit::finish(Err(Failure::Input(miette::miette!("no such file"))), Format::Text);
        assert_eq!(format!("{other:?}"), format!("{:?}", ExitCode::from(2)));
    }
}
