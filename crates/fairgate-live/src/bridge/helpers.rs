//! The further workers of a run: workers of their own, each on its own thread.
//!
//! Worker 0 owns the interfaces and the signals. It starts the others before it takes the
//! frames from the kernel, takes them together with the others, and stops these at the end. If one of them
//! fails, all stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use super::changes::{Inbox, Task};
use super::observer::Taps;
use super::worker::Worker;
use super::{Bridge, Stopper};
use crate::backend;
use crate::clock;
use crate::direction::Direction;
use crate::end::Found;
use crate::error::LiveError;
use crate::links::LinkChanges;
use crate::port::Port;
use crate::privileges;
use crate::randomness::Randomness;
use crate::sandbox::{Confined, Sandbox};
use crate::status::WorkerReading;
use crate::sys::priority::set_realtime;
use crate::workers::WorkerSlot;
use caps::CapsHashSet;
use fairgate::Time;
use fairgate_run_api::Detail;

/// The further workers.
pub(super) struct Helpers {
    helpers: Vec<Helper>,
    confinement: Option<Confinement>,
    /// Tells each helper that waits for it to take its frames from the kernel.
    signals: Vec<Sender<()>>,
}

/// What worker 0 is confined to, for threads that were started before.
#[derive(Clone)]
struct Confinement {
    sandbox: Arc<Sandbox>,
    confined: Confined,
}

struct Helper {
    inbox: Inbox,
    stopper: Stopper,
    ending: Arc<Ending>,
    /// Its thread, if that was started before it has work.
    waiting: Option<Waiting>,
    state: State,
}

/// A thread that waits for its work.
struct Waiting {
    work: Sender<Work>,
    thread: Thread,
}

/// The thread of a helper. It returns nothing if there was no work for it.
type Thread = JoinHandle<Result<Option<WorkerReading>, LiveError>>;

/// What a helper's thread does.
struct Work {
    worker: Box<Worker>,
    stops: StopsLead,
    ending: Arc<Ending>,
    /// The capabilities that worker 0 has kept.
    kept: CapsHashSet,
    confinement: Option<Confinement>,
    /// Dropped when the helper is ready to take its frames.
    preparing: Sender<()>,
    /// When it may take them.
    signal: Receiver<()>,
}

/// How a helper and worker 0 end together. A helper's sockets can't leave their groups but by closing, which
/// takes milliseconds. So all workers forward until the kernel gets its frames back. They stop just before:
/// what arrives afterwards is the kernel's, and would be forwarded twice.
#[derive(Default)]
struct Ending {
    /// The helper has sent what was queued when it was stopped.
    is_empty: AtomicBool,
    /// The kernel is about to get its frames back.
    is_over: AtomicBool,
    /// The helper takes no more frames.
    has_halted: AtomicBool,
}

enum State {
    /// It has sockets, but no thread.
    Ready(Box<Worker>),
    Working(Thread),
    /// It has ended, with these figures.
    Ended(Box<WorkerReading>),
    /// It has failed, or is between two states.
    Gone,
}

impl Helpers {
    /// Prepares the further workers of a run. `lead` is worker 0, at `slot`.
    pub(super) fn prepare(
        lead: &Worker,
        slot: &WorkerSlot,
        randomness: &mut Randomness,
    ) -> Result<Helpers, LiveError> {
        let helper = |worker| Helper::prepare(lead, &slot.of(worker), randomness);
        let helpers = (1..usize::from(lead.plan.workers)).map(helper);
        Ok(Helpers {
            helpers: helpers.collect::<Result<_, _>>()?,
            confinement: None,
            signals: Vec::new(),
        })
    }

    /// Gives each helper its logs. Call it before the helpers work.
    pub(super) fn give(&mut self, taps: Vec<Taps>) {
        for (helper, taps) in self.helpers.iter_mut().zip(taps) {
            if let State::Ready(worker) = &mut helper.state {
                worker.logs = Some(taps);
            }
        }
    }

    /// Starts the threads of all helpers as real-time threads, which wait for their work. Later this process
    /// may not have the privilege any more.
    pub(super) fn prioritise(&mut self) -> Result<(), LiveError> {
        for (helper, number) in self.helpers.iter_mut().zip(1..) {
            helper.waiting = Some(Waiting::start(number, true)?);
        }
        Ok(())
    }

