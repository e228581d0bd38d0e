//! Changes of the trees while frames are forwarded.
//!
//! A [`Changer`] belongs to other threads. It checks a configuration, plans the change and builds the new
//! disciplines. The forwarding thread only applies the plan, between two turns, and hands back what was
//! replaced: memory is released on the changer's thread, too.
//!
//! If several workers forward, each gets a plan for its own trees. If one of them refuses, the others go
//! back: the change is made in all of them or in none.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairgate::Time;
use fairgate_config::{Change, ChangeError, Memory, Problem, Replaced};
use fairgate_run_api::ChangesStatus;
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::Bridge;
use super::worker::Worker;
use crate::clock;
use crate::config::Plan;
use crate::error::{LiveError, ReloadError};
use crate::fanout::Fanout;
use crate::fitness;
use crate::status::{Board, Estimators, WorkerReading};

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

/// What the changes so far have done.
#[derive(Default)]
struct Tally {
    applied: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    longest_pause: AtomicU64,
}

/// What a change has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// For how long nothing was forwarded.
    pub pause: Duration,
    /// Packets for which a new limit had no room, or that no class takes any more.
    pub dropped: u64,
    /// The revision of the trees from now on.
    pub revision: u64,
    /// The number of changes by hand that this one has replaced, because the trees are read from a file.
    pub undone: u64,
}

impl Changed {
    /// Returns a change that cost nothing, and led to this revision.
    pub fn of(revision: u64) -> Changed {
        Changed {
            revision,
            ..Changed::default()
        }
    }
}

/// A planned change, for a forwarding thread.
pub(super) struct Order {
    plan: Arc<Plan>,
    /// The change of each direction.
    changes: [Change; 2],
    /// The estimators of the changed trees.
    estimators: [Estimators; 2],
    /// Whether each changed tree takes super-packets, and whether packets of the direction leave at their
    /// times. It takes long to find that out for thousands of classes.
    takes_super_packets: [bool; 2],
    keeps_times: [bool; 2],
    kind: Kind,
    reply: Sender<Reply>,
}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Anything, for somebody who has asked for it.
    Trees,
    /// The rate at the root of a tree, because it follows the line. It is not counted as a change, and the
    /// revision stays.
    Rate,
}

/// What a forwarding thread does for others, between two turns.
pub(super) enum Task {
    Change(Box<Order>),
    /// Reads its state for worker 0.
    Read(Sender<WorkerReading>),
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
    result: Result<Changed, (usize, ChangeError)>,
    /// Dropped by the receiver.
    _replaced: Vec<Replaced>,
    _estimators: [Estimators; 2],
    _plan: Arc<Plan>,
}

