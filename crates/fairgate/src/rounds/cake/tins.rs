//! Tins: the kinds of traffic that CAKE separates. Each has a part of the bandwidth.
//!
//! A tin's part is a threshold, not a limit. Below it the tin goes before the others; above it the tin waits
//! until the others have had their parts. Without a bandwidth, tins share by weights. Code points, parts and
//! weights are those of Linux 6.1.

/// The tins into which packets are classified by their DSCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tins {
    /// One tin for all packets.
    Besteffort,
    /// Eight tins by the three highest bits: the precedence before RFC 2474.
    Precedence,
    /// Bulk, best effort, voice.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight kinds of traffic, from background to network control.
    Diffserv8,
}

crate::words!(Tins {
    "besteffort" => Tins::Besteffort,
    "precedence" => Tins::Precedence,
    "diffserv3" => Tins::Diffserv3,
    "diffserv4" => Tins::Diffserv4,
    "diffserv8" => Tins::Diffserv8,
});

/// The properties of one tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The threshold in bytes per second, below which the tin goes first.
    pub(super) threshold: u64,
    /// Its weight without a bandwidth.
    pub(super) weight: u16,
}

/// The tin for each DSCP.
pub(super) type Map = [u8; 64];

impl Tins {
    /// The number of tins.
    pub const fn count(self) -> u32 {
        match self {
            Tins::Besteffort => 1,
            Tins::Diffserv3 => 3,
            Tins::Diffserv4 => 4,
            Tins::Precedence | Tins::Diffserv8 => 8,
        }
    }

    /// The tin for each DSCP. While two tins are below their thresholds, the one with the higher number goes
    /// first.
    pub(super) fn map(self) -> &'static Map {
        match self {
            Tins::Besteffort => &BESTEFFORT,
            Tins::Precedence => &PRECEDENCE,
            Tins::Diffserv3 => &DIFFSERV3,
            Tins::Diffserv4 => &DIFFSERV4,
            Tins::Diffserv8 => &DIFFSERV8,
        }
    }

    /// The tin with the number that users see: from 1, the one that can wait longest first. If there is a
    /// bulk tin, best effort has the internal number 0.
    pub(super) fn of_class(self, class: u32) -> Option<u8> {
        if !(1..=self.count()).contains(&class) {
            return None;
        }
        let number = class as u8 - 1;
        Some(match (self, number) {
            (Tins::Diffserv3 | Tins::Diffserv4, 0 | 1) => 1 - number,
            _ => number,
        })
    }

    /// The parts of a link of `rate` bytes per second; `rate` is 0 if there is no bandwidth.
    pub(super) fn parts(self, rate: u64) -> impl Iterator<Item = Part> {
        let part = move |log2_part: u32, weight: u16| Part {
            threshold: rate >> log2_part,
            weight: weight >> log2_part,
        };
        let first = match self {
            Tins::Besteffort => part(0, u16::MAX),
            Tins::Diffserv3 | Tins::Diffserv4 => part(0, 1024),
            Tins::Precedence | Tins::Diffserv8 => part(0, 256),
        };
        let next = move |(number, above): &(usize, Part)| {
            let number = number + 1;
            let part = match self {
                Tins::Besteffort => return None,
                Tins::Diffserv3 => part(*[0, 4, 2].get(number)?, 1024),
                Tins::Diffserv4 => part(*[0, 4, 1, 2].get(number)?, 1024),
                // Seven eighths of the one above.
                Tins::Precedence | Tins::Diffserv8 => Part {
                    threshold: above.threshold * 7 / 8,
                    weight: above.weight * 7 / 8,
                },
            };
            (number < self.count() as usize).then_some((number, part))
        };
        core::iter::successors(Some((0, first)), next).map(|(_, part)| part)
    }
}

// Code points by name.
const LE: u8 = 1;
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const CS6: u8 = 48;
const CS7: u8 = 56;
const VOICE_ADMIT: u8 = 44;
const EF: u8 = 46;
/// "Maximise throughput" and "minimise delay" of the former type-of-service byte (RFC 1349).
const TOS_THROUGHPUT: u8 = 2;
const TOS_DELAY: u8 = 4;

const fn af(class: u8, precedence: u8) -> u8 {
    class * 8 + precedence * 2
}

