//! `fairgate list`: the disciplines with their parameters, and the sections of a file with their keys.

use std::fmt::Write;

use fairgate_config::{Children, Entry, ParameterInfo, Registry, Section, Shape, Unit, similar_name};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

/// Show the disciplines, or one of them with its parameters; or the keys of a section
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate list                                     all disciplines, and when to use each
  fairgate list fq_codel                            the parameters of one, and what they mean
  fairgate list run                                 the keys of [run], and what they mean
  fairgate list --json | jq '.disciplines[].name'   the names, for a script")]
pub(crate) struct Args {
    /// The discipline to show in detail, or a section: run, run.autorate.tuning, subscribers
    name: Option<String>,
}

#[derive(Debug, Error, Diagnostic)]
#[error("there is no discipline `{name}`")]
#[diagnostic(help("{help}"))]
struct UnknownDiscipline {
    name: String,
    help: String,
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let chosen: Vec<&dyn Entry> = match &args.name {
        None => registry.iter().collect(),
        Some(name) => registry.entries(name).collect(),
    };
    let is_chosen = |section: &Described| {
        let name = args.name.as_deref();
        name.is_none_or(|name| section.path == name || section.path.starts_with(&format!("{name}.")))
    };
    let sections: Vec<Described> = described(registry).into_iter().filter(is_chosen).collect();
    if let (Some(name), true) = (&args.name, chosen.is_empty() && sections.is_empty()) {
        return Err(unknown(name, registry).into());
    }
    match (format, args.name) {
        (Format::Json, _) => output::json("list", &Listing::of(&chosen, &sections))?,
        (Format::Text, None) => output::text(&overview(&chosen, registry))?,
        (Format::Text, Some(_)) => {
            let disciplines = chosen.iter().map(|entry| detail(*entry));
            let details: Vec<String> = disciplines.chain(details(&sections)).collect();
            output::text(&details.join("\n"))?;
        }
    }
    Ok(Outcome::Yes)
}

/// A table of a file that is not a tree.
struct Described {
    /// `plans.NAME.down_burst`
    path: String,
    section: &'static Section,
}

impl Described {
    /// Returns its head in a file: `[[simulate.link]]`.
    fn head(&self) -> String {
        match self.section.shape() {
            Shape::One | Shape::Named => format!("[{}]", self.path),
            Shape::List => format!("[[{}]]", self.path),
        }
    }
}

/// Returns the sections in detail. Many values can be random, so equal tables are printed once.
fn details(sections: &[Described]) -> Vec<String> {
    let mut shown: Vec<(String, String)> = Vec::new();
    let mut details = Vec::new();
    for section in sections {
        let (head, about) = (section.head(), section.section.about());
        let table = parameter_table(&section.section.values());
        let first = shown
            .iter()
            .find(|(known, _)| !known.is_empty() && *known == table);
        details.push(match first {
            Some((_, first)) => format!("{head}: {about}\nIts keys are those of {first}.\n"),
            None => format!("{head}: {about}\n{table}"),
        });
        if first.is_none() {
            shown.push((table, head));
        }
    }
    details
}

/// Returns the sections, each before the tables within it.
fn described(registry: &Registry) -> Vec<Described> {
    fn add(all: &mut Vec<Described>, section: &'static Section, outer: &str) {
        let path = section.path(outer);
        all.push(Described {
            path: path.clone(),
            section,
        });
        section.within().iter().for_each(|inner| add(all, inner, &path));
    }
    let mut all = Vec::new();
    registry.sections().for_each(|section| add(&mut all, section, ""));
    all
}

/// Returns the names of all sections, with those of the tables within them.
pub(super) fn section_names(registry: &Registry) -> Vec<String> {
    described(registry)
        .into_iter()
        .map(|section| section.path)
        .collect()
}

