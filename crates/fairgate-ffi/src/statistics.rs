//! Counters of every node of a tree, and state variables.

use std::ffi::{CString, c_char, c_void};

use fairgate::{Discipline, DropCounts, Statistics, Variable};

use crate::call::or;
use crate::node::QueueNode;
use crate::packet::name;
use crate::pool::State;

/// The statistics of a node of a tree. At any time enqueued = dequeued + dropped + flushed + backlog, in
/// packets and in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CStatistics {
    /// All enqueued packets, also those that were dropped at once.
    pub enqueued_packets: u64,
    /// Their bytes.
    pub enqueued_bytes: u64,
    /// Dequeued packets.
    pub dequeued_packets: u64,
    /// Their bytes.
    pub dequeued_bytes: u64,
    /// Packets dropped here or below, for any reason except a flush.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets that were flushed, or moved to a discipline that replaced this one.
    pub flushed_packets: u64,
    /// Their bytes.
    pub flushed_bytes: u64,
    /// Queued packets.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
    /// Packets marked with congestion experienced, here or below.
    pub marked: u64,
    /// How often nothing could be sent although packets were queued.
    pub overlimits: u64,
    /// The sum of the sojourn times of dequeued packets, in nanoseconds, to within 1024 ns for each packet.
    pub sojourn: u64,
}

impl CStatistics {
    fn of(statistics: &Statistics) -> CStatistics {
        let backlog = statistics.backlog();
        CStatistics {
            enqueued_packets: statistics.enqueued.packets,
            enqueued_bytes: statistics.enqueued.bytes,
            dequeued_packets: statistics.dequeued.packets,
            dequeued_bytes: statistics.dequeued.bytes,
            dropped_packets: statistics.dropped.packets,
            dropped_bytes: statistics.dropped.bytes,
            flushed_packets: statistics.flushed.packets,
            flushed_bytes: statistics.flushed.bytes,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            marked: statistics.marked,
            overlimits: statistics.overlimits,
            sojourn: statistics.sojourn.saturating_mul(Statistics::SOJOURN_UNIT),
        }
    }
}

/// Is called for a node of a tree. `path` names it by class numbers, like "1/20"; the root is "".
/// `discipline` is its name. All pointers are valid during the call. It must not call functions with this
/// node or its pool, and must not leave by an exception or `longjmp`.
pub type VisitNode = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        path: *const c_char,
        discipline: *const c_char,
        statistics: *const CStatistics,
    ),
>;

/// Is called for a reason of drops that occurred. The same rules apply.
pub type VisitDrops = Option<unsafe extern "C" fn(context: *mut c_void, reason: *const c_char, packets: u64)>;

/// Is called for a variable of the root discipline, with its usual name. `value` is a number, a time in
/// nanoseconds, or 0 and 1; `is_set` is false if there is no value yet. The same rules apply.
pub type VisitVariable =
    Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, value: i64, is_set: bool)>;

/// Writes the statistics of the root. Returns false if a pointer is NULL, or the node is broken.
///
/// # Safety
/// `node` must be from this library or NULL, `statistics` valid for a write or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_statistics(
    node: *const QueueNode,
    statistics: *mut CStatistics,
) -> bool {
    // SAFETY: as the caller promises.
    let node = unsafe { node.as_ref() };
    visit(node, |root| {
        if statistics.is_null() {
            return false;
        }
        // SAFETY: it is not NULL, and the caller promises that it is valid for a write.
        unsafe { statistics.write(CStatistics::of(&root.statistics())) };
        true
    })
}

/// Calls `each` for the root and for every class below it, parents first. Returns false if a pointer is NULL,
/// or the node is broken.
///
/// # Safety
/// `node` must be from this library or NULL, and `each` must accept `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_visit(
    node: *const QueueNode,
    each: VisitNode,
    context: *mut c_void,
) -> bool {
    // SAFETY: as the caller promises.
    let node = unsafe { node.as_ref() };
    visit(node, |root| {
        let Some(each) = each else { return false };
        let mut report = |path: &str, discipline: &dyn Discipline| {
            let path = CString::new(path).unwrap_or_default();
            let name = CString::new(discipline.name()).unwrap_or_default();
            let statistics = CStatistics::of(&discipline.statistics());
            // SAFETY: the pointers are valid during the call. The caller promises that `each` accepts them.
            unsafe { each(context, path.as_ptr(), name.as_ptr(), &statistics) };
        };
        descend(root, &mut String::new(), &mut report);
        true
    })
}

/// Calls `report` for `discipline` and all below it. `path` is as it was afterwards.
fn descend(discipline: &dyn Discipline, path: &mut String, report: &mut dyn FnMut(&str, &dyn Discipline)) {
    report(path, discipline);
    let length = path.len();
    discipline.visit_classes(&mut |class| {
        if length > 0 {
            path.push('/');
        }
        path.push_str(&class.minor.to_string());
        descend(class.discipline, path, report);
        path.truncate(length);
    });
}

/// Calls `each` for each reason for which packets were dropped, at the root or below. Returns false if a
/// pointer is NULL, or the node is broken.
///
/// # Safety
/// `node` must be from this library or NULL, and `each` must accept `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_visit_drops(
    node: *const QueueNode,
    each: VisitDrops,
    context: *mut c_void,
) -> bool {
    // SAFETY: as the caller promises.
    let node = unsafe { node.as_ref() };
    visit(node, |root| {
        let Some(each) = each else { return false };
        let drops: DropCounts = root.statistics().dropped_by_reason;
        for (reason, packets) in drops.iter() {
            // SAFETY: the name is valid for ever. The caller promises that `each` accepts it.
            unsafe { each(context, name(reason), packets) };
        }
        true
    })
}

/// Calls `each` for each variable of the root discipline: CoDel's count, QFQ's virtual time. Returns false if
/// a pointer is NULL, or the node is broken.
///
/// # Safety
/// `node` must be from this library or NULL, and `each` must accept `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairgate_node_visit_variables(
    node: *const QueueNode,
    each: VisitVariable,
    context: *mut c_void,
) -> bool {
    // SAFETY: as the caller promises.
    let node = unsafe { node.as_ref() };
    visit(node, |root| {
        let Some(each) = each else { return false };
        root.visit_variables(&mut |name, variable| {
            let (value, is_set) = match variable {
                Variable::Integer(value) => (value, true),
                Variable::Nanos(nanos) => (i64::try_from(nanos).unwrap_or(i64::MAX), true),
                Variable::Flag(flag) => (flag.into(), true),
                Variable::Unset => (0, false),
            };
            let name = CString::new(name).unwrap_or_default();
            // SAFETY: the name is valid during the call. The caller promises that `each` accepts it.
            unsafe { each(context, name.as_ptr(), value, is_set) };
        });
        true
    })
}

/// Runs `look` on the root. Calls that would change the tree are refused meanwhile.
fn visit(node: Option<&QueueNode>, look: impl FnOnce(&dyn Discipline) -> bool) -> bool {
    let Some(node) = node.filter(|node| node.shared.state.get() == State::Ready) else {
        return false;
    };
    node.shared.state.set(State::Visiting);
    let seen = or(None, || Some(look(node.egress.root())));
    let state = match seen {
        Some(_) => State::Ready,
        None => State::Broken,
    };
    node.shared.state.set(state);
    seen.unwrap_or(false)
}
