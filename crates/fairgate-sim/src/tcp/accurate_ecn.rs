//! Accurate ECN feedback (AccECN, RFC 9768): the receiver counts marked packets, and every acknowledgement
//! carries the counts.
//!
//! The header has a counter of packets with three bits (ACE), which begins at 5. An option has counters of
//! bytes with 24 bits; of these only that of marked bytes is simulated, because no congestion control uses
//! the others. The option's length counts. It is left out if the acknowledgement has three SACK blocks, for
//! which the space is needed.
//!
//! Not simulated: the negotiation, because both ends always agree, and the tests for paths that change the
//! fields.

/// The start of the packet counter (section 3.2.1).
const FIRST_PACKETS: u64 = 5;
const PACKETS_MASK: u64 = 7;
const BYTES_BITS: u32 = 24;
const BYTES_MASK: u64 = (1 << BYTES_BITS) - 1;
const OPTION: u32 = 1 << 31;

/// The feedback in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccurateEcn(u32);

impl AccurateEcn {
    /// Returns the feedback for these counts of marked packets and bytes. `option`: there is room for the
    /// option.
    pub const fn new(packets: u64, bytes: u64, option: bool) -> AccurateEcn {
        let counter = ((packets + FIRST_PACKETS) & PACKETS_MASK) << BYTES_BITS;
        let fields = counter | (bytes & BYTES_MASK);
        AccurateEcn(fields as u32 | if option { OPTION } else { 0 })
    }

    /// Returns the packet counter of the header, three bits.
    pub const fn packets(self) -> u32 {
        (self.0 >> BYTES_BITS) & PACKETS_MASK as u32
    }

    /// Returns the byte counter of the option, 24 bits, if there is one.
    pub const fn bytes(self) -> Option<u32> {
        if self.0 & OPTION == 0 {
            None
        } else {
            Some(self.0 & BYTES_MASK as u32)
        }
    }

    /// Returns the length of the option, bytes: two counters, of which the second one is that of marked
    /// bytes.
    pub(super) const fn option_bytes(self) -> u32 {
        if self.0 & OPTION == 0 { 0 } else { 8 }
    }
}

/// The receiving end's counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MarkCounts {
    packets: u64,
    bytes: u64,
    /// The marked packets since the last acknowledgement.
    unreported: u32,
    /// Whether the last packet was marked.
    was_marked: bool,
}

impl MarkCounts {
    /// Counts a packet with this payload. Returns whether it has to be acknowledged at once: the marking
    /// changes, or the counter of three bits could soon overflow (section 3.2.2.5.1).
    pub(super) fn count(&mut self, marked: bool, bytes: u32) -> bool {
        let changes = marked != self.was_marked;
        self.was_marked = marked;
        if marked {
            self.packets += 1;
            self.bytes += u64::from(bytes);
            self.unreported += 1;
        }
        changes || self.unreported >= 2
    }

    /// Returns the feedback of an acknowledgement that is sent now.
    pub(super) fn report(&mut self, option: bool) -> AccurateEcn {
        self.unreported = 0;
        AccurateEcn::new(self.packets, self.bytes, option)
    }
}

/// The sending end's view of the receiver's counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkReader {
    packets: u32,
    bytes: u32,
}

impl MarkReader {
    pub(super) fn new() -> MarkReader {
        MarkReader {
            packets: FIRST_PACKETS as u32,
            bytes: 0,
        }
    }

    /// Returns how many packets an acknowledgement reports as marked for the first time, if it delivers
    /// `delivered` segments of `mss` bytes.
    ///
    /// The counter of packets may have overflowed if acknowledgements were lost. The counter of bytes then
    /// decides. Without the option, the largest possible number is taken, to be safe (section 3.2.2.5.2).
    pub(super) fn read(&mut self, feedback: AccurateEcn, delivered: u32, mss: u32) -> u32 {
        let modulus = PACKETS_MASK as u32 + 1;
        let least = feedback.packets().wrapping_sub(self.packets) & PACKETS_MASK as u32;
        let bytes = feedback
            .bytes()
            .map(|bytes| bytes.wrapping_sub(self.bytes) & BYTES_MASK as u32);
        // An acknowledgement that was overtaken seems to count backwards.
        if bytes.is_some_and(|bytes| bytes >> (BYTES_BITS - 1) == 1) {
            return 0;
        }
        self.packets = feedback.packets();
        self.bytes = feedback.bytes().unwrap_or(self.bytes);
        if delivered < modulus {
            // With no overflow possible, more marks than packets come from an overtaken acknowledgement.
            return least.min(delivered);
        }
        let most = delivered - (delivered - least) % modulus;
        match bytes {
            Some(bytes) => (least..=most)
                .step_by(modulus as usize)
                .min_by_key(|packets| (packets * mss).abs_diff(bytes))
                .unwrap_or(least),
            None => most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1448;

    #[test]
    fn an_overflow_without_the_option_is_read_as_the_largest_number() {
        let mut counts = MarkCounts::default();
        for _ in 0..9 {
            counts.count(true, MSS);
        }
        let mut reader = MarkReader::new();
        assert_eq!(reader.read(counts.report(false), 20, MSS), 17);
        // One delivered segment can have one mark.
        counts.count(true, MSS);
        assert_eq!(reader.read(counts.report(false), 1, MSS), 1);
    }

    #[test]
    fn a_change_and_every_second_mark_are_reported_at_once() {
        let mut counts = MarkCounts::default();
        assert!(!counts.count(false, MSS));
        assert!(counts.count(true, MSS));
        counts.report(true);
        assert!(!counts.count(true, MSS));
        assert!(counts.count(true, MSS));
        counts.report(true);
        assert!(counts.count(false, MSS));
    }

    proptest! {
        /// However many acknowledgements are lost, no mark is lost, as long as the option arrives.
        #[test]
        fn all_marks_arrive(packets in prop::collection::vec((any::<bool>(), any::<bool>()), 1..2000)) {
            let mut counts = MarkCounts::default();
            let mut reader = MarkReader::new();
            let (mut sent, mut seen, mut delivered) = (0, 0, 0);
            for (marked, reported) in packets {
                counts.count(marked, MSS);
                sent += u32::from(marked);
                delivered += 1;
                if reported {
                    seen += reader.read(counts.report(true), delivered, MSS);
                    delivered = 0;
                    prop_assert_eq!(seen, sent);
                }
            }
        }
    }
}
