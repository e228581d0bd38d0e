//! The effect of msfc's additions to the thesis on real TCP: unmarked flows get their classes by their
//! behaviour.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::results::FlowResults;
use fairgate_sim::{
    Application, Distribution, Flow, Link, Queue, Results, Scenario, Simulation, Tcp, Traffic, Udp, tcp,
};

/// Simulates a link of 10 Mbit/s with a round-trip time of 20 ms: a call of 80 kbit/s, twelve downloads from
/// 5 s on, and a stream of 2 Mbit/s from `stream` on, which is nearly three times its fair share. No packet
/// is marked. The measurement is from 25 s to 40 s.
fn evening(queue: &str, stream: u64) -> Results {
    let mut scenario = Scenario::new(Duration::from_secs(40));
    scenario.measure = Duration::from_secs(25)..Duration::from_secs(40);
    let (a, b) = (scenario.node("a"), scenario.node("b"));
    let spec = Spec::inline(queue).expect("the description is valid");
    let link = Link::new(a, b, Rate::mbit(10), Duration::from_millis(10));
    scenario
        .links
        .push(link.with_queue_a(Queue::new(move |seed| spec.build(seed))));
    let call = Rate::from_bits_per_second(80_000).expect("above 0");
    let stream = Flow {
        start: Duration::from_secs(stream),
        ..Flow::new("stream", a, b, Udp::constant(Rate::mbit(2), 1400))
    };
    let downloads = Flow {
        count: 12,
        start: Duration::from_secs(5),
        stagger: Duration::from_millis(100),
        ..Flow::new("download", a, b, Tcp::bulk(tcp::Config::default()))
    };
    let call = Flow::new("call", a, b, Udp::constant(call, 200));
    scenario.flows.extend([call, stream, downloads]);
    Simulation::new(&scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

fn of<'a>(results: &'a Results, group: &str) -> Vec<&'a FlowResults> {
    let flows = results.flows.iter().filter(|flow| flow.group == group);
    flows.collect()
}

fn goodput(results: &Results, group: &str) -> u64 {
    of(results, group).iter().map(|flow| flow.goodput_bps).sum()
}

/// Whenever the stream starts, which does not react to drops, it gets no more than without priorities, and no
/// download gets less.
#[test]
fn an_unmarked_stream_above_its_share_does_not_rise() {
    for start in [0, 15] {
        let plain = evening("msfc", start);
        let auto = evening("msfc auto_priority=true", start);
        let [before, after] = [&plain, &auto].map(|results| goodput(results, "stream"));
        assert!(before < 1_000_000, "a fair share: {before}");
        assert!(
            after < before + before / 20,
            "from {start} s on: {before} and {after}"
        );
        let [before, after] = [&plain, &auto].map(|results| goodput(results, "download"));
        assert!(
            after > before - before / 50,
            "from {start} s on: {before} and {after}"
        );
        let least = of(&auto, "download").iter().map(|flow| flow.goodput_bps).min();
        assert!(least > Some(450_000), "no download starves: {least:?}");
    }
}

/// In the class of the downloads, a call waits for a packet of each download. In a higher class, it waits for
/// one or two packets.
#[test]
fn an_unmarked_call_waits_less_above_downloads() {
    let queueing = |queue: &str| {
        let results = evening(queue, 15);
        let call = of(&results, "call")[0];
        assert_eq!(call.lost, 0);
        call.delay.mean_ns - 10_000_000
    };
    let (plain, auto) = (queueing("msfc"), queueing("msfc auto_priority=true"));
    assert!(auto < plain / 3, "{auto} of {plain} ns");
}

