//! Parameters as the packet path needs them.

use super::average::Filter;
use super::curve::{Curve, Shape};
use super::store::Limits;
use super::{Config, Measure, Response};
use crate::error::ConfigError;

/// Parameters from which the values for the packet path can be derived.
pub trait Derive {
    /// Returns the derived values; an error if the parameters are invalid.
    fn derived(&self) -> Result<Derived, ConfigError>;
}

/// The parameters as the packet path needs them.
#[derive(Debug)]
pub struct Derived {
    pub(super) filter: Filter,
    pub(super) curve: Curve,
    pub(super) response: Response,
    pub(super) limits: Limits,
    /// The bytes per packet if packets are counted.
    pub(super) per_packet: Option<u32>,
    pub(super) adaptive: bool,
}

impl Derived {
    /// Combines this filter and curve with the other parameters of `config`, which were checked.
    pub(crate) fn new(filter: Filter, shape: Shape, config: &Config) -> Result<Derived, ConfigError> {
        Ok(Derived {
            curve: Curve::new(shape, filter.w_log())?,
            filter,
            response: config.response,
            limits: Limits {
                bytes: config.limit.into(),
                packets: config.limit_packets.unwrap_or(u32::MAX),
            },
            per_packet: (config.measure == Measure::Packets).then_some(config.avpkt),
            adaptive: config.adaptive,
        })
    }

    /// Returns the parts for a discipline with a queue of its own.
    pub(crate) fn into_filter_and_curve(self) -> (Filter, Curve) {
        (self.filter, self.curve)
    }
}
