//! More ways to start a run, and to query hosts and interfaces.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use fairgate_live::testbed::{Namespace, Network};
use fairgate_run::client::ClientError;
use fairgate_run::default_socket;
use fairgate_run_api::{Change, ChangeMade};

use crate::common::program::Program;
use crate::common::until;
use crate::run::{Run, call, succeeds};

impl Run {
    /// Starts `fairgate LANGUAGE` with a script for `device`, between `other` and it, and waits until it
    /// forwards. The status socket has the device's name, so that no two tests have the same one.
    pub(crate) fn of_script(router: &Namespace, language: &str, script: &str, devices: [&str; 2]) -> Run {
        Run::of_script_with(router, language, script, devices, |_| {})
    }

    /// Does the same with a command that `prepare` has changed.
    pub(crate) fn of_script_with(
        router: &Namespace,
        language: &str,
        script: &str,
        [other, device]: [&str; 2],
        prepare: impl FnOnce(&mut Command),
    ) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        fs::write(&file, script).unwrap();
        let mut command = router.command(env!("CARGO_BIN_EXE_fairgate"));
        command
            .args(["--json", language])
            .arg(file)
            .args(["--run", other]);
        prepare(&mut command);
        Run {
            program: Some(Program::start(&mut command)),
            folder,
            socket: default_socket(device),
        }
        .wait()
    }

    /// Starts `fairgate run` with a file, without waiting.
    pub(crate) fn of_file(router: &Namespace, file: &Path) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("sock");
        let mut command = router.command(env!("CARGO_BIN_EXE_fairgate"));
        command.args(["run", "--json", "--socket"]).arg(&socket).arg(file);
        Run {
            program: Some(Program::start(&mut command)),
            folder,
            socket,
        }
    }

    /// Asks for a change.
    pub(crate) fn change(&self, from: Option<&str>, lines: &[String]) -> Result<ChangeMade, ClientError> {
        self.remote().change(Change {
            from: from.map(str::to_owned),
            lines: lines.to_vec(),
            ..Change::default()
        })
    }

    /// Returns what it has written to standard error so far. It shares the offset of this file, so it is read
    /// at fixed places.
    pub(crate) fn said(&self) -> String {
        let program = self.program.as_ref().expect("the run has not ended");
        let length = program.stderr.metadata().expect("a temporary file").len();
        let mut bytes = vec![0; length as usize];
        let read = program.stderr.read_exact_at(&mut bytes, 0);
        read.expect("a file that only grows");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until it has written `what`. Who has asked for something may have the answer before that.
    pub(crate) fn until_said(&self, what: &str) {
        until(&format!("the run says: {what}"), || self.said().contains(what));
    }
}

/// Runs `fairgate run`, which must fail, and returns exit code and message.
pub(crate) fn refusal(router: &Namespace, configuration: &str) -> (Option<i32>, String) {
    let output = Run::spawn(router, configuration, &["run", "--json"], |_| {}).output();
    code_and_message(&output)
}

/// Returns the exit code of a command with `--json`, and its first error.
pub(crate) fn code_and_message(output: &Output) -> (Option<i32>, String) {
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let message = document["errors"][0]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (output.status.code(), message)
}

/// Returns how often each interface of the router was made promiscuous and not yet restored.
pub(crate) fn promiscuity(network: &Network) -> Vec<u64> {
    let promiscuity = |interface: &&str| {
        let text = call(
            &network.router,
            "ip",
            &["-d", "-j", "link", "show", "dev", interface],
        );
        let links: serde_json::Value = serde_json::from_str(&text).unwrap();
        links[0]["promiscuity"].as_u64().unwrap()
    };
    ["left", "right"].iter().map(promiscuity).collect()
}

/// Returns whether an address answers the left host.
pub(crate) fn ping(network: &Network, address: &str) -> bool {
    let arguments = ["-n", "-c", "3", "-i", "0.05", "-W", "5", address];
    succeeds(&network.left, "ping", &arguments)
}

#[test]
fn a_dropped_program_is_ended() {
    let sleeper = Program::start(Command::new("sleep").arg("1000"));
    let process = format!("/proc/{}", sleeper.id());
    assert!(Path::new(&process).exists());
    drop(sleeper);
    assert!(!Path::new(&process).exists());
}
