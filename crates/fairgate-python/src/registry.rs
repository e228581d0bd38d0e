//! The disciplines that this process knows: the library's, and those written in Python.
//!
//! A discipline in Python stays known until the process ends, like a class. Its description is leaked for
//! that: the library refers to descriptions by `'static` references. If a class with the same name is defined
//! again, as in a notebook, trees that are checked from then on use the new one.

use std::any::Any;
use std::sync::{PoisonError, RwLock};

use fairgate::registry::units::{parse_duration, parse_rate, parse_size};
use fairgate::registry::{
    About, Entry, Longest, ParameterInfo, Parts, Registry, Setting, Settings, Unit, Value,
};
use fairgate::{ConfigError, Discipline, Node};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyType};

use crate::discipline::{Checked, Config, value_of};
use crate::leaked::leaked;
use crate::{errors, failure};

static PYTHON: RwLock<Vec<&'static Described>> = RwLock::new(Vec::new());

/// Returns all disciplines, as of now, and all sections of files.
pub(crate) fn current() -> Registry {
    let mut registry = fairgate_cli::with_sections(&Registry::builtin());
    for described in PYTHON.read().unwrap_or_else(PoisonError::into_inner).iter() {
        registry.add(*described).expect("the names are different");
    }
    registry
}

/// Returns whether a tree has a discipline that is not the library's.
pub(crate) fn is_python(entry: &dyn Entry) -> bool {
    let python = PYTHON.read().unwrap_or_else(PoisonError::into_inner);
    python.iter().any(|other| other.about.name == entry.about().name)
}

/// Returns a discipline written in Python.
pub(crate) fn python(name: &str) -> Option<&'static Described> {
    let python = PYTHON.read().unwrap_or_else(PoisonError::into_inner);
    python
        .iter()
        .copied()
        .find(|described| described.about.name == name)
}

/// A class of Python as a discipline of the registry.
pub(crate) struct Described {
    about: About,
    pub(crate) parameters: Vec<ParameterInfo>,
    names: &'static [&'static str],
    class: Py<PyType>,
}

impl Entry for Described {
    fn about(&self) -> &About {
        &self.about
    }

    fn parameters(&self) -> Vec<ParameterInfo> {
        self.parameters.clone()
    }

    fn class_parameters(&self) -> Vec<ParameterInfo> {
        Vec::new()
    }

    fn takes_filters(&self) -> bool {
        false
    }

    fn takes_templates(&self) -> bool {
        false
    }

    fn places(&self, _settings: &Settings) -> u32 {
        0
    }

    fn config(&self, settings: &Settings) -> Result<Box<dyn Any + Send>, ConfigError> {
        Ok(Box::new(self.complete(settings)))
    }

    fn longest(&self, _settings: &Settings, _has_inner: bool) -> Vec<(&'static str, Longest)> {
        Vec::new()
    }

    fn memory(&self, _settings: &Settings) -> u64 {
        0
    }

    fn warnings(&self, _settings: &Settings) -> Vec<String> {
        Vec::new()
    }

    fn build(&self, settings: &Settings, parts: Parts) -> Result<Box<dyn Discipline>, ConfigError> {
        let config = self.complete(settings);
        let made = Python::attach(|py| self.make(py, config, parts.seed));
        made.map(|named| Box::new(named) as Box<dyn Discipline>)
            .map_err(|error| {
                failure::set(error);
                self.cannot_be_made()
            })
    }
}

impl Described {
    /// Returns the value of every parameter.
    fn complete(&self, settings: &Settings) -> Config {
        let value = |(index, info): (usize, &ParameterInfo)| -> Setting {
            let given = settings.own.iter().find(|(other, _)| *other == index);
            let value = given
                .map(|(_, value)| value.clone())
                .or_else(|| info.default.clone());
            (index, value.unwrap_or(Value::None))
        };
        Config {
            settings: self.parameters.iter().enumerate().map(value).collect(),
        }
    }

    /// The error beside the failure that says why an instance can't be made.
    pub(crate) fn cannot_be_made(&self) -> ConfigError {
        let rule = "a class whose instances can be made";
        ConfigError::conflict("__init__", self.about.name, rule, "correct what it raised")
    }

