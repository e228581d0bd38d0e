//! `ShapedDevices.csv`: a line for each device. Devices of one circuit are one subscriber.
//!
//! Columns are found by their names, so that the columns that versions have added may be there or not. Those
//! of other names have no effect.

use std::collections::BTreeMap;

use fairgate_config::Spec;

use super::Network;
use crate::subscribers::check::{self, Read};
use crate::subscribers::csv::{self, Field, Record};
use crate::subscribers::fields::Raw;
use crate::subscribers::file::too_many;
use crate::subscribers::list::{Rates, Subscriber};
use crate::subscribers::numbers::MOST;
use crate::subscribers::section::Leaves;
use crate::subscribers::texts::{Mistake, TextRange, Texts};

/// The columns that are read.
const COLUMNS: [&str; 11] = [
    "circuit id",
    "circuit name",
    "parent node",
    "ipv4",
    "ipv6",
    "download min",
    "upload min",
    "download max",
    "upload max",
    "comment",
    "sqm",
];

/// Those without which nothing can be shaped.
const NEEDED: [&str; 7] = [
    "circuit id",
    "ipv4",
    "ipv6",
    "download min",
    "upload min",
    "download max",
    "upload max",
];

/// Reads the circuits. Mistakes are reported.
pub(crate) fn read(
    text: usize,
    content: &str,
    network: &Network,
    leaves: &Leaves,
    texts: &mut Texts,
) -> Vec<Read> {
    let mut reader = Reader {
        text,
        network,
        leaves,
        texts,
        circuits: Vec::new(),
        by_id: BTreeMap::new(),
    };
    if let Err(mistake) = reader.read(content) {
        texts.report(text, mistake);
        return Vec::new();
    }
    reader.circuits
}

struct Reader<'a> {
    text: usize,
    network: &'a Network,
    leaves: &'a Leaves,
    texts: &'a mut Texts,
    circuits: Vec<Read>,
    /// The places of the circuits in the list.
    by_id: BTreeMap<String, usize>,
}

/// Which column is where.
pub(crate) struct Columns {
    /// By the places of the names in [`COLUMNS`].
    places: [Option<usize>; COLUMNS.len()],
    count: usize,
}

impl Columns {
    pub(crate) fn of(header: &Record<'_>) -> Columns {
        let name_of = |field: &Field<'_>| {
            let name = field.value.to_lowercase();
            name.strip_suffix(" mbps").map_or(name.clone(), str::to_owned)
        };
        let names: Vec<String> = header.fields.iter().map(name_of).collect();
        Columns {
            places: COLUMNS.map(|column| names.iter().position(|name| name == column)),
            count: names.len(),
        }
    }

    pub(crate) fn place(&self, column: &str) -> Option<usize> {
        let index = COLUMNS.iter().position(|known| *known == column)?;
        self.places[index]
    }

    /// Returns a field of a line. A comment may have commas without quotation marks, as in LibreQoS' own
    /// example: what follows it is counted from the end of the line.
    pub(crate) fn field<'r, 't>(&self, record: &'r Record<'t>, column: &str) -> Option<&'r Field<'t>> {
        let place = self.place(column)?;
        let more = record.fields.len().checked_sub(self.count)?;
        let is_after = self.place("comment").is_some_and(|comment| comment < place);
        record.fields.get(place + if is_after { more } else { 0 })
    }
}

