//! The files of every experiment are valid, and every experiment runs.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use fairgate_evidence::reproduce::{Conditions, Count, EXPERIMENTS, JudgedClaim, Kind, Reproduction, find};

/// Runs an experiment briefly with one seed.
fn quick(id: &str) -> Reproduction {
    quick_with(id, None)
}

fn quick_with(id: &str, count: Option<Count<'_>>) -> Reproduction {
    let experiment = find(id).expect("it is listed");
    let conditions = Conditions {
        seeds: &[1],
        quick: true,
        progress: &|share, _| assert!((0.0..=1.0).contains(&share), "{share}"),
        count,
        live: None,
    };
    experiment.reproduce(conditions).expect("it succeeds")
}

fn claim<'a>(result: &'a Reproduction, id: &str) -> &'a JudgedClaim {
    let mut claims = result.claims.iter();
    claims.find(|claim| claim.id == id).expect("it is judged")
}

fn mean(result: &Reproduction, measure: &str, case: &str) -> f64 {
    let row = result
        .rows
        .iter()
        .find(|row| row.measure == measure && row.case == case);
    row.and_then(|row| row.measured).expect("it was measured").mean
}

#[test]
fn files_are_valid_and_names_are_unique() {
    let names: BTreeSet<_> = EXPERIMENTS
        .iter()
        .map(|experiment| experiment.id.as_ref())
        .collect();
    assert_eq!(names.len(), EXPERIMENTS.len());
    for experiment in EXPERIMENTS {
        let description = experiment.description().unwrap();
        assert!(experiment.id.starts_with(&description.paper), "{}", experiment.id);
        assert!(!description.claims.is_empty(), "{} has no claims", experiment.id);
        experiment.published().unwrap();
    }
    assert!(find("no-such-experiment").is_none());
}

/// One run for two tests.
static SQF_FIG4: LazyLock<Reproduction> = LazyLock::new(|| quick("sqf-fig4"));

#[test]
fn shortest_queue_first_runs_and_every_published_value_is_measured() {
    for (id, result) in [("sqf-fig3", &quick("sqf-fig3")), ("sqf-fig4", &SQF_FIG4)] {
        // The paper's numbers do not follow from its printed formula; they do if N(t) is normal.
        assert_eq!(result.claims[0].verdict, Kind::ReproducedIf, "{id}");
        let verdicts: Vec<_> = (result.claims.iter())
            .map(|claim| (claim.id.as_str(), claim.holds))
            .collect();
        let stated = if id == "sqf-fig3" {
            "near-zero"
        } else {
            "mean-time"
        };
        assert_eq!(
            verdicts,
            [(stated, true), ("fair-queueing", true), ("more-flows", true)],
            "{id}"
        );
        let [ours] = result.claims[0].instead.as_slice() else {
            panic!("{id}: {:?}", result.claims[0]);
        };
        assert!(ours.id.ends_with("as-printed") && !ours.holds, "{id}: {ours:?}");
        for row in &result.rows {
            assert!(
                row.measured.is_some(),
                "{id}: {}, {} was not measured",
                row.measure,
                row.case
            );
        }
        // Two of the paper, and what was measured beside what is published.
        assert_eq!(result.figures.len(), 3);
        assert!(result.figures[2].title().starts_with("Measured beside published"));
        // The discipline itself was measured for each number of flows.
        let runs = result
            .rows
            .iter()
            .filter(|row| row.case.ends_with("sqf, passed over"));
        assert_eq!(runs.count(), 3);
        if id == "sqf-fig3" {
            figures_of_the_sqf_analysis(result);
        }
    }
}

fn figures_of_the_sqf_analysis(result: &Reproduction) {
    let at_six = |answer: &str| {
        mean(
            result,
            "probability within 10 min",
            &format!("n = 20, 6 Mbit/s: {answer}"),
        )
    };
    // These numbers come from an independent evaluation of the two formulas.
    assert!((at_six("estimate, N(t) normal") - 0.006_323).abs() < 1e-5);
    assert!((at_six("estimate as printed") - 0.453).abs() < 0.005);
    assert!(at_six("exact") > 0.999_999);
}

#[test]
fn results_are_reproducible_and_machine_readable() {
    let (first, second) = (&*SQF_FIG4, quick("sqf-fig4"));
    assert_eq!(first.rows_csv(), second.rows_csv());
    assert_eq!(first.curves_csv(), second.curves_csv());
    assert_eq!(first.rows_csv().lines().count(), first.rows.len() + 1);
    let page = first.page("fairgate-lab reproduce sqf-fig4");
    assert!(page.contains("<svg") && page.contains("fairgate-lab reproduce sqf-fig4"));
}

#[test]
fn the_routers_of_qfq_table2_keep_their_bounds_and_rank_as_published() {
    let result = quick("qfq-table2");
    assert!(
        claim(&result, "bounds").holds,
        "{}",
        claim(&result, "bounds").found
    );
    // 22 ms of propagation, two transmissions of 210 bytes at 100 Mbit/s, and two at 10 Mbit/s: the least
    // delay.
    for scheduler in ["wf2q_plus", "drr"] {
        let [slow, fast] =
            ["f1", "f2"].map(|flow| mean(&result, &format!("delay of {flow}, mean"), scheduler));
        assert!(fast > 22.3 && slow > fast, "{scheduler}: {slow} {fast}");
    }
    let greatest = |scheduler| mean(&result, "delay of f1, max", scheduler);
    let (best, drr) = (greatest("wf2q_plus"), greatest("drr"));
    assert!(drr > best, "{drr} {best}");
}

