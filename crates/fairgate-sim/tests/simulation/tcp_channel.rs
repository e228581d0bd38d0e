//! Both ends of TCP over a channel that loses, delays, reorders, duplicates and marks segments. All data
//! arrives once and in order, and the connection closes. The same channel gives the same run.

use std::collections::BTreeMap;
use std::time::Duration;

use fairgate::{Ecn, Time};
use fairgate_sim::tcp::{Config, CongestionControl, Flags, Receiver, Segment, Sender, SenderCounters};
use proptest::prelude::*;

/// The one-way delay of the channel without reordering, ns.
const DELAY: u64 = 10_000_000;
/// The additional delay of a segment on a detour, ns.
const DETOUR: u64 = 4_000_000;
/// The maximum duration of a connection: many timeouts with back-off.
const PATIENCE: Time = Time::from_secs(100_000);

/// What happens to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Lose,
    Delay(u64),
    Duplicate,
    Mark,
}

/// The fates of the segments, in order. After the last one every segment passes, so that every run ends.
#[derive(Clone, Debug)]
struct Fates {
    list: Vec<Fate>,
    used: usize,
}

impl Fates {
    fn next(&mut self) -> Fate {
        let fate = self.list.get(self.used).copied().unwrap_or(Fate::Pass);
        self.used += 1;
        fate
    }
}

/// The outcome of a finished run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    delivered: u64,
    ended_at: Time,
    counters: SenderCounters,
    /// The segments that the sender has sent, and when.
    segments: Vec<(Time, Segment)>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    ToReceiver(Segment),
    ToSender(Segment),
}

struct Channel {
    sender: Sender,
    receiver: Receiver,
    events: BTreeMap<(Time, u64), Event>,
    serial: u64,
    now: Time,
    fates: Fates,
    /// The segments that the sender has sent, and when.
    sent: Vec<(Time, Segment)>,
}

impl Channel {
    fn new(config: &Config, bytes: u64, fates: Vec<Fate>) -> Channel {
        let mut sender = Sender::new(config, Time::ZERO);
        sender.write(bytes, Time::ZERO);
        sender.close(Time::ZERO);
        Channel {
            sender,
            receiver: Receiver::new(config, Time::ZERO),
            events: BTreeMap::new(),
            serial: 0,
            now: Time::ZERO,
            fates: Fates { list: fates, used: 0 },
            sent: Vec::new(),
        }
    }

    fn put(&mut self, mut segment: Segment, wrap: fn(Segment) -> Event) {
        let mut arrivals = vec![self.now + DELAY];
        match self.fates.next() {
            Fate::Pass => {}
            Fate::Lose => arrivals.clear(),
            Fate::Delay(steps) => arrivals[0] = self.now + DELAY + steps * DETOUR,
            Fate::Duplicate => arrivals.push(self.now + DELAY + DETOUR),
            Fate::Mark if segment.ecn.is_capable() => segment.ecn = Ecn::Ce,
            Fate::Mark => {}
        }
        for at in arrivals {
            self.serial += 1;
            self.events.insert((at, self.serial), wrap(segment));
        }
    }

    fn transmit(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            self.sent.push((self.now, segment));
            self.put(segment, Event::ToReceiver);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.put(segment, Event::ToSender);
        }
    }

    /// Runs until both ends have finished.
    fn run(mut self) -> Outcome {
        let mut delivered = 0;
        self.transmit();
        while !(self.sender.is_closed() && self.receiver.is_finished()) {
            self.step();
            assert!(
                self.receiver.delivered() >= delivered,
                "the count of delivered bytes must not fall"
            );
            delivered = self.receiver.delivered();
        }
        Outcome {
            delivered,
            ended_at: self.now,
            counters: self.sender.counters(),
            segments: self.sent,
        }
    }

    /// Handles the next event or timer.
    fn step(&mut self) {
        let event = self.events.first_key_value().map(|(&(at, _), _)| at);
        let timer = [self.sender.timer(), self.receiver.timer()]
            .into_iter()
            .flatten()
            .min();
        let next = event
            .into_iter()
            .chain(timer)
            .min()
            .expect("an open connection has an event or a timer");
        assert!(next >= self.now, "time runs backwards: {next} after {}", self.now);
        assert!(next < PATIENCE, "the connection does not end");
        self.now = next;
        if event == Some(next) {
            match self.events.pop_first().expect("just seen").1 {
                Event::ToReceiver(segment) => self.receiver.on_segment(&segment, next),
                Event::ToSender(segment) => self.sender.on_segment(&segment, next),
            }
        } else {
            self.sender.on_timer(next);
            self.receiver.on_timer(next);
        }
        self.transmit();
    }
}

