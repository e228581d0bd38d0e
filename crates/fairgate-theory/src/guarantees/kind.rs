//! What is measured of a schedule.

/// A measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Worst-case fair index in bytes, over intervals that end when a packet of the flow is finished.
    BWfi,
    /// The same over any interval.
    BWfiAnywhere,
    /// Worst-case fair index in nanoseconds.
    TWfi,
    /// Difference of normalised service of two flows, bytes at share 1.
    RelativeFairness,
    /// Delay of a packet behind GPS, nanoseconds.
    DelayBehindGps,
    /// Service ahead of GPS, bytes.
    LeadOverGps,
}

impl Kind {
    /// All measures.
    pub const ALL: [Kind; 6] = [
        Kind::BWfi,
        Kind::BWfiAnywhere,
        Kind::TWfi,
        Kind::RelativeFairness,
        Kind::DelayBehindGps,
        Kind::LeadOverGps,
    ];

    /// Returns the name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::BWfi => "b_wfi",
            Kind::BWfiAnywhere => "b_wfi_anywhere",
            Kind::TWfi => "t_wfi",
            Kind::RelativeFairness => "relative_fairness",
            Kind::DelayBehindGps => "delay_behind_gps",
            Kind::LeadOverGps => "lead_over_gps",
        }
    }

    /// Whether the measure needs the fluid reference.
    pub const fn needs_gps(self) -> bool {
        matches!(self, Kind::DelayBehindGps | Kind::LeadOverGps)
    }

    /// Returns the unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Kind::BWfi | Kind::BWfiAnywhere | Kind::RelativeFairness | Kind::LeadOverGps => "bytes",
            Kind::TWfi | Kind::DelayBehindGps => "ns",
        }
    }
}
