//! The table `[run.autorate]`.

use fairgate::registry::{Parameter, Section, Unit};

use crate::autorate::{TUNING, bounds_section};
use crate::table::Table;

/// The maximum number of reflectors. With more, each would be asked too seldom to have a baseline.
pub const MOST_REFLECTORS: usize = 64;

/// The tables in `[run.autorate]` for the directions of a run: between two ends, and on one interface.
static DIRECTIONS: [Section; 5] = [
    bounds_section("left_to_right", "the rates of this direction"),
    bounds_section("right_to_left", "the rates of the other direction"),
    bounds_section(
        "ingress",
        "with `device`: the rates of the frames that it receives",
    ),
    bounds_section("egress", "with `device`: the rates of the frames that it sends"),
    TUNING,
];

/// The table `autorate` in `[run]`.
pub(super) static AUTORATE: [Section; 1] =
    [
        Section::new("autorate", "rates that follow the capacity of the line", || {
            Parameter::infos(&KEYS, AutorateKeys::default())
        })
        .with(&DIRECTIONS),
    ];

/// What `[run.autorate]` says besides its tables.
#[derive(Debug, Default)]
pub struct AutorateKeys {
    /// The addresses that answer pings.
    pub reflectors: Vec<String>,
    /// The file with the rates; empty if none is written.
    pub file: String,
}

impl AutorateKeys {
    /// Reads the keys of a checked table.
    pub fn read(table: &Table) -> AutorateKeys {
        table.read(&KEYS, AutorateKeys::default())
    }
}

static KEYS: [Parameter<AutorateKeys>; 2] = [
    Parameter::word(
        "reflectors",
        Unit::Texts("address", MOST_REFLECTORS),
        "Addresses that answer pings over the line.",
        |keys, _| &mut keys.reflectors,
    ),
    Parameter::word(
        "file",
        Unit::Text("file"),
        "Instead: a file that has the rates.",
        |keys, _| &mut keys.file,
    ),
];
