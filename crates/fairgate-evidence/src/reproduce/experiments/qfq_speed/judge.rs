//! Judges the claims by times, which the paper measured. Instructions stand beside them where they were
//! counted.

use fairgate_theory::estimate::Estimate;

use super::Cells;
use super::cell::Cell;
use crate::bench::{Load, UNMATCHED, Weights};
use crate::reproduce::Findings;

/// If the cost does not depend on the number of flows, it grows by at most this part from [`FEW`] to
/// [`CACHED`] flows. The paper gives 100 to 110 ns for QFQ, and times of a shared machine vary by more.
const FLAT: f64 = 0.25;
/// A nanosecond is noise: FIFO takes two.
const NOISE: f64 = 1.0;
/// With fewer flows than `FEW`, short cuts for few flows affect the cost. With more than `CACHED`, the cache
/// affects times, as the paper says.
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
/// The greatest number of flows at which WF2Q+ "can still be a viable alternative", and its cost there,
/// divided by that of QFQ.
const FEW_FOR_A_HEAP: u32 = 8;
const VIABLE: f64 = 2.0;
/// The least time that a packet takes on a link of 10 Gbit/s, ns: 64 bytes of frame, 20 of preamble and gap.
const BUDGET: f64 = 67.2;

impl Cells {
    /// Returns the cell of a scheduler with equal weights.
    fn cell(&self, title: &str, flows: u32, load: Load) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            let workload = &cell.job.workload;
            cell.title == title && !cell.is_mix() && workload.load == load && workload.flows == flows
        })
    }

    /// Returns the time of a pair under FULL with equal weights, ns. `None` if it was not measured.
    fn time(&self, title: &str, flows: u32) -> Option<f64> {
        self.cell(title, flows, Load::Full)?.mean()
    }

    /// Returns the numbers of flows under FULL with equal weights.
    fn flows(&self) -> Vec<u32> {
        let mut flows: Vec<u32> = (self.cells.iter())
            .filter(|cell| cell.is_judged() && cell.mean().is_some())
            .map(|cell| cell.job.workload.flows)
            .collect();
        flows.sort_unstable();
        flows.dedup();
        flows
    }

    /// Returns the numbers of flows at which costs are compared.
    fn judged_flows(&self) -> Vec<u32> {
        let mut flows = self.flows();
        flows.retain(|flows| (FEW..=CACHED).contains(flows));
        flows
    }

    /// Judges that times don't grow with the number of flows, except for WF2Q+.
    pub(super) fn judge_flat(&self, findings: &mut Findings) {
        let flows = self.judged_flows();
        let (Some(&few), Some(&many)) = (flows.first(), flows.last()) else {
            return findings.judge("flat", false, "nothing was measured");
        };
        let mut found = Vec::new();
        let mut holds = few < many;
        // QFQ+ is younger than the paper.
        for title in ["FIFO", "DRR", "QFQ", "S-KPS"] {
            let [at_few, at_many] = [few, many].map(|flows| self.cell(title, flows, Load::Full));
            let (Some(at_few), Some(at_many)) = (at_few, at_many) else {
                continue;
            };
            let is_flat = (at_few.mean().zip(at_many.mean()))
                .is_some_and(|(few, many)| many <= (1.0 + FLAT) * few + NOISE);
            holds &= is_flat;
            let mark = if is_flat { "" } else { " (grows)" };
            found.push(format!(
                "{title} {} and {}{mark}",
                at_few.words(),
                at_many.words()
            ));
        }
        let found = format!("{UNIT} with {few} and {many} flows: {}", found.join(", "));
        findings.judge("flat", holds, found);
    }

    /// Judges that each doubling of the number of flows adds about the same time to WF2Q+, and that all of
    /// them together add more than a cost that counts as [`FLAT`].
    pub(super) fn judge_logarithmic(&self, findings: &mut Findings) {
        let costs: Vec<(u32, f64)> = (self.judged_flows().into_iter())
            .filter_map(|flows| Some((flows, self.time("WF2Q+", flows)?)))
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
        let words: Vec<String> = (costs.iter())
            .filter_map(|&(flows, _)| Some((flows, self.cell("WF2Q+", flows, Load::Full)?)))
            .map(|(flows, cell)| format!("{} with {flows}", cell.words()))
            .collect();
        let found = format!("{UNIT}, {}", words.join(", "));
        if costs.len() < FEWEST_COSTS {
            let missing = format!(
                "{found}; at least {FEWEST_COSTS} numbers of flows are needed, and a short run has fewer"
            );
            return findings.leave_open("logarithmic", missing);
        }
        let growth = costs[costs.len() - 1].1 / costs[0].1 - 1.0;
        let is_so = growth > FLAT && least > 0.0 && most <= LOGARITHMIC * least;
        let found = format!(
            "{found}; a doubling of flows adds {least:.1} to {most:.1} ns, and all together {:.1} %",
            growth * 100.0
        );
        findings.judge("logarithmic", is_so, found);
    }

    /// Judges the order FIFO, DRR, QFQ, S-KPS, and WF2Q+ above QFQ.
    pub(super) fn judge_order(&self, findings: &mut Findings) {
        let mut found = Vec::new();
        let mut holds = true;
        for flows in self.judged_flows() {
            let titles = ["FIFO", "DRR", "QFQ", "S-KPS", "WF2Q+"];
            let cells = titles.map(|title| self.cell(title, flows, Load::Full));
            let [fifo, drr, qfq, s_kps, wf2q_plus] =
                cells.map(|cell| cell.and_then(Cell::mean).unwrap_or(f64::NAN));
            let is_ordered = fifo < drr && drr < qfq && qfq < s_kps && qfq < wf2q_plus;
            holds &= is_ordered;
            let costs: Vec<String> = cells.into_iter().flatten().map(Cell::words).collect();
            let mark = if is_ordered { "" } else { ", wrong order" };
            found.push(format!("{} with {flows} flows{mark}", costs.join(", ")));
        }
        let found = format!("{UNIT}, FIFO, DRR, QFQ, S-KPS, WF2Q+: {}", found.join("; "));
        findings.judge("order", holds && !self.judged_flows().is_empty(), found);
    }

    /// Judges the ratio of two schedulers' times.
    pub(super) fn judge_ratio(
        &self,
        findings: &mut Findings,
        claim: &str,
        of: (&str, &str),
        is_so: &dyn Fn(f64) -> bool,
    ) {
        let flows = self.judged_flows();
        self.judge_ratio_at(findings, claim, of, &flows, is_so);
    }

    /// Judges that WF2Q+ is viable for few flows: its cost is near that of QFQ there.
    pub(super) fn judge_viable(&self, findings: &mut Findings) {
        let mut flows = self.flows();
        flows.retain(|&flows| flows <= FEW_FOR_A_HEAP);
        self.judge_ratio_at(findings, "viable", ("WF2Q+", "QFQ"), &flows, &|ratio| {
            ratio <= VIABLE
        });
    }

    fn judge_ratio_at(
        &self,
        findings: &mut Findings,
        claim: &str,
        of: (&str, &str),
        flows: &[u32],
        is_so: &dyn Fn(f64) -> bool,
    ) {
        let mut found = Vec::new();
        let mut holds = true;
        for &flows in flows {
            let [one, other] = [of.0, of.1].map(|title| self.cell(title, flows, Load::Full));
            let (Some(one), Some(other)) = (one, other) else {
                continue;
            };
            let Some(ratio) = one.mean().zip(other.mean()).map(|(one, other)| one / other) else {
                continue;
            };
            let case = format!("{} beside {}, {flows} flows, full", of.0, of.1);
            findings.measure("ratio of times", case, "", Estimate::exact(ratio));
            let counted = one.instructions.zip(other.instructions);
            let counted = counted.map_or(String::new(), |(one, other)| format!(" ({:.2})", one / other));
            holds &= is_so(ratio);
            let plural = if flows == 1 { "" } else { "s" };
            found.push(format!("{ratio:.2}{counted} with {flows} flow{plural}"));
        }
        if found.is_empty() {
            return findings.leave_open(claim, "a short run has no such numbers of flows");
        }
        let found = format!(
            "time (instructions) of {} divided by that of {}: {}",
            of.0,
            of.1,
            found.join(", ")
        );
        findings.judge(claim, holds, found);
    }

    /// Judges that QFQ costs a little more if only one flow is backlogged.
    pub(super) fn judge_one_flow(&self, findings: &mut Findings) {
        let cells = [1, FEW].map(|flows| self.cell("QFQ", flows, Load::Full));
        let [Some(one), Some(more)] = cells else {
            return findings.leave_open("one-flow", "a short run has no single flow");
        };
        let ratio = one.mean().zip(more.mean()).map(|(one, more)| one / more);
        let holds = ratio.is_some_and(|ratio| (1.0..=TWICE).contains(&ratio));
        let found = format!(
            "{UNIT} with 1 and {FEW} flows: {} and {}",
            one.words(),
            more.words()
        );
        findings.judge("one-flow", holds, found);
    }

    /// Judges that S-KPS costs a little less in small bursts than at a full load.
    pub(super) fn judge_bursts(&self, findings: &mut Findings) {
        let mut found = Vec::new();
        let mut holds = true;
        for flows in self.judged_flows() {
            let [small, full] = [Load::Small, Load::Full].map(|load| self.cell("S-KPS", flows, load));
            let (Some(small), Some(full)) = (small, full) else {
                continue;
            };
            let cheaper = small
                .mean()
                .zip(full.mean())
                .is_some_and(|(small, full)| small < full);
            holds &= cheaper;
            let mark = if cheaper { "" } else { " (not less)" };
            found.push(format!(
                "{} and {} with {flows} flows{mark}",
                small.words(),
                full.words()
            ));
        }
        let found = format!("{UNIT} of S-KPS under SMALL and FULL: {}", found.join(", "));
        findings.judge("bursts", holds && !self.judged_flows().is_empty(), found);
    }

    /// Judges that DRR costs more if its quantum is not the length of a packet, so that some packets need two
    /// rounds.
    pub(super) fn judge_unmatched(&self, findings: &mut Findings) {
        let flows = self.judged_flows();
        let of = (UNMATCHED.title, "DRR");
        self.judge_ratio_at(findings, "unmatched", of, &flows, &|ratio| ratio > 1.0);
    }

    /// Judges that a packet of 64 bytes at 10 Gbit/s takes longer than QFQ with the controller.
    pub(super) fn judge_budget(&self, findings: &mut Findings) {
        let gross = |flows: u32| {
            let cell = self.cell("QFQ", flows, Load::Full)?;
            Some(cell.mean()? + Estimate::of(&cell.none)?.mean)
        };
        let costs: Vec<(u32, f64)> = (self.judged_flows().into_iter())
            .filter_map(|flows| Some((flows, gross(flows)?)))
            .collect();
        let words: Vec<String> = costs
            .iter()
            .map(|(flows, ns)| format!("{ns:.1} with {flows} flows"))
            .collect();
        findings.judge(
            "budget",
            !costs.is_empty() && costs.iter().all(|&(_, ns)| ns <= BUDGET),
            format!("ns, the controller included: {}", words.join(", ")),
        );
    }

    /// Judges that the mix costs as much as equal weights, with the greatest number of flows, which is about
    /// that of the mix.
    pub(super) fn judge_mix(&self, findings: &mut Findings) {
        let flows = self.flows().last().copied().unwrap_or(0);
        let mut found = Vec::new();
        let mut holds = true;
        for title in ["FIFO", "DRR", "QFQ", "S-KPS", "WF2Q+"] {
            let is_mix = |cell: &&Cell| {
                let (job, load) = (&cell.job, Load::Full);
                cell.title == title && job.weights == Weights::Mix && job.workload.load == load
            };
            let mix = self.cells.iter().find(is_mix);
            let (Some(mix), Some(equal)) = (mix, self.cell(title, flows, Load::Full)) else {
                continue;
            };
            let is_alike = (mix.mean().zip(equal.mean()))
                .is_some_and(|(mix, equal)| (mix - equal).abs() <= ALIKE * equal + NOISE);
            holds &= is_alike;
            let mark = if is_alike { "" } else { " (different)" };
            found.push(format!("{title} {} and {}{mark}", equal.words(), mix.words()));
        }
        findings.judge(
            "mix",
            holds && !found.is_empty(),
            format!("{UNIT} with equal weights and with the mix: {}", found.join(", ")),
        );
    }
}

