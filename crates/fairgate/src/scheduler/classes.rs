//! A scheduler over classes, each with a share and any discipline inside: the classful form of every fair
//! queueing discipline.
//!
//! The scheduler gets the length of the packet that a class's discipline returns for a peek. The next dequeue
//! returns the packet of the last peek. So the class sends the packet that it was selected for, unless the
//! class has lost packets since, by its own decision or by a change from outside. Then the scheduler gets the
//! true length and selects again.
//!
//! A class whose packets are held back (by a shaper inside) is *parked*: it is idle for the scheduler until
//! its watchdog time (`Parked`). It gets no credit for the time in which it was parked. If several classes
//! wake up together, the one with the lowest number is first.
//!
//! An unclassified packet is dropped ([`DropReason::NoClass`]), as in Linux.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::arrival::Needs;
use crate::classify::{ClassMap, Classifier, Hosts, Templates};
use crate::discipline::{Algorithm, Class, Discipline, Node, Variable, Verdict};
use crate::error::ConfigError;
use crate::packet::DropReason;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::registry::{About, Children, Description, Parameter, Placing};
use crate::scheduler::parked::Parked;
use crate::scheduler::{Head, Holds, MAX_PACKET, Scheduler};
use crate::time::Time;

/// The parameters of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig<T> {
    /// The number of the class.
    pub minor: u32,
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
        map.check(&self.classifier, discipline)?;
        self.templates
            .check(&self.classifier, |minor| map.index(minor).is_some())?;
        Ok(map)
    }

    fn minors(&self) -> impl Iterator<Item = u32> {
        self.classes.iter().map(|class| class.minor)
    }
}

/// A class.
#[derive(Debug)]
struct InnerClass<T> {
    inner: Box<dyn Discipline>,
    /// The length of the first packet as the scheduler knows it. `None` if the class is idle for the
    /// scheduler: it has no packets, or it is parked.
    first_length: Option<u32>,
    state: T,
}

