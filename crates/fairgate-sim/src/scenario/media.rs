//! Applications that send datagrams: video, voice, and ping.

use std::num::NonZeroU32;
use std::sync::Arc;

use fairgate::Rate;

use crate::random::Distribution;
use crate::scenario::{LONGEST_DATAGRAM, Pattern, Udp};

/// The length of an RTP header without extensions, bytes (RFC 3550, section 5.1).
pub(crate) const RTP_HEADER: u32 = 12;

/// The default maximum of video bytes in a packet: seven packets of an MPEG transport stream (RFC 2250).
const TRANSPORT_STREAM: u32 = 7 * 188;

/// The complexities of I, P and B pictures that MPEG-2's Test Model 5 assumes at the beginning of a sequence
/// (160, 60 and 42), with its quantiser ratio of 1.4 for B pictures.
const PICTURE_BYTES: [u64; 3] = [160_000_000, 60_000_000, 30_000_000];

/// The parts of a byte in which mean sizes are counted.
const PARTS: u128 = 1 << 10;

/// A video stream in RTP packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Video {
    /// The sizes of the frames.
    pub frames: Frames,
    /// The mean rate of video bytes, without headers. The sizes of frames are scaled to it. `None`: they are
    /// bytes and are not scaled.
    pub rate: Option<Rate>,
    /// The time between two frames, ns.
    pub frame_nanos: u64,
    /// The maximum of video bytes in a packet.
    pub packet: u32,
    /// Whether the packets of a frame are spread evenly over the time until the next frame. Otherwise they
    /// leave together.
    pub spread: bool,
    /// The frames of a slice, whose packets are spread evenly over the time of the slice, whatever `spread`
    /// says. `None`: frames are sent one by one.
    pub shaped: Option<NonZeroU32>,
    /// Whether the video begins with a random frame of the group or of the recording.
    pub random_start: bool,
}

/// The sizes of the frames of a video.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Frames {
    /// Random sizes, by kind of picture.
    Pictures {
        /// The kinds of pictures in a group. The group is repeated.
        group: Arc<[Picture]>,
        /// The sizes of I, P and B pictures.
        sizes: Box<[Distribution; 3]>,
    },
    /// Recorded sizes. The recording is repeated.
    Recorded(Arc<[u32]>),
}

/// The kind of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Coded without reference to other pictures.
    I,
    /// Predicted from an earlier picture.
    P,
    /// Predicted from an earlier and a later picture.
    B,
}

/// A factor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) numerator: u128,
    pub(crate) denominator: u128,
}

impl Frames {
    /// Returns the sizes of a group of pictures such as `IBBPBB`.
    ///
    /// # Errors
    /// Says what is wrong with the group.
    pub fn pictures(group: &str, sizes: [Distribution; 3]) -> Result<Frames, String> {
        let pictures = group.chars().map(|letter| match letter {
            'I' => Ok(Picture::I),
            'P' => Ok(Picture::P),
            'B' => Ok(Picture::B),
            other => Err(format!(
                "`{other}` is no kind of picture; a group has the letters I, P and B, such as \"{}\"",
                Video::GROUP
            )),
        });
        let group: Arc<[Picture]> = pictures.collect::<Result<_, String>>()?;
        if group.is_empty() {
            return Err(format!(
                "the group of pictures is empty; write for example \"{}\"",
                Video::GROUP
            ));
        }
        Ok(Frames::Pictures {
            group,
            sizes: Box::new(sizes),
        })
    }

    /// Returns the number of frames after which the sizes or their distributions repeat.
    pub(crate) fn period(&self) -> usize {
        match self {
            Frames::Pictures { group, .. } => group.len(),
            Frames::Recorded(sizes) => sizes.len(),
        }
    }

    /// Returns the sum of the mean sizes of a period, in units of 1 / [`PARTS`].
    fn sum(&self) -> u128 {
        match self {
            Frames::Pictures { group, sizes } => {
                let means = group.iter().map(|&picture| sizes[picture as usize].expected());
                means.map(|mean| (mean * PARTS as f64) as u128).sum()
            }
            Frames::Recorded(sizes) => sizes.iter().map(|&size| u128::from(size) * PARTS).sum(),
        }
    }
}

impl Video {
    /// The default group of pictures.
    pub(crate) const GROUP: &str = "IBBPBBPBBPBB";

    /// The default ratio of the standard deviation of a picture's size to its mean. This is a choice: it
    /// depends on the scenes.
    pub(crate) const DEVIATION: f64 = 0.25;

    /// Returns a video of this mean rate: 25 frames per second, groups of twelve pictures, whose sizes vary
    /// by a quarter of their mean.
    pub fn of_rate(rate: Rate) -> Video {
        let sizes = Video::picture_sizes(Video::DEVIATION);
        Video {
            frames: Frames::pictures(Video::GROUP, sizes).expect("the default group is valid"),
            rate: Some(rate),
            frame_nanos: 40_000_000,
            packet: TRANSPORT_STREAM,
            spread: false,
            shaped: None,
            random_start: false,
        }
    }

    /// Returns the default sizes of pictures: log-normal, as Krunz, Sass and Hughes 1995 found for each kind
    /// of picture ("Statistical characteristics and multiplexing of MPEG streams", INFOCOM). They have to be
    /// scaled to a rate. `deviation` is the ratio of the standard deviation to the mean.
    pub(crate) fn picture_sizes(deviation: f64) -> [Distribution; 3] {
        PICTURE_BYTES.map(|mean| match (mean as f64 * deviation) as u64 {
            0 => Distribution::Constant(mean),
            deviation => Distribution::log_normal(mean, deviation),
        })
    }

