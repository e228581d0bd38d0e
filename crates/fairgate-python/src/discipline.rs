//! A discipline written in Python, as the library's drivers see it.
//!
//! The author writes `enqueue` and `dequeue`. Here every answer is checked before it reaches the library: a
//! packet is returned once, and only if it is queued; one that is dropped is one that is queued; a
//! discipline that sends nothing is empty, or says when to ask again. A call that breaks a rule, or raises,
//! becomes a [`failure`](crate::failure), and the discipline drops what comes until the driver stops.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fairgate::registry::{Setting, Value};
use fairgate::{
    Algorithm, ConfigError, DropReason, Node, PacketId, PacketQueue, Pool, Time, Variable, Verdict,
};
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::errors;
use crate::failure;
use crate::leaked::leaked;
use crate::packet::{Packet, PacketState};

/// When a discipline that has failed asks to be called again: later than now, ns.
const AFTER_FAILURE: u64 = 1_000_000_000;

/// What a call of Python asked for, besides its answer.
#[derive(Default)]
struct Requested {
    dropped: Vec<(Py<Packet>, DropReason)>,
    marked: Vec<Py<Packet>>,
}

/// The base of all disciplines in Python.
#[pyclass(frozen, subclass, module = "fairgate._native")]
pub(crate) struct DisciplineBase {
    /// Whether `asked` has anything. It is cheaper to look at than a lock.
    has_asked: AtomicBool,
    asked: Mutex<Requested>,
}

