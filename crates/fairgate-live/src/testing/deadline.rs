//! Deadlines of tests on live networks: no such test may wait without end, because then all of CI does.
//!
//! A deadline is not an assertion about speed. It is far above what a loaded machine needs. A test reaches it
//! only if it waits for something that never happens. There are two:
//!
//! * Each wait has one ([`PATIENCE`]). The test fails and says what it waited for.
//! * Each test has one ([`LIMIT`]), for calls that block on their own. The process ends: no thread can be
//!   stopped from outside. What its tests have built is taken down before.

use std::io::Write;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

/// How long a test waits for one thing. What tests wait for takes below 10 s, also on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How long a test may take, or one attempt of a measurement. The slowest takes below a minute.
const LIMIT: Duration = Duration::from_secs(300);

/// How often a condition is looked at.
const TICK: Duration = Duration::from_millis(10);

/// The exit code of a test binary of which a test failed.
const FAILED: i32 = 101;

/// How long taking down may take.
const TAKING_DOWN: Duration = Duration::from_secs(10);

thread_local! {
    /// What the test on this thread waits for, or waited for last.
    static WAITING_FOR: Arc<Mutex<String>> = Arc::default();
}

/// Tests on live networks run side by side, and a measurement runs without them: it holds this for itself.
static NETWORKS: RwLock<()> = RwLock::new(());

/// A test with a deadline, until this value is dropped.
pub(crate) struct Watched {
    _end: Sender<()>,
}

/// A test on a live network, until this value is dropped. No measurement runs beside it.
pub(crate) struct Live {
    _watched: Watched,
    _beside: RwLockReadGuard<'static, ()>,
}

/// Begins a test on a live network. If no network namespace can be made, it returns `None` and reports this
/// on standard error: a test that did not run has not passed.
pub(crate) fn live(test: &'static str) -> Option<Live> {
    // A failed test poisons the lock, which does not matter to others. The deadline begins after the wait.
    may_run(test).then(|| Live {
        _beside: NETWORKS.read().unwrap_or_else(PoisonError::into_inner),
        _watched: watch_live(test),
    })
}

/// Waits until no test on a live network runs in this process, and lets none begin while the returned value
/// exists. Like [`live`], it returns `None` if no network namespace can be made.
pub(crate) fn alone(test: &'static str) -> Option<RwLockWriteGuard<'static, ()>> {
    may_run(test).then(|| NETWORKS.write().unwrap_or_else(PoisonError::into_inner))
}

/// Begins the deadline of a test on a live network.
pub(crate) fn watch_live(test: &'static str) -> Watched {
    watch(test, LIMIT, end_process)
}

/// Returns whether network namespaces can be made. If not, it reports the test that is skipped.
fn may_run(test: &str) -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        say(&format!(
            "SKIPPED: {test} needs root to build network namespaces, and this process is not root"
        ));
    }
    is_root
}

/// Waits for something that must happen.
pub(crate) fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(
        within(PATIENCE, what, condition),
        "still waiting after {PATIENCE:?}: {what}"
    );
}

/// Waits for something for so long. Returns whether it has happened.
pub(super) fn within(patience: Duration, what: &str, mut condition: impl FnMut() -> bool) -> bool {
    WAITING_FOR.with(|waiting| what.clone_into(&mut waiting.lock().unwrap_or_else(PoisonError::into_inner)));
    let start = Instant::now();
    while !condition() {
        if start.elapsed() >= patience {
            return false;
        }
        thread::sleep(TICK);
    }
    true
}

/// Writes past the test harness, which swallows what `eprintln!` says.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Calls `expired` with a message if the returned value still exists after `limit`.
pub(super) fn watch(
    test: &'static str,
    limit: Duration,
    expired: impl FnOnce(&str) + Send + 'static,
) -> Watched {
    let waiting = WAITING_FOR.with(Arc::clone);
    let (end, ended) = mpsc::channel();
    thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let what = waiting.lock().unwrap_or_else(PoisonError::into_inner).clone();
            expired(&format!(
                "DEADLINE: {test} has not ended after {limit:?}. It waits, or waited last, for this: {what}"
            ));
        }
    });
    Watched { _end: end }
}

/// Ends this process as one of which a test failed.
fn end_process(message: &str) {
    say(message);
    // On a thread of its own, because `ip` may be what does not end.
    let taking_down = thread::spawn(take_down);
    let start = Instant::now();
    while !taking_down.is_finished() && start.elapsed() < TAKING_DOWN {
        thread::sleep(TICK);
    }
    std::process::exit(FAILED);
}

/// Removes the network namespaces of this process, and ends what runs in them.
fn take_down() {
    let prefix = format!("fg-{}-", std::process::id());
    for name in lines(&["netns", "list"])
        .iter()
        .filter(|name| name.starts_with(&prefix))
    {
        for id in lines(&["netns", "pids", name]) {
            if let Ok(id) = id.parse() {
                let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
            }
        }
        lines(&["netns", "del", name]);
    }
}

/// The first word of each line that `ip` prints.
fn lines(arguments: &[&str]) -> Vec<String> {
    let Ok(output) = Command::new("ip").args(arguments).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.lines().filter_map(|line| line.split_whitespace().next());
    words.map(str::to_owned).collect()
}
