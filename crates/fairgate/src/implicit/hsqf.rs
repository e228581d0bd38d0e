//! Hierarchical shortest queue first: fair queueing between users, and shortest queue first between the flows
//! of a user. Bonald, Muscariello & Ostallo (2011, section VI) name it as future work.
//!
//! [`sqf`](super::sqf) lets a stream take what it needs, so it must not be used between users: one user could
//! take everything. Here users share the link by deficit round robin in bytes, however many flows each has.
//! Within the share of a user the shortest queue goes first. Users need no configuration. Every address with
//! queued packets is a user.
//!
//! Above the limit, the user with the most bytes loses the oldest packet of its longest flow. Users below
//! their share lose nothing.
//!
//! A user has up to 64 flows at a time, without hash collisions. Packets of further flows join one of them.
//! In a tie the flow that reached its bytes first goes first, as in sqf. A quantum that is too large
//! increases the delay: a round lasts as long as the quanta of all users. The cost between users is constant
//! if the quantum is at least the longest packet. Within a user it is a tournament of 64 flows.
//!
//! Bounds: none is published. Between users the bound of deficit round robin holds: over any time, two users
//! that always have packets send the same number of bytes, except for a quantum and a packet of each.

mod config;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::flow::{FlowByHasher, FlowHash};
use crate::implicit::tournament::{Rank, Tournament};
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::queues::fifo::DropFrom;
use crate::structures::{ActiveList, Bounds, FlowTable, Identity, Linked, ListLink};
use crate::time::Time;

pub use config::{Config, DESCRIPTION, PARAMETERS};

/// The number of flows of a user.
const FLOWS: u32 = 64;

#[derive(Clone, Copy, Debug)]
struct Flow {
    queue: PacketQueue,
    /// Its identity in the table, while it has packets.
    identity: Identity,
}

#[derive(Debug)]
struct User {
    /// The user's flows by their bytes.
    service: Tournament,
    longest: Bounds,
    /// A bit for each position of the user that has a flow.
    taken: u64,
    packets: u32,
    bytes: u64,
    /// The bytes that it may still send in this round.
    deficit: u32,
    link: ListLink,
    identity: Identity,
}

impl Linked for User {
    #[inline]
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// The discipline. [`Hsqf::node`] creates it.
#[derive(Debug)]
pub struct Hsqf {
    users: Vec<User>,
    /// 64 flows for each user.
    flows: Box<[Flow]>,
    /// The users with packets. A user who lost the last packet by a drop stays until its turn.
    active: ActiveList,
    by_bytes: Bounds,
    user_table: FlowTable,
    /// Maps the user and flow of packets to a number. `position_of` maps this number to the flow's position.
    flow_table: FlowTable,
    position_of: Box<[u32]>,
    packets: u32,
    stamp: u64,
    user_hasher: FlowByHasher,
    flow_hasher: FlowByHasher,
    seed: u64,
    config: Config,
}

impl Hsqf {
    /// Returns an empty discipline. `seed` is the key of the hashes.
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range.
    pub fn node(config: Config, seed: u64) -> Result<Node<Hsqf>, ConfigError> {
        config.check()?;
        Ok(Node::new(Hsqf::empty(config, seed)))
    }

    fn empty(config: Config, seed: u64) -> Hsqf {
        let user = || User {
            service: Tournament::new(FLOWS),
            longest: Bounds::new(FLOWS),
            taken: 0,
            packets: 0,
            bytes: 0,
            deficit: 0,
            link: ListLink::OUTSIDE,
            identity: Identity::NONE,
        };
        let flow = Flow {
            queue: PacketQueue::new(),
            identity: Identity::NONE,
        };
        // The arriving packet's flow is added before another packet is dropped.
        let flows = (config.users * FLOWS).min(config.limit + 1);
        Hsqf {
            users: (0..config.users).map(|_| user()).collect(),
            flows: vec![flow; (config.users * FLOWS) as usize].into(),
            active: ActiveList::new(),
            by_bytes: Bounds::new(config.users),
            user_table: FlowTable::new(config.users, seed),
            flow_table: FlowTable::new(flows, !seed),
            position_of: vec![0; flows as usize].into(),
            packets: 0,
            stamp: 0,
            user_hasher: FlowByHasher::new(config.user, seed),
            flow_hasher: FlowByHasher::new(config.key, seed),
            seed,
            config,
        }
    }

