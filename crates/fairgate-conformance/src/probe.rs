//! A discipline that wraps another one. It forwards every call, counts the packets that are inside, and
//! compares its count with the statistics of the wrapped discipline.

use std::any::Any;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fairgate::discipline::probes::{Sealed, move_packets};
use fairgate::{
    Class, ClassId, ClassReading, ClassState, ConfigError, Count, Discipline, DropReason, Ecn, FlowHash,
    Heritage, Inspect, Needs, PacketId, PacketQueue, Pool, Reconfigure, Slot, Statistics, Time, Variable,
    Verdict,
};

/// Formats a configuration, for comparisons and messages.
pub(crate) type Show = fn(&dyn Any) -> String;

/// The number of times that a probed discipline of a tree withheld its packets. A discipline that isn't a
/// shaper may do so only in a call in which a descendant does.
#[derive(Clone, Default)]
pub(crate) struct Withheld(Arc<AtomicU64>);

impl Withheld {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a discipline of a tree that may reorder packets has done so. From then on no order is expected
/// from the disciplines around it, nor from those to which packets are moved.
#[derive(Clone, Default)]
pub(crate) struct Reordered(Arc<AtomicBool>);

/// The header fields with which the disciplines of a tree were given packets, in order. One discipline may
/// change a field, the next may choose a class by it, and a third may restore it: the first then sees no
/// change, but the packet has taken another path.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<Vec<(PacketId, Fields)>>>);

impl Given {
    fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn add(&self, id: PacketId, fields: Fields) {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.push((id, fields));
    }

    /// Calls `visit` on all from number `first` on.
    fn visit_from(&self, first: usize, mut visit: impl FnMut(PacketId, Fields)) {
        let given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given[first..].iter().for_each(|&(id, fields)| visit(id, fields));
    }
}

/// What the probes of a tree share.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    withheld: Withheld,
    reordered: Reordered,
    given: Given,
}

/// What a discipline may do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    /// It may withhold packets.
    pub(crate) shaping: bool,
    /// Packets of a flow may leave in another order.
    pub(crate) reordering: bool,
    /// How many of its watchdogs may pass before it sends a packet, beyond the usual number.
    pub(crate) watchdogs: usize,
}

/// The header fields by which classifiers and hashes distinguish packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Fields {
    flow: FlowHash,
    class: ClassId,
    mark: u32,
    priority: u8,
    dscp: u8,
    ecn: Ecn,
}

impl Fields {
    fn of(packet: &Slot) -> Fields {
        Fields {
            flow: packet.flow,
            class: packet.class,
            mark: packet.mark,
            priority: packet.priority,
            dscp: packet.dscp,
            ecn: packet.ecn,
        }
    }
}

/// Packets with the same key must keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OrderKey {
    fields: Fields,
    /// The number of parameter changes since construction. A change may send later packets on another path.
    epoch: u64,
}

/// A packet inside the wrapped discipline.
#[derive(Debug)]
struct Held {
    /// Its number in the order of arrivals.
    arrival: u64,
    length: u32,
    cookie: u64,
    key: OrderKey,
    /// Whether header fields were changed on its way in. It may have taken another path than others with its
    /// key.
    is_changed: bool,
}

/// The counters of pool and tree before a call.
struct Before {
    returned: u64,
    marked: u64,
    withheld: u64,
    given: usize,
}

/// The wrapper around a discipline.
pub(crate) struct Probe {
    inner: Box<dyn Discipline>,
    allowed: Allowed,
    show: Show,
    shared: Shared,
    held: HashMap<PacketId, Held>,
    arrivals: u64,
    epoch: u64,
    /// The last departure of each key.
    departed: HashMap<OrderKey, u64>,
    /// The last arrival that has departed.
    last_departed: u64,
    /// The packet that a peek showed.
    promised: Option<PacketId>,
    /// The expected statistics.
    expected: Statistics,
    now: Time,
}

impl Probe {
    pub(crate) fn new(inner: Box<dyn Discipline>, allowed: Allowed, show: Show, shared: Shared) -> Probe {
        Probe {
            inner,
            allowed,
            show,
            shared,
            held: HashMap::new(),
            arrivals: 0,
            epoch: 0,
            departed: HashMap::new(),
            last_departed: 0,
            promised: None,
            expected: Statistics::default(),
            now: Time::ZERO,
        }
    }

