//! The description of a discipline: its name and purpose, its parameters, and how it is built from them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use super::entry::{About, Entry, Parts};
use super::longest::Longest;
use super::parameter::{Parameter, ParameterInfo};
use super::settings::{ClassSettings, Settings};
use crate::classify::{Classifier, Templates};
use crate::discipline::Discipline;
use crate::error::ConfigError;
use crate::packet::LAST_CLASS;

/// Describes a discipline with settings `S`, which users write, and parameters `C`, its own `Config`. The two
/// types are the same unless the discipline computes with other values than users write.
///
/// Declare it as a `static` next to the `Config`, with [`Description::new`] and the `with_` functions.
pub struct Description<S: 'static, C: 'static = S> {
    about: About,
    parameters: &'static [Parameter<S>],
    class_parameters: &'static [Parameter<S>],
    placing: Placing<S>,
    start: fn(&[u32]) -> S,
    config: fn(S) -> Result<C, ConfigError>,
    memory: fn(&S) -> u64,
    warnings: fn(&S) -> Vec<String>,
    check: Option<Check<C>>,
    build: Build<C>,
}

/// Builds a discipline.
pub type Build<C> = fn(C, Parts) -> Result<Box<dyn Discipline>, ConfigError>;

/// Checks the parameters of a discipline as its construction does.
pub type Check<C> = fn(&C) -> Result<(), ConfigError>;

/// How packets are assigned to classes or flows.
#[derive(Debug)]
#[non_exhaustive]
pub enum Placing<S> {
    /// Users can't set it.
    Nothing,
    /// By this classifier. Its classes are 1 up to the number that the second function returns.
    Classifier(fn(&mut S) -> &mut Classifier, fn(&S) -> u32),
    /// By this classifier, to classes with any numbers. Classes can be templates.
    Classes(fn(&mut S) -> &mut Classifier, fn(&mut S) -> &mut Templates),
}

impl<C: 'static> Description<C> {
    /// Describes a discipline whose users set the fields of its own `Config`. `start` returns the `Config`
    /// with all defaults, for the classes with these numbers.
    pub const fn new(
        about: About,
        parameters: &'static [Parameter<C>],
        start: fn(&[u32]) -> C,
        build: Build<C>,
    ) -> Description<C> {
        Description::of_settings(about, parameters, start, Ok, build)
    }
}

impl<S: 'static, C: 'static> Description<S, C> {
    /// Describes a discipline whose users write settings of another type. `config` computes the discipline's
    /// `Config` from them.
    pub const fn of_settings(
        about: About,
        parameters: &'static [Parameter<S>],
        start: fn(&[u32]) -> S,
        config: fn(S) -> Result<C, ConfigError>,
        build: Build<C>,
    ) -> Description<S, C> {
        Description {
            about,
            parameters,
            class_parameters: &[],
            placing: Placing::Nothing,
            start,
            config,
            memory: |_| 0,
            warnings: |_| Vec::new(),
            check: None,
            build,
        }
    }

    /// Adds the parameters of each class. The second argument of their lenses is the index of the class.
    #[must_use]
    pub const fn with_class_parameters(mut self, parameters: &'static [Parameter<S>]) -> Description<S, C> {
        self.class_parameters = parameters;
        self
    }

    /// Adds filters that assign packets to classes or flows.
    #[must_use]
    pub const fn with_placing(mut self, placing: Placing<S>) -> Description<S, C> {
        self.placing = placing;
        self
    }

    /// Adds the number of bytes that the discipline allocates when it is built, for tables whose size depends
    /// on the settings. It is an estimate within a factor of three, without children and statistics.
    #[must_use]
    pub const fn with_memory(mut self, memory: fn(&S) -> u64) -> Description<S, C> {
        self.memory = memory;
        self
    }

    /// Adds warnings about settings that are valid, but probably not intended: a sentence each.
    #[must_use]
    pub const fn with_warnings(mut self, warnings: fn(&S) -> Vec<String>) -> Description<S, C> {
        self.warnings = warnings;
        self
    }