    /// Returns the packet's user and the position of its flow among all flows, or `None` if there are too
    /// many users.
    #[inline]
    fn position(&mut self, id: PacketId, pool: &Pool) -> Option<(u32, u32)> {
        let user_hash = self.user_hasher.flow(id, pool);
        let identity = self.user_table.identity(user_hash);
        let user = match self.user_table.find(identity) {
            Some(user) => user,
            None => {
                let user = self.user_table.insert(identity)?;
                self.users[user as usize].identity = identity;
                user
            }
        };
        let flow_hash = self.flow_hasher.flow(id, pool).raw() ^ user_hash.raw().rotate_left(17);
        let identity = self.flow_table.identity(FlowHash::from_raw(flow_hash));
        if let Some(number) = self.flow_table.find(identity) {
            return Some((user, self.position_of[number as usize]));
        }
        let taken = &mut self.users[user as usize].taken;
        if *taken == u64::MAX {
            return Some((user, user * FLOWS + (flow_hash % u64::from(FLOWS)) as u32));
        }
        let position = user * FLOWS + taken.trailing_ones();
        *taken |= *taken + 1;
        if let Some(number) = self.flow_table.insert(identity) {
            self.position_of[number as usize] = position;
            self.flows[position as usize].identity = identity;
        }
        Some((user, position))
    }

    /// Enqueues a packet. Drops a packet for `reason` if the limit is then exceeded.
    #[inline]
    fn admit(
        &mut self,
        user: u32,
        position: u32,
        id: PacketId,
        reason: DropReason,
        pool: &mut Pool,
    ) -> Verdict {
        self.flows[position as usize].queue.push_back(id, pool);
        self.packets += 1;
        let known = &mut self.users[user as usize];
        known.packets += 1;
        known.bytes += u64::from(pool[id].length);
        self.by_bytes.grew(user, known.bytes + 1);
        let bytes = self.flows[position as usize].queue.bytes();
        known.longest.grew(position % FLOWS, bytes + 1);
        if !known.link.is_in_list() {
            known.deficit = self.config.quantum;
            self.active.push_back(user, &mut self.users);
        }
        self.rank(user, position);
        if self.packets > self.config.limit && self.drop_longest(reason, pool) == position {
            return Verdict::Congested;
        }
        Verdict::Queued
    }

    /// Ranks a flow that has just reached its number of bytes.
    #[inline]
    fn rank(&mut self, user: u32, position: u32) {
        self.stamp += 1;
        let bytes = self.flows[position as usize].queue.bytes();
        let of_user = position % FLOWS;
        let rank = Rank::least_first(bytes, self.stamp, of_user);
        self.users[user as usize].service.enter(of_user, rank);
    }

    /// Drops from the longest flow of the user with the most bytes, and returns the flow's position.
    #[cold]
    fn drop_longest(&mut self, reason: DropReason, pool: &mut Pool) -> u32 {
        let users = &self.users;
        let size = |user: u32| {
            let user = &users[user as usize];
            user.bytes + u64::from(user.packets > 0)
        };
        let (user, _) = self
            .by_bytes
            .largest(size)
            .expect("a queue above its limit has a user");
        let flows = &self.flows;
        let size = |of_user: u32| {
            let queue = &flows[(user * FLOWS + of_user) as usize].queue;
            queue.bytes() + u64::from(!queue.is_empty())
        };
        let longest = self.users[user as usize].longest.largest(size);
        let (of_user, _) = longest.expect("a user with packets has a flow with packets");
        let position = user * FLOWS + of_user;
        let queue = &mut self.flows[position as usize].queue;
        let dropped = match self.config.drop_from {
            DropFrom::Head => queue.pop_front(pool),
            DropFrom::Tail => queue.pop_back(pool),
        };
        let dropped = dropped.expect("the longest flow isn't empty");
        self.lost(user, position, pool[dropped].length);
        pool.give_back(dropped, reason);
        position
    }

