//! Network namespaces, removed on drop.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns};
use nix::unistd::geteuid;

use crate::testbed::error::TestbedError;
use crate::testbed::process::call;

/// The Debian package of `ip`.
const IPROUTE2: &str = "iproute2";

/// A named network namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

/// What the names of a testbed's namespaces begin with; the number of its process follows.
pub(crate) const PREFIX: &str = "fg-";

impl Namespace {
    /// Removes what testbeds have left behind that were killed with no chance to clean up.
    pub(crate) fn remove_orphans() -> Result<(), TestbedError> {
        for line in ip(&["netns", "list"])?.lines() {
            let name = line.split_whitespace().next().unwrap_or_default();
            let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
            let id = process.and_then(|number| number.parse::<u32>().ok());
            if id.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
                // Another testbed may have been quicker to remove it.
                let _ = ip(&["netns", "del", name]);
            }
        }
        Ok(())
    }

    /// Creates it, with its loopback interface up.
    pub(crate) fn create(name: String) -> Result<Namespace, TestbedError> {
        if !geteuid().is_root() {
            return Err(TestbedError::Privileges);
        }
        ip(&["netns", "add", &name])?;
        // From here on it is removed on any error.
        let namespace = Namespace { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls `ip` in it.
    ///
    /// # Errors
    /// If it fails.
    pub fn ip(&self, arguments: &[&str]) -> Result<String, TestbedError> {
        let mut all = vec!["-n", &self.name];
        all.extend(arguments);
        ip(&all)
    }

    /// A command to be started in it.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `work` on a thread of its own in it.
    ///
    /// # Errors
    /// If the namespace can't be entered.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        let path = format!("/run/netns/{}", self.name);
        let entering = || TestbedError::io(format!("entering the namespace {}", self.name));
        let file = File::open(path).map_err(entering())?;
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                setns(file, CloneFlags::CLONE_NEWNET)
                    .map_err(std::io::Error::from)
                    .map(|()| work())
            });
            match worker.join() {
                Ok(result) => result.map_err(entering()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", &self.name]);
    }
}

/// Calls `ip`.
pub(crate) fn ip(arguments: &[&str]) -> Result<String, TestbedError> {
    let mut command = Command::new("ip");
    command.args(arguments);
    call(command, "ip", IPROUTE2)
}
