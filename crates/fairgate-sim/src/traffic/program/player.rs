//! The player of an adaptive video. It chooses the bitrate of each chunk by the level of its buffer.
//!
//! Source: Huang, Johari, McKeown, Trunnell, Watson 2014, "A Buffer-Based Approach to Rate Adaptation"
//! (SIGCOMM), section 4: BBA-0, Algorithm 1. Below the reservoir the lowest bitrate is chosen, above
//! reservoir plus cushion the highest. Between them a linear map gives a rate, and the bitrate changes only
//! if that rate passes the next higher or next lower one. When the buffer has no room for a chunk, the player
//! waits.
//!
//! All chunks of a bitrate have the same size. BBA-1 and BBA-2, which use the sizes of the next chunks and
//! the throughput at the start, are non-goals.

use std::ops::Range;
use std::sync::Arc;

use fairgate::Time;

use super::step::Step;
use crate::monitor::Recorder;
use crate::results::ApplicationResults;
use crate::scenario::Adaptive;
use crate::traffic::End;

/// The state of a player.
#[derive(Clone, Debug)]
pub(super) struct Player {
    adaptive: Arc<Adaptive>,
    window: Range<Time>,
    start: Time,
    /// The chunks that were not requested yet.
    left: u64,
    /// The index of the current bitrate.
    rung: usize,
    /// Whether the next step is a chunk, and not a request.
    responds: bool,
    asked_at: Time,
    playback: Playback,
    figures: Figures,
}

/// The buffer, which playback empties.
#[derive(Clone, Debug)]
struct Playback {
    /// What was buffered at the time `updated`, ns of video.
    level: u64,
    updated: Time,
    state: PlaybackState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaybackState {
    /// Waits for the first frame.
    Starting,
    Playing,
    /// Stands still since then.
    Stalled(Time),
    /// The whole video was played.
    Over,
}

/// The measurements in the window.
#[derive(Clone, Debug, Default)]
struct Figures {
    chunks: u64,
    rate_sum: u128,
    switches: u64,
    stalls: u64,
    stalled: u64,
    startup: Option<u64>,
    last_rung: Option<usize>,
}

impl Player {
    pub(super) fn new(adaptive: Arc<Adaptive>, start: Time, window: Range<Time>) -> Player {
        Player {
            left: adaptive.chunks.unwrap_or(u64::MAX),
            adaptive,
            window,
            start,
            rung: 0,
            responds: false,
            asked_at: start,
            playback: Playback {
                level: 0,
                updated: start,
                state: PlaybackState::Starting,
            },
            figures: Figures::default(),
        }
    }

    pub(super) fn next(&mut self, now: Time) -> Option<Step> {
        if self.responds {
            return Some(Step {
                speaker: End::Sender,
                wait: 0,
                bytes: self.adaptive.chunk_bytes(self.rung),
            });
        }
        self.left = self.left.checked_sub(1)?;
        self.advance(now);
        let most = self.adaptive.buffer - self.adaptive.chunk;
        // The buffer empties in real time while it is above this level, because the video plays then.
        let wait = match self.playback.state {
            PlaybackState::Playing => self.playback.level.saturating_sub(most),
            _ => 0,
        };
        Some(Step {
            speaker: End::Receiver,
            wait,
            bytes: self.adaptive.request,
        })
    }

    pub(super) fn begun(&mut self, now: Time) {
        if !self.responds {
            self.advance(now);
            self.asked_at = now;
            self.rung = self.adaptive.choose(self.rung, self.playback.level);
        }
    }

    pub(super) fn completed(&mut self, now: Time, durations: &mut Recorder) {
        if self.responds {
            durations.record(now - self.asked_at);
            self.advance(now);
            self.take_chunk(now);
        }
        self.responds = !self.responds;
    }

    fn take_chunk(&mut self, now: Time) {
        let is_measured = self.window.contains(&now);
        if is_measured {
            let figures = &mut self.figures;
            figures.chunks += 1;
            figures.rate_sum += u128::from(self.adaptive.ladder[self.rung]);
            figures.switches += u64::from(figures.last_rung.is_some_and(|last| last != self.rung));
        }
        self.figures.last_rung = Some(self.rung);
        self.playback.level += self.adaptive.chunk;
        // The rest of a short video is played although it does not reach the threshold.
        let is_enough = self.playback.level >= self.adaptive.startup || self.left == 0;
        match self.playback.state {
            PlaybackState::Starting if is_enough => {
                self.figures.startup = Some(now - self.start);
                self.playback.state = PlaybackState::Playing;
            }
            PlaybackState::Stalled(since) if is_enough => {
                self.figures.stalled += overlap(since..now, &self.window);
                self.playback.state = PlaybackState::Playing;
            }
            _ => {}
        }
    }