    /// Adds the checks that the discipline makes when it is built, for a discipline without children whose
    /// tables may be large: parameters are then checked without building them.
    #[must_use]
    pub const fn with_check(mut self, check: Check<C>) -> Description<S, C> {
        self.check = Some(check);
        self
    }

    /// Returns the complete settings. `seed` is the seed of all random choices.
    fn settle(&self, settings: &Settings, seed: u64) -> S {
        let minors: Vec<u32> = settings.classes.iter().flat_map(ClassSettings::minors).collect();
        let mut settled = (self.start)(&minors);
        for (index, value) in &settings.own {
            self.parameters[*index].field(&mut settled, 0).write(value);
        }
        let alike = |class| core::iter::repeat_n(class, ClassSettings::count(class));
        for (class, of_class) in settings.classes.iter().flat_map(alike).enumerate() {
            for (index, value) in &of_class.settings {
                self.class_parameters[*index]
                    .field(&mut settled, class)
                    .write(value);
            }
        }
        match self.placing {
            Placing::Nothing => {}
            Placing::Classifier(classifier, _) => {
                *classifier(&mut settled) = settings.classifier.with_seed(seed);
            }
            Placing::Classes(classifier, templates) => {
                *classifier(&mut settled) = settings.classifier.with_seed(seed);
                let list = settings.classes.iter().filter_map(|class| class.template.clone());
                *templates(&mut settled) = Templates {
                    list: list.collect(),
                    seed,
                };
            }
        }
        settled
    }

    fn info(&self, parameters: &[Parameter<S>]) -> Vec<ParameterInfo> {
        // Defaults that depend on the number of classes are shown for three, as many as Linux' prio has.
        let mut start = (self.start)(&[1, 2, 3]);
        parameters
            .iter()
            .map(|parameter| parameter.info(&mut start))
            .collect()
    }
}

impl<S: 'static, C: Send + 'static> Entry for Description<S, C> {
    fn about(&self) -> &About {
        &self.about
    }

    fn parameters(&self) -> Vec<ParameterInfo> {
        self.info(self.parameters)
    }

    fn class_parameters(&self) -> Vec<ParameterInfo> {
        self.info(self.class_parameters)
    }

    fn takes_filters(&self) -> bool {
        !matches!(self.placing, Placing::Nothing)
    }

    fn takes_templates(&self) -> bool {
        matches!(self.placing, Placing::Classes(..))
    }

    fn places(&self, settings: &Settings) -> u32 {
        match self.placing {
            Placing::Classifier(_, places) => places(&self.settle(settings, 0)),
            Placing::Classes(..) => LAST_CLASS,
            Placing::Nothing => 0,
        }
    }

    fn config(&self, settings: &Settings) -> Result<Box<dyn Any + Send>, ConfigError> {
        Ok(Box::new((self.config)(self.settle(settings, 0))?))
    }

    fn longest(&self, settings: &Settings, has_inner: bool) -> Vec<(&'static str, Longest)> {
        let bounding = self.parameters.iter().filter_map(|parameter| {
            let longest = parameter.longest()?;
            Some((parameter.name(), longest))
        });
        let mut bounding = bounding.peekable();
        if bounding.peek().is_none() {
            return Vec::new();
        }
        let settled = self.settle(settings, 0);
        bounding
            .filter_map(|(name, longest)| Some((name, longest(&settled, has_inner)?)))
            .collect()
    }

    fn memory(&self, settings: &Settings) -> u64 {
        (self.memory)(&self.settle(settings, 0))
    }

    fn warnings(&self, settings: &Settings) -> Vec<String> {
        (self.warnings)(&self.settle(settings, 0))
    }

    fn check(&self, settings: &Settings, parts: Parts) -> Result<(), ConfigError> {
        match self.check {
            Some(check) => check(&(self.config)(self.settle(settings, parts.seed))?),
            None => self.build(settings, parts).map(drop),
        }
    }

    fn build(&self, settings: &Settings, parts: Parts) -> Result<Box<dyn Discipline>, ConfigError> {
        (self.build)((self.config)(self.settle(settings, parts.seed))?, parts)
    }
}

impl<S: 'static, C: 'static> fmt::Debug for Description<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Description").field(&self.about.name).finish()
    }
}
