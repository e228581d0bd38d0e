//! The `[run]` section of a configuration: the interfaces, and the queue of each direction.

mod autorate;
mod endpoints;
mod kernel;
mod packet_log;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairgate::sharding::{Division, Limit};
use fairgate_config::run::{BackendKind, Keys, Nat};
use fairgate_config::{Document, FileError, ShardBy, ShardedSpec, Spec, Workers};
use toml::Spanned;

use crate::status::ClassNames;
use crate::sys::interface::Interface;

pub(crate) use autorate::names as rate_names;
pub use autorate::{Autorate, RateSource};
pub use endpoints::{Address, Endpoint, EndpointError, Endpoints, Offer};
use fairgate_config::run::SuperPackets;
pub use fairgate_config::run::{Divide, Offloads};
pub use packet_log::PacketLog;

/// One end of the bridge, as named in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// An existing interface.
    Interface(String),
    /// A TAP device that the run creates and removes. A persistent one is used and kept.
    Tap(String),
    /// The same for a TUN device, which carries IP packets without Ethernet headers.
    Tun(String),
    /// The host's own stack, behind the interface of this name, which is the other end.
    Host(String),
}

impl End {
    /// Returns the interface's name.
    pub fn name(&self) -> &str {
        match self {
            End::Interface(name) | End::Tap(name) | End::Tun(name) | End::Host(name) => name,
        }
    }

    /// Returns what the status calls it: the interface's name, or `host`.
    pub fn title(&self) -> &str {
        match self {
            End::Host(_) => fairgate_run_api::HOST,
            End::Interface(name) | End::Tap(name) | End::Tun(name) => name,
        }
    }
}

/// Whether to isolate the interfaces from the kernel's own stack during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolate {
    /// Isolate interfaces that nothing uses. Reject an interface with an address, in a bridge, or with VLANs.
    #[default]
    Unused,
    /// Isolate the interfaces even if they are used. The use is suspended during the run.
    Always,
    /// Do not isolate. The kernel sees all frames, and answers, routes and bridges them as usual.
    Never,
}

/// A checked `[run]` section.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of the run, used for the status socket.
    pub name: String,
    /// The left and the right end.
    pub ends: [End; 2],
    /// The directions in which frames are taken from the kernel, or that have a tree in it. Between two
    /// interfaces these are both, unless the kernel forwards.
    pub taken: [bool; 2],
    /// The trees from left to right and from right to left. On one interface: of received frames and of sent
    /// frames.
    pub queues: [Spec; 2],
    /// The trees that get hosts in the LAN instead of the address to which this router translates them.
    pub nat: [bool; 2],
    /// The names that the file gives to these trees.
    pub queue_names: [Option<String>; 2],
    /// What the classes of these trees are called, if the trees are those of a list of subscribers.
    pub class_names: [ClassNames; 2],
    /// The maximum number of frames held in one direction.
    pub frames: u32,
    /// The delay behind the queue.
    pub delay: Duration,
    /// The bytes that are added to each frame's length as the trees count it. Without any, they count the
    /// Ethernet header of 14 bytes and no preamble, check sequence and gap.
    pub overhead: i32,
    /// How long before a timed wake-up the thread stays awake.
    pub spin: Duration,
    /// What to do about receive offloads.
    pub offloads: Offloads,
    /// Whether trees get super-packets whole.
    pub super_packets: SuperPackets,
    /// Whether to isolate the interfaces from the kernel's own stack.
    pub isolate: Isolate,
    /// Whether to ask for real-time scheduling.
    pub realtime: bool,
    /// The back end for existing interfaces. `None` chooses it.
    pub backend: Option<BackendKind>,
    /// How many threads forward frames, each with trees of its own.
    pub workers: u16,
    /// What the workers divide among them.
    pub shard_by: Divide,
    /// Where the run can be controlled and observed by network protocols.
    pub endpoints: Endpoints,
    /// How the rates of the trees follow the line. `None` if they are fixed.
    pub autorate: Option<Autorate>,
    /// How much of the last packets is kept. `None` for nothing.
    pub packet_log: Option<PacketLog>,
    /// Why the run has another configuration than its file says, if so: one sentence. It is shown in the
    /// status.
    pub fallback: Option<String>,
    /// How many changes have led to these trees.
    pub revision: u64,
    /// What several workers run of each tree, since [`Plan::divide`]. `None` if there is nothing to share.
    pub(crate) sharded: [Option<Arc<ShardedSpec>>; 2],
}

