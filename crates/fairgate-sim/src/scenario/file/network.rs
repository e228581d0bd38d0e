//! Nodes and links: `[[simulate.node]]`, `[[simulate.link]]`, and the network of `[run]`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use fairgate::registry::{Field, Parameter, Section as Described, Shape, Unit};
use fairgate_config::run::Keys as RunKeys;
use fairgate_config::{FileError, ShardBy, Table, Workers};

use super::drawn::time;
use super::line::{loss_section, rate_section};
use super::names::Network;
use super::repeat::{Copy, EACH};
use super::{Reader, Section, TIMES, place};
use crate::scenario::{Jitter, LineRate, Link, MOST_OVERHEAD, Queue};

/// The tables `[[simulate.node]]`.
pub(super) const NODE: Described = Described::new("node", "a node that needs more than a name", || {
    Parameter::infos(&NODE_KEYS, NodeKeys::default())
})
.shaped(Shape::List)
.with(&WITHIN_NODE);

static WITHIN_NODE: [Described; 2] = [
    time(
        "processing",
        "none",
        "How long it takes for each packet that it forwards.",
    ),
    EACH,
];

#[derive(Default)]
struct NodeKeys {
    name: String,
    address: String,
}

static NODE_KEYS: [Parameter<NodeKeys>; 2] = [
    Parameter::required_word("name", Unit::Text("name"), "Its name.", |keys, _| &mut keys.name),
    Parameter::word(
        "address",
        Unit::Text("address"),
        "The address in the headers of its packets; default: 10.0.0.0 plus its number.",
        |keys, _| &mut keys.address,
    ),
];

/// The tables `[[simulate.link]]`.
pub(super) const LINK: Described =
    Described::new("link", "a link of two nodes, with a queue at each end", || {
        Parameter::infos(&LINK_KEYS, LinkKeys::default())
    })
    .shaped(Shape::List)
    .with(&WITHIN_LINK);

static WITHIN_LINK: [Described; 10] = [
    rate_section(
        "rate",
        "none",
        "The rate of the line in both directions; without it, the link only delays.",
    ),
    rate_section("rate_a", "none", "The rate from `a`, instead."),
    rate_section("rate_b", "none", "The rate from `b`."),
    time(
        "jitter",
        "none",
        "A delay of each packet that is added to `delay`.",
    ),
    time("jitter_a", "none", "The same from `a`, instead."),
    time("jitter_b", "none", "The same from `b`."),
    loss_section(
        "loss",
        "none",
        "The share of packets that are lost after transmission.",
    ),
    loss_section("loss_a", "none", "The same from `a`, instead."),
    loss_section("loss_b", "none", "The same from `b`."),
    EACH,
];

/// What the names of keys end in: for both ends, for `a`, and for `b`.
const ENDS: [&str; 3] = ["", "_a", "_b"];

#[derive(Default)]
struct LinkKeys {
    /// Texts are read with their places, by [`Table::text`].
    texts: [String; 6],
    delay: [Option<Duration>; 3],
    reorder: [Option<bool>; 3],
    workers: [Option<u16>; 3],
    shard_by: ShardBy,
    overhead: Option<u32>,
    send_buffer: u32,
    timer: Duration,
}

const fn delay(
    name: &'static str,
    doc: &'static str,
    field: fn(&mut LinkKeys, usize) -> &mut dyn Field,
) -> Parameter<LinkKeys> {
    Parameter::new(name, Unit::Time, TIMES, doc, field)
}

const fn reorder(
    name: &'static str,
    doc: &'static str,
    field: fn(&mut LinkKeys, usize) -> &mut dyn Field,
) -> Parameter<LinkKeys> {
    Parameter::word(name, Unit::Flag, doc, field)
}

const fn queue(
    name: &'static str,
    doc: &'static str,
    field: fn(&mut LinkKeys, usize) -> &mut dyn Field,
) -> Parameter<LinkKeys> {
    Parameter::word(name, Unit::Text("tree"), doc, field)
}

