//! A run without interfaces: it has trees that change and reservations, and forwards nothing. Tests of
//! clients can use it, and the tests and fuzz targets of this crate do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use fairgate_config::{Document, FileError, Registry, Spec};
use fairgate_live::Offer;
use fairgate_live::status::protocol::{
    Answer, ClassInterval, Interval, Mistake, ReservationStatus, ReserveOrder, Reserved, TermsStatus,
    TreeStatus, TreesStatus,
};
use fairgate_live::status::{
    ChangesStatus, CountStatus, Detail, DirectionStatus, FlowOrder, FlowsStatus, Losses, NoPackets,
    NodeStatus, PassedByStatus, ProcessorStatus, QUEUE, RunningTree, RunningTrees, Sojourn, Status,
    changed_sides, mistakes_of,
};
use fairgate_subscribers::{Difference, Entry, Settings, Subscribers as List};
use http_body_util::BodyExt;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

use crate::api::router;
use crate::guard::{Client, Rules};
use crate::history::Reader;
use crate::metrics::{Node, nodes};
use crate::run::{
    Recorder, Run, SubscriberChange, SubscriberChanged, SubscriberList, Subscribers, WhatIf, WhatIfRefused,
};
use crate::shared::Shared;
use crate::streams::Streams;

/// The interfaces of a rehearsal.
pub const INTERFACES: [&str; 2] = ["left", "right"];

/// A run without interfaces. Copies are the same run.
#[derive(Clone, Debug)]
pub struct Rehearsal(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    trees: [Spec; 2],
    revision: u64,
    changes: ChangesStatus,
    reservations: Vec<TermsStatus>,
    subscribers: List,
    difference: Option<Difference>,
    has_ended: bool,
    /// Who changed something, and what.
    log: Vec<String>,
}

impl Rehearsal {
    /// Returns a run with this tree in both directions, in words.
    ///
    /// # Errors
    /// Fails if they are not a tree.
    pub fn new(tree: &str) -> Result<Rehearsal, FileError> {
        let tree = Spec::inline(tree)?;
        Ok(Rehearsal(Arc::new(Mutex::new(State {
            trees: [tree.clone(), tree],
            revision: 0,
            changes: ChangesStatus::default(),
            reservations: Vec::new(),
            subscribers: no_subscribers()?,
            difference: None,
            has_ended: false,
            log: Vec::new(),
        }))))
    }

    /// Ends the run: it has no status any more.
    pub fn end(&self) {
        self.lock().has_ended = true;
    }

    /// Returns who asked for changes, and for which, in the order in which they asked.
    pub fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    /// Returns the revision of the trees.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn direction(&self, side: usize, detail: Detail) -> DirectionStatus {
        let tree = &self.trees[side];
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
            tree: NodeStatus::of(&*tree.build(1).expect("the tree was checked")),
            queue: match detail {
                Detail::All => tree.to_toml(QUEUE),
                Detail::Used | Detail::Counters => String::new(),
            },
        }
    }

    /// Returns the directions that are meant.
    fn sides(&self, from: Option<&str>) -> Result<std::ops::Range<usize>, Vec<Mistake>> {
        let are_equal = self.trees[0] == self.trees[1];
        changed_sides(INTERFACES, from, [true; 2], are_equal).map_err(|mistake| vec![mistake])
    }

    fn change(&mut self, from: Option<&str>, lines: &[String]) -> Result<(), Vec<Mistake>> {
        let mut trees = self.trees.clone();
        for side in self.sides(from)? {
            let edited = trees[side].edited(&lines.join("\n"), &Registry::builtin());
            trees[side] = edited.map_err(|error| mistakes_of(&error))?;
        }
        self.trees = trees;
        Ok(())
    }

    fn reserve(&mut self, order: ReserveOrder) -> Result<Vec<ReservationStatus>, Vec<Mistake>> {
        let place = |state: &State, name: &str| {
            let place = state.reservations.iter().position(|terms| terms.name == name);
            place.ok_or_else(|| {
                vec![Mistake {
                    place: None,
                    message: format!("there is no reservation `{name}`"),
                    help: "add it first".to_owned(),
                }]
            })
        };
        let shown = match order {
            ReserveOrder::List => self.reservations.clone(),
            ReserveOrder::Add(terms) => {
                if let Ok(known) = place(self, &terms.name) {
                    return Err(vec![Mistake {
                        place: None,
                        message: format!("`{}` exists", self.reservations[known].name),
                        help: "change it".to_owned(),
                    }]);
                }
                self.reservations.push(terms.clone());
                vec![terms]
            }
            ReserveOrder::Change(terms) => {
                let place = place(self, &terms.name)?;
                self.reservations[place] = terms.clone();
                vec![terms]
            }
            ReserveOrder::Withdraw { name } => {
                let place = place(self, &name)?;
                self.reservations.remove(place);
                Vec::new()
            }
            ReserveOrder::Refresh { name } => vec![self.reservations[place(self, &name)?].clone()],
        };
        let status = |terms: TermsStatus| ReservationStatus {
            from: INTERFACES[0].to_owned(),
            class: "65535".to_owned(),
            reserved_bps: terms.rate_bps,
            promised_us: 0.0,
            error_terms: None,
            no_error_terms: Some("nothing is promised in a rehearsal".to_owned()),
            expires_s: terms.lifetime_ms as f64 / 1e3,
            terms,
        };
        Ok(shown.into_iter().map(status).collect())
    }
}

