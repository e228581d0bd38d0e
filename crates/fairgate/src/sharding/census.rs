//! Counts the flows of a shard by the packets that enter and leave, whatever the discipline between them.
//!
//! Flows are hashed to places, so that a count needs no memory of its own for each flow. Flows that share a
//! place count once. The estimate corrects for that: of `B` places, `n` flows occupy about `n - n^2 / 2B`
//! (linear counting; Whang, Vander-Zanden, Taylor 1990). Classes have a place each, their number.
//!
//! Each flow has a *level*, what it has sent in a window beyond its guarantee, for its weight. From it
//! follows what the flow asks for until the next window ends:
//!
//! * If its queue became empty, and its level was not the highest, it is *light*: it asks for what it sent.
//! * If its queue became empty, and its level was the highest, it counts as a flow that always has packets.
//!   It may be held back by the rate of the shard, and have paused for a moment, as TCP does.
//! * If it had packets all the time, and sent less than three quarters of what the highest level grants to
//!   it, something else limits it. It is light, too.
//! * All others count as flows that always have packets, for as long as they have some.
//!
//! A flow that was not seen in a window is not light until the next one ends. Classes whose common limit is
//! reached are light: together they ask for that limit.

use alloc::vec::Vec;
use core::iter;

use super::terms::{Classes, Group, KINDS, Terms, in_window};
use crate::flow::FlowHash;

/// The number of places of flows.
const HASHED: u32 = 4096;
/// Separates the choice of the place from other uses of the hash.
const SALT: u64 = 0x6365_6e73_7573_0001;
/// A window ends when a flow has sent so many bytes: enough packets to compare flows.
const ENOUGH: u64 = 16 * FRAME;
/// It ends after so many intervals at the latest.
const LONGEST: u32 = 512;
/// A full frame, bytes. A flow may have sent one less than another one by chance.
const FRAME: u64 = 1514;

#[derive(Clone, Copy, Debug, Default)]
struct FlowCount {
    packets: u32,
    /// What it has sent in this window.
    bytes: u32,
    kind: u8,
    group: Group,
    /// Whether it is in the list of places that the end of the window looks at.
    is_listed: bool,
    /// Whether it had packets when this window began.
    was_backlogged: bool,
    /// Whether it became empty in this window.
    was_empty: bool,
    asks: Asks,
}

/// When a flow counts as one that has packets, until the window ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asks {
    /// While it has packets.
    #[default]
    WhileBacklogged,
    /// Always.
    Always,
    /// Never: it is light, and asks for what it sent.
    Never,
}

impl FlowCount {
    /// Returns whether it counts as a flow that has packets.
    fn is_heavy(&self) -> bool {
        match self.asks {
            Asks::WhileBacklogged => self.packets > 0,
            Asks::Always => true,
            Asks::Never => false,
        }
    }
}

/// Classes that have a common limit.
#[derive(Clone, Copy, Debug)]
struct Together {
    /// The group that this one belongs to, or 0.
    above: Group,
    /// Bytes per second.
    most: u64,
    /// What they have sent in the window that ends.
    bytes: u64,
}

impl Together {
    fn new((most, above): &(u64, Group)) -> Together {
        Together {
            above: *above,
            most: *most,
            bytes: 0,
        }
    }
}

/// What was counted in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// The weight of the flows that sent.
    pub(super) senders: u64,
    /// What is guaranteed to these, bytes per second.
    pub(super) senders_least: u64,
    /// The bytes that were sent.
    pub(super) bytes: u64,
    /// The weight of the flows that were light.
    pub(super) light: u64,
    /// What is guaranteed to these, bytes per second.
    pub(super) light_least: u64,
    /// The bytes that these sent.
    pub(super) light_bytes: u64,
    /// How long the window took, ns.
    pub(super) nanos: u64,
}

