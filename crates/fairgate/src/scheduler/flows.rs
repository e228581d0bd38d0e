//! A scheduler over hashed flows: the flat form of every fair queueing discipline.
//!
//! Each packet is queued in one of `flows` queues, by its hash or by the flow number that it names. The
//! scheduler decides which flow sends. Over the limit, the newest packet of the longest flow is dropped
//! ("buffer stealing", McKenney 1990), so that a flooding flow can't exclude the others.
//!
//! Where the scheduler can ([`Scheduler::separates`]), flows are told apart by their whole hash instead, and
//! share a queue only if more flows than queues have packets (`separate.rs`).
//!
//! Invariants: a flow is active in the scheduler if and only if it has packets. Stealing never empties an
//! active flow. If the longest flow has one packet, all flows have at most one, and the packet is stolen from
//! the newest flow, which is not active yet.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::arrival::Needs;
use crate::classify::{Classifier, Filtered};
use crate::discipline::{Algorithm, ByFlow, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Description, Parameter, Placing, Unit, check_ranges};
use crate::scheduler::separate::{Position, Separate};
use crate::scheduler::{Entitlement, Head, Holds, MAX_PACKET, Scheduler};
use crate::structures::ByLength;
use crate::time::Time;

/// The number of packets whose cache lines a second-level cache of 1 MiB holds. If more are queued, the next
/// one has to be prefetched.
pub(crate) const CACHED_PACKETS: u32 = 1 << 14;

/// The maximum number of flows.
pub const MAX_FLOWS: u32 = 1 << 20;

/// The parameters of a scheduler whose flows have shares `T` and which has settings `U`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config<T, U> {
    /// The number of queues that flows are hashed into, 1 to 2^20.
    pub flows: u32,
    /// The maximum number of packets queued in total, 1 to 2^25.
    pub limit: u32,
    /// The share of each flow.
    pub share: T,
    /// The shares of the first flows, if they differ. There may be at most as many as flows.
    pub shares: Vec<T>,
    /// The parameters of the scheduler as a whole.
    pub settings: U,
    /// Chooses flows, counted from 1, before the hash does.
    pub classifier: Classifier,
}

/// 1024 equal flows and 10240 packets, like fq_codel.
impl<T: Default, U: Default> Default for Config<T, U> {
    fn default() -> Config<T, U> {
        Config {
            flows: 1024,
            limit: 10_240,
            share: T::default(),
            shares: Vec::new(),
            settings: U::default(),
            classifier: Classifier::default(),
        }
    }
}

impl<T: Clone, U: Clone> Config<T, U> {
    /// Checks everything but shares and settings, which the scheduler checks.
    fn check(&self) -> Result<(), ConfigError> {
        self.classifier.check()?;
        let mut settings = Settings {
            config: Config {
                flows: self.flows,
                limit: self.limit,
                share: self.share.clone(),
                shares: Vec::new(),
                settings: self.settings.clone(),
                classifier: Classifier::default(),
            },
            amounts: Vec::new(),
        };
        check_ranges(&[flows(), limit()], &mut settings)?;
        if self.shares.len() > self.flows as usize {
            return Err(ConfigError::conflict(
                "flows",
                self.flows,
                format!(
                    "at least {}, the number of flows with shares of their own",
                    self.shares.len()
                ),
                "increase `flows`, or set fewer shares",
            ));
        }
        Ok(())
    }

    fn shares(&self) -> impl Iterator<Item = &T> {
        let rest = self.flows as usize - self.shares.len();
        self.shares.iter().chain(core::iter::repeat_n(&self.share, rest))
    }
}

/// The data that is accessed for each packet: a cache line, or half of one.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Flow<T> {
    queue: PacketQueue,
    state: T,
}

impl<T> Holds for Flow<T> {
    type State = T;

    #[inline]
    fn state(&self) -> &T {
        &self.state
    }

    #[inline]
    fn state_mut(&mut self) -> &mut T {
        &mut self.state
    }
}

/// The parameters of `Flows<S>`.
pub type ConfigOf<S> = Config<<S as Scheduler>::Share, <S as Scheduler>::Settings>;

