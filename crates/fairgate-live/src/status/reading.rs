//! Reads the state of a run on the forwarding thread, in steps that packets pass between.
//!
//! A step takes at most [`STEP`], so that a tree of any size delays no packet by more than that. It copies
//! counters and nothing else. Another thread makes the document from them.
//!
//! The counters of one discipline are read at one moment, and belong together: its packets in are its packets
//! out, dropped and queued. Those of another discipline may be read in a later step. So each has the time at
//! which it was read, and a rate is computed with that time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use fairgate::{ClassState, Count, Discipline, Found, NodeNumber, Statistics, Time, Variable, Visitor, Walk};
use fairgate_run_api::{ChangesStatus, Detail, ProcessorStatus, SHARDED};
use hdrhistogram::Histogram;

use crate::bypass::Bypass;
use crate::clock;
use crate::config::Plan;
use crate::direction::{Counters, Direction};
use crate::nat::Translations;
use crate::status::autorate::Board;
use crate::status::estimators::{Counted, Estimated, Progress, Rates, Sent as Counts};

/// The longest time for which a step goes on to another discipline.
pub(crate) const STEP: Duration = Duration::from_micros(100);

/// What is read of a run.
pub(crate) struct RunReading {
    pub(crate) plan: Arc<Plan>,
    pub(crate) changes: ChangesStatus,
    pub(crate) isolated: bool,
    pub(crate) processor: ProcessorStatus,
    pub(crate) started: Time,
    pub(crate) at: Time,
    /// What each worker had sent of its logs before this reading.
    pub(crate) sent: Vec<Sent>,
    /// What the follower of the line says. It is read when the document is made, on another thread.
    pub(crate) board: Board,
    /// What has passed by the run.
    pub(crate) bypass: Bypass,
    /// The translations that trees look up, if they do.
    pub(crate) nat: Option<Arc<Translations>>,
    pub(crate) directions: [DirectionReading; 2],
}

/// How many buffers of its logs a worker has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Of sojourn times.
    pub(crate) delays: u64,
    /// Of packets.
    pub(crate) packets: u64,
}

/// What is read of a direction.
#[derive(Clone)]
pub(crate) struct DirectionReading {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) counters: Counters,
    pub(crate) rate_bps: f64,
    pub(crate) in_line: u64,
    /// Frames that the receive ring had no room for.
    pub(crate) missed: u64,
    pub(crate) sojourn: Histogram<u64>,
    pub(crate) tree: TreeReading,
    /// The rates of disciplines and classes with estimators.
    pub(crate) rates: Rates,
}

/// What is read of a tree.
#[derive(Default)]
pub(crate) struct TreeReading {
    /// The disciplines. Each precedes the disciplines in its classes.
    pub(crate) nodes: Vec<NodeReading>,
    walk: Walk,
    /// Which classes at the root are read.
    detail: Detail,
    /// Whether the walk is in a class that is not read.
    is_left_out: bool,
}

