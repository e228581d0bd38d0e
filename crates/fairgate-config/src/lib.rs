//! Describes a tree of disciplines in TOML, checks it, and builds it.
//!
//! From text to packets: [`Document::parse`] reads a file, whose every mistake becomes a [`FileError`] that
//! points into it; each `[queue.NAME]` becomes a [`Spec`], which is known to be right; [`Spec::build`] makes
//! the tree. The [`Registry`] says which disciplines and parameters there are. A program with disciplines of
//! its own hands its registry to [`Document::parse_with`] and [`Spec::inline_with`].

#![forbid(unsafe_code)]

mod document;
mod error;
mod excerpt;
pub mod language;
mod section;
mod spec;
pub mod suggest;
#[cfg(test)]
mod testing;

pub use document::Document;
pub use error::{FileError, Problem};
pub use fairgate::registry::{
    self, About, Children, ClassSettings, Entry, Family, Longest, ParameterInfo, Parts, Registry, Setting,
    Settings, Unit, UnitError, Value, units,
};
pub use spec::{ApplyError, BuildError, ClassSpec, Frame, Spec};
pub use suggest::similar_name;