/// The settings of a flat scheduler as users write them.
#[derive(Clone, Debug)]
pub struct Settings<T, U> {
    /// The parameters, except for the shares of single flows.
    pub config: Config<T, U>,
    /// Weights or quanta of the first flows.
    pub amounts: Vec<u32>,
}

/// The settings of `Flows<S>`.
pub type SettingsOf<S> = Settings<<S as Scheduler>::Share, <S as Scheduler>::Settings>;

impl<T: Default, U: Default> Settings<T, U> {
    fn start() -> Settings<T, U> {
        Settings {
            config: Config::default(),
            amounts: Vec::new(),
        }
    }
}

impl<T: Entitlement, U> Settings<T, U> {
    fn config(self) -> Result<Config<T, U>, ConfigError> {
        let of_amount = |amount: &u32| {
            let mut share = self.config.share.clone();
            *share.amount_mut() = *amount;
            share
        };
        Ok(Config {
            shares: self.amounts.iter().map(of_amount).collect(),
            ..self.config
        })
    }
}

/// The description of `Flows<S>`.
pub type DescriptionOf<S> = Description<SettingsOf<S>, ConfigOf<S>>;

/// The parameter `flows` of a flat scheduler.
pub const fn flows<T, U>() -> Parameter<Settings<T, U>> {
    Parameter::new(
        "flows",
        Unit::Count("flows"),
        1..=MAX_FLOWS as u64,
        "The number of flow queues; with more, fewer flows share a queue by chance.",
        |flat, _| &mut flat.config.flows,
    )
}

/// The parameter `limit` of a flat scheduler.
pub const fn limit<T, U>() -> Parameter<Settings<T, U>> {
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=1 << 25,
        "The maximum number of packets queued. Above it, the longest flow loses a packet.",
        |flat, _| &mut flat.config.limit,
    )
}

/// Describes a scheduler over hashed flows whose flows can be given different shares. Its parameters are
/// [`flows`], [`limit`] and those of the scheduler.
pub const fn describe<S: Scheduler<Share: Entitlement + Default, Settings: Default>>(
    about: About,
    parameters: &'static [Parameter<SettingsOf<S>>],
) -> Description<SettingsOf<S>, ConfigOf<S>> {
    describe_with::<S>(about, parameters, Settings::config)
}

/// Describes a scheduler over hashed flows. `config` makes its parameters of the settings.
pub(crate) const fn describe_with<S: Scheduler<Share: Default, Settings: Default>>(
    about: About,
    parameters: &'static [Parameter<SettingsOf<S>>],
    config: fn(SettingsOf<S>) -> Result<ConfigOf<S>, ConfigError>,
) -> Description<SettingsOf<S>, ConfigOf<S>> {
    Description::of_settings(
        about,
        parameters,
        |_| Settings::start(),
        config,
        |config, parts| Ok(Box::new(Flows::<S>::node(config, parts.seed)?)),
    )
    .with_placing(Placing::Classifier(
        |flat| &mut flat.config.classifier,
        |flat| flat.config.flows,
    ))
}

/// The discipline. Create it with [`Flows::node`].
#[derive(Debug)]
pub struct Flows<S: Scheduler> {
    scheduler: S,
    flows: Vec<Flow<S::Flow>>,
    by_length: ByLength,
    /// Present if flows are told apart by their whole hash.
    separate: Option<Separate>,
    packets: u32,
    /// Whether the hash decides for every packet. One check is faster than the classifier's three.
    only_hashes: bool,
    salt: u64,
    config: ConfigOf<S>,
}

impl<S: Scheduler> Flows<S> {
    const FITS_A_CACHE_LINE: () = assert!(
        size_of::<Flow<S::Flow>>() <= 64,
        "a flow must fit into one cache line"
    );

    /// Creates the discipline without packets. `seed` is the salt of the hash.
    ///
    /// # Errors
    /// Fails if a parameter is out of its range.
    pub fn node(config: ConfigOf<S>, seed: u64) -> Result<Node<Flows<S>>, ConfigError> {
        Ok(Node::new(Flows::starting_at(config, seed, 0)?))
    }

