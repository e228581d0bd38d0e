//! Applications: the keys of a flow beside `udp` and `tcp`.
//!
//! ```toml
//! video = { rate = "5mbit" }                  # RTP; groups of pictures
//! video = { shaping = "200ms" }               # as VLC sends it
//! video = { sizes = "frames.txt", frame_rate = 30 }
//! voip = {}                                   # G.711 with talk spurts, both ways
//! game = {}                                   # small packets, both ways
//! ping = { interval = "1s" }
//! ssh = {}                                    # little data over TCP, both ways
//! request = { response = "100kb", think = { exponential = "5s" } }
//! web = { objects = "20", think = "10s" }
//! adaptive = { chunk = "4s", buffer = "60s" }
//! torrent = { down = 10, up = 5 }
//! pcap = { file = "home.pcap", to = "192.168.1.0/24" }
//! ```
//!
//! The programs over TCP take the settings of the connection from `tcp`. The source of the flow is the server
//! of `request`, `web` and `adaptive`.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use fairgate::Rate;
use fairgate_config::{FileError, UnitError};
use serde::Deserialize;
use toml::Spanned;

use super::Reader;
use super::drawn::Drawn;
use crate::random::Distribution;
use crate::scenario::{Adaptive, Application, Frames, Pattern, Ping, Requests, Udp, Video, Voice, Web};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VideoSection {
    rate: Option<Spanned<String>>,
    frame_rate: Option<Spanned<f64>>,
    group: Option<Spanned<String>>,
    deviation: Option<Spanned<f64>>,
    i: Option<Spanned<Drawn>>,
    p: Option<Spanned<Drawn>>,
    b: Option<Spanned<Drawn>>,
    sizes: Option<Spanned<String>>,
    packet: Option<Spanned<String>>,
    #[serde(default)]
    spread: bool,
    shaping: Option<Spanned<String>>,
    #[serde(default)]
    random_start: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VoipSection {
    rate: Option<Spanned<String>>,
    packet: Option<Spanned<String>>,
    on: Option<Spanned<Drawn>>,
    off: Option<Spanned<Drawn>>,
    silence: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GameSection {
    size: Option<Spanned<Drawn>>,
    interval: Option<Spanned<Drawn>>,
    client_size: Option<Spanned<Drawn>>,
    client_interval: Option<Spanned<Drawn>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PingSection {
    interval: Option<Spanned<Drawn>>,
    size: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SshSection {
    rate: Option<Spanned<String>>,
    size: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestSection {
    response: Spanned<Drawn>,
    request: Option<Spanned<Drawn>>,
    service: Option<Spanned<Drawn>>,
    think: Option<Spanned<Drawn>>,
    count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebSection {
    document: Option<Spanned<Drawn>>,
    objects: Option<Spanned<Drawn>>,
    size: Option<Spanned<Drawn>>,
    request: Option<Spanned<Drawn>>,
    service: Option<Spanned<Drawn>>,
    think: Option<Spanned<Drawn>>,
    connections: Option<u16>,
    pages: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdaptiveSection {
    rates: Option<Vec<Spanned<String>>>,
    chunk: Option<Spanned<String>>,
    buffer: Option<Spanned<String>>,
    reservoir: Option<Spanned<String>>,
    cushion: Option<Spanned<String>>,
    startup: Option<Spanned<String>>,
    request: Option<Spanned<String>>,
    chunks: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TorrentSection {
    pub(super) down: Option<Spanned<u32>>,
    pub(super) up: Option<Spanned<u32>>,
}

impl VideoSection {
    pub(super) fn read(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Video, FileError> {
        let plain = Video::of_rate(Rate::mbit(5));
        let rate = self.rate.as_ref().map(|rate| reader.rate(rate)).transpose()?;
        let (frames, rate) = match (&self.sizes, [&self.i, &self.p, &self.b]) {
            (Some(file), [None, None, None]) if self.group.is_none() && self.deviation.is_none() => {
                (Frames::Recorded(reader.frame_sizes(file)?), rate)
            }
            (None, [None, None, None]) => (
                self.pictures(reader, Video::picture_sizes(self.deviation(reader)?))?,
                rate.or(plain.rate),
            ),
            (None, [Some(i), Some(p), Some(b)]) if self.deviation.is_none() => {
                let sizes = [reader.sizes(i)?, reader.sizes(p)?, reader.sizes(b)?];
                (self.pictures(reader, sizes)?, rate)
            }
            _ => {
                return Err(reader.document.error(
                    location.clone(),
                    "the sizes of frames come from a file (`sizes`), or from distributions for each kind of \
                     picture (`i`, `p` and `b`), or from a `rate` and a `deviation`",
                    "give one of the three, and `group` only without a file",
                ));
            }
        };
        let frame_nanos = match &self.frame_rate {
            None => plain.frame_nanos,
            Some(rate) => frame_nanos(reader, rate)?,
        };
        let shaped = self
            .shaping
            .as_ref()
            .map(|slice| frames_of(reader, slice, frame_nanos));
        Ok(Video {
            frames,
            rate,
            frame_nanos,
            packet: match &self.packet {
                None => plain.packet,
                Some(size) => reader.bytes(size)?,
            },
            spread: self.spread,
            shaped: shaped.transpose()?,
            random_start: self.random_start,
        })
    }

    fn deviation(&self, reader: &Reader<'_>) -> Result<f64, FileError> {
        let Some(deviation) = &self.deviation else {
            return Ok(Video::DEVIATION);
        };
        match *deviation.get_ref() {
            ratio if (0.0..=5.0).contains(&ratio) => Ok(ratio),
            ratio => Err(reader.document.error(
                deviation.span(),
                format!("the deviation is {ratio} of the mean size, but must be from 0 to 5"),
                "write for example deviation = 0.25",
            )),
        }
    }

    fn pictures(&self, reader: &Reader<'_>, sizes: [Distribution; 3]) -> Result<Frames, FileError> {
        let group = self.group.as_ref();
        let letters = group.map_or(Video::GROUP, |group| group.get_ref().as_str());
        Frames::pictures(letters, sizes).map_err(|what| {
            let (what, remedy) = what.split_once("; ").unwrap_or((&what, "correct the group"));
            let span = group.map_or(0..0, Spanned::span);
            reader.document.error(span, what, remedy)
        })
    }
}

/// Returns how many frames a slice has.
fn frames_of(
    reader: &Reader<'_>,
    slice: &Spanned<String>,
    frame_nanos: u64,
) -> Result<NonZeroU32, FileError> {
    let nanos = reader.duration(slice)?.as_nanos();
    let is_whole = nanos.is_multiple_of(frame_nanos.into());
    let frames = u32::try_from(nanos / u128::from(frame_nanos))
        .ok()
        .and_then(NonZeroU32::new);
    frames.filter(|_| is_whole).ok_or_else(|| {
        reader.document.error(
            slice.span(),
            format!(
                "a slice of {} is no whole number of frames of {} ms",
                slice.get_ref(),
                frame_nanos as f64 * 1e-6
            ),
            "write for example shaping = \"200ms\", five frames of 40 ms",
        )
    })
}

/// Converts frames per second to the time between two frames, rounded to a nanosecond.
fn frame_nanos(reader: &Reader<'_>, rate: &Spanned<f64>) -> Result<u64, FileError> {
    match *rate.get_ref() {
        frames if (0.001..=1e6).contains(&frames) => Ok((1e9 / frames).round() as u64),
        frames => Err(reader.document.error(
            rate.span(),
            format!("there are {frames} frames per second, but must be from 0.001 to 1000000"),
            "write for example frame_rate = 25",
        )),
    }
}

impl VoipSection {
    pub(super) fn read(&self, reader: &Reader<'_>, location: &Range<usize>) -> Result<Voice, FileError> {
        let plain = Voice::default();
        Ok(Voice {
            rate: match &self.rate {
                Some(rate) => reader.rate(rate)?,
                None => plain.rate,
            },
            packet_nanos: match &self.packet {
                Some(packet) => reader.nanos(packet)?,
                None => plain.packet_nanos,
            },
            spurts: match (&self.on, &self.off, self.silence) {
                (None, None, None | Some(true)) => plain.spurts,
                (None, None, Some(false)) => None,
                (Some(on), Some(off), None | Some(true)) => {
                    Some([reader.durations(on)?, reader.durations(off)?])
                }
                _ => {
                    return Err(reader.document.error(
                        location.clone(),
                        "talk spurts have both `on` and `off`, and neither of them with silence = false",
                        "write on = { exponential = \"1s\" }, off = { exponential = \"1.6s\" }, or omit both",
                    ));
                }
            },
        })
    }
}

impl GameSection {
    /// Returns the packets of the server and of a client.
    ///
    /// Source: Färber 2002, "Network game traffic modelling" (NetGames), tables 2 and 3, Counter-Strike:
    /// sizes and intervals of extreme value distributions, which are approximated here by normal ones with
    /// the same mean and deviation, cut at 0. The mean is the location plus 0.5772 times the scale, the
    /// deviation 1.2825 times the scale.
    pub(super) fn read(&self, reader: &Reader<'_>) -> Result<[Udp; 2], FileError> {
        const MICRO: u64 = 1_000;
        let normal = |mean: u64, deviation: u64| Distribution::Normal {
            mean,
            deviation,
            low: 0,
            high: 2 * mean,
        };
        let sizes = |given: &Option<Spanned<Drawn>>, plain| match given {
            Some(size) => reader.sizes(size),
            None => Ok(plain),
        };
        let times = |given: &Option<Spanned<Drawn>>, plain| match given {
            Some(times) => reader.durations(times),
            None => Ok(plain),
        };
        let server = Udp {
            // Location 120, scale 36; and 55 ms, 6 ms.
            size: sizes(&self.size, normal(141, 46))?,
            pattern: Pattern::Interval {
                gap: times(&self.interval, normal(58_463 * MICRO, 7_695 * MICRO))?,
            },
        };
        let client = Udp {
            // Location 80, scale 5.7; and 40 ms.
            size: sizes(&self.client_size, normal(83, 7))?,
            pattern: Pattern::Interval {
                gap: times(&self.client_interval, Distribution::Constant(40_000 * MICRO))?,
            },
        };
        Ok([server, client])
    }
}

impl PingSection {
    pub(super) fn read(&self, reader: &Reader<'_>) -> Result<Ping, FileError> {
        Ok(Ping {
            interval: match &self.interval {
                Some(interval) => reader.durations(interval)?,
                None => Distribution::Constant(1_000_000_000),
            },
            // What `ping` sends by default.
            size: match &self.size {
                Some(size) => reader.bytes(size)?,
                None => 56,
            },
        })
    }
}

impl SshSection {
    /// The defaults are those of Table 3.1 in the thesis on MSFC.
    pub(super) fn read(&self, reader: &Reader<'_>) -> Result<Application, FileError> {
        Ok(Application::Limited {
            rate: match &self.rate {
                Some(rate) => reader.rate(rate)?,
                None => Rate::from_bits_per_second(1_000).expect("it is above 0"),
            },
            size: match &self.size {
                Some(size) => reader.bytes(size)?,
                None => 20,
            },
        })
    }
}

impl RequestSection {
    pub(super) fn read(&self, reader: &Reader<'_>) -> Result<Application, FileError> {
        Ok(Application::Requests(Requests {
            response: reader.sizes(&self.response)?,
            request: reader.sizes_or(self.request.as_ref(), Distribution::Constant(350))?,
            service: reader.durations_or(self.service.as_ref(), Distribution::Constant(0))?,
            think: reader.durations_or(self.think.as_ref(), Distribution::Constant(0))?,
            count: self.count,
        }))
    }
}

impl WebSection {
    pub(super) fn read(&self, reader: &Reader<'_>) -> Result<Application, FileError> {
        let plain = Web::default();
        Ok(Application::Web(Arc::new(Web {
            document: reader.sizes_or(self.document.as_ref(), plain.document)?,
            objects: match &self.objects {
                Some(objects) => reader.numbers(objects)?,
                None => plain.objects,
            },
            size: reader.sizes_or(self.size.as_ref(), plain.size)?,
            request: reader.sizes_or(self.request.as_ref(), plain.request)?,
            service: reader.durations_or(self.service.as_ref(), plain.service)?,
            think: reader.durations_or(self.think.as_ref(), plain.think)?,
            connections: self.connections.unwrap_or(plain.connections),
            pages: self.pages,
        })))
    }
}

impl AdaptiveSection {
    pub(super) fn read(&self, reader: &Reader<'_>) -> Result<Application, FileError> {
        let plain = Adaptive::default();
        let nanos = |given: &Option<Spanned<String>>, plain| match given {
            Some(text) => reader.nanos(text),
            None => Ok(plain),
        };
        let (chunk, buffer) = (
            nanos(&self.chunk, plain.chunk)?,
            nanos(&self.buffer, plain.buffer)?,
        );
        // Another buffer is divided as the default one.
        let share = |part: u64| (u128::from(buffer) * u128::from(part) / u128::from(plain.buffer)) as u64;
        Ok(Application::Adaptive(Arc::new(Adaptive {
            ladder: match &self.rates {
                None => plain.ladder,
                Some(rates) => rates
                    .iter()
                    .map(|rate| Ok(reader.rate(rate)?.bits_per_second()))
                    .collect::<Result<_, FileError>>()?,
            },
            chunk,
            buffer,
            reservoir: nanos(&self.reservoir, share(plain.reservoir))?,
            cushion: nanos(&self.cushion, share(plain.cushion))?,
            startup: nanos(&self.startup, chunk)?,
            request: match &self.request {
                Some(size) => reader.bytes(size)?.into(),
                None => plain.request,
            },
            chunks: self.chunks,
        })))
    }
}

impl Reader<'_> {
    /// Reads a file of frame sizes: one number of bytes in each line.
    fn frame_sizes(&self, file: &Spanned<String>) -> Result<Arc<[u32]>, FileError> {
        let text = self.external_text(file)?;
        let mut sizes = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            sizes.push(line.parse().map_err(|_| {
                self.document.error(
                    file.span(),
                    format!(
                        "line {} of {} is `{}`, which is no number of bytes below 4 GB",
                        index + 1,
                        file.get_ref(),
                        line.chars().take(40).collect::<String>()
                    ),
                    "write the size of a frame in each line, such as 14352; lines that begin with # are \
                     ignored",
                )
            })?);
        }
        match sizes.is_empty() {
            false => Ok(sizes.into()),
            true => Err(self.document.error(
                file.span(),
                format!("{} has no frames", file.get_ref()),
                "write the size of a frame in each line, such as 14352",
            )),
        }
    }

    /// Reads a text file. A relative path begins at the folder of the configuration file.
    fn external_text(&self, file: &Spanned<String>) -> Result<String, FileError> {
        let path = self.external_path(file.get_ref());
        std::fs::read_to_string(&path).map_err(|error| {
            self.document.error(
                file.span(),
                format!("can't read {}: {error}", path.display()),
                "the path begins at the folder of this file; correct it",
            )
        })
    }

    pub(super) fn external_path(&self, file: &str) -> std::path::PathBuf {
        let folder = std::path::Path::new(self.document.name()).parent();
        folder.map_or_else(|| file.into(), |folder| folder.join(file))
    }

    fn sizes_or(
        &self,
        given: Option<&Spanned<Drawn>>,
        plain: Distribution,
    ) -> Result<Distribution, FileError> {
        given.map_or(Ok(plain), |drawn| self.sizes(drawn))
    }

    fn durations_or(
        &self,
        given: Option<&Spanned<Drawn>>,
        plain: Distribution,
    ) -> Result<Distribution, FileError> {
        given.map_or(Ok(plain), |drawn| self.durations(drawn))
    }

    /// Reads a distribution of numbers without a unit.
    fn numbers(&self, drawn: &Spanned<Drawn>) -> Result<Distribution, FileError> {
        self.distribution(drawn, |text| {
            text.parse().map_err(|_| UnitError {
                span: 0..text.len(),
                message: format!("`{text}` is no whole number"),
                remedy: "write for example \"12\" or { uniform = [\"5\", \"20\"] }".into(),
            })
        })
    }

    fn nanos(&self, text: &Spanned<String>) -> Result<u64, FileError> {
        Ok(u64::try_from(self.duration(text)?.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Reads a size of less than 4 GB.
    pub(super) fn bytes(&self, text: &Spanned<String>) -> Result<u32, FileError> {
        let bytes = self.unit(&text.span(), fairgate_config::units::parse_size(text.get_ref()))?;
        u32::try_from(bytes).map_err(|_| {
            self.document.error(
                text.span(),
                format!("{} is too long", text.get_ref()),
                "write a size below 4 GB",
            )
        })
    }
}