impl Plan {
    /// Reads the `[run]` section of a configuration file.
    ///
    /// # Errors
    /// Fails if there is no such section, and reports all mistakes in it.
    pub fn read(document: &Document) -> Result<Plan, FileError> {
        Plan::read_for(document, None)
    }

    /// Does the same for a run with this back end, if there is one, instead of the file's.
    ///
    /// # Errors
    /// As of [`read`](Plan::read).
    pub fn read_for(document: &Document, backend: Option<BackendKind>) -> Result<Plan, FileError> {
        let Some(section) = Keys::read(document)? else {
            return Err(document.error(
                0..0,
                "there is no [run] section",
                "add one with `left` and `right`, two interfaces to join, or with `device`, one interface",
            ));
        };
        let mut problems = document.problems();
        let backend = backend.or(section.values.backend);
        if backend == Some(BackendKind::Kernel) {
            problems.of(kernel::check(document, &section));
        }
        let name = match section.text("name") {
            Some(name) => problems.of(read_name(document, &name)),
            None => Some(default_name(document.name())),
        };
        let mut place = problems.of(Attachment::read(document, &section));
        if let (Some(place), Some(BackendKind::Kernel)) = (&mut place, backend) {
            problems.of(kernel::place(document, &section, place));
        }
        let nat = problems.of(read_nat(document, &section));
        let endpoints = problems.of(Endpoints::read(document, &section));
        let packet_log = problems.of(PacketLog::read(document, &section));
        let values = &section.values;
        let Some(place) = place else {
            return Err(problems.into_error());
        };
        let mut queue = |name: &Option<Spanned<String>>| match name {
            Some(name) => problems.of(document.resolve(name).cloned()),
            None => problems.of(Spec::inline("fifo")),
        };
        let queues = [queue(&place.queues[0]), queue(&place.queues[1])];
        let workers = problems.of(read_workers(document, &section, &place));
        let [Some(left), Some(right)] = queues else {
            return Err(problems.into_error());
        };
        let queues = [left, right];
        let is_on_one = matches!(place.ends[1], End::Host(_));
        let autorate = section.autorate().and_then(|table| {
            let read = Autorate::read(document, &table, is_on_one, place.taken, &queues);
            problems.of(read)
        });
        let (Some(name), Some(nat), Some(endpoints), Some(packet_log), Some(workers)) =
            (name, nat, endpoints, packet_log, workers)
        else {
            return Err(problems.into_error());
        };
        let mut plan = Plan {
            name,
            queues,
            queue_names: place.queues.map(|name| Some(name?.into_inner())),
            ends: place.ends,
            taken: place.taken,
            nat,
            class_names: Default::default(),
            frames: values.frames,
            delay: values.delay,
            overhead: values.overhead,
            spin: values.spin,
            offloads: values.offloads,
            super_packets: values.super_packets,
            isolate: match values.isolate {
                None => Isolate::Unused,
                Some(true) => Isolate::Always,
                Some(false) => Isolate::Never,
            },
            realtime: values.realtime,
            backend,
            workers,
            shard_by: values.shard_by,
            endpoints,
            autorate,
            packet_log,
            fallback: None,
            revision: 0,
            sharded: [None, None],
        };
        problems.of(plan.divide(None));
        problems.unless_any(plan)
    }

    /// Returns the workers of the direction from the port at `side` (0 is left), if there are several.
    pub(crate) fn workers_at(&self, side: usize) -> Option<Workers> {
        let by = match (self.shard_by, side) {
            (Divide::Flow, _) => ShardBy::Flow,
            (Divide::Left, 0) | (Divide::Right, 1) => ShardBy::Source,
            (Divide::Left | Divide::Right, _) => ShardBy::Destination,
            (Divide::Class, _) => ShardBy::Class,
        };
        let count = self.workers;
        (count > 1).then_some(Workers { count, by })
    }

    /// Returns what the workers of a direction share. `None` if there is one worker, or if frames pass in the
    /// order of their arrival.
    pub(crate) fn limit(&self, side: usize) -> Option<Limit> {
        self.sharded[side].as_ref().map(|sharded| sharded.limit())
    }

    /// Returns how the workers of a direction divide classes, if they do.
    pub(crate) fn division(&self, side: usize) -> Option<&Arc<Division>> {
        self.sharded[side].as_ref()?.division()
    }

