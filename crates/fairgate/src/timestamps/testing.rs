//! Helpers for the tests of time-stamp schedulers: flows with given shares for all of them; for schedulers
//! with rounded stamps also a link of one byte per step with a scheduler, and WF2Q+ with rounded stamps in
//! exact arithmetic as a model.

use alloc::collections::VecDeque;

use proptest::prelude::*;

use crate::classify::Classifier;
use crate::discipline::Node;
use crate::scheduler::{Flows, Head, Holds, MAX_PACKET, Scheduler, flows};
use crate::testing::Driver;
use crate::time::Time;
use crate::timestamps::virtual_time::FRACTION;
use crate::timestamps::{MAX_WEIGHT, Share};

/// Returns parameters with a flow for each of `shares`. A packet selects its flow as a class.
pub(super) fn of_shares<S: Scheduler<Share: Default, Settings: Default>>(
    shares: impl IntoIterator<Item = S::Share>,
) -> flows::ConfigOf<S> {
    let shares: Vec<S::Share> = shares.into_iter().collect();
    flows::Config {
        flows: shares.len() as u32,
        shares,
        classifier: Classifier {
            handle: 1,
            ..Classifier::default()
        },
        ..flows::Config::default()
    }
}

/// Returns the flat discipline with these parameters. Virtual time starts at `origin`.
pub(super) fn starting_at<S: Scheduler>(config: flows::ConfigOf<S>, origin: u64) -> Driver<Flows<S>> {
    Driver::new(Node::new(Flows::starting_at(config, 0, origin).unwrap()))
}

/// The virtual time of a byte at weight 1.
pub(super) const ONE: i128 = 1 << FRACTION;

/// Starts of virtual time: anywhere, or just before it wraps.
pub(super) fn origin() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u64..1 << 52).prop_map(|before| 0u64.wrapping_sub(before))
    ]
}

/// An event at the link.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Packets of these lengths arrive for a flow. Lengths are limited to the flow's longest packet.
    Arrive { flow: usize, lengths: Vec<u32> },
    /// This many packets are sent.
    Send(usize),
}

/// Flows, a few of them heavy, and traffic that makes them busy together, fills queues, and inserts short
/// packets.
pub(super) fn traffic(longest: u32) -> impl Strategy<Value = (Vec<Share>, Vec<Event>)> {
    let share = (
        prop_oneof![3 => Just(1u32), 2 => 1u32..20, 1 => 200u32..1000],
        prop_oneof![3 => Just(longest), 1 => 1..=longest],
    )
        .prop_map(|(weight, max_packet)| Share { weight, max_packet });
    prop::collection::vec(share, 1..12).prop_flat_map(move |shares| {
        let length = prop_oneof![2 => Just(longest), 2 => Just(1u32), 1 => 1..=longest];
        let event = prop_oneof![
            2 => (0..shares.len(), prop::collection::vec(length, 1..12))
                .prop_map(|(flow, lengths)| Event::Arrive { flow, lengths }),
            1 => (1usize..40).prop_map(Event::Send),
        ];
        (Just(shares), prop::collection::vec(event, 1..80))
    })
}

/// A scheduler and its flows on a link. For each queued packet: its length, its arrival time, and the bytes
/// of its flow that were then queued or in transmission, including the packet.
pub(super) struct TestLink<S: Scheduler> {
    pub(super) scheduler: S,
    pub(super) flows: Vec<S::Flow>,
    queues: Vec<VecDeque<(u32, u64, u64)>>,
    queued: Vec<u64>,
    /// The flow and length of the packet in transmission until `now`.
    sending: Option<(usize, u32)>,
    now: u64,
    /// For each flow the largest excess of a packet's delay over the time that the flow's share of the link
    /// takes for its backlog, in bytes of the link times the flow's weight.
    pub(super) worst: Vec<i128>,
}

impl<S: Scheduler<Share = Share, Settings = (), Flow: Holds<State = S::Flow>>> TestLink<S> {
    pub(super) fn new(shares: &[Share], origin: u64) -> TestLink<S> {
        let mut scheduler = S::new(&(), origin).expect("no settings, no error");
        let flows = shares.iter().map(|share| scheduler.add_flow(share));
        TestLink {
            flows: flows.collect::<Result<_, _>>().expect("shares are in range"),
            scheduler,
            queues: vec![VecDeque::new(); shares.len()],
            queued: vec![0; shares.len()],
            sending: None,
            now: 0,
            worst: vec![i128::MIN; shares.len()],
        }
    }

    /// Handles all events, and then sends all queued packets.
    pub(super) fn run(&mut self, shares: &[Share], events: &[Event]) {
        for event in events {
            match event {
                Event::Arrive { flow, lengths } => {
                    for length in lengths {
                        self.arrive(*flow, (*length).min(shares[*flow].max_packet));
                    }
                }
                Event::Send(packets) => {
                    for _ in 0..*packets {
                        self.send(shares);
                    }
                }
            }
        }
        while self.send(shares) {}
    }