    /// Creates the discipline with virtual time starting at `origin`, to test its wrap.
    ///
    /// # Errors
    /// Fails if a parameter is out of its range.
    pub fn starting_at(config: ConfigOf<S>, salt: u64, origin: u64) -> Result<Flows<S>, ConfigError> {
        let () = Flows::<S>::FITS_A_CACHE_LINE;
        config.check()?;
        let mut scheduler = S::new(&config.settings, origin)?;
        let mut flows = Vec::with_capacity(config.flows as usize);
        for (flow, share) in config.shares().enumerate() {
            let state = scheduler.add_flow(share);
            flows.push(Flow {
                queue: PacketQueue::new(),
                state: state.map_err(|error| match flow < config.shares.len() {
                    true => error.in_list(S::SHARES),
                    false => error,
                })?,
            });
        }
        Ok(Flows {
            scheduler,
            flows,
            // A flow may exceed the limit by one packet until one is stolen.
            by_length: ByLength::new(config.flows, config.limit + 1, config.limit),
            separate: separate_of::<S>(&config, salt),
            packets: 0,
            only_hashes: config.classifier.classifies_nothing(),
            salt,
            config,
        })
    }

    /// Returns the scheduler.
    pub fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// Returns the scheduler's state of flow `flow`.
    ///
    /// # Panics
    /// Panics if there is no such flow.
    pub fn flow(&self, flow: u32) -> &S::Flow {
        &self.flows[flow as usize].state
    }

