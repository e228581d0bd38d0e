//! The subscribers of a configuration file: their list is read, and its trees are added to those of the file.

mod draft;
mod files;
mod interrupted;
mod watch;
mod writer;

use std::path::PathBuf;

use fairgate_config::run::Keys;
use fairgate_config::{Document, Registry};
use fairgate_run::RunningList;
use fairgate_run::subscribers::{Settings, Source, Subscribers};

use crate::failure::Failure;
use crate::input::{self, Texts};
use crate::output::Format;

pub(crate) use draft::Draft;
pub(crate) use watch::Watch;
pub(crate) use writer::ListWriter;

/// Reads the subscribers of a document and adds their trees to it. Call [`RunningList::keep`] when these run.
pub(crate) fn add_to(
    list: &RunningList,
    document: Document,
    registry: &Registry,
    texts: &Texts,
) -> Result<Document, Failure> {
    let before = list.read_anew();
    if before.is_none() {
        finish_change(&document, registry)?;
    }
    let sides = sides(&document)?;
    let (document, read) = added_to(document, before.as_deref(), registry, texts)?;
    if let Some(read) = read {
        list.note(read, sides);
    }
    Ok(document)
}

/// Does what is left of a change of several files that was interrupted. The list is valid without it, too.
fn finish_change(document: &Document, registry: &Registry) -> Result<(), Failure> {
    let Some(settings) = Settings::read(document, registry)?.filter(|settings| settings.write) else {
        return Ok(());
    };
    let (Source::File(folder), texts) = (&settings.source, Texts::default()) else {
        return Ok(());
    };
    if texts.in_folder(folder).is_some() {
        let files = files::files(&settings.source, &texts)?;
        if let Err(error) = interrupted::finish(folder, &files) {
            let folder = folder.display();
            let warning = format!(
                "a change of files in {folder} was interrupted, and can't be finished: {error}. Some of \
                 them have it, and others do not: look at them, and remove {folder}/.fairgate-change"
            );
            input::warn(&[warning], Format::Text);
        }
    }
    Ok(())
}

/// Returns the files and folders that the list was read from.
pub(crate) fn paths(list: &RunningList) -> Vec<PathBuf> {
    let last = list.last();
    last.map(|last| files::paths(&last.settings().source))
        .unwrap_or_default()
}

/// Returns the files of the list of a document. None if they can't be found.
pub(crate) fn lists(document: &Document, registry: &Registry) -> Vec<PathBuf> {
    let settings = Settings::read(document, registry).ok().flatten();
    let texts = Texts::default();
    settings
        .and_then(|settings| files::lists_of(&settings.source, &texts).ok())
        .unwrap_or_default()
}

/// Returns the files and folders that are written if a client changes the list.
pub(crate) fn written(list: &RunningList) -> Vec<PathBuf> {
    let last = list.last().filter(|last| last.settings().write);
    last.map(|last| files::paths(&last.settings().source))
        .unwrap_or_default()
}

/// Returns whether the files have something else than the run. It has changed them itself if they have not.
fn are_news(list: &RunningList, source: &Source) -> bool {
    let _turn = list.turn();
    files::texts(source, &Texts::default()).map_or(true, |texts| !list.is_of(&texts))
}

/// Returns the files whose changes are taken over by themselves.
fn watched(list: &RunningList) -> Option<Source> {
    let last = list.last()?;
    last.settings().watch.then(|| last.settings().source.clone())
}

/// The names of the trees, down and up.
pub(crate) const QUEUES: [&str; 2] = ["down", "up"];

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
    let run = Keys::read(document)?;
    let to_the_left = run.map_or([None, None], |run| {
        ["right_to_left", "egress"].map(|key| run.text(key))
    });
    let is_named = |queue| to_the_left.iter().flatten().any(|name| name.get_ref() == queue);
    Ok(QUEUES.map(|queue| usize::from(is_named(queue))))
}

/// Refuses a `[run]` that leaves out a direction of the subscribers, or has it twice.
fn are_used(document: &Document) -> Result<(), Failure> {
    let Some(run) = Keys::read(document)? else {
        return Ok(());
    };
    let named = ["left_to_right", "right_to_left", "ingress", "egress"].map(|key| run.text(key));
    for queue in QUEUES {
        let count = named
            .iter()
            .flatten()
            .filter(|name| name.get_ref() == queue)
            .count();
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
