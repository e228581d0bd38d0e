//! Runs a case like a driver in the simulator or on live traffic, and compares two runs.

use std::any::Any;
use std::rc::Rc;

#[cfg(feature = "allocations")]
use allocation_counter::measure;
use fairgate::flow::FlowHasher;
use fairgate::{Arrival, Discipline, DropReason, Ecn, Link, Next, Pool, Statistics, Time, Verdict};
use proptest::sample::Index;

use crate::case::{Case, Operation, acknowledgement, packet};
use crate::probe::Shared;

/// The most packets that are queued at a time. Further packets are not enqueued.
const MOST_PACKETS: u32 = 500;

/// Runs a case with probes and without probes.
///
/// # Panics
/// If the discipline violates its contract. The message begins with the name of the violated rule.
#[cfg(feature = "allocations")]
pub fn check(case: &Case) {
    compare(Driver::new(case, true), Driver::new(case, false));
}

/// Runs a case of a discipline that may allocate: one that is not written in Rust.
///
/// # Panics
/// As `check`.
pub fn check_allocating(case: &Case) {
    let allocating = |probed| Driver {
        may_allocate: true,
        ..Driver::new(case, probed)
    };
    compare(allocating(true), allocating(false));
}

fn compare(probed: Driver<'_>, bare: Driver<'_>) {
    let (probed, bare) = (probed.run(), bare.run());
    let difference = probed.iter().zip(&bare).find(|(first, second)| first != second);
    if let Some((first, second)) = difference {
        panic!("determinism: the same calls gave {first:?} and then {second:?}");
    }
    assert_eq!(
        probed.len(),
        bare.len(),
        "determinism: the same calls gave more events"
    );
}

/// Runs a case whose clock is sometimes set back. A driver must not do that, but a virtual machine does. The
/// discipline may then decide anything. But its statistics must still be right, it must not lose a packet,
/// and every call must return. If it sends nothing, its watchdog must be later than now. When the clock is
/// right again, it must send all its packets.
///
/// # Panics
/// If the discipline violates one of these rules. The message begins with the name of the violated rule.
#[cfg(feature = "allocations")]
pub fn check_setbacks(case: &Case) {
    Driver::new(case, false).run();
}

/// An event by which runs are compared. The cookie identifies a packet.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Offered {
        cookie: u64,
        verdict: Verdict,
    },
    /// A discipline has asked for a copy of a packet.
    Copied {
        cookie: u64,
    },
    Departed {
        cookie: u64,
        ecn: Ecn,
        at: Time,
    },
    Nothing {
        watchdog: Option<Time>,
    },
    Shown {
        cookie: Option<u64>,
    },
    Returned {
        cookie: u64,
        reason: DropReason,
    },
    Refused(String),
    Statistics(Box<Statistics>),
}

struct Driver<'a> {
    case: &'a Case,
    /// A packet's cookie is its number.
    link: Link<()>,
    now: Time,
    /// The latest time so far.
    latest: Time,
    hasher: FlowHasher,
    /// The arrival time of each packet, by its cookie.
    offered: Vec<Time>,
    probes: Option<Shared>,
    /// Whether calls on the packet path may allocate.
    may_allocate: bool,
    events: Vec<Event>,
}

