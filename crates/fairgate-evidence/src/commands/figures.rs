//! `fairgate-lab figures`: see [`figures`].

use std::path::PathBuf;

use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::{self, Format};
use miette::miette;
use serde::Serialize;

use crate::figures;

/// Run all benchmarks of one build, and write their figures into docs/performance.md
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab figures              as root, on a machine that does nothing else
  fairgate-lab figures --quick      only try it: an unoptimised build, few samples; minutes
  fairgate-lab figures --peers dummynet
                                    only the schedulers of dummynet, from its sources, beside ours")]
pub(crate) struct Args {
    /// Try it in minutes. The document is written to the target folder, because its figures mean nothing
    #[arg(long)]
    quick: bool,

    /// Only measure the schedulers of dummynet beside ours. The folder is a checkout of its sources
    #[arg(long, value_name = "FOLDER")]
    peers: Option<PathBuf>,
}

/// `fairgate.figures/1`.
#[derive(Serialize)]
struct Written {
    document: String,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let path = figures::write(args.quick, args.peers.as_deref())
        .map_err(|error| Failure::Environment(miette!("{error}")))?;
    let document = path.display().to_string();
    match format {
        Format::Text => output::text(&format!("{document} is written\n"))?,
        Format::Json => output::json("figures", &Written { document })?,
    }
    Ok(Outcome::Yes)
}
