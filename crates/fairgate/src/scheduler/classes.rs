//! A scheduler over classes, each with a share and any discipline inside: the classful form of every fair
//! queueing discipline.
//!
//! The scheduler gets the length of the packet that a class's discipline returns for a peek. The next dequeue
//! returns the packet of the last peek. So the class sends the packet that it was selected for, unless the
//! class has lost packets since, by its own decision or by a change from outside. Then the scheduler gets the
//! true length and selects again.
//!
//! A class whose packets are held back (by a shaper inside) is *parked*: it is idle for the scheduler until
//! its watchdog time. It gets no credit for the time in which it was parked. Parked classes are in a heap by
//! that time, so waking one costs O(log n). If several wake up together, the one with the lowest number is
//! first.
//!
//! An unclassified packet is dropped ([`DropReason::NoClass`]), as in Linux.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::classify::{ClassMap, Classifier, Hosts, Templates};
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Parameter, Placing};
use crate::scheduler::{Head, Holds, MAX_PACKET, Scheduler};
use crate::structures::IndexedHeap;
use crate::time::Time;

/// The parameters of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig<T> {
    /// The number of the class.
    pub minor: u16,
    /// The share of the class.
    pub share: T,
}

/// The parameters of a scheduler whose classes have shares `T` and which has settings `U`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config<T, U> {
    /// Chooses the class of a packet.
    pub classifier: Classifier,
    /// The classes, by ascending number.
    pub classes: Vec<ClassConfig<T>>,
    /// The classes that are assigned to hosts.
    pub templates: Templates,
    /// The parameters of the scheduler as a whole.
    pub settings: U,
}

impl<T, U> Config<T, U> {
    /// Checks everything except shares and settings, and numbers the classes.
    fn check(&self, discipline: &'static str) -> Result<ClassMap, ConfigError> {
        let map = ClassMap::new(self.classes.iter().map(|class| class.minor))?;
        if let Some(pair) = self.classes.windows(2).find(|pair| pair[0].minor > pair[1].minor) {
            return Err(ConfigError::conflict(
                "class",
                format!("{:x}", pair[1].minor),
                format!("above {:x}, the class before it", pair[0].minor),
                "sort the classes by their numbers",
            ));
        }
        map.check(&self.classifier, discipline)?;
        self.templates
            .check(&self.classifier, |minor| map.place(minor).is_some())?;
        Ok(map)
    }

    fn minors(&self) -> impl Iterator<Item = u16> {
        self.classes.iter().map(|class| class.minor)
    }
}

/// Whether a class takes part in scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// It has no packets, as far as is known.
    Idle,
    /// The scheduler knows it, with a first packet of this length.
    Active { length: u32 },
    /// It has packets, but its discipline holds them back.
    Parked,
}

/// Later than any watchdog time. Keys of the heap wrap, so the upper half of their range would be in the
/// past.
const NEVER: u64 = i64::MAX as u64;

/// A class.
struct ActiveClass<T> {
    inner: Box<dyn Discipline>,
    activity: Activity,
    state: T,
}

impl<T> Holds for ActiveClass<T> {
    type State = T;

    #[inline]
    fn state(&self) -> &T {
        &self.state
    }

    #[inline]
    fn state_mut(&mut self) -> &mut T {
        &mut self.state
    }
}

/// The parameters of `Classes<S>`.
pub type ConfigOf<S> = Config<<S as Scheduler>::Share, <S as Scheduler>::Settings>;

/// The description of `Classes<S>`.
pub type DescriptionOf<S> = Description<ConfigOf<S>>;

/// The parameters of `Classes<S>` with all defaults, for classes with these numbers.
fn start<S: Scheduler<Share: Default, Settings: Default>>(minors: &[u16]) -> ConfigOf<S> {
    Config {
        classifier: Classifier::default(),
        classes: minors
            .iter()
            .map(|&minor| ClassConfig {
                minor,
                share: S::Share::default(),
            })
            .collect(),
        templates: Templates::default(),
        settings: S::Settings::default(),
    }
}

/// Describes a scheduler over classes.
pub const fn describe<S: Scheduler<Share: Default, Settings: Default>>(
    about: About,
    parameters: &'static [Parameter<ConfigOf<S>>],
    class_parameters: &'static [Parameter<ConfigOf<S>>],
) -> Description<ConfigOf<S>> {
    Description::new(
        about.holding(Children::Classes),
        parameters,
        start::<S>,
        |config, parts| Ok(Box::new(Classes::<S>::node(config, parts.children)?)),
    )
    .with_class_parameters(class_parameters)
    .with_placing(Placing::Classes(
        |classes| &mut classes.classifier,
        |classes| &mut classes.templates,
    ))
}

/// The discipline. Create it with [`Classes::node`].
pub struct Classes<S: Scheduler> {
    scheduler: S,
    classes: Vec<ActiveClass<S::Flow>>,
    /// The parked classes, by the time at which each can send.
    parked: IndexedHeap,
    /// Whether a time in `parked` may be wrong, because its class was changed from outside, or does not
    /// report when it can send.
    is_unsure: bool,
    /// The classes that wake up now. It is empty between calls, and has room for all classes.
    due: Vec<u32>,
    hosts: Hosts,
    map: ClassMap,
    config: ConfigOf<S>,
}

