//! What a flow sends: `udp = { ... }` or `tcp = { ... }`.
//!
//! ```toml
//! udp = { rate = "2mbit", size = "1000b" }                    # constant
//! udp = { rate = "2mbit", size = "1000b", pattern = "poisson" }
//! udp = { rate = "2mbit", pattern = "on_off", on = { pareto = "100ms", shape = 1.5 }, off = "100ms" }
//! tcp = {}                                                    # as much as the connection can send
//! tcp = { congestion_control = "ledbat", initial_window = 2 } # or reno, cubic (the default), dctcp
//! tcp = { congestion_control = "reno", rate = "1mbit", size = "10kb" }
//! tcp = { size = { pareto = "100kb", shape = 1.5 }, pause = { exponential = "5s" }, transfers = 100 }
//! ```

use std::ops::Range;

use fairgate_config::FileError;
use fairgate_config::units::{parse_duration, parse_size};
use serde::Deserialize;
use toml::Spanned;

use super::Reader;
use super::drawn::Drawn;
use crate::random::Distribution;
use crate::scenario::{Application, Pattern, Tcp, Udp};
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
    rate: Spanned<String>,
    size: Option<Spanned<Drawn>>,
    #[serde(default)]
    pattern: PatternName,
    on: Option<Spanned<Drawn>>,
    off: Option<Spanned<Drawn>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TcpSection {
    congestion_control: Option<tcp::CongestionControl>,
    hystart: Option<bool>,
    mss: Option<u32>,
    initial_window: Option<u32>,
    slow_start_after_idle: Option<bool>,
    rate: Option<Spanned<String>>,
    size: Option<Spanned<Drawn>>,
    pause: Option<Spanned<Drawn>>,
    transfers: Option<Spanned<u64>>,
}

impl UdpSection {
    pub(super) fn read(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Udp, FileError> {
        let rate = reader.rate(&self.rate)?;
        let size = match &self.size {
            Some(size) => reader.sizes(size)?,
            None => Distribution::Constant(SIZE),
        };
        let pattern = match (self.pattern, &self.on, &self.off) {
            (PatternName::Constant, None, None) => Pattern::Constant { rate },
            (PatternName::Poisson, None, None) => Pattern::Poisson { rate },
            (PatternName::OnOff, Some(on), Some(off)) => Pattern::OnOff {
                rate,
                on: reader.durations(on)?,
                off: reader.durations(off)?,
            },
            _ => {
                return Err(reader.document.error(
                    location.clone(),
                    "`on` and `off` are only for the pattern `on_off`, which needs both",
                    "write pattern = \"on_off\", on = \"1s\", off = \"1s\", or omit all three",
                ));
            }
        };
        Ok(Udp { size, pattern })
    }
}

impl TcpSection {
    pub(super) fn read(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Tcp, FileError> {
        let plain = tcp::Config::default();
        let config = tcp::Config {
            congestion_control: self.congestion_control.unwrap_or(plain.congestion_control),
            hystart: self.hystart.unwrap_or(plain.hystart),
            mss: self.mss.unwrap_or(plain.mss),
            initial_window: self.initial_window.unwrap_or(plain.initial_window),
            slow_start_after_idle: self.slow_start_after_idle.unwrap_or(plain.slow_start_after_idle),
            ..plain
        };
        let application = match (&self.rate, &self.size, &self.pause, &self.transfers) {
            (None, None, None, None) => Application::Bulk,
            (Some(rate), size, None, None) => Application::Limited {
                rate: reader.rate(rate)?,
                size: match size {
                    None => SIZE as u32,
                    Some(size) => Self::write_size(reader, size)?,
                },
            },
            (None, Some(size), pause, count) => Application::Transfers {
                size: reader.sizes(size)?,
                pause: match pause {
                    Some(pause) => reader.durations(pause)?,
                    None => Distribution::Constant(0),
                },
                count: count.as_ref().map(|count| *count.get_ref()),
            },
            _ => {
                return Err(reader.document.error(
                    location.clone(),
                    "a TCP flow writes without end, or at a `rate`, or in transfers of a `size` with a \
                     `pause` between them",
                    "omit all of these keys; or give `rate`, and `size` for one write; or give `size`, \
                     `pause` and the number of `transfers`",
                ));
            }
        };
        Ok(Tcp { config, application })
    }

    fn write_size(reader: &Reader<'_>, size: &Spanned<Drawn>) -> Result<u32, FileError> {
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
    fn sizes(&self, drawn: &Spanned<Drawn>) -> Result<Distribution, FileError> {
        self.distribution(drawn, |text| self.unit(&drawn.span(), parse_size(text)))
    }

    fn durations(&self, drawn: &Spanned<Drawn>) -> Result<Distribution, FileError> {
        self.distribution(drawn, |text| {
            let duration = self.unit(&drawn.span(), parse_duration(text))?;
            Ok(duration.as_nanos() as u64)
        })
    }

    fn distribution(
        &self,
        drawn: &Spanned<Drawn>,
        parse: impl Fn(&str) -> Result<u64, FileError>,
    ) -> Result<Distribution, FileError> {
        let complain = |message: &str| {
            let help = "write for example { exponential = \"100ms\" } or { pareto = \"100ms\", shape = 1.5 }";
            self.document.error(drawn.span(), message, help)
        };
        let distribution = drawn.get_ref().read(parse, complain)?;
        distribution.check().map_err(|what| complain(&what))?;
        Ok(distribution)
    }
}
