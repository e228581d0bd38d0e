//! Runs a case, as a driver in the simulator or on live traffic would, and compares two runs.

use std::any::Any;
use std::rc::Rc;

use allocation_counter::measure;
use fairgate::flow::FlowHasher;
use fairgate::{Discipline, DropReason, Ecn, Link, Next, Pool, Statistics, Time, Verdict};
use proptest::sample::Index;

use crate::case::{Case, Operation, packet};
use crate::probe::Withheld;

/// Most packets queued at once; further ones are not offered.
const MOST_PACKETS: u32 = 500;

/// Runs a case under probes and without them.
///
/// # Panics
/// If the discipline breaks its contract; the message begins with the name of what it broke.
pub fn check(case: &Case) {
    let probed = Driver::new(case, true).run();
    let bare = Driver::new(case, false).run();
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

/// Runs a case whose clock is set back now and then. A driver should not do that, and a virtual machine does. What a discipline
/// makes of it is its own affair, but it keeps its books, loses nothing, comes to an end with every call, tells a later time
/// if it sends nothing, and sends all that it holds once the clock is right again.
///
/// # Panics
/// If the discipline doesn't; the message begins with the name of what it broke.
pub fn check_setbacks(case: &Case) {
    Driver::new(case, false).run();
}

/// What a run is compared by. Packets are known by their cookie.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Offered { cookie: u64, verdict: Verdict },
    Departed { cookie: u64, ecn: Ecn, at: Time },
    Nothing { watchdog: Option<Time> },
    Shown { cookie: Option<u64> },
    Returned { cookie: u64, reason: DropReason },
    Refused(String),
    Books(Statistics),
}

struct Driver<'a> {
    case: &'a Case,
    /// A packet's cookie is its number.
    link: Link<()>,
    now: Time,
    /// The latest that it was.
    latest: Time,
    hasher: FlowHasher,
    /// When each packet was offered, by its cookie.
    offered: Vec<Time>,
    probes: Option<Withheld>,
    events: Vec<Event>,
}

