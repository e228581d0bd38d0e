//! Which discipline each kind of qdisc is here, and which parameter each of its options.

use super::{Device, cake};

/// Parameters whose default in tc or in the kernel is not ours.
pub(super) type Defaults = fn(&Device) -> Vec<(&'static str, String)>;

/// A kind of qdisc. A further one is an entry of [`KINDS`].
pub(super) struct Kind {
    /// tc's name.
    name: &'static str,
    /// Ours.
    pub(super) discipline: &'static str,
    pub(super) options: &'static [Opt],
    /// What its classes hold and how they come to be.
    pub(super) children: Children,
    /// Whether packets may name its classes or flows by its handle.
    pub(super) placed_by_handle: bool,
    pub(super) defaults: Defaults,
}

/// An option: its name in tc, the parameter that it sets, and how.
pub(super) struct Opt {
    pub(super) word: &'static str,
    /// Or several, apart by blanks.
    pub(super) parameter: &'static str,
    pub(super) reads: Reads,
}

/// How the value of an option is written.
pub(super) enum Reads {
    /// As ours.
    Same,
    /// A time; a plain number is in this unit.
    Time(&'static str),
    /// A plain number of hundredths; ours is a probability.
    Percent,
    /// A decimal number; ours counts 256ths.
    In256ths,
    /// A plain number, perhaps with a percent sign.
    MaybePercent,
    /// No value follows: the option itself means this one.
    Means(&'static str),
    /// As many numbers as there are.
    Numbers(usize),
    /// All numbers that follow.
    List,
    /// The number of a class, in hexadecimal; 0 is none.
    Minor,
    /// A mask, perhaps in hexadecimal.
    Mask,
    /// Nothing that there is here, and why, or what to do instead.
    Refused(&'static str),
    /// A service curve of `m1`, `d`, `m2`, or of `umax`, `dmax`, `rate`, as far as they are given.
    Curve,
}

/// The disciplines inside.
pub(super) enum Children {
    None,
    /// None, and what filters choose in the kernel, flows, is not what they choose here.
    NoneNorFilters,
    /// One, in class 1; these parameters are of the fifo that is there when nothing is attached.
    Inner {
        of_default: &'static [&'static str],
    },
    /// One in each band, and as many bands as this option says.
    Bands {
        option: &'static str,
    },
    /// The same, but the strict bands and the lists of quanta and of the priomap may leave bands out (`ets`).
    SharingBands,
    /// One in each class that a `tc class` line adds, with these options.
    Classes {
        options: &'static [Opt],
        defaults: Defaults,
    },
    /// The same in a tree: a class may be below another, and those that have none below them hold one.
    Tree {
        options: &'static [Opt],
        defaults: Defaults,
    },
}

impl Kind {
    /// tc's name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether classes must be added before something is attached to them.
    pub(super) fn declares_classes(&self) -> bool {
        matches!(self.children, Children::Classes { .. } | Children::Tree { .. })
    }
}

/// The kind that tc calls `name`.
pub(super) fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The kind that is `discipline` here; the first, where there are several.
pub(super) fn of_discipline(discipline: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.discipline == discipline)
}

/// tc's names of all kinds.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// The kind that the kernel attaches where a script attaches none.
pub(super) const DEFAULT: &Kind = &PFIFO;

const KINDS: &[Kind] = &[
    PFIFO,
    Kind {
        name: "bfifo",
        options: &[same("limit", "limit_bytes")],
        defaults: |device| {
            let bytes = u64::from(device.txqueuelen) * u64::from(frame(device));
            vec![("limit", "none".to_owned()), ("limit_bytes", bytes.to_string())]
        },
        ..PFIFO
    },
    Kind {
        name: "pfifo_head_drop",
        defaults: |device| {
            let limit = device.txqueuelen.to_string();
            vec![("limit", limit), ("drop", "head".to_owned())]
        },
        ..PFIFO
    },
    Kind {
        name: "pfifo_fast",
        discipline: "pfifo_fast",
        options: &[],
        ..PFIFO
    },
    Kind {
        name: "prio",
        discipline: "prio",
        options: &[
            same("bands", "bands"),
            option("priomap", "priomap", Reads::Numbers(16)),
        ],
        children: Children::Bands { option: "bands" },
        placed_by_handle: true,
        defaults: |_| vec![("bands", "3".to_owned())],
    },
    Kind {
        name: "tbf",
        discipline: "tbf",
        options: &[
            same("rate", "rate"),
            same("burst", "burst"),
            same("buffer", "burst"),
            same("maxburst", "burst"),
            same("limit", "limit"),
            time("latency", "latency"),
            same("peakrate", "peakrate"),
            same("mtu", "mtu"),
            same("minburst", "mtu"),
        ],
        children: Children::Inner {
            of_default: &["limit", "latency"],
        },
        placed_by_handle: false,
        defaults: none,
    },
    Kind {
        name: "drr",
        discipline: "drr",
        options: &[],
        children: Children::Classes {
            options: &[same("quantum", "quantum")],
            defaults: quantum_of_one_frame,
        },
        placed_by_handle: true,
        defaults: none,
    },
    Kind {
        name: "qfq",
        discipline: "qfq_plus",
        options: &[],
        children: Children::Classes {
            options: &[same("weight", "weight"), same("maxpkt", "max_packet")],
            defaults: |device| vec![("max_packet", frame(device).to_string())],
        },
        placed_by_handle: true,
        defaults: none,
    },
    Kind {
        name: "ets",
        discipline: "ets",
        options: &[
            same("bands", "bands"),
            same("strict", "strict"),
            option("quanta", "quanta", Reads::List),
            option("priomap", "priomap", Reads::List),
        ],
        children: Children::SharingBands,
        placed_by_handle: true,
        defaults: none,
    },
    Kind {
        name: "htb",
        discipline: "htb",
        options: &[
            option("default", "default", Reads::Minor),
            same("r2q", "r2q"),
            same("direct_qlen", "direct_qlen"),
        ],
        children: Children::Tree {
            options: &[
                same("rate", "rate"),
                same("ceil", "ceil"),
                same("burst", "burst"),
                same("buffer", "burst"),
                same("maxburst", "burst"),
                same("cburst", "cburst"),
                same("cbuffer", "cburst"),
                same("cmaxburst", "cburst"),
                same("prio", "prio"),
                same("quantum", "quantum"),
            ],
            // tc's on a machine with fine timers, at rates below 8 Gbit/s.
            defaults: |_| vec![("burst", "1600".to_owned()), ("cburst", "1600".to_owned())],
        },
        placed_by_handle: true,
        defaults: |device| vec![("direct_qlen", device.txqueuelen.max(2).to_string())],
    },
    Kind {
        name: "hfsc",
        discipline: "hfsc",
        options: &[option("default", "default", Reads::Minor)],
        children: Children::Tree {
            options: &[
                option("sc", "rt ls", Reads::Curve),
                option("rt", "rt", Reads::Curve),
                option("ls", "ls", Reads::Curve),
                option("ul", "ul", Reads::Curve),
            ],
            defaults: |_| vec![("ls", "none".to_owned())],
        },
        placed_by_handle: true,
        defaults: none,
    },
    Kind {
        name: "sfq",
        discipline: "sfq",
        options: &[
            same("limit", "limit"),
            same("depth", "depth"),
            same("flows", "flows"),
            same("divisor", "divisor"),
            same("quantum", "quantum"),
            means("headdrop", "drop", "head"),
            option("perturb", "perturb", Reads::Time("s")),
        ],
        children: Children::None,
        placed_by_handle: true,
        defaults: |device| {
            let mut defaults = quantum_of_one_frame(device);
            defaults.push(("perturb", "none".to_owned()));
            defaults
        },
    },
    Kind {
        name: "red",
        discipline: "red",
        options: &[
            same("limit", "limit"),
            same("min", "min"),
            same("max", "max"),
            same("avpkt", "avpkt"),
            same("burst", "burst"),
            same("probability", "probability"),
            same("bandwidth", "bandwidth"),
            means("ecn", "ecn", "true"),
            means("harddrop", "harddrop", "true"),
            means("nodrop", "nodrop", "true"),
            means("adaptive", "adaptive", "true"),
            means("adaptative", "adaptive", "true"),
        ],
        children: Children::None,
        placed_by_handle: false,
        defaults: none,
    },
    Kind {
        name: "codel",
        discipline: "codel",
        options: &[
            same("limit", "limit"),
            time("target", "target"),
            time("interval", "interval"),
            time("ce_threshold", "ce_threshold"),
            means("ecn", "ecn", "true"),
            means("noecn", "ecn", "false"),
        ],
        children: Children::None,
        placed_by_handle: false,
        defaults: none,
    },
    Kind {
        name: "pie",
        discipline: "pie",
        options: &[
            same("limit", "limit"),
            time("target", "target"),
            time("tupdate", "tupdate"),
            same("alpha", "alpha"),
            same("beta", "beta"),
            means("ecn", "ecn", "true"),
            means("noecn", "ecn", "false"),
            means("bytemode", "bytemode", "true"),
            means("nobytemode", "bytemode", "false"),
            means("dq_rate_estimator", "dq_rate_estimator", "true"),
            means("no_dq_rate_estimator", "dq_rate_estimator", "false"),
        ],
        children: Children::None,
        placed_by_handle: false,
        defaults: mtu_of_one_frame,
    },
    Kind {
        name: "choke",
        discipline: "choke",
        options: &[
            same("limit", "limit"),
            same("min", "min"),
            same("max", "max"),
            same("avpkt", "avpkt"),
            same("burst", "burst"),
            same("probability", "probability"),
            same("bandwidth", "bandwidth"),
            means("ecn", "ecn", "true"),
            means("noecn", "ecn", "false"),
        ],
        children: Children::None,
        placed_by_handle: false,
        defaults: none,
    },
    Kind {
        name: "dualpi2",
        discipline: "dualpi2",
        options: &[
            same("limit", "limit"),
            same("memlimit", "memory_limit"),
            time("target", "target"),
            time("tupdate", "tupdate"),
            option("alpha", "alpha", Reads::In256ths),
            option("beta", "beta", Reads::In256ths),
            time("step_thresh", "step_thresh"),
            same("min_qlen_step", "min_qlen_step"),
            same("coupling_factor", "coupling_factor"),
            option("classic_protection", "classic_protection", Reads::MaybePercent),
            means("drop_on_overload", "drop_overload", "true"),
            means("overflow", "drop_overload", "false"),
            means("drop_enqueue", "drop_early", "true"),
            means("drop_dequeue", "drop_early", "false"),
            means("l4s_ect", "any_ect", "false"),
            means("any_ect", "any_ect", "true"),
        ],
        children: Children::None,
        placed_by_handle: false,
        defaults: mtu_of_one_frame,
    },
    Kind {
        name: "fq_pie",
        discipline: "fq_pie",
        options: &[
            same("limit", "limit"),
            same("flows", "flows"),
            time("target", "target"),
            time("tupdate", "tupdate"),
            same("alpha", "alpha"),
            same("beta", "beta"),
            same("quantum", "quantum"),
            same("memory_limit", "memory_limit"),
            option("ecn_prob", "ecn_prob", Reads::Percent),
            means("ecn", "ecn", "true"),
            means("noecn", "ecn", "false"),
            means("bytemode", "bytemode", "true"),
            means("nobytemode", "bytemode", "false"),
            means("dq_rate_estimator", "dq_rate_estimator", "true"),
            means("no_dq_rate_estimator", "dq_rate_estimator", "false"),
        ],
        children: Children::None,
        placed_by_handle: true,
        defaults: |device| {
            let mut defaults = quantum_of_one_frame(device);
            defaults.append(&mut mtu_of_one_frame(device));
            defaults
        },
    },
    Kind {
        name: "fq",
        discipline: "fq",
        options: &[
            same("limit", "limit"),
            same("flow_limit", "flow_limit"),
            same("buckets", "flows"),
            same("quantum", "quantum"),
            same("initial_quantum", "initial_quantum"),
            same("maxrate", "maxrate"),
            same("low_rate_threshold", "low_rate_threshold"),
            time("refill_delay", "refill_delay"),
            time("horizon", "horizon"),
            means("horizon_drop", "beyond_horizon", "drop"),
            means("horizon_cap", "beyond_horizon", "hold"),
            time("ce_threshold", "ce_threshold"),
        ],
        children: Children::None,
        placed_by_handle: true,
        defaults: |device| {
            let frame = u64::from(frame(device));
            let quanta = [("quantum", 2 * frame), ("initial_quantum", 10 * frame)];
            quanta.map(|(name, bytes)| (name, bytes.to_string())).to_vec()
        },
    },
    Kind {
        name: "fq_codel",
        discipline: "fq_codel",
        options: &[
            same("limit", "limit"),
            same("flows", "flows"),
            same("quantum", "quantum"),
            time("target", "target"),
            time("interval", "interval"),
            time("ce_threshold", "ce_threshold"),
            same("memory_limit", "memory_limit"),
            same("drop_batch", "drop_batch"),
            means("ecn", "ecn", "true"),
            means("noecn", "ecn", "false"),
        ],
        children: Children::None,
        placed_by_handle: true,
        defaults: quantum_of_one_frame,
    },
    Kind {
        name: "cake",
        discipline: "cake",
        options: cake::OPTIONS,
        children: Children::NoneNorFilters,
        placed_by_handle: true,
        defaults: cake::defaults,
    },
];

const PFIFO: Kind = Kind {
    name: "pfifo",
    discipline: "fifo",
    options: &[same("limit", "limit")],
    children: Children::None,
    placed_by_handle: false,
    defaults: |device| vec![("limit", device.txqueuelen.to_string())],
};

pub(super) const fn option(word: &'static str, parameter: &'static str, reads: Reads) -> Opt {
    Opt {
        word,
        parameter,
        reads,
    }
}

pub(super) const fn same(word: &'static str, parameter: &'static str) -> Opt {
    option(word, parameter, Reads::Same)
}

/// tc reads a time without a unit as microseconds.
pub(super) const fn time(word: &'static str, parameter: &'static str) -> Opt {
    option(word, parameter, Reads::Time("us"))
}

pub(super) const fn means(word: &'static str, parameter: &'static str, value: &'static str) -> Opt {
    option(word, parameter, Reads::Means(value))
}

fn none(_: &Device) -> Vec<(&'static str, String)> {
    Vec::new()
}

fn quantum_of_one_frame(device: &Device) -> Vec<(&'static str, String)> {
    vec![("quantum", frame(device).to_string())]
}

fn mtu_of_one_frame(device: &Device) -> Vec<(&'static str, String)> {
    vec![("mtu", frame(device).to_string())]
}

/// The longest frame, bytes.
pub(super) fn frame(device: &Device) -> u32 {
    device.mtu.saturating_add(device.hard_header_len)
}
