//! `fairgate check`: checks a configuration file.

use std::path::PathBuf;

use fairgate_config::run::Keys;
use fairgate_config::units::format_memory;
use fairgate_config::{ClassSpec, Document, FileError, ParameterInfo, Registry, Spec, Value};
use fairgate_live::Plan;
use fairgate_run::subscribers::Subscribers;
use fairgate_sim::Scenario;
use fairgate_sim::sweep::Sweep;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};
use crate::subscribers;

/// Check a configuration file and show the trees in it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate check home.toml          the errors, or the trees that the file describes
  fairgate check --json home.toml   the same for a script; exit code 2 if there is an error

Settings that are valid but probably not intended give a warning: a bucket below a full-sized frame, an empty
list of subscribers, or a filter on a mark in a tree that is to be run. A full-sized frame has 1514 bytes at
an MTU of 1500, or 1518 with a VLAN tag.
`fairgate run` knows the MTU of the interfaces, and rejects a bucket that is too small.")]
pub(crate) struct Args {
    /// The file to check
    file: PathBuf,
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let document = document::read(&args.file, registry)?;
    let (document, list) = subscribers::added_to(document, None, registry, &input::Texts::default())?;
    let plan = check_sections(&document, registry)?;
    let mut warnings = warnings(&document, plan.as_ref());
    warnings.extend(list.as_ref().map(Subscribers::warnings).unwrap_or_default());
    input::warn(&warnings, format);
    match format {
        Format::Json => output::json("check", &Checked::of(&document, list.as_ref(), warnings))?,
        Format::Text => output::text(&tree_text(&document, list.as_ref()))?,
    }
    Ok(Outcome::Yes)
}

/// Checks the other sections, and reports the mistakes of all of them. The crates that simulate and run check
/// their own. Returns what is to be run, if anything.
fn check_sections(document: &Document, registry: &Registry) -> Result<Option<Plan>, FileError> {
    let available = input::available_memory();
    let too_large = document
        .queues()
        .filter_map(|(_, spec)| spec.too_large_for(available));
    FileError::unless_empty(too_large.collect())?;
    let mut problems = document.problems();
    let has = |section| document.sections().any(|other| other == section);
    if has("simulate") {
        problems.of(Scenario::read_for(document, available));
    }
    if has("sweep") {
        problems.of(Sweep::read(document, registry, available));
    }
    if !has("run") {
        return problems.unless_any(None);
    }
    let plan = problems.of(Plan::read(document));
    if let Some(plan) = &plan {
        problems.of(check_frames(document, plan.frames, available));
    }
    problems.unless_any(plan)
}

/// Checks the memory of two directions that hold this many frames, for an MTU of 1500.
fn check_frames(document: &Document, frames: u32, available: u64) -> Result<(), FileError> {
    // Bytes of a frame, its descriptor and its headers.
    const A_FRAME: u64 = 1536 + 64 + 64;
    let needed = 2 * u64::from(frames) * A_FRAME;
    let place = Keys::read(document)?.and_then(|run| run.span_of("frames"));
    match place {
        Some(place) if needed > available => Err(document.error(
            place,
            format!(
                "two directions of {frames} frames take {} of memory, but only {} is available",
                format_memory(needed),
                format_memory(available)
            ),
            "lower `frames`, the number of frames in all queues of a direction",
        )),
        _ => Ok(()),
    }
}

/// Returns warnings for settings that are valid but probably not intended.
fn warnings(document: &Document, plan: Option<&Plan>) -> Vec<String> {
    let mut warnings = input::warnings(document.queues());
    warnings.extend(
        document
            .queues()
            .flat_map(|(_, spec)| input::live_warnings(spec, |_| None)),
    );
    // Filters on marks are not an error, because a simulated packet can have a mark.
    let run = document
        .queues()
        .filter(|(_, spec)| plan.is_some_and(|plan| plan.queues.contains(spec)));
    warnings.extend(run.flat_map(|(_, spec)| input::refused_live(spec, |_| None)));
    warnings
}

/// Returns the trees that the file itself has. Those of thousands of subscribers are nothing to read.
fn own_queues<'d>(
    document: &'d Document,
    list: Option<&Subscribers>,
) -> impl Iterator<Item = (&'d str, &'d Spec)> {
    let has_list = list.is_some();
    let is_own = move |name: &str| !(has_list && subscribers::QUEUES.contains(&name));
    document.queues().filter(move |(name, _)| is_own(name))
}

fn tree_text(document: &Document, subscribers: Option<&Subscribers>) -> String {
    let mut text = queues_text(own_queues(document, subscribers));
    if let Some(list) = subscribers.map(Subscribers::list) {
        let (count, nodes) = (list.subscribers.len(), list.nodes.len());
        text.push_str(&format!("subscribers {count}, nodes {nodes}\n"));
    }
    for section in document.sections() {
        text.push_str(&format!("section {}\n", output::name(section)));
    }
    text.push_str(&format!("{} is valid\n", output::name(document.name())));
    text
}

/// Returns trees as text.
pub(crate) fn queues_text<'s>(queues: impl Iterator<Item = (&'s str, &'s Spec)>) -> String {
    let mut text = String::new();
    for (name, spec) in queues {
        text.push_str(&format!("queue {}\n", output::name(name)));
        text.extend(spec.to_string().lines().map(|line| format!("  {line}\n")));
    }
    text
}

/// `fairgate.check/1`.
#[derive(Serialize)]
struct Checked<'a> {
    file: &'a str,
    queues: Map<String, Json>,
    sections: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subscribers: Option<Listed>,
    warnings: Vec<String>,
}

/// What a list has.
#[derive(Serialize)]
struct Listed {
    subscribers: usize,
    nodes: usize,
}

impl Checked<'_> {
    fn of<'d>(
        document: &'d Document,
        subscribers: Option<&Subscribers>,
        warnings: Vec<String>,
    ) -> Checked<'d> {
        Checked {
            file: document.name(),
            subscribers: subscribers.map(Subscribers::list).map(|list| Listed {
                subscribers: list.subscribers.len(),
                nodes: list.nodes.len(),
            }),
            queues: own_queues(document, subscribers)
                .map(|(name, spec)| (name.to_owned(), tree(spec)))
                .collect(),
            sections: document.sections().collect(),
            warnings,
        }
    }
}

/// Returns a tree with all its parameters.
pub(crate) fn tree(spec: &Spec) -> Json {
    let class = |class: &ClassSpec<'_>| {
        json!({
            "id": class.minor,
            "count": class.count(),
            "parameters": values(&class.parameters),
            "tree": class.tree.map(tree),
        })
    };
    json!({
        "discipline": spec.discipline(),
        "parameters": values(&spec.parameters()),
        "handle": spec.classifier().handle,
        "default": spec.classifier().default,
        "filters": spec.classifier().filters.len(),
        "classes": spec.classes().iter().map(class).collect::<Vec<_>>(),
    })
}

/// Returns all parameters as users write them.
fn values(parameters: &[(ParameterInfo, Value)]) -> Map<String, Json> {
    let value = |(info, value): &(ParameterInfo, Value)| (info.name.to_owned(), json!(info.unit.show(value)));
    parameters.iter().map(value).collect()
}
