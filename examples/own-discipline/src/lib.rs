//! A discipline that is not part of Fairgate.

pub mod early_head;
