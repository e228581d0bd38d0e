//! A run without interfaces: its plane has trees that change, and forwards nothing. All else is as in any
//! other run. Tests of clients can use it, and the tests and fuzz targets of this crate do.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use fairgate_config::{Document, FileError, Problem, Registry, Spec};
use fairgate_live::status::status_of_tree;
use fairgate_live::{Changed, Kind, Offer, Plan, Plane, ReloadError};
use fairgate_run_api::{
    Answer, Ask, Audit, ChangesStatus, ClassInterval, CountStatus, Detail, DirectionStatus, FlowOrder,
    FlowsStatus, Interval, LocalRun, Losses, NodeStatus, PassedByStatus, ProcessorStatus, QUEUE, Question,
    Recorder, Refused, Sojourn, Status,
};
use http_body_util::BodyExt;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

use crate::history::{self, History, Reader};
use crate::http::api::{Routes, router};
use crate::http::guard::{Client, Rules};
use crate::http::shared::{Shared, new_instance};
use crate::http::streams::Streams;
use crate::metrics::{Node, nodes};
use crate::run::{Owner, Reserver, Run};
use crate::subscribed::{RunningList, SubscribedRun};
use crate::subscribers::{Settings, Subscribers};

/// The interfaces of a rehearsal.
pub const INTERFACES: [&str; 2] = ["left", "right"];

/// The longest packet of a rehearsal, bytes.
const LONGEST: u32 = 1518;

/// A run without interfaces. Copies are the same run.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    trees: Trees,
    run: SubscribedRun,
    audit: Audit,
    reserver: Reserver,
    /// Who changed something, and what.
    log: Arc<Mutex<Vec<String>>>,
}

/// A plane that only has trees. Copies are the same plane.
#[derive(Clone, Debug)]
struct Trees(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    plan: Arc<Plan>,
    changes: ChangesStatus,
    has_ended: bool,
}

impl Rehearsal {
    /// Returns a run with this tree in both directions, in words.
    ///
    /// # Errors
    /// Fails if they are not a tree.
    pub fn new(tree: &str) -> Result<Rehearsal, FileError> {
        let trees = Trees::new(tree)?;
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&log);
        let audit = Audit::new(move |entry| {
            let mut log = noted.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(format!("{}: {}: {}", entry.who, entry.what, entry.outcome));
        });
        let registry = Registry::builtin();
        let list = RunningList::default();
        list.note(no_subscribers()?, [0, 1]);
        list.keep();
        let run = Run::new(
            Arc::new(trees.clone()),
            &registry,
            audit.clone(),
            Owner::default(),
        );
        Ok(Rehearsal {
            trees,
            reserver: run.reserver().clone(),
            run: SubscribedRun::new(run, list, registry),
            audit,
            log,
        })
    }

    /// Ends the run: it has no status any more.
    pub fn end(&self) {
        self.trees.lock().has_ended = true;
    }

    /// Returns what ends reservations, and undoes changes that nobody confirms.
    pub fn reserver(&self) -> &Reserver {
        &self.reserver
    }

    /// Returns what notes who asked for changes.
    pub fn audit(&self) -> Audit {
        self.audit.clone()
    }

    /// Returns who asked for changes, and for which, in the order in which they asked.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the revision of the trees.
    pub fn revision(&self) -> u64 {
        self.trees.plan().revision
    }
}

impl Ask for Rehearsal {
    type Error = Refused;
    type Recording = Recorder;

    fn ask(&self, who: &str, question: Question) -> Result<Answer, Refused> {
        self.run.ask(who, question)
    }

    fn record(&self, interval: Duration) -> Result<Recorder, Refused> {
        self.run.record(interval)
    }
}