impl<'a> Driver<'a> {
    fn new(case: &'a Case, probed: bool) -> Driver<'a> {
        let probes = probed.then(Shared::default);
        let mut pool = Pool::with_capacity(MOST_PACKETS);
        if !probed {
            scramble(&mut pool);
        }
        pool.allow_copies();
        Driver {
            case,
            link: Link::with_pool(case.tree.build(case.seed, probes.as_ref()), pool),
            now: Time::ZERO,
            latest: Time::ZERO,
            hasher: FlowHasher::new([case.seed, 1]),
            offered: Vec::new(),
            probes,
            may_allocate: false,
            events: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Event> {
        for operation in &self.case.operations {
            self.apply(operation);
        }
        self.now = self.now.max(self.latest);
        self.send_all();
        self.record_statistics();
        self.events
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Enqueue {
                flow,
                length,
                ecn,
                count,
            } => {
                for _ in 0..count {
                    self.enqueue(flow, length, ecn);
                }
            }
            Operation::Dequeue(count) => {
                for _ in 0..count {
                    if !self.dequeue() {
                        break;
                    }
                }
            }
            Operation::Peek => self.peek(),
            Operation::Advance(nanos) => self.now += nanos,
            Operation::SetBack(nanos) => {
                self.latest = self.latest.max(self.now);
                self.now = Time::from_nanos(self.now.nanos().saturating_sub(nanos));
            }
            Operation::Wait => self.wait(),
            Operation::Flush => {
                self.link.change(|root, pool| root.flush(pool));
                self.settle();
                assert_eq!(
                    self.link.backlog().packets,
                    0,
                    "conservation: a flush left packets behind"
                );
            }
            Operation::FlushClass(class) => {
                if let Some((path, minor)) = self.choose_class(class) {
                    let path = [&path[..], &[minor]].concat();
                    self.change(&path, &mut |node, pool| node.flush(pool));
                }
            }
            Operation::Reconfigure { node, config } => self.reconfigure(node, config),
            Operation::Replace { class, with } => self.replace(class, with),
        }
    }

    fn enqueue(&mut self, flow: u8, length: u32, ecn: Ecn) {
        let (mut packet, headers) = packet(flow, length, ecn, &self.hasher);
        packet.cookie = self.offered.len() as u64;
        // Every fourth flow has departure times, up to 4 ms ahead, and not in order.
        if flow % 4 == 1 {
            packet.stamp = self.now.nanos() + packet.cookie * 7_919_083 % 4_000_000;
        }
        let enqueued = self.on_packet_path("enqueue", |link, now| match headers {
            Some(key) => {
                let arrival = Arrival {
                    acknowledgement: acknowledgement(&packet, &key),
                    ..Arrival::from((packet, key))
                };
                link.enqueue(arrival, (), now)
            }
            None => link.enqueue(packet, (), now),
        });
        let Ok(verdict) = enqueued else { return };
        self.offered.push(self.now);
        self.events.push(Event::Offered {
            cookie: packet.cookie,
            verdict,
        });
        self.settle();
    }

    /// Dequeues a packet. Returns whether there was one.
    fn dequeue(&mut self) -> bool {
        let next = self.on_packet_path("dequeue", |link, now| link.dequeue(now));
        if let Next::Packet(departure) = &next {
            let packet = departure.slot;
            assert_eq!(
                packet.enqueued_at, self.offered[packet.cookie as usize],
                "sojourn: the packet lost its arrival time"
            );
            self.events.push(Event::Departed {
                cookie: packet.cookie,
                ecn: packet.ecn,
                at: self.now,
            });
        }
        if self.settle() && !matches!(next, Next::Packet(_)) {
            // The answer was given before the copies were enqueued.
            return self.dequeue();
        }
        if let Next::Wait(_) = next {
            // The driver's answer hides a time that is missing or past.
            let watchdog = self.on_packet_path("watchdog", |link, _| link.root().watchdog());
            self.events.push(Event::Nothing { watchdog });
        }
        next.packet().is_some()
    }

    fn peek(&mut self) {
        let cookie = self.on_packet_path("peek", |link, now| link.peek(now).map(|(slot, ())| slot.cookie));
        self.events.push(Event::Shown { cookie });
        self.settle();
    }

    /// Goes from watchdog to watchdog until a packet is sent or dropped, or none is left. At each step
    /// another shaper on the packet's path may lack tokens, or a class of a tree may change its state. But
    /// the number of steps is limited.
    fn wait(&mut self) {
        let queued = self.link.backlog().packets;
        let nodes = nodes(self.link.root()).len();
        // In a discipline that delays packets, each goes on at a time of its own, to the next one on its
        // path.
        let delayed = if self.case.reorders() { queued as usize } else { 0 };
        let patience = (8 + delayed + self.case.watchdogs()) * nodes + 8;
        for _ in 0..patience {
            if self.dequeue() {
                return;
            }
            let left = self.link.backlog().packets;
            if left == 0 || left < queued {
                return;
            }
            let Some(Event::Nothing { watchdog }) = self.events.last() else {
                unreachable!("a dequeue without a packet is recorded");
            };
            match *watchdog {
                Some(due) if due > self.now => self.now = due,
                _ => panic!(
                    "work: packets are queued, but none is sent at {}, watchdog {watchdog:?}",
                    self.now
                ),
            }
        }
        panic!("progress: no packet was sent at {patience} watchdogs in a row");
    }

    fn send_all(&mut self) {
        while self.link.backlog().packets > 0 {
            self.wait();
        }
        assert!(
            self.link.is_empty(),
            "leak: {} packets were not returned",
            self.link.len()
        );
    }

    fn reconfigure(&mut self, node: Index, config: Index) {
        let paths = nodes(self.link.root());
        let path = node.get(&paths);
        let mut old: Box<dyn Any> = Box::new(());
        self.change(path, &mut |node, _| old = node.config());
        // Use parameters of the same discipline if the case has any. Otherwise use those of another one,
        // which are rejected.
        let mut configs = Vec::new();
        for tree in std::iter::once(&self.case.tree).chain(&self.case.replacements) {
            tree.visit(&mut |tree| configs.extend_from_slice(tree.subject.configs()));
        }
        let same_type = |config: &&Rc<dyn Any>| (***config).type_id() == (*old).type_id();
        let fitting: Vec<_> = configs.iter().filter(same_type).collect();
        let config = match fitting.is_empty() {
            true => config.get(&configs),
            false => config.get(&fitting),
        };
        let now = self.now;
        let mut refusal = None;
        self.change(path, &mut |node, pool| {
            refusal = node.reconfigure(config.as_ref(), now, pool).err();
        });
        self.events
            .extend(refusal.map(|error| Event::Refused(error.to_string())));
    }

    fn replace(&mut self, class: Index, with: Index) {
        let Some((path, minor)) = self.choose_class(class) else {
            return;
        };
        let tree = with.get(&self.case.replacements);
        let mut child = Some(tree.build(self.case.seed, self.probes.as_ref()));
        let now = self.now;
        self.change(&path, &mut |node, pool| {
            let child = child.take().expect("only one node is changed");
            node.replace_class(minor, child, now, pool)
                .expect("the class exists");
        });
    }

    /// Chooses a class. Returns the path to its parent, and its number there.
    fn choose_class(&self, class: Index) -> Option<(Vec<u32>, u32)> {
        let mut paths = nodes(self.link.root());
        paths.retain(|path| !path.is_empty());
        let (minor, parent) = paths.get(class.index(paths.len().max(1)))?.split_last()?;
        Some((parent.to_vec(), *minor))
    }

    fn change(&mut self, path: &[u32], change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool)) {
        self.link.change(|root, pool| descend(root, path, pool, change));
        self.settle();
    }

    /// Makes a call that must not allocate. Probes allocate, so only runs without probes are measured.
    fn on_packet_path<T>(&mut self, call: &str, make: impl FnOnce(&mut Link<()>, Time) -> T) -> T {
        let mut answer = None;
        let run = || answer = Some(make(&mut self.link, self.now));
        match self.probes.is_some() || self.may_allocate {
            true => run(),
            false => without_allocation(call, run),
        }
        answer.expect("the call was made")
    }

    /// Enqueues the copies that the last call has asked for, and releases the packets that it returned. After
    /// that the pool holds exactly the root's backlog. Returns whether there were copies.
    fn settle(&mut self) -> bool {
        let first = self.offered.len() as u64;
        let mut next = first;
        let is_copied = self.on_packet_path("enqueue_copies", |link, now| {
            link.enqueue_copies(now, |_, ()| {
                next += 1;
                Some((next - 1, ()))
            })
        });
        for cookie in first..next {
            self.offered.push(self.now);
            self.events.push(Event::Copied { cookie });
        }
        while let Some(dropped) = self.link.take_dropped() {
            self.events.push(Event::Returned {
                cookie: dropped.slot.cookie,
                reason: dropped.reason,
            });
        }
        assert_eq!(
            u64::from(self.link.len()),
            self.link.backlog().packets,
            "conservation: the packets in the pool differ from the root's backlog"
        );
        is_copied
    }

    fn record_statistics(&mut self) {
        fn record(node: &dyn Discipline, events: &mut Vec<Event>) {
            events.push(Event::Statistics(Box::new(node.statistics())));
            node.visit_classes(&mut |class| record(class.discipline, events));
        }
        record(self.link.root(), &mut self.events);
    }
}

/// Checks that a call does not allocate.
#[cfg(feature = "allocations")]
fn without_allocation(call: &str, run: impl FnOnce()) {
    let made = measure(run).count_total;
    assert_eq!(made, 0, "allocation: {call} allocated {made} times");
}

/// Only `check` and `check_setbacks` count allocations, and they need the feature.
#[cfg(not(feature = "allocations"))]
fn without_allocation(_: &str, run: impl FnOnce()) {
    run();
}

/// Returns the paths of all nodes, as class numbers from the root. The root's path is empty.
fn nodes(root: &dyn Discipline) -> Vec<Vec<u32>> {
    let mut paths = vec![Vec::new()];
    root.visit_classes(&mut |class| {
        paths.extend(
            nodes(class.discipline)
                .into_iter()
                .map(|below| [&[class.minor], &below[..]].concat()),
        );
    });
    paths
}

fn descend(
    node: &mut dyn Discipline,
    path: &[u32],
    pool: &mut Pool,
    change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
) {
    match path {
        [] => change(node, pool),
        [minor, below @ ..] => node
            .change_class(*minor, pool, &mut |child, pool| {
                descend(child, below, pool, change)
            })
            .expect("the path has only existing classes"),
    }
}

/// Changes the order of the free slots.
fn scramble(pool: &mut Pool) {
    let packet = fairgate::Packet::of_length(0);
    let ids: Vec<_> = std::iter::from_fn(|| pool.insert(packet).ok()).collect();
    for id in ids.iter().step_by(2).chain(ids.iter().skip(1).step_by(2)) {
        pool.release(*id);
    }
}
