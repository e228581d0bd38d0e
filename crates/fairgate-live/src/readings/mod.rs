//! What is read of a machine, its interfaces and a run's process, to find out why a run does not do what it
//! should. Nothing is changed. `fairgate doctor` judges what is read.
//!
//! ```text
//!   interface   what an interface has: offloads, shapers, programs, counters
//!   forwarding  whether the kernel forwards between two interfaces
//!   flowtables  tables by which the kernel forwards past its own stack
//!   machine     clock, kernel
//!   process     what a run's process has: programs, memory
//! ```

mod flowtables;
mod forwarding;
mod interface;
mod machine;
mod process;

pub use crate::attach::Shaper;
pub use flowtables::Flowtable;
pub use forwarding::is_forwarding;
pub use interface::{Below, Counters, InterfaceReading, Qdisc};
pub use machine::MachineReading;
pub use process::{GroupMemory, ProcessReading};
