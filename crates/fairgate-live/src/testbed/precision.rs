//! Measures how exactly a bridge holds a rate: its mean, gaps and bursts at the receiver, and what it takes
//! of a processor.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairgate::Rate;
use fairgate_run_api::Status;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use serde::Serialize;

use crate::config::Plan;
use crate::testbed::bridged::with_bridge;
use crate::testbed::error::TestbedError;
use crate::testbed::network::Network;

/// The payload of a datagram that makes a full frame.
const PAYLOAD: usize = 1472;

/// The length of that frame with its Ethernet header, bytes. Shapers count it like this.
const FRAME: u64 = 1514;

/// The sender offers this many times the rate, so that packets always wait.
const OVERLOAD: f64 = 1.25;

/// How often the sender looks what is due.
const TICK: Duration = Duration::from_millis(1);

/// In this time the hosts find each other, buckets become empty, and an AQM finds its state.
const WARM_UP: Duration = Duration::from_secs(1);

/// How often the receiver looks whether the sender has ended.
const PATIENCE: Duration = Duration::from_millis(20);

/// The receiver's buffer, bytes: more than a tenth of a second at 1 Gbit/s, so that nothing is lost while it
/// waits for a processor.
const RECEIVE_BUFFER: usize = 64 << 20;

/// How exactly a rate was held.
#[derive(Clone, Debug, Serialize)]
pub struct Precision {
    /// What the receiver got, bits per second, with Ethernet headers.
    pub rate_bps: f64,
    /// The longest time between two frames beyond the time of one frame, ns.
    pub longest_gap: f64,
    /// How far the frames were ahead of an even stream of the same rate at most, ns. If two frames come
    /// together after an even stream, this is the time of one frame.
    pub longest_burst: f64,
    /// The share of a core that the forwarding thread took.
    pub of_a_core: f64,
    /// The status of the bridge at the end.
    pub status: Status,
}

/// Sends UDP in full frames, more than `rate`, for `duration` and a second of warm-up, through a bridge that
/// runs `plan` between `left` and `right`. The kernel notes when each frame arrives.
///
/// # Errors
/// Fails if the network can't be built, if the bridge fails, or if fewer than two frames arrive.
pub fn precision(plan: &Plan, rate: Rate, duration: Duration) -> Result<Precision, TestbedError> {
    let failed = TestbedError::io;
    let network = Network::build()?;
    let receiver = network
        .right
        .enter(receiver)?
        .map_err(failed("opening a receiver"))?;
    let to = receiver.local_addr().map_err(failed("opening a receiver"))?;
    let sender = network.left.enter(|| UdpSocket::bind((Network::LEFT, 0)))?;
    let sender = sender.map_err(failed("opening a sender"))?;
    sender.connect(to).map_err(failed("opening a sender"))?;
    let bridged = with_bridge(&network, plan, || {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let arrivals = scope.spawn(|| receive(&receiver, &done));
            let sent = send(&sender, rate, WARM_UP + duration);
            done.store(true, Ordering::Relaxed);
            let arrivals = arrivals
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            sent.map_err(TestbedError::io("sending datagrams"))?;
            arrivals.map_err(TestbedError::io("receiving datagrams"))
        })
    })?;
    let spacing = bridged.measured.first().and_then(|&first| {
        let begin = first + WARM_UP.as_nanos() as u64;
        let end = begin + duration.as_nanos() as u64;
        let mut arrivals = bridged.measured.clone();
        arrivals.retain(|time| (begin..end).contains(time));
        Spacing::of(&arrivals)
    });
    let spacing = spacing.ok_or_else(|| TestbedError::System {
        action: "measuring a rate".to_owned(),
        reason: "fewer than two frames arrived".to_owned(),
    })?;
    Ok(Precision {
        rate_bps: (8 * FRAME) as f64 * 1e9 / spacing.mean,
        longest_gap: spacing.longest_gap,
        longest_burst: spacing.longest_burst,
        of_a_core: bridged.of_a_core,
        status: bridged.status,
    })
}