    fn arrive(&mut self, flow: usize, length: u32) {
        let on_link = match self.sending {
            // A packet arrives just after the last one began transmission. `now` is the end of that
            // transmission.
            Some((sent_by, sent)) if sent_by == flow => u64::from(sent),
            _ => 0,
        };
        let start = self.now - self.sending.map_or(0, |(_, sent)| u64::from(sent));
        self.queued[flow] += u64::from(length);
        self.queues[flow].push_back((length, start, self.queued[flow] + on_link));
        if self.queues[flow].len() == 1 {
            let head = Head { length, stamp: 0 };
            self.scheduler
                .activate(&mut self.flows, flow as u32, head, Time::ZERO);
        }
    }

    fn send(&mut self, shares: &[Share]) -> bool {
        let Some(flow) = self.scheduler.select(&mut self.flows, Time::ZERO) else {
            assert!(
                self.queues.iter().all(VecDeque::is_empty),
                "the scheduler is work-conserving"
            );
            self.sending = None;
            return false;
        };
        let index = flow as usize;
        let (length, came, backlog) = self.queues[index]
            .pop_front()
            .expect("a selected flow has packets");
        let next = self.queues[index]
            .front()
            .map(|&(length, ..)| Head { length, stamp: 0 });
        self.scheduler
            .update(&mut self.flows, flow, length, next, Time::ZERO);
        self.queued[index] -= u64::from(length);
        self.now += u64::from(length);
        self.sending = Some((index, length));
        let weights: u64 = shares.iter().map(|share| u64::from(share.weight)).sum();
        let excess = i128::from(self.now - came) * i128::from(shares[index].weight)
            - i128::from(backlog) * i128::from(weights);
        self.worst[index] = self.worst[index].max(excess);
        true
    }
}

/// The times of a flow's first packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    /// Its exact start.
    pub(super) exact: i128,
    pub(super) rounded_start: i128,
    pub(super) rounded_finish: i128,
}

/// A flow of the model.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    pub(super) share: Share,
    /// The virtual start of its first packet, or the finish of its last.
    pub(super) start: i128,
    lengths: Vec<u32>,
    /// Set if it has packets.
    pub(super) stamp: Option<Stamp>,
}

/// WF2Q+ with stamps rounded by any rule, with unlimited time. It is slow and simple.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) now: i128,
    pub(super) flows: Vec<Exact>,
    pub(super) longest: u32,
    rule: Rule,
}

/// Returns the stamp of a flow's first packet, which has this length.
pub(super) type Rule = fn(&Model, usize, u32) -> Stamp;

impl Model {
    pub(super) fn new(shares: &[Share], origin: u64, rule: Rule) -> Model {
        let start = i128::from(origin);
        let flows = shares.iter().map(|&share| Exact {
            share,
            start,
            lengths: Vec::new(),
            stamp: None,
        });
        Model {
            now: start,
            flows: flows.collect(),
            longest: shares.iter().map(|share| share.max_packet).max().unwrap_or(1),
            rule,
        }
    }

    pub(super) fn weights(&self) -> i128 {
        self.flows.iter().map(|flow| i128::from(flow.share.weight)).sum()
    }

    /// Returns by how much the longest packet moves V.
    pub(super) fn of_longest(&self) -> i128 {
        i128::from(self.longest) * (ONE / self.weights())
    }

    pub(super) fn cost(&self, flow: usize, length: u32) -> i128 {
        let weight = i128::from(self.flows[flow].share.weight);
        i128::from(length) * ((ONE + weight - 1) / weight)
    }

    /// Stamps the first packet of a flow, if there is one.
    fn stamp(&mut self, flow: usize) {
        let Some(&length) = self.flows[flow].lengths.first() else {
            self.flows[flow].stamp = None;
            return;
        };
        let share = &mut self.flows[flow].share;
        share.max_packet = share.max_packet.max(length);
        self.longest = self.longest.max(length);
        let stamp = (self.rule)(self, flow, length);
        self.flows[flow].start = stamp.exact;
        self.flows[flow].stamp = Some(stamp);
    }

    fn arrive(&mut self, flow: usize, length: u32) {
        self.flows[flow].lengths.push(length);
        if self.flows[flow].lengths.len() == 1 {
            self.flows[flow].start = self.flows[flow].start.max(self.now);
            self.stamp(flow);
        }
    }

    /// Returns the least rounded finish of the eligible flows. V first moves until a flow is eligible.
    fn least_finish(&mut self) -> Option<i128> {
        let stamps = self.flows.iter().filter_map(|flow| flow.stamp);
        let starts = stamps.clone().map(|stamp| stamp.rounded_start);
        let now = self.now.max(starts.min()?);
        let eligible = stamps.filter(|stamp| stamp.rounded_start <= now);
        let least = eligible.map(|stamp| stamp.rounded_finish).min();
        self.now = now;
        least
    }

    fn send(&mut self, flow: usize) -> u32 {
        let sent = self.flows[flow].lengths.remove(0);
        self.flows[flow].start += self.cost(flow, sent);
        self.stamp(flow);
        self.now += i128::from(sent) * (ONE / self.weights());
        sent
    }
}