    fn before(&self, pool: &Pool) -> Before {
        Before {
            returned: pool.returned_total(),
            marked: pool.marked_total(),
            withheld: self.shared.withheld.count(),
            given: self.shared.given.count(),
        }
    }

    fn classes(&self) -> Vec<u32> {
        let mut minors = Vec::new();
        self.inner.visit_classes(&mut |class| minors.push(class.minor));
        minors
    }

    fn advance(&mut self, now: Time) {
        assert!(
            now >= self.now,
            "time: the clock of {} went back",
            self.inner.name()
        );
        self.now = now;
    }

    /// Notes the packets inside whose header fields were changed when they were enqueued, in this call or
    /// when they moved to another class. They may leave out of order. A discipline that marks packets before
    /// it passes them on, as RED with an inner discipline does, changes what a descendant classifies by:
    /// dualpi2 has a queue for marked packets.
    fn note_changes(&mut self, before: &Before, pool: &Pool) {
        let has_children = !self.classes().is_empty();
        for (&id, held) in &mut self.held {
            let mut now = Fields::of(&pool[id]);
            if !has_children {
                // A leaf marks what it holds.
                now.ecn = held.key.fields.ecn;
            }
            held.is_changed |= now != held.key.fields;
        }
        let held = &mut self.held;
        self.shared.given.visit_from(before.given, |id, fields| {
            if let Some(held) = held.get_mut(&id) {
                held.is_changed |= fields != held.key.fields;
            }
        });
    }

    /// Removes a packet that leaves in any way. It must be inside, and unchanged.
    fn leave(&mut self, id: PacketId, pool: &Pool) -> Held {
        let name = self.inner.name();
        let Some(held) = self.held.remove(&id) else {
            panic!(
                "once: {name} returned a packet that it did not hold: {:?}",
                pool[id]
            );
        };
        let packet = &pool[id];
        let ecn_is_true =
            packet.ecn == held.key.fields.ecn || (packet.ecn == Ecn::Ce && held.key.fields.ecn.is_capable());
        let unchanged = packet.length == held.length
            && packet.cookie == held.cookie
            && packet.flow == held.key.fields.flow
            && (packet.dscp == held.key.fields.dscp || packet.is_remarked());
        assert!(
            ecn_is_true && unchanged,
            "tampering: {name} returned {packet:?}, which was {held:?}"
        );
        held
    }

    /// Checks that a packet leaves after all earlier packets with its key.
    fn keep_order(&mut self, held: &Held) {
        let reordered = &self.shared.reordered.0;
        if self.allowed.reordering && held.arrival < self.last_departed {
            reordered.store(true, Ordering::Relaxed);
        }
        self.last_departed = self.last_departed.max(held.arrival);
        if held.is_changed || reordered.load(Ordering::Relaxed) {
            return;
        }
        let last = self.departed.insert(held.key, held.arrival);
        assert!(
            last.is_none_or(|last| last < held.arrival),
            "order: {} dequeued arrival {last:?} of a flow before arrival {}",
            self.inner.name(),
            held.arrival,
        );
    }

    /// Counts the packets that the call returned and marked, and compares the statistics. Returns the
    /// reasons.
    fn settle(&mut self, before: &Before, pool: &Pool) -> Vec<(PacketId, DropReason)> {
        let count = pool.returned_total() - before.returned;
        let returned: Vec<_> = pool.returned().take(count as usize).collect();
        for &(id, reason) in &returned {
            let held = self.leave(id, pool);
            if reason == DropReason::Flushed {
                self.expected.flushed.add(held.length);
                continue;
            }
            self.expected.dropped.add(held.length);
            self.expected.dropped_by_reason.add(reason);
            assert_ne!(
                self.promised,
                Some(id),
                "peek: {} dropped the packet that it had shown",
                self.inner.name()
            );
        }
        self.expected.marked += pool.marked_total() - before.marked;
        self.audit();
        returned
    }

