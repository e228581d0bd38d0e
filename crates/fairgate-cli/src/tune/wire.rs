//! The bytes between client and server. All numbers are big-endian.
//!
//! A TCP connection begins with a request of [`REQUEST`] bytes. The first one of a measurement opens it; its
//! answer has a token, which all other requests and all probes must have. So a sender of datagrams has proved
//! by TCP that it is at its address. Probes are UDP datagrams, and an answer is never longer than its probe:
//! the server can't amplify.

use std::time::Duration;

/// The port if none is given. Nobody has registered it.
pub(crate) const PORT: u16 = 4757;

/// The first bytes of every message: the protocol and its version.
const MAGIC: [u8; 8] = *b"fgtune 1";

/// Proves that the sender has opened the measurement.
pub(crate) type Token = [u8; 16];

/// The length of a request, bytes.
pub(crate) const REQUEST: usize = 32;
/// The length of the answer to [`What::Open`], bytes.
pub(crate) const OPENED: usize = 32;
/// The length of a probe without padding, and of the shortest answer, bytes of UDP payload.
pub(crate) const PROBE: usize = 64;
/// The longest probe, bytes of UDP payload.
pub(crate) const LONGEST_PROBE: usize = 9_000;
/// The answer to [`What::Ask`].
pub(crate) const ASKED: [u8; 8] = *b"answered";

/// The width of a bin of the server's record.
pub(crate) const BIN: Duration = Duration::from_millis(50);
/// The most bins of a record: 150 s.
pub(crate) const MOST_BINS: usize = 3_000;
const BIN_BYTES: usize = 20;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Open a measurement. The connection stays open as long as it lasts.
    Open,
    /// Receive what this connection sends.
    Up,
    /// Send on this connection for so many milliseconds.
    Down(u32),
    /// Answer at once, and close.
    Ask,
    /// Send the record, on the connection that has opened the measurement.
    Report,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) what: What,
    /// Zeros to open a measurement.
    pub(crate) token: Token,
}

impl Request {
    /// Returns it as bytes.
    pub(crate) fn bytes(self) -> [u8; REQUEST] {
        let (kind, value) = match self.what {
            What::Open => (1, 0),
            What::Up => (2, 0),
            What::Down(millis) => (3, millis),
            What::Ask => (4, 0),
            What::Report => (5, 0),
        };
        let mut bytes = [0; REQUEST];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&u32::to_be_bytes(kind));
        bytes[12..16].copy_from_slice(&value.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.token);
        bytes
    }

    /// Reads it. `None` if it is no request of this version.
    pub(crate) fn read(bytes: &[u8]) -> Option<Request> {
        let bytes: &[u8; REQUEST] = bytes.try_into().ok()?;
        let what = match (has_magic(bytes)?, word(bytes, 8), word(bytes, 12)) {
            ((), 1, 0) => What::Open,
            ((), 2, 0) => What::Up,
            ((), 3, millis) => What::Down(millis),
            ((), 4, 0) => What::Ask,
            ((), 5, 0) => What::Report,
            _ => return None,
        };
        let token = bytes[16..32].try_into().ok()?;
        Some(Request { what, token })
    }
}

/// The answer to [`What::Open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The measurement is open.
    Token(Token),
    /// The server measures for somebody else.
    Busy,
}

impl Opened {
    /// Returns it as bytes.
    pub(crate) fn bytes(self) -> [u8; OPENED] {
        let mut bytes = [0; OPENED];
        bytes[..8].copy_from_slice(&MAGIC);
        match self {
            Opened::Token(token) => bytes[16..32].copy_from_slice(&token),
            Opened::Busy => bytes[8..12].copy_from_slice(&1u32.to_be_bytes()),
        }
        bytes
    }

    /// Reads it. `None` if it is no answer of this version.
    pub(crate) fn read(bytes: &[u8]) -> Option<Opened> {
        let bytes: &[u8; OPENED] = bytes.try_into().ok()?;
        has_magic(bytes)?;
        match word(bytes, 8) {
            0 => Some(Opened::Token(bytes[16..32].try_into().ok()?)),
            1 => Some(Opened::Busy),
            _ => None,
        }
    }
}

/// A probe, or its answer, whose last three fields are the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) token: Token,
    pub(crate) number: u32,
    /// The wanted length of the answer, bytes of UDP payload.
    pub(crate) answer: u32,
    /// When it was sent, ns on the client's clock.
    pub(crate) sent: u64,
    /// When it was received, ns on the server's clock.
    pub(crate) received: u64,
    /// When it was answered, ns on the server's clock.
    pub(crate) answered: u64,
    /// How many probes the server has received in this measurement, this one included.
    pub(crate) count: u64,
}

impl Probe {
    /// Writes it to the beginning of a datagram. What follows is padding.
    pub(crate) fn write(&self, datagram: &mut [u8]) {
        datagram[..8].copy_from_slice(&MAGIC);
        datagram[8..24].copy_from_slice(&self.token);
        datagram[24..28].copy_from_slice(&self.number.to_be_bytes());
        datagram[28..32].copy_from_slice(&self.answer.to_be_bytes());
        let times = [self.sent, self.received, self.answered, self.count];
        for (time, place) in times.iter().zip(datagram[32..PROBE].chunks_exact_mut(8)) {
            place.copy_from_slice(&time.to_be_bytes());
        }
    }