fn unknown(name: &str, registry: &Registry) -> UnknownDiscipline {
    UnknownDiscipline {
        name: name.to_owned(),
        help: match similar_name(registry, name) {
            Some(similar) => format!("did you mean `{similar}`? `fairgate list` shows all"),
            None => "`fairgate list` shows all".to_owned(),
        },
    }
}

fn overview(entries: &[&dyn Entry], registry: &Registry) -> String {
    let mut table = output::page_table(["NAME", "USE IT", "PARAMETERS AND DEFAULTS"], 1);
    for entry in entries {
        let of_classes = entry.class_parameters();
        let parameters = entry.parameters();
        let lines: Vec<String> = parameters
            .iter()
            .map(assignment)
            .chain(
                of_classes
                    .iter()
                    .map(|info| format!("{} (of a class)", assignment(info))),
            )
            .collect();
        let about = entry.about();
        let name = match about.children {
            Children::None => about.name.to_owned(),
            holds => format!("{}\n({})", about.name, holds.name()),
        };
        table.add_block([name, about.when.to_owned(), lines.join("\n")]);
    }
    let mut text = output::table_text(&table);
    let sections = registry.sections().filter(|section| !section.is_open());
    let sections: Vec<&str> = sections.map(Section::name).collect();
    let _ = writeln!(
        text,
        "\n(inner), (classes): what the discipline holds. `fairgate list NAME` explains the parameters,\n\
         and the keys of a section: {}.",
        sections.join(", ")
    );
    text
}

/// Returns a parameter with its default, such as `limit = 1000 packets`.
fn assignment(info: &ParameterInfo) -> String {
    let unit = match (info.unit, info.default.is_some()) {
        (Unit::Count(of), true) if of != info.name => format!(" {of}"),
        _ => String::new(),
    };
    format!("{} = {}{unit}", info.name, default(info))
}

fn detail(entry: &dyn Entry) -> String {
    let about = entry.about();
    let mut text = format!("{}: {}\n", about.name, about.summary);
    let _ = writeln!(text, "Use it: {}", about.when);
    text.push_str(match about.children {
        Children::None => "",
        Children::Inner => "It holds one discipline, written as `inner`.\n",
        Children::InnerOrQueue => {
            "It can hold one discipline, written as `inner`, instead of its own queue.\n"
        }
        Children::Classes => {
            "It holds a discipline in each of its classes, written as [[queue.NAME.class]].\n"
        }
        Children::Tree | Children::TreeOrNone => {
            "It holds a tree of classes, written as [[queue.NAME.class]]. A class names the one above it \
             as its `parent`. The leaf classes hold disciplines.\n"
        }
        Children::Bands => {
            "It holds a discipline in each of its classes, written as [[queue.NAME.class]] and numbered 1, \
             2, 3.\n"
        }
    });
    if about.children == Children::TreeOrNone {
        text.push_str("It may have no classes yet.\n");
    }
    if entry.takes_templates() {
        text.push_str(
            "A class with `each`, `count` and `overflow` is a template for many classes, one for each host. \
             They are numbered from the class's number on.\n",
        );
    }
    if entry.takes_filters() {
        text.push_str("`handle`, [[queue.NAME.filter]] and `default` classify packets.\n");
    }
    let width = output::page_width().into();
    let mut text: String = text
        .lines()
        .map(|line| output::wrap(line, width) + "\n")
        .collect();
    text.push_str(&parameter_table(&entry.parameters()));
    if !entry.class_parameters().is_empty() {
        text.push_str("\nParameters of each class:\n");
        text.push_str(&parameter_table(&entry.class_parameters()));
    }
    text
}

fn parameter_table(parameters: &[ParameterInfo]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let mut table = output::page_table(["PARAMETER", "UNIT", "DEFAULT", "ALLOWED", "MEANING"], 2);
    for info in parameters {
        table.add_block([
            info.name.to_owned(),
            info.unit.name().to_owned(),
            default(info),
            info.allowed(),
            info.doc.to_owned(),
        ]);
    }
    format!("\n{}", output::table_text(&table))
}

