//! The section `[run]`: what each key means, which values it takes, and what a file says. Whoever runs it,
//! simulates it or lists its subscribers reads it here.

mod autorate;
mod words;

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use fairgate::registry::{Field, Parameter, Section, Unit};
use toml::Spanned;

use self::autorate::AUTORATE;
use crate::document::Document;
use crate::error::FileError;
use crate::spec::Workers;
use crate::table::Table;

pub use self::autorate::{AutorateKeys, MOST_REFLECTORS};
pub use self::words::{BackendKind, Divide, Nat, Offloads, SuperPackets, UnknownBackend};

/// The values of the keys. Texts are read by [`Keys::text`].
#[derive(Debug)]
pub struct Values {
    left: String,
    right: String,
    left_to_right: String,
    right_to_left: String,
    device: String,
    ingress: String,
    egress: String,
    /// Which trees see hosts in the LAN.
    pub nat: Option<Nat>,
    name: String,
    /// The most frames held in a direction.
    pub frames: u32,
    /// Added behind the queue in each direction.
    pub delay: Duration,
    /// Added to the length that trees count, bytes.
    pub overhead: i32,
    /// How long before a timed wake-up the thread stays awake.
    pub spin: Duration,
    /// What to do about receive offloads.
    pub offloads: Offloads,
    /// Whether trees get super-packets whole.
    pub super_packets: SuperPackets,
    /// Whether the interfaces are kept away from the kernel's own stack. `None`: if it does not use them.
    pub isolate: Option<bool>,
    /// Whether to ask for real-time scheduling.
    pub realtime: bool,
    /// The back end. `None` chooses it.
    pub backend: Option<BackendKind>,
    /// How many threads forward frames.
    pub workers: u16,
    /// What they divide.
    pub shard_by: Divide,
    api: String,
    api_group: String,
    api_token: String,
    api_read_token: String,
    api_certificate: String,
    api_key: String,
    metrics: String,
    metrics_token: String,
    metrics_certificate: String,
    metrics_key: String,
    /// For how long the last packets are kept.
    pub packet_log: Option<Duration>,
    /// The memory for them, bytes.
    pub packet_log_memory: u64,
}

