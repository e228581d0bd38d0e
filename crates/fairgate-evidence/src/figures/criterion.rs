//! What criterion measured, from the files that it keeps: medians, and how much was done in that time.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::figures::{Result, read};

/// A benchmark.
#[derive(Debug, PartialEq)]
pub(crate) struct Measured {
    /// As the benchmark names it: `pairs/fifo/64`.
    pub(crate) name: String,
    /// Median of the samples, ns for an iteration.
    pub(crate) median: f64,
    /// What an iteration does, in the benchmark's own units; `None` if it does not tell.
    pub(crate) elements: Option<f64>,
}

/// All benchmarks below a folder, by name.
pub(crate) fn measured(folder: &Path) -> Result<Vec<Measured>> {
    let mut found = Vec::new();
    collect(folder, &mut found)?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// The benchmark `name`.
pub(crate) fn of<'m>(all: &'m [Measured], name: &str) -> Result<&'m Measured> {
    let found = all.iter().find(|measured| measured.name == name);
    found.ok_or(format!("criterion has not measured `{name}`"))
}

fn collect(folder: &Path, found: &mut Vec<Measured>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry
            .map_err(|error| format!("{}: {error}", folder.display()))?
            .path();
        if !path.is_dir() {
            continue;
        }
        // `new` has the last run of a benchmark; `base`, beside it, is a copy.
        if path.file_name().is_some_and(|name| name == "new") {
            let [benchmark, estimates] =
                ["benchmark.json", "estimates.json"].map(|name| read(&path.join(name)));
            found.push(parse(&benchmark?, &estimates?)?);
        } else {
            collect(&path, found)?;
        }
    }
    Ok(())
}

fn parse(benchmark: &str, estimates: &str) -> Result<Measured> {
    let document = |text: &str| -> Result<Value> {
        serde_json::from_str(text).map_err(|error| format!("criterion's file is no JSON: {error}"))
    };
    let (benchmark, estimates) = (document(benchmark)?, document(estimates)?);
    let name = benchmark["full_id"].as_str();
    let median = estimates["median"]["point_estimate"].as_f64();
    Ok(Measured {
        name: name
            .ok_or("criterion's benchmark.json has no `full_id`")?
            .to_owned(),
        median: median.ok_or("criterion's estimates.json has no `median.point_estimate`")?,
        elements: benchmark["throughput"]["Elements"].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criterions_files_are_read() {
        let benchmark = include_str!("recorded/benchmark.json");
        let estimates = include_str!("recorded/estimates.json");
        let folder = tempfile::tempdir().unwrap();
        for run in ["dumbbell/tcp/new", "dumbbell/tcp/base", "dumbbell/report"] {
            let run = folder.path().join(run);
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join("benchmark.json"), benchmark).unwrap();
            fs::write(run.join("estimates.json"), estimates).unwrap();
        }
        let all = measured(folder.path()).unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
        let tcp = of(&all, "dumbbell/tcp").unwrap();
        assert!(
            tcp.median > 0.0 && tcp.elements.is_some_and(|hops| hops > 1e5),
            "{tcp:?}"
        );
        assert!(of(&all, "dumbbell/udp").is_err());
    }

    #[test]
    fn a_file_that_lacks_something_is_an_error() {
        assert!(
            parse("{}", r#"{"median":{"point_estimate":1.0}}"#)
                .unwrap_err()
                .contains("full_id")
        );
        assert!(parse(r#"{"full_id":"a"}"#, "{}").unwrap_err().contains("median"));
        assert!(parse("", "{}").unwrap_err().contains("no JSON"));
    }
}
