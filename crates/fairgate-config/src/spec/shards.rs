//! Trees that several workers run side by side: which trees can be, and what their workers share.

use std::sync::Arc;

use fairgate::change::{Change, ChangeError};
use fairgate::flow::FlowBy;
use fairgate::registry::BuildError;
use fairgate::registry::tree::seed_of;
use fairgate::rounds::cake::{self, Isolation, Tins};
use fairgate::sharding::{Config, Division, Key, Lengths, Limit, Sharded};
use fairgate::tbf;
use fairgate::{ConfigError, Discipline, Rate};

mod classes;

use super::Spec;
use crate::error::Problem;

/// The burst of a shaper without a bucket: what the line sends in this time, ns.
const BURST_NANOS: u64 = 1_000_000;
/// Its least burst: ten full frames.
const LEAST_BURST: u64 = 15_140;

/// The disciplines that give each flow with packets the same rate.
const FAIR_TO_FLOWS: [&str; 14] = [
    "drr",
    "fq",
    "fq_codel",
    "fq_nagle",
    "fq_pie",
    "frr",
    "gfq",
    "qfq",
    "qfq_plus",
    "s_kps",
    "scfq",
    "sfq",
    "wf2q_plus",
    "wfq",
];

/// What workers divide among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardBy {
    /// Flows.
    #[default]
    Flow,
    /// The hosts that send.
    Source,
    /// The hosts that receive.
    Destination,
    /// The classes of a tree: subscribers.
    Class,
}

impl ShardBy {
    /// Returns the fields whose hash decides to which worker a packet belongs. `None` if its class decides.
    pub const fn hashed(self) -> Option<FlowBy> {
        match self {
            ShardBy::Flow => Some(FlowBy::FiveTuple),
            ShardBy::Source => Some(FlowBy::Source),
            ShardBy::Destination => Some(FlowBy::Destination),
            ShardBy::Class => None,
        }
    }

    /// Returns cake's isolations that are fair to it.
    fn isolations(self) -> &'static [Isolation] {
        match self {
            ShardBy::Flow => &[Isolation::Flows],
            ShardBy::Source => &[Isolation::SourceHosts, Isolation::DualSource],
            ShardBy::Destination => &[Isolation::DestinationHosts, Isolation::DualDestination],
            ShardBy::Class => &[],
        }
    }
}

crate::registry::words!(ShardBy {
    "flow" => ShardBy::Flow,
    "source" => ShardBy::Source,
    "destination" => ShardBy::Destination,
    "class" => ShardBy::Class,
});

/// Several workers for one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// How many, from 2 on.
    pub count: u16,
    /// What they divide among them.
    pub by: ShardBy,
}

impl Workers {
    /// The largest number of workers.
    pub const MOST: u16 = 64;
}

/// A tree for several workers. Each has a tree of its own, and its part of the rate.
#[derive(Clone, Debug)]
pub struct ShardedSpec {
    tree: Arc<Spec>,
    workers: Workers,
    config: Config,
    /// The trees of the workers, if they have parts of the tree. Otherwise each has the whole tree.
    parts: Vec<Spec>,
}

impl Spec {
    /// Returns the tree for several workers.
    ///
    /// ```
    /// use fairgate_config::{ShardBy, Spec, Workers};
    ///
    /// let workers = Workers { count: 4, by: ShardBy::Flow };
    /// assert!(Spec::inline("tbf rate=100mbit burst=20kb / fq_codel")?.sharded(workers).is_ok());
    /// let refused = Spec::inline("fifo")?.sharded(workers).unwrap_err();
    /// assert!(refused.help.contains("tbf"));
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    ///
    /// # Errors
    /// If the shares of a tree like this one would depend on the number of workers.
    pub fn sharded(&self, workers: Workers) -> Result<ShardedSpec, Box<Problem>> {
        self.sharded_after(workers, None)
    }

    /// Returns the tree for several workers that run the tree `before` until then: its classes stay with
    /// their workers.
    ///
    /// # Errors
    /// As of [`sharded`](Spec::sharded).
    pub fn sharded_after(
        &self,
        workers: Workers,
        before: Option<&ShardedSpec>,
    ) -> Result<ShardedSpec, Box<Problem>> {
        let (limit, key) = match workers.by.hashed() {
            Some(by) => (self.shared_limit(workers.by)?, Key::Flows(by)),
            None => {
                let before = before.and_then(ShardedSpec::division);
                let (limit, division) = self.divided(workers, before.map(Arc::as_ref))?;
                // An equal division is the same one, which a change finds out at once.
                let division = match before {
                    Some(before) if **before == division => Arc::clone(before),
                    _ => Arc::new(division),
                };
                (limit, Key::Classes(division))
            }
        };
        let parts = match &key {
            Key::Classes(division) => (0..workers.count.into())
                .map(|worker| self.part(division, worker))
                .collect(),
            Key::Flows(_) => Vec::new(),
        };
        Ok(ShardedSpec {
            tree: Arc::new(self.clone()),
            workers,
            config: Config { limit, key },
            parts,
        })
    }

