//! Helpers for several tests.

use std::sync::Arc;

use toml::Spanned;

use crate::registry::{Children, ClassSettings, Entry, ParameterInfo, Settings};
use crate::registry::{Unit, Value};
use crate::spec::{Given, Origin, Spec, read_value};

/// Returns the smallest valid description of a discipline: three classes if it holds classes, and a value for
/// each required parameter that all disciplines accept.
pub(crate) fn smallest(entry: &'static dyn Entry) -> Spec {
    let required = |(index, info): (usize, ParameterInfo)| {
        info.default
            .is_none()
            .then_some((index, Value::Number(1_000_000)))
    };
    let mut spec = Spec {
        entry,
        settings: Arc::new(Settings {
            own: entry
                .parameters()
                .into_iter()
                .enumerate()
                .filter_map(required)
                .collect(),
            ..Settings::default()
        }),
        children: Arc::default(),
        estimators: Arc::default(),
        origin: Origin::nowhere().into(),
    };
    let held = Arc::make_mut(&mut spec.children);
    let fifo = || Spec::inline("fifo").expect("fifo needs nothing");
    match entry.about().children {
        Children::None => {}
        children if !children.are_classes() => held.push(fifo()),
        _ => {
            for minor in 1..=3 {
                Arc::make_mut(&mut spec.settings).classes.push(ClassSettings {
                    minor,
                    template: None,
                    settings: entry
                        .class_parameters()
                        .into_iter()
                        .enumerate()
                        .filter_map(required)
                        .collect(),
                });
                held.push(fifo());
            }
        }
    }
    spec
}

/// Reads a parameter's value in the syntax of a file.
pub(crate) fn read(info: &ParameterInfo, text: &str) -> Result<Value, String> {
    let given = match info.unit {
        _ if text == "none" => Given::Text(text.to_owned()),
        Unit::Count(_) | Unit::Signed(..) => Given::Integer(text.parse().expect("a number")),
        Unit::Flag => Given::Flag(text == "true"),
        // A list has no brackets on the command line.
        Unit::List(_) | Unit::Numbers(_) | Unit::SignedNumbers(_) => {
            Given::Word(text.replace(['[', ']', ' '], ""))
        }
        _ => Given::Text(text.to_owned()),
    };
    read_value(info, &Spanned::new(0..text.len(), given)).map_err(|mistake| mistake.message)
}
