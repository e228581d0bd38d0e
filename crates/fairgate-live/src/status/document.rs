//! The status document, `fairgate.status/1`: JSON for machines, and what the tables for people are made from.
//!
//! Counts are since the start.

use std::collections::BTreeMap;

use fairgate::balance::{self, Imbalance};
use fairgate::classify::Holder;
use fairgate::{Class, ClassState, Count, Discipline, DropReason, Statistics, Time, Variable};
use fairgate_config::Spec;
use fairgate_config::tc::State;
use serde::{Deserialize, Serialize};

use crate::direction::Direction;
use crate::pace::Punctuality;
use crate::sys::priority::waited_for_processor;

/// A running bridge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The run's name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Seconds since its start.
    pub uptime_s: f64,
    /// Whether this machine's own stack is kept away from both interfaces.
    pub isolated: bool,
    /// How its thread shares the processor.
    pub processor: ProcessorStatus,
    /// From left to right, from right to left.
    pub directions: Vec<DirectionStatus>,
}

/// How punctual the forwarding thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorStatus {
    /// Whether it is a real-time thread.
    pub realtime: bool,
    /// How often it woke up.
    pub wake_ups: u64,
    /// How often it woke up more than 1 ms after the time that was set.
    pub late_wake_ups: u64,
    /// The latest wake-up, microseconds after its time.
    pub latest_us: f64,
    /// How often it stood still for more than 5 ms while it had work: another thread had the processor, the kernel
    /// throttled it, or a status was written.
    pub stalls: u64,
    /// The longest of these times, microseconds.
    pub longest_stall_us: f64,
    /// Seconds for which it was ready to run and waited for the processor; none if the kernel does not count them.
    pub waited_s: Option<f64>,
}

impl ProcessorStatus {
    pub(crate) fn of(punctuality: &Punctuality, realtime: bool) -> ProcessorStatus {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        ProcessorStatus {
            realtime,
            wake_ups: punctuality.wake_ups,
            late_wake_ups: punctuality.late,
            latest_us: micros(punctuality.latest),
            stalls: punctuality.stalls,
            longest_stall_us: micros(punctuality.longest_stall),
            waited_s: waited_for_processor().map(|waited| waited.as_secs_f64()),
        }
    }
}

/// One direction of the bridge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// Where frames come from.
    pub from: String,
    /// Where they leave.
    pub to: String,
    /// Frames handed to the kernel, Ethernet header counted.
    pub sent: CountStatus,
    /// Bits per second sent over the last second.
    pub rate_bps: f64,
    /// Frames between the tree and the socket: in the delay line, or waiting for room.
    pub in_line: u64,
    /// Frames lost outside of the tree, by reason.
    pub lost: Losses,
    /// How often the socket had no room. Nothing is lost by it.
    pub socket_full: u64,
    /// Time from arrival to departure from the tree.
    pub sojourn: Sojourn,
    /// The tree of disciplines.
    pub tree: NodeStatus,
    /// Its description, `[queue.tree]` of a configuration file.
    pub queue: String,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountStatus {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, Ethernet header counted.
    pub bytes: u64,
}

/// Frames lost outside of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// The receive ring was full: this process was too slow.
    pub ring_full: u64,
    /// All frames were in use; give `[run] frames` more, or queues lower limits.
    pub no_frame: u64,
    /// The kernel handed over a part only.
    pub truncated: u64,
    /// Longer than the MTU allows.
    pub too_long: u64,
    /// An offload that can't be done in software.
    pub unsupported_offload: u64,
    /// The interface did not take it.
    pub refused: u64,
}

/// How long packets were in the tree, in microseconds; percentiles to 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sojourn {
    /// Packets measured.
    pub packets: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Longest.
    pub max_us: f64,
}

