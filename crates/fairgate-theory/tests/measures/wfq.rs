//! Compares wfq with the fluid reference in exact fractions. Packets leave in the order of their fluid
//! finishes. None leaves later than its fluid finish by more than the transmission of the longest packet.

use fairgate::classify::Classifier;
use fairgate::scheduler::{Flows, flows};
use fairgate::timestamps::Weight;
use fairgate::timestamps::wfq::{Settings, Wfq};
use fairgate::{Discipline, Node, Packet, Pool, Rate, Time};
use fairgate_theory::gps::Gps;
use fairgate_theory::{Exact, TickScale};
use proptest::prelude::*;

/// A packet: its flow, its length, and the time since the packet before it, ns.
type Arrival = (u32, u32, u64);

/// A byte takes a nanosecond.
const RATE: Rate = Rate::mbit(8000);

fn wfq(weights: &[u32], origin: u64) -> Node<Flows<Wfq>> {
    let config = flows::ConfigOf::<Wfq> {
        flows: weights.len() as u32,
        shares: weights.iter().map(|&weight| Weight(weight)).collect(),
        settings: Settings { rate: RATE },
        classifier: Classifier::default(),
        ..flows::Config::default()
    };
    Node::new(Flows::starting_at(config, 0, origin).unwrap())
}

/// Sends all packets over a link. Returns their numbers and departure times in order, ns.
fn departures(scheduler: &mut Node<Flows<Wfq>>, arrivals: &[Arrival]) -> Vec<(usize, u64)> {
    let mut pool = Pool::with_capacity(arrivals.len() as u32);
    let mut coming = arrivals.iter().zip(0u64..).peekable();
    let mut arrives_at = coming.peek().map_or(0, |((_, _, gap), _)| *gap);
    let mut departures = Vec::new();
    let mut free_at = 0;
    while departures.len() < arrivals.len() {
        // Enqueue all packets that arrive before the link is free. If nothing is queued, enqueue the next
        // packet, too.
        while let Some(&(&(flow, length, _), number)) = coming.peek()
            && (arrives_at <= free_at || scheduler.backlog().packets == 0)
        {
            free_at = free_at.max(if scheduler.backlog().packets == 0 {
                arrives_at
            } else {
                0
            });
            let packet = Packet {
                cookie: number,
                ..Packet::of_length(length)
            };
            let id = pool.insert(packet).unwrap();
            scheduler.enqueue_flow(flow, id, Time::from_nanos(arrives_at), &mut pool);
            coming.next();
            if let Some(((_, _, gap), _)) = coming.peek() {
                arrives_at += gap;
            }
        }
        let id = scheduler
            .dequeue(Time::from_nanos(free_at), &mut pool)
            .expect("something is queued");
        let packet = pool.release(id);
        free_at += u64::from(packet.length);
        departures.push((packet.cookie as usize, free_at));
    }
    departures
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![1u32..=8, 1u32..=1 << 16]
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let length = prop_oneof![40u32..1515, Just(64), Just(1500), 1u32..=1 << 17];
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..3000, 1 => 0u64..300_000];
    prop::collection::vec((0u32..5, length, gap), 1..60)
}

proptest! {
    #[test]
    fn packets_leave_in_the_order_in_which_they_finish_in_the_fluid_system(
        weights in prop::collection::vec(weight(), 5),
        arrivals in arrivals(),
        before_wrap in prop::option::of(0u64..1 << 45),
    ) {
        let origin = before_wrap.map_or(0, |before| 0u64.wrapping_sub(before));
        let departures = departures(&mut wfq(&weights, origin), &arrivals);
        let mut gps = Gps::new(RATE, &weights).unwrap();
        let mut at = 0;
        let times: Vec<u64> = arrivals.iter().map(|(_, _, gap)| { at += gap; at }).collect();
        for (&(flow, length, _), &at) in arrivals.iter().zip(&times) {
            gps.arrive(Time::from_nanos(at), flow, length).unwrap();
        }
        let fluid = gps.finish();
        let tick_scale = TickScale::new(RATE);
        let ticks = |bytes: u64| Exact::from_integer(tick_scale.work(bytes).unwrap().into());
        // Time stamps distinguish times that differ by at least the 2^31st part of a byte.
        let resolution = ticks(1) / Exact::from_integer((1u64 << 30).into());
        let longest = arrivals.iter().map(|&(_, length, _)| u64::from(length)).max().unwrap();
        let virtual_finish: Vec<Exact> =
            fluid.packets().iter().map(|packet| packet.virtual_finish.reduced()).collect();

        for (index, &(number, departure)) in departures.iter().enumerate() {
            let packet = &fluid.packets()[number];
            let begins = departure - u64::from(arrivals[number].1);
            for &(other, _) in &departures[index + 1..] {
                if times[other] <= begins && fluid.packets()[other].busy_period == packet.busy_period {
                    prop_assert!(
                        virtual_finish[number] <= &virtual_finish[other] + &resolution,
                        "{number} before {other}: {} and {}", virtual_finish[number], virtual_finish[other]
                    );
                }
            }
            // Parekh and Gallager 1993, theorem 1.
            let finish = packet.finish.reduced();
            prop_assert!(ticks(departure) <= finish + ticks(longest) + &resolution, "{number} is late");
        }
    }
}