    /// Starts the work of all helpers, and waits until each is ready to take its frames from the kernel:
    /// confinement takes milliseconds. `lead` stops when one of them ends.
    pub(super) fn start(&mut self, lead: &Stopper) -> Result<(), LiveError> {
        let kept = privileges::held()?;
        let (preparing, ready) = mpsc::channel();
        for (helper, number) in self.helpers.iter_mut().zip(1..) {
            let State::Ready(worker) = std::mem::replace(&mut helper.state, State::Gone) else {
                continue;
            };
            // A thread that starts now is confined like this one.
            let (Waiting { work, thread }, confinement) = match helper.waiting.take() {
                Some(waiting) => (waiting, self.confinement.clone()),
                None => (Waiting::start(number, false)?, None),
            };
            let (give_signal, signal) = mpsc::channel();
            self.signals.push(give_signal);
            // An error means that the thread has panicked. Joining it tells.
            let _ = work.send(Work {
                worker,
                stops: StopsLead(lead.clone()),
                ending: Arc::clone(&helper.ending),
                kept: kept.clone(),
                confinement,
                preparing: preparing.clone(),
                signal,
            });
            helper.state = State::Working(thread);
        }
        drop(preparing);
        // Nothing is sent. It ends when all have dropped their ends.
        let _ = ready.recv();
        Ok(())
    }

    /// Has all helpers take their frames from the kernel now.
    pub(super) fn take_over(&mut self) {
        for signal in self.signals.drain(..) {
            // One that has ended has stopped worker 0.
            let _ = signal.send(());
        }
    }

    /// Asks all helpers for their state, which comes there. Returns how many answer.
    pub(super) fn ask(&self, to: &Sender<WorkerReading>, detail: Detail) -> usize {
        let asked = self.helpers.iter().filter(|helper| {
            matches!(helper.state, State::Working(_)) && helper.inbox.leave(Task::Read(to.clone(), detail))
        });
        asked.count()
    }

    /// Returns the state of all helpers: those that work are asked, and waited for.
    pub(super) fn readings(&mut self) -> Vec<WorkerReading> {
        let (to, readings) = mpsc::channel();
        self.ask(&to, Detail::All);
        drop(to);
        let mut all: Vec<WorkerReading> = readings.into_iter().collect();
        for helper in &mut self.helpers {
            match &mut helper.state {
                State::Ready(worker) => all.push(worker.whole_reading()),
                State::Ended(reading) => all.push(reading.as_ref().clone()),
                State::Working(_) | State::Gone => {}
            }
        }
        all
    }

    /// Tells the helpers to send what is queued. They forward what still arrives, unshaped, until
    /// [`Helpers::halt`].
    pub(super) fn stop(&self) {
        self.helpers.iter().for_each(|helper| helper.stopper.stop());
    }

    /// Returns whether each helper has sent what was queued when it was stopped, or has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.helpers.iter().all(|helper| match &helper.state {
            State::Working(thread) => helper.ending.is_empty.load(Ordering::Acquire) || thread.is_finished(),
            _ => true,
        })
    }

    /// Has the helpers, which were stopped, take no more frames, and waits until they do so.
    pub(super) fn halt(&self) {
        for helper in &self.helpers {
            helper.ending.is_over.store(true, Ordering::Release);
        }
        for helper in &self.helpers {
            while let State::Working(thread) = &helper.state
                && !helper.ending.has_halted.load(Ordering::Acquire)
                && !thread.is_finished()
            {
                thread::yield_now();
            }
        }
    }

    /// Waits until the helpers, which were halted, have ended. Returns the first error of one.
    pub(super) fn join(&mut self) -> Result<(), LiveError> {
        let mut result = Ok(());
        for helper in &mut self.helpers {
            helper.state = match std::mem::replace(&mut helper.state, State::Gone) {
                State::Working(thread) => match thread.join() {
                    Ok(Ok(reading)) => reading.map_or(State::Gone, |reading| State::Ended(Box::new(reading))),
                    Ok(Err(error)) => {
                        result = result.and(Err(error));
                        State::Gone
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                },
                state => state,
            };
        }
        result
    }
}

/// Ends the threads that still work, without waiting for anything to be sent.
impl Drop for Helpers {
    fn drop(&mut self) {
        self.signals.clear();
        self.stop();
        for helper in &mut self.helpers {
            helper.ending.is_over.store(true, Ordering::Release);
            if let Some(Waiting { work, thread }) = helper.waiting.take() {
                drop(work);
                let _ = thread.join();
            }
            if let State::Working(thread) = std::mem::replace(&mut helper.state, State::Gone) {
                // Its error or panic was reported, or the run ends by another one.
                let _ = thread.join();
            }
        }
    }
}

