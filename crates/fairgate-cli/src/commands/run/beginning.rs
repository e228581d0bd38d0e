//! How a run begins: with its file, or else with the copy of what has forwarded last; at once, or when its
//! interfaces can be used.

use std::path::Path;
use std::time::Duration;

use fairgate_config::Document;
use fairgate_live::{LiveError, Opened, Plan};
use miette::Report;

use super::{Manner, Reading, failure};
use crate::exit;
use crate::failure::Failure;
use crate::input::{self, Texts};
use crate::last_good::LastGood;
use crate::log::{Destination, Entry, Level};
use crate::output;
use crate::service::{Manager, Patience, Waited};

/// How long a run waits for an interface of its file before it begins with a copy that has other ones. A boot
/// takes less, and a name in a file that was mistyped never comes.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A run whose ends are open.
pub(super) struct Begun {
    pub(super) document: Document,
    pub(super) plan: Plan,
    pub(super) bridge: Opened,
    /// What was read, if it is to be kept.
    pub(super) texts: Option<Texts>,
    pub(super) destination: Destination,
    /// For the log, when there is one.
    pub(super) entries: Vec<Entry>,
}

/// A configuration that was read and whose ends are open.
type Read = (Document, Plan, Opened);

fn open(
    read: &Reading<'_>,
    texts: &Texts,
    seed: Option<u64>,
    fallback: Option<&str>,
) -> Result<Read, Failure> {
    let (document, mut plan) = read(texts)?;
    plan.fallback = fallback.map(str::to_owned);
    plan.fits(None, input::available_memory())?;
    let bridge = Opened::open(&plan, seed).map_err(failure)?;
    Ok((document, plan, bridge))
}

/// Begins the run. Returns nothing if a signal has ended the wait for its interfaces.
pub(super) fn begin(
    read: &Reading<'_>,
    name: &str,
    manner: &Manner,
    manager: Option<&Manager>,
) -> Result<Option<Begun>, Failure> {
    let mut patience = manner.wait.then(Patience::new).transpose().map_err(failure)?;
    let last_good = manner.last_good.as_ref();
    let destination = |run: &str| Destination::open(manner.log_format, run).map_err(Failure::environment);
    // The name of the run, as long as its file can't be read.
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let mut log: Option<Destination> = None;
    loop {
        let texts = match last_good {
            Some(_) => Texts::noted(),
            None => Texts::default(),
        };
        let (failed, mut entries) = match open(read, &texts, manner.seed, None) {
            Ok((document, plan, bridge)) => {
                return Ok(Some(Begun {
                    destination: destination(&plan.name)?,
                    document,
                    plan,
                    bridge,
                    texts: last_good.map(|_| texts),
                    entries: Vec::new(),
                }));
            }
            Err(failed) => (failed, Vec::new()),
        };
        let is_overdue = patience
            .as_ref()
            .is_some_and(|patience| patience.spent() >= LONGEST_WAIT);
        let mut reason = passing(&failed);
        let copy = last_good.filter(|last_good| {
            is_refused(&failed) || reason.is_some() && is_overdue && has_other_ends(read, last_good)
        });
        if let Some(last_good) = copy {
            match fall_back(read, name, manner, last_good, &failed, &mut entries) {
                Ok(Some((document, plan, bridge))) => {
                    return Ok(Some(Begun {
                        destination: destination(&plan.name)?,
                        document,
                        plan,
                        bridge,
                        texts: None,
                        entries,
                    }));
                }
                Ok(None) => {}
                Err(waits) if reason.is_none() => reason = Some(waits),
                // The copy waits for interfaces, too.
                Err(_) => {}
            }
        }
        let (Some(patience), Some(reason)) = (&mut patience, reason) else {
            if !entries.is_empty() {
                let mut log = destination(&stem)?;
                entries.iter().for_each(|entry| log.write(entry));
            }
            return Err(failed);
        };
        if let Some(entry) = patience.entry(&reason) {
            if log.is_none() {
                log = Some(destination(&stem)?);
            }
            let log = log.as_mut().expect("it was opened");
            entries.push(entry);
            entries.iter().for_each(|entry| log.write(entry));
        }
        if patience.wait(manager, &reason) == Waited::Stopped {
            return Ok(None);
        }
    }
}

/// Returns whether the copy is for other interfaces than the file. With the same ones, it waits as the file
/// does.
fn has_other_ends(read: &Reading<'_>, last_good: &LastGood) -> bool {
    let ends = |texts: &Texts| read(texts).ok().map(|(_, plan)| plan.ends);
    let copy = last_good.load().ok().and_then(|(_, copy)| ends(&copy));
    copy.is_some() && copy != ends(&Texts::default())
}

/// Begins with the copy of what has forwarded last, because the file has `failed`. Returns nothing if that
/// can't be run either, and an error that may pass as a sentence.
fn fall_back(
    read: &Reading<'_>,
    name: &str,
    manner: &Manner,
    last_good: &LastGood,
    failed: &Failure,
    entries: &mut Vec<Entry>,
) -> Result<Option<Read>, String> {
    let (Failure::Input(why) | Failure::Environment(why)) = failed else {
        return Ok(None);
    };
    let error = |message: String| Entry::new(Level::Error, "fallback", message).with("outcome", "refused");
    let (since, texts) = match last_good.load() {
        Ok(copy) => copy,
        Err(none) => {
            let none = Report::new(none);
            let causes: Vec<String> = none.chain().map(ToString::to_string).collect();
            entries.push(error(output::harmless(&causes.join(": "))));
            return Ok(None);
        }
    };
    let name = output::name(name);
    let fallback = format!(
        "{name} was refused ({}); the configuration that has forwarded since {since} is used instead",
        first_line(why)
    );
    match open(read, &texts, manner.seed, Some(&fallback)) {
        Ok(opened) => {
            let path = last_good.path().display().to_string();
            let message = format!(
                "{}\n{name} WAS REFUSED. This run has the configuration that has forwarded since {since}, \
                 from the copy {}. Correct the file, and have it read: fairgate reload, or systemctl reload.",
                exit::shown(why, false),
                output::name(&path)
            );
            entries.push(Entry::new(Level::Error, "fallback", message).with("outcome", "used"));
            Ok(Some(opened))
        }
        Err(failed) => {
            if let Some(reason) = passing(&failed) {
                entries.push(error(exit::shown(why, false)));
                return Err(reason);
            }
            if let Failure::Input(report) | Failure::Environment(report) = failed {
                let what = format!("the copy of the last good configuration can't be run: {report}");
                entries.push(error(what));
            }
            Ok(None)
        }
    }
}

/// Returns whether a file was refused, and would be the next time.
fn is_refused(failed: &Failure) -> bool {
    matches!(failed, Failure::Input(_))
}

/// Returns why the run can't begin now, if that may pass.
fn passing(failed: &Failure) -> Option<String> {
    let Failure::Environment(report) = failed else {
        return None;
    };
    let error = report.downcast_ref::<LiveError>()?;
    error.may_pass().then(|| error.to_string())
}

/// Returns the first line of a report, with its place.
fn first_line(report: &Report) -> String {
    let text = match super::mistakes(report).into_iter().next() {
        Some(mistake) => match mistake.place {
            Some(place) => format!("{place}: {}", mistake.message),
            None => mistake.message,
        },
        None => report.to_string(),
    };
    let line = text.lines().next().unwrap_or_default();
    output::harmless(line)
}
