//! How long the physical layer takes for a frame.
//!
//! Source: IEEE 802.11-2020: non-HT OFDM, 17.3 and Table 17-21; VHT, 21.3.2, 21.3.10.5 and the tables of
//! 21.5. IEEE 802.11ax-2021: HE, 27.3.11 and the tables of 27.5.
//!
//! A PPDU is a preamble and symbols. Each symbol carries the data bits of all subcarriers and streams:
//! subcarriers x coded bits per subcarrier x code rate x streams. The rates of the standard's tables follow
//! from this, and also the combinations that VHT excludes: those in which an encoder would get a fraction of
//! a bit.
//!
//! Deviations: an HE PPDU has no packet extension (up to 16 µs), and its guard interval decides the long
//! training field: 2x with 0.8 and 1.6 µs, 4x with 3.2 µs. A VHT PPDU is coded with convolutional codes, an
//! HE PPDU with LDPC, which needs no tail bits.

const MICROSECOND: u64 = 1_000;
/// Service field of every OFDM PPDU (Table 17-1, 21-4), bits.
const SERVICE_BITS: u64 = 16;
/// Tail of each convolutional encoder, bits.
const TAIL_BITS: u64 = 6;
/// Data bits per symbol that one convolutional encoder of VHT handles: 600 Mb/s with the short guard
/// interval.
const ENCODER_BITS: u64 = 2160;

/// The standard of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standard {
    /// IEEE 802.11ac (VHT): MCS 0 to 9, guard intervals of 400 and 800 ns, up to 64 MPDUs in an A-MPDU.
    Ac,
    /// IEEE 802.11ax (HE): MCS 0 to 11, guard intervals of 800, 1600 and 3200 ns, up to 256 MPDUs.
    Ax,
}

fairgate::words!(Standard {
    "ac" => Standard::Ac,
    "ax" => Standard::Ax,
});

impl Standard {
    /// The highest MCS.
    pub fn last_mcs(self) -> u8 {
        match self {
            Standard::Ac => 9,
            Standard::Ax => 11,
        }
    }

    /// The possible guard intervals, ns. The first one is the default.
    pub fn guard_intervals(self) -> &'static [u64] {
        match self {
            Standard::Ac => &[800, 400],
            Standard::Ax => &[800, 1600, 3200],
        }
    }

    /// The bits of a block acknowledgement's bitmap: the most MPDUs that may be unacknowledged.
    pub fn window(self) -> u32 {
        match self {
            Standard::Ac => 64,
            Standard::Ax => 256,
        }
    }

    /// The length of the longest A-MPDU, bytes (Table 9-34; 802.11ax 26.6.2, maximum exponent extension).
    pub fn longest_ampdu(self) -> u32 {
        match self {
            Standard::Ac => (1 << 20) - 1,
            Standard::Ax => (1 << 23) - 1,
        }
    }
}

/// A modulation and coding scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modulation {
    /// Coded bits of a subcarrier.
    pub(crate) bits: u64,
    /// Code rate, as a fraction.
    pub(crate) rate: (u64, u64),
}

/// MCS 0 to 11 (Table 21-30 and following; Table 27-79 and following).
const MODULATIONS: [Modulation; 12] = [
    Modulation::of(1, (1, 2)),
    Modulation::of(2, (1, 2)),
    Modulation::of(2, (3, 4)),
    Modulation::of(4, (1, 2)),
    Modulation::of(4, (3, 4)),
    Modulation::of(6, (2, 3)),
    Modulation::of(6, (3, 4)),
    Modulation::of(6, (5, 6)),
    Modulation::of(8, (3, 4)),
    Modulation::of(8, (5, 6)),
    Modulation::of(10, (3, 4)),
    Modulation::of(10, (5, 6)),
];

impl Modulation {
    const fn of(bits: u64, rate: (u64, u64)) -> Modulation {
        Modulation { bits, rate }
    }

    pub(crate) fn of_mcs(mcs: u8) -> Modulation {
        MODULATIONS[usize::from(mcs)]
    }
}

/// The duration of a PPDU as a function of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ppdu {
    /// Preamble and headers, ns.
    pub(crate) preamble: u64,
    /// Duration of a symbol, ns.
    pub(crate) symbol: u64,
    /// Data bits of a symbol.
    pub(crate) bits_per_symbol: u64,
    /// Service and tail bits beside the data.
    pub(crate) extra_bits: u64,
    /// The time of all symbols is rounded up to a multiple of this, ns.
    pub(crate) multiple: u64,
}

