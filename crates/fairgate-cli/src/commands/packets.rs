//! `fairgate packets`: the last packets of a run as a capture.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use fairgate_live::status::fetch_packets;
use fairgate_live::status::protocol::Answer;
use serde::Serialize;

use crate::commands::change::{refusal, stale};
use crate::commands::status::{StatusError, the_socket};
use crate::failure::{Failure, Outcome};
use crate::input::positive_duration;
use crate::output::{self, Format, Targets};

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
    /// The socket of the run; optional if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// The file to write: pcapng
    #[arg(long, value_name = "FILE")]
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
    let socket = the_socket(args.socket.as_deref())?;
    let target = Targets::beside([]).open(&args.out)?;
    let answer = fetch_packets(&socket, args.last, args.from.as_deref()).map_err(|source| {
        let socket = socket.display().to_string();
        Failure::environment(StatusError::NoAnswer { socket, source })
    })?;
    let capture = match answer {
        Ok(capture) => capture,
        Err(Answer::Refused { errors }) => return Err(refusal(&errors).into()),
        Err(Answer::Stale { revision } | Answer::Changed { revision, .. }) => {
            return Err(stale(revision).into());
        }
    };
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