impl DisciplineBase {
    fn ask(&self, what: impl FnOnce(&mut Requested)) {
        what(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        self.has_asked.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl DisciplineBase {
    #[new]
    #[pyo3(signature = (*arguments, **keywords))]
    fn new(arguments: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> DisciplineBase {
        let _ = (arguments, keywords);
        DisciplineBase {
            has_asked: AtomicBool::new(false),
            asked: Mutex::default(),
        }
    }

    #[pyo3(signature = (packet, reason = "queue_limit"))]
    fn drop(&self, py: Python<'_>, packet: Py<Packet>, reason: &str) -> PyResult<()> {
        let known = DropReason::ALL.iter().find(|known| known.name() == reason);
        let Some(reason) = known.copied().filter(|reason| *reason != DropReason::Flushed) else {
            let names: Vec<&str> = DropReason::ALL.iter().map(|known| known.name()).collect();
            return Err(errors::refused(
                py,
                &format!(
                    "there is no drop reason `{reason}`; use one of {}",
                    names.join(", ")
                ),
            ));
        };
        self.ask(|asked| asked.dropped.push((packet, reason)));
        Ok(())
    }

    fn mark_congestion(&self, packet: Py<Packet>) {
        self.ask(|asked| asked.marked.push(packet));
    }
}

/// The parameters of a discipline in Python.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) settings: Vec<Setting>,
}

/// The methods of an object, bound to it once.
struct Methods {
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    /// `None` if the class does not define it.
    peek: Option<Py<PyAny>>,
    watchdog: Option<Py<PyAny>>,
    variables: Option<Py<PyAny>>,
}

/// Numbers disciplines, so that a packet of another one is noticed.
static OWNERS: AtomicU64 = AtomicU64::new(1);

/// A discipline in Python, whose answers are checked.
pub(crate) struct Checked {
    name: &'static str,
    object: Py<PyAny>,
    base: Py<DisciplineBase>,
    methods: Methods,
    config: Config,
    parameters: &'static [&'static str],
    owner: u64,
    arrived: u64,
    /// The packets in the discipline, by their slots.
    held: Vec<Option<Py<Packet>>>,
    count: u32,
    watchdog: Option<Time>,
    /// The packet that `peek` has shown.
    shown: Mutex<Option<PacketId>>,
    has_failed: AtomicBool,
    /// The time of the last call.
    now: Time,
    is_draining: bool,
    /// What the discipline has dropped while it was drained.
    moved: Vec<PacketId>,
}

type Answer<T> = Result<T, PyErr>;

impl Checked {
    /// Makes the discipline from an instance of its class.
    pub(crate) fn node(
        py: Python<'_>,
        name: &'static str,
        parameters: &'static [&'static str],
        object: &Bound<'_, PyAny>,
        config: Config,
    ) -> PyResult<Node<Checked>> {
        let base = object.cast::<DisciplineBase>()?.clone().unbind();
        let plain = py.import("fairgate.discipline")?.getattr("Discipline")?;
        // A method that the class inherits from `Discipline` does nothing, and is not called.
        let own = |method: &str| -> PyResult<Option<Py<PyAny>>> {
            let is_inherited = object.get_type().getattr(method)?.is(plain.getattr(method)?);
            Ok(if is_inherited {
                None
            } else {
                Some(object.getattr(method)?.unbind())
            })
        };
        Ok(Node::new(Checked {
            name,
            base,
            methods: Methods {
                enqueue: object.getattr("enqueue")?.unbind(),
                dequeue: object.getattr("dequeue")?.unbind(),
                peek: own("peek")?,
                watchdog: own("watchdog")?,
                variables: own("variables")?,
            },
            object: object.clone().unbind(),
            config,
            parameters,
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
            arrived: 0,
            held: Vec::new(),
            count: 0,
            watchdog: None,
            shown: Mutex::new(None),
            has_failed: AtomicBool::new(false),
            now: Time::ZERO,
            is_draining: false,
            moved: Vec::new(),
        }))
    }

    /// Returns the exception of a call that broke a rule.
    fn broken(&self, py: Python<'_>, call: &str, what: &str) -> PyErr {
        errors::discipline(py, self.name, call, what, None)
    }

    /// Remembers why the run is to stop.
    fn fail(&self, error: PyErr) {
        self.has_failed.store(true, Ordering::Relaxed);
        failure::set(error);
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Wraps an exception that Python code raised in a call. Ctrl-C remains what it is.
    fn raised(&self, py: Python<'_>, call: &str, cause: PyErr) -> PyErr {
        if !cause.is_instance_of::<PyException>(py) {
            return cause;
        }
        let what = format!("it raised {cause}");
        errors::discipline(py, self.name, call, &what, Some(cause))
    }

    /// Does what the last call asked for: drops and marks.
    fn settle(&mut self, py: Python<'_>, call: &str, pool: &mut Pool) -> Answer<()> {
        if !self.base.get().has_asked.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let asked = {
            let mut asked = self
                .base
                .get()
                .asked
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *asked)
        };
        for packet in &asked.marked {
            let packet = packet.get();
            self.must_be_queued(py, call, packet, "marked")?;
            pool.mark_congestion(packet.id());
        }
        for (packet, reason) in &asked.dropped {
            let packet = packet.get();
            self.must_be_queued(py, call, packet, "dropped")?;
            if *self.shown.get_mut().unwrap_or_else(PoisonError::into_inner) == Some(packet.id()) {
                let what = format!(
                    "packet {} was dropped, but peek had shown it; leave peek out if it can be dropped",
                    packet.number
                );
                return Err(self.broken(py, call, &what));
            }
            self.release(packet, PacketState::Dropped);
            match self.is_draining {
                true => self.moved.push(packet.id()),
                false => pool.give_back(packet.id(), *reason),
            }
        }
        Ok(())
    }

    fn must_be_queued(&self, py: Python<'_>, call: &str, packet: &Packet, verb: &str) -> Answer<()> {
        let number = packet.number;
        let before = match packet.place() {
            _ if packet.owner != self.owner => {
                return Err(self.broken(
                    py,
                    call,
                    &format!("packet {number} was {verb}, but it belongs to another discipline"),
                ));
            }
            PacketState::Queued => return Ok(()),
            PacketState::Dropped => "was dropped before",
            PacketState::Dequeued => "had left by dequeue before",
            PacketState::Flushed | PacketState::Outside => "was flushed before",
        };
        Err(self.broken(
            py,
            call,
            &format!("packet {number} was {verb}, but it {before}; a packet leaves once"),
        ))
    }

    fn release(&mut self, packet: &Packet, place: PacketState) {
        packet.put(place);
        self.held[packet.id().index()] = None;
        self.count -= 1;
    }

    fn try_enqueue(&mut self, py: Python<'_>, id: PacketId, now: Time, pool: &mut Pool) -> Answer<Verdict> {
        self.arrived += 1;
        self.now = now;
        let key = pool.headers(id).copied();
        let packet = Py::new(py, Packet::of_slot(id, &pool[id], key, self.owner, self.arrived))?;
        if id.index() >= self.held.len() {
            self.held.resize_with(id.index() + 1, || None);
        }
        self.held[id.index()] = Some(packet.clone_ref(py));
        self.count += 1;
        let call = || format!("enqueue(packet {}, now={})", packet.get().number, now.nanos());
        let answer = self.methods.enqueue.call1(py, (&packet, now.nanos()));
        let answer = answer.map_err(|error| self.raised(py, &call(), error))?;
        if !answer.is_none(py) {
            let what = format!(
                "it returned {}, but must return nothing; drop packets by self.drop",
                repr(py, &answer)
            );
            return Err(self.broken(py, &call(), &what));
        }
        if self.base.get().has_asked.load(Ordering::Relaxed) {
            self.settle(py, &call(), pool)?;
        }
        Ok(match packet.get().place() {
            PacketState::Queued => Verdict::Queued,
            _ => Verdict::Dropped,
        })
    }

    fn try_dequeue(&mut self, py: Python<'_>, now: Time, pool: &mut Pool) -> Answer<Option<PacketId>> {
        self.now = now;
        let call = || format!("dequeue(now={})", now.nanos());
        let answer = self.methods.dequeue.call1(py, (now.nanos(),));
        let answer = answer.map_err(|error| self.raised(py, &call(), error))?;
        if self.base.get().has_asked.load(Ordering::Relaxed) {
            self.settle(py, &call(), pool)?;
        }
        if answer.is_none(py) {
            self.watchdog = self.try_watchdog(py, now, &call())?;
            return Ok(None);
        }
        let Ok(packet) = answer.cast_bound::<Packet>(py) else {
            let what = format!(
                "it returned {}, but must return a packet or None",
                repr(py, &answer)
            );
            return Err(self.broken(py, &call(), &what));
        };
        let packet = packet.get();
        self.must_be_queued(py, &call(), packet, "returned")?;
        let shown = self
            .shown
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(shown) = shown.filter(|shown| *shown != packet.id()) {
            let number = self.held[shown.index()]
                .as_ref()
                .map_or(0, |shown| shown.get().number);
            let what = format!(
                "packet {} was returned, but peek had shown packet {number}; leave peek out if the choice \
                 can change",
                packet.number
            );
            return Err(self.broken(py, &call(), &what));
        }
        self.release(packet, PacketState::Dequeued);
        self.watchdog = None;
        Ok(Some(packet.id()))
    }

    /// Returns when to ask again after a dequeue without a packet, at which packets may be queued.
    fn try_watchdog(&self, py: Python<'_>, now: Time, call: &str) -> Answer<Option<Time>> {
        if self.count == 0 {
            return Ok(None);
        }
        let Some(watchdog) = &self.methods.watchdog else {
            return Err(self.broken(py, call, &self.lost(py)));
        };
        let answer = watchdog
            .call0(py)
            .map_err(|error| self.raised(py, "watchdog()", error))?;
        if answer.is_none(py) {
            return Err(self.broken(py, call, &self.lost(py)));
        }
        match answer.extract::<u64>(py) {
            Ok(until) if until > now.nanos() => Ok(Some(Time::from_nanos(until))),
            _ => {
                let what = format!(
                    "it returned {} at {}, but must return a later time, in whole nanoseconds",
                    repr(py, &answer),
                    now.nanos()
                );
                Err(self.broken(py, "watchdog()", &what))
            }
        }
    }

    /// Describes packets that the discipline does not return.
    fn lost(&self, py: Python<'_>) -> String {
        let queued = self.in_order(py);
        let oldest = queued.first().map_or(0, |packet| packet.get().number);
        let packets = match self.count {
            1 => format!("packet {oldest} is"),
            count => format!("{count} packets are queued, of which packet {oldest} is the oldest, and are"),
        };
        format!(
            "it returned None, but {packets} neither dequeued nor dropped; return a packet, or define \
             watchdog"
        )
    }

    /// Returns the packets in the order of their arrival.
    fn in_order(&self, py: Python<'_>) -> Vec<Py<Packet>> {
        let held = self.held.iter().flatten();
        let mut all: Vec<Py<Packet>> = held.map(|packet| packet.clone_ref(py)).collect();
        all.sort_by_key(|packet| packet.get().number);
        all
    }

    fn try_peek(&self, py: Python<'_>, peek: &Py<PyAny>) -> Answer<Option<PacketId>> {
        let answer = peek.call0(py).map_err(|error| self.raised(py, "peek()", error))?;
        if answer.is_none(py) {
            return Ok(None);
        }
        let Ok(packet) = answer.cast_bound::<Packet>(py) else {
            let what = format!(
                "it returned {}, but must return a packet or None",
                repr(py, &answer)
            );
            return Err(self.broken(py, "peek()", &what));
        };
        self.must_be_queued(py, "peek()", packet.get(), "shown")?;
        Ok(Some(packet.get().id()))
    }

    /// Dequeues until no packet is left, so that a lost one is noticed. What the discipline drops meanwhile
    /// is moved, too: only a call of the driver counts drops.
    fn try_drain(&mut self, py: Python<'_>, pool: &mut Pool, into: &mut PacketQueue) -> Answer<()> {
        let mut now = self.now;
        let mut patience = 2 * self.count + 8;
        while self.count > 0 && patience > 0 {
            patience -= 1;
            self.is_draining = true;
            let chosen = self.try_dequeue(py, now, pool);
            self.is_draining = false;
            for id in self.moved.drain(..) {
                into.push_back(id, pool);
            }
            match chosen? {
                Some(id) => into.push_back(id, pool),
                None => now = self.watchdog.unwrap_or(now),
            }
        }
        Ok(())
    }

    fn try_clear(&self, py: Python<'_>) -> Answer<()> {
        let cleared = self.object.call_method0(py, intern!(py, "clear"));
        cleared
            .map(|_| ())
            .map_err(|error| self.raised(py, "clear()", error))
    }

    fn try_reconfigure(&mut self, py: Python<'_>, config: &Config, pool: &mut Pool) -> Answer<()> {
        for (index, value) in &config.settings {
            let name = PyString::new(py, self.parameters[*index]);
            self.object.setattr(py, name, value_of(py, value)?)?;
        }
        let call = "reconfigured()";
        let answer = self.object.call_method0(py, intern!(py, "reconfigured"));
        answer.map_err(|error| self.raised(py, call, error))?;
        self.settle(py, call, pool)
    }
}

fn repr(py: Python<'_>, value: &Py<PyAny>) -> String {
    let text = value.bind(py).repr();
    text.map_or_else(|_| "an object".to_owned(), |text| text.to_string())
}

/// Returns a value of a parameter as Python has it: numbers are in the base unit.
pub(crate) fn value_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Word(word) => word.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::List(numbers) => numbers.into_pyobject(py)?.into_any(),
        Value::Texts(texts) => texts.into_pyobject(py)?.into_any(),
        Value::None => py.None().into_bound(py),
    })
}

