//! Changes of the trees while frames are forwarded.
//!
//! A [`Changer`] belongs to other threads. It checks a configuration, plans the change and builds the new
//! disciplines. The forwarding thread only applies the plan, between two turns, and hands back what was
//! replaced: memory is released on the changer's thread, too.
//!
//! If several workers forward, each gets a plan for its own trees. If one of them refuses, the others go
//! back: the change is made in all of them or in none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairgate_config::{Change, ChangeError, Memory, Problem, Replaced};
use fairgate_run_api::{ChangesStatus, Detail};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::Bridge;
use crate::config::Plan;
use crate::error::{LiveError, ReloadError};
use crate::fanout::Fanout;
use crate::fitness;
use crate::plane::{Changed, Kind};
use crate::status::{Board, Estimators, WorkerReading};
use crate::tally::Tally;

/// Changes a running bridge from other threads. Copies change the same bridge, one after the other.
#[derive(Clone)]
pub struct Changer(Arc<Shared>);

struct Shared {
    /// The configuration that is running. It is locked for the whole of a change.
    plan: Mutex<Arc<Plan>>,
    /// The forwarding threads, in the order of the workers.
    workers: Mutex<Vec<Inbox>>,
    mtu: Arc<AtomicUsize>,
    seed: u64,
    /// Where the kernel divides frames among several workers.
    fanouts: Option<[Arc<Fanout>; 2]>,
    tally: Tally,
    /// What the follower of the line says.
    board: Board,
    memory: Memory,
}

/// A planned change, for a forwarding thread.
pub(super) struct Order {
    pub(super) plan: Arc<Plan>,
    /// The change of each direction.
    pub(super) changes: [Change; 2],
    /// The estimators of the changed trees.
    pub(super) estimators: [Estimators; 2],
    /// Whether each changed tree takes super-packets, and whether packets of the direction leave at their
    /// times. It takes long to find that out for thousands of classes.
    pub(super) takes_super_packets: [bool; 2],
    pub(super) keeps_times: [bool; 2],
    pub(super) kind: Kind,
    pub(super) reply: Sender<Reply>,
}

/// What a forwarding thread does for others, between two turns.
pub(super) enum Task {
    Change(Box<Order>),
    /// Reads as much of its state for worker 0.
    Read(Sender<WorkerReading>, Detail),
    /// Answers that it is there.
    Beat(Sender<()>),
    /// Tells how many bytes have left its trees.
    Count(Sender<[u64; 2]>),
}

/// Where other threads leave tasks for a forwarding thread.
#[derive(Clone)]
pub(super) struct Inbox {
    tasks: Sender<Task>,
    wanted: Arc<EventFd>,
}

impl Inbox {
    /// Leaves a task. False if the thread takes no more.
    pub(super) fn leave(&self, task: Task) -> bool {
        self.tasks.send(task).is_ok() && self.wanted.write(1).is_ok()
    }
}

/// What a forwarding thread has done.
pub(super) struct Reply {
    pub(super) result: Result<Changed, (usize, ChangeError)>,
    /// Dropped by the receiver.
    pub(super) _replaced: Vec<Replaced>,
    pub(super) _estimators: [Estimators; 2],
    pub(super) _plan: Arc<Plan>,
}

/// The forwarding thread's end.
pub(super) struct Orders {
    /// `None` after the last change.
    pub(super) received: Option<Receiver<Task>>,
    pub(super) wanted: Arc<EventFd>,
    pub(super) mtu: Arc<AtomicUsize>,
    pub(super) changer: Changer,
}

impl Orders {
    /// `fanouts` divide the frames of several workers.
    pub(super) fn new(
        plan: Arc<Plan>,
        mtu: usize,
        seed: u64,
        fanouts: Option<[Arc<Fanout>; 2]>,
    ) -> Result<Orders, LiveError> {
        Changer(Arc::new(Shared {
            plan: Mutex::new(plan),
            workers: Mutex::default(),
            mtu: Arc::new(AtomicUsize::new(mtu)),
            seed,
            fanouts,
            tally: Tally::default(),
            board: Board::default(),
            memory: Memory::watch(),
        }))
        .orders()
    }

