//! Parts of a description that no line of a script names.

use std::ops::Range;

use fairgate_config::language::{Draft, Given};
use toml::Spanned;

use super::setting;

/// Returns a discipline without settings.
pub(crate) fn named(discipline: &str, location: &Range<usize>) -> Draft {
    Draft {
        header: location.clone(),
        discipline: Some(Spanned::new(location.clone(), discipline.to_owned())),
        ..Draft::default()
    }
}

/// Returns a `prio` without classes. Filters and the default classify all packets.
pub(crate) fn bands(location: &Range<usize>) -> Draft {
    let first = || Spanned::new(location.clone(), Given::Integer(0));
    let mut draft = named("prio", location);
    let priomap = Given::List((0..16).map(|_| first()).collect());
    draft.settings.push(setting(location, "priomap", priomap));
    draft
}

/// Returns a class that holds `inner`.
pub(crate) fn class(id: usize, inner: Draft) -> Draft {
    let location = inner.header.clone();
    Draft {
        header: location.clone(),
        settings: vec![setting(&location, "id", Given::Integer(id as i128))],
        inner: Some(Box::new(inner)),
        ..Draft::default()
    }
}
