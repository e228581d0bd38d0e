//! The subscribers of a configuration file: their list is read, and its trees are added to those of the file.

mod files;
mod watch;

use std::path::PathBuf;

use fairgate_config::{Document, Registry};
use fairgate_run::RunningList;
use fairgate_run::subscribers::{Settings, Source, Subscribers};
use serde::Deserialize;

use crate::failure::Failure;
use crate::input::Texts;

pub(crate) use watch::Watch;

/// Reads the subscribers of a document and adds their trees to it. Call [`RunningList::keep`] when these run.
pub(crate) fn add_to(
    list: &RunningList,
    document: Document,
    registry: &Registry,
    texts: &Texts,
) -> Result<Document, Failure> {
    let before = list.read_anew();
    let sides = sides(&document)?;
    let (document, read) = added_to(document, before.as_deref(), registry, texts)?;
    if let Some(read) = read {
        list.note(read, sides);
    }
    Ok(document)
}

/// Returns the files and folders that the list was read from.
pub(crate) fn paths(list: &RunningList) -> Vec<PathBuf> {
    let last = list.last();
    last.map(|last| files::paths(&last.settings().source))
        .unwrap_or_default()
}

/// Returns the files whose changes are taken over by themselves.
fn watched(list: &RunningList) -> Option<Source> {
    let last = list.last()?;
    last.settings().watch.then(|| last.settings().source.clone())
}

/// The names of the trees, down and up.
pub(crate) const QUEUES: [&str; 2] = ["down", "up"];

/// The keys of `[run]` that name trees. Another crate reads the section.
#[derive(Deserialize)]
struct Run {
    left_to_right: Option<String>,
    right_to_left: Option<String>,
    ingress: Option<String>,
    egress: Option<String>,
}

/// Adds the trees of the subscribers to a document, if it has some. Who was in `before` keeps its class.
pub(crate) fn added_to(
    document: Document,
    before: Option<&Subscribers>,
    registry: &Registry,
    texts: &Texts,
) -> Result<(Document, Option<Subscribers>), Failure> {
    let Some(settings) = Settings::read(&document, registry)? else {
        return Ok((document, None));
    };
    are_used(&document)?;
    let texts = files::texts(&settings.source, texts)?;
    let subscribers = Subscribers::read(settings, &texts, before, registry)?;
    let trees = QUEUES
        .map(str::to_owned)
        .into_iter()
        .zip(subscribers.trees().clone());
    Ok((document.with_queues(trees), Some(subscribers)))
}

/// Returns the directions of a run, 0 from the left, in which the trees `down` and `up` are.
fn sides(document: &Document) -> Result<[usize; 2], Failure> {
    let run = document.section::<Run>("run")?;
    let sides = QUEUES.map(|queue| {
        let is_named = |name: &Option<String>| name.as_deref() == Some(queue);
        let run = run.as_ref();
        usize::from(run.is_some_and(|run| is_named(&run.right_to_left) || is_named(&run.egress)))
    });
    Ok(sides)
}

/// Refuses a `[run]` that leaves out a direction of the subscribers, or has it twice.
fn are_used(document: &Document) -> Result<(), Failure> {
    let Some(run) = document.section::<Run>("run")? else {
        return Ok(());
    };
    let named = [run.left_to_right, run.right_to_left, run.ingress, run.egress];
    for queue in QUEUES {
        let count = named.iter().flatten().filter(|name| *name == queue).count();
        if count != 1 {
            let error = document.error(
                0..0,
                format!("[run] has {count} directions with the tree `{queue}` of the subscribers"),
                "name `down` for the direction to the subscribers, and `up` for the other one, like \
                 left_to_right = \"down\" and right_to_left = \"up\"",
            );
            return Err(error.into());
        }
    }
    Ok(())
}
