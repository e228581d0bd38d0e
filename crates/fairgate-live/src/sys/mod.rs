//! All unsafe code of this crate: memory shared with the kernel, and system calls that no crate wraps.
//!
//! ```text
//!   layout     where a slot is in a ring: arithmetic
//!   ring       reads slots of mapped memory         unsafe: pointers into the mapping
//!   socket     AF_PACKET sockets, receive and send  unsafe: setsockopt, mmap
//!   batch      sends many frames at once            unsafe: sendmmsg
//!   guardian   a child process that outlives us     unsafe: fork
//!   interface  ioctls on interfaces                 unsafe: ioctl
//!   bpf        programs at tc's hooks               unsafe: bpf, mmap
//!   priority   real-time scheduling                 unsafe: sched_setscheduler
//!   tcp        the kernel's figures of a connection unsafe: getsockopt, setsockopt
//!   tun_tap        creates TAP devices                  unsafe: ioctl
//! ```
//!
//! All functions that these modules export are safe to call, or state their safety contract.

#![allow(unsafe_code)]

pub(crate) mod batch;
pub(crate) mod bpf;
pub(crate) mod guardian;
pub(crate) mod interface;
pub(crate) mod layout;
pub(crate) mod priority;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod tcp;
pub(crate) mod tun_tap;