fn config(cubic: bool, ecn: bool) -> Config {
    let control = match cubic {
        true => CongestionControl::Cubic,
        false => CongestionControl::Reno,
    };
    controlled(control, ecn)
}

fn controlled(control: CongestionControl, ecn: bool) -> Config {
    Config {
        congestion_control: control,
        ecn,
        ..Config::default()
    }
}

fn control() -> impl Strategy<Value = CongestionControl> {
    prop::sample::select(vec![
        CongestionControl::Reno,
        CongestionControl::Cubic,
        CongestionControl::Dctcp,
        CongestionControl::Ledbat,
        CongestionControl::Bbr,
        CongestionControl::Bbr3,
        CongestionControl::Prague,
    ])
}

/// Any combination of settings. The tick and the timeouts are not the default's.
fn settings() -> impl Strategy<Value = Config> {
    (
        (control(), any::<bool>(), prop::option::of(1u32..60)),
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        (
            1u32..20,
            6_000u32..100_000,
            prop::sample::select(vec![100, 250, 1000]),
        ),
    )
        .prop_map(|(control, switches, numbers)| {
            let (congestion_control, ecn, fixed_window) = control;
            let (sack, paced, delayed, buffers) = switches;
            let (initial_window, buffer, hz) = numbers;
            let mut config = Config {
                fixed_window,
                sack,
                pacing: paced.then_some(true),
                delayed_ack: delayed.then_some(Duration::from_millis(100)),
                min_rto: Duration::from_millis(50),
                initial_rto: Duration::from_millis(300),
                initial_window,
                hz,
                ..controlled(congestion_control, ecn)
            };
            if buffers {
                config.fix_receive_buffer(buffer);
                config.fix_send_buffer(buffer);
            }
            config
        })
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Pass),
        2 => Just(Fate::Lose),
        2 => (1u64..6).prop_map(Fate::Delay),
        1 => Just(Fate::Duplicate),
        1 => Just(Fate::Mark),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn everything_arrives_once_and_in_order(
        bytes in 0u64..400_000,
        config in prop_oneof![
            (control(), any::<bool>()).prop_map(|(control, ecn)| controlled(control, ecn)),
            settings(),
        ],
        fates in prop::collection::vec(fate(), 0..400),
    ) {
        let outcome = Channel::new(&config, bytes, fates.clone()).run();
        prop_assert_eq!(outcome.delivered, bytes);
        let again = Channel::new(&config, bytes, fates).run();
        prop_assert_eq!(outcome, again, "the same channel gave another run");
    }

    /// RFC 3168, 6.1.2: however many segments are marked, the window is reduced once per window of data.
    #[test]
    fn marks_reduce_the_window_once_per_round_trip(
        start in 20usize..200,
        marks in 1usize..200,
        control in control(),
    ) {
        let mut fates = vec![Fate::Pass; start];
        fates.extend(vec![Fate::Mark; marks]);
        let outcome = Channel::new(&controlled(control, true), 600_000, fates).run();
        prop_assert_eq!(outcome.delivered, 600_000);
        prop_assert_eq!(outcome.counters.retransmissions, 0, "a mark is not a loss");
        let reductions: Vec<(Time, u64)> = outcome
            .segments
            .iter()
            .filter(|(_, segment)| segment.flags.contains(Flags::CWR) && !segment.flags.contains(Flags::SYN))
            .map(|(at, segment)| (*at, segment.seq))
            .collect();
        prop_assert!(reductions.len() as u64 <= outcome.counters.ecn_reductions);
        for pair in reductions.windows(2) {
            let is_apart = pair[1].0 - pair[0].0 >= 2 * DELAY;
            prop_assert!(is_apart, "two reductions within a round trip: {:?}", pair);
        }
    }
}

#[test]
fn nothing_is_retransmitted_on_a_lossless_channel() {
    for cubic in [false, true] {
        let outcome = Channel::new(&config(cubic, false), 2_000_000, Vec::new()).run();
        assert_eq!(outcome.delivered, 2_000_000);
        assert_eq!(outcome.counters.retransmissions, 0);
        assert_eq!(outcome.counters.data_segments, 2_000_000u64.div_ceil(1448));
    }
}

#[test]
fn the_initial_window_is_ten_segments() {
    let outcome = Channel::new(&config(true, false), 100_000, Vec::new()).run();
    let first_flight = outcome
        .segments
        .iter()
        .filter(|(at, segment)| at.nanos() == 2 * DELAY && segment.length > 0);
    assert_eq!(first_flight.count(), 10);
}

