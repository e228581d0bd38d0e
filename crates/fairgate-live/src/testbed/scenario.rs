//! The configuration that the router of a testbed runs. It is made from a discipline's name, or from a user's
//! file.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::units::{format_duration, format_rate, format_size};
use fairgate_config::{Document, FileError, Registry, Spec};
use toml::{Table, Value};

use crate::config::Plan;

/// A shaper's bucket holds what the link can send in this time. A wake-up that is late by up to this time
/// does not reduce the rate.
const BURST_MILLIS: u64 = 10;

/// The smallest bucket: three full-sized frames.
const SMALLEST_BURST: u64 = 5_000;

/// A configuration for the router.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in tables.
    pub label: String,
    /// The rate of the bottleneck, if it is known.
    pub rate: Option<Rate>,
    configuration: Table,
}

impl Scenario {
    /// Creates a link of `rate` with `delay` in each direction. `queue` is the queue towards the right host,
    /// written as on the command line: `fq_codel target=5ms`.
    ///
    /// # Errors
    /// Fails if there is no such discipline, or if it rejects a setting.
    pub fn link(
        queue: &str,
        rate: Rate,
        delay: Duration,
        registry: &Registry,
    ) -> Result<Scenario, FileError> {
        Spec::inline_with(queue, registry)?;
        let burst = (rate.bits_per_second() / 8 * BURST_MILLIS / 1000).max(SMALLEST_BURST);
        let mut shaper = Table::new();
        shaper.insert("discipline".into(), "tbf".into());
        shaper.insert("rate".into(), format_rate(rate).into());
        shaper.insert("burst".into(), format_size(burst).into());
        shaper.insert("inner".into(), inline_to_table(queue).into());
        let mut queues = Table::new();
        queues.insert("link".into(), shaper.into());
        let mut run = Table::new();
        run.insert("left_to_right".into(), "link".into());
        run.insert("delay".into(), format_duration(delay).into());
        let mut configuration = Table::new();
        configuration.insert("queue".into(), queues.into());
        configuration.insert("run".into(), run.into());
        Ok(Scenario {
            label: queue.to_string(),
            rate: Some(rate),
            configuration: with_testbed_ends(configuration),
        })
    }

    /// Creates a scenario from a configuration file. The testbed's interfaces replace those of the file.
    ///
    /// # Errors
    /// Fails if the file has a mistake.
    pub fn file(name: &str, text: &str, registry: &Registry) -> Result<Scenario, FileError> {
        Plan::read(&Document::parse_with(name, text, registry)?)?;
        let configuration: Table = text.parse().expect("the text was parsed before");
        Ok(Scenario {
            label: name.to_string(),
            rate: None,
            configuration: with_testbed_ends(configuration),
        })
    }

    /// Returns the configuration as TOML.
    pub(crate) fn text(&self) -> String {
        self.configuration.to_string()
    }
}

/// Returns the plan of a bridge in the router, with so many workers. `queue` is the queue towards the right
/// host, as in `[queue.NAME]` of a configuration file.
///
/// # Errors
/// Fails if the queue has a mistake, or if workers can't share it.
pub fn plan_of(queue: &str, workers: u16) -> Result<Plan, FileError> {
    let run = "left = \"left\"\nright = \"right\"\nleft_to_right = \"link\"";
    let text = format!("[queue.link]\n{queue}\n\n[run]\n{run}\nworkers = {workers}\n");
    Plan::read(&Document::parse("testbed.toml", &text)?)
}

fn with_testbed_ends(mut configuration: Table) -> Table {
    let run = configuration.get_mut("run").and_then(Value::as_table_mut);
    let run = run.expect("the configuration has a [run] section");
    run.insert("left".into(), "left".into());
    run.insert("right".into(), "right".into());
    run.insert("name".into(), "testbed".into());
    configuration
}

/// Converts a command-line description to a table: `fq_codel target=5ms` becomes `{ discipline = "fq_codel",
/// target = "5ms" }`. The text after a `/` becomes `inner`.
fn inline_to_table(line: &str) -> Table {
    let (stage, inner) = match line.split_once(" / ") {
        Some((stage, inner)) => (stage, Some(inner)),
        None => (line, None),
    };
    let mut words = stage.split_whitespace();
    let mut table = Table::new();
    table.insert("discipline".into(), words.next().unwrap_or_default().into());
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        table.insert(key.into(), typed(value));
    }
    if let Some(inner) = inner {
        table.insert("inner".into(), inline_to_table(inner).into());
    }
    table
}

/// Converts a value. Numbers and flags are written without quotation marks.
fn typed(word: &str) -> Value {
    if let Ok(integer) = word.parse::<i64>() {
        integer.into()
    } else if let Ok(flag) = word.parse::<bool>() {
        flag.into()
    } else {
        word.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_equals_the_same_configuration_in_a_file() {
        let scenario = Scenario::link(
            "fifo limit=1000",
            Rate::mbit(20),
            Duration::from_millis(5),
            &Registry::builtin(),
        )
        .unwrap();
        let text = scenario.text();
        let document = Document::parse("link.toml", &text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        let plan = Plan::read(&document).unwrap();
        let written = Spec::inline("tbf rate=20mbit burst=25000 / fifo limit=1000").unwrap();
        assert_eq!(plan.queues[0], written);
        assert_eq!(plan.delay, Duration::from_millis(5));
        assert_eq!((plan.ends[0].name(), plan.ends[1].name()), ("left", "right"));
    }

    #[test]
    fn mistakes_are_reported_as_errors() {
        assert!(
            Scenario::link(
                "fifo limit=0",
                Rate::mbit(20),
                Duration::ZERO,
                &Registry::builtin()
            )
            .is_err()
        );
        assert!(
            Scenario::file(
                "home.toml",
                "[queue.wan]\ndiscipline = \"fifo\"\n",
                &Registry::builtin()
            )
            .is_err()
        );
    }
}