const fn workers(
    name: &'static str,
    doc: &'static str,
    field: fn(&mut LinkKeys, usize) -> &mut dyn Field,
) -> Parameter<LinkKeys> {
    Parameter::new(name, Unit::Count("threads"), 1..=Workers::MOST as u64, doc, field)
}

static LINK_KEYS: [Parameter<LinkKeys>; 19] = [
    Parameter::word(
        "name",
        Unit::Text("name"),
        "Its name, by which a route can choose it.",
        |keys, _| &mut keys.texts[0],
    ),
    Parameter::required_word(
        "a",
        Unit::Text("node"),
        "One end; the node is created if it is not there.",
        |keys, _| &mut keys.texts[1],
    ),
    Parameter::required_word("b", Unit::Text("node"), "The other end.", |keys, _| {
        &mut keys.texts[2]
    }),
    delay("delay", "The propagation delay; default: none.", |keys, _| {
        &mut keys.delay[0]
    }),
    delay("delay_a", "The same from `a`, instead.", |keys, _| {
        &mut keys.delay[1]
    }),
    delay("delay_b", "The same from `b`.", |keys, _| &mut keys.delay[2]),
    reorder(
        "reorder",
        "Whether jitter may change the order of packets; default: false.",
        |keys, _| &mut keys.reorder[0],
    ),
    reorder("reorder_a", "The same from `a`, instead.", |keys, _| {
        &mut keys.reorder[1]
    }),
    reorder("reorder_b", "The same from `b`.", |keys, _| &mut keys.reorder[2]),
    Parameter::new(
        "overhead",
        Unit::Count("bytes"),
        0..=MOST_OVERHEAD as u64,
        "The framing of each packet; default: 14, that of Ethernet, and 0 with a trace.",
        |keys, _| &mut keys.overhead,
    ),
    Parameter::new(
        "send_buffer",
        Unit::Bytes,
        0..=1 << 30,
        "What each end takes from its queue before it can be transmitted, as a network device does.",
        |keys, _| &mut keys.send_buffer,
    ),
    Parameter::new(
        "timer",
        Unit::Time,
        TIMES,
        "The tick at which queues that hold packets back are asked again, at least the second; 0: exact.",
        |keys, _| &mut keys.timer,
    ),
    queue(
        "queue",
        "The tree of both ends; default: that of `[simulate]`.",
        |keys, _| &mut keys.texts[3],
    ),
    queue(
        "queue_a",
        "The tree at `a`, for packets to `b`, instead.",
        |keys, _| &mut keys.texts[4],
    ),
    queue("queue_b", "The tree at `b`.", |keys, _| &mut keys.texts[5]),
    workers(
        "workers",
        "How many threads run the trees of both ends; default: 1.",
        |keys, _| &mut keys.workers[0],
    ),
    workers("workers_a", "The same at `a`, instead.", |keys, _| {
        &mut keys.workers[1]
    }),
    workers("workers_b", "The same at `b`.", |keys, _| &mut keys.workers[2]),
    Parameter::word(
        "shard_by",
        Unit::Choice(ShardBy::WORDS),
        "What the workers divide.",
        |keys, _| &mut keys.shard_by,
    ),
];

