//! Wi-Fi cells: `[[simulate.cell]]`.

use std::ops::Range;

use fairgate_config::units::parse_size;
use fairgate_config::{FileError, Table};
use serde::Deserialize;
use toml::Spanned;

use super::repeat::Copy;
use super::{Reader, span};
use crate::scenario::file::names::Network;
use crate::scenario::{Access, Cell, NodeId, Positions};
use crate::wifi::Standard;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellSection {
    pub(super) name: Spanned<String>,
    ap: Spanned<String>,
    stations: Spanned<Stations>,
    standard: Option<Spanned<String>>,
    width: Option<Spanned<u32>>,
    streams: Option<Spanned<u32>>,
    guard_interval: Option<Spanned<String>>,
    mcs: Option<Spanned<u8>>,
    distances: Option<Spanned<Distances>>,
    radius: Option<Spanned<f64>>,
    power: Option<Spanned<f64>>,
    path_loss_exponent: Option<Spanned<f64>>,
    error_rate: Option<Spanned<f64>>,
    access: Option<Spanned<String>>,
    ampdu_frames: Option<Spanned<u32>>,
    ampdu_bytes: Option<Spanned<String>>,
    ampdu_duration: Option<Spanned<String>>,
    retries: Option<Spanned<u8>>,
    rts_from: Option<Spanned<String>>,
    mac_queue: Option<Spanned<u32>>,
    overhead: Option<Spanned<u32>>,
    queue: Option<Spanned<String>>,
    queue_ap: Option<Spanned<String>>,
    queue_stations: Option<Spanned<String>>,
    each: Option<Table>,
}

/// The names of the stations, or their number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stations {
    Count(u32),
    Names(Vec<String>),
}

/// One distance for all stations, or one for each.
#[derive(Deserialize)]
#[serde(untagged)]
enum Distances {
    All(f64),
    Each(Vec<f64>),
}

impl CellSection {
    /// Returns where `field` is written, or the cell's name.
    pub(super) fn location(&self, field: &str) -> Range<usize> {
        match field {
            "stations" => Some(self.stations.span()),
            "width" => span(&self.width),
            "streams" => span(&self.streams),
            "guard_interval" => span(&self.guard_interval),
            "mcs" => span(&self.mcs),
            "distances" => span(&self.distances),
            "radius" => span(&self.radius),
            "power" => span(&self.power),
            "path_loss_exponent" => span(&self.path_loss_exponent),
            "error_rate" => span(&self.error_rate),
            "ampdu_frames" => span(&self.ampdu_frames),
            "ampdu_bytes" => span(&self.ampdu_bytes),
            "ampdu_duration" => span(&self.ampdu_duration),
            "retries" => span(&self.retries),
            "mac_queue" => span(&self.mac_queue),
            "overhead" => span(&self.overhead),
            "queue_ap" => span(&self.queue_ap).or(span(&self.queue)),
            "queue_stations" => span(&self.queue_stations).or(span(&self.queue)),
            _ => None,
        }
        .unwrap_or_else(|| self.name.span())
    }
}

/// Returns the value of a key, or the default.
fn or<T: std::marker::Copy>(value: &Option<Spanned<T>>, default: T) -> T {
    value.as_ref().map_or(default, |value| *value.get_ref())
}

