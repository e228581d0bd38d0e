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
use std::sync::Arc;
use std::time::Duration;

use fairgate::Rate;
use fairgate::registry::{Parameter, Section, Unit};
use fairgate_config::{FileError, Table, units};
use toml::Spanned;

use super::drawn::{number, size, time};
use super::{Reader, TIMES, place};
use crate::random::Distribution;
use crate::scenario::{
    Adaptive, Application, Frames, LONGEST_DATAGRAM, MOST_CONNECTIONS, Pattern, Ping, RTP_HEADER, Requests,
    Udp, Video, Voice, Web,
};

/// A size of less than 4 GB.
const SIZES: std::ops::RangeInclusive<u64> = 0..=u32::MAX as u64;

pub(super) const VIDEO: Section = Section::new("video", "a video in RTP packets", || {
    Parameter::infos(&VIDEO_KEYS, VideoKeys::default())
})
.with(&WITHIN_VIDEO);

static WITHIN_VIDEO: [Section; 3] = [
    size("i", "log-normal", "The sizes of I pictures, with `p` and `b`."),
    size(
        "p",
        "log-normal",
        "The sizes of P pictures; I, P and B pictures have means of 16 : 6 : 3 by default.",
    ),
    size("b", "log-normal", "The sizes of B pictures."),
];

struct VideoKeys {
    video: Video,
    frame_rate: f64,
    group: String,
    deviation: f64,
    sizes: String,
    shaping: Option<Duration>,
}

impl Default for VideoKeys {
    fn default() -> VideoKeys {
        VideoKeys {
            video: Video::of_rate(Rate::mbit(5)),
            frame_rate: 25.0,
            group: Video::GROUP.to_owned(),
            deviation: Video::DEVIATION,
            sizes: String::new(),
            shaping: None,
        }
    }
}

static VIDEO_KEYS: [Parameter<VideoKeys>; 9] = [
    Parameter::word(
        "rate",
        Unit::Rate,
        "The mean rate of video, without headers, to which sizes are scaled; default: none with `i`, `p`, \
         `b` or `sizes`.",
        |keys, _| &mut keys.video.rate,
    ),
    Parameter::word(
        "frame_rate",
        Unit::Decimal("frames per second", 0, 1_000_000),
        "Frames per second, at least 0.001.",
        |keys, _| &mut keys.frame_rate,
    ),
    Parameter::word(
        "group",
        Unit::Text("letters I, P, B"),
        "The group of pictures, which repeats.",
        |keys, _| &mut keys.group,
    ),
    Parameter::word(
        "deviation",
        Unit::Decimal("means", 0, 5),
        "The standard deviation of the default sizes, in means.",
        |keys, _| &mut keys.deviation,
    ),
    Parameter::word(
        "sizes",
        Unit::Text("file"),
        "Instead: recorded sizes in bytes, one in each line, which repeat.",
        |keys, _| &mut keys.sizes,
    ),
    Parameter::new(
        "packet",
        Unit::Bytes,
        1..=(LONGEST_DATAGRAM - RTP_HEADER) as u64,
        "The most bytes of video in a packet; the default is that of a transport stream.",
        |keys, _| &mut keys.video.packet,
    ),
    Parameter::word(
        "spread",
        Unit::Flag,
        "Whether the packets of a frame are spread over its time.",
        |keys, _| &mut keys.video.spread,
    ),
    Parameter::new(
        "shaping",
        Unit::Time,
        TIMES,
        "The frames of so long are sent at a constant rate over that time, as VLC does with 200ms.",
        |keys, _| &mut keys.shaping,
    ),
    Parameter::word(
        "random_start",
        Unit::Flag,
        "Whether it begins with a random frame of the group or file.",
        |keys, _| &mut keys.video.random_start,
    ),
];

pub(super) const VOIP: Section = Section::new("voip", "a call, both ways", || {
    Parameter::infos(&VOIP_KEYS, (Voice::default(), None))
})
.with(&WITHIN_VOIP);

