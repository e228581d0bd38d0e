//! The measured results beside the published values: rows and claims, as JSON, CSV and a page.

use std::collections::{BTreeMap, BTreeSet};

use fairgate_report::sheet::{Block, Cell, Sheet, Table};
use fairgate_theory::estimate::Estimate;
use serde::Serialize;

use crate::reproduce::ReproduceError;
use crate::reproduce::agreement::{self, Pair};
use crate::reproduce::description::{Description, Instead, Open};
use crate::reproduce::digits::digits;
use crate::reproduce::findings::{Beside, Figure, Findings, Grid, LiveReport};
use crate::reproduce::kind::Kind;
use crate::reproduce::published::Published;

/// The result of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The name of the experiment.
    pub id: String,
    /// The short name of the paper.
    pub paper: String,
    /// The sections and figures of the paper.
    pub place: String,
    /// The title, in one line.
    pub title: String,
    /// A description, in a few sentences.
    pub about: String,
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
    /// Whether this was a short run. Claims may then fail for lack of data.
    pub quick: bool,
    /// How busy the machine was, if the results are those of live runs. Left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveReport>,
    /// Whether all claims are reproduced: [`Kind::is_reproduced`]. Our own statements do not count.
    pub holds: bool,
    /// The claims and their verdicts.
    pub claims: Vec<JudgedClaim>,
    /// The rows: first all measured values, then the published values without a measurement.
    pub rows: Vec<Row>,
    /// Remarks on the accuracy of the results.
    pub remarks: Vec<String>,
    /// The parameters that the paper does not give.
    pub open: Vec<Open>,
    /// The figures. They are not in the JSON; their points are in `curves.csv`.
    #[serde(skip)]
    pub figures: Vec<Figure>,
    /// Tables of means, for people. They are not in the JSON, whose rows have all values.
    #[serde(skip)]
    pub grids: Vec<Grid>,
}

/// A claim and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedClaim {
    /// The name of the claim.
    pub id: String,
    /// The claim.
    pub text: String,
    /// The verdict.
    pub verdict: Kind,
    /// Whether it is reproduced: [`Kind::is_reproduced`].
    pub holds: bool,
    /// The parameters that the paper does not give and on which it depends.
    pub open: Vec<String>,
    /// The limits by which it was judged that the paper does not state, and their reasons.
    pub ours: Option<String>,
    /// What was tried to reproduce it, if it is not reproduced.
    pub tried: Option<String>,
    /// How far the published value is from our mean, in standard deviations of a run, if it is within chance.
    pub chance: Option<f64>,
    /// The numbers by which it was judged, the worst first.
    pub found: String,
    /// Statements of ours beside the claim, each with its own verdict.
    pub instead: Vec<JudgedInstead>,
}

/// A statement of ours beside a claim, and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedInstead {
    /// The name of the statement.
    pub id: String,
    /// The statement.
    pub text: String,
    /// Whether it was measured to hold.
    pub holds: bool,
    /// Whether there were enough data to judge it. If not, `holds` is false.
    pub is_judged: bool,
    /// The numbers by which it was judged.
    pub found: String,
}

impl JudgedClaim {
    /// Returns why the verdict is so: the worst number by which it was judged, the open parameters or the
    /// distance, and the other numbers.
    pub fn why(&self) -> String {
        let distance = |chance: f64| format!("{chance:.1} standard deviations; ");
        match self.verdict {
            Kind::ReproducedIf => {
                let (worst, others) = self.found.split_once("; ").unwrap_or((self.found.as_str(), ""));
                let open = format!("{worst}; if {}", self.open.join(", "));
                [open.as_str(), others]
                    .join("; ")
                    .trim_end_matches("; ")
                    .to_owned()
            }
            Kind::WithinChance => self.chance.map_or(String::new(), distance) + &self.found,
            Kind::Reproduced | Kind::NotReproduced | Kind::NotJudged => self.found.clone(),
        }
    }
}

impl JudgedInstead {
    /// Returns the verdict in words.
    pub fn verdict(&self) -> &'static str {
        match (self.holds, self.is_judged) {
            (true, _) => "so",
            (false, true) => "not so",
            (false, false) => "not judged",
        }
    }
}