impl Reader<'_> {
    /// Adds the cell of section `index`, or a cell for each copy.
    pub(super) fn add_cells(
        &self,
        network: &mut Network,
        index: usize,
        cell: &CellSection,
    ) -> Result<(), FileError> {
        for copy in self.copies(cell.each.as_ref())? {
            let cell = self.cell(network, cell, &copy)?;
            network.add_cell(cell, index);
        }
        Ok(())
    }

    /// Reads a cell, and adds the nodes that do not exist yet.
    fn cell(&self, network: &mut Network, cell: &CellSection, copy: &Copy) -> Result<Cell, FileError> {
        let name = self.fill(&cell.name, copy)?;
        if network.scenario.cells.iter().any(|other| other.name == name) {
            return Err(self.document.error(
                cell.name.span(),
                format!("there are two cells with the name `{name}`"),
                "give each cell a different name; with `each`, write every variable in it: \"cell-{i}\"",
            ));
        }
        if let (Some(_), Some(one)) = (
            &cell.queue,
            cell.queue_ap.as_ref().or(cell.queue_stations.as_ref()),
        ) {
            return Err(self.document.error(
                one.span(),
                "the queue is given for all members and also for some",
                "give `queue`, or `queue_ap` and `queue_stations`",
            ));
        }
        let standard = self.word(
            &cell.standard,
            Standard::Ac,
            &[("ac", Standard::Ac), ("ax", Standard::Ax)],
        )?;
        let access = self.word(
            &cell.access,
            Access::Edca,
            &[("edca", Access::Edca), ("dcf", Access::Dcf)],
        )?;
        let access_point = network.find_or_add(&self.fill(&cell.ap, copy)?);
        let stations: Vec<NodeId> = match cell.stations.get_ref() {
            Stations::Count(count) => (1..=*count)
                .map(|number| network.find_or_add(&format!("{name}-{number}")))
                .collect(),
            Stations::Names(names) => {
                let name = |name: &String| {
                    let written = Spanned::new(cell.stations.span(), name.clone());
                    Ok(network.find_or_add(&self.fill(&written, copy)?))
                };
                names.iter().map(name).collect::<Result<_, FileError>>()?
            }
        };
        let positions = match (&cell.distances, &cell.radius) {
            (Some(distances), None) => Positions::Distances(match distances.get_ref() {
                Distances::All(metres) => vec![*metres; stations.len()],
                Distances::Each(metres) => metres.clone(),
            }),
            (None, Some(radius)) => Positions::Disc {
                radius: *radius.get_ref(),
            },
            (None, None) => Positions::Unknown,
            (Some(_), Some(radius)) => {
                return Err(self.document.error(
                    radius.span(),
                    "a cell has either `distances` or a `radius`",
                    "remove one of them",
                ));
            }
        };
        let plain = Cell::of(standard, &name, access_point, stations);
        let bytes = |text: &Spanned<String>| -> Result<u32, FileError> {
            let bytes = self.unit(&text.span(), parse_size(text.get_ref()))?;
            u32::try_from(bytes).map_err(|_| {
                self.document.error(
                    text.span(),
                    format!("`{}` is too much", text.get_ref()),
                    "write less than 4 GB",
                )
            })
        };
        let queue = |one: &Option<Spanned<String>>| match one.as_ref().or(cell.queue.as_ref()) {
            Some(name) => self.named_queue(name, &self.fill(name, copy)?),
            None => self.queue(None),
        };
        Ok(Cell {
            positions,
            access,
            width: or(&cell.width, plain.width),
            streams: or(&cell.streams, plain.streams),
            guard_interval: match &cell.guard_interval {
                Some(text) => self.duration(text)?,
                None => plain.guard_interval,
            },
            mcs: cell.mcs.as_ref().map(|mcs| *mcs.get_ref()),
            power: or(&cell.power, plain.power),
            path_loss_exponent: or(&cell.path_loss_exponent, plain.path_loss_exponent),
            error_rate: or(&cell.error_rate, plain.error_rate),
            ampdu_frames: or(&cell.ampdu_frames, plain.ampdu_frames),
            ampdu_bytes: cell.ampdu_bytes.as_ref().map_or(Ok(plain.ampdu_bytes), bytes)?,
            ampdu_duration: match &cell.ampdu_duration {
                Some(text) => self.duration(text)?,
                None => plain.ampdu_duration,
            },
            retries: or(&cell.retries, plain.retries),
            rts_from: cell.rts_from.as_ref().map(bytes).transpose()?,
            mac_queue: or(&cell.mac_queue, plain.mac_queue),
            overhead: or(&cell.overhead, plain.overhead),
            queue_ap: queue(&cell.queue_ap)?,
            queue_stations: queue(&cell.queue_stations)?,
            ..plain
        })
    }

    /// Reads one of a few words.
    fn word<T: std::marker::Copy>(
        &self,
        text: &Option<Spanned<String>>,
        default: T,
        words: &[(&str, T)],
    ) -> Result<T, FileError> {
        let Some(text) = text else { return Ok(default) };
        let known = words.iter().find(|(word, _)| word == text.get_ref());
        known.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.document.error(
                text.span(),
                format!("`{}` is not known here", text.get_ref()),
                format!("write {}", words.join(" or ")),
            )
        })
    }
}
