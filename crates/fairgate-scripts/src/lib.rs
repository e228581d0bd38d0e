//! The languages of Linux's tc and FreeBSD's dummynet.
//!
//! * [`tc`] reads scripts of `tc qdisc`, `tc class` and `tc filter` lines into a
//!   [`Spec`](fairgate_config::Spec), the description that a configuration file is read into. It also shows a
//!   description, and the statistics of a running tree, as `tc -s -d qdisc show` does.
//! * [`dummynet`] reads scripts of ipfw(8) or dnctl(8) into one such description for each interface and
//!   direction.
//! * [`sources`] recognises the files of other programs, and reads those that give commands of tc.
//! * [`pf`] reads pf.conf: the queues of ALTQ and of OpenBSD, one description for each interface.
//! * `record`, with the feature of this name, runs a shell script behind walls and collects the tc commands
//!   that it gives. Only this makes system calls.
//!
//! A setting that can't be translated is an error with its line and column.

#![forbid(unsafe_code)]

pub mod dummynet;
pub mod pf;
#[cfg(feature = "record")]
pub mod record;
mod script;
pub mod sources;
pub mod tc;
