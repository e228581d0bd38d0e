//! From a scenario to namespaces and links: what is built, without building it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fairgate::{ClassId, Rate};
use fairgate_config::units::{format_duration, format_rate, format_size};
use fairgate_config::{Document, Spec};
use fairgate_live::Plan;
use fairgate_sim::scenario::{ETHERNET_HEADER, LineRate, Queue};
use fairgate_sim::{Application, Burst, Flow, Jitter, Link, NodeId, Scenario, Traffic};
use toml::Table;

use crate::lab::error::{LabError, NotLive};

/// Links without a queue of their own are not shaped from this rate on: the machine is the limit.
const UNSHAPED: Rate = Rate::mbit(1000);
/// A link that is not shaped and has at most this delay is a plain pair of interfaces.
const NO_DELAY: Duration = Duration::from_micros(200);
/// What a shaper may send at once after it was idle. A bridge that wakes up this much too late loses no rate.
const BURST: Duration = Duration::from_millis(2);
/// The headers of IPv4 and TCP with time stamps. A segment of the scenario has its `mss` besides.
pub(crate) const TCP_HEADERS: u32 = 52;
/// The headers of IPv4 and UDP.
pub(crate) const UDP_HEADERS: u32 = 28;
/// The MTU of Ethernet.
const MTU: u32 = 1500;
/// The most flows at once. Each has two threads.
const MOST_FLOWS: usize = 256;

/// A queue that the kernel itself runs in the place of a scenario's: tc's commands at the sending end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelQueue {
    /// The sending interface, `a->b`.
    pub interface: String,
    /// tc's commands, one a line, with `DEV` for the interface.
    pub script: String,
}

/// The network that a scenario needs.
#[derive(Debug)]
pub struct Layout {
    /// The MTU of all interfaces.
    pub(crate) mtu: u32,
    /// The nodes, in the scenario's order.
    pub(crate) nodes: Vec<Host>,
    /// The links, in the scenario's order.
    pub(crate) wires: Vec<Wire>,
    /// Whether hosts request ECN.
    pub(crate) ecn: bool,
}

/// A node.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) address: Ipv4Addr,
    /// For each other node that can be reached: its number, the first link, and the node at the link's end.
    pub(crate) routes: Vec<(usize, usize, usize)>,
}

/// A link.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The nodes at both ends.
    pub(crate) ends: [usize; 2],
    /// `a->b` and `b->a`.
    pub(crate) names: [String; 2],
    /// The rates, if they are constant.
    pub(crate) rates: [Option<Rate>; 2],
    /// The bridge in the middle. `None`: a plain pair of interfaces.
    pub(crate) plan: Option<Plan>,
    /// tc's commands for the interface of each end.
    pub(crate) kernel: [Option<String>; 2],
}

impl Layout {
    /// Checks that a scenario can be run live, and plans its network.
    ///
    /// # Errors
    /// Names the part that cannot be expressed.
    pub fn of(scenario: &Scenario, kernel: &[KernelQueue]) -> Result<Layout, LabError> {
        check(scenario)?;
        let mtu = mtu(scenario);
        let names = |link: &Link| {
            let [a, b] = [link.a, link.b].map(|node| scenario.node_name(node));
            [format!("{a}->{b}"), format!("{b}->{a}")]
        };
        let mut wires = Vec::with_capacity(scenario.links.len());
        for (number, link) in scenario.links.iter().enumerate() {
            let names = names(link);
            let own = names
                .each_ref()
                .map(|name| kernel.iter().find(|queue| queue.interface == *name));
            wires.push(Wire {
                ends: [link.a.index(), link.b.index()],
                rates: [&link.rate_a, &link.rate_b].map(LineRate::constant),
                plan: plan(link, number, mtu, own.map(|queue| queue.is_some()))?,
                kernel: own.map(|queue| queue.map(|queue| queue.script.clone())),
                names,
            });
        }
        let is_known = |queue: &&KernelQueue| wires.iter().any(|wire| wire.names.contains(&queue.interface));
        if let Some(queue) = kernel.iter().find(|queue| !is_known(queue)) {
            return Err(NotLive::new(
                format!("the kernel's queue at {}", queue.interface),
                "the scenario has no such interface",
            )
            .into());
        }
        let nodes = scenario.nodes.iter().enumerate().map(|(number, node)| {
            let IpAddr::V4(address) = node.address else {
                unreachable!("`check` allows IPv4 only")
            };
            Host {
                address,
                routes: routes(scenario, number),
            }
        });
        Ok(Layout {
            mtu,
            nodes: nodes.collect(),
            wires,
            ecn: scenario.flows.iter().any(asks_for_ecn),
        })
    }
}

