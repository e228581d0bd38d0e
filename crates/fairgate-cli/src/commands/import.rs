//! What tc shows of a live machine, as the commands that make it: here, or from files of another machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairgate_config::Origin;
use fairgate_scripts::tc::{ImportError, Imported, Printed, import};
use miette::Diagnostic;
use thiserror::Error;

use crate::commands::script::Text;
use crate::failure::Failure;
use crate::input;

#[derive(Debug, Error, Diagnostic)]
enum NoImport {
    #[error("can't run tc")]
    #[diagnostic(help(
        "install iproute2, or import from files of the machine that has it: --import-from FOLDER"
    ))]
    NoTc(#[source] std::io::Error),
    #[error("tc does not show it: {said}")]
    #[diagnostic(help("does the device exist?"))]
    Refused { said: String },
    #[error("can't read the folder {path}")]
    #[diagnostic(help("it has files DEVICE.qdisc, DEVICE.class and DEVICE.filter: see docs/tc.md"))]
    Folder { path: String, source: std::io::Error },
    #[error("no qdisc was found in {place}")]
    #[diagnostic(help("name a device that has one; tc qdisc show lists them"))]
    Nothing { place: String },
    #[error("{listing}, {problem}")]
    #[diagnostic(help("{}", problem.help))]
    Listing { listing: String, problem: ImportError },
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
        "" => devices(&show(&[], &["qdisc", "show"])?),
        device => vec![device.to_owned()],
    };
    let (mut sources, mut seen) = (Vec::new(), BTreeSet::new());
    while !waiting.is_empty() {
        let device = waiting.remove(0);
        if seen.insert(device.clone()) {
            let added = listings(&device)?;
            waiting.extend(commands(&added)?.iter().filter_map(target));
            sources.extend(added);
        }
    }
    text("this machine", &sources)
}

/// Asks tc for everything on a device.
fn listings(device: &str) -> Result<Vec<Source>, Failure> {
    let (of_qdiscs, of_classes) = (["qdisc", "show", "dev", device], ["class", "show", "dev", device]);
    let mut sources = vec![
        listing(device, "", &of_qdiscs)?,
        listing(device, "", &of_classes)?,
    ];
    let mut add = |parent: &str, words: &[&str]| -> Result<(), Failure> {
        let words = [&["filter", "show", "dev", device], words].concat();
        sources.push(listing(device, parent, &words)?);
        Ok(())
    };
    for line in show(&[], &of_qdiscs)?.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["qdisc", _, "0:", ..] => {}
            ["qdisc", "ingress", ..] => add("ingress", &["ingress"])?,
            ["qdisc", "clsact", ..] => {
                add("ingress", &["ingress"])?;
                add("egress", &["egress"])?;
            }
            ["qdisc", _, handle, ..] => add(handle, &["parent", handle])?,
            _ => {}
        }
    }
    // A class that has classes can have filters too.
    let classes = show(&[], &of_classes)?;
    let parent = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "parent");
        words.nth(1).map(str::to_owned)
    };
    let parents: BTreeSet<String> = classes.lines().filter_map(parent).collect();
    for parent in parents.iter().filter(|parent| !parent.ends_with(':')) {
        add(parent, &["parent", parent])?;
    }
    Ok(sources)
}

/// Asks tc for one listing. JSON has exact values, but not all of them, and not in each version of tc.
fn listing(device: &str, parent: &str, words: &[&str]) -> Result<Source, Failure> {
    let source = |flags: &[&str]| {
        Ok::<Source, Failure>(Source {
            name: ["tc"]
                .iter()
                .chain(flags)
                .chain(words)
                .copied()
                .collect::<Vec<_>>()
                .join(" "),
            device: device.to_owned(),
            parent: parent.to_owned(),
            text: show(flags, words)?,
        })
    };
    match source(&["-d", "-j"]) {
        Ok(json) if import(&[json.listing()]).is_ok() => Ok(json),
        _ => source(&["-d"]),
    }
}

fn show(flags: &[&str], words: &[&str]) -> Result<String, Failure> {
    let output = Command::new("tc").args(flags).args(words).output();
    let output = output.map_err(|error| Failure::environment(NoImport::NoTc(error)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(NoImport::Refused { said }.into());
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

/// Returns the device that a filter redirects packets to.
fn target(imported: &Imported) -> Option<String> {
    let mut words = imported
        .command
        .split_whitespace()
        .skip_while(|word| *word != "mirred");
    let mut after = words.by_ref().skip_while(|word| *word != "dev");
    after.nth(1).map(str::to_owned)
}

/// Returns the commands for the listings in a folder.
pub(crate) fn saved(folder: &Path) -> Result<Text, Failure> {
    let unreadable = |source| NoImport::Folder {
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
        sources.push(Source {
            name: path.display().to_string(),
            device: device.to_owned(),
            parent: parent.trim_start_matches('.').to_owned(),
            text: input::text(&path)?,
        });
    }
    text(&folder.display().to_string(), &sources)
}

/// Returns the commands for listings.
fn commands(sources: &[Source]) -> Result<Vec<Imported>, NoImport> {
    let listings: Vec<Printed> = sources.iter().map(Source::listing).collect();
    import(&listings).map_err(|problem| NoImport::Listing {
        listing: sources[problem.listing].name.clone(),
        problem,
    })
}

/// Returns the commands as a script, each with the line of the listing.
fn text(place: &str, sources: &[Source]) -> Result<Text, Failure> {
    let commands = commands(sources)?;
    if commands.is_empty() {
        let place = place.to_owned();
        return Err(NoImport::Nothing { place }.into());
    }
    let origin = |imported: &Imported| {
        let name = &sources[imported.listing].name;
        Some(Origin {
            file: match imported.element {
                Some(element) => format!("{name}, element {element}"),
                None => name.clone(),
            },
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
