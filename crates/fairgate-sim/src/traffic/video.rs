//! A video source: frames of a group of pictures, or recorded frames, cut into RTP packets.

use std::num::NonZeroU32;

use crate::random::{Distribution, Stream};
use crate::scenario::{Frames, RTP_HEADER, Scale, Video};

/// The position in a video.
#[derive(Clone, Debug)]
pub(crate) struct VideoSource {
    sizes: FrameSizes,
    /// The number of frames that are sent as one, a slice, and the time of them, ns.
    together: u32,
    slice_nanos: u64,
    /// The maximum of video bytes in a packet.
    most: u32,
    /// Whether the packets of a slice are spread over its time.
    spread: bool,
    /// The rest of the current slice, bytes.
    left: u64,
    /// The number of packets of the current slice, and of those already sent.
    packets: u64,
    sent: u64,
}

impl VideoSource {
    pub(crate) fn new(video: &Video, stream: Stream) -> VideoSource {
        let together = video.shaped.map_or(1, NonZeroU32::get);
        let mut source = VideoSource {
            sizes: FrameSizes::new(video, stream),
            together,
            slice_nanos: video.frame_nanos * u64::from(together),
            most: video.packet,
            spread: video.spread || video.shaped.is_some(),
            left: 0,
            packets: 0,
            sent: 0,
        };
        // A recording may begin with empty frames. The first packet is sent at the start all the same.
        source.next_slice();
        source
    }

    /// Returns the payload of the packet that is due now, and the time until the next one, ns.
    pub(crate) fn next(&mut self) -> (u32, u64) {
        let bytes = self.left.min(self.most.into()) as u32;
        self.left -= u64::from(bytes);
        let place = self.place();
        self.sent += 1;
        let wait = match self.left {
            0 => (1 + self.next_slice()) * self.slice_nanos - place,
            _ => self.place() - place,
        };
        (bytes + RTP_HEADER, wait)
    }

    /// Returns when the next packet is due, ns from the beginning of its slice.
    fn place(&self) -> u64 {
        match self.spread {
            true => (u128::from(self.slice_nanos) * u128::from(self.sent) / u128::from(self.packets)) as u64,
            false => 0,
        }
    }

    /// Begins the next slice that is not empty. Returns the number of empty ones before it.
    fn next_slice(&mut self) -> u64 {
        let mut empty = 0;
        loop {
            self.left = (0..self.together).map(|_| self.sizes.next()).sum();
            if self.left > 0 {
                self.packets = self.left.div_ceil(self.most.into());
                self.sent = 0;
                return empty;
            }
            empty += 1;
        }
    }
}

/// The sizes of frames. A fraction of a byte is carried to the next frame, so that the mean rate is exact.
#[derive(Clone, Debug)]
struct FrameSizes {
    frames: Frames,
    stream: Stream,
    position: usize,
    /// What each size is multiplied by.
    scale: Scale,
    carried: u128,
}

impl FrameSizes {
    fn new(video: &Video, mut stream: Stream) -> FrameSizes {
        let position = match video.random_start {
            true => {
                let high = video.frames.period() as u64 - 1;
                Distribution::Uniform { low: 0, high }.sample(&mut stream) as usize
            }
            false => 0,
        };
        FrameSizes {
            frames: video.frames.clone(),
            stream,
            position,
            scale: video.scale(),
            carried: 0,
        }
    }

