//! The parameters of msfc, and what tells a packet's class.

use super::{AutoPriority, Msfc};
use crate::aqm::codel::{Law, Params};
use crate::classify::{ClassMap, Classifier};
use crate::discipline::Algorithm;
use crate::error::{ConfigError, check_within};
use crate::rounds::codel_flows::{Limits, check_flows};
use crate::slot::Slot;

/// Most flows of all classes together: 128 MiB of state.
const MAX_FLOWS_IN_ALL: u32 = 1 << 21;

/// Most classes.
pub const MAX_PRIOS: u8 = 16;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of priority classes, 1 to [`MAX_PRIOS`]. The highest number gets the largest share.
    pub prios: u8,
    /// Number of flows in each class, 1 to 2^20; at most 2^21 in all classes together.
    pub flows: u32,
    /// Bytes that a flow may send in a turn, and the lowest class in one of its own; 256 to 2^20.
    pub quantum: u32,
    /// How many times the share of the next lower class a class gets, at least 1.
    pub ratio: u32,
    /// Whether a class's share counts for each of its active flows, and not for all of them together.
    pub flow_aware: bool,
    /// Whether and how flows change their class by their behaviour.
    pub auto_priority: Option<AutoPriority>,
    /// Most packets queued in all flows together.
    pub limit: u32,
    /// Most memory occupied by queued packets ([`Packet::memory`]), bytes.
    pub memory_limit: u64,
    /// Most packets dropped at once when a limit is reached.
    pub drop_batch: u32,
    /// Places packets before [`class_by`](Config::class_by) does: `handle:n`, a filter's class `n` or a default `n` is
    /// the class of priority `n - 1`.
    pub classifier: Classifier,
    /// Places the packets that the classifier does not.
    pub class_by: ClassBy,
    /// The control law's.
    pub codel: Params,
}

/// Which field of a packet tells its class, and the class for each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassBy {
    /// The DSCP.
    Dscp([u8; 64]),
    /// The packet's priority; only its four low bits count.
    Priority([u8; 16]),
}

impl ClassBy {
    /// The class of a packet.
    #[inline]
    pub(super) fn class_of(&self, packet: &Slot) -> u8 {
        match self {
            ClassBy::Dscp(map) => map[usize::from(packet.dscp & 63)],
            ClassBy::Priority(map) => map[usize::from(packet.priority & 15)],
        }
    }
}

/// Three classes by DSCP. Low: CS1 and LE (RFC 8622), bulk by their own word. High: what waits worst, that is CS4 to
/// CS7, AF4x, VOICE-ADMIT and EF (the network control, telephony, signalling and interactive classes of RFC 4594).
/// All else is in the middle.
pub const DIFFSERV3: ClassBy = {
    let mut map = [1; 64];
    let low = [1, 8];
    let high = [32, 34, 36, 38, 40, 44, 46, 48, 56];
    let mut i = 0;
    while i < low.len() {
        map[low[i]] = 0;
        i += 1;
    }
    i = 0;
    while i < high.len() {
        map[high[i]] = 2;
        i += 1;
    }
    ClassBy::Dscp(map)
};

/// Three classes by priority, as Linux's `pfifo_fast` has them: its first band is the highest class.
pub const PRIOMAP3: ClassBy = ClassBy::Priority([1, 0, 0, 0, 1, 0, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]);

/// Three classes by DSCP in the ratio 1 : 2 : 4; else as the thesis and fq_codel have it.
impl Default for Config {
    fn default() -> Config {
        Config {
            prios: 3,
            flows: 1024,
            quantum: 1514,
            ratio: 2,
            flow_aware: false,
            auto_priority: None,
            limit: 10_240,
            memory_limit: 32 << 20,
            drop_batch: 64,
            classifier: Classifier::default(),
            class_by: DIFFSERV3,
            codel: Params::default(),
        }
    }
}

impl Config {
    pub(super) fn check(&self) -> Result<(Law, Limits), ConfigError> {
        check_flows(self.flows, self.quantum)?;
        if let Some(auto) = &self.auto_priority {
            auto.check()?;
        }
        self.check_classes()?;
        if self.flows_in_all() > MAX_FLOWS_IN_ALL {
            return Err(ConfigError::out_of_range(
                "flows",
                self.flows,
                format!(
                    "at most {}: {MAX_FLOWS_IN_ALL} in all classes together",
                    MAX_FLOWS_IN_ALL / u32::from(self.prios)
                ),
                "have fewer flows in each class, or fewer classes",
            ));
        }
        let limits = Limits::new(self.limit, self.memory_limit, self.drop_batch)?;
        Ok((Law::new(&self.codel)?, limits))
    }

    pub(super) fn flows_in_all(&self) -> u32 {
        u32::from(self.prios) * self.flows
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        check_within("prios", self.prios.into(), 1, MAX_PRIOS.into())?;
        let largest = u64::from(self.ratio)
            .checked_pow(u32::from(self.prios) - 1)
            .and_then(|factor| factor.checked_mul(self.quantum.into()));
        let fits = largest.is_some_and(|quantum| quantum <= LARGEST_QUANTUM);
        if self.ratio == 0 || !fits {
            return Err(ConfigError::out_of_range(
                "ratio",
                self.ratio,
                format!("at least 1, and quantum * ratio^(prios - 1) at most {LARGEST_QUANTUM} bytes"),
                "2 is the default; take fewer classes or a smaller ratio",
            ));
        }
        let map: &[u8] = match &self.class_by {
            ClassBy::Dscp(map) => map,
            ClassBy::Priority(map) => map,
        };
        if let Some(class) = map.iter().find(|class| **class >= self.prios) {
            return Err(ConfigError::out_of_range(
                "class_by",
                format!("class {class}"),
                format!("below prios, which is {}", self.prios),
                "give a map that fits, or raise prios",
            ));
        }
        ClassMap::new(1..=self.prios.into())?.check(&self.classifier, Msfc::NAME)
    }
}

/// A class may not hold the line for longer than this many bytes at a turn: 3 s at 100 Mb/s. Where turns grow with the
/// number of flows, for each flow.
const LARGEST_QUANTUM: u64 = 1 << 25;
