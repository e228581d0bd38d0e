//! The trees of a script, and the directions of a run.
//!
//! A run is on one interface, which the machine itself uses, or joins two. Packets from `left` to `right`
//! arrive at one and leave by the other, so their tree is that of the packets that leave by `right`, or that
//! of the packets that arrive at `left`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use fairgate_config::{Spec, quoted};
use fairgate_scripts::tc::TreeDirection;
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

/// A tree of a script.
pub(crate) struct Tree {
    pub(crate) name: String,
    /// The device, if the script names one.
    pub(crate) device: Option<String>,
    /// The packets of the device that it is for.
    pub(crate) direction: TreeDirection,
    pub(crate) spec: Spec,
    /// What the script's own language changes silently.
    pub(crate) warnings: Vec<String>,
    /// Whether the script asks for hosts behind translated addresses.
    pub(crate) nat: bool,
    /// What holds of these hosts in a run that does not know them.
    pub(crate) of_nat: Vec<String>,
    /// The files that the script names.
    pub(crate) files: Vec<PathBuf>,
}

/// The interfaces of a run, and the names of the trees of its directions.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Run {
    /// What one interface sends and receives.
    On {
        device: String,
        egress: Option<String>,
        ingress: Option<String>,
        /// The trees that see hosts behind translated addresses.
        #[serde(skip_serializing_if = "Option::is_none")]
        nat: Option<&'static str>,
    },
    /// What passes between two.
    Between {
        left: String,
        right: String,
        left_to_right: Option<String>,
        right_to_left: Option<String>,
    },
}

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum RunError {
    #[error("the script has trees for {devices}, but a run joins two interfaces")]
    #[diagnostic(help("name one of them with --run, and remove the lines for all but one of the others"))]
    Several { devices: String },
    #[error("the script has trees for {devices}, but a run with --dev is on one interface")]
    #[diagnostic(help("join two of them with --run INTERFACE, and remove the lines for the others"))]
    NotOne { devices: String },
    #[error("the script does not say which device its trees are for")]
    #[diagnostic(help("give it with --device or in the script"))]
    NoDevice,
    #[error("no filter redirects packets to `{device}`, so a run has no packets for its tree")]
    #[diagnostic(help(
        "add the lines that do: tc qdisc add dev DEVICE ingress, and tc filter add dev DEVICE ingress \
         matchall action mirred egress redirect dev {device}"
    ))]
    Nowhere { device: String },
    #[error("packets from `{from}` to `{to}` would pass two trees, `{first}` and `{second}`")]
    #[diagnostic(help(
        "each direction of a run has one tree: remove that of the packets that arrive at `{from}`, or that \
         of the packets that leave by `{to}`"
    ))]
    InSeries {
        from: String,
        to: String,
        first: String,
        second: String,
    },
}

impl Run {
    /// Returns the run that joins `left` and the device of the trees.
    pub(crate) fn of(trees: &[Tree], left: &str) -> Result<Run, RunError> {
        let others: Vec<&str> = devices(trees)
            .into_iter()
            .filter(|device| *device != left)
            .collect();
        let right = match others[..] {
            [right] => right,
            [] => match trees
                .iter()
                .find_map(|tree| Some((tree.device.as_deref()?, tree.direction)))
            {
                // The run rejects the same interface twice.
                Some((device, direction)) if direction != TreeDirection::Nowhere => device,
                _ => return Err(without_device(trees)),
            },
            _ => {
                return Err(RunError::Several {
                    devices: listed(&devices(trees)),
                });
            }
        };
        Ok(Run::Between {
            left: left.to_owned(),
            right: right.to_owned(),
            left_to_right: direction(trees, Some(left), Some(right))?,
            right_to_left: direction(trees, Some(right), Some(left))?,
        })
    }

    /// Returns the run on the only device of the trees.
    pub(crate) fn on_device(trees: &[Tree]) -> Result<Run, RunError> {
        let devices = devices(trees);
        let mut each = devices.iter().copied();
        match (each.next(), each.next()) {
            (Some(device), None) => {
                let egress = direction(trees, None, Some(device))?;
                let ingress = direction(trees, Some(device), None)?;
                let has_nat = |name: &Option<String>| {
                    let mut trees = trees.iter().filter(|tree| tree.nat);
                    trees.any(|tree| name.as_ref() == Some(&tree.name))
                };
                let nat = match [&ingress, &egress].map(has_nat) {
                    [true, true] => Some("both"),
                    [true, false] => Some("ingress"),
                    [false, true] => Some("egress"),
                    [false, false] => None,
                };
                Ok(Run::On {
                    device: device.to_owned(),
                    egress,
                    ingress,
                    nat,
                })
            }
            (Some(_), Some(_)) => Err(RunError::NotOne {
                devices: listed(&devices),
            }),
            (None, _) => Err(without_device(trees)),
        }
    }

