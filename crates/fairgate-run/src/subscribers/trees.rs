//! From a list of subscribers to the trees of both directions.
//!
//! ```text
//!   1        the line
//!   ├─ 2     packets of no subscriber
//!   ├─ 3     what neighbours find each other with: ARP, neighbour discovery, DHCP
//!   ├─ 16    a node
//!   │  └─ 17 a subscriber: its rate, and the discipline in it
//!   └─ 18    another one
//! ```
//!
//! A filter for each prefix leads to the class: by destination down, by source up. The same list gives the
//! same trees, and the class of a subscriber depends on nothing but its own line and its plan.
//!
//! ARP has no addresses that filters know, and IPv6 asks for neighbours at multicast addresses. In class 2
//! they would be lost in a flood of packets to unknown addresses, and with them the subscribers' connections.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use fairgate::ConfigError;
use fairgate::classify::{Filter, Match, Prefix};
use fairgate::flow::ethertype;
use fairgate::hfsc::ServiceCurve;
use fairgate::registry::Field;
use fairgate_config::{Assembly, Branch, FileError, Registry, Spec, Value};
use miette::NamedSource;

use super::fields::LEAST;
use super::list::{DOWN, List, Node, Subscriber};
use super::numbers::{LINE, NEIGHBOURS, Numbers, OTHERS};
use super::section::{Burst, Settings, Shaper};

/// The bytes that a class of htb may send in its turn: a full frame with a VLAN tag.
const TURN: u64 = 1518;

/// The share of packets of no subscriber in hfsc, bit/s. Subscribers have that of their rate.
const OTHERS_SHARE: u64 = 1_000_000;

/// What is guaranteed to neighbours that look for each other, and their share in hfsc, bit/s; on slow lines a
/// twentieth of the line. 20,000 subscribers that are asked for every 30 s need 0.5 Mbit/s.
const NEIGHBOURS_LEAST: u64 = 1_000_000;

/// The most that they get, bit/s.
pub(crate) const NEIGHBOURS_MOST: u64 = 10_000_000;

/// Addresses that neighbours use before they know each other: of both directions, of packets to them only,
/// and of packets from them only. IPv6: link-local ones and those of groups on the link (RFC 4861). DHCP:
/// none, and all.
const LINK_LOCAL: (IpAddr, u8) = (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10);
const LINK_GROUPS: (IpAddr, u8) = (IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0)), 16);
const EVERYBODY: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::BROADCAST), 32);
const NOBODY: [(IpAddr, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 32),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
];

/// Why trees can't be made.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The discipline refuses them.
    Tree(ConfigError),
    /// The discipline in a class refuses the rate of a subscriber.
    Leaf(FileError),
}

impl From<ConfigError> for Refused {
    fn from(error: ConfigError) -> Refused {
        Refused::Tree(error)
    }
}

/// Makes the trees, down and up. `known` are a list and the trees that it has with the same settings and
/// numbers: what is the same in both lists is not made again.
pub(crate) fn trees(
    settings: &Settings,
    list: &List,
    numbers: &Numbers,
    known: Option<(&List, &[Spec; 2])>,
    source: &Arc<NamedSource<String>>,
    registry: &Registry,
) -> Result<[Spec; 2], Refused> {
    let direction = |side: usize| {
        if let Some((_, trees)) = known.filter(|(before, _)| is_shaped_equally(before, list, side)) {
            return Ok(trees[side].clone());
        }
        let maker = Maker {
            settings,
            list,
            numbers,
            side,
            cakes: Cakes {
                registry,
                known: Vec::new(),
            },
        };
        maker.tree(source, registry)
    };
    Ok([direction(0)?, direction(1)?])
}

/// Returns whether two lists give the same tree of a direction: all of a subscriber or a node that
/// [`Maker::tree`] looks at.
fn is_shaped_equally(one: &List, other: &List, side: usize) -> bool {
    let is_same_node = |(one, other): (&Node, &Node)| {
        (&one.name, &one.above, one.rates[side]) == (&other.name, &other.above, other.rates[side])
    };
    let is_same = |(one, other): (&Subscriber, &Subscriber)| {
        one.id == other.id
            && one.rates[side] == other.rates[side]
            && one.prefixes == other.prefixes
            && one.plan == other.plan
            && one.node == other.node
            && one.leaves[side] == other.leaves[side]
            && one.limit.is_some() == other.limit.is_some()
    };
    one.nodes.len() == other.nodes.len()
        && one.subscribers.len() == other.subscribers.len()
        && one.nodes.iter().zip(&other.nodes).all(is_same_node)
        && one.subscribers.iter().zip(&other.subscribers).all(is_same)
}

