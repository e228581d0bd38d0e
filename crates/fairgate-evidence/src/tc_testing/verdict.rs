//! A case's expectations beside what our program does.

use regex::RegexBuilder;

use crate::tc_testing::cases::{Case, Expected};
use crate::tc_testing::machine::{Machine, Outcome, Output};

/// How a case ended.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Whether the command under test must be accepted.
    pub(crate) must_be_accepted: bool,
    /// What became of the command, or what went wrong before it.
    pub(crate) command: Command,
    pub(crate) shown: Shown,
}

/// What became of the command under test.
#[derive(Debug)]
pub(crate) enum Command {
    /// It was accepted or refused as it must be.
    AsExpected,
    /// It was accepted, but the kernel refuses it.
    WronglyAccepted,
    /// It was refused, but the kernel accepts it.
    WronglyRefused(String),
    /// A command before it was refused, which the kernel accepts.
    NotPrepared(String, String),
    /// It is not a command of tc.
    Foreign,
}

/// What became of the pattern.
#[derive(Debug)]
pub(crate) enum Shown {
    Matches,
    /// The output, and what is wrong with it.
    Differs(String, String),
    /// Our program does not show this object.
    Hidden(String),
    /// The command did not do what it must do, so there is nothing to compare.
    NotReached,
}

impl Verdict {
    /// Whether all expectations are met.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.command, Command::AsExpected) && matches!(self.shown, Shown::Matches)
    }
}

/// Runs a case.
pub(crate) fn of(case: &Case) -> Verdict {
    let must_be_accepted = case.exit_code == 0;
    let verdict = |command, shown| Verdict {
        must_be_accepted,
        command,
        shown,
    };
    let mut machine = Machine::default();
    for (command, codes) in &case.setup {
        if let Outcome::Refused(why) = machine.run(command)
            && codes.iter().all(|code| *code == 0)
        {
            return verdict(Command::NotPrepared(command.clone(), why), Shown::NotReached);
        }
    }
    match (machine.run(&case.command), must_be_accepted) {
        (Outcome::Accepted, true) | (Outcome::Refused(_), false) => {
            verdict(Command::AsExpected, shown(case, &machine))
        }
        (Outcome::Accepted, false) => verdict(Command::WronglyAccepted, Shown::NotReached),
        (Outcome::Refused(why), true) => verdict(Command::WronglyRefused(why), Shown::NotReached),
        (Outcome::Foreign, _) => verdict(Command::Foreign, Shown::NotReached),
    }
}

/// Compares the output as tdc.py does.
fn shown(case: &Case, machine: &Machine) -> Shown {
    let output = match machine.show(&case.verify) {
        Output::Text(text) => text,
        Output::NotShown(object) => return Shown::Hidden(object),
    };
    match &case.expected {
        Expected::Nothing => Shown::Matches,
        Expected::Json => Shown::Hidden("JSON".to_owned()),
        Expected::Pattern(pattern, count) => match matches(pattern, &output) {
            Ok(found) if found == *count => Shown::Matches,
            Ok(found) => {
                let wrong = format!("{found} matches instead of {count} of\n{pattern}");
                Shown::Differs(output, wrong)
            }
            Err(error) => Shown::Differs(output, error),
        },
    }
}

/// Counts the matches of a pattern in Python's notation, with DOTALL and MULTILINE as tdc.py has them.
fn matches(pattern: &str, text: &str) -> Result<usize, String> {
    let regex = RegexBuilder::new(pattern)
        .dot_matches_new_line(true)
        .multi_line(true)
        .build()
        .map_err(|error| format!("the pattern can't be read: {error}"))?;
    Ok(regex.find_iter(text).count())
}
