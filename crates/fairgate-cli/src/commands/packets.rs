//! `fairgate packets`: the last packets of a run as a capture.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::input::positive_duration;
use crate::output::{self, Format, Targets};
use crate::remote::{RunArgs, failed};

/// Save the last packets of a run as a capture, with what became of each
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate packets --out last.pcapng                 all that the run keeps
  fairgate packets --out last.pcapng --last 10s --from eth0
  fairgate compare --trace last.pcapng --rate 20mbit
                                     what would other disciplines have done just now?
  tshark -r last.pcapng -T fields -e frame.time_relative -e frame.comment

The run needs packet_log = \"30s\" in [run]: how long packets are kept. Each packet is in the capture as it
arrived at its queue, with its first 128 bytes, the time of its arrival, and a comment:
  sent after 12.345 ms; class 20/3; fq_codel; marked
  dropped after 48.201 ms: longest_flow; class 20/3; fq_codel")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// The file to write: pcapng
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,

    /// Only packets that were sent or dropped in this time before now [default: all that the run keeps]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    last: Option<Duration>,

    /// Only packets that this interface has received
    #[arg(long, value_name = "INTERFACE")]
    from: Option<String>,
}

/// What was written, as JSON.
#[derive(Serialize)]
struct Written {
    file: String,
    bytes: u64,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let run = args.run.find()?;
    let target = Targets::beside([]).open(&args.out)?;
    let capture = run
        .packets(args.last, args.from.as_deref())
        .map_err(failed(&run))?;
    target.write(|file| file.write_all(&capture))?;
    let written = Written {
        file: args.out.display().to_string(),
        bytes: capture.len() as u64,
    };
    match format {
        Format::Json => output::json("packets", &written)?,
        Format::Text => output::text(&format!("{}: {} bytes\n", written.file, written.bytes))?,
    }
    Ok(Outcome::Yes)
}
