//! The results as JSON, CSV, table, page and figure.

use std::io::{self, Write};

use comfy_table::CellAlignment;
use fairgate_report::command::output;
use fairgate_report::scaling::{Scaling, Series};
use fairgate_report::sheet::{Block, Cell, Sheet, Table};
use serde::Serialize;

use crate::bench::floor::Latency;
use crate::bench::measure::{Spread, Timing};
use crate::bench::{ALGORITHMS, Instructions};

/// `fairgate.bench-schedulers/1`.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) command: String,
    pub(super) order: String,
    pub(super) weights: String,
    pub(super) sizes: String,
    pub(super) mode: String,
    pub(super) seed: u64,
    pub(super) runs: u32,
    pub(super) floor: Floor,
    pub(super) results: Vec<Measurement>,
}

/// The costs that no scheduler can avoid.
#[derive(Debug, Serialize)]
pub(super) struct Floor {
    pub(super) latency: Vec<Latency>,
    pub(super) branch_miss_ns: f64,
}

/// The measurement of one scheduler with one number of flows under one load.
#[derive(Debug, Serialize)]
pub(super) struct Measurement {
    pub(super) algorithm: &'static str,
    pub(super) load: &'static str,
    pub(super) flows: u32,
    /// Time for an enqueue and a dequeue, in ns.
    pub(super) time: Option<Timing>,
    pub(super) instructions: Option<Instructions>,
    /// Why there is no time.
    pub(super) error: Option<String>,
}

