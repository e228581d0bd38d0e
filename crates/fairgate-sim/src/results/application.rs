//! What applications measure themselves, beyond packets and bytes.

use serde::{Deserialize, Serialize};

use crate::results::Durations;

/// What an application measured in the measurement window. A value counts if the event that completes it is
/// in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApplicationResults {
    /// The receiver of a media stream.
    Media {
        /// The mean of RFC 3550's estimate of the interarrival jitter, over the packets received.
        interarrival_jitter_ns: u64,
        /// The maximum of the estimate.
        interarrival_jitter_max_ns: u64,
        /// RFC 3393's delay variation: the absolute difference between the delays of two successive packets,
        /// if none of the two is lost.
        delay_variation: Durations,
        /// The number of gaps: runs of packets that were missing when a later one arrived.
        gaps: u64,
        /// The packets missing in the longest gap.
        longest_gap: u64,
        /// Packets that arrived after a later one.
        out_of_order: u64,
    },
    /// Echo requests.
    Ping {
        /// Requests sent.
        requests: u64,
        /// Answers to them that arrived until the end of the run.
        answers: u64,
        /// The time from a request to its answer.
        round_trip: Durations,
    },
    /// Requests and responses on one connection.
    Exchanges {
        /// The number of exchanges completed.
        completed: u64,
        /// The time from the request to the last byte of the response.
        response_time: Durations,
    },
    /// Web pages.
    Pages {
        /// The number of pages loaded.
        loaded: u64,
        /// The time from the first request of a page to the last byte of its last object.
        load_time: Durations,
        /// The time from the request of an object to its last byte.
        object_time: Durations,
    },
    /// Adaptive video.
    Playback {
        /// The number of chunks that arrived.
        chunks: u64,
        /// The mean bitrate of these chunks.
        mean_bitrate_bps: u64,
        /// How often the bitrate of a chunk differed from that of the chunk before.
        switches: u64,
        /// How often playback stopped because the buffer was empty.
        stalls: u64,
        /// How long it stood still, without the time before the first frame.
        stalled_ns: u64,
        /// The time from the start of the flow to the first frame. `None` if playback did not begin.
        startup_ns: Option<u64>,
    },
    /// A recorded conversation on one connection.
    Conversation {
        /// The turns that the recording has: data in one direction before data in the other one.
        turns: u64,
        /// The turns that were completed.
        completed_turns: u64,
        /// The time from the start of the flow to the last byte of the last turn. `None` if it was not
        /// completed until the end of the run.
        completion_ns: Option<u64>,
    },
}
