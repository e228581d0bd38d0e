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

use fairgate::Rate;
use fairgate::registry::{Parameter, Section, Unit};
use fairgate_config::{FileError, Table};

use super::drawn::{size, time};
use super::tcp::{PatternName, TcpKeys, keys};
use super::{Reader, place};
use crate::random::Distribution;
use crate::scenario::{Application, Burst, Pattern, Tcp, Udp};
use crate::tcp;

/// The default payload of a datagram, bytes.
const SIZE: u64 = 1000;

pub(super) const UDP: Section = Section::new("udp", "datagrams", || {
    Parameter::infos(&UDP_KEYS, UdpKeys::default())
})
.with(&WITHIN_UDP);

static WITHIN_UDP: [Section; 4] = [
    time(
        "interval",
        "none",
        "Instead of `rate`: the time between two datagrams, whatever their sizes.",
    ),
    size("size", "1000b", "The payload of each datagram, 1b to 65507b."),
    time("on", "none", "With `on_off`: the length of bursts."),
    time("off", "none", "With `on_off`: the length of silences."),
];

struct UdpKeys {
    rate: Option<Rate>,
    pattern: PatternName,
}

impl Default for UdpKeys {
    fn default() -> UdpKeys {
        UdpKeys {
            rate: None,
            pattern: PatternName::Constant,
        }
    }
}

static UDP_KEYS: [Parameter<UdpKeys>; 2] = [
    Parameter::word(
        "rate",
        Unit::Rate,
        "The rate of payload; or `interval`.",
        |keys, _| &mut keys.rate,
    ),
    Parameter::word(
        "pattern",
        Unit::Choice(PatternName::WORDS),
        "With equal gaps, with exponential gaps, or in bursts at `rate` with silences.",
        |keys, _| &mut keys.pattern,
    ),
];

pub(super) const TCP: Section =
    Section::new("tcp", "a connection, and the program that writes to it", || {
        keys(tcp::Config::default())
    })
    .with(&WITHIN_TCP);

static WITHIN_TCP: [Section; 5] = [
    size(
        "size",
        "1000b",
        "At a `rate`: the bytes of each write. Otherwise: the size of a transfer.",
    ),
    time(
        "pause",
        "none",
        "The time from the end of a transfer to the next one.",
    ),
    time("on", "none", "With `on_off`: the length of bursts; or `bytes`."),
    size("bytes", "none", "With `on_off`: the bytes of each burst."),
    time(
        "off",
        "none",
        "With `on_off`: the length of silences. After a burst of bytes it counts from the last write.",
    ),
];

