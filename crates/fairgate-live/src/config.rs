//! The `[run]` section: which interfaces, which queue in which direction.
//!
//! ```toml
//! [run]
//! left = "eth0"             # or "tap:fg0", a TAP device to create
//! right = "eth1"
//! left_to_right = "wan"     # [queue.wan]; without a queue, frames pass in order of arrival
//! right_to_left = "wan"
//! name = "home"             # of the status socket; default: the file's name without its ending
//! frames = 16384            # most frames held in a direction
//! delay = "5ms"             # added in each direction behind the queue, to stand in for a long line
//! spin = "20us"             # wait for the shaper's next packet awake for the last 20 us
//! offloads = "off"          # switch GRO and LRO off while running
//! isolate = true            # keep this machine's own stack away from both interfaces, though it uses them
//! realtime = false          # do not ask for real-time scheduling
//! ```

use std::path::Path;
use std::time::Duration;

use fairgate_config::units::parse_duration;
use fairgate_config::{Document, FileError, Spec};
use serde::Deserialize;
use toml::Spanned;

use crate::sys::interface::Interface;

/// An end of the wire, as the configuration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// An existing interface.
    Interface(String),
    /// A TAP device, created and removed again; a persistent one is taken over.
    Tap(String),
}

impl End {
    /// The interface's name.
    pub fn name(&self) -> &str {
        match self {
            End::Interface(name) | End::Tap(name) => name,
        }
    }
}

/// What to do about receive offloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offloads {
    /// Leave them; merged packets are cut up again.
    #[default]
    Keep,
    /// Switch them off while running.
    Off,
}

/// Whether to keep the kernel's own stack away from the interfaces while running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolate {
    /// If nothing uses them. An interface with an address, in a bridge, or with VLANs on top is refused.
    #[default]
    Unused,
    /// Whatever uses them: that use rests while the bridge runs.
    Always,
    /// Never: the kernel sees all frames, and answers, routes and bridges them as it would without us.
    Never,
}

/// A checked `[run]` section.
#[derive(Clone)]
pub struct Plan {
    /// The run's name, for the status socket.
    pub name: String,
    /// Left and right end.
    pub ends: [End; 2],
    /// The trees from left to right and from right to left.
    pub queues: [Spec; 2],
    /// Most frames held in a direction.
    pub frames: u32,
    /// Delay behind the queue.
    pub delay: Duration,
    /// How long before a wake-up to stay awake.
    pub spin: Duration,
    /// Receive offloads.
    pub offloads: Offloads,
    /// Whether the kernel's own stack sees the frames too.
    pub isolate: Isolate,
    /// Whether to ask for real-time scheduling.
    pub realtime: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    left: Spanned<String>,
    right: Spanned<String>,
    left_to_right: Option<Spanned<String>>,
    right_to_left: Option<Spanned<String>>,
    name: Option<Spanned<String>>,
    frames: Option<Spanned<i64>>,
    delay: Option<Spanned<String>>,
    spin: Option<Spanned<String>>,
    #[serde(default)]
    offloads: Offloads,
    isolate: Option<bool>,
    realtime: Option<bool>,
}

/// Twice the default limit of fq_codel, and some: 32 MiB of full-sized frames.
const DEFAULT_FRAMES: u32 = 16 * 1024;
/// 2 GiB of full-sized frames.
const MOST_FRAMES: i64 = 1 << 20;
/// A second of light takes it to the moon.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// Spinning for longer than this is a busy loop.
const LONGEST_SPIN: Duration = Duration::from_millis(1);

