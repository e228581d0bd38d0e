//! Verdicts on claims as a table in a file. A program writes them, so that they are those of a run.
//!
//! ```text
//! experiment,claim,verdict,found
//! qfq-fig9,,3 of 4: 3 reproduced,fairgate-lab reproduce qfq-fig9 --seeds 5 at commit 1a2b3c4
//! qfq-fig9,order,reproduced,"35, 114 and 182 instructions"
//! ```
//!
//! The first row of an experiment names no claim: it counts the claims that are reproduced, and names the
//! run. What was found is cut to a line: the result of a run has all of it. A
//! statement of ours follows the claim that it stands beside. `docs/experiments/verdicts.csv` has those of
//! this repository; the documentation site shows them.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::reproduce::kind::Kind;
use crate::reproduce::reproduction::Reproduction;

/// The greatest length of what was found, in characters.
const MOST: usize = 120;
const HEAD: [&str; 4] = ["experiment", "claim", "verdict", "found"];

/// A file is not a table of verdicts.
#[derive(Debug, Error)]
#[error("it is not a table of verdicts, which has the columns experiment, claim, verdict and found")]
pub struct NotVerdicts(#[source] Option<csv::Error>);

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictRow {
    /// The experiment: [`Reproduction::key`].
    pub experiment: String,
    /// The name of the claim, or of our statement; empty in the first row of an experiment.
    pub claim: String,
    /// The verdict in words: [`Kind::word`]. In the first row, how many claims are reproduced.
    pub verdict: String,
    /// The numbers by which it was judged. In the first row, the run.
    pub found: String,
}

/// A table of verdicts of several experiments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// The rows, those of an experiment side by side.
    pub rows: Vec<VerdictRow>,
}

impl Verdicts {
    /// Reads the table. An empty text is a table without rows.
    ///
    /// # Errors
    /// Returns an error if the text has other columns.
    pub fn parse(text: &str) -> Result<Verdicts, NotVerdicts> {
        if text.is_empty() {
            return Ok(Verdicts::default());
        }
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        if reader.headers().map_err(|error| NotVerdicts(Some(error)))? != HEAD.as_slice() {
            return Err(NotVerdicts(None));
        }
        let rows = reader.deserialize().collect::<Result<_, _>>();
        let rows = rows.map_err(|error| NotVerdicts(Some(error)))?;
        Ok(Verdicts { rows })
    }

    /// Puts the verdicts of a result into the place of those of an earlier run, or at the end. `run` says
    /// what the run was: its command, and the version of the code.
    pub fn insert(&mut self, result: &Reproduction, run: &str) {
        let key = result.key();
        let place = self.rows.iter().position(|row| row.experiment == key);
        self.rows.retain(|row| row.experiment != key);
        let place = place.unwrap_or(self.rows.len());
        let row = |claim: &str, verdict: &str, found: &str| VerdictRow {
            experiment: key.clone(),
            claim: claim.to_owned(),
            verdict: verdict.to_owned(),
            found: line(found),
        };
        let mut rows = vec![row("", &Kind::count(&result.kinds()), run)];
        for claim in &result.claims {
            rows.push(row(&claim.id, claim.verdict.word(), &claim.why()));
            let beside = claim.instead.iter();
            rows.extend(beside.map(|ours| row(&ours.id, ours.verdict(), &ours.found)));
        }
        self.rows.splice(place..place, rows);
    }

    /// Returns the table as CSV.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new()
            .has_headers(false)
            .from_writer(Vec::new());
        let written = std::iter::once(writer.write_record(HEAD))
            .chain(self.rows.iter().map(|row| writer.serialize(row)))
            .collect::<Result<(), _>>();
        written.expect("memory takes the rows, which have the same number of fields");
        let bytes = writer.into_inner().expect("memory takes the rows");
        String::from_utf8(bytes).expect("the fields are text")
    }
}

