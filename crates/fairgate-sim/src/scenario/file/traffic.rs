//! What a flow sends: `udp = { ... }` or `tcp = { ... }`.
//!
//! ```toml
//! udp = { rate = "2mbit", size = "1000b" }                    # constant
//! udp = { rate = "2mbit", size = "1000b", pattern = "poisson" }
//! udp = { interval = { exponential = "5ms" }, size = { uniform = ["80b", "400b"] } }
//! udp = { rate = "2mbit", pattern = "on_off", on = { pareto = "100ms", shape = 1.5 }, off = "100ms" }
//! tcp = {}                                                    # as much as the connection can send
//! tcp = { congestion_control = "ledbat", initial_window = 2 } # see `tcp.rs` for all settings
//! tcp = { congestion_control = "reno", rate = "1mbit", size = "10kb" }
//! tcp = { size = { pareto = "100kb", shape = 1.5 }, pause = { exponential = "5s" }, transfers = 100 }
//! tcp = { pattern = "on_off", rate = "2mbit", on = { exponential = "1s" }, off = "1s" }
//! tcp = { pattern = "on_off", bytes = { pareto = "100kb", shape = 1.5 }, off = "1s" }
//! ```

use std::ops::Range;
use std::path::Path;

use fairgate::Rate;
use fairgate_config::units::{parse_duration, parse_size};
use fairgate_config::{FileError, UnitError};
use serde::Deserialize;
use toml::Spanned;

use super::Reader;
use super::drawn::Drawn;
use crate::random::Distribution;
use crate::scenario::{Application, Burst, Pattern, Tcp, Udp};
use crate::tcp;

