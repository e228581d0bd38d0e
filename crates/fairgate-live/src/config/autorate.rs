//! Rates that follow the line: `[run.autorate]`.
//!
//! ```toml
//! [run.autorate]
//! reflectors = ["192.0.2.1", "2001:db8::1"]   # addresses that answer pings over the line
//! file = "rates.txt"                          # instead: a file that says the rates
//! left_to_right = { min = "2mbit", base = "10mbit", max = "20mbit" }
//! right_to_left = { min = "5mbit", base = "30mbit", max = "90mbit" }
//! ingress = { ... }                           # with `device`
//! egress = { ... }
//! tuning = { threshold = "20ms" }             # other settings than the defaults
//! ```

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use fairgate::autorate::{Bounds, Settings};
use fairgate_config::autorate::{RootRate, read_bounds, read_tuning};
use fairgate_config::run::{AutorateKeys, MOST_REFLECTORS};
use fairgate_config::{Document, FileError, Spec, Table};

/// How the rates of the trees follow the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autorate {
    /// Where the rates come from.
    pub source: RateSource,
    /// The rates of each direction that follows.
    pub bounds: [Option<Bounds>; 2],
    /// How they follow.
    pub settings: Settings,
}

/// Where the rates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateSource {
    /// From the delay of pings to these addresses.
    Reflectors(Vec<IpAddr>),
    /// From a file.
    File(PathBuf),
}

/// The names of the directions of a run: between two ends, and on one interface.
pub(crate) fn names(is_on_one_interface: bool) -> [&'static str; 2] {
    match is_on_one_interface {
        false => ["left_to_right", "right_to_left"],
        true => ["ingress", "egress"],
    }
}

impl Autorate {
    /// Reads and checks the table `[run.autorate]` for these trees.
    ///
    /// # Errors
    /// Reports all mistakes.
    pub(super) fn read(
        document: &Document,
        table: &Table,
        is_on_one_interface: bool,
        taken: [bool; 2],
        trees: &[Spec; 2],
    ) -> Result<Autorate, FileError> {
        let mut problems = document.problems();
        let own = names(is_on_one_interface);
        for name in names(!is_on_one_interface) {
            if let Some(span) = table.span_of(name) {
                problems.add(
                    span,
                    format!("this run has no direction `{name}`"),
                    "here",
                    format!("its directions are `{}` and `{}`", own[0], own[1]),
                );
            }
        }
        let mut bounds = [None; 2];
        for side in 0..2 {
            let Some(written) = table.table(own[side]) else {
                continue;
            };
            if taken[side] {
                bounds[side] = problems.of(bounds_of(document, &written, &trees[side]));
            } else {
                problems.add(
                    written.span(),
                    format!("there is no tree `{}` whose rate could follow", own[side]),
                    "here",
                    format!("name one with `{}` in [run], or remove this key", own[side]),
                );
            }
        }
        let all = [false, true].map(names);
        if !all.iter().flatten().any(|name| table.span_of(name).is_some()) {
            problems.add(
                table.span(),
                "no direction follows the line",
                "here",
                format!(
                    "add `{} = {{ min = ..., base = ..., max = ... }}`, or `{}`",
                    own[0], own[1]
                ),
            );
        }
        let source = problems.of(source(document, table));
        let tuning = table.table("tuning").unwrap_or_default();
        let settings = problems.of(read_tuning(document, &tuning));
        let (Some(source), Some(settings)) = (source, settings) else {
            return Err(problems.into_error());
        };
        problems.unless_any(Autorate {
            source,
            bounds,
            settings,
        })
    }
}

/// Reads where the rates come from.
fn source(document: &Document, table: &Table) -> Result<RateSource, FileError> {
    let AutorateKeys { reflectors, file } = AutorateKeys::read(table);
    match (table.span_of("reflectors"), table.span_of("file")) {
        (Some(span), None) => {
            if reflectors.is_empty() {
                return Err(document.error(
                    span,
                    format!("there are 0 reflectors, but must be from 1 to {MOST_REFLECTORS}"),
                    "name a few addresses that answer pings, near the other end of the line",
                ));
            }
            let mut problems = document.problems();
            let mut addresses = Vec::new();
            for (text, span) in reflectors.iter().zip(table.spans_in("reflectors")) {
                match text.parse() {
                    Ok(address) => addresses.push(address),
                    Err(_) => problems.add(
                        span,
                        format!("`{text}` is not an IP address"),
                        "here",
                        "write an address of IPv4 or IPv6: a run looks up no names",
                    ),
                }
            }
            problems.unless_any(RateSource::Reflectors(addresses))
        }
        (None, Some(_)) => {
            let folder = Path::new(document.name()).parent().unwrap_or(Path::new(""));
            Ok(RateSource::File(folder.join(file)))
        }
        (Some(_), Some(span)) => Err(document.error(
            span,
            "the rates come from probes or from a file, not from both",
            "remove `reflectors` or `file`",
        )),
        (None, None) => Err(document.error(
            table.span(),
            "nothing says what the rates are",
            "add `reflectors`, addresses that answer pings, or `file`, which has the rates",
        )),
    }
}