/// A discipline and its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The discipline's name.
    pub discipline: String,
    /// The class of its parent that it serves, none for the root.
    pub class: Option<u16>,
    /// The host that has this class, of those that are given to hosts. The numbers of packets are since it has; those of
    /// disciplines further below are since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Handed in.
    pub enqueued: CountStatus,
    /// Handed out.
    pub dequeued: CountStatus,
    /// Dropped.
    pub dropped: CountStatus,
    /// Flushed, or moved to a discipline that took its place.
    pub flushed: CountStatus,
    /// Queued now.
    pub backlog: CountStatus,
    /// Packets dropped, by reason; reasons that did not occur are left out.
    pub drops: BTreeMap<String, u64>,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// How often nothing could be sent although something was queued.
    pub overlimits: u64,
    /// The sojourn times of all packets handed out, summed, seconds. A packet's sojourn time here is from its arrival
    /// to its departure from this node. Of two statuses, the difference of these sums over that of `dequeued.packets`
    /// is the mean delay between them.
    pub sojourn_s: f64,
    /// Inner state, under the field's usual names.
    pub variables: BTreeMap<String, ValueStatus>,
    /// The disciplines of its classes, without those that no host has yet.
    pub classes: Vec<NodeStatus>,
    /// What it knows of the classes themselves, if they are more to it than a queue each: also of those that are above others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_states: Vec<ClassStatus>,
}

/// What a discipline knows of one of its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassStatus {
    /// The class's number.
    pub class: u16,
    /// What left it, or a class below it, to be sent.
    pub sent: CountStatus,
    /// How often it came to a stop for its own limit.
    pub overlimits: u64,
    /// What else there is, under the field's usual names.
    pub variables: BTreeMap<String, ValueStatus>,
}

/// A number of a discipline's inner state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueStatus {
    /// A count, a length, a state.
    Integer(i64),
    /// A time, ns.
    Nanos(u64),
    /// True or false.
    Flag(bool),
    /// Nothing there yet.
    Unset,
}

/// The name of the tree in [`DirectionStatus::queue`].
pub const QUEUE: &str = "tree";

impl Status {
    /// Checks that the figures add up: the books of every discipline, drops with their reasons, and what left
    /// each tree with what became of it. They are of one moment: the loop that makes them does nothing else
    /// meanwhile. Not checked are a class against the discipline that holds it, because a discipline may hold
    /// a packet itself, and frames that came in against those that the trees took in, because one may be cut
    /// into many.
    ///
    /// # Errors
    /// Where they do not.
    pub fn check(&self) -> Result<(), Imbalance> {
        for direction in &self.directions {
            let place = format!("the direction from {} to {}", direction.from, direction.to);
            let after = [
                ("sent", direction.sent.packets),
                ("in the line", direction.in_line),
                ("refused", direction.lost.refused),
            ];
            balance::of(
                &place,
                "packets",
                ("out of the tree", direction.sojourn.packets),
                &after,
            )?;
            direction.tree.check()?;
        }
        Ok(())
    }
}

impl DirectionStatus {
    pub(crate) fn of(
        direction: &mut Direction,
        now: Time,
        queue: &Spec,
        from: &str,
        to: &str,
        missed: u64,
    ) -> DirectionStatus {
        let rate_bps = direction.rate.bits_per_second(now, direction.books.sent.bytes);
        let books = &direction.books;
        let sojourn = &direction.sojourn;
        let micros = |nanos: u64| nanos as f64 / 1e3;
        DirectionStatus {
            from: from.to_string(),
            to: to.to_string(),
            sent: books.sent.into(),
            rate_bps,
            in_line: direction.in_line() as u64,
            lost: Losses {
                ring_full: missed,
                no_frame: books.no_frame,
                truncated: books.truncated,
                too_long: books.too_long,
                unsupported_offload: books.unsupported_offload,
                refused: books.refused,
            },
            socket_full: books.socket_full,
            sojourn: Sojourn {
                packets: sojourn.len(),
                mean_us: sojourn.mean() / 1e3,
                p50_us: micros(sojourn.value_at_quantile(0.5)),
                p95_us: micros(sojourn.value_at_quantile(0.95)),
                p99_us: micros(sojourn.value_at_quantile(0.99)),
                max_us: micros(sojourn.max()),
            },
            tree: NodeStatus::of(&*direction.tree, None),
            queue: queue.to_toml(QUEUE),
        }
    }
}