impl Window {
    /// Converts bytes of the window to bytes per second.
    pub(super) fn rate(&self, bytes: u64) -> u64 {
        let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(self.nanos.max(1));
        u64::try_from(per_second).unwrap_or(u64::MAX)
    }
}

/// The flows of a shard.
#[derive(Clone, Debug)]
pub(super) struct Census {
    places: Vec<FlowCount>,
    /// The places that have packets, have sent in this window, or are light.
    listed: Vec<u32>,
    terms: Vec<Terms>,
    groups: Vec<Together>,
    /// Whether several flows may share a place.
    is_hashed: bool,
    /// The places of each kind that hold packets, and are not light.
    heavy: [u32; KINDS],
    packets: u32,
    /// The intervals of this window, their time in ns, and the bytes of all places and of the one with most.
    intervals: u32,
    nanos: u64,
    bytes: u64,
    most: u64,
    last: Window,
}

impl Census {
    /// Counts flows, which are all alike.
    pub(super) fn of_flows() -> Census {
        Census {
            is_hashed: true,
            ..Census::of(vec![FlowCount::default(); HASHED as usize], vec![Terms::FLOW])
        }
    }

    /// Counts classes. The place of a class is its number.
    pub(super) fn of_classes(classes: &Classes) -> Census {
        let place = |(kind, group)| FlowCount {
            kind,
            group,
            ..FlowCount::default()
        };
        let places = classes.places().map(place).collect();
        Census {
            groups: classes.groups().iter().map(Together::new).collect(),
            ..Census::of(places, classes.terms().to_vec())
        }
    }

    fn of(places: Vec<FlowCount>, terms: Vec<Terms>) -> Census {
        Census {
            listed: Vec::with_capacity(places.len()),
            places,
            terms,
            groups: Vec::new(),
            is_hashed: false,
            heavy: [0; KINDS],
            packets: 0,
            intervals: 0,
            nanos: 0,
            bytes: 0,
            most: 0,
            last: Window::default(),
        }
    }

    /// Changes the classes. Packets stay counted.
    pub(super) fn set_classes(&mut self, classes: &Classes) {
        self.terms.clear();
        self.terms.extend_from_slice(classes.terms());
        self.groups.clear();
        self.groups.extend(classes.groups().iter().map(Together::new));
        self.heavy = [0; KINDS];
        let places = classes.places();
        // Never fewer: packets of a class that has gone are still counted at its place.
        if places.len() > self.places.len() {
            self.places.resize(places.len(), FlowCount::default());
            self.listed.reserve(self.places.len() - self.listed.len());
        }
        let gone = iter::repeat((0, 0));
        for (place, (kind, group)) in self.places.iter_mut().zip(places.chain(gone)) {
            (place.kind, place.group) = (kind, group);
            self.heavy[usize::from(kind)] += u32::from(place.is_heavy());
        }
    }

    /// Returns the place of a flow.
    pub(super) fn place(flow: FlowHash) -> u32 {
        flow.bucket(SALT, HASHED)
    }

    /// Notes that the end of the window must look at a place.
    #[inline]
    fn list(&mut self, index: u32) -> &mut FlowCount {
        let place = &mut self.places[index as usize];
        if !place.is_listed {
            place.is_listed = true;
            self.listed.push(index);
        }
        place
    }

    #[inline]
    pub(super) fn arrived(&mut self, index: u32) {
        let place = self.list(index);
        place.packets += 1;
        let is_first = place.packets == 1 && place.asks == Asks::WhileBacklogged;
        let kind = usize::from(place.kind);
        self.heavy[kind] += u32::from(is_first);
        self.packets += 1;
    }

    /// Notes that a packet was sent or dropped.
    #[inline]
    fn left(&mut self, index: u32) -> &mut FlowCount {
        self.packets = self.packets.saturating_sub(1);
        let place = self.list(index);
        let is_last = place.packets == 1 && place.asks == Asks::WhileBacklogged;
        // A packet whose arrival is not known was here before `clear`.
        place.packets = place.packets.saturating_sub(1);
        place.was_empty |= place.packets == 0;
        let kind = usize::from(place.kind);
        self.heavy[kind] -= u32::from(is_last);
        &mut self.places[index as usize]
    }

