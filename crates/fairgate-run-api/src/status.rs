//! The status document, `fairgate.status/1`. It is JSON for programs, and the source of the tables for users.
//!
//! All counts are since the start. A large tree is read in steps, so each discipline and each class says when
//! it was read.

use std::collections::BTreeMap;

use fairgate::balance::{self, Imbalance};
use fairgate::{Count, DropCounts, DropReason, Statistics, Variable};
use serde::{Deserialize, Serialize};

use crate::autorate::AutorateStatus;
use crate::names::SubscriberName;

/// The name of the end of a run that is this machine's own network stack.
pub const HOST: &str = "host";

/// The name of the node above the trees of several workers.
pub const SHARDED: &str = "sharded";

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Status {
    /// The run's name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Seconds since its start.
    pub uptime_s: f64,
    /// Whether both interfaces are isolated from this machine's own stack.
    pub isolated: bool,
    /// How punctual the forwarding thread is.
    pub processor: ProcessorStatus,
    /// What has changed during the run.
    #[serde(default)]
    pub changes: ChangesStatus,
    /// The revision of the trees. It grows by 1 with each change, and is 0 at the start.
    #[serde(default)]
    pub revision: u64,
    /// Why the run has another configuration than its file says, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The rates that follow the line, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autorate: Option<AutorateStatus>,
    /// The times in which packets went past this run on one interface, because it took none.
    #[serde(default)]
    pub passed_by: PassedByStatus,
    /// The translations of addresses that trees look up, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<NatStatus>,
    /// The directions from left to right and from right to left.
    pub directions: Vec<DirectionStatus>,
}

impl Status {
    /// Returns whether the run is on one interface that this machine itself uses.
    pub fn is_on_one_interface(&self) -> bool {
        self.directions
            .first()
            .is_some_and(|direction| direction.to == HOST)
    }
}

/// How much a status says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    #[default]
    All,
    /// No disciplines that no packet has come to, no classes that have sent none, and no description of the
    /// trees.
    Used,
    /// The counters of all disciplines, and no description of the trees.
    Counters,
    /// The same of a page: of each tree the root, and its classes of these numbers with all that is in them.
    /// Only they are read, so that this is fast with thousands of classes.
    Classes {
        /// The first number.
        first: u32,
        /// The last number.
        last: u32,
    },
}

impl Detail {
    /// Returns how much a status says of which only what is used is wanted, or everything.
    pub fn of(only_used: bool) -> Detail {
        match only_used {
            true => Detail::Used,
            false => Detail::All,
        }
    }

    /// Returns whether it says something of this class at the root of a tree.
    pub fn has_class(self, number: Option<u32>) -> bool {
        match self {
            Detail::Classes { first, last } => number.is_some_and(|number| (first..=last).contains(&number)),
            Detail::All | Detail::Used | Detail::Counters => true,
        }
    }
}

/// Changes of the trees during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangesStatus {
    /// Changes that were applied.
    pub applied: u64,
    /// Changes that were refused: nothing was changed by them.
    pub refused: u64,
    /// Packets that were dropped because a new limit had no room, or because their class was removed.
    pub dropped: u64,
    /// The longest time for which a change stopped forwarding, microseconds.
    pub longest_pause_us: f64,
    /// The time that is left to confirm a change, seconds, if one waits for it. Then it is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed_s: Option<f64>,
}

/// The times in which packets went past the run, through the kernel and unshaped: the run hung, or its TAP
/// device could not be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PassedByStatus {
    /// How many times there were.
    pub times: u64,
    /// The seconds of all of them.
    pub seconds: f64,
}

/// The translations in this machine's table of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NatStatus {
    /// How many translations are known.
    pub translations: u64,
    /// How often there was no room for one. The packets of such a connection count as those of this router.
    pub no_room: u64,
}

/// How punctual the forwarding thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProcessorStatus {
    /// Whether it has real-time priority.
    pub realtime: bool,
    /// How often it woke up.
    pub wake_ups: u64,
    /// How often it woke up more than 1 ms after the time that was set.
    pub late_wake_ups: u64,
    /// The largest delay of a timed wake-up, microseconds.
    pub latest_us: f64,
    /// How often it made no progress for more than 5 ms while it had work: another thread had the processor,
    /// or the kernel throttled it.
    pub stalls: u64,
    /// The longest stall, microseconds.
    pub longest_stall_us: f64,
    /// Seconds for which it was ready to run but waited for the processor. `None` if the kernel does not
    /// count them.
    pub waited_s: Option<f64>,
}

