//! TCP connections that fill a direction, and what others find meanwhile.

use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::tune::error::TuneError;
use crate::tune::flood::{CHUNK, flood, is_timeout};
use crate::tune::measured::Direction;
use crate::tune::record::{Record, Segment, Side};
use crate::tune::session::Session;
use crate::tune::wire::{ASKED, BIN, Bin, What};

/// The pause between two questions. Each takes a few packets, which must not be a part of the load.
const PAUSE: Duration = Duration::from_millis(250);

/// How often a waiting thread looks whether it is to end.
const TICK: Duration = Duration::from_millis(50);

/// A direction under load.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// When it began, since the beginning of the measurement.
    pub(crate) from: Duration,
    /// Payload that was delivered, in bins from the first one on.
    pub(crate) bytes: Vec<u64>,
    /// Round trips of the loading connections, as the sender's kernel smooths them, ms.
    pub(crate) own: Vec<f64>,
    /// What new connections took beside the load, ms: until they were open, and until a question was
    /// answered.
    pub(crate) opened: Vec<f64>,
    pub(crate) answered: Vec<f64>,
    /// A full segment, if this machine has counted it.
    pub(crate) segment: Option<Segment>,
    /// The congestion control of a foreign server's connections, as it says.
    pub(crate) congestion: Option<String>,
}

/// Loads a direction with so many connections, for so long, if it is not interrupted.
pub(crate) fn load(
    session: &Session,
    way: Direction,
    connections: u32,
    length: Duration,
    is_interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Loaded, TuneError> {
    let before = session.record()?.len();
    let open = match way {
        Direction::Up => What::Up,
        Direction::Down => What::Down(length.as_millis() as u32),
    };
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = session.connect(open);
        streams.push(stream.map_err(TuneError::system("opening a connection for load"))?);
    }
    let (from, began, record) = (session.place.now(), Instant::now(), Record::begin());
    let is_over = AtomicBool::new(false);
    let asked = thread::scope(|scope| {
        let asked = scope.spawn(|| ask(session, &is_over));
        let (record, goes_on) = (&record, move || began.elapsed() < length && !is_interrupted());
        let loading: Vec<_> = streams
            .into_iter()
            .map(|stream| {
                scope.spawn(move || match way {
                    Direction::Up => send(&stream, record, goes_on),
                    Direction::Down => receive(&stream, goes_on),
                })
            })
            .collect();
        loading.into_iter().for_each(joined);
        is_over.store(true, Ordering::Relaxed);
        joined(asked)
    });
    if is_interrupted() {
        return Err(TuneError::Interrupted);
    }
    // The one who sends has the record.
    let bins = match way {
        Direction::Up => record.bins(),
        Direction::Down => session.record()?.into_iter().skip(before).collect(),
    };
    let (opened, answered) = asked.into_iter().unzip();
    Ok(Loaded {
        from,
        bytes: delivered(&bins, length),
        own: bins.iter().filter_map(round_trip).collect(),
        opened,
        answered,
        // The server counts downwards, and the longest packet that passes was found.
        segment: None,
        congestion: None,
    })
}

/// Returns what was delivered in each bin, from the first one with anything on, for so long.
pub(super) fn delivered(bins: &[Bin], length: Duration) -> Vec<u64> {
    let most = (length.as_nanos() / BIN.as_nanos()) as usize;
    let bytes = bins.iter().map(|bin| bin.bytes);
    bytes.skip_while(|&bytes| bytes == 0).take(most).collect()
}

/// Waits for a thread. Its panic is ours.
pub(super) fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the mean round trip of a bin, ms.
fn round_trip(bin: &Bin) -> Option<f64> {
    (bin.round_trips > 0).then(|| bin.round_trips_us as f64 / f64::from(bin.round_trips) / 1e3)
}

/// Sends as long as it goes on, and records what is delivered.
pub(super) fn send(stream: &TcpStream, record: &Record, goes_on: impl Fn() -> bool) {
    let mut watched = record.watch(stream, Side::Sender);
    // A connection that breaks is one less. If all do, nothing is delivered.
    let _ = flood(stream, |stream, _| {
        watched.look(stream);
        goes_on()
    });
}

/// Receives as long as it goes on.
pub(super) fn receive(mut stream: &TcpStream, mut goes_on: impl FnMut() -> bool) {
    let mut bytes = vec![0; CHUNK];
    if stream.set_read_timeout(Some(TICK)).is_err() {
        return;
    }
    while goes_on() {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            Err(_) => return,
        }
    }
}

/// Opens connections one after the other and asks a question by each. Returns what both took, ms.
fn ask(session: &Session, is_over: &AtomicBool) -> Vec<(f64, f64)> {
    let mut asked = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = || {
            let mut stream = session.connect(What::Ask)?;
            let opened = began.elapsed();
            let mut answer = [0; ASKED.len()];
            stream.read_exact(&mut answer)?;
            std::io::Result::Ok((answer == ASKED, opened))
        };
        // A connection that fails has no time. Its loss shows in the probes.
        if let Ok((true, opened)) = answer() {
            let answered = began.elapsed() - opened;
            asked.push((opened.as_secs_f64() * 1e3, answered.as_secs_f64() * 1e3));
        }
        let pause = Instant::now();
        while pause.elapsed() < PAUSE && !is_over.load(Ordering::Relaxed) {
            thread::sleep(TICK / 5);
        }
    }
    asked
}