impl<T> Holds for InnerClass<T> {
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
fn start<S: Scheduler<Share: Default, Settings: Default>>(minors: &[u32]) -> ConfigOf<S> {
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
#[derive(Debug)]
pub struct Classes<S: Scheduler> {
    scheduler: S,
    classes: Vec<InnerClass<S::Flow>>,
    parked: Parked,
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
        map.check_disciplines(inner.len())?;
        let (scheduler, states) = scheduler_of(&config)?;
        let classes = inner.into_iter().zip(states).map(|(inner, state)| InnerClass {
            inner,
            first_length: None,
            state,
        });
        let mut classes = Classes {
            scheduler,
            classes: classes.collect(),
            parked: Parked::new(config.classes.len()),
            hosts: Hosts::new(&config.templates, |minor| map.checked_index(minor)),
            map,
            config,
        };
        // An inner discipline may already contain packets. Its watchdog time was never read before.
        classes.parked.doubt();
        for index in 0..classes.classes.len() {
            if !classes.classes[index].inner.is_empty() {
                classes.park(index);
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
    fn look_at(&mut self, index: usize, now: Time, pool: &mut Pool) {
        let class = &mut self.classes[index];
        debug_assert!(class.first_length.is_none());
        if let Some(first) = class.inner.peek(now, pool) {
            let length = pool[first].length;
            class.first_length = Some(length);
            self.parked.unpark(index);
            let head = Head { length, stamp: 0 };
            self.scheduler
                .activate(&mut self.classes, index as u32, head, now);
        } else if !class.inner.is_empty() {
            self.park(index);
        } else {
            self.parked.unpark(index);
        }
    }

    /// Parks a class until its watchdog time, or updates that time.
    fn park(&mut self, index: usize) {
        self.parked.park(index, self.classes[index].inner.watchdog());
    }

    /// Checks the parked classes whose time has come, in the order of their numbers. If times may be wrong,
    /// checks all.
    #[cold]
    fn wake_up(&mut self, now: Time, pool: &mut Pool) {
        self.parked.wake_up_by_index(now);
        while let Some(index) = self.parked.next_woken() {
            self.look_at(index, now, pool);
        }
    }

    /// Handles a selected class that has no packet to send.
    #[cold]
    fn deactivate(&mut self, index: usize, now: Time) {
        self.scheduler
            .update(&mut self.classes, index as u32, 0, None, now);
        self.classes[index].first_length = None;
        if !self.classes[index].inner.is_empty() {
            self.park(index);
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
        let Ok(minor) = self.config.classifier.classify(id, now, pool) else {
            return Verdict::Unclassified;
        };
        let Some(index) = minor.and_then(|minor| self.map.index(minor)) else {
            pool.give_back(id, DropReason::NoClass);
            return Verdict::Unclassified;
        };
        if pool[id].length > MAX_PACKET {
            pool.give_back(id, DropReason::LargerThanMaximum);
            return Verdict::Dropped;
        }
        let classes = &self.classes;
        let index = self
            .hosts
            .place(index, id, pool, &|index| classes[index].inner.as_ref());
        let class = &mut self.classes[index];
        let verdict = class.inner.enqueue(id, now, pool);
        if class.first_length.is_none() {
            self.look_at(index, now, pool);
            return verdict.after_peek(id, pool);
        }
        verdict
    }

    #[inline]
    fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        if self.parked.is_due(now) {
            self.wake_up(now, pool);
        }
        // Each pass sends a packet, deactivates a class, or corrects a length for the next pass.
        loop {
            let index = self.scheduler.select(&mut self.classes, now)? as usize;
            let Some(first) = self.classes[index].inner.peek(now, pool) else {
                self.deactivate(index, now);
                continue;
            };
            let class = &mut self.classes[index];
            let length = pool[first].length;
            if class.first_length != Some(length) {
                class.first_length = Some(length);
                let next = Some(Head { length, stamp: 0 });
                self.scheduler
                    .update(&mut self.classes, index as u32, 0, next, now);
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
            class.first_length = next.map(|head| head.length);
            if next.is_none() && !class.inner.is_empty() {
                self.park(index);
            }
            self.scheduler
                .update(&mut self.classes, index as u32, length, next, now);
            return sent;
        }
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for class in &mut self.classes {
            class.inner.drain(pool, into);
            class.first_length = None;
        }
        self.scheduler.clear(&mut self.classes);
        self.parked.clear();
    }

    fn watchdog(&self) -> Option<Time> {
        self.parked.watchdog(|index| self.classes[index].inner.watchdog())
    }

    fn needs(&self) -> Needs {
        self.config.classifier.needs()
    }

    fn config(&self) -> ConfigOf<S> {
        self.config.clone()
    }

    /// Shares and filters may change, but not the set of classes and the settings of the scheduler.
    fn reconfigure(
        &mut self,
        mut config: ConfigOf<S>,
        _now: Time,
        _pool: &mut Pool,
    ) -> Result<(), ConfigError> {
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
            .changed(&config.templates, |minor| self.map.checked_index(minor));
        config.classifier.take_over(&self.config.classifier);
        self.config = config;
        Ok(())
    }

    fn visit_classes(&self, visit: &mut dyn FnMut(Class<'_>)) {
        self.visit_classes_at(0..usize::MAX, visit);
    }

    fn visit_classes_at(&self, places: Range<usize>, visit: &mut dyn FnMut(Class<'_>)) {
        let classes = self.config.minors().zip(&self.classes).enumerate();
        for (index, (minor, class)) in classes.skip(places.start).take(places.len()) {
            visit(Class {
                holder: self.hosts.holder(index),
                ..Class::new(minor, class.inner.as_ref())
            });
        }
    }

    fn class_mut(&mut self, minor: u32) -> Option<&mut Box<dyn Discipline>> {
        // Any change to the class may change when it can send.
        self.parked.doubt();
        let index = self.map.index(minor)?;
        Some(&mut self.classes[index].inner)
    }

    fn class_replaced(&mut self, minor: u32, now: Time, pool: &mut Pool) {
        let index = self.map.checked_index(minor);
        self.hosts.replaced(index);
        if self.classes[index].first_length.is_none() {
            self.look_at(index, now, pool);
        }
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        let active = self.classes.iter().filter(|class| class.first_length.is_some());
        visit("active_classes", Variable::Integer(active.count() as i64));
        visit("parked_classes", Variable::Integer(self.parked.len() as i64));
        self.scheduler.visit_variables(visit);
    }
}
