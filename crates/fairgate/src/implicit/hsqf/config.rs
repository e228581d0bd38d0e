//! The parameters of hsqf.

use alloc::boxed::Box;

use super::super::parameters::{drop_from, key, limit, quantum};
use super::Hsqf;
use crate::error::ConfigError;
use crate::flow::FlowBy;
use crate::queues::fifo::DropFrom;
use crate::registry::{About, Children, Description, Family, Parameter, Unit, check_ranges};

/// The parameters of the discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest number of queued packets, 1 to 2^24.
    pub limit: u32,
    /// The bytes that a user may send in a round, 64 to 2^30. The cost is constant if it is at least the
    /// longest packet.
    pub quantum: u32,
    /// The largest number of users with packets, 1 to 16384.
    pub users: u32,
    /// What identifies a user.
    pub user: FlowBy,
    /// What identifies a flow of a user.
    pub key: FlowBy,
    /// Which packet of the longest flow is dropped.
    pub drop_from: DropFrom,
}

/// Users are receiving hosts, as on a link towards homes. The limit is five times the limit of sqf, because
/// several users share it.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            quantum: 1514,
            users: 256,
            user: FlowBy::Destination,
            key: FlowBy::FiveTuple,
            drop_from: DropFrom::Head,
        }
    }
}

/// The parameters that users can set.
pub const PARAMETERS: &[Parameter<Config>] = &[
    limit(1 << 24, |hsqf, _| &mut hsqf.limit),
    quantum(
        "Bytes that a user may send in a round; should be at least the longest packet.",
        |hsqf, _| &mut hsqf.quantum,
    ),
    Parameter::new(
        "users",
        Unit::Count("users"),
        1..=1 << 14,
        "The largest number of users with packets.",
        |hsqf, _| &mut hsqf.users,
    ),
    Parameter::word(
        "user",
        Unit::Choice(FlowBy::WORDS),
        "What the packets of a user have in common.",
        |hsqf, _| &mut hsqf.user,
    ),
    key(|hsqf, _| &mut hsqf.key),
    drop_from(
        "Which packet of the longest flow of the largest user is dropped: the newest or the oldest.",
        |hsqf, _| &mut hsqf.drop_from,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "hsqf",
        family: Family::Implicit,
        summary: "Hierarchical sqf: fair queueing between users, shortest queue first between the flows of \
            a user",
        when: "On a link that several users share: fair between them, and calls before downloads for each \
            of them.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Hsqf::node(config, parts.seed)?)),
)
.with_memory(|hsqf| 3800 * u64::from(hsqf.users));

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())
    }
}
