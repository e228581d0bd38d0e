//! Judges the claims by costs: instructions if they were counted, otherwise times.

use fairgate_theory::estimate::Estimate;

use super::Cells;
use super::cell::Cell;
use crate::bench::{Load, Weights};
use crate::reproduce::Findings;

/// If the cost does not depend on the number of flows, instructions differ by at most this part: the paper
/// gives 100 to 110 ns for QFQ.
const FLAT: f64 = 0.1;
/// Times also depend on the cache. If no instructions can be counted, times may differ by this factor.
const FLAT_TIMES: f64 = 2.0;
/// With fewer flows than `FEW`, short cuts for few flows affect the cost. With more than `CACHED`, the cache
/// affects times.
const FEW: u32 = 64;
const CACHED: u32 = 4096;
/// If growth is logarithmic, the costs that doublings of the number of flows add differ by at most this
/// factor.
const LOGARITHMIC: f64 = 2.0;
/// With fewer numbers of flows there is at most one step, and any growth looks logarithmic.
const FEWEST_COSTS: usize = 3;
/// "Within two times", and the lower limit of "about three times".
pub(super) const TWICE: f64 = 2.0;
pub(super) const THRICE: f64 = 2.5;
/// The greatest difference of a mix that "does not show significant differences".
const ALIKE: f64 = 0.25;

impl Cells {
    /// Returns the cost that claims are judged by, under FULL with equal weights. `None` if it was not
    /// measured.
    fn cost(&self, title: &str, flows: u32) -> Option<f64> {
        let is_it =
            |cell: &&Cell| cell.title == title && cell.is_judged() && cell.job.workload.flows == flows;
        self.cost_of(self.cells.iter().find(is_it)?)
    }

    fn cost_of(&self, cell: &Cell) -> Option<f64> {
        match self.by_instructions {
            true => cell.instructions,
            false => Estimate::of(&cell.net).map(|net| net.mean),
        }
    }

