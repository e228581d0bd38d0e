//! What all requests share: the run, and bounds on what is held for clients at the same time.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairgate_run_api::{Answer, Audit, LocalRun, Question, Recorder, Refused, Unexpected, ask};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::history::History;
use crate::http::outlines::Outlines;
use crate::http::precondition::{Expected, tag, tag_of};
use crate::http::problem::{Kind, Problem};
use crate::metrics::Classes;

/// How many documents are made at the same time. Of a tree with 20,000 classes one has 20 MB.
const ANSWERS: usize = 4;

/// How many long bodies are received at the same time.
const BODIES: usize = 4;

/// How long a connection gets to write the end of an answer.
const FLUSH: Duration = Duration::from_millis(20);

/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(5);

/// How long the run may take to answer a question that needs no planning.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Who asks for what is in no audit.
pub(crate) const NOBODY: &str = "";

#[derive(Clone)]
pub(crate) struct Shared(Arc<Content>);

struct Content {
    run: Arc<LocalRun>,
    audit: Audit,
    instance: Arc<str>,
    answers: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    comparisons: Arc<Semaphore>,
    /// How many clients are told at the same time what the classes do in each interval.
    most_recordings: u32,
    recordings: Arc<Semaphore>,
    /// Whether the server ends.
    ending: watch::Sender<bool>,
    /// Which classes have names in the metrics.
    classes: Mutex<Classes>,
    history: Arc<Mutex<History>>,
    outlines: Mutex<Outlines>,
}

impl Shared {
    /// Returns what the requests to a server share. `most_recordings` clients may be told at the same time
    /// what the classes do in each interval.
    pub(crate) fn new(run: Arc<LocalRun>, audit: Audit, instance: Arc<str>, most_recordings: u32) -> Shared {
        Shared(Arc::new(Content {
            run,
            audit,
            instance,
            answers: Arc::new(Semaphore::new(ANSWERS)),
            bodies: Arc::new(Semaphore::new(BODIES)),
            comparisons: Arc::new(Semaphore::new(1)),
            most_recordings,
            recordings: Arc::new(Semaphore::new(most_recordings as usize)),
            ending: watch::Sender::default(),
            classes: Mutex::default(),
            history: Arc::default(),
            outlines: Mutex::default(),
        }))
    }

    /// Returns what tells the run from all others.
    pub(crate) fn instance(&self) -> &str {
        &self.0.instance
    }

    /// Returns what the classes did. It is locked for as long as it takes to copy what is wanted.
    pub(crate) fn history(&self) -> &Arc<Mutex<History>> {
        &self.0.history
    }

    /// Returns the outlines of the trees. They are locked while one is made, so that it is made once.
    pub(crate) fn outlines(&self) -> &Mutex<Outlines> {
        &self.0.outlines
    }

    pub(crate) fn classes(&self) -> &Mutex<Classes> {
        &self.0.classes
    }