impl Helper {
    fn prepare(lead: &Worker, slot: &WorkerSlot, randomness: &mut Randomness) -> Result<Helper, LiveError> {
        let plan = &lead.plan;
        let links = LinkChanges::subscribe().map_err(LiveError::io("watching the interfaces"))?;
        let port = |side: usize| {
            let end = &plan.ends[side];
            let found = Found::find(end, plan, None, None)?;
            let membership = slot.membership(side, lead.ports[side].pushes_tags());
            let prepared = found.prepare(plan, None, Some(membership.member()), None, None)?;
            Port::new(end, prepared, Some(membership))
        };
        let ports = [port(0)?, port(1)?];
        // AF_XDP has no further workers, so no interfaces share the stores.
        let [to_right, to_left] = backend::frame_stores(plan, lead.mtu(), [None, None])?;
        let mut direction = |side, store| Direction::of_plan(plan, side, store, randomness, Some(slot));
        let directions = [direction(0, to_right)?, direction(1, to_left)?];
        let (orders, inbox) = lead.orders.of_another()?;
        let (plan, news) = (Arc::clone(plan), Arc::clone(&lead.news));
        let worker = Worker::assemble(plan, slot.worker, links, ports, directions, orders, news)?;
        Ok(Helper {
            inbox,
            stopper: worker.stopper(),
            ending: Arc::default(),
            waiting: None,
            state: State::Ready(Box::new(worker)),
        })
    }
}

/// Stops worker 0 when another worker's thread ends, for whatever reason.
struct StopsLead(Stopper);

impl Drop for StopsLead {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Waiting {
    /// Starts the thread of worker `number`.
    fn start(number: usize, realtime: bool) -> Result<Waiting, LiveError> {
        let (work, received) = mpsc::channel::<Work>();
        let thread = thread::Builder::new()
            .name(format!("worker {number}"))
            .spawn(move || {
                // Without the priority, it forwards less punctually. The status says so.
                let realtime = realtime && set_realtime().is_ok();
                received.recv().ok().map(|work| work.run(realtime)).transpose()
            })
            .map_err(LiveError::io("starting a worker"))?;
        Ok(Waiting { work, thread })
    }
}

impl Work {
    /// Forwards until the helper is stopped, sends what is queued, and goes on until the kernel has its
    /// frames back. Returns what the helper has done.
    fn run(self, realtime: bool) -> Result<WorkerReading, LiveError> {
        let Work {
            mut worker,
            stops: _stops,
            ending,
            kept,
            confinement,
            preparing,
            signal,
        } = self;
        privileges::keep_only(&kept)?;
        if let Some(Confinement { sandbox, confined }) = confinement
            && sandbox.enter() != confined
        {
            return Err(LiveError::Unconfined);
        }
        worker.realtime = realtime;
        drop(preparing);
        if signal.recv().is_err() {
            // The run has ended before it began.
            return Ok(worker.whole_reading());
        }
        worker.take_over()?;
        worker.begin()?;
        while !worker.turn()?.stop {}
        worker.end_changes();
        let end = clock::now() + super::wind_up::LONGEST;
        worker.empty(end)?;
        ending.is_empty.store(true, Ordering::Release);
        while !ending.is_over.load(Ordering::Acquire) {
            worker.empty(end)?;
            // Worker 0 may have to share this processor. A real-time thread gives way to its equals only so.
            thread::yield_now();
        }
        ending.has_halted.store(true, Ordering::Release);
        Ok(worker.whole_reading())
    }
}

impl Bridge {
    /// Confines the calling thread, and the threads that it starts afterwards, for the rest of their lives.
    /// The threads of further workers follow before they forward.
    pub(crate) fn confine(&mut self, sandbox: Sandbox) -> Confined {
        let confined = sandbox.enter();
        if let Some(helpers) = &mut self.helpers {
            helpers.confinement = Some(Confinement {
                sandbox: Arc::new(sandbox),
                confined: confined.clone(),
            });
        }
        confined
    }

    /// Sends everything until no worker has anything left, but not past `end`.
    pub(super) fn empty_all(&mut self, end: Time) -> Result<(), LiveError> {
        if let Some(helpers) = &self.helpers {
            helpers.stop();
        }
        loop {
            let is_last = self.helpers.as_ref().is_none_or(Helpers::is_empty) || clock::now() >= end;
            self.worker.empty(end)?;
            if is_last {
                return Ok(());
            }
            thread::yield_now();
        }
    }

    /// Has the further workers take no more frames: the kernel gets them back now.
    pub(super) fn halt_others(&self) {
        if let Some(helpers) = &self.helpers {
            helpers.halt();
        }
    }

    /// Ends the further workers, which were halted.
    pub(super) fn end_others(&mut self) -> Result<(), LiveError> {
        self.helpers.as_mut().map_or(Ok(()), Helpers::join)
    }
}