/// A measured value beside a published value.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub measure: String,
    /// The case in which it was measured.
    pub case: String,
    /// The unit; empty for a number without one.
    pub unit: String,
    /// The measured value, if there is one.
    pub measured: Option<Estimate>,
    /// The published value, if there is one.
    pub published: Option<String>,
    /// The section or figure of the paper with the published value.
    pub place: Option<String>,
    /// The same measured in other ways, by their names. Left out if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, Estimate>,
}

impl Row {
    /// Returns both values, if there are both.
    fn pair(&self) -> Option<Pair<'_>> {
        Some(Pair {
            measure: &self.measure,
            case: &self.case,
            measured: self.measured?.mean,
            published: self.published.as_deref()?,
        })
    }
}

impl Reproduction {
    /// Returns the name of this result: that of its experiment, and ` live` behind it if it was run live.
    pub fn key(&self) -> String {
        match self.live {
            Some(_) => format!("{} live", self.id),
            None => self.id.clone(),
        }
    }

    /// Returns the verdicts on the claims.
    pub fn kinds(&self) -> Vec<Kind> {
        self.claims.iter().map(|claim| claim.verdict).collect()
    }

    /// Returns the name of the folder of its files.
    pub fn folder(&self) -> String {
        self.key().replace(' ', "-")
    }

