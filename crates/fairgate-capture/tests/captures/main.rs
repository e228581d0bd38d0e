//! Captures of all formats, whole and damaged.

mod common;
mod damage;
mod formats;
