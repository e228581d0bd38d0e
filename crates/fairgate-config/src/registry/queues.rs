//! Queues without flows.

use std::time::Duration;

use fairgate::queues::fifo::{self, DropFrom, Fifo};
use fairgate::queues::leaky_bucket::{self, LeakyBucket};
use fairgate::queues::pfifo_fast::{self, PfifoFast};
use fairgate::queues::policer::{self, Exceed, Policer};
use fairgate::queues::prio::{self, Prio};
use fairgate::queues::tbf::{self, Limit, Tbf};
use fairgate::queues::token_bucket::{Peak, Profile};
use fairgate::{ConfigError, Rate};

use super::description::bounding;
use super::{About, Children, Description, Family, Lens, Longest, Parameter, Placing};
use crate::value::{Unit, choice_field};

choice_field!(DropFrom {
    "tail" => DropFrom::Tail,
    "head" => DropFrom::Head,
});

pub(super) const DROP_FROM: Unit = Unit::Choice(&["tail", "head"]);

pub(super) static FIFO: Description<fifo::Config, fifo::Config> = Description {
    about: About {
        name: "fifo",
        family: Family::Queues,
        summary: "First in, first out, with a limit of packets, bytes or both",
        when: "As a leaf of other disciplines, and as the base line to compare with.",
        children: Children::None,
    },
    parameters: &[
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets queued.",
            |fifo, _| &mut fifo.limit_packets,
        ),
        bounding(
            |fifo, _| fifo.limit_bytes.map(Longest::Length),
            Parameter::new(
                "limit_bytes",
                Unit::Bytes,
                1..=u64::MAX,
                "Most bytes queued.",
                |fifo, _| &mut fifo.limit_bytes,
            ),
        ),
        Parameter::word(
            "drop",
            DROP_FROM,
            "Which packet pays when the queue is full: the arriving one or the oldest.",
            |fifo, _| &mut fifo.drop_from,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| fifo::Config::default(),
    config: Ok,
    build: |config, _| Ok(Box::new(Fifo::node(config)?)),
};

pub(super) static PFIFO_FAST: Description<pfifo_fast::Config, pfifo_fast::Config> = Description {
    about: About {
        name: "pfifo_fast",
        family: Family::Queues,
        summary: "Three fifos in strict priority, chosen by the packet's priority: Linux's old default",
        when: "To compare with what Linux machines did for decades.",
        children: Children::None,
    },
    parameters: &[Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "Most packets in each of the three bands.",
        |pfifo_fast, _| &mut pfifo_fast.limit,
    )],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| pfifo_fast::Config::default(),
    config: Ok,
    build: |config, _| Ok(Box::new(PfifoFast::node(config)?)),
};

pub(super) static PRIO: Description<prio::Config, prio::Config> = Description {
    about: About {
        name: "prio",
        family: Family::Queues,
        summary: "Strict priority over classes, each with any discipline inside",
        when: "Where one kind of traffic must always go first and is known to be little; it can starve the rest.",
        children: Children::Bands,
    },
    parameters: &[Parameter::new(
        "priomap",
        Unit::List(16),
        0..=63,
        "The band, counted from 0, for each packet priority from 0 to 15, where no filter chooses a class.",
        |prio, _| &mut prio.priomap,
    )],
    class_parameters: &[],
    placing: Placing::Classifier(|prio| &mut prio.classifier, |_| 64),
    start: |_| prio::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Prio::node(config, parts.children)?)),
};

/// A [`Profile`] as users write it: `peakrate` with its `mtu`.
pub(super) struct ProfileSettings {
    rate: Rate,
    burst: u32,
    peakrate: Option<Rate>,
    mtu: Option<u32>,
}

impl ProfileSettings {
    /// Rate and burst are required, and so always overwritten.
    const START: ProfileSettings = ProfileSettings {
        rate: Rate::mbit(1),
        burst: 0,
        peakrate: None,
        mtu: None,
    };

    /// What the bucket of `burst` bytes holds.
    fn first_bucket(&self) -> Longest {
        Longest::Length(self.burst.into())
    }

    /// What that of the peak rate holds.
    fn second_bucket(&self) -> Option<Longest> {
        self.mtu.map(|mtu| Longest::Length(mtu.into()))
    }

    fn profile(self) -> Result<Profile, ConfigError> {
        let peak = match (self.peakrate, self.mtu) {
            (Some(rate), Some(mtu)) => Some(Peak { rate, mtu }),
            (None, None) => None,
            (Some(rate), None) => {
                return Err(ConfigError::out_of_range(
                    "peakrate",
                    rate,
                    "given together with `mtu`",
                    "add the depth of its bucket: mtu = \"1514b\" on Ethernet",
                ));
            }
            (None, Some(mtu)) => {
                return Err(ConfigError::out_of_range(
                    "mtu",
                    mtu,
                    "given together with `peakrate`",
                    "leave it out, or add the peak rate whose bucket it is",
                ));
            }
        };
        Ok(Profile {
            peak,
            ..Profile::new(self.rate, self.burst)
        })
    }
}

// The parameters of a profile, in the words of who shapes by it or polices.

const fn rate<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::required("rate", Unit::Rate, 1..=u64::MAX, doc, field)
}

const fn burst<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::required("burst", Unit::Bytes, 1..=u32::MAX as u64, doc, field)
}

const fn peakrate<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("peakrate", Unit::Rate, 1..=u64::MAX, doc, field)
}

const fn mtu<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("mtu", Unit::Bytes, 1..=u32::MAX as u64, doc, field)
}

/// tbf as users write it: `limit` or `latency`.
pub(super) struct TbfSettings {
    profile: ProfileSettings,
    limit: Option<u64>,
    latency: Option<Duration>,
}