    /// Returns the classes that each worker has in a direction, if the workers divide classes.
    pub fn classes_of_workers(&self, side: usize) -> Option<Vec<Vec<u32>>> {
        self.division(side)?;
        let classes = |worker| {
            let tree = self.tree_of(side, worker).classes();
            tree.into_iter().map(|class| class.minor).collect()
        };
        Some((0..self.workers.into()).map(classes).collect())
    }

    /// Returns the tree that a worker runs in the direction from the port at `side`.
    pub(crate) fn tree_of(&self, side: usize, worker: usize) -> &Spec {
        match &self.sharded[side] {
            Some(sharded) => sharded.part(worker),
            None => &self.queues[side],
        }
    }

    /// Refuses trees that need more than the available bytes of memory, beside those of a running plan.
    ///
    /// # Errors
    /// Fails at the disciplines that need most.
    pub fn fits(&self, running: Option<&Plan>, available: u64) -> Result<(), FileError> {
        // Each worker has trees of its own, unless they divide the classes of one.
        let trees = match self.shard_by {
            Divide::Class => 1,
            Divide::Flow | Divide::Left | Divide::Right => u64::from(self.workers),
        };
        let mut available = available / trees;
        let mut too_large = Vec::new();
        for (side, queue) in self.queues.iter().enumerate() {
            let old = running.map(|plan| &plan.queues[side]);
            let needed = old.map_or_else(|| queue.memory(), |old| queue.memory_beside(old));
            if needed > available {
                too_large.extend(match old {
                    None => queue.too_large_for(available),
                    Some(old) => queue.too_large_beside(old, available),
                });
            }
            available = available.saturating_sub(needed);
        }
        FileError::unless_empty(too_large)
    }

    /// Returns the directions that have a tree: the file names one, or a change has put it in the place of
    /// the fifo.
    pub fn shaped(&self) -> [bool; 2] {
        let fifo = Spec::inline("fifo").expect("it is a discipline");
        [0, 1].map(|side| self.queue_names[side].is_some() || self.queues[side] != fifo)
    }

    /// Returns whether a super-packet is one packet of the tree in the direction from the port at `side`.
    pub(crate) fn takes_super_packets(&self, side: usize) -> bool {
        self.super_packets == SuperPackets::Whole && self.queues[side].takes_super_packets()
    }

    /// Returns whether packets in the direction from the port at `side` leave at their times and not before.
    pub(crate) fn keeps_times(&self, side: usize) -> bool {
        !self.delay.is_zero() || self.queues[side].keeps_times()
    }

    /// Divides the trees among the workers. Call it whenever the trees have changed. Classes stay with the
    /// workers that have them in the plan `before`.
    ///
    /// # Errors
    /// If the shares of a tree would depend on the number of workers.
    pub(crate) fn divide(&mut self, before: Option<&Plan>) -> Result<(), FileError> {
        let mut problems = Vec::new();
        for side in 0..2 {
            let queue = &self.queues[side];
            // A plain fifo promises nothing that workers could break.
            let workers = self.workers_at(side).filter(|_| queue.discipline() != "fifo");
            let before = before.and_then(|before| before.sharded[side].as_deref());
            let sharded = workers.map(|workers| queue.sharded_after(workers, before));
            match sharded.transpose() {
                Ok(sharded) => self.sharded[side] = sharded.map(Arc::new),
                Err(problem) => problems.push(*problem),
            }
        }
        FileError::unless_empty(problems)
    }

    /// Returns whether the run is on one interface that the host itself uses.
    pub fn is_on_one_interface(&self) -> bool {
        matches!(self.ends[1], End::Host(_))
    }

    /// Returns the ends that are not the host's own stack: one, or left and right.
    pub(crate) fn outer_ends(&self) -> &[End] {
        match self.is_on_one_interface() {
            true => &self.ends[..1],
            false => &self.ends,
        }
    }

    /// Returns the interface at which the kernel has the tree from the end at `side`: that which sends, and
    /// before the host's own stack that which receives.
    pub fn tree_at(&self, side: usize) -> &str {
        self.outer_ends().get(1 - side).unwrap_or(&self.ends[0]).name()
    }

    /// Returns the directions between two interfaces whose packets the kernel is to forward through a tree:
    /// from where and to where.
    pub fn ways_of_kernel(&self) -> impl Iterator<Item = [&str; 2]> {
        let is_between = self.backend == Some(BackendKind::Kernel) && !self.is_on_one_interface();
        let sides = [0, 1]
            .into_iter()
            .filter(move |&side| is_between && self.taken[side]);
        sides.map(|side| [1 - side, side].map(|side| self.tree_at(side)))
    }
}

