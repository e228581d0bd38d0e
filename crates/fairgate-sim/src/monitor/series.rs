//! The time series of a flow, while it is there.

/// The time series of a flow: a point at the end of each interval.
#[derive(Clone, Debug)]
pub(crate) struct FlowSeries {
    /// The number of intervals that had ended when the series began.
    pub(crate) first: usize,
    /// Bytes received in each interval.
    pub(crate) bytes: Vec<u64>,
    /// The congestion window at the end of each interval, segments. It is empty for UDP.
    pub(crate) windows: Vec<u32>,
    /// The smoothed round-trip time at the end of each interval, ns; 0 before the first measurement.
    pub(crate) round_trips: Vec<u64>,
}

impl FlowSeries {
    /// Creates the series of a flow that begins now, after `first` intervals.
    pub(crate) fn from(first: usize) -> FlowSeries {
        FlowSeries {
            first,
            bytes: Vec::new(),
            windows: Vec::new(),
            round_trips: Vec::new(),
        }
    }

    /// Creates the series of a flow that begins now, and that has points for the intervals before it, too.
    /// `window` is the window before the flow began, for TCP. There is room for `all` intervals.
    pub(crate) fn padded(first: usize, window: Option<u32>, all: usize) -> FlowSeries {
        let mut series = FlowSeries::from(0);
        series.bytes.reserve_exact(all);
        series.bytes.resize(first, 0);
        if let Some(window) = window {
            series.windows.reserve_exact(all);
            series.windows.resize(first, window);
            series.round_trips.reserve_exact(all);
            series.round_trips.resize(first, 0);
        }
        series
    }
}
