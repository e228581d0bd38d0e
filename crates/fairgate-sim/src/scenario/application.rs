//! Programs that write to TCP connections.

use std::sync::Arc;

use fairgate::Rate;

use crate::random::Distribution;
use crate::traffic::RecordedTurn;

/// A program that writes to TCP connections. The program at the other end reads all data at once.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Application {
    /// Writes as much as the connection takes.
    Bulk,
    /// Writes of `size` bytes at a constant rate, whether or not earlier ones have arrived.
    Limited {
        /// The rate of payload.
        rate: Rate,
        /// The bytes of each write.
        size: u32,
    },
    /// Writes in bursts with silences between them, whether or not earlier bursts have arrived.
    OnOff {
        /// The length of bursts.
        burst: Burst,
        /// The rate of payload in a burst. `None`: as fast as the connection takes it. What was not sent when
        /// a burst of a random duration ends, is then taken back, except for `buffered`.
        rate: Option<Rate>,
        /// The bytes of each write, if there is a rate.
        size: u32,
        /// The length of silences, ns. After a burst of bytes it counts from the last write.
        off: Distribution,
        /// The size of the send buffer that is full when a burst of a random duration without a rate ends,
        /// bytes. What is in it is still sent.
        buffered: u64,
    },
    /// Sends transfers one after another. Each begins a pause after the last byte of the previous one has
    /// arrived.
    Transfers {
        /// The bytes of a transfer.
        size: Distribution,
        /// The length of the pauses, ns.
        pause: Distribution,
        /// The number of transfers. `None` for no limit.
        count: Option<u64>,
    },
    /// The destination of the flow requests, and the source responds, on one connection.
    Requests(Requests),
    /// The destination of the flow loads web pages from the source.
    Web(Arc<Web>),
    /// The destination of the flow plays an adaptive video from the source.
    Adaptive(Arc<Adaptive>),
    /// Both ends write in turn, as recorded. The destination of the flow is the client.
    Conversation(Arc<[RecordedTurn]>),
}

/// The length of bursts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Burst {
    /// A random duration, ns.
    Time(Distribution),
    /// A random number of bytes.
    Bytes(Distribution),
}

/// Requests and responses on one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// The bytes of a request.
    pub request: Distribution,
    /// The bytes of a response.
    pub response: Distribution,
    /// The time from the arrival of a request to the response, ns.
    pub service: Distribution,
    /// The time from the arrival of a response to the next request, ns.
    pub think: Distribution,
    /// The number of requests. `None` for no limit.
    pub count: Option<u64>,
}

/// Web pages: a document each, and objects that the browser finds in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Web {
    /// The bytes of the document.
    pub document: Distribution,
    /// The number of objects besides the document.
    pub objects: Distribution,
    /// The bytes of an object.
    pub size: Distribution,
    /// The bytes of a request.
    pub request: Distribution,
    /// The time from the arrival of a request to the response, ns.
    pub service: Distribution,
    /// The time from the end of a page to the next page, ns.
    pub think: Distribution,
    /// The maximum number of connections at a time.
    pub connections: u16,
    /// The number of pages. `None` for no limit.
    pub pages: Option<u64>,
}

impl Default for Web {
    /// The model of 3GPP2 C.R1002 ("cdma2000 evaluation methodology", HTTP): documents and objects have
    /// truncated log-normal sizes, a request has 350 bytes, and the think time is exponential with a mean of
    /// 30 s. The number of objects is exponential here, with a mean of 5.5 after rounding; the model has a
    /// truncated Pareto distribution with a mean of 5.64. Six connections are what browsers open to a host.
    fn default() -> Web {
        Web {
            document: Distribution::LogNormal {
                mean: 10_813,
                sigma: 1.37,
                low: 100,
                high: 2_000_000,
            },
            objects: Distribution::Exponential { mean: 6 },
            size: Distribution::LogNormal {
                mean: 7_745,
                sigma: 2.36,
                low: 50,
                high: 2_000_000,
            },
            request: Distribution::Constant(350),
            service: Distribution::Constant(0),
            think: Distribution::Exponential { mean: 30_000_000_000 },
            connections: 6,
            pages: None,
        }
    }
}

/// Adaptive video: chunks of a fixed duration, each available in several bitrates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// The bitrates, bit/s, rising.
    pub ladder: Vec<u64>,
    /// The duration of a chunk, ns.
    pub chunk: u64,
    /// The maximum of buffered video, ns.
    pub buffer: u64,
    /// At this buffer level and below, the lowest bitrate is chosen, ns.
    pub reservoir: u64,
    /// At `reservoir + cushion` and above, the highest bitrate is chosen, ns.
    pub cushion: u64,
    /// Playback starts, and goes on after a stall, when this much is buffered, ns.
    pub startup: u64,
    /// The bytes of a request.
    pub request: u64,
    /// The number of chunks. `None` for no limit.
    pub chunks: Option<u64>,
}

