//! Messages of a run while it forwards: on standard error, or in the system's journal.
//!
//! Forwarding never waits for them: a separate thread writes the entries. If it has to wait, because nobody
//! reads the pipe or the journal is busy, all outcomes are kept: what was begun, changed or refused, and by
//! whom. Of warnings, of which a large tree can have thousands, a few are kept and the others are counted. If
//! standard error is closed, the entries are lost.

mod entry;
mod journal;
mod time;

use std::env;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime};

use miette::Diagnostic;
use nix::sys::stat::fstat;
use thiserror::Error;

use crate::output;

pub(crate) use entry::{Entry, Level};
use journal::Journal;
pub(crate) use time::{until, utc};

/// The maximum number of warnings that wait to be written.
const WAITING: usize = 64;

/// How long the end of the program waits for the last entries to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// How the messages of a run are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines on standard error.
    Text,
    /// Entries with fields in the journal of systemd.
    Journald,
}

/// The journal was asked for and can't be reached.
#[derive(Debug, Error, Diagnostic)]
#[error("the journal can't be reached at {path}", path = journal::SOCKET)]
#[diagnostic(help("start systemd-journald, or leave out --log-format"))]
pub(crate) struct NoJournal(#[source] io::Error);

/// Where entries go.
pub(crate) enum Destination {
    /// Lines on standard error. With the time, unless it leads to the journal, which adds its own.
    Text {
        is_timed: bool,
    },
    Journal(Box<Journal>),
}

/// Writes entries without waiting.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    entries: Sender<Entry>,
    counts: Arc<Counts>,
}

/// The warnings that were passed to the writer thread.
#[derive(Debug, Default)]
struct Counts {
    /// Those that wait to be written.
    waiting: AtomicUsize,
    /// Those for which there was no room.
    lost: AtomicU64,
}

/// Ends when all copies of its [`Log`] are gone and their entries are written.
#[derive(Debug)]
pub(crate) struct Writer {
    written: Receiver<()>,
}

impl Destination {
    /// Opens the destination. Without a `format`, the journal is it if standard error leads there anyway: its
    /// entries have fields then. `run` is the name of the run, for each entry of the journal.
    ///
    /// # Errors
    /// Fails if the journal was asked for and can't be reached.
    pub(crate) fn open(format: Option<LogFormat>, run: &str) -> Result<Destination, NoJournal> {
        match format {
            Some(LogFormat::Journald) => Journal::open(run).map(Destination::of).map_err(NoJournal),
            None if leads_to_journal(io::stderr()) => {
                Ok(Journal::open(run).map_or_else(|_| Destination::text(), Destination::of))
            }
            Some(LogFormat::Text) | None => Ok(Destination::text()),
        }
    }

    fn text() -> Destination {
        Destination::Text {
            is_timed: !leads_to_journal(io::stderr()),
        }
    }

    fn of(journal: Journal) -> Destination {
        Destination::Journal(Box::new(journal))
    }

    /// Writes an entry. This may wait.
    pub(crate) fn write(&mut self, entry: &Entry) {
        match self {
            Destination::Text { is_timed: true } => {
                output::say(format_args!("{} {entry}", utc(SystemTime::now())));
            }
            Destination::Text { is_timed: false } => output::say(entry),
            Destination::Journal(journal) => {
                if journal.write(entry).is_err() {
                    // The journal does not run at the moment.
                    output::say(entry);
                }
            }
        }
    }
}

/// Returns whether a descriptor is the stream that systemd has connected to the journal: `JOURNAL_STREAM` of
/// systemd.exec(5) has its device and inode.
fn leads_to_journal(descriptor: impl AsFd) -> bool {
    let named = env::var("JOURNAL_STREAM").ok();
    let found = fstat(descriptor).ok();
    named
        .zip(found)
        .is_some_and(|(named, found)| named == format!("{}:{}", found.st_dev, found.st_ino))
}

/// Starts the writer thread. It inherits the blocked signals of the calling thread.
pub(crate) fn start(mut destination: Destination) -> (Log, Writer) {
    let (entries, waiting) = mpsc::channel::<Entry>();
    let (done, written) = mpsc::channel();
    let counts = Arc::<Counts>::default();
    let log = Log {
        entries,
        counts: Arc::clone(&counts),
    };
    thread::spawn(move || {
        for entry in waiting {
            destination.write(&entry);
            if entry.level() == Level::Warning {
                counts.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            match counts.lost.swap(0, Ordering::Relaxed) {
                0 => {}
                count => {
                    let message = format!("({count} more warnings were not written in time)");
                    destination.write(&Entry::new(Level::Notice, "lost", message).with("lost", count));
                }
            }
        }
        // The receiver may have stopped waiting.
        let _ = done.send(());
    });
    (log, Writer { written })
}

impl Log {
    /// Passes an entry to the writer thread.
    pub(crate) fn write(&self, entry: impl Into<Entry>) {
        let entry = entry.into();
        if entry.level() == Level::Warning && self.counts.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The thread ends only after all copies of the log.
        let _ = self.entries.send(entry);
    }
}

impl Writer {
    /// Waits for the last entries to be written, for a limited time, because standard error may block.
    pub(crate) fn finish(self) {
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many warnings wait, what comes after them is written.
    #[test]
    fn warnings_beyond_what_waits_are_counted_and_outcomes_are_kept() {
        let (entries, waiting) = mpsc::channel();
        let log = Log {
            entries,
            counts: Arc::default(),
        };
        for number in 0..WAITING + 3 {
            log.write(Entry::warning(number));
        }
        let outcomes = [Level::Error, Level::Notice, Level::Info]
            .into_iter()
            .cycle()
            .take(3 * WAITING);
        for level in outcomes {
            log.write(Entry::new(level, "reload", "an outcome"));
        }
        assert_eq!(log.counts.lost.load(Ordering::Relaxed), 3);
        drop(log);
        let written: Vec<Entry> = waiting.iter().collect();
        let outcomes = written.iter().filter(|entry| entry.level() != Level::Warning);
        assert_eq!((outcomes.count(), written.len()), (3 * WAITING, 4 * WAITING));
    }
}
