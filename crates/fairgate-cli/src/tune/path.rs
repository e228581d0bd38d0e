//! The longest packet that passes the path in both directions: datagrams that nobody may cut, by halving.
//! Errors of ICMP are not needed, and so a path that loses them is measured, too.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::tune::error::TuneError;
use crate::tune::session::Session;
use crate::tune::wire::{LONGEST_PROBE, PROBE, Probe};

/// The longest packet of most paths, bytes, and one that every path carries in practice.
const COMMON: usize = 1500;
const LEAST: usize = 576;

/// How often a length is tried. A lost probe does not look like a long one then.
const TRIES: u32 = 3;

/// Returns the longest IP packet that passes, bytes. `None` if no probe is answered.
pub(crate) fn mtu(session: &Session) -> Result<Option<u32>, TuneError> {
    let mut path = Path {
        socket: session.probes()?,
        session,
        number: u32::MAX / 2,
        // Until the first answer says more.
        patience: Duration::from_secs(1),
    };
    if !path.passes(LEAST)? {
        return Ok(None);
    }
    let longest = LONGEST_PROBE + session.headers();
    let (mut passes, mut fails) = match path.passes(COMMON)? {
        true if path.passes(longest)? => return Ok(Some(longest as u32)),
        true => (COMMON, longest),
        false => (LEAST, COMMON),
    };
    // Next to 1500 there is mostly nothing, and each length that fails costs time.
    if passes == COMMON && !path.passes(COMMON + 1)? {
        return Ok(Some(COMMON as u32));
    }
    while fails - passes > 1 {
        let between = passes.midpoint(fails);
        match path.passes(between)? {
            true => passes = between,
            false => fails = between,
        }
    }
    Ok(Some(passes as u32))
}

struct Path<'a> {
    session: &'a Session,
    socket: UdpSocket,
    /// The number of the next probe. They are far from those of others.
    number: u32,
    patience: Duration,
}

impl Path<'_> {
    /// Returns whether a packet of this length is answered by one of the same length.
    fn passes(&mut self, length: usize) -> Result<bool, TuneError> {
        let length = length - self.session.headers();
        let mut datagram = vec![0; length.max(PROBE)];
        for _ in 0..TRIES {
            self.number += 1;
            let probe = Probe {
                token: self.session.token,
                number: self.number,
                answer: length as u32,
                ..Probe::default()
            };
            probe.write(&mut datagram);
            let sent = Instant::now();
            match self.socket.send(&datagram) {
                // Our own interface is too small.
                Err(error) if error.raw_os_error() == Some(Errno::EMSGSIZE as i32) => return Ok(false),
                // Refused now, perhaps not the next time.
                Err(_) | Ok(_) => {}
            }
            if self.is_answered(sent, length)? {
                let round_trip = sent.elapsed();
                self.patience = (round_trip * 3 + Duration::from_millis(100)).min(Duration::from_secs(1));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_answered(&self, sent: Instant, length: usize) -> Result<bool, TuneError> {
        let mut answer = [0; LONGEST_PROBE];
        loop {
            let left = self.patience.saturating_sub(sent.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            self.socket
                .set_read_timeout(Some(left))
                .map_err(TuneError::system("waiting for a probe"))?;
            if let Ok(received) = self.socket.recv(&mut answer)
                && received >= length
                && Probe::read(&answer[..received]).is_some_and(|probe| probe.number == self.number)
            {
                return Ok(true);
            }
        }
    }
}
