//! Proportional rate reduction: spreads the reduction of the window over a round trip (RFC 6937). Its
//! slow-start part depends on progress, as in RFC 9937.

/// One reduction, from the window before it to the new threshold.
#[derive(Clone, Debug, Default)]
pub(super) struct Reduction {
    /// The window before the reduction.
    pub(super) prior_window: u32,
    /// The segments delivered since the reduction began.
    delivered: u32,
    /// The segments sent since the reduction began.
    pub(super) sent: u32,
}

impl Reduction {
    pub(super) fn begin(window: u32) -> Reduction {
        Reduction {
            prior_window: window,
            delivered: 0,
            sent: 0,
        }
    }

    /// Returns the window after an acknowledgement that delivered `delivered` segments and left `in_flight`.
    /// `progressing` means that it acknowledged new data and no further loss was detected.
    pub(super) fn window(
        &mut self,
        threshold: u32,
        in_flight: u32,
        delivered: u32,
        progressing: bool,
    ) -> u32 {
        self.delivered += delivered;
        let due = if in_flight > threshold {
            let share = u64::from(threshold) * u64::from(self.delivered);
            share.div_ceil(u64::from(self.prior_window)) as i64 - i64::from(self.sent)
        } else {
            let conserving = (i64::from(self.delivered) - i64::from(self.sent)).max(i64::from(delivered));
            (conserving + i64::from(progressing)).min(i64::from(threshold - in_flight))
        };
        // The first segment of a recovery is always sent.
        let due = due.max(i64::from(self.sent == 0)).max(0);
        in_flight + due as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6937, section 5: 20 segments, of which the first is lost, and a threshold of 10.
    /// After the fast retransmission, every second acknowledgement sends one segment.
    #[test]
    fn one_segment_is_sent_for_two_delivered() {
        let mut reduction = Reduction::begin(20);
        let mut in_flight = 19;
        let mut sent = Vec::new();
        for _ in 0..19 {
            in_flight -= 1;
            let window = reduction.window(10, in_flight, 1, false);
            let due = window - in_flight;
            reduction.sent += due;
            in_flight += due;
            sent.push(due);
        }
        assert_eq!(sent[..6], [1, 0, 1, 0, 1, 0]);
        assert_eq!(sent.iter().sum::<u32>(), 10);
        assert_eq!(in_flight, 10);
    }

    #[test]
    fn the_window_grows_to_the_threshold_while_progressing() {
        let mut reduction = Reduction::begin(20);
        reduction.sent = 1;
        assert_eq!(reduction.window(10, 3, 2, false), 5);
        assert_eq!(reduction.window(10, 5, 1, true), 5 + 3);
        assert_eq!(reduction.window(10, 9, 4, true), 10);
    }
}
