//! Traffic for trials of schedulers: random traffic, and traffic that is made to be bad for them.
//!
//! A [`Recipe`] describes groups of similar flows: a few heavy and many light flows, packets just above
//! powers of two (where rounded time stamps lose most), and flows that wake up at the same time. The
//! adversary climbs by small changes of recipes, and of the arrivals that a recipe gives.

use fairgate::{Rate, Time};

use super::schedule::Arrival;
use crate::measured::Dice;

/// The rate of the link in all trials: a byte takes 8 ns.
pub const RATE: Rate = Rate::mbit(1000);
/// The time that a byte takes on that link.
pub(crate) const NANOS_PER_BYTE: u64 = 8;

/// The most packets of a traffic made from a recipe.
const MOST_PACKETS: usize = 600;

/// The longest packet, bytes.
const LONGEST: u32 = 1514;
/// The shortest packet, bytes.
const SHORTEST: u32 = 64;

/// Flows with their weights, and their packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The weight of each flow.
    pub weights: Vec<u32>,
    /// The length of each flow's longest packet, bytes.
    pub max_packets: Vec<u32>,
    /// All packets, ordered by time.
    pub arrivals: Vec<Arrival>,
}

/// The lengths of a group's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    /// All packets have the group's longest length.
    Long,
    /// Long and short packets alternate.
    Alternating,
    /// The first packet is long, all others are short.
    LongFirst,
    /// Lengths are random.
    Mixed,
}

/// A group of similar flows.
#[derive(Clone, Debug)]
struct Group {
    flows: u32,
    weight: u32,
    longest: u32,
    shortest: u32,
    lengths: Lengths,
    /// The number of packets at each wake-up.
    burst: u32,
    wake_ups: u32,
    /// The time between wake-ups, in bytes of the link.
    period: u64,
    /// The time of the first wake-up, in bytes of the link.
    phase: u64,
    /// How much later each further flow wakes up, in bytes of the link. 0 means that all wake up at once.
    stagger: u64,
}

/// Groups of flows, from which a traffic is made.
#[derive(Clone, Debug)]
pub struct Recipe {
    groups: Vec<Group>,
    /// The seed of the packet lengths.
    seed: u64,
}

impl Recipe {
    /// Creates a bad case as a starting point: one or two heavy flows, many light ones, and perhaps another
    /// group.
    pub fn adversarial(dice: &mut Dice) -> Recipe {
        let mut groups = vec![Group::any(dice), Group::any(dice)];
        groups[0].flows = 1 + dice.below(2) as u32;
        groups[0].weight = 1 << dice.below(8);
        groups[1].flows = 1 << (1 + dice.below(5));
        groups[1].weight = 1 + dice.below(3) as u32;
        if dice.below(2) == 0 {
            groups.push(Group::any(dice));
        }
        Recipe {
            groups,
            seed: dice.below(1 << 32),
        }
    }

    /// Returns the recipe with one or two numbers changed.
    #[must_use]
    pub fn changed(&self, dice: &mut Dice) -> Recipe {
        let mut recipe = self.clone();
        for _ in 0..=dice.below(2) {
            let index = dice.below(recipe.groups.len() as u64) as usize;
            recipe.groups[index].change(dice);
        }
        recipe
    }

    /// Makes the traffic.
    pub fn traffic(&self) -> Traffic {
        let mut dice = Dice::new(self.seed, "lengths");
        let mut traffic = Traffic {
            weights: Vec::new(),
            max_packets: Vec::new(),
            arrivals: Vec::new(),
        };
        for group in &self.groups {
            for number in 0..group.flows {
                group.add_flow(number, &mut dice, &mut traffic);
            }
        }
        traffic.arrivals.sort_by_key(|arrival| arrival.at);
        traffic.arrivals.truncate(MOST_PACKETS);
        traffic
    }
}