/// The default payload of a datagram, bytes.
const SIZE: u64 = 1000;

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PatternName {
    #[default]
    Constant,
    Poisson,
    OnOff,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UdpSection {
    rate: Option<Spanned<String>>,
    interval: Option<Spanned<Drawn>>,
    size: Option<Spanned<Drawn>>,
    #[serde(default)]
    pattern: PatternName,
    on: Option<Spanned<Drawn>>,
    off: Option<Spanned<Drawn>>,
}

/// How long an acknowledgement may wait: a duration, or `false`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a duration such as \"40ms\", or false")]
pub(super) enum DelayedAck {
    Switch(bool),
    After(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TcpSection {
    // The connection. `tcp.rs` reads these keys.
    pub(super) profile: Option<tcp::Profile>,
    pub(super) congestion_control: Option<Spanned<tcp::CongestionControl>>,
    pub(super) fixed_window: Option<Spanned<u32>>,
    pub(super) hystart: Option<Spanned<bool>>,
    pub(super) sack: Option<bool>,
    pub(super) no_delay: Option<bool>,
    pub(super) pacing: Option<Spanned<bool>>,
    pub(super) mss: Option<Spanned<u32>>,
    pub(super) initial_window: Option<Spanned<u32>>,
    pub(super) slow_start_after_idle: Option<bool>,
    pub(super) delayed_ack: Option<Spanned<DelayedAck>>,
    pub(super) min_rto: Option<Spanned<String>>,
    pub(super) initial_rto: Option<Spanned<String>>,
    pub(super) send_buffer: Option<Spanned<String>>,
    pub(super) receive_buffer: Option<Spanned<String>>,
    pub(super) tick: Option<Spanned<String>>,
    // The program that writes.
    rate: Option<Spanned<String>>,
    size: Option<Spanned<Drawn>>,
    pause: Option<Spanned<Drawn>>,
    transfers: Option<Spanned<u64>>,
    pattern: Option<Spanned<PatternName>>,
    on: Option<Spanned<Drawn>>,
    bytes: Option<Spanned<Drawn>>,
    off: Option<Spanned<Drawn>>,
    /// The size of a send buffer that a burst of a duration leaves full.
    buffered: Option<Spanned<String>>,
}

impl UdpSection {
    pub(super) fn read(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Udp, FileError> {
        let size = match &self.size {
            Some(size) => reader.sizes(size)?,
            None => Distribution::Constant(SIZE),
        };
        let pattern = match (&self.rate, &self.interval) {
            (Some(rate), None) => self.pattern(reader, reader.rate(rate)?, location)?,
            (None, Some(gap))
                if self.pattern == PatternName::Constant && self.on.is_none() && self.off.is_none() =>
            {
                Pattern::Interval {
                    gap: reader.durations(gap)?,
                }
            }
            _ => {
                return Err(reader.document.error(
                    location.clone(),
                    "a UDP flow sends at a `rate`, or with an `interval` between datagrams and no pattern",
                    "write rate = \"1mbit\", or interval = { exponential = \"10ms\" }",
                ));
            }
        };
        Ok(Udp { size, pattern })
    }
}

impl UdpSection {
    fn pattern(
        &self,
        reader: &Reader<'_>,
        rate: Rate,
        location: &Range<usize>,
    ) -> Result<Pattern, FileError> {
        match (self.pattern, &self.on, &self.off) {
            (PatternName::Constant, None, None) => Ok(Pattern::Constant { rate }),
            (PatternName::Poisson, None, None) => Ok(Pattern::Poisson { rate }),
            (PatternName::OnOff, Some(on), Some(off)) => Ok(Pattern::OnOff {
                rate,
                on: reader.durations(on)?,
                off: reader.durations(off)?,
            }),
            _ => Err(reader.document.error(
                location.clone(),
                "`on` and `off` are only for the pattern `on_off`, which needs both",
                "write pattern = \"on_off\", on = \"1s\", off = \"1s\", or omit all three",
            )),
        }
    }
}

impl TcpSection {
    /// Returns the connection and the program that writes to it.
    pub(super) fn read(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Tcp, FileError> {
        Ok(Tcp {
            config: self.config(reader)?,
            application: self.application(reader, location)?,
        })
    }

    /// Returns the parameters of the connection. Another key of the flow names the program.
    pub(super) fn transport(
        &self,
        reader: &Reader<'_>,
        location: &Range<usize>,
        program: &str,
    ) -> Result<tcp::Config, FileError> {
        let has_program = self.rate.is_some()
            || self.size.is_some()
            || self.pause.is_some()
            || self.transfers.is_some()
            || self.has_bursts();
        match has_program {
            false => self.config(reader),
            true => Err(reader.document.error(
                location.clone(),
                format!("`{program}` and `tcp` both say what is sent"),
                format!("in `tcp`, keep the settings of the connection, and move the others to `{program}`"),
            )),
        }
    }

    /// Returns whether the congestion control is given.
    pub(super) fn names_control(&self) -> bool {
        self.congestion_control.is_some()
    }

    fn has_bursts(&self) -> bool {
        self.pattern.is_some()
            || self.on.is_some()
            || self.bytes.is_some()
            || self.off.is_some()
            || self.buffered.is_some()
    }

    fn application(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Application, FileError> {
        if self.has_bursts() {
            return self.bursts(reader, location);
        }
        match (&self.rate, &self.size, &self.pause, &self.transfers) {
            (None, None, None, None) => Ok(Application::Bulk),
            (Some(rate), size, None, None) => Ok(Application::Limited {
                rate: reader.rate(rate)?,
                size: Self::write_size(reader, size.as_ref())?,
            }),
            (None, Some(size), pause, count) => Ok(Application::Transfers {
                size: reader.sizes(size)?,
                pause: match pause {
                    Some(pause) => reader.durations(pause)?,
                    None => Distribution::Constant(0),
                },
                count: count.as_ref().map(|count| *count.get_ref()),
            }),
            _ => Err(reader.document.error(
                location.clone(),
                "a TCP flow writes without end, or at a `rate`, or in transfers of a `size` with a `pause` \
                 between them",
                "omit all of these keys; or give `rate`, and `size` for one write; or give `size`, `pause` \
                 and the number of `transfers`",
            )),
        }
    }

    fn bursts(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Application, FileError> {
        let is_on_off = self
            .pattern
            .as_ref()
            .is_some_and(|name| *name.get_ref() == PatternName::OnOff);
        let burst = match (&self.on, &self.bytes, &self.off) {
            (Some(on), None, Some(off)) => Some((Burst::Time(reader.durations(on)?), off)),
            (None, Some(bytes), Some(off)) => Some((Burst::Bytes(reader.sizes(bytes)?), off)),
            _ => None,
        };
        let is_plain = self.pause.is_none() && self.transfers.is_none();
        let Some((burst, off)) = burst.filter(|_| is_on_off && is_plain) else {
            return Err(reader.document.error(
                location.clone(),
                "bursts over TCP need the pattern `on_off`, `off`, and either `on` or `bytes`; besides them \
                 only `rate` and `size` have a meaning",
                "write pattern = \"on_off\", on = \"1s\", off = \"1s\"",
            ));
        };
        if self.rate.is_none()
            && let Some(size) = &self.size
        {
            return Err(reader.document.error(
                size.span(),
                "writes have a `size` only at a `rate`",
                "add a `rate`, or omit `size`",
            ));
        }
        let has_rest = matches!(burst, Burst::Time(_)) && self.rate.is_none();
        let buffered = match &self.buffered {
            None => 0,
            Some(size) if has_rest => reader.bytes(size)?.into(),
            Some(size) => {
                return Err(reader.document.error(
                    size.span(),
                    "only bursts of a duration without a `rate` leave something in a buffer",
                    "omit `buffered`, or `rate`",
                ));
            }
        };
        Ok(Application::OnOff {
            buffered,
            burst,
            rate: self.rate.as_ref().map(|rate| reader.rate(rate)).transpose()?,
            size: Self::write_size(reader, self.size.as_ref())?,
            off: reader.durations(off)?,
        })
    }

    /// Returns the bytes of each write.
    fn write_size(reader: &Reader<'_>, size: Option<&Spanned<Drawn>>) -> Result<u32, FileError> {
        let Some(size) = size else {
            return Ok(SIZE as u32);
        };
        match reader.sizes(size)? {
            Distribution::Constant(bytes) if u32::try_from(bytes).is_ok() => Ok(bytes as u32),
            _ => Err(reader.document.error(
                size.span(),
                "writes at a `rate` must have a constant size below 4 GB",
                "write a size, such as \"1000b\"",
            )),
        }
    }
}

impl Reader<'_> {
    pub(super) fn sizes(&self, drawn: &Spanned<Drawn>) -> Result<Distribution, FileError> {
        self.distribution(drawn, parse_size)
    }

    /// Reads durations, in nanoseconds.
    pub(super) fn durations(&self, drawn: &Spanned<Drawn>) -> Result<Distribution, FileError> {
        self.distribution(drawn, |text| Ok(parse_duration(text)?.as_nanos() as u64))
    }

    pub(super) fn distribution(
        &self,
        drawn: &Spanned<Drawn>,
        parse: impl Fn(&str) -> Result<u64, UnitError>,
    ) -> Result<Distribution, FileError> {
        let folder = Path::new(self.document.name()).parent().unwrap_or(Path::new(""));
        let read = drawn.get_ref().read(parse, folder);
        read.map_err(|wrong| self.document.error(drawn.span(), wrong.what, wrong.remedy))
    }
}
