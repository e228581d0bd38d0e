//! What the figures were measured on, and from which commit. Nothing that names a host, a folder or a day.

use std::{env, fs, thread};

use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::markdown::Table;

/// The head of the document.
pub(crate) fn head(bench: &Bench) -> Result<String> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let model = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| model(&text));
    let model = model.unwrap_or(format!("a processor for {}", env::consts::ARCH));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut table = Table::new(2, &["", ""]);
    table.add(&["commit", &commit(bench)?]);
    table.add(&["processor", &format!("{model}, {processors} of them")]);
    table.add(&["system", &format!("Linux {}", version(&kernel))]);
    table.add(&["compiler", bench.output("rustc", &["--version"])?.trim()]);
    Ok(table.text())
}

/// The commit that is measured.
pub(crate) fn commit(bench: &Bench) -> Result<String> {
    let commit = bench.output("git", &["rev-parse", "--short", "HEAD"])?;
    let changes = bench.output("git", &["status", "--porcelain", "--", ".", ":(exclude)docs"])?;
    let changed = match changes.trim().is_empty() {
        true => "",
        false => ", with changes",
    };
    Ok(format!("{}{changed}", commit.trim()))
}

/// The model of the first processor in /proc/cpuinfo; `None` where the kernel does not tell.
fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The version in a kernel's release, without what those who built it have added.
fn version(release: &str) -> &str {
    let is_other = |letter: char| !letter.is_ascii_digit() && letter != '.';
    release.split(is_other).next().unwrap_or(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_its_version() {
        assert_eq!(version("6.1.0-28-amd64\n"), "6.1.0");
        assert_eq!(version("6.18.2\n"), "6.18.2");
    }

    #[test]
    fn the_model_is_that_of_the_first_processor() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: Some  CPU @ 2.50GHz\nflags\t: fpu\nmodel name\t: Other\n";
        assert_eq!(model(cpuinfo).as_deref(), Some("Some CPU @ 2.50GHz"));
        assert_eq!(model("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
    }
}