struct Maker<'a> {
    settings: &'a Settings,
    list: &'a List,
    numbers: &'a Numbers,
    side: usize,
    cakes: Cakes<'a>,
}

impl Maker<'_> {
    fn tree(mut self, source: &Arc<NamedSource<String>>, registry: &Registry) -> Result<Spec, Refused> {
        let Settings { line, others, .. } = self.settings;
        let (line, others) = (line[self.side], others[self.side]);
        let mut classes = vec![
            Branch {
                minor: LINE,
                parent: None,
                settings: self.shared(line, line),
                tree: None,
            },
            Branch {
                minor: OTHERS,
                parent: Some(LINE),
                settings: self.shaped(LEAST, others, OTHERS_SHARE),
                tree: Some(self.settings.leaves.fq_codel.clone()),
            },
            Branch {
                minor: NEIGHBOURS,
                parent: Some(LINE),
                settings: self.neighbours(line),
                tree: Some(self.settings.leaves.fq_codel.clone()),
            },
        ];
        let above = |node: Option<&str>| {
            let known = node.map(|name| self.numbers.of_node(name));
            known.map_or(LINE, |number| number.expect("the nodes of a list are numbered"))
        };
        let nodes = self.list.nodes.iter().filter_map(|node| node.above.as_deref());
        let subscribers = self.list.subscribers.iter();
        let parents: BTreeSet<&str> = nodes
            .chain(subscribers.filter_map(|subscriber| subscriber.node.as_deref()))
            .collect();
        for node in &self.list.nodes {
            let rate = node.rates[self.side];
            classes.push(Branch {
                minor: above(Some(&node.name)),
                parent: Some(above(node.above.as_deref())),
                settings: self.shared(LEAST.min(rate), rate),
                // A node without subscribers holds no packets, but each leaf has a discipline.
                tree: (!parents.contains(node.name.as_str())).then(|| self.settings.leaves.fifo.clone()),
            });
        }
        let mut filters = self.filters_of_neighbours();
        for subscriber in &self.list.subscribers {
            let minor = self.numbers.of_subscriber(&subscriber.id);
            let minor = minor.expect("the subscribers of a list are numbered");
            let node = subscriber.node.as_deref().map(|name| self.numbers.of_node(name));
            let parent = node.map_or(LINE, |number| number.expect("the nodes of a list are numbered"));
            let (settings, tree) = self.subscriber(subscriber)?;
            classes.push(Branch {
                minor,
                parent: Some(parent),
                settings,
                tree: Some(tree),
            });
            let filter = |prefix: &Prefix| (minor, self.filter(*prefix, minor));
            filters.extend(subscriber.prefixes.iter().map(filter));
        }
        // Prefixes do not overlap, so any order is right. This one does not depend on that of the list.
        filters.sort_by_key(|(minor, _)| *minor);
        let assembly = Assembly {
            discipline: match self.settings.shaper {
                Shaper::Hfsc => "hfsc",
                Shaper::Htb | Shaper::Cake => "htb",
            },
            classes,
            filters: filters.into_iter().map(|(_, filter)| filter).collect(),
            default: Some(OTHERS),
            source: Arc::clone(source),
        };
        Ok(assembly.build(registry)?)
    }

    /// Returns the settings and the discipline of a subscriber's class.
    fn subscriber(&mut self, subscriber: &Subscriber) -> Result<(Settled, Spec), Refused> {
        let rates = subscriber.rates[self.side];
        let most = rates.most.expect("a checked subscriber has a rate");
        let least = rates.least.unwrap_or(LEAST.min(most));
        let leaf = subscriber.leaves[self.side]
            .as_ref()
            .unwrap_or(&self.settings.leaf);
        if self.settings.shaper == Shaper::Cake && leaf.discipline() == "cake" {
            // The cake itself keeps the rate.
            let most = self.settings.line[self.side].max(most);
            let rate = rates.most.expect("a checked subscriber has a rate");
            return Ok((self.shaped(least, most, most), self.cakes.of(leaf, rate)?));
        }
        let mut settled = self.shaped(least, most, most);
        if let (Shaper::Hfsc, Some(least)) = (self.settings.shaper, rates.least) {
            settled.push(("rt", curve(least)));
        }
        let plan = subscriber
            .plan
            .as_ref()
            .and_then(|plan| self.settings.plans.get(plan));
        let burst = plan.and_then(|plan| plan.bursts[self.side]);
        // A subscriber's own rate may be above the burst of its plan, and a limit for a time has none.
        let has_burst = |burst: &Burst| burst.rate > most && subscriber.limit.is_none();
        if let Some(burst) = burst.filter(has_burst) {
            settled.extend([
                ("burst_rate", Value::Number(burst.rate)),
                ("burst_threshold", Value::Number(burst.threshold)),
                ("burst_time", Value::Number(burst.time)),
            ]);
        }
        Ok((settled, leaf.clone()))
    }

    /// Returns the settings of a class that others are below.
    fn shared(&self, least: u64, most: u64) -> Settled {
        match self.settings.shaper {
            Shaper::Hfsc => vec![("ls", curve(most)), ("ul", curve(most))],
            Shaper::Htb | Shaper::Cake => vec![("rate", Value::Number(least)), ("ceil", Value::Number(most))],
        }
    }

    /// Returns the settings of a leaf.
    fn shaped(&self, least: u64, most: u64, share: u64) -> Settled {
        match self.settings.shaper {
            Shaper::Hfsc => vec![("ls", curve(share)), ("ul", curve(most))],
            Shaper::Htb | Shaper::Cake => vec![
                ("rate", Value::Number(least)),
                ("ceil", Value::Number(most)),
                ("quantum", Value::Number(TURN)),
            ],
        }
    }

    /// Returns the settings of the class of neighbours that look for each other.
    fn neighbours(&self, line: u64) -> Settled {
        let least = NEIGHBOURS_LEAST.min(line / 20).max(LEAST);
        let mut settled = self.shaped(least, NEIGHBOURS_MOST.min(line), least);
        if self.settings.shaper == Shaper::Hfsc {
            settled.push(("rt", curve(least)));
        }
        settled
    }

    fn filters_of_neighbours(&self) -> Vec<(u32, Filter)> {
        let arp = Filter {
            condition: Match {
                ethertype: Some(ethertype::ARP),
                ..Match::default()
            },
            outcome: NEIGHBOURS.into(),
            ..Filter::default()
        };
        let addresses: &[(IpAddr, u8)] = match self.side {
            DOWN => &[LINK_LOCAL, LINK_GROUPS, EVERYBODY],
            _ => &[LINK_LOCAL, NOBODY[0], NOBODY[1]],
        };
        let prefixes = addresses
            .iter()
            .map(|(address, length)| Prefix::new(*address, *length).expect("the length suits the family"));
        let of_addresses = prefixes.map(|prefix| self.filter(prefix, NEIGHBOURS));
        std::iter::once(arp)
            .chain(of_addresses)
            .map(|filter| (NEIGHBOURS, filter))
            .collect()
    }

    fn filter(&self, prefix: Prefix, class: u32) -> Filter {
        let (source, destination) = match self.side {
            DOWN => (None, Some(prefix)),
            _ => (Some(prefix), None),
        };
        Filter {
            condition: Match {
                source,
                destination,
                ..Match::default()
            },
            outcome: class.into(),
            ..Filter::default()
        }
    }
}

/// Parameters of a class by their names.
type Settled = Vec<(&'static str, Value)>;

fn curve(bits: u64) -> Value {
    ServiceCurve::linear(bits).read()
}

/// The cakes of all rates that occur. Equal ones are checked once.
struct Cakes<'a> {
    registry: &'a Registry,
    known: Vec<(Spec, BTreeMap<u64, Spec>)>,
}

impl Cakes<'_> {
    /// Returns a cake with this bandwidth.
    fn of(&mut self, base: &Spec, rate: u64) -> Result<Spec, Refused> {
        let place = match self.known.iter().position(|(known, _)| known == base) {
            Some(place) => place,
            None => {
                self.known.push((base.clone(), BTreeMap::new()));
                self.known.len() - 1
            }
        };
        let (base, by_rate) = &mut self.known[place];
        if let Some(cake) = by_rate.get(&rate) {
            return Ok(cake.clone());
        }
        let line = format!("queue change root bandwidth={rate}bit");
        let cake = base.edited(&line, self.registry).map_err(Refused::Leaf)?;
        by_rate.insert(rate, cake.clone());
        Ok(cake)
    }
}