/// Where a run takes frames, and the names of its trees.
struct Attachment {
    ends: [End; 2],
    taken: [bool; 2],
    queues: [Option<Spanned<String>>; 2],
}

impl Attachment {
    fn read(document: &Document, section: &Keys) -> Result<Attachment, FileError> {
        match section.text("device") {
            Some(device) => Attachment::on(document, section, &device),
            None => Attachment::between(document, section),
        }
    }

    fn between(document: &Document, section: &Keys) -> Result<Attachment, FileError> {
        let mut problems = document.problems();
        for key in ["ingress", "egress"] {
            if let Some(span) = section.span_of(key) {
                problems.add(
                    span,
                    format!("`{key}` needs `device`, the interface whose frames it is for"),
                    "here",
                    "add `device`; between two interfaces, use `left_to_right` and `right_to_left`",
                );
            }
        }
        let texts = ["left", "right"].map(|key| section.text(key));
        for (key, text) in ["left", "right"].into_iter().zip(&texts) {
            if text.is_none() {
                problems.add(
                    0..0,
                    format!("`{key}` is missing in [run]"),
                    "here",
                    "name the two interfaces to join with `left` and `right`, or one with `device`",
                );
            }
        }
        let mut end = |text: &Option<Spanned<String>>| problems.of(read_end(document, text.as_ref()?));
        let ends = texts.each_ref().map(&mut end);
        let ([Some(left), Some(right)], [Some(left_end), Some(right_end)]) = (texts, ends) else {
            return Err(problems.into_error());
        };
        let ends = [left_end, right_end];
        let is_tun = |end: &End| matches!(end, End::Tun(_));
        if ends[0] == ends[1] {
            problems.add(
                right.span(),
                "`left` and `right` are the same interface",
                "here",
                "name two different interfaces",
            );
        } else if let [true, false] | [false, true] = ends.each_ref().map(is_tun) {
            let (tun, other) = if is_tun(&ends[0]) {
                (left, right)
            } else {
                (right, left)
            };
            problems.add(
                other.span(),
                format!(
                    "`{}` has Ethernet headers, but `{}` has none",
                    other.get_ref(),
                    tun.get_ref()
                ),
                "here",
                "join two TUN devices, or use a TAP device",
            );
        }
        problems.unless_any(Attachment {
            ends,
            taken: [true; 2],
            queues: ["left_to_right", "right_to_left"].map(|key| section.text(key)),
        })
    }

    fn on(document: &Document, section: &Keys, device: &Spanned<String>) -> Result<Attachment, FileError> {
        let mut problems = document.problems();
        for key in ["left", "right", "left_to_right", "right_to_left"] {
            if let Some(span) = section.span_of(key) {
                problems.add(
                    span,
                    format!("`{key}` is for two interfaces, but `device` names one"),
                    "here",
                    "remove it; `ingress` and `egress` name the trees of received and of sent frames",
                );
            }
        }
        if section.span_of("isolate").is_some() {
            problems.add(
                device.span(),
                "`isolate` is for two interfaces, but `device` names one that this machine itself uses",
                "here",
                "remove `isolate`",
            );
        }
        let queues = ["ingress", "egress"].map(|key| section.text(key));
        if queues == [None, None] {
            problems.add(
                device.span(),
                "`device` has no tree",
                "here",
                "add `ingress` for the frames that it receives, `egress` for those that it sends, or both",
            );
        }
        let name = match problems.of(read_end(document, device)) {
            Some(End::Interface(name)) => name,
            Some(_) => {
                problems.add(
                    device.span(),
                    "`device` must be an existing interface",
                    "here",
                    "remove what is before the colon, or join two ends with `left` and `right`",
                );
                return Err(problems.into_error());
            }
            None => return Err(problems.into_error()),
        };
        problems.unless_any(Attachment {
            ends: [End::Interface(name.clone()), End::Host(name)],
            taken: queues.each_ref().map(Option::is_some),
            queues,
        })
    }
}