/// State variables with their names. Those that the kernel tells have names of their own.
pub(crate) type Variables = Vec<(Cow<'static, str>, Variable)>;

/// What is read of a discipline.
#[derive(Clone)]
pub(crate) struct NodeReading {
    /// The worker that has it.
    pub(crate) worker: usize,
    /// The number of disciplines above it.
    pub(crate) depth: usize,
    pub(crate) name: Cow<'static, str>,
    pub(crate) class: Option<u32>,
    pub(crate) host: Option<String>,
    pub(crate) at: Time,
    pub(crate) number: NodeNumber,
    pub(crate) statistics: Statistics,
    pub(crate) variables: Variables,
    pub(crate) class_states: Vec<ClassReadingOf>,
}

/// What is read of a class.
#[derive(Clone)]
pub(crate) struct ClassReadingOf {
    pub(crate) minor: u32,
    pub(crate) at: Time,
    pub(crate) sent: Count,
    pub(crate) overlimits: u64,
    pub(crate) variables: Variables,
}

impl RunReading {
    /// Returns the interfaces that the directions receive from.
    pub(crate) fn ends(&self) -> [&str; 2] {
        self.directions
            .each_ref()
            .map(|direction| direction.from.as_str())
    }
}

impl DirectionReading {
    /// Reads what belongs to the direction itself. Nothing of its tree is read yet.
    pub(crate) fn new(direction: &mut Direction, now: Time, from: &str, to: &str, missed: u64) -> Self {
        DirectionReading {
            from: from.to_owned(),
            to: to.to_owned(),
            counters: direction.counters,
            rate_bps: direction.rate.bits_per_second(now, direction.counters.sent.bytes),
            in_line: direction.in_delay_line() as u64,
            missed,
            sojourn: direction.sojourn.clone(),
            tree: TreeReading::default(),
            rates: Rates::default(),
        }
    }
}

/// A copy of what was read. It is not read on.
impl Clone for TreeReading {
    fn clone(&self) -> TreeReading {
        TreeReading::of_nodes(self.nodes.clone())
    }
}

impl TreeReading {
    /// Forgets that of which nothing is wanted: a tree that was read as a whole has it.
    pub(crate) fn keep(&mut self, detail: Detail) {
        if detail == Detail::Used {
            self.nodes.retain(|node| is_used(node.depth, &node.statistics));
            for node in &mut self.nodes {
                node.class_states.retain(|class| class.sent.packets > 0);
            }
        }
        self.keep_classes(detail);
    }

    /// Forgets the classes at the root of which nothing is wanted. Several workers have a tree each.
    fn keep_classes(&mut self, detail: Detail) {
        let is_sharded = self.nodes.first().is_some_and(|root| root.name == SHARDED);
        let root = usize::from(is_sharded);
        let mut is_kept = true;
        self.nodes.retain(|node| {
            if node.depth <= root + 1 {
                is_kept = node.depth <= root || detail.has_class(node.class);
            }
            is_kept
        });
        for node in self.nodes.iter_mut().filter(|node| node.depth == root) {
            node.class_states
                .retain(|class| detail.has_class(Some(class.minor)));
        }
    }

    /// Returns a reading that has not begun, of the classes at the root that are wanted.
    pub(crate) fn with_detail(detail: Detail) -> TreeReading {
        TreeReading {
            detail,
            ..TreeReading::default()
        }
    }

    /// Returns the discipline to which these class numbers lead.
    pub(crate) fn node_at(&self, path: &[u32]) -> Option<&NodeReading> {
        let mut place = 0;
        for (above, class) in path.iter().enumerate() {
            let below = self.nodes.get(place + 1..)?.iter();
            let mut of_branch = below.take_while(|node| node.depth > above);
            place += 1 + of_branch.position(|node| node.depth == above + 1 && node.class == Some(*class))?;
        }
        self.nodes.get(place)
    }

    /// Returns what was read elsewhere: disciplines, each before the disciplines in its classes.
    pub(crate) fn of_nodes(nodes: Vec<NodeReading>) -> TreeReading {
        TreeReading {
            nodes,
            ..TreeReading::default()
        }
    }

    /// Reads a whole tree at once.
    pub(crate) fn of(root: &dyn Discipline) -> TreeReading {
        let mut reading = TreeReading::default();
        reading.go_on(root, &|| false);
        reading
    }

    /// Reads a whole tree at once, at a time that is not the clock's.
    pub(crate) fn at(now: Time, root: &dyn Discipline) -> TreeReading {
        let mut reading = TreeReading::of(root);
        for node in &mut reading.nodes {
            node.at = now;
            for state in &mut node.class_states {
                state.at = now;
            }
        }
        reading
    }

    /// Reads more of a tree until `is_over`. Returns true if everything is read. Between the calls packets
    /// may be enqueued and dequeued, but classes must not change.
    pub(crate) fn go_on(&mut self, root: &dyn Discipline, is_over: &dyn Fn() -> bool) -> bool {
        let TreeReading {
            nodes,
            walk,
            detail,
            is_left_out,
        } = self;
        let mut step = Step {
            nodes,
            detail: *detail,
            is_left_out,
            is_over,
        };
        walk.go_on(root, &mut step)
    }
}

/// For estimators, where the kernel forwards. A host that gets the class of another goes on with its average.
impl Counted for TreeReading {
    fn read(&self, place: &Estimated, _: &mut Progress, _: &mut usize) -> Option<Counts> {
        let count = match place.is_inner() {
            false => self.node_at(place.path()).map(|node| node.statistics.dequeued),
            true => place.path().split_last().and_then(|(minor, above)| {
                let states = &self.node_at(above)?.class_states;
                states
                    .iter()
                    .find(|class| class.minor == *minor)
                    .map(|class| class.sent)
            }),
        };
        Some(Counts::of(count.unwrap_or_default()))
    }
}

/// Returns whether a packet has come to a discipline, or it is the root. A discipline that is used has all
/// above it, because they count its packets, too.
fn is_used(depth: usize, statistics: &Statistics) -> bool {
    depth == 0 || statistics.enqueued.packets > 0
}

/// A step of a reading.
struct Step<'s> {
    nodes: &'s mut Vec<NodeReading>,
    detail: Detail,
    is_left_out: &'s mut bool,
    is_over: &'s dyn Fn() -> bool,
}

