//! The access categories of EDCA, and the category of a packet.
//!
//! Source: IEEE 802.11-2020, Table 9-155 (default parameters with an OFDM physical layer) and Table 10-1
//! (user priorities). RFC 8325, section 4 (DSCP to user priority), and RFC 8622 (DSCP 1, lower effort).
//!
//! A category waits for AIFS = SIFS + AIFSN slots before its backoff counts down, draws the backoff from 0 to
//! the contention window, and may then keep the channel for its TXOP limit.
//!
//! Deviation: the access point uses the same parameters as the stations. Many products give it an AIFSN that
//! is smaller by one for video and voice.

const MICROSECOND: u64 = 1_000;

/// An access category. Higher ones win if two of the same member want to transmit in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessCategory {
    Background,
    BestEffort,
    Video,
    Voice,
}

impl AccessCategory {
    pub(crate) const COUNT: usize = 4;

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The category of a DSCP by RFC 8325. Code points without a recommendation are best effort.
    pub(crate) fn of_dscp(dscp: u8) -> AccessCategory {
        match dscp {
            // Lower effort (RFC 8622), and CS1 for older traffic.
            1 | 8 => AccessCategory::Background,
            // CS3, AF31 to AF33, CS4, AF41 to AF43, CS5.
            24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 | 40 => AccessCategory::Video,
            // VOICE-ADMIT, EF, CS6, CS7.
            44 | 46 | 48 | 56 => AccessCategory::Voice,
            _ => AccessCategory::BestEffort,
        }
    }
}

/// The parameters of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CategoryParameters {
    /// Slots between SIFS and the countdown of the backoff.
    pub(crate) aifsn: u32,
    /// The first contention window. The backoff is drawn from 0 to this number, in slots.
    pub(crate) cw_min: u32,
    /// The largest contention window.
    pub(crate) cw_max: u32,
    /// How long the category may keep the channel, ns. 0: for one PPDU.
    pub(crate) txop: u64,
}

impl CategoryParameters {
    /// EDCA's defaults with aCWmin = 15 and aCWmax = 1023, in the order of the categories.
    pub(crate) const EDCA: [CategoryParameters; AccessCategory::COUNT] = [
        CategoryParameters::of(7, 15, 1023, 2_528),
        CategoryParameters::of(3, 15, 1023, 2_528),
        CategoryParameters::of(2, 7, 15, 4_096),
        CategoryParameters::of(2, 3, 7, 2_080),
    ];

    /// The distributed coordination function without categories: DIFS = SIFS + 2 slots, and one PPDU at a
    /// time.
    pub(crate) const DCF: CategoryParameters = CategoryParameters::of(2, 15, 1023, 0);

    const fn of(aifsn: u32, cw_min: u32, cw_max: u32, txop_microseconds: u64) -> CategoryParameters {
        CategoryParameters {
            aifsn,
            cw_min,
            cw_max,
            txop: txop_microseconds * MICROSECOND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8325, Figure 1, with RFC 8622's update.
    #[test]
    fn code_points_have_the_recommended_categories() {
        use AccessCategory::{Background, BestEffort, Video, Voice};
        for (codes, category) in [
            (&[56, 48, 46, 44][..], Voice),
            (&[40, 34, 36, 38, 32, 26, 28, 30, 24], Video),
            (&[18, 20, 22, 16, 10, 12, 14, 0], BestEffort),
            (&[8, 1], Background),
            (&[2, 3, 63, 45], BestEffort),
        ] {
            for &dscp in codes {
                assert_eq!(AccessCategory::of_dscp(dscp), category, "{dscp}");
            }
        }
    }
}
