//! A queue that several workers run gives the shares that one worker gives.

use crate::common::{read, run};
use fairgate_sim::Results;
use fairgate_sim::results::FlowResults;

/// A router in front of a home line, and flows. `LINK` stands for the workers, `FLOWS` for the flows.
fn scenario(queue: &str, workers: u16, by: &str, flows: &str) -> String {
    let workers = match workers {
        1 => String::new(),
        _ => format!("workers_a = {workers}\nshard_by = \"{by}\""),
    };
    format!(
        r#"
        {queue}
        [simulate]
        duration = "22s"
        measure = ["2s", "22s"]
        [[simulate.link]]
        a = "router"
        b = "home"
        delay = "5ms"
        queue_a = "wan"
        {workers}
        [[simulate.link]]
        a = "heavy"
        b = "router"
        [[simulate.link]]
        a = "light"
        b = "router"
        {flows}
        "#
    )
}

const FLOWS: &str = "[queue.wan]\n\
    discipline = \"tbf\"\nrate = \"40mbit\"\nburst = \"10kb\"\ninner = { discipline = \"fq_codel\" }";
const HOSTS: &str = "[queue.wan]\n\
    discipline = \"cake\"\nbandwidth = \"40mbit\"\ntins = \"besteffort\"\nisolation = \"dual-srchost\"";

fn tcp(name: &str, from: &str, count: u32) -> String {
    format!(
        "[[simulate.flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"home\"\ncount = {count}\n\
         stagger = \"70ms\"\ntcp = {{ congestion_control = \"cubic\" }}\n"
    )
}

fn udp(name: &str, rate: &str, count: u32) -> String {
    format!(
        "[[simulate.flow]]\nname = \"{name}\"\nfrom = \"light\"\nto = \"home\"\ncount = {count}\n\
         stagger = \"3ms\"\nudp = {{ rate = \"{rate}\", size = \"900b\" }}\n"
    )
}

/// Packets that each shard has sent.
fn by_shard(results: &Results) -> Vec<u64> {
    let classes = results.interfaces[0].classes.iter();
    let shards = classes.filter(|class| !class.class.contains('/'));
    shards.map(|class| class.sent).collect()
}

/// Checks that each flow's throughput is within 3 % of what one worker gives the mean flow of its group, or
/// each group's if the workers divide hosts. Checks that as much is sent in total to 0.5 %.
#[track_caller]
fn check(single: &Results, several: &Results, by: &str) {
    for group in &single.groups {
        let of = |results: &Results| -> Vec<f64> {
            let flows = results.flows.iter().filter(|flow| flow.group == group.name);
            let rates: Vec<f64> = flows.map(|flow| flow.throughput_bps as f64).collect();
            match by {
                "flow" => rates,
                _ => vec![rates.iter().sum()],
            }
        };
        let (one, many) = (of(single), of(several));
        let mean = one.iter().sum::<f64>() / one.len() as f64;
        let largest = |rates: &[f64]| {
            let errors = rates.iter().map(|rate| ((rate / mean - 1.0) * 100.0).abs());
            errors.fold(0.0, f64::max)
        };
        let (alone, shared) = (largest(&one), largest(&many));
        let name = &group.name;
        println!("{name}: {mean:.0} bit/s; {alone:.2} % off with one worker, {shared:.2} % with several");
        assert!(shared <= 3.0, "{name}: {many:?}, one worker {one:?}");
    }
    let sent = |results: &Results| results.interfaces[0].transmitted_bytes as f64;
    let error = (sent(several) / sent(single) - 1.0) * 100.0;
    assert!(error.abs() <= 0.5, "the total is {error:+.2} % off");
    let rate = sent(several) * 8.0 / 20.0;
    assert!(rate <= 40e6 * 1.001, "{rate} bit/s are more than the line has");
}

#[track_caller]
fn compare(queue: &str, workers: u16, by: &str, flows: &str) -> Vec<u64> {
    let single = run(&scenario(queue, 1, by, flows));
    let several = run(&scenario(queue, workers, by, flows));
    check(&single, &several, by);
    let shards = by_shard(&several);
    assert_eq!(shards.len(), usize::from(workers));
    shards
}

