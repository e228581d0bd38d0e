//! A worker's part of a direction: its books, and when it exchanges them for a new rate.

use std::sync::Arc;

use fairgate::flow::FlowByHasher;
use fairgate::sharding::{Account, Division, Lengths, Limit, State};
use fairgate::{FlowHash, FlowKey, Time};

use super::Shares;

/// What a worker counts packets for.
pub(crate) enum Key {
    /// Flows or hosts, by this hash.
    Flows(FlowByHasher),
    /// Classes.
    Classes(Arc<Division>),
}

/// The books of a worker for a direction.
pub(crate) struct Shard {
    account: Account,
    shares: Arc<Shares>,
    worker: usize,
    key: Key,
    /// The place of each frame in the books.
    places: Box<[u32]>,
    /// How the rate counts lengths. `None` if the tree has no rate: nothing is held back.
    lengths: Option<Lengths>,
    state: State,
    /// What it waited for at the last exchange.
    reported: State,
    /// When the gate opens, if it is closed.
    opens_at: Option<Time>,
    exchanged_at: Time,
    next_exchange: Time,
}

impl Shard {
    /// Returns the books of worker `worker`, whose frame store holds `frames` frames.
    pub(crate) fn new(
        shares: Arc<Shares>,
        worker: usize,
        limit: Option<Limit>,
        key: Key,
        frames: u32,
    ) -> Shard {
        Shard {
            account: match &key {
                Key::Flows(_) => Account::of_flows(),
                Key::Classes(division) => Account::of_classes(division.classes()),
            },
            shares,
            worker,
            key,
            places: vec![0; frames as usize].into_boxed_slice(),
            lengths: limit.map(|limit| limit.lengths),
            state: State::Idle,
            reported: State::Idle,
            opens_at: None,
            exchanged_at: Time::ZERO,
            next_exchange: Time::ZERO,
        }
    }

    /// Changes what the workers share, together with the tree.
    pub(crate) fn set_shares(&mut self, limit: Option<Limit>, division: Option<&Arc<Division>>) {
        self.shares
            .set(limit, division.map(|division| division.classes()));
        if let (Key::Classes(before), Some(division)) = (&mut self.key, division)
            && !Arc::ptr_eq(before, division)
        {
            self.account.set_classes(division.classes());
            *before = Arc::clone(division);
        }
        self.lengths = limit.map(|limit| limit.lengths);
        (self.opens_at, self.next_exchange) = (None, Time::ZERO);
    }

    /// Exchanges a report for a new rate, if it is time. Call it before frames are received: a rate that was
    /// not used in an idle time is not for them.
    #[inline]
    pub(crate) fn exchange(&mut self, backlog: u64, now: Time) {
        if now >= self.next_exchange && self.lengths.is_some() {
            self.exchange_now(backlog, now);
        }
    }

    #[cold]
    fn exchange_now(&mut self, backlog: u64, now: Time) {
        self.account.agree(backlog);
        if backlog == 0 {
            self.state = State::Idle;
        }
        let interval = self.shares.interval();
        // What was granted while nothing could be sent is given back: the interface was down, or the thread
        // had no processor.
        let is_late = now.nanos_since(self.exchanged_at) > self.shares.longest_credit();
        let before = match is_late {
            true => self.account.report(State::Idle, interval, now).taken,
            false => 0,
        };
        let mut report = self.account.report(self.state, interval, now);
        report.taken += before;
        let waits = self.state == State::Waiting;
        let rate = self.shares.exchange(self.worker, report, waits, now);
        self.reported = self.state;
        self.account.set_rate(rate, now);
        self.exchanged_at = now;
        self.next_exchange = now + interval;
        self.opens_at = None;
    }

    /// Notes a packet that was handed to the tree.
    #[inline]
    pub(crate) fn arrived(&mut self, number: u32, key: &FlowKey, flow: FlowHash) {
        let place = match &self.key {
            Key::Flows(hasher) => Account::place(hasher.of(key, flow)),
            Key::Classes(division) => division.member_of(key),
        };
        self.places[number as usize] = place;
        self.account.arrived(place);
        self.state = State::Waiting;
    }

    /// Notes a packet that the tree has dropped.
    #[inline]
    pub(crate) fn dropped(&mut self, number: u32) {
        self.account.dropped(self.places[number as usize]);
    }

    /// Notes a packet that the tree has sent.
    #[inline]
    pub(crate) fn sent(&mut self, number: u32, length: u32) {
        let bytes = self.lengths.map_or(0, |lengths| lengths.count(length));
        self.account.sent(self.places[number as usize], bytes);
        self.state = State::Waiting;
    }

    /// Notes that the tree holds packets back.
    #[inline]
    pub(crate) fn throttled(&mut self) {
        self.state = State::Throttled;
    }

    /// Whether the tree, which has packets, may be asked for one.
    ///
    /// # Errors
    /// If not, returns when it may be asked.
    #[inline]
    pub(crate) fn may_send(&mut self, now: Time) -> Result<(), Time> {
        if self.lengths.is_none() {
            return Ok(());
        }
        let answer = self.account.may_send(now);
        self.opens_at = answer.err();
        if self.opens_at.is_some() {
            self.state = State::Waiting;
        }
        answer
    }

    /// Whether packets wait for the worker's part of the rate, since the tree was last to be asked.
    pub(crate) fn is_held_back(&self) -> bool {
        self.opens_at.is_some()
    }

    /// Returns when a direction has something to do, if its tree says `watchdog`. `is_backlogged` says
    /// whether the tree has packets.
    pub(crate) fn next(&self, watchdog: Option<Time>, is_backlogged: bool) -> Option<Time> {
        if self.lengths.is_none() {
            return watchdog;
        }
        if !is_backlogged {
            // The others must know that nothing waits here any more.
            return (self.reported == State::Waiting).then_some(self.next_exchange);
        }
        let due = match self.opens_at {
            Some(opens) => Some(opens),
            None => watchdog,
        };
        // A new rate may come earlier.
        let exchange = (self.state == State::Waiting).then_some(self.next_exchange);
        due.into_iter().chain(exchange).min()
    }
}
