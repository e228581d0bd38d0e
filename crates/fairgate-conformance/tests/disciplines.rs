//! Runs the suite on every discipline of the library. Each has one line.

mod configs;
mod rates;

use fairgate::Rate;
use fairgate::aqm::{
    ared::Ared,
    choke::Choke,
    codel::Codel,
    dualpi2::{self, DualPi2},
    gred::Gred,
    pie::Pie,
    red::{self, Red},
    rred::Rred,
    sfb::Sfb,
    wred::Wred,
};
use fairgate::classify::{Classifier, Edit, Filter, Filters, Match, Outcome};
use fairgate::implicit::{admission::Admission, hsqf::Hsqf, lqf::Lqf, pdrr::Pdrr, sqf::Sqf};
use fairgate::queues::{
    busy_link::BusyLink,
    cbs::Cbs,
    etf::Etf,
    fifo::Fifo,
    leaky_bucket::LeakyBucket,
    netem::Netem,
    pfifo_fast::PfifoFast,
    policer::{self, Exceed, Policer},
    prio::{self, Prio},
    tbf::Tbf,
    token_bucket::Profile,
};
use fairgate::rounds::{
    cake::Cake, drr::Drr, drr_classes::DrrClasses, ets::Ets, fq::Fq, fq_codel::FqCodel, fq_nagle::FqNagle,
    fq_pie::FqPie, hhf::Hhf, mq::Mq, msfc::Msfc, sfq::Sfq,
};
use fairgate::scheduler::{Classes, Flows, Scheduler};
use fairgate::sharding::Sharded;
use fairgate::sharing::{cbq::Cbq, hfsc::Hfsc, htb::Htb};
use fairgate::timestamps::{
    frr::Frr, gfq::Gfq, pfq::Pfq, qfq::Qfq, qfq_plus::QfqPlus, s_kps::SKps, scfq::Scfq, wf2q_plus::Wf2qPlus,
    wfq::Wfq,
};
use fairgate_conformance::proptest::prelude::{BoxedStrategy, Just, Strategy};
use fairgate_conformance::proptest::test_runner::TestRunner;
use fairgate_conformance::{Recipe, cases, check, conformance_suite};

