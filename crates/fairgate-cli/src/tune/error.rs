//! Why a line was not measured.

use std::io;
use std::net::{IpAddr, SocketAddr};

use miette::Diagnostic;
use thiserror::Error;

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum TuneError {
    #[error("`{name}` is no address of a server: {reason}")]
    #[diagnostic(help("give a name or an address, and a port if it is not {port}: 192.0.2.1:{port}"))]
    Name { name: String, reason: String, port: u16 },
    #[error("no connection to the server at {address}")]
    #[diagnostic(help("start `fairgate tune --serve` there, and let its port pass by TCP and UDP"))]
    Unreachable { address: SocketAddr, source: io::Error },
    #[error("the server at {0} measures another line now")]
    #[diagnostic(help("it measures one at a time; try again in a minute"))]
    Busy(SocketAddr),
    #[error("what answers at {0} is no `fairgate tune --serve` of this version")]
    #[diagnostic(help("install the same version of fairgate on both machines"))]
    Stranger(SocketAddr),
    #[error("the server answers by TCP, but {sent} probes by UDP had no answer")]
    #[diagnostic(help("let UDP pass to the same port, in each firewall between here and the server"))]
    NoProbes { sent: u64 },
    #[error("nothing came through {direction} in {seconds} s of load")]
    #[diagnostic(help("try again with a longer `--duration`; look at the line's signal if it stays so"))]
    Nothing { direction: &'static str, seconds: f64 },
    #[error("{action} failed")]
    #[diagnostic(help("the measurement was given up; try again"))]
    System { action: &'static str, source: io::Error },
    #[error("no interface has our address {0} any more")]
    #[diagnostic(help("name the interface of the line: --dev INTERFACE"))]
    NoInterface(IpAddr),
    #[error("can't listen at {address}")]
    #[diagnostic(help("choose another address or port: --serve ADDRESS:PORT"))]
    Listen { address: SocketAddr, source: io::Error },
    #[error("shaping the line needs privileges that this process does not have")]
    #[diagnostic(help("run it as root, or add --dry-run to measure only"))]
    Privileges,
    #[error("the shaper does not run: {0}")]
    #[diagnostic(help("the line is as it was; add --dry-run to measure only"))]
    NotRun(String),
    #[error("interrupted")]
    #[diagnostic(help("the line is as it was; no result was produced"))]
    Interrupted,
}

impl TuneError {
    /// Converts an error that occurred during `action`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> TuneError {
        move |source| TuneError::System { action, source }
    }
}
