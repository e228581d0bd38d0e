//! Laws of queues: Little, Cobham, and Kleinrock's optimal point.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::tcp::CongestionControl::{self, Bbr, Bbr3, Cubic};
use fairgate_sim::{Distribution, Flow, Pattern, Queue, Udp};

use super::network::{PACKET, Path, assert_near, textbook};

const RATE: Rate = Rate::mbit(10);

/// Creates Poisson traffic with exponential lengths of 500 bytes on average.
fn poisson(path: &Path, name: &str, mbit_tenths: u64, priority: u8) -> Flow {
    let udp = Udp {
        size: Distribution::Exponential { mean: 500 },
        pattern: Pattern::Poisson {
            rate: Rate::from_bits_per_second(mbit_tenths * 100_000).expect("above 0"),
        },
    };
    Flow {
        priority,
        ..Flow::new(name, path.ends.0, path.ends.1, udp)
    }
}

/// Little 1961: the mean backlog is the arrival rate times the mean sojourn time, for any queue and traffic.
///
/// The backlog is sampled each 1 ms for 200 s. Its samples are correlated over a busy period. For M/M/1
/// with load r, the variance of the time average over T is about 2 r (1 + r) / ((1 - r)^4 m T) (m: service
/// rate), of which three standard deviations are allowed. Both sides see the same busy periods, so the real
/// error is far smaller.
#[test]
fn the_backlog_is_the_arrival_rate_times_the_sojourn_time() {
    for tenths in [50, 80] {
        let mut path = Path::new(Some(RATE), 10, Queue::fifo(100_000), (0, 200));
        path.scenario.interval = Duration::from_millis(1);
        let flow = poisson(&path, "datagrams", tenths, 0);
        path.scenario.flows.push(flow);
        let results = path.run();
        let queue = &results.interfaces[0];
        let series = &queue.backlog_series_packets;
        let backlog = series.iter().sum::<u64>() as f64 / series.len() as f64;
        let rate = queue.transmitted as f64 / 200.0;
        let law = rate * queue.sojourn.mean_ns as f64 * 1e-9;
        let load = queue.utilisation.expect("the link has a rate");
        let service = rate / load;
        let variance = 2.0 * load * (1.0 + load) / ((1.0 - load).powi(4) * service * 200.0);
        assert_near("backlog", backlog, law, 3.0 * variance.sqrt() / law);
    }
}

/// Cobham 1954: in a queue with priorities, without preemption, the mean waiting time of the class k is
/// R / ((1 - s_(k-1)) (1 - s_k)). R is half the arrival rate times the second moment of the service time, and
/// s_k the load of the classes up to k.
///
/// Three classes with loads of 0.3, 0.3 and 0.2. The sampling error of a mean waiting time over T is that of
/// M/M/1 with the class's load and all before it, as in Little's test; three standard deviations are allowed.
#[test]
fn waiting_times_of_priorities_are_those_of_cobham() {
    const SECONDS: f64 = 800.0;
    let spec = Spec::inline("prio { 1 / fifo limit=100000; 2 / fifo limit=100000; 3 / fifo limit=100000 }");
    let spec = spec.expect("the description is valid");
    let queue = Queue::new(move |seed| spec.build(seed));
    let mut path = Path::new(Some(RATE), 10, queue, (0, SECONDS as u64));
    let classes = [("first", 30, 6), ("second", 30, 0), ("third", 20, 2)];
    for (name, tenths, priority) in classes {
        let flow = poisson(&path, name, tenths, priority);
        path.scenario.flows.push(flow);
    }
    let results = path.run();
    // Loads and moments are those of the packets on the link, headers included. The service times are those
    // of an exponential payload plus a constant: E[S^2] = (h + m)^2 + m^2.
    let header = f64::from(28 + 14) * 8.0 / 10e6;
    let payload = 500.0 * 8.0 / 10e6;
    let service = header + payload;
    let second_moment = service * service + payload * payload;
    let rates: Vec<f64> = results
        .flows
        .iter()
        .map(|flow| flow.sent as f64 / SECONDS)
        .collect();
    let residual = rates.iter().sum::<f64>() * second_moment / 2.0;
    let mut before = 0.0;
    for (flow, rate) in results.flows.iter().zip(&rates) {
        let load = before + rate * service;
        let law = residual / ((1.0 - before) * (1.0 - load));
        // The delay is waiting, transmission and 5 ms of propagation.
        let waiting = flow.delay.mean_ns as f64 * 1e-9 - service - 0.005;
        let variance = 2.0 * load * (1.0 + load) / ((1.0 - load).powi(4) * SECONDS / service);
        let tolerance = 3.0 * variance.sqrt() / (load / (1.0 - load));
        assert_near(&flow.name, waiting, law, tolerance);
        before = load;
    }
}