impl<'a> Driver<'a> {
    fn new(case: &'a Case, probed: bool) -> Driver<'a> {
        let probes = probed.then(Withheld::default);
        let mut pool = Pool::with_capacity(MOST_PACKETS);
        if !probed {
            scramble(&mut pool);
        }
        Driver {
            case,
            link: Link::with_pool(case.tree.build(case.seed, probes.as_ref()), pool),
            now: Time::ZERO,
            latest: Time::ZERO,
            hasher: FlowHasher::new([case.seed, 1]),
            offered: Vec::new(),
            probes,
            events: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Event> {
        for operation in &self.case.operations {
            self.apply(operation);
        }
        self.now = self.now.max(self.latest);
        self.send_all();
        self.record_books();
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
        let enqueued = self.on_packet_path("enqueue", |link, now| match headers {
            Some(key) => link.enqueue_with_headers(packet, key, (), now),
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

    /// Asks for a packet; whether one came.
    fn dequeue(&mut self) -> bool {
        let next = self.on_packet_path("dequeue", |link, now| link.dequeue(now));
        if let Next::Packet(departure) = &next {
            let packet = departure.slot;
            assert_eq!(
                packet.enqueued_at, self.offered[packet.cookie as usize],
                "sojourn: the time of arrival was lost"
            );
            self.events.push(Event::Departed {
                cookie: packet.cookie,
                ecn: packet.ecn,
                at: self.now,
            });
        }
        self.settle();
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

    /// Goes from watchdog to watchdog until a packet is sent or dropped, or none is left. Each step may show that
    /// another shaper on the packet's way lacks tokens, or that a class of a tree, with others above it, may do something
    /// else from now on; but the same one must not ask for patience for ever.
    fn wait(&mut self) {
        let patience = 8 * nodes(self.link.root()).len() + 8;
        let queued = self.link.backlog().packets;
        for _ in 0..patience {
            self.dequeue();
            let left = self.link.backlog().packets;
            if left == 0 || left < queued {
                return;
            }
            let Some(Event::Nothing { watchdog }) = self.events.last() else {
                unreachable!("an empty-handed dequeue is recorded");
            };
            match *watchdog {
                Some(due) if due > self.now => self.now = due,
                _ => panic!(
                    "work: packets are queued, none comes at {}, watchdog {watchdog:?}",
                    self.now
                ),
            }
        }
        panic!("progress: asked at {patience} watchdogs in a row, no packet came");
    }

    fn send_all(&mut self) {
        while self.link.backlog().packets > 0 {
            self.wait();
        }
        assert!(
            self.link.is_empty(),
            "leak: {} packets never came back",
            self.link.len()
        );
    }

    fn reconfigure(&mut self, node: Index, config: Index) {
        let paths = nodes(self.link.root());
        let path = node.get(&paths);
        let mut old: Box<dyn Any> = Box::new(());
        self.change(path, &mut |node, _| old = node.config());
        // Parameters of the same discipline if the case has any, else those of another one, to be refused.
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
            let child = child.take().expect("one node is changed");
            node.replace_class(minor, child, now, pool)
                .expect("the class was just seen");
        });
    }

    /// A class: the path to its parent, and its number there.
    fn choose_class(&self, class: Index) -> Option<(Vec<u16>, u16)> {
        let mut paths = nodes(self.link.root());
        paths.retain(|path| !path.is_empty());
        let (minor, parent) = paths.get(class.index(paths.len().max(1)))?.split_last()?;
        Some((parent.to_vec(), *minor))
    }

    fn change(&mut self, path: &[u16], change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool)) {
        self.link.change(|root, pool| descend(root, path, pool, change));
        self.settle();
    }

    /// Makes a call that must not allocate. Probes do, so that only bare runs are measured.
    fn on_packet_path<T>(&mut self, call: &str, make: impl FnOnce(&mut Link<()>, Time) -> T) -> T {
        let mut answer = None;
        let run = || answer = Some(make(&mut self.link, self.now));
        if self.probes.is_some() {
            run();
        } else {
            let made = measure(run).count_total;
            assert_eq!(made, 0, "allocation: {call} allocated {made} times");
        }
        answer.expect("the call was made")
    }

    /// Takes back what the last call returned. Then the pool holds just what the root says it does.
    fn settle(&mut self) {
        while let Some(dropped) = self.link.take_dropped() {
            self.events.push(Event::Returned {
                cookie: dropped.slot.cookie,
                reason: dropped.reason,
            });
        }
        assert_eq!(
            u64::from(self.link.len()),
            self.link.backlog().packets,
            "conservation: packets in the pool, and in the root's books"
        );
    }

    fn record_books(&mut self) {
        fn record(node: &dyn Discipline, events: &mut Vec<Event>) {
            events.push(Event::Books(node.statistics()));
            node.visit_classes(&mut |class| record(class.discipline, events));
        }
        record(self.link.root(), &mut self.events);
    }
}

/// The paths of all nodes, by class numbers from the root on; the root's is empty.
fn nodes(root: &dyn Discipline) -> Vec<Vec<u16>> {
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
    path: &[u16],
    pool: &mut Pool,
    change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
) {
    match path {
        [] => change(node, pool),
        [minor, below @ ..] => node
            .change_class(*minor, pool, &mut |child, pool| {
                descend(child, below, pool, change)
            })
            .expect("the path leads through classes just seen"),
    }
}

/// Brings the free slots into another order.
fn scramble(pool: &mut Pool) {
    let packet = fairgate::Packet::of_length(0);
    let ids: Vec<_> = std::iter::from_fn(|| pool.insert(packet).ok()).collect();
    for id in ids.iter().step_by(2).chain(ids.iter().skip(1).step_by(2)) {
        pool.release(*id);
    }
}