#[test]
fn the_speed_of_schedulers_is_judged_by_times_and_instructions_stand_beside_them() {
    let count: Count<'_> = &|job| Ok(if job.name() == "none" { 60.0 } else { 165.0 });
    let result = quick_with("qfq-fig9", Some(count));
    assert_eq!(
        claim(&result, "logarithmic").verdict,
        Kind::NotJudged,
        "a short run has one step only"
    );
    for id in ["flat", "logarithmic", "order"] {
        let found = &claim(&result, id).found;
        assert!(
            found.starts_with("ns (instructions)") && found.contains(" (105)"),
            "{found}"
        );
    }
    assert_eq!(
        mean(
            &result,
            "instructions of a pair, net of NONE",
            "QFQ, 64 flows, full"
        ),
        105.0
    );
    assert!(mean(&result, "time of a pair", "NONE, 64 flows, full") > 0.0);
    // Times with packets of one length and of many, which have a curve for NONE, instructions, and what was
    // measured beside what is published.
    assert_eq!(result.figures.len(), 4);
    assert!(result.figures[0].svg().contains("NONE"));
}

#[test]
fn without_valgrind_no_instructions_stand_beside_times() {
    let result = quick("qfq-table3");
    assert_eq!(
        result.figures.len(),
        5,
        "one for each load, one in random order, and one of what is published"
    );
    for id in ["order", "twice", "thrice", "bursts", "unmatched"] {
        let found = &claim(&result, id).found;
        assert!(found.contains("64 flows"), "{found}");
    }
    assert!(
        result
            .rows
            .iter()
            .all(|row| !row.measure.starts_with("instructions"))
    );
}

#[test]
fn printed_bounds_are_judged_as_printed_and_ours_stand_beside_them() {
    let result = quick("qfq-bounds");
    let within = claim(&result, "within");
    assert!(
        !within.holds && within.found.starts_with("above the bound: "),
        "{}",
        within.found
    );
    assert!(
        within.instead.iter().all(|ours| ours.holds),
        "{:?}",
        within.instead
    );
    for id in ["steady", "growing"] {
        assert!(claim(&result, id).holds, "{}", claim(&result, id).found);
    }
    let row = result
        .rows
        .iter()
        .find(|row| row.case == "qfq, adversarial" && row.measure == "T-WFI");
    let row = row.expect("it was measured");
    assert_eq!(row.published.as_deref(), Some("<100"));
    assert!(
        row.place
            .as_deref()
            .is_some_and(|place| place.contains("theorem 8"))
    );
    assert!(row.measured.expect("a value").mean > 1.0);
    let ours = mean(&result, "T-WFI, by our bound", "qfq, adversarial");
    assert!((1.0..100.0).contains(&ours), "{ours}");
    // Values without a published bound are in packets.
    let fifo = result
        .rows
        .iter()
        .find(|row| row.case == "fifo, random" && row.measure == "B-WFI");
    assert!(fifo.is_some_and(|row| row.unit == "packets" && row.published.is_none()));
}

#[test]
fn every_discipline_runs_in_every_scenario_of_rfc7928() {
    let result = &quick("rfc7928");
    assert_eq!(result.grids.len(), 33);
    for grid in &result.grids {
        for (discipline, values) in &grid.rows {
            assert_eq!(values.len(), grid.head.len(), "{}: {discipline}", grid.title);
            for (name, value) in grid.head.iter().zip(values) {
                let value = value.unwrap_or_else(|| panic!("{}: {discipline} has no {name}", grid.title));
                assert!(value >= 0.0, "{}: {discipline}: {name} is {value}", grid.title);
            }
        }
    }
    let friendly = |figure: &str, discipline: &str| mean(result, &format!("friendly: {figure}"), discipline);
    // One flow and tail drop: the link is full, except for headers. At times the queue is full, too: 83
    // packets of 1514 bytes take 100.5 ms.
    assert!((friendly("goodput", "fifo") - 10.0 * 1448.0 / 1514.0).abs() < 0.01);
    assert!((20.0..100.5).contains(&friendly("delay", "fifo")));
    // Handshakes find an empty queue. Their packets are transmitted in less than 0.1 ms each.
    let start_up = friendly("bulk: start-up", "pie");
    assert!((100.0..100.2).contains(&start_up), "{start_up} ms");
    // Traffic above the link's rate is lost under any discipline.
    for discipline in ["fifo", "red", "codel", "pie", "fq_codel"] {
        let loss = mean(result, "unresponsive: loss", discipline);
        assert!((17.0..21.0).contains(&loss), "{discipline}: {loss} %");
    }
    for id in ["target", "isolation", "coupling", "precedence"] {
        assert!(claim(result, id).holds, "{id}: {}", claim(result, id).found);
    }
}

/// A single turn has no known error, so that no claim about times is judged, and TCP needs a live run.
#[test]
fn what_disciplines_and_filters_cost_is_measured_and_not_judged_by_one_turn() {
    let overhead = quick("altq-overhead");
    assert!(overhead.live.is_none());
    for id in ["throughput", "constant", "order"] {
        assert_eq!(claim(&overhead, id).verdict, Kind::NotJudged, "{id}");
    }
    assert!(mean(&overhead, "time of a packet", "CBQ, 64 B") > 0.0);
    let filters = quick("altq-filters");
    assert!(mean(&filters, "time of a packet", "10000 fixed filters") > 0.0);
    assert_eq!(filters.figures.len(), 2);
}
