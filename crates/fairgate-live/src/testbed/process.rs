//! Child processes that do not outlive us, and Ctrl-C as an error instead of an end.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::testbed::error::TestbedError;

/// How often children and the interrupt are looked at.
const TICK: Duration = Duration::from_millis(10);

/// How long a child may take to end when asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// Remembers SIGINT and SIGTERM, so that everything can be taken down before this process ends.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over both signals for the rest of the process's life.
    ///
    /// # Errors
    /// If the system refuses the handlers.
    pub fn catch() -> Result<Interrupt, TestbedError> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag))
                .map_err(TestbedError::io("catching signals"))?;
        }
        Ok(Interrupt(flag))
    }

    /// An error if a signal has come.
    pub(crate) fn check(&self) -> Result<(), TestbedError> {
        if self.0.load(Ordering::Relaxed) {
            Err(TestbedError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Waits until `ready` says so. False if it did not for `patience`.
    pub(crate) fn wait_for(
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

    /// Sleeps.
    pub(crate) fn sleep(&self, duration: Duration) -> Result<(), TestbedError> {
        self.wait_for(duration, || false).map(drop)
    }
}

/// A child process. Killed on drop, if it still runs.
#[derive(Debug)]
pub struct Process {
    child: Child,
    command: String,
    output: File,
    errors: File,
}

impl Process {
    /// Starts `command`. `package` is the Debian package that has `program`, in case it is missing.
    ///
    /// # Errors
    /// If the program is missing or can't be started.
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
        // Files instead of pipes: a child that writes much never waits for us.
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

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// What it has written to standard output so far.
    pub(crate) fn output(&mut self) -> String {
        read(&mut self.output)
    }

    /// Waits for its end and returns what it wrote to standard output.
    ///
    /// # Errors
    /// If it fails, or on an interrupt.
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

    /// Asks it to end as Ctrl-C does, waits, and returns what it wrote to standard output.
    ///
    /// # Errors
    /// If it fails, or does not end.
    pub(crate) fn interrupt(mut self, interrupt: &Interrupt) -> Result<String, TestbedError> {
        // A child that has ended on its own is told apart below.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT);
        interrupt.wait_for(PATIENCE, || self.has_ended())?;
        if !self.has_ended() || !self.wait()?.success() {
            return Err(self.failure());
        }
        Ok(self.output())
    }

    /// It failed: says what it said.
    pub(crate) fn failure(&mut self) -> TestbedError {
        let said = read(&mut self.errors) + &read(&mut self.output);
        let lines: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(4)..];
        TestbedError::Program {
            command: self.command.clone(),
            output: if last.is_empty() {
                "it said nothing".to_string()
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

/// Whether a program of this name can be started from here: `ip netns exec` would not say so clearly.
fn is_installed(program: &str) -> bool {
    if program.contains('/') {
        return true;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn temporary_file() -> Result<File, TestbedError> {
    tempfile::tempfile().map_err(TestbedError::io("making a temporary file"))
}

/// All of a file that a child shares with us. The offset is shared too, so that it ends where it was.
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
