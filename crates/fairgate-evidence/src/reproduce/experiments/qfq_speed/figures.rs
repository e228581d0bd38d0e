//! The figures: times and instructions by number of flows.

use fairgate_report::scaling::{Scaling, Series};

use super::cell::Cell;
use super::{Cells, NONE};
use crate::bench::Load;

impl Cells {
    /// Draws times by number of flows under a load. They include NONE's time. NONE is a curve, too.
    pub(super) fn figure(&self, load: Load) -> Option<Scaling> {
        let under =
            || (self.cells.iter()).filter(move |cell| cell.job.workload.load == load && !cell.is_mix());
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let total = |cell: &Cell| mean(&cell.none) + mean(&cell.net);
        let mut curves = Curves::default();
        let mut before = None;
        for cell in under() {
            let flows = cell.job.workload.flows;
            curves.add(cell.title, flows, total(cell));
            if before.replace(flows) != Some(flows) {
                curves.add(NONE, flows, mean(&cell.none));
            }
        }
        (!curves.0.is_empty()).then(|| Scaling {
            title: format!(
                "Time of an enqueue and a dequeue, under {}, {}",
                load.name().to_uppercase(),
                self.cells[0].packets()
            ),
            x: "flows",
            y: "ns, including the controller",
            curves: curves.0,
        })
    }

    pub(super) fn figure_of_instructions(&self) -> Option<Scaling> {
        let mut curves = Curves::default();
        for cell in self.cells.iter().filter(|cell| cell.is_judged()) {
            if let Some(instructions) = cell.instructions {
                curves.add(cell.title, cell.job.workload.flows, instructions);
            }
        }
        (!curves.0.is_empty()).then(|| Scaling {
            title: "Instructions of an enqueue and a dequeue, net of NONE's, under FULL".into(),
            x: "flows",
            y: "instructions",
            curves: curves.0,
        })
    }
}

/// Curves by name. NONE has the first colour in every figure, even without points.
#[derive(Default)]
struct Curves(Vec<Series>);

impl Curves {
    fn add(&mut self, name: &str, flows: u32, value: f64) {
        let empty = |name: &str| Series {
            name: name.into(),
            points: Vec::new(),
        };
        if self.0.is_empty() {
            self.0.push(empty(NONE));
        }
        let known = self.0.iter().position(|series| series.name == name);
        let index = known.unwrap_or_else(|| {
            self.0.push(empty(name));
            self.0.len() - 1
        });
        self.0[index].points.push((f64::from(flows), value));
    }
}
