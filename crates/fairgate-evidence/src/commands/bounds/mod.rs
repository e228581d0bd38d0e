//! `fairgate-lab bounds`: compares the measured fairness of schedulers with their bounds.

mod document;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::{self, Format, Target, Targets};
use fairgate_report::command::progress;
use fairgate_theory::guarantees::adversary::Effort;
use fairgate_theory::guarantees::candidates::{CANDIDATES, Candidate, NOT_MEASURED};
use fairgate_theory::guarantees::survey::{Row, Survey};
use fairgate_theory::guarantees::trial::Finding;
use miette::{Diagnostic, miette};
use thiserror::Error;

/// Measure worst-case fairness of every scheduler against its bounds
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab bounds                           every scheduler, with the usual effort
  fairgate-lab bounds qfq wf2q_plus             two schedulers
  fairgate-lab bounds --effort thorough --seed 7 --out bounds.csv --out bounds.html
  fairgate-lab bounds --out growth.svg          how the index grows with the number of flows
  fairgate-lab bounds --json | jq '.schedulers[] | select(.measures[].within == false).scheduler'

Each scheduler runs on a link of 1 Gbit/s, with random traffic and with traffic that an adversary makes worse
step by step: few heavy and many light flows, lengths just above powers of two, flows that become active
together. Each row shows the worst flow, which can be a different one in each row. A bound is published, or
a corollary, or derived in the source code where the published one is exceeded (qfq); `--out FILE.html` names
its source. `fairgate-lab reproduce qfq-bounds` judges the printed bounds. Where there is no bound, the worst
value is in packets.

  b_wfi               bytes by which a backlogged flow is behind its share when one of its packets is finished
  b_wfi_anywhere      the same at any moment
  t_wfi               time by which a packet is finished later than its flow's backlog at the flow's share
  relative_fairness   difference between the services of two backlogged flows, each divided by its share
  delay_behind_gps    time by which a packet is finished later than under perfect sharing (GPS)
  lead_over_gps       bytes by which a flow's service is ahead of its service under GPS

Exit codes: 0 all values are within bounds; 1 a value is above its bound; 2 invalid usage; 3 a file cannot be
written.")]
pub(crate) struct Args {
    /// The schedulers to measure [default: all]
    #[arg(value_name = "SCHEDULER")]
    schedulers: Vec<String>,

    /// Seed of all traffic
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The effort of the search for bad traffic
    #[arg(long, value_enum, default_value_t = EffortArg::Usual)]
    effort: EffortArg,

    /// Also write the results to a file (.csv, .html, .json), or the figure (.svg); can be given several
    /// times
    #[arg(short, long, value_name = "FILE")]
    out: Vec<PathBuf>,
}

#[derive(Debug, Error, Diagnostic)]
#[error("the format of {path} is unknown")]
#[diagnostic(help("use a name that ends in .csv, .html, .svg or .json"))]
struct FormatError {
    path: String,
}

type Write = fn(&Survey, &mut std::fs::File) -> std::io::Result<()>;