/// The library's unit of summed sojourn times, seconds.
const SOJOURN_UNIT_S: f64 = Statistics::SOJOURN_UNIT as f64 * 1e-9;

impl NodeStatus {
    /// A discipline's books and state, with those of its classes.
    pub fn of(discipline: &dyn Discipline, class: Option<u16>) -> NodeStatus {
        NodeStatus::with_books(discipline, class, &discipline.statistics())
    }

    /// Of a class of another discipline; `None` if no host has it yet.
    fn of_class(class: &Class<'_>) -> Option<NodeStatus> {
        match class.holder {
            Holder::Anyone => Some(NodeStatus::of(class.discipline, Some(class.minor))),
            Holder::Free => None,
            Holder::Host(tenant) => {
                let own = tenant.statistics(&class.discipline.statistics());
                Some(NodeStatus {
                    host: Some(tenant.to_string()),
                    ..NodeStatus::with_books(class.discipline, Some(class.minor), &own)
                })
            }
        }
    }

    fn check(&self) -> Result<(), Imbalance> {
        let place = match self.class {
            None => format!("`{}`", self.discipline),
            Some(class) => format!("`{}` of class {class}", self.discipline),
        };
        self.state().statistics.check(&place, self.backlog.into())?;
        self.classes.iter().try_for_each(NodeStatus::check)
    }

    /// The same as the library has it.
    pub fn state(&self) -> State {
        let dropped = |reason: DropReason| self.drops.get(reason.name()).copied().unwrap_or(0);
        State {
            statistics: Statistics {
                enqueued: self.enqueued.into(),
                dequeued: self.dequeued.into(),
                dropped: self.dropped.into(),
                flushed: self.flushed.into(),
                dropped_by_reason: DropReason::ALL.map(dropped),
                marked: self.marked,
                overlimits: self.overlimits,
                sojourn: (self.sojourn_s / SOJOURN_UNIT_S) as u64,
            },
            variables: of_library(&self.variables),
        }
    }

    /// The same of a class, if the discipline knows more of it than what it holds.
    pub fn class_state(&self, minor: u16) -> Option<State> {
        let known = self.class_states.iter().find(|known| known.class == minor)?;
        let held = self.classes.iter().find(|node| node.class == Some(minor));
        let held = held.map_or_else(State::default, NodeStatus::state);
        Some(held.of_class(known.sent.into(), known.overlimits, of_library(&known.variables)))
    }

    fn with_books(discipline: &dyn Discipline, class: Option<u16>, statistics: &Statistics) -> NodeStatus {
        let mut variables = BTreeMap::new();
        discipline.visit_variables(&mut |name, value| {
            variables.insert(name.to_string(), value.into());
        });
        let mut classes = Vec::new();
        discipline.visit_classes(&mut |class| classes.extend(NodeStatus::of_class(&class)));
        let mut class_states = Vec::new();
        discipline.visit_class_states(&mut |state| class_states.push(ClassStatus::of(&state)));
        let drops = DropReason::ALL
            .iter()
            .filter(|reason| statistics.dropped_for(**reason) > 0)
            .map(|reason| (reason.name().to_string(), statistics.dropped_for(*reason)))
            .collect();
        NodeStatus {
            discipline: discipline.name().to_string(),
            class,
            host: None,
            enqueued: statistics.enqueued.into(),
            dequeued: statistics.dequeued.into(),
            dropped: statistics.dropped.into(),
            flushed: statistics.flushed.into(),
            backlog: statistics.backlog().into(),
            drops,
            marked: statistics.marked,
            overlimits: statistics.overlimits,
            sojourn_s: statistics.sojourn as f64 * SOJOURN_UNIT_S,
            variables,
            classes,
            class_states,
        }
    }
}