impl Default for Adaptive {
    /// The buffer of Huang et al. 2014, section 4: 240 s, with a reservoir of 90 s and a cushion of 126 s;
    /// chunks of 4 s; ten bitrates from 235 to 5800 kbit/s (Netflix's ladder of that time).
    fn default() -> Adaptive {
        const SECOND: u64 = 1_000_000_000;
        Adaptive {
            ladder: [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800]
                .map(|kilobits| kilobits * 1000)
                .to_vec(),
            chunk: 4 * SECOND,
            buffer: 240 * SECOND,
            reservoir: 90 * SECOND,
            cushion: 126 * SECOND,
            startup: 4 * SECOND,
            request: 400,
            chunks: None,
        }
    }
}

impl Adaptive {
    /// Returns the bytes of a chunk at a bitrate, rounded down, and at least 1.
    pub(crate) fn chunk_bytes(&self, rung: usize) -> u64 {
        let bytes = u128::from(self.ladder[rung]) * u128::from(self.chunk) / 8_000_000_000;
        (bytes as u64).max(1)
    }

    /// Returns the index of the bitrate to choose at a buffer level, if `current` was chosen before.
    pub(crate) fn choose(&self, current: usize, level: u64) -> usize {
        let highest = self.ladder.len() - 1;
        if level <= self.reservoir {
            return 0;
        }
        if level >= self.reservoir + self.cushion {
            return highest;
        }
        let above = u128::from(level - self.reservoir);
        let span = u128::from(self.ladder[highest] - self.ladder[0]);
        let mapped = self.ladder[0] + (span * above / u128::from(self.cushion)) as u64;
        let (up, down) = ((current + 1).min(highest), current.saturating_sub(1));
        if mapped >= self.ladder[up] {
            // The highest bitrate below the map. There is one, because the map is above the lowest.
            self.ladder
                .iter()
                .rposition(|&rate| rate < mapped)
                .unwrap_or(0)
                .max(current)
        } else if mapped <= self.ladder[down] {
            self.ladder
                .iter()
                .position(|&rate| rate > mapped)
                .unwrap_or(highest)
                .min(current)
        } else {
            current
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.ladder.is_empty() || !self.ladder.is_sorted_by(|a, b| a < b) || self.ladder[0] == 0 {
            return Err("the bitrates must be above 0 and rise; sort them, and give each once".into());
        }
        if self.ladder[self.ladder.len() - 1] > MOST_BITRATE {
            return Err(format!(
                "the highest bitrate is above {MOST_BITRATE} bit/s, which is the limit; lower it"
            ));
        }
        let durations = [
            self.chunk,
            self.buffer,
            self.reservoir,
            self.cushion,
            self.startup,
        ];
        if durations.iter().any(|&nanos| nanos > MOST_NANOS) {
            return Err("a time of the player is above a day, which is the limit; shorten it".into());
        }
        if self.chunk == 0 || self.cushion == 0 {
            return Err("`chunk` and `cushion` must be above 0; lengthen them".into());
        }
        if self.buffer < self.chunk || self.startup > self.buffer {
            return Err("the buffer must hold a chunk and what playback needs to start; enlarge it".into());
        }
        // Otherwise the player would wait for ever for more than it may buffer.
        if self.startup > self.buffer / self.chunk * self.chunk {
            return Err(
                "playback starts at more than the whole chunks that the buffer holds; lower `startup`".into(),
            );
        }
        if self.reservoir.saturating_add(self.cushion) > self.buffer {
            return Err("reservoir and cushion together exceed the buffer; shorten them".into());
        }
        if self.chunks == Some(0) || self.request == 0 {
            return Err("`chunks` and `request` must be above 0; increase them".into());
        }
        Ok(())
    }
}

/// The limits of a player's bitrates, bit/s, and of its times, ns.
const MOST_BITRATE: u64 = 1_000_000_000_000;
const MOST_NANOS: u64 = 86_400_000_000_000;

/// The maximum number of a browser's connections.
pub(crate) const MOST_CONNECTIONS: u16 = 256;

impl Requests {
    fn check(&self) -> Result<(), String> {
        for distribution in [&self.request, &self.response, &self.service, &self.think] {
            distribution.check()?;
        }
        if self.request.mean() == 0 || self.response.mean() == 0 || self.count == Some(0) {
            return Err("requests must have a size, a response and a count above 0; increase them".into());
        }
        Ok(())
    }
}

impl Web {
    fn check(&self) -> Result<(), String> {
        for distribution in [
            &self.document,
            &self.objects,
            &self.size,
            &self.request,
            &self.service,
            &self.think,
        ] {
            distribution.check()?;
        }
        if [&self.document, &self.size, &self.request]
            .iter()
            .any(|size| size.mean() == 0)
        {
            return Err("documents, objects and requests must have sizes above 0; increase them".into());
        }
        if !(1..=MOST_CONNECTIONS).contains(&self.connections) || self.pages == Some(0) {
            return Err(format!(
                "a browser has from 1 to {MOST_CONNECTIONS} connections and loads at least one page; change \
                 `connections` or `pages`"
            ));
        }
        Ok(())
    }
}

impl Application {
    /// Returns whether the destination of the flow opens the connection, and not its source.
    pub(crate) fn is_opened_by_destination(&self) -> bool {
        matches!(
            self,
            Application::Requests(_)
                | Application::Web(_)
                | Application::Adaptive(_)
                | Application::Conversation(_)
        )
    }

