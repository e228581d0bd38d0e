//! Judges the claims of the experiment's file.

use super::outcome::{DELAY, GOODPUT, JAIN, LOSS};
use super::{BASE, RESPONSIVE, Runs, TIMES};
use crate::reproduce::Findings;

/// Disciplines with a queue for each flow.
pub(super) const FLOW_QUEUES: [&str; 3] = ["fq_codel", "fq_pie", "cake"];
/// CHOKe drops the packets that it finds in the queue, also with ECN.
const DROPS_WITH_ECN: &str = "choke";
/// Disciplines that mark up to a probability only, beyond which they drop (RFC 8033, section 5.1).
const MARK_UP_TO: [&str; 2] = ["pie", "fq_pie"];
/// Disciplines with PIE's target for one queue of classic traffic.
const PIES: [&str; 2] = ["pie", "dualpi2"];
/// Their target, and the delay up to which it counts as reached, ms.
const TARGET: f64 = 15.0;
const TARGET_MOST: f64 = TARGET * 4.0 / 3.0;
/// Half of the link in TCP payload, Mbit/s: 1448 of 1514 bytes.
const FAIR_HALF: f64 = 5.0 * 1448.0 / 1514.0;
/// The one-way delay without queueing, ms.
const ONE_WAY: f64 = 50.0;
/// The one-way delay without queueing on the path of `coupling`, ms.
const COUPLED_ONE_WAY: f64 = 10.0;
/// LEDBAT's target, ms.
const LEDBAT_TARGET: f64 = 100.0;
/// The share that counts as "nine tenths".
const MOST: f64 = 0.9;

/// The cases in which a claim does not hold, and the number of cases.
#[derive(Default)]
struct Exceptions {
    cases: usize,
    found: Vec<String>,
}

impl Exceptions {
    fn note(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.cases += 1;
        if !holds {
            self.found.push(what());
        }
    }

    fn judge(self, findings: &mut Findings, claim: &str, summary: String) {
        let holds = self.found.is_empty() && self.cases > 0;
        let found = match holds {
            true => format!("in all {} cases: {summary}", self.cases),
            false => format!(
                "not in {} of {} cases: {}; {summary}",
                self.found.len(),
                self.cases,
                self.found.join("; ")
            ),
        };
        findings.judge(claim, holds, found);
    }
}

/// Formats the least and the greatest of some values.
fn range(values: impl Iterator<Item = f64>, unit: &str) -> String {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    format!("{low:.1} to {high:.1} {unit}")
}

pub(super) fn all(findings: &mut Findings, runs: &Runs<'_>) {
    delay(findings, runs);
    target(findings, runs);
    isolation(findings, runs);
    choke(findings, runs);
    background(findings, runs);
    priority(findings, runs);
    rtt(findings, runs);
    bursts(findings, runs);
    sparse(findings, runs);
    completion(findings, runs);
    capacity(findings, runs);
    ecn(findings, runs);
    attack(findings, runs);
    coupling(findings, runs);
    precedence(findings, runs);
}

/// Returns all disciplines except tail drop.
fn managed<'a>(runs: &'a Runs<'_>, scenario: &str) -> impl Iterator<Item = &'a str> {
    runs.disciplines(scenario)
        .into_iter()
        .filter(|&name| name != BASE)
}

fn delay(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let (mut delays, mut goodputs) = (Vec::new(), Vec::new());
    for scenario in RESPONSIVE {
        for discipline in managed(runs, scenario) {
            let part = |figure| runs.mean(scenario, discipline, figure) / runs.mean(scenario, BASE, figure);
            let (delay, goodput) = (part(DELAY), part(GOODPUT));
            exceptions.note(delay <= 0.5 && goodput >= MOST, || {
                format!(
                    "{scenario}, {discipline} ({:.0}, {:.0} %)",
                    delay * 100.0,
                    goodput * 100.0
                )
            });
            delays.push(delay * 100.0);
            goodputs.push(goodput * 100.0);
        }
    }
    let summary = format!(
        "{} of tail drop's delay at {} of its goodput",
        range(delays.into_iter(), "%"),
        range(goodputs.into_iter(), "%")
    );
    exceptions.judge(findings, "delay", summary);
}

fn target(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let mut delays = Vec::new();
    for discipline in PIES {
        for scenario in RESPONSIVE {
            let delay = runs.mean(scenario, discipline, DELAY);
            exceptions.note(delay <= TARGET_MOST, || {
                format!("{discipline}, {scenario}: {delay:.1} ms")
            });
            delays.push(delay);
        }
    }
    exceptions.judge(findings, "target", range(delays.into_iter(), "ms"));
}

