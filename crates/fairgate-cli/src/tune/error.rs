//! Why a line was not measured.

use std::io;
use std::net::{IpAddr, SocketAddr};

use miette::Diagnostic;
use thiserror::Error;

use crate::tune::kind::Kind;

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum TuneError {
    #[error("`{name}` is no address of a server: {reason}")]
    #[diagnostic(help(
        "give a name or an address, and a port if it is not {port}: 192.0.2.1:{port}; before it `iperf3://` \
         or `netperf://` if it is such a server"
    ))]
    Name { name: String, reason: String, port: u16 },
    #[error("no connection to the server at {address}")]
    #[diagnostic(help("start `{}` there, and let {}", kind.command(), kind.protocols()))]
    Unreachable {
        address: SocketAddr,
        kind: Kind,
        source: io::Error,
    },
    #[error("the server at {0} measures another line now")]
    #[diagnostic(help("it measures one at a time; try again in a minute"))]
    Busy(SocketAddr),
    #[error("what answers at {address} is no `{}` that we know", kind.command())]
    #[diagnostic(help("{}", stranger(*kind)))]
    Stranger { address: SocketAddr, kind: Kind },
    #[error("the server at {address} does not measure: {reason}")]
    #[diagnostic(help("let its administrator allow it, or use a `fairgate tune --serve`"))]
    Refused { address: SocketAddr, reason: String },
    #[error("the server answers by TCP, but {sent} probes by UDP had no answer")]
    #[diagnostic(help("let UDP pass to the same port, in each firewall between here and the server"))]
    NoProbes { sent: u64 },
    #[error("none of {sent} connections that were opened to time the line was answered in time")]
    #[diagnostic(help("let the server accept several connections a second from here"))]
    NoRoundTrips { sent: u64 },
    #[error("nothing came through {direction} in {seconds} s of load")]
    #[diagnostic(help("try again with a longer `--load`; look at the line's signal if it stays so"))]
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

/// Returns what to do if something else answers.
fn stranger(kind: Kind) -> &'static str {
    match kind {
        Kind::Fairgate => {
            "install the same version of fairgate on both machines; write `iperf3://` or `netperf://` before \
             the address if it is such a server"
        }
        Kind::Iperf3 => "name the port of an iperf3 server, version 3.0 or later: iperf3://192.0.2.1:5201",
        Kind::Netperf => {
            "name the port of a netserver, version 2.5 or later, without a passphrase: \
             netperf://192.0.2.1:12865"
        }
    }
}

impl TuneError {
    /// Converts an error that occurred during `action`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> TuneError {
        move |source| TuneError::System { action, source }
    }
}