static WITHIN_VOIP: [Section; 2] = [
    time("on", "exponential, 1.004s", "The lengths of talk spurts."),
    time("off", "exponential, 1.587s", "The pauses between them."),
];

static VOIP_KEYS: [Parameter<(Voice, Option<bool>)>; 3] = [
    Parameter::word(
        "rate",
        Unit::Rate,
        "The rate of the codec; the default is G.711.",
        |keys, _| &mut keys.0.rate,
    ),
    Parameter::new(
        "packet",
        Unit::Time,
        TIMES,
        "The speech in a packet, which is a whole number of bytes.",
        |keys, _| &mut keys.0.packet_nanos,
    ),
    Parameter::word(
        "silence",
        Unit::Flag,
        "With `false` there are no pauses.",
        |keys, _| &mut keys.1,
    ),
];

pub(super) const GAME: Section =
    Section::new("game", "small packets, both ways", Vec::new).with(&WITHIN_GAME);

static WITHIN_GAME: [Section; 4] = [
    size(
        "size",
        "normal, 141b",
        "The packets of the server, which is `from`.",
    ),
    time("interval", "normal, 58.463ms", "The time between them."),
    size("client_size", "normal, 83b", "The packets of the client."),
    time("client_interval", "40ms", "The time between them."),
];

pub(super) const PING: Section = Section::new("ping", "echo requests and answers", || {
    Parameter::infos(&PING_KEYS, PING_SIZE)
})
.with(&WITHIN_PING);

/// What `ping` sends by default, bytes.
const PING_SIZE: u32 = 56;

static WITHIN_PING: [Section; 1] = [time("interval", "1s", "The time between requests.")];

static PING_KEYS: [Parameter<u32>; 1] = [Parameter::new(
    "size",
    Unit::Bytes,
    1..=LONGEST_DATAGRAM as u64,
    "The payload of requests and answers.",
    |size, _| size,
)];

pub(super) const SSH: Section = Section::new("ssh", "little data over TCP, both ways", || {
    Parameter::infos(&SSH_KEYS, Typing::default())
});

/// What is written over a connection.
struct Typing {
    rate: Rate,
    size: u32,
}

impl Default for Typing {
    /// The values of Table 3.1 in the thesis on MSFC.
    fn default() -> Typing {
        Typing {
            rate: Rate::from_bits_per_second(1_000).expect("it is above 0"),
            size: 20,
        }
    }
}

static SSH_KEYS: [Parameter<Typing>; 2] = [
    Parameter::word("rate", Unit::Rate, "The rate of writes.", |keys, _| {
        &mut keys.rate
    }),
    Parameter::new(
        "size",
        Unit::Bytes,
        SIZES,
        "The bytes of each write.",
        |keys, _| &mut keys.size,
    ),
];

pub(super) const REQUEST: Section =
    Section::new("request", "requests and responses on one connection", || {
        Parameter::infos(&REQUEST_KEYS, None)
    })
    .with(&WITHIN_REQUEST);

static WITHIN_REQUEST: [Section; 4] = [
    size("response", "none", "The bytes of a response.").required(),
    size("request", "350b", "The bytes of a request."),
    time(
        "service",
        "none",
        "The time from the arrival of a request to the response.",
    ),
    time(
        "think",
        "none",
        "The time from the arrival of a response to the next request.",
    ),
];

static REQUEST_KEYS: [Parameter<Option<u64>>; 1] = [Parameter::new(
    "count",
    Unit::Count("requests"),
    0..=u64::MAX,
    "The number of requests; default: no limit.",
    |count, _| count,
)];

pub(super) const WEB: Section = Section::new("web", "pages over several connections", || {
    Parameter::infos(&WEB_KEYS, Web::default())
})
.with(&WITHIN_WEB);