    /// Returns the run that the trees are for, if they are for more than what one device sends: whoever
    /// shapes what a device receives shapes a line of this machine.
    pub(crate) fn named_by(trees: &[Tree]) -> Option<Run> {
        let devices: Vec<&str> = devices(trees).into_iter().collect();
        match devices[..] {
            [_] => {
                let run = Run::on_device(trees).ok()?;
                matches!(run, Run::On { ingress: Some(_), .. }).then_some(run)
            }
            [left, right] => Some(Run::Between {
                left: left.to_owned(),
                right: right.to_owned(),
                left_to_right: direction(trees, Some(left), Some(right)).ok()?,
                right_to_left: direction(trees, Some(right), Some(left)).ok()?,
            }),
            _ => None,
        }
    }

    /// Returns the interface that the run is known by.
    pub(crate) fn device(&self) -> &str {
        match self {
            Run::On { device, .. } => device,
            Run::Between { right, .. } => right,
        }
    }

    /// Returns the section of a configuration file.
    pub(crate) fn section(&self) -> String {
        let keys = match self {
            Run::On {
                device,
                egress,
                ingress,
                nat,
            } => vec![
                ("device", Some(device.as_str())),
                ("egress", egress.as_deref()),
                ("ingress", ingress.as_deref()),
                ("nat", *nat),
            ],
            Run::Between {
                left,
                right,
                left_to_right,
                right_to_left,
            } => vec![
                ("left", Some(left.as_str())),
                ("right", Some(right.as_str())),
                ("left_to_right", left_to_right.as_deref()),
                ("right_to_left", right_to_left.as_deref()),
            ],
        };
        let mut text = "[run]\n".to_owned();
        for (key, name) in keys {
            if let Some(name) = name {
                let _ = writeln!(text, "{key} = {}", quoted(name));
            }
        }
        text
    }
}

/// Returns comments for a configuration file of these trees without [run]: why it has none, and how to add
/// one. `work` says whether all trees can work live.
pub(crate) fn without_run(trees: &[Tree], work: bool) -> String {
    let devices: Vec<&str> = devices(trees).into_iter().collect();
    let named = devices
        .iter()
        .map(|device| quoted(device))
        .collect::<Vec<_>>()
        .join(", ");
    let sent = trees.iter().find(|tree| tree.direction == TreeDirection::Out);
    let why = match (&devices[..], sent) {
        _ if !work => "a tree can't be run live; `fairgate check` says why.".to_owned(),
        ([], _) => "the script names no device that has the packets of a tree.".to_owned(),
        ([_], Some(tree)) => format!(
            "the script says what leaves by {named}, and not from where it comes.\n\
             # Add this for what this machine itself sends, or left, right and left_to_right = {}:\n\
             # [run]\n# device = {named}\n# egress = {}",
            quoted(&tree.name),
            quoted(&tree.name)
        ),
        ([left, right], _)
            if direction(trees, Some(left), Some(right)).is_err()
                || direction(trees, Some(right), Some(left)).is_err() =>
        {
            format!("between {named}, packets of a direction would pass two trees.")
        }
        _ => format!("the script has trees for {named}, and a run joins two interfaces."),
    };
    format!("# There is no [run]: {why}\n# `fairgate run --help` explains the section.\n")
}

/// Returns why there is no device whose packets have trees.
fn without_device(trees: &[Tree]) -> RunError {
    match trees.iter().find_map(|tree| tree.device.clone()) {
        Some(device) => RunError::Nowhere { device },
        None => RunError::NoDevice,
    }
}

fn listed(devices: &BTreeSet<&str>) -> String {
    devices.iter().copied().collect::<Vec<_>>().join(", ")
}

/// Returns the devices whose packets have trees.
fn devices(trees: &[Tree]) -> BTreeSet<&str> {
    trees
        .iter()
        .filter(|tree| tree.direction != TreeDirection::Nowhere)
        .filter_map(|tree| tree.device.as_deref())
        .collect()
}

