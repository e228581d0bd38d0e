//! The parameters of HHF.

use alloc::boxed::Box;
use core::time::Duration;

use super::Hhf;
use super::heavy::MOST;
use crate::error::ConfigError;
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog of both buckets, packets.
    pub limit: u32,
    /// The bytes that the heavy bucket may send in a turn, 256 to 2^20.
    pub quantum: u32,
    /// The most heavy flows at a time, 0 to 2048.
    pub hh_limit: u32,
    /// How often the counters of the filter are reset.
    pub reset_timeout: Duration,
    /// A flow is heavy if it sends more bytes than these between two resets.
    pub admit_bytes: u32,
    /// A heavy flow that is silent for longer than this is forgotten.
    pub evict_timeout: Duration,
    /// The quanta that the light bucket may send in a turn, 1 to 2000.
    pub non_hh_weight: u32,
}

/// As in Linux on Ethernet: flows are heavy above 128 KiB in 40 ms, which is 26 Mbit/s.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            quantum: 1514,
            hh_limit: MOST,
            reset_timeout: Duration::from_millis(40),
            admit_bytes: 131_072,
            evict_timeout: Duration::from_secs(1),
            non_hh_weight: 2,
        }
    }
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The largest backlog of both buckets.",
        |hhf, _| &mut hhf.limit,
    ),
    Parameter::new(
        "quantum",
        Unit::Bytes,
        256..=1 << 20,
        "The bytes that the bucket of heavy flows may send in a turn.",
        |hhf, _| &mut hhf.quantum,
    ),
    Parameter::new(
        "hh_limit",
        Unit::Count("flows"),
        0..=MOST as u64,
        "The most heavy flows at a time; further ones stay with the light flows.",
        |hhf, _| &mut hhf.hh_limit,
    ),
    Parameter::new(
        "reset_timeout",
        Unit::Time,
        1..=u64::MAX,
        "How often the bytes of all flows are counted anew.",
        |hhf, _| &mut hhf.reset_timeout,
    ),
    Parameter::new(
        "admit_bytes",
        Unit::Bytes,
        0..=u32::MAX as u64,
        "A flow is heavy if it sends more than these between two resets.",
        |hhf, _| &mut hhf.admit_bytes,
    ),
    Parameter::new(
        "evict_timeout",
        Unit::Time,
        1..=u64::MAX,
        "A heavy flow that is silent for longer is light again.",
        |hhf, _| &mut hhf.evict_timeout,
    ),
    Parameter::new(
        "non_hh_weight",
        Unit::Count("quanta"),
        1..=2000,
        "The quanta that the bucket of light flows may send in a turn.",
        |hhf, _| &mut hhf.non_hh_weight,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "hhf",
        family: Family::Rounds,
        summary: "Two fifos, for flows that send much and for all others, by a small filter (heavy-hitter \
            filter)",
        when: "To keep short transfers ahead of bulk ones with little state; flows of one kind share a fifo.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Hhf::node(config, parts.seed)?)),
)
.with_memory(|_| 100_000);

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())
    }
}
