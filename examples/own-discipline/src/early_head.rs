//! A queue that drops its oldest packets at random before it is full.
//!
//! A drop at the head reaches the TCP sender earlier than a drop of the arriving packet, by the time that a
//! packet spends in the queue (Lakshman, Neidhardt, Ott, "The drop from front strategy in TCP and in TCP over
//! ATM", 1996). Random drops before the queue is full prevent that all senders lose packets at the same time
//! (Floyd, Jacobson, "Random early detection gateways for congestion avoidance", 1993).
//!
//! With `q` packets queued, an arriving packet drops the oldest one with probability `(q - start) / (limit -
//! start)`: never up to `start`, always at `limit`. Invariant: at most `limit` packets are queued. Packets
//! leave in the order in which they arrived. Non-goal: the queue does not separate flows. Put it into a class
//! of a fair discipline for that.

use fairgate::registry::{About, Description, Parameter, Unit, check_ranges};
use fairgate::{
    Algorithm, ConfigError, DropReason, Node, PacketId, PacketQueue, Pool, Time, Variable, Verdict,
};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest number of packets queued.
    pub limit: u32,
    /// The number of packets up to which nothing is dropped.
    pub start: u32,
}

/// A limit of 1000 packets as in `fifo`. A burst of a tenth of it is accepted without drops.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            start: 100,
        }
    }
}

/// The parameters that users can set.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=1 << 20,
        "Largest number of packets queued.",
        |config, _| &mut config.limit,
    ),
    Parameter::new(
        "start",
        Unit::Count("packets"),
        0..=1 << 20,
        "Number of packets queued up to which nothing is dropped; below `limit`.",
        |config, _| &mut config.start,
    ),
];

/// The description of the discipline for the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About::new(
        EarlyHead::NAME,
        "A queue that drops its oldest packets at random before it is full",
        "To try a discipline that is not part of the library.",
    ),
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(EarlyHead::node(config, parts.seed)?)),
);

impl Config {
    /// Checks the ranges of the parameters, and the rule between them.
    fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        if self.start >= self.limit {
            return Err(ConfigError::conflict(
                "start",
                self.start,
                format!("below `limit`, {}", self.limit),
                "lower it, or raise `limit`",
            ));
        }
        Ok(())
    }
}

/// The discipline. Make one with [`EarlyHead::node`].
#[derive(Debug)]
pub struct EarlyHead {
    queue: PacketQueue,
    random: u64,
    /// Packets dropped before the queue was full.
    early_drops: u64,
    config: Config,
}

impl EarlyHead {
    /// Returns an empty queue. `seed` is the seed of its random drops.
    ///
    /// # Errors
    /// If a parameter is out of range, or `start` is not below `limit`.
    pub fn node(config: Config, seed: u64) -> Result<Node<EarlyHead>, ConfigError> {
        config.check()?;
        Ok(Node::new(EarlyHead {
            queue: PacketQueue::new(),
            random: seed,
            early_drops: 0,
            config,
        }))
    }

    /// Returns 32 random bits (SplitMix64: Steele, Lea, Flood 2014).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 32
    }

    /// Returns whether the arriving packet drops the oldest one. There is no division: both sides are
    /// multiplied by `limit - start`.
    fn drops(&mut self) -> bool {
        let Config { limit, start } = self.config;
        let excess = self.queue.len().saturating_sub(start);
        excess > 0 && (self.random() * u64::from(limit - start)) >> 32 < u64::from(excess)
    }
}

impl Algorithm for EarlyHead {
    const NAME: &'static str = "early_head";
    type Config = Config;

    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        let is_full = self.queue.len() >= self.config.limit;
        let drops = self.drops();
        if drops && let Some(oldest) = self.queue.pop_front(pool) {
            let reason = match is_full {
                true => DropReason::HeadDrop,
                false => DropReason::Aqm,
            };
            self.early_drops += u64::from(!is_full);
            pool.give_back(oldest, reason);
        }
        self.queue.push_back(id, pool);
        match drops {
            true => Verdict::Congested,
            false => Verdict::Queued,
        }
    }

    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.queue.pop_front(pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        self.config = config;
        while self.queue.len() > self.config.limit
            && let Some(oldest) = self.queue.pop_front(pool)
        {
            pool.give_back(oldest, DropReason::Reconfigured);
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("early_drops", Variable::Integer(self.early_drops as i64));
    }
}
