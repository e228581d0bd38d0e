//! Measures how many small packets per second a bridge forwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::bridge::Bridge;
use crate::config::Plan;
use crate::error::LiveError;
use crate::outgoing::Outgoing;
use crate::status::Status;
use crate::sys::batch::BATCH;
use crate::sys::interface::Interface;
use crate::sys::layout::Layout;
use crate::sys::socket::PacketSocket;
use crate::testbed::error::TestbedError;
use crate::testbed::network::{Network, received};

/// The length of the smallest Ethernet frame without its checksum. On the link it has 64 bytes.
const SMALLEST: usize = 60;

/// The result of a flood.
#[derive(Clone, Debug, Serialize)]
pub struct Flood {
    /// Frames per second sent by the source.
    pub offered_pps: f64,
    /// Frames per second received by the sink.
    pub forwarded_pps: f64,
    /// The number of offered frames that did not arrive.
    pub lost: u64,
    /// The status of the bridge at the end.
    pub status: Status,
}

/// Sends 64-byte UDP frames of `flows` flows for `duration`, as fast as one thread can, through a bridge that
/// runs `plan` between `left` and `right`.
///
/// # Errors
/// Fails if the network can't be built or the bridge fails.
pub fn flood(plan: &Plan, flows: u16, duration: Duration) -> Result<Flood, TestbedError> {
    let network = Network::build()?;
    let mut bridge = network.router.enter(|| Bridge::open(plan, None))??;
    let stopper = bridge.stopper();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let router = scope.spawn(|| {
            // If the kernel refuses, the result is that of an ordinary thread.
            let _ = bridge.prioritise();
            let result = bridge.run();
            (bridge.status(), result)
        });
        let before = received(&network.right);
        let start = Instant::now();
        let source = scope.spawn(|| network.left.enter(|| send(flows, &done))?);
        thread::sleep(duration);
        done.store(true, Ordering::Relaxed);
        let source = source
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let elapsed = start.elapsed().as_secs_f64();
        // Wait until frames in transit have arrived.
        thread::sleep(Duration::from_millis(100));
        let after = received(&network.right);
        stopper.stop();
        let (status, result) = router
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result?;
        let offered = source?;
        let forwarded = after?.packets - before?.packets;
        Ok(Flood {
            offered_pps: offered as f64 / elapsed,
            forwarded_pps: forwarded as f64 / elapsed,
            lost: offered.saturating_sub(forwarded),
            status,
        })
    })
}

/// Sends frames until `done` is set. Returns their number.
fn send(flows: u16, done: &AtomicBool) -> Result<u64, TestbedError> {
    let interface = Interface::lookup("eth0").map_err(LiveError::unusable("eth0"))?;
    let layout = Layout::new(SMALLEST, 1).expect("small frames fit a slot");
    let open = LiveError::system("opening a packet socket for the source");
    let mut socket = PacketSocket::open(&interface, layout).map_err(open)?;
    let frames: Vec<[u8; SMALLEST]> = (0..flows.max(1)).map(frame).collect();
    let mut next = frames.iter().cycle();
    let mut sent = 0;
    while !done.load(Ordering::Relaxed) {
        let (some, _full) = socket.send(next.by_ref().take(BATCH).map(|frame| Outgoing::whole(frame)));
        sent += some as u64;
    }
    Ok(sent)
}

/// Builds a UDP frame of flow `flow`, to a MAC address that no host has. The sink only counts it.
fn frame(flow: u16) -> [u8; SMALLEST] {
    let mut frame = [0; SMALLEST];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0xfe]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0xfd]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip = &mut frame[14..];
    ip[..4].copy_from_slice(&[0x45, 0, 0, (SMALLEST - 14) as u8]);
    ip[8..10].copy_from_slice(&[64, 17]);
    ip[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
    ip[20..22].copy_from_slice(&flow.to_be_bytes());
    ip[22..24].copy_from_slice(&9u16.to_be_bytes());
    ip[24..26].copy_from_slice(&((SMALLEST - 34) as u16).to_be_bytes());
    frame
}
