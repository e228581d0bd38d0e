//! What the classes do, interval after interval.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use fairgate_run_api::{Interval, Mistake, Recorder, SHORTEST_INTERVAL_US};
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep_until, timeout};

use crate::http::answer::json_bytes;
use crate::http::problem::{Kind, Problem};
use crate::http::query::Parameters;
use crate::http::shared::{PATIENCE, Shared};
use crate::http::streams::{Stream, Streams};

/// The longest interval, microseconds.
const LONGEST_US: u64 = 3_600_000_000;

/// How long they are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default = "default_interval")]
    interval_us: u64,
}

/// That of `fairgate record`: ALTQ's cbqprobe had it.
fn default_interval() -> u64 {
    400_000
}

/// What the classes do in each interval from now on
///
/// The answer does not end before the run does: a JSON document in each line. The first one has no rows. It
/// says that the run records. A client that reads none of it for 5 s is disconnected.
#[utoipa::path(
    get,
    path = "/v1/intervals",
    operation_id = "intervals",
    tag = "status",
    params(("interval_us" = Option<u64>, Query, minimum = 1_000, maximum = 3_600_000_000_u64,
        description = "How long an interval is, microseconds. Default: 400,000")),
    responses(
        (status = 200, description = "A line for each interval", body = Interval,
            content_type = "application/x-ndjson"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn intervals(
    State(shared): State<Shared>,
    Extension(streams): Extension<Streams>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Response, Problem> {
    let limit = match wanted.interval_us {
        ..SHORTEST_INTERVAL_US => Some(("short", "least", SHORTEST_INTERVAL_US)),
        SHORTEST_INTERVAL_US..=LONGEST_US => None,
        _ => Some(("long", "most", LONGEST_US)),
    };
    if let Some((wrong, right, limit)) = limit {
        let message = format!("an interval of {} us is too {wrong}", wanted.interval_us);
        let help = format!("record intervals of at {right} {limit} us");
        return Err(Problem::mistaken(Kind::Malformed, Mistake::new(message, help)));
    }
    let place = shared.place_to_record()?;
    let interval = Duration::from_micros(wanted.interval_us);
    let recorder = shared.wait(move |shared| shared.record(interval)).await??;
    let (lines, body) = Lines::new();
    let recording = Recording {
        shared: shared.clone(),
        recorder,
        lines,
        is_late: Arc::clone(&body.is_late),
        _stream: streams.begin(),
        _place: place,
    };
    tokio::spawn(async move {
        // What ends first drops the other end of the lines, so that the answer ends.
        tokio::select! {
            () = recording.go_on(interval) => {}
            () = shared.ending() => {}
        }
    });
    let mut response = Response::new(Body::new(body));
    let media_type = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    Ok(response)
}

/// Makes the lines.
struct Recording {
    shared: Shared,
    recorder: Recorder,
    lines: Sender<Bytes>,
    is_late: Arc<AtomicBool>,
    /// Both end with the recording, also if its last lines wait for a client that does not read.
    _stream: Stream,
    _place: OwnedSemaphorePermit,
}

impl Recording {
    /// Goes on until the run ends, or the client.
    async fn go_on(mut self, interval: Duration) {
        let mut next = Instant::now();
        loop {
            let mut recorder = self.recorder;
            let asked = self.shared.wait(move |_| {
                let line = recorder.next().map(|interval| line(&interval));
                (recorder, line)
            });
            let Ok((recorder, Some(Ok(line)))) = asked.await else {
                return;
            };
            self.recorder = recorder;
            match timeout(PATIENCE, self.lines.send(line)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    self.is_late.store(true, Ordering::Release);
                    return;
                }
            }
            // If a reading takes longer than an interval, the next one begins at once.
            next = (next + interval).max(Instant::now());
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.lines.closed() => return,
            }
        }
    }
}

fn line(interval: &Interval) -> Result<Bytes, Problem> {
    let mut bytes = json_bytes(interval)?;
    bytes.push(b'\n');
    Ok(bytes.into())
}

/// The lines on their way to the client.
struct Lines {
    made: Receiver<Bytes>,
    /// Whether the client has read too slowly. Then the answer is cut, so that it can't be taken for a whole
    /// one.
    is_late: Arc<AtomicBool>,
}

impl Lines {
    fn new() -> (Sender<Bytes>, Lines) {
        let (sender, made) = mpsc::channel(1);
        let lines = Lines {
            made,
            is_late: Arc::default(),
        };
        (sender, lines)
    }
}

impl hyper::body::Body for Lines {
    type Data = Bytes;
    type Error = TooSlow;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TooSlow>>> {
        let made = ready!(self.made.poll_recv(context));
        Poll::Ready(match made {
            Some(line) => Some(Ok(Frame::data(line))),
            None if self.is_late.load(Ordering::Acquire) => Some(Err(TooSlow)),
            None => None,
        })
    }
}

/// The client has read too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the client reads too slowly")]
struct TooSlow;