impl TbfSettings {
    fn config(self) -> Result<tbf::Config, ConfigError> {
        let limit = match (self.limit, self.latency) {
            (Some(_), Some(latency)) => {
                return Err(ConfigError::out_of_range(
                    "latency",
                    format!("{latency:?}"),
                    "left out beside `limit`",
                    "give the bound of the queue as bytes or as time, not as both",
                ));
            }
            (Some(bytes), None) => Some(Limit::Bytes(bytes)),
            (None, Some(latency)) => Some(Limit::Latency(latency.as_nanos() as u64)),
            (None, None) => None,
        };
        Ok(tbf::Config {
            profile: self.profile.profile()?,
            limit,
        })
    }
}

pub(super) static TBF: Description<TbfSettings, tbf::Config> = Description {
    about: About {
        name: "tbf",
        family: Family::Queues,
        summary: "Token bucket shaper over a fifo or any discipline inside",
        when: "To hold a line to a rate a little below the modem's, so that the queue is here and not there.",
        children: Children::Inner,
    },
    parameters: &[
        rate("The rate to hold.", |tbf, _| &mut tbf.profile.rate),
        bounding(
            |tbf, _| Some(tbf.profile.first_bucket()),
            burst(
                "Bytes that may leave at once after an idle time: at least the longest packet.",
                |tbf, _| &mut tbf.profile.burst,
            ),
        ),
        bounding(
            |tbf, _| tbf.limit.map(Longest::Length),
            Parameter::new(
                "limit",
                Unit::Bytes,
                1..=u64::MAX,
                "Most bytes queued; not with an inner discipline.",
                |tbf, _| &mut tbf.limit,
            ),
        ),
        Parameter::new(
            "latency",
            Unit::Time,
            1..=u64::MAX,
            "The longest that a packet may have to wait, instead of `limit`.",
            |tbf, _| &mut tbf.latency,
        ),
        peakrate("How fast a burst may leave: above the rate.", |tbf, _| {
            &mut tbf.profile.peakrate
        }),
        bounding(
            |tbf, _| tbf.profile.second_bucket(),
            mtu(
                "Bytes that may leave at once at the peak rate: at least the longest packet.",
                |tbf, _| &mut tbf.profile.mtu,
            ),
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| TbfSettings {
        profile: ProfileSettings::START,
        limit: None,
        latency: None,
    },
    config: TbfSettings::config,
    build: |config, mut parts| Ok(Box::new(Tbf::node(config, parts.children.pop())?)),
};

pub(super) static LEAKY_BUCKET: Description<leaky_bucket::Config, leaky_bucket::Config> = Description {
    about: About {
        name: "leaky_bucket",
        family: Family::Queues,
        summary: "A queue that packets leave at a constant rate, without bursts; what overflows is dropped",
        when: "In front of something that takes no bursts at all: a radio link, a policer, a short hardware queue.",
        children: Children::None,
    },
    parameters: &[
        Parameter::required(
            "rate",
            Unit::Rate,
            8..=u64::MAX,
            "The rate at which packets leave.",
            |bucket, _| &mut bucket.rate,
        ),
        bounding(
            |bucket, _| Some(Longest::Length(bucket.bucket)),
            Parameter::required(
                "bucket",
                Unit::Bytes,
                1..=u64::MAX,
                "Most bytes queued: at least the longest packet.",
                |bucket, _| &mut bucket.bucket,
            ),
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| leaky_bucket::Config::of_rate(Rate::mbit(1)),
    config: Ok,
    build: |config, _| Ok(Box::new(LeakyBucket::node(config)?)),
};

/// A policer as users write it: `remark` instead of a drop.
pub(super) struct PolicerSettings {
    profile: ProfileSettings,
    remark: Option<u8>,
}

impl PolicerSettings {
    /// Whether what exceeds is lost.
    fn drops(&self) -> bool {
        self.remark.is_none()
    }

    fn config(self) -> Result<policer::Config, ConfigError> {
        Ok(policer::Config {
            profile: self.profile.profile()?,
            exceed: self.remark.map_or(Exceed::Drop, Exceed::Remark),
        })
    }
}

pub(super) static POLICER: Description<PolicerSettings, policer::Config> = Description {
    about: About {
        name: "policer",
        family: Family::Queues,
        summary: "Drops or re-marks what exceeds a rate and a burst, in front of any discipline inside; holds nothing back",
        when: "To hold senders to a contract without a queue of their own, or to mark what exceeds it as first to be lost.",
        children: Children::Inner,
    },
    parameters: &[
        rate("The rate that conforms.", |policer, _| &mut policer.profile.rate),
        bounding(
            |policer, _| policer.drops().then(|| policer.profile.first_bucket()),
            burst(
                "Bytes that conform at once after an idle time: at least the longest packet.",
                |policer, _| &mut policer.profile.burst,
            ),
        ),
        peakrate("How fast a burst may come: above the rate.", |policer, _| {
            &mut policer.profile.peakrate
        }),
        bounding(
            |policer, _| policer.profile.second_bucket().filter(|_| policer.drops()),
            mtu(
                "Bytes that conform at once at the peak rate: at least the longest packet.",
                |policer, _| &mut policer.profile.mtu,
            ),
        ),
        Parameter::new(
            "remark",
            Unit::Count("DSCP"),
            0..=63,
            "What exceeds passes with this DSCP instead of being dropped.",
            |policer, _| &mut policer.remark,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Nothing,
    start: |_| PolicerSettings {
        profile: ProfileSettings::START,
        remark: None,
    },
    config: PolicerSettings::config,
    build: |config, mut parts| {
        let inner = match parts.children.pop() {
            Some(inner) => inner,
            None => Box::new(Fifo::node(fifo::Config::default())?),
        };
        Ok(Box::new(Policer::node(config, inner)?))
    },
};