/// The tree of the thesis on a small scale, wired, with the seven types of Table 3.1 in their proportions and
/// without any marks: a server, a gateway with 100 Mbit/s, and two gateways with 14 Mbit/s and 21
/// applications each. The discipline is on every interface. Returns the mean goodput by type, kbit/s, over
/// seeds, and the mean delay of the interactive types, ms.
fn tree(queue: &str, seeds: std::ops::Range<u64>) -> [f64; 6] {
    let count = seeds.clone().count() as f64;
    let mut means = [0.0; 6];
    for seed in seeds {
        let (results, interactive) = (branch_of_the_tree(queue, seed), ["ssh", "voip", "game"]);
        let mean = |group: &str| goodput(&results, group) as f64 / 1e3 / of(&results, group).len() as f64;
        let delays = interactive
            .iter()
            .flat_map(|group| of(&results, group))
            .map(|flow| flow.delay.mean_ns as f64);
        let number = interactive
            .iter()
            .map(|group| of(&results, group).len())
            .sum::<usize>() as f64;
        let of_seed = [
            mean("voip"),
            mean("tv"),
            mean("http"),
            mean("download"),
            mean("torrent"),
            delays.sum::<f64>() / number / 1e6,
        ];
        for (sum, value) in means.iter_mut().zip(of_seed) {
            *sum += value / count;
        }
    }
    means
}

fn branch_of_the_tree(queue: &str, seed: u64) -> Results {
    let mut scenario = Scenario::new(Duration::from_secs(40));
    scenario.seed = seed;
    scenario.measure = Duration::from_secs(10)..Duration::from_secs(40);
    let spec = Spec::inline(queue).expect("the description is valid");
    let link = |a, b, mbit, millis| {
        let (forth, back) = (spec.clone(), spec.clone());
        Link::new(a, b, Rate::mbit(mbit), Duration::from_millis(millis))
            .with_queue_a(Queue::new(move |seed| forth.build(seed)))
            .with_queue_b(Queue::new(move |seed| back.build(seed)))
    };
    let server = scenario.node("server");
    let gateway = scenario.node("gateway");
    scenario.links.push(link(server, gateway, 100, 50));
    for branch in 0..2 {
        let leaf = scenario.node(format!("gateway {branch}"));
        scenario.links.push(link(gateway, leaf, 14, 5));
        let client = scenario.node(format!("client {branch}"));
        scenario.links.push(link(leaf, client, 100, 1));
        let tcp = |application| Tcp {
            config: tcp::Config::default(),
            application,
        };
        let limited = |bits: u64, size| Application::Limited {
            rate: Rate::from_bits_per_second(bits).expect("above 0"),
            size,
        };
        // On and off for a second each on average, as fast as the path allows.
        let pages = Application::Transfers {
            size: Distribution::Exponential { mean: 130_000 },
            pause: Distribution::Exponential { mean: 1_000_000_000 },
            count: None,
        };
        let mut add = |name: &str, count: u32, traffic: Traffic| {
            scenario.flows.push(Flow {
                count,
                start: Duration::from_millis(50 * (seed % 7) + 20),
                stagger: Duration::from_millis(37 + seed),
                ..Flow::new(name, server, client, traffic)
            });
        };
        add("ssh", 1, tcp(limited(1_000, 20)).into());
        add("voip", 1, tcp(limited(60_000, 208)).into());
        add("game", 1, tcp(limited(100_000, 512)).into());
        add("tv", 2, tcp(limited(3_000_000, 1450)).into());
        add("http", 11, tcp(pages).into());
        add("download", 3, tcp(Application::Bulk).into());
        add(
            "torrent",
            2,
            Udp::constant(Rate::from_bits_per_second(1_500_000).expect("above 0"), 1450).into(),
        );
    }
    Simulation::new(&scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end")
}

/// Without marks, an unresponsive torrent that sends more than its share gains nothing by auto-priority, TV
/// and downloads get at least as much as without, and interactive packets wait no longer. Five seeds.
#[test]
fn auto_priority_helps_no_torrent_in_the_tree_of_the_thesis() {
    let (plain, auto) = (tree("msfc", 1..6), tree("msfc auto_priority=true", 1..6));
    let [_, tv, _, download, torrent, delay] = [0, 1, 2, 3, 4, 5].map(|index| auto[index] / plain[index]);
    let figures = format!("VoIP, TV, HTTP, download, torrent, delay: {plain:.0?} and {auto:.0?}");
    assert!(
        plain[4] < 1400.0,
        "the torrent sends more than its share: {figures}"
    );
    assert!(torrent < 1.03, "{figures}");
    assert!(tv > 0.98 && download > 0.98, "{figures}");
    assert!(delay < 1.01 && auto[0] > 0.99 * plain[0], "{figures}");
}
