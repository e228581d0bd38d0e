//! Laws of losses: the throughput that a loss rate allows.

use std::time::Duration;

use fairgate_sim::tcp::CongestionControl::{self, Cubic, Reno};

use super::network::{Losing, MSS, Path, assert_near, lossy, textbook};

/// Returns the mean window: segments per RTT on a path without transmission time or queue. Also returns the
/// number of losses.
fn mean_window(control: CongestionControl, losing: Losing, rtt_ms: u64, seconds: u64) -> (f64, u64) {
    let path = Path::new(None, rtt_ms, lossy(losing), (100, 100 + seconds));
    let results = path.transfer("flow", textbook(control)).run();
    let flow = &results.flows[0];
    assert_eq!(flow.connection.as_ref().expect("tcp").timeouts, 0);
    let per_rtt = rtt_ms as f64 * 1e-3 / f64::from(8 * MSS);
    (flow.goodput_bps as f64 * per_rtt, flow.lost)
}

/// Mathis, Semke, Mahdavi, Ott 1997: with one loss in each 1 / p packets, the window is a sawtooth between
/// W / 2 and W, of which one period is 3/8 W^2 = 1 / p packets. Its mean is sqrt(3/2) / sqrt(p).
///
/// Recovery takes one RTT of W / 2 packets without growth. It is one more of the W / 2 round trips of a
/// period, with 2/3 of the mean window: the mean is lower by (1/3) (2 / W). Windows are whole segments:
/// half a segment is rounded down, which is 1 / (1.5 W).
#[test]
fn renos_throughput_with_periodic_losses_is_that_of_mathis() {
    for n in [500, 3_000] {
        let (window, losses) = mean_window(Reno, Losing::Each(n), 50, 400);
        let law = (1.5 * n as f64).sqrt();
        let peak = law / 0.75;
        let cut = 1.0 / losses as f64;
        assert_near(
            "mean window",
            window,
            law,
            2.0 / 3.0 / peak + 1.0 / 1.5 / peak + 1.0 / peak + cut,
        );
    }
}

/// Ott, Kemperman, Mathis 1996 ("The stationary behavior of ideal TCP congestion avoidance"): with
/// independent losses the mean window, per packet, is the fixed point of W^2 / 2 in units of 1 / p: it is
/// halved (W^2 becomes W^2 / 4) at the events of a Poisson process. Per round trip, the throughput is
/// 1.3098 / sqrt(p).
///
/// Several losses in a round trip count as one: with W p losses in a window, the fraction W p / 2 of losses
/// joins an earlier one, and the window is larger by half of this, W p / 4. Recovery and rounding are as
/// above. With L losses the sampling error of the mean is below 1 / sqrt(L), of which two are allowed.
#[test]
fn renos_throughput_with_random_losses_is_that_of_ott() {
    let n = 1_000;
    let (window, losses) = mean_window(Reno, Losing::Random(n), 50, 1_500);
    let law = 1.3098 * (n as f64).sqrt();
    let peak = law / 0.75;
    let joined = law / n as f64 / 4.0;
    let sampling = 2.0 / (losses as f64).sqrt();
    assert_near("mean window", window, law, 7.0 / 3.0 / peak + joined + sampling);
}