/// Reads the rates of a direction, which its tree must be able to have.
fn bounds_of(document: &Document, written: &Table, tree: &Spec) -> Result<Bounds, FileError> {
    let bounds = read_bounds(document, written)?;
    let root = RootRate::of(tree).map_err(|[what, remedy]| document.error(written.span(), what, remedy))?;
    let guaranteed = root.guaranteed(tree);
    if guaranteed > bounds.min.bits_per_second() {
        return Err(document.error(
            written.span_of("min").unwrap_or_else(|| written.span()),
            format!(
                "classes of this tree are guaranteed {guaranteed} bit/s, but the rate may fall to {}",
                bounds.min
            ),
            "raise `min`, or lower the guarantees of the classes",
        ));
    }
    Ok(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plan;

    const TREES: &str = "[queue.up]\ndiscipline = \"tbf\"\nrate = \"10mbit\"\nburst = \"10kb\"\n\
        inner = { discipline = \"fifo\" }\n\
        [queue.plain]\ndiscipline = \"fq_codel\"\n";
    const BETWEEN: &str =
        "[run]\nleft = \"a\"\nright = \"b\"\nleft_to_right = \"up\"\nright_to_left = \"plain\"\n";
    const RATES: &str = "{ min = \"2mbit\", base = \"10mbit\", max = \"20mbit\" }";

    fn read(run: &str, keys: &str) -> Result<Option<Autorate>, String> {
        let text = format!("{TREES}{run}[run.autorate]\n{keys}\n");
        let document = Document::parse("/etc/fairgate/home.toml", &text).expect("the queues are valid");
        Plan::read(&document).map(|plan| plan.autorate).map_err(|error| {
            let problem = &error.problems()[0];
            assert!(problem.position().0 > 0 && !problem.help.is_empty());
            problem.message.clone()
        })
    }

    #[test]
    fn probes_and_files_are_read() {
        let autorate = read(
            BETWEEN,
            &format!("reflectors = [\"192.0.2.1\", \"::1\"]\nleft_to_right = {RATES}"),
        );
        let autorate = autorate.unwrap().unwrap();
        let addresses = ["192.0.2.1", "::1"].map(|text| text.parse().unwrap());
        assert_eq!(autorate.source, RateSource::Reflectors(addresses.to_vec()));
        assert!(autorate.bounds[0].is_some() && autorate.bounds[1].is_none());
        let autorate = read(BETWEEN, &format!("file = \"rates\"\nleft_to_right = {RATES}"))
            .unwrap()
            .unwrap();
        assert_eq!(autorate.source, RateSource::File("/etc/fairgate/rates".into()));
        let device = "[run]\ndevice = \"a\"\negress = \"up\"\n";
        let autorate = read(device, &format!("file = \"/rates\"\negress = {RATES}"))
            .unwrap()
            .unwrap();
        assert!(autorate.bounds[0].is_none() && autorate.bounds[1].is_some());
    }

    #[test]
    fn what_can_not_follow_is_rejected() {
        let ping = "reflectors = [\"192.0.2.1\"]\n";
        let device = "[run]\ndevice = \"a\"\negress = \"up\"\n";
        let cases = [
            (
                BETWEEN,
                format!("left_to_right = {RATES}"),
                "nothing says what the rates are",
            ),
            (BETWEEN, ping.to_owned(), "no direction follows"),
            (
                BETWEEN,
                format!("{ping}file = \"a\"\nleft_to_right = {RATES}"),
                "not from both",
            ),
            (
                BETWEEN,
                format!("{ping}right_to_left = {RATES}"),
                "`fq_codel` has no rate",
            ),
            (
                BETWEEN,
                format!("{ping}egress = {RATES}"),
                "no direction `egress`",
            ),
            (
                device,
                format!("{ping}left_to_right = {RATES}"),
                "no direction `left_to_right`",
            ),
            (device, format!("{ping}ingress = {RATES}"), "no tree `ingress`"),
            (
                BETWEEN,
                format!("reflectors = []\nleft_to_right = {RATES}"),
                "0 reflectors",
            ),
            (
                BETWEEN,
                format!("reflectors = [\"example.org\"]\nleft_to_right = {RATES}"),
                "not an IP address",
            ),
            (
                BETWEEN,
                format!("{ping}left_to_right = {RATES}\ntuning = {{ late = 9 }}"),
                "`late` is 9",
            ),
        ];
        for (run, keys, complaint) in cases {
            let message = read(run, &keys).expect_err(&keys);
            assert!(message.contains(complaint), "{keys}: {message}");
        }
    }
}