/// Five TCP flows in four shards can't be spread equally.
#[test]
fn tcp_flows_get_equal_shares_in_unequal_shards() {
    for count in [5, 13] {
        let shards = compare(FLOWS, 4, "flow", &tcp("downloads", "heavy", count));
        let most = *shards.iter().max().unwrap();
        assert!(
            shards.iter().any(|sent| sent * 3 < most * 2),
            "the shards are unequal: {shards:?}"
        );
    }
}

/// Calls and streams below the fair rate get what they send, downloads share the rest.
#[test]
fn light_flows_keep_their_rate() {
    let flows = tcp("downloads", "heavy", 6) + &udp("streams", "2mbit", 4) + &udp("calls", "100kbit", 10);
    compare(FLOWS, 3, "flow", &flows);
}

/// Flows that do not react get the fair rate, and no more.
#[test]
fn floods_are_held_to_the_fair_rate() {
    let flows = tcp("downloads", "heavy", 3) + &udp("floods", "15mbit", 2);
    compare(FLOWS, 2, "flow", &flows);
}

/// With a host of ten flows and a host of one, each host has half. Among so many workers, two hosts hardly
/// have the same one.
#[test]
fn hosts_share_equally_whatever_their_flows() {
    let flows = tcp("many", "heavy", 10) + &tcp("one", "light", 1);
    let shards = compare(HOSTS, 64, "source", &flows);
    let busy = shards.iter().filter(|sent| **sent > 0).count();
    assert_eq!(busy, 2, "two hosts are in two shards: {shards:?}");
}

/// With all flows in one shard, the others are idle, and that shard has the whole line.
#[test]
fn an_idle_shard_leaves_its_rate_to_the_others() {
    let shards = compare(HOSTS, 4, "source", &tcp("downloads", "heavy", 4));
    assert_eq!(shards.iter().filter(|sent| **sent == 0).count(), 3);
}

/// Flows come and go: in each second, the flows that are active share the line as with one worker.
#[test]
fn changing_demand_is_followed() {
    let flow = |name: &str, start: u32, stop: u32| {
        format!(
            "[[simulate.flow]]\nname = \"{name}\"\nfrom = \"light\"\nto = \"home\"\nstart = \"{start}s\"\n\
             stop = \"{stop}s\"\nudp = {{ rate = \"30mbit\", size = \"900b\" }}\n"
        )
    };
    let flows: String = (0..8)
        .map(|number| flow(&format!("flow {number}"), 2 + number, 8 + 2 * number))
        .collect();
    // What a flow has queued when it stops takes from the others. The limit, which each tree has, is short.
    let queue = FLOWS.replace("\"fq_codel\"", "\"fq_codel\", limit = 60");
    let [single, several] = [1, 4].map(|workers| run(&scenario(&queue, workers, "flow", &flows)));
    // The series has a point every 100 ms: ten of them are a second.
    let seconds = |flow: &FlowResults| -> Vec<f64> {
        let series = flow.throughput_series_bps.chunks(10);
        series
            .map(|points| points.iter().sum::<u64>() as f64 / 10.0)
            .collect()
    };
    for (number, (one, other)) in single.flows.iter().zip(&several.flows).enumerate() {
        let active = 2 + number..8 + 2 * number;
        let pairs = seconds(one).into_iter().zip(seconds(other)).enumerate();
        for (second, (one, other)) in pairs.filter(|(second, _)| active.contains(second)) {
            assert!(
                (one - other).abs() <= 0.03 * one,
                "flow {number} in second {second}: {other} instead of {one}"
            );
        }
    }
}