    /// Returns the flow of a packet.
    ///
    /// # Errors
    /// If a filter drops the packet.
    #[inline(always)]
    fn flow_of(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Result<u32, Filtered> {
        let config = &mut self.config;
        if S::CAN_SEPARATE && self.separate.is_some() {
            let named = config.classifier.named_flow(id, now, pool, config.flows)?;
            return Ok(self.separated(named, id, pool));
        }
        if self.only_hashes {
            return Ok(pool[id].flow.bucket(self.salt, config.flows));
        }
        config.classifier.flow(id, now, pool, self.salt, config.flows)
    }

    /// Returns the flow of a packet that was in the queue before.
    fn flow_again(&mut self, id: PacketId, pool: &Pool) -> u32 {
        let named = self
            .config
            .classifier
            .named_flow_again(id, pool, self.config.flows);
        self.separated(named, id, pool)
    }

    /// Returns the flow of a packet, which is `named` if the classifier has named one.
    #[inline]
    fn separated(&mut self, named: Option<u32>, id: PacketId, pool: &Pool) -> u32 {
        if let Some(named) = named {
            return named;
        }
        if S::CAN_SEPARATE
            && let Some(separate) = &mut self.separate
        {
            let (flows, scheduler) = (&self.flows, &self.scheduler);
            let has_packets = |flow: u32| !flows[flow as usize].queue.is_empty();
            let is_remembered = |flow: u32| scheduler.remembers(&flows[flow as usize].state);
            return match separate.position(pool[id].flow, has_packets, is_remembered) {
                Position::Known(flow) | Position::Shared(flow) => flow,
                Position::New(flow) => {
                    self.scheduler.forget(&mut self.flows[flow as usize].state);
                    flow
                }
            };
        }
        pool[id].flow.bucket(self.salt, self.config.flows)
    }

    /// Enqueues a packet for an existing flow.
    #[inline(always)]
    fn admit(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if pool[id].length > MAX_PACKET {
            pool.give_back(id, DropReason::LargerThanMaximum);
            self.note_if_empty(flow);
            return Verdict::Dropped;
        }
        self.append(flow, id, DropReason::LongestFlow, now, pool)
    }

    /// Appends a packet to its flow. Returns `Congested` if the flow lost a packet for it, for `reason`.
    #[inline(always)]
    fn append(
        &mut self,
        index: u32,
        id: PacketId,
        reason: DropReason,
        now: Time,
        pool: &mut Pool,
    ) -> Verdict {
        let length = pool[id].length;
        let stamp = if S::STAMPS {
            let stamp = self.scheduler.stamp(&mut self.flows, index, length, now);
            pool[id].stamp = stamp;
            stamp
        } else {
            0
        };
        let queue = &mut self.flows[index as usize].queue;
        queue.push_back(id, pool);
        self.packets += 1;
        let queued = queue.len();
        // Rare cases are in a function that is called last, so that it does not occupy registers of the
        // common case.
        if queued >= self.by_length.least() {
            return self.append_over_limit(index, id, now, pool, reason);
        }
        if self.packets > self.config.limit {
            return self.append_over_limit(index, id, now, pool, reason);
        }
        if queued == 1 {
            self.scheduler
                .activate(&mut self.flows, index, Head { length, stamp }, now);
        }
        Verdict::Queued
    }

    /// The rest of [`append`](Flows::append), if the flow has become long, or all flows together exceed the
    /// limit. `id` is the flow's newest packet.
    #[cold]
    #[inline(never)]
    fn append_over_limit(
        &mut self,
        index: u32,
        id: PacketId,
        now: Time,
        pool: &mut Pool,
        reason: DropReason,
    ) -> Verdict {
        let queued = self.flows[index as usize].queue.len();
        let head = Head {
            length: pool[id].length,
            stamp: pool[id].stamp,
        };
        self.by_length.grew(index, queued);
        let is_robbed = self.packets > self.config.limit && self.steal(reason, now, pool) == index;
        if queued == 1 && !is_robbed {
            self.scheduler.activate(&mut self.flows, index, head, now);
        }
        if is_robbed {
            self.note_if_empty(index);
            Verdict::Congested
        } else {
            Verdict::Queued
        }
    }

    /// Notes that a flow has no more packets, if it is so and matters.
    #[inline(always)]
    fn note_if_empty(&mut self, index: u32) {
        if S::CAN_SEPARATE
            && let Some(separate) = &mut self.separate
            && self.flows[index as usize].queue.is_empty()
        {
            separate.emptied(index);
        }
    }

    /// Dequeues the first packet of the selected flow.
    #[inline(always)]
    fn take(&mut self, index: u32, now: Time, pool: &mut Pool) -> PacketId {
        if self.packets > CACHED_PACKETS {
            self.prefetch(index, pool);
        }
        let queue = &mut self.flows[index as usize].queue;
        let queued = queue.len();
        let taken = queue.take_front(pool).expect("an active flow has packets");
        self.packets -= 1;
        // Only a stamp has to be read from the next packet. With many flows, its line is in no cache.
        let stamp = match queue.front() {
            Some(first) if S::STAMPS => pool[first].stamp,
            _ => 0,
        };
        let next = taken.next.map(|length| Head { length, stamp });
        self.scheduler
            .update(&mut self.flows, index, taken.length, next, now);
        self.note_if_empty(index);
        if queued >= self.by_length.least() {
            self.shorten(index, queued - 1);
        }
        taken.id
    }

    /// Prefetches what is needed soon after a packet of flow `index`. If packets arrive in random order, the
    /// processor's prefetcher can't predict it.
    #[inline(always)]
    fn prefetch(&self, index: u32, pool: &Pool) {
        if let Some(next) = self
            .flows
            .get(self.scheduler.upcoming(&self.flows, index) as usize)
        {
            next.queue.prefetch_front(pool);
        }
    }

    /// The rest of [`take`](Flows::take), if the flow was long. It now has `left` packets.
    #[cold]
    #[inline(never)]
    fn shorten(&mut self, index: u32, left: u32) {
        self.by_length.shrank(index, left);
    }

    /// Selects the next flow if it has to be searched, or if nothing is queued.
    #[cold]
    #[inline(never)]
    fn search(&mut self, now: Time) -> Option<u32> {
        self.scheduler.select(&mut self.flows, now)
    }

    /// Drops the newest packet of the longest flow because the limit is exceeded. Returns the flow.
    fn steal(&mut self, reason: DropReason, now: Time, pool: &mut Pool) -> u32 {
        let (victim, length) = self
            .by_length
            .longest()
            .expect("a discipline over its limit has packets");
        let newest = self.flows[victim as usize]
            .queue
            .pop_back(pool)
            .expect("the longest flow has packets");
        self.packets -= 1;
        self.by_length.shrank(victim, length - 1);
        if length > 1 || S::STAMPS {
            let head = Head {
                length: pool[newest].length,
                stamp: pool[newest].stamp,
            };
            self.scheduler.stolen(&mut self.flows, victim, head, now);
        }
        pool.give_back(newest, reason);
        victim
    }
}

/// The flows that a classifier does not name have the positions after those with shares of their own.
fn separate_of<S: Scheduler>(config: &ConfigOf<S>, salt: u64) -> Option<Separate> {
    let first = config.shares.len() as u32;
    let separates = S::CAN_SEPARATE && S::separates(&config.settings) && first < config.flows;
    separates.then(|| Separate::new(first, config.flows, salt))
}

/// Returns the bytes that telling apart `flows` flows allocates.
pub(crate) fn allocated_to_separate(flows: u32) -> u64 {
    Separate::allocated(flows.into())
}

impl<S: Scheduler> ByFlow for Flows<S> {
    #[inline]
    fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    #[inline(always)]
    fn enqueue_flow(&mut self, flow: u32, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        if flow >= self.flows() {
            pool.give_back(id, DropReason::NoFreeFlow);
            return Verdict::Unclassified;
        }
        self.admit(flow, id, now, pool)
    }
}

impl<S: Scheduler> Algorithm for Flows<S> {
    const NAME: &'static str = S::NAME;
    type Config = ConfigOf<S>;