    pub(crate) fn make(&self, py: Python<'_>, config: Config, seed: u64) -> PyResult<Node<Checked>> {
        let values = PyDict::new(py);
        for (index, value) in &config.settings {
            values.set_item(self.names[*index], value_of(py, value)?)?;
        }
        let call = "__init__()";
        let object = self
            .class
            .bind(py)
            .call_method1("_made", (seed, values))
            .map_err(|error| {
                let what = format!("it raised {error}");
                errors::discipline(py, self.about.name, call, &what, Some(error))
            })?;
        Checked::node(py, self.about.name, self.names, &object, config)
    }
}

/// A parameter as Python describes it: name, unit, least, most, default, meaning.
type Description<'py> = (
    String,
    String,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    String,
);

/// Adds a class to the disciplines, or replaces the one with the same name.
#[pyfunction]
pub(crate) fn register(
    py: Python<'_>,
    class: Py<PyType>,
    name: &str,
    summary: &str,
    parameters: Vec<Description<'_>>,
) -> PyResult<()> {
    if Registry::builtin().entries(name).next().is_some() {
        let message = format!("there is already a discipline `{name}` in the library; choose another name");
        return Err(errors::refused(py, &message));
    }
    let parameters = parameters
        .iter()
        .map(|description| parameter(py, name, description))
        .collect::<PyResult<Vec<ParameterInfo>>>()?;
    let names: Vec<&'static str> = parameters.iter().map(|info| info.name).collect();
    let described: &'static Described = Box::leak(Box::new(Described {
        about: About::new(leaked(name), leaked(summary), "Where its author means it."),
        parameters,
        names: Box::leak(names.into_boxed_slice()),
        class,
    }));
    let mut python = PYTHON.write().unwrap_or_else(PoisonError::into_inner);
    match python.iter_mut().find(|other| other.about.name == name) {
        Some(old) => *old = described,
        None => python.push(described),
    }
    Ok(())
}

fn parameter(py: Python<'_>, of: &str, description: &Description<'_>) -> PyResult<ParameterInfo> {
    let (name, unit, least, most, default, doc) = description;
    let place = format!("parameter `{name}` of `{of}`");
    let number = |value: &Bound<'_, PyAny>| -> PyResult<u64> {
        if let Ok(number) = value.extract::<u64>() {
            return Ok(number);
        }
        let text = value.str()?.to_string();
        let parsed = match unit.as_str() {
            "bytes" => parse_size(&text).map_err(|error| error.to_string()),
            "time" => parse_duration(&text)
                .map(|time| time.as_nanos() as u64)
                .map_err(|error| error.to_string()),
            "rate" => parse_rate(&text)
                .map(|rate| rate.bits_per_second())
                .map_err(|error| error.to_string()),
            _ => Err(format!("`{text}` is not a whole number from 0 on")),
        };
        parsed.map_err(|error| errors::refused(py, &format!("{place}: {error}")))
    };
    let is_flag = default.is_instance_of::<PyBool>();
    let unit = match unit.as_str() {
        _ if is_flag => Unit::Flag,
        "bytes" => Unit::Bytes,
        "time" => Unit::Time,
        "rate" => Unit::Rate,
        other => Unit::Count(leaked(other)),
    };
    let range = match is_flag {
        true => 0..=1,
        false => number(least)?..=number(most)?,
    };
    let mut info = ParameterInfo::number(leaked(name), "", range);
    info.unit = unit;
    info.doc = leaked(doc);
    info.default = match () {
        () if default.is_none() => None,
        () if is_flag => Some(Value::Flag(default.is_truthy()?)),
        () => Some(Value::Number(number(default)?)),
    };
    let is_outside = match &info.default {
        Some(Value::Number(number)) => !info.range.contains(number),
        _ => info.range.is_empty(),
    };
    if is_outside {
        let message = format!(
            "{place}: its default must be within its range, {}",
            info.allowed()
        );
        return Err(errors::refused(py, &message));
    }
    Ok(info)
}
