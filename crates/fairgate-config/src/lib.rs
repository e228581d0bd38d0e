//! Describes a tree of disciplines in TOML, checks it, and builds it.
