//! `docs/reproduce.md` and `docs/experiments/verdicts.csv` are those of the experiments.

use fairgate_evidence::reproduce::{Conditions, EXPERIMENTS, Experiment, Kind, VerdictRow, Verdicts};

const OVERVIEW: &str = include_str!("../../../../docs/reproduce.md");
const OWN: &str = include_str!("../../../../docs/experiments/own.md");
const VERDICTS: &str = include_str!("../../../../docs/experiments/verdicts.csv");

/// A full run has the claims of its experiment and our statements beside them, in their order, and counts the
/// kinds of verdict. The overview has the same counts, none if no run is recorded, and the total.
#[test]
fn verdicts_are_those_of_the_claims() {
    let verdicts = Verdicts::parse(VERDICTS).expect("it is a table");
    let mut rows = verdicts.rows.as_slice();
    let mut recorded = Vec::new();
    let mut all = Vec::new();
    while let [first, others @ ..] = rows {
        let length = others.iter().take_while(|row| !row.claim.is_empty()).count();
        let (claims, rest) = others.split_at(length);
        all.extend(check_run(first, claims));
        recorded.push(first);
        rows = rest;
    }
    let count = |key: &str| {
        let mut runs = recorded.iter().filter(|run| run.experiment == key);
        let count = runs.next().map(|run| run.verdict.as_str());
        assert!(runs.next().is_none(), "two runs of {key}");
        count.unwrap_or_default()
    };
    let shown: Vec<_> = (OVERVIEW.lines().filter(|line| line.starts_with("| [")))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" |").map(str::trim).collect();
            let [name, _, _, simulated, live, _] = cells[..] else {
                panic!("six columns: {line}");
            };
            let length = |cell: &&str| cell.split("](").next().map_or(0, |text| text.chars().count());
            assert!(
                cells.iter().all(|cell| length(cell) <= 120),
                "a long cell: {line}"
            );
            let id = name.trim_start_matches('[').split(']').next().unwrap_or_default();
            (id, simulated, live)
        })
        .collect();
    let expected: Vec<_> = (EXPERIMENTS.iter().map(|experiment| &*experiment.id))
        .map(|id| (id, count(id), count(&format!("{id} live"))))
        .collect();
    assert_eq!(shown, expected);
    let part = all.iter().filter(|kind| kind.is_reproduced()).count() as f64 / all.len() as f64;
    let total = format!("**{}** ({:.0} %)", Kind::count(&all), 100.0 * part);
    assert!(OVERVIEW.contains(&total), "it does not say {total}");
}

/// Checks the rows of a run: the first one, and those of the claims. Returns the verdicts on the claims.
fn check_run(first: &VerdictRow, claims: &[VerdictRow]) -> Vec<Kind> {
    let key = first.experiment.as_str();
    let id = key.strip_suffix(" live").unwrap_or(key);
    let experiment = fairgate_evidence::reproduce::find(id).unwrap_or_else(|| panic!("no experiment {id}"));
    let is_live = key != id;
    // Older runs were made when `fairgate` had this command.
    let begins = format!("reproduce {id} --seeds ");
    assert!(
        first.claim.is_empty() && first.found.contains(&begins) && first.found.contains(" at commit "),
        "{first:?}: `make verdicts` names command and commit"
    );
    assert_eq!(first.found.contains(" --live"), is_live, "{first:?}");
    assert!(!first.found.contains("--quick"), "{first:?}");
    assert!(
        !is_live || experiment.can_run_live().expect("the file is valid"),
        "{key}"
    );
    let description = experiment.description().expect("the file is valid");
    let mut expected = Vec::new();
    for claim in &description.claims {
        expected.push(claim.id.as_str());
        let beside = description.instead.iter().filter(|ours| ours.claim == claim.id);
        expected.extend(beside.map(|ours| ours.id.as_str()));
    }
    let named: Vec<&str> = claims.iter().map(|row| row.claim.as_str()).collect();
    assert_eq!(
        named, expected,
        "{key}: other claims; `make verdicts` judges them again"
    );
    assert!(claims.iter().all(|row| row.experiment == key), "{key}");
    let verdict = |id: &str| {
        let row = claims
            .iter()
            .find(|row| row.claim == id)
            .expect("it is named above");
        Kind::of_word(&row.verdict).unwrap_or_else(|| panic!("{key}, {id}: {}", row.verdict))
    };
    let kinds: Vec<Kind> = (description.claims.iter())
        .map(|claim| verdict(&claim.id))
        .collect();
    assert_eq!(first.verdict, Kind::count(&kinds), "{key}");
    for (claim, kind) in description.claims.iter().zip(&kinds) {
        // What was tried in simulation is what can be tried.
        let says = is_live || *kind != Kind::NotReproduced || claim.tried.is_some();
        assert!(says, "{key}, {}: say in `tried` what was tried", claim.id);
    }
    kinds
}

/// The experiment of a user's own that the document shows runs, and its claim holds.
#[test]
fn the_example_of_an_own_experiment_runs() {
    let (_, text) = OWN.split_once("```toml\n").expect("there is an example");
    let (text, _) = text.split_once("```").expect("the example ends");
    let experiment = Experiment::from_text("mine", "mine.toml", text.to_owned(), None).unwrap();
    let conditions = Conditions {
        seeds: &[1],
        quick: false,
        progress: &|_, _| (),
        count: None,
        live: None,
    };
    let result = experiment.reproduce(conditions).unwrap();
    assert!(result.holds, "{:?}", result.claims);
    assert_eq!(result.figures.len(), 1);
}