fn isolation(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let mut found = Vec::new();
    // The share of the goodput that is available to it, when it is alone and when it is not.
    let alone = |discipline| runs.mean("friendly", discipline, GOODPUT) / (2.0 * FAIR_HALF);
    let beside = |discipline| runs.mean("beside", discipline, "bulk: goodput") / FAIR_HALF;
    for discipline in runs.disciplines("beside") {
        let (alone, beside) = (100.0 * alone(discipline), 100.0 * beside(discipline));
        let parts = format!("{discipline} {beside:.0} % of its half, {alone:.0} % of the whole link");
        if FLOW_QUEUES.contains(&discipline) {
            exceptions.note(beside >= MOST * alone, || parts.clone());
        }
        if FLOW_QUEUES.contains(&discipline) || discipline == BASE {
            found.push(parts);
        }
    }
    exceptions.judge(findings, "isolation", found.join("; "));
}

fn choke(findings: &mut Findings, runs: &Runs<'_>) {
    let part = |discipline| {
        let of = |group| runs.mean("beside", discipline, group);
        100.0 * of("udp-beside: goodput") / (of("udp-beside: goodput") + of("bulk: goodput"))
    };
    let (choke, red) = (part("choke"), part("red"));
    findings.judge(
        "choke",
        choke < red,
        format!("{choke:.1} % of the goodput under CHOKe, {red:.1} % under RED"),
    );
}

fn background(findings: &mut Findings, runs: &Runs<'_>) {
    let alone = |figure| runs.mean("background-alone", BASE, figure);
    let (used, delay) = (alone(GOODPUT) / (2.0 * FAIR_HALF), alone(DELAY));
    let beside =
        runs.mean("background", BASE, "background: goodput") / runs.mean("background", BASE, GOODPUT);
    findings.judge(
        "background",
        used >= MOST && delay <= LEDBAT_TARGET && beside <= 1.0 - MOST,
        format!(
            "alone {:.1} % of the link, {delay:.1} ms; beside NewReno {:.1} % of the goodput",
            used * 100.0,
            beside * 100.0
        ),
    );
}

fn priority(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let mut shares = Vec::new();
    for discipline in managed(runs, "background") {
        let of = |figure| runs.mean("background", discipline, figure);
        let (background, bulk) = (of("background: goodput"), of("bulk: goodput"));
        exceptions.note(background.max(bulk) <= 2.0 * background.min(bulk), || {
            format!("{discipline}: LEDBAT {background:.2}, NewReno {bulk:.2} Mbit/s")
        });
        shares.push(100.0 * background / (background + bulk));
    }
    let summary = format!("LEDBAT has {} of the goodput", range(shares.into_iter(), "%"));
    exceptions.judge(findings, "priority", summary);
}

fn rtt(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let mut found = Vec::new();
    for scenario in TIMES {
        let base = runs.mean(scenario, BASE, JAIN);
        let indices = FLOW_QUEUES.map(|discipline| runs.mean(scenario, discipline, JAIN));
        for (discipline, index) in FLOW_QUEUES.into_iter().zip(indices) {
            let is_more = scenario == "rtt-100" || index > base;
            let is_enough = index >= 0.95 || matches!(scenario, "rtt-5" | "rtt-560");
            exceptions.note(is_more && is_enough, || {
                format!("{discipline}, {scenario}: {index:.3}, tail drop {base:.3}")
            });
        }
        let indices = indices.map(|index| format!("{index:.3}"));
        found.push(format!("{scenario} {base:.3}, {}", indices.join(", ")));
    }
    let summary = format!("tail drop, {}: {}", FLOW_QUEUES.join(", "), found.join("; "));
    exceptions.judge(findings, "rtt", summary);
}

fn bursts(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let mut most = f64::NEG_INFINITY;
    let cases = [
        ("bursts-1", "web: loss"),
        ("bursts-1", "cbr: loss"),
        ("bursts-3", "video: loss"),
        ("bursts-3", "web: loss"),
        ("bursts-3", "cbr: loss"),
    ];
    for (scenario, figure) in cases {
        for discipline in managed(runs, scenario) {
            let loss = runs.mean(scenario, discipline, figure);
            let more = loss - runs.mean(scenario, BASE, figure);
            exceptions.note(more <= 1.0, || {
                format!("{discipline}, {scenario}, {figure} {loss:.2} %")
            });
            most = most.max(more);
        }
    }
    exceptions.judge(
        findings,
        "bursts",
        format!("at most {most:.2} % more than tail drop"),
    );
}

fn sparse(findings: &mut Findings, runs: &Runs<'_>) {
    let mut judge = |claim, scenarios: [&str; 2]| {
        let mut exceptions = Exceptions::default();
        let mut found = Vec::new();
        for scenario in scenarios {
            let waits = |discipline| runs.mean(scenario, discipline, "cbr: delay p99") - ONE_WAY;
            let base = waits(BASE);
            found.push(format!("{scenario}: tail drop {base:.1} ms"));
            for discipline in FLOW_QUEUES {
                let (loss, wait) = (runs.mean(scenario, discipline, "cbr: loss"), waits(discipline));
                exceptions.note(loss == 0.0 && wait < base / 5.0, || {
                    format!("{discipline}, {scenario}: {loss:.3} % lost")
                });
                found.push(format!("{discipline} {wait:.1} ms"));
            }
        }
        exceptions.judge(findings, claim, found.join(", "));
    };
    judge("sparse", ["bursts-2-250", "bursts-4-250"]);
    judge("sparse-83", ["bursts-2", "bursts-4"]);
}