/// An operation on a scheduler.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Arrive(usize, u32),
    Send,
    /// The first packet of the selected flow was dropped.
    Vanish,
    Change(usize, Share),
}

/// Shares of flows, and operations.
pub(super) fn operations() -> impl Strategy<Value = (Vec<Share>, Vec<Operation>)> {
    let share = || {
        let weight = prop_oneof![Just(1u32), 1u32..100, 1..=MAX_WEIGHT];
        let max_packet = prop_oneof![Just(1514u32), 1u32..2000, 1..=MAX_PACKET];
        (weight, max_packet).prop_map(|(weight, max_packet)| Share { weight, max_packet })
    };
    prop::collection::vec(share(), 1..10).prop_flat_map(move |shares| {
        let flows = shares.len();
        let length = prop_oneof![4 => 1u32..1515, 1 => 1..=MAX_PACKET];
        let operation = prop_oneof![
            8 => (0..flows, length).prop_map(|(flow, length)| Operation::Arrive(flow, length)),
            8 => Just(Operation::Send),
            1 => Just(Operation::Vanish),
            1 => (0..flows, share()).prop_map(|(flow, share)| Operation::Change(flow, share)),
        ];
        (Just(shares), prop::collection::vec(operation, 0..400))
    })
}

/// A choice of the scheduler.
pub(super) struct Choice {
    pub(super) stamp: Stamp,
    /// The least rounded finish of all eligible flows.
    pub(super) least: i128,
    pub(super) now: i128,
}

/// Runs a scheduler and the model. If `steady`, shares are not changed and packets are not longer than
/// configured. `is_right` checks each choice, and `check` compares both after each operation.
pub(super) fn against_the_model<S>(
    (shares, operations): (&[Share], &[Operation]),
    origin: u64,
    steady: bool,
    rule: Rule,
    is_right: impl Fn(&Choice) -> bool,
    check: impl Fn(&S, &[S::Flow], &Model) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError>
where
    S: Scheduler<Share = Share, Settings = (), Flow: Holds<State = S::Flow>>,
{
    let now = Time::ZERO;
    let mut scheduler = S::new(&(), origin).unwrap();
    let flows = shares.iter().map(|share| scheduler.add_flow(share).unwrap());
    let mut flows: Vec<S::Flow> = flows.collect();
    let mut model = Model::new(shares, origin, rule);
    for operation in operations {
        match *operation {
            Operation::Arrive(flow, length) => {
                let length = if steady {
                    length.min(shares[flow].max_packet)
                } else {
                    length
                };
                model.arrive(flow, length);
                if model.flows[flow].lengths.len() == 1 {
                    scheduler.activate(&mut flows, flow as u32, Head { length, stamp: 0 }, now);
                }
            }
            Operation::Send | Operation::Vanish => {
                let least = model.least_finish();
                let Some(flow) = scheduler.select(&mut flows, now) else {
                    prop_assert_eq!(least, None);
                    continue;
                };
                prop_assert_eq!(scheduler.select(&mut flows, now), Some(flow), "selected again");
                let index = flow as usize;
                let choice = Choice {
                    stamp: model.flows[index].stamp.expect("a selected flow has packets"),
                    least: least.expect("there are packets"),
                    now: model.now,
                };
                prop_assert!(is_right(&choice), "{:?}, but least {:?}", choice.stamp, least);
                let mut sent = 0;
                if matches!(operation, Operation::Send) {
                    sent = model.send(index);
                } else {
                    model.flows[index].lengths.remove(0);
                    model.stamp(index);
                }
                let next = model.flows[index].lengths.first();
                let next = next.map(|&length| Head { length, stamp: 0 });
                scheduler.update(&mut flows, flow, sent, next, now);
            }
            Operation::Change(..) if steady => {}
            Operation::Change(flow, share) => {
                model.flows[flow].share = share;
                model.longest = model.longest.max(share.max_packet);
                scheduler.change_share(&mut flows[flow], &share);
            }
        }
        check(&scheduler, &flows, &model)?;
    }
    Ok(())
}

/// Checks the delay of each packet: it is at most the time of its flow's backlog at its share of the link,
/// plus a bound. The bound is the flow's virtual time `sigmas` times the sum of weights, plus twice the
/// longest packet.
pub(super) fn check_t_wfi<S>(
    (shares, events): (&[Share], &[Event]),
    origin: u64,
    sigmas: impl Fn(&Model, usize) -> i128,
    rule: Rule,
) -> Result<(), TestCaseError>
where
    S: Scheduler<Share = Share, Settings = (), Flow: Holds<State = S::Flow>>,
{
    let mut link = TestLink::<S>::new(shares, origin);
    link.run(shares, events);
    let model = Model::new(shares, 0, rule);
    for (index, share) in shares.iter().enumerate() {
        // In bytes of the link, plus one for rounding.
        let bound = sigmas(&model, index) * model.weights() / ONE + 2 * i128::from(model.longest) + 1;
        let worst = link.worst[index];
        prop_assert!(
            worst <= i128::from(share.weight) * bound,
            "{worst} of flow {index}, bound {bound}"
        );
    }
    Ok(())
}
