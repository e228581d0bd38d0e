//! Asks the run, on threads of their own.
//!
//! One thread is told at each interval what the classes did. Another one asks for the status, for a tenth of
//! its time at most, and for the descriptions of the trees if they have changed. A third one asks for the
//! flows, while they are shown. All go on trying if the run ends.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_config::Registry;
use fairgate_run::client::{ClientError, Remote};
use fairgate_run_api::{Ask, FlowOrder};

use crate::top::Settings;
use crate::top::error::TopError;
use crate::top::model::{Event, Model};
use crate::top::outline::Trees;

/// The time between two attempts to find a run again.
const RETRY: Duration = Duration::from_secs(1);

/// The status is asked for at most one part in so many of the time.
const PART: u32 = 10;

/// The most flows that are asked for.
const MOST_FLOWS: u32 = 1_000;

/// What a thread has to say.
#[derive(Debug)]
pub(crate) enum News {
    /// Something for the model.
    Event(Box<Event>),
    /// Figures do not add up.
    Failed(TopError),
}

impl From<Event> for News {
    fn from(event: Event) -> News {
        News::Event(Box::new(event))
    }
}

/// Returns the screen after one interval.
pub(crate) fn once(settings: &Settings) -> Result<Model, TopError> {
    let mut model = Model::new(settings.start.clone());
    let status = settings.run.status(true)?;
    status.check()?;
    model.update(Event::Status(Box::new(status)));
    let trees = Trees::read(&settings.run.trees()?, &settings.registry);
    model.update(Event::Trees(trees));
    if let Some(interval) = settings.run.record(settings.interval)?.next() {
        model.update(Event::Interval(interval?));
    }
    Ok(model)
}

/// Tells what the classes did at each interval. Returns when nobody listens.
pub(crate) fn follow(run: &Remote, interval: Duration, news: &Sender<News>) {
    loop {
        let why = match follow_run(run, interval, news) {
            Ok(()) => "the run has ended".to_owned(),
            Err(error) => error.to_string(),
        };
        if news.send(Event::Lost(why).into()).is_err() {
            return;
        }
        thread::sleep(RETRY);
    }
}

fn follow_run(run: &Remote, interval: Duration, news: &Sender<News>) -> Result<(), ClientError> {
    for interval in run.record(interval)? {
        if news.send(Event::Interval(interval?).into()).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Tells the status again and again, and the trees when they have changed: at once if `wake` says so. Returns
/// when nobody listens.
pub(crate) fn inquire(
    run: &Remote,
    interval: Duration,
    registry: &Registry,
    news: &Sender<News>,
    wake: &Receiver<()>,
) {
    let mut known = None;
    loop {
        let begin = Instant::now();
        let told = tell(run, registry, &mut known, news);
        if told.is_err() {
            return;
        }
        let pause = (begin.elapsed() * (PART - 1)).max(interval);
        match wake.recv_timeout(pause) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Tells the flows at each interval, while `wanted` has an order. Returns when nobody listens.
pub(crate) fn observe(
    run: &Remote,
    interval: Duration,
    wanted: &Receiver<Option<FlowOrder>>,
    news: &Sender<News>,
) {
    let mut order = None;
    loop {
        let next = match order {
            None => wanted.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => wanted.recv_timeout(interval),
        };
        match next {
            Ok(next) => order = wanted.try_iter().last().unwrap_or(next),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some(order) = order
            && let Ok(flows) = run.flows(order, MOST_FLOWS)
            && news.send(Event::Flows(Box::new(flows)).into()).is_err()
        {
            return;
        }
    }
}

/// Tells it once. `known` is the process and the revision whose trees were told. An error means that nobody
/// listens.
fn tell(
    run: &Remote,
    registry: &Registry,
    known: &mut Option<(u32, u64)>,
    news: &Sender<News>,
) -> Result<(), std::sync::mpsc::SendError<News>> {
    // The other thread tells that a run does not answer.
    let Ok(status) = run.status(true) else {
        return Ok(());
    };
    if let Err(imbalance) = status.check() {
        return news.send(News::Failed(imbalance.into()));
    }
    let now = (status.pid, status.revision);
    news.send(Event::Status(Box::new(status)).into())?;
    if *known != Some(now)
        && let Ok(trees) = run.trees()
    {
        *known = Some((now.0, trees.revision));
        news.send(Event::Trees(Trees::read(&trees, registry)).into())?;
    }
    Ok(())
}
