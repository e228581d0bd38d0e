//! The init stage: process 1 of the namespaces. It arranges the files, starts the script, and reports.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::files::{self, BASH_ENV, BIN};
use super::{JOURNAL, Refusal, Report, end_with_parent, refused, report, report_file};
use crate::journal;
use crate::source::{BASH_TRAP, VARIABLE};

/// Runs the stage. The arguments are the script and its arguments.
pub(crate) fn init(arguments: &[OsString]) -> ExitCode {
    let result = match record(arguments) {
        Ok(ended) => ended,
        Err(Refusal { step, reason }) => Report::Refused { step, reason },
    };
    match report(&result) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn record(arguments: &[OsString]) -> Result<Report, Refusal> {
    end_with_parent()?;
    let [script, rest @ ..] = arguments else {
        return Err(refused("arguments")("no script"));
    };
    let started = report_file().map_err(refused("the report of the outer stage"))?;
    let started = serde_json::from_reader(started).map_err(refused("the report of the outer stage"))?;
    let Report::Started(machine) = started else {
        return Err(refused("the report of the outer stage")("it has no interfaces"));
    };
    let current = env::current_dir().map_err(refused("the current folder"))?;
    files::arrange(&machine)?;
    // A folder that is hidden inside can't be the current one.
    let _ = env::set_current_dir(&current);
    write_trap().map_err(refused("writing what bash reads first"))?;
    let Some(script) = find(script) else {
        return Ok(Report::NotFound);
    };
    let status = command(&script, rest)
        .map_err(refused("reading the script"))?
        .status();
    let failure = match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => return Err(refused(format!("starting {}", script.display()))(error)),
    };
    let journal = journal::read(Path::new(JOURNAL)).map_err(refused("reading the journal"))?;
    Ok(Report::Ended { failure, journal })
}

/// Writes the trap. What the user's own `BASH_ENV` names is read first.
fn write_trap() -> io::Result<()> {
    let own = env::var("BASH_ENV").unwrap_or_default();
    let quoted = own.replace('\'', r"'\''");
    let before = if own.is_empty() {
        String::new()
    } else {
        format!(". '{quoted}'\n")
    };
    fs::write(BASH_ENV, before + BASH_TRAP.trim_start())
}

/// Returns the script: a file, or a program in `PATH`.
fn find(script: &OsStr) -> Option<PathBuf> {
    let path = Path::new(script);
    if path.is_file() {
        return Some(path.to_owned());
    }
    if path.components().count() > 1 {
        return None;
    }
    let folders = path_variable();
    env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|program| program.is_file())
}

/// Returns `PATH` with the folders of system programs, which a user's may lack.
fn path_variable() -> OsString {
    let own = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&own).collect();
    for system in ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from) {
        if !folders.contains(&system) {
            folders.push(system);
        }
    }
    env::join_paths(folders).unwrap_or(own)
}

/// Returns the command that starts the script. One that can't be executed by itself is for `sh`.
fn command(script: &Path, arguments: &[OsString]) -> io::Result<Command> {
    let is_executable = fs::metadata(script)?.permissions().mode() & 0o111 != 0;
    let has_interpreter = fs::read(script)?.starts_with(b"#!");
    let is_program = fs::read(script)?.starts_with(b"\x7fELF");
    // Without a slash the name would be looked up in PATH. With one, the script sees its name as given.
    let named = match script.components().count() {
        1 => Path::new(".").join(script),
        _ => script.to_owned(),
    };
    let mut command = if is_executable && (has_interpreter || is_program) {
        Command::new(named)
    } else {
        let mut shell = interpreter(script)?;
        shell.arg(named);
        shell
    };
    let mut path = OsString::from(BIN);
    path.push(":");
    path.push(path_variable());
    command
        .args(arguments)
        .env("PATH", path)
        .env("BASH_ENV", BASH_ENV)
        .env_remove(VARIABLE)
        .stdin(Stdio::null());
    Ok(command)
}

/// Returns the interpreter that the first line names, or `sh`.
fn interpreter(script: &Path) -> io::Result<Command> {
    let text = fs::read(script)?;
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let mut words = first.strip_prefix("#!").unwrap_or("/bin/sh").split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("/bin/sh"));
    command.args(words);
    Ok(command)
}
