//! Wi-Fi cells: `[[simulate.cell]]`.

use fairgate::registry::{Field, Parameter, Section, Shape, Unit, Value, misfit};
use fairgate_config::{FileError, Table};
use toml::Spanned;

use super::line::SHARE;
use super::names::Network;
use super::repeat::{Copy, EACH};
use super::{Reader, place};
use crate::scenario::cell::{LONGEST_PPDU, MOST_MAC_QUEUE, MOST_RETRIES, MOST_STATIONS, MOST_STREAMS};
use crate::scenario::{Access, Cell, MOST_OVERHEAD, NodeId, Positions};
use crate::wifi::Standard;

/// The tables `[[simulate.cell]]`.
pub(super) const CELL: Section =
    Section::new("cell", "a Wi-Fi cell: an access point and its stations", || {
        Parameter::infos(&KEYS, Keys::of(Cell::of(Standard::Ac, "", NodeId(0), Vec::new())))
    })
    .shaped(Shape::List)
    .with(&WITHIN);

static WITHIN: [Section; 1] = [EACH];

/// The values of a cell, and what its parts are made of.
struct Keys {
    cell: Cell,
    stations: Stations,
    distances: Distances,
    radius: Option<f64>,
    /// Texts are read with their places, by [`Table::text`].
    texts: [String; 5],
}

impl Keys {
    fn of(cell: Cell) -> Keys {
        Keys {
            cell,
            stations: Stations::Count(0),
            distances: Distances::Each(Vec::new()),
            radius: None,
            texts: Default::default(),
        }
    }
}

/// The names of the stations, or their number.
enum Stations {
    Count(u64),
    Names(Vec<String>),
}

impl Field for Stations {
    fn read(&self) -> Value {
        match self {
            Stations::Count(count) => Value::Number(*count),
            Stations::Names(names) => Value::Texts(names.clone()),
        }
    }

    fn write(&mut self, value: &Value) {
        *self = match value {
            Value::Number(count) => Stations::Count(*count),
            Value::Texts(names) => Stations::Names(names.clone()),
            _ => misfit("Stations", value),
        };
    }
}

/// One distance for all stations, or one for each.
enum Distances {
    All(f64),
    Each(Vec<f64>),
}

impl Field for Distances {
    fn read(&self) -> Value {
        match self {
            Distances::All(metres) => metres.read(),
            Distances::Each(metres) => Value::List(metres.iter().map(|metres| metres.to_bits()).collect()),
        }
    }

    fn write(&mut self, value: &Value) {
        *self = match value {
            Value::Number(bits) => Distances::All(f64::from_bits(*bits)),
            Value::List(bits) => Distances::Each(bits.iter().copied().map(f64::from_bits).collect()),
            _ => misfit("Distances", value),
        };
    }
}

const fn tree(
    name: &'static str,
    doc: &'static str,
    field: fn(&mut Keys, usize) -> &mut dyn Field,
) -> Parameter<Keys> {
    Parameter::word(name, Unit::Text("tree"), doc, field)
}

static KEYS: [Parameter<Keys>; 24] = [
    Parameter::required_word("name", Unit::Text("name"), "Its name.", |keys, _| {
        &mut keys.texts[0]
    }),
    Parameter::required_word(
        "ap",
        Unit::Text("node"),
        "The access point; the node is created if it is not there.",
        |keys, _| &mut keys.texts[1],
    ),
    Parameter::required(
        "stations",
        Unit::CountOrTexts("stations"),
        1..=MOST_STATIONS as u64,
        "The stations; if only their number is given, they are called NAME-1, NAME-2 and so on.",
        |keys, _| &mut keys.stations,
    ),
    Parameter::word(
        "standard",
        Unit::Choice(Standard::WORDS),
        "802.11ac or 802.11ax.",
        |keys, _| &mut keys.cell.standard,
    ),
    Parameter::new(
        "width",
        Unit::Count("MHz"),
        20..=160,
        "The width of the channel: 20, 40, 80 or 160 MHz.",
        |keys, _| &mut keys.cell.width,
    ),
    Parameter::new(
        "streams",
        Unit::Count("streams"),
        1..=MOST_STREAMS as u64,
        "The number of spatial streams.",
        |keys, _| &mut keys.cell.streams,
    ),
    Parameter::new(
        "guard_interval",
        Unit::Time,
        400..=3200,
        "802.11ac: 400ns or 800ns; 802.11ax: 800ns, 1600ns or 3200ns.",
        |keys, _| &mut keys.cell.guard_interval,
    ),
    Parameter::new(
        "mcs",
        Unit::Count("index"),
        0..=11,
        "The MCS of all stations; default: the best for the distance. 802.11ac has 0 to 9.",
        |keys, _| &mut keys.cell.mcs,
    ),
    Parameter::word(
        "distances",
        Unit::Decimals("metres"),
        "The distance of all stations from the access point, or of each, above 0 and at most 10000.",
        |keys, _| &mut keys.distances,
    ),
    Parameter::word(
        "radius",
        Unit::Decimal("metres", 0, 10_000),
        "Instead: stations are anywhere in a disc with this radius, by the seed.",
        |keys, _| &mut keys.radius,
    ),
    Parameter::word(
        "power",
        Unit::Decimal("dBm", -30, 40),
        "The power of senders.",
        |keys, _| &mut keys.cell.power,
    ),
    Parameter::word(
        "path_loss_exponent",
        Unit::Decimal("exponent", 1, 10),
        "How fast the signal falls with the distance; free space has 2.",
        |keys, _| &mut keys.cell.path_loss_exponent,
    ),
    Parameter::word(
        "error_rate",
        SHARE,
        "The share of MPDUs that are lost besides those of a weak signal, below 1.",
        |keys, _| &mut keys.cell.error_rate,
    ),
    Parameter::word(
        "access",
        Unit::Choice(Access::WORDS),
        "EDCA with four categories by the DSCP, or DCF with one.",
        |keys, _| &mut keys.cell.access,
    ),
    Parameter::new(
        "ampdu_frames",
        Unit::Count("frames"),
        1..=256,
        "The most frames of an A-MPDU; 802.11ac allows 64, 802.11ax 256, which are the defaults.",
        |keys, _| &mut keys.cell.ampdu_frames,
    ),
    Parameter::new(
        "ampdu_bytes",
        Unit::Bytes,
        1..=u32::MAX as u64,
        "The most bytes of an A-MPDU; default: what the standard allows.",
        |keys, _| &mut keys.cell.ampdu_bytes,
    ),
    Parameter::new(
        "ampdu_duration",
        Unit::Time,
        100_000..=LONGEST_PPDU.as_nanos() as u64,
        "The longest transmission.",
        |keys, _| &mut keys.cell.ampdu_duration,
    ),
    Parameter::new(
        "retries",
        Unit::Count("times"),
        0..=MOST_RETRIES as u64,
        "How often a frame is sent again.",
        |keys, _| &mut keys.cell.retries,
    ),
    Parameter::new(
        "rts_from",
        Unit::Bytes,
        0..=u32::MAX as u64,
        "A transmission of at least this length begins with RTS and CTS.",
        |keys, _| &mut keys.cell.rts_from,
    ),
    Parameter::new(
        "mac_queue",
        Unit::Count("frames"),
        1..=MOST_MAC_QUEUE as u64,
        "The most frames that wait behind the tree of a member, for each station and category; default: one \
         A-MPDU of the standard.",
        |keys, _| &mut keys.cell.mac_queue,
    ),
    Parameter::new(
        "overhead",
        Unit::Count("bytes"),
        0..=MOST_OVERHEAD as u64,
        "What trees count for each packet besides its IP packet; 14 is Ethernet.",
        |keys, _| &mut keys.cell.overhead,
    ),
    tree(
        "queue",
        "The tree of all members; default: that of `[simulate]`.",
        |keys, _| &mut keys.texts[2],
    ),
    tree("queue_ap", "The tree of the access point, instead.", |keys, _| {
        &mut keys.texts[3]
    }),
    tree("queue_stations", "The tree of each station.", |keys, _| {
        &mut keys.texts[4]
    }),
];

