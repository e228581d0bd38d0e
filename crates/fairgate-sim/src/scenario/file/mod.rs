//! The `[simulate]` section of a configuration file.
//!
//! ```toml
//! [simulate]
//! duration = "60s"
//! measure = ["10s", "60s"]          # the measurement window; default: the whole duration
//! interval = "100ms"                # between the points of time series
//! seed = 1
//!
//! [[simulate.link]]                 # links create the nodes that they name
//! a = "home"
//! b = "router"
//! rate = "20mbit"                   # or rate_a and rate_b: from a, from b; if omitted, the link only delays
//! delay = "10ms"
//! overhead = 14                     # bytes of framing per packet
//! queue_a = "wan"                   # [queue.wan] at a, for packets to b; `queue` is for both ends
//!
//! [[simulate.flow]]
//! name = "downloads"
//! from = "router"
//! to = "home"
//! count = 4
//! tcp = { congestion_control = "cubic" }
//!
//! [[simulate.flow]]
//! name = "call"
//! from = "home"
//! to = "router"
//! dscp = 46
//! udp = { rate = "64kbit", size = "160b" }
//! ```
//!
//! If there are no links, the network is that of `[run]`: `left`, `router` and `right`, with the queues of
//! `[run]` on the router.

use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use fairgate::{ClassId, Rate};
use fairgate_config::units::{parse_duration, parse_rate};
use fairgate_config::{Document, FileError, UnitError};
use serde::Deserialize;
use toml::Spanned;

use crate::scenario::file::pair::Pair;
use crate::scenario::file::traffic::{TcpSection, UdpSection};
use crate::scenario::{Flow, Link, NodeId, Queue, Scenario, ScenarioError, ScenarioPart, Traffic};