conformance_suite! {
    fifo: Recipe::leaf(configs::fifo, |config, _seed| Fifo::node(config));
    pfifo_fast: Recipe::leaf(configs::pfifo_fast, |config, _seed| PfifoFast::node(config));
    prio: Recipe::classful(1..=4, configs::prio, |config, _seed, bands| Prio::node(config, bands));
    tbf: Recipe::leaf(configs::tbf, |config, _seed| Tbf::node(config, None)).shaping();
    tbf_over_another: Recipe::classful(1..=1, configs::tbf_over, |config, _seed, mut inner| {
        Tbf::node(config, inner.pop())
    }).shaping();
    leaky_bucket: Recipe::leaf(configs::leaky_bucket, |config, _seed| LeakyBucket::node(config)).shaping();
    policer: Recipe::classful(1..=1, configs::policer, |config, _seed, mut inner| {
        Policer::node(config, inner.pop().expect("one"))
    });
    cbs: Recipe::classful(1..=1, configs::cbs, |config, _seed, mut inner| {
        Cbs::node(config, inner.pop())
    }).shaping();
    etf: Recipe::leaf(configs::etf, |config, _seed| Etf::node(config)).shaping().reordering();
    netem: Recipe::leaf(configs::netem, |config, seed| {
        Netem::node(config, seed, None)
    }).shaping().reordering();
    netem_over_another: Recipe::classful(1..=1, |_| configs::netem(), |config, seed, mut inner| {
        Netem::node(config, seed, inner.pop())
    }).shaping().reordering();
    busy_link: Recipe::classful(1..=1, |_| configs::busy_link(), |config, seed, mut inner| {
        BusyLink::node(config, seed, inner.pop().expect("one"))
    }).shaping();
    red: Recipe::leaf(configs::red, Red::node);
    red_over_another: Recipe::classful(1..=1, configs::red_over, |config, seed, mut inner| {
        red::Queue::over(config, seed, inner.pop().expect("one"))
    });
    // RED marks a packet before dualpi2 classifies it, and marked packets go to another queue.
    red_over_dualpi2: Recipe::leaf(|| configs::red_over(1), |config, seed| {
        red::Queue::over(config, seed, Box::new(DualPi2::node(dualpi2::Config::default(), seed)?))
    });
    ared: Recipe::leaf(configs::ared, Ared::node);
    codel: Recipe::leaf(configs::codel, |config, _seed| Codel::node(config));
    wred: Recipe::leaf(configs::wred, Wred::node);
    gred: Recipe::leaf(configs::gred, Gred::node);
    rred: Recipe::leaf(configs::rred, Rred::node);
    choke: Recipe::leaf(configs::choke, Choke::node);
    sfb: Recipe::leaf(configs::sfb, Sfb::node);
    pie: Recipe::leaf(configs::pie, Pie::node);
    dualpi2: Recipe::leaf(configs::dualpi2, DualPi2::node);
    drr: Recipe::leaf(|| configs::flows::<Drr>(configs::quantum()), Flows::<Drr>::node);
    drr_classes: Recipe::classful(1..=4, configs::drr_classes, |config, _seed, classes| {
        DrrClasses::node(config, classes)
    });
    mq: Recipe::classful(1..=4, configs::mq, |config, _seed, bands| Mq::node(config, bands));
    // It asks to be called in each interval, at most 10 ms. The longest packet takes 210 s at the lowest rate
    // if four shards share it.
    sharded: Recipe::classful(1..=4, |_| configs::sharded(), |config, seed, trees| {
        Sharded::node(config, trees, seed)
    }).shaping().polling(21_000);
    ets: Recipe::classful(1..=5, configs::ets, |config, _seed, bands| Ets::node(config, bands));
    fq_nagle: Recipe::leaf(|| configs::flows::<FqNagle>(Just(())), Flows::<FqNagle>::node);
    fq_nagle_classes: classes::<FqNagle>(|| Just(()).boxed());
    sfq: Recipe::leaf(configs::sfq, Sfq::node);
    fq: Recipe::leaf(configs::fq, Fq::node).shaping();
    fq_codel: Recipe::leaf(configs::fq_codel, FqCodel::node);
    fq_pie: Recipe::leaf(configs::fq_pie, FqPie::node);
    hhf: Recipe::leaf(configs::hhf, Hhf::node);
    msfc: Recipe::leaf(configs::msfc, Msfc::node);
    cake: Recipe::leaf(configs::cake, Cake::node).shaping();
    sqf: Recipe::leaf(configs::sqf, Sqf::node);
    lqf: Recipe::leaf(configs::lqf, Lqf::node);
    hsqf: Recipe::leaf(configs::hsqf, Hsqf::node);
    pdrr: Recipe::leaf(configs::pdrr, Pdrr::node);
    admission: Recipe::classful(1..=1, configs::admission, |config, seed, mut inner| {
        Admission::node(config, seed, inner.pop().expect("one"))
    });
    scfq: Recipe::leaf(|| configs::flows::<Scfq>(configs::weight()), Flows::<Scfq>::node);
    scfq_classes: classes::<Scfq>(configs::weight);
    qfq: Recipe::leaf(|| configs::flows::<Qfq>(configs::share()), Flows::<Qfq>::node);
    qfq_classes: classes::<Qfq>(configs::share);
    qfq_plus: Recipe::leaf(|| configs::flows::<QfqPlus>(configs::share()), Flows::<QfqPlus>::node);
    qfq_plus_classes: classes::<QfqPlus>(configs::share);
    wf2q_plus: Recipe::leaf(|| configs::flows::<Wf2qPlus>(configs::weight()), Flows::<Wf2qPlus>::node);
    wf2q_plus_classes: classes::<Wf2qPlus>(configs::weight);
    s_kps: Recipe::leaf(|| configs::flows::<SKps>(configs::share()), Flows::<SKps>::node);
    s_kps_classes: classes::<SKps>(configs::share);
    frr: Recipe::leaf(|| configs::flows::<Frr>(configs::share()), Flows::<Frr>::node);
    frr_classes: classes::<Frr>(configs::share);
    gfq: Recipe::leaf(|| configs::flows::<Gfq>(configs::share()), Flows::<Gfq>::node);
    gfq_classes: classes::<Gfq>(configs::share);
    wfq: Recipe::leaf(configs::wfq, Flows::<Wfq>::node);
    pfq: Recipe::leaf(configs::pfq, Flows::<Pfq>::node);
    htb: Recipe::classful(1..=4, configs::htb, |config, _seed, inner| Htb::node(config, inner)).shaping();
    // It shapes after a change of parameters has given it classes.
    htb_without_classes: Recipe::leaf(configs::htb_without_classes, |config, _seed| {
        Htb::node(config, Vec::new())
    }).shaping();
    cbq: Recipe::classful(1..=4, configs::cbq, |config, _seed, inner| Cbq::node(config, inner)).shaping();
    hfsc: Recipe::classful(1..=4, configs::hfsc, |config, _seed, inner| Hfsc::node(config, inner)).shaping();
    hfsc_without_classes: Recipe::leaf(configs::hfsc_without_classes, |config, _seed| {
        Hfsc::node(config, Vec::new())
    }).shaping();
}