    /// Plays until `now`.
    fn advance(&mut self, now: Time) {
        let elapsed = now - self.playback.updated;
        let playback = &mut self.playback;
        if playback.state == PlaybackState::Playing {
            if elapsed > playback.level || (elapsed == playback.level && elapsed > 0) {
                let emptied = playback.updated + playback.level;
                let is_over = self.left == 0 && !self.responds;
                playback.state = match is_over {
                    true => PlaybackState::Over,
                    false => PlaybackState::Stalled(emptied),
                };
                self.figures.stalls += u64::from(!is_over && self.window.contains(&emptied));
            }
            playback.level = playback.level.saturating_sub(elapsed);
        }
        playback.updated = now;
    }

    pub(super) fn results(&self) -> ApplicationResults {
        let mut end = self.clone();
        if end.playback.updated < self.window.end {
            end.advance(self.window.end);
        }
        if let PlaybackState::Stalled(since) = end.playback.state {
            end.figures.stalled += overlap(since..self.window.end.max(since), &self.window);
        }
        let figures = end.figures;
        ApplicationResults::Playback {
            chunks: figures.chunks,
            mean_bitrate_bps: figures
                .rate_sum
                .checked_div(figures.chunks.into())
                .map_or(0, |mean| mean as u64),
            switches: figures.switches,
            stalls: figures.stalls,
            stalled_ns: figures.stalled,
            startup_ns: figures.startup,
        }
    }
}

/// Returns the length of the part of `span` that is in the window, ns.
fn overlap(span: Range<Time>, window: &Range<Time>) -> u64 {
    let (start, end) = (span.start.max(window.start), span.end.min(window.end));
    if start < end { end - start } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Plays `chunks` chunks, each of which takes as long as `download` says for its bytes.
    fn play(adaptive: Adaptive, download: impl Fn(u64, Time) -> u64, until: u64) -> ApplicationResults {
        let mut player = Player::new(Arc::new(adaptive), Time::ZERO, Time::ZERO..Time::from_secs(until));
        let mut durations = Recorder::new();
        let mut now = Time::ZERO;
        while let Some(request) = player.next(now)
            && now < Time::from_secs(until)
        {
            now += request.wait;
            player.begun(now);
            player.completed(now, &mut durations);
            let chunk = player.next(now).expect("a chunk answers each request");
            player.begun(now);
            now += download(chunk.bytes, now);
            player.completed(now, &mut durations);
        }
        player.results()
    }

    fn adaptive() -> Adaptive {
        Adaptive {
            ladder: vec![1_000_000, 2_000_000, 4_000_000],
            chunk: 4 * SECOND,
            buffer: 60 * SECOND,
            reservoir: 10 * SECOND,
            cushion: 40 * SECOND,
            startup: 4 * SECOND,
            request: 300,
            chunks: None,
        }
    }

    /// The link carries `rate` bit/s.
    fn at(rate: u64) -> impl Fn(u64, Time) -> u64 {
        move |bytes, _| bytes * 8 * SECOND / rate
    }

    #[test]
    fn a_fast_link_plays_the_highest_bitrate_without_stalls() {
        let ApplicationResults::Playback {
            mean_bitrate_bps,
            switches,
            stalls,
            stalled_ns,
            startup_ns,
            ..
        } = play(adaptive(), at(40_000_000), 4000)
        else {
            unreachable!("a player has results of playback")
        };
        assert!(mean_bitrate_bps > 3_900_000, "{mean_bitrate_bps}");
        assert_eq!((switches, stalls, stalled_ns), (2, 0, 0));
        // The first chunk has the lowest bitrate: 4 Mbit at 40 Mbit/s.
        assert_eq!(startup_ns, Some(SECOND / 10));
    }

    #[test]
    fn the_mean_bitrate_follows_the_link() {
        let ApplicationResults::Playback {
            mean_bitrate_bps,
            stalls,
            ..
        } = play(adaptive(), at(3_000_000), 40_000)
        else {
            unreachable!("a player has results of playback")
        };
        // In the long run the buffer neither grows nor shrinks, so the bitrate is that of the link.
        assert!(
            mean_bitrate_bps.abs_diff(3_000_000) < 60_000,
            "{mean_bitrate_bps}"
        );
        assert_eq!(stalls, 0);
    }

    #[test]
    fn a_link_below_the_lowest_bitrate_stalls_for_the_difference() {
        let ApplicationResults::Playback {
            stalls,
            stalled_ns,
            chunks,
            ..
        } = play(adaptive(), at(500_000), 8000)
        else {
            unreachable!("a player has results of playback")
        };
        // A chunk of 4 s takes 8 s.
        assert_eq!(chunks, 999);
        assert_eq!(stalls, 999);
        assert!(
            stalled_ns.abs_diff(999 * 4 * SECOND) <= 4 * SECOND,
            "{stalled_ns}"
        );
    }

    #[test]
    fn the_end_of_the_video_is_no_stall() {
        let mut short = adaptive();
        short.chunks = Some(3);
        let ApplicationResults::Playback {
            stalls,
            chunks,
            stalled_ns,
            ..
        } = play(short, at(8_000_000), 1000)
        else {
            unreachable!("a player has results of playback")
        };
        assert_eq!((stalls, chunks, stalled_ns), (0, 3, 0));
    }
}