impl Ppdu {
    /// The duration of a PPDU that carries `bytes`, ns.
    pub(crate) fn duration(&self, bytes: u32) -> u64 {
        let bits = self.extra_bits + 8 * u64::from(bytes);
        let symbols = bits.div_ceil(self.bits_per_symbol) * self.symbol;
        self.preamble + symbols.next_multiple_of(self.multiple)
    }

    /// The most bytes that fit into `nanos`. 0 if none do.
    pub(crate) fn most_bytes(&self, nanos: u64) -> u32 {
        let data = nanos.saturating_sub(self.preamble);
        let symbols = data / self.multiple * self.multiple / self.symbol;
        let bits = (symbols * self.bits_per_symbol).saturating_sub(self.extra_bits);
        u32::try_from(bits / 8).unwrap_or(u32::MAX)
    }

    /// A frame in the format of 802.11a, in which control frames are sent, at 6, 12 or 24 Mb/s.
    pub(crate) fn non_ht(megabits: u64) -> Ppdu {
        Ppdu {
            // Two training fields of 8 µs, and SIGNAL (Table 17-5).
            preamble: 20 * MICROSECOND,
            symbol: 4 * MICROSECOND,
            bits_per_symbol: 4 * megabits,
            extra_bits: SERVICE_BITS + TAIL_BITS,
            multiple: 4 * MICROSECOND,
        }
    }
}

/// What all PPDUs of a cell have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Radio {
    pub(crate) standard: Standard,
    /// Width of the channel, MHz: 20, 40, 80 or 160.
    pub(crate) width: u32,
    /// Spatial streams, 1 to 4.
    pub(crate) streams: u64,
    /// Guard interval, ns.
    pub(crate) guard_interval: u64,
}

impl Radio {
    /// PPDUs of data at this MCS, or `None` if the standard excludes the combination.
    pub(crate) fn data(&self, mcs: u8) -> Option<Ppdu> {
        let modulation = Modulation::of_mcs(mcs);
        let coded = self.subcarriers() * modulation.bits * self.streams;
        let (numerator, denominator) = modulation.rate;
        match self.standard {
            Standard::Ac => {
                if !(coded * numerator).is_multiple_of(denominator) {
                    return None;
                }
                let bits_per_symbol = coded * numerator / denominator;
                let encoders = match (self.width, self.streams, mcs) {
                    // Five encoders would each get a fraction of a bit. The table of this width and number of
                    // streams has six. It is the only such exception up to four streams.
                    (160, 4, 7) => 6,
                    _ => bits_per_symbol.div_ceil(ENCODER_BITS),
                };
                let is_whole = coded.is_multiple_of(encoders) && bits_per_symbol.is_multiple_of(encoders);
                is_whole.then(|| Ppdu {
                    preamble: self.vht_preamble(),
                    symbol: 3_200 + self.guard_interval,
                    bits_per_symbol,
                    extra_bits: SERVICE_BITS + TAIL_BITS * encoders,
                    multiple: 4 * MICROSECOND,
                })
            }
            Standard::Ax => Some(Ppdu {
                preamble: self.he_preamble(),
                symbol: 12_800 + self.guard_interval,
                bits_per_symbol: coded * numerator / denominator,
                extra_bits: SERVICE_BITS,
                multiple: 12_800 + self.guard_interval,
            }),
        }
    }

    /// Subcarriers that carry data (Table 21-5; Table 27-13).
    fn subcarriers(&self) -> u64 {
        let by_width = match self.standard {
            Standard::Ac => [52, 108, 234, 468],
            Standard::Ax => [234, 468, 980, 1960],
        };
        by_width[match self.width {
            20 => 0,
            40 => 1,
            80 => 2,
            160 => 3,
            other => unreachable!("a width of {other} MHz was accepted"),
        }]
    }

    /// Long training symbols (Table 21-13).
    fn training_symbols(&self) -> u64 {
        match self.streams {
            1 => 1,
            2 => 2,
            _ => 4,
        }
    }

    /// L-STF 8, L-LTF 8, L-SIG 4, VHT-SIG-A 8, VHT-STF 4, VHT-LTFs of 4 each, VHT-SIG-B 4 µs (Table 21-5).
    fn vht_preamble(&self) -> u64 {
        (36 + 4 * self.training_symbols()) * MICROSECOND
    }

