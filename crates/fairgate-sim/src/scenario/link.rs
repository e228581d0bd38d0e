//! A full-duplex link between two nodes, with a queue at each end.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fairgate::queues::fifo::{self, Fifo};
use fairgate::{Discipline, Rate};
use fairgate_config::Spec;

use crate::scenario::{LONGEST, Mistake, NodeId, Scenario};

/// The bytes that Ethernet adds to a packet, as Linux's schedulers count them: without preamble, check
/// sequence and gap.
pub const ETHERNET_HEADER: u32 = 14;
/// The maximum overhead. It is more than any stack of headers.
const MOST_OVERHEAD: u32 = 1000;

/// A link. Each of its two directions has a rate, a delay and a queue. `a` and `b` name the sending end.
#[derive(Clone, Debug)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// The rate from `a` to `b`. `None`: transmission takes no time, so that only a shaper can build a queue.
    pub rate_a: Option<Rate>,
    /// The rate from `b` to `a`.
    pub rate_b: Option<Rate>,
    /// The propagation delay, the same in both directions.
    pub delay: Duration,
    /// The bytes that framing adds to every packet. Queues and the link count them, flows don't.
    pub overhead: u32,
    /// The queue at `a`, for packets to `b`.
    pub queue_a: Queue,
    /// The queue at `b`, for packets to `a`.
    pub queue_b: Queue,
}

impl Link {
    /// Creates a link with one rate for both directions, Ethernet framing, and fifos of 1000 packets.
    pub fn new(a: NodeId, b: NodeId, rate: Rate, delay: Duration) -> Link {
        Link {
            rate_a: Some(rate),
            rate_b: Some(rate),
            ..Link::unlimited(a, b, delay)
        }
    }

    /// Creates a link that only delays.
    pub fn unlimited(a: NodeId, b: NodeId, delay: Duration) -> Link {
        Link {
            a,
            b,
            rate_a: None,
            rate_b: None,
            delay,
            overhead: ETHERNET_HEADER,
            queue_a: Queue::default(),
            queue_b: Queue::default(),
        }
    }

    /// Returns the link with another queue at `a`.
    pub fn with_queue_a(mut self, queue: Queue) -> Link {
        self.queue_a = queue;
        self
    }

    /// Returns the link with another queue at `b`.
    pub fn with_queue_b(mut self, queue: Queue) -> Link {
        self.queue_b = queue;
        self
    }

    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Mistake> {
        if self.a == self.b {
            return Err(Mistake::new(
                "b",
                format!(
                    "the link leads from `{}` to itself; name two different nodes",
                    scenario.node_name(self.a)
                ),
            ));
        }
        if self.delay > LONGEST {
            return Err(Mistake::new(
                "delay",
                "the delay is longer than a year, which is the limit; choose a shorter one",
            ));
        }
        if self.overhead > MOST_OVERHEAD {
            return Err(Mistake::new(
                "overhead",
                format!(
                    "the overhead is {} bytes per packet, but must be at most {MOST_OVERHEAD}; Ethernet has \
                     {ETHERNET_HEADER}",
                    self.overhead
                ),
            ));
        }
        Ok(())
    }
}

type BuildQueue = dyn Fn(u64) -> Result<Box<dyn Discipline>, Box<dyn Error + Send + Sync>> + Send + Sync;

/// Builds the tree of disciplines of an interface. Each interface gets its own tree.
#[derive(Clone)]
pub struct Queue {
    build: Arc<BuildQueue>,
    /// The estimated memory of a tree, bytes.
    memory: u64,
}

impl Queue {
    /// Creates a queue. `build` is called with the seed of the tree's random numbers and hash salts.
    pub fn new<E>(build: impl Fn(u64) -> Result<Box<dyn Discipline>, E> + Send + Sync + 'static) -> Queue
    where
        E: Error + Send + Sync + 'static,
    {
        Queue {
            build: Arc::new(move |seed| build(seed).map_err(Into::into)),
            memory: 0,
        }
    }

    /// Creates a fifo of `limit` packets.
    pub fn fifo(limit: u32) -> Queue {
        Queue::new(move |_| {
            let config = fifo::Config {
                limit_packets: Some(limit),
                ..fifo::Config::default()
            };
            Ok::<Box<dyn Discipline>, fairgate::ConfigError>(Box::new(Fifo::node(config)?))
        })
    }

    /// Returns the estimated memory of a tree in bytes. It is 0 if a program builds the tree, because it is
    /// then unknown.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Discipline>, Box<dyn Error + Send + Sync>> {
        (self.build)(seed)
    }
}

/// Creates a queue from a description in a file or on the command line.
impl From<Spec> for Queue {
    fn from(spec: Spec) -> Queue {
        Queue {
            memory: spec.memory(),
            ..Queue::new(move |seed| spec.build(seed))
        }
    }
}

/// A fifo of 1000 packets, which is Linux's default for Ethernet devices.
impl Default for Queue {
    fn default() -> Queue {
        Queue::fifo(1000)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue(..)")
    }
}
