//! Describes a tree of disciplines in TOML, checks it, and builds it.
//!
//! [`Document::parse`] reads a file and reports every mistake in it as a [`FileError`] that points into the
//! file. Each `[queue.NAME]` becomes a [`Spec`], a checked description. [`Spec::build`] builds the tree. The
//! [`Registry`] holds the disciplines and their parameters. A program with disciplines of its own passes its
//! registry to [`Document::parse_with`] and [`Spec::inline_with`].
//!
//! What a configuration may ask of the machine is here too: [`Memory`] says what is left, [`folder`] where
//! files are made so that no other user redirects them.

#![forbid(unsafe_code)]

pub mod autorate;
mod document;
mod error;
mod excerpt;
pub mod folder;
pub mod language;
mod memory;
pub mod run;
mod section;
mod spec;
pub mod suggest;
mod table;
#[cfg(test)]
mod testing;

pub use document::Document;
pub use error::{FileError, Lines, Origin, Problem};
pub use fairgate::change::{Change, ChangeError, Replaced};
pub use fairgate::registry::{
    self, About, Bucket, BuildError, Children, ClassSettings, Entry, Family, Longest, ParameterInfo, Parts,
    Registry, Section, Setting, Settings, Shape, Tables, Unit, UnitError, Value, units,
};
pub use memory::Memory;
pub use spec::{
    Assembly, Branch, CHANGE, ClassSpec, Estimator, EstimatorError, Frame, ShardBy, ShardedSpec, Spec,
    Workers, quoted, renamed,
};
pub use suggest::similar_name;
pub use table::Table;
