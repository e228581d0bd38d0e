//! The reservations of a run: a table for each direction, kept in step with its tree, and a thread that
//! withdraws what nobody refreshes.
//!
//! All changes of the trees pass here, because a change must not take away what is reserved. The table of a
//! direction and its tree change together or not at all: the table is locked until the tree is running. The
//! same thread undoes a change that nobody confirms.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_config::{Registry, Spec};
use fairgate_live::{Changed, Kind, Plan, Plane, RateRefused, ReloadError, clock};
use fairgate_run_api::Audit;

use super::changes::{Refusal as NotMade, made, outcome};
use super::unconfirmed::Unconfirmed;
use crate::reserve::{Refusal, Reservations, Terms};

/// The lifetimes that a reservation may have.
pub(crate) const LIFETIMES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(1 << 32);

/// Changes the trees and the reservations of a running bridge. Copies belong to the same bridge.
#[derive(Clone)]
pub struct Reserver(Arc<Shared>);

struct Shared {
    plane: Arc<dyn Plane>,
    registry: Registry,
    audit: Audit,
    /// The reservations of each direction. Locked for the whole of a change.
    tables: Mutex<[Reservations; 2]>,
    /// The change that waits for its confirmation. It is set with the tables locked, and is itself locked for
    /// a moment only: a status does not wait for a change.
    unconfirmed: Mutex<Option<Unconfirmed>>,
    /// The number of changes by hand since the trees were read from the file.
    edits: AtomicU64,
    bell: Mutex<Bell>,
    rung: Condvar,
}

/// What the thread that ends reservations waits for. It has a lock of its own: a run that ends must not
/// wait for a change.
#[derive(Default)]
struct Bell {
    /// How often something was changed that may end, or when.
    orders: u64,
    has_ended: bool,
}

/// What is done with a reservation.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Add(Terms),
    Change(Terms),
    Withdraw,
    Refresh,
}

/// Why a change is refused.
#[derive(Debug)]
pub(crate) enum ReserveError {
    Refused(Refusal),
    Reload(ReloadError),
}

impl From<ReloadError> for ReserveError {
    fn from(error: ReloadError) -> ReserveError {
        ReserveError::Reload(error)
    }
}

impl From<Refusal> for ReserveError {
    fn from(refusal: Refusal) -> ReserveError {
        ReserveError::Refused(refusal)
    }
}

impl Reserver {
    /// Returns a reserver for the trees of a plane.
    pub(super) fn new(plane: Arc<dyn Plane>, registry: Registry, audit: Audit) -> Reserver {
        let longest = plane.longest();
        Reserver(Arc::new(Shared {
            plane,
            registry,
            audit,
            tables: Mutex::new([Reservations::new(longest), Reservations::new(longest)]),
            unconfirmed: Mutex::new(None),
            edits: AtomicU64::new(0),
            bell: Mutex::default(),
            rung: Condvar::new(),
        }))
    }

    /// Returns the disciplines that changes may name.
    pub(crate) fn registry(&self) -> &Registry {
        &self.0.registry
    }

