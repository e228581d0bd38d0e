//! The client's end of a measurement.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};

use crate::tune::error::TuneError;
use crate::tune::place::{Named, Place};
use crate::tune::wire::{self, Bin, Opened, Request, Token, What};

/// An open measurement.
pub(crate) struct Session {
    pub(crate) place: Place,
    pub(crate) token: Token,
    control: TcpStream,
}

impl Session {
    /// Opens a measurement.
    pub(crate) fn open(named: &Named) -> Result<Session, TuneError> {
        let (place, mut control) = Place::reach(named)?;
        let open = Request {
            what: What::Open,
            token: Token::default(),
        };
        control
            .write_all(&open.bytes())
            .map_err(TuneError::system("opening the measurement"))?;
        let mut answer = [0; wire::OPENED];
        // A server of something else answers with something else, or waits for more.
        let answered = control.read_exact(&mut answer).ok();
        match answered.and_then(|()| Opened::read(&answer)) {
            Some(Opened::Token(token)) => Ok(Session {
                place,
                token,
                control,
            }),
            Some(Opened::Busy) => Err(TuneError::Busy(place.server)),
            None => Err(place.stranger()),
        }
    }

    /// Returns the headers of a probe, bytes: IP and UDP.
    pub(crate) fn headers(&self) -> usize {
        self.place.ip_header() + 8
    }

    /// Opens another connection of this measurement.
    pub(crate) fn connect(&self, what: What) -> std::io::Result<TcpStream> {
        let mut stream = self.place.connect()?;
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
            let socket = UdpSocket::bind(SocketAddr::new(self.place.local.ip(), 0))?;
            socket.connect(self.place.server)?;
            fairgate_live::testbed::send_whole(&socket, self.place.server.is_ipv6())?;
            Ok(socket)
        };
        open().map_err(TuneError::system("opening a socket for probes"))
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
        bins.ok_or(self.place.stranger())
    }
}
