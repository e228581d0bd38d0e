//! Shards as one discipline: a driver with one thread serves them in turn.
//!
//! The simulator uses it to show what several workers do with a line, with the balancer and the books of the
//! live data plane. Each shard is a class, numbered from 1. A packet's key chooses its shard, so all packets
//! of a flow (or host, or class) are in one tree.
//!
//! It rebalances when it is called, at the earliest one interval after the last time. While packets wait for
//! their rate, [`watchdog`](crate::Discipline::watchdog) is not later than the next rebalancing.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::account::{Account, State};
use super::balancer::Balancer;
use super::division::Division;
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::{FlowBy, FlowByHasher};
use crate::link_layer::LinkLayer;
use crate::pool::{Changes, PacketId, PacketQueue, Pool};
use crate::rate::Rate;
use crate::registry::{Field, Value};
use crate::rounds::cake::Framing;
use crate::time::Time;

/// The largest number of shards.
const MOST_SHARDS: usize = 64;
/// Separates the choice of a shard from that of a queue in it.
const SALT: u64 = 0x7368_6172_6473_0001;

/// How the length of a packet is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// As token buckets count it.
    LinkLayer(LinkLayer),
    /// As cake counts it: the framing, and the bytes of a packet's length before the IP header.
    Framing(Framing, u16),
}

impl Lengths {
    /// Returns the bytes on the link for a packet of `length` bytes.
    #[inline]
    pub fn count(self, length: u32) -> u64 {
        match self {
            Lengths::LinkLayer(link_layer) => link_layer.count(length).into(),
            Lengths::Framing(framing, link_header) => framing.on_the_link(length, link_header),
        }
    }
}

/// What all shards together may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The rate.
    pub rate: Rate,
    /// The bytes that may be sent at once after an idle time.
    pub burst: u32,
    /// How lengths are counted.
    pub lengths: Lengths,
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What all shards together may send.
    pub limit: Limit,
    /// What stays in one shard.
    pub key: Key,
}

/// What stays in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// What has the same hash, and an equal part of the rate. It must be what the trees are fair to.
    Flows(FlowBy),
    /// The classes of a tree. Each shard has the tree of its own classes.
    Classes(Arc<Division>),
}

/// A tree with its books.
#[derive(Debug)]
struct Shard {
    tree: Box<dyn Discipline>,
    account: Account,
    state: State,
    /// When it is asked again; not set while it is idle.
    due: Time,
    /// Whether the tree has sent its last packet and was not told since that the line is idle.
    is_drained: bool,
}

impl Shard {
    fn new(tree: Box<dyn Discipline>, key: &Key) -> Shard {
        Shard {
            tree,
            account: match key {
                Key::Flows(_) => Account::of_flows(),
                Key::Classes(division) => Account::of_classes(division.classes()),
            },
            state: State::Idle,
            due: Time::MAX,
            is_drained: false,
        }
    }

    /// Enters what the tree has dropped since `before` into the books.
    #[inline]
    fn settle(&mut self, before: Changes, books: &Books, pool: &Pool) {
        if pool.changes() != before {
            let (returned, _) = pool.changes().since(before);
            for (id, _) in pool.returned().take(returned as usize) {
                self.account.dropped(books.place(id, pool));
            }
        }
        let packets = self.tree.backlog().packets;
        self.account.agree(packets);
        if packets == 0 {
            (self.state, self.due) = (State::Idle, Time::MAX);
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, books: &Books, pool: &mut Pool) -> Verdict {
        self.account.arrived(books.place(id, pool));
        let before = pool.changes();
        let verdict = self.tree.enqueue(id, now, pool);
        // It may have a packet to send now, whatever it waited for.
        (self.state, self.due) = (State::Waiting, now);
        self.settle(before, books, pool);
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, lengths: Lengths, books: &Books, pool: &mut Pool) -> Option<PacketId> {
        let is_empty = self.tree.backlog().packets == 0;
        if is_empty && !core::mem::take(&mut self.is_drained) {
            return None;
        }
        if let Err(due) = self.account.may_send(now)
            && !is_empty
        {
            (self.state, self.due) = (State::Waiting, due);
            return None;
        }
        let before = pool.changes();
        let next = self.tree.dequeue(now, pool);
        if let Some(id) = next {
            let length = lengths.count(pool[id].length);
            self.account.sent(books.place(id, pool), length);
            (self.state, self.due) = (State::Waiting, now);
        } else {
            (self.state, self.due) = (State::Throttled, self.tree.watchdog().unwrap_or(Time::MAX));
        }
        self.settle(before, books, pool);
        self.is_drained = next.is_some() && self.tree.backlog().packets == 0;
        next
    }
}

/// The discipline. Make one with [`Sharded::node`].
#[derive(Debug)]
pub struct Sharded {
    shards: Vec<Shard>,
    /// The shard that is asked first.
    turn: usize,
    balancer: Balancer,
    balanced_at: Time,
    books: Books,
    limit: Limit,
}

/// Which shard a packet belongs to, and which place it has in the books there.
///
/// The place is found again when the packet leaves. If the division has changed meanwhile, it may be another
/// one. Then a place has packets that never leave, which the census finds out, until the shard is empty.
#[derive(Debug)]
struct Books {
    key: Key,
    hasher: FlowByHasher,
}

impl Books {
    #[inline]
    fn place(&self, id: PacketId, pool: &Pool) -> u32 {
        match &self.key {
            Key::Flows(_) => Account::place(self.hasher.flow(id, pool)),
            Key::Classes(division) => division.member(&pool[id], pool.headers(id)),
        }
    }