impl Group {
    fn any(dice: &mut Dice) -> Group {
        let mut group = Group {
            flows: 1,
            weight: 1,
            longest: LONGEST,
            shortest: SHORTEST,
            lengths: Lengths::Long,
            burst: 1,
            wake_ups: 1,
            period: 1000,
            phase: 0,
            stagger: 0,
        };
        for number in 0..Group::NUMBERS {
            group.set(number, dice);
        }
        group
    }

    const NUMBERS: u64 = 9;

    fn change(&mut self, dice: &mut Dice) {
        let number = dice.below(Group::NUMBERS);
        self.set(number, dice);
    }

    /// Sets one of the group's numbers to a new random value.
    fn set(&mut self, number: u64, dice: &mut Dice) {
        match number {
            0 => self.flows = 1 + any_size(1, 7, dice) as u32,
            1 => self.weight = any_weight(dice),
            2 => {
                self.longest = any_length(dice);
                self.shortest = self.shortest.min(self.longest);
            }
            3 => self.shortest = any_length(dice).min(self.longest),
            4 => {
                self.lengths = [
                    Lengths::Long,
                    Lengths::Alternating,
                    Lengths::LongFirst,
                    Lengths::Mixed,
                ][dice.below(4) as usize];
            }
            5 => self.burst = 1 + any_size(0, 7, dice) as u32,
            6 => {
                self.wake_ups = 1 + any_size(0, 6, dice) as u32;
                self.period = 1 + any_size(6, 17, dice);
            }
            7 => self.phase = any_size(0, 15, dice),
            _ => {
                let staggered = dice.below(2) == 1;
                self.stagger = if staggered { dice.below(2000) } else { 0 };
            }
        }
    }

    fn add_flow(&self, number: u32, dice: &mut Dice, traffic: &mut Traffic) {
        let flow = traffic.weights.len() as u32;
        traffic.weights.push(self.weight);
        traffic.max_packets.push(self.longest);
        let mut sent = 0;
        for wake_up in 0..self.wake_ups {
            let bytes = self.phase + u64::from(wake_up) * self.period + u64::from(number) * self.stagger;
            let at = Time::from_nanos(bytes * NANOS_PER_BYTE);
            for _ in 0..self.burst {
                if sent == MOST_PACKETS {
                    return;
                }
                let length = match self.lengths {
                    Lengths::Long => self.longest,
                    Lengths::Alternating if sent % 2 == 0 => self.longest,
                    Lengths::LongFirst if sent == 0 => self.longest,
                    Lengths::Alternating | Lengths::LongFirst => self.shortest,
                    Lengths::Mixed => between(self.shortest, self.longest, dice),
                };
                traffic.arrivals.push(Arrival { at, flow, length });
                sent += 1;
            }
        }
    }
}

impl Traffic {
    /// Makes the worst case for a flow whose start is rounded to slots and whose finish is two slots later
    /// (QFQ). The flow falls behind by almost four of its slots, see [`bounds`](super::bounds).
    ///
    /// At first the other flows send almost nothing, which only makes virtual time slow. The flow sends a
    /// packet of one byte less than a slot. It is still in its first slot, so it sends a whole slot too. Now
    /// it is almost two slots ahead. From then on the other flows are backlogged. The flow waits for the
    /// finish of its second slot, two slots after that slot begins. Then it sends a short packet, enters its
    /// third slot by that, and waits for one more slot.
    pub fn short_after_long(dice: &mut Dice) -> Traffic {
        let slot = 1u32 << (8 + dice.below(3));
        let weight = 1u32 << dice.below(3);
        let others = 32 / weight;
        // Slots shorter than the flow's own end nearer to its end. The packets don't fill the slots, so some
        // of the other flows are behind while some are ahead. So there is always one to go first.
        let finer = weight * (slot >> (2 + dice.below(2)));
        let length = between(finer / 2 + 1, finer * 3 / 4, dice);
        let arrival = |bytes: u32, flow: u32, length: u32| Arrival {
            at: Time::from_nanos(u64::from(bytes) * NANOS_PER_BYTE),
            flow,
            length,
        };
        let beginning = (1..=others).map(|other| arrival(0, other, 1));
        let early = [slot - 1, slot].map(|length| arrival(0, 0, length));
        // These arrive while the second long packet is sent.
        let short = (0..3).map(|_| arrival(others + slot, 0, 2));
        let full = (0..5 * slot * weight / length).flat_map(|_| 1..=others);
        let late = full.map(|other| arrival(others + slot, other, length));
        let mut traffic = Traffic {
            weights: vec![weight; others as usize + 1],
            max_packets: vec![finer; others as usize + 1],
            arrivals: beginning.chain(early).chain(short).chain(late).collect(),
        };
        (traffic.weights[0], traffic.max_packets[0]) = (1, slot);
        traffic
    }