impl Reader<'_> {
    /// Adds the cell of table `index`, or a cell for each copy.
    pub(super) fn add_cells(
        &self,
        network: &mut Network,
        index: usize,
        cell: &Table,
    ) -> Result<(), FileError> {
        for copy in self.copies(cell)? {
            let cell = self.cell(network, cell, &copy)?;
            network.add_cell(cell, index);
        }
        Ok(())
    }

    /// Reads a cell, and adds the nodes that do not exist yet.
    fn cell(&self, network: &mut Network, written: &Table, copy: &Copy) -> Result<Cell, FileError> {
        let name = self.filled(written, "name", copy)?;
        if network.scenario.cells.iter().any(|other| other.name == name) {
            return Err(self.document.error(
                place(written, "name"),
                format!("there are two cells with the name `{name}`"),
                "give each cell a different name; with `each`, write every variable in it: \"cell-{i}\"",
            ));
        }
        let [of_all, of_ap, of_stations] =
            ["queue", "queue_ap", "queue_stations"].map(|key| written.text(key));
        if let (Some(_), Some(one)) = (&of_all, of_ap.as_ref().or(of_stations.as_ref())) {
            return Err(self.document.error(
                one.span(),
                "the queue is given for all members and also for some",
                "give `queue`, or `queue_ap` and `queue_stations`",
            ));
        }
        let of = |standard, ap, stations| Keys::of(Cell::of(standard, &name, ap, stations));
        let keys = written.read(&KEYS, of(Standard::Ac, NodeId(0), Vec::new()));
        let access_point = network.find_or_add(&self.filled(written, "ap", copy)?);
        let names: Vec<String> = match keys.stations {
            Stations::Count(count) => (1..=count).map(|number| format!("{name}-{number}")).collect(),
            Stations::Names(names) => {
                let names = names.into_iter().zip(written.spans_in("stations"));
                let names = names.map(|(name, span)| self.fill(&Spanned::new(span, name), copy));
                names.collect::<Result<_, FileError>>()?
            }
        };
        let stations: Vec<NodeId> = names.iter().map(|name| network.find_or_add(name)).collect();
        let positions = match (written.span_of("distances"), keys.radius) {
            (Some(_), None) => Positions::Distances(match keys.distances {
                Distances::All(metres) => vec![metres; stations.len()],
                Distances::Each(metres) => metres,
            }),
            (None, Some(radius)) => Positions::Disc { radius },
            (None, None) => Positions::Unknown,
            (Some(_), Some(_)) => {
                return Err(self.document.error(
                    place(written, "radius"),
                    "a cell has either `distances` or a `radius`",
                    "remove one of them",
                ));
            }
        };
        let queue = |one: Option<Spanned<String>>| match one.as_ref().or(of_all.as_ref()) {
            Some(name) => self.named_queue(name, &self.fill(name, copy)?),
            None => self.queue(None),
        };
        let (queue_ap, queue_stations) = (queue(of_ap)?, queue(of_stations)?);
        // What is not written depends on the standard.
        let keys = written.read(&KEYS, of(keys.cell.standard, access_point, stations));
        Ok(Cell {
            positions,
            queue_ap,
            queue_stations,
            ..keys.cell
        })
    }
}