    /// Returns the orders of another worker of the same run, and where tasks are left for it.
    pub(super) fn of_another(&self) -> Result<(Orders, Inbox), LiveError> {
        let orders = self.changer.orders()?;
        let inbox = self
            .changer
            .lock_workers()
            .last()
            .expect("it was just added")
            .clone();
        Ok((orders, inbox))
    }

    /// Returns what the changes so far have done.
    pub(super) fn tally(&self) -> ChangesStatus {
        self.changer.0.tally.status()
    }

    /// Returns where the follower of the line says what it does.
    pub(super) fn board(&self) -> Board {
        self.changer.board().clone()
    }

    /// Notes that longer frames are forwarded from now on.
    pub(super) fn set_mtu(&self, mtu: usize) {
        self.mtu.store(mtu, Ordering::Release);
    }
}

impl Changer {
    /// Adds a forwarding thread, and returns its end.
    fn orders(&self) -> Result<Orders, LiveError> {
        let wanted = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LiveError::system("preparing the event loop"))?;
        let wanted = Arc::new(wanted);
        let (tasks, received) = mpsc::channel();
        self.lock_workers().push(Inbox {
            tasks,
            wanted: Arc::clone(&wanted),
        });
        Ok(Orders {
            received: Some(received),
            wanted,
            mtu: Arc::clone(&self.0.mtu),
            changer: self.clone(),
        })
    }

    fn lock_workers(&self) -> MutexGuard<'_, Vec<Inbox>> {
        self.0.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where tasks are left for the forwarding threads, in the order of the workers.
    pub(super) fn workers(&self) -> Vec<Inbox> {
        self.lock_workers().clone()
    }

    /// Returns where the follower of the line says what it does.
    pub(crate) fn board(&self) -> &Board {
        &self.0.board
    }

    /// Returns the configuration that is running.
    pub fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.0.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the trees to those of `plan`, whatever they are. Packets stay queued, as of
    /// [`Spec::change_to`](fairgate_config::Spec::change_to). Returns when the change is applied.
    ///
    /// # Errors
    /// Fails if a setting differs that is fixed, if a tree does not suit the interfaces, or if the bridge
    /// does not run. Then nothing is changed.
    pub fn reload(&self, plan: Plan) -> Result<Changed, ReloadError> {
        self.update(|_| Ok(plan))
    }

    /// Changes the trees to those of the plan that `new` makes from the running one. No other change comes in
    /// between.
    ///
    /// # Errors
    /// Fails as [`reload`](Changer::reload) does, or with the error of `new`.
    pub fn update<E: From<ReloadError>>(
        &self,
        new: impl FnOnce(&Plan) -> Result<Plan, E>,
    ) -> Result<Changed, E> {
        self.change(Kind::Trees, new)
    }

    /// Does the same for a change of this kind.
    pub(crate) fn change<E: From<ReloadError>>(
        &self,
        kind: Kind,
        new: impl FnOnce(&Plan) -> Result<Plan, E>,
    ) -> Result<Changed, E> {
        let mut running = self.0.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = new(&running).and_then(|mut plan| {
            plan.revision = running.revision + u64::from(kind == Kind::Trees);
            plan.divide(Some(&running)).map_err(ReloadError::from)?;
            let plan = Arc::new(plan);
            let mut changed = self.apply(kind, &running, &plan)?;
            changed.revision = plan.revision;
            *running = plan;
            Ok(changed)
        });
        self.0.tally.note(kind, &changed);
        changed
    }

    /// Returns the parts of the running trees that accept full-sized frames but drop full-sized frames with a
    /// VLAN tag.
    pub fn warnings(&self) -> Vec<Problem> {
        fitness::warnings(&self.plan(), self.0.mtu.load(Ordering::Acquire))
    }

    /// Checks and plans the change, and waits until it is applied.
    fn apply(&self, kind: Kind, running: &Arc<Plan>, plan: &Arc<Plan>) -> Result<Changed, ReloadError> {
        if let Some(key) = running.fixed_difference(plan) {
            return Err(ReloadError::Fixed { key });
        }
        fitness::check(plan, self.0.mtu.load(Ordering::Acquire))?;
        if kind == Kind::Trees {
            plan.fits(Some(running), self.0.memory.available())?;
        }
        let workers = self.workers();
        let planned = (0..workers.len()).map(|worker| self.order(kind, worker, running, plan));
        let planned = planned.collect::<Result<Vec<_>, ReloadError>>()?;
        self.divide_frames(plan)?;
        let results = carried_out(&workers, planned)?;
        let refusal = results.iter().find_map(|result| result.as_ref().err().cloned());
        if let Some((from, source)) = refusal {
            self.divide_frames(running)?;
            // A discipline has refused what it accepted when it rehearsed.
            let changed = workers.iter().zip(0..).zip(&results);
            let changed =
                changed.filter_map(|((inbox, worker), result)| result.as_ref().ok().map(|_| (inbox, worker)));
            for (inbox, worker) in changed {
                let back = self.order(kind, worker, plan, running)?;
                carried_out(std::slice::from_ref(inbox), vec![back])?;
            }
            return Err(refused(plan, from, source));
        }
        let done = results.into_iter().filter_map(Result::ok);
        Ok(done.fold(Changed::default(), |all, one| Changed {
            pause: all.pause.max(one.pause),
            dropped: all.dropped + one.dropped,
            ..all
        }))
    }

    /// Has the kernel divide frames by the classes of this plan. A frame that comes to the wrong worker
    /// meanwhile goes to the default class, like one of an unknown address.
    fn divide_frames(&self, plan: &Plan) -> Result<(), ReloadError> {
        let Some(fanouts) = &self.0.fanouts else {
            return Ok(());
        };
        for (side, fanout) in fanouts.iter().enumerate() {
            if let Some(division) = plan.division(side) {
                let interface = plan.ends[side].name().to_owned();
                fanout
                    .follow(division)
                    .map_err(|source| ReloadError::Divide { interface, source })?;
            }
        }
        Ok(())
    }

    /// Plans the change of a worker's trees. Returns the order, and where its reply comes.
    fn order(
        &self,
        kind: Kind,
        worker: usize,
        running: &Plan,
        plan: &Arc<Plan>,
    ) -> Result<(Order, Receiver<Reply>), ReloadError> {
        let change = |from: usize| {
            let seed = self.0.seed.rotate_left((2 * worker + from + 1) as u32 % 64);
            let change = running
                .tree_of(from, worker)
                .change_for_refills(plan.tree_of(from, worker), seed);
            change.map_err(|error| refused(plan, from, error))
        };
        let (reply, replies) = mpsc::channel();
        let order = Order {
            plan: Arc::clone(plan),
            changes: [change(0)?, change(1)?],
            estimators: [0, 1].map(|side| Estimators::of(plan.tree_of(side, worker))),
            takes_super_packets: [0, 1].map(|side| plan.takes_super_packets(side)),
            keeps_times: [0, 1].map(|side| plan.keeps_times(side)),
            kind,
            reply,
        };
        Ok((order, replies))
    }
}

