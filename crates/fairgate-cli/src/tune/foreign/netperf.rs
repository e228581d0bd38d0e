//! The control connection of a netserver, version 2.5 or later: its tests TCP_STREAM and TCP_MAERTS.
//!
//! A request and its answer are 164 numbers of 32 bits, big-endian (`netlib.h`, `nettest_bsd.h`). The server
//! answers with the port of the test's connection. How a test ends does not matter to it: each has a process
//! of its own, which ends with its connections.

use std::io::{Read, Write};

use crate::tune::foreign::stop::Stop;

/// The numbers of a message: its type, one of no use here, and those of the test.
const NUMBERS: usize = 164;
/// The length of a message, bytes.
pub(super) const MESSAGE: usize = NUMBERS * 4;

/// The types of requests (`netlib.h`). The type of an answer is the next number.
const TCP_STREAM: u32 = 10;
const TCP_MAERTS: u32 = 94;

/// Where parameters stand: the sizes of the buffers of the server's socket, the alignment of its own one, how
/// long the test is, in seconds, and the kind of the address.
const SEND_BUFFER: usize = 2;
const RECEIVE_BUFFER: usize = 2 + 1;
const ALIGNMENT: usize = 2 + 3;
const TEST_LENGTH: usize = 2 + 8;
const FAMILY: usize = 2 + 14;
/// Leaves the size of a buffer to the server's kernel.
const DEFAULT: u32 = u32::MAX;
/// Kinds of addresses (`nettest_bsd.h`).
const IPV4: u32 = 4;
const IPV6: u32 = 6;

/// Where an answer has the number of an error, and the port.
const ERROR: usize = 1;
const PORT: usize = 2 + 6;

/// A test of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// The server sends.
    pub(super) is_reverse: bool,
    pub(super) seconds: u32,
    pub(super) is_ipv6: bool,
}

impl Test {
    fn kind(&self) -> u32 {
        if self.is_reverse { TCP_MAERTS } else { TCP_STREAM }
    }

    /// Returns the request. The server chooses what is 0. Only the alignment it divides by.
    fn request(&self) -> [u8; MESSAGE] {
        let mut request = [0; MESSAGE];
        let family = if self.is_ipv6 { IPV6 } else { IPV4 };
        for (place, number) in [
            (0, self.kind()),
            (SEND_BUFFER, DEFAULT),
            (RECEIVE_BUFFER, DEFAULT),
            (ALIGNMENT, 8),
            (TEST_LENGTH, self.seconds),
            (FAMILY, family),
        ] {
            request[4 * place..4 * place + 4].copy_from_slice(&number.to_be_bytes());
        }
        request
    }
}

/// Asks for a test. Returns the port of its connection.
pub(super) fn prepare(mut control: impl Read + Write, test: &Test) -> Result<u16, Stop> {
    control.write_all(&test.request())?;
    let mut answer = [0; MESSAGE];
    control.read_exact(&mut answer)?;
    let number = |place: usize| u32::from_be_bytes(std::array::from_fn(|byte| answer[4 * place + byte]));
    if number(0) != test.kind() + 1 {
        return Err(Stop::Stranger);
    }
    match (number(ERROR), u16::try_from(number(PORT))) {
        (0, Ok(port)) if port > 0 => Ok(port),
        (0, _) => Err(Stop::Stranger),
        (error, _) => Err(Stop::Refused(format!("error {error} of its system"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::foreign::answers::Answers;

    /// A message with these numbers at these places, and zeros.
    fn message(numbers: &[(usize, u32)]) -> Vec<u8> {
        let mut message = vec![0; MESSAGE];
        for (place, number) in numbers {
            message[4 * place..4 * place + 4].copy_from_slice(&number.to_be_bytes());
        }
        message
    }

    const DOWN: Test = Test {
        is_reverse: true,
        seconds: 18,
        is_ipv6: false,
    };

    #[test]
    fn a_test_is_asked_for_as_servers_expect() {
        for (test, kind, family) in [
            (DOWN, 94, 4),
            (
                Test {
                    is_reverse: false,
                    is_ipv6: true,
                    ..DOWN
                },
                10,
                6,
            ),
        ] {
            // What netserver 2.7.0 has answered: sizes of buffers, no CPU, the port.
            let answer = message(&[(0, kind + 1), (3, 16_384), (7, 16_384), (8, 41_233)]);
            let mut server = Answers::of(&answer);
            assert_eq!(prepare(&mut server, &test).unwrap(), 41_233);
            let request = message(&[
                (0, kind),
                (2, u32::MAX),
                (3, u32::MAX),
                (5, 8),
                (10, 18),
                (16, family),
            ]);
            assert_eq!(server.told, request);
        }
    }

    #[test]
    fn servers_that_refuse_are_told_apart() {
        let of = |answer: &[u8]| prepare(&mut Answers::of(answer), &DOWN).unwrap_err();
        assert!(matches!(of(&message(&[(0, 95), (1, 98)])), Stop::Refused(_)));
        for strange in [
            &[(0, 95)][..],
            &[(0, 95), (8, 65_536)],
            &[(0, 11), (8, 4000)],
            &[],
        ] {
            assert!(matches!(of(&message(strange)), Stop::Stranger), "{strange:?}");
        }
        assert!(matches!(of(b"SSH-2.0-OpenSSH_9.2"), Stop::Broken(_)));
    }
}
