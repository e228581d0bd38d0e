//! What other threads have ordered, carried out between two turns.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use fairgate_config::{Change, ChangeError, Replaced};

use super::Worker;
use crate::bridge::changes::{Order, Reply, Task};
use crate::clock;
use crate::config::Plan;
use crate::direction::Turn;
use crate::error::LiveError;
use crate::plane::{Changed, Kind};
use crate::status::Estimators;

/// What goes with the tree of a direction.
struct Settings<'p> {
    plan: &'p Plan,
    takes_super_packets: bool,
    keeps_times: bool,
}

impl Worker {
    /// Ends all changes.
    pub(in crate::bridge) fn end_changes(&mut self) {
        self.orders.received = None;
    }

    /// Does what other threads have ordered.
    #[cold]
    pub(in crate::bridge) fn take_orders(&mut self) -> Result<(), LiveError> {
        let _ = self.orders.wanted.read();
        while let Some(Ok(task)) = self.orders.received.as_ref().map(Receiver::try_recv) {
            match task {
                Task::Change(order) => self.carry_out(*order)?,
                Task::Read(to, detail) => self.read_for(to, detail),
                // Who asked may have stopped waiting.
                Task::Beat(to) => drop(to.send(())),
                Task::Count(to) => drop(to.send(self.left_trees())),
            }
        }
        Ok(())
    }

    /// Changes one tree after the other. What has arrived meanwhile is forwarded in between: with thousands
    /// of classes each change takes milliseconds.
    fn carry_out(&mut self, order: Order) -> Result<(), LiveError> {
        let Order {
            mut plan,
            changes,
            mut estimators,
            takes_super_packets,
            keeps_times,
            kind,
            reply,
        } = order;
        let mut replaced = Vec::with_capacity(4);
        let mut changed = Changed::default();
        let mut result = Ok(());
        for (from, change) in changes.into_iter().enumerate() {
            if from == 1 {
                self.catch_up(changed.pause)?;
            }
            let new = Settings {
                plan: &plan,
                takes_super_packets: takes_super_packets[from],
                keeps_times: keeps_times[from],
            };
            match self.change(from, change, new, &mut estimators[from]) {
                Ok((old, Changed { pause, dropped, .. })) => {
                    replaced.push(old);
                    changed.pause = changed.pause.max(pause);
                    changed.dropped += dropped;
                }
                Err(error) => {
                    result = Err((from, error));
                    break;
                }
            }
        }
        if let (Err((1, _)), Some(_)) = (&result, replaced.first()) {
            // A discipline has refused what it accepted when it rehearsed: the other direction goes back.
            let running = Arc::clone(&self.plan);
            let [new, old] = [&plan, &running].map(|plan| plan.tree_of(0, self.number));
            let back = new.change_to(old, 0).expect("the tree ran before");
            let before = Settings {
                plan: &running,
                takes_super_packets: running.takes_super_packets(0),
                keeps_times: running.keeps_times(0),
            };
            let back = self.change(0, back, before, &mut estimators[0]);
            replaced.push(back.expect("the tree ran before").0);
        }
        let result = result.map(|()| {
            std::mem::swap(&mut self.plan, &mut plan);
            changed
        });
        // What was read of the trees may not fit the changed ones. Rates that follow a line change too often
        // for this: the reading of a large tree would never end. They leave all classes where they are.
        if kind == Kind::Trees {
            self.read_anew();
            self.happened.change = true;
        }
        // The changer may have gone: it does not care then.
        let _ = reply.send(Reply {
            result,
            _replaced: replaced,
            _estimators: estimators,
            _plan: plan,
        });
        Ok(())
    }

    /// Changes the tree of a direction, and what goes with it. Leaves the old estimators in `estimators`.
    fn change(
        &mut self,
        from: usize,
        change: Change,
        new: Settings<'_>,
        estimators: &mut Estimators,
    ) -> Result<(Replaced, Changed), ChangeError> {
        let begin = clock::now();
        let direction = &mut self.directions[from];
        direction.before_change(new.takes_super_packets, begin);
        let running = &mut self.estimators[from];
        running.hold(direction.link.root());
        // From here on, what is dropped is dropped by the change.
        let before = direction.link.root().statistics().dropped.packets;
        let now = direction.tree_time(begin);
        let result = direction
            .link
            .change_root_in_part(change.needs(), |root, pool| change.apply(root, now, pool));
        direction.settle(now);
        if result.is_ok() {
            running.change_to(estimators, begin);
            direction.set_shares(new.plan.limit(from), new.plan.division(from));
            direction.set_super_packets(new.takes_super_packets);
            direction.set_times(new.keeps_times);
        }
        running.resume(direction.link.root());
        let changed = Changed {
            pause: Duration::from_nanos(clock::now().nanos_since(begin)),
            dropped: direction.link.root().statistics().dropped.packets - before,
            ..Changed::default()
        };
        Ok((result?, changed))
    }

    /// Forwards what has arrived, for at most `longest`.
    fn catch_up(&mut self, longest: Duration) -> Result<(), LiveError> {
        let mut now = clock::now();
        let end = now + longest.as_nanos() as u64;
        let mut is_behind = true;
        while is_behind && now < end {
            is_behind = self.receive(0, now)? | self.receive(1, now)?;
            for from in 0..2 {
                is_behind |= self.send(from, now, 0)? == Turn::More;
            }
            now = clock::now();
        }
        Ok(())
    }

    /// Returns how many bytes have left each tree.
    fn left_trees(&self) -> [u64; 2] {
        let left = |from: usize| self.directions[from].link.root().statistics().dequeued.bytes;
        [left(0), left(1)]
    }
}