impl Run for Rehearsal {
    fn status(&self, detail: Detail) -> Option<Status> {
        let state = self.lock();
        (!state.has_ended).then(|| Status {
            name: "rehearsal".to_owned(),
            pid: std::process::id(),
            uptime_s: 1.0,
            isolated: false,
            processor: ProcessorStatus::default(),
            changes: state.changes,
            revision: state.revision,
            fallback: None,
            autorate: None,
            passed_by: PassedByStatus::default(),
            nat: None,
            directions: vec![state.direction(0, detail), state.direction(1, detail)],
        })
    }

    fn trees(&self) -> TreesStatus {
        let state = self.lock();
        let tree = |side: usize| TreeStatus {
            from: INTERFACES[side].to_owned(),
            to: INTERFACES[1 - side].to_owned(),
            name: None,
            queue: state.trees[side].to_toml(QUEUE),
            workers: None,
        };
        TreesStatus {
            revision: state.revision,
            directions: vec![tree(0), tree(1)],
        }
    }

    fn look_at_trees(&self, look: &mut dyn FnMut(&RunningTrees<'_>)) {
        let state = self.lock();
        let direction = |side: usize| RunningTree {
            from: INTERFACES[side],
            to: INTERFACES[1 - side],
            tree: &state.trees[side],
        };
        look(&RunningTrees {
            revision: state.revision,
            directions: [direction(0), direction(1)],
        });
    }

    fn note(&self, who: &str, what: &str, outcome: &str) {
        self.lock().log.push(format!("{who}: {what}: {outcome}"));
    }

    fn change(&self, who: &str, from: Option<&str>, lines: &[String], if_revision: Option<u64>) -> Answer {
        let mut state = self.lock();
        state.log.push(format!("{who}: {}", lines.join("; ")));
        let revision = state.revision;
        if if_revision.is_some_and(|expected| expected != revision) {
            state.changes.refused += 1;
            return Answer::Stale { revision };
        }
        match state.change(from, lines) {
            Ok(()) => {
                state.revision += 1;
                state.changes.applied += 1;
                Answer::Changed {
                    pause_us: 0.0,
                    dropped: 0,
                    revision: state.revision,
                }
            }
            Err(errors) => {
                state.changes.refused += 1;
                Answer::Refused { errors }
            }
        }
    }

    fn reserve(
        &self,
        who: &str,
        _from: Option<&str>,
        order: ReserveOrder,
        if_revision: Option<u64>,
    ) -> Reserved {
        let mut state = self.lock();
        let revision = state.revision;
        if if_revision.is_some_and(|expected| expected != revision) {
            return Reserved::Stale { revision };
        }
        let changes_trees = !matches!(order, ReserveOrder::List | ReserveOrder::Refresh { .. });
        if !matches!(order, ReserveOrder::List) {
            state.log.push(format!("{who}: {order:?}"));
        }
        match state.reserve(order) {
            Ok(reservations) => {
                state.revision += u64::from(changes_trees);
                Reserved::Reservations {
                    reservations,
                    revision: state.revision,
                }
            }
            Err(errors) => Reserved::Refused { errors },
        }
    }

    /// Nothing happens in its intervals. They end with the run.
    fn record(&self) -> Recorder {
        let run = self.clone();
        let mut before = 0;
        Box::new(move || {
            let status = Run::status(&run, Detail::Counters)?;
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
        })
    }

    fn flows(&self, _order: FlowOrder, _limit: usize) -> Option<FlowsStatus> {
        (!self.lock().has_ended).then(FlowsStatus::default)
    }

    fn keeps_packets(&self) -> bool {
        false
    }

    fn last_packets(&self, _last: Option<Duration>, _from: Option<&str>) -> Result<Vec<u8>, NoPackets> {
        Err(match self.lock().has_ended {
            true => NoPackets::Ended,
            false => NoPackets::NotKept,
        })
    }

    fn what_if(&self, _question: &WhatIf) -> Result<String, WhatIfRefused> {
        Run::last_packets(self, None, None)
            .map(|_| String::new())
            .map_err(WhatIfRefused::NoPackets)
    }

    fn subscribers(&self) -> Option<&dyn Subscribers> {
        Some(self)
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
fn no_subscribers() -> Result<List, FileError> {
    let file = "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n\
        [plans.home]\ndown = \"100mbit\"\nup = \"20mbit\"\n";
    let document = Document::parse("rehearsal", file)?;
    let settings = Settings::read(&document, &Registry::builtin())?;
    List::read(
        settings.expect("the section is there"),
        &[],
        None,
        &Registry::builtin(),
    )
}

impl State {
    /// Takes another list, or notes its mistakes.
    fn take(&mut self, list: Result<List, FileError>) -> Answer {
        match list {
            Ok(list) => {
                self.subscribers = list;
                self.revision += 1;
                self.changes.applied += 1;
                Answer::Changed {
                    pause_us: 0.0,
                    dropped: 0,
                    revision: self.revision,
                }
            }
            Err(error) => {
                self.changes.refused += 1;
                Answer::Refused {
                    errors: mistakes_of(&error),
                }
            }
        }
    }
}

impl Subscribers for Rehearsal {
    fn all(&self) -> SubscriberList {
        let state = self.lock();
        let list = &state.subscribers;
        let ids = list.list().subscribers.iter().map(|one| one.id.as_str());
        SubscriberList {
            revision: state.revision,
            entries: list.entries(),
            classes: ids.filter_map(|id| list.numbers().of_subscriber(id)).collect(),
            difference: state.difference,
            is_changeable: list.is_changeable(),
        }
    }

    fn one(&self, id: &str) -> Option<(Entry, u16)> {
        let list = &self.lock().subscribers;
        let class = list.numbers().of_subscriber(id)?;
        Some((Entry::of(list.list().find(id)?), class))
    }

    fn change(
        &self,
        who: &str,
        method: &str,
        id: &str,
        change: &mut SubscriberChange<'_>,
    ) -> SubscriberChanged {
        let mut state = self.lock();
        let known = state.subscribers.list().find(id).map(Entry::of);
        let Some(made) = change(known.as_ref()) else {
            return SubscriberChanged::Stopped;
        };
        state.log.push(format!("{who}: {method} subscriber {id}"));
        let registry = Registry::builtin();
        let list = match made {
            Some(entry) => state.subscribers.with(entry, &registry),
            None => match state.subscribers.without(id, &registry) {
                Ok(Some(list)) => Ok(list),
                Ok(None) => Ok(state.subscribers.clone()),
                Err(error) => Err(error),
            },
        };
        SubscriberChanged::Asked(state.take(list))
    }

    fn replace(
        &self,
        who: &str,
        entries: Vec<Entry>,
        if_revision: Option<u64>,
    ) -> Option<(Answer, Difference)> {
        let mut state = self.lock();
        state.log.push(format!("{who}: subscribers {}", entries.len()));
        let revision = state.revision;
        if if_revision.is_some_and(|expected| expected != revision) {
            state.changes.refused += 1;
            return Some((Answer::Stale { revision }, Difference::default()));
        }
        let list = state.subscribers.with_all(entries, &Registry::builtin());
        let difference = list.as_ref().map(|list| list.since(&state.subscribers));
        let difference = difference.unwrap_or_default();
        let answer = state.take(list);
        if matches!(answer, Answer::Changed { .. }) {
            state.difference = Some(difference);
        }
        Some((answer, difference))
    }

    fn revision(&self) -> u64 {
        self.lock().revision
    }
}

/// The API of a run, asked without a network.
pub struct Stage {
    runtime: Runtime,
    reader: Mutex<Reader>,
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
    pub fn new(run: impl Run) -> Stage {
        Stage::of(run, Offer::Api)
    }

    /// Returns what an endpoint of a run offers, for a process of user 0.
    pub fn of(run: impl Run, offer: Offer) -> Stage {
        let rules = Rules::default();
        let run: Arc<dyn Run> = Arc::new(run);
        let shared = Shared::new(Arc::clone(&run));
        let stage = Stage {
            runtime: Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime without sockets"),
            reader: Mutex::new(Reader::new(run, Arc::clone(shared.history()))),
            router: router(shared, rules, offer),
            client: Client::Process {
                user: 0,
                process: 1,
                is_allowed: true,
            },
        };
        stage.read();
        stage
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
