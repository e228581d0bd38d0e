//! Tables of verdicts in a Markdown document. A program writes them, so that they are those of a run.
//!
//! A document has a place for each experiment, between two comments:
//!
//! ```text
//! <!-- verdicts of qfq-fig9 -->
//! ...
//! <!-- end of verdicts -->
//! ```

use std::fmt::Write;

use thiserror::Error;

use crate::reproduce::reproduction::Reproduction;

const END: &str = "<!-- end of verdicts -->";

/// The document has no place for the verdicts.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no place for the verdicts of {id}; it is between the lines `{start}` and `{END}`")]
pub struct NoPlace {
    /// The experiment.
    pub id: String,
    /// The line that is missing, or that no last line follows.
    pub start: String,
}

/// Returns the text between the comments of experiment `id`, and where it is in the document.
///
/// # Errors
/// Returns an error if the document has no place for it.
pub fn find_verdicts<'a>(document: &'a str, id: &str) -> Result<(std::ops::Range<usize>, &'a str), NoPlace> {
    let start = format!("<!-- verdicts of {id} -->");
    let place = document.find(&start).and_then(|at| {
        let from = at + start.len();
        let to = from + document[from..].find(END)?;
        // Another experiment's place must not begin before this one ends.
        (!document[from..to].contains("<!-- verdicts of ")).then_some(from..to)
    });
    let place = place.ok_or_else(|| NoPlace {
        id: id.to_owned(),
        start,
    })?;
    Ok((place.clone(), &document[place]))
}

impl Reproduction {
    /// Returns the document with the verdicts of this run in their place. `origin` says what the run was: its
    /// command, and the version of the code.
    ///
    /// # Errors
    /// Returns an error if the document has no place for them.
    pub fn insert_verdicts(&self, document: &str, origin: &str) -> Result<String, NoPlace> {
        let (place, _) = find_verdicts(document, &self.key())?;
        let (before, after) = (&document[..place.start], &document[place.end..]);
        Ok(format!("{before}\n{}{after}", self.verdicts(origin)))
    }

    /// Returns the verdicts as Markdown: how many claims hold, and a table with each claim, followed by our
    /// statements beside it.
    pub fn verdicts(&self, origin: &str) -> String {
        let held = self.claims.iter().filter(|claim| claim.holds).count();
        let mut text = format!(
            "{held} of {} claims hold in the run of\n`{origin}`:\n\n| verdict | claim | found |\n\
             |---|---|---|\n",
            self.claims.len()
        );
        let mut row = |verdict: &str, statement: &str, found: &str| {
            let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(text, "| {verdict} | {} | {} |", cell(statement), cell(found));
        };
        for claim in &self.claims {
            let verdict = match claim.holds {
                true => claim.verdict().to_owned(),
                false => format!("**{}**", claim.verdict()),
            };
            row(&verdict, &claim.text, &claim.found);
            for ours in &claim.instead {
                row(&format!("*instead, {}*", ours.verdict()), &ours.text, &ours.found);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::description::{Claim, Description, Instead};
    use crate::reproduce::findings::Findings;

    fn result() -> Reproduction {
        let claim = |id: &str| Claim {
            id: id.into(),
            text: format!("{id} | is stated"),
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
        findings.judge("a", true, "1 < 2");
        findings.judge("b", false, "3 > 2");
        findings.judge("ours", true, "1 < 3");
        Reproduction::new("b1", description, &[1], false, findings, Vec::new()).unwrap()
    }

    #[test]
    fn verdicts_replace_those_of_an_earlier_run_and_nothing_else() {
        let old = "A\n<!-- verdicts of a1 -->\n1\n<!-- end of verdicts -->\n\
                   <!-- verdicts of b1 -->\nold\n<!-- end of verdicts -->\nZ\n";
        let new = result().insert_verdicts(old, "run b1").unwrap();
        let (before, rest) = new.split_once("<!-- verdicts of b1 -->\n").unwrap();
        assert!(before.starts_with("A\n<!-- verdicts of a1 -->\n1\n"), "{before}");
        let table = rest.strip_suffix("<!-- end of verdicts -->\nZ\n").unwrap();
        assert_eq!(
            table,
            "1 of 2 claims hold in the run of\n`run b1`:\n\n| verdict | claim | found |\n|---|---|---|\n\
             | holds | a \\| is stated | 1 < 2 |\n| **does not hold** | b \\| is stated | 3 > 2 |\n\
             | *instead, so* | another formula | 1 < 3 |\n"
        );
        // The second run of the same gives the same.
        assert_eq!(result().insert_verdicts(&new, "run b1").unwrap(), new);
    }

    #[test]
    fn a_document_without_a_place_is_an_error() {
        for document in [
            "",
            "<!-- verdicts of b1 -->\n",
            "<!-- verdicts of b1 -->\n<!-- verdicts of c1 -->\n<!-- end of verdicts -->\n",
        ] {
            let error = result().insert_verdicts(document, "").unwrap_err();
            assert!(
                error.to_string().contains("no place for the verdicts of b1"),
                "{error}"
            );
        }
    }
}
