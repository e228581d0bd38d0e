//! The tables of verdicts in `docs/reproduce.md` are those of the experiments.

use fairgate_evidence::reproduce::{Conditions, EXPERIMENTS, Experiment, find_verdicts};

/// What stands in the place of an experiment of which no full run is recorded.
const NOT_RUN: &str = "No run is recorded: `make verdicts` makes one.";

const DOCUMENT: &str = include_str!("../../../../docs/reproduce.md");

/// Without a run there are no counts. Otherwise each table has the claims of its experiment and our
/// statements beside them, in their order, and counts the claims that hold. Verdicts and figures are those of
/// the run that the table names.
#[test]
fn every_experiment_has_a_table_of_its_claims() {
    for experiment in EXPERIMENTS {
        check_table(experiment, false);
        if experiment.can_run_live().expect("the file is valid") {
            check_table(experiment, true);
        }
    }
}

/// Checks the table of an experiment, or of its live runs.
fn check_table(experiment: &Experiment, is_live: bool) {
    let id = experiment.id.as_ref();
    let key = if is_live {
        format!("{id} live")
    } else {
        id.to_owned()
    };
    let description = experiment.description().expect("the file is valid");
    let (_, text) = find_verdicts(DOCUMENT, &key).unwrap_or_else(|error| panic!("{error}"));
    if text.trim() == NOT_RUN {
        return;
    }
    assert!(
        text.contains(&format!("`fairgate-lab reproduce {id} --seeds ")) && text.contains(" at commit "),
        "{key}: no command and commit; `make verdicts` writes them"
    );
    assert_eq!(text.contains(" --live"), is_live, "{key}");
    assert!(
        !text.contains("--quick"),
        "{id}: the verdicts are those of a short run"
    );
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows: Vec<(&str, &str)> = rows
        .map(|row| {
            let mut cells = row.trim_matches('|').split(" | ");
            let mut next = || cells.next().unwrap_or_default().trim();
            (next(), next())
        })
        .collect();
    let mut expected = Vec::new();
    for claim in &description.claims {
        expected.push(claim.text.as_str());
        let beside = description.instead.iter().filter(|ours| ours.claim == claim.id);
        expected.extend(beside.map(|ours| ours.text.as_str()));
    }
    let texts: Vec<&str> = rows.iter().map(|row| row.1).collect();
    assert_eq!(
        texts, expected,
        "{id}: the table has other claims; `make verdicts` writes it again"
    );
    let held = rows.iter().filter(|row| row.0 == "holds").count();
    let count = format!(
        "\n{held} of {} claims hold in the run of\n",
        description.claims.len()
    );
    assert!(
        text.starts_with(&count),
        "{id}: not {count:?}, but {:?}",
        text.lines().nth(1)
    );
}

/// The experiment of a user's own that the document shows runs, and its claim holds.
#[test]
fn the_example_of_an_own_experiment_runs() {
    let (_, text) = DOCUMENT.split_once("```toml\n").expect("there is an example");
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