/// Mistakes are reported with place, rule and remedy.
#[test]
fn what_cannot_be_sharded_is_refused() {
    let text = |workers: &str, queue: &str| {
        let link = format!("[[simulate.link]]\na = \"a\"\nb = \"b\"\n{workers}\n");
        let flow = udp("flow", "1mbit", 1).replace("light", "a").replace("home", "b");
        format!("[queue.wan]\n{queue}\n[simulate]\nduration = \"1s\"\n{link}{flow}")
    };
    let fair =
        "discipline = \"tbf\"\nrate = \"1mbit\"\nburst = \"2kb\"\ninner = { discipline = \"fq_codel\" }";
    for (workers, queue, line, message, remedy) in [
        (
            "queue_a = \"wan\"\nworkers_a = 2",
            "discipline = \"fifo\"",
            2,
            "`fifo` at the root has no rate",
            "tbf",
        ),
        (
            "queue_a = \"wan\"\nworkers = 2",
            fair,
            12,
            "no queue that workers could run",
            "workers_a",
        ),
        (
            "queue_a = \"wan\"\nworkers_a = 65",
            fair,
            12,
            "`workers_a` is 65, but must be 1 to 64",
            "plain number",
        ),
        (
            "queue_a = \"wan\"\nworkers_a = 0",
            fair,
            12,
            "`workers_a` is 0, but must be 1 to 64",
            "plain number",
        ),
        (
            "queue_a = \"wan\"\nshard_by = \"flow\"",
            fair,
            12,
            "there is one worker",
            "add `workers`",
        ),
        (
            "queue_a = \"wan\"\nworkers_a = 2\nshard_by = \"sorce\"",
            fair,
            13,
            "`shard_by` can't be `sorce`",
            "did you mean `source`?",
        ),
        (
            "queue_a = \"wan\"\nworkers_a = 2\nshard_by = \"source\"",
            fair,
            5,
            "fair to flows",
            "cake",
        ),
    ] {
        let text = text(workers, queue);
        let error = read(&text).expect_err(&text);
        let problem = &error.problems()[0];
        assert!(problem.message.contains(message), "{}", problem.message);
        assert!(problem.help.contains(remedy), "{}", problem.help);
        assert_eq!(problem.position().0, line, "{text}");
    }
    assert!(read(&text("queue_a = \"wan\"\nworkers_a = 1", "discipline = \"fifo\"")).is_ok());
}

/// The tree of several workers changes during a run: as one change in all of them, with the packets.
#[test]
fn a_sharded_queue_changes_while_it_runs() {
    use fairgate::Time;
    use fairgate_config::Spec;
    let flows = udp("floods", "20mbit", 4);
    let scenario = read(&scenario(FLOWS, 3, "flow", &flows)).unwrap();
    let mut simulation = fairgate_sim::Simulation::new(&scenario).unwrap();
    let wan = simulation.interface("router->home").unwrap();
    let sent_in_a_second = |simulation: &mut fairgate_sim::Simulation, second: u64| {
        simulation.run_until(Time::from_secs(second)).unwrap();
        let before = simulation.statistics(wan).dequeued.bytes;
        simulation.run_until(Time::from_secs(second + 1)).unwrap();
        (simulation.statistics(wan).dequeued.bytes - before) as f64 * 8.0
    };
    let at_40 = sent_in_a_second(&mut simulation, 2);
    let wanted = Spec::inline("tbf rate=20mbit burst=10kb / drr").unwrap();
    simulation.reconfigure(wan, &wanted).unwrap();
    let at_20 = sent_in_a_second(&mut simulation, 4);
    assert!(
        (at_40 / 40e6 - 1.0).abs() < 0.005 && (at_20 / 20e6 - 1.0).abs() < 0.005,
        "{at_40} {at_20}"
    );
    let refused = simulation
        .reconfigure(wan, &Spec::inline("fifo").unwrap())
        .unwrap_err();
    assert!(
        refused.to_string().contains("no rate that workers could share"),
        "{refused}"
    );
}

/// Subscribers behind a line of 40 Mbit/s. Each has a leaf of the tree, from 10 on, and receives a flow.
struct Subscribers {
    discipline: &'static str,
    /// The classes above the leaves. Class 1 is the line.
    above: &'static str,
    /// The settings of each leaf, and what it receives.
    leaves: Vec<(&'static str, &'static str)>,
}

const TCP: &str = "tcp = { congestion_control = \"cubic\" }";

impl Subscribers {
    fn scenario(&self, workers: u16) -> String {
        let (mut classes, mut filters, mut flows) = (String::new(), String::new(), String::new());
        for (minor, (settings, flow)) in (10..).zip(&self.leaves) {
            let (name, address) = (format!("s{minor}"), format!("100.64.0.{minor}"));
            classes += &format!("{{ id = {minor}, {settings}, discipline = \"fq_codel\" }},\n");
            filters += &format!("{{ class = {minor}, destination = \"{address}/32\" }},\n");
            flows += &format!(
                "[[simulate.node]]\nname = \"{name}\"\naddress = \"{address}\"\n\
                 [[simulate.link]]\na = \"access\"\nb = \"{name}\"\n\
                 [[simulate.flow]]\nname = \"{name}\"\nfrom = \"server\"\nto = \"{name}\"\n{flow}\n"
            );
        }
        let workers = match workers {
            1 => String::new(),
            _ => format!("workers_a = {workers}\nshard_by = \"class\""),
        };
        let Subscribers {
            discipline, above, ..
        } = self;
        format!(
            r#"
            [queue.wan]
            discipline = "{discipline}"
            class = [
            {above}
            {classes}
            ]
            filter = [
            {filters}
            ]
            [simulate]
            duration = "22s"
            measure = ["2s", "22s"]
            [[simulate.link]]
            a = "router"
            b = "access"
            delay = "5ms"
            queue_a = "wan"
            {workers}
            [[simulate.link]]
            a = "server"
            b = "router"
            {flows}
            "#
        )
    }