impl<S: Scheduler> Classes<S> {
    /// Creates the discipline over `inner`, which has one discipline per class of `config.classes`, in the
    /// same order.
    ///
    /// # Errors
    /// Fails if a parameter is out of its range.
    pub fn node(
        config: ConfigOf<S>,
        inner: Vec<Box<dyn Discipline>>,
    ) -> Result<Node<Classes<S>>, ConfigError> {
        let map = config.check(S::NAME)?;
        if inner.len() != config.classes.len() {
            return Err(ConfigError::conflict(
                "classes",
                config.classes.len(),
                format!("{}, the number of inner disciplines", inner.len()),
                "give one discipline for each class",
            ));
        }
        let (scheduler, states) = scheduler_of(&config)?;
        let classes = inner.into_iter().zip(states).map(|(inner, state)| ActiveClass {
            inner,
            activity: Activity::Idle,
            state,
        });
        let mut classes = Classes {
            scheduler,
            classes: classes.collect(),
            parked: IndexedHeap::new(),
            is_unsure: true,
            due: Vec::with_capacity(config.classes.len()),
            hosts: Hosts::new(&config.templates, |minor| map.checked_place(minor)),
            map,
            config,
        };
        for place in 0..classes.classes.len() {
            classes.parked.add_flow();
            // An inner discipline may already contain packets.
            if classes.classes[place].inner.backlog().packets > 0 {
                classes.park(place);
            }
        }
        Ok(Node::new(classes))
    }

    /// Returns the scheduler.
    pub fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// Checks a class that is not active: whether it has a packet, and whether the packet can be sent.
    #[inline]
    fn look_at(&mut self, place: usize, now: Time, pool: &mut Pool) {
        let class = &mut self.classes[place];
        debug_assert!(!matches!(class.activity, Activity::Active { .. }));
        if let Some(first) = class.inner.peek(now, pool) {
            self.unpark(place);
            let length = pool[first].length;
            self.classes[place].activity = Activity::Active { length };
            let head = Head { length, stamp: 0 };
            self.scheduler
                .activate(&mut self.classes, place as u32, head, now);
        } else if class.inner.backlog().packets > 0 {
            self.park(place);
        } else {
            self.unpark(place);
        }
    }

    /// Parks a class until its watchdog time, or updates that time.
    fn park(&mut self, place: usize) {
        let class = &mut self.classes[place];
        let watchdog = class.inner.watchdog();
        self.is_unsure |= watchdog.is_none();
        let wake = watchdog.map_or(0, Time::nanos).min(NEVER);
        if class.activity == Activity::Parked {
            self.parked.rekey(place as u32, wake);
        } else {
            class.activity = Activity::Parked;
            self.parked.push(wake, place as u32);
        }
    }

    /// Removes a class that is not active from the parked classes.
    #[inline]
    fn unpark(&mut self, place: usize) {
        if self.classes[place].activity == Activity::Parked {
            self.classes[place].activity = Activity::Idle;
            self.parked.remove(place as u32);
        }
    }

    /// Returns whether a parked class may have a packet to send.
    #[inline]
    fn is_due(&self, now: Time) -> bool {
        self.parked
            .first()
            .is_some_and(|first| first.key <= now.nanos() || self.is_unsure)
    }

    /// Checks the parked classes whose time has come, in the order of their numbers. If times may be wrong,
    /// checks all.
    #[cold]
    fn wake_up(&mut self, now: Time, pool: &mut Pool) {
        let mut due = core::mem::take(&mut self.due);
        if core::mem::take(&mut self.is_unsure) {
            due.extend(self.parked.flows());
        } else {
            while let Some(first) = self.parked.first()
                && first.key <= now.nanos()
            {
                self.unpark(first.flow as usize);
                due.push(first.flow);
            }
        }
        due.sort_unstable();
        for place in due.drain(..) {
            self.look_at(place as usize, now, pool);
        }
        self.due = due;
    }

    /// Handles a selected class that has no packet to send.
    #[cold]
    fn deactivate(&mut self, place: usize, now: Time) {
        self.scheduler
            .update(&mut self.classes, place as u32, 0, None, now);
        if self.classes[place].inner.backlog().packets > 0 {
            self.park(place);
        } else {
            self.classes[place].activity = Activity::Idle;
        }
    }
}

/// Creates a scheduler with a flow for each class.
fn scheduler_of<S: Scheduler>(config: &ConfigOf<S>) -> Result<(S, Vec<S::Flow>), ConfigError> {
    let mut scheduler = S::new(&config.settings, 0)?;
    let mut states = Vec::with_capacity(config.classes.len());
    for class in &config.classes {
        let state = scheduler.add_flow(&class.share);
        states.push(state.map_err(|error| error.of_class(class.minor))?);
    }
    Ok((scheduler, states))
}

