//! Describes a tree of disciplines in TOML, checks it, and builds it.
//!
//! From text to packets: [`Document::parse`] reads a file, whose every mistake becomes a [`FileError`] that points into
//! it; each `[queue.NAME]` becomes a [`Spec`], which is known to be right; [`Spec::build`] makes the tree. What may be
//! written is told by the [`registry`], the one table of all disciplines.

#![forbid(unsafe_code)]

mod document;
mod error;
mod excerpt;
pub mod language;
mod registry;
mod section;
mod spec;
pub mod suggest;
#[cfg(test)]
mod testing;
pub mod units;
mod value;

pub use document::Document;
pub use error::{FileError, Problem};
pub use registry::{
    About, Children, ClassSettings, Entry, Family, Longest, ParameterInfo, Parts, Setting, Settings, entries,
    registry, similar_name,
};
pub use spec::{ApplyError, BuildError, ClassSpec, Frame, Spec};
pub use units::UnitError;
pub use value::{Unit, Value};
