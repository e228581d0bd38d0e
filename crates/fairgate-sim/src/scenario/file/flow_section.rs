//! The keys of `[[simulate.flow]]`.

use std::ops::Range;

use fairgate::registry::{Parameter, Section, Shape, Unit};
use fairgate_config::Table;

use super::drawn::time;
use super::recording::PCAP;
use super::repeat::EACH;
use super::sources::{ADAPTIVE, GAME, PING, REQUEST, SSH, TORRENT, VIDEO, VOIP, WEB};
use super::traffic::{TCP, UDP};
use super::{TIMES, place};
use crate::scenario::{Flow, MOST_COPIES, NodeId, Traffic};

/// The tables `[[simulate.flow]]`.
pub(super) const FLOW: Section = Section::new("flow", "what is sent: docs/sources.md", || {
    let nothing = Traffic::Recorded(Default::default());
    Parameter::infos(&KEYS, Keys::of(Flow::new("", NodeId(0), NodeId(0), nothing)))
})
.shaped(Shape::List)
.with(&WITHIN);

/// The applications, in the order of the documentation.
const PROGRAMS: [&str; 10] = [
    "video", "voip", "game", "ping", "ssh", "request", "web", "adaptive", "torrent", "pcap",
];

static WITHIN: [Section; 17] = [
    UDP,
    TCP,
    VIDEO,
    VOIP,
    GAME,
    PING,
    SSH,
    REQUEST,
    WEB,
    ADAPTIVE,
    TORRENT,
    PCAP,
    time("start", "0", "When it starts; each copy draws its own time."),
    time(
        "stagger",
        "all at once",
        "How much later than the last copy each starts.",
    ),
    time("lifetime", "to its `stop`", "How long each flow sends."),
    Section::new("arrivals", "instead of `count`: flows arrive at random", || {
        Parameter::infos(&ARRIVALS, Arriving::default())
    })
    .with(&WITHIN_ARRIVALS),
    EACH,
];

/// The values of a flow, and what its parts are made of.
pub(super) struct Keys {
    pub(super) flow: Flow,
    pub(super) both: Option<bool>,
    /// Texts are read with their places, by [`Table::text`].
    texts: [String; 4],
    pub(super) route: Vec<String>,
}

impl Keys {
    fn of(flow: Flow) -> Keys {
        Keys {
            flow,
            both: None,
            texts: Default::default(),
            route: Vec::new(),
        }
    }

    /// Reads the values of a flow. Those that are not written are the ones of `flow`.
    pub(super) fn read(table: &Table, flow: Flow) -> Keys {
        table.read(&KEYS, Keys::of(flow))
    }
}

static KEYS: [Parameter<Keys>; 16] = [
    Parameter::required_word(
        "name",
        Unit::Text("name"),
        "Its name in the results, different for each.",
        |keys, _| &mut keys.texts[0],
    ),
    Parameter::required_word("from", Unit::Text("node"), "The node that sends.", |keys, _| {
        &mut keys.texts[1]
    }),
    Parameter::required_word("to", Unit::Text("node"), "The node that receives.", |keys, _| {
        &mut keys.texts[2]
    }),
    Parameter::word(
        "both",
        Unit::Flag,
        "Whether another flow goes the opposite way; default: as the application does.",
        |keys, _| &mut keys.both,
    ),
    Parameter::new(
        "count",
        Unit::Count("flows"),
        1..=MOST_COPIES as u64,
        "How many equal flows.",
        |keys, _| &mut keys.flow.count,
    ),
    Parameter::new(
        "stop",
        Unit::Time,
        TIMES,
        "When it sends no more; default: at the end.",
        |keys, _| &mut keys.flow.stop,
    ),
    Parameter::word(
        "gives_up",
        Unit::Flag,
        "Whether a flow ends when admission control rejects one of its packets.",
        |keys, _| &mut keys.flow.gives_up,
    ),
    Parameter::word(
        "rows",
        Unit::Flag,
        "Whether each flow has its own row of results; default: unless flows arrive at random.",
        |keys, _| &mut keys.flow.rows,
    ),
    Parameter::word("dscp", Unit::Dscp, "The DSCP of its packets.", |keys, _| {
        &mut keys.flow.dscp
    }),
    Parameter::new(
        "priority",
        Unit::Count("priority"),
        0..=15,
        "The priority of its packets, as Linux' `SO_PRIORITY`.",
        |keys, _| &mut keys.flow.priority,
    ),
    Parameter::word("ecn", Unit::Flag, "Whether it uses ECN.", |keys, _| {
        &mut keys.flow.ecn
    }),
    Parameter::new(
        "mark",
        Unit::Count("mark"),
        0..=u32::MAX as u64,
        "The firewall mark of its packets.",
        |keys, _| &mut keys.flow.mark,
    ),
    Parameter::word(
        "class",
        Unit::Text("class"),
        "The class that its packets name, \"10:1\", in hexadecimal digits.",
        |keys, _| &mut keys.texts[3],
    ),
    Parameter::new(
        "departs_after",
        Unit::Time,
        TIMES,
        "When a packet wants to leave `etf` or `fq`, after its sending.",
        |keys, _| &mut keys.flow.departs_after,
    ),
    Parameter::new(
        "port",
        Unit::Count("port"),
        0..=u16::MAX as u64,
        "The destination port; default: a number of its own.",
        |keys, _| &mut keys.flow.port,
    ),
    Parameter::word(
        "route",
        Unit::Texts("node or link", usize::MAX),
        "The nodes and links on its way, in order; default: the shortest path.",
        |keys, _| &mut keys.route,
    ),
];

/// When flows arrive.
#[derive(Default)]
struct Arriving {
    rate: String,
    load: Option<fairgate::Rate>,
}

static ARRIVALS: [Parameter<Arriving>; 2] = [
    Parameter::word(
        "rate",
        Unit::Text("flows per time"),
        "Poisson: so many flows on average, such as \"12/s\", \"30/min\" or \"5/h\".",
        |keys, _| &mut keys.rate,
    ),
    Parameter::word(
        "load",
        Unit::Rate,
        "Poisson: the flows together offer so much payload.",
        |keys, _| &mut keys.load,
    ),
];

static WITHIN_ARRIVALS: [Section; 1] = [time("interval", "none", "The time between two arrivals.")];

/// Returns where `field` of a flow is written, or the flow's name.
pub(super) fn place_of(flow: &Table, field: &str) -> Range<usize> {
    let program = || programs(flow).into_iter().next().map(|(_, span)| span);
    let written = match field {
        // An application may be made of the datagrams or the connections that are wrong.
        "udp" => flow.span_of("udp").or_else(program),
        "tcp" => program().or_else(|| flow.span_of("tcp")),
        "video" | "voip" | "ping" | "pcap" => program(),
        field => return place(flow, field),
    };
    written.unwrap_or_else(|| place(flow, "name"))
}

/// Returns the applications of a flow, with their locations, in the order of the documentation.
pub(super) fn programs(flow: &Table) -> Vec<(&'static str, Range<usize>)> {
    let given = PROGRAMS.into_iter();
    given.filter_map(|key| Some((key, flow.span_of(key)?))).collect()
}