#[test]
fn a_single_loss_is_repaired_by_fast_retransmission() {
    // The SYN, the ACK of the handshake, and ten segments, of which the third is lost.
    let mut fates = vec![Fate::Pass; 5];
    fates.push(Fate::Lose);
    let outcome = Channel::new(&config(false, false), 100_000, fates).run();
    assert_eq!(outcome.counters.retransmissions, 1);
    assert_eq!((outcome.counters.recoveries, outcome.counters.timeouts), (1, 0));
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe() {
    // Three segments, of which the last is lost. No duplicate acknowledgement can report it.
    let mut fates = vec![Fate::Pass; 5];
    fates.push(Fate::Lose);
    let outcome = Channel::new(&config(false, false), 3 * 1448, fates).run();
    assert_eq!((outcome.counters.probes, outcome.counters.timeouts), (1, 0));
    assert_eq!(outcome.counters.retransmissions, 1);
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let outcome = Channel::new(&config(false, false), 1448, vec![Fate::Lose]).run();
    assert_eq!(outcome.delivered, 1448);
    assert!(outcome.ended_at >= Time::from_secs(1) && outcome.ended_at < Time::from_millis(1500));
}

#[test]
fn reordering_causes_no_timeout_and_few_retransmissions() {
    let mut fates = vec![Fate::Pass; 20];
    for _ in 0..30 {
        fates.extend([
            Fate::Delay(1),
            Fate::Pass,
            Fate::Pass,
            Fate::Pass,
            Fate::Pass,
            Fate::Pass,
            Fate::Pass,
        ]);
    }
    let outcome = Channel::new(&config(true, false), 1_000_000, fates).run();
    assert_eq!(outcome.delivered, 1_000_000);
    assert_eq!(outcome.counters.timeouts, 0);
    assert!(outcome.counters.retransmissions < 10, "{:?}", outcome.counters);
}

/// Without SACK, one loss is repaired per round trip (RFC 6582): the second of two losses in a flight is seen
/// when the acknowledgement of the first retransmission does not cover it.
#[test]
fn newreno_repairs_one_loss_per_round_trip() {
    let mut fates = vec![Fate::Pass; 24];
    fates.extend([Fate::Lose, Fate::Pass, Fate::Lose, Fate::Pass, Fate::Lose]);
    let config = Config {
        sack: false,
        delayed_ack: None,
        ..config(false, false)
    };
    let outcome = Channel::new(&config, 300_000, fates).run();
    let counters = outcome.counters;
    assert_eq!(
        (counters.recoveries, counters.timeouts, counters.retransmissions),
        (1, 0, 3)
    );
    let mut highest = 0;
    let mut repeated = Vec::new();
    for (at, segment) in outcome.segments.iter().filter(|(_, segment)| segment.length > 0) {
        if segment.seq < highest {
            repeated.push(at.nanos());
        }
        highest = highest.max(segment.seq);
    }
    for pair in repeated.windows(2) {
        assert_eq!(pair[1] - pair[0], 2 * DELAY, "{repeated:?}");
    }
}

/// With a pacing rate of a window per RTT, no two segments of a window leave together.
#[test]
fn paced_segments_leave_one_by_one() {
    for control in [
        CongestionControl::Reno,
        CongestionControl::Prague,
        CongestionControl::Bbr,
    ] {
        let config = Config {
            pacing: Some(true),
            ..controlled(control, false)
        };
        let outcome = Channel::new(&config, 400_000, Vec::new()).run();
        let sent: Vec<u64> = outcome
            .segments
            .iter()
            .filter(|(_, segment)| segment.length > 0)
            .map(|(at, _)| at.nanos())
            .collect();
        assert_eq!(sent[..10], [2 * DELAY; 10], "the first ten are not paced");
        assert!(
            sent[10..].windows(2).all(|pair| pair[0] < pair[1]),
            "{control:?}: {sent:?}"
        );
    }
}

#[test]
fn every_segment_is_acknowledged_if_acknowledgements_do_not_wait() {
    let acks = |delayed_ack| {
        let config = Config {
            delayed_ack,
            fixed_window: Some(10),
            ..Config::default()
        };
        let mut channel = Channel::new(&config, 1_448_000, Vec::new());
        let mut sender_got = 0;
        channel.transmit();
        while !(channel.sender.is_closed() && channel.receiver.is_finished()) {
            sender_got = channel.receiver.segments_sent();
            channel.step();
        }
        sender_got
    };
    // 1000 segments and the SYN-ACK. The FIN is in the last one.
    assert_eq!(acks(None), 1_001);
    let delayed = acks(Some(Duration::from_millis(40)));
    assert!((500..650).contains(&delayed), "{delayed}");
}