    #[inline]
    pub(super) fn dropped(&mut self, index: u32) {
        self.left(index);
    }

    #[inline]
    pub(super) fn sent(&mut self, index: u32, bytes: u64) {
        let place = self.left(index);
        place.bytes = place.bytes.saturating_add(bytes.min(u32::MAX.into()) as u32);
        let of_place = u64::from(place.bytes);
        self.most = self.most.max(of_place);
        self.bytes += bytes;
    }

    /// Ends an interval of `nanos` ns.
    pub(super) fn interval_ends(&mut self, nanos: u64) {
        self.nanos += nanos;
        self.intervals += 1;
        // The first window ends early: a new shard soon knows its flows.
        let is_over = self.most >= ENOUGH || self.intervals >= LONGEST || self.last.nanos == 0;
        if is_over {
            self.window_ends();
        }
    }

    #[cold]
    fn window_ends(&mut self) {
        let nanos = self.nanos.max(1);
        let mut last = Window {
            bytes: self.bytes,
            nanos,
            ..Window::default()
        };
        self.add_up_groups();
        let (places, terms, groups) = (&mut self.places, &self.terms, &self.groups);
        let levels = self.listed.iter().map(|index| {
            let place = &places[*index as usize];
            terms[usize::from(place.kind)].level(place.bytes.into(), nanos)
        });
        let most = levels.max().unwrap_or(0);
        self.heavy = [0; KINDS];
        let heavy = &mut self.heavy;
        self.listed.retain(|index| {
            let place = &mut places[*index as usize];
            let terms = &terms[usize::from(place.kind)];
            let (bytes, weight) = (u64::from(place.bytes), u64::from(terms.weight));
            let is_below = |bytes: u64, level: u128| u128::from(bytes) < terms.bytes(level, nanos);
            let is_held_back = place.was_backlogged && is_below(bytes + FRAME, most * 3 / 4);
            let limited = asked_together(groups, place, nanos);
            let sent_less = terms.level(bytes, nanos) < most;
            place.asks = match bytes {
                // What has packets, and sends none of them in a whole window, asks for nothing: its limit is
                // tiny, or its packets have left under another place.
                0 if place.was_backlogged => Asks::Never,
                0 => Asks::WhileBacklogged,
                _ if limited.is_some() || is_held_back => Asks::Never,
                _ if place.was_empty && sent_less => Asks::Never,
                _ if place.was_empty => Asks::Always,
                _ => Asks::WhileBacklogged,
            };
            if bytes > 0 {
                last.senders += weight;
                last.senders_least += terms.least;
            }
            if place.asks == Asks::Never && bytes > 0 {
                last.light += weight;
                last.light_least += terms.least;
                last.light_bytes += limited.unwrap_or(bytes);
            }
            heavy[usize::from(place.kind)] += u32::from(place.is_heavy());
            place.was_backlogged = place.packets > 0;
            place.is_listed = place.was_backlogged || place.asks != Asks::WhileBacklogged;
            (place.bytes, place.was_empty) = (0, false);
            place.is_listed
        });
        self.last = last;
        (self.intervals, self.nanos, self.bytes, self.most) = (0, 0, 0, 0);
    }

    /// Adds up what the classes of each group have sent in the window.
    fn add_up_groups(&mut self) {
        if self.groups.is_empty() {
            return;
        }
        for group in &mut self.groups {
            group.bytes = 0;
        }
        for index in &self.listed {
            let place = &self.places[*index as usize];
            let mut group = place.group;
            while group != 0 {
                let together = &mut self.groups[group as usize - 1];
                together.bytes += u64::from(place.bytes);
                group = together.above;
            }
        }
    }

