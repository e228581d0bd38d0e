//! How an entry of the registry is written.

use std::any::Any;
use std::ops::RangeInclusive;

use fairgate::classify::{Classifier, Templates};
use fairgate::{ConfigError, Discipline};

use super::{About, ClassSettings, Entry, Longest, ParameterInfo, Parts, Settings};
use crate::value::{Field, Unit};

/// A discipline whose users' settings are an `S` and whose own parameters are a `C`. The two are the same type unless
/// users write something else than the discipline computes with.
pub(super) struct Description<S: 'static, C: 'static> {
    pub(super) about: About,
    pub(super) parameters: &'static [Parameter<S>],
    /// Parameters of a class; their fields are given the class's place among the classes.
    pub(super) class_parameters: &'static [Parameter<S>],
    pub(super) placing: Placing<S>,
    /// All at their defaults, for classes with these numbers.
    pub(super) start: fn(&[u16]) -> S,
    pub(super) config: fn(S) -> Result<C, ConfigError>,
    pub(super) build: fn(C, Parts) -> Result<Box<dyn Discipline>, ConfigError>,
}

/// The field of the settings that a parameter is; of a class's, given its place among the classes.
pub(super) type Lens<S> = fn(&mut S, usize) -> &mut dyn Field;

/// A parameter: what users should know, and the field of the settings that it is.
pub(super) struct Parameter<S> {
    name: &'static str,
    unit: Unit,
    range: RangeInclusive<u64>,
    required: bool,
    doc: &'static str,
    field: Lens<S>,
    longest: Option<Bound<S>>,
}

/// The longest packet that a parameter lets pass, if it bounds that; told besides whether there is an inner discipline.
pub(super) type Bound<S> = fn(&S, bool) -> Option<Longest>;

impl<S> Parameter<S> {
    /// A parameter of numbers.
    pub(super) const fn new(
        name: &'static str,
        unit: Unit,
        range: RangeInclusive<u64>,
        doc: &'static str,
        field: Lens<S>,
    ) -> Parameter<S> {
        Parameter {
            name,
            unit,
            range,
            required: false,
            doc,
            field,
            longest: None,
        }
    }

    /// A parameter of words or flags, which has no range.
    pub(super) const fn word(
        name: &'static str,
        unit: Unit,
        doc: &'static str,
        field: Lens<S>,
    ) -> Parameter<S> {
        Parameter::new(name, unit, 0..=u64::MAX, doc, field)
    }

    /// A parameter of numbers without a default.
    pub(super) const fn required(
        name: &'static str,
        unit: Unit,
        range: RangeInclusive<u64>,
        doc: &'static str,
        field: Lens<S>,
    ) -> Parameter<S> {
        let mut parameter = Parameter::new(name, unit, range, doc, field);
        parameter.required = true;
        parameter
    }

    /// With the default that it has in `start`.
    fn info(&self, start: &mut S) -> ParameterInfo {
        let field = (self.field)(start, 0);
        ParameterInfo {
            name: self.name,
            unit: self.unit,
            range: self.range.clone(),
            default: (!self.required).then(|| field.read()),
            optional: field.is_optional(),
            doc: self.doc,
        }
    }
}

/// The same parameter, which bounds the longest packet.
pub(super) const fn bounding<S>(longest: Bound<S>, mut parameter: Parameter<S>) -> Parameter<S> {
    parameter.longest = Some(longest);
    parameter
}

/// By what packets are placed.
pub(super) enum Placing<S> {
    /// By nothing that users could set.
    Nothing,
    /// By this classifier, in as many places.
    Classifier(fn(&mut S) -> &mut Classifier, fn(&S) -> u32),
    /// By this classifier, in classes of any number, of which some may be given to hosts.
    Classes(fn(&mut S) -> &mut Classifier, fn(&mut S) -> &mut Templates),
}

impl<S: 'static, C: 'static> Description<S, C> {
    /// `seed` is that of all random choices.
    fn settle(&self, settings: &Settings, seed: u64) -> S {
        let minors: Vec<u16> = settings.classes.iter().flat_map(ClassSettings::minors).collect();
        let mut settled = (self.start)(&minors);
        for (place, value) in &settings.own {
            (self.parameters[*place].field)(&mut settled, 0).write(value);
        }
        let alike = |class| std::iter::repeat_n(class, ClassSettings::minors(class).len());
        for (class, of_class) in settings.classes.iter().flat_map(alike).enumerate() {
            for (place, value) in &of_class.settings {
                (self.class_parameters[*place].field)(&mut settled, class).write(value);
            }
        }
        match self.placing {
            Placing::Nothing => {}
            Placing::Classifier(classifier, _) => {
                classifier(&mut settled).clone_from(&settings.classifier);
            }
            Placing::Classes(classifier, templates) => {
                classifier(&mut settled).clone_from(&settings.classifier);
                let list = settings.classes.iter().filter_map(|class| class.template.clone());
                *templates(&mut settled) = Templates {
                    list: list.collect(),
                    seed,
                };
            }
        }
        settled
    }
}

impl<S: 'static, C: 'static> Entry for Description<S, C> {
    fn about(&self) -> &About {
        &self.about
    }

    fn parameters(&self) -> Vec<ParameterInfo> {
        let mut start = (self.start)(&[1]);
        self.parameters
            .iter()
            .map(|parameter| parameter.info(&mut start))
            .collect()
    }

    fn class_parameters(&self) -> Vec<ParameterInfo> {
        let mut start = (self.start)(&[1]);
        self.class_parameters
            .iter()
            .map(|parameter| parameter.info(&mut start))
            .collect()
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
            Placing::Classes(..) => u16::MAX.into(),
            Placing::Nothing => 0,
        }
    }

    fn config(&self, settings: &Settings) -> Result<Box<dyn Any>, ConfigError> {
        Ok(Box::new((self.config)(self.settle(settings, 0))?))
    }

    fn longest(&self, settings: &Settings, has_inner: bool) -> Vec<(&'static str, Longest)> {
        let bounding = self.parameters.iter().filter_map(|parameter| {
            let longest = parameter.longest?;
            Some((parameter.name, longest))
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

    fn build(&self, settings: &Settings, parts: Parts) -> Result<Box<dyn Discipline>, ConfigError> {
        (self.build)((self.config)(self.settle(settings, parts.seed))?, parts)
    }
}
