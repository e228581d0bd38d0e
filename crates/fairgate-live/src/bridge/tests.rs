//! VLAN tags through a bridge, between hosts in network namespaces.

use crate::outgoing::Outgoing;
use std::thread;

use fairgate_config::Document;

use super::*;
use crate::attach::{Hooks, Switch, mark_of};
use crate::backend::BackendKind;
use crate::sys::interface::Interface;
use crate::sys::layout::Layout;
use crate::sys::socket::PacketSocket;
use crate::testbed::{Namespace, Network};
use crate::testing::{live, until};
use crate::vlan::Tag;

/// Opens a socket on the only interface of a host.
fn open_host(host: &Namespace) -> PacketSocket {
    let open = || {
        let interface = Interface::lookup("eth0").unwrap();
        PacketSocket::open(&interface, Layout::new(2000, 1).unwrap()).unwrap()
    };
    host.enter(open).unwrap()
}

/// Stops the bridge even if a test fails. Otherwise joining its thread would block forever.
struct StopOnDrop(Stopper);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs `work` with a socket on each host while a bridge of each back end forwards between them. Checks that
/// nothing was lost.
fn with_bridges(work: impl Fn(&Network, PacketSocket, PacketSocket)) {
    for backend in BackendKind::ALL {
        let lost = with_bridge(backend, &work).directions[0].lost;
        assert_eq!(
            lost.refused + lost.truncated + lost.too_long,
            0,
            "{backend:?}: {lost:?}"
        );
    }
}

fn with_bridge(backend: BackendKind, work: impl FnOnce(&Network, PacketSocket, PacketSocket)) -> Status {
    let network = Network::build().unwrap();
    let text = "[run]\nleft = \"left\"\nright = \"right\"\n";
    let mut plan = Plan::read(&Document::parse("vlan.toml", text).unwrap()).unwrap();
    plan.backend = Some(backend);
    let open = || Bridge::open(&plan, Some(1));
    let mut bridge = network.router.enter(open).unwrap().unwrap();
    bridge.take_over().unwrap();
    let stop = StopOnDrop(bridge.stopper());
    thread::scope(|scope| {
        let running = scope.spawn(|| bridge.run());
        let stop = stop;
        work(&network, open_host(&network.left), open_host(&network.right));
        drop(stop);
        until("the bridge stops", || running.is_finished());
        assert_eq!(running.join().unwrap().unwrap(), Wake::Stop);
    });
    bridge.status()
}

/// Builds a frame with a tag, four bytes, and `payload` bytes of payload.
fn tagged(tag: Tag, inner: [u8; 4], payload: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(tag.tpid.to_be_bytes());
    frame.extend(tag.tci.to_be_bytes());
    frame.extend(inner);
    frame.resize(frame.len() + payload, 9);
    frame
}

/// Waits for a tagged frame and checks that it is `frame`. Ignores frames of the hosts themselves (neighbour
/// discovery).
fn expect(sink: &mut PacketSocket, frame: &[u8]) {
    until("a frame with a tag arrives", || {
        let Some(received) = sink.front() else {
            return false;
        };
        let tag = received.tag;
        if tag.is_some() {
            assert_eq!(tag, Tag::of(frame));
            assert_eq!(received.bytes[..12], frame[..12]);
            assert_eq!(received.bytes[12..], frame[16..]);
        }
        let is_tagged = tag.is_some();
        sink.release();
        is_tagged
    });
}

/// The kernel removes the tag from received frames, both at the bridge and at the receiving host. The
/// receiver must be told the same tag, and must find a second tag at its position.
#[test]
fn vlan_tags_are_preserved() {
    let Some(_watched) = live("vlan_tags_are_preserved") else {
        return;
    };
    with_bridges(|_, mut source, mut sink| {
        for (tpid, tci, inner) in [
            (Tag::CUSTOMER, 0x2005, [0x12, 0x34, 9, 9]),
            (Tag::SERVICE, 0x0007, [0x81, 0x00, 9, 9]),
        ] {
            let frame = tagged(Tag { tpid, tci }, inner, 58);
            let (sent, result) = source.send(std::iter::once(Outgoing::whole(&frame)));
            assert_eq!((sent, result), (1, Ok(())));
            expect(&mut sink, &frame);
        }
    });
}

/// Frames that exceed the MTU only by their tags, as the hosts' VLAN interfaces send them: the kernel keeps
/// the outermost tag beside the frame. The kernel's bridge forwards them, and so must ours.
#[test]
fn full_sized_frames_with_tags_are_forwarded() {
    let Some(_watched) = live("full_sized_frames_with_tags_are_forwarded") else {
        return;
    };
    with_bridges(|network, mut source, mut sink| {
        let isolate = || {
            let switch = Switch::new().unwrap();
            switch.turn_on();
            let index = Interface::lookup("eth0").unwrap().index;
            (Hooks::isolate(index, &switch).unwrap(), switch)
        };
        let _pushes_tags = network.left.enter(isolate).unwrap();
        for (tpid, inner, length) in [
            (Tag::CUSTOMER, None, 1518),
            (Tag::SERVICE, None, 1518),
            (Tag::SERVICE, Some([0x81, 0x00, 0x20, 0x05]), 1522),
            (Tag::CUSTOMER, Some([0x81, 0x00, 0x20, 0x05]), 1522),
        ] {
            let tag = Tag { tpid, tci: 0x6007 };
            let mut frame = match inner {
                None => tagged(tag, [0x12, 0x34, 9, 9], 1498),
                Some(inner) => tagged(tag, inner, 1502),
            };
            // A protocol that no program uses.
            frame[length - 1502..length - 1500].copy_from_slice(&[0x12, 0x34]);
            assert_eq!(frame.len(), length);
            source.send_tagged(&frame, mark_of(tag)).unwrap();
            expect(&mut sink, &frame);
        }
    });
}
