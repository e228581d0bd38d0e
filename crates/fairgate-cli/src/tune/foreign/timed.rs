//! A connection that is given up after some time, also if the other end sends a byte now and then.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(super) struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Timed<'_> {
    /// Gives the connection so long from now on.
    pub(super) fn of(stream: &TcpStream, patience: Duration) -> Timed<'_> {
        Timed {
            stream,
            until: Instant::now() + patience,
        }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(left),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_byte_now_and_then_does_not_go_on_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        thread::spawn(move || {
            let (mut slow, _) = listener.accept().unwrap();
            while slow.write_all(b"{").is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
        // At this pace they would take more than an hour.
        let read = Timed::of(&stream, Duration::from_millis(300)).read_exact(&mut [0; 1 << 19]);
        let kind = read.unwrap_err().kind();
        assert!(
            matches!(kind, ErrorKind::TimedOut | ErrorKind::WouldBlock),
            "{kind}"
        );
    }
}
