//! What other threads have ordered, carried out between two turns.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use fairgate::Time;
use fairgate_config::{Change, ChangeError, Replaced};

use super::Worker;
use crate::bridge::changes::{Order, Reply, Task};
use crate::clock;
use crate::plane::{Changed, Kind};

impl Worker {
    /// Ends all changes.
    pub(in crate::bridge) fn end_changes(&mut self) {
        self.orders.received = None;
    }

    /// Does what other threads have ordered.
    #[cold]
    pub(in crate::bridge) fn take_orders(&mut self) {
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
            .change_root_in_part(change.needs(), |root, pool| change.apply(root, now, pool));
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
