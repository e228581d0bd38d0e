//! What the classes do, interval after interval.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fairgate_run_api::Interval;
use hyper::body::Incoming;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use super::connection::{ApiResponse, Patience, part};
use super::error::ClientError;

/// The longest line. A row of a class has 500 bytes.
const LONGEST: usize = 256 << 20;

/// The intervals of a recording, as they end. The first one has no rows: it says that the run records. They
/// end with the run.
pub struct Intervals {
    runtime: Runtime,
    body: Incoming,
    /// What has arrived and was not returned.
    arrived: Vec<u8>,
    /// How much of it has no end of a line.
    searched: usize,
    patience: Patience,
    stopped: Arc<Notify>,
}

impl Intervals {
    pub(crate) fn of(response: ApiResponse, interval: Duration) -> Intervals {
        Intervals {
            runtime: response.runtime,
            body: response.response.into_body(),
            arrived: Vec::new(),
            searched: 0,
            patience: response.patience.longer_by(interval),
            stopped: Arc::default(),
        }
    }

    /// Returns a function that ends the recording from another thread.
    pub fn stopper(&self) -> impl Fn() + Send + 'static + use<> {
        let stopped = Arc::clone(&self.stopped);
        move || stopped.notify_one()
    }
}

/// Prints the name of the type only.
impl std::fmt::Debug for Intervals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intervals").finish_non_exhaustive()
    }
}

impl Iterator for Intervals {
    type Item = Result<Interval, ClientError>;

    fn next(&mut self) -> Option<Result<Interval, ClientError>> {
        self.line().transpose()
    }
}

impl Intervals {
    /// Returns the interval in the next line.
    fn line(&mut self) -> Result<Option<Interval>, ClientError> {
        loop {
            if let Some(found) = self.arrived[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let end = self.searched + found;
                let interval = serde_json::from_slice(&self.arrived[..end])
                    .map_err(|error| ClientError::Unexpected(error.to_string()));
                self.arrived.drain(..=end);
                self.searched = 0;
                return interval.map(Some);
            }
            self.searched = self.arrived.len();
            if self.searched > LONGEST {
                let why = format!("a line has more than {LONGEST} bytes");
                return Err(ClientError::Unexpected(why));
            }
            let next = self.runtime.block_on(async {
                tokio::select! {
                    part = part(&mut self.body, self.patience) => part,
                    () = self.stopped.notified() => Ok(None),
                }
            });
            match next? {
                Some(part) => self.arrived.extend_from_slice(&part),
                None => return Ok(None),
            }
        }
    }
}

/// The error of a run that ended before it answered.
pub(crate) fn ended() -> ClientError {
    ClientError::Socket(io::ErrorKind::UnexpectedEof.into())
}
