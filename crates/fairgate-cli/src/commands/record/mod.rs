//! `fairgate record`: writes what a run does at each interval, class by class, as CSV or Parquet, and draws
//! it.
//!
//! ALTQ's cbqprobe wrote the rates of all classes every 400 ms, and cbqmonitor drew them.

mod columns;
mod sink;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairgate_run::client::Intervals;
use fairgate_run_api::Ask;
use miette::Diagnostic;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use thiserror::Error;

use crate::commands::plot;
use crate::failure::{Failure, Outcome};
use crate::input::positive_duration;
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed};
use sink::Sink;

/// Record rates, delays, backlogs and drops of a run, class by class
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate record -o evening.csv                 every 400 ms, until Ctrl-C or the end of the run
  fairgate record --interval 1s --for 10min -o evening.parquet
  fairgate record --for 1min -o a.csv --plot a.html    rates, queues, delays and drops over time
  fairgate record --for 5s                       to standard output

At each interval there is a row for each root, and for each discipline where packets came, left or waited. The
columns:
  time_s           the end of the interval, in seconds since the start of the run
  from             the interface that the direction receives from
  class            the class numbers from the root on, like 1/30; empty for the root
  discipline, host
  seconds          the length of the interval for this row
  rate_bps         what left the discipline in the interval, in bits per second with Ethernet headers
  packets, bytes   the same
  delay_ms         their mean delay from the arrival at the tree; empty if none left
  delay_p50_ms, delay_p95_ms, delay_p99_ms, delay_max_ms   percentiles of it, accurate to 7 %
  dropped, marked  packets in the interval
  backlog_packets, backlog_bytes   at the end of the interval
  dropped_aqm, dropped_queue_limit, ...   packets dropped in the interval, by reason

Each interval is written to a CSV file at once. A Parquet file can be read when the recording has ended. On a
full disk the recording ends, and its file has all intervals before.
`fairgate plot` draws both.")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// The time between two readings, at least 1 ms
    #[arg(long, value_name = "TIME", default_value = "400ms", value_parser = positive_duration)]
    interval: Duration,

    /// How long to record [default: until Ctrl-C or the end of the run]
    #[arg(long = "for", value_name = "TIME", value_parser = positive_duration)]
    length: Option<Duration>,

    /// The file to write, .parquet or CSV [default: CSV to standard output]
    #[arg(short, long = "out", alias = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Draw the recording into this page (HTML) when it has ended
    #[arg(long, value_name = "FILE", requires = "output")]
    plot: Option<PathBuf>,
}

#[derive(Debug, Error, Diagnostic)]
enum RecordError {
    #[error("can't write {path}")]
    #[diagnostic(help("make room, or name another file"))]
    Unwritten { path: String, source: io::Error },
    #[error("can't write more to {path}")]
    #[diagnostic(help("make room, or name another file; this one has the {intervals} intervals before"))]
    Ended {
        path: String,
        intervals: u64,
        source: io::Error,
    },
    #[error("can't wait for Ctrl-C")]
    #[diagnostic(help("raise the limit of open files: `ulimit -n`, `LimitNOFILE=` in a unit of systemd"))]
    Signals(#[source] io::Error),
    #[cfg(not(feature = "parquet"))]
    #[error("this program was built without Parquet")]
    #[diagnostic(help("write .csv, or build it with `--features parquet`"))]
    NoParquet,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let path = args.output.as_deref();
    #[cfg(not(feature = "parquet"))]
    if path
        .and_then(Path::extension)
        .is_some_and(|ending| ending == "parquet")
    {
        return Err(RecordError::NoParquet.into());
    }
    let run = args.run.find()?;
    let intervals = run.record(args.interval).map_err(failed(&run))?;
    let mut sink = Sink::create(path, columns::table(&[])).map_err(|error| unwritten(path, error))?;
    let is_told = format == Format::Text && path.is_some();
    if is_told {
        output::say(format_args!(
            "Recording every {:?}; Ctrl-C ends it.",
            args.interval
        ));
    }
    let stopping = Stopping::on_signal(&intervals)?;
    let (begin, mut missed) = (Instant::now(), 0);
    let mut broken = None;
    for interval in intervals {
        let interval = match interval {
            Ok(interval) => interval,
            // The file has what was told before.
            Err(error) => {
                broken = Some(error);
                break;
            }
        };
        missed += interval.missed_delays;
        let rows = columns::table(&interval.rows);
        if let Err(error) = sink.add(rows) {
            return Err(ended(path, sink, error));
        }
        if args.length.is_some_and(|length| begin.elapsed() >= length) {
            break;
        }
    }
    drop(stopping);
    let count = sink.intervals();
    sink.finish().map_err(|error| unwritten(path, error))?;
    if is_told {
        output::say(format_args!("Recorded {count} intervals."));
        if missed > 0 {
            output::say(format_args!(
                "The percentiles lack {missed} packets, because the machine was too busy to count them."
            ));
        }
    }
    if let (Some(recording), Some(page)) = (path, &args.plot) {
        plot::draw_page(recording, page)?;
    }
    match broken {
        Some(error) => Err(failed(&run)(error)),
        None => Ok(Outcome::Yes),
    }
}

fn unwritten(path: Option<&Path>, source: io::Error) -> Failure {
    match path {
        None => output::lost(source),
        Some(path) => Failure::environment(RecordError::Unwritten {
            path: path.display().to_string(),
            source,
        }),
    }
}

/// Ends the file after the last interval that it could take.
fn ended(path: Option<&Path>, sink: Sink, source: io::Error) -> Failure {
    let intervals = sink.intervals();
    match path {
        Some(path) if sink.keep_whole() => Failure::environment(RecordError::Ended {
            path: path.display().to_string(),
            intervals,
            source,
        }),
        path => unwritten(path, source),
    }
}

/// Ends a recording at the first SIGINT or SIGTERM, so that its file becomes complete. A second one ends the
/// program.
struct Stopping(Handle);

impl Stopping {
    fn on_signal(intervals: &Intervals) -> Result<Stopping, Failure> {
        let failed = |error| Failure::environment(RecordError::Signals(error));
        let stop = intervals.stopper();
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        let handle = signals.handle();
        std::thread::spawn(move || {
            for (number, signal) in signals.forever().enumerate() {
                match number {
                    0 => stop(),
                    _ => drop(emulate_default_handler(signal)),
                }
            }
        });
        Ok(Stopping(handle))
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.close();
    }
}