    /// Updates the state after a packet has left a flow.
    #[inline]
    fn lost(&mut self, user: u32, position: u32, length: u32) {
        self.packets -= 1;
        let known = &mut self.users[user as usize];
        known.packets -= 1;
        known.bytes -= u64::from(length);
        let flow = &mut self.flows[position as usize];
        if !flow.queue.is_empty() {
            self.rank(user, position);
            return;
        }
        known.service.leave(position % FLOWS);
        known.taken &= !(1 << (position % FLOWS));
        self.flow_table.remove(core::mem::take(&mut flow.identity));
    }

    /// Removes the first user of the active list, who has no packets.
    #[inline]
    fn dismiss_first(&mut self) {
        let user = self
            .active
            .pop_front(&mut self.users)
            .expect("the active list isn't empty");
        let identity = core::mem::take(&mut self.users[user as usize].identity);
        self.user_table.remove(identity);
    }
}

/// Flow n is flow n mod 64 of user n / 64. If a program uses both numbers and hashes, a numbered user and a
/// hashed user may share everything.
impl ByFlow for Hsqf {
    #[inline]
    fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    #[inline]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        if flow >= self.flows() {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Dropped;
        }
        let user = flow / FLOWS;
        self.users[user as usize].taken |= 1 << (flow % FLOWS);
        self.admit(user, flow, id, DropReason::LongestFlow, pool)
    }
}

impl Algorithm for Hsqf {
    const NAME: &'static str = "hsqf";
    type Config = Config;

