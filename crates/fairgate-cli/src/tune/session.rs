//! The client's end of a measurement.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};

use crate::tune::error::TuneError;
use crate::tune::wire::{self, Bin, Opened, Request, Token, What};

/// The port if none is given. Nobody has registered it.
pub(crate) const PORT: u16 = 4757;

/// How long the server may take to accept a connection, and to answer. A line with a deep queue is slow.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open measurement.
pub(crate) struct Session {
    pub(crate) server: SocketAddr,
    /// Our address on the way to the server.
    pub(crate) local: SocketAddr,
    pub(crate) token: Token,
    /// Times of the measurement count from here.
    pub(crate) began: Instant,
    control: TcpStream,
}

/// Looks up a server: a name or an address, with or without a port.
pub(crate) fn resolve(name: &str) -> Result<Vec<SocketAddr>, TuneError> {
    let plain = name.trim_matches(['[', ']']);
    // An address of IPv6 has colons, too.
    let found = match name.parse::<SocketAddr>() {
        Ok(address) => Ok(vec![address]),
        Err(_) => match plain.parse::<std::net::IpAddr>() {
            Ok(address) => Ok(vec![SocketAddr::new(address, PORT)]),
            Err(_) if name.contains(':') => name.to_socket_addrs().map(Iterator::collect),
            Err(_) => (name, PORT).to_socket_addrs().map(Iterator::collect),
        },
    };
    let failed = |reason: String| TuneError::Name {
        name: name.to_owned(),
        reason,
        port: PORT,
    };
    match found {
        Ok(addresses) if addresses.is_empty() => Err(failed("it has none".to_owned())),
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(failed(error.to_string())),
    }
}

impl Session {
    /// Opens a measurement at the first of these addresses that can be reached.
    pub(crate) fn open(servers: &[SocketAddr]) -> Result<Session, TuneError> {
        let mut unreachable = None;
        for &address in servers {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(control) => return Session::at(address, control),
                Err(source) => {
                    unreachable.get_or_insert(TuneError::Unreachable { address, source });
                }
            }
        }
        Err(unreachable.expect("a name has an address, or is an error"))
    }

    fn at(server: SocketAddr, mut control: TcpStream) -> Result<Session, TuneError> {
        let failed = || TuneError::system("opening the measurement");
        let local = control.local_addr().map_err(failed())?;
        control.set_nodelay(true).map_err(failed())?;
        control.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
        control.set_write_timeout(Some(PATIENCE)).map_err(failed())?;
        let open = Request {
            what: What::Open,
            token: Token::default(),
        };
        control.write_all(&open.bytes()).map_err(failed())?;
        let mut answer = [0; wire::OPENED];
        // A server of something else answers with something else, or waits for more.
        let answered = control.read_exact(&mut answer).ok();
        match answered.and_then(|()| Opened::read(&answer)) {
            Some(Opened::Token(token)) => Ok(Session {
                server,
                local,
                token,
                began: Instant::now(),
                control,
            }),
            Some(Opened::Busy) => Err(TuneError::Busy(server)),
            None => Err(TuneError::Stranger(server)),
        }
    }

    /// Returns the time since the beginning.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the headers of a probe, bytes: IP and UDP.
    pub(crate) fn headers(&self) -> usize {
        if self.server.is_ipv4() { 28 } else { 48 }
    }

    /// Opens another connection of this measurement.
    pub(crate) fn connect(&self, what: What) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.server, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = Request {
            what,
            token: self.token,
        };
        stream.write_all(&request.bytes())?;
        Ok(stream)
    }

    /// Opens a socket for probes, which are never cut into fragments.
    pub(crate) fn probes(&self) -> Result<UdpSocket, TuneError> {
        let open = || {
            let socket = UdpSocket::bind(SocketAddr::new(self.local.ip(), 0))?;
            socket.connect(self.server)?;
            fairgate_live::testbed::send_whole(&socket, self.server.is_ipv6())?;
            Ok(socket)
        };
        open().map_err(TuneError::system("opening a socket for probes"))
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

    /// Asks the server what it has received so far.
    pub(crate) fn record(&self) -> Result<Vec<Bin>, TuneError> {
        let request = Request {
            what: What::Report,
            token: self.token,
        };
        let read = || {
            let mut control = &self.control;
            control.write_all(&request.bytes())?;
            let mut number = [0; 4];
            control.read_exact(&mut number)?;
            let Some(length) = wire::report_length(number) else {
                return Ok(None);
            };
            let mut bytes = vec![0; length];
            control.read_exact(&mut bytes)?;
            Ok(Some(wire::read_bins(&bytes)))
        };
        let bins = read().map_err(TuneError::system("asking the server what it has received"))?;
        bins.ok_or(TuneError::Stranger(self.server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_name_or_an_address_with_or_without_a_port() {
        let of = |name: &str| resolve(name).map(|found| found[0].to_string()).ok();
        for (name, address) in [
            ("192.0.2.1", "192.0.2.1:4757"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("2001:db8::1", "[2001:db8::1]:4757"),
            ("[2001:db8::1]", "[2001:db8::1]:4757"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ] {
            assert_eq!(of(name).as_deref(), Some(address), "{name}");
        }
        for name in ["", "192.0.2.1:port", "192.0.2.1:99999"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