    #[inline]
    fn shard(&self, id: PacketId, shards: usize, pool: &Pool) -> usize {
        match &self.key {
            Key::Flows(_) => self.hasher.flow(id, pool).bucket(SALT, shards as u32) as usize,
            Key::Classes(division) => division.worker(division.member(&pool[id], pool.headers(id))),
        }
    }
}

impl Sharded {
    /// Creates shards from `trees`, which are alike: 1 to 64. The seed salts the choice of a shard by
    /// anything else than the flow.
    ///
    /// # Errors
    /// If the number of trees is out of range.
    pub fn node(
        config: Config,
        trees: Vec<Box<dyn Discipline>>,
        seed: u64,
    ) -> Result<Node<Sharded>, ConfigError> {
        if !(1..=MOST_SHARDS).contains(&trees.len()) {
            return Err(ConfigError::conflict(
                "workers",
                trees.len(),
                format!("1 to {MOST_SHARDS}"),
                "use at most as many workers as there are processors",
            ));
        }
        let Limit { rate, burst, .. } = config.limit;
        let mut balancer = Balancer::new(rate, burst, trees.len());
        if let Key::Classes(division) = &config.key {
            balancer.set_classes(division.classes());
        }
        Ok(Node::new(Sharded {
            turn: 0,
            balancer,
            balanced_at: Time::ZERO,
            shards: trees
                .into_iter()
                .map(|tree| Shard::new(tree, &config.key))
                .collect(),
            books: Books {
                hasher: FlowByHasher::new(config.key.flow_by(), seed),
                key: config.key,
            },
            limit: config.limit,
        }))
    }

    fn next_balance(&self) -> Time {
        self.balanced_at + self.balancer.interval()
    }

    /// Gives each shard its next rate, if it is time.
    #[inline]
    fn balance(&mut self, now: Time) {
        if now >= self.next_balance() || self.balanced_at == Time::ZERO {
            self.rebalance(now);
        }
    }

    #[cold]
    fn rebalance(&mut self, now: Time) {
        let interval = self.balancer.interval();
        let elapsed = now.nanos_since(self.balanced_at);
        let report = |shard: &mut Shard| shard.account.report(shard.state, interval, now);
        let rates = self
            .balancer
            .rebalance(elapsed, self.shards.iter_mut().map(report));
        for (shard, rate) in self.shards.iter_mut().zip(rates) {
            shard.account.set_rate(*rate, now);
        }
        // Never zero again, so that the first call is the only one that is early; and never back.
        self.balanced_at = self.balanced_at.max(now).max(Time::from_nanos(1));
    }

    fn index_of(&self, minor: u32) -> Option<usize> {
        let index = (minor as usize).checked_sub(1)?;
        (index < self.shards.len()).then_some(index)
    }
}

impl Algorithm for Sharded {
    const NAME: &'static str = "sharded";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        // Before the packet counts: a rate that was meant for an idle time is not for its backlog.
        self.balance(now);
        let shard = self.books.shard(id, self.shards.len(), pool);
        self.shards[shard].enqueue(id, now, &self.books, pool)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.balance(now);
        let count = self.shards.len();
        for after in 0..count {
            let index = (self.turn + after) % count;
            let shard = &mut self.shards[index];
            if let Some(id) = shard.dequeue(now, self.limit.lengths, &self.books, pool) {
                self.turn = (index + 1) % count;
                return Some(id);
            }
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for shard in &mut self.shards {
            shard.tree.drain(pool, into);
            shard.account.agree(0);
            (shard.state, shard.due, shard.is_drained) = (State::Idle, Time::MAX, false);
        }
    }

    fn watchdog(&self) -> Option<Time> {
        let due = self.shards.iter().map(|shard| shard.due).min()?;
        let is_waiting = self.shards.iter().any(|shard| shard.state == State::Waiting);
        let due = match is_waiting {
            true => due.min(self.next_balance()),
            false => due,
        };
        (due < Time::MAX).then_some(due)
    }

    fn config(&self) -> Config {
        Config {
            limit: self.limit,
            key: self.books.key.clone(),
        }
    }

    /// The limit and the division of classes may change. The trees are changed one by one.
    fn reconfigure(&mut self, config: Config, now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        match (&config.key, &self.books.key) {
            (Key::Classes(division), Key::Classes(before)) => {
                if division != before {
                    self.balancer.set_classes(division.classes());
                    for shard in &mut self.shards {
                        shard.account.set_classes(division.classes());
                    }
                }
            }
            (new, old) if new == old => {}
            (new, old) => {
                return Err(ConfigError::conflict(
                    "shard_by",
                    new.word(),
                    format!("{}, as before", old.word()),
                    "flows would change their shards; begin anew",
                ));
            }
        }
        self.balancer.change(config.limit.rate, config.limit.burst);
        (self.limit, self.books.key) = (config.limit, config.key);
        self.rebalance(now);
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        for (minor, shard) in (1..).zip(&self.shards) {
            visit(Class::new(minor, shard.tree.as_ref()));
        }
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        let index = self.index_of(minor)?;
        let shard = &mut self.shards[index];
        // It may be changed, so it is asked again.
        shard.is_drained = true;
        (shard.state, shard.due) = (State::Waiting, Time::ZERO);
        Some(&mut shard.tree)
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("shards", Variable::Integer(self.shards.len() as i64));
    }
}

impl Key {
    fn flow_by(&self) -> FlowBy {
        match self {
            Key::Flows(by) => *by,
            // The driver's hash. It is not used.
            Key::Classes(_) => FlowBy::FiveTuple,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Key::Classes(_) => "class",
            Key::Flows(by) => match by.read() {
                Value::Word(word) => word,
                _ => unreachable!("it is a choice of words"),
            },
        }
    }
}

#[cfg(test)]
#[path = "sharded_tests.rs"]
mod tests;