impl Plan {
    /// Reads the section of a configuration file.
    ///
    /// # Errors
    /// If there is none, or at its first mistake.
    pub fn read(document: &Document) -> Result<Plan, FileError> {
        let Some(section) = document.section::<Section>("run")? else {
            return Err(document.error(
                0..0,
                "there is no [run] section",
                "add one with `left` and `right`, the two interfaces to join",
            ));
        };
        let end = |end: &Spanned<String>| read_end(document, end);
        let queue = |name: &Option<Spanned<String>>| match name {
            Some(name) => document.resolve(name).cloned(),
            None => Spec::inline("fifo"),
        };
        let plan = Plan {
            name: match &section.name {
                Some(name) => read_name(document, name)?,
                None => default_name(document.name()),
            },
            ends: [end(&section.left)?, end(&section.right)?],
            queues: [queue(&section.left_to_right)?, queue(&section.right_to_left)?],
            frames: section
                .frames
                .map_or(Ok(DEFAULT_FRAMES), |frames| read_frames(document, &frames))?,
            delay: read_duration(document, section.delay.as_ref(), "delay", LONGEST_DELAY)?,
            spin: read_duration(document, section.spin.as_ref(), "spin", LONGEST_SPIN)?,
            offloads: section.offloads,
            isolate: match section.isolate {
                None => Isolate::Unused,
                Some(true) => Isolate::Always,
                Some(false) => Isolate::Never,
            },
            realtime: section.realtime.unwrap_or(true),
        };
        if plan.ends[0] == plan.ends[1] {
            return Err(document.error(
                section.right.span(),
                "`left` and `right` are the same interface",
                "name two different interfaces",
            ));
        }
        Ok(plan)
    }
}

impl Plan {
    /// The first key whose change needs a restart, of those that differ from `other`. Queues may change in place.
    pub(crate) fn fixed_difference(&self, other: &Plan) -> Option<&'static str> {
        let differences = [
            ("left", self.ends[0] != other.ends[0]),
            ("right", self.ends[1] != other.ends[1]),
            ("name", self.name != other.name),
            ("frames", self.frames != other.frames),
            ("delay", self.delay != other.delay),
            ("spin", self.spin != other.spin),
            ("offloads", self.offloads != other.offloads),
            ("isolate", self.isolate != other.isolate),
            ("realtime", self.realtime != other.realtime),
        ];
        differences
            .iter()
            .find(|(_, differs)| *differs)
            .map(|(key, _)| *key)
    }
}

fn read_end(document: &Document, text: &Spanned<String>) -> Result<End, FileError> {
    let (name, tap) = match text.get_ref().strip_prefix("tap:") {
        Some(name) => (name, true),
        None => (text.get_ref().as_str(), false),
    };
    let odd = |character: char| character.is_whitespace() || character == '/' || character == '\0';
    if name.is_empty() || name.len() > Interface::LONGEST_NAME || name.contains(odd) {
        return Err(document.error(
            text.span(),
            format!("`{name}` can't be the name of an interface"),
            format!(
                "use 1 to {} characters without spaces and slashes",
                Interface::LONGEST_NAME
            ),
        ));
    }
    let name = name.to_string();
    Ok(if tap { End::Tap(name) } else { End::Interface(name) })
}

fn read_name(document: &Document, name: &Spanned<String>) -> Result<String, FileError> {
    let text = name.get_ref();
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if text.is_empty() || text.len() > 32 || text.starts_with('.') || !text.chars().all(plain) {
        return Err(document.error(
            name.span(),
            format!("`{text}` can't be the name of a run"),
            "use 1 to 32 letters, digits, `-`, `_` and `.`: it becomes the name of the status socket",
        ));
    }
    Ok(text.clone())
}

/// The configuration file's name without folder and ending.
fn default_name(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or("fairgate").chars().take(32).collect()
}

fn read_frames(document: &Document, frames: &Spanned<i64>) -> Result<u32, FileError> {
    match frames.get_ref() {
        count @ 64..=MOST_FRAMES => Ok(*count as u32),
        count => Err(document.error(
            frames.span(),
            format!("`frames` is {count}, but must be from 64 to {MOST_FRAMES}"),
            "give what all queues of a direction hold together",
        )),
    }
}

fn read_duration(
    document: &Document,
    text: Option<&Spanned<String>>,
    key: &str,
    most: Duration,
) -> Result<Duration, FileError> {
    let Some(text) = text else {
        return Ok(Duration::ZERO);
    };
    let duration = parse_duration(text.get_ref()).map_err(|error| {
        document.error(
            text.span(),
            error.to_string(),
            "write it as in \"5ms\" or \"20us\"",
        )
    })?;
    if duration > most {
        return Err(document.error(
            text.span(),
            format!("`{key}` is {duration:?}, but must be at most {most:?}"),
            "give less, or leave it out for none",
        ));
    }
    Ok(duration)
}
