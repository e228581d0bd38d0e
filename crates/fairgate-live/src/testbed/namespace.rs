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

/// The prefix of the names of a testbed's namespaces. The process id follows.
pub(crate) const PREFIX: &str = "fg-";

impl Namespace {
    /// Removes the namespaces of testbeds that were killed before they could clean up.
    ///
    /// # Errors
    /// Fails if `ip` fails.
    pub fn remove_orphans() -> Result<(), TestbedError> {
        for line in ip(&["netns", "list"])?.lines() {
            let name = line.split_whitespace().next().unwrap_or_default();
            let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
            let id = process.and_then(|number| number.parse::<u32>().ok());
            if id.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
                // Another testbed may have removed it first.
                let _ = ip(&["netns", "del", name]);
            }
        }
        Ok(())
    }

    /// Creates a namespace of a testbed of this process, whose name ends with `what`.
    ///
    /// # Errors
    /// Fails if privileges or `ip` are missing.
    pub fn of_testbed(what: &str) -> Result<Namespace, TestbedError> {
        Namespace::create(format!("{PREFIX}{}-{what}", std::process::id()))
    }

    /// Creates the namespace and enables its loopback interface.
    pub(crate) fn create(name: String) -> Result<Namespace, TestbedError> {
        check_privileges()?;
        ip(&["netns", "add", &name])?;
        // From here on the namespace is removed on any error.
        let namespace = Namespace { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in the namespace.
    ///
    /// # Errors
    /// Fails if `ip` fails.
    pub fn ip(&self, arguments: &[&str]) -> Result<String, TestbedError> {
        let mut all = vec!["-n", &self.name];
        all.extend(arguments);
        ip(&all)
    }

    /// Returns a command that starts a program in the namespace.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `work` in the namespace, on a thread of its own.
    ///
    /// # Errors
    /// Fails if the namespace can't be entered.
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

/// Checks that this process may create namespaces, so that no work is done before the answer.
///
/// # Errors
/// Fails if it may not.
pub fn check_privileges() -> Result<(), TestbedError> {
    match geteuid().is_root() {
        true => Ok(()),
        false => Err(TestbedError::Privileges),
    }
}

/// Connects two namespaces by a pair of virtual Ethernet interfaces with this MTU, and enables both. Each end
/// is a namespace and the name that its interface gets.
///
/// # Errors
/// Fails if `ip` fails.
pub fn connect(left: (&Namespace, &str), right: (&Namespace, &str), mtu: u32) -> Result<(), TestbedError> {
    let mtu = mtu.to_string();
    ip(&[
        "link",
        "add",
        left.1,
        "mtu",
        &mtu,
        "netns",
        left.0.name(),
        "type",
        "veth",
        "peer",
        "name",
        right.1,
        "mtu",
        &mtu,
        "netns",
        right.0.name(),
    ])?;
    left.0.ip(&["link", "set", left.1, "up"])?;
    right.0.ip(&["link", "set", right.1, "up"]).map(drop)
}

/// Runs `ip`.
pub(crate) fn ip(arguments: &[&str]) -> Result<String, TestbedError> {
    let mut command = Command::new("ip");
    command.args(arguments);
    call(command, "ip", IPROUTE2)
}
