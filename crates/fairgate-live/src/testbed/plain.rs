//! Forwarding without a queue, to compare with: a loop over a back end, and the kernel's own bridge.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::backend::xdp::Lease;
use crate::backend::{Backend, BackendKind, Device, packet, xdp};
use crate::error::LiveError;
use crate::outgoing::Outgoing;
use crate::sys::batch::BATCH;
use crate::sys::frames::FrameStore;
use crate::sys::interface::Interface;
use crate::sys::priority::set_realtime;
use crate::sys::socket::Receive;
use crate::testbed::bridged::Busy;
use crate::testbed::error::TestbedError;
use crate::testbed::network::Network;

/// The longest frame that the loop forwards whole: a full one with two VLAN tags.
const LONGEST: usize = 1522;

/// How often a loop without frames looks whether it is done, ms.
const PATIENCE: u8 = 10;

/// Calls `measure` while a loop forwards the frames from `left` to `right`: it takes frames from the back
/// end, and gives them to that of the other interface. Returns the share of a core
/// that its thread took, too.
///
/// # Errors
/// Fails if the back end or the measurement fails.
pub(crate) fn with_loop<T>(
    network: &Network,
    kind: BackendKind,
    measure: impl FnOnce() -> Result<T, TestbedError>,
) -> Result<(T, f64), TestbedError> {
    let mut ends = network.router.enter(|| open(kind))??;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarder = scope.spawn(|| {
            // As the bridge. If the kernel refuses, the result is that of an ordinary thread.
            let _ = set_realtime();
            let busy = Busy::begin()?;
            forward(&mut ends, &done).map_err(LiveError::system("forwarding frames"))?;
            busy.of_a_core()
        });
        let measured = measure();
        done.store(true, Ordering::Relaxed);
        let of_a_core = forwarder
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((measured?, of_a_core))
    })
}

/// What the loop forwards with.
struct Ends {
    from: Device,
    to: Device,
    /// The frames of a batch.
    frames: FrameStore,
}

fn open(kind: BackendKind) -> Result<Ends, LiveError> {
    let [left, right] =
        ["left", "right"].map(|name| Interface::lookup(name).map_err(LiveError::unusable(name)));
    let (left, right) = (left?, right?);
    let failed = || LiveError::system("getting memory for frames");
    let (mut from, mut to, frames) = match kind {
        BackendKind::Packet => {
            let open = |interface: &Interface| packet::prepare(interface, Receive::All, None);
            let frames = FrameStore::new(BATCH as u32, LONGEST).map_err(failed())?;
            (
                Device::Packet(Box::new(open(&left)?)),
                Device::Packet(Box::new(open(&right)?)),
                frames,
            )
        }
        BackendKind::Kernel => return Err(LiveError::KernelForwards),
        BackendKind::Xdp => {
            let receiving = [xdp::receiving_chunks(&left)?, xdp::receiving_chunks(&right)?];
            let stores = xdp::frame_stores(BATCH as u32, left.mtu, receiving).map_err(failed())?;
            let [mut to_right, mut to_left] = stores;
            let lease = Lease::of(&to_right, &mut to_left).expect("the stores are shared");
            let from = xdp::prepare(&left, None, &lease)?;
            let lease = Lease::of(&to_left, &mut to_right).expect("the stores are shared");
            let to = xdp::prepare(&right, None, &lease)?;
            (Device::Xdp(Box::new(from)), Device::Xdp(Box::new(to)), to_right)
        }
    };
    from.start().map_err(LiveError::system("receiving from `left`"))?;
    to.start().map_err(LiveError::system("receiving from `right`"))?;
    Ok(Ends { from, to, frames })
}

/// Forwards frames until `done` is set.
fn forward(Ends { from, to, frames }: &mut Ends, done: &AtomicBool) -> Result<(), Errno> {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        while batch.len() < BATCH
            && let Some(received) = from.front()?
        {
            let bytes = received.bytes;
            let (number, exchange) = match frames.has(bytes) {
                true => {
                    let adopted = frames.adopt(bytes);
                    (
                        adopted.map(|adopted| adopted.number),
                        adopted.map(|adopted| adopted.exchange),
                    )
                }
                false => (frames.store(None, |to| copy(bytes, to)), None),
            };
            batch.push(number.expect("the store has room for a batch"));
            from.release(exchange);
        }
        if batch.is_empty() {
            if done.load(Ordering::Relaxed) {
                return Ok(());
            }
            let mut waiting = [PollFd::new(from.receiver(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::from(PATIENCE)) {
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
            }
        }
        while !batch.is_empty() {
            while let Some(number) = to.completed() {
                frames.take_back(number);
            }
            let (sent, result) = to.send(batch.iter().map(|&number| Outgoing::whole(frames.get(number))));
            for number in batch.drain(..sent) {
                match to.keeps_sent() {
                    true => frames.lend(number),
                    false => frames.free(number),
                }
            }
            match result {
                Ok(()) | Err(Errno::EAGAIN | Errno::ENOBUFS) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// Copies a frame, without what is longer than the longest.
fn copy(bytes: &[u8], to: &mut [u8]) -> usize {
    let length = bytes.len().min(LONGEST);
    to[..length].copy_from_slice(&bytes[..length]);
    length
}

/// Calls `measure` while the kernel's bridge connects `left` and `right`.
///
/// # Errors
/// Fails if the kernel has no bridge, or if the measurement fails.
pub(crate) fn with_kernel<T>(
    network: &Network,
    measure: impl FnOnce() -> Result<T, TestbedError>,
) -> Result<T, TestbedError> {
    network.router.ip(&["link", "add", "bridge", "type", "bridge"])?;
    for port in ["left", "right"] {
        network.router.ip(&["link", "set", port, "master", "bridge"])?;
    }
    network.router.ip(&["link", "set", "bridge", "up"])?;
    measure()
}