/// Returns the default as users write it.
fn default(info: &ParameterInfo) -> String {
    info.shown_default().unwrap_or_else(|| "(required)".to_owned())
}

/// `fairgate.list/1`.
#[derive(Serialize)]
struct Listing {
    disciplines: Vec<DisciplineEntry>,
    sections: Vec<SectionEntry>,
}

#[derive(Serialize)]
struct SectionEntry {
    name: String,
    about: &'static str,
    keys: Vec<ParameterEntry>,
}

#[derive(Serialize)]
struct DisciplineEntry {
    name: &'static str,
    family: &'static str,
    holds: &'static str,
    summary: &'static str,
    when: &'static str,
    parameters: Vec<ParameterEntry>,
    class_parameters: Vec<ParameterEntry>,
}

#[derive(Serialize)]
struct ParameterEntry {
    name: &'static str,
    unit: &'static str,
    default: Option<String>,
    required: bool,
    allowed: String,
    meaning: &'static str,
}

impl Listing {
    fn of(entries: &[&dyn Entry], sections: &[Described]) -> Listing {
        let parameters = |infos: &[ParameterInfo]| infos.iter().map(ParameterEntry::of).collect();
        let discipline = |entry: &&dyn Entry| DisciplineEntry {
            name: entry.about().name,
            family: entry.about().family.name(),
            holds: entry.about().children.name(),
            summary: entry.about().summary,
            when: entry.about().when,
            parameters: parameters(&entry.parameters()),
            class_parameters: parameters(&entry.class_parameters()),
        };
        Listing {
            disciplines: entries.iter().map(discipline).collect(),
            sections: sections
                .iter()
                .map(|section| SectionEntry {
                    name: section.path.clone(),
                    about: section.section.about(),
                    keys: parameters(&section.section.values()),
                })
                .collect(),
        }
    }
}

impl ParameterEntry {
    fn of(info: &ParameterInfo) -> ParameterEntry {
        ParameterEntry {
            name: info.name,
            unit: info.unit.name(),
            default: info.shown_default(),
            required: info.default.is_none(),
            allowed: info.allowed(),
            meaning: info.doc,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The pages with the tables of these sections, and of those within them.
    #[cfg(feature = "live")]
    const PAGES: [(&str, &str); 10] = [
        ("run.autorate", "autorate.md"),
        ("run", "configuration.md"),
        ("subscribers", "subscribers.md"),
        ("plans", "subscribers.md"),
        ("simulate.autorate", "autorate.md"),
        ("simulate.flow.arrivals", "simulation.md"),
        ("simulate.flow.", "sources.md"),
        ("simulate.flow", "simulation.md"),
        ("simulate", "simulation.md"),
        ("sweep", "simulation.md"),
    ];

    #[cfg(feature = "live")]
    #[test]
    fn the_documentation_has_the_keys_of_all_sections() {
        let registry = crate::with_sections(&Registry::builtin());
        for Described { path, section } in described(&registry) {
            if section.is_open() {
                continue;
            }
            let row = |info: &ParameterInfo| {
                let default = info.shown_default().unwrap_or_else(|| "required".to_owned());
                let allowed = info.allowed().replace(", or ", ", ").replace(" or ", ", ");
                format!("| `{}` | {allowed} | {default} | {} |\n", info.name, info.doc)
            };
            let rows: String = section.values().iter().map(row).collect();
            let table = format!("| key | values | default | meaning |\n|---|---|---|---|\n{rows}");
            let page = PAGES.iter().find(|(of, _)| path.starts_with(of));
            let page = match section.shorthand() {
                // Distributions, rates and losses are the same wherever they are.
                Some(_) => "simulation.md",
                None => {
                    page.unwrap_or_else(|| panic!("no page has the keys of [{path}]"))
                        .1
                }
            };
            let file = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                text.contains(&table),
                "{page} lacks the table of [{path}]:\n{table}"
            );
        }
    }
}