/// What [`Cell::words`] gives.
const UNIT: &str = "ns (instructions)";

impl Cell {
    /// Returns the time that the scheduler adds to NONE's, ns.
    fn mean(&self) -> Option<f64> {
        Estimate::of(&self.net).map(|net| net.mean)
    }

    /// Returns the time, and the instructions if they were counted.
    fn words(&self) -> String {
        let time = self.mean().map_or("-".to_owned(), |ns| format!("{ns:.1}"));
        match self.instructions {
            Some(counted) => format!("{time} ({counted:.0})"),
            None => time,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::{Algorithm, Order, Sizes};

    use super::*;

    /// Returns cells with equal weights, whose time is a function of scheduler and number of flows. Under
    /// SMALL they cost a nanosecond less.
    fn cells(time: impl Fn(&str, f64) -> f64) -> Cells {
        let names = ["fifo", "drr", "drr_unmatched", "qfq", "s_kps", "wf2q_plus"];
        let mut cells = Vec::new();
        for load in [Load::Small, Load::Full] {
            for flows in [1, 8, 64, 512, 4096, 131_072] {
                for name in names {
                    let algorithm = Algorithm::by_name(name).expect("the scheduler exists");
                    let (order, sizes) = (Order::Shortest, Sizes::Constant(1000));
                    let mut cell = Cell::new(algorithm, flows, Weights::Equal, load, order, sizes);
                    let less = if load == Load::Small { 1.0 } else { 0.0 };
                    let time = time(name, f64::from(flows)) - less;
                    cell.net = vec![time - 1.0, time + 1.0];
                    cell.none = vec![30.0, 32.0];
                    cell.instructions = (load == Load::Full).then_some(4.0 * time);
                    cells.push(cell);
                }
            }
        }
        Cells { cells }
    }

    /// Costs as published, on a machine that is four times as fast, ns. WF2Q+ has 10 ns more for each
    /// doubling.
    fn published(name: &str, flows: f64) -> f64 {
        match (name, flows as u32) {
            ("fifo", _) => 7.0,
            ("drr", _) => 13.0,
            ("drr_unmatched", _) => 16.0,
            ("qfq", 1) => 30.0,
            ("qfq", _) => 25.0,
            ("s_kps", _) => 120.0,
            _ => 20.0 + 10.0 * flows.log2(),
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
        let cells = cells(published);
        for judge in [
            Cells::judge_flat,
            Cells::judge_logarithmic,
            Cells::judge_order,
            Cells::judge_viable,
            Cells::judge_one_flow,
            Cells::judge_bursts,
            Cells::judge_unmatched,
            Cells::judge_budget,
        ] {
            let (holds, found) = verdict(&cells, judge);
            assert!(holds, "{found}");
        }
        let (holds, found) = verdict(&cells, |cells, findings| {
            cells.judge_ratio(findings, "thrice", ("S-KPS", "QFQ"), &|ratio| ratio >= THRICE);
        });
        assert!(holds && found.contains("4.80 (4.80) with 64 flows"), "{found}");
    }

    #[test]
    fn growth_with_the_number_of_flows_is_found() {
        let grows = cells(|name, flows| match name {
            "qfq" => 10.0 + flows.log2(),
            "wf2q_plus" => flows,
            _ => published(name, flows),
        });
        let (holds, found) = verdict(&grows, Cells::judge_flat);
        assert!(
            !holds && found.contains("QFQ 16.0 (64) and 22.0 (88) (grows)"),
            "{found}"
        );
        assert!(
            !verdict(&grows, Cells::judge_logarithmic).0,
            "the growth is linear, not logarithmic"
        );
    }

    #[test]
    fn costs_that_contradict_a_statement_are_found() {
        let cells = cells(|name, flows| match (name, flows as u32) {
            ("qfq", 1) => 20.0,
            ("qfq", _) => 40.0,
            ("wf2q_plus", 1) => 90.0,
            ("drr_unmatched", _) => 12.0,
            _ => published(name, flows),
        });
        for judge in [
            Cells::judge_one_flow,
            Cells::judge_budget,
            Cells::judge_viable,
            Cells::judge_unmatched,
        ] {
            let (holds, found) = verdict(&cells, judge);
            assert!(!holds, "{found}");
        }
        let mut small = cells;
        for cell in &mut small.cells {
            cell.net = vec![if cell.job.workload.load == Load::Small {
                9.0
            } else {
                8.0
            }];
        }
        assert!(!verdict(&small, Cells::judge_bursts).0);
    }

    /// What a FIFO takes is noise. A scheduler's cost is not.
    #[test]
    fn a_nanosecond_does_not_make_a_mix_different() {
        for (name, equal, mix, expected) in [
            ("fifo", 2.0, 1.1, true),
            ("fifo", 2.0, 0.4, false),
            ("qfq", 20.0, 25.9, true),
            ("qfq", 20.0, 26.1, false),
        ] {
            let mut cells = cells(|_, _| equal);
            let algorithm = Algorithm::by_name(name).expect("the scheduler exists");
            let sizes = Sizes::Constant(1000);
            let mut cell = Cell::new(algorithm, 39_953, Weights::Mix, Load::Full, Order::Random, sizes);
            cell.net = vec![mix];
            cells.cells.push(cell);
            let (holds, found) = verdict(&cells, Cells::judge_mix);
            assert_eq!(holds, expected, "{found}");
        }
    }

    #[test]
    fn a_step_of_noise_is_no_logarithm() {
        // Each step is above zero and as large as the others, but all together are below 5 %.
        let noise = cells(|name, flows| match name {
            "wf2q_plus" => 353.0 + flows.log2() / 3.0,
            _ => published(name, flows),
        });
        let (holds, found) = verdict(&noise, Cells::judge_logarithmic);
        assert!(!holds && found.contains("all together 0.6 %"), "{found}");
    }

    #[test]
    fn two_numbers_of_flows_are_too_few_for_a_logarithm() {
        let mut few = cells(published);
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
        let swapped = cells(|name, flows| match (name, flows as u32) {
            ("s_kps", 4096) => 21.0,
            _ => published(name, flows),
        });
        let (holds, found) = verdict(&swapped, Cells::judge_order);
        assert!(
            !holds && found.contains("21.0 (84), 140.0 (560) with 4096 flows, wrong order"),
            "{found}"
        );
    }
}