    /// Returns the factor that turns the sizes of frames into bytes.
    pub(crate) fn scale(&self) -> Scale {
        let Some(rate) = self.rate else {
            return Scale {
                numerator: 1,
                denominator: 1,
            };
        };
        let bits_nanos = u128::from(rate.bits_per_second()) * u128::from(self.frame_nanos);
        Scale {
            numerator: bits_nanos * self.frames.period() as u128 * PARTS,
            denominator: 8_000_000_000 * self.frames.sum(),
        }
    }

    /// Returns the mean size of a frame, bytes.
    fn frame_bytes(&self) -> u128 {
        let scale = self.scale();
        let sum = self.frames.sum() / PARTS;
        sum.saturating_mul(scale.numerator) / scale.denominator / self.frames.period() as u128
    }

    /// Returns the expected number of packets in `nanos`.
    pub(crate) fn packets_in(&self, nanos: u128) -> u128 {
        let frames = nanos / u128::from(self.frame_nanos) + 1;
        frames * (self.frame_bytes() / u128::from(self.packet) + 1)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if let Frames::Pictures { sizes, .. } = &self.frames {
            sizes.iter().try_for_each(Distribution::check)?;
        }
        if self.frames.sum() == 0 {
            return Err("all frames are empty; give at least one of them a size".into());
        }
        let frame_nanos = self.frame_nanos;
        if !(FRAME_NANOS_MIN..=FRAME_NANOS_MAX).contains(&frame_nanos) {
            return Err(format!(
                "the time between two frames is {frame_nanos} ns, but must be from 1 µs to 1000 s; 25 to 60 \
                 frames per second are usual"
            ));
        }
        let longest = LONGEST_DATAGRAM - RTP_HEADER;
        if !(1..=longest).contains(&self.packet) {
            return Err(format!(
                "a packet holds {} bytes of video, but must hold from 1 to {longest}; {TRANSPORT_STREAM} is \
                 usual",
                self.packet
            ));
        }
        // Longer frames would be an error of the unit, and their products would not fit 128 bits.
        if self.frame_bytes() > FRAME_BYTES_MAX || self.frames.period() > FRAMES_MAX {
            return Err(format!(
                "a frame has {} bytes on average, and the sizes repeat after {} frames, but at most \
                 {FRAME_BYTES_MAX} bytes and {FRAMES_MAX} frames are allowed; lower the rate, or use fewer \
                 frames",
                self.frame_bytes(),
                self.frames.period()
            ));
        }
        Ok(())
    }
}

const FRAME_NANOS_MIN: u64 = 1_000;
const FRAME_NANOS_MAX: u64 = 1_000_000_000_000;
const FRAME_BYTES_MAX: u128 = 1_000_000_000;
/// A week of video at 60 frames per second.
const FRAMES_MAX: usize = 40_000_000;

/// Echo requests, and an answer to each.
#[derive(Clone, Debug, PartialEq)]
pub struct Ping {
    /// The times between requests, ns.
    pub interval: Distribution,
    /// The payload of requests and answers, bytes.
    pub size: u32,
}

impl Ping {
    /// Returns the requests as a stream of datagrams. ICMP's header is as long as UDP's.
    pub(crate) fn requests(&self) -> Udp {
        Udp {
            size: Distribution::Constant(self.size.into()),
            pattern: Pattern::Interval {
                gap: self.interval.clone(),
            },
        }
    }
}

/// A call in one direction: datagrams of equal length while someone speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Voice {
    /// The rate of the codec.
    pub rate: Rate,
    /// The speech in a packet, ns.
    pub packet_nanos: u64,
    /// The lengths of talk spurts and of pauses, ns. `None` to send without pauses.
    pub spurts: Option<[Distribution; 2]>,
}

impl Default for Voice {
    /// G.711 in packets of 20 ms, with the talk spurts and pauses of ITU-T P.59, section 4: exponential with
    /// means of 1.004 s and 1.587 s.
    fn default() -> Voice {
        Voice {
            rate: Rate::from_bits_per_second(64_000).expect("it is above 0"),
            packet_nanos: 20_000_000,
            spurts: Some([1_004_000_000, 1_587_000_000].map(|mean| Distribution::Exponential { mean })),
        }
    }
}

impl Voice {
    /// Returns the packets as a stream of datagrams: speech and an RTP header. The rate of the datagrams is
    /// that of the codec times their length over that of the speech in them. The result is the error of a
    /// rate or a time that gives no whole number of bytes.
    pub(crate) fn datagrams(&self) -> Result<Udp, String> {
        let bits = u128::from(self.rate.bits_per_second()) * u128::from(self.packet_nanos);
        let speech = bits / 8_000_000_000;
        if bits % 8_000_000_000 != 0 || speech == 0 || speech > u128::from(LONGEST_DATAGRAM - RTP_HEADER) {
            return Err(format!(
                "{} in packets of {} ms are {:.3} bytes of speech in a packet, but must be a whole number \
                 from 1 to {}; use a codec such as G.711: 64 kbit/s in packets of 20 ms",
                self.rate,
                self.packet_nanos as f64 / 1e6,
                bits as f64 / 8e9,
                LONGEST_DATAGRAM - RTP_HEADER
            ));
        }
        let payload = speech as u32 + RTP_HEADER;
        let gross = u128::from(payload) * 8_000_000_000 / u128::from(self.packet_nanos);
        let rate = u64::try_from(gross)
            .ok()
            .and_then(|bits| Rate::from_bits_per_second(bits).ok());
        let rate = rate.ok_or("the packets are too far apart; shorten them")?;
        let pattern = match &self.spurts {
            None => Pattern::Constant { rate },
            Some([on, off]) => Pattern::OnOff {
                rate,
                on: on.clone(),
                off: off.clone(),
            },
        };
        Ok(Udp {
            size: Distribution::Constant(payload.into()),
            pattern,
        })
    }
}