/// Runs a bridge without traffic for `duration`. Returns the share of a core that the forwarding thread took.
///
/// # Errors
/// Fails if the network can't be built or the bridge fails.
pub fn idle(plan: &Plan, duration: Duration) -> Result<f64, TestbedError> {
    let network = Network::build()?;
    let bridged = with_bridge(&network, plan, || {
        thread::sleep(duration);
        Ok(())
    })?;
    Ok(bridged.of_a_core)
}

/// How arrivals are spaced, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spacing {
    /// The mean time between two frames.
    mean: f64,
    longest_gap: f64,
    longest_burst: f64,
}

impl Spacing {
    /// `None` for fewer than two arrivals, or if all have the same time.
    fn of(arrivals: &[u64]) -> Option<Spacing> {
        let (first, last) = (*arrivals.first()?, *arrivals.last()?);
        let mean = last.checked_sub(first).filter(|span| *span > 0)? as f64 / (arrivals.len() - 1) as f64;
        let longest = arrivals
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]))
            .max()?;
        let (mut least, mut longest_burst) = (0.0_f64, 0.0_f64);
        for (number, &arrival) in arrivals.iter().enumerate() {
            // By how much this frame is before its time in an even stream.
            let ahead = number as f64 * mean - arrival.saturating_sub(first) as f64;
            least = least.min(ahead);
            longest_burst = longest_burst.max(ahead - least);
        }
        Some(Spacing {
            mean,
            longest_gap: longest as f64 - mean,
            longest_burst,
        })
    }
}

fn receiver() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Network::RIGHT, 0))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Sends what is due, until `duration` is over.
fn send(socket: &UdpSocket, rate: Rate, duration: Duration) -> io::Result<()> {
    let offered = OVERLOAD * rate.bits_per_second() as f64 / 8.0;
    let start = Instant::now();
    let mut sent = 0;
    while start.elapsed() < duration {
        while (sent as f64) < offered * start.elapsed().as_secs_f64() {
            match socket.send(&[0; PAYLOAD]) {
                // A full queue of the kernel loses it.
                Err(error) if error.raw_os_error() != Some(Errno::ENOBUFS as i32) => return Err(error),
                _ => sent += FRAME,
            }
        }
        thread::sleep(TICK);
    }
    Ok(())
}

/// Receives until nothing comes any more after `done`. Returns when the kernel got each frame, ns.
fn receive(socket: &UdpSocket, done: &AtomicBool) -> io::Result<Vec<u64>> {
    let mut arrivals = Vec::new();
    let mut payload = [0; PAYLOAD];
    let mut control = cmsg_space!(TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut payload)];
        let received = recvmsg::<()>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::empty(),
        );
        match received.map_err(io::Error::from) {
            Ok(message) => arrivals.extend(message.cmsgs()?.find_map(|part| match part {
                ControlMessageOwned::ScmTimestampns(time) => {
                    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
                }
                _ => None,
            })),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if done.load(Ordering::Relaxed) {
                    return Ok(arrivals);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_stream_has_no_gaps_and_no_bursts() {
        let even: Vec<u64> = (0..100).map(|number| 5_000 + number * 120).collect();
        let spacing = Spacing::of(&even).unwrap();
        assert_eq!(
            spacing,
            Spacing {
                mean: 120.0,
                longest_gap: 0.0,
                longest_burst: 0.0
            }
        );
        assert_eq!(Spacing::of(&even[..1]), None);
        assert_eq!(Spacing::of(&[7, 7]), None);
    }

    #[test]
    fn a_pause_is_a_gap_and_what_follows_it_at_once_is_a_burst() {
        // Frames 40 to 42 come together with frame 43.
        let arrivals: Vec<u64> = (0..=100)
            .map(|number| 120 * if (40..43).contains(&number) { 43 } else { number })
            .collect();
        let spacing = Spacing::of(&arrivals).unwrap();
        assert_eq!(
            spacing,
            Spacing {
                mean: 120.0,
                longest_gap: 360.0,
                longest_burst: 360.0
            }
        );
    }
}