mod drawn;
mod pair;
mod traffic;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    duration: Spanned<String>,
    measure: Option<Spanned<Pair>>,
    interval: Option<Spanned<String>>,
    seed: Option<u64>,
    #[serde(default, rename = "node")]
    nodes: Vec<NodeSection>,
    #[serde(default, rename = "link")]
    links: Vec<LinkSection>,
    #[serde(default, rename = "flow")]
    flows: Vec<FlowSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeSection {
    name: Spanned<String>,
    address: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkSection {
    a: Spanned<String>,
    b: Spanned<String>,
    rate: Option<Spanned<String>>,
    rate_a: Option<Spanned<String>>,
    rate_b: Option<Spanned<String>>,
    delay: Option<Spanned<String>>,
    overhead: Option<Spanned<u32>>,
    queue: Option<Spanned<String>>,
    queue_a: Option<Spanned<String>>,
    queue_b: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowSection {
    name: Spanned<String>,
    from: Spanned<String>,
    to: Spanned<String>,
    udp: Option<Spanned<UdpSection>>,
    tcp: Option<Spanned<TcpSection>>,
    start: Option<Spanned<String>>,
    stop: Option<Spanned<String>>,
    count: Option<Spanned<u32>>,
    stagger: Option<Spanned<String>>,
    dscp: Option<Spanned<u8>>,
    priority: Option<Spanned<u8>>,
    #[serde(default)]
    ecn: bool,
    #[serde(default)]
    mark: u32,
    class: Option<Spanned<String>>,
    port: Option<u16>,
    route: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The keys of `[run]` that this section needs. The live data plane checks the rest.
#[derive(Deserialize)]
struct RunSection {
    left_to_right: Option<Spanned<String>>,
    right_to_left: Option<Spanned<String>>,
    delay: Option<Spanned<String>>,
}

impl Scenario {
    /// Reads the `[simulate]` section of a configuration file.
    ///
    /// # Errors
    /// Reports the first mistake with its location. Whatever `read` accepts can be simulated, if there is
    /// enough memory.
    pub fn read(document: &Document) -> Result<Scenario, FileError> {
        Scenario::read_and_check(document, Scenario::check)
    }

    /// Reads the section for a machine with `memory` bytes available.
    ///
    /// # Errors
    /// Fails like [`read`](Scenario::read), and if the scenario needs more memory.
    pub fn read_for(document: &Document, memory: u64) -> Result<Scenario, FileError> {
        Scenario::read_and_check(document, |scenario| {
            scenario.check()?;
            scenario.check_memory(memory)
        })
    }

    fn read_and_check(
        document: &Document,
        check: impl Fn(&Scenario) -> Result<(), ScenarioError>,
    ) -> Result<Scenario, FileError> {
        let Some(section) = document.section::<Section>("simulate")? else {
            return Err(document.error(
                0..0,
                "there is no [simulate] section",
                "add one with a `duration`, links and flows",
            ));
        };
        let reader = Reader { document };
        let scenario = reader.scenario(&section)?;
        check(&scenario).map_err(|error| {
            // The text before the semicolon says what is wrong. The text after it is the remedy.
            let (what, remedy) = error
                .what
                .rsplit_once("; ")
                .unwrap_or((&error.what, "correct this value"));
            document.error(location(&section, &error), what, remedy)
        })?;
        Ok(scenario)
    }
}

/// Returns where the wrong field is written. If it is not written, returns where its part begins.
fn location(section: &Section, error: &ScenarioError) -> Range<usize> {
    fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
        value.as_ref().map(Spanned::span)
    }
    match error.part {
        ScenarioPart::Scenario => match error.field {
            "measure" => span(&section.measure),
            "interval" => span(&section.interval),
            _ => None,
        }
        .unwrap_or_else(|| section.duration.span()),
        // If the links come from [run], only their queues can be wrong, and those have been checked in their
        // own sections.
        ScenarioPart::Link(index) => section.links.get(index).map_or(0..0, |link| {
            match error.field {
                "b" => Some(link.b.span()),
                "delay" => span(&link.delay),
                "overhead" => span(&link.overhead),
                "queue_a" => span(&link.queue_a).or(span(&link.queue)),
                "queue_b" => span(&link.queue_b).or(span(&link.queue)),
                _ => None,
            }
            .unwrap_or_else(|| link.a.span())
        }),
        ScenarioPart::Flow(index) => {
            let flow = &section.flows[index];
            match error.field {
                "to" => Some(flow.to.span()),
                "count" => span(&flow.count),
                "dscp" => span(&flow.dscp),
                "priority" => span(&flow.priority),
                "start" => span(&flow.start),
                "stop" => span(&flow.stop),
                "route" => span(&flow.route),
                "udp" => span(&flow.udp),
                "tcp" => span(&flow.tcp),
                _ => None,
            }
            .unwrap_or_else(|| flow.name.span())
        }
    }
}

/// Converts text to values, and knows the locations of errors.
struct Reader<'a> {
    document: &'a Document,
}

impl Reader<'_> {
    fn scenario(&self, section: &Section) -> Result<Scenario, FileError> {
        let duration = self.duration(&section.duration)?;
        let mut scenario = Scenario::new(duration);
        if let Some(window) = &section.measure {
            let [start, end] = window
                .get_ref()
                .0
                .each_ref()
                .map(|text| self.unit(&window.span(), parse_duration(text)));
            scenario.measure = start?..end?;
        }
        if let Some(interval) = &section.interval {
            scenario.interval = self.duration(interval)?;
        }
        if let Some(seed) = section.seed {
            scenario.seed = seed;
        }
        for node in &section.nodes {
            self.add_node(&mut scenario, node)?;
        }
        if section.links.is_empty() {
            self.add_run_network(&mut scenario, section)?;
        }
        for link in &section.links {
            self.add_link(&mut scenario, link)?;
        }
        if section.flows.is_empty() {
            return Err(self.document.error(
                section.duration.span(),
                "this scenario has no flows",
                "add a [[simulate.flow]] with `name`, `from`, `to`, and `udp` or `tcp`",
            ));
        }
        for (index, flow) in section.flows.iter().enumerate() {
            if section.flows[..index]
                .iter()
                .any(|other| other.name.get_ref() == flow.name.get_ref())
            {
                return Err(self.document.error(
                    flow.name.span(),
                    format!("there are two flows with the name `{}`", flow.name.get_ref()),
                    "give each flow a different name, or replace them by one flow with a `count`",
                ));
            }
            let flow = self.flow(&scenario, flow)?;
            scenario.flows.push(flow);
        }
        Ok(scenario)
    }

    fn add_node(&self, scenario: &mut Scenario, node: &NodeSection) -> Result<(), FileError> {
        let name = node.name.get_ref();
        if scenario.find_node(name).is_some() {
            return Err(self.document.error(
                node.name.span(),
                format!("there are two nodes with the name `{name}`"),
                "give each node a different name",
            ));
        }
        let id = scenario.node(name);
        if let Some(address) = &node.address {
            scenario.nodes[id.index()].address = address.get_ref().parse::<IpAddr>().map_err(|error| {
                self.document.error(
                    address.span(),
                    format!("`{}` is not an IP address: {error}", address.get_ref()),
                    "write an IPv4 or IPv6 address, such as \"192.168.1.2\"",
                )
            })?;
        }
        Ok(())
    }

    /// Adds the network of `[run]`: a router between two hosts. It has the queues of the live data plane,
    /// followed by its delay. The links themselves have no transmission time.
    fn add_run_network(&self, scenario: &mut Scenario, section: &Section) -> Result<(), FileError> {
        let Some(run) = self.document.section::<RunSection>("run")? else {
            return Err(self.document.error(
                section.duration.span(),
                "this scenario has no links, and there is no [run] section that describes a network",
                "add a [[simulate.link]] with the two nodes `a` and `b` that it connects",
            ));
        };
        let delay = run
            .delay
            .as_ref()
            .map_or(Ok(Duration::ZERO), |text| self.duration(text))?;
        let [left, router, right] = ["left", "router", "right"]
            .map(|name| scenario.find_node(name).unwrap_or_else(|| scenario.node(name)));
        scenario.links.push(
            Link::unlimited(left, router, Duration::ZERO)
                .with_queue_b(self.queue(run.right_to_left.as_ref())?),
        );
        scenario.links.push(
            Link::unlimited(router, right, delay).with_queue_a(self.queue(run.left_to_right.as_ref())?),
        );
        Ok(())
    }

    fn add_link(&self, scenario: &mut Scenario, link: &LinkSection) -> Result<(), FileError> {
        let [a, b] = [&link.a, &link.b].map(|name| {
            scenario
                .find_node(name.get_ref())
                .unwrap_or_else(|| scenario.node(name.get_ref()))
        });
        for (both, one) in [
            (&link.rate, link.rate_a.as_ref().or(link.rate_b.as_ref())),
            (&link.queue, link.queue_a.as_ref().or(link.queue_b.as_ref())),
        ] {
            if let (Some(_), Some(one)) = (both, one) {
                return Err(self.document.error(
                    one.span(),
                    "this is given for both ends and also for one end",
                    "give it once for both ends, or once for each end (`..._a`, `..._b`)",
                ));
            }
        }
        let rate = |one: &Option<Spanned<String>>| -> Result<Option<Rate>, FileError> {
            one.as_ref()
                .or(link.rate.as_ref())
                .map(|text| self.unit(&text.span(), parse_rate(text.get_ref())))
                .transpose()
        };
        let delay = link
            .delay
            .as_ref()
            .map_or(Ok(Duration::ZERO), |text| self.duration(text))?;
        let plain = Link::unlimited(a, b, delay);
        scenario.links.push(Link {
            rate_a: rate(&link.rate_a)?,
            rate_b: rate(&link.rate_b)?,
            overhead: link
                .overhead
                .as_ref()
                .map_or(plain.overhead, |overhead| *overhead.get_ref()),
            queue_a: self.queue(link.queue_a.as_ref().or(link.queue.as_ref()))?,
            queue_b: self.queue(link.queue_b.as_ref().or(link.queue.as_ref()))?,
            ..plain
        });
        Ok(())
    }

    fn flow(&self, scenario: &Scenario, flow: &FlowSection) -> Result<Flow, FileError> {
        let traffic = match (&flow.udp, &flow.tcp) {
            (Some(udp), None) => Traffic::Udp(udp.get_ref().read(self, &udp.span())?),
            (None, Some(tcp)) => Traffic::from(tcp.get_ref().read(self, &tcp.span())?),
            _ => {
                return Err(self.document.error(
                    flow.name.span(),
                    format!("flow `{}` must have either `udp` or `tcp`", flow.name.get_ref()),
                    "add what it sends: udp = { rate = \"1mbit\" } or tcp = {}",
                ));
            }
        };
        let optional =
            |text: &Option<Spanned<String>>| text.as_ref().map(|text| self.duration(text)).transpose();
        let (source, destination) = (self.node(scenario, &flow.from)?, self.node(scenario, &flow.to)?);
        let plain = Flow::new(flow.name.get_ref().clone(), source, destination, traffic);
        Ok(Flow {
            start: optional(&flow.start)?.unwrap_or(plain.start),
            stop: optional(&flow.stop)?,
            count: flow.count.as_ref().map_or(plain.count, |count| *count.get_ref()),
            stagger: optional(&flow.stagger)?.unwrap_or(plain.stagger),
            dscp: flow.dscp.as_ref().map_or(plain.dscp, |dscp| *dscp.get_ref()),
            priority: flow
                .priority
                .as_ref()
                .map_or(plain.priority, |priority| *priority.get_ref()),
            ecn: flow.ecn,
            mark: flow.mark,
            class: flow
                .class
                .as_ref()
                .map_or(Ok(plain.class), |class| self.class(class))?,
            port: flow.port,
            route: flow
                .route
                .as_ref()
                .map(|nodes| {
                    nodes
                        .get_ref()
                        .iter()
                        .map(|name| self.node(scenario, name))
                        .collect()
                })
                .transpose()?,
            ..plain
        })
    }

    fn node(&self, scenario: &Scenario, name: &Spanned<String>) -> Result<NodeId, FileError> {
        scenario.find_node(name.get_ref()).ok_or_else(|| {
            let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
            self.document.error(
                name.span(),
                format!("there is no node `{}`", name.get_ref()),
                format!(
                    "the nodes are {}; a [[simulate.link]] creates more",
                    names.join(", ")
                ),
            )
        })
    }

    fn queue(&self, name: Option<&Spanned<String>>) -> Result<Queue, FileError> {
        match name {
            Some(name) => Ok(self.document.resolve(name)?.clone().into()),
            None => Ok(Queue::default()),
        }
    }

    /// Parses a class such as `10:1`. Both numbers are hexadecimal, as in tc.
    fn class(&self, text: &Spanned<String>) -> Result<ClassId, FileError> {
        let parse = |digits: &str| u16::from_str_radix(digits, 16).ok();
        text.get_ref()
            .split_once(':')
            .and_then(|(major, minor)| Some(ClassId::new(parse(major)?, parse(minor)?)))
            .ok_or_else(|| {
                self.document.error(
                    text.span(),
                    format!("`{}` is not a class", text.get_ref()),
                    "write the discipline's handle and the number of the class, such as \"10:1\"",
                )
            })
    }

    fn duration(&self, text: &Spanned<String>) -> Result<Duration, FileError> {
        self.unit(&text.span(), parse_duration(text.get_ref()))
    }

    fn rate(&self, text: &Spanned<String>) -> Result<Rate, FileError> {
        self.unit(&text.span(), parse_rate(text.get_ref()))
    }

    fn unit<T>(&self, span: &Range<usize>, parsed: Result<T, UnitError>) -> Result<T, FileError> {
        parsed.map_err(|error| self.document.error(span.clone(), error.message, error.remedy))
    }
}