/// Returns the function that writes the format of a file name's extension.
fn writer(path: &Path) -> Result<Write, FormatError> {
    use std::io::Write as _;
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => Ok(write_csv),
        Some("html") => Ok(|survey, file| file.write_all(document::page(survey).as_bytes())),
        Some("svg") => Ok(|survey, file| file.write_all(document::figure(survey).svg().as_bytes())),
        Some("json") => Ok(|survey, file| file.write_all(output::json_text("bounds", survey).as_bytes())),
        _ => Err(FormatError {
            path: path.display().to_string(),
        }),
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum EffortArg {
    /// Takes seconds
    Quick,
    /// Takes one or two minutes
    Usual,
    /// Takes ten times as long as usual
    Thorough,
}

impl EffortArg {
    fn effort(self) -> Effort {
        match self {
            EffortArg::Quick => Effort::QUICK,
            EffortArg::Usual => Effort::USUAL,
            EffortArg::Thorough => Effort::USUAL.times(10),
        }
    }
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let candidates = chosen(&args.schedulers)?;
    let mut targets = Targets::beside([]);
    let outputs = args
        .out
        .iter()
        .map(|path| Ok((writer(path)?, targets.open(path)?)))
        .collect::<Result<Vec<(Write, Target)>, Failure>>()?;
    let effort = args.effort.effort();
    let trials = candidates.iter().map(|candidate| effort.trials(candidate)).sum();
    let progress = progress::trials(trials, format);
    let survey = Survey::of(&candidates, effort, args.seed, &mut |scheduler| {
        if progress.message() != scheduler {
            progress.set_message(scheduler);
        }
        progress.inc(1);
    })
    .map_err(|error| Failure::Input(miette!("{error}")))?;
    progress.finish_and_clear();

    let write = |(write, target): (Write, Target)| target.write(|file| write(&survey, file));
    output::deliver(
        || output::each(outputs, write),
        |_| match format {
            Format::Json => output::json("bounds", &survey),
            Format::Text => output::text(&text(&survey)),
        },
    )?;
    Ok(if survey.all_within() {
        Outcome::Yes
    } else {
        Outcome::No
    })
}

fn chosen(names: &[String]) -> Result<Vec<Candidate>, Failure> {
    if names.is_empty() {
        return Ok(CANDIDATES.to_vec());
    }
    let known = || {
        CANDIDATES
            .iter()
            .map(|candidate| candidate.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    names
        .iter()
        .map(|name| {
            let found = CANDIDATES
                .iter()
                .find(|candidate| candidate.name == name)
                .copied();
            let reason = NOT_MEASURED.iter().find(|(other, _)| other == name);
            found.ok_or_else(|| {
                let help = format!("choose from: {}", known());
                Failure::Input(match reason {
                    Some((_, reason)) => miette!(help = help, "`{name}` is not measured: {reason}"),
                    None => miette!(help = help, "no scheduler `{name}` is measured"),
                })
            })
        })
        .collect()
}

fn text(survey: &Survey) -> String {
    let mut table = output::table([
        "SCHEDULER",
        "MEASURE",
        "RANDOM",
        "BOUND",
        "OF IT",
        "ADVERSARIAL",
        "BOUND",
        "OF IT",
        "",
    ]);
    for surveyed in &survey.schedulers {
        for (index, row) in surveyed.measures.iter().enumerate() {
            let name = if index == 0 { surveyed.scheduler } else { "" };
            let [random, random_bound, random_part] = cells(row, row.random.as_ref());
            let [hard, hard_bound, hard_part] = cells(row, row.adversarial.as_ref());
            let verdict = match row.within {
                None => "",
                Some(true) => "within",
                Some(false) => "ABOVE",
            };
            table.add_row([
                name,
                row.measure,
                &random,
                &random_bound,
                &random_part,
                &hard,
                &hard_bound,
                &hard_part,
                verdict,
            ]);
        }
    }
    let mut text = output::table_text(&table);
    text.push_str(&growth(survey));
    let remarks = survey
        .schedulers
        .iter()
        .filter(|surveyed| !surveyed.remark.is_empty());
    text.push('\n');
    for surveyed in remarks {
        let _ = writeln!(text, "{}: {}", surveyed.scheduler, surveyed.remark);
    }
    let above = survey.schedulers.iter().flat_map(|surveyed| {
        let above = surveyed.measures.iter().filter(|row| row.within == Some(false));
        above.map(|row| (surveyed.scheduler, row))
    });
    for (scheduler, row) in above {
        let _ = writeln!(
            text,
            "\n{scheduler}: {} is above {} ({})",
            row.measure,
            row.formula.unwrap_or_default(),
            row.source.unwrap_or_default()
        );
    }
    text
}

/// Returns the measured value, the bound, and the measured value as a share of the bound.
fn cells(row: &Row, finding: Option<&Finding>) -> [String; 3] {
    let Some(finding) = finding else {
        return ["–".into(), "–".into(), "–".into()];
    };
    let quantity = |value: f64| match row.unit {
        "ns" if value.abs() >= 1e6 => format!("{:.3} ms", value / 1e6),
        "ns" => format!("{:.3} us", value / 1e3),
        _ => format!("{value:.0} B"),
    };
    [
        quantity(finding.measured),
        finding.bound.map_or("none".into(), quantity),
        match finding.bound {
            Some(_) => format!("{:.1} %", finding.severity * 100.0),
            None => format!("{:.1} packets", finding.severity),
        },
    ]
}

/// Returns how the B-WFI of a flow with half of the link grows with the number of other flows.
fn growth(survey: &Survey) -> String {
    let mut header = vec!["SCHEDULER".to_owned()];
    header.extend(survey.light_flows.iter().map(|light| format!("N = {light}")));
    let mut table = output::table(header.iter().map(String::as_str));
    for surveyed in &survey.schedulers {
        if surveyed.heavy_b_wfi.iter().all(Option::is_none) {
            continue;
        }
        let figures = surveyed
            .heavy_b_wfi
            .iter()
            .map(|packets| packets.map_or("–".to_owned(), |packets| format!("{packets:.2}")));
        table.add_row(std::iter::once(surveyed.scheduler.to_owned()).chain(figures));
    }
    if table.is_empty() {
        return String::new();
    }
    format!(
        "\nB-WFI (anywhere) of a flow with half of the link beside N light flows, in packets:\n{}",
        output::table_text(&table)
    )
}

/// Writes a row for each measure and kind of traffic.
fn write_csv(survey: &Survey, file: &mut std::fs::File) -> std::io::Result<()> {
    let mut csv = csv::Writer::from_writer(file);
    csv.write_record([
        "scheduler",
        "measure",
        "unit",
        "traffic",
        "measured",
        "bound",
        "severity",
        "flow",
        "flows",
        "packets",
        "within",
        "formula",
        "source",
    ])?;
    for surveyed in &survey.schedulers {
        for row in &surveyed.measures {
            for (traffic, finding) in [("random", &row.random), ("adversarial", &row.adversarial)] {
                let Some(finding) = finding else { continue };
                csv.write_record([
                    surveyed.scheduler,
                    row.measure,
                    row.unit,
                    traffic,
                    &finding.measured.to_string(),
                    &finding.bound.map_or(String::new(), |bound| bound.to_string()),
                    &finding.severity.to_string(),
                    &finding.flow.to_string(),
                    &finding.flows.to_string(),
                    &finding.packets.to_string(),
                    &row.within.map_or(String::new(), |within| within.to_string()),
                    row.formula.unwrap_or_default(),
                    row.source.unwrap_or_default(),
                ])?;
            }
        }
    }
    csv.flush()
}