impl Reader<'_> {
    pub(super) fn udp(&self, udp: &Table) -> Result<Udp, FileError> {
        let keys = udp.read(&UDP_KEYS, UdpKeys::default());
        let size = self.sizes(udp, "size")?.unwrap_or(Distribution::Constant(SIZE));
        let gap = self.times(udp, "interval")?;
        let bursts = (self.times(udp, "on")?, self.times(udp, "off")?);
        let is_plain = keys.pattern == PatternName::Constant && bursts == (None, None);
        let pattern = match (keys.rate, gap) {
            (Some(rate), None) => match (keys.pattern, bursts) {
                (PatternName::Constant, (None, None)) => Pattern::Constant { rate },
                (PatternName::Poisson, (None, None)) => Pattern::Poisson { rate },
                (PatternName::OnOff, (Some(on), Some(off))) => Pattern::OnOff { rate, on, off },
                _ => {
                    return Err(self.document.error(
                        udp.span(),
                        "`on` and `off` are only for the pattern `on_off`, which needs both",
                        "write pattern = \"on_off\", on = \"1s\", off = \"1s\", or omit all three",
                    ));
                }
            },
            (None, Some(gap)) if is_plain => Pattern::Interval { gap },
            _ => {
                return Err(self.document.error(
                    udp.span(),
                    "a UDP flow sends at a `rate`, or with an `interval` between datagrams and no pattern",
                    "write rate = \"1mbit\", or interval = { exponential = \"10ms\" }",
                ));
            }
        };
        Ok(Udp { size, pattern })
    }

    /// Returns the connection and the program that writes to it.
    pub(super) fn tcp(&self, tcp: &Table) -> Result<Tcp, FileError> {
        let keys = TcpKeys::read(tcp);
        Ok(Tcp {
            config: self.config(tcp, &keys)?,
            application: self.application(tcp, &keys)?,
        })
    }

    /// Returns the parameters of the connection. Another key of the flow names the program.
    pub(super) fn transport(&self, tcp: &Table, program: &str) -> Result<tcp::Config, FileError> {
        let of_program = ["rate", "size", "pause", "transfers"];
        match of_program.iter().any(|key| tcp.span_of(key).is_some()) || has_bursts(tcp) {
            false => self.config(tcp, &TcpKeys::read(tcp)),
            true => Err(self.document.error(
                tcp.span(),
                format!("`{program}` and `tcp` both say what is sent"),
                format!("in `tcp`, keep the settings of the connection, and move the others to `{program}`"),
            )),
        }
    }

    fn application(&self, tcp: &Table, keys: &TcpKeys) -> Result<Application, FileError> {
        if has_bursts(tcp) {
            return self.bursts(tcp, keys);
        }
        let (size, pause) = (self.sizes(tcp, "size")?, self.times(tcp, "pause")?);
        match (keys.rate, size, pause, keys.transfers) {
            (None, None, None, None) => Ok(Application::Bulk),
            (Some(rate), size, None, None) => Ok(Application::Limited {
                rate,
                size: self.write_size(tcp, size)?,
            }),
            (None, Some(size), pause, count) => Ok(Application::Transfers {
                size,
                pause: pause.unwrap_or(Distribution::Constant(0)),
                count,
            }),
            _ => Err(self.document.error(
                tcp.span(),
                "a TCP flow writes without end, or at a `rate`, or in transfers of a `size` with a `pause` \
                 between them",
                "omit all of these keys; or give `rate`, and `size` for one write; or give `size`, `pause` \
                 and the number of `transfers`",
            )),
        }
    }

    fn bursts(&self, tcp: &Table, keys: &TcpKeys) -> Result<Application, FileError> {
        let (on, off) = (self.times(tcp, "on")?, self.times(tcp, "off")?);
        let burst = match (on, self.sizes(tcp, "bytes")?, off) {
            (Some(on), None, Some(off)) => Some((Burst::Time(on), off)),
            (None, Some(bytes), Some(off)) => Some((Burst::Bytes(bytes), off)),
            _ => None,
        };
        let is_on_off = keys.pattern == Some(PatternName::OnOff);
        let is_plain = tcp.span_of("pause").is_none() && keys.transfers.is_none();
        let Some((burst, off)) = burst.filter(|_| is_on_off && is_plain) else {
            return Err(self.document.error(
                tcp.span(),
                "bursts over TCP need the pattern `on_off`, `off`, and either `on` or `bytes`; besides them \
                 only `rate` and `size` have a meaning",
                "write pattern = \"on_off\", on = \"1s\", off = \"1s\"",
            ));
        };
        let size = self.sizes(tcp, "size")?;
        if keys.rate.is_none() && size.is_some() {
            return Err(self.document.error(
                place(tcp, "size"),
                "writes have a `size` only at a `rate`",
                "add a `rate`, or omit `size`",
            ));
        }
        let has_rest = matches!(burst, Burst::Time(_)) && keys.rate.is_none();
        if let Some(buffered) = tcp.span_of("buffered").filter(|_| !has_rest) {
            return Err(self.document.error(
                buffered,
                "only bursts of a duration without a `rate` leave something in a buffer",
                "omit `buffered`, or `rate`",
            ));
        }
        Ok(Application::OnOff {
            buffered: keys.buffered,
            burst,
            rate: keys.rate,
            size: self.write_size(tcp, size)?,
            off,
        })
    }

    /// Returns the bytes of each write.
    fn write_size(&self, tcp: &Table, size: Option<Distribution>) -> Result<u32, FileError> {
        match size.unwrap_or(Distribution::Constant(SIZE)) {
            Distribution::Constant(bytes) if u32::try_from(bytes).is_ok() => Ok(bytes as u32),
            _ => Err(self.document.error(
                place(tcp, "size"),
                "writes at a `rate` must have a constant size below 4 GB",
                "write a size, such as \"1000b\"",
            )),
        }
    }
}

fn has_bursts(tcp: &Table) -> bool {
    let keys = ["pattern", "on", "bytes", "off", "buffered"];
    keys.iter().any(|key| tcp.span_of(key).is_some())
}
