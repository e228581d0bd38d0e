//! Operations recorded from Linux, through our disciplines.

mod common;
mod files;
mod kernel_acks;
mod kernel_dumps;
mod kernel_tcp;
mod kernel_traces;
mod textbook_qfq;
