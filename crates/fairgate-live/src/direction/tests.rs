//! Frames through one direction, without sockets.

use super::*;
use crate::offload::VnetHeader;
use etherparse::PacketBuilder;
use fairgate_config::Spec;
use fairgate_conformance::check_driver;
use proptest::prelude::*;

/// A direction around a tree written as on the command line, with room for four frames.
fn direction(queue: &str, delay: u64) -> Direction {
    let tree = Spec::inline(queue).unwrap().build(1).unwrap();
    let frames = FrameStore::new(4, 1518).unwrap();
    Direction::new(1, tree, FlowHasher::new([1, 2]), frames, delay)
}

fn offer(direction: &mut Direction, bytes: &[u8], length: usize, now: Time) {
    let received = Received {
        bytes,
        length,
        tag: None,
        offload: VnetHeader::default(),
    };
    if direction.accept(&received, now).is_err() {
        direction.counters.too_long += 1;
    }
}

/// A UDP packet whose sender can do ECN.
fn capable_frame() -> Vec<u8> {
    let mut frame = Vec::new();
    let mut ip =
        etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
    ip.ecn = etherparse::IpEcn::TWO;
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
        .udp(1, 2)
        .write(&mut frame, &[7; 500])
        .unwrap();
    frame
}

/// Every frame is in the store, in the line, or accounted for.
#[test]
fn frames_without_room_are_counted_and_others_freed() {
    let mut direction = direction("fifo limit=2", 0);
    let frame = capable_frame();
    for _ in 0..3 {
        offer(&mut direction, &frame, frame.len(), Time::ZERO);
    }
    // The third was dropped by the queue, and its frame freed.
    assert_eq!(direction.link.root().statistics().dropped.packets, 1);
    assert_eq!(direction.fill_line(Time::ZERO, 0), 2);
    for _ in 0..4 {
        offer(&mut direction, &frame, frame.len(), Time::ZERO);
    }
    // Two in the line and two queued: all four frames are in use.
    assert_eq!(direction.counters.no_frame, 2);
    assert_eq!(
        (direction.in_delay_line(), direction.link.backlog().packets),
        (2, 2)
    );
    offer(&mut direction, &frame[..100], frame.len(), Time::ZERO);
    offer(&mut direction, &vec![0; 1600], 1600, Time::ZERO);
    assert_eq!(
        (direction.counters.truncated, direction.counters.too_long),
        (1, 1)
    );
}

#[test]
fn a_mark_is_written_into_the_frame() {
    let mut direction = direction("codel ecn=true target=1ms interval=10ms", 0);
    let frame = capable_frame();
    let mut marked = 0;
    for millis in 0..100 {
        offer(&mut direction, &frame, frame.len(), Time::from_millis(millis));
        offer(&mut direction, &frame, frame.len(), Time::from_millis(millis));
        // A packet waits for 5 ms and more.
        if millis >= 5 && direction.link.backlog().packets > 0 {
            let later = Time::from_millis(millis + 20);
            let next = direction.link.dequeue(later).packet();
            let departure = next.expect("a work-conserving discipline with a backlog");
            direction.enter_line(&departure, later);
            let number = direction.delay_line.pop().unwrap();
            marked += usize::from(direction.frames.get(number)[15] & 3 == 3);
            direction.frames.free(number);
        }
    }
    assert!(marked > 0);
    assert_eq!(marked as u64, direction.link.root().statistics().marked);
}

