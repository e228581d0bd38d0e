//! The burst from which RED's average gets its weight.

use fairgate::Rate;
use fairgate::aqm::red;

/// Returns the burst for which the average has the weight 2^-`log`, with this `min` in bytes and `avpkt`.
/// `None` if no burst gives it.
pub(crate) fn burst_of_weight(log: u32, min: u64, avpkt: u64) -> Option<u32> {
    let narrow = |number: u64| u32::try_from(number).ok();
    let (min, avpkt) = (narrow(min)?, narrow(avpkt)?);
    let log_of = |burst: u32| {
        let config = red::Config {
            min: Some(min),
            avpkt,
            burst: Some(burst),
            bandwidth: Rate::mbit(1),
            ..red::Config::default()
        };
        config.w_log().ok()
    };
    // A longer burst gives a smaller weight. `min` limits how short the burst can be.
    let shortest = min.div_ceil(avpkt).max(1);
    let (mut low, mut high) = (shortest, shortest.checked_add(1 << 24)?);
    while low < high {
        let middle = low + (high - low) / 2;
        match log_of(middle) {
            Some(found) if found < log => low = middle + 1,
            _ => high = middle,
        }
    }
    (log_of(low) == Some(log)).then_some(low)
}
