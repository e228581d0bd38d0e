//! TCP Prague in a network: with a queue that marks early, it fills the link with almost no queue, and flows
//! with different RTTs share it.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::tcp::{Config, CongestionControl};
use fairgate_sim::{Flow, Link, Queue, Results, Scenario, Simulation, Tcp};

use CongestionControl::{Cubic, Dctcp, Prague};

const RATE: Rate = Rate::mbit(40);

/// Runs transfers through DualPI2, each with its congestion control and its RTT in ms. The measurement is
/// from 20 to 60 s.
fn over_dualpi2(transfers: &[(CongestionControl, u64)]) -> Results {
    let mut scenario = Scenario::new(Duration::from_secs(60));
    scenario.measure = Duration::from_secs(20)..Duration::from_secs(60);
    let (router, sink) = (scenario.node("router"), scenario.node("sink"));
    let spec = Spec::inline("dualpi2").expect("the description is valid");
    let link = Link::new(router, sink, RATE, Duration::ZERO);
    scenario
        .links
        .push(link.with_queue_a(Queue::new(move |seed| spec.build(seed))));
    for (number, (control, rtt_ms)) in transfers.iter().enumerate() {
        let source = scenario.node(format!("source{number}"));
        let delay = Duration::from_micros(rtt_ms * 500);
        scenario.links.push(Link::unlimited(source, router, delay));
        let config = Config {
            congestion_control: *control,
            ..Config::default()
        };
        scenario.flows.push(Flow {
            ecn: true,
            ..Flow::new(format!("flow{number}"), source, sink, Tcp::bulk(config))
        });
    }
    Simulation::new(&scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

/// Returns the utilisation of the link and the mean queueing delay, ms.
fn link(results: &Results) -> (f64, f64) {
    let link = &results.interfaces[0];
    (
        link.utilisation.expect("the link has a rate"),
        link.sojourn.mean_ns as f64 * 1e-6,
    )
}

/// DualPI2 marks each L4S packet that waits for more than 1 ms (RFC 9332, appendix A). So the queue is near
/// this, and nothing is lost.
#[test]
fn prague_fills_the_link_with_a_queue_of_a_millisecond() {
    for rtt_ms in [5, 20, 60] {
        let results = over_dualpi2(&[(Prague, rtt_ms)]);
        let (utilisation, queue) = link(&results);
        assert!(utilisation > 0.9, "{rtt_ms} ms: {utilisation} of the link");
        assert!(queue < 1.5, "{rtt_ms} ms: {queue} ms are queued");
        assert_eq!(results.flows[0].lost, 0);
        assert!(results.flows[0].marked > 0);
        let connection = results.flows[0].connection.as_ref().expect("tcp");
        assert!(connection.ecn_reductions > 0);
    }
}

/// Below a virtual RTT of 25 ms the RTT does not matter: rates of flows with 5 and 25 ms differ by less than
/// the ratio of 5 of RTTs. DCTCP's differ by more.
#[test]
fn prague_depends_less_on_the_rtt_than_dctcp() {
    let ratio = |control| {
        let results = over_dualpi2(&[(control, 5), (control, 25)]);
        results.flows[0].goodput_bps as f64 / results.flows[1].goodput_bps as f64
    };
    let (prague, dctcp) = (ratio(Prague), ratio(Dctcp));
    assert!((0.5..2.0).contains(&prague), "{prague}");
    assert!(dctcp > 1.5 * prague, "{dctcp} of DCTCP, {prague} of Prague");
}

/// DualPI2 couples the two queues so that a scalable and a classic flow get about the same rate (RFC 9332,
/// section 2.1).
#[test]
fn prague_and_cubic_share_the_link() {
    let results = over_dualpi2(&[(Prague, 30), (Cubic, 30)]);
    let [prague, cubic] = [0, 1].map(|flow| results.flows[flow].goodput_bps as f64);
    assert!((0.5..2.0).contains(&(prague / cubic)), "{prague} beside {cubic}");
    assert!(link(&results).0 > 0.95);
}
