//! Measures the medium of a cell in the measurement window.

use fairgate::{PacketId, Time};

use crate::wifi::{DirectionCounters, Medium, MediumCounters};

/// Takes the counters of a medium when the window opens, and the difference when it closes.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellMonitor {
    at_opening: CellWindow,
    window: CellWindow,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellWindow {
    pub(crate) medium: MediumCounters,
    /// Two for each station: to the access point, and back.
    pub(crate) directions: Vec<DirectionCounters>,
}

impl CellWindow {
    fn now(medium: &Medium<PacketId>, now: Time) -> CellWindow {
        CellWindow {
            medium: medium.counters(now),
            directions: medium.directions().to_vec(),
        }
    }
}

impl CellMonitor {
    pub(crate) fn window_opens(&mut self, medium: &Medium<PacketId>, now: Time) {
        self.at_opening = CellWindow::now(medium, now);
    }

    pub(crate) fn window_closes(&mut self, medium: &Medium<PacketId>, now: Time) {
        let now = CellWindow::now(medium, now);
        let earlier = &self.at_opening;
        self.window = CellWindow {
            medium: now.medium.since(&earlier.medium),
            directions: now
                .directions
                .iter()
                .zip(&earlier.directions)
                .map(|(now, earlier)| now.since(earlier))
                .collect(),
        };
    }

    /// What was counted in the window, after it has closed.
    pub(crate) fn window(&self) -> &CellWindow {
        &self.window
    }
}