    /// Returns whether it counts classes, whose limits are known.
    pub(super) fn knows_limits(&self) -> bool {
        !self.is_hashed
    }

    /// Returns the packets that it knows of.
    #[inline]
    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    /// Forgets all packets: the shard has none. They were moved or flushed without notice.
    #[cold]
    pub(super) fn clear(&mut self) {
        for index in &self.listed {
            self.places[*index as usize].packets = 0;
        }
        (self.heavy, self.packets) = ([0; KINDS], 0);
    }

    /// Returns the number of flows of each kind that have packets, and are not light.
    pub(super) fn backlogged(&self) -> [u32; KINDS] {
        self.heavy.map(|count| self.estimate(count.into()) as u32)
    }

    /// Returns the weight of all flows that have packets, and are not light.
    pub(super) fn backlogged_weight(&self) -> u64 {
        let counts = self.backlogged().map(u64::from);
        let weights = self.terms.iter().zip(counts);
        weights
            .map(|(terms, count)| u64::from(terms.weight) * count)
            .sum()
    }

    /// Returns the last window that is over.
    pub(super) fn last(&self) -> Window {
        Window {
            senders: self.estimate(self.last.senders),
            light: self.estimate(self.last.light),
            ..self.last
        }
    }

    /// Returns about how many flows occupy this many places.
    fn estimate(&self, occupied: u64) -> u64 {
        match self.is_hashed {
            true => occupied + occupied * occupied / u64::from(2 * HASHED),
            false => occupied,
        }
    }
}