    /// Checks that each subscriber gets what it gets with one worker.
    #[track_caller]
    fn compare(&self, workers: u16) -> Vec<u64> {
        let single = run(&self.scenario(1));
        let several = run(&self.scenario(workers));
        check(&single, &several, "flow");
        by_shard(&several)
    }
}

/// Plans differ in guarantee, limit and weight. Some subscribers reach their limits, some send less.
#[test]
fn subscribers_get_what_their_plans_give_in_one_tree() {
    let small = "parent = 1, rate = \"10kbit\", ceil = \"4mbit\", quantum = 1518";
    let large = "parent = 1, rate = \"10kbit\", ceil = \"40mbit\", quantum = 1518";
    let double = "parent = 1, rate = \"10kbit\", ceil = \"40mbit\", quantum = 3036";
    let guaranteed = "parent = 1, rate = \"8mbit\", ceil = \"40mbit\", quantum = 1518";
    let flood = "udp = { rate = \"30mbit\", size = \"900b\" }";
    let light = "udp = { rate = \"2mbit\", size = \"900b\" }";
    for workers in [2, 3] {
        let plans = Subscribers {
            discipline: "htb",
            above: "{ id = 1, rate = \"40mbit\" },",
            leaves: vec![
                (small, TCP),
                (large, TCP),
                (large, flood),
                (double, flood),
                (guaranteed, TCP),
                (guaranteed, light),
                (large, light),
                (small, flood),
            ],
        };
        let shards = plans.compare(workers);
        assert!(shards.iter().all(|sent| *sent > 0), "{shards:?}");
    }
}

/// Nodes limit several subscribers together. A node has a turn for each of its subscribers. Their buckets
/// hold some packets: with room for one, a node misses a part of its rate in one tree, and another part in
/// several.
#[test]
fn nodes_limit_their_subscribers_across_workers() {
    let of = |node: u16| -> &'static str {
        match node {
            3 => "parent = 3, rate = \"10kbit\", ceil = \"40mbit\", quantum = 1518",
            4 => "parent = 4, rate = \"10kbit\", ceil = \"40mbit\", quantum = 1518",
            _ => "parent = 1, rate = \"10kbit\", ceil = \"40mbit\", quantum = 1518",
        }
    };
    let nodes = Subscribers {
        discipline: "htb",
        above: "{ id = 1, rate = \"40mbit\" },
                { id = 3, parent = 1, rate = \"10kbit\", ceil = \"6mbit\", cburst = \"8kb\" },
                { id = 4, parent = 1, rate = \"10kbit\", ceil = \"30mbit\", cburst = \"8kb\" },",
        leaves: [3, 3, 4, 4, 4, 1, 1].map(|node| (of(node), TCP)).to_vec(),
    };
    nodes.compare(2);
}

/// In hfsc a class shares in proportion to its curve, whatever is below it.
#[test]
fn hfsc_shares_in_proportion_across_workers() {
    let shares = Subscribers {
        discipline: "hfsc",
        above: "{ id = 1, ls = \"40mbit\", ul = \"40mbit\" },
                { id = 3, parent = 1, ls = \"20mbit\", ul = \"20mbit\" },",
        leaves: vec![
            ("parent = 3, ls = \"10mbit\"", TCP),
            ("parent = 3, ls = \"10mbit\"", TCP),
            ("parent = 1, ls = \"10mbit\", ul = \"40mbit\"", TCP),
            ("parent = 1, ls = \"10mbit\", ul = \"5mbit\"", TCP),
            ("parent = 1, ls = \"30mbit\", rt = \"2mbit\"", TCP),
            ("parent = 1, ls = \"5mbit\", rt = \"6mbit\"", TCP),
        ],
    };
    for workers in [2, 4] {
        shares.compare(workers);
    }
}