    /// Returns whether the program ends by itself.
    pub(crate) fn ends(&self) -> bool {
        match self {
            Application::Transfers { count, .. } => count.is_some(),
            Application::Requests(requests) => requests.count.is_some(),
            Application::Web(web) => web.pages.is_some(),
            Application::Adaptive(adaptive) => adaptive.chunks.is_some(),
            Application::Conversation(_) => true,
            Application::Bulk | Application::Limited { .. } | Application::OnOff { .. } => false,
        }
    }

    /// Returns the maximum number of connections of a flow at a time.
    pub(crate) fn connections(&self) -> u16 {
        match self {
            Application::Web(web) => web.connections,
            _ => 1,
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Application::Bulk => Ok(()),
            Application::Limited { size: 0, .. } | Application::OnOff { size: 0, .. } => {
                Err("the `size` of writes is 0, but must be above 0; increase it".into())
            }
            Application::Limited { .. } => Ok(()),
            Application::OnOff { burst, off, .. } => {
                let (Burst::Time(length) | Burst::Bytes(length)) = burst;
                length.check()?;
                off.check()?;
                if length.mean() == 0 {
                    return Err("the mean length of bursts is 0, but must be above 0; increase it".into());
                }
                Ok(())
            }
            Application::Transfers { size, pause, count } => {
                size.check()?;
                pause.check()?;
                if size.mean() == 0 || *count == Some(0) {
                    return Err("transfers must have a size and a count above 0".into());
                }
                Ok(())
            }
            Application::Requests(requests) => requests.check(),
            Application::Web(web) => web.check(),
            Application::Adaptive(adaptive) => adaptive.check(),
            Application::Conversation(turns) => {
                if turns.is_empty() || turns.iter().any(|turn| turn.bytes == 0) {
                    return Err("a conversation must have turns, and each must have bytes".into());
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Algorithm 1 of Huang et al. 2014, in floating point and rates instead of indices.
    fn published(ladder: &[u64], previous: u64, level: f64, reservoir: f64, cushion: f64) -> u64 {
        let (least, most) = (ladder[0], ladder[ladder.len() - 1]);
        let up = ladder
            .iter()
            .copied()
            .find(|&rate| rate > previous)
            .unwrap_or(most);
        let down = ladder
            .iter()
            .copied()
            .rfind(|&rate| rate < previous)
            .unwrap_or(least);
        let map = least as f64 + (most - least) as f64 * (level - reservoir) / cushion;
        if level <= reservoir {
            least
        } else if level >= reservoir + cushion {
            most
        } else if map >= up as f64 && previous != most {
            ladder
                .iter()
                .copied()
                .rfind(|&rate| (rate as f64) < map)
                .unwrap_or(least)
                .max(previous)
        } else if map <= down as f64 && previous != least {
            ladder
                .iter()
                .copied()
                .find(|&rate| rate as f64 > map)
                .unwrap_or(most)
                .min(previous)
        } else {
            previous
        }
    }

    proptest! {
        #[test]
        fn the_choice_is_the_published_one(current in 0usize..10, level in 0u64..240) {
            let adaptive = Adaptive::default();
            let chosen = adaptive.ladder[adaptive.choose(current, level * 1_000_000_000)];
            let expected =
                published(&adaptive.ladder, adaptive.ladder[current], level as f64, 90.0, 126.0);
            prop_assert_eq!(chosen, expected);
        }
    }

    #[test]
    fn a_player_that_would_wait_for_ever_is_rejected() {
        let fine = Adaptive::default();
        assert!(Application::Adaptive(Arc::new(fine.clone())).check().is_ok());
        for wrong in [
            Adaptive {
                ladder: vec![],
                ..fine.clone()
            },
            Adaptive {
                ladder: vec![2, 1],
                ..fine.clone()
            },
            Adaptive {
                startup: 239_000_000_000,
                chunk: 7_000_000_000,
                ..fine.clone()
            },
            Adaptive {
                cushion: 200_000_000_000,
                ..fine.clone()
            },
            Adaptive {
                chunk: 0,
                ..fine.clone()
            },
        ] {
            let error = Application::Adaptive(Arc::new(wrong.clone())).check();
            assert!(error.is_err(), "{wrong:?}");
        }
    }
}
