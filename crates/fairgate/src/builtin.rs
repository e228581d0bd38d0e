//! The disciplines of this library. It stands above the registry, which knows no discipline.

use crate::registry::{Entry, Registry};
use crate::{aqm, implicit, queues, rounds, sharing, timestamps};

impl Registry {
    /// Returns all disciplines of this library. The disciplines of a family are together. The order is the
    /// order of the documentation.
    pub fn builtin() -> Registry {
        Registry::of(ALL)
    }
}

static ALL: &[&dyn Entry] = &[
    &queues::fifo::DESCRIPTION,
    &queues::pfifo_fast::DESCRIPTION,
    &queues::prio::DESCRIPTION,
    &queues::tbf::DESCRIPTION,
    &queues::leaky_bucket::DESCRIPTION,
    &queues::policer::DESCRIPTION,
    &queues::cbs::DESCRIPTION,
    &queues::etf::DESCRIPTION,
    &queues::netem::DESCRIPTION,
    &queues::busy_link::DESCRIPTION,
    &aqm::red::DESCRIPTION,
    &aqm::ared::DESCRIPTION,
    &aqm::wred::DESCRIPTION,
    &aqm::gred::DESCRIPTION,
    &aqm::rred::DESCRIPTION,
    &aqm::choke::DESCRIPTION,
    &aqm::sfb::DESCRIPTION,
    &aqm::codel::DESCRIPTION,
    &aqm::pie::DESCRIPTION,
    &aqm::dualpi2::DESCRIPTION,
    &rounds::fq_nagle::DESCRIPTION,
    &rounds::fq_nagle::CLASSFUL,
    &rounds::sfq::DESCRIPTION,
    &rounds::drr::DESCRIPTION,
    &rounds::drr_classes::DESCRIPTION,
    &rounds::ets::DESCRIPTION,
    &rounds::mq::DESCRIPTION,
    &rounds::fq::DESCRIPTION,
    &rounds::fq_codel::DESCRIPTION,
    &rounds::fq_pie::DESCRIPTION,
    &rounds::hhf::DESCRIPTION,
    &rounds::msfc::DESCRIPTION,
    &rounds::cake::DESCRIPTION,
    &timestamps::scfq::DESCRIPTION,
    &timestamps::scfq::CLASSFUL,
    &timestamps::qfq::DESCRIPTION,
    &timestamps::qfq::CLASSFUL,
    &timestamps::qfq_plus::DESCRIPTION,
    &timestamps::qfq_plus::CLASSFUL,
    &timestamps::wf2q_plus::DESCRIPTION,
    &timestamps::wf2q_plus::CLASSFUL,
    &timestamps::wfq::DESCRIPTION,
    &timestamps::pfq::DESCRIPTION,
    &timestamps::s_kps::DESCRIPTION,
    &timestamps::s_kps::CLASSFUL,
    &timestamps::frr::DESCRIPTION,
    &timestamps::frr::CLASSFUL,
    &timestamps::gfq::DESCRIPTION,
    &timestamps::gfq::CLASSFUL,
    &implicit::sqf::DESCRIPTION,
    &implicit::lqf::DESCRIPTION,
    &implicit::hsqf::DESCRIPTION,
    &implicit::pdrr::DESCRIPTION,
    &implicit::admission::DESCRIPTION,
    &sharing::htb::DESCRIPTION,
    &sharing::hfsc::DESCRIPTION,
    &sharing::cbq::DESCRIPTION,
];
