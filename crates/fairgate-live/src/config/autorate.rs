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
use fairgate_config::autorate::{BoundsSection, RootRate, Tuning};
use fairgate_config::{Document, FileError, Spec};
use serde::Deserialize;
use toml::Spanned;

/// The maximum number of reflectors. With more, each would be asked too seldom to have a baseline.
const MOST_REFLECTORS: usize = 64;

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AutorateSection {
    reflectors: Option<Spanned<Vec<Spanned<String>>>>,
    file: Option<Spanned<PathBuf>>,
    left_to_right: Option<Spanned<BoundsSection>>,
    right_to_left: Option<Spanned<BoundsSection>>,
    ingress: Option<Spanned<BoundsSection>>,
    egress: Option<Spanned<BoundsSection>>,
    #[serde(default)]
    tuning: Tuning,
}

/// The names of the directions of a run: between two ends, and on one interface.
pub(crate) fn names(is_on_one_interface: bool) -> [&'static str; 2] {
    match is_on_one_interface {
        false => ["left_to_right", "right_to_left"],
        true => ["ingress", "egress"],
    }
}

impl AutorateSection {
    /// Reads and checks the section, whose place is `section`, for these trees.
    pub(super) fn read(
        document: &Document,
        section: &Spanned<AutorateSection>,
        is_on_one_interface: bool,
        taken: [bool; 2],
        trees: &[Spec; 2],
    ) -> Result<Autorate, FileError> {
        let keys = section.get_ref();
        let of_two = [&keys.left_to_right, &keys.right_to_left];
        let of_one = [&keys.ingress, &keys.egress];
        let (given, others) = match is_on_one_interface {
            false => (of_two, of_one),
            true => (of_one, of_two),
        };
        let own = names(is_on_one_interface);
        if let Some((name, other)) = names(!is_on_one_interface)
            .into_iter()
            .zip(others)
            .find(|(_, other)| other.is_some())
        {
            let span = other.as_ref().map_or(0..0, Spanned::span);
            return Err(document.error(
                span,
                format!("this run has no direction `{name}`"),
                format!("its directions are `{}` and `{}`", own[0], own[1]),
            ));
        }
        let mut bounds = [None; 2];
        for side in 0..2 {
            let Some(written) = given[side] else { continue };
            if !taken[side] {
                return Err(document.error(
                    written.span(),
                    format!("there is no tree `{}` whose rate could follow", own[side]),
                    format!("name one with `{}` in [run], or remove this key", own[side]),
                ));
            }
            bounds[side] = Some(read_bounds(document, written, &trees[side])?);
        }
        if bounds == [None; 2] {
            return Err(document.error(
                section.span(),
                "no direction follows the line",
                format!(
                    "add `{} = {{ min = ..., base = ..., max = ... }}`, or `{}`",
                    own[0], own[1]
                ),
            ));
        }
        Ok(Autorate {
            source: keys.source(document, section)?,
            bounds,
            settings: keys.tuning.read(document)?,
        })
    }

    fn source(
        &self,
        document: &Document,
        section: &Spanned<AutorateSection>,
    ) -> Result<RateSource, FileError> {
        match (&self.reflectors, &self.file) {
            (Some(reflectors), None) => {
                let count = reflectors.get_ref().len();
                if !(1..=MOST_REFLECTORS).contains(&count) {
                    return Err(document.error(
                        reflectors.span(),
                        format!("there are {count} reflectors, but must be from 1 to {MOST_REFLECTORS}"),
                        "name a few addresses that answer pings, near the other end of the line",
                    ));
                }
                let address = |text: &Spanned<String>| {
                    text.get_ref().parse().map_err(|_| {
                        document.error(
                            text.span(),
                            format!("`{}` is not an IP address", text.get_ref()),
                            "write an address of IPv4 or IPv6: a run looks up no names",
                        )
                    })
                };
                let addresses = reflectors.get_ref().iter().map(address);
                addresses.collect::<Result<_, _>>().map(RateSource::Reflectors)
            }
            (None, Some(file)) => {
                let folder = Path::new(document.name()).parent().unwrap_or(Path::new(""));
                Ok(RateSource::File(folder.join(file.get_ref())))
            }
            (Some(_), Some(file)) => Err(document.error(
                file.span(),
                "the rates come from probes or from a file, not from both",
                "remove `reflectors` or `file`",
            )),
            (None, None) => Err(document.error(
                section.span(),
                "nothing says what the rates are",
                "add `reflectors`, addresses that answer pings, or `file`, which has the rates",
            )),
        }
    }
}

/// Reads the rates of a direction, which its tree must be able to have.
fn read_bounds(
    document: &Document,
    written: &Spanned<BoundsSection>,
    tree: &Spec,
) -> Result<Bounds, FileError> {
    let bounds = written.get_ref().read(document)?;
    let root = RootRate::of(tree).map_err(|[what, remedy]| document.error(written.span(), what, remedy))?;
    let guaranteed = root.guaranteed(tree);
    if guaranteed > bounds.min.bits_per_second() {
        return Err(document.error(
            written.get_ref().min_span(),
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
