//! A tree that a program drives by hand.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fairgate::flow::FlowHasher;
use fairgate::{Arrival, Count, Discipline, Link, Next, Time, Variable, Verdict};
use fairgate_config::{ChangeError, Spec};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::packet::Packet;
use crate::{document, errors, failure};

/// The queue `[queue.NAME]` of a text.
pub(crate) fn spec(py: Python<'_>, toml: &str, name: &str) -> PyResult<Spec> {
    let found = document::read(py, "python", toml)?.queue(name).cloned();
    found.ok_or_else(|| errors::refused(py, &format!("there is no queue `{name}`")))
}

/// A count as packets and bytes.
pub(crate) type Pair = (u64, u64);

struct State {
    link: Link<Option<Py<Packet>>>,
    now: Time,
    /// When to ask again, if the last dequeue said so.
    next: Option<Time>,
    spec: Spec,
    /// The seed of disciplines that are built later.
    seed: u64,
}

#[pyclass(frozen, module = "fairgate._native")]
pub(crate) struct Queue {
    state: Mutex<State>,
    hasher: FlowHasher,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call at `now`, which must not be earlier than the last one.
    fn at<T>(&self, py: Python<'_>, now: u64, call: impl FnOnce(&mut State) -> PyResult<T>) -> PyResult<T> {
        errors::guarded(py, || {
            let mut state = self.lock();
            if Time::from_nanos(now) < state.now {
                let message = format!(
                    "the time is {now} ns, but the last call was at {} ns; time never goes back",
                    state.now.nanos()
                );
                return Err(errors::refused(py, &message));
            }
            state.now = Time::from_nanos(now);
            failure::take();
            let result = call(&mut state);
            let now = state.now;
            let mut failed = None;
            state.link.enqueue_copies(now, |number, original| {
                let copy = original
                    .as_ref()
                    .map(|original| Py::new(py, original.get().copy()));
                match copy.transpose() {
                    Ok(copy) => Some((number, copy)),
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                }
            });
            if let Some(error) = failed {
                return Err(error);
            }
            failure::take().map_or(result, Err)
        })
    }
}

#[pymethods]
impl Queue {
    #[new]
    fn new(py: Python<'_>, toml: &str, name: &str, seed: u64, capacity: u32) -> PyResult<Queue> {
        let spec = spec(py, toml, name)?;
        failure::take();
        let root = spec.build(seed);
        if let Some(failure) = failure::take() {
            return Err(failure);
        }
        let root = root.map_err(|error| errors::refused(py, &error.to_string()))?;
        let mut link = Link::new(root, capacity);
        link.allow_copies();
        Ok(Queue {
            state: Mutex::new(State {
                link,
                now: Time::ZERO,
                next: None,
                spec,
                seed,
            }),
            hasher: FlowHasher::new([seed, 0]),
        })
    }

