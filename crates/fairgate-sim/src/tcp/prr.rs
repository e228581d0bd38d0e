//! Proportional rate reduction: spreads the reduction of the window over a round trip (RFC 6937, with the slow-start
//! part bound to progress as in RFC 9937).

/// One reduction, from the window before it to the new threshold.
#[derive(Clone, Debug, Default)]
pub(super) struct Reduction {
    /// The window when it began.
    pub(super) prior_window: u32,
    /// Segments delivered since.
    delivered: u32,
    /// Segments sent since.
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

    /// The window after an acknowledgement that delivered `delivered` segments and leaves `in_flight`.
    /// `progressing`: it acknowledged new data and no further loss has come up.
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
        // The first segment of a recovery is sent in any case.
        let due = due.max(i64::from(self.sent == 0)).max(0);
        in_flight + due as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937, section 5's example: 20 segments, the first one lost, threshold 10. Each second acknowledgement sends
    /// one segment, after the fast retransmission.
    #[test]
    fn sends_one_for_each_two_delivered() {
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
    fn rebuilds_up_to_the_threshold_while_progressing() {
        let mut reduction = Reduction::begin(20);
        reduction.sent = 1;
        assert_eq!(reduction.window(10, 3, 2, false), 5);
        assert_eq!(reduction.window(10, 5, 1, true), 5 + 3);
        assert_eq!(reduction.window(10, 9, 4, true), 10);
    }
}
