//! `fairgate-lab tc-testing`: see [`tc_testing`].

use std::path::PathBuf;

use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::{self, Format};
use miette::miette;
use serde::Serialize;

use crate::tc_testing;

/// Run the kernel's own test cases of tc through our reading of its language
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab tc-testing linux-6.12            all cases; Debian's package linux-source has a tree
  fairgate-lab tc-testing linux-6.12 htb 0904   those of a file and of a number, with all that is known")]
pub(crate) struct Args {
    /// A kernel source tree with tools/testing/selftests/tc-testing
    kernel: PathBuf,
    /// Files by their name, cases by their number
    chosen: Vec<String>,
}

/// `fairgate.tc-testing/1`.
#[derive(Serialize)]
struct Document {
    report: String,
    is_good: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let report =
        tc_testing::run(&args.kernel, &args.chosen).map_err(|error| Failure::Input(miette!("{error}")))?;
    let is_good = report.is_good();
    match format {
        Format::Text => output::text(&report.to_string())?,
        Format::Json => output::json(
            "tc-testing",
            &Document {
                report: report.to_string(),
                is_good,
            },
        )?,
    }
    Ok(if is_good { Outcome::Yes } else { Outcome::No })
}
