//! A list of subscribers, and the nodes of the network between them and the line.

use fairgate::Rate;
use fairgate::classify::Prefix;
use fairgate_config::Spec;
use fairgate_config::units::format_rate;
use fairgate_run_api::{Entry, Shaped};

/// The direction to the subscribers, as an index.
pub const DOWN: usize = 0;
/// The direction from the subscribers.
pub const UP: usize = 1;

/// A checked list: identifiers are unique, no two prefixes overlap, and every node that is named exists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The subscribers, in the order of the files.
    pub subscribers: Vec<Subscriber>,
    /// The nodes. Each comes after the node above it.
    pub nodes: Vec<Node>,
}

/// A subscriber.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscriber {
    /// Identifies it. Its class stays the same as long as this does.
    pub id: String,
    /// For people; may be empty.
    pub name: String,
    /// Its addresses.
    pub prefixes: Vec<Prefix>,
    /// What it gets down and up.
    pub rates: [Rates; 2],
    /// The plan that it has, if it has one.
    pub plan: Option<String>,
    /// The rates that it has itself, and not from its plan: down and up.
    pub own: [Rates; 2],
    /// The node that it is connected to. `None`: the line itself.
    pub node: Option<String>,
    /// What is in its class, down and up, if it differs from that of the others.
    pub leaves: [Option<Spec>; 2],
    /// What it gets for a time, in place of `rates`.
    pub limit: Option<Limit>,
}

impl Subscriber {
    /// Gives it what it gets for a time. What is guaranteed is never more.
    pub(crate) fn limit(&mut self, limit: Limit) {
        for (rates, most) in self.rates.iter_mut().zip(limit.rates) {
            rates.most = most.or(rates.most);
            rates.least = rates.least.min(rates.most);
        }
        self.limit = Some(limit);
    }

    /// Returns a rate as lists have it. None if it can't be one.
    pub(crate) fn rate_text(bits: u64) -> Option<String> {
        Rate::from_bits_per_second(bits).ok().map(format_rate)
    }
}

impl From<&Subscriber> for Entry {
    fn from(subscriber: &Subscriber) -> Entry {
        let [down, up] = subscriber.own;
        let shown = |bits: Option<u64>| bits.and_then(Subscriber::rate_text);
        Entry {
            id: subscriber.id.clone(),
            name: (!subscriber.name.is_empty()).then(|| subscriber.name.clone()),
            prefixes: subscriber.prefixes.iter().map(ToString::to_string).collect(),
            down: shown(down.most),
            up: shown(up.most),
            down_min: shown(down.least),
            up_min: shown(up.least),
            plan: subscriber.plan.clone(),
        }
    }
}

impl From<&Subscriber> for Shaped {
    fn from(subscriber: &Subscriber) -> Shaped {
        let [down, up] = subscriber.rates;
        Shaped {
            down_bps: down.most.unwrap_or(0),
            up_bps: up.most.unwrap_or(0),
            down_min_bps: down.least,
            up_min_bps: up.least,
            node: subscriber.node.clone(),
            limited_until_s: subscriber.limit.map(|limit| limit.until_s),
        }
    }
}

/// The rates of one direction, bit/s. `None`: not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// What is guaranteed.
    pub least: Option<u64>,
    /// What is never exceeded. A checked subscriber has it.
    pub most: Option<u64>,
}

impl Rates {
    /// Returns these rates, or those of a plan where there are none.
    #[must_use]
    pub fn or(self, plan: Rates) -> Rates {
        Rates {
            least: self.least.or(plan.least),
            most: self.most.or(plan.most),
        }
    }
}

/// What a subscriber gets at most until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its rates down and up, bit/s. `None`: that of the list.
    pub rates: [Option<u64>; 2],
    /// When it ends, seconds since 1970 (Unix time).
    pub until_s: u64,
}

impl Limit {
    /// Returns whether it holds.
    pub(crate) fn holds(&self, now_s: u64) -> bool {
        now_s < self.until_s
    }
}

/// A part of the network that several subscribers share: a site, an access point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, which no other node has.
    pub name: String,
    /// The node above it. `None`: the line itself.
    pub above: Option<String>,
    /// Its rate down and up, bit/s.
    pub rates: [u64; 2],
}

impl List {
    /// Returns the subscriber of this identifier.
    pub fn find(&self, id: &str) -> Option<&Subscriber> {
        self.subscribers.iter().find(|subscriber| subscriber.id == id)
    }
}