impl Visitor for Step<'_> {
    fn discipline(&mut self, found: &Found<'_>) {
        if found.depth <= 1 {
            *self.is_left_out = found.depth == 1 && !self.detail.has_class(found.class);
        }
        let is_unwanted = self.detail == Detail::Used && !is_used(found.depth, found.statistics);
        if *self.is_left_out || is_unwanted {
            return;
        }
        let mut variables = Vec::new();
        let mut add = |name: &'static str, value| variables.push((name.into(), value));
        found.discipline.visit_variables(&mut add);
        self.nodes.push(NodeReading {
            worker: 0,
            depth: found.depth,
            name: found.discipline.name().into(),
            class: found.class,
            host: found.host.map(|host| host.to_string()),
            at: clock::now(),
            number: found.discipline.number(),
            statistics: found.statistics.clone(),
            variables,
            class_states: Vec::new(),
        });
    }

    fn class(&mut self, state: &ClassState<'_>) {
        // Classes of a discipline that was left out as unused have sent nothing either.
        if self.detail == Detail::Used && state.sent.packets == 0 {
            return;
        }
        let node = self.nodes.last_mut().expect("its discipline comes before it");
        let is_at_root = node.depth == 0;
        if *self.is_left_out || is_at_root && !self.detail.has_class(Some(state.minor)) {
            return;
        }
        node.class_states.push(ClassReadingOf::new(state, clock::now()));
    }

    fn is_over(&mut self) -> bool {
        (self.is_over)()
    }
}