    fn lock(&self) -> MutexGuard<'_, [Reservations; 2]> {
        self.0.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread that ends reservations.
    fn ring(&self, change: impl FnOnce(&mut Bell)) {
        change(&mut self.0.bell.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.rung.notify_all();
    }

    /// Returns the longest packet of the links, bytes.
    pub(crate) fn longest(&self) -> u32 {
        self.lock()[0].longest()
    }

    /// Returns the reservations of a direction.
    pub(crate) fn of(&self, from: usize) -> Reservations {
        self.lock()[from].clone()
    }

    /// Changes the trees to those of the plan that `new` makes from the running one, as
    /// [`Plane::change`] does. Reservations are put into the new trees.
    ///
    /// # Errors
    /// As of [`Plane::change`], or if the reservations can't be kept in the new trees, or if a change waits
    /// for its confirmation.
    pub fn reload<E: From<ReloadError> + From<Refusal>>(
        &self,
        new: impl FnOnce(&Plan) -> Result<Plan, E>,
    ) -> Result<Changed, E> {
        let mut tables = self.free_to_change()?;
        let mut changed = self.update(&mut tables, None, Kind::Trees, new, |table, _, tree| {
            table.moved(tree, self.registry())
        })?;
        changed.undone = self.0.edits.swap(0, Ordering::Relaxed);
        Ok(changed)
    }

    /// Does the same for a change that must leave the classes and filters of reservations as they are. If the
    /// trees have another revision than the expected one, nothing is changed. `confirm_within` is the time in
    /// which the change must be [confirmed](Reserver::confirm), and what it is, in words.
    pub(crate) fn edit<E: From<ReloadError> + From<Refusal>>(
        &self,
        expected: Option<u64>,
        confirm_within: Option<(Duration, String)>,
        new: impl FnOnce(&Plan) -> Result<Plan, E>,
    ) -> Result<Changed, E> {
        let mut tables = self.free_to_change()?;
        let before = self.0.plane.plan().queues.clone();
        let changed = self.update(&mut tables, expected, Kind::Trees, new, self.unmoved())?;
        self.0.edits.fetch_add(1, Ordering::Relaxed);
        *self.waiting() = confirm_within.map(|(within, what)| Unconfirmed {
            before,
            deadline: clock::now() + within,
            what,
        });
        drop(tables);
        self.ring(|bell| bell.orders += 1);
        Ok(changed)
    }

    /// Keeps the change that waits for its confirmation. Returns whether there is one.
    pub(crate) fn confirm(&self) -> bool {
        let was_waiting = self.waiting().take().is_some();
        // Reservations that have ended meanwhile.
        self.ring(|bell| bell.orders += 1);
        was_waiting
    }

    /// Returns the time that is left to confirm a change, if one waits for it.
    pub(crate) fn unconfirmed(&self) -> Option<Duration> {
        let waiting = self.waiting();
        Some(waiting.as_ref()?.left(clock::now()))
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Unconfirmed>> {
        self.0.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the trees can be changed. Refuses if a change waits for its confirmation.
    fn free_to_change(&self) -> Result<MutexGuard<'_, [Reservations; 2]>, Refusal> {
        let tables = self.lock();
        match self.unconfirmed() {
            None => Ok(tables),
            Some(left) => Err(Refusal::Unconfirmed { left }),
        }
    }

    /// Undoes the change that has waited for its confirmation too long. Returns when that is, if it still
    /// waits.
    fn undo_unconfirmed(&self, tables: &mut [Reservations; 2], now: Time) -> Option<Time> {
        let waits_until = self.waiting().as_ref()?.deadline;
        if waits_until > now {
            return Some(waits_until);
        }
        let Unconfirmed { before, what, .. } = self.waiting().take()?;
        let old = |plan: &Plan| {
            let mut plan = plan.clone();
            plan.queues = before;
            Ok::<Plan, NotMade>(plan)
        };
        let undone = made(self.update(tables, None, Kind::Trees, old, self.unmoved()));
        if undone.is_ok() {
            self.0.edits.fetch_sub(1, Ordering::Relaxed);
        }
        let what = format!("undo what nobody has confirmed: {what}");
        self.0.audit.note("the run", &what, outcome(&undone));
        None
    }

    /// Gives the tree of a direction a rate that follows the line. Its reservations stay as they are.
    ///
    /// # Errors
    /// As of [`Plane::change`], or if the tree can't have this rate.
    pub fn set_rate(&self, side: usize, rate: Rate) -> Result<Changed, RateRefused> {
        let new = |plan: &Plan| plan.with_rate(side, rate, self.registry());
        self.update(&mut self.lock(), None, Kind::Rate, new, self.unmoved())
    }

    /// Returns what keeps the reservations of a tree that must have their classes and filters as they are.
    fn unmoved(&self) -> impl Fn(&Reservations, &Spec, &Spec) -> Result<(Reservations, Spec), Refusal> {
        |table, old, tree| table.after(old, tree, self.registry())
    }

    fn update<E: From<ReloadError> + From<Refusal>>(
        &self,
        tables: &mut [Reservations; 2],
        expected: Option<u64>,
        kind: Kind,
        new: impl FnOnce(&Plan) -> Result<Plan, E>,
        keep: impl Fn(&Reservations, &Spec, &Spec) -> Result<(Reservations, Spec), Refusal>,
    ) -> Result<Changed, E> {
        let mut directions = tables.clone();
        let changed = change(&*self.0.plane, kind, |running| {
            check_revision(running, expected)?;
            let mut plan = new(running)?;
            for (from, table) in directions.iter_mut().enumerate() {
                let (old, tree) = (&running.queues[from], &plan.queues[from]);
                (*table, plan.queues[from]) = keep(table, old, tree).map_err(E::from)?;
            }
            Ok::<Plan, E>(plan)
        })?;
        *tables = directions;
        Ok(changed)
    }

    /// Carries out an order about the reservation `name` of the direction `from`. Returns the reservations
    /// and the revision of the trees afterwards. If the trees have another revision than the expected one,
    /// nothing is done.
    pub(crate) fn carry_out(
        &self,
        from: usize,
        name: &str,
        order: Order,
        expected: Option<u64>,
    ) -> Result<(Reservations, u64), ReserveError> {
        let now = clock::now();
        let mut tables = match order {
            Order::Refresh => self.lock(),
            _ => self.free_to_change()?,
        };
        let table = &mut tables[from];
        if let Order::Refresh = order {
            // All changes of the trees lock the tables.
            check_revision(&self.0.plane.plan(), expected)?;
            table.refresh(name, now)?;
        } else {
            let registry = self.registry();
            *table = self.replace(from, expected, |tree| match order {
                Order::Add(terms) => table.add(tree, registry, name, terms, now),
                Order::Change(terms) => table.change(tree, registry, name, terms, now),
                Order::Withdraw => table.withdraw(tree, registry, name),
                Order::Refresh => unreachable!("it changes no tree"),
            })?;
        }
        let table = table.clone();
        let revision = self.0.plane.plan().revision;
        drop(tables);
        self.ring(|bell| bell.orders += 1);
        Ok((table, revision))
    }

    /// Changes the tree of a direction. Returns its new reservations when the tree is running.
    fn replace(
        &self,
        from: usize,
        expected: Option<u64>,
        new: impl FnOnce(&Spec) -> Result<(Reservations, Spec), Refusal>,
    ) -> Result<Reservations, ReserveError> {
        let mut kept = None;
        change(&*self.0.plane, Kind::Trees, |running| {
            check_revision(running, expected)?;
            let (table, tree) = new(&running.queues[from])?;
            kept = Some(table);
            let mut plan = running.clone();
            plan.queues[from] = tree;
            Ok::<Plan, ReserveError>(plan)
        })?;
        Ok(kept.expect("the update has called the function"))
    }

    /// Withdraws reservations that nobody refreshes when they have ended, and undoes changes that nobody
    /// confirms, until [`end`](Reserver::end). Call it on a thread of its own.
    pub fn watch(&self) {
        let mut heard = 0;
        loop {
            let next = self.end_all_expired(clock::now());
            let bell = self.0.bell.lock().unwrap_or_else(PoisonError::into_inner);
            let is_quiet = |bell: &mut Bell| bell.orders == heard && !bell.has_ended;
            let bell = match next {
                None => {
                    let waited = self.0.rung.wait_while(bell, is_quiet);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(next) => {
                    let left = Duration::from_nanos(next.nanos_since(clock::now()).max(1));
                    let waited = self.0.rung.wait_timeout_while(bell, left, is_quiet);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if bell.has_ended {
                return;
            }
            heard = bell.orders;
        }
    }

    /// Undoes and withdraws what has ended by `now`. Returns when the next one ends. Reservations end after a
    /// change was confirmed or undone.
    fn end_all_expired(&self, now: Time) -> Option<Time> {
        let mut tables = self.lock();
        if let Some(deadline) = self.undo_unconfirmed(&mut tables, now) {
            return Some(deadline);
        }
        for (from, table) in tables.iter_mut().enumerate() {
            self.end_expired(table, from, now);
        }
        tables.iter().filter_map(Reservations::next_expiry).min()
    }

    fn end_expired(&self, table: &mut Reservations, from: usize, now: Time) {
        if table.next_expiry().is_none_or(|next| next > now) {
            return;
        }
        let left = self.replace(from, None, |tree| {
            let expired = table.expired(tree, self.registry(), now);
            expired.unwrap_or_else(|| Ok((table.clone(), tree.clone())))
        });
        // To take a class away is always possible. If the run ends meanwhile, nothing is left to withdraw.
        match left {
            Ok(left) => *table = left,
            Err(_) => table.forget_expired(now),
        }
    }

    /// Ends [`watch`](Reserver::watch).
    pub fn end(&self) {
        self.ring(|bell| bell.has_ended = true);
    }
}

/// Refuses to change a plan that has another revision than the expected one.
pub(crate) fn check_revision(running: &Plan, expected: Option<u64>) -> Result<(), ReloadError> {
    let revision = running.revision;
    match expected.is_none_or(|expected| expected == revision) {
        true => Ok(()),
        false => Err(ReloadError::Stale { revision }),
    }
}

/// Changes a plane to the plan that `new` makes from the running one, as [`Plane::change`] does. The error is
/// that of [`Plane::change`], or of `new`.
fn change<E: From<ReloadError>>(
    plane: &dyn Plane,
    kind: Kind,
    new: impl FnOnce(&Plan) -> Result<Plan, E>,
) -> Result<Changed, E> {
    let mut new = Some(new);
    let mut refused = None;
    let changed = plane.change(kind, &mut |running| {
        let made = new.take().map(|new| new(running));
        match made.expect("a plane makes one plan for a change") {
            Ok(plan) => Ok(plan),
            Err(error) => {
                refused = Some(error);
                Err(ReloadError::Ended)
            }
        }
    });
    match refused {
        Some(error) => Err(error),
        None => changed.map_err(E::from),
    }
}

impl From<Refusal> for RateRefused {
    fn from(refusal: Refusal) -> RateRefused {
        RateRefused::Because(refusal.to_string())
    }
}

/// Prints the name of the type only.
impl std::fmt::Debug for Reserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reserver").finish_non_exhaustive()
    }
}