impl Default for Values {
    fn default() -> Values {
        Values {
            left: String::new(),
            right: String::new(),
            left_to_right: String::new(),
            right_to_left: String::new(),
            device: String::new(),
            ingress: String::new(),
            egress: String::new(),
            nat: None,
            name: String::new(),
            // More than the default limit of fq_codel (10 240 packets). Full-sized frames of this number take
            // 32 MiB.
            frames: 16 * 1024,
            delay: Duration::ZERO,
            overhead: 0,
            spin: Duration::ZERO,
            offloads: Offloads::Keep,
            super_packets: SuperPackets::Whole,
            isolate: None,
            realtime: true,
            backend: None,
            workers: 1,
            shard_by: Divide::Flow,
            api: String::new(),
            api_group: String::new(),
            api_token: String::new(),
            api_read_token: String::new(),
            api_certificate: String::new(),
            api_key: String::new(),
            metrics: String::new(),
            metrics_token: String::new(),
            metrics_certificate: String::new(),
            metrics_key: String::new(),
            packet_log: None,
            // About 400,000 acknowledgements, or 200,000 packets with data.
            packet_log_memory: 32 << 20,
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// The keys, in the order in which they are documented. `autorate` is a table of its own.
static PARAMETERS: [Parameter<Values>; 32] = [
    text(
        "left",
        "interface",
        "One end: an interface, or tap:NAME or tun:NAME, a device to create.",
        |keys, _| &mut keys.left,
    ),
    text("right", "interface", "The other end.", |keys, _| &mut keys.right),
    text(
        "left_to_right",
        "tree",
        "The tree of this direction; without one frames pass in order of arrival.",
        |keys, _| &mut keys.left_to_right,
    ),
    text(
        "right_to_left",
        "tree",
        "The tree of the other direction.",
        |keys, _| &mut keys.right_to_left,
    ),
    text(
        "device",
        "interface",
        "Instead of these four: one interface that this machine itself uses.",
        |keys, _| &mut keys.device,
    ),
    text(
        "ingress",
        "tree",
        "With `device`: the tree of the frames that it receives.",
        |keys, _| &mut keys.ingress,
    ),
    text(
        "egress",
        "tree",
        "With `device`: the tree of the frames that it sends.",
        |keys, _| &mut keys.egress,
    ),
    Parameter::word(
        "nat",
        Unit::Choice(Nat::WORDS),
        "With `device`: the trees that see hosts in the LAN instead of this router.",
        |keys, _| &mut keys.nat,
    ),
    text(
        "name",
        "name",
        "The name of the status socket; default: that of the file, without extension.",
        |keys, _| &mut keys.name,
    ),
    // Full-sized frames of the largest number take 2 GiB.
    Parameter::new(
        "frames",
        Unit::Count("frames"),
        64..=1 << 20,
        "The most that are held in a direction: as many as all its queues can hold together.",
        |keys, _| &mut keys.frames,
    ),
    // A tree counts at least the IP packet. No stack of headers has more than the upper limit.
    Parameter::new(
        "overhead",
        Unit::Signed("bytes", -14),
        0..=1000,
        "Added to the length that trees count. Frames have a header of 14 bytes: \
         -14 counts IP packets, 24 whole Ethernet.",
        |keys, _| &mut keys.overhead,
    ),
    Parameter::word(
        "super_packets",
        Unit::Choice(SuperPackets::WORDS),
        "With `cut`, no tree gets a merged packet as one packet.",
        |keys, _| &mut keys.super_packets,
    ),
    Parameter::word(
        "offloads",
        Unit::Choice(Offloads::WORDS),
        "With `off`, GRO and LRO are disabled during the run.",
        |keys, _| &mut keys.offloads,
    ),
    Parameter::word(
        "isolate",
        Unit::Flag,
        "Whether this machine's own network stack is kept away from the interfaces; default: if it does \
         not use them.",
        |keys, _| &mut keys.isolate,
    ),
    Parameter::word(
        "backend",
        Unit::Choice(BackendKind::WORDS),
        "How frames get to the run; default: packet. With `kernel`, its module schedules them.",
        |keys, _| &mut keys.backend,
    ),
    Parameter::new(
        "workers",
        Unit::Count("threads"),
        1..=Workers::MOST as u64,
        "How many share the work, each with trees of its own: at most one for each processor.",
        |keys, _| &mut keys.workers,
    ),
    Parameter::word(
        "shard_by",
        Unit::Choice(Divide::WORDS),
        "What the workers divide: flows, hosts on one side, or the classes of htb and hfsc.",
        |keys, _| &mut keys.shard_by,
    ),
    Parameter::word(
        "realtime",
        Unit::Flag,
        "Whether threads ask for real-time scheduling.",
        |keys, _| &mut keys.realtime,
    ),
    // Spinning for longer would be a busy loop.
    Parameter::new(
        "spin",
        Unit::Time,
        0..=SECOND / 1000,
        "For how long a thread stays awake before the next packet is due.",
        |keys, _| &mut keys.spin,
    ),
    // In the longest time light travels much further than to the moon, so that no real link is longer.
    Parameter::new(
        "delay",
        Unit::Time,
        0..=10 * SECOND,
        "For tests: added behind the queue in each direction.",
        |keys, _| &mut keys.delay,
    ),
    text(
        "api",
        "address",
        "Where the run is controlled over HTTP: unix:PATH, or IP:PORT.",
        |keys, _| &mut keys.api,
    ),
    text(
        "api_group",
        "group",
        "The group whose members may use the unix socket of `api`.",
        |keys, _| &mut keys.api_group,
    ),
    text(
        "api_token",
        "file",
        "The tokens of those who may use `api` at an IP address.",
        |keys, _| &mut keys.api_token,
    ),
    text(
        "api_read_token",
        "file",
        "The tokens of those who may only read `api` at an IP address.",
        |keys, _| &mut keys.api_read_token,
    ),
    text(
        "api_certificate",
        "file",
        "The certificate of `api` at an IP address.",
        |keys, _| &mut keys.api_certificate,
    ),
    text(
        "api_key",
        "file",
        "The private key of that certificate.",
        |keys, _| &mut keys.api_key,
    ),
    text(
        "metrics",
        "address",
        "Where Prometheus reads the counters: IP:PORT.",
        |keys, _| &mut keys.metrics,
    ),
    text(
        "metrics_token",
        "file",
        "The tokens of those who may read them.",
        |keys, _| &mut keys.metrics_token,
    ),
    text(
        "metrics_certificate",
        "file",
        "The certificate of `metrics`.",
        |keys, _| &mut keys.metrics_certificate,
    ),
    text(
        "metrics_key",
        "file",
        "The private key of that certificate.",
        |keys, _| &mut keys.metrics_key,
    ),
    Parameter::new(
        "packet_log",
        Unit::Time,
        SECOND..=3600 * SECOND,
        "For how long the last packets are kept.",
        |keys, _| &mut keys.packet_log,
    ),
    // The least are a few thousand packets. A pcapng file of the largest size is still handled by all
    // readers.
    Parameter::new(
        "packet_log_memory",
        Unit::Bytes,
        1 << 20..=1 << 30,
        "The memory for them; if it does not suffice, fewer are kept.",
        |keys, _| &mut keys.packet_log_memory,
    ),
];

/// Returns a key with a text of this kind.
const fn text(
    name: &'static str,
    of: &'static str,
    doc: &'static str,
    field: fn(&mut Values, usize) -> &mut dyn Field,
) -> Parameter<Values> {
    Parameter::word(name, Unit::Text(of), doc, field)
}

/// The section `[run]`.
pub static RUN: Section = Section::new("run", "a run on this machine; its trees are [queue.NAME]", || {
    Parameter::infos(&PARAMETERS, Values::default())
})
.with(&AUTORATE);

/// What a `[run]` section says. Whoever runs it checks what must go together.
#[derive(Debug)]
pub struct Keys {
    written: Table,
    /// The values of the keys.
    pub values: Values,
}

impl Keys {
    /// Reads the section. Returns `None` if there is none.
    ///
    /// # Errors
    /// Reports all keys that are not known and all values that are not allowed.
    pub fn read(document: &Document) -> Result<Option<Keys>, FileError> {
        let table = document.table(&RUN)?;
        Ok(table.map(|written| Keys {
            values: written.read(&PARAMETERS, Values::default()),
            written,
        }))
    }

    /// Returns where the value of a key is written, if it is.
    pub fn span_of(&self, key: &str) -> Option<Range<usize>> {
        self.written.span_of(key)
    }

    /// Returns the text of a key and its place, if it is written.
    pub fn text(&self, key: &str) -> Option<Spanned<String>> {
        self.written.text(key)
    }

    /// Returns the path of a key and its place, if it is written.
    pub fn path(&self, key: &str) -> Option<Spanned<PathBuf>> {
        let text = self.text(key)?;
        Some(Spanned::new(text.span(), text.into_inner().into()))
    }

    /// Returns the table `[run.autorate]`, if it is there.
    pub fn autorate(&self) -> Option<Table> {
        self.written.table("autorate")
    }
}

#[cfg(test)]
mod tests {
    use fairgate::registry::Value;

    use super::*;

    #[test]
    fn each_key_has_a_field_of_its_own() {
        let infos = RUN.keys();
        for (number, info) in infos.iter().enumerate() {
            assert!(infos[..number].iter().all(|other| other.name != info.name));
            let value = match info.unit {
                Unit::Text(_) => Value::Text("a".to_owned()),
                Unit::Choice(words) => Value::Word(words[words.len() - 1]),
                Unit::Flag => Value::Flag(false),
                _ => Value::Number(*info.range.end()),
            };
            let mut changed = Values::default();
            PARAMETERS[number].field(&mut changed, 0).write(&value);
            let mut defaults = Values::default();
            let differs = |parameter: &&Parameter<Values>| {
                parameter.field(&mut changed, 0).read() != parameter.field(&mut defaults, 0).read()
            };
            let names: Vec<&str> = PARAMETERS.iter().filter(differs).map(Parameter::name).collect();
            assert_eq!(names, [info.name]);
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = "[run]\nleft = \"a\"\nrihgt = \"b\"\nframes = 1\nspin = \"5\"\noffloads = \"of\"\n";
        let document = Document::parse("run.toml", text).unwrap();
        let error = Keys::read(&document).err().unwrap();
        let messages: Vec<(usize, &str)> = error
            .problems()
            .iter()
            .map(|problem| (problem.position().0, problem.message.as_str()))
            .collect();
        assert_eq!(
            messages,
            [
                (3, "`rihgt` is no key of [run]"),
                (4, "`frames` is 1, but must be 64 to 1048576"),
                (5, "`spin`: `5` is a duration without a unit"),
                (6, "`offloads` can't be `of`"),
            ]
        );
        assert!(error.problems()[0].help.contains("`right`"));
    }
}