/// Returns a text as one line of at most [`MOST`] characters. It ends behind a part, if that leaves more than
/// half of the line, and an ellipsis stands for the others.
fn line(text: &str) -> String {
    const MORE: &str = " …";
    let text = text.replace('\n', " ");
    if text.chars().count() <= MOST {
        return text;
    }
    let most: usize = text.chars().take(MOST - 2).map(char::len_utf8).sum();
    let cut = &text[..most];
    let end = ["; ", ", ", " "]
        .into_iter()
        .find_map(|mark| cut.rfind(mark).filter(|&end| end > most / 2));
    format!("{}{MORE}", &cut[..end.unwrap_or(most)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::description::{Claim, Description, Instead};
    use crate::reproduce::findings::Findings;

    fn result() -> Reproduction {
        let claim = |id: &str| Claim {
            id: id.into(),
            text: format!("{id} is stated"),
            open: Vec::new(),
            ours: None,
            tried: None,
            holds: Vec::new(),
        };
        let description = Description {
            paper: "qfq".into(),
            place: "Table II".into(),
            title: "Delays".into(),
            about: "About.".into(),
            open: Vec::new(),
            claims: vec![claim("a"), claim("b")],
            instead: vec![Instead {
                claim: "b".into(),
                id: "ours".into(),
                text: "another formula".into(),
                holds: Vec::new(),
            }],
        };
        let mut findings = Findings::default();
        findings.judge("a", true, "1,5 < 2");
        findings.judge("b", false, "3 > 2");
        findings.judge("ours", true, "1 < 3");
        Reproduction::new("b1", description, &[1], false, findings, Vec::new()).unwrap()
    }

    #[test]
    fn verdicts_replace_those_of_an_earlier_run_and_nothing_else() {
        let old = "experiment,claim,verdict,found\na1,,1 of 1: 1 reproduced,run a1\na1,x,reproduced,1\n\
                   b1,,0 of 1,old\nb1,gone,not reproduced,2\nc1,,0 of 0,run c1\n";
        let new = "experiment,claim,verdict,found\na1,,1 of 1: 1 reproduced,run a1\na1,x,reproduced,1\n\
                   b1,,1 of 2: 1 reproduced,run b1\nb1,a,reproduced,\"1,5 < 2\"\nb1,b,not reproduced,3 > 2\n\
                   b1,ours,so,1 < 3\n\
                   c1,,0 of 0,run c1\n";
        let mut verdicts = Verdicts::parse(old).unwrap();
        verdicts.insert(&result(), "run b1");
        assert_eq!(verdicts.to_csv(), new);
        // The second run of the same gives the same.
        let mut again = Verdicts::parse(new).unwrap();
        again.insert(&result(), "run b1");
        assert_eq!(again, verdicts);
    }

    #[test]
    fn what_was_found_is_cut_behind_a_part() {
        assert_eq!(line("1 < 2;\n3 < 4"), "1 < 2; 3 < 4");
        let long = format!("{}; {}", "a".repeat(60), "b".repeat(60));
        assert_eq!(line(&long), format!("{} …", "a".repeat(60)));
        let short_first = format!("if so; {}", "b ".repeat(80));
        assert!(line(&short_first).chars().count() > MOST / 2);
        assert_eq!(line(&"ä".repeat(200)).chars().count(), MOST);
        let full = "a".repeat(MOST);
        assert_eq!(line(&full), full);
    }

    #[test]
    fn an_empty_file_becomes_a_table() {
        let mut verdicts = Verdicts::parse("").unwrap();
        verdicts.insert(&result(), "run b1");
        assert_eq!(verdicts.rows.len(), 4);
        assert_eq!(Verdicts::parse(&verdicts.to_csv()).unwrap(), verdicts);
    }

    #[test]
    fn another_text_is_an_error() {
        for text in [
            "# Verdicts\n",
            "a,b,c,d\n",
            "experiment,claim,verdict,found\nb1,a\n",
        ] {
            let error = Verdicts::parse(text).unwrap_err();
            assert!(error.to_string().contains("not a table of verdicts"), "{error}");
        }
    }
}
