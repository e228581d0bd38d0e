//! The programs at both ends of a TCP connection, with blocking sockets: each end has a thread.

use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use fairgate_live::testbed::limit_unsent;
use fairgate_sim::{Application, Burst, Distribution, Draws};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use crate::lab::samples::{Notes, Over, Zero};
use crate::lab::sockets::TICK;

/// What may be in the send buffer and not sent yet. When a source stops, this is still sent.
const UNSENT: u32 = 128 * 1024;
/// The bytes of a write.
const WRITE: usize = 64 * 1024;

/// What the sending end of data tells the other end before it sends: how much to read, and since when.
struct Expected {
    bytes: u64,
    since: Instant,
}

/// A connection and its program.
pub(crate) struct Exchange<'a> {
    pub(crate) application: &'a Application,
    pub(crate) draws: Draws,
    pub(crate) zero: Zero,
    /// When the source starts and stops, since the beginning of the run.
    pub(crate) start: Duration,
    pub(crate) stop: Duration,
    pub(crate) notes: &'a Notes,
    pub(crate) over: &'a Over,
}

impl Exchange<'_> {
    /// Prepares both ends of an established connection.
    pub(crate) fn prepare(ends: &[TcpStream; 2]) -> io::Result<()> {
        for end in ends {
            end.set_nodelay(true)?;
            end.set_read_timeout(Some(TICK))?;
            end.set_write_timeout(Some(TICK))?;
            limit_unsent(end, UNSENT)?;
        }
        Ok(())
    }

    /// Runs both ends until the source stops or the run is over. `sender` sends the data.
    pub(crate) fn run(mut self, sender: &TcpStream, receiver: &TcpStream) -> io::Result<()> {
        if matches!(self.application, Application::Requests(_)) {
            return self.exchange(sender, receiver);
        }
        let (tell, told) = sync_channel::<Expected>(1024);
        std::thread::scope(|scope| {
            let (notes, over, zero, application) = (self.notes, self.over, self.zero, self.application);
            let reader = scope.spawn(move || match application {
                Application::Transfers { .. } => read_transfers(receiver, &told, notes, over, zero),
                _ => read_all(receiver, over),
            });
            let sent = self.send(sender, tell);
            // The end of the data. A connection that was reset has none.
            let _ = sender.shutdown(Shutdown::Write);
            let read = reader
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            sent.and(read)
        })
    }

    fn is_over(&self) -> bool {
        self.over.is_set() || Instant::now() >= self.zero.instant + self.stop
    }

    /// Sleeps, but not beyond the stop. Returns false if it is reached.
    fn sleep_until(&self, at: Instant) -> bool {
        let end = self.zero.instant + self.stop;
        self.over.sleep_until(at.min(end)) && at < end
    }

    /// Sleeps for a random time. Returns false if the stop is reached.
    fn pause(&mut self, length: &Distribution) -> bool {
        let length = Duration::from_nanos(self.draws.draw(length));
        self.sleep_until(Instant::now() + length)
    }

    /// Writes `bytes` or fewer, if the time is up. Returns what was written.
    fn write(&self, stream: &TcpStream, bytes: u64, until: Option<Instant>) -> io::Result<u64> {
        let data = [0u8; WRITE];
        let mut left = bytes;
        let is_up = || until.is_some_and(|until| Instant::now() >= until);
        while left > 0 && !self.is_over() && !is_up() {
            let some = &data[..left.min(WRITE as u64) as usize];
            match (&*stream).write(some) {
                Ok(written) => left -= written as u64,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes - left)
    }

    fn send(&mut self, stream: &TcpStream, tell: SyncSender<Expected>) -> io::Result<()> {
        match self.application {
            Application::Bulk => {
                self.write(stream, u64::MAX, None)?;
            }
            Application::OnOff {
                burst: Burst::Time(on),
                off,
                ..
            } => {
                let mut at = self.zero.instant + self.start;
                while !self.is_over() {
                    at += Duration::from_nanos(self.draws.draw(on));
                    self.write(stream, u64::MAX, Some(at))?;
                    at += Duration::from_nanos(self.draws.draw(off));
                    if !self.sleep_until(at) {
                        break;
                    }
                }
            }
            Application::Limited { rate, size } => {
                let gap = Duration::from_nanos(rate.transmission_nanos((*size).into()));
                let mut at = self.zero.instant + self.start;
                while self.write(stream, (*size).into(), None)? == u64::from(*size) {
                    at += gap;
                    if !self.sleep_until(at) {
                        break;
                    }
                }
            }
            Application::Transfers { size, pause, count } => {
                for _ in 0..count.unwrap_or(u64::MAX) {
                    let bytes = self.draws.draw(size).max(1);
                    let (since, before) = (Instant::now(), self.transfers());
                    if tell.send(Expected { bytes, since }).is_err()
                        || self.write(stream, bytes, None)? < bytes
                    {
                        break;
                    }
                    while self.transfers() == before && !self.is_over() {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    if !self.pause(pause) {
                        break;
                    }
                }
            }
            _ => unreachable!("the layout was checked"),
        }
        Ok(())
    }

    fn transfers(&self) -> usize {
        self.notes
            .transfers
            .lock()
            .expect("no thread panics with it")
            .len()
    }

    /// The receiver of the data requests, and the sender responds.
    fn exchange(&mut self, server: &TcpStream, client: &TcpStream) -> io::Result<()> {
        let Application::Requests(requests) = self.application else {
            unreachable!("the caller has looked")
        };
        for _ in 0..requests.count.unwrap_or(u64::MAX) {
            let request = self.draws.draw(&requests.request).max(1);
            let response = self.draws.draw(&requests.response).max(1);
            let since = Instant::now();
            if self.write(client, request, None)? < request || !self.read(server, request)? {
                break;
            }
            if !self.pause(&requests.service) {
                break;
            }
            if self.write(server, response, None)? < response || !self.read(client, response)? {
                break;
            }
            note_transfer(self.notes, self.zero, since);
            if !self.pause(&requests.think) {
                break;
            }
        }
        Ok(())
    }

    /// Reads so many bytes. Returns false if the data or the run ends before.
    fn read(&self, stream: &TcpStream, bytes: u64) -> io::Result<bool> {
        let mut left = bytes;
        while left > 0 && !self.is_over() {
            match discard(stream, left)? {
                Some(0) => return Ok(false),
                Some(read) => left -= read,
                None => {}
            }
        }
        Ok(left == 0)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Reads up to `most` bytes and forgets them: with MSG_TRUNC the kernel does not even copy them (tcp(7)).
/// `None` if none came for a while, and 0 at the end.
fn discard(stream: &TcpStream, most: u64) -> io::Result<Option<u64>> {
    let mut buffer = [0u8; WRITE];
    let room = &mut buffer[..most.min(WRITE as u64) as usize];
    match recv(stream.as_raw_fd(), room, MsgFlags::MSG_TRUNC) {
        Ok(read) => Ok(Some(read as u64)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Reads until the end of the data, or of the run.
fn read_all(stream: &TcpStream, over: &Over) -> io::Result<()> {
    let mut buffer = vec![0u8; 1 << 20];
    while !over.is_set() {
        match recv(stream.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC) {
            Ok(0) => break,
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Reads transfers, and notes how long each took.
fn read_transfers(
    stream: &TcpStream,
    told: &Receiver<Expected>,
    notes: &Notes,
    over: &Over,
    zero: Zero,
) -> io::Result<()> {
    while !over.is_set() {
        let Expected { bytes, since } = match told.try_recv() {
            Ok(expected) => expected,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
        };
        let mut left = bytes;
        while left > 0 && !over.is_set() {
            match discard(stream, left)? {
                Some(0) => return Ok(()),
                Some(read) => left -= read,
                None => {}
            }
        }
        if left == 0 {
            note_transfer(notes, zero, since);
        }
    }
    Ok(())
}

fn note_transfer(notes: &Notes, zero: Zero, since: Instant) {
    let now = Instant::now();
    let end = now.saturating_duration_since(zero.instant).as_nanos() as u64;
    let took = now.saturating_duration_since(since).as_nanos() as u64;
    notes
        .transfers
        .lock()
        .expect("no thread panics with it")
        .push((end, took));
}