impl Reader<'_> {
    fn read(&mut self, content: &str) -> Result<(), Mistake> {
        let mut records = csv::records(content);
        let Some(header) = records.next().transpose()? else {
            return Err(Mistake::new(0..0, "the list is empty", "no line of names", NAMES));
        };
        let columns = Columns::of(&header);
        if let Some(missing) = NEEDED.iter().find(|column| columns.place(column).is_none()) {
            let message = format!("there is no column `{missing}`");
            return Err(Mistake::new(header.span, message, "the names", NAMES));
        }
        for record in records {
            let record = record?;
            // The last one may be a further device of a known circuit.
            if self.circuits.len() > MOST {
                return Err(too_many(record.span));
            }
            let count = record.fields.len();
            let has_comment = columns.place("comment").is_some();
            if count < columns.count || (count > columns.count && !has_comment) {
                let message = format!(
                    "this line has {count} fields, but the line of names has {}",
                    columns.count
                );
                let help = "write a comma for each empty field, and fields with commas in quotation marks";
                let mistake = Mistake::new(record.span, message, "another number", help);
                self.texts.report(self.text, mistake);
                continue;
            }
            self.device(&columns, &record);
        }
        Ok(())
    }

    fn device(&mut self, columns: &Columns, record: &Record<'_>) {
        let before = self.texts.count();
        let raw = |column: &str| {
            let field = columns.field(record, column);
            field.map_or(Raw::new("", record.span.clone()), |field| {
                Raw::new(field.value.clone(), field.span.clone())
            })
        };
        let id = raw("circuit id");
        if id.text.is_empty() {
            let help = "LibreQoS needs it, too: devices with the same one share a circuit";
            let message = "the device has no Circuit ID";
            let at = Mistake::new(record.span.clone(), message, "this one", help);
            return self.texts.report(self.text, at);
        }
        let (text, texts) = (self.text, &mut *self.texts);
        let mut checked = |result: Result<String, Mistake>| {
            let checked = result.map_err(|mistake| texts.report(text, mistake));
            checked.unwrap_or_default()
        };
        let (id, name) = (
            checked(id.name("Circuit ID")),
            checked(raw("circuit name").name("Circuit Name")),
        );
        let mut rates = [Rates::default(); 2];
        for (side, direction) in ["download", "upload"].into_iter().enumerate() {
            let (least, most) = (raw(&format!("{direction} min")), raw(&format!("{direction} max")));
            let mut rate = |raw: &Raw, what: &str| {
                let rate = raw.mbit(&format!("{direction} {what} Mbps"));
                rate.map_err(|mistake| self.texts.report(text, mistake)).ok()
            };
            rates[side] = Rates {
                least: rate(&least, "min"),
                most: rate(&most, "max"),
            };
            let whole = TextRange {
                text,
                span: record.span.clone(),
            };
            let name = format!("{direction} max Mbps");
            if let Some(mistake) = check::least_exceeds(rates[side], Some(&least), &whole, &name) {
                self.texts.report(text, mistake);
            }
        }
        let node = self.node(&raw("parent node"));
        let leaves = self.leaves_of(&raw("sqm"));
        let addresses: Vec<Raw> = ["ipv4", "ipv6"]
            .iter()
            .flat_map(|column| raw(column).parts())
            .collect();
        let (prefixes, prefix_places) = check::prefixes(&addresses, text, self.texts);
        if self.texts.count() > before {
            return;
        }
        if let Some(place) = self.by_id.get(&id) {
            let circuit = &mut self.circuits[*place];
            let known = &mut circuit.subscriber;
            if known.rates != rates || known.node != node || known.leaves != leaves {
                let message = format!("the devices of circuit `{id}` differ in their rates, node or sqm");
                let help = format!(
                    "the first one is at {}; write the same in both, or another Circuit ID",
                    self.texts.line_of(&circuit.place)
                );
                let at = Mistake::new(record.span.clone(), message, "another circuit?", help);
                return self.texts.report(text, at);
            }
            known.prefixes.extend(prefixes);
            circuit.prefix_places.extend(prefix_places);
            return;
        }
        self.by_id.insert(id.clone(), self.circuits.len());
        self.circuits.push(Read {
            subscriber: Subscriber {
                id,
                name,
                prefixes,
                rates,
                plan: None,
                own: rates,
                node,
                leaves,
                limit: None,
            },
            place: TextRange {
                text,
                span: record.span.clone(),
            },
            prefix_places,
        });
    }

    /// Returns the node that a circuit is connected to.
    fn node(&mut self, raw: &Raw) -> Option<String> {
        if raw.text.is_empty() || raw.text.eq_ignore_ascii_case("none") {
            return None;
        }
        match self.network.shaper_at(&raw.text) {
            Some(shaper) => shaper.map(str::to_owned),
            None => {
                let help = fairgate_config::suggest::remedy(
                    &raw.text,
                    "add it to network.json, or leave the field empty; nodes",
                    self.network.names().take(20),
                );
                let message = format!("there is no node `{}`", raw.text);
                self.texts
                    .report(self.text, raw.wrong(message, "no such node", help));
                None
            }
        }
    }

    /// Reads the discipline of a circuit: `cake`, or `cake/fq_codel` for down and up; empty for that of all
    /// others.
    fn leaves_of(&mut self, raw: &Raw) -> [Option<Spec>; 2] {
        let lower = raw.text.to_lowercase();
        let (down, up) = lower.split_once('/').unwrap_or((&lower, &lower));
        [down, up].map(|word| match word.trim() {
            "" => None,
            "cake" => Some(self.leaves.cake.clone()),
            "fq_codel" => Some(self.leaves.fq_codel.clone()),
            "none" => Some(self.leaves.fifo.clone()),
            other => {
                let message = format!("`sqm` is `{other}`");
                let help = "write cake, fq_codel or none, or two of them like cake/fq_codel";
                let mistake = raw.wrong(message, "unknown", help);
                self.texts.report(self.text, mistake);
                None
            }
        })
    }
}

const NAMES: &str = "begin with LibreQoS' line of names: Circuit ID,Circuit Name,Device ID,Device Name,\
    Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment";
