//! Fills a TCP connection, on whichever end sends.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

use fairgate_live::testbed::limit_unsent;
use nix::sys::socket::{setsockopt, sockopt};

/// How long a write may wait.
const TICK: Duration = Duration::from_millis(50);
/// What is written and read at once, bytes.
pub(crate) const CHUNK: usize = 1 << 16;
/// What a sender gives the kernel beyond what it has sent, bytes: enough for a fast line until the next one.
const UNSENT: u32 = 1 << 17;

/// Sends as much as the connection takes, as long as `goes_on`, which is told of what was sent at least once
/// in each [`TICK`]. What is still queued when the connection is closed is discarded, so that what follows
/// finds an idle line.
pub(crate) fn flood(
    mut stream: &TcpStream,
    mut goes_on: impl FnMut(&TcpStream, usize) -> bool,
) -> io::Result<()> {
    limit_unsent(stream, UNSENT)?;
    // CUBIC leaves slow start at the first delay, and then takes many seconds to fill a deep queue. Reno
    // fills it at once. If this machine's users may not choose it, it is what the machine has.
    let _ = setsockopt(stream, sockopt::TcpCongestion, &"reno".into());
    stream.set_write_timeout(Some(TICK))?;
    let bytes = incompressible();
    loop {
        let count = match stream.write(&bytes) {
            Ok(count) => count,
            Err(error) if is_timeout(&error) => 0,
            Err(error) => return Err(error),
        };
        if !goes_on(stream, count) {
            break;
        }
    }
    discard(stream)
}

/// Makes a connection discard what it still has to send when it is closed.
pub(crate) fn discard(stream: &TcpStream) -> io::Result<()> {
    let discard = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    Ok(setsockopt(stream, sockopt::Linger, &discard)?)
}

/// Bytes that nothing on the way makes fewer (xorshift, Marsaglia 2003).
fn incompressible() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    };
    std::iter::repeat_with(next).take(CHUNK / 8).flatten().collect()
}

/// Returns whether nothing came, or nothing could be sent, within the timeout.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
