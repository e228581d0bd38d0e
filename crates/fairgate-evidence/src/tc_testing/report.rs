//! Tables and findings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::tc_testing::cases::Case;
use crate::tc_testing::reasons::Reasons;
use crate::tc_testing::verdict::{Command, Shown, Verdict};

/// The findings of all cases.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Whether everything about each case is printed.
    tells_all: bool,
    files: BTreeMap<(String, String), Counts>,
    /// What is neither right nor explained.
    open: Vec<String>,
    /// Files that are left out, with the reason.
    left_out: BTreeMap<(String, String), (usize, String)>,
    /// Cases with a reason, and how many have it.
    explained: BTreeMap<String, usize>,
    /// The numbers of all cases.
    known: BTreeSet<String>,
    /// Cases that are met, and have a reason.
    stale: Vec<String>,
    /// Numbers in the list that this tree has no case for.
    unknown: Vec<String>,
    /// Reasons that no case of this tree needs.
    unused: Vec<String>,
}

/// The counts of a file.
#[derive(Debug, Default)]
struct Counts {
    cases: usize,
    /// Commands that must be accepted, and the ones that are.
    accepted: Ratio,
    /// Commands that must be refused, and the ones that are.
    refused: Ratio,
    /// Patterns that could be compared, and the ones that match.
    matched: Ratio,
    explained: usize,
    open: usize,
}

impl Counts {
    fn add_all(&mut self, other: &Counts) {
        self.cases += other.cases;
        self.accepted.add_all(&other.accepted);
        self.refused.add_all(&other.refused);
        self.matched.add_all(&other.matched);
        self.explained += other.explained;
        self.open += other.open;
    }
}

#[derive(Debug, Default)]
struct Ratio {
    good: usize,
    all: usize,
}

impl Ratio {
    fn add(&mut self, is_good: bool) {
        self.all += 1;
        self.good += usize::from(is_good);
    }

    fn add_all(&mut self, other: &Ratio) {
        self.good += other.good;
        self.all += other.all;
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.good, self.all))
    }
}

impl Report {
    pub(crate) fn new(tells_all: bool) -> Report {
        Report {
            tells_all,
            ..Report::default()
        }
    }

    /// Adds the verdict on a case.
    pub(crate) fn add(&mut self, case: &Case, verdict: Verdict, reasons: &Reasons) {
        let place = (case.folder.clone(), case.file.clone());
        self.known.insert(case.id.clone());
        if let Some(why) = reasons.of_file(case) {
            let left_out = self.left_out.entry(place).or_insert_with(|| (0, why.to_owned()));
            left_out.0 += 1;
            return;
        }
        let counts = self.files.entry(place).or_default();
        counts.cases += 1;
        let is_right = matches!(verdict.command, Command::AsExpected);
        match verdict.must_be_accepted {
            true => counts.accepted.add(is_right),
            false => counts.refused.add(is_right),
        }
        counts.matched.add(matches!(verdict.shown, Shown::Matches));
        let reason = reasons.of(case, &verdict);
        match (verdict.is_good(), reason) {
            (true, _) if reasons.of_case(case).is_some() => self.stale.push(case.id.clone()),
            (true, _) => {}
            (false, Some(why)) => {
                counts.explained += 1;
                *self.explained.entry(why.to_owned()).or_default() += 1;
            }
            (false, None) => counts.open += 1,
        }
        if !verdict.is_good() && reason.is_none() || self.tells_all {
            self.open.push(told(case, &verdict, self.tells_all));
        }
    }

    /// Finds reasons for cases that this tree does not have, and reasons that none of its cases needs. Trees
    /// differ from release to release.
    pub(crate) fn check(&mut self, reasons: &Reasons) {
        self.unknown = reasons.without_case(&self.known).map(str::to_owned).collect();
        let left_out = self.left_out.values().map(|(_, why)| why);
        let used: BTreeSet<&String> = self.explained.keys().chain(left_out).collect();
        let unused = reasons.all().iter().filter(|why| !used.contains(why));
        self.unused = unused.cloned().collect();
    }

    /// Whether every case is right or explained.
    pub(crate) fn is_good(&self) -> bool {
        self.files.values().all(|counts| counts.open == 0) && self.stale.is_empty()
    }
}

/// Returns what is known about a case.
fn told(case: &Case, verdict: &Verdict, tells_all: bool) -> String {
    let what = match (&verdict.command, &verdict.shown) {
        (Command::WronglyAccepted, _) => "accepted, but the kernel refuses it".to_owned(),
        (Command::WronglyRefused(why), _) => format!("refused: {why}"),
        (Command::NotPrepared(command, why), _) => format!("not prepared: {command}: {why}"),
        (Command::Foreign, _) => "no command of tc".to_owned(),
        (Command::AsExpected, Shown::Differs(output, wrong)) => {
            format!("shown otherwise: {wrong}\n--- shown:\n{output}---")
        }
        (Command::AsExpected, Shown::Hidden(object)) => format!("`{object}` is not shown"),
        (Command::AsExpected, _) => "as expected".to_owned(),
    };
    let mut text = format!("{}/{} {}: {}\n", case.folder, case.file, case.id, case.name);
    if tells_all {
        for (command, _) in &case.setup {
            text += &format!("    {command}\n");
        }
    }
    text += &format!("    {}\n    {}\n", case.command, what.replace('\n', "\n    "));
    text
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for open in &self.open {
            writeln!(f, "{open}")?;
        }
        let title = [
            "FILE",
            "CASES",
            "ACCEPTED",
            "REFUSED",
            "SHOWN",
            "EXPLAINED",
            "OPEN",
        ];
        let [file, cases, accepted, refused, matched, explained, open] = title;
        writeln!(
            f,
            "{file:<24}{cases:>6}{accepted:>10}{refused:>10}{matched:>10}{explained:>11}{open:>6}"
        )?;
        let mut all = Counts::default();
        let line = |f: &mut fmt::Formatter<'_>, name: &str, counts: &Counts| {
            let Counts {
                cases,
                accepted,
                refused,
                matched,
                explained,
                open,
            } = counts;
            writeln!(
                f,
                "{name:<24}{cases:>6}{accepted:>10}{refused:>10}{matched:>10}{explained:>11}{open:>6}"
            )
        };
        let mut folders: BTreeMap<&str, Counts> = BTreeMap::new();
        for ((folder, file), counts) in &self.files {
            line(f, &format!("{folder}/{file}"), counts)?;
            folders.entry(folder).or_default().add_all(counts);
            all.add_all(counts);
        }
        for (folder, counts) in &folders {
            line(f, &format!("all {folder}"), counts)?;
        }
        line(f, "all", &all)?;
        for (why, cases) in &self.explained {
            writeln!(f, "{cases:>5} explained: {why}")?;
        }
        for ((folder, file), (cases, why)) in &self.left_out {
            writeln!(f, "{cases:>5} left out: {folder}/{file}: {why}")?;
        }
        for case in &self.stale {
            writeln!(
                f,
                "the reason of case {case} is not needed: remove it from reasons.toml"
            )?;
        }
        for why in &self.unused {
            writeln!(f, "no case of this tree needs this reason: {why}")?;
        }
        if !self.unknown.is_empty() {
            writeln!(f, "this tree has no case {}", self.unknown.join(", "))?;
        }
        Ok(())
    }
}