    /// Does something on a thread that may wait.
    pub(crate) async fn wait<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let shared = self.clone();
        let done = spawn_blocking(move || work(&shared));
        done.await
            .map_err(|_| Problem::new(Kind::Internal, "the request made a thread of the API fail"))
    }

    /// Asks the run a question of `who`. Call it on a thread that may wait.
    pub(crate) fn put<A>(&self, who: &str, question: Question) -> Result<A, Problem>
    where
        A: TryFrom<Answer, Error = Unexpected>,
    {
        ask(&*self.0.run, who, question).map_err(|refused| self.problem(refused))
    }

    /// Asks the run a question of `who`.
    pub(crate) async fn ask<A>(&self, who: Arc<str>, question: Question) -> Result<A, Problem>
    where
        A: TryFrom<Answer, Error = Unexpected> + Send + 'static,
    {
        self.wait(move |shared| shared.put(&who, question)).await?
    }

    /// Asks the run for a change by `who` of the trees that the client expects.
    pub(crate) async fn change<A>(
        &self,
        who: Arc<str>,
        expected: Expected,
        question: impl FnOnce(Option<u64>) -> Question + Send + 'static,
    ) -> Result<A, Problem>
    where
        A: TryFrom<Answer, Error = Unexpected> + Send + 'static,
    {
        let change = move |shared: &Shared| {
            let if_revision = match &expected {
                Expected::Any => None,
                expected => Some(expected.revision(shared.instance(), shared.put(&who, Question::Revision)?)),
            };
            shared.put(&who, question(if_revision))
        };
        self.wait(change).await?
    }

    /// Begins to record what the classes do. Call it on a thread that may wait.
    pub(crate) fn record(&self, interval: Duration) -> Result<Recorder, Problem> {
        self.0
            .run
            .record(interval)
            .map_err(|refused| self.problem(refused))
    }

    /// Notes in the audit that somebody was refused who asked for something. Call it on a thread that may
    /// wait.
    pub(crate) fn note(&self, who: &str, what: &str, outcome: String) {
        self.0.audit.note(who, what, outcome);
    }

    /// Returns the problem of a question that the run refuses.
    fn problem(&self, refused: Refused) -> Problem {
        match refused {
            Refused::Stale { revision } => Problem::stale(revision, tag(self.instance(), revision)),
            Refused::Outdated(current) => {
                Problem::outdated(current.map(|entry| tag_of(self.instance(), &entry)))
            }
            Refused::Mistakes(mistakes) => Problem::refused(mistakes),
            Refused::Missing(mistake) => Problem::mistaken(Kind::NotFound, mistake),
            Refused::Malformed(why) => Problem::new(Kind::Malformed, why),
            Refused::Unread(mistake) => Problem::mistaken(Kind::Silent, mistake),
            Refused::Ended => Problem::new(Kind::Silent, "the run has ended"),
        }
    }

    /// Waits for the right to make a document.
    pub(crate) async fn turn_to_answer(&self) -> Result<OwnedSemaphorePermit, Problem> {
        turn(&self.0.answers, "answers are being made or read").await
    }

    /// Waits for the right to compare disciplines. One client at a time may have the processors for it.
    pub(crate) async fn turn_to_compare(&self) -> Result<OwnedSemaphorePermit, Problem> {
        turn(&self.0.comparisons, "comparisons are being made").await
    }

    /// Returns the right to be told what the classes do in each interval. It does not wait for a place: a
    /// recording may last for days.
    pub(crate) fn place_to_record(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = Arc::clone(&self.0.recordings).try_acquire_owned();
        place.map_err(|_| {
            let most = self.0.most_recordings;
            let detail = format!("{most} clients are told of each interval already; end one of them");
            Problem::new(Kind::Busy, detail)
        })
    }

    /// Returns when the server ends.
    pub(crate) async fn ending(&self) {
        // It fails only if nobody can end the server any more.
        let _ = self.0.ending.subscribe().wait_for(|is_ending| *is_ending).await;
    }

    /// Ends the answers that have no end of their own, and gives their connections time to write it.
    pub(crate) async fn end_recordings(&self) {
        self.0.ending.send_replace(true);
        // It is never closed.
        let _ = self.0.recordings.acquire_many(self.0.most_recordings).await;
        sleep(FLUSH).await;
    }

    /// Waits for the right to receive a long body.
    pub(crate) async fn turn_to_receive(&self) -> Result<OwnedSemaphorePermit, Problem> {
        turn(&self.0.bodies, "long bodies are being received").await
    }
}

/// Returns a text that differs between runs, so that no entity tag of a run is valid in the next one.
pub(crate) fn new_instance() -> Arc<str> {
    // Its keys are random.
    format!("{:016x}", RandomState::new().build_hasher().finish()).into()
}

async fn turn(places: &Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit, Problem> {
    match timeout(TURN, Arc::clone(places).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        // It is never closed.
        Ok(Err(_)) | Err(_) => Err(Problem::new(
            Kind::Busy,
            format!("as many {what} as the API allows at the same time; try again"),
        )),
    }
}