    /// Returns the names of other ways in which values were measured.
    pub fn ways(&self) -> Vec<&str> {
        let names = self.rows.iter().flat_map(|row| row.beside.keys());
        names
            .map(String::as_str)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Combines measured and published values.
    ///
    /// # Errors
    /// Returns an error if a claim was not judged, if an unknown claim was judged, or if units differ.
    pub(crate) fn new(
        id: &str,
        description: Description,
        seeds: &[u64],
        quick: bool,
        findings: Findings,
        published: Vec<Published>,
    ) -> Result<Reproduction, ReproduceError> {
        let bug = |what: String| ReproduceError::Bug {
            id: id.to_owned(),
            what,
        };
        let claims = judged(&description, &findings).map_err(bug)?;
        let rows = rows(&findings, published).map_err(bug)?;
        let agreement = agreement::figure(rows.iter().filter_map(Row::pair));
        Ok(Reproduction {
            id: id.to_owned(),
            holds: claims.iter().all(|claim| claim.holds),
            figures: findings.figures.into_iter().chain(agreement).collect(),
            rows,
            claims,
            paper: description.paper,
            place: description.place,
            title: description.title,
            about: description.about,
            seeds: seeds.to_vec(),
            quick,
            live: findings.live,
            remarks: findings.remarks,
            open: description.open,
            grids: findings.grids,
        })
    }

    /// Returns the rows as CSV with a header. Other ways of measuring have a column each, after the others.
    pub fn rows_csv(&self) -> String {
        let ways = self.ways();
        let head = [
            "measure",
            "case",
            "unit",
            "mean",
            "low",
            "high",
            "runs",
            "published",
            "place",
        ];
        csv_text(
            head.into_iter().chain(ways.iter().copied()),
            self.rows.iter().map(|row| {
                let number =
                    |value: fn(&Estimate) -> String| row.measured.as_ref().map_or(String::new(), value);
                let first = [
                    row.measure.clone(),
                    row.case.clone(),
                    row.unit.clone(),
                    number(|estimate| estimate.mean.to_string()),
                    number(|estimate| estimate.low.to_string()),
                    number(|estimate| estimate.high.to_string()),
                    number(|estimate| estimate.runs.to_string()),
                    row.published.clone().unwrap_or_default(),
                    row.place.clone().unwrap_or_default(),
                ];
                let others = ways.iter().map(|way| {
                    let found = row.beside.get(*way);
                    found.map_or(String::new(), |estimate| estimate.mean.to_string())
                });
                first.into_iter().chain(others).collect::<Vec<String>>()
            }),
        )
    }

    /// Returns the points of all curves as CSV with a header.
    pub fn curves_csv(&self) -> String {
        let points = (self.figures.iter()).flat_map(|figure| {
            figure
                .points()
                .into_iter()
                .map(move |point| (figure.title(), point))
        });
        csv_text(
            ["figure", "curve", "x", "y", "low", "high"],
            points.map(|(figure, (curve, point))| {
                let end = |end: Option<f64>| end.map_or(String::new(), |value| value.to_string());
                [
                    figure.to_owned(),
                    curve,
                    point.x.to_string(),
                    point.y.to_string(),
                    end(point.interval.map(|interval| interval.0)),
                    end(point.interval.map(|interval| interval.1)),
                ]
            }),
        )
    }

    /// Returns the result as a page. It ends with the `command` that reproduces it.
    pub fn page(&self, command: &str) -> String {
        let mut blocks = vec![Block::Heading("Claims".into()), Block::Table(self.claim_table())];
        if self.quick {
            blocks.push(Block::Text(
                "This was a short run. Claims may fail for lack of data.".into(),
            ));
        }
        if !self.remarks.is_empty() {
            blocks.push(Block::Heading("Limits of these results".into()));
            blocks.push(Block::List(self.remarks.clone()));
        }
        blocks.push(Block::Heading("Figures".into()));
        blocks.extend(self.figures.iter().map(Figure::block));
        if self.grids.is_empty() {
            blocks.push(Block::Heading("Measured beside published".into()));
            blocks.push(Block::Table(self.figure_table()));
        }
        for grid in &self.grids {
            blocks.push(Block::Heading(grid.title.clone()));
            blocks.push(Block::Table(grid.table()));
        }
        if !self.open.is_empty() {
            blocks.push(Block::Heading("Parameters that the paper does not give".into()));
            blocks.push(Block::Table(self.open_table()));
        }
        blocks.push(Block::Heading("Command".into()));
        blocks.push(Block::Code(command.to_owned()));
        Sheet {
            title: format!("{}: {}", self.key(), self.title),
            lead: format!("{} ({}, {})", self.about, self.paper, self.place),
            blocks,
        }
        .render()
    }

    /// Returns a page that leads to the pages of these experiments: `ID/page.html` in the same folder.
    pub fn index(results: &[Reproduction]) -> String {
        let rows = results.iter().map(|result| {
            let count = Kind::count(&result.kinds());
            vec![
                Cell::Link {
                    text: result.key(),
                    to: format!("{}/page.html", result.folder()),
                },
                Cell::Words(result.title.clone()),
                Cell::Words(format!("{}, {}", result.paper, result.place)),
                match result.holds {
                    true => Cell::Words(count),
                    false => Cell::Alarm(count),
                },
            ]
        });
        let table = Table {
            head: ["Experiment", "What", "Paper", "Claims that are reproduced"]
                .map(str::to_owned)
                .to_vec(),
            rows: rows.collect(),
        };
        Sheet {
            title: "The papers' experiments".into(),
            lead: "A claim is reproduced if it was measured to hold as the paper states it, by the \
                   paper's own formula. It is reproduced if an open parameter is as we chose it, and within \
                   chance if the interval of a single run of ours contains it."
                .into(),
            blocks: vec![Block::Table(table)],
        }
        .render()
    }

    /// Returns the claims, each followed by our statements beside it.
    fn claim_table(&self) -> Table {
        let rows = self.claims.iter().flat_map(|claim| {
            let verdict = match claim.holds {
                true => Cell::Words(claim.verdict.word().into()),
                false => Cell::Alarm(claim.verdict.word().into()),
            };
            let ours = claim.ours.iter().map(|limit| format!("Limit of ours: {limit}"));
            let tried = claim.tried.iter().filter(|_| !claim.holds);
            let tried = tried.map(|what| format!("Tried: {what}"));
            let first = vec![
                Cell::Words(with(&claim.text, ours)),
                verdict,
                Cell::Words(with(&claim.why(), tried)),
            ];
            let instead = claim.instead.iter().map(|ours| {
                vec![
                    Cell::Words(format!("Instead: {}", ours.text)),
                    Cell::Words(ours.verdict().into()),
                    Cell::Words(ours.found.clone()),
                ]
            });
            std::iter::once(first).chain(instead)
        });
        Table {
            head: ["Claim", "Verdict", "Found"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }

    fn figure_table(&self) -> Table {
        let ways = self.ways();
        let first = ["Measure", "Case", "Measured", "95 %"];
        let last = ["Published", "Unit", "Where"];
        let titles = ways.iter().map(|way| capital(way));
        Table {
            head: (first.map(str::to_owned).into_iter())
                .chain(titles)
                .chain(last.map(str::to_owned))
                .collect(),
            rows: self
                .rows
                .iter()
                .map(|row| {
                    let first = [
                        Cell::Words(row.measure.clone()),
                        Cell::Words(row.case.clone()),
                        Cell::Number(row.measured_text()),
                        Cell::Number(row.interval_text()),
                    ];
                    let others = ways.iter().map(|way| Cell::Number(row.beside_text(way)));
                    let last = [
                        Cell::Number(row.published.clone().unwrap_or_else(|| "–".into())),
                        Cell::Words(row.unit.clone()),
                        Cell::Words(row.place.clone().unwrap_or_default()),
                    ];
                    first.into_iter().chain(others).chain(last).collect()
                })
                .collect(),
        }
    }

    fn open_table(&self) -> Table {
        Table {
            head: ["Parameter", "Value", "Why"].map(str::to_owned).to_vec(),
            rows: self
                .open
                .iter()
                .map(|open| {
                    [&open.parameter, &open.value, &open.why]
                        .map(|text| Cell::Words(text.clone()))
                        .to_vec()
                })
                .collect(),
        }
    }
}

/// Returns a text with remarks behind it, each a sentence.
fn with(text: &str, remarks: impl Iterator<Item = String>) -> String {
    std::iter::once(text.to_owned())
        .chain(remarks)
        .map(|part| part.trim_end_matches('.').to_owned())
        .collect::<Vec<_>>()
        .join(". ")
}

/// Returns the text with a capital letter at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

impl Row {
    /// Formats the mean that another way of measuring gave. A dash means that there is none.
    pub fn beside_text(&self, way: &str) -> String {
        let found = self.beside.get(way);
        found.map_or("–".into(), |estimate| digits(estimate.mean))
    }

    /// Formats the measured mean. A dash means that there is none.
    pub fn measured_text(&self) -> String {
        self.measured
            .as_ref()
            .map_or("–".into(), |estimate| digits(estimate.mean))
    }

    /// Formats the interval. It is empty if the value does not depend on chance, or if there was only one
    /// run.
    pub fn interval_text(&self) -> String {
        match &self.measured {
            Some(estimate) if estimate.high > estimate.low => {
                format!("{} to {}", digits(estimate.low), digits(estimate.high))
            }
            _ => String::new(),
        }
    }
}

/// Returns the claims of the description with their verdicts, and our statements beside them with theirs.
fn judged(description: &Description, findings: &Findings) -> Result<Vec<JudgedClaim>, String> {
    let ids = description.claims.iter().map(|claim| &claim.id);
    let known: BTreeSet<&String> = ids
        .chain(description.instead.iter().map(|ours| &ours.id))
        .collect();
    if known.len() != description.claims.len() + description.instead.len() {
        return Err("two claims or statements of its file have the same name".to_owned());
    }
    if let Some(verdict) = findings
        .verdicts
        .iter()
        .find(|verdict| !known.contains(&verdict.claim))
    {
        return Err(format!(
            "it judges `{}`, which is not a claim of its file",
            verdict.claim
        ));
    }
    let verdict_on = |id: &str| {
        let mut verdicts = findings.verdicts.iter().filter(|verdict| verdict.claim == id);
        match (verdicts.next(), verdicts.next()) {
            (Some(verdict), None) => Ok(verdict),
            (None, _) => Err(format!("it does not judge the claim `{id}`")),
            (Some(_), Some(_)) => Err(format!("it judges the claim `{id}` twice")),
        }
    };
    let is_lost = |ours: &&Instead| !description.claims.iter().any(|claim| claim.id == ours.claim);
    if let Some(ours) = description.instead.iter().find(is_lost) {
        return Err(format!(
            "`{}` stands beside `{}`, which is not a claim",
            ours.id, ours.claim
        ));
    }
    let beside = |claim: &str| {
        let all = description.instead.iter().filter(|ours| ours.claim == claim);
        all.map(|ours| {
            let verdict = verdict_on(&ours.id)?;
            Ok(JudgedInstead {
                id: ours.id.clone(),
                text: ours.text.clone(),
                holds: verdict.holds,
                is_judged: verdict.is_judged,
                found: verdict.found.clone(),
            })
        })
        .collect::<Result<Vec<_>, String>>()
    };
    let claims = description.claims.iter().map(|claim| {
        let verdict = verdict_on(&claim.id)?;
        let is_open = |name: &&String| description.open.iter().any(|open| open.parameter == **name);
        if let Some(unknown) = claim.open.iter().find(|name| !is_open(name)) {
            return Err(format!(
                "the claim `{}` depends on `{unknown}`, which is not a parameter of [[experiment.open]]",
                claim.id
            ));
        }
        let kind = Kind::of(claim, verdict);
        Ok(JudgedClaim {
            id: claim.id.clone(),
            text: claim.text.clone(),
            verdict: kind,
            holds: kind.is_reproduced(),
            open: claim.open.clone(),
            ours: claim.ours.clone(),
            tried: claim.tried.clone(),
            chance: verdict.chance,
            found: verdict.found.clone(),
            instead: beside(&claim.id)?,
        })
    });
    claims.collect()
}

/// Returns the measured values with their published values, and then the published values without a
/// measurement.
fn rows(findings: &Findings, mut published: Vec<Published>) -> Result<Vec<Row>, String> {
    let mut rows = Vec::with_capacity(findings.measurements.len());
    for measurement in &findings.measurements {
        let (measure, case) = (&measurement.measure, &measurement.case);
        let known = published
            .iter()
            .position(|value| value.measure == *measure && value.case == *case)
            .map(|index| published.remove(index));
        if let Some(value) = known.as_ref().filter(|value| value.unit != measurement.unit) {
            return Err(format!(
                "`{measure}`, `{case}` is measured in `{}` but published in `{}`",
                measurement.unit, value.unit
            ));
        }
        let known = known.map(|value| (value.value, value.place));
        let (value, place) = known.or_else(|| measurement.published.clone()).unzip();
        rows.push(Row {
            measure: measure.clone(),
            case: case.clone(),
            unit: measurement.unit.clone(),
            measured: Some(measurement.value),
            published: value,
            place,
            beside: beside(&findings.beside, measure, case),
        });
    }
    rows.extend(published.into_iter().map(|value| Row {
        measure: value.measure,
        case: value.case,
        unit: value.unit,
        measured: None,
        published: Some(value.value),
        place: Some(value.place),
        beside: BTreeMap::new(),
    }));
    Ok(rows)
}

/// Returns what other ways of measuring gave for a measure in a case.
fn beside(ways: &[Beside], measure: &str, case: &str) -> BTreeMap<String, Estimate> {
    let of_way = |way: &Beside| {
        let mut all = way.measurements.iter();
        let found = all.find(|found| found.measure == measure && found.case == case)?;
        Some((way.name.clone(), found.value))
    };
    ways.iter().filter_map(of_way).collect()
}

fn csv_text<'a, R: IntoIterator<Item = String>>(
    head: impl IntoIterator<Item = &'a str>,
    rows: impl Iterator<Item = R>,
) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer
        .write_record(head)
        .and_then(|()| rows.into_iter().try_for_each(|row| writer.write_record(row)));
    written.expect("each row has as many fields as the header, and memory accepts any text");
    let bytes = writer.into_inner().expect("memory accepts any text");
    String::from_utf8(bytes).expect("only text was written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::description::Claim;

    fn description(claims: &[&str]) -> Description {
        Description {
            paper: "qfq".into(),
            place: "Table II".into(),
            title: "Delays".into(),
            about: "About.".into(),
            open: Vec::new(),
            claims: claims
                .iter()
                .map(|id| Claim {
                    id: (*id).to_owned(),
                    text: format!("{id} must show"),
                    open: Vec::new(),
                    ours: None,
                    tried: None,
                    holds: Vec::new(),
                })
                .collect(),
            instead: Vec::new(),
        }
    }

    fn published(case: &str, unit: &str) -> Published {
        Published {
            measure: "delay".into(),
            case: case.into(),
            value: "~3".into(),
            unit: unit.into(),
            place: "text".into(),
        }
    }

    fn reproduce(
        claims: &[&str],
        findings: Findings,
        published: Vec<Published>,
    ) -> Result<Reproduction, String> {
        Reproduction::new("test", description(claims), &[1, 2], false, findings, published)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn measured_values_come_first_and_published_values_alone_come_last() {
        let mut findings = Findings::default();
        findings.measure("delay", "QFQ", "ms", Estimate::of(&[2.0, 4.0]).unwrap());
        findings.measure("delay", "ours", "ms", Estimate::exact(1.0));
        findings.judge("order", true, "2 < 3");
        let result = reproduce(
            &["order"],
            findings,
            vec![published("DRR", "ms"), published("QFQ", "ms")],
        )
        .unwrap();
        let cases: Vec<_> = result
            .rows
            .iter()
            .map(|row| (row.case.as_str(), row.published.is_some()))
            .collect();
        assert_eq!(cases, [("QFQ", true), ("ours", false), ("DRR", true)]);
        assert!(result.holds);
        let csv = result.rows_csv();
        assert!(csv.starts_with("measure,case,unit,mean,"), "{csv}");
        assert!(csv.contains("delay,DRR,ms,,,,,~3,text"), "{csv}");
        assert!(
            result
                .page("fairgate-lab reproduce test")
                .contains("order must show")
        );
    }

    #[test]
    fn one_claim_that_does_not_hold_fails_the_experiment() {
        let mut findings = Findings::default();
        findings.judge("a", true, "");
        findings.judge("b", false, "");
        let result = reproduce(&["a", "b"], findings, Vec::new()).unwrap();
        assert!(!result.holds);
    }

    #[test]
    fn a_statement_of_ours_stands_beside_its_claim_and_does_not_change_the_verdict() {
        let mut described = description(&["published", "other"]);
        described.instead.push(Instead {
            claim: "published".into(),
            id: "ours".into(),
            text: "another formula".into(),
            holds: Vec::new(),
        });
        let mut findings = Findings::default();
        findings.judge("ours", true, "1 < 2");
        findings.judge("published", false, "3 > 2");
        findings.leave_open("other", "two values are too few");
        let reproduce = |description, findings| {
            Reproduction::new("test", description, &[1], false, findings, Vec::new())
                .map_err(|error| error.to_string())
        };
        let result = reproduce(described.clone(), findings.clone()).unwrap();
        assert!(!result.holds);
        assert_eq!(result.kinds(), [Kind::NotReproduced, Kind::NotJudged]);
        let ours = &result.claims[0].instead;
        assert_eq!(
            (ours.len(), ours[0].verdict(), ours[0].found.as_str()),
            (1, "so", "1 < 2")
        );
        assert!(result.page("command").contains("Instead: another formula"));

        described.instead[0].claim = "missing".into();
        let error = reproduce(described.clone(), findings.clone()).unwrap_err();
        assert!(error.contains("`ours` stands beside `missing`"), "{error}");
        described.instead[0].id = "other".into();
        let error = reproduce(described, findings).unwrap_err();
        assert!(error.contains("have the same name"), "{error}");
    }

    #[test]
    fn a_claim_names_the_open_parameters_on_which_it_depends() {
        let mut described = description(&["order"]);
        described.claims[0].open.push("packet size".into());
        let reproduce = |description| {
            let mut findings = Findings::default();
            findings.judge("order", true, "1 < 2; 2 < 3");
            Reproduction::new("test", description, &[1], false, findings, Vec::new())
                .map_err(|error| error.to_string())
        };
        let error = reproduce(described.clone()).unwrap_err();
        assert!(error.contains("depends on `packet size`"), "{error}");
        described.open.push(Open {
            parameter: "packet size".into(),
            value: "1000 B".into(),
            why: "It is not said.".into(),
        });
        let result = reproduce(described).unwrap();
        assert!(result.holds);
        assert_eq!(result.claims[0].verdict, Kind::ReproducedIf);
        assert_eq!(result.claims[0].why(), "1 < 2; if packet size; 2 < 3");
    }

    #[test]
    fn a_function_that_does_not_match_its_file_is_a_bug() {
        let judged = |claims: &[&str]| {
            let mut findings = Findings::default();
            claims.iter().for_each(|claim| findings.judge(claim, true, ""));
            findings
        };
        for (findings, says) in [
            (judged(&[]), "does not judge the claim `order`"),
            (judged(&["order", "order"]), "judges the claim `order` twice"),
            (judged(&["order", "other"]), "judges `other`"),
        ] {
            let error = reproduce(&["order"], findings, Vec::new()).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let mut findings = judged(&["order"]);
        findings.measure("delay", "QFQ", "s", Estimate::exact(1.0));
        let error = reproduce(&["order"], findings, vec![published("QFQ", "ms")]).unwrap_err();
        assert!(error.contains("measured in `s` but published in `ms`"), "{error}");
    }
}
