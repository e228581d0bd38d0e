//! `fairgate diff`: how the trees of a run differ from those of a file.

use std::path::PathBuf;

use fairgate_config::Registry;
use fairgate_live::Plan;
use fairgate_run_api::{QUEUE, TreeStatus};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;
use toml::{Table, Value};

use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed};
use crate::subscribers::{self, QUEUES};

/// Compare the trees of a run with those of a file: what a reload would change
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate diff home.toml           the only run of this machine, beside this file
  fairgate diff home.toml --socket /run/fairgate/home.sock
  fairgate diff home.toml --api https://router:8443 --token-file token    a run on another machine
  fairgate diff home.toml --json    for a script; exit code 1 if something differs

The run has what was changed by hand and by the API since it has read its file. It also has the classes and
filters of reservations, which a reload keeps. What was set is compared, in the file's words. The trees of a
list of subscribers and the other keys of [run] are not compared.")]
pub(crate) struct Args {
    /// The file of the run
    file: PathBuf,

    #[command(flatten)]
    run: RunArgs,
}

/// `fairgate.diff/1`.
#[derive(Serialize)]
struct Compared {
    /// The revision of the trees of the run.
    revision: u64,
    differences: Vec<Difference>,
    /// The trees that were not compared: those of a list of subscribers.
    left_out: Vec<String>,
}

/// A setting that differs.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Difference {
    /// The interface that the direction receives from.
    from: String,
    /// The setting, as in the table of the tree in the file: `class.20.rate`, `filter[2]`.
    key: String,
    /// What the run has, in TOML. None if it is not set.
    running: Option<String>,
    /// What the file has.
    file: Option<String>,
}

#[derive(Debug, Error, Diagnostic)]
#[error("the run is between {run}, but the file is for {file}")]
#[diagnostic(help("give the file of this run, or choose the run: --socket PATH"))]
struct OtherInterfaces {
    run: String,
    file: String,
}

pub(crate) fn run(args: &Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let document = document::read(&args.file, registry)?;
    let (document, list) = subscribers::added_to(document, None, registry, &input::Texts::default())?;
    let plan = Plan::read(&document)?;
    let run = args.run.find()?;
    let trees = run.trees().map_err(failed(&run))?;
    let of_file = plan.ends.each_ref().map(|end| end.title().to_owned());
    let of_run: Vec<String> = trees.directions.iter().map(|tree| tree.from.clone()).collect();
    if of_run != of_file {
        return Err(OtherInterfaces {
            run: of_run.join(" and "),
            file: of_file.join(" and "),
        }
        .into());
    }
    let mut compared = Compared {
        revision: trees.revision,
        differences: Vec::new(),
        left_out: Vec::new(),
    };
    for (side, running) in trees.directions.iter().enumerate() {
        let name = plan.queue_names[side].as_deref();
        match name.filter(|name| list.is_some() && QUEUES.contains(name)) {
            Some(name) => compared.left_out.push(name.to_owned()),
            None => compared.add(running, &plan.queues[side].to_toml(QUEUE)),
        }
    }
    match format {
        Format::Json => output::json("diff", &compared)?,
        Format::Text => output::text(&text(&compared))?,
    }
    Ok(match compared.differences.is_empty() {
        true => Outcome::Yes,
        false => Outcome::No,
    })
}

impl Compared {
    /// Compares the trees of a direction, both as `[queue.tree]` of a file.
    fn add(&mut self, running: &TreeStatus, file: &str) {
        let mut found = Vec::new();
        compare("", Some(&tree(&running.queue)), Some(&tree(file)), &mut found);
        let difference = |(key, [running_value, file]): (String, [Option<String>; 2])| Difference {
            from: running.from.clone(),
            key,
            running: running_value,
            file,
        };
        self.differences.extend(found.into_iter().map(difference));
    }
}

/// Reads `[queue.tree]`. It is a table: a run or this program has written it.
fn tree(toml: &str) -> Value {
    let mut queues: Table = toml.parse().unwrap_or_default();
    let trees = queues.get_mut("queue").and_then(Value::as_table_mut);
    let tree = trees.and_then(|trees| trees.remove(QUEUE));
    tree.unwrap_or_else(|| Value::Table(Table::new()))
}

/// The key of a class's number.
const NUMBER: &str = "id";

type Found = Vec<(String, [Option<String>; 2])>;

/// Compares what two trees have at a key. Tables are compared by their keys, classes by their numbers, and
/// other lists of tables behind what both begin with and before what both end with: an inserted filter is one
/// difference.
fn compare(key: &str, running: Option<&Value>, file: Option<&Value>, found: &mut Found) {
    let below = |name: &dyn std::fmt::Display| match key {
        "" => name.to_string(),
        _ => format!("{key}.{name}"),
    };
    match (running, file) {
        (running, file) if running == file => {}
        (Some(Value::Table(running)), Some(Value::Table(file))) => {
            let only_in_file = file.keys().filter(|name| !running.contains_key(*name));
            for name in running.keys().chain(only_in_file) {
                compare(&below(name), running.get(name), file.get(name), found);
            }
        }
        (Some(Value::Array(running)), Some(Value::Array(file))) if running.iter().all(Value::is_table) => {
            if let (Some(running), Some(file)) = (by_number(running), by_number(file)) {
                compare(
                    key,
                    Some(&Value::Table(running)),
                    Some(&Value::Table(file)),
                    found,
                );
                return;
            }
            let pairs = running.iter().zip(file);
            let first = pairs.take_while(|(one, other)| one == other).count();
            let (running, file) = (&running[first..], &file[first..]);
            let pairs = running.iter().rev().zip(file.iter().rev());
            let last = pairs.take_while(|(one, other)| one == other).count();
            let (running, file) = (&running[..running.len() - last], &file[..file.len() - last]);
            for index in 0..running.len().max(file.len()) {
                let key = format!("{key}[{}]", first + index + 1);
                compare_whole(key, running.get(index), file.get(index), found);
            }
        }
        (running, file) => compare_whole(key.to_owned(), running, file, found),
    }
}