impl Plan {
    /// Returns the first key that differs from `other` and can't change during a run. Queues may change.
    pub(crate) fn fixed_difference(&self, other: &Plan) -> Option<&'static str> {
        let trees = match self.is_on_one_interface() {
            true => ["ingress", "egress"],
            false => ["left_to_right", "right_to_left"],
        };
        let differences = [
            (
                "device",
                self.is_on_one_interface() != other.is_on_one_interface(),
            ),
            ("left", self.ends[0] != other.ends[0]),
            ("right", self.ends[1] != other.ends[1]),
            (trees[0], self.taken[0] != other.taken[0]),
            (trees[1], self.taken[1] != other.taken[1]),
            ("nat", self.nat != other.nat),
            ("name", self.name != other.name),
            ("frames", self.frames != other.frames),
            ("delay", self.delay != other.delay),
            ("overhead", self.overhead != other.overhead),
            ("spin", self.spin != other.spin),
            ("offloads", self.offloads != other.offloads),
            ("isolate", self.isolate != other.isolate),
            ("realtime", self.realtime != other.realtime),
            ("backend", self.backend != other.backend),
            ("workers", self.workers != other.workers),
            ("shard_by", self.shard_by != other.shard_by),
            ("api", self.endpoints.api != other.endpoints.api),
            ("metrics", self.endpoints.metrics != other.endpoints.metrics),
            ("autorate", self.autorate != other.autorate),
            ("packet_log", self.packet_log != other.packet_log),
        ];
        differences
            .iter()
            .find(|(_, differs)| *differs)
            .map(|(key, _)| *key)
    }
}

fn read_end(document: &Document, text: &Spanned<String>) -> Result<End, FileError> {
    let text_of_end = text.get_ref().as_str();
    let (name, end): (&str, fn(String) -> End) = match text_of_end.split_once(':') {
        Some(("tap", name)) => (name, End::Tap),
        Some(("tun", name)) => (name, End::Tun),
        _ => (text_of_end, End::Interface),
    };
    let invalid = |character: char| character.is_whitespace() || character == '/' || character == '\0';
    if name.is_empty() || name.len() > Interface::LONGEST_NAME || name.contains(invalid) {
        return Err(document.error(
            text.span(),
            format!("`{name}` is not a valid interface name"),
            format!(
                "use 1 to {} characters without spaces and slashes",
                Interface::LONGEST_NAME
            ),
        ));
    }
    Ok(end(name.to_owned()))
}

fn read_name(document: &Document, name: &Spanned<String>) -> Result<String, FileError> {
    let text = name.get_ref();
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if text.is_empty() || text.len() > 32 || text.starts_with('.') || !text.chars().all(allowed) {
        return Err(document.error(
            name.span(),
            format!("`{text}` is not a valid name of a run"),
            "use 1 to 32 letters, digits, `-`, `_` and `.`: the status socket gets this name",
        ));
    }
    Ok(text.clone())
}

/// Returns the name of the configuration file without folder and extension.
fn default_name(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or("fairgate").chars().take(32).collect()
}

/// Reads the number of workers. Several need two interfaces whose frames the kernel can divide.
fn read_workers(document: &Document, section: &Keys, place: &Attachment) -> Result<u16, FileError> {
    let count = section.values.workers;
    match (section.span_of("workers"), section.span_of("shard_by")) {
        (None, Some(span)) => Err(document.error(
            span,
            "`shard_by` says what workers divide, but there is one worker",
            "add `workers`, or remove this key",
        )),
        (Some(span), _) if count > 1 && !place.ends.iter().all(|end| matches!(end, End::Interface(_))) => {
            Err(document.error(
                span,
                "several workers need two existing interfaces, whose frames the kernel divides among them",
                "name them with `left` and `right`, or remove `workers`",
            ))
        }
        _ => Ok(count),
    }
}

/// Reads for which directions translations are looked up. Each of them needs a tree.
fn read_nat(document: &Document, section: &Keys) -> Result<[bool; 2], FileError> {
    let (Some(nat), Some(span)) = (section.values.nat, section.span_of("nat")) else {
        return Ok([false; 2]);
    };
    if section.span_of("device").is_none() {
        return Err(document.error(
            span,
            "`nat` needs `device`: this machine does not track connections between two interfaces",
            "remove it; or run on one interface of the router that translates addresses",
        ));
    }
    let has_tree = ["ingress", "egress"].map(|key| section.span_of(key).is_some());
    let (wanted, missing) = match nat {
        Nat::Both => (has_tree, None),
        Nat::Ingress => ([true, false], (!has_tree[0]).then_some("ingress")),
        Nat::Egress => ([false, true], (!has_tree[1]).then_some("egress")),
    };
    match missing {
        None => Ok(wanted),
        Some(key) => Err(document.error(
            span,
            format!("`nat` is for `{key}`, which has no tree"),
            format!("add `{key}`, or write \"both\" for each direction that has a tree"),
        )),
    }
}