impl Trees {
    /// Returns a plane with this tree in both directions, in words.
    fn new(tree: &str) -> Result<Trees, FileError> {
        let tree = Spec::inline(tree)?;
        let [left, right] = INTERFACES;
        let file = format!(
            "[run]\nleft = \"{left}\"\nright = \"{right}\"\nleft_to_right = \"tree\"\n\
             right_to_left = \"tree\"\n[queue.tree]\ndiscipline = \"fifo\"\n"
        );
        let mut plan = Plan::read(&Document::parse("rehearsal", &file)?)?;
        plan.queues = [tree.clone(), tree];
        Ok(Trees(Arc::new(Mutex::new(State {
            plan: Arc::new(plan),
            changes: ChangesStatus::default(),
            has_ended: false,
        }))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves out the classes at the root of which nothing is wanted.
fn page_of(mut root: NodeStatus, detail: Detail) -> NodeStatus {
    root.classes.retain(|node| detail.has_class(node.class));
    root.class_states
        .retain(|state| detail.has_class(Some(state.class)));
    root
}

impl Plane for Trees {
    fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.lock().plan)
    }

    fn change(
        &self,
        _kind: Kind,
        new: &mut dyn FnMut(&Plan) -> Result<Plan, ReloadError>,
    ) -> Result<Changed, ReloadError> {
        let mut state = self.lock();
        let made = new(&state.plan);
        match made {
            Ok(_) => state.changes.applied += 1,
            Err(_) => state.changes.refused += 1,
        }
        let mut plan = made?;
        plan.revision = state.plan.revision + 1;
        let changed = Changed::of(plan.revision);
        state.plan = Arc::new(plan);
        Ok(changed)
    }

    fn warnings(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn status(&self, detail: Detail) -> Result<Status, Refused> {
        let state = self.lock();
        let direction = |side: usize| {
            let tree = &state.plan.queues[side];
            let mut read = status_of_tree(&*tree.build(1).expect("the tree was checked"));
            state.plan.class_names[side].add_to(&mut read);
            DirectionStatus {
                from: INTERFACES[side].to_owned(),
                to: INTERFACES[1 - side].to_owned(),
                sent: CountStatus { packets: 0, bytes: 0 },
                rate_bps: 0.0,
                in_line: 0,
                lost: Losses::default(),
                socket_full: 0,
                super_packets: 0,
                passed_by: 0,
                sojourn: Sojourn::default(),
                tree: page_of(read, detail),
                queue: match detail {
                    Detail::All => tree.to_toml(QUEUE),
                    Detail::Used | Detail::Counters | Detail::Classes { .. } => String::new(),
                },
            }
        };
        if state.has_ended {
            return Err(Refused::Ended);
        }
        Ok(Status {
            name: "rehearsal".to_owned(),
            pid: std::process::id(),
            uptime_s: 1.0,
            isolated: false,
            processor: ProcessorStatus::default(),
            changes: state.changes,
            revision: state.plan.revision,
            fallback: None,
            autorate: None,
            passed_by: PassedByStatus::default(),
            nat: None,
            directions: vec![direction(0), direction(1)],
        })
    }

    /// Nothing happens in its intervals. They end with the run.
    fn record(&self) -> Recorder {
        let trees = self.clone();
        let mut before = 0;
        Box::new(iter::from_fn(move || {
            let status = trees.status(Detail::Counters).ok()?;
            let rows = match before {
                0 => Vec::new(),
                _ => idle_rows(&status, before),
            };
            before += 1;
            Some(Interval {
                at_s: f64::from(before),
                missed_delays: 0,
                rows,
            })
        }))
    }

    fn flows(&self, _order: FlowOrder, _limit: usize) -> Result<FlowsStatus, Refused> {
        match self.lock().has_ended {
            true => Err(Refused::Ended),
            false => Ok(FlowsStatus::default()),
        }
    }

    fn last_packets(&self, _last: Option<Duration>, _from: Option<&str>) -> Result<Vec<u8>, Refused> {
        Err(match self.lock().has_ended {
            true => Refused::Ended,
            false => Refused::no_packets(),
        })
    }

    fn longest(&self) -> u32 {
        LONGEST
    }
}

/// Returns a row for each discipline that packets can be in. None is there.
fn idle_rows(status: &Status, at_s: u32) -> Vec<ClassInterval> {
    let rows = status.directions.iter().flat_map(|direction| {
        let row = |node: Node<'_>| ClassInterval {
            from: direction.from.clone(),
            class: node.path,
            discipline: node.status.discipline.clone(),
            host: None,
            at_s: at_s.into(),
            seconds: 1.0,
            sent: CountStatus { packets: 0, bytes: 0 },
            mean_delay_us: None,
            delay: None,
            drops: BTreeMap::new(),
            marked: 0,
            backlog: CountStatus { packets: 0, bytes: 0 },
        };
        nodes(&direction.tree).into_iter().map(row)
    });
    rows.collect()
}

/// Returns an empty list of a line of 1 Gbit/s, with a plan `home`.
fn no_subscribers() -> Result<Subscribers, FileError> {
    let file = "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n\
        [plans.home]\ndown = \"100mbit\"\nup = \"20mbit\"\n";
    let document = Document::parse("rehearsal", file)?;
    let settings = Settings::read(&document, &Registry::builtin())?;
    let settings = settings.expect("the section is there");
    Subscribers::read(settings, &[], None, &Registry::builtin())
}

/// The API of a run, asked without a network.
pub struct Stage {
    runtime: Runtime,
    reader: Mutex<Reader>,
    history: Arc<Mutex<History>>,
    router: Router,
    client: Client,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The header fields, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns the value of a header field, or nothing.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

impl Stage {
    /// Returns the API of a run, for a process of user 0.
    pub fn new(run: impl Ask<Error = Refused, Recording = Recorder> + 'static) -> Stage {
        Stage::of(run, Offer::Api)
    }

    /// Returns what an endpoint of a run offers, for a process of user 0.
    pub fn of(run: impl Ask<Error = Refused, Recording = Recorder> + 'static, offer: Offer) -> Stage {
        let rules = Rules::default();
        let run: Arc<LocalRun> = Arc::new(run);
        let shared = Shared::new(Arc::clone(&run), Audit::default(), new_instance(), 1);
        let stage = Stage {
            runtime: Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime without sockets"),
            reader: Mutex::new(Reader::new(run, Arc::clone(shared.history()))),
            history: Arc::clone(shared.history()),
            router: router(shared, rules, Routes::Offered(offer)),
            client: Client::Process {
                user: 0,
                process: 1,
                is_allowed: true,
            },
        };
        stage.read();
        stage
    }

    /// Returns the history as a file keeps it, if it has points.
    pub fn kept(&self) -> Option<Vec<u8>> {
        history::kept(&self.lock(), "")
    }

    /// Has the history begin with what a file says at the next reading.
    ///
    /// # Errors
    /// Says what is wrong with the file.
    pub fn recall(&self, file: &[u8]) -> Result<(), String> {
        let ends = INTERFACES.map(str::to_owned);
        history::recall(&mut self.lock(), file, &ends, "").map_err(|wrong| wrong.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the run for the history, as a thread of the API does each second.
    pub fn read(&self) {
        self.read_at(Instant::now());
    }

    /// Reads the run for the history, as if it were another time.
    pub fn read_at(&self, now: Instant) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        // A run that has ended has nothing to read.
        let _ = reader.read(now);
    }

    /// Sends a request. Returns nothing if the words can't be a request: no connection would deliver it.
    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Option<Reply> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::from(body.to_vec())).ok()?;
        request.extensions_mut().insert(self.client.clone());
        request.extensions_mut().insert(Streams::default());
        let mut router = self.router.clone();
        self.runtime.block_on(async {
            let response = router.call(request).await.unwrap_or_else(|never| match never {});
            let (parts, body) = response.into_parts();
            let headers = parts.headers.iter();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some(Reply {
                status: parts.status.as_u16(),
                headers: headers
                    .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
                    .collect(),
                body: body.collect().await.ok()?.to_bytes().to_vec(),
            })
        })
    }
}