fn asks_for_ecn(flow: &Flow) -> bool {
    matches!(&flow.traffic, Traffic::Tcp(tcp) if flow.ecn || tcp.config.ecn)
}

/// Returns the largest packet of all flows, and at least Ethernet's.
fn mtu(scenario: &Scenario) -> u32 {
    let of_flow = |flow: &Flow| match &flow.traffic {
        Traffic::Tcp(tcp) => tcp.config.mss + TCP_HEADERS,
        _ => MTU,
    };
    scenario.flows.iter().map(of_flow).fold(MTU, u32::max)
}

fn check(scenario: &Scenario) -> Result<(), NotLive> {
    let whole = |what: &str| NotLive::new("the scenario", what);
    if !scenario.cells.is_empty() {
        return Err(whole("it has Wi-Fi cells; a namespace has links only"));
    }
    if !scenario.observations.is_empty() || !scenario.captures.is_empty() {
        return Err(whole("it observes variables or writes captures; omit them"));
    }
    let flows: usize = scenario.flows.iter().map(|flow| flow.count as usize).sum();
    if flows > MOST_FLOWS {
        return Err(whole(&format!(
            "it has {flows} flows, but at most {MOST_FLOWS} can be run; lower a count"
        )));
    }
    for node in &scenario.nodes {
        if node.address.is_ipv6() || node.processing.is_some() {
            let what = "a node needs an IPv4 address, and no time for a packet";
            return Err(NotLive::new(format!("node `{}`", node.name), what));
        }
    }
    for link in &scenario.links {
        check_link(link).map_err(|what| {
            let [a, b] = [link.a, link.b].map(|node| scenario.node_name(node));
            NotLive::new(format!("the link from `{a}` to `{b}`"), what)
        })?;
    }
    for flow in &scenario.flows {
        check_flow(scenario, flow)
            .map_err(|what| NotLive::new(format!("flow `{}`", flow.name), what.to_owned()))?;
    }
    Ok(())
}

fn check_link(link: &Link) -> Result<(), &'static str> {
    if link.loss_a.is_some() || link.loss_b.is_some() {
        return Err("it loses packets; omit `loss`");
    }
    if link.send_buffer > 0 {
        return Err("it has a send buffer; omit `send_buffer`");
    }
    if !link.timer.is_zero() {
        return Err("its timer has ticks; omit `timer`");
    }
    if link.delay_a != link.delay_b {
        return Err("its delays differ; give both directions the same");
    }
    let is_constant = |rate: &LineRate| matches!(rate, LineRate::Unlimited | LineRate::Constant(_));
    if !is_constant(&link.rate_a) || !is_constant(&link.rate_b) {
        return Err("its rate changes; give it a constant one");
    }
    Ok(())
}

fn check_flow(scenario: &Scenario, flow: &Flow) -> Result<(), &'static str> {
    if flow.arrivals.is_some() || flow.lifetime.is_some() || flow.gives_up {
        return Err("flows come and go at random; give a `count`");
    }
    if flow.mark != 0 || flow.priority != 0 || flow.class != ClassId::NONE || flow.departs_after.is_some() {
        return Err("marks, priorities, classes and departure times are not in a packet; use ports or DSCPs");
    }
    if flow.route.is_some() {
        return Err("it has a route of its own; the kernel takes the path with the fewest hops");
    }
    if jitters(scenario, flow).iter().skip(1).any(Option::is_some) {
        return Err("a link on its way has jitter; only the first link may have it");
    }
    match &flow.traffic {
        Traffic::Tcp(tcp) => {
            if jitter(scenario, flow).is_some() {
                return Err("a link on its way has jitter, which only senders of datagrams can imitate");
            }
            if tcp.config.fixed_window.is_some() {
                return Err("the kernel has no fixed window; use a congestion control");
            }
            match &tcp.application {
                Application::Bulk | Application::Transfers { .. } | Application::Requests(_) => Ok(()),
                Application::Limited { .. } => Ok(()),
                Application::OnOff {
                    burst: Burst::Time(_),
                    rate: None,
                    ..
                } => Ok(()),
                _ => Err(
                    "its program is not one that the testbed has: bulk, on-off by time, at a limited \
                          rate, transfers, or requests",
                ),
            }
        }
        Traffic::Recorded(_) => Err("recorded packets are not sent live"),
        _ => Ok(()),
    }
}