/// Returns the name of the tree for packets that arrive at `from` and leave by `to`.
fn direction(trees: &[Tree], from: Option<&str>, to: Option<&str>) -> Result<Option<String>, RunError> {
    let is_meant = |tree: &&Tree| {
        let device = tree.device.as_deref();
        device.is_some()
            && match tree.direction {
                TreeDirection::In => device == from,
                TreeDirection::Out => device == to,
                TreeDirection::Nowhere => false,
            }
    };
    let mut meant = trees.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(first), Some(second)) => Err(RunError::InSeries {
            from: from.unwrap_or_default().to_owned(),
            to: to.unwrap_or_default().to_owned(),
            first: first.name.clone(),
            second: second.name.clone(),
        }),
        (found, _) => Ok(found.map(|tree| tree.name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(of: &[(&str, TreeDirection)]) -> Vec<Tree> {
        let tree = |(device, direction): &(&str, TreeDirection)| Tree {
            name: format!("{device} {direction:?}"),
            device: Some((*device).to_owned()),
            direction: *direction,
            spec: Spec::inline("fifo").expect("a discipline"),
            warnings: Vec::new(),
            nat: false,
            of_nat: Vec::new(),
            files: Vec::new(),
        };
        of.iter().map(tree).collect()
    }

    fn on(device: &str, trees: [Option<&str>; 2]) -> Run {
        let [egress, ingress] = trees.map(|name| name.map(str::to_owned));
        Run::On {
            device: device.to_owned(),
            egress,
            ingress,
            nat: None,
        }
    }

    #[test]
    fn hosts_behind_translated_addresses_are_known_on_one_device() {
        for (with_nat, expected) in [
            ([true, true], Some("both")),
            ([true, false], Some("egress")),
            ([false, true], Some("ingress")),
            ([false, false], None),
        ] {
            let mut trees = trees(&[("wan", TreeDirection::Out), ("wan", TreeDirection::In)]);
            for (tree, nat) in trees.iter_mut().zip(with_nat) {
                tree.nat = nat;
            }
            let run = Run::on_device(&trees).unwrap();
            assert!(matches!(run, Run::On { nat, .. } if nat == expected), "{run:?}");
            let line = expected.map(|which| format!("nat = \"{which}\"\n"));
            assert_eq!(run.section().contains("nat"), expected.is_some());
            assert!(run.section().ends_with(line.as_deref().unwrap_or("")));
        }
    }

    fn run(left: &str, right: &str, trees: [Option<&str>; 2]) -> Run {
        let [left_to_right, right_to_left] = trees.map(|name| name.map(str::to_owned));
        Run::Between {
            left: left.to_owned(),
            right: right.to_owned(),
            left_to_right,
            right_to_left,
        }
    }

    #[test]
    fn the_trees_of_one_device_are_for_both_directions() {
        let both = trees(&[("wan", TreeDirection::Out), ("wan", TreeDirection::In)]);
        let names = [Some("wan Out"), Some("wan In")];
        assert_eq!(Run::of(&both, "lan").unwrap(), run("lan", "wan", names));
        assert_eq!(Run::on_device(&both).unwrap(), on("wan", names));
        assert_eq!(Run::named_by(&both), Some(on("wan", names)));
        let arriving = trees(&[("wan", TreeDirection::In)]);
        assert_eq!(Run::named_by(&arriving), Some(on("wan", [None, Some("wan In")])));
        let leaving = trees(&[("wan", TreeDirection::Out)]);
        assert_eq!(
            Run::on_device(&leaving).unwrap(),
            on("wan", [Some("wan Out"), None])
        );
        assert_eq!(Run::named_by(&leaving), None);
    }

    #[test]
    fn the_trees_of_two_devices_are_for_both_directions() {
        let both = trees(&[("wan", TreeDirection::Out), ("lan", TreeDirection::Out)]);
        let expected = run("lan", "wan", [Some("wan Out"), Some("lan Out")]);
        assert_eq!(Run::of(&both, "lan").unwrap(), expected);
        assert!(matches!(Run::on_device(&both), Err(RunError::NotOne { .. })));
        assert_eq!(Run::named_by(&both), Some(expected));
        assert!(matches!(Run::of(&both, "dmz"), Err(RunError::Several { .. })));
        let three = trees(&[
            ("wan", TreeDirection::Out),
            ("lan", TreeDirection::Out),
            ("dmz", TreeDirection::In),
        ]);
        assert_eq!(Run::named_by(&three), None);
    }

    #[test]
    fn a_direction_has_one_tree() {
        let series = trees(&[("wan", TreeDirection::Out), ("lan", TreeDirection::In)]);
        let error = Run::of(&series, "lan").expect_err("two trees");
        assert_eq!(
            error.to_string(),
            "packets from `lan` to `wan` would pass two trees, `wan Out` and `lan In`"
        );
        assert_eq!(Run::named_by(&series), None);
    }

    #[test]
    fn a_tree_that_nothing_leads_to_is_not_run() {
        let lost = trees(&[("ifb0", TreeDirection::Nowhere)]);
        assert!(matches!(Run::of(&lost, "lan"), Err(RunError::Nowhere { .. })));
        assert!(matches!(Run::on_device(&lost), Err(RunError::Nowhere { .. })));
        assert_eq!(Run::named_by(&lost), None);
        let beside = trees(&[("ifb0", TreeDirection::Nowhere), ("wan", TreeDirection::Out)]);
        let expected = run("lan", "wan", [Some("wan Out"), None]);
        assert_eq!(Run::of(&beside, "lan").unwrap(), expected);
    }
}
