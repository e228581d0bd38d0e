//! Laws of windows: what limits a sender to one window per round trip, how slow start grows, and Reno's
//! sawtooth.

use std::time::Duration;

use fairgate::Rate;
use fairgate_sim::Queue;
use fairgate_sim::tcp::CongestionControl::{Cubic, Reno};

use super::network::{MSS, PACKET, Path, assert_near, textbook};

/// A sender with a window of W segments sends W segments per RTT. A segment that is in the window at the
/// start of the measurement may or may not count: W segments of the whole, which are one in 100 round trips.
#[test]
fn a_fixed_window_gives_window_over_rtt() {
    for (window, rtt_ms) in [(1, 100), (20, 50), (333, 20)] {
        let mut config = textbook(Cubic);
        config.fixed_window = Some(window);
        let path = Path::new(None, rtt_ms, Queue::fifo(10_000), (5, 65));
        let results = path.transfer("fixed", config).run();
        let law = f64::from(window * MSS * 8) / (rtt_ms as f64 * 1e-3);
        let tolerance = rtt_ms as f64 * 1e-3 / 60.0;
        assert_near("goodput", results.goodput_bps as f64, law, tolerance);
        assert_eq!(
            results.flows[0]
                .connection
                .as_ref()
                .expect("tcp")
                .congestion_control,
            "fixed"
        );
    }
}

/// The receive window limits like a congestion window: receive buffer / RTT. Linux keeps one segment of 1460
/// bytes in reserve, and rounds the window up to 128 bytes. The sender sends whole segments only, and waits
/// if the next one does not fit, so it may lack almost one segment. `segments` in `law` has both.
#[test]
fn the_receive_window_gives_window_over_rtt() {
    for (buffer, rtt_ms) in [(64_000, 50), (250_000, 100), (20_000, 10)] {
        let mut config = textbook(Cubic);
        config.fix_receive_buffer(buffer);
        let path = Path::new(None, rtt_ms, Queue::fifo(10_000), (5, 65));
        let results = path.transfer("limited", config).run();
        let rtts_per_second = 1e3 / rtt_ms as f64;
        let most = f64::from((buffer - 1460 + 127) / MSS * MSS * 8) * rtts_per_second;
        let least = f64::from(((buffer - 1460) / MSS - 1) * MSS * 8) * rtts_per_second;
        let edge = 1.0 + rtt_ms as f64 * 1e-3 / 60.0;
        let goodput = results.goodput_bps as f64;
        assert!(
            (least / edge..=most * edge).contains(&goodput),
            "{buffer} bytes: {goodput} is not from {least} to {most}"
        );
    }
}

/// In slow start every acknowledged segment adds one to the window, so it doubles in each round trip, with or
/// without delayed acknowledgements. After the handshake, which takes one RTT, and n more, the window is
/// 10 x 2^n. A window of W is reached after log2(W / 10) round trips.
#[test]
fn slow_start_doubles_the_window_in_each_round_trip() {
    const RTT_MS: u64 = 100;
    for initial in [1, 2, 10] {
        let mut config = textbook(Reno);
        config.initial_window = initial;
        let mut path = Path::new(None, RTT_MS, Queue::fifo(1_000_000), (0, 2)).transfer("start", config);
        path.scenario.interval = Duration::from_millis(RTT_MS / 2);
        path.scenario.duration = Duration::from_millis(1_100);
        path.scenario.measure = Duration::ZERO..path.scenario.duration;
        let results = path.run();
        let series = &results.flows[0]
            .connection
            .as_ref()
            .expect("tcp")
            .window_series_segments;
        for round in 0..9 {
            // The series is sampled in the middle of each round trip: after the acknowledgements of all
            // segments of the last one.
            let sample = series[2 * (round + 1)];
            assert_eq!(
                sample,
                initial << round,
                "after {round} round trips from {initial}: {series:?}"
            );
        }
    }
}

/// Reno's window grows by one segment per RTT, and is halved when the queue overflows. If the queue never
/// empties, the RTT is W / C, with C in segments per second, so W^2 grows by 2 C per second. From M / 2 to M:
///
/// * the period is 3/8 M^2 / C,
/// * the mean over time is 7/9 M.
///
/// M is what the path holds: the segments in flight in a BDP, in the queue, and one in transmission. The
/// window is above that by one when a segment is lost, and grows for at most one more RTT until the loss is
/// seen: M is uncertain by 2 segments. Recovery takes one RTT, in which the window does not grow: the period
/// is longer by up to M / C, which is 8/3 / M of it.
#[test]
fn renos_sawtooth_has_the_period_and_the_mean_of_the_law() {
    const RATE: Rate = Rate::mbit(10);
    let segments_per_second = 10e6 / f64::from(8 * PACKET);
    for (rtt_ms, limit) in [(50, 60), (20, 100), (80, 150)] {
        let mut path =
            Path::new(Some(RATE), rtt_ms, Queue::fifo(limit), (100, 1_100)).transfer("reno", textbook(Reno));
        path.scenario.interval = Duration::from_millis(10);
        let results = path.run();
        let bdp = segments_per_second * rtt_ms as f64 * 1e-3;
        let peak = bdp + f64::from(limit) + 1.0;
        let connection = results.flows[0].connection.as_ref().expect("tcp");

        let period = 1_000.0 / connection.recoveries as f64;
        let law = 0.375 * peak * peak / segments_per_second;
        // A period may be cut at each end of the measurement.
        let cut = 1.0 / connection.recoveries as f64;
        assert_near("period, s", period, law, 4.0 / peak + 8.0 / 3.0 / peak + cut);

        let series = &connection.window_series_segments[10_000..];
        let mean = series.iter().map(|&window| f64::from(window)).sum::<f64>() / series.len() as f64;
        // The recovery of one RTT is at half the peak instead of the mean: 5/18 M, for 8/3 / M of the time.
        assert_near(
            "mean window",
            mean,
            7.0 / 9.0 * peak,
            (2.0 + 0.75 + cut * peak / 9.0) / peak,
        );
        assert_eq!(connection.timeouts, 0);
    }
}

/// How many segments Reno loses when its window exceeds the path by one.
///
/// The segment too many is the last of its window. It is seen as lost when the acknowledgements of the window
/// before it have arrived: one less than the window. If they give the window another segment before, a second
/// one is lost. If every segment is acknowledged, the credit is 0 after each increase, one acknowledgement is
/// missing for another, and one segment is lost. If acknowledgements cover two segments, the credit may be 1
/// after an increase, and then two are lost. Which it is depends on whether windows before were even or odd,
/// and on segments that were acknowledged alone. In the recorded cell `pfifo100-reno-rtt100-n1-udp0`, Linux
/// lost three segments at two overflows.
#[test]
fn reno_loses_one_segment_at_an_overflow_or_two_if_acknowledgements_cover_two() {
    let losses = |delayed_ack| {
        let mut config = textbook(Reno);
        config.delayed_ack = delayed_ack;
        let path = Path::new(Some(Rate::mbit(10)), 100, Queue::fifo(100), (30, 600));
        let results = path.transfer("reno", config).run();
        let flow = &results.flows[0];
        (flow.lost, flow.connection.as_ref().expect("tcp").recoveries)
    };
    let (lost, overflows) = losses(None);
    assert!(overflows > 20);
    assert_eq!(lost, overflows);
    let (lost, overflows) = losses(Some(Duration::from_millis(40)));
    assert!(
        overflows < lost && lost < 2 * overflows,
        "{lost} at {overflows} overflows"
    );
}