    fn enqueue(&self, py: Python<'_>, packet: Py<Packet>, now: u64) -> PyResult<&'static str> {
        let (descriptor, key) = packet.get().descriptor(&self.hasher);
        self.at(py, now, |state| {
            let now = state.now;
            let arrival = Arrival {
                headers: key,
                ..Arrival::from(descriptor)
            };
            let verdict = state.link.enqueue(arrival, Some(packet), now).map_err(|error| {
                let message = format!(
                    "all {} slots are in use; dequeue packets, or make the queue with a larger capacity",
                    error.full.capacity
                );
                errors::refused(py, &message)
            })?;
            Ok(match verdict {
                Verdict::Queued => "queued",
                Verdict::Dropped => "dropped",
                Verdict::Congested => "congested",
                Verdict::Unclassified => "unclassified",
            })
        })
    }

    fn dequeue(&self, py: Python<'_>, now: u64) -> PyResult<Option<Py<Packet>>> {
        self.at(py, now, |state| {
            state.next = None;
            match state.link.dequeue(state.now) {
                Next::Packet(departure) => {
                    let packet = departure.payload;
                    if let Some(packet) = &packet {
                        packet.get().update(&departure.slot);
                    }
                    Ok(packet)
                }
                Next::Wait(until) => {
                    state.next = Some(until);
                    Ok(None)
                }
                Next::Idle => Ok(None),
            }
        })
    }

    fn peek(&self, py: Python<'_>, now: u64) -> PyResult<Option<Py<Packet>>> {
        self.at(py, now, |state| {
            let shown = state.link.peek(state.now);
            Ok(shown.and_then(|(_, packet)| packet.as_ref().map(|packet| packet.clone_ref(py))))
        })
    }

    /// The packets that were dropped or flushed since the last call, each with the reason.
    fn take_dropped(&self) -> Vec<(Option<Py<Packet>>, &'static str)> {
        let mut state = self.lock();
        std::iter::from_fn(|| state.link.take_dropped())
            .map(|dropped| (dropped.payload, dropped.reason.name()))
            .collect()
    }

    fn flush(&self, py: Python<'_>, now: u64) -> PyResult<()> {
        self.at(py, now, |state| {
            state.link.change(|root, pool| root.flush(pool));
            Ok(())
        })
    }

    /// Changes the tree to any other tree.
    fn configure(&self, py: Python<'_>, toml: &str, name: &str, now: u64) -> PyResult<()> {
        let spec = spec(py, toml, name)?;
        self.at(py, now, |state| {
            let (now, seed) = (state.now, state.seed);
            let refused = |error: ChangeError| errors::refused(py, &error.to_string());
            let change = state.spec.change_to(&spec, seed).map_err(refused)?;
            let applied = state.link.change_root(|root, pool| change.apply(root, now, pool));
            applied.map_err(refused)?;
            state.spec = spec;
            Ok(())
        })
    }

    #[getter]
    fn now(&self) -> u64 {
        self.lock().now.nanos()
    }

    /// When to ask again after a dequeue that returned nothing although packets are queued.
    #[getter]
    fn next_time(&self) -> Option<u64> {
        self.lock().next.map(Time::nanos)
    }

    #[getter]
    fn backlog(&self) -> Pair {
        pair(self.lock().link.backlog())
    }

    fn toml(&self, name: &str) -> String {
        self.lock().spec.to_toml(name)
    }

    /// The state of every node: the root first, each node before the nodes below it.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut found = Vec::new();
        failure::take();
        visit(py, self.lock().link.root(), &mut Vec::new(), &mut found)?;
        failure::take().map_or(Ok(found), Err)
    }
}

pub(crate) fn pair(count: Count) -> Pair {
    (count.packets, count.bytes)
}

fn visit<'py>(
    py: Python<'py>,
    node: &dyn Discipline,
    path: &mut Vec<u32>,
    found: &mut Vec<Bound<'py, PyDict>>,
) -> PyResult<()> {
    let statistics = node.statistics();
    let entry = PyDict::new(py);
    entry.set_item("path", path.clone())?;
    entry.set_item("discipline", node.name())?;
    entry.set_item("enqueued", pair(statistics.enqueued))?;
    entry.set_item("dequeued", pair(statistics.dequeued))?;
    entry.set_item("dropped", pair(statistics.dropped))?;
    entry.set_item("flushed", pair(statistics.flushed))?;
    entry.set_item("backlog", pair(statistics.backlog()))?;
    entry.set_item("marked", statistics.marked)?;
    entry.set_item("overlimits", statistics.overlimits)?;
    let drops = PyDict::new(py);
    for (reason, packets) in statistics.dropped_by_reason.iter() {
        drops.set_item(reason.name(), packets)?;
    }
    entry.set_item("drops", drops)?;
    let variables = PyDict::new(py);
    let mut result = Ok(());
    node.visit_variables(&mut |name, value| {
        let set = match value {
            Variable::Integer(value) => variables.set_item(name, value),
            Variable::Nanos(value) => variables.set_item(name, value),
            Variable::Flag(value) => variables.set_item(name, value),
            Variable::Unset => variables.set_item(name, py.None()),
        };
        result = std::mem::replace(&mut result, Ok(())).and(set);
    });
    result?;
    entry.set_item("variables", variables)?;
    found.push(entry);
    let mut result = Ok(());
    node.visit_classes(&mut |class| {
        path.push(class.minor);
        let below = visit(py, class.discipline, path, found);
        result = std::mem::replace(&mut result, Ok(())).and(below);
        path.pop();
    });
    result
}
