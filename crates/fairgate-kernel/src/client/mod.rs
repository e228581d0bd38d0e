//! The program's side of netlink: what is sent to the kernel, and what it answers.
//!
//! ```text
//!   message   messages and their attributes, written and read
//!   socket    sends a request and takes the answers
//!   qdisc     qdiscs of the kind `fairgate`: made, changed, deleted and listed
//!   reader    everything in one of them
//! ```

mod failed;
mod message;
mod qdisc;
mod reader;
mod socket;

pub use failed::Failed;
pub use message::{Message, attribute, text, word};
pub use qdisc::{CLSACT, Counters, Make, Place, Qdisc, ROOT, delete, list, options, put};
pub use reader::{Contents, Reader};
pub use socket::{Socket, Take};
