//! Runs `fairgate run` in the router of a test network, and sends traffic through it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use fairgate_live::status::{Status, default_socket, fetch};
use fairgate_live::testbed::{Namespace, Network};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// A configuration that forwards between the testbed's interfaces without queues.
pub(crate) const PLAIN: &str = "[run]\nleft = \"left\"\nright = \"right\"\n";

/// A `fairgate run` in the router of a network.
pub(crate) struct Run {
    pub(crate) child: Option<Child>,
    pub(crate) folder: TempDir,
    pub(crate) socket: PathBuf,
}

impl Run {
    /// Starts a run without waiting.
    pub(crate) fn spawn(router: &Namespace, configuration: &str) -> Run {
        Run::spawn_with(router, configuration, &["run", "--json"], |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        })
    }

    /// Starts a run with other arguments, and after `prepare` changed the command, without waiting.
    pub(crate) fn spawn_with(
        router: &Namespace,
        configuration: &str,
        words: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Run {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("run.toml"), configuration).unwrap();
        let mut command = router.command(env!("CARGO_BIN_EXE_fairgate"));
        command
            .args(words)
            .arg("--socket")
            .arg(folder.path().join("sock"));
        command.arg(folder.path().join("run.toml"));
        prepare(&mut command);
        let child = command.spawn().unwrap();
        let socket = folder.path().join("sock");
        Run {
            child: Some(child),
            folder,
            socket,
        }
    }

    /// Starts a run and waits until it forwards.
    pub(crate) fn start(router: &Namespace, configuration: &str) -> Run {
        Run::spawn(router, configuration).wait()
    }

    /// Starts `fairgate LANGUAGE` with a script, from the left interface to the right one, and waits until it
    /// forwards.
    pub(crate) fn of_script(router: &Namespace, language: &str, script: &str) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        fs::write(&file, script).unwrap();
        let child = router
            .command(env!("CARGO_BIN_EXE_fairgate"))
            .args(["--json", language])
            .arg(file)
            .args(["--run", "left"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let socket = default_socket("right");
        let child = Some(child);
        Run {
            child,
            folder,
            socket,
        }
        .wait()
    }

    pub(crate) fn wait(self) -> Run {
        let mut run = self;
        while fetch(&run.socket()).is_err() {
            if run.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                panic!("the run ended: {}", String::from_utf8_lossy(&run.output().stderr));
            }
            thread::sleep(Duration::from_millis(10));
        }
        run
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    pub(crate) fn status(&self) -> Status {
        fetch(&self.socket()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().expect("the run has not ended").id();
        kill(Pid::from_raw(id as i32), signal).unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn output(&mut self) -> Output {
        self.child
            .take()
            .expect("the run has not ended")
            .wait_with_output()
            .unwrap()
    }

    /// Ends the run as Ctrl-C does, and returns the final status.
    pub(crate) fn stop(mut self) -> serde_json::Value {
        self.signal(Signal::SIGINT);
        let output = self.output();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!self.socket().exists(), "the status socket is left behind");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs `fairgate run`, which must fail, and returns exit code and message.
pub(crate) fn refusal(router: &Namespace, configuration: &str) -> (Option<i32>, String) {
    let output = Run::spawn(router, configuration).output();
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

/// Sends bytes over TCP from the left host to an address of the right one, and compares what arrives.
pub(crate) fn transfer(network: &Network, address: &str) {
    let bytes: Vec<u8> = (0..4_000_000u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let address: SocketAddr = address.parse().unwrap();
    let listener = network
        .right
        .enter(|| TcpListener::bind(address))
        .unwrap()
        .unwrap();
    // The kernel of the listener completes the connection before it is accepted.
    let mut sender = network
        .left
        .enter(|| TcpStream::connect(address))
        .unwrap()
        .unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        let received = scope.spawn(|| {
            let mut received = Vec::new();
            receiver.read_to_end(&mut received).map(|_| received)
        });
        let sent = sender.write_all(&bytes);
        drop(sender);
        sent.unwrap();
        let received = received.join().unwrap().unwrap();
        assert!(
            received == bytes,
            "the bytes that arrive at {address} differ from those sent"
        );
    });
}

pub(crate) fn promiscuity(network: &Network) -> Vec<u64> {
    let interfaces = ["left", "right"].iter();
    interfaces
        .map(|interface| {
            let text = network
                .router
                .ip(&["-d", "-j", "link", "show", "dev", interface])
                .unwrap();
            let links: serde_json::Value = serde_json::from_str(&text).unwrap();
            links[0]["promiscuity"].as_u64().unwrap()
        })
        .collect()
}

pub(crate) fn ping(network: &Network, address: &str) -> bool {
    let status = network
        .left
        .command("ping")
        .args(["-n", "-c", "3", "-i", "0.05", "-W", "5", address])
        .output();
    status.unwrap().status.success()
}
