//! Child processes that end with this one, and Ctrl-C as an error that lets this process clean up.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::testbed::error::TestbedError;

/// The interval at which children and the interrupt are checked.
const TICK: Duration = Duration::from_millis(10);

/// How long a child may take to end after an interrupt.
const PATIENCE: Duration = Duration::from_secs(5);

/// Records SIGINT and SIGTERM, so that everything can be taken down before this process ends.
#[derive(Clone, Debug)]
pub struct Interrupt {
    received: Arc<AtomicBool>,
    /// Whether there is nothing to take down, so that a signal ends this process at once.
    is_idle: Arc<AtomicBool>,
    /// How many things there are to take down.
    busy: Arc<Mutex<usize>>,
}

/// While this exists, there is something to take down, and a signal does not end this process.
#[derive(Debug)]
pub struct Busy(Interrupt);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.count(|busy| busy - 1);
    }
}

/// The exit code of a process that a signal ended: 128 plus the number of SIGINT.
const ENDED_BY_SIGNAL: i32 = 130;

impl Interrupt {
    /// Handles both signals from now on until this process ends.
    ///
    /// # Errors
    /// Fails if the system rejects the handlers.
    pub fn catch() -> Result<Interrupt, TestbedError> {
        let interrupt = Interrupt::catch_while_busy()?;
        interrupt.count(|busy| busy + 1);
        Ok(interrupt)
    }

