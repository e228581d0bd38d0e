//! A discipline outside of Fairgate's repository.

pub mod early_head;
