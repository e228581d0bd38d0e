//! Fair queueing by time stamps.

use fairgate::scheduler::{classes, flows};
use fairgate::timestamps::frr::Frr;
use fairgate::timestamps::gfq::Gfq;
use fairgate::timestamps::pfq::Pfq;
use fairgate::timestamps::qfq::{Qfq, Slope};
use fairgate::timestamps::qfq_plus::QfqPlus;
use fairgate::timestamps::s_kps::SKps;
use fairgate::timestamps::scfq::Scfq;
use fairgate::timestamps::wf2q_plus::Wf2qPlus;
use fairgate::timestamps::wfq::Wfq;

use super::schedulers::{FlatSettings, class_max_packet, class_weight, classful, flat, max_packet, weights};
use super::{Description, Family, Parameter};
use crate::value::{Unit, choice_field};

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

pub(super) static S_KPS: Flat<SKps> = flat!(
    SKps,
    Family::Timestamps,
    "Simple KPS (Karsten 2006, 2010): WF2Q+ with rounded time stamps in interleaved timer wheels, constant work",
    "For tight guarantees of rate and delay to very many flows; qfq is faster, this one's bound holds for short packets too.",
    [weights::<SKps>(), max_packet::<SKps>()]
);

pub(super) static S_KPS_CLASSES: Classful<SKps> = classful!(
    SKps,
    Family::Timestamps,
    "Simple KPS over classes, each with a weight and any discipline inside",
    "To share a line in given proportions with tight guarantees of delay.",
    [],
    [class_weight::<SKps>(), class_max_packet::<SKps>()]
);

pub(super) static QFQ: Flat<Qfq> = flat!(
    Qfq,
    Family::Timestamps,
    "Quick Fair Queueing: shares and delays close to the ideal at a cost that does not grow with flows or groups",
    "When flows need low delay as well as their share, however many there are; qfq_plus is cheaper, less tight.",
    [
        weights::<Qfq>(),
        max_packet::<Qfq>(),
        Parameter::word("slope", SLOPE, SLOPE_DOC, |flat, _| &mut flat
            .config
            .settings
            .slope),
    ]
);

pub(super) static QFQ_CLASSES: Classful<Qfq> = classful!(
    Qfq,
    Family::Timestamps,
    "Quick Fair Queueing over classes, each with a weight and any discipline inside",
    "To share a line in given proportions with guarantees of delay; tc's `qfq` is qfq_plus.",
    [Parameter::word("slope", SLOPE, SLOPE_DOC, |classes, _| {
        &mut classes.settings.slope
    })],
    [class_weight::<Qfq>(), class_max_packet::<Qfq>()]
);

const SLOPE: Unit = Unit::Choice(&["live", "configured"]);
const SLOPE_DOC: &str =
    "Whose weights virtual time is slowed down by: those of flows with packets, or of all as in Linux.";

choice_field!(Slope { "live" => Slope::Live, "configured" => Slope::Configured });

pub(super) static QFQ_PLUS: Flat<QfqPlus> = flat!(
    QfqPlus,
    Family::Timestamps,
    "QFQ+ (Linux's `qfq`): Quick Fair Queueing over aggregates of up to eight flows that take turns",
    "For fair shares and bounded delay at nearly the cost of drr; for the tightest delay take qfq.",
    [weights::<QfqPlus>(), max_packet::<QfqPlus>()]
);

pub(super) static QFQ_PLUS_CLASSES: Classful<QfqPlus> = classful!(
    QfqPlus,
    Family::Timestamps,
    "QFQ+ (Linux's `qfq`) over classes, each with a weight and any discipline inside",
    "To share a line in given proportions as Linux's `qfq` does, packet for packet.",
    [],
    [class_weight::<QfqPlus>(), class_max_packet::<QfqPlus>()]
);

pub(super) static FRR: Flat<Frr> = flat!(
    Frr,
    Family::Timestamps,
    "Fair round robin (Yuan and Duan 2009): rounds within strata of similar weights, time stamps between them",
    "To compare with: nearly the cost of rounds, without their delay for heavy flows; qfq's bound is better.",
    [weights::<Frr>(), max_packet::<Frr>()]
);

pub(super) static FRR_CLASSES: Classful<Frr> = classful!(
    Frr,
    Family::Timestamps,
    "Fair round robin over classes, each with a weight and any discipline inside",
    "To share a line in given proportions at constant cost; qfq's bound is better.",
    [],
    [class_weight::<Frr>(), class_max_packet::<Frr>()]
);

pub(super) static GFQ: Flat<Gfq> = flat!(
    Gfq,
    Family::Timestamps,
    "Grouped fair queueing (Stephens, Bennett, Zhang 1999): WF2Q+ between groups of flows, calendars within",
    "For delay between that of wf2q_plus and of s_kps, to very many flows with few kinds of shares.",
    [weights::<Gfq>(), max_packet::<Gfq>()]
);

pub(super) static GFQ_CLASSES: Classful<Gfq> = classful!(
    Gfq,
    Family::Timestamps,
    "Grouped fair queueing over classes, each with a weight and any discipline inside",
    "To share a line in given proportions among many classes with few kinds of shares.",
    [],
    [class_weight::<Gfq>(), class_max_packet::<Gfq>()]
);

pub(super) static WFQ: Flat<Wfq> = flat!(
    Wfq,
    Family::Timestamps,
    "Weighted fair queueing, exactly: departures in the order of the fluid reference (GPS)",
    "As the reference; wf2q_plus is smoother, costs less and need not know the line's rate.",
    [
        weights::<Wfq>(),
        Parameter::required(
            "rate",
            Unit::Rate,
            1..=u64::MAX,
            "The rate of the line, by which the fluid reference works.",
            |flat, _| &mut flat.config.settings.rate,
        ),
    ]
);

pub(super) static PFQ: Flat<Pfq> = flat!(
    Pfq,
    Family::Timestamps,
    "Priority fair queueing (Kortebi et al. 2004): flows that send little go first, the others share",
    "Where voice and short transfers should need no marking; pdrr does the same at less cost.",
    [
        weights::<Pfq>(),
        Parameter::new(
            "quantum",
            Unit::Bytes,
            1..=1 << 30,
            "Bytes that a flow may send first, since it became active.",
            |flat, _| &mut flat.config.settings.quantum,
        ),
    ]
);
