//! A numbered stream of packets, of which none may be lost or overtaken.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_live::testbed::Network;

/// A packet without a number, shorter than those that have one.
const GREETING: &[u8] = b"?";

/// Sends a burst of numbered packets from the left host to the right one in each `pause` while `during` runs.
/// All must arrive, in their order. Returns how many there were.
pub(crate) fn with_stream(network: &Network, pause: Duration, during: impl FnOnce()) -> u64 {
    let to = format!("{}:5000", Network::RIGHT);
    let receiver = network.right.enter(|| UdpSocket::bind(&to)).unwrap().unwrap();
    let sender = network
        .left
        .enter(|| UdpSocket::bind("0.0.0.0:0"))
        .unwrap()
        .unwrap();
    sender.connect(&to).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    // The hosts find each other first. While the kernel sends what has waited for an address, a packet of
    // another processor may overtake it.
    let is_found = (0..1200).any(|_| {
        sender.send(GREETING).unwrap();
        receiver.recv(&mut [0; 2000]).is_ok()
    });
    assert!(is_found, "for two minutes no greeting has come");
    // It is not known how many were sent before all are sent.
    let (is_over, has_sent_all) = (AtomicBool::new(false), AtomicBool::new(false));
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                // A burst, so that packets are queued while the trees change.
                for _ in 0..8 {
                    let number = sent.fetch_add(1, Ordering::AcqRel);
                    sender.send(&[number.to_be_bytes(); 16].concat()).unwrap();
                }
                thread::sleep(pause);
            }
            has_sent_all.store(true, Ordering::Release);
        });
        let counting = scope.spawn(|| {
            let mut bytes = [0; 2000];
            let (mut next, mut quiet) = (0, 0);
            while !has_sent_all.load(Ordering::Acquire) || next < sent.load(Ordering::Acquire) {
                let Ok(length) = receiver.recv(&mut bytes) else {
                    quiet += 1;
                    assert!(quiet < 1200, "for two minutes packet {next} has not come");
                    continue;
                };
                if length == GREETING.len() {
                    continue;
                }
                quiet = 0;
                let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
                assert_eq!(number, next, "it is lost or overtaken");
                next += 1;
            }
            next
        });
        // Also if a check fails.
        let end = End(&is_over);
        during();
        drop(end);
        let received = counting.join().expect("no packet was lost or overtaken");
        assert_eq!(received, sent.load(Ordering::Acquire));
        received
    })
}

/// Ends the stream when it is dropped.
struct End<'f>(&'f AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