impl ClassReadingOf {
    fn new(state: &ClassState<'_>, at: Time) -> ClassReadingOf {
        ClassReadingOf {
            minor: state.minor,
            at,
            sent: state.sent,
            overlimits: state.overlimits,
            variables: state
                .variables
                .iter()
                .map(|(name, value)| ((*name).into(), *value))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use fairgate::{ClassId, Packet, Pool};
    use fairgate_config::Spec;
    use fairgate_run_api::NodeStatus;

    use super::*;
    use crate::status::document::tree_status;

    const TREE: &str = "htb handle=1 default=20 { 1 rate=20mbit { 10 rate=5mbit ceil=20mbit / \
                        drr { 1 / fifo; 2 / fq_codel; 3 / fifo }; 20 rate=15mbit ceil=20mbit / fq_codel } }";

    /// Sets all times to 0, to compare figures that were read at different times.
    fn forget_times(node: &mut NodeStatus) {
        node.at_s = 0.0;
        node.class_states.iter_mut().for_each(|class| class.at_s = 0.0);
        node.classes.iter_mut().for_each(forget_times);
    }

    /// A page has of each tree the root, and the classes of its numbers with all that is in them, however
    /// many workers there are.
    #[test]
    fn a_page_has_its_classes_only() {
        let tree = Spec::inline(TREE).unwrap().build(1).unwrap();
        let detail = Detail::Classes { first: 5, last: 10 };
        let mut page = TreeReading::with_detail(detail);
        assert!(page.go_on(&*tree, &|| false));
        let path = |node: &NodeReading| (node.depth, node.class);
        let paths: Vec<_> = page.nodes.iter().map(path).collect();
        let in_class = [(1, Some(10)), (2, Some(1)), (2, Some(2)), (2, Some(3))];
        assert_eq!(paths, [&[(0, None)], &in_class[..]].concat());
        let states = &page.nodes[0].class_states;
        assert_eq!(states.iter().map(|state| state.minor).collect::<Vec<_>>(), [10]);

        let whole = TreeReading::of(&*tree).nodes;
        let mut kept = TreeReading::of_nodes(whole.clone());
        kept.keep(detail);
        assert_eq!(kept.nodes.iter().map(path).collect::<Vec<_>>(), paths);
        assert_eq!(kept.nodes[0].class_states.len(), 1);
        let mut sharded = vec![NodeReading {
            name: SHARDED.into(),
            ..whole[0].clone()
        }];
        for worker in 1..=2 {
            sharded.extend(whole.iter().cloned().map(|node| NodeReading {
                class: if node.depth == 0 { Some(worker) } else { node.class },
                depth: node.depth + 1,
                ..node
            }));
        }
        let mut sharded = TreeReading::of_nodes(sharded);
        sharded.keep(detail);
        assert_eq!(sharded.nodes.len(), 1 + 2 * paths.len());
    }

    /// What no packet has come to is left out, whether while the tree is read or afterwards.
    #[test]
    fn what_is_used_is_read_alone() {
        let mut tree = Spec::inline(TREE).unwrap().build(1).unwrap();
        let mut pool = Pool::with_capacity(1);
        let packet = Packet {
            class: ClassId::new(1, 20),
            ..Packet::of_length(900)
        };
        let id = pool.insert(packet).unwrap();
        tree.enqueue(id, Time::ZERO, &mut pool);
        tree.dequeue(Time::ZERO, &mut pool);
        let mut read = TreeReading::with_detail(Detail::Used);
        assert!(read.go_on(&*tree, &|| false));
        let mut kept = TreeReading::of(&*tree);
        kept.keep(Detail::Used);
        for reading in [read, kept] {
            let paths: Vec<_> = reading
                .nodes
                .iter()
                .map(|node| (node.depth, node.class))
                .collect();
            assert_eq!(paths, [(0, None), (1, Some(20))]);
            let states = reading.nodes[0].class_states.iter();
            assert_eq!(states.map(|state| state.minor).collect::<Vec<_>>(), [1, 20]);
        }
    }

    /// Many small steps read the same as one, whatever the steps are.
    #[test]
    fn steps_read_what_one_step_reads() {
        let spec = Spec::inline(TREE).expect("a valid tree");
        let mut tree = spec.build(1).expect("a valid tree");
        let mut pool = Pool::with_capacity(64);
        for number in 0..30_u16 {
            let minor = if number % 3 == 0 { 10 } else { 20 };
            let packet = Packet {
                class: ClassId::new(1, minor),
                ..Packet::of_length(900)
            };
            let id = pool.insert(packet).expect("there is room");
            tree.enqueue(id, Time::ZERO, &mut pool);
        }
        while tree.dequeue(Time::ZERO, &mut pool).is_some() {}
        let figures = |reading: TreeReading| {
            let mut node = tree_status(reading, Time::ZERO);
            forget_times(&mut node);
            node
        };
        let whole = figures(TreeReading::of(&*tree));
        assert!(
            whole.class_states.iter().any(|class| class.sent.packets > 0),
            "{whole:?}"
        );
        for steps in 1..20 {
            let mut reading = TreeReading::default();
            let left = Cell::new(0);
            let is_over = || {
                left.set(left.get() - 1);
                left.get() == 0
            };
            let mut calls = 0;
            loop {
                left.set(steps);
                calls += 1;
                if reading.go_on(&*tree, &is_over) {
                    break;
                }
            }
            assert!(steps > 3 || calls > 2, "{calls} calls of {steps} steps");
            assert!(reading.go_on(&*tree, &is_over), "it stays whole");
            assert_eq!(figures(reading), whole);
        }
    }
}