impl std::fmt::Debug for Changer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changer").finish_non_exhaustive()
    }
}

/// What became of a worker's change: what it did, or the direction that refused it.
type Outcome = Result<Changed, (usize, ChangeError)>;

/// Has each worker carry out its order at the same time, and waits for all.
fn carried_out(
    workers: &[Inbox],
    orders: Vec<(Order, Receiver<Reply>)>,
) -> Result<Vec<Outcome>, ReloadError> {
    let mut replies = Vec::with_capacity(orders.len());
    for (inbox, (order, reply)) in workers.iter().zip(orders) {
        if !inbox.leave(Task::Change(Box::new(order))) {
            return Err(ReloadError::Ended);
        }
        replies.push(reply);
    }
    // What was replaced is dropped here, on a thread that forwards nothing.
    let results = replies
        .into_iter()
        .map(|reply| Ok(reply.recv().map_err(|_| ReloadError::Ended)?.result));
    results.collect()
}

fn refused(plan: &Plan, from: usize, source: ChangeError) -> ReloadError {
    ReloadError::Tree {
        from: plan.ends[from].name().to_owned(),
        source: Box::new(source),
    }
}

impl Bridge {
    /// Returns a handle by which other threads change the trees.
    pub fn changer(&self) -> Changer {
        self.worker.orders.changer.clone()
    }

    /// Ends all changes: who waits for one gets an error. Call it when [`Bridge::run`] is not called any
    /// more.
    pub fn end_changes(&mut self) {
        self.worker.end_changes();
    }
}
