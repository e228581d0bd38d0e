//! Loss detection without SACK: NewReno (RFC 6582), in Linux's form.
//!
//! Each duplicate acknowledgement shows that one more segment has arrived behind the first one. After three
//! of them the first segment is lost. In recovery, an acknowledgement that does not cover everything sent
//! before it shows that the next segment is lost, too. So one loss is repaired per round trip. RACK and the
//! tail loss probe need SACK and are not used.

use super::Sender;
use super::ack::Ack;
use super::recovery::Phase;

/// The largest reordering that is learnt, segments (`tcp_max_reordering`).
const MOST_REORDERING: u32 = 300;

impl Sender {
    /// Counts a duplicate acknowledgement, or forgets the duplicates when new data was acknowledged.
    pub(super) fn count_duplicates(&mut self, ack: &Ack) {
        if self.config.sack {
            return;
        }
        if ack.advances {
            self.board.forget_duplicates();
        }
        self.count_duplicate(ack);
    }

    /// Counts a duplicate acknowledgement.
    pub(super) fn count_duplicate(&mut self, ack: &Ack) {
        if !self.config.sack && ack.repeats && self.board.add_duplicate() {
            self.learn_from_duplicates(0);
        }
    }

    /// There were more duplicates than segments behind the first one, so the path reorders. `acked` segments
    /// were acknowledged with them.
    pub(super) fn learn_from_duplicates(&mut self, acked: u32) {
        let seen = self.board.outstanding_segments() + acked;
        self.reordering = self.reordering.max(seen.min(MOST_REORDERING));
    }

    /// Marks the first segment as lost, if enough duplicates have arrived or a recovery proceeds.
    pub(super) fn identify_head_loss(&mut self, ack: &Ack) {
        let enough = self.phase < Phase::Recovery && self.board.sacked() >= self.reordering;
        if enough || (self.phase == Phase::Recovery && ack.advances) {
            self.board.mark_head_lost();
        }
    }

    /// Returns whether the state has to be kept although everything sent before the recovery is acknowledged.
    /// Duplicates of exactly this number may belong to the recovery (RFC 6582, section 4.1).
    pub(super) fn holds_phase(&self) -> bool {
        !self.config.sack && self.una == self.high
    }
}
