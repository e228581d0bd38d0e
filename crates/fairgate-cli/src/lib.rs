//! The program `fairgate`, as a library: [`main_with`] is the whole program with the disciplines of a
//! [`Registry`], [`answer_with`] a single command within another program.
//!
//! Each command is a file in `commands/`, with its arguments and a function `run`. To add a command, add it
//! to `Command` and to `Command::run`. Results are printed through `output`, errors are a `failure::Failure`.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod embedded;
mod exit;
mod failure;
mod input;
mod last_good;
mod log;
mod output;
mod progress;
mod remote;
mod service;
mod shell;
mod subscribers;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use fairgate_config::Registry;

#[cfg(feature = "parquet")]
use crate::commands::sweep;
#[cfg(feature = "experiments")]
use crate::commands::{bench, bounds, replay, reproduce, theory, validate};
use crate::commands::{
    change, check, compare, completions, dummynet, flows, list, man, packets, plot, record, reload, reserve,
    run, show, simulate, status, tc, testbed, top,
};
pub use crate::embedded::{Answer, answer_with};
use crate::failure::{Failure, Outcome};
use crate::output::Format;

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
    Check(check::Args),
    #[cfg(feature = "experiments")]
    Replay(replay::Args),
    #[cfg(feature = "experiments")]
    Bounds(bounds::Args),
    #[cfg(feature = "experiments")]
    Reproduce(reproduce::Args),
    Simulate(simulate::Args),
    #[cfg(feature = "parquet")]
    Sweep(sweep::Args),
    Plot(plot::Args),
    Run(Box<run::Args>),
    Status(status::Args),
    Top(top::Args),
    Flows(flows::Args),
    Packets(packets::Args),
    Record(record::Args),
    Class(change::ClassArgs),
    Filter(change::FilterArgs),
    Queue(change::QueueArgs),
    Change(change::Args),
    Reload(reload::Args),
    Reserve(reserve::Args),
    Show(show::Args),
    Tc(tc::Args),
    Dummynet(dummynet::Args),
    Testbed(testbed::Args),
    #[cfg(feature = "experiments")]
    Theory(theory::Args),
    #[cfg(feature = "experiments")]
    Validate(validate::Args),
    #[cfg(feature = "experiments")]
    Bench(bench::Args),
    Man(man::Args),
    Completions(completions::Args),
}

impl Command {
    fn run(self, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
        match self {
            Command::Compare(args) => compare::run(args, registry, format),
            Command::List(args) => list::run(args, registry, format),
            Command::Check(args) => check::run(args, registry, format),
            #[cfg(feature = "experiments")]
            Command::Replay(args) => replay::run(args, format),
            #[cfg(feature = "experiments")]
            Command::Bounds(args) => bounds::run(args, format),
            #[cfg(feature = "experiments")]
            Command::Reproduce(args) => reproduce::run(args, format),
            Command::Simulate(args) => simulate::run(args, registry, format),
            #[cfg(feature = "parquet")]
            Command::Sweep(args) => sweep::run(args, registry, format),
            Command::Plot(args) => plot::run(args, format),
            Command::Run(args) => run::run(*args, registry, format),
            Command::Show(args) => show::run(args, registry, format),
            Command::Status(args) => status::run(args, format),
            Command::Top(args) => top::run(args, registry, format),
            Command::Flows(args) => flows::run(&args, format),
            Command::Packets(args) => packets::run(&args, format),
            Command::Record(args) => record::run(&args, format),
            Command::Class(args) => change::class(&args.words, format),
            Command::Filter(args) => change::filter(&args.words, format),
            Command::Queue(args) => change::queue(&args.words, format),
            Command::Change(args) => change::run(&args, format),
            Command::Reload(args) => reload::run(args, format),
            Command::Reserve(args) => reserve::run(&args, format),
            Command::Tc(args) => tc::run(args, format),
            Command::Dummynet(args) => dummynet::run(args, format),
            Command::Testbed(args) => testbed::run(args, registry, format),
            #[cfg(feature = "experiments")]
            Command::Theory(args) => theory::run(args, format),
            #[cfg(feature = "experiments")]
            Command::Validate(args) => validate::run(args, format),
            #[cfg(feature = "experiments")]
            Command::Bench(args) => bench::run(args, format),
            Command::Man(args) => man::run(args, Cli::command(), format),
            Command::Completions(args) => completions::run(args, Cli::command(), registry, format),
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
    if let Some(code) = fairgate_record::stage() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let format = Format::from_json_flag(cli.json);
    exit::finish(cli.command.run(registry, format), format)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
