//! Forwarding without a queue, to compare with: a loop over a back end, and the kernel's own bridge.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::backend::{Backend, BackendKind, Device, packet, xdp};
use crate::error::LiveError;
use crate::outgoing::Outgoing;
use crate::sys::batch::BATCH;
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
    let (mut from, mut to) = network
        .router
        .enter(|| Ok::<_, LiveError>((open(kind, "left")?, open(kind, "right")?)))??;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarder = scope.spawn(|| {
            // As the bridge. If the kernel refuses, the result is that of an ordinary thread.
            let _ = set_realtime();
            let busy = Busy::begin()?;
            forward(&mut from, &mut to, &done).map_err(LiveError::system("forwarding frames"))?;
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

fn open(kind: BackendKind, name: &str) -> Result<Device, LiveError> {
    let interface = Interface::lookup(name).map_err(LiveError::unusable(name))?;
    let mut device = match kind {
        BackendKind::Packet => Device::Packet(Box::new(packet::prepare(&interface, Receive::All, None)?)),
        BackendKind::Xdp => Device::Xdp(Box::new(xdp::prepare(&interface, None)?)),
    };
    let receiving = LiveError::system(format!("receiving from `{name}`"));
    device.start().map_err(receiving)?;
    Ok(device)
}

/// Forwards frames until `done` is set.
fn forward(from: &mut Device, to: &mut Device, done: &AtomicBool) -> Result<(), Errno> {
    let mut frames = vec![([0; LONGEST], 0); BATCH];
    loop {
        let mut count = 0;
        while count < BATCH
            && let Some(received) = from.front()?
        {
            let (frame, length) = &mut frames[count];
            *length = received.bytes.len().min(LONGEST);
            frame[..*length].copy_from_slice(&received.bytes[..*length]);
            from.release();
            count += 1;
        }
        if count == 0 {
            if done.load(Ordering::Relaxed) {
                return Ok(());
            }
            let mut waiting = [PollFd::new(from.receiver(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::from(PATIENCE)) {
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
            }
        }
        let mut sent = 0;
        while sent < count {
            let batch = frames[sent..count].iter();
            let (some, result) = to.send(batch.map(|(frame, length)| Outgoing::whole(&frame[..*length])));
            sent += some;
            match result {
                Ok(()) | Err(Errno::EAGAIN | Errno::ENOBUFS) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
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