    /// Makes the worst case for a virtual time that advances by the weights of the busy flows. It can run far
    /// ahead of waiting flows while few flows are busy. Flows that arrive then could be set back too far, and
    /// go before flows that arrived earlier.
    ///
    /// A flow of long packets and a flow of short packets are alone. The short flow has sent a packet and has
    /// to wait for its next slot. Virtual time advances by half a long packet, far past the short flow's
    /// finish. Then many flows arrive. Flows with shorter slots than the short flow's may not start after its
    /// finish, or else the order of their group and its group breaks. The first arriving flow has longer
    /// slots and starts from the current virtual time.
    pub fn many_after_few(dice: &mut Dice) -> Traffic {
        let short = 4u32 << dice.below(3);
        let long = between(1000, LONGEST, dice);
        let weight = 1u32 << (4 + dice.below(3));
        let (coarse, fine) = (2 * short * weight, short * weight / 2);
        let newcomers = 4 + dice.below(8) as u32;
        let mut arrivals = Vec::new();
        let mut arrive = |bytes: u32, flow: u32, length: u32, packets: u32| {
            let at = Time::from_nanos(u64::from(bytes) * NANOS_PER_BYTE);
            arrivals.extend((0..packets).map(|_| Arrival { at, flow, length }));
        };
        arrive(0, 0, long, 5);
        arrive(long / 2, 1, short, 5);
        // These arrive while the second long packet is sent.
        let then = long + short + long / 2;
        arrive(then, 2, coarse, 12);
        // As much as virtual time ran ahead, limited by the number of packets.
        let ahead = (weight * long / 2 / fine).min(400 / newcomers);
        for newcomer in 0..newcomers {
            arrive(then, 3 + newcomer, fine, ahead);
        }
        let mut traffic = Traffic {
            weights: vec![weight; 3 + newcomers as usize],
            max_packets: vec![fine; 3 + newcomers as usize],
            arrivals,
        };
        traffic.weights[..2].fill(1);
        traffic.max_packets[..3].copy_from_slice(&[long, short, coarse]);
        traffic
    }

    /// Makes random traffic. Weights and lengths have any size, and arrivals are memoryless. The load is
    /// between a half and 2.5, and some flows are backlogged from the beginning.
    pub fn random(dice: &mut Dice, packets: usize) -> Traffic {
        let flows = 2 + any_size(1, 6, dice) as usize;
        let weights = (0..flows).map(|_| any_weight(dice)).collect();
        let max_packets: Vec<u32> = (0..flows).map(|_| any_length(dice)).collect();
        let load = 0.5 + 2.0 * dice.unit();
        let mut bytes = 0.0;
        let mut arrivals = Vec::with_capacity(packets);
        for number in 0..packets {
            let flow = dice.below(flows as u64) as usize;
            let length = between(SHORTEST.min(max_packets[flow]), max_packets[flow], dice);
            // A fifth of all packets arrive at the beginning.
            if number > packets / 5 {
                bytes += dice.exponential(f64::from(length) / load);
            }
            arrivals.push(Arrival {
                at: Time::from_nanos(bytes as u64 * NANOS_PER_BYTE),
                flow: flow as u32,
                length,
            });
        }
        Traffic {
            weights,
            max_packets,
            arrivals,
        }
    }