impl Reader<'_> {
    /// Adds a node, or a node for each copy.
    pub(super) fn add_nodes(&self, network: &mut Network, node: &Table) -> Result<(), FileError> {
        let processing = self.times(node, "processing")?;
        for copy in self.copies(node)? {
            let name = self.filled(node, "name", &copy)?;
            let Some(id) = network.add(&name) else {
                return Err(self.document.error(
                    place(node, "name"),
                    format!("there are two nodes with the name `{name}`"),
                    "give each node a different name; with `each`, write every variable in it: \"host-{i}\"",
                ));
            };
            if let Some(address) = node.text("address") {
                let text = self.fill(&address, &copy)?;
                network.scenario.nodes[id.index()].address = text.parse::<IpAddr>().map_err(|error| {
                    self.document.error(
                        address.span(),
                        format!("`{text}` is not an IP address: {error}"),
                        "write an IPv4 or IPv6 address, such as \"192.168.1.2\"",
                    )
                })?;
            }
            network.scenario.nodes[id.index()]
                .processing
                .clone_from(&processing);
        }
        Ok(())
    }

    /// Adds the network of `[run]`: a router between two hosts. It has the queues of the live data plane,
    /// followed by its delay. The links themselves have no transmission time.
    pub(super) fn add_run_network(&self, network: &mut Network, section: &Section) -> Result<(), FileError> {
        let Some(run) = RunKeys::read(self.document)? else {
            return Err(self.document.error(
                section.location("duration"),
                "this scenario has no links, and there is no [run] section that describes a network",
                "add a [[simulate.link]] with the two nodes `a` and `b` that it connects",
            ));
        };
        let [left, router, right] = ["left", "router", "right"].map(|name| network.find_or_add(name));
        let links = &mut network.scenario.links;
        links.push(
            Link::unlimited(left, router, Duration::ZERO)
                .with_queue_b(self.queue(run.text("right_to_left").as_ref())?),
        );
        links.push(
            Link::unlimited(router, right, run.values.delay)
                .with_queue_a(self.queue(run.text("left_to_right").as_ref())?),
        );
        Ok(())
    }

    /// Adds the link of table `index`, or a link for each copy.
    pub(super) fn add_links(
        &self,
        network: &mut Network,
        index: usize,
        link: &Table,
    ) -> Result<(), FileError> {
        let keys = link.read(&LINK_KEYS, LinkKeys::default());
        for copy in self.copies(link)? {
            let link = self.link(network, link, &keys, &copy)?;
            network.add_link(link, index);
        }
        Ok(())
    }

    fn link(
        &self,
        network: &mut Network,
        link: &Table,
        keys: &LinkKeys,
        copy: &Copy,
    ) -> Result<Link, FileError> {
        let (a, b) = (self.filled(link, "a", copy)?, self.filled(link, "b", copy)?);
        let (a, b) = (network.find_or_add(&a), network.find_or_add(&b));
        let [delay_a, delay_b] = self
            .ends(link, "delay")?
            .map(|end| end.and_then(|end| keys.delay[end]).unwrap_or_default());
        let [rate_a, rate_b] = self.ends(link, "rate")?.map(|end| match end {
            Some(end) => self.line_rate(link, &format!("rate{}", ENDS[end])),
            None => Ok(LineRate::Unlimited),
        });
        let [loss_a, loss_b] = self.ends(link, "loss")?.map(|end| {
            let loss = end.map(|end| self.loss(link, &format!("loss{}", ENDS[end])));
            loss.transpose()
        });
        let [queue_a, queue_b] = self.queues(link, keys, copy)?;
        let [jitter_a, jitter_b] = self.jitters(link, keys)?;
        let (rate_a, rate_b) = (rate_a?, rate_b?);
        let plain = Link::unlimited(a, b, Duration::ZERO);
        let has_trace = [&rate_a, &rate_b]
            .iter()
            .any(|rate| matches!(rate, LineRate::Trace(_)));
        // The opportunities of a trace are bytes of IP packets.
        let overhead = if has_trace { 0 } else { plain.overhead };
        Ok(Link {
            name: link.text("name").map(|name| self.fill(&name, copy)).transpose()?,
            rate_a,
            rate_b,
            delay_a,
            delay_b,
            jitter_a,
            jitter_b,
            loss_a: loss_a?,
            loss_b: loss_b?,
            overhead: keys.overhead.unwrap_or(overhead),
            send_buffer: keys.send_buffer,
            timer: keys.timer,
            queue_a,
            queue_b,
            ..plain
        })
    }

    /// Returns the queues of both ends of a link.
    fn queues(&self, link: &Table, keys: &LinkKeys, copy: &Copy) -> Result<[Queue; 2], FileError> {
        let names = self.ends(link, "queue")?;
        let workers = self.ends(link, "workers")?;
        if let Some(by) = link.span_of("shard_by")
            && workers == [None, None]
        {
            return Err(self.document.error(
                by,
                "`shard_by` says what workers divide, but there is one worker",
                "add `workers`, `workers_a` or `workers_b`, or remove this key",
            ));
        }
        let queue = |end: usize| {
            let name = names[end].and_then(|end| link.text(&format!("queue{}", ENDS[end])));
            let spec = match (name, self.default_queue) {
                (Some(name), _) => Some(self.named_tree(&name, &self.fill(&name, copy)?)?),
                (None, Some(name)) => Some(self.named_tree(name, name.get_ref())?),
                (None, None) => None,
            };
            let workers = workers[end].map(|end| (end, keys.workers[end].unwrap_or(1)));
            match (spec, workers) {
                (Some(spec), Some((_, count))) if count > 1 => {
                    let sharded = spec.sharded(Workers {
                        count,
                        by: keys.shard_by,
                    });
                    sharded
                        .map(Queue::from)
                        .map_err(|problem| FileError::from(*problem))
                }
                (None, Some((end, count))) if count > 1 => Err(self.document.error(
                    place(link, &format!("workers{}", ENDS[end])),
                    "this end has no queue that workers could run",
                    "name its queue, or give the workers to the other end: `workers_a`, `workers_b`",
                )),
                (Some(spec), _) => Ok(spec.into()),
                (None, _) => Ok(Queue::default()),
            }
        };
        Ok([queue(0)?, queue(1)?])
    }

    /// Returns what both ends of a link have of a key, as an index of [`ENDS`]: `key`, or `key_a` and
    /// `key_b`.
    fn ends(&self, link: &Table, key: &str) -> Result<[Option<usize>; 2], FileError> {
        let [both, a, b] = ENDS.map(|end| link.span_of(&format!("{key}{end}")));
        match (both, a.clone().or(b.clone())) {
            (Some(_), Some(one)) => Err(self.document.error(
                one,
                "this is given for both ends and also for one end",
                "give it once for both ends, or once for each end (`..._a`, `..._b`)",
            )),
            (Some(_), None) => Ok([Some(0), Some(0)]),
            (None, _) => Ok([a.map(|_| 1), b.map(|_| 2)]),
        }
    }

    fn jitters(&self, link: &Table, keys: &LinkKeys) -> Result<[Option<Jitter>; 2], FileError> {
        let jitters = self.ends(link, "jitter")?;
        let reorders = self.ends(link, "reorder")?;
        let read = |index: usize| match (jitters[index], reorders[index]) {
            (Some(end), reorder) => {
                let delay = self.times(link, &format!("jitter{}", ENDS[end]))?;
                Ok(delay.map(|delay| Jitter {
                    delay,
                    reorder: reorder.and_then(|end| keys.reorder[end]).unwrap_or(false),
                }))
            }
            // `reorder` for both ends is for those that have jitter.
            (None, Some(end)) if end > 0 || jitters == [None, None] => Err(self.document.error(
                place(link, &format!("reorder{}", ENDS[end])),
                "without jitter no packet can overtake another one, so `reorder` has no effect",
                "add jitter, such as jitter = { exponential = \"2ms\" }, or remove this key",
            )),
            (None, _) => Ok(None),
        };
        Ok([read(0)?, read(1)?])
    }

    /// Checks that the name of each link is unique, and that no node has it: a route may contain both.
    pub(super) fn check_link_names(&self, network: &Network, tables: &[Table]) -> Result<(), FileError> {
        let mut names = BTreeSet::new();
        for (index, link) in network.scenario.links.iter().enumerate() {
            let (Some(name), Some(section)) = (&link.name, network.link_sections.get(index)) else {
                continue;
            };
            let of_node = network.find(name).is_some();
            if of_node || !names.insert(name) {
                let what = if of_node { "a node" } else { "another link" };
                return Err(self.document.error(
                    place(&tables[*section], "name"),
                    format!("{what} has the name `{name}`, too"),
                    "give each node and each link a different name",
                ));
            }
        }
        Ok(())
    }
}
