//! Where the other end of the line is, and since when it is measured.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};

use crate::tune::error::TuneError;
use crate::tune::kind::Kind;

/// How long the server may take to accept a connection, and to answer. A line with a deep queue is slow.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A server whose name was looked up.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) kind: Kind,
    addresses: Vec<SocketAddr>,
}

/// Looks up a server: a name or an address, with or without a port.
pub(crate) fn resolve(name: &str) -> Result<Named, TuneError> {
    let (kind, host) = Kind::split(name);
    let port = kind.port();
    let host = host.strip_suffix('/').unwrap_or(host);
    let plain = host.trim_matches(['[', ']']);
    // An address of IPv6 has colons, too.
    let found = match host.parse::<SocketAddr>() {
        Ok(address) => Ok(vec![address]),
        Err(_) => match plain.parse::<std::net::IpAddr>() {
            Ok(address) => Ok(vec![SocketAddr::new(address, port)]),
            Err(_) if host.contains(':') => host.to_socket_addrs().map(Iterator::collect),
            Err(_) => (host, port).to_socket_addrs().map(Iterator::collect),
        },
    };
    let failed = |reason: String| TuneError::Name {
        name: name.to_owned(),
        reason,
        port,
    };
    match found {
        Ok(addresses) if addresses.is_empty() => Err(failed("it has none".to_owned())),
        Ok(addresses) => Ok(Named { kind, addresses }),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Where a server is that was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) server: SocketAddr,
    /// Our address on the way to the server.
    pub(crate) local: SocketAddr,
    /// Times of the measurement count from here.
    began: Instant,
}

impl Place {
    /// Connects to the first address of a server that can be reached.
    pub(super) fn reach(named: &Named) -> Result<(Place, TcpStream), TuneError> {
        let mut unreachable = None;
        for &server in &named.addresses {
            match TcpStream::connect_timeout(&server, PATIENCE) {
                Ok(stream) => {
                    let place = Place::of(named.kind, server, &stream);
                    let place = place.map_err(TuneError::system("opening the measurement"))?;
                    return Ok((place, stream));
                }
                Err(source) => {
                    let kind = named.kind;
                    let address = server;
                    unreachable.get_or_insert(TuneError::Unreachable {
                        address,
                        kind,
                        source,
                    });
                }
            }
        }
        Err(unreachable.expect("a name has an address, or is an error"))
    }

    fn of(kind: Kind, server: SocketAddr, stream: &TcpStream) -> std::io::Result<Place> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Place {
            kind,
            server,
            local: stream.local_addr()?,
            began: Instant::now(),
        })
    }

    /// Opens another connection to the server.
    pub(super) fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.server, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Returns the time since the beginning.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns its name: what it is, its address and its port.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.kind.scheme(), self.server)
    }

    /// Returns that what answers is no such server.
    pub(super) fn stranger(&self) -> TuneError {
        TuneError::Stranger {
            address: self.server,
            kind: self.kind,
        }
    }

    /// Returns the header of an IP packet, bytes.
    pub(crate) fn ip_header(&self) -> usize {
        if self.server.is_ipv4() { 20 } else { 40 }
    }

    /// Returns the interface that has our address.
    pub(crate) fn interface(&self) -> Result<String, TuneError> {
        let ours = self.local.ip().to_canonical();
        let has_it = |interface: &InterfaceAddress| {
            let address = interface.address.as_ref();
            let four = address.and_then(|address| address.as_sockaddr_in());
            let six = address.and_then(|address| address.as_sockaddr_in6());
            four.is_some_and(|four| ours == four.ip()) || six.is_some_and(|six| ours == six.ip())
        };
        let interfaces = getifaddrs()
            .map_err(|errno| TuneError::system("looking for the interface of the line")(errno.into()))?;
        let found = interfaces.into_iter().find(has_it);
        found
            .map(|interface| interface.interface_name)
            .ok_or(TuneError::NoInterface(self.local.ip()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_name_or_an_address_with_or_without_a_port() {
        let of = |name: &str| {
            let named = resolve(name).ok()?;
            Some(format!("{}{}", named.kind.scheme(), named.addresses[0]))
        };
        for (name, address) in [
            ("192.0.2.1", "192.0.2.1:4757"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("2001:db8::1", "[2001:db8::1]:4757"),
            ("[2001:db8::1]", "[2001:db8::1]:4757"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("iperf3://192.0.2.1", "iperf3://192.0.2.1:5201"),
            ("iperf3://192.0.2.1:80/", "iperf3://192.0.2.1:80"),
            ("iperf3://[2001:db8::1]", "iperf3://[2001:db8::1]:5201"),
            ("netperf://2001:db8::1", "netperf://[2001:db8::1]:12865"),
        ] {
            assert_eq!(of(name).as_deref(), Some(address), "{name}");
        }
        for name in [
            "",
            "192.0.2.1:port",
            "192.0.2.1:99999",
            "iperf3://",
            "http://192.0.2.1",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