/// Returns the part of a place in what a group of classes asks for that has reached its limit, in bytes of a
/// window of `nanos` ns: the limit is divided by what they have sent. `None` if no group of the place has
/// reached its limit.
fn asked_together(groups: &[Together], place: &FlowCount, nanos: u64) -> Option<u64> {
    let mut group = place.group;
    while group != 0 {
        let together = &groups[group as usize - 1];
        let most = in_window(together.most, nanos);
        if u128::from(together.bytes) >= most * 7 / 8 {
            let asked = most * u128::from(place.bytes) / u128::from(together.bytes.max(1));
            return Some(u64::try_from(asked).unwrap_or(u64::MAX));
        }
        group = together.above;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::terms::{Limited, Member};
    use super::*;

    fn flow(number: u64) -> u32 {
        Census::place(FlowHash::from_raw(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    fn backlogged(census: &Census) -> u32 {
        census.backlogged()[0]
    }

    #[test]
    fn backlogged_and_light_flows_are_told_apart() {
        let mut census = Census::of_flows();
        census.interval_ends(1);
        for number in [1, 2] {
            (0..100).for_each(|_| census.arrived(flow(number)));
        }
        for _ in 0..4 {
            census.arrived(flow(3));
            census.sent(flow(3), 1000);
        }
        census.arrived(flow(3));
        assert_eq!(backlogged(&census), 3, "nobody is known to be light");
        census.dropped(flow(1));
        for number in [1, 2] {
            (0..25).for_each(|_| census.sent(flow(number), 1000));
        }
        census.interval_ends(1_000_000);
        let expected = Window {
            senders: 3,
            bytes: 54_000,
            light: 1,
            light_bytes: 4000,
            nanos: 1_000_000,
            ..Window::default()
        };
        assert_eq!(census.last(), expected);
        assert_eq!(census.last().rate(4000), 4_000_000);
        assert_eq!((backlogged(&census), census.packets()), (2, 150));
        census.sent(flow(3), 1000);
        census.arrived(flow(3));
        assert_eq!(backlogged(&census), 2, "it is light until the window ends");
        census.clear();
        assert_eq!((backlogged(&census), census.packets()), (0, 0));
        // Packets that were here before leave later.
        census.sent(flow(1), 100);
        assert_eq!((backlogged(&census), census.packets()), (0, 0));
    }

    #[test]
    fn flows_that_share_a_bucket_are_estimated() {
        for flows in [10u64, 300, 1000] {
            let mut census = Census::of_flows();
            (0..flows).for_each(|number| census.arrived(flow(number)));
            let error = u64::from(backlogged(&census)).abs_diff(flows);
            assert!(error <= 1 + flows / 50, "{flows}: {}", backlogged(&census));
        }
    }

    /// Three classes are limited: one by its own limit, one by something within it, and one by the traffic.
    #[test]
    fn classes_are_compared_by_what_their_terms_grant() {
        let terms = |least, weight, most| Terms {
            least,
            adds_up: true,
            weight,
            most,
        };
        // Bytes per second, and a window of 1 s.
        let plain = terms(10_000, 1, u64::MAX);
        let double = terms(10_000, 2, u64::MAX);
        let limited = terms(10_000, 1, 50_000);
        let mut members = [(5, plain), (6, plain), (7, plain), (8, double), (9, limited)].map(member);
        let mut census = Census::of_classes(&Classes::new(&members, &[]));
        census.interval_ends(1);
        let window = |census: &mut Census, first: bool| {
            for (class, bytes) in [(5, 110_000), (6, 40_000), (7, 40_000), (8, 210_000), (9, 50_000)] {
                for _ in 0..if first { 2 } else { 1 } {
                    census.arrived(class);
                }
                census.sent(class, bytes);
                if class == 7 {
                    census.dropped(class);
                    census.arrived(class);
                }
            }
            census.interval_ends(1_000_000_000);
        };
        // Classes that have had packets for less than a window are not known to be limited.
        window(&mut census, true);
        assert_eq!(census.last().light, 1, "class 7 was empty");
        window(&mut census, false);
        assert_eq!((census.last().light, census.last().light_bytes), (2, 80_000));
        assert_eq!((census.last().senders, census.last().senders_least), (6, 50_000));
        assert_eq!(census.backlogged_weight(), 4);
        // New terms: the weights are alike now.
        members.iter_mut().for_each(|member| member.terms = plain);
        census.set_classes(&Classes::new(&members, &[]));
        assert_eq!((backlogged(&census), census.backlogged_weight()), (3, 3));
        // A class with a higher number than any before, and fewer classes than have packets.
        let last = Member {
            minor: 100_000,
            ..members[0]
        };
        census.set_classes(&Classes::new(&[last], &[]));
        census.arrived(last.minor);
        window(&mut census, false);
        assert_eq!((census.places[5].kind, census.places.len()), (0, 100_001));
        census.clear();
        assert_eq!((backlogged(&census), census.packets()), (0, 0));
    }

    /// Two classes of one node send as much as others, but no more than the node's limit.
    #[test]
    fn classes_with_a_common_limit_ask_for_it_together() {
        let mut members = [5, 6, 7].map(|minor| member((minor, Terms::FLOW)));
        (members[0].above, members[1].above) = (Some(20), Some(20));
        let nodes = [
            Limited {
                minor: 20,
                most: 100_000,
                above: Some(21),
            },
            Limited {
                minor: 21,
                most: 1_000_000,
                above: None,
            },
        ];
        let mut census = Census::of_classes(&Classes::new(&members, &nodes));
        census.interval_ends(1);
        let mut window = |bytes: [u64; 3]| {
            for (class, bytes) in [5, 6, 7].into_iter().zip(bytes) {
                census.arrived(class);
                census.arrived(class);
                census.sent(class, bytes);
            }
            census.interval_ends(1_000_000_000);
            (
                census.last().light,
                census.last().light_bytes,
                backlogged(&census),
            )
        };
        assert_eq!(window([48_000, 48_000, 52_000]), (2, 100_000, 1));
        assert_eq!(
            window([40_000, 42_000, 42_000]),
            (0, 0, 3),
            "the node has not reached its limit"
        );
    }

    fn member((minor, terms): (u32, Terms)) -> Member {
        Member {
            minor,
            terms,
            above: None,
        }
    }
}