    fn next(&mut self) -> u64 {
        let drawn = match &self.frames {
            Frames::Pictures { group, sizes } => {
                let picture = group[self.position];
                sizes[picture as usize].sample(&mut self.stream)
            }
            Frames::Recorded(sizes) => sizes[self.position].into(),
        };
        self.position = (self.position + 1) % self.frames.period();
        let scaled = u128::from(drawn) * self.scale.numerator + self.carried;
        self.carried = scaled % self.scale.denominator;
        (scaled / self.scale.denominator) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::Rate;

    fn packets(video: &Video, seconds: u64) -> Vec<(u64, u32)> {
        let mut source = VideoSource::new(video, Stream::new(1, "test", "video"));
        let (mut now, mut packets) = (0, Vec::new());
        while now < seconds * 1_000_000_000 {
            let (payload, wait) = source.next();
            packets.push((now, payload));
            now += wait;
        }
        packets
    }

    fn bytes(packets: &[(u64, u32)]) -> u64 {
        packets
            .iter()
            .map(|&(_, payload)| u64::from(payload - RTP_HEADER))
            .sum()
    }

    #[test]
    fn the_mean_rate_is_as_configured() {
        for spread in [false, true] {
            let video = Video {
                spread,
                ..Video::of_rate(Rate::mbit(5))
            };
            let sent = bytes(&packets(&video, 2000)) as f64;
            let error = sent / (2000.0 * 625_000.0) - 1.0;
            // 50,000 frames. The deviation of their mean is about 0.1 %.
            assert!(error.abs() < 0.005, "{error}");
        }
    }

    #[test]
    fn recorded_frames_are_sent_to_the_byte() {
        let sizes: Vec<u32> = vec![3000, 0, 1316, 1, 0];
        let mut video = Video {
            frames: Frames::Recorded(sizes.into()),
            rate: None,
            ..Video::of_rate(Rate::mbit(1))
        };
        let frame = video.frame_nanos;
        let expected = [
            (0, 1316),
            (0, 1316),
            (0, 368),
            (2 * frame, 1316),
            (3 * frame, 1),
            (5 * frame, 1316),
        ];
        let sent: Vec<(u64, u32)> = packets(&video, 1)
            .into_iter()
            .map(|(at, payload)| (at, payload - RTP_HEADER))
            .collect();
        assert_eq!(sent[..6], expected);
        // Scaled to a rate, the bytes of a whole number of rounds are exact.
        video.rate = Some(Rate::mbit(3));
        let sent: Vec<(u64, u32)> = packets(&video, 10);
        assert_eq!(bytes(&sent), 10 * 375_000);
    }

    #[test]
    fn spread_packets_divide_the_time_of_the_frame() {
        let video = Video {
            frames: Frames::Recorded(vec![4 * 1316].into()),
            rate: None,
            spread: true,
            ..Video::of_rate(Rate::mbit(1))
        };
        let times: Vec<u64> = packets(&video, 1).into_iter().map(|(at, _)| at).collect();
        let expected: Vec<u64> = (0..times.len() as u64)
            .map(|n| n * video.frame_nanos / 4)
            .collect();
        assert_eq!(times, expected);
    }

    /// Five frames of 40 ms, of which the first is as large as the others together, are one slice of 200 ms.
    #[test]
    fn a_shaped_video_is_constant_within_a_slice() {
        let video = Video {
            frames: Frames::Recorded(vec![8 * 1316, 2 * 1316, 2 * 1316, 2 * 1316, 2 * 1316].into()),
            rate: None,
            shaped: NonZeroU32::new(5),
            ..Video::of_rate(Rate::mbit(1))
        };
        let sent = packets(&video, 1);
        let slice = 5 * video.frame_nanos;
        let expected: Vec<(u64, u32)> = (0..sent.len() as u64)
            .map(|n| (n * slice / 16, 1316 + RTP_HEADER))
            .collect();
        assert_eq!(sent, expected);
    }

    #[test]
    fn intra_coded_pictures_are_larger_than_others() {
        let sent = packets(&Video::of_rate(Rate::mbit(5)), 400);
        let mut frames = std::collections::BTreeMap::<u64, u64>::new();
        for (at, payload) in sent {
            *frames.entry(at).or_default() += u64::from(payload - RTP_HEADER);
        }
        let mean = |place: usize| {
            let of_place: Vec<u64> = frames.values().skip(place).step_by(12).copied().collect();
            of_place.iter().sum::<u64>() as f64 / of_place.len() as f64
        };
        // IBBPBBPBBPBB with I : P : B = 16 : 6 : 3.
        assert!(
            (mean(0) / mean(3) - 16.0 / 6.0).abs() < 0.1,
            "{}",
            mean(0) / mean(3)
        );
        assert!(
            (mean(0) / mean(1) - 16.0 / 3.0).abs() < 0.2,
            "{}",
            mean(0) / mean(1)
        );
    }
}
