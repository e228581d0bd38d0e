//! The outer stage: new namespaces, the identifiers of the user, and process 1.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::{INIT, MAPPER, Refusal, Report, end_with_parent, refused, report};
use crate::machine::Machine;

/// Runs the stage. The arguments are the names of additional interfaces, the script, and its arguments.
pub(crate) fn outer(arguments: &[OsString]) -> ExitCode {
    match isolate(arguments) {
        Ok(code) => code,
        Err(Refusal { step, reason }) => {
            // If this fails, the program above says that the recording was ended.
            let _ = report(&Report::Refused { step, reason });
            ExitCode::FAILURE
        }
    }
}

fn isolate(arguments: &[OsString]) -> Result<ExitCode, Refusal> {
    end_with_parent()?;
    let (devices, script) = arguments
        .split_first()
        .ok_or("no script")
        .map_err(refused("arguments"))?;
    let devices = devices.to_string_lossy();
    let devices: Vec<&str> = devices.split(',').filter(|name| !name.is_empty()).collect();
    // Inside, there are no interfaces to look at.
    let machine = Machine::survey(&devices);
    report(&Report::Started(machine)).map_err(refused("this machine's interfaces"))?;
    enter_namespaces()?;
    // A change of credentials cancels it.
    end_with_parent()?;
    let status = Command::new("/proc/self/exe")
        .arg0(INIT)
        .args(script)
        .status()
        .map_err(refused("starting process 1"))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Enters new namespaces as root. A child of this process will be process 1 there.
fn enter_namespaces() -> Result<(), Refusal> {
    let (user, group) = (geteuid(), getegid());
    let maps = ["uid_map", "gid_map"].map(|map| fs::read_to_string(format!("/proc/self/{map}")));
    let helper = user.is_root().then(Mapper::start).transpose();
    let helper = helper.map_err(refused("starting a helper"))?;
    let namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    unshare(namespaces).map_err(refused("creating namespaces"))?;
    if let (Some(helper), [Ok(users), Ok(groups)]) = (helper, &maps) {
        // Root sees the same users and groups as outside. Only a process outside may arrange that.
        return helper
            .map(&identity(users), &identity(groups))
            .map_err(refused("mapping users"));
    }
    let write = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    write("setgroups", "deny".to_owned()).map_err(refused("mapping groups"))?;
    write("uid_map", format!("0 {user} 1")).map_err(refused("mapping the user"))?;
    write("gid_map", format!("0 {group} 1")).map_err(refused("mapping the group"))
}

/// Returns the map that leaves every identifier of this namespace as it is.
fn identity(map: &str) -> String {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [inside, _, count] => Some(format!("{inside} {inside} {count}\n")),
            _ => None,
        }
    };
    map.lines().filter_map(line).collect()
}

/// A process that stays outside of the namespaces and writes the maps of its parent.
struct Mapper(Child);

impl Mapper {
    fn start() -> io::Result<Mapper> {
        Command::new("/proc/self/exe")
            .arg0(MAPPER)
            .arg(std::process::id().to_string())
            .stdin(Stdio::piped())
            .spawn()
            .map(Mapper)
    }

    fn map(mut self, users: &str, groups: &str) -> io::Result<()> {
        let mut pipe = self.0.stdin.take().expect("standard input is a pipe");
        write!(pipe, "{users}\0{groups}")?;
        drop(pipe);
        let status = self.0.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other("the maps of users and groups were refused"))
        }
    }
}

/// Runs the helper. The argument is the process whose maps are written, and standard input has the maps.
pub(crate) fn mapper(arguments: &[OsString]) -> ExitCode {
    let write = || -> io::Result<()> {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        let (users, groups) = text.split_once('\0').ok_or(io::ErrorKind::InvalidInput)?;
        let process = arguments.first().and_then(|process| process.to_str());
        let process: u32 = process
            .and_then(|process| process.parse().ok())
            .ok_or(io::ErrorKind::InvalidInput)?;
        fs::write(format!("/proc/{process}/uid_map"), users)?;
        fs::write(format!("/proc/{process}/gid_map"), groups)
    };
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_keeps_every_identifier() {
        assert_eq!(identity("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(
            identity("0 100000 65536\n65536 1000 1\n"),
            "0 0 65536\n65536 65536 1\n"
        );
    }
}
