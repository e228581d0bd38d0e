//! Starts `fairgate run` in the router of a test network, and sends TCP through it.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_live::testbed::{Namespace, Network};
use fairgate_run::client::Remote;
use fairgate_run_api::Status;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::program::Program;
use crate::common::{output, until};

/// A configuration without disciplines between the testbed's interfaces.
pub(crate) const PLAIN: &str = "[run]\nleft = \"left\"\nright = \"right\"\n";

/// Packet sockets with two workers, where [`BACKENDS`] are named.
pub(crate) const TWO_WORKERS: &str = "packet, two workers";

/// The back ends for existing interfaces. Tests of forwarding run with each.
pub(crate) const BACKENDS: [&str; 3] = ["packet", "xdp", TWO_WORKERS];

/// The same configuration with a back end.
pub(crate) fn plain(backend: &str) -> String {
    match backend {
        TWO_WORKERS => format!("{PLAIN}workers = 2\n"),
        _ => format!("{PLAIN}backend = \"{backend}\"\n"),
    }
}

/// The time without progress after which a connection has stalled.
pub(crate) const STALLED: Duration = Duration::from_secs(60);

/// A running `fairgate run` in the router of a network.
pub(crate) struct Run {
    /// The program. `None` after its end.
    pub(crate) program: Option<Program>,
    pub(crate) folder: TempDir,
    pub(crate) socket: PathBuf,
}

impl Run {
    /// Starts it, and waits until it forwards.
    pub(crate) fn start(router: &Namespace, configuration: &str) -> Run {
        Run::spawn(router, configuration, &["run", "--json"], |_| {}).wait()
    }

    /// Starts it with these arguments without waiting. `prepare` can change the command.
    pub(crate) fn spawn(
        router: &Namespace,
        configuration: &str,
        words: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let (file, socket) = (folder.path().join("run.toml"), folder.path().join("sock"));
        fs::write(&file, configuration).unwrap();
        let mut command = router.command(env!("CARGO_BIN_EXE_fairgate"));
        command.args(words).arg("--socket").arg(&socket).arg(file);
        Run {
            program: Some(Program::start_with(&mut command, prepare)),
            folder,
            socket,
        }
    }

    /// Waits until it forwards.
    pub(crate) fn wait(mut self) -> Run {
        until("the run forwards", || {
            let is_forwarding = self.remote().status(false).is_ok();
            if !is_forwarding && self.program.as_mut().is_none_or(Program::has_ended) {
                panic!(
                    "the run ended: {}",
                    String::from_utf8_lossy(&self.output().stderr)
                );
            }
            is_forwarding
        });
        self
    }

    /// Returns the run as commands ask it.
    pub(crate) fn remote(&self) -> Remote {
        Remote::from(self.socket.clone())
    }

    pub(crate) fn status(&self) -> Status {
        self.remote().status(false).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let program = self.program.as_ref().expect("the run has not ended");
        program.signal(signal);
    }

    /// Waits for its end. Returns its exit status and output.
    pub(crate) fn output(&mut self) -> Output {
        self.program.take().expect("the run has not ended").output()
    }

    /// Ends it as Ctrl-C does. Returns the final status.
    pub(crate) fn stop(mut self) -> serde_json::Value {
        self.signal(Signal::SIGINT);
        let output = self.output();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!self.socket.exists(), "the status socket is left behind");
        self.folder.close().expect("it is a folder of this test");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Runs a program in a namespace. Returns whether it succeeds.
pub(crate) fn succeeds(namespace: &Namespace, program: &str, arguments: &[&str]) -> bool {
    output(namespace.command(program).args(arguments))
        .status
        .success()
}

/// Runs a program in a namespace, which must succeed. Returns its output.
pub(crate) fn call(namespace: &Namespace, program: &str, arguments: &[&str]) -> String {
    let output = output(namespace.command(program).args(arguments));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Sends bytes from the left host to an address of the right one over TCP, and compares the received bytes.
/// `what` is the name of the case for messages.
pub(crate) fn transfer(network: &Network, address: &str, what: &str) {
    transfer_between(&network.left, &network.right, address, what);
}

/// Sends bytes from a host to an address of another one as [`transfer`] does.
pub(crate) fn transfer_between(from: &Namespace, to: &Namespace, address: &str, what: &str) {
    transfer_of(4_000_000, from, to, address, what);
}

/// Sends so many bytes as [`transfer_between`] does.
pub(crate) fn transfer_of(count: u32, from: &Namespace, to: &Namespace, address: &str, what: &str) {
    let bytes: Vec<u8> = (0..count)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let address: SocketAddr = address.parse().unwrap();
    let bind = || TcpListener::bind(address);
    let listener = to.enter(bind).unwrap().unwrap();
    // The listener's kernel answers before anyone accepts.
    let mut sender = from.enter(|| connect(address)).unwrap().expect(what);
    let (mut receiver, _) = listener.accept().unwrap();
    sender.set_write_timeout(Some(STALLED)).unwrap();
    receiver.set_read_timeout(Some(STALLED)).unwrap();
    thread::scope(|scope| {
        let received = scope.spawn(|| {
            let mut received = Vec::new();
            receiver.read_to_end(&mut received).map(|_| received)
        });
        let sent = sender.write_all(&bytes);
        drop(sender);
        sent.expect(what);
        let received = received.join().unwrap().expect(what);
        assert!(
            received == bytes,
            "the received bytes differ from the sent ones: {what}"
        );
    });
}

/// Connects. The kernel gives a host up that did not answer three requests for its address within three
/// seconds, which a busy machine can miss. Then it is asked again.
fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let began = Instant::now();
    loop {
        match TcpStream::connect_timeout(&address, STALLED) {
            Err(error) if error.kind() == ErrorKind::HostUnreachable && began.elapsed() < STALLED => {}
            other => return other,
        }
    }
}