/// Returns the jitter of each link on a flow's way, in the order of the way.
fn jitters<'a>(scenario: &'a Scenario, flow: &Flow) -> Vec<Option<&'a Jitter>> {
    let (mut at, to) = (flow.source.index(), flow.destination.index());
    let mut found = Vec::new();
    while at != to {
        let route = routes(scenario, at).into_iter().find(|route| route.0 == to);
        let Some((_, link, next)) = route else { break };
        let link = &scenario.links[link];
        found.push(match link.a.index() == at {
            true => link.jitter_a.as_ref(),
            false => link.jitter_b.as_ref(),
        });
        at = next;
    }
    found
}

/// Returns the jitter of the first link on a flow's way, if it has any. Its sender imitates it.
pub(crate) fn jitter<'a>(scenario: &'a Scenario, flow: &Flow) -> Option<&'a Jitter> {
    jitters(scenario, flow).first().copied().flatten()
}

/// Plans the bridge of a link. `kernel` says which ends have a queue of the kernel.
fn plan(link: &Link, number: usize, mtu: u32, kernel: [bool; 2]) -> Result<Option<Plan>, LabError> {
    let longest = mtu + link.overhead;
    let ends = [(&link.rate_a, &link.queue_a), (&link.rate_b, &link.queue_b)];
    let mut queues = Table::new();
    let mut run = Table::new();
    let keys = ["left_to_right", "right_to_left"];
    for (((rate, queue), key), by_kernel) in ends.into_iter().zip(keys).zip(kernel) {
        let rate = rate
            .constant()
            .filter(|rate| !by_kernel && (queue.spec().is_some() || *rate < UNSHAPED));
        if let Some(rate) = rate {
            queues.insert(key.into(), shaped(queue, rate, longest).into());
            run.insert(key.into(), key.into());
        }
    }
    if run.is_empty() && link.delay_a <= NO_DELAY && kernel == [false; 2] {
        return Ok(None);
    }
    run.insert("left".into(), "left".into());
    run.insert("right".into(), "right".into());
    run.insert("name".into(), format!("link-{number}").into());
    run.insert("delay".into(), format_duration(link.delay_a).into());
    let overhead = i64::from(link.overhead) - i64::from(ETHERNET_HEADER);
    run.insert("overhead".into(), overhead.into());
    let mut file = Table::new();
    file.insert("queue".into(), queues.into());
    file.insert("run".into(), run.into());
    let document = Document::parse(&format!("link-{number}.toml"), &file.to_string())?;
    Ok(Some(Plan::read(&document)?))
}

/// Returns the queue behind a shaper with the link's rate.
fn shaped(queue: &Queue, rate: Rate, longest: u32) -> Table {
    let bytes = u128::from(rate.bits_per_second()) * BURST.as_nanos() / 8_000_000_000;
    let burst = (bytes as u64).max(2 * u64::from(longest));
    let inner = match queue.spec() {
        Some(spec) => table(spec),
        None => Table::from_iter([
            ("discipline".to_owned(), "fifo".into()),
            ("limit".to_owned(), 1000.into()),
        ]),
    };
    Table::from_iter([
        ("discipline".to_owned(), "tbf".into()),
        ("rate".to_owned(), format_rate(rate).into()),
        ("burst".to_owned(), format_size(burst).into()),
        ("inner".to_owned(), inner.into()),
    ])
}

/// Returns a description as a table of a file.
fn table(spec: &Spec) -> Table {
    let text = spec.to_toml("inner");
    let mut file: Table = text.parse().expect("a description is printed as TOML");
    let Some(toml::Value::Table(mut queues)) = file.remove("queue") else {
        unreachable!("a description is a queue")
    };
    match queues.remove("inner") {
        Some(toml::Value::Table(inner)) => inner,
        _ => unreachable!("a queue is a table"),
    }
}

