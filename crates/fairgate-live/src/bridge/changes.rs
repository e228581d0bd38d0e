//! Changes of the trees while frames are forwarded.
//!
//! A [`Changer`] belongs to other threads. It checks a configuration, plans the change and builds the new
//! disciplines. The forwarding thread only applies the plan, between two turns, and hands back what was
//! replaced: memory is released on the changer's thread, too.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairgate::Time;
use fairgate_config::{Change, ChangeError, Problem, Replaced};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::Bridge;
use crate::clock;
use crate::config::Plan;
use crate::error::{LiveError, ReloadError};
use crate::fitness;
use crate::status::ChangesStatus;

/// Changes a running bridge from other threads. Copies change the same bridge, one after the other.
#[derive(Clone)]
pub struct Changer(Arc<Shared>);

struct Shared {
    /// The configuration that is running. It is locked for the whole of a change.
    plan: Mutex<Arc<Plan>>,
    orders: Mutex<Sender<Order>>,
    wanted: Arc<EventFd>,
    mtu: Arc<AtomicUsize>,
    seed: u64,
    tally: Tally,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// For how long nothing was forwarded.
    pub pause: Duration,
    /// Packets for which a new limit had no room, or that no class takes any more.
    pub dropped: u64,
}

/// A planned change, for the forwarding thread.
struct Order {
    plan: Arc<Plan>,
    /// The change of each direction.
    changes: [Change; 2],
    reply: Sender<Reply>,
}

/// What the forwarding thread has done.
struct Reply {
    result: Result<Changed, (usize, ChangeError)>,
    /// Dropped by the receiver.
    _replaced: Vec<Replaced>,
    _plan: Arc<Plan>,
}

/// The forwarding thread's end.
pub(super) struct Orders {
    /// `None` after the last change.
    received: Option<Receiver<Order>>,
    pub(super) wanted: Arc<EventFd>,
    mtu: Arc<AtomicUsize>,
    changer: Changer,
}

impl Orders {
    pub(super) fn new(plan: Arc<Plan>, mtu: usize, seed: u64) -> Result<Orders, LiveError> {
        let wanted = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LiveError::system("preparing the event loop"))?;
        let (orders, received) = mpsc::channel();
        let (wanted, mtu) = (Arc::new(wanted), Arc::new(AtomicUsize::new(mtu)));
        let changer = Changer(Arc::new(Shared {
            plan: Mutex::new(plan),
            orders: Mutex::new(orders),
            wanted: Arc::clone(&wanted),
            mtu: Arc::clone(&mtu),
            seed,
            tally: Tally::default(),
        }));
        Ok(Orders {
            received: Some(received),
            wanted,
            mtu,
            changer,
        })
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

    /// Notes that longer frames are forwarded from now on.
    pub(super) fn set_mtu(&self, mtu: usize) {
        self.mtu.store(mtu, Ordering::Release);
    }
}

impl Changer {
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
        let mut running = self.0.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = &self.0.tally;
        let changed = new(&running).map(Arc::new).and_then(|plan| {
            let changed = self.apply(&running, &plan)?;
            *running = plan;
            Ok(changed)
        });
        match &changed {
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
        fitness::warnings(&self.plan().queues, self.0.mtu.load(Ordering::Acquire))
    }

    /// Checks and plans the change, and waits until it is applied.
    fn apply(&self, running: &Plan, plan: &Arc<Plan>) -> Result<Changed, ReloadError> {
        if let Some(key) = running.fixed_difference(plan) {
            return Err(ReloadError::Fixed { key });
        }
        fitness::check(&plan.queues, self.0.mtu.load(Ordering::Acquire))?;
        let of_direction = |(from, source)| refused(plan, from, source);
        let change = |from: usize| {
            let seed = self.0.seed.rotate_left(from as u32 + 1);
            let change = running.queues[from].change_to(&plan.queues[from], seed);
            change.map_err(|error| of_direction((from, error)))
        };
        let (reply, replies) = mpsc::channel();
        let order = Order {
            plan: Arc::clone(plan),
            changes: [change(0)?, change(1)?],
            reply,
        };
        let orders = self.0.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.send(order).map_err(|_| ReloadError::Ended)?;
        drop(orders);
        self.0.wanted.write(1).map_err(|_| ReloadError::Ended)?;
        let reply = replies.recv().map_err(|_| ReloadError::Ended)?;
        reply.result.map_err(of_direction)
    }
}

impl std::fmt::Debug for Changer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changer").finish_non_exhaustive()
    }
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
        self.orders.changer.clone()
    }

    /// Ends all changes: who waits for one gets an error. Call it when [`Bridge::run`] is not called any
    /// more.
    pub fn end_changes(&mut self) {
        self.orders.received = None;
    }

    /// Applies the changes that were ordered.
    #[cold]
    pub(super) fn take_orders(&mut self) {
        let _ = self.orders.wanted.read();
        while let Some(Ok(order)) = self.orders.received.as_ref().map(Receiver::try_recv) {
            self.carry_out(order);
        }
    }

    fn carry_out(&mut self, order: Order) {
        let begin = clock::now();
        let dropped = self.dropped();
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
            let back = order.plan.queues[0].change_to(&self.plan.queues[0], 0);
            let back = back.expect("the tree ran before");
            let old = self.change(0, back, begin).expect("the tree ran before");
            replaced.push(old);
        }
        let mut plan = order.plan;
        let result = result.map(|()| {
            std::mem::swap(&mut self.plan, &mut plan);
            Changed {
                pause: Duration::from_nanos(clock::now().nanos_since(begin)),
                dropped: self.dropped() - dropped,
            }
        });
        // What was read of the trees may not fit the changed ones.
        self.reading = self.reading.take().map(|_| self.start_reading());
        // The changer may have gone: it does not care then.
        let _ = order.reply.send(Reply {
            result,
            _replaced: replaced,
            _plan: plan,
        });
    }

    /// Changes the tree of a direction.
    fn change(&mut self, from: usize, change: Change, now: Time) -> Result<Replaced, ChangeError> {
        let direction = &mut self.directions[from];
        let now = direction.tree_time(now);
        let result = direction
            .link
            .change_root(|root, pool| change.apply(root, now, pool));
        direction.settle(now);
        result
    }

    /// Returns the number of packets that both trees have dropped.
    fn dropped(&self) -> u64 {
        let dropped = |from: usize| self.directions[from].link.root().statistics().dropped.packets;
        dropped(0) + dropped(1)
    }
}
