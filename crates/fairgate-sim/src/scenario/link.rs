//! A full-duplex link between two nodes, with a queue at each end.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fairgate::queues::fifo::{self, Fifo};
use fairgate::{Discipline, Rate};
use fairgate_config::{ShardedSpec, Spec};

use crate::random::Distribution;
use crate::scenario::{Jitter, LONGEST, LineRate, Loss, Mistake, NodeId, Scenario};

/// The bytes that Ethernet adds to a packet, as Linux's schedulers count them: without preamble, check
/// sequence and gap.
pub const ETHERNET_HEADER: u32 = 14;
/// The maximum overhead. It is more than any stack of headers.
pub(super) const MOST_OVERHEAD: u32 = 1000;

/// A link. Each of its two directions has a rate, a delay, impairments and a queue. `a` and `b` name the
/// sending end.
#[derive(Clone, Debug)]
pub struct Link {
    /// The name by which routes select the link, if there are several between two nodes.
    pub name: Option<String>,
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// The rate from `a` to `b`.
    pub rate_a: LineRate,
    /// The rate from `b` to `a`.
    pub rate_b: LineRate,
    /// The propagation delay from `a` to `b`.
    pub delay_a: Duration,
    /// The propagation delay from `b` to `a`.
    pub delay_b: Duration,
    /// The jitter from `a` to `b`.
    pub jitter_a: Option<Jitter>,
    /// The jitter from `b` to `a`.
    pub jitter_b: Option<Jitter>,
    /// The losses from `a` to `b`.
    pub loss_a: Option<Loss>,
    /// The losses from `b` to `a`.
    pub loss_b: Option<Loss>,
    /// The bytes that framing adds to every packet. Queues and the link count them, flows don't.
    pub overhead: u32,
    /// The bytes that each end takes from its queue before it can transmit them: the send buffer of a network
    /// device, which a discipline does not control. Only constant rates may have one.
    pub send_buffer: u32,
    /// The tick of the clock at both ends. A queue that holds packets back is asked again at a tick, and at
    /// the second one at the earliest, as BSD's timers do. 0: at the time that the queue says.
    pub timer: Duration,
    /// The queue at `a`, for packets to `b`.
    pub queue_a: Queue,
    /// The queue at `b`, for packets to `a`.
    pub queue_b: Queue,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direction<'a> {
    pub(crate) rate: &'a LineRate,
    pub(crate) delay: Duration,
    pub(crate) jitter: Option<&'a Jitter>,
    pub(crate) loss: Option<&'a Loss>,
    pub(crate) queue: &'a Queue,
}

impl Link {
    /// Creates a link with one rate for both directions, Ethernet framing, and fifos of 1000 packets.
    pub fn new(a: NodeId, b: NodeId, rate: Rate, delay: Duration) -> Link {
        Link {
            rate_a: rate.into(),
            rate_b: rate.into(),
            ..Link::unlimited(a, b, delay)
        }
    }

    /// Creates a link that only delays.
    pub fn unlimited(a: NodeId, b: NodeId, delay: Duration) -> Link {
        Link {
            name: None,
            a,
            b,
            rate_a: LineRate::Unlimited,
            rate_b: LineRate::Unlimited,
            delay_a: delay,
            delay_b: delay,
            jitter_a: None,
            jitter_b: None,
            loss_a: None,
            loss_b: None,
            overhead: ETHERNET_HEADER,
            send_buffer: 0,
            timer: Duration::ZERO,
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

    /// Returns both directions, the one from `a` first.
    pub(crate) fn directions(&self) -> [Direction<'_>; 2] {
        [
            Direction {
                rate: &self.rate_a,
                delay: self.delay_a,
                jitter: self.jitter_a.as_ref(),
                loss: self.loss_a.as_ref(),
                queue: &self.queue_a,
            },
            Direction {
                rate: &self.rate_b,
                delay: self.delay_b,
                jitter: self.jitter_b.as_ref(),
                loss: self.loss_b.as_ref(),
                queue: &self.queue_b,
            },
        ]
    }

    /// Returns the propagation delays from `a` and from `b`.
    pub(crate) fn delays(&self) -> [Duration; 2] {
        [self.delay_a, self.delay_b]
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
        let fields = [
            ["delay_a", "jitter_a", "loss_a"],
            ["delay_b", "jitter_b", "loss_b"],
        ];
        for (direction, [delay, jitter, loss]) in self.directions().into_iter().zip(fields) {
            if direction.delay > LONGEST {
                return Err(Mistake::new(
                    delay,
                    "the delay is longer than a year, which is the limit; choose a shorter one",
                ));
            }
            if let Some(given) = direction.jitter {
                check_delay(&given.delay).map_err(|what| Mistake::new(jitter, what))?;
            }
            if let Some(given) = direction.loss {
                given.check().map_err(|what| Mistake::new(loss, what))?;
            }
        }
        if self.timer > LONGEST {
            return Err(Mistake::new(
                "timer",
                "the tick is longer than a year, which is the limit; choose a shorter one",
            ));
        }
        let is_constant = |rate: &LineRate| matches!(rate, LineRate::Constant(_));
        if self.send_buffer > 0 && !(is_constant(&self.rate_a) && is_constant(&self.rate_b)) {
            return Err(Mistake::new(
                "send_buffer",
                "a send buffer is emptied at a constant rate, which this link does not have in both \
                 directions; give it one, or omit the buffer",
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

/// Checks the distribution of a random delay.
pub(crate) fn check_delay(delay: &Distribution) -> Result<(), String> {
    delay.check()?;
    if u128::from(delay.mean()) > LONGEST.as_nanos() {
        return Err("the mean is longer than a year, which is the limit; choose a shorter one".into());
    }
    Ok(())
}

type BuildQueue = dyn Fn(u64) -> Result<Box<dyn Discipline>, Box<dyn Error + Send + Sync>> + Send + Sync;

/// Builds the tree of disciplines of an interface. Each interface gets its own tree.
#[derive(Clone)]
pub struct Queue {
    build: Arc<BuildQueue>,
    /// The description, if there is one.
    spec: Option<Arc<Spec>>,
    /// The trees of several workers.
    sharded: Option<Arc<ShardedSpec>>,
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
            spec: None,
            sharded: None,
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

    /// Returns the description of the tree. `None` if a program builds it.
    pub fn spec(&self) -> Option<&Spec> {
        self.spec.as_deref()
    }

    /// Returns the trees of the workers, if there are several.
    pub(crate) fn sharded(&self) -> Option<Arc<ShardedSpec>> {
        self.sharded.clone()
    }

    /// Returns the description, for a simulation that may change the tree.
    pub(crate) fn description(&self) -> Option<Arc<Spec>> {
        self.spec.clone()
    }

    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Discipline>, Box<dyn Error + Send + Sync>> {
        (self.build)(seed)
    }
}

/// Creates a queue from a description in a file or on the command line.
impl From<Spec> for Queue {
    fn from(spec: Spec) -> Queue {
        let spec = Arc::new(spec);
        Queue {
            memory: spec.memory(),
            spec: Some(Arc::clone(&spec)),
            ..Queue::new(move |seed| spec.build(seed))
        }
    }
}

/// Creates a queue that several workers run.
impl From<ShardedSpec> for Queue {
    fn from(sharded: ShardedSpec) -> Queue {
        let sharded = Arc::new(sharded);
        Queue {
            memory: sharded.memory(),
            spec: Some(Arc::new(sharded.tree().clone())),
            sharded: Some(Arc::clone(&sharded)),
            ..Queue::new(move |seed| sharded.build(seed))
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