/// The status of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DirectionStatus {
    /// The interface that frames are received from.
    pub from: String,
    /// The interface that frames are sent to.
    pub to: String,
    /// Frames passed to the kernel, including the Ethernet header.
    pub sent: CountStatus,
    /// Bits per second sent over the last second.
    pub rate_bps: f64,
    /// Frames between the tree and the socket: in the delay line, or waiting for room in the socket.
    pub in_line: u64,
    /// Frames lost outside of the tree, by reason.
    pub lost: Losses,
    /// How often the socket had no room. No frames are lost by this.
    pub socket_full: u64,
    /// Super-packets that were scheduled as one packet each; the tree counts each as one.
    #[serde(default)]
    pub super_packets: u64,
    /// Packets that went past the run, through the kernel and unshaped. The tree does not count them.
    #[serde(default)]
    pub passed_by: u64,
    /// The time from arrival to departure from the tree, of each frame.
    pub sojourn: Sojourn,
    /// The tree of disciplines.
    pub tree: NodeStatus,
    /// The description of the tree: `[queue.tree]` of a configuration file. A status of what is used only
    /// does not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub queue: String,
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CountStatus {
    /// The number of packets.
    pub packets: u64,
    /// Their bytes, including the Ethernet header.
    pub bytes: u64,
}

/// Frames lost outside of the tree, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Losses {
    /// The receive ring was full: this process was too slow.
    pub ring_full: u64,
    /// All frames of the store were in use. Increase `frames` in `[run]`, or lower the limits of queues.
    pub no_frame: u64,
    /// The kernel delivered only a part of the frame.
    pub truncated: u64,
    /// The frame was longer than the MTU allows.
    pub too_long: u64,
    /// The frame needed an offload that can't be done in software.
    pub unsupported_offload: u64,
    /// A super-packet of more segments than one for each 32 bytes that have arrived.
    pub tiny_segments: u64,
    /// The interface did not accept the frame.
    pub refused: u64,
}

impl Losses {
    /// Returns each reason in words, and how many frames were lost for it.
    pub fn by_reason(&self) -> [(&'static str, u64); 7] {
        [
            ("ring full", self.ring_full),
            ("no free frame", self.no_frame),
            ("truncated", self.truncated),
            ("too long", self.too_long),
            ("unsupported offload", self.unsupported_offload),
            ("tiny segments", self.tiny_segments),
            ("refused by the interface", self.refused),
        ]
    }
}

/// The sojourn times of packets in the tree, in microseconds. Percentiles are accurate to 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Sojourn {
    /// The number of packets measured.
    pub packets: u64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 95th percentile.
    pub p95_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The maximum.
    pub max_us: f64,
}

/// The status of a discipline and its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeStatus {
    /// The discipline's name.
    pub discipline: String,
    /// The class of the parent that this discipline serves. `None` for the root.
    pub class: Option<u32>,
    /// What a list of subscribers calls this class: the name of a node of the network, or that of a
    /// subscriber, or its identifier if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The class of the node that it is connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// What the list lets it send at most, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bps: Option<u64>,
    /// The host that has this class, if classes are assigned to hosts. The counters of this node are then
    /// since the host got the class. Counters of disciplines below it are since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The subscriber that this class belongs to, if the tree is that of a list of subscribers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<SubscriberName>,
    /// Packets enqueued.
    pub enqueued: CountStatus,
    /// Packets dequeued.
    pub dequeued: CountStatus,
    /// Packets dropped.
    pub dropped: CountStatus,
    /// Packets flushed, or moved to a discipline that replaced this one.
    pub flushed: CountStatus,
    /// Packets queued now.
    pub backlog: CountStatus,
    /// Packets dropped, by reason. Reasons that did not occur are left out.
    pub drops: BTreeMap<String, u64>,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// How often nothing could be sent although packets were queued.
    pub overlimits: u64,
    /// The sum of the sojourn times of all dequeued packets, seconds. The sojourn time is measured from
    /// arrival at to departure from this node. From two statuses, divide the difference of these sums by the
    /// difference of `dequeued.packets`: the result is the mean delay between them.
    pub sojourn_s: f64,
    /// State variables, under the field's usual names.
    pub variables: BTreeMap<String, ValueStatus>,
    /// When these figures were read, in seconds since the start of the run. A rate is the difference of two
    /// counters divided by the difference of their times.
    #[serde(default)]
    pub at_s: f64,
    /// The disciplines of its classes. Classes that are reserved for hosts but not assigned are left out.
    #[cfg_attr(feature = "schema", schema(no_recursion))]
    pub classes: Vec<NodeStatus>,
    /// The state of classes that have more than a discipline, including inner nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_states: Vec<ClassStatus>,
    /// The rate, if the discipline has an estimator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<RateStatus>,
    /// The rates of classes that have an estimator, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub estimated_classes: Vec<ClassRateStatus>,
}

/// What an estimator says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RateStatus {
    /// Bits per second.
    pub rate_bps: u64,
    /// Packets per second.
    pub rate_pps: u64,
}

/// What the estimator of a class says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClassRateStatus {
    /// The number of the class.
    pub class: u32,
    /// Its rate.
    #[serde(flatten)]
    pub rate: RateStatus,
}

