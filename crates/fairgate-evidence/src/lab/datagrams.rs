//! Sends and receives the datagrams of a flow. Each carries its number, by which the receiver finds the time
//! at which it was sent.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

use fairgate_live::testbed::prioritise;
use fairgate_sim::scenario::Jitter;
use fairgate_sim::{Draws, Emissions};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;

use crate::lab::layout::UDP_HEADERS;
use crate::lab::samples::{Arrival, Notes, Over, Zero, now_nanos};

/// The bytes of a number. The shortest datagram of a video has an RTP header of 12 bytes.
const NUMBER: usize = 4;
/// The longest payload of a datagram.
const LONGEST: usize = 65_507;
/// A datagram that leaves later than this is counted.
const LATE: Duration = Duration::from_millis(1);

/// What a sender sends, and when.
pub(crate) struct Sender<'a> {
    pub(crate) socket: UdpSocket,
    pub(crate) emissions: Emissions,
    pub(crate) jitter: Option<(&'a Jitter, Draws)>,
    pub(crate) zero: Zero,
    /// When the flow starts and when it stops, since the beginning.
    pub(crate) start: Duration,
    pub(crate) stop: Duration,
}

impl Sender<'_> {
    /// Sends until the flow stops or the run is over.
    pub(crate) fn run(mut self, notes: &Notes, over: &Over) -> io::Result<()> {
        // Without the priority the figures say how late datagrams were.
        let _ = prioritise();
        let mut payload = vec![0u8; LONGEST];
        let mut latest = Duration::ZERO;
        let mut late = 0;
        for (number, (offset, length)) in (0u32..).zip(self.emissions) {
            if (length as usize) < NUMBER {
                let what = format!("a datagram of {length} bytes has no room for a number of {NUMBER}");
                return Err(io::Error::other(what));
            }
            let mut due = self.start + offset;
            if due >= self.stop {
                break;
            }
            if let Some((jitter, draws)) = &mut self.jitter {
                due += Duration::from_nanos(draws.draw(&jitter.delay));
                // A packet waits for those before it.
                due = due.max(latest);
                latest = due;
            }
            let due = self.zero.instant + due;
            if !over.sleep_until(due) {
                break;
            }
            late += u64::from(due.elapsed() > LATE);
            let sent = now_nanos();
            payload[..NUMBER].copy_from_slice(&number.to_be_bytes());
            notes
                .sent
                .lock()
                .expect("no thread panics with it")
                .push((self.zero.since(sent), length + UDP_HEADERS));
            match self.socket.send(&payload[..length as usize]) {
                Ok(_) => {}
                // A full queue of the kernel loses it; the receiver will not count it.
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {}
                Err(error) => return Err(error),
            }
        }
        *notes.late.lock().expect("no thread panics with it") += late;
        Ok(())
    }
}

/// Receives datagrams until the run is over. Sends each back if `answers`.
pub(crate) fn receive(
    socket: &UdpSocket,
    answers: bool,
    zero: Zero,
    notes: &Notes,
    over: &Over,
) -> io::Result<()> {
    let _ = prioritise();
    let mut payload = vec![0u8; LONGEST];
    let mut control = cmsg_space!(TimeSpec);
    while !over.is_set() {
        let Some((length, arrived)) = receive_one(socket, &mut payload, &mut control)? else {
            continue;
        };
        let Some((number, _)) = payload[..length].split_first_chunk::<NUMBER>() else {
            continue;
        };
        let number = u32::from_be_bytes(*number);
        let sent = notes.sent.lock().expect("no thread panics with it");
        // Only this flow's sender has this place, and it notes a datagram before it sends it.
        let Some(&(sent, _)) = sent.get(number as usize) else {
            continue;
        };
        let arrival = Arrival {
            sent,
            arrived: zero.since(arrived),
            bytes: length as u32 + UDP_HEADERS,
        };
        notes
            .arrivals
            .lock()
            .expect("no thread panics with it")
            .push(arrival);
        if answers {
            // The answer is a load of its own. If it is lost, nobody misses it.
            let _ = socket.send(&payload[..length]);
        }
    }
    Ok(())
}

/// Receives a datagram: its length, and when it arrived. `None` if none came for a while.
fn receive_one(
    socket: &UdpSocket,
    payload: &mut [u8],
    control: &mut [u8],
) -> io::Result<Option<(usize, u64)>> {
    let mut parts = [IoSliceMut::new(payload)];
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty());
    let message = match received.map_err(io::Error::from) {
        Ok(message) => message,
        Err(error) => {
            return match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut => Ok(None),
                // An ICMP message about an earlier datagram: its port was not open yet or not any more.
                ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            };
        }
    };
    let mut stamp = None;
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmTimestampns(time) = part {
            stamp = Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64);
        }
    }
    Ok(Some((message.bytes, stamp.unwrap_or_else(now_nanos))))
}