/// The forwarding thread's end.
pub(super) struct Orders {
    /// `None` after the last change.
    received: Option<Receiver<Task>>,
    pub(super) wanted: Arc<EventFd>,
    mtu: Arc<AtomicUsize>,
    changer: Changer,
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
        let tally = &self.changer.0.tally;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ChangesStatus {
            applied: count(&tally.applied),
            refused: count(&tally.refused),
            dropped: count(&tally.dropped),
            longest_pause_us: count(&tally.longest_pause) as f64 / 1e3,
        }
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
        let tally = &self.0.tally;
        let changed = new(&running).and_then(|mut plan| {
            plan.revision = running.revision + u64::from(kind == Kind::Trees);
            plan.divide(Some(&running)).map_err(ReloadError::from)?;
            let plan = Arc::new(plan);
            let mut changed = self.apply(kind, &running, &plan)?;
            changed.revision = plan.revision;
            *running = plan;
            Ok(changed)
        });
        match &changed {
            _ if kind == Kind::Rate => {}
            Ok(changed) => {
                let pause = changed.pause.as_nanos() as u64;
                tally.longest_pause.fetch_max(pause, Ordering::Relaxed);
                tally.dropped.fetch_add(changed.dropped, Ordering::Relaxed);
                tally.applied.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => drop(tally.refused.fetch_add(1, Ordering::Relaxed)),
        }
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
                .change_to(plan.tree_of(from, worker), seed);
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

impl Worker {
    /// Ends all changes.
    pub(super) fn end_changes(&mut self) {
        self.orders.received = None;
    }

    /// Does what other threads have ordered.
    #[cold]
    pub(super) fn take_orders(&mut self) {
        let _ = self.orders.wanted.read();
        while let Some(Ok(task)) = self.orders.received.as_ref().map(Receiver::try_recv) {
            match task {
                Task::Change(order) => self.carry_out(*order),
                Task::Read(to) => self.read_for(to),
                // Who asked may have stopped waiting.
                Task::Beat(to) => drop(to.send(())),
                Task::Count(to) => drop(to.send(self.left_trees())),
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        let begin = clock::now();
        for (side, direction) in self.directions.iter_mut().enumerate() {
            direction.before_change(order.takes_super_packets[side], begin);
        }
        // From here on, what is dropped is dropped by the change.
        let dropped = self.dropped();
        self.hold_estimators();
        let mut replaced = Vec::with_capacity(4);
        let mut result = Ok(());
        for (from, change) in order.changes.into_iter().enumerate() {
            match self.change(from, change, begin) {
                Ok(old) => replaced.push(old),
                Err(error) => {
                    result = Err((from, error));
                    break;
                }
            }
        }
        if let (Err((1, _)), Some(_)) = (&result, replaced.first()) {
            // A discipline has refused what it accepted when it rehearsed: the other direction goes back.
            let [new, old] = [&order.plan, &self.plan].map(|plan| plan.tree_of(0, self.number));
            let back = new.change_to(old, 0);
            let back = back.expect("the tree ran before");
            let old = self.change(0, back, begin).expect("the tree ran before");
            replaced.push(old);
        }
        let mut estimators = order.estimators;
        self.resume_estimators(result.is_ok().then_some(&mut estimators), begin);
        let mut plan = order.plan;
        let result = result.map(|()| {
            for (side, direction) in self.directions.iter_mut().enumerate() {
                direction.set_shares(plan.limit(side), plan.division(side));
                direction.set_super_packets(order.takes_super_packets[side]);
                direction.set_times(order.keeps_times[side]);
            }
            std::mem::swap(&mut self.plan, &mut plan);
            Changed {
                pause: Duration::from_nanos(clock::now().nanos_since(begin)),
                dropped: self.dropped() - dropped,
                ..Changed::default()
            }
        });
        // What was read of the trees may not fit the changed ones. Rates that follow a line change too often
        // for this: the reading of a large tree would never end. They leave all classes where they are.
        if order.kind == Kind::Trees {
            self.read_anew();
            self.happened.change = true;
        }
        // The changer may have gone: it does not care then.
        let _ = order.reply.send(Reply {
            result,
            _replaced: replaced,
            _estimators: estimators,
            _plan: plan,
        });
    }

    /// Changes the tree of a direction.
    fn change(&mut self, from: usize, change: Change, now: Time) -> Result<Replaced, ChangeError> {
        let direction = &mut self.directions[from];
        let now = direction.tree_time(now);
        let result = direction
            .link
            .change_root_in_part(change.reads_acknowledgements(), |root, pool| {
                change.apply(root, now, pool)
            });
        direction.settle(now);
        result
    }

    /// Returns how many bytes have left each tree.
    fn left_trees(&self) -> [u64; 2] {
        let left = |from: usize| self.directions[from].link.root().statistics().dequeued.bytes;
        [left(0), left(1)]
    }

    /// Returns the number of packets that both trees have dropped.
    fn dropped(&self) -> u64 {
        let dropped = |from: usize| self.directions[from].link.root().statistics().dropped.packets;
        dropped(0) + dropped(1)
    }
}