    #[inline(always)]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        match self.flow_of(id, now, pool) {
            Ok(flow) => self.admit(flow, id, now, pool),
            Err(Filtered) => Verdict::Unclassified,
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let index = match self.scheduler.ready(&mut self.flows, now) {
            Some(index) => index,
            None => self.search(now)?,
        };
        Some(self.take(index, now, pool))
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for flow in &mut self.flows {
            if S::STAMPS {
                while let Some(id) = flow.queue.pop_front(pool) {
                    // The next owner must not take the stamp for the driver's time.
                    pool[id].stamp = 0;
                    into.push_back(id, pool);
                }
            }
            flow.queue.append_to(into, pool);
        }
        self.scheduler.clear(&mut self.flows);
        self.by_length.clear();
        self.separate = separate_of::<S>(&self.config, self.salt);
        self.packets = 0;
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> ConfigOf<S> {
        self.config.clone()
    }

    /// Assigns all packets anew, in the order of their flows. Virtual time starts again.
    fn reconfigure(
        &mut self,
        mut config: ConfigOf<S>,
        now: Time,
        pool: &mut Pool,
    ) -> Result<(), ConfigError> {
        config.classifier.take_over(&self.config.classifier);
        let mut successor = Flows::starting_at(config, self.salt, 0)?;
        let mut queued = PacketQueue::new();
        self.drain(pool, &mut queued);
        while let Some(id) = queued.pop_front(pool) {
            let flow = successor.flow_again(id, pool);
            let _ = successor.append(flow, id, DropReason::Reconfigured, now, pool);
        }
        *self = successor;
        Ok(())
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let lengths = || self.flows.iter().map(|flow| flow.queue.len());
        let active = lengths().filter(|&length| length > 0).count();
        visit("active_flows", Variable::Integer(active as i64));
        visit(
            "longest_flow",
            Variable::Integer(lengths().max().unwrap_or(0).into()),
        );
        if S::CAN_SEPARATE {
            // PFQ's active flow list (AFL) also has flows whose packets were sent a short time ago.
            let is_listed =
                |flow: &&Flow<S::Flow>| !flow.queue.is_empty() || self.scheduler.remembers(&flow.state);
            let listed = self.flows.iter().filter(is_listed).count();
            visit("afl_flows", Variable::Integer(listed as i64));
        }
        self.scheduler.visit_variables(visit);
    }
}