    #[inline]
    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        let Some((user, position)) = self.position(id, pool) else {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Dropped;
        };
        self.admit(user, position, id, DropReason::LongestFlow, pool)
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        while let Some(user) = self.active.front() {
            let known = &mut self.users[user as usize];
            let Some(of_user) = known.service.first() else {
                self.dismiss_first();
                continue;
            };
            let position = user * FLOWS + of_user;
            let queue = &mut self.flows[position as usize].queue;
            let first = queue.front().expect("a flow in the tournament has packets");
            let length = pool[first].length;
            if length <= known.deficit {
                known.deficit -= length;
                queue.pop_front(pool);
                self.lost(user, position, length);
                if self.users[user as usize].packets == 0 {
                    self.dismiss_first();
                }
                return Some(first);
            }
            known.deficit += self.config.quantum;
            self.active.rotate(&mut self.users);
        }
        None
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        while let Some(user) = self.active.front() {
            while let Some(of_user) = self.users[user as usize].service.first() {
                let position = user * FLOWS + of_user;
                while let Some(id) = self.flows[position as usize].queue.pop_front(pool) {
                    self.lost(user, position, pool[id].length);
                    into.push_back(id, pool);
                }
            }
            self.dismiss_first();
        }
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    /// Enqueues all packets again, user by user and flow by flow.
    fn reconfigure(&mut self, config: Config, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        config.check()?;
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        *self = Hsqf::empty(config, self.seed);
        while let Some(id) = queued.pop_front(pool) {
            match self.position(id, pool) {
                Some((user, position)) => {
                    let _ = self.admit(user, position, id, DropReason::Reconfigured, pool);
                }
                None => pool.give_back(id, DropReason::Reconfigured),
            }
        }
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let flows: u32 = self.users.iter().map(|user| user.taken.count_ones()).sum();
        let most = self.users.iter().map(|user| user.bytes).max().unwrap_or(0);
        visit("active_users", Variable::Integer(self.active.len().into()));
        visit("active_flows", Variable::Integer(flows.into()));
        visit("longest_bytes", Variable::Integer(most as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::flow::FlowKey;
    use crate::packet::Packet;
    use crate::testing::Driver;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    struct Users {
        driver: Driver<Hsqf>,
        offered: u64,
    }

    impl Users {
        fn new(config: Config) -> Users {
            Users {
                driver: Driver::new(Hsqf::node(config, 1).unwrap()),
                offered: 0,
            }
        }

        /// Enqueues a packet and returns the dropped ones.
        fn offer(&mut self, user: u8, flow: u16, length: u32) -> Vec<u64> {
            let key = FlowKey::of([192, 0, 2, 1].into(), [10, 0, 0, user].into(), 17, 53, flow);
            let packet = Packet {
                cookie: self.offered,
                flow: FlowHash::from_raw(u64::from(user) << 32 | u64::from(flow) << 1 | 1),
                ..Packet::of_length(length)
            };
            self.offered += 1;
            let pool = &mut self.driver.pool;
            let id = pool.insert((packet, key)).unwrap();
            self.driver.root.enqueue(id, Time::ZERO, pool);
            let returned = core::iter::from_fn(|| pool.take_returned().map(|(id, _)| id));
            let ids: Vec<_> = returned.collect();
            ids.into_iter()
                .map(|id| self.driver.pool.release(id).cookie)
                .collect()
        }
    }

    #[test]
    fn users_share_equally_and_the_shortest_flow_of_a_user_goes_first() {
        let mut users = Users::new(Config {
            quantum: 1000,
            ..Config::default()
        });
        users.offer(1, 1, 1000);
        users.offer(1, 1, 1000);
        for flow in 1..5 {
            users.offer(2, flow, 500);
            users.offer(2, flow, 500);
        }
        users.offer(1, 2, 1000);
        // 1 sends 1000 bytes, its new flow first. 2 sends the two packets of 500 bytes of its first flow, and
        // so on.
        let order = users.driver.drain(Time::ZERO);
        assert_eq!(order, [10, 2, 3, 0, 4, 5, 1, 6, 7, 8, 9]);
    }

    #[test]
    fn the_user_with_the_most_bytes_loses_a_packet_of_the_longest_flow() {
        let mut users = Users::new(Config {
            limit: 5,
            ..Config::default()
        });
        for (user, flow, length) in [(1, 1, 900), (2, 1, 400), (2, 1, 400), (2, 2, 300), (2, 3, 300)] {
            assert!(users.offer(user, flow, length).is_empty());
        }
        assert_eq!(users.offer(3, 1, 1500), [5], "the new user has the most bytes");
        assert_eq!(
            users.offer(3, 1, 100),
            [1],
            "then user 2, whose flow 1 is the longest"
        );
    }

    #[test]
    fn flows_beyond_64_of_a_user_share_positions() {
        let mut users = Users::new(Config::default());
        for flow in 0..100 {
            assert!(users.offer(1, flow, 100).is_empty());
        }
        let mut sent = users.driver.drain(Time::ZERO);
        sent.sort_unstable();
        assert_eq!(sent, (0..100).collect::<Vec<_>>());
        assert_eq!(users.driver.root.algorithm().users[0].taken, 0);
    }

    #[test]
    fn numbered_flows_belong_to_numbered_users() {
        let mut users = Users::new(Config {
            users: 2,
            quantum: 1000,
            ..Config::default()
        });
        for (cookie, flow) in (0..).zip([64, 64, 0, 1, 0, 128]) {
            let packet = Packet {
                cookie,
                ..Packet::of_length(1000)
            };
            let pool = &mut users.driver.pool;
            let id = pool.insert(packet).unwrap();
            let verdict = users.driver.root.enqueue_flow(flow, id, Time::ZERO, pool);
            assert_eq!(verdict == Verdict::Dropped, flow == 128);
            while let Some((id, _)) = pool.take_returned() {
                pool.release(id);
            }
        }
        // Users take turns. The shorter flow 1 of user 0 goes first.
        assert_eq!(users.driver.drain(Time::ZERO), [0, 3, 1, 2, 4]);
    }

    #[test]
    fn a_user_beyond_the_limit_is_rejected_until_another_leaves() {
        let mut users = Users::new(Config {
            users: 1,
            ..Config::default()
        });
        assert!(users.offer(1, 1, 100).is_empty());
        assert_eq!(users.offer(2, 1, 100), [1]);
        assert_eq!(users.driver.drain(Time::ZERO), [0]);
        assert!(users.offer(2, 1, 100).is_empty());
    }

    /// User and flow, cookies and lengths of the packets, and the step of the last change.
    type Known = (u8, u16, VecDeque<(u64, u32)>, u64);

    /// Deficit round robin over users, with a scan of the user's flows for each choice.
    #[derive(Default)]
    struct Model {
        /// The user and the rest of its deficit.
        active: VecDeque<(u8, u32)>,
        flows: Vec<Known>,
        steps: u64,
    }

    impl Model {
        fn offer(&mut self, user: u8, flow: u16, length: u32, cookie: u64, quantum: u32) {
            self.steps += 1;
            if !self.active.iter().any(|(other, _)| *other == user) {
                self.active.push_back((user, quantum));
            }
            match self
                .flows
                .iter_mut()
                .find(|known| (known.0, known.1) == (user, flow))
            {
                Some(known) => {
                    known.2.push_back((cookie, length));
                    known.3 = self.steps;
                }
                None => self
                    .flows
                    .push((user, flow, [(cookie, length)].into(), self.steps)),
            }
        }

        fn next(&mut self, quantum: u32) -> Option<u64> {
            loop {
                let (user, deficit) = self.active.front_mut()?;
                let bytes = |known: &VecDeque<(u64, u32)>| {
                    known.iter().map(|(_, length)| u64::from(*length)).sum::<u64>()
                };
                let shortest = self
                    .flows
                    .iter_mut()
                    .filter(|known| known.0 == *user && !known.2.is_empty())
                    .min_by_key(|known| (bytes(&known.2), known.3));
                let known = shortest.expect("a user in the active list has packets");
                let (cookie, length) = known.2[0];
                if length > *deficit {
                    *deficit += quantum;
                    self.active.rotate_left(1);
                    continue;
                }
                *deficit -= length;
                let user = *user;
                self.steps += 1;
                known.2.pop_front();
                known.3 = self.steps;
                if self
                    .flows
                    .iter()
                    .all(|known| known.0 != user || known.2.is_empty())
                {
                    self.active.pop_front();
                }
                return Some(cookie);
            }
        }
    }

    proptest! {
        #[test]
        fn departures_are_the_same_as_in_the_model(
            quantum in 64u32..3000,
            steps in prop::collection::vec(
                (any::<bool>(), 0u8..4, 0u16..5, prop_oneof![Just(500u32), 0u32..2000]),
                0..500,
            ),
        ) {
            let mut users = Users::new(Config { quantum, ..Config::default() });
            let mut model = Model::default();
            for (is_offer, user, flow, length) in steps {
                if is_offer {
                    let cookie = users.offered;
                    prop_assert!(users.offer(user, flow, length).is_empty());
                    model.offer(user, flow, length, cookie, quantum);
                } else {
                    prop_assert_eq!(users.driver.next(Time::ZERO), model.next(quantum));
                }
            }
        }
    }

    #[test]
    fn ranges_are_checked() {
        let rejected = |config: Config| Hsqf::node(config, 0).unwrap_err().parameter();
        let default = Config::default;
        assert_eq!(
            rejected(Config {
                limit: 0,
                ..default()
            }),
            Some("limit")
        );
        assert_eq!(
            rejected(Config {
                quantum: 63,
                ..default()
            }),
            Some("quantum")
        );
        assert_eq!(
            rejected(Config {
                users: 1 << 15,
                ..default()
            }),
            Some("users")
        );
    }
}
