//! `fairgate-lab replay`: compares the decisions of our disciplines with those recorded from Linux.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::{self, Format};
use fairgate_report::command::progress;
use serde::Serialize;

use crate::replay::{Difference, Outcome as Replayed};

/// Run recorded operations of Linux's disciplines through ours and compare the results
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab replay traces/drr/mixed.jsonl.gz   one trace: equal, or the first operation that differs
  fairgate-lab replay traces                      all traces below a folder
  fairgate-lab replay --json traces | jq .summary

A trace is TRACE.jsonl.gz, one operation per line, with its setup TRACE.json beside it. A trace of a
discipline that does not exist here is unsupported and not compared. A trace that cannot be read is reported,
and the others are compared.
Exit codes: 0 no trace differs; 1 a trace differs; 2 a trace cannot be read.")]
pub(crate) struct Args {
    /// Traces, and folders of traces
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Seed for disciplines with random decisions
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// `fairgate.replay/1`.
#[derive(Serialize)]
struct Report {
    seed: u64,
    summary: Summary,
    traces: Vec<Trace>,
}

#[derive(Default, Serialize)]
struct Summary {
    equal: u64,
    different: u64,
    unsupported: u64,
    unreadable: u64,
}

/// A trace and the result of its replay.
#[derive(Serialize)]
struct Trace {
    path: String,
    #[serde(flatten)]
    result: TraceResult,
}

#[derive(Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
enum TraceResult {
    Equal {
        operations: u64,
    },
    Different {
        /// Line number in the trace, from 1.
        line: u64,
        t_ns: u64,
        operation: &'static str,
        mismatches: Vec<Mismatch>,
    },
    Unsupported {
        reason: String,
    },
    Unreadable {
        reason: String,
        help: &'static str,
    },
}

#[derive(Serialize)]
struct Mismatch {
    field: String,
    expected: String,
    got: String,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let mut report = Report {
        seed: args.seed,
        summary: Summary::default(),
        traces: Vec::new(),
    };
    let mut paths = Vec::new();
    for path in &args.paths {
        match crate::replay::find(path) {
            Ok(found) => paths.extend(found),
            Err(error) => report.add(path, Err(error)),
        }
    }
    let progress = progress::steps(paths.len() as u64, format);
    for path in &paths {
        progress.set_message(output::name(&path.display().to_string()));
        report.add(path, crate::replay::replay(path, args.seed));
        progress.inc(1);
    }
    progress.finish_and_clear();
    match format {
        Format::Json => output::json("replay", &report)?,
        Format::Text => output::text(&report.text())?,
    }
    Ok(match (report.summary.unreadable, report.summary.different) {
        (0, 0) => Outcome::Yes,
        (0, _) => Outcome::No,
        _ => Outcome::Incomplete,
    })
}

impl Report {
    fn add(&mut self, path: &Path, replayed: Result<Replayed, crate::replay::Error>) {
        let result = match replayed {
            Err(error) => {
                self.summary.unreadable += 1;
                TraceResult::unreadable(path, &error)
            }
            Ok(Replayed::Equal { operations }) => {
                self.summary.equal += 1;
                TraceResult::Equal { operations }
            }
            Ok(Replayed::Unsupported { reason }) => {
                self.summary.unsupported += 1;
                TraceResult::Unsupported { reason }
            }
            Ok(Replayed::Different(difference)) => {
                self.summary.different += 1;
                TraceResult::different(difference)
            }
        };
        self.traces.push(Trace {
            path: path.display().to_string(),
            result,
        });
    }

    fn text(&self) -> String {
        let mut table = output::table(["TRACE", "RESULT", "DETAIL"]);
        for trace in &self.traces {
            table.add_block([
                &output::name(&trace.path),
                trace.result.name(),
                &trace.result.detail(),
            ]);
        }
        let mut text = output::table_text(&table);
        let Summary {
            equal,
            different,
            unsupported,
            unreadable,
        } = self.summary;
        let _ = write!(
            text,
            "\n{equal} equal, {different} different, {unsupported} unsupported"
        );
        if unreadable > 0 {
            let _ = write!(text, ", {unreadable} unreadable");
        }
        text.push('\n');
        text
    }
}

impl TraceResult {
    fn unreadable(trace: &Path, error: &crate::replay::Error) -> TraceResult {
        // The table names the trace. The invalid file may be its setup.
        let file = match error.path == trace {
            true => String::new(),
            false => format!("{}: ", error.path.display()),
        };
        let line = error.line.map_or(String::new(), |line| format!("line {line}: "));
        TraceResult::Unreadable {
            reason: format!("{file}{line}{}", error.mistake),
            help: error.mistake.remedy(),
        }
    }

    fn different(difference: Difference) -> TraceResult {
        TraceResult::Different {
            line: difference.line,
            t_ns: difference.t,
            operation: difference.operation,
            mismatches: difference
                .mismatches
                .into_iter()
                .map(|mismatch| Mismatch {
                    field: mismatch.field,
                    expected: mismatch.expected,
                    got: mismatch.got,
                })
                .collect(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            TraceResult::Equal { .. } => "equal",
            TraceResult::Different { .. } => "different",
            TraceResult::Unsupported { .. } => "unsupported",
            TraceResult::Unreadable { .. } => "unreadable",
        }
    }

    fn detail(&self) -> String {
        match self {
            TraceResult::Equal { operations } => format!("{operations} operations"),
            TraceResult::Unsupported { reason } => reason.clone(),
            TraceResult::Unreadable { reason, help } => format!("{reason}\n{help}"),
            TraceResult::Different {
                line,
                t_ns,
                operation,
                mismatches,
            } => {
                let mut detail = format!("line {line}: {operation} at {t_ns} ns");
                for mismatch in mismatches {
                    let Mismatch { field, expected, got } = mismatch;
                    let _ = write!(detail, "\n  {field}: expected {expected}, got {got}");
                }
                detail
            }
        }
    }
}
