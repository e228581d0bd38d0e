//! The status document of what was read. This is done on threads that forward nothing.

use std::collections::BTreeMap;

use fairgate::{Discipline, Time};
use fairgate_config::Spec;
use fairgate_run_api::{
    ClassRateStatus, ClassStatus, Detail, DirectionStatus, Losses, NatStatus, NodeStatus, PassedByStatus,
    ProcessorStatus, QUEUE, RateStatus, SOJOURN_UNIT_S, Sojourn, Status, ValueStatus,
};

use super::delays;
use super::estimators::Rates;
use super::reading::{ClassReadingOf, DirectionReading, NodeReading, RunReading, TreeReading, Variables};
use crate::clock;
use crate::pace::Punctuality;
use crate::sys::priority::waited_for_processor;

/// Returns how punctual a forwarding thread is.
pub(crate) fn processor_status(punctuality: &Punctuality, realtime: bool) -> ProcessorStatus {
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

/// Makes the document of what was read.
pub(crate) fn status_of(reading: RunReading, detail: Detail) -> Status {
    let RunReading {
        plan,
        changes,
        isolated,
        processor,
        started,
        at,
        sent: _,
        board,
        bypass,
        nat,
        directions,
    } = reading;
    let direction = |(side, mut direction): (usize, DirectionReading)| {
        direction.tree.keep(detail);
        let queue = Some(&plan.queues[side]).filter(|_| detail == Detail::All);
        let mut status = direction_status(direction, started, queue);
        plan.class_names[side].add_to(&mut status.tree);
        status.passed_by = bypass.passed()[side];
        status
    };
    let (times, nanos) = bypass.times(at);
    Status {
        name: plan.name.clone(),
        pid: std::process::id(),
        uptime_s: seconds(started, at),
        isolated,
        processor,
        changes,
        revision: plan.revision,
        fallback: plan.fallback.clone(),
        autorate: board.read(),
        passed_by: PassedByStatus {
            times,
            seconds: nanos as f64 * 1e-9,
        },
        nat: nat.map(|nat| NatStatus {
            translations: nat.known() as u64,
            no_room: nat.no_room(),
        }),
        directions: directions.into_iter().enumerate().map(direction).collect(),
    }
}

fn direction_status(reading: DirectionReading, started: Time, queue: Option<&Spec>) -> DirectionStatus {
    let counters = &reading.counters;
    let sojourn = &reading.sojourn;
    let micros = |nanos: u64| nanos as f64 / 1e3;
    DirectionStatus {
        from: reading.from,
        to: reading.to,
        sent: counters.sent.into(),
        rate_bps: reading.rate_bps,
        in_line: reading.in_line,
        lost: Losses {
            ring_full: reading.missed,
            no_frame: counters.no_frame,
            truncated: counters.truncated,
            too_long: counters.too_long,
            unsupported_offload: counters.unsupported_offload,
            tiny_segments: counters.tiny_segments,
            refused: counters.refused,
        },
        socket_full: counters.socket_full,
        super_packets: counters.super_packets,
        passed_by: 0,
        sojourn: Sojourn {
            packets: sojourn.len(),
            mean_us: delays::mean(sojourn) / 1e3,
            p50_us: micros(delays::quantile(sojourn, 0.5)),
            p95_us: micros(delays::quantile(sojourn, 0.95)),
            p99_us: micros(delays::quantile(sojourn, 0.99)),
            max_us: micros(sojourn.max()),
        },
        tree: with_rates(tree_status(reading.tree, started), &reading.rates),
        queue: queue.map_or_else(String::new, |queue| queue.to_toml(QUEUE)),
    }
}

/// Returns the status of a discipline and its classes, for a run that starts now.
pub fn status_of_tree(discipline: &dyn Discipline) -> NodeStatus {
    tree_status(TreeReading::of(discipline), clock::now())
}

/// Makes a tree of what was read.
pub(crate) fn tree_status(reading: TreeReading, started: Time) -> NodeStatus {
    // The disciplines from the root to the one that was added last. A discipline is complete when the
    // next one is not below it.
    let mut path: Vec<NodeStatus> = Vec::new();
    for node in reading.nodes {
        close(&mut path, node.depth);
        path.push(alone(node, started));
    }
    close(&mut path, 1);
    path.pop().expect("a tree has a root")
}

/// Returns the status of a discipline without its classes.
fn alone(node: NodeReading, started: Time) -> NodeStatus {
    let statistics = &node.statistics;
    let by_reason = statistics.dropped_by_reason.iter();
    NodeStatus {
        discipline: node.name.into_owned(),
        class: node.class,
        name: None,
        node: None,
        limit_bps: None,
        host: node.host,
        subscriber: None,
        enqueued: statistics.enqueued.into(),
        dequeued: statistics.dequeued.into(),
        dropped: statistics.dropped.into(),
        flushed: statistics.flushed.into(),
        backlog: statistics.backlog().into(),
        drops: by_reason
            .map(|(reason, packets)| (reason.name().to_owned(), packets))
            .collect(),
        marked: statistics.marked,
        overlimits: statistics.overlimits,
        sojourn_s: statistics.sojourn as f64 * SOJOURN_UNIT_S,
        variables: variables(&node.variables),
        at_s: seconds(started, node.at),
        classes: Vec::new(),
        class_states: node
            .class_states
            .into_iter()
            .map(|class| class_status(class, started))
            .collect(),
        estimated: None,
        estimated_classes: Vec::new(),
    }
}

/// Adds the rates of the disciplines and classes that are in the document.
fn with_rates(mut tree: NodeStatus, rates: &Rates) -> NodeStatus {
    rates.visit(|path, is_class, rate| {
        let rate = RateStatus {
            rate_bps: rate.bytes.saturating_mul(8),
            rate_pps: rate.packets,
        };
        match path.split_last() {
            Some((minor, above)) if is_class => {
                if let Some(node) = tree.at(above) {
                    node.estimated_classes
                        .push(ClassRateStatus { class: *minor, rate });
                }
            }
            _ => {
                if let Some(node) = tree.at(path) {
                    node.estimated = Some(rate);
                }
            }
        }
    });
    tree
}

/// Adds the last disciplines of a path to the ones above them, until the path has this length.
fn close(path: &mut Vec<NodeStatus>, length: usize) {
    while path.len() > length
        && let Some(last) = path.pop()
        && let Some(above) = path.last_mut()
    {
        above.classes.push(last);
    }
}

fn seconds(started: Time, at: Time) -> f64 {
    at.nanos_since(started) as f64 * 1e-9
}

fn variables(read: &Variables) -> BTreeMap<String, ValueStatus> {
    read.iter()
        .map(|(name, value)| (name.clone().into_owned(), (*value).into()))
        .collect()
}

fn class_status(class: ClassReadingOf, started: Time) -> ClassStatus {
    ClassStatus {
        class: class.minor,
        name: None,
        node: None,
        limit_bps: None,
        sent: class.sent.into(),
        overlimits: class.overlimits,
        variables: variables(&class.variables),
        at_s: seconds(started, class.at),
    }
}

#[cfg(test)]
mod tests {
    use fairgate::{DropReason, FlowHasher, Time};
    use fairgate_run_api::ChangesStatus;

    use super::*;
    use crate::direction::Direction;
    use crate::offload::VnetHeader;
    use crate::received::Received;
    use crate::sys::frames::FrameStore;

    /// A direction that has dropped one frame, has two in its queue, and two in its delay line.
    fn status() -> Status {
        let queue = Spec::inline("fifo limit=2").expect("a fifo");
        let tree = queue.build(1).expect("a fifo");
        let frames = FrameStore::new(8, 1518).expect("memory for eight frames");
        let mut direction = Direction::new(1, tree, FlowHasher::new([1, 2]), frames, 1_000_000);
        let offer = |direction: &mut Direction, count| {
            for _ in 0..count {
                let received = Received {
                    bytes: &[0; 100],
                    length: 100,
                    tag: None,
                    offload: VnetHeader::default(),
                };
                direction
                    .accept(&received, Time::ZERO)
                    .expect("a short frame is accepted");
            }
        };
        offer(&mut direction, 3);
        assert_eq!(direction.fill_line(Time::ZERO, 0), 2);
        offer(&mut direction, 2);
        let mut reading = DirectionReading::new(&mut direction, Time::ZERO, "left", "right", 0);
        assert!(reading.tree.go_on(direction.link.root(), &|| false));
        Status {
            name: "test".into(),
            pid: 1,
            uptime_s: 1.0,
            isolated: true,
            processor: ProcessorStatus::default(),
            changes: ChangesStatus::default(),
            revision: 0,
            fallback: None,
            passed_by: PassedByStatus::default(),
            nat: None,
            autorate: None,
            directions: vec![direction_status(reading, Time::ZERO, Some(&queue))],
        }
    }

    #[test]
    fn figures_that_do_not_add_up_are_reported() {
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