/// A duplicate has a frame of its own with the same bytes, as long as there are frames.
#[test]
fn a_frame_is_duplicated() {
    let mut direction = direction("netem duplicate=1", 0);
    let frame = capable_frame();
    offer(&mut direction, &frame, frame.len(), Time::ZERO);
    assert_eq!(direction.link.backlog().packets, 2);
    assert_eq!(direction.fill_line(Time::ZERO, 0), 2);
    let numbers: Vec<u32> = std::iter::from_fn(|| direction.delay_line.pop()).collect();
    assert!(numbers[0] != numbers[1]);
    for number in numbers {
        assert_eq!(direction.frames.get(number), frame);
        direction.frames.free(number);
    }
    // Four frames are stored; the last packet finds no room for its copy.
    for _ in 0..3 {
        offer(&mut direction, &frame, frame.len(), Time::ZERO);
    }
    assert_eq!(direction.link.backlog().packets, 4);
    assert_eq!(direction.counters.no_frame, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the tree counts beside the frame.
    #[test]
    fn a_corrupted_frame_has_one_wrong_bit(overhead in -14i32..=1000, micros in 0u64..1_000_000) {
        let mut direction = direction("netem corrupt=1", 0);
        direction.overhead = overhead;
        let (frame, now) = (capable_frame(), Time::from_micros(micros));
        offer(&mut direction, &frame, frame.len(), now);
        assert_eq!(direction.fill_line(now, 0), 1);
        let number = direction.delay_line.pop().unwrap();
        let sent = direction.frames.get(number).iter().zip(&frame);
        let wrong: u32 = sent.map(|(sent, offered)| (sent ^ offered).count_ones()).sum();
        prop_assert_eq!(wrong, 1);
    }
}

/// Acknowledgements of a download whose upload waits: three numbers, of which the last says all.
#[test]
fn redundant_acknowledgements_are_dropped() {
    let mut direction = direction("cake bandwidth=1mbit ack_filter=aggressive", 0);
    let mut numbers = Vec::new();
    for number in [1000, 2000, 3000] {
        let mut frame = Vec::new();
        let packet = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let tcp = packet.tcp(1, 2, 3, 4).ack(number);
        tcp.write(&mut frame, &[]).unwrap();
        offer(&mut direction, &frame, frame.len(), Time::ZERO);
    }
    while direction.link.backlog().packets > 0 {
        let next = direction.link.dequeue(Time::from_secs(1)).packet();
        let departure = next.expect("the shaper has let it through");
        let frame = direction.frames.get(departure.slot.cookie as u32);
        numbers.push(u32::from_be_bytes(frame[42..46].try_into().unwrap()));
    }
    assert_eq!(numbers, [3000]);
    let statistics = direction.link.root().statistics();
    assert_eq!(statistics.dropped_for(fairgate::DropReason::RedundantAck), 2);
}

#[test]
fn the_line_delays_and_keeps_order() {
    let mut direction = direction("fifo", 5_000_000);
    let frame = capable_frame();
    offer(&mut direction, &frame, frame.len(), Time::ZERO);
    assert_eq!(direction.fill_line(Time::from_millis(1), 0), 1);
    assert_eq!(direction.next_departure(), Some(Time::from_millis(6)));
    assert_eq!(direction.delay_line.due(Time::from_nanos(5_999_999)).count(), 0);
    assert_eq!(direction.delay_line.due(Time::from_millis(6)).count(), 1);
}

/// The tree's link has no transmission time: a packet that may be sent goes to the delay line
/// immediately. A frame begins with its number.
#[test]
fn the_direction_drives_by_the_rules() {
    check_driver(None, |discipline, arrivals| {
        let hasher = FlowHasher::new([1, 2]);
        let mut direction = Direction::new(1, discipline, hasher, FrameStore::new(4096, 1518).unwrap(), 0);
        let mut began = vec![None; arrivals.len()];
        let mut coming = arrivals.iter().enumerate().peekable();
        let mut due: Option<Time> = None;
        while let Some(now) = due
            .into_iter()
            .chain(coming.peek().map(|(_, packet)| packet.at))
            .min()
        {
            if let Some((number, packet)) = coming.next_if(|(_, packet)| packet.at == now) {
                let mut frame = vec![0; packet.length as usize];
                frame[..4].copy_from_slice(&(number as u32).to_be_bytes());
                offer(&mut direction, &frame, frame.len(), now);
            }
            while direction.fill_line(now, 0) > 0 {}
            while let Some(frame) = direction.delay_line.pop() {
                let number = direction.frames.get(frame)[..4].try_into().unwrap();
                began[u32::from_be_bytes(number) as usize] = Some(now);
                direction.frames.free(frame);
            }
            due = direction.next_departure();
        }
        began
    });
}

/// Packets of a shaper may leave together a little early. Those that have a time may not.
#[test]
fn no_packet_leaves_before_the_end_of_its_delay() {
    const AHEAD: u64 = 500_000;
    let at = Time::from_micros;
    let frame = capable_frame();
    let left_early = |queue: &str, delay: u64| {
        let tree = Spec::inline(queue).unwrap();
        let mut direction = direction(queue, delay);
        direction.set_times(delay > 0 || tree.keeps_times());
        // The first one is sent at once by a shaper, and the second one after 10 ms.
        for _ in 0..2 {
            offer(&mut direction, &frame, frame.len(), Time::ZERO);
            direction.fill_line(Time::ZERO, AHEAD);
        }
        let early = direction.fill_line(at(9_600), AHEAD) > 0;
        direction.fill_line(at(10_000), AHEAD);
        assert_eq!(direction.link.backlog().packets, 0, "{queue}");
        early
    };
    let shaper = "tbf rate=433600bit burst=542 latency=1s";
    assert!(left_early(shaper, 0));
    assert!(!left_early(shaper, 5_000_000));
    assert!(!left_early("netem delay=10ms", 0));
    assert!(!left_early("prio { 1 / netem delay=10ms; 2 / fifo }", 0));
}
