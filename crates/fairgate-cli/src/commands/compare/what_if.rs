//! What other disciplines would have done with the last packets of a run: `POST /v1/what-if`.

use std::sync::Arc;
use std::time::Duration;

use fairgate_config::autorate::RootRate;
use fairgate_config::units::parse_rate;
use fairgate_config::{Registry, Spec};
use fairgate_report::page as report;
use fairgate_run::Run;
use fairgate_run_api::{self as run_api, Mistake, Refused, WhatIf, ask};
use miette::{Diagnostic, Report};
use thiserror::Error;

use super::capture::{Options, Source};
use super::direction::Direction;
use super::{CompareError, Contestant, SEED, trace};
use crate::exit;
use crate::failure::{Failure, Imbalanced};
use crate::output::Format;

/// The disciplines if none are named.
const QUEUES: [&str; 3] = ["fifo", "fq_codel", "cake"];

/// The most disciplines, besides the tree as it is.
const MOST: usize = 8;

/// The number of flows that are shown one by one.
const TOP: usize = 8;

/// The longest IP packet: the packets are those that were on the link.
const LONGEST: u32 = 65_535;

/// The name of the tree as it is.
const PRESENT: &str = "the present tree";

/// What is asked.
struct Question<'q> {
    /// The interface that the packets came from.
    from: &'q str,
    /// The tree as it is.
    tree: Spec,
    /// The packets that came to it, as a capture.
    packets: Vec<u8>,
    /// Other disciplines.
    queues: &'q [String],
    /// The rate of the link.
    rate: Option<&'q str>,
}

#[derive(Debug, Error, Diagnostic)]
enum WhatIfError {
    #[error("no direction is from `{from}`")]
    #[diagnostic(help("name {names}"))]
    NoDirection { from: String, names: String },
    #[error("it is not clear which direction is meant")]
    #[diagnostic(help("name it: `from` is {names}"))]
    WhichDirection { names: String },
    #[error("the rate of the link is not known: {why}")]
    #[diagnostic(help("name the `rate` of the link"))]
    NoRate { why: String },
    #[error("`rate`: {message}")]
    #[diagnostic(help("{remedy}"))]
    Rate { message: String, remedy: String },
    #[error("{0} disciplines are too many")]
    #[diagnostic(help("name at most {MOST}"))]
    TooMany(usize),
}

/// Answers what other disciplines would have done with the last packets of a run: returns a page.
pub(crate) fn answer(run: &Run, question: &WhatIf, registry: &Registry) -> Result<String, Refused> {
    let plan = run.plan();
    let ends = plan.ends.each_ref().map(|end| end.title());
    let tree = |from: &str| {
        let side = ends.iter().position(|end| *end == from)?;
        Some(plan.queues[side].clone())
    };
    let from = direction(question.from.as_deref(), &ends, &tree).map_err(refused)?;
    let last = question.seconds.map(Duration::from_secs_f64);
    let packets = run_api::Question::Packets {
        last,
        from: Some(from.clone()),
    };
    let asked = Question {
        from: &from,
        tree: tree(&from).expect("the direction exists"),
        packets: ask(run, "", packets)?,
        queues: &question.queues,
        rate: question.rate.as_deref(),
    };
    page(asked, registry).map_err(refused)
}

/// Says to a client of the API why a command fails.
fn refused(failure: Failure) -> Refused {
    let report = match failure {
        Failure::Input(report) | Failure::Environment(report) => report,
        // Only commands that print have this failure.
        Failure::ReaderGone => Report::msg("the reader has gone"),
    };
    let causes: Vec<String> = report.chain().map(ToString::to_string).collect();
    let help = exit::help(&report)
        .map(|help| help.to_string())
        .unwrap_or_default();
    Mistake::new(causes.join(": "), help).into()
}

/// Returns the interface that the direction is from: the one that is given, or else the only one whose tree
/// has a rate.
fn direction(
    given: Option<&str>,
    ends: &[&str],
    tree: &dyn Fn(&str) -> Option<Spec>,
) -> Result<String, Failure> {
    let names = || ends.join(" or ");
    if let Some(from) = given {
        return match ends.contains(&from) {
            true => Ok(from.to_owned()),
            false => Err(WhatIfError::NoDirection {
                from: from.to_owned(),
                names: names(),
            }
            .into()),
        };
    }
    let has_rate = |from: &&&str| tree(from).is_some_and(|tree| RootRate::of(&tree).is_ok());
    let mut with_rate = ends.iter().filter(has_rate);
    match (with_rate.next(), with_rate.next()) {
        (Some(only), None) => Ok((*only).to_owned()),
        _ => Err(WhatIfError::WhichDirection { names: names() }.into()),
    }
}

/// Returns the page of the comparison.
fn page(question: Question<'_>, registry: &Registry) -> Result<String, Failure> {
    let Question { from, tree, .. } = question;
    let rate = match question.rate {
        Some(rate) => parse_rate(rate).map_err(|error| WhatIfError::Rate {
            message: error.message,
            remedy: error.remedy,
        })?,
        None => match RootRate::of(&tree).map(|rate| rate.get(&tree)) {
            Ok(Some(rate)) => rate,
            Ok(None) => {
                let why = "the tree has none at its root".to_owned();
                return Err(WhatIfError::NoRate { why }.into());
            }
            Err([why, _]) => return Err(WhatIfError::NoRate { why }.into()),
        },
    };
    let queues = match question.queues {
        [] => QUEUES.map(str::to_owned).to_vec(),
        given if given.len() > MOST => return Err(WhatIfError::TooMany(given.len()).into()),
        given => given.to_vec(),
    };
    if let Some(name) = (1..queues.len()).find(|&at| queues[..at].contains(&queues[at])) {
        return Err(CompareError::Twice {
            name: queues[name].clone(),
        }
        .into());
    }
    let now = Contestant {
        name: PRESENT.to_owned(),
        spec: tree,
    };
    let mut contestants = vec![now];
    for name in queues {
        let spec = Spec::inline_with(&name, registry)?;
        contestants.push(Contestant { name, spec });
    }
    let options = Options {
        source: Source::Memory {
            name: format!("The last packets from {from}"),
            bytes: Arc::from(question.packets),
        },
        rate,
        direction: Direction::All,
        local: Vec::new(),
        from: Vec::new(),
        to: Vec::new(),
        duration: None,
        top: TOP,
        mtu: LONGEST,
        partial: false,
        seed: SEED,
        format: Format::Json,
    };
    let command =
        format!("fairgate packets --from {from} --out last.pcapng; fairgate compare --trace last.pcapng");
    let comparison = trace::run(&options, contestants, command)?;
    comparison.check().map_err(Imbalanced::from)?;
    Ok(report::render(&comparison))
}