impl Document {
    /// Returns whether a scheduler failed to schedule all packets.
    pub(super) fn has_errors(&self) -> bool {
        self.results.iter().any(|result| result.error.is_some())
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for load in self.loads() {
            let mut table = output::table([
                "LOAD",
                "ALGORITHM",
                "FLOWS",
                "ns NET",
                "QUARTILES",
                "LEAST",
                "NONE",
                "INSTRUCTIONS",
            ]);
            for result in self.results.iter().filter(|result| result.load == load) {
                table.add_row(result.row());
            }
            for column in 2..8 {
                if let Some(column) = table.columns().nth(column) {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
            text += &output::table_text(&table);
            text.push('\n');
        }
        text += &format!(
            "ns for an enqueue and a dequeue, net of NONE: median of {} runs; quartiles; fastest run minus \
             fastest run of NONE.\n{}\n",
            self.runs,
            self.floor.text()
        );
        for result in &self.results {
            if let Some(error) = &result.error {
                text += &format!(
                    "{} of {} flows, {}: {error}\n",
                    result.algorithm, result.flows, result.load
                );
            }
        }
        text
    }

    pub(super) fn csv(&self, into: &mut dyn Write) -> io::Result<()> {
        writeln!(
            into,
            "algorithm,load,flows,order,weights,sizes,mode,seed,pairs,none_ns,net_ns,net_lower_quartile_ns,\
             net_upper_quartile_ns,net_least_ns,none_instructions,net_instructions"
        )?;
        for result in &self.results {
            let time = result.time.as_ref();
            let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
            writeln!(
                into,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                result.algorithm,
                result.load,
                result.flows,
                self.order,
                self.weights,
                self.sizes,
                self.mode,
                self.seed,
                time.map_or(String::new(), |time| time.pairs.to_string()),
                number(time.map(|time| time.none.median)),
                number(time.map(|time| time.net.median)),
                number(time.map(|time| time.net.lower_quartile)),
                number(time.map(|time| time.net.upper_quartile)),
                number(time.map(|time| time.net_least)),
                number(result.instructions.map(|count| count.none)),
                number(result.instructions.map(|count| count.net)),
            )?;
        }
        Ok(())
    }

    /// Returns the paper's Figure 9 with all schedulers and NONE, for the last load, which is FULL if it was
    /// measured.
    pub(super) fn figure(&self) -> Option<Scaling> {
        let load = self.loads().pop()?;
        let title = format!(
            "Figure 9: ns for an enqueue and a dequeue, including the controller's own time; {}",
            load.to_uppercase()
        );
        let none = Series {
            name: "NONE".into(),
            points: self.none(load),
        };
        let mut curves = self.curves(load, |time| time.none.median + time.net.median);
        curves.push(none);
        Some(figure(title, curves))
    }

    pub(super) fn page(&self) -> String {
        let mut blocks = Vec::new();
        if let Some(figure) = self.figure() {
            blocks.push(Block::Scaling(figure));
        }
        for load in self.loads() {
            blocks.push(Block::Scaling(figure(
                format!(
                    "ns for an enqueue and a dequeue, net of NONE; {}",
                    load.to_uppercase()
                ),
                self.curves(load, |time| time.net.median),
            )));
        }
        blocks.push(Block::Heading("All values".into()));
        blocks.push(Block::Text(format!(
            "ns for an enqueue and a dequeue, net of NONE, which is the controller with only a queue: median \
             of {} runs that alternate with NONE, and quartiles. Instructions are counted by callgrind, net \
             of NONE.",
            self.runs
        )));
        blocks.push(Block::Table(self.table()));
        blocks.push(Block::Heading("How it was measured".into()));
        blocks.push(Block::Text(self.floor.text()));
        blocks.push(Block::Code(self.command.clone()));
        Sheet {
            title: "Cost of schedulers".into(),
            lead: format!(
                "The cost of an enqueue and a dequeue by the number of flows, on logarithmic scales: packets \
                 of {} bytes; weights: {}; order of flows: {}; mode: {}.",
                self.sizes, self.weights, self.order, self.mode
            ),
            blocks,
        }
        .render()
    }

    fn table(&self) -> Table {
        let head = [
            "Algorithm",
            "Load",
            "Flows",
            "ns net",
            "Quartiles",
            "Least",
            "NONE",
            "Instructions",
        ];
        let row = |result: &Measurement| {
            let [load, name, rest @ ..] = result.row();
            let mut cells = vec![Cell::Words(name), Cell::Words(load)];
            cells.extend(rest.map(Cell::Number));
            cells
        };
        Table {
            head: head.map(String::from).to_vec(),
            rows: self.results.iter().map(row).collect(),
        }
    }

    /// Returns the measured loads in their order.
    fn loads(&self) -> Vec<&'static str> {
        let mut loads: Vec<&str> = self.results.iter().map(|result| result.load).collect();
        loads.dedup();
        loads
    }

    /// Returns a curve for each scheduler, so that the colour of a scheduler does not depend on the
    /// selection.
    fn curves(&self, load: &str, value: impl Fn(&Timing) -> f64) -> Vec<Series> {
        ALGORITHMS
            .iter()
            .map(|algorithm| Series {
                name: algorithm.title.into(),
                points: self
                    .results
                    .iter()
                    .filter(|result| result.algorithm == algorithm.name && result.load == load)
                    .filter_map(|result| Some((f64::from(result.flows), value(result.time.as_ref()?))))
                    .collect(),
            })
            .collect()
    }

    /// Returns NONE by flows: the median of what it took beside each scheduler.
    fn none(&self, load: &str) -> Vec<(f64, f64)> {
        let mut flows: Vec<u32> = self.results.iter().map(|result| result.flows).collect();
        flows.sort_unstable();
        flows.dedup();
        flows
            .into_iter()
            .filter_map(|flows| {
                let beside: Vec<f64> = self
                    .results
                    .iter()
                    .filter(|result| result.flows == flows && result.load == load)
                    .filter_map(|result| Some(result.time.as_ref()?.none.median))
                    .collect();
                (!beside.is_empty()).then(|| (f64::from(flows), Spread::of(&beside).median))
            })
            .collect()
    }
}

impl Measurement {
    fn row(&self) -> [String; 8] {
        let time = |text: &dyn Fn(&Timing) -> String| self.time.as_ref().map_or("-".into(), text);
        [
            self.load.to_owned(),
            self.algorithm.to_owned(),
            self.flows.to_string(),
            time(&|time| format!("{:.1}", time.net.median)),
            time(&|time| format!("{:.1} to {:.1}", time.net.lower_quartile, time.net.upper_quartile)),
            time(&|time| format!("{:.1}", time.net_least)),
            time(&|time| format!("{:.1}", time.none.median)),
            self.instructions
                .map_or("-".into(), |count| format!("{:.0}", count.net)),
        ]
    }
}

impl Floor {
    fn text(&self) -> String {
        let latency: Vec<String> = self
            .latency
            .iter()
            .map(|step| format!("{:.1} ns in {} KiB", step.nanos, step.bytes >> 10))
            .collect();
        format!(
            "Lower limits: a memory access that depends on the one before takes {}; a mispredicted branch \
             takes {:.1} ns.",
            latency.join(", "),
            self.branch_miss_ns
        )
    }
}

fn figure(title: String, curves: Vec<Series>) -> Scaling {
    Scaling {
        title,
        x: "flows",
        y: "ns",
        curves,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(median: f64) -> Spread {
        Spread {
            least: median - 1.0,
            lower_quartile: median - 0.5,
            median,
            upper_quartile: median + 0.5,
            greatest: median + 1.0,
        }
    }

    fn document() -> Document {
        let measured = |algorithm, flows, net| Measurement {
            algorithm,
            load: "full",
            flows,
            time: Some(Timing {
                pairs: 1000,
                none: spread(20.0),
                net: spread(net),
                net_least: net - 1.0,
            }),
            instructions: (flows == 64).then_some(Instructions {
                none: 90.0,
                net: 53.0,
            }),
            error: None,
        };
        let mut refused = measured("drr", 512, 0.0);
        (refused.time, refused.error) = (None, Some("it dropped a packet".into()));
        Document {
            command: "fairgate-lab bench schedulers".into(),
            order: "shortest".into(),
            weights: "equal".into(),
            sizes: "1000".into(),
            mode: "bare".into(),
            seed: 1,
            runs: 9,
            floor: Floor {
                latency: vec![Latency {
                    bytes: 1 << 15,
                    nanos: 1.5,
                }],
                branch_miss_ns: 5.0,
            },
            results: vec![
                measured("fifo", 1, 2.0),
                measured("fifo", 64, 2.5),
                measured("drr", 64, 5.0),
                refused,
            ],
        }
    }

    #[test]
    fn the_table_is_aligned_and_reports_errors() {
        let document = document();
        let text = document.text();
        assert!(document.has_errors());
        assert!(
            text.contains("drr of 512 flows, full: it dropped a packet"),
            "{text}"
        );
        assert!(text.contains("1.5 ns in 32 KiB"), "{text}");
        let ends: Vec<usize> = text.lines().take(4).map(|line| line.trim_end().len()).collect();
        assert!(ends.iter().all(|&end| end == ends[0]), "{text}");
    }

    #[test]
    fn every_row_of_the_csv_has_every_column() {
        let mut csv = Vec::new();
        document().csv(&mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [16; 5], "{csv}");
        assert!(csv.contains(
            "fifo,full,64,shortest,equal,1000,bare,1,1000,20.000,2.500,2.000,3.000,1.500,90.000,53.000"
        ));
    }

    #[test]
    fn the_figure_has_none_beside_the_totals() {
        let figure = document().figure().unwrap();
        let of = |name: &str| {
            let series = figure.curves.iter().find(|series| series.name == name);
            series.unwrap().points.clone()
        };
        assert_eq!(of("FIFO"), [(1.0, 22.0), (64.0, 22.5)]);
        assert_eq!(of("DRR"), [(64.0, 25.0)]);
        assert_eq!(of("NONE"), [(1.0, 20.0), (64.0, 20.0)]);
        let page = document().page();
        assert!(page.contains("fairgate-lab bench schedulers") && page.contains("All values"));
    }
}
