//! How many segments super-packets may become: the work for them is bounded by the bytes that arrive.

/// The bytes that arrive for each segment. Linux sends TCP segments of no less than 48 bytes with their
/// options (`tcp_min_snd_mss`), so of 36 bytes of payload at least. A link carries no packet of less than 64
/// bytes: a segment is at most twice the work, for a byte that arrives, of the shortest packet.
const BYTES: u64 = 32;

/// How many bytes are saved up, while no super-packet needs them: for 4096 segments, which take one or two
/// milliseconds. Linux sends at most 128 datagrams at once (`UDP_MAX_SEGMENTS`), of whatever length.
const MOST: u64 = 4096 * BYTES;

/// The bytes that arrived and that no segment has used up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance(u64);

impl Allowance {
    /// Everything is saved up.
    pub(crate) const fn new() -> Allowance {
        Allowance(MOST)
    }

    /// Notes that a frame of `bytes` bytes has arrived.
    #[inline]
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.0 = (self.0 + bytes as u64).min(MOST);
    }

    /// Uses up the bytes for so many segments. Returns false, and uses up nothing, if there are too few.
    pub(crate) fn pays(&mut self, segments: usize) -> bool {
        let left = self.0.checked_sub(segments as u64 * BYTES);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a flood becomes in the end, as segments for each 64 bytes, which are one packet on a link.
    fn segments_for_64_bytes(payload: usize, size: usize) -> f64 {
        let (headers, segments) = (54, payload.div_ceil(size));
        let mut allowance = Allowance::new();
        let (mut bytes, mut made) = (0, 0);
        for _ in 0..100_000 {
            bytes += headers + payload;
            allowance.earn(headers + payload);
            if allowance.pays(segments) {
                made += segments;
            }
        }
        made as f64 * 64.0 / bytes as f64
    }

    #[test]
    fn the_worst_flood_is_two_packets_where_a_link_carries_one() {
        let mut worst: f64 = 0.0;
        for size in [1, 2, 4, 12, 24, 36, 48, 100, 536, 1448] {
            for segments in [1, 2, 16, 128, 1024, 4096] {
                let payload = (size * segments).min(65_000);
                worst = worst.max(segments_for_64_bytes(payload, size));
            }
        }
        assert!((1.9..2.05).contains(&worst), "{worst}");
        assert_eq!(segments_for_64_bytes(65_000, 1), 0.0);
        // What Linux sends with the lowest limit of TCP is never refused.
        let (all, made) = (65_000_usize.div_ceil(36), segments_for_64_bytes(65_000, 36));
        assert!((made - all as f64 * 64.0 / 65_054.0).abs() < 1e-9, "{made}");
    }

    proptest! {
        /// Whatever arrives, segments are bounded by the bytes; and 32 bytes for each are always enough.
        #[test]
        fn segments_are_bounded_by_bytes(
            frames in proptest::collection::vec((0usize..66_000, 1usize..70_000), 0..200),
        ) {
            let mut allowance = Allowance::new();
            let (mut bytes, mut made) = (0, 0);
            for (length, segments) in frames {
                bytes += length;
                allowance.earn(length);
                let is_paid = allowance.pays(segments);
                made += if is_paid { segments } else { 0 };
                prop_assert!(made <= bytes / 32 + 4096);
                prop_assert!(is_paid || segments > length / 32);
            }
        }
    }
}
