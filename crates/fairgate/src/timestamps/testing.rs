//! What the tests of several schedulers share: a scheduler without queues of packets, on a line of one byte a step.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::scheduler::{Head, Holds, Scheduler};
use crate::time::Time;
use crate::timestamps::Share;

/// What happens on the line.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Packets of these lengths come for a flow, lengths cut to the flow's longest.
    Arrive { flow: usize, lengths: Vec<u32> },
    /// So many packets are sent.
    Send(usize),
}

/// Flows, few of them heavy, and traffic that wakes them up together, floods, and slips short packets in.
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

/// A scheduler, its flows, and of each packet queued its length, when it came, and how many bytes of its flow were
/// then queued or being sent, itself included.
pub(super) struct Line<S: Scheduler> {
    pub(super) scheduler: S,
    pub(super) flows: Vec<S::Flow>,
    queues: Vec<VecDeque<(u32, u64, u64)>>,
    queued: Vec<u64>,
    /// What is on the line until `now`: its flow and length.
    sending: Option<(usize, u32)>,
    now: u64,
    /// Largest time from coming to gone of each flow's packets, less the time that its share of the line would have
    /// taken for its backlog; in bytes of the line times the flow's weight.
    pub(super) worst: Vec<i128>,
}

impl<S: Scheduler<Share = Share, Settings = (), Flow: Holds<State = S::Flow>>> Line<S> {
    pub(super) fn new(shares: &[Share], origin: u64) -> Line<S> {
        let mut scheduler = S::new(&(), origin).expect("no settings, no error");
        let flows = shares.iter().map(|share| scheduler.add_flow(share));
        Line {
            flows: flows.collect::<Result<_, _>>().expect("shares are in range"),
            scheduler,
            queues: vec![VecDeque::new(); shares.len()],
            queued: vec![0; shares.len()],
            sending: None,
            now: 0,
            worst: vec![i128::MIN; shares.len()],
        }
    }

    /// All events, then what is left is sent.
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
        let on_line = match self.sending {
            // A packet comes just after the last was put on the line: `now` is when that is gone.
            Some((sent_by, sent)) if sent_by == flow => u64::from(sent),
            _ => 0,
        };
        let start = self.now - self.sending.map_or(0, |(_, sent)| u64::from(sent));
        self.queued[flow] += u64::from(length);
        self.queues[flow].push_back((length, start, self.queued[flow] + on_line));
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
                "a work-conserving scheduler"
            );
            self.sending = None;
            return false;
        };
        let index = flow as usize;
        let (length, came, backlog) = self.queues[index].pop_front().expect("it has packets");
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