    /// Returns what the workers share.
    fn shared_limit(&self, by: ShardBy) -> Result<Limit, Box<Problem>> {
        match self.discipline() {
            "tbf" => self.limit_of_tbf(by),
            "cake" => {
                let cake = self.as_config::<cake::Config>();
                self.check_cake(&cake, by)?;
                match cake.bandwidth {
                    Some(rate) => Ok(Limit {
                        rate,
                        burst: burst(rate),
                        lengths: Lengths::Framing(cake.framing, cake.link_header),
                    }),
                    None => Err(self.without_rate()),
                }
            }
            _ => Err(self.without_rate()),
        }
    }

    fn limit_of_tbf(&self, by: ShardBy) -> Result<Limit, Box<Problem>> {
        let tbf::Config { profile, .. } = self.as_config::<tbf::Config>();
        if profile.peak.is_some() {
            return Err(self.refused(
                "peakrate",
                "each worker would have the whole `peakrate`".to_owned(),
                "workers share the rate only",
                "remove `peakrate` and `mtu`, or use one worker",
            ));
        }
        match self.children.first() {
            Some(inner) => inner.check_fair(by)?,
            None => {
                return Err(self.refused(
                    "limit",
                    "the queue in `tbf` is not fair, so its shares would depend on the workers".to_owned(),
                    "workers need fair queues",
                    "put a fair queue into it: tbf / fq_codel, without `limit` and `latency`",
                ));
            }
        }
        Ok(Limit {
            rate: profile.rate,
            burst: profile.burst,
            lengths: Lengths::LinkLayer(profile.link_layer),
        })
    }

    /// Checks that a discipline in a shaper gives each flow (or host) the same rate.
    fn check_fair(&self, by: ShardBy) -> Result<(), Box<Problem>> {
        let name = self.discipline();
        if name == "cake" {
            let cake = self.as_config::<cake::Config>();
            if cake.bandwidth.is_some() {
                return Err(self.refused(
                    "bandwidth",
                    "there are two shapers, one in the other".to_owned(),
                    "workers share one rate",
                    "remove this `bandwidth`, or the shaper around it",
                ));
            }
            return self.check_cake(&cake, by);
        }
        if by != ShardBy::Flow {
            return Err(self.refused(
                "",
                format!("`{name}` is fair to flows, but the workers divide hosts"),
                "not fair to hosts",
                "use cake with its `isolation`, or shard_by = \"flow\"",
            ));
        }
        // Weights, or a flow that a filter chooses, would be unknown to the worker's books.
        let is_plain = self.settings.classifier.filters.is_empty()
            && !["weights", "quanta", "shares"]
                .iter()
                .any(|name| self.is_given(name));
        match FAIR_TO_FLOWS.contains(&name) && is_plain {
            true => Ok(()),
            false => Err(self.refused(
                "",
                format!(
                    "`{name}` does not give each flow the same rate, so shares would depend on the workers"
                ),
                "workers need fair queues of equal flows",
                "use fq_codel, cake or another fair queue without weights and filters; or one worker",
            )),
        }
    }

    fn check_cake(&self, cake: &cake::Config, by: ShardBy) -> Result<(), Box<Problem>> {
        let remedy = |text: &str| format!("{text}, or use one worker");
        if cake.tins != Tins::Besteffort {
            return Err(self.refused(
                "tins",
                "kinds of traffic share by thresholds, which workers can't divide".to_owned(),
                "workers need one tin",
                &remedy("set tins = \"besteffort\""),
            ));
        }
        if !by.isolations().contains(&cake.isolation) {
            let words: Vec<String> = by
                .isolations()
                .iter()
                .map(|isolation| format!("\"{}\"", word(*isolation)))
                .collect();
            return Err(self.refused(
                "isolation",
                format!(
                    "the workers divide by {}, but this isolation is fair to something else",
                    by.word()
                ),
                "workers divide what the tree is fair to",
                &remedy(&format!("set isolation = {}", words.join(" or "))),
            ));
        }
        let flags = [("autorate", cake.autorate), ("ingress", cake.ingress)];
        match flags.into_iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => Err(self.refused(
                name,
                format!("`{name}` adjusts the rate by the traffic of one worker"),
                "workers share a fixed rate of sent packets",
                &remedy(&format!("remove `{name}`")),
            )),
            None => Ok(()),
        }
    }

    fn without_rate(&self) -> Box<Problem> {
        let name = self.discipline();
        let shares_classes = self.entry.about().children.are_classes();
        let (message, help) = match shares_classes {
            true => (
                format!("the classes of `{name}` share by their settings, and not by flows or hosts"),
                "set shard_by = \"class\" for a tree of htb or hfsc; use a shaper over a fair queue, such as \
                 tbf over fq_codel, or cake; or one worker",
            ),
            false => (
                format!("`{name}` at the root has no rate that workers could share"),
                "put it into a shaper, such as tbf rate=100mbit burst=20kb / fq_codel, or use cake with a \
                 `bandwidth`; or one worker",
            ),
        };
        self.refused("", message, "workers share the rate of the root", help)
    }

    /// Returns a problem at a parameter, or at the discipline.
    fn refused(&self, parameter: &str, message: String, rule: &str, remedy: &str) -> Box<Problem> {
        let at = match parameter {
            "" => self.origin.discipline(),
            name => self.origin.parameter(name),
        };
        Box::new(
            self.origin
                .problem(at, message, rule.to_owned(), remedy.to_owned()),
        )
    }

    fn as_config<C: Clone + 'static>(&self) -> C {
        let config = self.config().expect("the description was checked");
        config
            .downcast_ref::<C>()
            .expect("the discipline has this config")
            .clone()
    }
}

