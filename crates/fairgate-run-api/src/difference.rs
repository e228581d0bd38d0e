//! How a list differs from another one.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How many subscribers differ between a list and the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Difference {
    /// Those that were not in the list before.
    pub added: usize,
    /// Those that are not in the list any more.
    pub removed: usize,
    /// Those with other addresses, rates or names.
    pub changed: usize,
    /// The length of the list.
    pub count: usize,
}

impl Difference {
    /// Compares two lists, each with identifiers that none has twice.
    pub fn of<'l, T: PartialEq + 'l>(
        before: impl Iterator<Item = (&'l str, &'l T)>,
        now: impl Iterator<Item = (&'l str, &'l T)>,
    ) -> Difference {
        let mut before: BTreeMap<&str, &T> = before.collect();
        let mut difference = Difference::default();
        for (id, one) in now {
            difference.count += 1;
            match before.remove(id) {
                None => difference.added += 1,
                Some(known) => difference.changed += usize::from(known != one),
            }
        }
        difference.removed = before.len();
        difference
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            added,
            removed,
            changed,
            count,
        } = self;
        write!(
            f,
            "{added} subscribers added, {removed} removed, {changed} changed; there are {count}"
        )
    }
}