    /// Checks the contract: the statistics equal the packets that are inside, and include those of all
    /// classes.
    fn audit(&self) {
        let name = self.inner.name();
        assert_eq!(
            self.inner.statistics(),
            self.expected,
            "conservation: the statistics of {name} are wrong"
        );
        let backlog = self.inner.backlog();
        let bytes: u64 = self.held.values().map(|held| u64::from(held.length)).sum();
        assert_eq!(
            (backlog.packets, backlog.bytes),
            (self.held.len() as u64, bytes),
            "conservation: the backlog of {name} differs from the packets inside"
        );
        let (mut packets, mut bytes) = (0, 0);
        self.inner.visit_classes(&mut |class| {
            let backlog = class.discipline.backlog();
            packets += backlog.packets;
            bytes += backlog.bytes;
        });
        assert!(
            packets <= backlog.packets && bytes <= backlog.bytes,
            "conservation: the classes of {name} hold {packets} packets of {bytes} bytes, itself only \
             {backlog:?}"
        );
    }

    /// Checks the result of a dequeue or peek.
    fn answered(&mut self, answer: Option<PacketId>, before: &Before) {
        let name = self.inner.name();
        if let Some(promised) = self.promised {
            assert_eq!(
                answer,
                Some(promised),
                "peek: {name} showed another packet before"
            );
        }
        if answer.is_some() || self.held.is_empty() {
            return;
        }
        // A parent need not ask a throttled class before its watchdog.
        let mut class_withholds = false;
        self.inner.visit_classes(&mut |class| {
            let until = class.discipline.watchdog();
            class_withholds |=
                class.discipline.backlog().packets > 0 && until.is_some_and(|due| due > self.now);
        });
        assert!(
            self.allowed.shaping || class_withholds || self.shared.withheld.count() > before.withheld,
            "work: {name} holds {} packets but sends none",
            self.held.len()
        );
        let watchdog = self.inner.watchdog();
        assert!(
            watchdog.is_some_and(|due| due > self.now),
            "watchdog: {name} withholds its packets at {}, but its watchdog is {watchdog:?}",
            self.now
        );
        self.shared.withheld.add_one();
    }
}

impl Sealed for Probe {}

impl Discipline for Probe {
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.advance(now);
        let packet = &pool[id];
        let fields = Fields::of(packet);
        self.shared.given.add(id, fields);
        let before = self.before(pool);
        let held = Held {
            arrival: self.arrivals,
            length: packet.length,
            cookie: packet.cookie,
            key: OrderKey {
                fields,
                epoch: self.epoch,
            },
            is_changed: false,
        };
        self.arrivals += 1;
        self.expected.enqueued.add(packet.length);
        let twice = self.held.insert(id, held).is_some();
        assert!(!twice, "once: {} got a packet that it already holds", self.name());

        let verdict = self.inner.enqueue(id, now, pool);
        self.note_changes(&before, pool);
        let returned = self.settle(&before, pool);
        let fate = returned.iter().find(|(returned, _)| *returned == id);
        let is_true = match verdict {
            Verdict::Queued => fate.is_none(),
            Verdict::Dropped => !returned.is_empty(),
            Verdict::Congested => !returned.is_empty() || pool.marked_total() > before.marked,
            Verdict::Unclassified => fate.is_some_and(|(_, reason)| {
                use DropReason::{Filtered, NoClass, Policed};
                matches!(reason, NoClass | Filtered | Policed)
            }),
        };
        assert!(
            is_true,
            "verdict: {} returned {verdict:?} but gave back {returned:?}",
            self.name()
        );
        verdict
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.advance(now);
        let before = self.before(pool);
        let answer = self.inner.dequeue(now, pool);
        if let Some(id) = answer {
            let held = self.leave(id, pool);
            self.keep_order(&held);
            self.expected.dequeued.add(held.length);
            // The driver compares the arrival time itself with its own record.
            self.expected.sojourn += now.nanos_since(pool[id].enqueued_at) / Statistics::SOJOURN_UNIT;
        }
        let counted = self.inner.statistics().overlimits;
        let overlimits = counted - self.expected.overlimits;
        self.expected.overlimits = counted;
        self.settle(&before, pool);
        self.answered(answer, &before);
        self.promised = None;
        let withheld = answer.is_none() && !self.held.is_empty();
        assert_eq!(
            overlimits,
            u64::from(withheld),
            "overlimits: {} counted them wrongly",
            self.name()
        );
        answer
    }

    fn peek(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.advance(now);
        let before = self.before(pool);
        let answer = self.inner.peek(now, pool);
        self.settle(&before, pool);
        self.answered(answer, &before);
        self.promised = answer;
        answer
    }

    fn flush(&mut self, pool: &mut Pool) {
        self.promised = None;
        let before = self.before(pool);
        self.inner.flush(pool);
        let returned = self.settle(&before, pool);
        let all_flushed = returned.iter().all(|(_, reason)| *reason == DropReason::Flushed);
        assert!(all_flushed, "flush: {} gave back {returned:?}", self.name());
        assert!(
            self.held.is_empty(),
            "flush: {} kept {:?}",
            self.name(),
            self.held
        );
    }

    fn watchdog(&self) -> Option<Time> {
        self.inner.watchdog()
    }

    fn backlog(&self) -> Count {
        self.inner.backlog()
    }
}