/// Returns how users write an isolation.
fn word(isolation: Isolation) -> &'static str {
    use fairgate::registry::{Field, Value};
    match isolation.read() {
        Value::Word(word) => word,
        _ => unreachable!("it is a choice of words"),
    }
}

/// Returns the burst of a shaper that has no bucket.
fn burst(rate: Rate) -> u32 {
    let bytes = u128::from(rate.bits_per_second()) * u128::from(BURST_NANOS) / 8_000_000_000;
    bytes.clamp(LEAST_BURST.into(), u32::MAX.into()) as u32
}

impl Workers {
    /// Returns the error that they can't run the wanted tree.
    pub fn refused(self, problem: &Problem) -> ChangeError {
        let rule = format!("1 with this tree: {problem}");
        ChangeError {
            node_path: "the root".to_owned(),
            source: ConfigError::conflict("workers", self.count, rule, &problem.help),
        }
    }
}

impl ShardedSpec {
    /// Returns the whole tree.
    pub fn tree(&self) -> &Spec {
        &self.tree
    }

    /// Returns the tree of a worker, numbered from 0.
    pub fn part(&self, worker: usize) -> &Spec {
        self.parts.get(worker).unwrap_or(&self.tree)
    }

    /// Returns how classes are divided, if the workers divide classes.
    pub fn division(&self) -> Option<&Arc<Division>> {
        match &self.config.key {
            Key::Classes(division) => Some(division),
            Key::Flows(_) => None,
        }
    }

    /// Returns the workers.
    pub fn workers(&self) -> Workers {
        self.workers
    }

    /// Returns what the workers share.
    pub fn limit(&self) -> Limit {
        self.config.limit
    }

    /// Returns an estimate of the memory of all trees, as of [`Spec::memory`].
    pub fn memory(&self) -> u64 {
        let parts = (0..self.workers.count).map(|worker| self.part(worker.into()).memory());
        parts.fold(0, u64::saturating_add)
    }

    /// Builds the trees of all workers as one discipline, in which each is a class.
    ///
    /// # Errors
    /// Only if a discipline refuses what it accepted when the description was checked.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Discipline>, BuildError> {
        let trees = (1..=self.workers.count).map(|number| {
            self.part(usize::from(number) - 1)
                .build(seed_of(seed, number.into()))
        });
        let trees = trees.collect::<Result<_, BuildError>>()?;
        let sharded = Sharded::node(self.config.clone(), trees, seed);
        Ok(Box::new(sharded.map_err(|source| BuildError {
            node: 0,
            discipline: "sharded",
            source,
        })?))
    }

    /// Plans the change to another tree with as many workers that divide the same: in all of them, as one
    /// change.
    ///
    /// # Errors
    /// If the workers differ, or if a discipline refuses what it accepted when the description was checked.
    pub fn change_to(&self, wanted: &ShardedSpec, seed: u64) -> Result<Change, ChangeError> {
        if self.workers != wanted.workers {
            return Err(ChangeError {
                node_path: "the root".to_owned(),
                source: ConfigError::conflict(
                    "workers",
                    wanted.workers.count,
                    "as before, and divide the same",
                    "flows would change their workers; begin anew",
                ),
            });
        }
        let mut all = Change::of_parameters(&self.config, &wanted.config);
        for number in 1..=self.workers.count {
            let worker = usize::from(number) - 1;
            let change = self
                .part(worker)
                .change_to(wanted.part(worker), seed_of(seed, number.into()))?;
            all.include(change.below(number.into()));
        }
        Ok(all)
    }
}

#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;
