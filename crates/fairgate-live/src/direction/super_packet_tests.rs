//! Super-packets that are one packet of the tree, and the same ones cut before it.

use std::collections::BTreeMap;

use etherparse::PacketBuilder;
use fairgate_config::Spec;
use proptest::prelude::*;

use super::*;
use crate::offload::VnetHeader;
use crate::outgoing::Outgoing;

/// Ethernet, IPv4 and TCP without options.
const HEADERS: usize = 14 + 20 + 20;
const FRAMES: u32 = 600;

/// An exit that collects frames. It takes `room` at a time.
struct Collector {
    room: usize,
    frames: Vec<Vec<u8>>,
}

impl Exit for Collector {
    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        let before = self.frames.len();
        let mut frames = frames.peekable();
        self.frames
            .extend(frames.by_ref().take(self.room).map(|frame| frame.bytes.to_vec()));
        let result = match frames.peek() {
            Some(_) => Err(Errno::EAGAIN),
            None => Ok(()),
        };
        (self.frames.len() - before, result)
    }

    fn send_tagged(&mut self, _frame: &[u8]) -> Result<(), Errno> {
        unreachable!("no frame is rejected")
    }
}

fn direction(queue: &str, takes_super_packets: bool) -> Direction {
    let tree = Spec::inline(queue).unwrap().build(1).unwrap();
    let frames = FrameStore::new(FRAMES, 1518).unwrap();
    let mut direction = Direction::new(1, tree, FlowHasher::new([1, 2]), frames, 0);
    direction.set_super_packets(takes_super_packets);
    direction
}

/// Offers a super-packet of this flow with segments of `size` bytes. The sender can do ECN.
fn offer(direction: &mut Direction, flow: u16, payload: &[u8], size: u16, tag: Option<Tag>, now: Time) {
    let (source, destination) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let mut ip = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::TCP, source, destination).unwrap();
    ip.ecn = etherparse::IpEcn::TWO;
    let packet =
        PacketBuilder::ethernet2([2; 6], [4; 6]).ip(etherparse::IpHeaders::Ipv4(ip, Default::default()));
    let mut frame = Vec::new();
    packet.tcp(flow, 80, 1, 1000).write(&mut frame, payload).unwrap();
    let received = Received {
        bytes: &frame,
        length: frame.len(),
        tag,
        offload: VnetHeader::tcp(false, size, 34, 16),
    };
    assert!(direction.accept(&received, now).is_ok(), "the segments fit");
}

/// Sends all that may leave at `now`.
fn send(direction: &mut Direction, room: usize, now: Time) -> Vec<Vec<u8>> {
    let mut exit = Collector {
        room,
        frames: Vec::new(),
    };
    while direction.link.backlog().packets > 0 || direction.in_delay_line() > 0 {
        direction.send(now, 0, &mut exit).unwrap();
    }
    exit.frames
}

/// Checks that no frame is in use.
fn check_empty(direction: &mut Direction) {
    let free = std::iter::from_fn(|| direction.frames.store(None, |_| 60)).count();
    assert_eq!(free, FRAMES as usize);
}

fn by_flow(frames: Vec<Vec<u8>>) -> BTreeMap<[u8; 2], Vec<Vec<u8>>> {
    let mut flows: BTreeMap<[u8; 2], Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        flows.entry([frame[34], frame[35]]).or_default().push(frame);
    }
    flows
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    /// The same frames leave, whether super-packets are cut before the tree or after it, in the order of each
    /// flow. All frames are free again, and both trees count the same bytes.
    #[test]
    fn the_same_frames_leave(
        offers in proptest::collection::vec((0u16..3, 1usize..30_000, 600u16..1400), 1..6),
        room in 1usize..100,
        between in any::<bool>(),
    ) {
        let run = |takes| {
            let mut direction = direction("fq_codel", takes);
            let mut left = Vec::new();
            for &(flow, length, size) in &offers {
                let payload: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
                offer(&mut direction, flow, &payload, size, None, Time::ZERO);
                if between {
                    left.extend(send(&mut direction, room, Time::ZERO));
                }
            }
            left.extend(send(&mut direction, room, Time::ZERO));
            check_empty(&mut direction);
            let statistics = direction.link.root().statistics();
            let frames = (direction.sojourn.len(), direction.counters.sent.packets);
            (by_flow(left), statistics.dequeued.bytes, frames)
        };
        prop_assert_eq!(run(true), run(false));
    }
}

#[test]
fn a_super_packet_is_one_packet_of_the_tree() {
    let mut direction = direction("fq_codel", true);
    direction.overhead = 24;
    offer(&mut direction, 1, &[7; 10_000], 1000, None, Time::ZERO);
    let backlog = direction.link.backlog();
    assert_eq!(
        (backlog.packets, backlog.bytes),
        (1, 10 * (1000 + HEADERS as u64 + 24))
    );
    assert_eq!(direction.counters.super_packets, 1);
    let sent = send(&mut direction, 100, Time::from_millis(2));
    assert_eq!(sent.len(), 10);
    assert_eq!(direction.sojourn.len(), 10, "each frame has a sojourn time");
    check_empty(&mut direction);
}