impl Algorithm for Checked {
    const NAME: &'static str = "python";
    type Config = Config;

    fn name(&self) -> &'static str {
        self.name
    }

    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if !self.has_failed() {
            match Python::attach(|py| self.try_enqueue(py, id, now, pool)) {
                Ok(verdict) => return verdict,
                Err(error) => self.fail(error),
            }
        }
        if pool.returned().all(|(returned, _)| returned != id) {
            if let Some(packet) = self.held.get_mut(id.index()).and_then(Option::take) {
                packet.get().put(PacketState::Dropped);
                self.count -= 1;
            }
            pool.give_back(id, DropReason::QueueLimit);
        }
        Verdict::Dropped
    }

    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        if !self.has_failed() {
            match Python::attach(|py| self.try_dequeue(py, now, pool)) {
                Ok(chosen) => return chosen,
                Err(error) => self.fail(error),
            }
        }
        // Packets may be queued, so the driver needs a time. It stops before.
        self.watchdog = Some(Time::from_nanos(now.nanos().saturating_add(AFTER_FAILURE)));
        None
    }

    fn first(&self) -> Option<PacketId> {
        let peek = self.methods.peek.as_ref().filter(|_| !self.has_failed())?;
        match Python::attach(|py| self.try_peek(py, peek)) {
            Ok(first) => {
                *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = first;
                first
            }
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        Python::attach(|py| {
            *self.shown.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
            if !self.has_failed()
                && let Err(error) = self.try_drain(py, pool, into)
            {
                self.fail(error);
            }
            for packet in self.in_order(py) {
                self.release(packet.get(), PacketState::Flushed);
                into.push_back(packet.get().id(), pool);
            }
            self.watchdog = None;
            if !self.has_failed()
                && let Err(error) = self.try_clear(py)
            {
                self.fail(error);
            }
        });
    }

    fn watchdog(&self) -> Option<Time> {
        self.watchdog
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        if config != self.config && !self.has_failed() {
            if let Err(error) = Python::attach(|py| self.try_reconfigure(py, &config, pool)) {
                self.fail(error);
            }
            self.config = config;
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let Some(variables) = self.methods.variables.as_ref().filter(|_| !self.has_failed()) else {
            return;
        };
        let found = Python::attach(|py| {
            let raised = |error| self.raised(py, "variables()", error);
            let found = variables.call0(py).map_err(raised)?;
            let found: Vec<(String, i64)> = match found.cast_bound::<PyDict>(py) {
                Ok(dict) => dict.items().extract().map_err(raised)?,
                Err(_) => {
                    return Err(self.broken(py, "variables()", "it must return a dict of whole numbers"));
                }
            };
            Ok(found)
        });
        match found {
            Ok(found) => {
                for (name, value) in found {
                    visit(leaked(&name), Variable::Integer(value));
                }
            }
            Err(error) => self.fail(error),
        }
    }
}
