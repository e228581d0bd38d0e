//! Requests and responses: of random sizes, or as a browser wants them.

use std::ops::Range;

use fairgate::Time;

use super::step::Step;
use crate::monitor::Recorder;
use crate::random::Stream;
use crate::results::{ApplicationResults, Durations};
use crate::scenario::Requests;
use crate::traffic::End;

/// A client that sends a request, waits for the response, thinks, and sends the next request.
#[derive(Clone, Debug)]
pub(super) struct Requester {
    requests: Requests,
    stream: Stream,
    window: Range<Time>,
    /// The number of requests that were not sent yet.
    left: u64,
    /// Whether the next step is a response.
    responds: bool,
    /// Whether a request was sent before.
    has_asked: bool,
    asked_at: Time,
    response_times: Recorder,
}

impl Requester {
    pub(super) fn new(requests: &Requests, stream: Stream, window: Range<Time>) -> Requester {
        Requester {
            left: requests.count.unwrap_or(u64::MAX),
            requests: requests.clone(),
            stream,
            window,
            responds: false,
            has_asked: false,
            asked_at: Time::ZERO,
            response_times: Recorder::new(),
        }
    }

    pub(super) fn next(&mut self) -> Option<Step> {
        let stream = &mut self.stream;
        if self.responds {
            return Some(Step {
                speaker: End::Sender,
                wait: self.requests.service.sample(stream),
                bytes: self.requests.response.sample(stream).max(1),
            });
        }
        self.left = self.left.checked_sub(1)?;
        // The first request is sent at once.
        let wait = match std::mem::replace(&mut self.has_asked, true) {
            true => self.requests.think.sample(stream),
            false => 0,
        };
        Some(Step {
            speaker: End::Receiver,
            wait,
            bytes: self.requests.request.sample(stream).max(1),
        })
    }

    pub(super) fn begun(&mut self, now: Time) {
        if !self.responds {
            self.asked_at = now;
        }
    }

    pub(super) fn completed(&mut self, now: Time, durations: &mut Recorder) {
        if self.responds {
            let duration = now - self.asked_at;
            durations.record(duration);
            if self.window.contains(&now) {
                self.response_times.record(duration);
            }
        }
        self.responds = !self.responds;
    }

    pub(super) fn results(&self) -> ApplicationResults {
        ApplicationResults::Exchanges {
            completed: self.response_times.count(),
            response_time: Durations::of(&self.response_times),
        }
    }
}

/// The fetch of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetch {
    request: Option<u64>,
    /// The size of the response, and the wait before it.
    response: Option<(u64, u64)>,
    /// Whether the step under way is the response.
    responds: bool,
    began: Time,
    duration: Option<u64>,
}

impl Fetch {
    pub(super) fn begin(&mut self, request: u64, response: u64, service: u64, now: Time) {
        assert!(
            self.request.is_none() && self.response.is_none(),
            "a fetch begins after the one before"
        );
        *self = Fetch {
            request: Some(request),
            response: Some((response, service)),
            began: now,
            ..Fetch::default()
        };
    }

    pub(super) fn next(&mut self) -> Option<Step> {
        if let Some(bytes) = self.request.take() {
            self.responds = false;
            return Some(Step {
                speaker: End::Receiver,
                wait: 0,
                bytes,
            });
        }
        let (bytes, wait) = self.response.take()?;
        self.responds = true;
        Some(Step {
            speaker: End::Sender,
            wait,
            bytes,
        })
    }

    pub(super) fn completed(&mut self, now: Time, durations: &mut Recorder) {
        if self.responds {
            self.duration = Some(now - self.began);
            durations.record(now - self.began);
        }
    }

    pub(super) fn take_duration(&mut self) -> Option<u64> {
        self.duration.take()
    }
}