const fn map(otherwise: u8, tins: &[(u8, &[u8])]) -> Map {
    let mut map = [otherwise; 64];
    let mut i = 0;
    while i < tins.len() {
        let (tin, codepoints) = tins[i];
        let mut j = 0;
        while j < codepoints.len() {
            map[codepoints[j] as usize] = tin;
            j += 1;
        }
        i += 1;
    }
    map
}

static BESTEFFORT: Map = [0; 64];

static PRECEDENCE: Map = {
    let mut map = [0; 64];
    let mut dscp = 0;
    while dscp < map.len() {
        map[dscp] = (dscp >> 3) as u8;
        dscp += 1;
    }
    map
};

static DIFFSERV3: Map = map(
    0,
    &[(1, &[LE, CS1]), (2, &[TOS_DELAY, VOICE_ADMIT, EF, CS6, CS7])],
);

static DIFFSERV4: Map = map(
    0,
    &[
        (1, &[LE, CS1]),
        (2, &[TOS_DELAY, CS2, CS3]),
        (2, &[af(2, 1), af(2, 2), af(2, 3)]),
        (2, &[af(3, 1), af(3, 2), af(3, 3)]),
        (2, &[af(4, 1), af(4, 2), af(4, 3)]),
        (3, &[CS4, CS5, VOICE_ADMIT, EF, CS6, CS7]),
    ],
);

static DIFFSERV8: Map = map(
    2,
    &[
        (0, &[LE]),
        (1, &[TOS_THROUGHPUT, CS1, af(1, 1), af(1, 2), af(1, 3)]),
        (
            3,
            &[CS3, af(3, 1), af(3, 2), af(3, 3), af(4, 1), af(4, 2), af(4, 3)],
        ),
        (4, &[TOS_DELAY, af(2, 1), af(2, 2), af(2, 3)]),
        (5, &[CS2]),
        (6, &[CS4, CS5, VOICE_ADMIT, EF]),
        (7, &[CS6, CS7]),
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Tins; 5] = [
        Tins::Besteffort,
        Tins::Precedence,
        Tins::Diffserv3,
        Tins::Diffserv4,
        Tins::Diffserv8,
    ];

    #[test]
    fn every_code_point_has_a_tin_and_every_tin_a_part() {
        for tins in ALL {
            let parts: Vec<Part> = tins.parts(1_000_000).collect();
            assert_eq!(parts.len(), tins.count() as usize, "{tins:?}");
            assert!(parts.iter().all(|part| part.threshold > 0 && part.weight > 0));
            let used = |tin: u8| tins.map().contains(&tin);
            assert!((0..tins.count() as u8).all(used), "{tins:?}");
            assert!(tins.map().iter().all(|tin| u32::from(*tin) < tins.count()));
        }
    }

    #[test]
    fn users_count_tins_from_bulk() {
        for tins in ALL {
            let classes: Vec<_> = (0..=9).filter_map(|class| tins.of_class(class)).collect();
            let mut sorted = classes.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..tins.count() as u8).collect::<Vec<_>>(), "{tins:?}");
        }
        // Bulk, best effort, voice.
        let of = |dscp: u8| Tins::Diffserv3.map()[usize::from(dscp)];
        let classes = [1, 2, 3].map(|class| Tins::Diffserv3.of_class(class));
        assert_eq!(classes, [CS1, 0, EF].map(|dscp| Some(of(dscp))));
    }

    /// The parts as in tc-cake(8).
    #[test]
    fn parts_equal_those_of_the_manual() {
        let thresholds = |tins: Tins| -> Vec<u64> { tins.parts(1600).map(|part| part.threshold).collect() };
        assert_eq!(thresholds(Tins::Diffserv3), [1600, 100, 400]);
        assert_eq!(thresholds(Tins::Diffserv4), [1600, 100, 800, 400]);
        assert_eq!(thresholds(Tins::Diffserv8)[..3], [1600, 1400, 1225]);
        let weights: Vec<u16> = Tins::Diffserv3.parts(0).map(|part| part.weight).collect();
        assert_eq!(weights, [1024, 64, 256]);
        let weights: Vec<u16> = Tins::Precedence.parts(0).map(|part| part.weight).collect();
        assert_eq!(weights, [256, 224, 196, 171, 149, 130, 113, 98]);
    }
}