impl ClassStatus {
    fn of(state: &ClassState<'_>) -> ClassStatus {
        let variables = state.variables.iter();
        ClassStatus {
            class: state.minor,
            sent: state.sent.into(),
            overlimits: state.overlimits,
            variables: variables
                .map(|&(name, value)| (name.to_owned(), value.into()))
                .collect(),
        }
    }
}

impl From<Count> for CountStatus {
    fn from(count: Count) -> CountStatus {
        CountStatus {
            packets: count.packets,
            bytes: count.bytes,
        }
    }
}

/// Variables as the library has them.
fn of_library(variables: &BTreeMap<String, ValueStatus>) -> Vec<(String, Variable)> {
    let variables = variables.iter();
    variables
        .map(|(name, value)| (name.clone(), (*value).into()))
        .collect()
}

impl From<CountStatus> for Count {
    fn from(count: CountStatus) -> Count {
        Count {
            packets: count.packets,
            bytes: count.bytes,
        }
    }
}

impl From<ValueStatus> for Variable {
    fn from(value: ValueStatus) -> Variable {
        match value {
            ValueStatus::Integer(integer) => Variable::Integer(integer),
            ValueStatus::Nanos(nanos) => Variable::Nanos(nanos),
            ValueStatus::Flag(flag) => Variable::Flag(flag),
            ValueStatus::Unset => Variable::Unset,
        }
    }
}

impl From<Variable> for ValueStatus {
    fn from(value: Variable) -> ValueStatus {
        match value {
            Variable::Integer(integer) => ValueStatus::Integer(integer),
            Variable::Nanos(nanos) => ValueStatus::Nanos(nanos),
            Variable::Flag(flag) => ValueStatus::Flag(flag),
            Variable::Unset => ValueStatus::Unset,
        }
    }
}

#[cfg(test)]
mod tests {
    use fairgate::{FlowHasher, Time};

    use super::*;
    use crate::offload::VnetHeader;
    use crate::sys::ring::Received;

    /// A direction that has dropped one frame, holds two, and has two in its delay line.
    fn status() -> Status {
        let queue = Spec::inline("fifo limit=2").expect("a fifo");
        let tree = queue.build(1).expect("a fifo");
        let mut direction = Direction::new(1, tree, FlowHasher::new([1, 2]), 8, 1518, 1_000_000, 0);
        let offer = |direction: &mut Direction, count| {
            for _ in 0..count {
                let received = Received {
                    bytes: &[0; 100],
                    length: 100,
                    copied: false,
                    tag: None,
                    offload: VnetHeader::default(),
                };
                direction.accept(&received, Time::ZERO).expect("a short frame");
            }
        };
        offer(&mut direction, 3);
        assert_eq!(direction.fill_line(Time::ZERO), 2);
        offer(&mut direction, 2);
        Status {
            name: "test".into(),
            pid: 1,
            uptime_s: 1.0,
            isolated: true,
            processor: ProcessorStatus::default(),
            directions: vec![DirectionStatus::of(
                &mut direction,
                Time::ZERO,
                &queue,
                "left",
                "right",
                0,
            )],
        }
    }

    #[test]
    fn figures_that_do_not_add_up_are_found() {
        let right = status();
        assert_eq!(right.check(), Ok(()));
        assert_eq!(
            (
                right.directions[0].tree.dropped.packets,
                right.directions[0].in_line
            ),
            (1, 2)
        );
        type Spoil = fn(&mut DirectionStatus);
        let spoils: [(&str, Spoil); 4] = [
            ("out of the tree = 2 packets, but sent 1", |it| {
                it.sent.packets += 1
            }),
            ("queued 3 = 6 packets", |it| it.tree.backlog.packets += 1),
            ("enqueued = 500 bytes", |it| it.tree.dequeued.bytes -= 1),
            ("dropped = 1 packets, but queue_limit 2", |it| {
                _ = it.tree.drops.insert(DropReason::QueueLimit.name().into(), 2);
            }),
        ];
        for (complaint, spoil) in spoils {
            let mut wrong = right.clone();
            spoil(&mut wrong.directions[0]);
            let error = wrong.check().expect_err(complaint).to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
