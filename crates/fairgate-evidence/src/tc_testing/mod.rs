//! Runs the test cases of the kernel's tc-testing through our translation of tc's language: `make tc-testing
//! KERNEL=DIR`.
//!
//! ```text
//!   cases     the cases of a kernel source tree, from its files
//!   machine   what our program makes of a case's commands: accepted or refused, and what it shows
//!   verdict   the case's expectations beside that
//!   reasons   why a case can't be met, by hand: reasons.toml
//!   report    tables and findings
//!   pinned    our own list of commands and verdicts, a test
//! ```
//!
//! A case has commands that prepare something, one command under test with the exit code that it must have,
//! and a command whose output must have so many matches of a pattern. The commands of tc become a script. A
//! command is accepted if the script up to it can be translated. The output is that of an idle tree that is
//! built from the translation.
//!
//! Nothing of the kernel's files is kept in this repository. The tester gives the tree.

mod cases;
mod machine;
#[cfg(test)]
mod pinned;
mod reasons;
mod report;
mod verdict;

use std::path::Path;

use reasons::Reasons;
pub(crate) use report::Report;

/// Runs the cases of a kernel source tree: all, or those of these files and numbers.
pub(crate) fn run(kernel: &Path, chosen: &[String]) -> Result<Report, String> {
    let reasons = Reasons::read()?;
    let cases = cases::of(kernel)?;
    let is_chosen = |case: &&cases::Case| {
        chosen.is_empty() || chosen.iter().any(|word| *word == case.file || *word == case.id)
    };
    let mut report = Report::new(!chosen.is_empty());
    for case in cases.iter().filter(is_chosen) {
        report.add(case, verdict::of(case), &reasons);
    }
    if chosen.is_empty() {
        report.check(&reasons);
    }
    Ok(report)
}