impl<S: Scheduler> Algorithm for Classes<S> {
    const NAME: &'static str = S::NAME;
    type Config = ConfigOf<S>;

    #[inline]
    fn enqueue(&mut self, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        let minor = self.config.classifier.classify(id, pool);
        let Some(place) = minor.and_then(|minor| self.map.place(minor)) else {
            pool.give_back(id, DropReason::NoClass);
            return Verdict::Unclassified;
        };
        if pool[id].length > MAX_PACKET {
            pool.give_back(id, DropReason::LargerThanMaximum);
            return Verdict::Dropped;
        }
        let classes = &self.classes;
        let place = self
            .hosts
            .place(place, id, pool, &|place| classes[place].inner.as_ref());
        let class = &mut self.classes[place];
        let verdict = class.inner.enqueue(id, now, pool);
        if !matches!(class.activity, Activity::Active { .. }) {
            self.look_at(place, now, pool);
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        if self.is_due(now) {
            self.wake_up(now, pool);
        }
        // Each pass sends a packet, deactivates a class, or corrects a length for the next pass.
        loop {
            let place = self.scheduler.select(&mut self.classes, now)? as usize;
            let Some(first) = self.classes[place].inner.peek(now, pool) else {
                self.deactivate(place, now);
                continue;
            };
            let class = &mut self.classes[place];
            let length = pool[first].length;
            if class.activity != (Activity::Active { length }) {
                class.activity = Activity::Active { length };
                let next = Some(Head { length, stamp: 0 });
                self.scheduler
                    .update(&mut self.classes, place as u32, 0, next, now);
                continue;
            }
            let sent = class.inner.dequeue(now, pool);
            debug_assert_eq!(
                sent,
                Some(first),
                "the next dequeue must return the packet of the peek"
            );
            let next = class.inner.peek(now, pool).map(|next| Head {
                length: pool[next].length,
                stamp: 0,
            });
            match next {
                Some(head) => class.activity = Activity::Active { length: head.length },
                None if class.inner.backlog().packets > 0 => self.park(place),
                None => class.activity = Activity::Idle,
            }
            self.scheduler
                .update(&mut self.classes, place as u32, length, next, now);
            return sent;
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for class in &mut self.classes {
            class.inner.drain(pool, into);
            class.activity = Activity::Idle;
        }
        self.scheduler.clear(&mut self.classes);
        self.parked.clear();
    }

    fn watchdog(&self) -> Option<Time> {
        let watchdog = |place: u32| self.classes[place as usize].inner.watchdog();
        if self.is_unsure {
            return self.parked.flows().filter_map(watchdog).min();
        }
        watchdog(self.parked.first()?.flow)
    }

    fn config(&self) -> ConfigOf<S> {
        self.config.clone()
    }

    /// Shares and filters may change, but not the set of classes and the settings of the scheduler.
    fn reconfigure(&mut self, config: ConfigOf<S>, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        config.check(S::NAME)?;
        if !config.minors().eq(self.config.minors()) {
            let shown = |config: &ConfigOf<S>| format!("{:x?}", config.minors().collect::<Vec<_>>());
            return Err(ConfigError::conflict(
                "classes",
                shown(&config),
                format!("{}, the present classes", shown(&self.config)),
                "replace the whole discipline to add or remove a class",
            ));
        }
        if config.settings != self.config.settings {
            return Err(ConfigError::conflict(
                "settings",
                format!("{:?}", config.settings),
                format!("{:?}, the present settings", self.config.settings),
                "replace the whole discipline to change more than shares and filters",
            ));
        }
        scheduler_of::<S>(&config)?;
        for (class, settings) in self.classes.iter_mut().zip(&config.classes) {
            self.scheduler.change_share(&mut class.state, &settings.share);
        }
        self.hosts = self
            .hosts
            .changed(&config.templates, |minor| self.map.checked_place(minor));
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        for (place, (minor, class)) in self.config.minors().zip(&self.classes).enumerate() {
            visit(Class {
                holder: self.hosts.holder(place),
                ..Class::new(minor, class.inner.as_ref())
            });
        }
    }

    fn class_mut(&mut self, minor: u16) -> Option<&mut Box<dyn Discipline>> {
        // Any change to the class may change when it can send.
        self.is_unsure = true;
        let place = self.map.place(minor)?;
        Some(&mut self.classes[place].inner)
    }

    fn class_replaced(&mut self, minor: u16, now: Time, pool: &mut Pool) {
        let place = self.map.checked_place(minor);
        self.hosts.replaced(place);
        if !matches!(self.classes[place].activity, Activity::Active { .. }) {
            self.look_at(place, now, pool);
        }
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let active = self
            .classes
            .iter()
            .filter(|class| matches!(class.activity, Activity::Active { .. }));
        visit("active_classes", Variable::Integer(active.count() as i64));
        visit(
            "parked_classes",
            Variable::Integer(self.parked.flows().count() as i64),
        );
        self.scheduler.visit_variables(visit);
    }
}