/// Returns the goodput's share of the link and the mean queue, in BDPs, of one flow with much room to queue.
fn operating_point(control: CongestionControl, rtt_ms: u64) -> (f64, f64) {
    let bdp = 10e6 * rtt_ms as f64 * 1e-3 / 8.0 / f64::from(PACKET);
    let path = Path::new(Some(RATE), rtt_ms, Queue::fifo(1_000), (20, 140));
    let results = path.transfer("flow", textbook(control)).run();
    let share = results.interfaces[0].utilisation.expect("the link has a rate");
    let queued = results.interfaces[0].sojourn.mean_ns as f64 * 1e-9 / (f64::from(8 * PACKET) / 10e6);
    (share, queued / bdp)
}

/// Kleinrock 1979: the best point of a path is full throughput without a queue. BBR aims at it, and allows
/// for the bursts of senders and receivers: B = 3 bursts of 2 segments, rounded up to an even number, so B
/// = 7. All volumes are in BDPs here, with b = B / BDP.
///
/// Version 1 paces at 1.25 times the bandwidth until 1/4 + b + 2 / BDP are queued, then at 0.75 times until
/// no more than b are, and at 0.99 times for six RTTs. So b are queued at most, and for 2 d of 6 + 2 d RTTs
/// half of the rest on average, with d = 1 + 4 (b + 2 / BDP): the time to queue it at a quarter of the
/// bandwidth. Version 3 probes less often, and allows for bursts only if the BDP is smaller than they are.
///
/// The throughput lacks 1 % by the pacing margin, and what ProbeRtt costs: version 1 has 4 segments in
/// flight for 0.2 s and up to two RTTs of every 10 s, and version 3 half a BDP of every 5 s. The phase that
/// drains the queue of a probe lasts an RTT at most if the probe has caused none: 1/4 of one of eight RTTs.
#[test]
fn bbr_works_near_kleinrocks_optimal_point() {
    for rtt_ms in [40, 100] {
        let rtt = rtt_ms as f64 * 1e-3;
        let bdp = 10e6 * rtt / 8.0 / f64::from(PACKET);
        for (control, probe_rtt) in [
            (Bbr, (0.2 + 2.0 * rtt) / 10.0),
            (Bbr3, 0.5 * (0.2 + 2.0 * rtt) / 5.0),
        ] {
            let (share, queue) = operating_point(control, rtt_ms);
            let least = 1.0 - 0.01 - probe_rtt - 0.25 / 8.0;
            assert!(
                share >= least,
                "{control:?} {rtt_ms} ms: {share} of the link, {least} are derived"
            );
            let bursts = 7.0 / bdp;
            let d = 1.0 + 4.0 * (bursts + 2.0 / bdp);
            let most = bursts + (0.25 + 2.0 / bdp) / 2.0 * 2.0 * d / (6.0 + 2.0 * d);
            eprintln!("{control:?} {rtt_ms} ms: {share:.4} of the link, {queue:.4} BDP (below {most:.4})");
            assert!(
                queue <= most,
                "{control:?} {rtt_ms} ms: {queue} BDP are queued, {most} are derived"
            );
        }
        let (_, queue) = operating_point(Cubic, rtt_ms);
        assert!(queue > 1.0, "CUBIC fills the queue: {queue} BDP");
    }
}