/// Returns classes by their numbers. None if the list is one of other tables, or a number is there twice.
fn by_number(list: &[Value]) -> Option<Table> {
    let mut classes = Table::new();
    for class in list {
        let number = class.get(NUMBER)?.as_integer()?;
        if classes.insert(number.to_string(), class.clone()).is_some() {
            return None;
        }
    }
    Some(classes)
}

fn compare_whole(key: String, running: Option<&Value>, file: Option<&Value>, found: &mut Found) {
    if running != file {
        let text = |value: Option<&Value>| value.map(ToString::to_string);
        found.push((key, [text(running), text(file)]));
    }
}

/// Returns the differences as a table.
fn text(compared: &Compared) -> String {
    let mut table = output::table(["from", "setting", "run", "file"]);
    for difference in &compared.differences {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        table.add_row([
            difference.from.clone(),
            difference.key.clone(),
            value(&difference.running),
            value(&difference.file),
        ]);
    }
    let mut text = match table.is_empty() {
        true => "The trees of the run are those of the file.\n".to_owned(),
        false => output::table_text(&table),
    };
    if !compared.left_out.is_empty() {
        let names = compared.left_out.join(" and ");
        text.push_str(&format!(
            "Not compared: {names}, the trees of the list of subscribers.\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use fairgate_config::Document;
    use proptest::prelude::*;

    use super::*;

    fn between(running: &str, file: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let spec = |text: &str| {
            let text = format!("[queue.q]\n{text}");
            let document = Document::parse("home.toml", &text).unwrap();
            document.queue("q").unwrap().to_toml(QUEUE)
        };
        let mut compared = Compared {
            revision: 0,
            differences: Vec::new(),
            left_out: Vec::new(),
        };
        let running = TreeStatus {
            from: "eth0".to_owned(),
            to: "eth1".to_owned(),
            name: None,
            queue: spec(running),
            names: Default::default(),
            workers: None,
        };
        compared.add(&running, &spec(file));
        let differences = compared.differences.into_iter();
        differences
            .map(|difference| (difference.key, difference.running, difference.file))
            .collect()
    }

    const TREE: &str = "discipline = \"htb\"\ndefault = 20
        [[queue.q.filter]]\nclass = 10\nprotocol = \"udp\"
        [[queue.q.filter]]\nclass = 20\nprotocol = \"tcp\"
        [[queue.q.class]]\nid = 10\nrate = \"5mbit\"\ndiscipline = \"fifo\"
        [[queue.q.class]]\nid = 20\nrate = \"9mbit\"\ndiscipline = \"fq_codel\"\n";

    #[test]
    fn each_difference_is_named_as_in_the_file() {
        let one = |key: &str, running: Option<&str>, file: Option<&str>| {
            vec![(
                key.to_owned(),
                running.map(str::to_owned),
                file.map(str::to_owned),
            )]
        };
        assert_eq!(between(TREE, TREE), []);
        let of = |from: &str, to: &str| between(TREE, &TREE.replace(from, to));
        assert_eq!(
            of("9mbit", "8mbit"),
            one("class.20.rate", Some("\"9mbit\""), Some("\"8mbit\""))
        );
        assert_eq!(
            of("default = 20", "default = 10"),
            one("default", Some("20"), Some("10"))
        );
        assert_eq!(
            of("fq_codel\"", "fq_codel\"\ntarget = \"7ms\""),
            one("class.20.target", None, Some("\"7ms\""))
        );
        let another = "[[queue.q.filter]]\nclass = 10\nprotocol = 47\n[[queue";
        let inserted = between(TREE, &TREE.replacen("[[queue", another, 1));
        assert_eq!(inserted.len(), 1, "{inserted:?}");
        assert_eq!((inserted[0].0.as_str(), &inserted[0].1), ("filter[1]", &None));
        let third = "[[queue.q.class]]\nid = 30\nrate = \"1mbit\"\ndiscipline = \"fifo\"\n";
        let added = between(&format!("{TREE}{third}"), TREE);
        assert_eq!(added.len(), 1);
        assert_eq!((added[0].0.as_str(), &added[0].2), ("class.30", &None));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Boolean),
            (0i64..3).prop_map(Value::Integer),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[ab]", inner, 0..3)
                    .prop_map(|table| Value::Table(table.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever differs is found, and nothing else is.
        #[test]
        fn a_difference_is_found_if_there_is_one(one in value(), other in value()) {
            let mut found = Vec::new();
            compare("", Some(&one), Some(&other), &mut found);
            prop_assert_eq!(found.is_empty(), one == other);
            prop_assert!(found.iter().all(|(_, [running, file])| running != file));
        }
    }
}