static WITHIN_WEB: [Section; 6] = [
    size("document", "log-normal, 10813b", "The first object of a page."),
    number(
        "objects",
        "exponential, 6",
        "The number of objects that follow it.",
    ),
    size("size", "log-normal, 7745b", "The bytes of an object."),
    size("request", "350b", "The bytes of a request."),
    time(
        "service",
        "none",
        "The time from the arrival of a request to the response.",
    ),
    time(
        "think",
        "exponential, 30s",
        "The time from the end of a page to the next one.",
    ),
];

static WEB_KEYS: [Parameter<Web>; 2] = [
    Parameter::new(
        "connections",
        Unit::Count("connections"),
        1..=MOST_CONNECTIONS as u64,
        "How many there are at a time.",
        |web, _| &mut web.connections,
    ),
    Parameter::new(
        "pages",
        Unit::Count("pages"),
        1..=u64::MAX,
        "The number of pages; default: no limit.",
        |web, _| &mut web.pages,
    ),
];

pub(super) const ADAPTIVE: Section =
    Section::new("adaptive", "a video player that chooses its bitrate", || {
        Parameter::infos(&ADAPTIVE_KEYS, Adaptive::default())
    });

static ADAPTIVE_KEYS: [Parameter<Adaptive>; 8] = [
    Parameter::word(
        "rates",
        Unit::Several(&Unit::Rate, 1, usize::MAX),
        "The bitrates, rising.",
        |keys, _| &mut keys.ladder,
    ),
    Parameter::new("chunk", Unit::Time, TIMES, "The video in a chunk.", |keys, _| {
        &mut keys.chunk
    }),
    Parameter::new(
        "buffer",
        Unit::Time,
        TIMES,
        "The most that is buffered, at least a chunk.",
        |keys, _| &mut keys.buffer,
    ),
    Parameter::new(
        "reservoir",
        Unit::Time,
        TIMES,
        "Below it the lowest bitrate is chosen; default: 37.5 % of `buffer`.",
        |keys, _| &mut keys.reservoir,
    ),
    Parameter::new(
        "cushion",
        Unit::Time,
        TIMES,
        "Above `reservoir` and this the highest is chosen; default: 52.5 % of `buffer`.",
        |keys, _| &mut keys.cushion,
    ),
    Parameter::new(
        "startup",
        Unit::Time,
        TIMES,
        "What is buffered before playback starts or goes on; default: a chunk.",
        |keys, _| &mut keys.startup,
    ),
    Parameter::new(
        "request",
        Unit::Bytes,
        SIZES,
        "The bytes of a request.",
        |keys, _| &mut keys.request,
    ),
    Parameter::new(
        "chunks",
        Unit::Count("chunks"),
        0..=u64::MAX,
        "The chunks of the video; default: no limit.",
        |keys, _| &mut keys.chunks,
    ),
];

pub(super) const TORRENT: Section = Section::new("torrent", "endless connections, both ways", || {
    Parameter::infos(&TORRENT_KEYS, Peers::default())
});

/// How many peers send in each direction.
pub(super) struct Peers {
    pub(super) down: u32,
    pub(super) up: u32,
}

impl Default for Peers {
    fn default() -> Peers {
        Peers { down: 10, up: 5 }
    }
}

impl Peers {
    pub(super) fn read(table: &Table) -> Peers {
        table.read(&TORRENT_KEYS, Peers::default())
    }
}

static TORRENT_KEYS: [Parameter<Peers>; 2] = [
    Parameter::new(
        "down",
        Unit::Count("flows"),
        1..=u32::MAX as u64,
        "The connections that send to `to`. For uploads alone, swap `from` and `to`.",
        |keys, _| &mut keys.down,
    ),
    Parameter::new(
        "up",
        Unit::Count("flows"),
        0..=u32::MAX as u64,
        "The connections that send to `from`.",
        |keys, _| &mut keys.up,
    ),
];

