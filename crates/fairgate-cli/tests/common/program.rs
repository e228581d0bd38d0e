//! Programs that tests start. Each is ended at its deadline, and then its output is reported.

use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{say, until};

/// The time for a program to end after an interrupt. After that it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// A running program. It is ended when this value is dropped.
pub(crate) struct Program {
    child: Child,
    /// Its command line, for messages.
    name: String,
    /// Files instead of pipes, so that a program with much output never waits for the test.
    stdout: File,
    pub(crate) stderr: File,
}

impl Program {
    /// Starts a program. Its output is kept for [`output`](Program::output).
    pub(crate) fn start(command: &mut Command) -> Program {
        Program::start_with(command, |_| {})
    }

    /// Starts a program. `prepare` can redirect its output.
    pub(crate) fn start_with(command: &mut Command, prepare: impl FnOnce(&mut Command)) -> Program {
        let [stdout, stderr] = [(); 2].map(|()| tempfile::tempfile().expect("a temporary file"));
        let copy = |file: &File| file.try_clone().expect("a descriptor");
        command
            .stdin(Stdio::null())
            .stdout(copy(&stdout))
            .stderr(copy(&stderr));
        prepare(command);
        let name = format!("{command:?}");
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Program {
            child,
            name,
            stdout,
            stderr,
        }
    }

    /// Returns the process number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.status().is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id() as i32), signal).expect("its end was not awaited");
    }

    /// Waits for its end. Returns its exit status and output.
    pub(crate) fn output(mut self) -> Output {
        let what = format!("{} ends", self.name);
        until(&what, || self.has_ended());
        Output {
            status: self.status().expect("it has ended"),
            stdout: contents(&mut self.stdout),
            stderr: contents(&mut self.stderr),
        }
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of this process")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        self.signal(Signal::SIGINT);
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let said = [contents(&mut self.stdout), contents(&mut self.stderr)].concat();
            let said = String::from_utf8_lossy(&said);
            say(&format!("{} was ended. Its output was: {said}", self.name));
        }
    }
}

/// Reads a whole file that a program shares with the test. They share its offset, which is at the end
/// afterwards.
fn contents(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .expect("a temporary file");
    bytes
}

/// Runs a program until it ends, and returns its output.
pub(crate) fn output(command: &mut Command) -> Output {
    Program::start(command).output()
}
