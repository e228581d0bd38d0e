//! The script stage: a process in namespaces of its own that gives up everything and becomes the script.

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid, setsid};

use super::{Channel, Orders, Refusal, Word, refused, walls};
use crate::record::inside::{BASH_ENV, BIN, MACHINE, SYS};
use crate::record::machine::Stored;
use crate::record::source::VARIABLE;

/// Runs the stage. The arguments are the script and its arguments. It returns only if there is no script.
pub(crate) fn script(arguments: &[OsString]) -> ExitCode {
    // Without the socket nobody listens.
    let Ok(mut init) = Channel::above() else {
        return ExitCode::FAILURE;
    };
    let Err(word) = become_script(arguments, &mut init);
    let _ = init.send(&word);
    ExitCode::FAILURE
}

fn become_script(arguments: &[OsString], init: &mut Channel) -> Result<Infallible, Word> {
    let refusal = |step: &'static str| move |error: io::Error| Word::Refused(refused(step)(error));
    let [script, rest @ ..] = arguments else {
        return Err(Word::NotFound);
    };
    isolate().map_err(Word::Refused)?;
    init.send(&Word::Isolated).map_err(refusal("process 1"))?;
    let orders: Option<Orders> = init.receive().map_err(refusal("process 1"))?;
    let Some(Orders { machine, writable }) = orders else {
        return Err(refusal("process 1")(io::ErrorKind::UnexpectedEof.into()));
    };
    lock().map_err(Word::Refused)?;
    become_somebody().map_err(Word::Refused)?;
    let stored = Stored {
        file: Path::new(MACHINE),
        sys: Path::new(SYS),
    };
    stored
        .create(&machine)
        .map_err(refusal("the interfaces of the script"))?;
    let script = find(script).ok_or(Word::NotFound)?;
    let mut command = command(&script, rest).map_err(refusal("reading the script"))?;
    walls::limit_resources().map_err(Word::Refused)?;
    walls::limit_files(&writable).map_err(Word::Refused)?;
    walls::limit_calls().map_err(Word::Refused)?;
    let error = command.exec();
    Err(Word::Refused(refused(format!("starting {}", script.display()))(
        error,
    )))
}

/// Enters the second user namespace. Process 1 must say who this process is in it.
fn isolate() -> Result<(), Refusal> {
    setsid().map_err(refused("a session of its own"))?;
    unshare(CloneFlags::CLONE_NEWUSER).map_err(refused("creating the script's user namespace"))
}

/// Enters the other namespaces, which belong to the user namespace. The mounts of process 1 are locked here,
/// and the network is the script's own.
fn lock() -> Result<(), Refusal> {
    let namespaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    unshare(namespaces).map_err(refused("creating the script's namespaces"))
}

/// Becomes root inside, which is an unprivileged user outside, without any privilege.
fn become_somebody() -> Result<(), Refusal> {
    // Only root's groups can be left. Everybody else has their own.
    let _ = setgroups(&[]);
    let (group, user) = (Gid::from_raw(0), Uid::from_raw(0));
    setresgid(group, group, group).map_err(refused("becoming the script's group"))?;
    setresuid(user, user, user).map_err(refused("becoming the script's user"))?;
    walls::give_up_capabilities()
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
