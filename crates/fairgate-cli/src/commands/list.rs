//! `fairgate list`: the disciplines, and the parameters of one.

use std::fmt::Write;

use fairgate_config::{Children, Entry, ParameterInfo, Unit, closest_entry, entry, registry};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::exit::{Failure, Outcome};
use crate::output::{self, Format};

/// Show the disciplines, or one of them with its parameters
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate list                                     all disciplines, with when to use each
  fairgate list fq_codel                            the parameters of one
  fairgate list --json | jq '.disciplines[].name'   the names, for a script")]
pub(crate) struct Args {
    /// The discipline to show in detail
    name: Option<String>,
}

#[derive(Debug, Error, Diagnostic)]
#[error("there is no discipline `{name}`")]
#[diagnostic(help("{help}"))]
struct UnknownDiscipline {
    name: String,
    help: String,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let chosen: Vec<&dyn Entry> = match &args.name {
        None => registry().to_vec(),
        Some(name) => vec![entry(name).ok_or_else(|| UnknownDiscipline {
            help: match closest_entry(name) {
                Some(entry) => format!("did you mean `{}`? `fairgate list` shows all", entry.about().name),
                None => "`fairgate list` shows all".to_owned(),
            },
            name: name.clone(),
        })?],
    };
    match (format, args.name) {
        (Format::Json, _) => output::json("list", &Listing::of(&chosen))?,
        (Format::Text, None) => output::text(&overview(&chosen))?,
        (Format::Text, Some(_)) => output::text(&detail(chosen[0]))?,
    }
    Ok(Outcome::Yes)
}

fn overview(entries: &[&dyn Entry]) -> String {
    let mut table = output::table(["NAME", "USE IT", "PARAMETERS AND DEFAULTS"]);
    for entry in entries {
        let about = entry.about();
        let parameters: Vec<String> = entry
            .parameters()
            .iter()
            .enumerate()
            .map(|(place, info)| match info.unit {
                Unit::Count(of) => format!("{} = {} {of}", info.name, default(*entry, place)),
                _ => format!("{} = {}", info.name, default(*entry, place)),
            })
            .collect();
        table.add_row([about.name, about.when, &parameters.join("\n")]);
    }
    let mut text = output::table_text(&table);
    text.push_str("\n`fairgate list NAME` shows what the parameters of one mean.\n");
    text
}

fn detail(entry: &dyn Entry) -> String {
    let about = entry.about();
    let mut text = format!("{}: {}\n", about.name, about.summary);
    let holds = match about.children {
        Children::None => "It queues packets itself.",
        Children::Inner => "It holds one discipline, written as `inner`.",
        Children::Classes => "It holds a discipline in each of its classes, written as [[queue.NAME.class]].",
    };
    let _ = writeln!(text, "Use it: {}\n{holds}\n", about.when);
    let mut table = output::table(["PARAMETER", "UNIT", "DEFAULT", "ALLOWED", "MEANING"]);
    for (place, info) in entry.parameters().into_iter().enumerate() {
        table.add_row([
            info.name,
            info.unit.name(),
            &default(entry, place),
            &info.allowed(),
            info.doc,
        ]);
    }
    text.push_str(&output::table_text(&table));
    text
}

/// The default as users write it.
fn default(entry: &dyn Entry, place: usize) -> String {
    let info = entry.parameters()[place];
    match info.required {
        true => "(required)".to_owned(),
        false => info.unit.show(&entry.default_of(place)),
    }
}

/// `fairgate.list/1`.
#[derive(Serialize)]
struct Listing {
    disciplines: Vec<DisciplineEntry>,
}

#[derive(Serialize)]
struct DisciplineEntry {
    name: &'static str,
    family: &'static str,
    children: &'static str,
    summary: &'static str,
    when: &'static str,
    parameters: Vec<ParameterEntry>,
}

#[derive(Serialize)]
struct ParameterEntry {
    name: &'static str,
    unit: &'static str,
    required: bool,
    /// As users write it; absent if required.
    default: Option<String>,
    /// In words.
    allowed: String,
    meaning: &'static str,
}

impl Listing {
    fn of(entries: &[&dyn Entry]) -> Listing {
        let disciplines = entries
            .iter()
            .map(|entry| {
                let about = entry.about();
                DisciplineEntry {
                    name: about.name,
                    family: about.family.name(),
                    children: about.children.name(),
                    summary: about.summary,
                    when: about.when,
                    parameters: entry
                        .parameters()
                        .into_iter()
                        .enumerate()
                        .map(|(place, info)| ParameterEntry::of(*entry, place, info))
                        .collect(),
                }
            })
            .collect();
        Listing { disciplines }
    }
}

impl ParameterEntry {
    fn of(entry: &dyn Entry, place: usize, info: &ParameterInfo) -> ParameterEntry {
        ParameterEntry {
            name: info.name,
            unit: info.unit.name(),
            required: info.required,
            default: (!info.required).then(|| default(entry, place)),
            allowed: info.allowed(),
            meaning: info.doc,
        }
    }
}
