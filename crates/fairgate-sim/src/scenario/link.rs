//! A full-duplex link between two nodes, and the queue at each end of it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fairgate::queues::fifo::{self, Fifo};
use fairgate::{Discipline, Rate};
use fairgate_config::Spec;

use crate::scenario::{LONGEST, Mistake, NodeId, Scenario};

/// Bytes that Ethernet adds to a packet, as Linux's schedulers count them: no preamble, no check sequence, no gap.
pub const ETHERNET_HEADER: u32 = 14;
/// More than any stack of headers.
const MOST_OVERHEAD: u32 = 1000;

/// Two directions, each with a rate, a delay and a queue of its own. `a` and `b` name the sending end.
#[derive(Clone, Debug)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Rate from `a` to `b`. `None`: a packet takes no time to send, so that no queue builds up but in a shaper.
    pub rate_a: Option<Rate>,
    /// Rate from `b` to `a`.
    pub rate_b: Option<Rate>,
    /// Propagation delay, the same both ways.
    pub delay: Duration,
    /// Bytes that framing adds to every packet: queues and the line count them, flows don't.
    pub overhead: u32,
    /// The queue at `a`, for packets to `b`.
    pub queue_a: Queue,
    /// The queue at `b`, for packets to `a`.
    pub queue_b: Queue,
}

impl Link {
    /// A link of one rate both ways, Ethernet framing, and fifos of 1000 packets.
    pub fn new(a: NodeId, b: NodeId, rate: Rate, delay: Duration) -> Link {
        Link {
            rate_a: Some(rate),
            rate_b: Some(rate),
            ..Link::unlimited(a, b, delay)
        }
    }

    /// A link that only delays.
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

    /// The same link with another queue at `a`.
    pub fn with_queue_a(mut self, queue: Queue) -> Link {
        self.queue_a = queue;
        self
    }

    /// The same link with another queue at `b`.
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
                "the delay is above a year; give a shorter one",
            ));
        }
        if self.overhead > MOST_OVERHEAD {
            return Err(Mistake::new(
                "overhead",
                format!(
                    "the overhead is {} bytes a packet, but must be at most {MOST_OVERHEAD}; Ethernet has {ETHERNET_HEADER}",
                    self.overhead
                ),
            ));
        }
        Ok(())
    }
}

type BuildQueue = dyn Fn(u64) -> Result<Box<dyn Discipline>, Box<dyn Error + Send + Sync>> + Send + Sync;

/// A recipe for the discipline tree of an interface. Each interface gets a tree of its own from it.
#[derive(Clone)]
pub struct Queue {
    build: Arc<BuildQueue>,
    /// About what it takes, bytes.
    memory: u64,
}

impl Queue {
    /// A recipe: `build` gets the seed for the tree's dice and hash salts.
    pub fn new<E>(build: impl Fn(u64) -> Result<Box<dyn Discipline>, E> + Send + Sync + 'static) -> Queue
    where
        E: Error + Send + Sync + 'static,
    {
        Queue {
            build: Arc::new(move |seed| build(seed).map_err(Into::into)),
            memory: 0,
        }
    }

    /// A fifo of so many packets.
    pub fn fifo(limit: u32) -> Queue {
        Queue::new(move |_| {
            let config = fifo::Config {
                limit_packets: Some(limit),
                ..fifo::Config::default()
            };
            Ok::<Box<dyn Discipline>, fairgate::ConfigError>(Box::new(Fifo::node(config)?))
        })
    }

    /// About how much memory it takes, bytes, as far as it is known: 0 for one that is built by a program.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Discipline>, Box<dyn Error + Send + Sync>> {
        (self.build)(seed)
    }
}

/// A tree that was described in a file or on the command line.
impl From<Spec> for Queue {
    fn from(spec: Spec) -> Queue {
        Queue {
            memory: spec.memory(),
            ..Queue::new(move |seed| spec.build(seed))
        }
    }
}

/// A fifo of 1000 packets, as every Ethernet device of Linux has it.
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