    /// Reads it. `None` if it is no probe of this version.
    pub(crate) fn read(datagram: &[u8]) -> Option<Probe> {
        if datagram.len() < PROBE {
            return None;
        }
        has_magic(datagram)?;
        Some(Probe {
            token: datagram[8..24].try_into().ok()?,
            number: word(datagram, 24),
            answer: word(datagram, 28),
            sent: long(datagram, 32),
            received: long(datagram, 40),
            answered: long(datagram, 48),
            count: long(datagram, 56),
        })
    }

    /// Returns the length of its answer: what is wanted, but never more than what has come.
    pub(crate) fn answer_length(&self, received: usize) -> usize {
        (self.answer as usize).clamp(PROBE, received.max(PROBE))
    }
}

/// What happened within [`BIN`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    /// Payload delivered by all connections.
    pub(crate) bytes: u64,
    /// The sum and the number of the round trips of connections that send, as their kernel has smoothed
    /// them, µs.
    pub(crate) round_trips_us: u64,
    pub(crate) round_trips: u32,
}

/// Returns a record as bytes: its number of bins, and they.
pub(crate) fn report(bins: &[Bin]) -> Vec<u8> {
    let bins = &bins[..bins.len().min(MOST_BINS)];
    let mut bytes = (bins.len() as u32).to_be_bytes().to_vec();
    for bin in bins {
        bytes.extend(bin.bytes.to_be_bytes());
        bytes.extend(bin.round_trips_us.to_be_bytes());
        bytes.extend(bin.round_trips.to_be_bytes());
    }
    bytes
}

/// Returns how many bytes of bins follow the number of bins. `None` if there are too many.
pub(crate) fn report_length(number: [u8; 4]) -> Option<usize> {
    let bins = u32::from_be_bytes(number) as usize;
    (bins <= MOST_BINS).then_some(bins * BIN_BYTES)
}

/// Reads the bins of a record.
pub(crate) fn read_bins(bytes: &[u8]) -> Vec<Bin> {
    let bin = |bytes: &[u8]| Bin {
        bytes: long(bytes, 0),
        round_trips_us: long(bytes, 8),
        round_trips: word(bytes, 16),
    };
    bytes.chunks_exact(BIN_BYTES).map(bin).collect()
}

fn has_magic(bytes: &[u8]) -> Option<()> {
    bytes.starts_with(&MAGIC).then_some(())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn what() -> impl Strategy<Value = What> {
        prop_oneof![
            Just(What::Open),
            Just(What::Up),
            any::<u32>().prop_map(What::Down),
            Just(What::Ask),
            Just(What::Report),
        ]
    }

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_written(
            what in what(), token: Token, numbers: (u32, u32), times: [u64; 4], padding in 0usize..2000
        ) {
            let request = Request { what, token };
            prop_assert_eq!(Request::read(&request.bytes()), Some(request));
            for opened in [Opened::Token(token), Opened::Busy] {
                prop_assert_eq!(Opened::read(&opened.bytes()), Some(opened));
            }
            let probe = Probe {
                token,
                number: numbers.0,
                answer: numbers.1,
                sent: times[0],
                received: times[1],
                answered: times[2],
                count: times[3],
            };
            let mut datagram = vec![0; PROBE + padding];
            probe.write(&mut datagram);
            prop_assert_eq!(Probe::read(&datagram), Some(probe));
            let answer = probe.answer_length(datagram.len());
            prop_assert!((PROBE..=datagram.len()).contains(&answer));
        }

        #[test]
        fn records_are_read_as_they_were_written(bins in vec(any::<(u64, u64, u32)>(), 0..100)) {
            let bin = |&(bytes, round_trips_us, round_trips): &_| Bin { bytes, round_trips_us, round_trips };
            let bins: Vec<Bin> = bins.iter().map(bin).collect();
            let bytes = report(&bins);
            let (number, rest) = bytes.split_at(4);
            prop_assert_eq!(report_length(number.try_into().unwrap()), Some(rest.len()));
            prop_assert_eq!(read_bins(rest), bins);
        }

        /// What another program sends is refused, and never more than a record's most bytes are awaited.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200), begins_well: bool) {
            let mut bytes = bytes;
            if begins_well {
                let kept = bytes.len().min(MAGIC.len());
                bytes[..kept].copy_from_slice(&MAGIC[..kept]);
            }
            if let Some(request) = Request::read(&bytes) {
                prop_assert_eq!(request.bytes().to_vec(), bytes.clone());
            }
            prop_assert!(Opened::read(&bytes).is_none() || bytes.len() == OPENED);
            prop_assert_eq!(Probe::read(&bytes).is_some(), begins_well && bytes.len() >= PROBE);
            if let Some(number) = bytes.first_chunk() {
                prop_assert!(report_length(*number).is_none_or(|length| length <= MOST_BINS * BIN_BYTES));
            }
            read_bins(&bytes);
        }
    }
}
