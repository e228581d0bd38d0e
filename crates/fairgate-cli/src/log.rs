//! Messages of a run on standard error while it forwards.
//!
//! Forwarding never waits for standard error: a separate thread writes the lines. If standard error blocks,
//! because nobody reads the pipe, a few lines are kept and the others are counted. If it is closed, the lines
//! are lost.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use crate::output;

/// The maximum number of lines that wait to be written.
const WAITING: usize = 64;

/// How long the end of the program waits for the last lines to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints lines without waiting.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    lines: SyncSender<String>,
    /// The number of lines for which there was no room.
    lost: Arc<AtomicU64>,
}

/// Ends when all copies of its [`Log`] are gone and their lines are written.
#[derive(Debug)]
pub(crate) struct Writer {
    written: Receiver<()>,
}

/// Starts the writer thread. It inherits the blocked signals of the calling thread.
pub(crate) fn start() -> (Log, Writer) {
    let (lines, waiting) = mpsc::sync_channel::<String>(WAITING);
    let (done, written) = mpsc::channel();
    let lost = Arc::new(AtomicU64::new(0));
    let log = Log {
        lines,
        lost: Arc::clone(&lost),
    };
    thread::spawn(move || {
        for line in waiting {
            output::say(line);
            match lost.swap(0, Ordering::Relaxed) {
                0 => {}
                count => output::say(format!("({count} more lines were not written in time)")),
            }
        }
        // The receiver may have stopped waiting.
        let _ = done.send(());
    });
    (log, Writer { written })
}

impl Log {
    /// Passes a line to the writer thread.
    pub(crate) fn say(&self, line: impl Display) {
        if self.lines.try_send(line.to_string()).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Waits for the last lines to be written, for a limited time, because standard error may block.
    pub(crate) fn finish(self) {
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_what_waits_are_counted() {
        let (lines, _waiting) = mpsc::sync_channel(WAITING);
        let log = Log {
            lines,
            lost: Arc::default(),
        };
        for line in 0..WAITING + 3 {
            log.say(line);
        }
        assert_eq!(log.lost.load(Ordering::Relaxed), 3);
    }
}
