//! The kinds of verdict on a claim of a paper.

use fairgate::words;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::reproduce::description::Claim;
use crate::reproduce::findings::Verdict;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It was measured to hold as the paper states it, with the settings that the paper gives.
    Reproduced,
    /// The same, if a parameter that the paper does not give has the value that was chosen: [`Claim::open`].
    ReproducedIf,
    /// Our mean does not meet it, but a published value is that of a single run, and the interval in which a
    /// single run of ours is with a probability of 95 % contains it.
    WithinChance,
    /// It was not measured to hold: [`Claim::tried`].
    NotReproduced,
    /// There were too few data to judge it.
    NotJudged,
}

words!(Kind {
    "reproduced" => Kind::Reproduced,
    "reproduced if" => Kind::ReproducedIf,
    "within chance" => Kind::WithinChance,
    "not reproduced" => Kind::NotReproduced,
    "not judged" => Kind::NotJudged,
});

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        let word = String::deserialize(deserializer)?;
        Kind::of_word(&word).ok_or_else(|| D::Error::unknown_variant(&word, Kind::WORDS))
    }
}

impl Kind {
    pub(crate) fn of(claim: &Claim, verdict: &Verdict) -> Kind {
        match (verdict.is_judged, verdict.holds, verdict.chance) {
            (false, ..) => Kind::NotJudged,
            (true, true, _) if claim.open.is_empty() => Kind::Reproduced,
            (true, true, _) => Kind::ReproducedIf,
            (true, false, Some(_)) => Kind::WithinChance,
            (true, false, None) => Kind::NotReproduced,
        }
    }

    /// Returns whether the paper may be believed: it is one of the first three kinds.
    pub fn is_reproduced(self) -> bool {
        self <= Kind::WithinChance
    }

    /// Counts verdicts in words: `5 of 7: 3 reproduced, 1 reproduced if, 1 within chance`.
    pub fn count(kinds: &[Kind]) -> String {
        let of = |kind: Kind| kinds.iter().filter(|&&other| other == kind).count();
        let reproduced = kinds.iter().filter(|kind| kind.is_reproduced()).count();
        let parts: Vec<String> = (Kind::ALL.iter())
            .filter(|kind| kind.is_reproduced() && of(**kind) > 0)
            .map(|&kind| format!("{} {}", of(kind), kind.word()))
            .collect();
        let text = format!("{reproduced} of {}", kinds.len());
        match parts.is_empty() {
            true => text,
            false => format!("{text}: {}", parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(open: &[&str]) -> Claim {
        Claim {
            id: "a".into(),
            text: "a is stated".into(),
            open: open.iter().map(|&name| name.to_owned()).collect(),
            ours: None,
            tried: None,
            holds: Vec::new(),
        }
    }

    #[test]
    fn a_verdict_depends_on_the_measurement_and_on_what_the_paper_leaves_open() {
        let verdict = |holds, is_judged, chance| Verdict {
            claim: "a".into(),
            holds,
            is_judged,
            chance,
            found: String::new(),
        };
        for (open, verdict, kind) in [
            (&[][..], verdict(true, true, None), Kind::Reproduced),
            (&["packet size"], verdict(true, true, None), Kind::ReproducedIf),
            (
                &["packet size"],
                verdict(false, true, Some(1.2)),
                Kind::WithinChance,
            ),
            (&[], verdict(false, true, Some(1.2)), Kind::WithinChance),
            (&["packet size"], verdict(false, true, None), Kind::NotReproduced),
            (&[], verdict(false, false, None), Kind::NotJudged),
        ] {
            assert_eq!(Kind::of(&claim(open), &verdict), kind, "{open:?} {verdict:?}");
        }
    }

    #[test]
    fn counts_name_the_kinds_that_there_are() {
        assert_eq!(Kind::count(&[]), "0 of 0");
        assert_eq!(Kind::count(&[Kind::NotReproduced, Kind::NotJudged]), "0 of 2");
        let kinds = [
            Kind::ReproducedIf,
            Kind::NotReproduced,
            Kind::ReproducedIf,
            Kind::Reproduced,
        ];
        assert_eq!(Kind::count(&kinds), "3 of 4: 1 reproduced, 2 reproduced if");
    }
}
