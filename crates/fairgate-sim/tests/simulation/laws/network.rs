//! The networks of the laws: one link, and queues that lose packets by a rule.

use std::convert::Infallible;
use std::time::Duration;

use fairgate::{
    Algorithm, ConfigError, Discipline, DropReason, Node, PacketId, PacketQueue, Pool, Rate, Time, Verdict,
};
use fairgate_sim::tcp::{Config, CongestionControl};
use fairgate_sim::{Flow, Link, NodeId, Queue, Results, Scenario, Simulation, Tcp, derive_seed};

/// The payload of a full segment, bytes.
pub(crate) const MSS: u32 = 1448;
/// The length of its packet on the link, bytes.
pub(crate) const PACKET: u32 = 1514;

/// A sender as the textbooks have it: every segment is acknowledged, timers are fine, buffers don't limit.
pub(crate) fn textbook(congestion_control: CongestionControl) -> Config {
    let mut config = Config {
        congestion_control,
        hystart: false,
        delayed_ack: None,
        hz: 1000,
        send_buffer_max: 1 << 30,
        ..Config::default()
    };
    config.fix_receive_buffer(1 << 26);
    config
}

/// A link between two nodes that is measured from `from` to `to`, in seconds.
pub(crate) struct Path {
    pub(crate) scenario: Scenario,
    pub(crate) ends: (NodeId, NodeId),
}

impl Path {
    /// Creates a link with this rate, or without transmission time, and a round-trip time in ms.
    pub(crate) fn new(rate: Option<Rate>, rtt_ms: u64, queue: Queue, (from, to): (u64, u64)) -> Path {
        let mut scenario = Scenario::new(Duration::from_secs(to));
        scenario.measure = Duration::from_secs(from)..Duration::from_secs(to);
        let ends = (scenario.node("a"), scenario.node("b"));
        let delay = Duration::from_micros(rtt_ms * 500);
        let link = match rate {
            Some(rate) => Link::new(ends.0, ends.1, rate, delay),
            None => Link::unlimited(ends.0, ends.1, delay),
        };
        scenario.links.push(link.with_queue_a(queue));
        Path { scenario, ends }
    }

    /// Adds a transfer without end.
    pub(crate) fn transfer(mut self, name: &str, config: Config) -> Path {
        let flow = Flow::new(name, self.ends.0, self.ends.1, Tcp::bulk(config));
        self.scenario.flows.push(flow);
        self
    }

    /// Simulates it.
    pub(crate) fn run(&self) -> Results {
        Simulation::new(&self.scenario)
            .expect("the scenario is valid")
            .run()
            .expect("the simulation runs to its end")
    }
}

/// Asserts that a value is within a relative tolerance of what a law predicts.
pub(crate) fn assert_near(what: &str, measured: f64, law: f64, tolerance: f64) {
    let error = measured / law - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what}: {measured:.4} is {:+.2} % off the law's {law:.4}; {:.2} % are derived",
        100.0 * error,
        100.0 * tolerance
    );
}

/// When a queue loses a data packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Losing {
    /// Every n-th one.
    Each(u64),
    /// Each one with the probability 1 / n.
    Random(u64),
    /// The first one in each period of so many seconds.
    Period(u64),
    /// Only the n-th one.
    Once(u64),
}

/// A queue without limit that loses data packets by a rule. Acknowledgements always pass.
struct Lossy {
    queue: PacketQueue,
    losing: Losing,
    seed: u64,
    /// Data packets so far, or the last period with one.
    seen: u64,
}

/// Creates a queue that loses data packets.
pub(crate) fn lossy(losing: Losing) -> Queue {
    Queue::new(move |seed| {
        let discipline: Box<dyn Discipline> = Box::new(Node::new(Lossy {
            queue: PacketQueue::new(),
            losing,
            seed,
            seen: 0,
        }));
        Ok::<_, Infallible>(discipline)
    })
}

impl Lossy {
    fn loses(&mut self, now: Time) -> bool {
        if let Losing::Period(seconds) = self.losing {
            // The first period counts, too, so that its loss ends slow start.
            let period = 1 + now.nanos() / (seconds * 1_000_000_000);
            let is_first = period > self.seen;
            self.seen = period;
            return is_first;
        }
        self.seen += 1;
        match self.losing {
            Losing::Each(n) => self.seen.is_multiple_of(n),
            Losing::Random(n) => derive_seed(self.seed ^ self.seen, "loss", "") < u64::MAX / n,
            Losing::Once(n) => self.seen == n,
            Losing::Period(_) => unreachable!("handled above"),
        }
    }
}

impl Algorithm for Lossy {
    const NAME: &'static str = "lossy";
    type Config = ();

    fn enqueue(&mut self, packet: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if pool[packet].length > MSS && self.loses(now) {
            pool.give_back(packet, DropReason::Aqm);
            return Verdict::Dropped;
        }
        self.queue.push_back(packet, pool);
        Verdict::Queued
    }

    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.queue.pop_front(pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
    }

    fn config(&self) {}

    fn reconfigure(&mut self, (): (), _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        Ok(())
    }
}
