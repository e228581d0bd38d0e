//! The thread that reads the run's status again and again, and the one that writes the history into its file.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use fairgate_run_api::{Detail, LocalRun, Question, Recorder, Refused, Status, ask};

use super::{History, HistoryFile, Keeper};

/// How often the status is read.
const INTERVAL: Duration = Duration::from_secs(1);

/// A reading takes at most one part in this many of the time: 5 %.
const SHARE: u32 = 20;

/// When what is new is written into the file: so soon after the start, and then so often. A run that fails
/// again and again does not live long enough to fill the file with its few points.
const FIRST_WRITING: Duration = Duration::from_secs(20);
const WRITING: Duration = Duration::from_secs(60);

/// How long the end waits for a reading that has begun, and for the last writing.
const GRACE: Duration = Duration::from_secs(5);

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sampler {
    stop: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        // It ends with an error when the thread does.
        let _ = self.ended.recv_timeout(GRACE);
    }
}

/// Reads the run for the history.
pub(crate) struct Reader {
    run: Arc<LocalRun>,
    history: Arc<Mutex<History>>,
    /// It is there as long as somebody asks for what the classes did.
    recorder: Option<Recorder>,
}

impl Reader {
    pub(crate) fn new(run: Arc<LocalRun>, history: Arc<Mutex<History>>) -> Reader {
        Reader {
            run,
            history,
            recorder: None,
        }
    }

    /// Reads the run once. Returns nothing if it has ended.
    pub(crate) fn read(&mut self, now: Instant) -> Option<()> {
        let is_wanted = self.lock().is_wanted(now);
        let recorder = match self.recorder.take().filter(|_| is_wanted) {
            None if is_wanted => Some(self.run.record(INTERVAL).ok()?),
            recorder => recorder,
        };
        self.recorder = recorder;
        let recorded = match &mut self.recorder {
            Some(recorder) => Some(recorder.next()?),
            None => None,
        };
        let detail = Detail::Used;
        match ask::<Status, _>(&*self.run, "", Question::Status { detail }) {
            Ok(status) => self.lock().take(&status, recorded.as_ref()),
            // The next reading covers this interval, too.
            Err(Refused::Unread(_)) => {}
            Err(_) => return None,
        }
        Some(())
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread. It has ordinary priority, and ends with the run. So does the one that keeps the history
/// in `file`, if there is one: a slow disk must not delay readings.
pub(crate) fn start(
    run: Arc<LocalRun>,
    history: Arc<Mutex<History>>,
    file: Option<HistoryFile>,
) -> io::Result<Sampler> {
    let (stop, stopped) = channel();
    let (end, ended) = channel();
    let mut reader = Reader::new(run, Arc::clone(&history));
    let read = move || {
        let _end = end;
        let keeper = file.map(|file| Keeper::begin(file, &history));
        thread::scope(|scope| {
            let (written, readings) = channel::<()>();
            if let Some(keeper) = keeper {
                let builder = thread::Builder::new().name("history-file".to_owned());
                let history = &history;
                // Without the thread, the history is shown and not kept.
                let _ = builder.spawn_scoped(scope, move || keep(keeper, history, &readings));
            }
            let _written = written;
            // The first one finds all memory cold, and says nothing about those after it.
            let mut is_first = true;
            loop {
                let began = Instant::now();
                if reader.read(began).is_none() {
                    return;
                }
                let pause = match std::mem::take(&mut is_first) {
                    true => INTERVAL,
                    false => pause(began.elapsed()),
                };
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
    };
    thread::Builder::new().name("history".to_owned()).spawn(read)?;
    Ok(Sampler {
        stop: Some(stop),
        ended,
    })
}

/// Writes what is new again and again, until there are no `readings` any more.
fn keep(mut keeper: Keeper, history: &Mutex<History>, readings: &Receiver<()>) {
    let mut pause = FIRST_WRITING;
    let mut has_written = false;
    while readings.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        keeper.write(history, false);
        pause = WRITING;
        has_written = true;
    }
    if has_written {
        keeper.write(history, true);
    }
}

/// Returns how long to wait after a reading that took so long.
fn pause(took: Duration) -> Duration {
    INTERVAL.max(took * SHARE).saturating_sub(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reading_is_made_less_often() {
        let ms = Duration::from_millis;
        assert_eq!(pause(ms(1)), ms(999));
        assert_eq!(pause(ms(50)), ms(950));
        assert_eq!(pause(ms(300)), ms(5700));
    }
}