    /// L-STF 8, L-LTF 8, L-SIG 4, RL-SIG 4, HE-SIG-A 8, HE-STF 4 µs, HE-LTFs (Table 27-12).
    fn he_preamble(&self) -> u64 {
        let training = match self.guard_interval {
            3_200 => 12_800,
            _ => 6_400,
        } + self.guard_interval;
        36 * MICROSECOND + training * self.training_symbols()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn radio(standard: Standard, width: u32, streams: u64, guard_interval: u64) -> Radio {
        Radio {
            standard,
            width,
            streams,
            guard_interval,
        }
    }

    /// The data rate in units of 0.1 Mb/s, rounded down.
    fn rate(radio: Radio, mcs: u8) -> u64 {
        let ppdu = radio.data(mcs).expect("the combination exists");
        ppdu.bits_per_symbol * 10_000 / ppdu.symbol
    }

    #[test]
    fn rates_are_those_of_the_tables() {
        let ac = |width, streams, guard| radio(Standard::Ac, width, streams, guard);
        let ax = |width, streams, guard| radio(Standard::Ax, width, streams, guard);
        for (radio, mcs, expected) in [
            (ac(20, 1, 800), 0, 65),
            (ac(20, 1, 800), 8, 780),
            (ac(20, 3, 400), 9, 2_889),
            (ac(40, 1, 400), 9, 2_000),
            (ac(80, 1, 800), 0, 293),
            (ac(80, 1, 800), 9, 3_900),
            (ac(80, 2, 400), 9, 8_667),
            (ac(160, 4, 400), 9, 34_667),
            (ax(20, 1, 800), 0, 86),
            (ax(20, 1, 800), 11, 1_434),
            (ax(80, 1, 800), 11, 6_005),
            (ax(80, 2, 1600), 9, 9_074),
            (ax(160, 4, 800), 11, 48_039),
        ] {
            // The tables round, partly before and partly after the division.
            let rate = rate(radio, mcs);
            assert!(rate.abs_diff(expected) <= 1, "{radio:?} MCS {mcs}: {rate}");
        }
    }

    /// Tables 21-30 to 21-57 leave out these combinations of up to four streams, and no others.
    #[test]
    fn vht_excludes_what_the_standard_excludes() {
        let mut excluded = Vec::new();
        for width in [20, 40, 80, 160] {
            for streams in 1..=4 {
                for mcs in 0..=9 {
                    if radio(Standard::Ac, width, streams, 800).data(mcs).is_none() {
                        excluded.push((width, streams, mcs));
                    }
                }
            }
        }
        assert_eq!(
            excluded,
            [(20, 1, 9), (20, 2, 9), (20, 4, 9), (80, 3, 6), (160, 3, 9)]
        );
    }

    /// Durations computed by hand from the standard's formulas.
    #[test]
    fn durations_are_those_of_the_formulas() {
        // An acknowledgement of 14 bytes at 6 Mb/s: 134 bits are 6 symbols. At 24 Mb/s they are 2.
        assert_eq!(Ppdu::non_ht(6).duration(14), 44_000);
        assert_eq!(Ppdu::non_ht(24).duration(14), 28_000);
        // 1540 bytes with VHT at 80 MHz, one stream, MCS 9: 12,342 bits in symbols of 1560 are 8 symbols.
        let ac = radio(Standard::Ac, 80, 1, 800).data(9).unwrap();
        assert_eq!(ac.duration(1540), 40_000 + 8 * 4_000);
        // With the short guard interval 28.8 µs, rounded up to 32.
        let short = radio(Standard::Ac, 80, 1, 400).data(9).unwrap();
        assert_eq!(short.duration(1540), 40_000 + 32_000);
        // HE, 80 MHz, two streams, MCS 11, 0.8 µs: 12,336 bits in symbols of 16,333 are one symbol.
        let ax = radio(Standard::Ax, 80, 2, 800).data(11).unwrap();
        assert_eq!(ax.duration(1540), 36_000 + 2 * 7_200 + 13_600);
    }

    proptest! {
        #[test]
        fn the_most_bytes_fit_and_one_more_does_not(
            standard in prop_oneof![Just(Standard::Ac), Just(Standard::Ax)],
            width in prop_oneof![Just(20u32), Just(40), Just(80), Just(160)],
            streams in 1u64..=4,
            guard in 0usize..2,
            mcs in 0u8..=9,
            nanos in 0u64..6_000_000,
        ) {
            let guard = standard.guard_intervals()[guard];
            let Some(ppdu) = radio(standard, width, streams, guard).data(mcs) else {
                return Ok(());
            };
            let most = ppdu.most_bytes(nanos);
            prop_assert!(most == 0 || ppdu.duration(most) <= nanos);
            prop_assert!(ppdu.duration(most + 1) > nanos);
        }
    }
}