/// RFC 9438, section 4.2: after a loss at the window M, the window follows W(t) = C (t - K)^3 + M, with C =
/// 0.4 and K = (0.3 M / C)^(1/3), whatever the RTT is. From the loss to K, when it is M again, its mean is
/// M (1 - 0.3 / 4).
///
/// One segment is lost in slow start, so there is one cycle without a history. Linux's window is aimed at
/// the curve one RTT ahead and takes an RTT to get there. Nothing spaces the segments of a window here, so
/// acknowledgements come once per RTT. The window is aimed anew each 1/32 s, and the series is sampled each
/// 10 ms. So the window is early or late by two RTTs and 42 ms at most. The curve and the window are both
/// rounded to segments, so it is off by two of them.
///
/// The mean over many cycles of equal length (section 5.1, figure 6) is no good test: if the window is a
/// little off the cycle's fixed point, it stays there for hundreds of cycles, because the curve is flat
/// there.
#[test]
fn cubic_follows_its_curve_and_its_mean() {
    const SAMPLE: f64 = 0.01;
    for (lost, rtt_ms) in [(700, 100), (3_000, 40)] {
        let mut path =
            Path::new(None, rtt_ms, lossy(Losing::Once(lost)), (0, 40)).transfer("cubic", textbook(Cubic));
        path.scenario.interval = Duration::from_millis(10);
        let results = path.run();
        let connection = results.flows[0].connection.as_ref().expect("tcp");
        assert_eq!((connection.recoveries, connection.timeouts), (1, 0));
        let series = &connection.window_series_segments;
        // The loss is seen in the middle of a flight, so no sample shows M. One RTT later recovery is over
        // and the window is 717 / 1024 of M, rounded down. The acknowledgements of this RTT may already have
        // increased it, at the slope of the curve at 0, which is 3 C K^2.
        let drop = series
            .windows(2)
            .position(|pair| pair[1] < pair[0])
            .expect("a reduction");
        let start = drop + 2 + rtt_ms as usize / 10;
        let kept = f64::from(series[start]);
        let k = |most: f64| (0.3 * most / 0.4).cbrt();
        let growth = 1.2 * k(kept * 1024.0 / 717.0).powi(2) * rtt_ms as f64 * 1e-3;
        let [least, most] = [kept - 1.0 - growth, kept + 1.0].map(|kept| kept * 1024.0 / 717.0);
        let late = 2.0 * rtt_ms as f64 * 1e-3 + 1.0 / 32.0 + SAMPLE;
        let curve = |most: f64, t: f64| 0.4 * (t - k(most)).powi(3) + most;
        let until = (1.5 * k(most) / SAMPLE) as usize;
        for (index, &window) in series[start..start + until].iter().enumerate() {
            let t = index as f64 * SAMPLE;
            let range = curve(least, (t - late).max(0.0)) - 2.0..=curve(most, t + late) + 2.0;
            assert!(
                range.contains(&f64::from(window)),
                "{window} at {t:.2} s is not in {range:?}"
            );
        }
        let (most, k) = (kept * 1024.0 / 717.0, k(kept * 1024.0 / 717.0));
        let cycle = &series[start..start + (k / SAMPLE) as usize];
        let mean = cycle.iter().map(|&window| f64::from(window)).sum::<f64>() / cycle.len() as f64;
        // Late by `late` of K: the slope's mean is 0.3 M / K.
        let tolerance = 0.3 * late / k + (2.0 + growth / 0.7) / most;
        assert_near("mean window", mean, most * (1.0 - 0.3 / 4.0), tolerance);
    }
}

/// Two flows with RTTs of 20 and 80 ms over a shared loss rate: by the law of Mathis each has the same
/// window, so their rates are as the inverse of the RTTs. The windows' sampling errors are those above.
#[test]
fn with_random_losses_renos_rates_are_inverse_to_the_rtts() {
    let rates: Vec<f64> = [20, 80]
        .map(|rtt_ms| {
            let (window, losses) = mean_window(Reno, Losing::Random(500), rtt_ms, 30 * rtt_ms);
            assert!(losses > 1_000);
            window / (rtt_ms as f64 * 1e-3)
        })
        .to_vec();
    let peak = 1.3098 * 500f64.sqrt() / 0.75;
    let sampling = 2.0 * 2.0 / 1_000f64.sqrt();
    assert_near("ratio", rates[0] / rates[1], 4.0, 2.0 * 2.0 / peak + sampling);
}

/// If all flows lose a segment at the same times, each T seconds, a flow's window grows from half its peak to
/// the peak by T / RTT. So the peak is 2 T / RTT, the mean 3/2 T / RTT, and the rate 3/2 T / RTT^2: rates are
/// inverse to the squares of the RTTs.
///
/// The window does not grow in the RTT of the recovery, in which it is below the mean: it lacks up to 2 RTT
/// / T. Windows are whole segments: the peak is halved to a whole number, the credit towards the next
/// segment is lost, and half a segment of growth does not show. So it lacks up to 2.5 segments.
#[test]
fn with_common_losses_renos_rates_are_inverse_to_the_squares_of_the_rtts() {
    const PERIOD: u64 = 5;
    let mut rates = Vec::new();
    for rtt_ms in [20, 80] {
        let (window, losses) = mean_window(Reno, Losing::Period(PERIOD), rtt_ms, 100 * PERIOD);
        assert_eq!(losses, 100);
        let rtt = rtt_ms as f64 * 1e-3;
        let law = 1.5 * PERIOD as f64 / rtt;
        let tolerance = 2.0 * rtt / PERIOD as f64 + 2.5 / law;
        assert_near("mean window", window, law, tolerance);
        rates.push((window / rtt, tolerance));
    }
    let [(near, near_tolerance), (far, far_tolerance)] = rates[..] else {
        unreachable!("there are two")
    };
    assert_near("ratio", near / far, 16.0, near_tolerance + far_tolerance);
}