/// Returns the routes from a node, by the simulator's rule: the fewest hops, then the least delay, then the
/// first link.
fn routes(scenario: &Scenario, from: usize) -> Vec<(usize, usize, usize)> {
    // The cost of the best way to each node, and its first step.
    type Best = Option<((u32, Duration), Option<(usize, usize)>)>;
    let mut best: Vec<Best> = vec![None; scenario.nodes.len()];
    best[from] = Some(((0, Duration::ZERO), None));
    // Bellman and Ford: there are few links.
    for _ in 0..scenario.nodes.len() {
        for (number, link) in scenario.links.iter().enumerate() {
            let ways: [(NodeId, NodeId, Duration); 2] =
                [(link.a, link.b, link.delay_a), (link.b, link.a, link.delay_b)];
            for (near, far, delay) in ways {
                let (near, far) = (near.index(), far.index());
                let Some(((hops, so_far), first)) = best[near] else {
                    continue;
                };
                let cost = (hops + 1, so_far + delay);
                if best[far].is_none_or(|(known, _)| cost < known) {
                    best[far] = Some((cost, first.or(Some((number, far)))));
                }
            }
        }
    }
    let reached = best.into_iter().enumerate();
    reached
        .filter_map(|(to, best)| {
            let (link, next) = best?.1?;
            Some((to, link, next))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate_sim::{Tcp, Udp};
    use std::time::Duration;

    /// a --1 Gbit/s-- b --10 Mbit/s, SQF-- c
    fn scenario() -> Scenario {
        let mut scenario = Scenario::new(Duration::from_secs(1));
        let [a, b, c] = ["a", "b", "c"].map(|name| scenario.node(name));
        scenario
            .links
            .push(Link::new(a, b, Rate::mbit(1000), Duration::from_micros(100)));
        let slow = Link::new(b, c, Rate::mbit(10), Duration::from_millis(3));
        let sqf = Queue::from(Spec::inline("sqf limit=50").unwrap());
        let slow = Link { overhead: 38, ..slow };
        scenario.links.push(slow.with_queue_a(sqf));
        scenario
            .flows
            .push(Flow::new("tcp", a, c, Tcp::bulk(Default::default())));
        scenario
            .flows
            .push(Flow::new("call", c, a, Udp::constant(Rate::mbit(1), 160)));
        scenario
    }

    #[test]
    fn a_link_becomes_a_bridge_with_its_rate_queue_and_delay() {
        let layout = Layout::of(&scenario(), &[]).unwrap();
        assert_eq!(layout.mtu, 1500);
        assert!(
            layout.wires[0].plan.is_none(),
            "a fast link is a pair of interfaces"
        );
        let plan = layout.wires[1].plan.as_ref().unwrap();
        assert_eq!((plan.delay, plan.overhead), (Duration::from_millis(3), 24));
        let written = Spec::inline("tbf rate=10mbit burst=3076 / sqf limit=50").unwrap();
        assert_eq!(plan.queues[0], written);
        assert_eq!(plan.queues[1].discipline(), "tbf");
        assert_eq!(layout.wires[1].names, ["b->c", "c->b"]);
        // From a, c is behind b.
        assert_eq!(layout.nodes[0].routes, [(1, 0, 1), (2, 0, 1)]);
        assert_eq!(layout.nodes[1].routes, [(0, 0, 0), (2, 1, 2)]);
    }

    #[test]
    fn the_kernels_queue_replaces_ours_at_one_end() {
        let queue = KernelQueue {
            interface: "b->c".into(),
            script: "qdisc add dev DEV root pfifo limit 50".into(),
        };
        let layout = Layout::of(&scenario(), std::slice::from_ref(&queue)).unwrap();
        let wire = &layout.wires[1];
        assert_eq!(wire.kernel, [Some(queue.script.clone()), None]);
        let queues = wire.plan.as_ref().unwrap().queues.each_ref();
        assert_eq!(queues.map(|queue| queue.discipline()), ["fifo", "tbf"]);
        let elsewhere = KernelQueue {
            interface: "a->c".into(),
            ..queue
        };
        let error = Layout::of(&scenario(), &[elsewhere]).unwrap_err();
        assert!(error.to_string().contains("a->c"), "{error}");
    }

    #[test]
    fn what_cannot_be_expressed_is_named() {
        let jitter = Some(Jitter {
            delay: fairgate_sim::Distribution::Constant(5),
            reorder: false,
        });
        type Change = fn(&mut Scenario);
        let changes: [(Change, &str); 5] = [
            (|it| it.links[1].delay_b = Duration::ZERO, "from `b` to `c`"),
            (|it| it.flows[0].priority = 3, "flow `tcp`"),
            (|it| it.flows[1].count = 1000, "1001 flows"),
            (|it| it.links[0].rate_a = LineRate::Unlimited, ""),
            (|it| it.flows[0].route = Some(Vec::new()), "a route of its own"),
        ];
        for (change, says) in changes {
            let mut scenario = scenario();
            change(&mut scenario);
            match Layout::of(&scenario, &[]) {
                Ok(_) => assert_eq!(says, ""),
                Err(error) => assert!(!says.is_empty() && error.to_string().contains(says), "{error}"),
            }
        }
        let mut scenario = scenario();
        scenario.links[0].jitter_a = jitter;
        let error = Layout::of(&scenario, &[]).unwrap_err().to_string();
        assert!(error.contains("jitter"), "{error}");
        // The sender of datagrams imitates it.
        scenario.flows[0].destination = scenario.find_node("b").unwrap();
        scenario.flows.remove(0);
        scenario.links[1].jitter_b = scenario.links[0].jitter_a.take();
        assert!(Layout::of(&scenario, &[]).is_ok());
        assert!(super::jitter(&scenario, &scenario.flows[0]).is_some());
    }
}