/// So each packet fits into a batch.
#[test]
fn a_super_packet_with_many_segments_is_several_packets() {
    let mut direction = direction("fq_codel", true);
    offer(&mut direction, 1, &[7; 60_000], 400, None, Time::ZERO);
    assert_eq!(direction.link.backlog().packets, 3, "150 segments");
    assert_eq!(send(&mut direction, 256, Time::ZERO).len(), 150);
    check_empty(&mut direction);
}

#[test]
fn a_dropped_super_packet_frees_all_frames() {
    let mut direction = direction("fq_codel memory_limit=70kb", true);
    for flow in 0..3 {
        offer(&mut direction, flow, &[7; 20_000], 1000, None, Time::ZERO);
    }
    let statistics = direction.link.root().statistics();
    assert_eq!(statistics.dropped.packets, 1);
    assert_eq!(statistics.dropped.bytes, 20 * (1000 + HEADERS as u64));
    assert_eq!(send(&mut direction, 100, Time::ZERO).len(), 40);
    check_empty(&mut direction);
}

/// What found room is sent, as without whole super-packets.
#[test]
fn a_super_packet_that_finds_no_room_is_lost_in_part() {
    let mut direction = direction("fq_codel", true);
    for flow in 0..11 {
        offer(&mut direction, flow, &[7; 60_000], 1000, None, Time::ZERO);
    }
    assert_eq!(direction.counters.no_frame, 1);
    assert_eq!(send(&mut direction, 100, Time::ZERO).len(), FRAMES as usize);
    check_empty(&mut direction);
}

#[test]
fn all_segments_are_marked() {
    let mut direction = direction("fq_codel target=1ms interval=10ms", true);
    let mut marked = 0;
    for millis in 0..100 {
        for _ in 0..2 {
            offer(
                &mut direction,
                1,
                &[7; 5000],
                1000,
                None,
                Time::from_millis(millis),
            );
        }
        if millis >= 5 {
            let later = Time::from_millis(millis + 20);
            let departure = direction.next_packet(later, 0).unwrap();
            assert_eq!(direction.enter_line(&departure, later), 5);
            let is_marked = |frame: &Vec<u8>| frame[15] & 3 == 3;
            let mut exit = Collector {
                room: 10,
                frames: Vec::new(),
            };
            direction.empty_line(later, &mut exit).unwrap();
            let of_packet = exit.frames.iter().filter(|frame| is_marked(frame)).count();
            assert_eq!(of_packet, 5 * usize::from(departure.slot.is_marked()));
            marked += of_packet as u64;
        }
    }
    assert!(marked > 0);
    assert_eq!(marked, 5 * direction.link.root().statistics().marked);
}

#[test]
fn each_segment_gets_the_tag() {
    let mut direction = direction("fq_codel", true);
    let tag = Tag {
        tpid: Tag::CUSTOMER,
        tci: 5,
    };
    offer(&mut direction, 1, &[7; 5000], 1000, Some(tag), Time::ZERO);
    assert_eq!(direction.link.backlog().packets, 1);
    let sent = send(&mut direction, 100, Time::ZERO);
    assert_eq!(sent.len(), 5);
    assert!(sent.iter().all(|frame| Tag::of(frame) == Some(tag)));
}

/// Nothing is lost, and what comes later leaves later.
#[test]
fn what_is_queued_leaves_before_a_tree_that_takes_none() {
    let mut direction = direction("fq_codel", true);
    for flow in 0..2 {
        offer(&mut direction, flow, &[7; 5000], 1000, None, Time::ZERO);
    }
    direction.before_change(true, Time::ZERO);
    assert_eq!(direction.link.backlog().packets, 2, "the next tree takes them");
    direction.before_change(false, Time::ZERO);
    assert_eq!(
        (direction.link.backlog().packets, direction.in_delay_line()),
        (0, 10)
    );
    let (before, after) = (
        Spec::inline("fq_codel").unwrap(),
        Spec::inline("tbf rate=100mbit burst=10kb / fq_codel").unwrap(),
    );
    let change = before.change_to(&after, 1).unwrap();
    let changed = direction
        .link
        .change_root(|root, pool| change.apply(root, Time::ZERO, pool));
    assert!(changed.is_ok());
    direction.set_super_packets(after.takes_super_packets());
    offer(&mut direction, 0, &[8; 5000], 1000, None, Time::ZERO);
    assert_eq!(direction.link.backlog().packets, 5);
    let sent = send(&mut direction, 100, Time::from_secs(1));
    assert_eq!(sent.len(), 15);
    let first_of_new = sent.iter().position(|frame| frame[HEADERS] == 8);
    assert_eq!(first_of_new, Some(10));
    check_empty(&mut direction);
}