/// Returns the recipe of a scheduler over one to four classes.
fn classes<S: Scheduler<Settings: Default>>(share: fn() -> BoxedStrategy<S::Share>) -> Recipe {
    Recipe::classful(
        1..=4,
        move |classes| configs::classes::<S>(classes, share()),
        |config, _seed, inner| Classes::<S>::node(config, inner),
    )
}

/// A policer remarks what exceeds its profile, prio chooses a band by that, and a filter inside restores the
/// DSCP of flows 2 and 9. The policer sees the same fields as before, but the packets have overtaken each
/// other: that is no fault of it.
#[test]
fn order_is_not_expected_of_packets_whose_fields_were_changed_and_restored() {
    const OF_FLOW: u8 = 8;
    const REMARKED: u8 = 9;
    let filter = |dscp, edit, class| Filter {
        condition: Match {
            dscp: Some(dscp),
            ..Match::default()
        },
        edit,
        outcome: Outcome::Class(class),
        ..Filter::default()
    };
    let prio = |filters: Vec<Filter>, default| {
        Just(prio::Config {
            classifier: Classifier {
                filters: Filters::new(filters),
                default: Some(default),
                ..Classifier::default()
            },
            priomap: [0; 16],
        })
    };
    let over = move |bands, filters: Vec<Filter>, default| {
        Recipe::classful(
            bands..=bands,
            move |_| prio(filters.clone(), default),
            |config, _seed, bands| Prio::node(config, bands),
        )
    };
    let restore = Edit {
        dscp: Some(OF_FLOW),
        ..Edit::default()
    };
    let restoring = over(1, vec![filter(0..=63, restore, 1)], 1);
    let choosing = over(2, vec![filter(REMARKED..=REMARKED, Edit::default(), 2)], 1);
    let remarking = Recipe::classful(
        1..=1,
        |_| {
            Just(policer::Config {
                profile: Profile::new(Rate::mbit(1), 1500),
                exceed: Exceed::Remark(REMARKED),
            })
        },
        |config, _seed, mut inner| Policer::node(config, inner.pop().expect("one")),
    );
    let trees = remarking.trees(|| choosing.trees(|| restoring.trees_of_fifos()));
    let outcome = TestRunner::deterministic().run(&cases(trees), |case| {
        check(&case);
        Ok(())
    });
    assert_eq!(outcome.map_err(|error| error.to_string()), Ok(()));
}