/// The state that a discipline keeps for one of its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClassStatus {
    /// The number of the class.
    pub class: u32,
    /// The name of the node of the network, if it is the class of one in the tree of a list of subscribers.
    /// The class of a subscriber has its name at its discipline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The class of the node above that node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// What that node sends at most, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bps: Option<u64>,
    /// Packets sent from this class or a class below it.
    pub sent: CountStatus,
    /// How often the class was held back by its own limit.
    pub overlimits: u64,
    /// Other state variables, under the field's usual names.
    pub variables: BTreeMap<String, ValueStatus>,
    /// When these figures were read, in seconds since the start of the run.
    #[serde(default)]
    pub at_s: f64,
}

/// The value of a state variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ValueStatus {
    /// A count, a length or a state.
    Integer(i64),
    /// A time, ns.
    Nanos(u64),
    /// True or false.
    Flag(bool),
    /// No value yet.
    Unset,
}

/// The name of the tree in [`DirectionStatus::queue`].
pub const QUEUE: &str = "tree";

impl Status {
    /// Checks that the figures add up: the statistics of every discipline, drops with their reasons, and
    /// packets that left each tree with the frames sent. The figures of each discipline, and the ones of
    /// each direction, are read at one moment.
    ///
    /// Two things are not checked. A class is not checked against its discipline, because they may be read at
    /// different moments, and because a discipline may itself hold a packet. Received frames are not checked
    /// against packets enqueued, because one frame may be cut into many.
    ///
    /// # Errors
    /// Reports the first figures that do not add up.
    pub fn check(&self) -> Result<(), Imbalance> {
        for direction in &self.directions {
            let place = format!("the direction from {} to {}", direction.from, direction.to);
            let after = [
                ("sent", direction.sent.packets),
                ("in the delay line", direction.in_line),
                ("refused", direction.lost.refused),
            ];
            balance::of(
                &place,
                "packets",
                ("out of the tree", direction.sojourn.packets),
                &after,
            )?;
            direction.tree.check()?;
        }
        Ok(())
    }
}

/// The library's unit of summed sojourn times, in seconds.
pub const SOJOURN_UNIT_S: f64 = Statistics::SOJOURN_UNIT as f64 * 1e-9;

impl NodeStatus {
    fn check(&self) -> Result<(), Imbalance> {
        let place = match self.class {
            None => format!("`{}`", self.discipline),
            Some(class) => format!("`{}` of class {class}", self.discipline),
        };
        self.statistics().check(&place, self.backlog.into())?;
        self.classes.iter().try_for_each(NodeStatus::check)
    }

    /// Returns the statistics as the discipline reported them.
    pub fn statistics(&self) -> Statistics {
        let mut dropped_by_reason = DropCounts::default();
        for &reason in DropReason::ALL {
            dropped_by_reason.set(reason, self.drops.get(reason.name()).copied().unwrap_or(0));
        }
        Statistics {
            enqueued: self.enqueued.into(),
            dequeued: self.dequeued.into(),
            dropped: self.dropped.into(),
            flushed: self.flushed.into(),
            dropped_by_reason,
            marked: self.marked,
            overlimits: self.overlimits,
            sojourn: (self.sojourn_s / SOJOURN_UNIT_S) as u64,
        }
    }

    /// Returns the discipline in a class.
    pub fn in_class(&self, minor: u32) -> Option<&NodeStatus> {
        Some(&self.classes[self.place_of(minor)?])
    }

    /// Returns the place of a class in `classes`. They are in the order of their numbers.
    fn place_of(&self, minor: u32) -> Option<usize> {
        self.classes
            .binary_search_by_key(&Some(minor), |class| class.class)
            .ok()
    }

    /// Returns the discipline at the end of a path of classes.
    pub fn at(&mut self, path: &[u32]) -> Option<&mut NodeStatus> {
        path.iter().try_fold(self, |node, minor| {
            let place = node.place_of(*minor)?;
            Some(&mut node.classes[place])
        })
    }
}

impl From<Count> for CountStatus {
    fn from(count: Count) -> CountStatus {
        CountStatus {
            packets: count.packets,
            bytes: count.bytes,
        }
    }
}

impl From<CountStatus> for Count {
    fn from(count: CountStatus) -> Count {
        Count {
            packets: count.packets,
            bytes: count.bytes,
        }
    }
}

impl From<ValueStatus> for Variable {
    fn from(value: ValueStatus) -> Variable {
        match value {
            ValueStatus::Integer(integer) => Variable::Integer(integer),
            ValueStatus::Nanos(nanos) => Variable::Nanos(nanos),
            ValueStatus::Flag(flag) => Variable::Flag(flag),
            ValueStatus::Unset => Variable::Unset,
        }
    }
}

impl From<Variable> for ValueStatus {
    fn from(value: Variable) -> ValueStatus {
        match value {
            Variable::Integer(integer) => ValueStatus::Integer(integer),
            Variable::Nanos(nanos) => ValueStatus::Nanos(nanos),
            Variable::Flag(flag) => ValueStatus::Flag(flag),
            Variable::Unset => ValueStatus::Unset,
        }
    }
}
