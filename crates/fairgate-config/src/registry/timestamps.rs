//! Fair queueing by time stamps.

use fairgate::scheduler::{classes, flows};
use fairgate::timestamps::scfq::Scfq;
use fairgate::timestamps::wf2q_plus::Wf2qPlus;

use super::schedulers::{FlatSettings, class_weight, classful, flat, weights};
use super::{Description, Family};

/// A scheduler over hashed flows.
type Flat<S> = Description<FlatSettings<S>, flows::ConfigOf<S>>;
/// A scheduler over classes.
type Classful<S> = Description<classes::ConfigOf<S>, classes::ConfigOf<S>>;

pub(super) static SCFQ: Flat<Scfq> = flat!(
    Scfq,
    Family::Timestamps,
    "Self-clocked fair queueing (Golestani 1994): fair shares by time stamps, at little cost",
    "As a simple base line of fair queueing; for low delay take qfq or wf2q_plus.",
    [weights::<Scfq>()]
);

pub(super) static SCFQ_CLASSES: Classful<Scfq> = classful!(
    Scfq,
    Family::Timestamps,
    "Self-clocked fair queueing over classes, each with a weight and any discipline inside",
    "To share a line in given proportions; for low delay take qfq or wf2q_plus.",
    [],
    [class_weight::<Scfq>()]
);

pub(super) static WF2Q_PLUS: Flat<Wf2qPlus> = flat!(
    Wf2qPlus,
    Family::Timestamps,
    "WF2Q+ (Bennett and Zhang 1996): by weights, the least delay that packets allow, O(log N)",
    "Where delay and smoothness must be the best there is; for many flows qfq costs less.",
    [weights::<Wf2qPlus>()]
);

pub(super) static WF2Q_PLUS_CLASSES: Classful<Wf2qPlus> = classful!(
    Wf2qPlus,
    Family::Timestamps,
    "WF2Q+ over classes, each with a weight and any discipline inside",
    "To share a line in given proportions at the least delay for each class.",
    [],
    [class_weight::<Wf2qPlus>()]
);
