//! The longest packet that a discipline accepts.

/// The longest packet that a bucket or a limit can hold. A longer packet is always dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Longest {
    /// Its length in bytes.
    Length(u64),
    /// The memory that it occupies, in bytes.
    Memory(u64),
}
