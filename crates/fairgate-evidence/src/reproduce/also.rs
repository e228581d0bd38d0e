//! Other disciplines beside those of an experiment: `--also cake,dualpi2`.
//!
//! A dimension whose cases replace queues by disciplines gets one more case for each of them. It is measured
//! and drawn like the others, and no claim is judged by it. A discipline has its defaults, and the `limit` of
//! the first case that replaces queues, if it has such a parameter.

use fairgate::registry::Registry;
use fairgate_config::{Document, FileError};
use toml::{Table, Value};

/// Returns the text of an experiment's file with these disciplines beside its own.
///
/// # Errors
/// Returns an error if no dimension of the file replaces queues.
pub(crate) fn with(document: &Document, disciplines: &[String]) -> Result<String, FileError> {
    let mut table: Table = toml::from_str(document.text()).expect("the file was parsed before");
    let Some((cases, queues)) = dimension(&mut table) else {
        return Err(document.error(
            0..0,
            "no dimension of this experiment is about disciplines, so that none can stand beside them",
            "leave out `--also`; a case of such a dimension sets queue.NAME to a discipline",
        ));
    };
    for discipline in disciplines {
        let mut set = Table::new();
        for (path, limit) in &queues {
            let mut queue = Table::new();
            queue.insert("discipline".to_owned(), discipline.clone().into());
            if let Some(limit) = limit.as_ref().filter(|_| has_limit(discipline)) {
                queue.insert("limit".to_owned(), limit.clone());
            }
            set.insert(path.clone(), queue.into());
        }
        let mut case = Table::new();
        case.insert("name".to_owned(), discipline.clone().into());
        case.insert("beside".to_owned(), true.into());
        case.insert("set".to_owned(), set.into());
        cases.push(case.into());
    }
    Ok(toml::to_string(&table).expect("a table that was read can be written"))
}

/// The queues that a case replaces, by their paths, each with its `limit`.
type Queues = Vec<(String, Option<Value>)>;

/// Returns the cases of the first dimension with a case that replaces queues, and these queues.
fn dimension(table: &mut Table) -> Option<(&mut Vec<Value>, Queues)> {
    let dimensions = table
        .get_mut("experiment")?
        .get_mut("dimension")?
        .as_array_mut()?;
    for dimension in dimensions {
        let Some(cases) = dimension.get_mut("cases").and_then(Value::as_array_mut) else {
            continue;
        };
        if let Some(queues) = cases.iter().find_map(replaced) {
            return Some((cases, queues));
        }
    }
    None
}

fn replaced(case: &Value) -> Option<Queues> {
    let set = case.get("set")?.as_table()?;
    let discipline = |(path, value): (&String, &Value)| {
        let is_queue = path.starts_with("queue.") && value.get("discipline").is_some();
        is_queue.then(|| (path.clone(), value.get("limit").cloned()))
    };
    let queues: Queues = set.iter().filter_map(discipline).collect();
    (!queues.is_empty()).then_some(queues)
}

fn has_limit(discipline: &str) -> bool {
    let registry = Registry::builtin();
    let mut entries = registry.entries(discipline);
    entries.any(|entry| {
        entry
            .parameters()
            .iter()
            .any(|parameter| parameter.name == "limit")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Document {
        Document::parse("test.toml", text).expect("it is TOML")
    }

    #[test]
    fn a_discipline_takes_the_place_of_the_queues_and_their_limit() {
        let document = parse(
            r#"
[[experiment.dimension]]
name = "load"
cases = [{ name = "low", set = { "simulate.duration" = "1s" } }]
[[experiment.dimension]]
name = "queue"
[[experiment.dimension.cases]]
name = "ours"
[[experiment.dimension.cases]]
name = "fifo"
set."queue.up" = { discipline = "fifo", limit = 50 }
set."queue.down" = { discipline = "fifo" }
"#,
        );
        let text = with(&document, &["dualpi2".to_owned(), "cake".to_owned()]).expect("there is a dimension");
        let table: Table = toml::from_str(&text).expect("it is TOML");
        let dimensions = table["experiment"]["dimension"].as_array().expect("two");
        assert_eq!(dimensions[0]["cases"].as_array().map(Vec::len), Some(1));
        let cases = dimensions[1]["cases"].as_array().expect("a list");
        let set = |case: usize, queue: &str| cases[case]["set"][queue].clone();
        assert_eq!(cases.len(), 4);
        assert_eq!(set(2, "queue.up")["limit"].as_integer(), Some(50));
        assert_eq!(set(2, "queue.down").get("limit"), None);
        // CAKE has a limit of memory only.
        assert_eq!(set(3, "queue.up").get("limit"), None);
        assert_eq!(cases[3]["beside"].as_bool(), Some(true));
    }

    #[test]
    fn an_experiment_without_a_choice_of_disciplines_refuses() {
        let document = parse("[experiment]\ntitle = \"x\"\n[queue.line]\ndiscipline = \"fifo\"\n");
        let error = with(&document, &["cake".to_owned()]).expect_err("there is no dimension");
        assert!(error.to_string().contains("no dimension"), "{error}");
    }
}