    /// Returns the traffic with one packet or one flow changed.
    #[must_use]
    pub fn changed(&self, dice: &mut Dice) -> Traffic {
        let mut traffic = self.clone();
        let index = dice.below(traffic.arrivals.len() as u64) as usize;
        let other = traffic.arrivals[dice.below(traffic.arrivals.len() as u64) as usize];
        let flow = traffic.arrivals[index].flow as usize;
        let longest = traffic.max_packets[flow];
        match dice.below(7) {
            0 => traffic.arrivals[index].length = longest,
            1 => traffic.arrivals[index].length = between(1, longest, dice),
            2 => traffic.arrivals[index].at = other.at,
            3 => {
                // Moves the packet by some bytes, so that it arrives just before or after another one.
                let by = any_size(0, 13, dice) * NANOS_PER_BYTE;
                let at = traffic.arrivals[index].at.nanos();
                let moved = if dice.below(2) == 0 {
                    at + by
                } else {
                    at.saturating_sub(by)
                };
                traffic.arrivals[index].at = Time::from_nanos(moved);
            }
            4 if traffic.arrivals.len() > 2 => {
                traffic.arrivals.remove(index);
            }
            5 if traffic.arrivals.len() < MOST_PACKETS => {
                let length = traffic.arrivals[index].length;
                traffic.arrivals.push(Arrival {
                    at: other.at,
                    flow: flow as u32,
                    length,
                });
            }
            _ => traffic.weights[flow] = any_weight(dice),
        }
        traffic.arrivals.sort_by_key(|arrival| arrival.at);
        traffic
    }
}

/// Returns a number below 2^e, with e uniform from `least` to below `most`. Small numbers are as frequent as
/// large ones.
fn any_size(least: u64, most: u64, dice: &mut Dice) -> u64 {
    let exponent = least + dice.below(most - least);
    dice.below(1 << exponent)
}

/// Returns a weight. Half of the weights are small, and the others have any size up to a thousand.
fn any_weight(dice: &mut Dice) -> u32 {
    match dice.below(2) {
        0 => 1 + dice.below(8) as u32,
        _ => 1 + any_size(0, 11, dice) as u32,
    }
}

/// Returns a length. Half of the lengths are a power of two or one more.
fn any_length(dice: &mut Dice) -> u32 {
    match dice.below(4) {
        0 => (1 << (6 + dice.below(5))) + 1,
        1 => 1 << (6 + dice.below(5)),
        2 => LONGEST,
        _ => between(SHORTEST, LONGEST, dice),
    }
}

fn between(least: u32, most: u32, dice: &mut Dice) -> u32 {
    least + dice.below(u64::from(most - least) + 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(traffic: &Traffic) {
        assert!(traffic.arrivals.is_sorted_by_key(|arrival| arrival.at));
        assert_eq!(traffic.weights.len(), traffic.max_packets.len());
        assert!(!traffic.arrivals.is_empty() && traffic.arrivals.len() <= MOST_PACKETS);
        for arrival in &traffic.arrivals {
            assert!((1..=traffic.max_packets[arrival.flow as usize]).contains(&arrival.length));
        }
        assert!(traffic.weights.iter().all(|&weight| weight > 0));
    }

    #[test]
    fn changed_traffic_stays_in_order_and_within_its_limits() {
        let mut dice = Dice::new(5, "traffic");
        for _ in 0..20 {
            let mut recipe = Recipe::adversarial(&mut dice);
            for _ in 0..20 {
                check(&recipe.traffic());
                recipe = recipe.changed(&mut dice);
            }
            let mut traffic = recipe.traffic();
            for _ in 0..50 {
                traffic = traffic.changed(&mut dice);
                check(&traffic);
            }
            check(&Traffic::random(&mut dice, 300));
        }
    }

    #[test]
    fn equal_seeds_give_equal_traffic() {
        let of = |seed| Recipe::adversarial(&mut Dice::new(seed, "traffic")).traffic();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
