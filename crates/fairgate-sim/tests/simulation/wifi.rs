//! Wi-Fi cells in a network: exact times of single packets, shares, priorities, losses, and what may stand in
//! a file.

use std::time::Duration;

use crate::common::read;
use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::results::{AirResults, CellResults};
use fairgate_sim::{
    Access, Cell, Flow, Link, NodeId, Positions, Queue, Results, Scenario, Simulation, Standard, Tcp, Udp,
    tcp,
};
use proptest::prelude::*;

fn run(scenario: &Scenario) -> Results {
    Simulation::new(scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

/// A server behind an access point with `stations`.
fn home(seconds: u64, stations: usize, change: impl FnOnce(&mut Cell)) -> (Scenario, NodeId, Vec<NodeId>) {
    let mut scenario = Scenario::new(Duration::from_secs(seconds));
    let (server, access_point) = (scenario.node("server"), scenario.node("ap"));
    let stations: Vec<NodeId> = (0..stations)
        .map(|number| scenario.node(format!("station{number}")))
        .collect();
    scenario.links.push(Link::new(
        server,
        access_point,
        Rate::mbit(1000),
        Duration::from_millis(5),
    ));
    let mut cell = Cell::new("home", access_point, stations.clone());
    change(&mut cell);
    scenario.cells.push(cell);
    (scenario, server, stations)
}

/// 1472 bytes of payload are an IP packet of 1500 bytes.
fn udp(bits: u64) -> Udp {
    Udp::constant(Rate::from_bits_per_second(bits).expect("above 0"), 1472)
}

#[test]
fn a_packet_takes_the_link_then_aifs_and_its_ppdu() {
    let (mut scenario, server, stations) = home(1, 1, |_| ());
    // A packet each 100 ms, and none of them waits.
    scenario
        .flows
        .push(Flow::new("down", server, stations[0], udp(1472 * 8 * 10)));
    let flow = &run(&scenario).flows[0];
    // Link: 1514 bytes at 1 Gb/s and 5 ms. Air: the next boundary of the slots of 9 µs, which is at most 9 µs
    // away, and a PPDU of 40 µs and 8 symbols. AIFS has passed long before, except for the first packet.
    let least = 12_112 + 5_000_000 + 72_000;
    assert_eq!((flow.sent, flow.lost), (10, 0));
    assert!(
        flow.delay.min_ns >= least && flow.delay.max_ns < least + 9_000,
        "{:?}",
        flow.delay
    );
}

#[test]
fn stations_reach_each_other_through_the_access_point() {
    let (mut scenario, _, stations) = home(1, 2, |_| ());
    scenario
        .flows
        .push(Flow::new("across", stations[0], stations[1], udp(1_000_000)));
    let results = run(&scenario);
    let cell = &results.cells[0];
    assert_eq!(results.flows[0].received, results.flows[0].sent);
    assert_eq!(cell.stations[0].up.delivered, cell.stations[1].down.delivered);
    assert_eq!(results.packet_hops, 2 * results.flows[0].sent);
}

fn names(results: &Results) -> Vec<&str> {
    results
        .interfaces
        .iter()
        .map(|interface| interface.name.as_str())
        .collect()
}

#[test]
fn members_have_interfaces_with_names() {
    let (mut scenario, server, stations) = home(1, 2, |_| ());
    scenario
        .flows
        .push(Flow::new("down", server, stations[1], udp(1_000_000)));
    assert_eq!(
        names(&run(&scenario)),
        [
            "server->ap",
            "ap->server",
            "ap->home",
            "station0->ap",
            "station1->ap"
        ]
    );
}

/// Saturated downlink without competitors: every opportunity of 2528 µs has one A-MPDU of 64 MPDUs and one of
/// 9.
#[test]
fn a_saturated_access_point_has_the_throughput_of_its_aggregates() {
    let (mut scenario, server, stations) = home(5, 1, |cell| cell.mac_queue = 200);
    scenario.measure = Duration::from_secs(1)..Duration::from_secs(5);
    scenario
        .flows
        .push(Flow::new("down", server, stations[0], udp(600_000_000)));
    let results = run(&scenario);
    let down = &results.cells[0].stations[0].down;
    // PPDUs of 2068 and 40 + 4 ceil((9 x 1544 x 8 + 22) / 1560) = 328 µs, two block acknowledgements of 32
    // with SIFS before, SIFS between; then AIFS of 43 µs and 7.5 slots of backoff.
    let opportunity = 2068.0 + 48.0 + 16.0 + 328.0 + 48.0 + 43.0 + 7.5 * 9.0;
    let expected = 73.0 * 1472.0 * 8.0 / opportunity * 1e6;
    let goodput = results.flows[0].goodput_bps as f64;
    assert!(
        (goodput / expected - 1.0).abs() < 0.01,
        "{goodput}, expected {expected}"
    );
    assert!((down.ampdu_frames - 36.5).abs() < 0.5, "{}", down.ampdu_frames);
    let busy = (opportunity - 43.0 - 67.5) / opportunity;
    assert!((results.cells[0].utilisation - busy).abs() < 0.005);
}

/// DCF gives each member the same number of opportunities, so that a station at a low rate takes most of the
/// time (the anomaly of Heusse et al. 2003).
#[test]
fn members_share_opportunities_and_not_time() {
    let (mut scenario, server, stations) = home(10, 2, |cell| {
        cell.access = Access::Dcf;
        cell.ampdu_frames = 1;
        cell.mcs = None;
        cell.positions = Positions::Distances(vec![2.0, 40.0]);
    });
    for &station in &stations {
        scenario.flows.push(Flow::new(
            format!("up{station:?}"),
            station,
            server,
            udp(200_000_000),
        ));
    }
    let results = run(&scenario);
    let [near, far] = [&results.cells[0].stations[0], &results.cells[0].stations[1]];
    assert!(near.mcs == 9 && far.mcs <= 1, "{near:?} {far:?}");
    let ratio = near.up.delivered as f64 / far.up.delivered as f64;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    assert!(far.up.airtime > 3.0 * near.up.airtime);
}

#[test]
fn a_dscp_for_voice_gets_ahead_of_best_effort() {
    // From another station of its own, so that no discipline of the station is in the way.
    let delay = |dscp| {
        let (mut scenario, server, stations) = home(5, 5, |_| ());
        scenario.measure = Duration::from_secs(1)..Duration::from_secs(5);
        for &station in &stations[1..] {
            let name = format!("up{}", station.index());
            scenario
                .flows
                .push(Flow::new(name, station, server, udp(300_000_000)));
        }
        let mut call = Flow::new("call", stations[0], server, Udp::constant(Rate::mbit(1), 200));
        call.dscp = dscp;
        scenario.flows.push(call);
        run(&scenario).flows[4].delay.p95_ns
    };
    let (voice, best_effort, background) = (delay(46), delay(0), delay(8));
    assert!(2 * voice < best_effort, "{voice} {best_effort}");
    assert!(best_effort < background, "{best_effort} {background}");
}

/// The discipline of the access point serves all stations: a fair one shares between their flows, a FIFO
/// gives most to the one that sends most.
#[test]
fn the_discipline_of_the_access_point_decides_about_shares() {
    let shares = |queue: &str| {
        let (mut scenario, server, stations) = home(4, 2, |cell| {
            cell.queue_ap = Queue::from(Spec::inline(queue).expect("the queue is valid"));
            cell.mcs = Some(0);
        });
        scenario.measure = Duration::from_secs(1)..Duration::from_secs(4);
        for (station, mbit) in [(0, 90), (1, 30)] {
            scenario.flows.push(Flow::new(
                format!("down{station}"),
                server,
                stations[station],
                Udp::poisson(Rate::mbit(mbit), 1472),
            ));
        }
        let results = run(&scenario);
        results.flows[0].goodput_bps as f64 / results.flows[1].goodput_bps as f64
    };
    let (fair, fifo) = (shares("drr"), shares("fifo"));
    assert!((fair - 1.0).abs() < 0.1, "{fair}");
    assert!((fifo - 3.0).abs() < 0.3, "{fifo}");
}

#[test]
fn packets_given_up_on_air_are_losses_with_a_reason() {
    let (mut scenario, server, stations) = home(5, 1, |cell| {
        cell.error_rate = 0.5;
        cell.retries = 1;
    });
    scenario
        .flows
        .push(Flow::new("down", server, stations[0], udp(20_000_000)));
    let results = run(&scenario);
    let flow = &results.flows[0];
    // Two attempts: a quarter is lost.
    assert!((flow.loss_ratio - 0.25).abs() < 0.02, "{}", flow.loss_ratio);
    assert_eq!(flow.lost_by_reason.get("retry_limit"), Some(&flow.lost));
    assert_eq!(results.cells[0].stations[0].down.lost, flow.lost);
}

fn mixed(seed: u64, standard: Standard, error_rate: f64, access: Access, rts: bool) -> Scenario {
    let (mut scenario, server, stations) = home(2, 4, |cell| {
        cell.standard = standard;
        cell.access = access;
        cell.error_rate = error_rate;
        cell.mcs = None;
        cell.positions = Positions::Disc { radius: 20.0 };
        cell.rts_from = rts.then_some(3000);
        cell.queue_ap = Queue::from(Spec::inline("fq_codel").expect("the queue is valid"));
    });
    scenario.seed = seed;
    scenario.measure = Duration::from_millis(500)..Duration::from_millis(1900);
    let download = || Tcp::bulk(tcp::Config::default());
    scenario
        .flows
        .push(Flow::new("download", server, stations[0], download()));
    scenario
        .flows
        .push(Flow::new("upload", stations[1], server, download()));
    scenario
        .flows
        .push(Flow::new("across", stations[2], stations[3], download()));
    let mut video = Flow::new("video", server, stations[3], Udp::poisson(Rate::mbit(8), 1200));
    video.dscp = 34;
    video.count = 2;
    scenario.flows.push(video);
    scenario
}

fn all_ways(cell: &CellResults) -> impl Iterator<Item = &AirResults> {
    cell.stations
        .iter()
        .flat_map(|station| [&station.down, &station.up])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// `run` fails if a packet is lost or counted twice.
    #[test]
    fn figures_add_up_and_runs_repeat(
        seed in any::<u64>(),
        standard in prop_oneof![Just(Standard::Ac), Just(Standard::Ax)],
        error_rate in prop_oneof![Just(0.0), Just(0.1)],
        access in prop_oneof![Just(Access::Edca), Just(Access::Dcf)],
        rts in any::<bool>(),
    ) {
        let scenario = mixed(seed, standard, error_rate, access, rts);
        let results = run(&scenario);
        prop_assert_eq!(&results, &run(&scenario));
        let cell = &results.cells[0];
        let airtime: f64 = all_ways(cell).map(|way| way.airtime).sum();
        prop_assert!(cell.utilisation <= 1.0 && cell.collision_share <= cell.utilisation);
        // Exchanges are counted when they end, so two may be on the wrong side of the window's ends.
        let two = 2.0 * 0.0056 / 1.4;
        prop_assert!((cell.utilisation - cell.collision_share - airtime).abs() < two);
        let window = if standard == Standard::Ac { 64.0 } else { 256.0 };
        for way in all_ways(cell) {
            prop_assert!(way.ampdu_frames <= window);
        }
    }
}

#[test]
fn a_disc_puts_stations_at_random_distances() {
    let (mut scenario, server, stations) = home(1, 100, |cell| {
        cell.mcs = None;
        cell.positions = Positions::Disc { radius: 30.0 };
    });
    scenario
        .flows
        .push(Flow::new("down", server, stations[0], udp(1_000_000)));
    let schemes = |seed| {
        scenario.seed = seed;
        let results = run(&scenario);
        let stations = results.cells[0].stations.iter();
        stations.map(|station| station.mcs).collect::<Vec<u8>>()
    };
    let mut schemes = schemes;
    let (one, other) = (schemes(1), schemes(2));
    assert_ne!(one, other);
    // Half of the stations are beyond 30 m / sqrt(2).
    let limit = {
        let at = |metres| {
            let (mut scenario, server, stations) = home(1, 1, |cell| {
                cell.mcs = None;
                cell.positions = Positions::Distances(vec![metres]);
            });
            scenario
                .flows
                .push(Flow::new("down", server, stations[0], udp(1_000_000)));
            run(&scenario).cells[0].stations[0].mcs
        };
        at(30.0 / 2f64.sqrt())
    };
    let beyond = one.iter().filter(|&&mcs| mcs < limit).count();
    assert!(beyond <= 65, "{beyond}");
    let within = one.iter().filter(|&&mcs| mcs > limit).count();
    assert!(within <= 65, "{within}");
}

const FILE: &str = r#"
[queue.air]
discipline = "fq_codel"

[simulate]
duration = "2s"

[[simulate.link]]
a = "server"
b = "ap"
rate = "100mbit"

[[simulate.cell]]
name = "flat"
ap = "ap"
stations = 3
standard = "ax"
width = 40
streams = 2
guard_interval = "1600ns"
distances = [2.0, 10, 20.5]
ampdu_duration = "2ms"
rts_from = "3000b"
queue_ap = "air"

[[simulate.flow]]
name = "down"
from = "server"
to = "ap"
tcp = {}
"#;

#[test]
fn a_cell_is_read_from_a_file() {
    let scenario = read(&FILE.replace("to = \"ap\"", "to = \"flat-2\"")).unwrap();
    let cell = &scenario.cells[0];
    assert_eq!((cell.standard, cell.width, cell.streams), (Standard::Ax, 40, 2));
    assert_eq!(cell.positions, Positions::Distances(vec![2.0, 10.0, 20.5]));
    assert_eq!(cell.ampdu_duration, Duration::from_millis(2));
    assert_eq!((cell.rts_from, cell.ampdu_frames), (Some(3000), 256));
    let results = run(&scenario);
    assert_eq!(results.interfaces[2].name, "ap->flat");
    assert_eq!(results.interfaces[2].discipline, "fq_codel");
    assert!(
        results.flows[0].goodput_bps > 80_000_000,
        "{}",
        results.flows[0].goodput_bps
    );
}

/// Each mistake: what is replaced in the file, by what, the text that the error points at, and a part of it.
#[test]
fn mistakes_are_reported_with_their_place() {
    for (from, to, place, message) in [
        ("stations = 3", "stations = 0", "0", "1 to 2007"),
        ("stations = 3", "stations = [\"ap\"]", "[\"ap\"]", "in it twice"),
        (
            "stations = 3",
            "stations = [\"x\", \"x\"]",
            "[\"x\", \"x\"]",
            "twice",
        ),
        ("standard = \"ax\"", "standard = \"b\"", "\"b\"", "can't be `b`"),
        ("width = 40", "width = 50", "50", "20, 40, 80 or 160"),
        ("streams = 2", "streams = 5", "5", "1 to 4"),
        (
            "\"1600ns\"",
            "\"400ns\"",
            "\"400ns\"",
            "802.11ax has 800ns and 1600ns and 3200ns",
        ),
        (
            "distances = [2.0, 10, 20.5]",
            "distances = [2.0]",
            "[2.0]",
            "1 distances for 3 stations",
        ),
        ("20.5", "2000.5", "[2.0, 10, 2000.5]", "`flat-3` is too weak"),
        ("20.5", "-1", "[2.0, 10, -1]", "above 0"),
        (
            "distances = [2.0, 10, 20.5]",
            "",
            "\"flat\"",
            "neither an MCS nor positions",
        ),
        ("distances = [2.0, 10, 20.5]", "mcs = 12", "12", "0 to 11"),
        ("distances = [2.0, 10, 20.5]", "radius = 0", "0", "above 0"),
        (
            "rts_from",
            "radius = 3\nrts_from",
            "3",
            "either `distances` or a `radius`",
        ),
        ("\"2ms\"", "\"6ms\"", "\"6ms\"", "5484us"),
        ("rts_from", "ampdu_frames = 257\nrts_from", "257", "1 to 256"),
        (
            "rts_from",
            "ampdu_bytes = \"1kb\"\nrts_from",
            "\"1kb\"",
            "from 2340",
        ),
        ("rts_from", "error_rate = 1\nrts_from", "1", "below 1"),
        ("rts_from", "mac_queue = 0\nrts_from", "0", "1 to"),
        ("rts_from", "retries = 255\nrts_from", "255", "0 to 254"),
        ("rts_from", "power = 90\nrts_from", "90", "from -30 to 40"),
        (
            "rts_from",
            "path_loss_exponent = 0\nrts_from",
            "0",
            "from 1 to 10",
        ),
        ("rts_from", "overhead = 5000\nrts_from", "5000", "0 to 1000"),
        (
            "rts_from",
            "queue = \"air\"\nrts_from",
            "\"air\"",
            "for all members and also for some",
        ),
        (
            "rts_from",
            "access = \"tdma\"\nrts_from",
            "\"tdma\"",
            "can't be `tdma`",
        ),
    ] {
        let text = FILE.replacen(from, to, 1);
        let error = read(&text).expect_err(to);
        let problem = &error.problems()[0];
        assert!(problem.message.contains(message), "{to}: {problem}");
        assert_eq!(&text[problem.span.clone()], place, "{to}: {problem}");
    }
}

#[test]
fn vht_combinations_that_do_not_exist_are_refused() {
    let (mut scenario, server, stations) = home(1, 1, |cell| {
        cell.width = 20;
        cell.mcs = Some(9);
    });
    scenario
        .flows
        .push(Flow::new("down", server, stations[0], udp(1_000_000)));
    let error = scenario.check().unwrap_err();
    assert!(error.what.contains("no MCS 9 with 20 MHz"), "{error}");
}