fn completion(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let time = |discipline| runs.mean("bursts-2", discipline, "web: completion");
    let base = time(BASE);
    for discipline in managed(runs, "bursts-2") {
        let time = time(discipline);
        exceptions.note(time < base, || format!("{discipline} {time:.0} ms"));
    }
    let summary = format!(
        "{} instead of {base:.1} ms",
        range(managed(runs, "bursts-2").map(time), "ms")
    );
    exceptions.judge(findings, "completion", summary);
}

fn capacity(findings: &mut Findings, runs: &Runs<'_>) {
    let mut exceptions = Exceptions::default();
    let mut found = Vec::new();
    for scenario in ["capacity-slow", "capacity-quick"] {
        let delay = |discipline| runs.mean(scenario, discipline, DELAY);
        let base = delay(BASE);
        for discipline in managed(runs, scenario) {
            let delay = delay(discipline);
            exceptions.note(delay < base / 2.0, || {
                format!("{discipline}, {scenario}: {delay:.1} ms")
            });
        }
        found.push(format!(
            "{scenario}: {}, tail drop {base:.1} ms",
            range(managed(runs, scenario).map(delay), "ms")
        ));
    }
    exceptions.judge(findings, "capacity", found.join("; "));
}

fn ecn(findings: &mut Findings, runs: &Runs<'_>) {
    let mut judge = |claim, is_left_out: &dyn Fn(&str) -> bool, marks: &[&str]| {
        let mut exceptions = Exceptions::default();
        let mut losses = Vec::new();
        for discipline in managed(runs, "heavy").filter(|name| !is_left_out(name)) {
            let (scenario, marking) = match marks.contains(&discipline) {
                true => ("heavy-marks", format!("{discipline} marks")),
                false => ("heavy-ecn", discipline.to_owned()),
            };
            let both = |figure| {
                [("heavy", discipline), (scenario, &marking)]
                    .map(|(scenario, name)| runs.mean(scenario, name, figure))
            };
            let ([before, after], [without, with]) = (both(LOSS), both(GOODPUT));
            let part = with / without;
            exceptions.note(after < before / 10.0 && part >= MOST, || {
                format!(
                    "{discipline}: {before:.2} % lost, {after:.2} % with ECN, at {:.1} % of the goodput",
                    part * 100.0
                )
            });
            losses.push(after);
        }
        let summary = format!("{} lost with ECN", range(losses.into_iter(), "%"));
        exceptions.judge(findings, claim, summary);
    };
    judge("ecn", &|name| name == DROPS_WITH_ECN, &MARK_UP_TO);
    judge("ecn-ten", &|_| false, &[]);
}

fn attack(findings: &mut Findings, runs: &Runs<'_>) {
    let mut judge = |claim, before, under| {
        let kept = |discipline| {
            let [before, under] =
                [before, under].map(|scenario| runs.mean(scenario, discipline, "bulk: goodput"));
            under / before
        };
        let (rred, red) = (kept("rred"), kept("red"));
        findings.judge(
            claim,
            rred >= MOST && red < rred - 0.1,
            format!(
                "TCP keeps {:.1} % under RRED, {:.1} % under RED, {:.1} % under tail drop",
                rred * 100.0,
                red * 100.0,
                kept(BASE) * 100.0
            ),
        );
    };
    judge("attack", "no-attack", "attack");
    judge("attack-today", "no-attack-today", "attack-today");
}

fn coupling(findings: &mut Findings, runs: &Runs<'_>) {
    let of = |figure| runs.mean("coupling", "dualpi2", figure);
    let (classic, scalable) = (of("classic: goodput"), of("scalable: goodput"));
    let ratio = classic.max(scalable) / classic.min(scalable);
    let waits = of("scalable: delay p99") - COUPLED_ONE_WAY;
    findings.judge(
        "coupling",
        ratio <= 2.0 && waits < 2.0,
        format!(
            "classic {classic:.1} Mbit/s, scalable {scalable:.1} Mbit/s; scalable packets wait {waits:.2} ms"
        ),
    );
}

fn precedence(findings: &mut Findings, runs: &Runs<'_>) {
    let [low, middle, high] =
        ["af11", "af12", "af13"].map(|group| runs.mean("precedence", "wred", &format!("{group}: loss")));
    findings.judge(
        "precedence",
        low < middle && middle < high,
        format!("{low:.2} % of AF11, {middle:.2} % of AF12, {high:.2} % of AF13 lost"),
    );
}
