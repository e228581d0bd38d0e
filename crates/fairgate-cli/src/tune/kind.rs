//! What is at the other end of the line.

use crate::tune::wire::PORT;

/// The program that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `fairgate tune --serve`.
    Fairgate,
    /// `iperf3 -s`.
    Iperf3,
    /// `netserver`, of netperf.
    Netperf,
}

impl Kind {
    /// Splits the name of a server: `iperf3://192.0.2.1` is an iperf3 server at this address.
    pub(crate) fn split(name: &str) -> (Kind, &str) {
        [Kind::Iperf3, Kind::Netperf]
            .into_iter()
            .find_map(|kind| Some((kind, name.strip_prefix(kind.scheme())?)))
            .unwrap_or((Kind::Fairgate, name))
    }

    /// Returns what is written before the name of such a server.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Kind::Fairgate => "",
            Kind::Iperf3 => "iperf3://",
            Kind::Netperf => "netperf://",
        }
    }

    /// Returns the port if none is given.
    pub(crate) fn port(self) -> u16 {
        match self {
            Kind::Fairgate => PORT,
            Kind::Iperf3 => 5201,
            Kind::Netperf => 12_865,
        }
    }

    /// Returns the command that starts it.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Kind::Fairgate => "fairgate tune --serve",
            Kind::Iperf3 => "iperf3 -s",
            Kind::Netperf => "netserver",
        }
    }

    /// Returns what must pass to it.
    pub(crate) fn protocols(self) -> &'static str {
        match self {
            Kind::Fairgate => "its port pass by TCP and UDP",
            Kind::Iperf3 => "its port pass by TCP",
            Kind::Netperf => "its port and the ports of its data pass by TCP",
        }
    }
}