    fn unit(&self) -> &'static str {
        if self.by_instructions {
            "instructions"
        } else {
            "ns"
        }
    }

    /// Returns the numbers of flows at which costs are judged.
    fn judged_flows(&self) -> Vec<u32> {
        let mut flows: Vec<u32> = (self.cells.iter())
            .filter(|cell| cell.is_judged() && self.cost_of(cell).is_some())
            .map(|cell| cell.job.workload.flows)
            .filter(|&flows| flows >= FEW && (self.by_instructions || flows <= CACHED))
            .collect();
        flows.sort_unstable();
        flows.dedup();
        flows
    }

    /// Judges that costs don't depend on the number of flows, except for WF2Q+.
    pub(super) fn judge_flat(&self, findings: &mut Findings) {
        let flows = self.judged_flows();
        let (Some(&few), Some(&many)) = (flows.first(), flows.last()) else {
            return findings.judge("flat", false, "nothing was measured");
        };
        let mut found = Vec::new();
        let mut holds = few < many;
        for title in ["FIFO", "DRR", "QFQ", "QFQ+", "S-KPS"] {
            let (Some(at_few), Some(at_many)) = (self.cost(title, few), self.cost(title, many)) else {
                continue;
            };
            let change = at_many / at_few - 1.0;
            let is_flat = match self.by_instructions {
                true => change.abs() <= FLAT,
                false => at_many <= FLAT_TIMES * at_few,
            };
            holds &= is_flat;
            found.push(format!(
                "{title} {at_few:.0} and {at_many:.0} ({:+.1} %{})",
                change * 100.0,
                if is_flat { "" } else { ", not flat" }
            ));
        }
        findings.judge(
            "flat",
            holds && !found.is_empty(),
            format!(
                "{} with {few} and {many} flows: {}",
                self.unit(),
                found.join(", ")
            ),
        );
    }

    /// Judges that each doubling of the number of flows adds about the same cost to WF2Q+, and that all of
    /// them together add more than a cost that counts as [`FLAT`].
    pub(super) fn judge_logarithmic(&self, findings: &mut Findings) {
        let costs: Vec<(u32, f64)> = (self.judged_flows().into_iter())
            .filter_map(|flows| Some((flows, self.cost("WF2Q+", flows)?)))
            .collect();
        let steps: Vec<f64> = costs
            .windows(2)
            .map(|pair| (pair[1].1 - pair[0].1) / f64::from(pair[1].0 / pair[0].0).log2())
            .collect();
        let (least, most) = steps
            .iter()
            .fold((f64::INFINITY, 0.0f64), |(least, most), &step| {
                (least.min(step), most.max(step))
            });
        let words = |(flows, cost): &(u32, f64)| format!("{cost:.0} with {flows}");
        let found: Vec<String> = costs.iter().map(words).collect();
        let found = format!("{} {}", self.unit(), found.join(", "));
        if costs.len() < FEWEST_COSTS {
            let missing = format!(
                "{found}; at least {FEWEST_COSTS} numbers of flows are needed, and a short run has fewer"
            );
            return findings.leave_open("logarithmic", missing);
        }
        let growth = costs[costs.len() - 1].1 / costs[0].1 - 1.0;
        let is_so = growth > FLAT && least > 0.0 && most <= LOGARITHMIC * least;
        let found = format!(
            "{found}; a doubling of flows adds {least:.1} to {most:.1}, and all together {:.1} %",
            growth * 100.0
        );
        findings.judge("logarithmic", is_so, found);
    }

    /// Judges the order FIFO, DRR, QFQ, S-KPS, and WF2Q+ above QFQ.
    pub(super) fn judge_order(&self, findings: &mut Findings) {
        let mut found = Vec::new();
        let mut holds = true;
        for flows in self.judged_flows() {
            let cost = |title| self.cost(title, flows).unwrap_or(f64::NAN);
            let [fifo, drr, qfq, s_kps, wf2q_plus] = ["FIFO", "DRR", "QFQ", "S-KPS", "WF2Q+"].map(cost);
            let is_ordered = fifo < drr && drr < qfq && qfq < s_kps && qfq < wf2q_plus;
            holds &= is_ordered;
            found.push(format!(
                "{flows} flows: {fifo:.0}, {drr:.0}, {qfq:.0}, {s_kps:.0}; {wf2q_plus:.0}{}",
                if is_ordered { "" } else { " (wrong order)" }
            ));
        }
        findings.judge(
            "order",
            holds && !found.is_empty(),
            format!("{}, {}", self.unit(), found.join("; ")),
        );
    }

    /// Judges the ratio of two schedulers' costs.
    pub(super) fn judge_ratio(
        &self,
        findings: &mut Findings,
        claim: &str,
        of: (&str, &str),
        is_so: &dyn Fn(f64) -> bool,
    ) {
        let ratios: Vec<(u32, f64)> = (self.judged_flows().into_iter())
            .filter_map(|flows| Some((flows, self.cost(of.0, flows)? / self.cost(of.1, flows)?)))
            .collect();
        for &(flows, ratio) in &ratios {
            let case = format!("{} beside {}, {flows} flows, full", of.0, of.1);
            findings.measure("ratio of costs", case, "", Estimate::exact(ratio));
        }
        let words = |(flows, ratio): &(u32, f64)| format!("{ratio:.2} with {flows} flows");
        let found: Vec<String> = ratios.iter().map(words).collect();
        findings.judge(
            claim,
            !ratios.is_empty() && ratios.iter().all(|&(_, ratio)| is_so(ratio)),
            format!(
                "{} of {} divided by those of {}: {}",
                self.unit(),
                of.0,
                of.1,
                found.join(", ")
            ),
        );
    }

    /// Judges that the mix costs as much as equal weights.
    pub(super) fn judge_mix(&self, findings: &mut Findings) {
        let flows = self.judged_flows();
        let mut found = Vec::new();
        let mut holds = true;
        for title in ["FIFO", "DRR", "QFQ", "S-KPS", "WF2Q+"] {
            let is_mix = |cell: &&Cell| {
                let (job, load) = (&cell.job, Load::Full);
                cell.title == title && job.weights == Weights::Mix && job.workload.load == load
            };
            let mix = self.cells.iter().find(is_mix).and_then(|cell| self.cost_of(cell));
            // The number of flows is equal or almost equal.
            let equal = flows.last().and_then(|&flows| self.cost(title, flows));
            let (Some(mix), Some(equal)) = (mix, equal) else {
                continue;
            };
            let is_alike = (mix / equal - 1.0).abs() <= ALIKE;
            holds &= is_alike;
            let mark = if is_alike { "" } else { " (different)" };
            found.push(format!("{title} {equal:.0} and {mix:.0}{mark}"));
        }
        findings.judge(
            "mix",
            holds && !found.is_empty(),
            format!(
                "{} with equal weights and with the mix: {}",
                self.unit(),
                found.join(", ")
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::{Algorithm, Order, Sizes};

    use super::*;

    /// Returns cells under FULL with a cost that is a function of scheduler and number of flows.
    fn cells(by_instructions: bool, cost: impl Fn(&str, f64) -> f64) -> Cells {
        let names = ["fifo", "drr", "qfq", "s_kps", "wf2q_plus"];
        let mut cells = Vec::new();
        for flows in [1, 64, 512, 4096, 131_072] {
            for name in names {
                let algorithm = Algorithm::by_name(name).expect("the scheduler exists");
                let (order, sizes) = (Order::Shortest, Sizes::Constant(1000));
                let mut cell = Cell::new(algorithm, flows, Weights::Equal, Load::Full, order, sizes);
                let cost = cost(name, f64::from(flows));
                match by_instructions {
                    true => cell.instructions = Some(cost),
                    false => cell.net = vec![cost - 1.0, cost + 1.0],
                }
                cell.none = vec![30.0, 32.0];
                cells.push(cell);
            }
        }
        Cells {
            cells,
            by_instructions,
        }
    }

    /// The published costs: 30, 50, 105 and 500 ns. WF2Q+ has 200 ns and 120 ns more for each doubling.
    fn published(name: &str, flows: f64) -> f64 {
        match name {
            "fifo" => 30.0,
            "drr" => 50.0,
            "qfq" => 105.0,
            "s_kps" => 500.0,
            _ => 200.0 + 120.0 * flows.log2(),
        }
    }

    fn verdict(cells: &Cells, judge: impl Fn(&Cells, &mut Findings)) -> (bool, String) {
        let mut findings = Findings::default();
        judge(cells, &mut findings);
        let [verdict] = findings.verdicts.as_slice() else {
            panic!("one verdict, not {:?}", findings.verdicts);
        };
        (verdict.holds, verdict.found.clone())
    }

    #[test]
    fn the_published_costs_confirm_the_claims() {
        for by_instructions in [true, false] {
            let cells = cells(by_instructions, published);
            for judge in [Cells::judge_flat, Cells::judge_logarithmic, Cells::judge_order] {
                let (holds, found) = verdict(&cells, judge);
                assert!(holds, "{found}");
            }
            let (holds, found) = verdict(&cells, |cells, findings| {
                cells.judge_ratio(findings, "thrice", ("S-KPS", "QFQ"), &|ratio| ratio >= THRICE);
            });
            assert!(holds && found.contains("4.76 with 64 flows"), "{found}");
        }
    }

    #[test]
    fn growth_with_the_number_of_flows_is_found() {
        let grows = cells(true, |name, flows| match name {
            "qfq" => 100.0 + flows.log2(),
            "wf2q_plus" => flows,
            _ => published(name, flows),
        });
        let (holds, found) = verdict(&grows, Cells::judge_flat);
        assert!(
            !holds && found.contains("QFQ 106 and 117 (+10.4 %, not flat)"),
            "{found}"
        );
        assert!(
            !verdict(&grows, Cells::judge_logarithmic).0,
            "the growth is linear, not logarithmic"
        );
    }

    #[test]
    fn a_step_of_noise_is_no_logarithm() {
        // Each step is above zero and as large as the others, but all together are below 5 %.
        let noise = cells(true, |name, flows| match name {
            "wf2q_plus" => 353.0 + flows.log2() / 3.0,
            _ => published(name, flows),
        });
        let (holds, found) = verdict(&noise, Cells::judge_logarithmic);
        assert!(!holds && found.contains("all together 1.0 %"), "{found}");
    }

    #[test]
    fn two_numbers_of_flows_are_too_few_for_a_logarithm() {
        let mut few = cells(true, published);
        few.cells.retain(|cell| cell.job.workload.flows < 4096);
        let mut findings = Findings::default();
        few.judge_logarithmic(&mut findings);
        let [verdict] = findings.verdicts.as_slice() else {
            panic!("one verdict, not {:?}", findings.verdicts);
        };
        assert!(!verdict.is_judged && !verdict.holds, "{verdict:?}");
        assert!(verdict.found.contains("at least 3 numbers"), "{}", verdict.found);
    }

    #[test]
    fn a_wrong_order_is_found_at_any_number_of_flows() {
        let swapped = cells(true, |name, flows| match (name, flows as u32) {
            ("s_kps", 4096) => 90.0,
            _ => published(name, flows),
        });
        let (holds, found) = verdict(&swapped, Cells::judge_order);
        assert!(
            !holds && found.contains("4096 flows: 30, 50, 105, 90; 1640 (wrong order)"),
            "{found}"
        );
    }
}
