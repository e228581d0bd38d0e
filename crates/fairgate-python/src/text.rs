//! Functions over text: what disciplines there are, checks, and other languages for trees.

use fairgate::registry::{Entry, ParameterInfo};
use fairgate_config::Spec;
use fairgate_scripts::{dummynet, tc};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{document, errors, failure, registry, scenario, watch};

fn parameter<'py>(py: Python<'py>, info: &ParameterInfo) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("name", info.name)?;
    entry.set_item("unit", info.unit.name())?;
    entry.set_item("default", info.shown_default())?;
    entry.set_item("required", info.default.is_none())?;
    entry.set_item("allowed", info.allowed())?;
    entry.set_item("meaning", info.doc)?;
    Ok(entry)
}

fn discipline<'py>(py: Python<'py>, of: &dyn Entry) -> PyResult<Bound<'py, PyDict>> {
    let list = |infos: Vec<ParameterInfo>| -> PyResult<Vec<_>> {
        infos.iter().map(|info| parameter(py, info)).collect()
    };
    let (entry, about) = (PyDict::new(py), of.about());
    entry.set_item("name", about.name)?;
    entry.set_item("family", about.family.name())?;
    entry.set_item("holds", about.children.name())?;
    entry.set_item("summary", about.summary)?;
    entry.set_item("when", about.when)?;
    entry.set_item("takes_filters", of.takes_filters())?;
    entry.set_item("parameters", list(of.parameters())?)?;
    entry.set_item("class_parameters", list(of.class_parameters())?)?;
    Ok(entry)
}

/// Returns all disciplines, as `fairgate list --json` does.
#[pyfunction]
pub(crate) fn disciplines(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let registry = registry::current();
    registry.iter().map(|entry| discipline(py, entry)).collect()
}

/// Checks a configuration file. Returns its warnings.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, text: &str, name: &str) -> PyResult<Vec<String>> {
    errors::guarded(py, || {
        let document = document::read(py, name, text)?;
        if document.sections().any(|section| section == "simulate") {
            scenario::read(&document).map_err(|error| errors::input(py, &error))?;
        }
        let of_queue = |(name, spec): (&str, &Spec)| -> Vec<String> {
            let warnings = spec.warnings().into_iter();
            warnings
                .map(|warning| format!("queue {name}: {warning}"))
                .collect()
        };
        Ok(document.queues().flat_map(of_queue).collect())
    })
}

/// Returns what tells a run of a sweep from all others: 32 hexadecimal digits.
#[pyfunction]
pub(crate) fn identity(py: Python<'_>, text: &str, seed: u64) -> PyResult<String> {
    let file = text.parse::<toml::Table>();
    let file = file.map_err(|error| errors::refused(py, &error.to_string()))?;
    Ok(fairgate_sim::sweep::identity(&file, seed))
}

/// Returns the values of all parameters of the root of `[queue.NAME]`, set or at their defaults.
#[pyfunction]
pub(crate) fn parameters<'py>(py: Python<'py>, text: &str, queue: &str) -> PyResult<Bound<'py, PyDict>> {
    errors::guarded(py, || {
        let document = document::read(py, "python", text)?;
        let values = PyDict::new(py);
        for (info, value) in document.queue(queue).map(Spec::parameters).unwrap_or_default() {
            values.set_item(info.name, info.unit.show(&value))?;
        }
        Ok(values)
    })
}

/// Returns `[queue.NAME]` for a tree in one line.
#[pyfunction]
pub(crate) fn from_line(py: Python<'_>, line: &str, name: &str) -> PyResult<String> {
    errors::guarded(py, || {
        let spec = Spec::inline_with(line, &registry::current());
        spec.map(|spec| spec.to_toml(name))
            .map_err(|error| errors::input(py, &error))
    })
}

/// Runs a command of `fairgate`, or of `fairgate-lab`, with `--json`. Returns its exit code, its document,
/// and the message of an error. Ctrl-C is answered at once; the command itself then ends on a thread of its
/// own.
#[pyfunction]
pub(crate) fn answer(py: Python<'_>, arguments: Vec<String>, is_lab: bool) -> PyResult<(u8, String, String)> {
    let registry = registry::current();
    failure::take_of_any_thread();
    let answer = watch::aside(py, move || match is_lab {
        false => fairgate_cli::answer_with(&registry, &arguments),
        true => fairgate_evidence::answer(&arguments),
    })?;
    match failure::take_of_any_thread() {
        Some(failure) => Err(failure),
        None => Ok((answer.code, answer.document, answer.message)),
    }
}

/// Returns the trees of a script in tc's language: for each its name, `[queue.NAME]`, and what tc itself
/// changes silently.
#[pyfunction]
pub(crate) fn from_tc(
    py: Python<'_>,
    text: &str,
    name: &str,
    mtu: u32,
    txqueuelen: u32,
) -> PyResult<Vec<(String, String, Vec<String>)>> {
    let device = tc::Device {
        mtu,
        txqueuelen,
        ..tc::Device::default()
    };
    errors::guarded(py, || {
        let trees =
            tc::Script::translate_all(name, text, device).map_err(|error| errors::input(py, &error))?;
        let tree = |tree: tc::Translated| {
            let warnings = tree.warnings.iter().map(ToString::to_string).collect();
            (tree.spec.to_toml(&tree.device), tree.device, warnings)
        };
        let sorted = trees.into_iter().map(tree);
        Ok(sorted
            .map(|(toml, device, warnings)| (device, toml, warnings))
            .collect())
    })
}

/// Returns the trees of a script in dummynet's language: for each its name and `[queue.NAME]`.
#[pyfunction]
pub(crate) fn from_dummynet(
    py: Python<'_>,
    text: &str,
    name: &str,
    mtu: u32,
) -> PyResult<Vec<(String, String)>> {
    let device = tc::Device {
        mtu,
        ..tc::Device::default()
    };
    errors::guarded(py, || {
        let script = dummynet::Script::parse(name, text, device);
        let trees = script.and_then(|script| script.trees());
        let trees = trees.map_err(|error| errors::input(py, &error))?;
        Ok(trees
            .iter()
            .map(|tree| (tree.name(), tree.spec.to_toml(&tree.name())))
            .collect())
    })
}
