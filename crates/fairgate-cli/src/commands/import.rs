//! What tc shows of a live machine, as the commands that make it: here, or from files of another machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairgate_config::Origin;
use fairgate_scripts::tc::{Imported, Printed, import};
use miette::Diagnostic;
use thiserror::Error;

use crate::commands::script::Text;
use crate::failure::Failure;
use crate::input;

#[derive(Debug, Error, Diagnostic)]
enum ImportError {
    #[error("can't run tc")]
    #[diagnostic(help(
        "install iproute2, or import from files of the machine that has it: --import-from FOLDER"
    ))]
    NoTc(#[source] std::io::Error),
    #[error("tc does not show it: {said}")]
    #[diagnostic(help("does the device exist?"))]
    Refused { said: String },
    #[error("can't read the folder {path}")]
    #[diagnostic(help(
        "it has files DEVICE.qdisc, DEVICE.class and DEVICE.filter: see docs/configuration.md"
    ))]
    Folder { path: String, source: std::io::Error },
    #[error("no qdisc was found in {place}")]
    #[diagnostic(help("name a device that has one; tc qdisc show lists them"))]
    Nothing { place: String },
    #[error("{file} is JSON")]
    #[diagnostic(help("write it with tc -d, without -j: tc prints classes as text even with -j"))]
    Json { file: String },
}

/// A listing, and its name for messages.
struct Source {
    name: String,
    device: String,
    parent: String,
    text: String,
}

impl Source {
    fn listing(&self) -> Printed<'_> {
        Printed {
            device: &self.device,
            parent: &self.parent,
            text: &self.text,
        }
    }
}

/// Returns the commands for the devices of this machine that have qdiscs, or for one device and those that it
/// redirects packets to.
pub(crate) fn live(device: &str) -> Result<Text, Failure> {
    let mut waiting: Vec<String> = match device {
        "" => devices(&show(&["qdisc", "show"])?),
        device => vec![device.to_owned()],
    };
    let (mut sources, mut seen) = (Vec::new(), BTreeSet::new());
    while !waiting.is_empty() {
        let device = waiting.remove(0);
        if seen.insert(device.clone()) {
            let first = sources.len();
            listings(&device, &mut sources)?;
            waiting.extend(sources[first..].iter().flat_map(|source| targets(&source.text)));
        }
    }
    text("this machine", &sources)
}

/// Asks tc for everything on a device.
fn listings(device: &str, sources: &mut Vec<Source>) -> Result<(), Failure> {
    let mut add = |words: &[&str], parent: &str| -> Result<String, Failure> {
        let text = show(words)?;
        sources.push(Source {
            name: format!("tc -d {}", words.join(" ")),
            device: device.to_owned(),
            parent: parent.to_owned(),
            text: text.clone(),
        });
        Ok(text)
    };
    let qdiscs = add(&["qdisc", "show", "dev", device], "")?;
    let classes = add(&["class", "show", "dev", device], "")?;
    for line in qdiscs.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["qdisc", _, "0:", ..] => {}
            ["qdisc", "ingress", ..] => {
                add(&["filter", "show", "dev", device, "ingress"], "ingress")?;
            }
            ["qdisc", "clsact", ..] => {
                add(&["filter", "show", "dev", device, "ingress"], "ingress")?;
                add(&["filter", "show", "dev", device, "egress"], "egress")?;
            }
            ["qdisc", _, handle, ..] => {
                add(&["filter", "show", "dev", device, "parent", handle], handle)?;
            }
            _ => {}
        }
    }
    // A class that has classes can have filters too.
    let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let classes: Vec<Vec<String>> = classes.lines().map(words).collect();
    let parents = classes.iter().filter_map(|class| {
        let at = class.iter().position(|word| word == "parent")?;
        class.get(at + 1).filter(|parent| !parent.ends_with(':'))
    });
    for parent in parents.collect::<BTreeSet<_>>() {
        add(&["filter", "show", "dev", device, "parent", parent], parent)?;
    }
    Ok(())
}

fn show(words: &[&str]) -> Result<String, Failure> {
    let output = Command::new("tc").arg("-d").args(words).output();
    let output = output.map_err(|error| Failure::environment(ImportError::NoTc(error)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ImportError::Refused { said }.into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the devices with a qdisc that somebody attached, each once.
fn devices(qdiscs: &str) -> Vec<String> {
    let mut devices: Vec<String> = Vec::new();
    for line in qdiscs.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["qdisc", _, handle, "dev", device, ..] = words[..]
            && handle != "0:"
            && !devices.iter().any(|known| known == device)
        {
            devices.push(device.to_owned());
        }
    }
    devices
}

/// Returns the devices that filters redirect packets to.
fn targets(filters: &str) -> Vec<String> {
    let target = |line: &str| {
        let (_, device) = line.split_once("Redirect to device ")?;
        Some(device.split(')').next()?.to_owned())
    };
    filters.lines().filter_map(target).collect()
}

/// Returns the commands for the listings in a folder.
pub(crate) fn saved(folder: &Path) -> Result<Text, Failure> {
    let unreadable = |source| ImportError::Folder {
        path: folder.display().to_string(),
        source,
    };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(unreadable)?;
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        // The names of devices may have dots, as in eth0.100.
        let split = [".qdisc", ".class", ".filter"]
            .iter()
            .find_map(|kind| name.rsplit_once(kind));
        let Some((device, parent)) = split.filter(|(_, rest)| rest.is_empty() || rest.starts_with('.'))
        else {
            continue;
        };
        let text = input::text(&path)?;
        if text.trim_start().starts_with('[') {
            let file = path.display().to_string();
            return Err(ImportError::Json { file }.into());
        }
        sources.push(Source {
            name: path.display().to_string(),
            device: device.to_owned(),
            parent: parent.trim_start_matches('.').to_owned(),
            text,
        });
    }
    text(&folder.display().to_string(), &sources)
}

/// Returns the commands, each with the line of the listing.
fn text(place: &str, sources: &[Source]) -> Result<Text, Failure> {
    let listings: Vec<Printed> = sources.iter().map(Source::listing).collect();
    let commands = import(&listings);
    if commands.is_empty() {
        let place = place.to_owned();
        return Err(ImportError::Nothing { place }.into());
    }
    let origin = |imported: &Imported| {
        Some(Origin {
            file: sources[imported.listing].name.clone(),
            line: imported.line,
        })
    };
    Ok(Text {
        name: format!("the qdiscs of {place}"),
        origins: commands.iter().map(origin).collect(),
        text: commands
            .into_iter()
            .map(|imported| imported.command + "\n")
            .collect(),
        notes: Vec::new(),
    })
}