    /// Handles both signals from now on. They end this process at once, except while it is
    /// [`busy`](Interrupt::busy).
    ///
    /// # Errors
    /// Fails if the system rejects the handlers.
    pub fn catch_while_busy() -> Result<Interrupt, TestbedError> {
        let received = Arc::new(AtomicBool::new(false));
        let is_idle = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGTERM] {
            let failed = || TestbedError::io("catching signals");
            flag::register_conditional_shutdown(signal, ENDED_BY_SIGNAL, Arc::clone(&is_idle))
                .map_err(failed())?;
            flag::register(signal, Arc::clone(&received)).map_err(failed())?;
        }
        Ok(Interrupt {
            received,
            is_idle,
            busy: Arc::default(),
        })
    }

    /// Says that there is something to take down, until the returned value is dropped.
    pub fn busy(&self) -> Busy {
        self.count(|busy| busy + 1);
        Busy(self.clone())
    }

    /// Changes how many things there are to take down.
    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut busy = self.busy.lock().expect("no thread panics with it");
        *busy = change(*busy);
        self.is_idle.store(*busy == 0, Ordering::Relaxed);
    }

    /// Returns an error if a signal was received.
    ///
    /// # Errors
    /// That error is [`TestbedError::Interrupted`].
    pub fn check(&self) -> Result<(), TestbedError> {
        if self.received.load(Ordering::Relaxed) {
            Err(TestbedError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Waits until `ready` returns true. Returns false if that takes longer than `patience`.
    ///
    /// # Errors
    /// Fails if a signal was received.
    pub fn wait_for(
        &self,
        patience: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<bool, TestbedError> {
        let start = Instant::now();
        while !ready() {
            self.check()?;
            if start.elapsed() >= patience {
                return Ok(false);
            }
            thread::sleep(TICK);
        }
        Ok(true)
    }

    /// Sleeps for `duration`.
    ///
    /// # Errors
    /// Fails if a signal was received.
    pub fn sleep(&self, duration: Duration) -> Result<(), TestbedError> {
        self.wait_for(duration, || false).map(drop)
    }
}

/// A child process. If it still runs on drop, it is killed.
#[derive(Debug)]
pub struct Process {
    child: Child,
    command: String,
    output: File,
    errors: File,
}

impl Process {
    /// Starts `command`. If `program` is missing, the error names `package`, the Debian package that contains
    /// it.
    ///
    /// # Errors
    /// Fails if the program is missing or can't be started.
    pub fn spawn(
        mut command: Command,
        program: &str,
        package: &'static str,
    ) -> Result<Process, TestbedError> {
        if !is_installed(program) {
            return Err(TestbedError::MissingProgram {
                program: program.to_string(),
                package,
            });
        }
        // The output goes to files instead of pipes, so that a child never waits for us to read.
        let (output, errors) = (temporary_file()?, temporary_file()?);
        let copy = |file: &File| file.try_clone().map_err(TestbedError::io("copying a descriptor"));
        let child = command
            .stdin(Stdio::null())
            .stdout(copy(&output)?)
            .stderr(copy(&errors)?)
            .spawn()
            .map_err(TestbedError::io(format!("starting `{program}`")))?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let command = words
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ");
        Ok(Process {
            child,
            command,
            output,
            errors,
        })
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns its standard output so far.
    pub(crate) fn output(&mut self) -> String {
        read(&mut self.output)
    }

    /// Waits until it ends and returns its standard output.
    ///
    /// # Errors
    /// Fails if the process fails, or on an interrupt.
    pub(crate) fn finish(mut self, interrupt: &Interrupt) -> Result<String, TestbedError> {
        while !self.has_ended() {
            interrupt.wait_for(TICK, || false)?;
        }
        let status = self.wait()?;
        if status.success() {
            return Ok(self.output());
        }
        interrupt.check()?;
        Err(self.failure())
    }

    /// Sends SIGINT, waits, and returns its standard output.
    ///
    /// # Errors
    /// Fails if the process fails, or does not end.
    pub(crate) fn interrupt(self, interrupt: &Interrupt) -> Result<String, TestbedError> {
        interrupt.check()?;
        self.end()
    }

    /// Does the same, also if this process has received a signal itself.
    ///
    /// # Errors
    /// Fails if the process fails, or does not end.
    pub fn end(mut self) -> Result<String, TestbedError> {
        // The error for a child that has already ended is handled below.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT);
        let began = Instant::now();
        while !self.has_ended() && began.elapsed() < PATIENCE {
            thread::sleep(TICK);
        }
        if !self.has_ended() || !self.wait()?.success() {
            return Err(self.failure());
        }
        Ok(self.output())
    }

    /// Returns an error with the last lines that the process wrote.
    pub fn failure(&mut self) -> TestbedError {
        let text = read(&mut self.errors) + &read(&mut self.output);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(4)..];
        TestbedError::Program {
            command: self.command.clone(),
            output: if last.is_empty() {
                "it printed nothing".to_string()
            } else {
                last.join("; ")
            },
        }
    }

    fn wait(&mut self) -> Result<ExitStatus, TestbedError> {
        self.child.wait().map_err(TestbedError::io("waiting for a child"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Calls a short command and returns its output.
pub(crate) fn call(command: Command, program: &str, package: &'static str) -> Result<String, TestbedError> {
    let mut process = Process::spawn(command, program, package)?;
    let status = process.wait()?;
    if status.success() {
        Ok(process.output())
    } else {
        Err(process.failure())
    }
}

/// Returns whether a program with this name is installed. `ip netns exec` reports a missing program less
/// clearly.
fn is_installed(program: &str) -> bool {
    if program.contains('/') {
        return true;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn temporary_file() -> Result<File, TestbedError> {
    tempfile::tempfile().map_err(TestbedError::io("creating a temporary file"))
}

/// Reads the whole file. The child shares the file offset, so the offset must end at the same position, the
/// end.
fn read(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(_) => bytes.clear(),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_the_process_when_the_last_thing_is_taken_down() {
        let interrupt = Interrupt {
            received: Arc::default(),
            is_idle: Arc::new(AtomicBool::new(true)),
            busy: Arc::default(),
        };
        let is_idle = || interrupt.is_idle.load(Ordering::Relaxed);
        let one = interrupt.busy();
        let other = interrupt.busy();
        drop(one);
        assert!(!is_idle());
        drop(other);
        assert!(is_idle());
    }
}