impl Inspect for Probe {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn config(&self) -> Box<dyn Any> {
        self.inner.config()
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.inner.visit_classes(visit);
    }

    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        self.inner.visit_classes_at(places, visit);
    }

    fn read_class_states(
        &self,
        reading: &mut ClassReading,
        most: usize,
        visit: &mut dyn FnMut(ClassState<'_>),
    ) -> bool {
        self.inner.read_class_states(reading, most, visit)
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        self.inner.visit_variables(visit);
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }
}

impl Reconfigure for Probe {
    fn reconfigure(&mut self, config: &dyn Any, now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        self.advance(now);
        let before = self.before(pool);
        let classes = self.classes();
        let old = (self.show)(self.inner.config().as_ref());
        let result = self.inner.reconfigure(config, now, pool);
        self.note_changes(&before, pool);
        let returned = self.settle(&before, pool);
        let new = (self.show)(self.inner.config().as_ref());
        match &result {
            Err(error) => assert!(
                new == old && returned.is_empty(),
                "refusal: {} rejected the parameters ({error}), but changed {old} to {new} and gave back \
                 {returned:?}",
                self.name()
            ),
            Ok(()) => {
                assert_eq!(
                    new,
                    (self.show)(config),
                    "reconfigure: {} has other parameters than it was given",
                    self.name()
                );
                let reasons = returned.iter().map(|(_, reason)| *reason);
                // The packets of a removed class are enqueued again, and may be dropped there. The discipline
                // of a class whose parent peeks at it, as in hfsc, may drop by its control law, or at a limit
                // if it hands packets on inside, as netem does.
                let has_classes = !classes.is_empty();
                assert!(
                    self.classes() != classes
                        || reasons.into_iter().all(|reason| {
                            reason == DropReason::Reconfigured
                                || (has_classes && reason != DropReason::Flushed)
                        }),
                    "reconfigure: {} gave back {returned:?}",
                    self.name()
                );
                self.epoch += 1;
            }
        }
        result
    }

    fn change_class(
        &mut self,
        minor: u32,
        pool: &mut Pool,
        change: &mut dyn FnMut(&mut dyn Discipline, &mut Pool),
    ) -> Result<(), ConfigError> {
        let before = self.before(pool);
        let result = self.inner.change_class(minor, pool, change);
        self.note_changes(&before, pool);
        self.settle(&before, pool);
        self.epoch += 1;
        result
    }

    fn succeed_class(
        &mut self,
        minor: u32,
        child: Box<dyn Discipline>,
        heritage: &Heritage,
        now: Time,
        pool: &mut Pool,
    ) -> Result<Box<dyn Discipline>, ConfigError> {
        self.advance(now);
        let before = self.before(pool);
        let result = self.inner.succeed_class(minor, child, heritage, now, pool);
        self.note_changes(&before, pool);
        self.settle(&before, pool);
        result
    }

    fn take_over(&mut self, old: &mut dyn Discipline, heritage: &Heritage, now: Time, pool: &mut Pool) {
        debug_assert!(heritage.classes.is_empty(), "a probe inherits no classes");
        move_packets(self, old, now, pool);
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.promised = None;
        let before = self.before(pool);
        let mut all = PacketQueue::new();
        self.inner.drain(pool, &mut all);
        while let Some(id) = all.pop_front(pool) {
            let held = self.leave(id, pool);
            self.keep_order(&held);
            self.expected.flushed.add(held.length);
            into.push_back(id, pool);
        }
        let returned = self.settle(&before, pool);
        assert!(
            returned.is_empty(),
            "drain: {} gave back {returned:?}",
            self.name()
        );
        assert!(
            self.held.is_empty(),
            "drain: {} kept {:?}",
            self.name(),
            self.held
        );
    }
}