impl Reader<'_> {
    pub(super) fn video(&self, table: &Table) -> Result<Video, FileError> {
        let keys = table.read(&VIDEO_KEYS, VideoKeys::default());
        let [i, p, b] = ["i", "p", "b"].map(|key| self.sizes(table, key));
        let is_written = |key| table.span_of(key).is_some();
        let (frames, has_rate) = match (table.text("sizes"), (i?, p?, b?)) {
            (Some(file), (None, None, None)) if !is_written("group") && !is_written("deviation") => {
                (Frames::Recorded(self.frame_sizes(&file)?), is_written("rate"))
            }
            (None, (None, None, None)) => {
                let sizes = Video::picture_sizes(keys.deviation);
                (self.pictures(table, &keys, sizes)?, true)
            }
            (None, (Some(i), Some(p), Some(b))) if !is_written("deviation") => {
                (self.pictures(table, &keys, [i, p, b])?, is_written("rate"))
            }
            _ => {
                return Err(self.document.error(
                    table.span(),
                    "the sizes of frames come from a file (`sizes`), or from distributions for each kind of \
                     picture (`i`, `p` and `b`), or from a `rate` and a `deviation`",
                    "give one of the three, and `group` only without a file",
                ));
            }
        };
        if keys.frame_rate < 0.001 {
            return Err(self.document.error(
                place(table, "frame_rate"),
                format!(
                    "there are {} frames per second, but must be from 0.001 to 1000000",
                    keys.frame_rate
                ),
                "write for example frame_rate = 25",
            ));
        }
        // The time between two frames is rounded to a nanosecond.
        let frame_nanos = (1e9 / keys.frame_rate).round() as u64;
        let shaped = keys
            .shaping
            .map(|slice| self.frames_of(table, slice, frame_nanos));
        Ok(Video {
            frames,
            rate: keys.video.rate.filter(|_| has_rate),
            frame_nanos,
            shaped: shaped.transpose()?,
            ..keys.video
        })
    }

    fn pictures(
        &self,
        table: &Table,
        keys: &VideoKeys,
        sizes: [Distribution; 3],
    ) -> Result<Frames, FileError> {
        Frames::pictures(&keys.group, sizes).map_err(|what| self.refusal(place(table, "group"), &what))
    }

    /// Returns how many frames a slice has.
    fn frames_of(&self, table: &Table, slice: Duration, frame_nanos: u64) -> Result<NonZeroU32, FileError> {
        let nanos = slice.as_nanos();
        let is_whole = nanos.is_multiple_of(frame_nanos.into());
        let frames = u32::try_from(nanos / u128::from(frame_nanos))
            .ok()
            .and_then(NonZeroU32::new);
        frames.filter(|_| is_whole).ok_or_else(|| {
            self.document.error(
                place(table, "shaping"),
                format!(
                    "a slice of {} is no whole number of frames of {} ms",
                    units::format_duration(slice),
                    frame_nanos as f64 * 1e-6
                ),
                "write for example shaping = \"200ms\", five frames of 40 ms",
            )
        })
    }

    pub(super) fn voice(&self, table: &Table) -> Result<Voice, FileError> {
        let (plain, silence) = table.read(&VOIP_KEYS, (Voice::default(), None));
        let spurts = match (self.times(table, "on")?, self.times(table, "off")?, silence) {
            (None, None, None | Some(true)) => plain.spurts,
            (None, None, Some(false)) => None,
            (Some(on), Some(off), None | Some(true)) => Some([on, off]),
            _ => {
                return Err(self.document.error(
                    table.span(),
                    "talk spurts have both `on` and `off`, and neither of them with silence = false",
                    "write on = { exponential = \"1s\" }, off = { exponential = \"1.6s\" }, or omit both",
                ));
            }
        };
        Ok(Voice { spurts, ..plain })
    }

    /// Returns the packets of the server and of a client.
    ///
    /// Source: Färber 2002, "Network game traffic modelling" (NetGames), tables 2 and 3, Counter-Strike:
    /// sizes and intervals of extreme value distributions, which are approximated here by normal ones with
    /// the same mean and deviation, cut at 0. The mean is the location plus 0.5772 times the scale, the
    /// deviation 1.2825 times the scale.
    pub(super) fn game(&self, table: &Table) -> Result<[Udp; 2], FileError> {
        const MICRO: u64 = 1_000;
        let normal = |mean: u64, deviation: u64| Distribution::Normal {
            mean,
            deviation,
            low: 0,
            high: 2 * mean,
        };
        let packets = |size, plain_size, interval, plain_interval| -> Result<Udp, FileError> {
            Ok(Udp {
                size: self.sizes(table, size)?.unwrap_or(plain_size),
                pattern: Pattern::Interval {
                    gap: self.times(table, interval)?.unwrap_or(plain_interval),
                },
            })
        };
        Ok([
            // Location 120, scale 36; and 55 ms, 6 ms.
            packets(
                "size",
                normal(141, 46),
                "interval",
                normal(58_463 * MICRO, 7_695 * MICRO),
            )?,
            // Location 80, scale 5.7; and 40 ms.
            packets(
                "client_size",
                normal(83, 7),
                "client_interval",
                Distribution::Constant(40_000 * MICRO),
            )?,
        ])
    }

    pub(super) fn ping(&self, table: &Table) -> Result<Ping, FileError> {
        let interval = self.times(table, "interval")?;
        Ok(Ping {
            interval: interval.unwrap_or(Distribution::Constant(1_000_000_000)),
            size: table.read(&PING_KEYS, PING_SIZE),
        })
    }

    pub(super) fn ssh(&self, table: &Table) -> Application {
        let Typing { rate, size } = table.read(&SSH_KEYS, Typing::default());
        Application::Limited { rate, size }
    }

    pub(super) fn requests(&self, table: &Table) -> Result<Application, FileError> {
        let nothing = Distribution::Constant(0);
        Ok(Application::Requests(Requests {
            response: self.sizes(table, "response")?.unwrap_or(nothing.clone()),
            request: self
                .sizes(table, "request")?
                .unwrap_or(Distribution::Constant(350)),
            service: self.times(table, "service")?.unwrap_or(nothing.clone()),
            think: self.times(table, "think")?.unwrap_or(nothing),
            count: table.read(&REQUEST_KEYS, None),
        }))
    }

    pub(super) fn web(&self, table: &Table) -> Result<Application, FileError> {
        let plain = table.read(&WEB_KEYS, Web::default());
        Ok(Application::Web(Arc::new(Web {
            document: self.sizes(table, "document")?.unwrap_or(plain.document),
            objects: self.numbers(table, "objects")?.unwrap_or(plain.objects),
            size: self.sizes(table, "size")?.unwrap_or(plain.size),
            request: self.sizes(table, "request")?.unwrap_or(plain.request),
            service: self.times(table, "service")?.unwrap_or(plain.service),
            think: self.times(table, "think")?.unwrap_or(plain.think),
            ..plain
        })))
    }

    pub(super) fn adaptive(&self, table: &Table) -> Application {
        let plain = Adaptive::default();
        let written = table.read(&ADAPTIVE_KEYS, plain.clone());
        let of_key = |key, written, otherwise| match table.span_of(key) {
            Some(_) => written,
            None => otherwise,
        };
        // Another buffer is divided as the default one.
        let share =
            |part: u64| (u128::from(written.buffer) * u128::from(part) / u128::from(plain.buffer)) as u64;
        Application::Adaptive(Arc::new(Adaptive {
            reservoir: of_key("reservoir", written.reservoir, share(plain.reservoir)),
            cushion: of_key("cushion", written.cushion, share(plain.cushion)),
            startup: of_key("startup", written.startup, written.chunk),
            ..written
        }))
    }

    /// Reads a file of frame sizes: one number of bytes in each line.
    fn frame_sizes(&self, file: &Spanned<String>) -> Result<Arc<[u32]>, FileError> {
        let text = self.text_of(file)?;
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
}
